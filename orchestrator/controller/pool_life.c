/* See pool_life.h. */
#include "pool_life.h"
#include "calls.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "core/leader/attempt_answer.h"
#include "core/leader/pool_life.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "parking.h"
#include "wall.h"

static bool write_end(struct controller *c, void *arg, struct err *err)
{
    const struct pool_writes *w = arg;
    if (FP("pool.in_transaction")) {
        return err_set(err, ERR_UNAVAILABLE, "failpoint");
    }
    return (w->swap_with == 0 || store_pool_swap(c->store, w->end.pool_id, w->swap_with, err)) &&
           store_pool_end(c->store, &w->end, err);
}

static void log_end(const struct live_pool *p, const struct live_pool *meant,
                    const struct pool_end *e)
{
    if (meant != NULL) {
        log_event(LOG_INFO, "pool_swapped", LF_S("job", p->row.job.s),
                  LF_S("instead_of", meant->row.job.s));
    }
    metric_add(METRIC_COST_MUSD, e->warm_musd);
    metric_add(METRIC_WARM_IDLE_S, e->warm_s);
    log_event(LOG_INFO, "pool_ended", LF_S("job", p->row.job.s), LF_S("to", pool_state_name(e->to)),
              LF_I("idle_s", e->retained_s), LF_S("asked", p->row.end_reason),
              LF_B("untold", p->over_us > 0));
}

/* Books what it cost and closes the account. May lose the leadership; p is gone then. */
static void end_pool(struct controller *c, struct live_pool *p, struct pool_writes *w)
{
    if (FP("pool.before_record")) {
        leader_lose(c, "failpoint", NULL);
        return;
    }
    if (!parking_tx(c, PARKING_ATTEMPT(p->row.campaign_id, p->row.attempt_id), write_end, w)) {
        leader_pool_failed(p, clock_boot_us()); /* described and booked again later */
        return;
    }
    if (FP("pool.after_record")) {
        leader_lose(c, "failpoint", NULL);
        return;
    }
    log_end(p, leader_state_pool(&c->state, w->swap_with), &w->end);
    leader_apply_pool_end(&c->state, p, w);
    pool_remove(c, p);
}

static void on_describe(void *ctx, const struct job_description *job, bool not_found,
                        const struct aws_failure *f)
{
    struct pool_io *io = ctx;
    struct controller *c = io->c;
    struct live_pool *p = leader_state_pool(&c->state, io->pool_id);
    io->describe = NULL;
    c->state.act = true;
    metric_add(METRIC_AWS_ERRORS, f != NULL);
    if (job != NULL) {
        io->report = job->pool;
    }
    io->job_ended = job == NULL || leader_job_ended(job) > 0;
    io->described = leader_pool_described(p, f != NULL || FP("pool.after_describe"), not_found,
                                          leader_now(c), clock_boot_us(), &io->report);
}

/* What a Describe has said of it. p may be gone after, and so may the leadership. */
static void carry_report(struct controller *c, struct live_pool *p)
{
    struct pool_writes w;
    p->io->described = false;
    leader_plan_pool_seen(&c->state, p, &p->io->report, p->io->job_ended, clock_boot_us(), &w);
    leader_apply_pool_seen(&c->state, p, w.fate, leader_now(c), clock_boot_us());
    if (w.fate == POOL_FATE_NOT_BOOKED) {
        if (log_allow("pool_not_booked")) {
            log_event(LOG_ERROR, "pool_not_booked", LF_S("job", p->row.job.s), LF_ERR(&w.error));
        }
    } else if (w.fate == POOL_FATE_OVER) {
        end_pool(c, p, &w);
    }
}

void pools_record(struct controller *c)
{
    for (size_t i = c->state.pools_n; i-- > 0 && c->leading;) { /* one that is over leaves */
        if (c->state.pools[i]->io->described) {
            carry_report(c, c->state.pools[i]);
        }
    }
}

static bool write_note(struct controller *c, void *arg, struct err *err)
{
    const struct live_pool *p = arg;
    return store_pool_note(c->store, p->row.id, 0, p->row.end_reason, err);
}

static void on_update(void *ctx, bool no_pool, bool not_found, const struct aws_failure *f)
{
    struct pool_io *io = ctx;
    struct live_pool *p = leader_state_pool(&io->c->state, io->pool_id);
    (void)no_pool;
    io->update = NULL;
    io->c->state.act = true;
    metric_add(METRIC_AWS_ERRORS, f != NULL);
    leader_pool_end_answered(p, f != NULL || FP("pool.after_update"), not_found, clock_boot_us());
}

bool pool_ends_read(struct controller *c, struct err *err)
{
    AUTO_FREE int64_t *ids = NULL;
    size_t n = 0;
    if (!view_pool_ends(c->store, &ids, &n, err)) {
        return false;
    }
    size_t fresh = leader_take_pool_ends(&c->state, ids, n);
    if (fresh > 0) {
        log_event(LOG_INFO, "pool_end_asked", LF_I("pools", (int64_t)fresh), LF_S("why", "asked"));
    }
    return true;
}

void pool_ask_end(struct controller *c, struct live_pool *p, enum warm_pool_end why)
{
    if (leader_pool_want_end(&c->state, p, why)) {
        log_event(LOG_INFO, "pool_end_asked", LF_S("job", p->row.job.s),
                  LF_S("why", p->row.end_reason));
    }
}

/* The reason is written before the call, so that people and the next leader know whose end it is.
 * False: leadership lost. */
static bool send_end(struct controller *c, struct live_pool *p)
{
    if (!parking_tx(c, PARKING_ATTEMPT(p->row.campaign_id, p->row.attempt_id), write_note, p)) {
        leader_pool_failed(p, clock_boot_us());
        return c->leading;
    }
    if (FP("pool.before_update") || !lease_gate(c).may_send(c)) {
        leader_pool_failed(p, clock_boot_us());
        return true;
    }
    metric_add(METRIC_AWS_REQUESTS, 1);
    p->io->update =
        sagemaker_update_keep_alive(c->aws, lease_gate(c), p->row.job.s, 0, on_update, p->io);
    return true;
}

/* False: leadership lost. */
static bool act(struct controller *c, struct live_pool *p, int64_t boot_us, int64_t *wake_us)
{
    enum pool_action next = leader_pool_next(p, leader_now(c), boot_us, wake_us);
    if (next != POOL_ACT_NONE &&
        call_pace_holds_pool(&c->pace, p, c->cfg.observe_interval_us, boot_us, clock_mono_us())) {
        *wake_us = MIN(*wake_us, p->next_us);
        return true;
    }
    if (next == POOL_ACT_END) {
        return send_end(c, p);
    }
    if (next == POOL_ACT_DESCRIBE) {
        metric_add(METRIC_AWS_REQUESTS, 1);
        p->io->describe =
            sagemaker_describe(c->aws, lease_gate(c), p->row.job.s, on_describe, p->io);
    }
    return true;
}

static bool calling(const struct live_pool *p)
{
    return p->io->describe != NULL || p->io->update != NULL;
}

void pools_tick(struct controller *c, int64_t *wake_us)
{
    int64_t boot_us = clock_boot_us();
    size_t calls = 0;
    for (size_t i = 0; i < c->state.pools_n; i++) {
        calls += calling(c->state.pools[i]);
    }
    for (size_t i = 0; i < c->state.pools_n && c->leading && call_pace_room(calls); i++) {
        struct live_pool *p = c->state.pools[i];
        if (calling(p)) {
            continue; /* its answer is awaited */
        }
        if (!act(c, p, boot_us, wake_us)) {
            return;
        }
        calls += calling(p);
    }
}
