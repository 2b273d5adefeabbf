/* The training container's contract on one machine: /opt/ml is ROOT/jobs/<name>/algo-<k>/ml, passed
 * to the program as DROVER_ML_ROOT. A host is a process group with its own loopback address. */
#pragma once
#include "supervise.h"

#define LOG_BYTES_MAX (256 << 20) /* log bytes per host; the rest is dropped */

/* Folders and the three configuration files of every host. */
bool container_prepare(struct supervisor *s, struct err *err) MUST_CHECK;
/* Loopback address of host k: one network (seq) per job, so that concurrent jobs may use the same
 * ports. */
void container_address(int64_t seq, int k, char out[static 20]);
/* Start the program of one host. */
bool container_spawn(struct supervisor *s, struct job_host *h, struct err *err) MUST_CHECK;
/* Read what a host has written so far and log each line with its time. Closes the pipe at its
 * end. */
void container_drain(struct job_host *h);
/* The host has ended: log the rest of its output and end the last line. */
void container_finish(struct job_host *h);
/* Kill the processes that a dead supervisor has left of the job in this folder. */
void container_strays_kill(const char *folder);
