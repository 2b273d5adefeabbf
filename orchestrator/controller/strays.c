/* See strays.h. */
#include "strays.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/strays.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "store/leader/strays.h"
#include "wall.h"
#include <stdio.h>

struct stray_answer {
    enum stray_action action;
    char name[64];
    bool there, failed, not_found;
    struct job_description job;
};

bool strays_read(struct controller *c, struct err *err)
{
    AUTO_FREE struct stray_row *rows = NULL;
    size_t n = 0;
    if (!view_strays(c->store, &rows, &n, err)) {
        return false;
    }
    if (leader_take_strays(&c->state, rows, n)) {
        log_event(LOG_INFO, "stray_stop_asked", LF_I("strays", n));
    }
    return true;
}

static bool write_seen(struct controller *c, void *arg, struct err *err)
{
    return store_stray_seen(c->store, arg, err);
}

static bool write_end(struct controller *c, void *arg, struct err *err)
{
    return store_stray_end(c->store, arg, err);
}

static void note(struct controller *c, bool failed, bool not_found)
{
    struct stray_answer *a = c->stray;
    c->stray_call = NULL;
    c->state.act = true;
    metric_add(METRIC_AWS_ERRORS, failed);
    a->there = true;
    a->failed = failed;
    a->not_found = not_found;
}

static void on_describe(void *ctx, const struct job_description *job, bool not_found,
                        const struct aws_failure *f)
{
    struct controller *c = ctx;
    note(c, f != NULL, not_found);
    if (f == NULL && !not_found) {
        c->stray->job = *job;
    }
}

static void on_stop(void *ctx, bool ended_already, bool not_found, const struct aws_failure *f)
{
    (void)ended_already;
    note(ctx, f != NULL, not_found);
}

static void on_update(void *ctx, bool no_pool, bool not_found, const struct aws_failure *f)
{
    (void)no_pool;
    note(ctx, f != NULL, not_found);
}

static void take_description(struct controller *c, struct live_stray *st,
                             const struct job_description *job)
{
    struct stray_end e;
    struct stray_row priced;
    if (leader_plan_stray_price(&c->state, st, job, &priced) && leader_tx(c, write_seen, &priced)) {
        leader_apply_stray_price(&c->state, st, &priced);
    }
    switch (leader_plan_stray_seen(st, job, clock_boot_us(), &e)) {
    case STRAY_AS_BEFORE:
        break;
    case STRAY_NEWS:
        (void)leader_tx(c, write_seen, &st->row);
        break;
    case STRAY_OVER:
        if (leader_tx(c, write_end, &e)) {
            metric_add(METRIC_COST_MUSD, e.cost_musd);
            log_event(LOG_WARN, "stray_ended", LF_S("job", e.name), LF_S("status", e.status),
                      LF_I("cost_micro_usd", e.cost_musd));
            leader_apply_stray_end(&c->state, &e);
        }
        break;
    }
}

static void take_answer(struct controller *c)
{
    struct stray_answer *a = c->stray;
    struct live_stray *st = a != NULL ? leader_stray_named(&c->state, a->name) : NULL;
    if (a == NULL || !a->there) {
        return;
    }
    a->there = false;
    if (st != NULL && leader_stray_answered(st, a->action, a->failed, a->not_found, leader_now(c),
                                            clock_boot_us(), &a->job)) {
        take_description(c, st, &a->job);
    }
}

void strays_cancel(struct controller *c)
{
    sagemaker_cancel(c->stray_call);
    c->stray_call = NULL;
    free(c->stray);
    c->stray = NULL;
}

static void call(struct controller *c, const struct live_stray *st, enum stray_action action)
{
    c->stray = c->stray != NULL ? c->stray : xcalloc(1, sizeof *c->stray);
    c->stray->action = action;
    (void)snprintf(c->stray->name, sizeof c->stray->name, "%s", st->row.name);
    const char *name = c->stray->name;
    metric_add(METRIC_AWS_REQUESTS, 1);
    switch (action) {
    case STRAY_ACT_NONE:
        break;
    case STRAY_ACT_DESCRIBE:
        c->stray_call = sagemaker_describe(c->aws, lease_gate(c), name, on_describe, c);
        break;
    case STRAY_ACT_STOP:
        log_event(LOG_WARN, "stray_stopped", LF_S("job", name), LF_S("why", st->row.why));
        c->stray_call = sagemaker_stop(c->aws, lease_gate(c), name, on_stop, c);
        break;
    case STRAY_ACT_END_POOL:
        c->stray_call = sagemaker_update_keep_alive(c->aws, lease_gate(c), name, 0, on_update, c);
        break;
    }
}

void strays_tick(struct controller *c, int64_t *wake_us)
{
    take_answer(c);
    metric_set(METRIC_STRAYS, (int64_t)(c->state.strays_n + c->state.resource_strays_n));
    for (size_t i = 0; c->leading && i < c->state.strays_n && c->stray_call == NULL; i++) {
        enum stray_action action = leader_stray_next(&c->state.strays[i], clock_boot_us(), wake_us);
        if (action != STRAY_ACT_NONE) {
            call(c, &c->state.strays[i], action);
        }
    }
}
