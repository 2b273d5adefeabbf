/* Pipe channels. For each host and channel a process writes the data of epoch n into the FIFO
 * ML/input/data/NAME_n, from n = 0 on and without an end. The FIFO of the next epoch is made when
 * that of this epoch is opened. A FIFO is gone before its reader sees the end of the data. A reader
 * that closes early has ended its epoch. What cannot be sent fails the job; the reader then waits,
 * since the end of the data would look like that of the epoch. */
#pragma once
#include "supervise.h"

#define FEED_REASON_MAX 1024

/* Start the processes of all plans; the first FIFOs are there afterwards. */
bool feeds_start(struct supervisor *s, struct err *err) MUST_CHECK;
/* Host k has ended: so do its processes. */
void feeds_end_host(struct supervisor *s, int k);
/* A child that is no host was reaped. */
void feeds_reaped(struct supervisor *s, pid_t pid);
/* End all processes and wait for them. */
void feeds_end(struct supervisor *s);
/* True when something could not be sent; ret_reason is the FailureReason. */
bool feeds_failed(const struct supervisor *s, char ret_reason[static FEED_REASON_MAX + 1]);
