/* What an archive deletes: whether anything, and how many rows in one step. Pure. */
#pragma once
#include "core/model.h"

/* Why nothing of a campaign may be deleted that is in this state and has so many jobs that have not
 * ended, for people; "": it may. It had ended when the archive was asked for. */
const char *leader_archive_refusal(enum campaign_state state, int64_t active);
/* After a step of `rows` rows that took so long (CLOCK_MONOTONIC): as many as fit into 30 ms, since
 * the loop waits for a step. rows 0: before the first, or after one that was refused. */
int64_t leader_archive_rows(int64_t rows, int64_t took_us);
