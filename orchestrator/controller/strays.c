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
#include <stdio.h>

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

static void answered(struct controller *c, enum stray_action action, const struct aws_failure *f)
{
    struct live_stray *st = leader_stray_named(&c->state, c->stray_name);
    c->stray_call = NULL;
    c->state.act = true;
    metric_add(METRIC_AWS_ERRORS, f != NULL);
    if (st != NULL) {
        leader_stray_answered(st, action, f != NULL, clock_boot_us());
    }
}

static bool write_seen(struct controller *c, void *arg, struct err *err)
{
    return store_stray_seen(c->store, arg, err);
}

static bool write_end(struct controller *c, void *arg, struct err *err)
{
    return store_stray_end(c->store, arg, err);
}

static void on_describe(void *ctx, const struct job_description *job, bool not_found,
                        const struct aws_failure *f)
{
    struct controller *c = ctx;
    struct stray_end e;
    static const struct aws_failure unseen = {.status = 400};
    answered(c, STRAY_ACT_DESCRIBE, not_found ? &unseen : f);
    struct live_stray *st = leader_stray_named(&c->state, c->stray_name);
    if (st == NULL || f != NULL || not_found) {
        return;
    }
    char before[sizeof st->row.status];
    (void)snprintf(before, sizeof before, "%s", st->row.status);
    usec_t started_us = st->row.started_us;
    if (!leader_plan_stray_seen(st, job, clock_boot_us(), &e)) {
        bool news = strcmp(before, st->row.status) != 0 || started_us != st->row.started_us;
        if (news) {
            (void)leader_tx(c, write_seen, &st->row);
        }
        return;
    }
    if (leader_tx(c, write_end, &e)) {
        metric_add(METRIC_COST_MUSD, e.cost_musd);
        log_event(LOG_WARN, "stray_ended", LF_S("job", e.name), LF_S("status", e.status),
                  LF_I("cost_micro_usd", e.cost_musd));
        leader_apply_stray_end(&c->state, &e);
    }
}

static void on_stop(void *ctx, bool ended_already, bool not_found, const struct aws_failure *f)
{
    (void)ended_already;
    (void)not_found;
    answered(ctx, STRAY_ACT_STOP, f);
}

static void on_update(void *ctx, bool no_pool, bool not_found, const struct aws_failure *f)
{
    (void)no_pool;
    (void)not_found;
    answered(ctx, STRAY_ACT_END_POOL, f);
}

static void call(struct controller *c, const struct live_stray *st, enum stray_action action)
{
    (void)snprintf(c->stray_name, sizeof c->stray_name, "%s", st->row.name);
    const char *name = c->stray_name;
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
    metric_set(METRIC_STRAYS, (int64_t)c->state.strays_n);
    for (size_t i = 0; i < c->state.strays_n && c->stray_call == NULL; i++) {
        enum stray_action action = leader_stray_next(&c->state.strays[i], clock_boot_us(), wake_us);
        if (action != STRAY_ACT_NONE) {
            call(c, &c->state.strays[i], action);
        }
    }
}
