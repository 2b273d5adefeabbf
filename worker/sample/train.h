/* The `train-sample` command: a small data-parallel training over the hosts of a job. */
#pragma once
#include "common/buf.h"

/* Run with settings from hyperparameters and argv[argc]. Returns an exit status of
 * worker_protocol.h. */
int train_main(int argc, char *const *argv);
void train_help(struct buf *out);
