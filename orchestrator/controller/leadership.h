/* Stands by, takes over, renews, and frees what a lost leadership leaves. */
#pragma once
#include "shell.h"

/* Makes the timers and begins to stand by. */
bool leader_start(struct controller *c, struct err *err) MUST_CHECK;
/* clean: what is queued is written and the lease is released. */
void leader_stop(struct controller *c, bool clean);
/* At the end of a pass: after a loss all state is freed and the standby begins. */
void leader_end_pass(struct controller *c);
