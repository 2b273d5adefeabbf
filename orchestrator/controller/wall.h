/* The wall clock of the leader: the one way in which the loop's thread reads it. */
#pragma once
#include "shell.h"

/* Now. What memory waits for has followed the clock's steps (wall_clock.h); one is logged. */
usec_t leader_now(struct controller *c);
/* The same by AWS's clock: all times of endpoints and file systems are by it. */
usec_t leader_aws_now(struct controller *c);
