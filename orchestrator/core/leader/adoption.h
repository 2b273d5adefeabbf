/* Whose a job is. A job at AWS without a row is ours when it has the very name that one of our
 * parts would have had, with a proof in its environment. Such a job is adopted as an attempt of
 * unknown outcome: its slots and its money are held, as if it had just been intended. Pure. */
#pragma once
#include "core/capacity/job_report.h"
#include "leader_state.h"

/* An attempt whose Create was refused may have a job all the same. The leader that was told so
 * looks for it in its next Lists; one that was frozen and died may not have. Void attempts intended
 * so long before the newest intent are looked for at a takeover, too. */
#define ADOPTION_VOID_US (3600 * USEC_PER_SEC)

/* Jobs younger than this are matched with the rows at takeover: those that a failed-over database
 * may have lost. newest_intent_us: of all rows, void_intent_us: the oldest of those void attempts;
 * 0: none. Wall clock. */
usec_t adoption_since(usec_t newest_intent_us, usec_t void_intent_us);

/* True when a name begins with our prefix and reads like one of ours. Others are left alone. */
bool adoption_like_ours(const char *job_prefix, const char *name);

struct adoption_place { /* which part's attempt a name could be; ids, nothing borrowed */
    int64_t campaign_id, stage_id, seq;
    int n;
};
/* The places whose names agree with `name` but for the hash, which takes a task id of the database.
 * *cursor: 0 at first. False: no more. */
bool adoption_next_place(const struct leader_state *s, const char *job_prefix, const char *name,
                         int *cursor, struct adoption_place *ret);
/* True when this is the very name that task_id (0: none) has at this place. The job is ours then,
 * even when our rows say otherwise. */
bool adoption_is_ours(struct leader_state *s, const char *job_prefix, const char *name,
                      const struct adoption_place *place, int64_t task_id);
/* True: task_id (0: none) at this place would have had the very name of the job, and the job says
 * enough of itself to be adopted; *ret is its row, with what it may cost at worst reserved.
 * Strings are borrowed from job. */
bool adoption_of(struct leader_state *s, const char *job_prefix, const struct job_description *job,
                 const struct adoption_place *place, int64_t task_id, struct adoption *ret);
/* The job under the name of attempt `a` carries the proof of another intent, or its name is
 * believed and it uses other than that attempt would: the name is made by us alone, so that intent
 * was ours and its row was lost. *ret: what of the attempt has to be as the job says. False: it is
 * not so, or the job does not say enough of itself. */
bool adoption_recast(struct leader_state *s, const struct live_attempt *a,
                     const struct job_description *job, struct intent *ret);
/* An attempt that was made of its job before the price of its type was known, and one is known by
 * now: what its row has to say. False: it has a price, none is known, or its end is under way. */
bool adoption_plan_price(struct leader_state *s, const struct live_attempt *a,
                         struct late_price *ret);
/* That is committed. */
void adoption_apply_price(struct leader_state *s, struct live_attempt *a,
                          const struct late_price *p);
/* A Describe of attempt `a` was answered: the fact as leader_describe_answer has it. *ret_recast:
 * the job is to become the attempt's, as *ret says; nothing else is concluded from the answer. */
struct fact adoption_described(struct leader_state *s, struct live_attempt *a,
                               const struct job_description *job, bool not_found, bool failed,
                               usec_t now_us, int64_t boot_us, bool *ret_recast,
                               struct intent *ret);
