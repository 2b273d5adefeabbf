/* The `index` command: lists every pair of every shard below the input as JSON lines, in shard
 * order. */
#pragma once

/* Run with settings from hyperparameters and argv[argc]. Returns an exit status of
 * worker_protocol.h. */
int index_main(int argc, char *const *argv);
