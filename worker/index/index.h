/* The `index` command: every shard below the input listed pair by pair, as JSON lines in shard
 * order. */
#pragma once

/* Settings from hyperparameters and argv[argc]; the exit status of worker_protocol.h. */
int index_main(int argc, char *const *argv);
