/* Archiving an ended campaign, as the leader carries it out: parts, attempts, pools and metrics are
 * deleted in steps; ledger, counters, cost by cause and the names of its jobs stay. Written between
 * leader_begin and leader_commit. Errors: those of query.h. */
#pragma once
#include "core/rows.h"
#include "store/pg/connection.h"

struct archive_subject {
    enum campaign_state state;
    int64_t active; /* jobs that have not ended */
};
/* What is to be archived, as it is now. */
bool store_archive_subject(struct store *s, int64_t campaign_id, struct archive_subject *ret,
                           struct err *err) MUST_CHECK;
/* It is not archived after all, unless rows of it are deleted already. */
bool store_archive_drop(struct store *s, int64_t campaign_id, struct err *err) MUST_CHECK;
struct archive_progress {
    int64_t attempts; /* deleted so far, of the whole campaign */
    bool over;        /* nothing is left: the campaign is archived */
};
/* One step of at most n_max rows; of none while the campaign is still to be written to S3.
 * ERR_TIMEOUT: somebody reads the campaign's tables; nothing was done. */
bool store_archive_step(struct store *s, int64_t campaign_id, int64_t n_max,
                        struct archive_progress *ret, struct err *err) MUST_CHECK;
