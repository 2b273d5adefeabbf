/* How many rows an archive deletes in one step. Pure. */
#pragma once
#include <stdint.h>

/* After a step of `rows` rows that took so long (CLOCK_MONOTONIC): as many as fit into 30 ms, since
 * the loop waits for a step. rows 0: before the first, or after one that was refused. */
int64_t leader_archive_rows(int64_t rows, int64_t took_us);
