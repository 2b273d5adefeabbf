/* Runs a program to its end and keeps its output. */
#pragma once
#include "common/buf.h"
#include "common/err.h"

#define SPAWN_OUTPUT_MAX 8192

/* Run argv (NULL-terminated, argv[0] looked up in PATH) with empty stdin; stdout and stderr go to
 * *out (the last SPAWN_OUTPUT_MAX bytes). *ret_status: exit status, or 128 + n for signal n. ERR_IO
 * when it cannot be started, ERR_TIMEOUT when it was killed after timeout_us. */
bool spawn_run(const char *const *argv, int64_t timeout_us, int *ret_status, struct buf *out,
               struct err *err) MUST_CHECK;
