/* See skip_done.h. */
#include "skip_done.h"
#include "awake.h"
#include "common/retry.h"
#include "core/protocol/protocol.h"
#include "sched_view.h"
#include <stdio.h>

#define BACK_OFF_MIN_US USEC_PER_SEC
#define BACK_OFF_MAX_US PROTOCOL_VERIFY_AGAIN_US

bool skip_done_wanted(const struct live_stage *ls, int names)
{
    return ls->spec != NULL && ls->spec->done_if != NULL && names == 0;
}

static bool may_ask(const struct live_campaign *lc, const struct live_stage *ls)
{
    return lc->row.wanted != WANTED_CANCEL && !stage_state_terminal(ls->row.state) &&
           (ls->checks_failed == 0 || ls->checks_under_way == 0);
}

size_t skip_done_next(struct leader_state *s, usec_t now_us, struct skip_done_ask *ret, size_t max)
{
    size_t n = 0;
    for (size_t before = SIZE_MAX; n < max && n != before;) {
        before = n;
        for (size_t i = 0; i < s->campaigns_n; i++) {
            struct live_campaign *lc = s->campaigns[i];
            for (int k = 0; k < lc->stages_n && n < max; k++) {
                struct live_stage *ls = &lc->stages[k];
                struct skip_done_ask *a = &ret[n];
                if (!may_ask(lc, ls) || !ready_queue_pop(ls->unchecked, now_us, &a->task)) {
                    continue;
                }
                a->campaign_id = lc->row.id;
                a->generation = lc->generation;
                a->stage_id = ls->row.id;
                ls->checks_under_way++;
                n++;
            }
        }
    }
    return n;
}

enum skip_done_answer skip_done_answer_of(const struct output_verdict *v)
{
    /* Only what was looked at is missing: a check that S3 refused for good has another cause. (It
     * says so of what is not there, too, to those who may not list.) */
    bool seen = v->checked && (v->good || v->cause == CAUSE_SHORT_OUTPUT);
    return !seen ? SKIP_DONE_UNCHECKED : v->good ? SKIP_DONE_THERE : SKIP_DONE_MISSING;
}

static struct live_stage *stage_of(struct leader_state *s, const struct skip_done_ask *ask,
                                   struct live_campaign **ret)
{
    struct live_campaign *lc = leader_state_campaign(s, ask->campaign_id);
    *ret = lc;
    return lc != NULL && lc->generation == ask->generation ? leader_state_stage(lc, ask->stage_id)
                                                           : NULL;
}

enum skip_done_then skip_done_plan(struct leader_state *s, const struct skip_done_ask *ask,
                                   enum skip_done_answer answer)
{
    struct live_campaign *lc;
    if (stage_of(s, ask, &lc) == NULL) {
        return SKIP_DONE_FORGET;
    }
    return answer == SKIP_DONE_THERE     ? SKIP_DONE_SKIP
           : answer == SKIP_DONE_MISSING ? SKIP_DONE_READY
                                         : SKIP_DONE_ASK_AGAIN;
}

/* Doubles with each answer in a row that did not come, with jitter. */
static usec_t back_off(struct leader_state *s, int failed)
{
    usec_t us = retry_step_us(BACK_OFF_MIN_US, BACK_OFF_MAX_US, failed - 1);
    return us / 2 + (usec_t)rng_below(&s->rng, (uint64_t)us / 2);
}

void skip_done_apply(struct leader_state *s, const struct skip_done_ask *ask,
                     enum skip_done_then then, const char *said, usec_t now_us)
{
    struct live_campaign *lc;
    struct live_stage *ls = stage_of(s, ask, &lc);
    struct ready_queue_task t = ask->task;
    if (ls == NULL) {
        return;
    }
    ls->checks_under_way--;
    ls->checks_failed = then == SKIP_DONE_ASK_AGAIN ? ls->checks_failed + 1 : 0;
    if (then == SKIP_DONE_SKIP) {
        task_counts_move(lc, ls, TASK_WAITING, TASK_SKIPPED, 1);
    } else if (then == SKIP_DONE_READY) {
        t.not_before_us = 0;
        ready_queue_push(ls->ready, &t);
        campaign_wake(lc);
    } else {
        t.not_before_us = now_us + back_off(s, ls->checks_failed);
        ls->check_again_us = t.not_before_us;
        (void)snprintf(ls->check_said, sizeof ls->check_said, "%s", said);
        ready_queue_push(ls->unchecked, &t);
    }
    s->decide = true;
    s->look_at_db = true;
}

/* Parts of it wait, and each of them for an answer. */
static bool only_unchecked(const struct live_stage *ls)
{
    return live_stage_unchecked_n(ls) > 0 && ready_queue_n(ls->ready) == 0;
}

/* Is it said of the state of a stage or of its campaign? Other reasons are of parts that were
 * ready: they come and go while the others are asked about, and are not taken back each time. */
static bool is_of_state(enum wait_reason why)
{
    static const enum wait_reason of_state[] = {
        WAIT_STAGE_BLOCKED, WAIT_PAUSED,      WAIT_HELD,   WAIT_BREAKER, WAIT_BUDGET,
        WAIT_STAGE_BUDGET,  WAIT_PART_BUDGET, WAIT_LOCKED, WAIT_PARKED,  WAIT_UNCHECKED};
    for (size_t i = 0; i < ARRAY_LEN(of_state); i++) {
        if (of_state[i] == why) {
            return true;
        }
    }
    return false;
}

bool skip_done_tells(const struct live_campaign *lc, const struct live_stage *ls, usec_t now_us,
                     struct skip_done_wait *ret)
{
    bool failing = ls->checks_failed > 0;
    if (!skip_done_wanted(ls, 0) || stage_state_terminal(ls->row.state) || !only_unchecked(ls)) {
        return false;
    }
    *ret = (struct skip_done_wait){.why = sched_view_why_not(lc, ls, now_us), .said = ""};
    if (!failing && ls->check_told && !is_of_state(ret->why) && !is_of_state(ls->reason)) {
        return false;
    }
    if (ret->why == WAIT_NONE || ret->why == WAIT_BACKOFF) { /* nothing ready is kept from it */
        ret->why = failing ? WAIT_UNCHECKED : WAIT_NEW;
    }
    if (ret->why == WAIT_UNCHECKED) {
        ret->again_us = ls->check_again_us;
        ret->said = ls->check_said;
    }
    return !ls->check_told || ret->why != ls->reason ||
           (ret->again_us > ls->check_told_us && now_us >= ls->check_told_us);
}

void skip_done_told(struct live_stage *ls, const struct skip_done_wait *w)
{
    ls->reason = w->why;
    ls->check_told = true;
    ls->check_told_us = w->again_us;
}
