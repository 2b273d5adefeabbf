/* Tasks of a stage with done_if are looked at in S3 before their first attempt: what is there is
 * skipped, what is missing becomes ready, and what could not be looked at is asked about again
 * after a back-off of at most 10 s; it is never started unseen. Decides which task is asked about
 * next and what an answer means. Keeps ids: a campaign may end while an answer is under way.
 * Pure. */
#pragma once
#include "core/sched/ready_queue.h"
#include "leader_state.h"
#include "output_verdict.h"

#define SKIP_DONE_AT_ONCE 32 /* questions under way, of all stages */

struct skip_done_ask { /* value */
    int64_t campaign_id, generation, stage_id;
    struct ready_queue_task task;
};
enum skip_done_answer {
    SKIP_DONE_THERE,
    SKIP_DONE_MISSING,
    SKIP_DONE_UNCHECKED, /* S3 could not be asked, or may not say */
};
enum skip_done_then {
    SKIP_DONE_FORGET, /* its campaign is gone */
    SKIP_DONE_SKIP,
    SKIP_DONE_READY,
    SKIP_DONE_ASK_AGAIN,
};

/* True for a task of this stage that must be asked about. names: attempts it has had. */
bool skip_done_wanted(const struct live_stage *ls, int names);
/* Takes at most `max` tasks that are due out of their stages' queues, one of each stage in turn.
 * While a stage's last answer was SKIP_DONE_UNCHECKED one of it is asked about at a time. */
size_t skip_done_next(struct leader_state *s, usec_t now_us, struct skip_done_ask *ret, size_t max);
enum skip_done_answer skip_done_answer_of(const struct output_verdict *v);
/* What an answer means; SKIP_DONE_SKIP is to be written first. */
enum skip_done_then skip_done_plan(struct leader_state *s, const struct skip_done_ask *ask,
                                   enum skip_done_answer answer);
/* After the commit, or with SKIP_DONE_ASK_AGAIN when nothing could be asked or written. said: why
 * no answer came, "" when that is not known. */
void skip_done_apply(struct leader_state *s, const struct skip_done_ask *ask,
                     enum skip_done_then then, const char *said, usec_t now_us);

/* Why a stage waits, every waiting part of which is still to be asked about. */
struct skip_done_wait { /* value */
    enum wait_reason why;
    usec_t again_us;  /* of WAIT_UNCHECKED, wall: the part asked about last is asked about again */
    const char *said; /* of the same: why no answer came, "" not known; of the stage */
};
/* True when that is to be written. The scheduler gives such a stage no reason, since nothing of it
 * is ready. Written when the answers stop coming and when they come again, and when what keeps the
 * stage or its campaign from starting anything begins or ends; while they do not, the next time
 * once the one told before has passed. */
bool skip_done_tells(const struct live_campaign *lc, const struct live_stage *ls, usec_t now_us,
                     struct skip_done_wait *ret);
/* It was written. */
void skip_done_told(struct live_stage *ls, const struct skip_done_wait *w);
