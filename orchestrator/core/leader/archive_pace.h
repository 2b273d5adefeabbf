/* How an archive goes on: whether anything may be deleted, how many rows in one step, what people
 * are told, and when its objects are written to S3 again. Pure; boot_us is CLOCK_BOOTTIME. */
#pragma once
#include "core/rows.h"

#define ARCHIVE_PAUSE_US (20 * USEC_PER_MSEC) /* between two steps: everybody else's turn */

/* Why nothing of a campaign may be deleted that is in this state and has `active` jobs, for
 * people; "": it may. It had ended when the archive was asked for. */
const char *leader_archive_refusal(enum campaign_state state, int64_t active);
/* After a step of `rows` rows that took so long (CLOCK_MONOTONIC): as many as fit into 30 ms, since
 * the loop waits for a step. rows 0: before the first, or after one that was refused. */
int64_t leader_archive_rows(int64_t rows, int64_t took_us);

/* Its rows are written to S3 before they are deleted: what asked for it named a folder. */
bool leader_archive_exports(const struct operation_row *op);
struct archive_told {
    bool tells; /* the operation's row is written: each time is an event, twenty in all */
    enum operation_state state;
    int64_t done;
};
/* What the operation tells after a step: `attempts` are deleted so far; over: all is. */
struct archive_told leader_archive_told(const struct operation_row *op, bool over,
                                        int64_t attempts);

struct archive_put_pace { /* of one export; all zero at first */
    int failures;         /* in a row */
    int64_t next_us;      /* boot: no object is written before this */
};
bool leader_archive_put_due(const struct archive_put_pace *p, int64_t boot_us);
/* An object was written, or was not: then it waits, ever longer. */
void leader_archive_put_answered(struct archive_put_pace *p, bool ok, int64_t boot_us);
/* The name of its place cannot be read: it waits for as long as that can be. */
void leader_archive_put_nowhere(struct archive_put_pace *p, int64_t boot_us);
