/* The training container's contract on one machine: /opt/ml is ROOT/jobs/<name>/algo-<k>/ml, told
 * to the program as DROVER_ML_ROOT; a host is a process in a group of its own with a loopback
 * address of its own. */
#pragma once
#include "supervise.h"

#define LOG_BYTES_MAX (256 << 20) /* of one host; what comes after is dropped */

/* Folders and the three configuration files of every host. */
bool container_prepare(struct supervisor *s, struct err *err) MUST_CHECK;
/* Start the program of one host. */
bool container_spawn(struct supervisor *s, struct host *h, struct err *err) MUST_CHECK;
/* Take over what a host has written so far, each line with its time. Closes the pipe at its end. */
void container_drain(struct host *h);
/* The host is gone: the rest of its output, its last line ended. */
void container_finish(struct host *h);
/* Kill what a supervisor that died has left running of the job in this folder. */
void container_strays_kill(const char *folder);
