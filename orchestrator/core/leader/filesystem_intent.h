/* When a stage of kind lustre makes a file system, what it asks for, what has come of it. A stage
 * has one try at a time: the next one begins only when the one before is proven absent. Pure. */
#pragma once
#include "core/lowering/filesystem_request.h"
#include "filesystem_life.h"

/* What the tries of every stage have come to, kept in live_stage: for campaign_life.h. Asks to act
 * when one of them is to end. */
void leader_filesystems_mark(struct leader_state *s, usec_t now_us);

/* True: the stage is to make a file system now, by its try *ret_n. */
bool leader_filesystem_due(const struct leader_state *s, const struct live_campaign *lc,
                           const struct live_stage *ls, usec_t now_us, int *ret_n);

/* Of a GB and month, by spec_storage_tier; -1: unknown. *ret_exact: it is of that tier, not the
 * dearest of its deployment. */
musd_t leader_storage_price(const struct leader_state *s, const char *tier, bool *ret_exact);

struct filesystem_intent_facts {
    int64_t filesystem_id;
    int n;
    const char *job_prefix;
    usec_t now_us;
};
/* The row and the exact bytes of its request. WAIT_NONE: to be written; else why not. False: no
 * request can be made of the stage. */
bool leader_plan_filesystem_intent(const struct leader_state *s, const struct live_campaign *lc,
                                   const struct live_stage *ls,
                                   const struct filesystem_intent_facts *f,
                                   struct filesystem_row *ret, struct buf *ret_request,
                                   enum wait_reason *ret_why, bool *ret_exact,
                                   struct err *err) MUST_CHECK;
