/* See skip_done.h. A question is known to the leader by ids; its answer is noted in the callback
 * and taken in the next tick. */
#include "skip_done.h"
#include "common/clock.h"
#include "common/log.h"
#include "lease.h"
#include "output_check.h"
#include "parking.h"
#include "shell.h"
#include "store/leader/campaigns.h"
#include "store/leader/tasks.h"
#include "store/rows/view.h"
#include "wall.h"
#include <stdio.h>

struct skip_done_call {
    struct controller *c;
    struct skip_done_ask ask;
    struct output_check *check; /* NULL: answered */
    enum skip_done_answer answer;
    enum skip_done_then then;
    char said[256]; /* UNCHECKED: why no answer came */
};

void skip_done_cancel_all(struct controller *c)
{
    for (size_t i = 0; i < c->checks_n; i++) {
        output_cancel(c->checks[i]->check);
        free(c->checks[i]);
    }
    c->checks_n = 0;
}

size_t skip_done_busy(const struct controller *c, int64_t ret_ids[static SKIP_DONE_AT_ONCE])
{
    for (size_t i = 0; i < c->checks_n; i++) {
        ret_ids[i] = c->checks[i]->ask.task.task_id;
    }
    return c->checks_n;
}

static void on_checked(void *ctx, struct output_verdict *v)
{
    struct skip_done_call *call = ctx;
    call->check = NULL;
    call->answer = skip_done_answer_of(v);
    bool unchecked = call->answer == SKIP_DONE_UNCHECKED;
    (void)snprintf(call->said, sizeof call->said, "%s", unchecked ? v->text : "");
    if (unchecked && log_allow("done_if_unchecked")) {
        log_event(LOG_WARN, "done_if_unchecked", LF_I("campaign", call->ask.campaign_id),
                  LF_I("part", (int64_t)call->ask.task.seq));
    }
    free(v->manifest);
    call->c->state.look_at_db = true;
}

static bool skips(const struct skip_done_call *k)
{
    return k->check == NULL && k->then == SKIP_DONE_SKIP;
}

static bool skip_task(struct controller *c, void *arg, struct err *err)
{
    const struct skip_done_call *k = arg;
    size_t moved = 0;
    return store_tasks_move(c->store, k->ask.campaign_id, k->ask.stage_id, TASK_WAITING,
                            TASK_SKIPPED, CAUSE_NONE, &k->ask.task.task_id, 1, &moved, NULL, err);
}

static bool skip_tasks(struct controller *c, void *arg, struct err *err)
{
    (void)arg;
    for (size_t i = 0; i < c->checks_n; i++) {
        if (skips(c->checks[i]) && !skip_task(c, c->checks[i], err)) {
            return false;
        }
    }
    return true;
}

/* One by one: what is not taken is asked again. */
static void skip_each(struct controller *c)
{
    for (size_t i = 0; i < c->checks_n && c->leading; i++) {
        struct skip_done_call *k = c->checks[i];
        struct parking_subject who = PARKING_PART(k->ask.campaign_id, k->ask.task.task_id);
        if (skips(k) && (!parking_due(c, who) || !parking_tx(c, who, skip_task, k))) {
            k->then = SKIP_DONE_ASK_AGAIN;
        }
    }
}

/* Answered ones leave the list. */
static bool settle_answered(struct controller *c)
{
    struct err err;
    bool any = false;
    size_t kept = 0;
    for (size_t i = 0; i < c->checks_n; i++) {
        struct skip_done_call *k = c->checks[i];
        k->then = skip_done_plan(&c->state, &k->ask, k->answer);
        any |= skips(k);
    }
    enum tx_meaning meaning = any ? leader_try(c, skip_tasks, NULL, &err) : TX_DONE;
    if (meaning == TX_BUSY || meaning == TX_REFUSED) {
        skip_each(c);
    }
    if (!c->leading) {
        return false;
    }
    for (size_t i = 0; i < c->checks_n; i++) {
        struct skip_done_call *k = c->checks[i];
        if (k->check != NULL && k->then != SKIP_DONE_FORGET) {
            c->checks[kept++] = k;
            continue;
        }
        output_cancel(k->check);
        skip_done_apply(&c->state, &k->ask, k->then, k->said, leader_now(c));
        free(k);
    }
    c->checks_n = kept;
    return true;
}

