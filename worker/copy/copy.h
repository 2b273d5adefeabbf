/* The `copy` command: files from HTTP(S) or S3 into S3 or a folder. */
#pragma once

/* Run with settings from hyperparameters and argv[argc]. Returns an exit status of
 * worker_protocol.h. */
int copy_main(int argc, char *const *argv);
