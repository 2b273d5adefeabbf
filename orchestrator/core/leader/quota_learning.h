/* Quotas and other users' instances: learned from refusals and acceptances, believed less with
 * time, and probed again. What was learned is kept in the slots' rows, so that the next leader
 * knows it.
 *
 * Foreign use fades slowly (quota_ledger.h), but others may free it at once: while it is what keeps
 * something from starting, one instance more than it allows is tried now and then, first after 5 s,
 * then after twice as long with each refusal. A refusal costs nothing. Times are wall clock. */
#pragma once
#include "leader_state.h"

struct quota_learning_refusal { /* for the log */
    struct quota_ledger_refusal said;
    int64_t ours, others; /* instances of the type */
};
/* ResourceLimitExceeded for a Create of `a`. False: the text names no quota. */
bool quota_learning_refused(struct leader_state *s, const struct live_attempt *a, const char *text,
                            usec_t now_us, struct quota_learning_refusal *ret);
/* AWS has the job of `a`, so there was room for it. */
void quota_learning_accepted(struct leader_state *s, const struct live_attempt *a, usec_t now_us);
/* The slots as the scheduler should see them now. True: a probe is due, and *ret has one instance
 * of foreign use less. */
bool quota_learning_slots(const struct live_slots *ls, usec_t now_us, struct quota_ledger *ret);

struct quota_learning_write { /* what the row of the slots is to keep */
    int64_t foreign;
    usec_t foreign_us;
    int64_t refused_limit; /* -1 none */
};
/* True: the row differs. Apply after the commit. */
bool quota_learning_plan(const struct live_slots *ls, usec_t now_us,
                         struct quota_learning_write *ret);
void quota_learning_apply(struct live_slots *ls, const struct quota_learning_write *w);
bool quota_learning_dirty(const struct leader_state *s, usec_t now_us);