struct start_arg {
    struct skip_done_ask asks[SKIP_DONE_AT_ONCE];
    size_t n, begun;
};

static bool start(struct controller *c, void *arg, struct err *err)
{
    struct start_arg *a = arg;
    for (; a->begun < a->n; a->begun++) {
        const struct skip_done_ask *ask = &a->asks[a->begun];
        struct live_campaign *lc = leader_state_campaign(&c->state, ask->campaign_id);
        struct task_input t = {0};
        if (!task_input_get(c->store, ask->campaign_id, ask->task.task_id, &t, err)) {
            return false;
        }
        struct skip_done_call *k = xcalloc(1, sizeof *k);
        *k = (struct skip_done_call){.c = c, .ask = *ask};
        c->checks[c->checks_n++] = k;
        k->check =
            output_check_done(c, lc, leader_state_stage(lc, ask->stage_id), &t, on_checked, k);
        free(t.uri);
        free(t.vars_json);
    }
    return true;
}

/* A question whose task cannot be read is asked again later, the others at once. */
static void start_all(struct controller *c, struct start_arg *a)
{
    struct skip_done_ask again[SKIP_DONE_AT_ONCE];
    struct err err;
    size_t again_n = 0;
    while (a->begun < a->n && c->leading) {
        enum tx_meaning meaning = leader_try(c, start, a, &err);
        if (meaning != TX_DONE && meaning != TX_LOST && a->begun < a->n) {
            const struct skip_done_ask *ask = &a->asks[a->begun];
            parking_refuse(c, PARKING_PART(ask->campaign_id, ask->task.task_id), meaning, &err);
            again[again_n++] = a->asks[a->begun++];
        }
    }
    for (size_t i = 0; i < again_n && c->leading; i++) {
        skip_done_apply(&c->state, &again[i], SKIP_DONE_ASK_AGAIN, "", leader_now(c));
    }
}

struct tell_arg {
    struct live_campaign *campaign;
    usec_t now_us;
};

static bool write_waits(struct controller *c, void *arg, struct err *err)
{
    const struct tell_arg *a = arg;
    for (int k = 0; k < a->campaign->stages_n; k++) {
        const struct live_stage *ls = &a->campaign->stages[k];
        struct skip_done_wait w;
        if (skip_done_tells(a->campaign, ls, a->now_us, &w) &&
            !store_stage_unchecked(c->store, ls->row.id, w.why, w.said, w.again_us, err)) {
            return false;
        }
    }
    return true;
}

/* Marks what is to be told of the campaign as told; whether that was anything. */
static bool waits_told(const struct tell_arg *a, bool mark)
{
    bool any = false;
    for (int k = 0; k < a->campaign->stages_n; k++) {
        struct live_stage *ls = &a->campaign->stages[k];
        struct skip_done_wait w;
        bool tells = skip_done_tells(a->campaign, ls, a->now_us, &w);
        any |= tells;
        if (tells && mark) {
            skip_done_told(ls, &w);
        }
    }
    return any;
}

static void tell_waits(struct controller *c)
{
    struct err err;
    for (size_t i = 0; i < c->state.campaigns_n && c->leading; i++) {
        struct tell_arg a = {.campaign = c->state.campaigns[i], .now_us = leader_now(c)};
        if (!parking_reports(a.campaign) || !waits_told(&a, false)) {
            continue;
        }
        enum tx_meaning meaning = leader_try(c, write_waits, &a, &err);
        if (meaning == TX_DONE) {
            (void)waits_told(&a, true);
        } else if (parking_by_report(meaning)) {
            parking_refuse(c, PARKING_CAMPAIGN(a.campaign->row.id), meaning, &err);
        }
    }
}

bool skip_done_tick(struct controller *c)
{
    struct start_arg a = {.begun = 0};
    if (!settle_answered(c)) {
        return false;
    }
    a.n = skip_done_next(&c->state, leader_now(c), a.asks, SKIP_DONE_AT_ONCE - c->checks_n);
    if (a.n > 0) {
        start_all(c, &a);
    }
    for (size_t i = a.begun; i < a.n && c->leading; i++) {
        skip_done_apply(&c->state, &a.asks[i], SKIP_DONE_ASK_AGAIN, "", leader_now(c));
    }
    tell_waits(c);
    return c->leading;
}
