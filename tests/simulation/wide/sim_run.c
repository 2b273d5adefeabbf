/* Runs one seed: a world is made, runs with its faults, becomes calm, and all its campaigns must
 * end. */
#include "sim_world.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

#define CALM_MOST_US (150 * HOUR)
#define LOOK_EVERY   32

static void make(struct world *w)
{
    struct rng root;
    rng_seed(&root, w->cfg.seed);
    rng_split(&root, "world", &w->rng_world);
    rng_split(&root, "aws", &w->rng_aws);
    rng_split(&root, "net", &w->rng_net);
    rng_split(&root, "operator", &w->rng_op);
    rng_split(&root, "store", &w->rng_store);
    for (int f = 0; f < FAULT_N; f++) {
        rng_split(&root, fault_word((enum harm)f), &w->rng_fault[f]);
    }
    w->fault_until_us = w->cfg.fault_us;
    w->kinds = 2 * w->cfg.types;
    w->plan = xcalloc(1, sizeof *w->plan);
    w->batch = carry_batch_new();
    db_init(w);
    judge_init(w);
    aws_init(w);
    db_begin_api(w);
    (void)db_add(w, T_LEASE);
    (void)db_add(w, T_GLOBAL);
    *(struct budget *)db_row(w, T_GLOBAL, 0) = (struct budget){.cap_musd = -1};
    for (int i = 0; i < w->cfg.projects; i++) {
        *(struct budget *)db_row(w, T_PROJECT, db_add(w, T_PROJECT)) =
            (struct budget){.cap_musd = -1};
    }
    for (int i = 0; i < w->kinds; i++) {
        *SLOTS(w, db_add(w, T_SLOTS)) =
            (struct db_slots){.quota = -1, .warm_quota = -1, .refused_limit = -1};
    }
    db_commit_api(w, true);
    for (int i = 0; i < w->cfg.ctls; i++) {
        ctl_init(w, i);
    }
    op_plan(w);
    fault_start(w);
    ev_push(w, w->fault_until_us, EV_CALM, 0, 0, 0, 0);
}

static void unmake(struct world *w)
{
    for (int i = 0; i < w->cfg.ctls; i++) {
        ctl_done(w, i);
    }
    for (size_t i = 0; i < w->calls_n; i++) {
        free(w->calls[i].list);
    }
    free(w->calls);
    free(w->calls_free);
    db_done(w);
    judge_done(w);
    aws_done(w);
    free(w->heap.at);
    free(w->size_mb);
    free(w->next_of_stage);
    free(w->before_of_stage);
    free(w->poison);
    free(w->refused);
    sched_plan_done(w->plan);
    free(w->plan);
    free(w->batch);
    for (size_t i = 0; i < w->texts_n; i++) {
        free(w->texts[i]);
    }
    free(w->texts);
    free(w->story);
}

static void step(struct world *w, const struct event *e)
{
    switch ((enum event_kind)e->kind) {
    case EV_ARRIVE:
        call_arrive(w, e->a);
        return;
    case EV_REPLY:
    case EV_TIMER:
    case EV_START:
    case EV_THAW:
        ctl_event(w, &w->ctl[e->who], e);
        return;
    case EV_JOB:
        job_step(w, e->a, e->gen);
        return;
    case EV_POOL:
        pool_expire(w, e->a, e->gen);
        return;
    case EV_FAULT:
        fault_strike(w, (enum harm)e->a);
        return;
    case EV_CLOSE:
        fault_close(w, (enum harm)e->a, e->b);
        return;
    case EV_SUBMIT:
        op_submit(w, e->a, e->b);
        return;
    case EV_OPERATE:
        op_do(w, e->a, e->b);
        return;
    case EV_CALM:
        w->calm = true;
        tell(w, -1, "no more faults from here on");
        op_calm(w);
        return;
    case EV_KINDS:
        return;
    }
}

static void say_what_is_left(struct world *w)
{
    for (size_t i = 0; i < w->db.t[T_ATTEMPT].n; i++) {
        const struct db_attempt *a = ATTEMPT(w, i);
        if (!attempt_state_terminal(a->state) || a->has_pool) {
            wrong(w, "I18", "long after the last fault %s is %s, its pool %s", a->name.s,
                  attempt_state_name(a->state), a->has_pool ? pool_state_name(a->pool) : "none");
        }
    }
    for (size_t i = 0; i < w->db.t[T_STAGE].n; i++) {
        const struct db_stage *s = STAGE(w, i);
        if (!stage_state_terminal(s->state)) {
            wrong(w, "I18",
                  "long after the last fault stage %zu is %s: %lld wait (%s), %lld active", i,
                  stage_state_name(s->state), (long long)s->counts[TASK_WAITING],
                  wait_reason_name(s->reason), (long long)s->counts[TASK_ACTIVE]);
        }
    }
    wrong(w, "I18", "long after the last fault a campaign has not ended, or lost rows are missing");
}

static void live(struct world *w)
{
    struct event e;
    int64_t n = 0;
    while (!w->judge.broken && ev_pop(w, &e)) {
        if (w->cfg.until_us > 0 && e.at_us > w->cfg.until_us) {
            return;
        }
        w->now_us = e.at_us;
        trace(w, e.kind, (uint64_t)e.a);
        step(w, &e);
        judge_event(w);
        if (w->cfg.watch != NULL) {
            w->cfg.watch(w);
        }
        if (++n % LOOK_EVERY == 0 && judge_over(w)) {
            judge_end(w);
            return;
        }
        if (w->now_us > w->fault_until_us + CALM_MOST_US) {
            say_what_is_left(w);
        }
    }
}

static sigjmp_buf aborted;

static void on_abort(int sig)
{
    (void)sig;
    siglongjmp(aborted, 1);
}

void sim_run(const struct sim_config *cfg, struct coverage *cover, struct outcome *ret)
{
    struct world *w = xcalloc(1, sizeof *w);
    w->cfg = *cfg;
    w->cover = cover;
    w->hash = cfg->seed;
    (void)signal(SIGABRT, on_abort);
    if (sigsetjmp(aborted, 1) == 0) {
        make(w);
        if (cfg->made != NULL) {
            cfg->made(w);
        }
        live(w);
    } else {
        wrong(w, "ASSERT", "an assertion failed, see above");
    }
    (void)signal(SIGABRT, SIG_DFL);
    *ret = (struct outcome){.broken = w->judge.broken,
                            .hash = w->hash,
                            .lives = w->judge.lives,
                            .events = w->judge.events,
                            .at_us = w->now_us,
                            .leaders = ((struct db_lease *)db_row(w, T_LEASE, 0))->epoch};
    for (size_t i = 0; i < w->db.t[T_CAMPAIGN].n; i++) {
        const struct db_campaign *c = CAMPAIGN(w, i);
        ret->virtual_us += (c->ended_us > 0 ? c->ended_us : w->now_us) - c->submitted_us;
    }
    memcpy(ret->invariant, w->judge.invariant, sizeof ret->invariant);
    memcpy(ret->what, w->judge.what, sizeof ret->what);
    memcpy(ret->fires, w->fires, sizeof ret->fires);
    if (cfg->tell && w->judge.broken) {
        story_print(w, cfg->story_lines);
    }
    if (cfg->ended != NULL) {
        cfg->ended(w);
    }
    unmake(w);
    free(w);
}
