/* Warm pools. A pool is expected from the intent of the attempt that leaves it, stands alone from
 * the end of that attempt's job, and has ended when Describe of that job says Reused or Terminated:
 * only then its retained seconds are final, are booked once, and the account of the job is closed.
 * Its instances are in slots all the time: held by the attempt, then idle, then given back or, when
 * an attempt was intended on it, that attempt's. */
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "core/money/cost.h"
#include "ctl.h"
#include "metrics.h"
#include <stdio.h>

#define LOOK_AGAIN_US (60 * USEC_PER_SEC) /* Describe an idle pool this often, unasked */
#define RETRY_BASE_US (500 * USEC_PER_MSEC)
#define RETRY_CAP_US  (30 * USEC_PER_SEC)
#define NEVER_CAME_US                                                                              \
    (120 *                                                                                         \
     USEC_PER_SEC) /* after its time was over: SageMaker never showed it                     \
                          */
#define CALLS_AT_ONCE 8

struct live_pool *pool_add(struct controller *c, const struct pool_row *row,
                           struct live_campaign *lc)
{
    struct live_pool *p = leader_state_add_pool(&c->state, row, lc);
    p->io = xcalloc(1, sizeof *p->io);
    *p->io = (struct pool_io){.c = c, .pool_id = row->id};
    return p;
}

void pool_remove(struct controller *c, struct live_pool *p)
{
    sagemaker_cancel(p->io->describe);
    sagemaker_cancel(p->io->update);
    free(p->io);
    p->io = NULL;
    leader_state_remove_pool(&c->state, p);
}

bool pool_load(struct controller *c, struct err *err)
{
    AUTO_FREE struct pool_row *rows = NULL;
    size_t n = 0;
    if (!view_pools(c->store, &rows, &n, err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        struct live_campaign *lc = leader_state_campaign(&c->state, rows[i].campaign_id);
        if (lc == NULL && !view_take_campaign(c, rows[i].campaign_id, 0, &lc, err)) {
            return false; /* an open pool keeps even an ended campaign in view */
        }
        struct live_pool *p = pool_add(c, &rows[i], lc);
        p->account = (struct ledger_account_of_attempt){.reserved_musd = rows[i].open_musd,
                                                        .spent_musd = rows[i].cost_musd,
                                                        .reserved = true,
                                                        .job_settled = true};
    }
    return true;
}

void pool_listed(struct controller *c, const struct job_summary *job)
{
    for (size_t i = 0; i < c->state.pools_n; i++) {
        struct live_pool *p = c->state.pools[i];
        if (p->row.state != POOL_AVAILABLE || strcmp(p->row.job.s, job->name) != 0) {
            continue;
        }
        bool there = job->pool.status == WARM_POOL_AVAILABLE;
        p->look_now |= there != p->seen;
    }
}

static void failed(struct live_pool *p)
{
    int64_t wait_us = RETRY_BASE_US << MIN(p->failures, 10);
    p->failures++;
    p->next_us = clock_boot_us() + MIN(wait_us, RETRY_CAP_US);
}

/* --- its end --- */

struct end_arg {
    struct pool_end end;
    struct ledger_account_of_attempt account; /* as it is then */
    struct live_pool *meant; /* the pool its taker was intended on; NULL: this one */
};

static bool write_end(struct controller *c, void *arg, struct err *err)
{
    const struct end_arg *e = arg;
    if (FP("pool.in_transaction")) {
        return err_set(err, ERR_DATABASE, "failpoint");
    }
    return (e->meant == NULL || store_pool_swap(c->store, e->end.pool_id, e->meant->row.id, err)) &&
           store_pool_end(c->store, &e->end, err);
}

/* SageMaker hands pools out as it likes: the job that took this one was intended on another, which
 * so is free for whom this one was kept, or for anybody. NULL: it went as intended, or the taker is
 * none of ours. */
static struct live_pool *meant_for_taker(struct live_pool *p, const char *reused_by)
{
    struct live_attempt *taker = leader_state_attempt_named(&p->io->c->state, reused_by);
    bool other = taker != NULL && taker->taken != NULL && taker->taken != p &&
                 taker->taken->row.state == POOL_AVAILABLE;
    return other ? taker->taken : NULL;
}

static void swap(struct live_pool *p, struct live_pool *meant)
{
    struct controller *c = p->io->c;
    int64_t taker = meant->row.taken_by;
    int64_t kept_for = p->row.taken_by;
    meant->row.taken_by = kept_for;
    p->row.taken_by = taker;
    for (size_t i = 0; i < c->state.attempts_n; i++) {
        struct live_attempt *a = c->state.attempts[i];
        if (a->row.id == taker || a->row.id == kept_for) {
            a->taken = a->row.id == taker ? p : meant;
            a->row.pool_id = a->taken->row.id;
        }
    }
    meant->look_now = true;
    log_event(LOG_INFO, "pool_swapped", LF_S("job", p->row.job.s),
              LF_S("instead_of", meant->row.job.s));
}

static void ended(struct live_pool *p, const struct end_arg *e)
{
    struct controller *c = p->io->c;
    struct live_stage *ls = leader_state_stage(p->campaign, p->row.stage_id);
    struct live_slots *s = leader_state_slots(&c->state, p->row.instance_type, MARKET_ON_DEMAND);
    if (p->row.taken_by == 0) {
        slots_idle_end(s, p->row.instances);
    }
    budget_state_move(c, p->campaign, ls,
                      budget_state_reserved_by(e->end.entries, e->end.entries_n),
                      budget_state_spent_by(e->end.entries, e->end.entries_n), e->end.warm_musd);
    metric_add(METRIC_COST_MUSD, e->end.warm_musd);
    metric_add(METRIC_WARM_IDLE_S, e->end.warm_s);
    log_event(LOG_INFO, "pool_ended", LF_S("job", p->row.job.s),
              LF_S("to", pool_state_name(e->end.to)), LF_I("idle_s", e->end.retained_s),
              LF_S("asked", p->row.end_reason));
    budget_state_freed(c, p->campaign);
    c->state.decide = c->state.look_at_db = true;
    pool_remove(c, p);
}

/* Final: books what it cost and closes the account. May lose the leadership; p is gone then. */
static void end_pool(struct live_pool *p, enum pool_state to, int64_t retained_s,
                     const char *reused_by)
{
    struct controller *c = p->io->c;
    struct err err = ERR_INIT;
    struct end_arg e = {.end = {.pool_id = p->row.id,
                                .to = to,
                                .retained_s = retained_s,
                                .open_musd = p->account.reserved_musd},
                        .account = p->account,
                        .meant = to == POOL_REUSED ? meant_for_taker(p, reused_by) : NULL};
    if (__builtin_mul_overflow(retained_s, (int64_t)p->row.instances, &e.end.warm_s) ||
        !cost_of_seconds(p->row.price_musd_per_hour, e.end.warm_s, &e.end.warm_musd, &err) ||
        !ledger_close(&e.account, p->row.attempt_id, e.end.warm_musd, e.end.warm_s, e.end.entries,
                      &e.end.entries_n, &err)) {
        log_event(LOG_ERROR, "pool_not_booked", LF_S("job", p->row.job.s), LF_ERR(&err));
        failed(p);
        return;
    }
    if (FP("pool.before_record")) {
        leader_lose(c, "failpoint", NULL);
        return;
    }
    if (!leader_tx(c, write_end, &e)) {
        return;
    }
    if (FP("pool.after_record")) {
        leader_lose(c, "failpoint", NULL);
        return;
    }
    if (e.meant != NULL) {
        swap(p, e.meant);
    }
    ended(p, &e);
}

/* --- what Describe says of it --- */

static void on_describe(void *ctx, const struct job_description *job, bool not_found,
                        const struct aws_failure *f)
{
    struct pool_io *io = ctx;
    struct controller *c = io->c;
    struct live_pool *p = leader_state_pool(&c->state, io->pool_id);
    io->describe = NULL;
    c->state.act = true;
    if (f != NULL || not_found || FP("pool.after_describe")) {
        metric_add(METRIC_AWS_ERRORS, f != NULL);
        failed(p);
        return;
    }
    p->failures = 0;
    p->look_now = false;
    p->described_us = clock_boot_us();
    int64_t retained_s = MAX(0, job->pool.retained_s);
    switch (job->pool.status) {
    case WARM_POOL_REUSED:
        end_pool(p, POOL_REUSED, retained_s, job->pool.reused_by);
        return;
    case WARM_POOL_TERMINATED:
        end_pool(p, POOL_TERMINATED, retained_s, "");
        return;
    case WARM_POOL_AVAILABLE:
        c->state.decide |= !p->seen;
        p->seen = true;
        if (p->row.available_us == 0) {
            p->row.available_us = clock_wall_us();
        }
        return;
    case WARM_POOL_NONE:
        /* Not told yet, or never kept: believed when its time is over. */
        if (clock_wall_us() > p->row.expires_us + NEVER_CAME_US) {
            end_pool(p, POOL_TERMINATED, 0, "");
        }
        return;
    case WARM_POOL_IN_USE:
    case WARM_POOL_UNKNOWN:
    case WARM_POOL_STATUS_COUNT:
        return;
    }
}

/* --- asking for its end --- */

struct note_arg {
    const struct live_pool *pool;
};

static bool write_note(struct controller *c, void *arg, struct err *err)
{
    const struct live_pool *p = ((struct note_arg *)arg)->pool;
    return store_pool_note(c->store, p->row.id, 0, p->row.end_reason, err);
}

static void on_update(void *ctx, bool no_pool, bool not_found, const struct aws_failure *f)
{
    struct pool_io *io = ctx;
    struct live_pool *p = leader_state_pool(&io->c->state, io->pool_id);
    (void)no_pool;
    io->update = NULL;
    io->c->state.act = true;
    if (f != NULL || not_found || FP("pool.after_update")) {
        metric_add(METRIC_AWS_ERRORS, f != NULL);
        failed(p);
        return;
    }
    p->failures = 0;
    p->end_taken = p->look_now = true;
}

void pool_ask_end(struct live_pool *p, enum warm_pool_end why)
{
    if (p->wants_end) {
        return;
    }
    p->wants_end = true;
    p->io->c->state.act = true;
    (void)snprintf(p->row.end_reason, sizeof p->row.end_reason, "%s", warm_pool_end_name(why));
    log_event(LOG_INFO, "pool_end_asked", LF_S("job", p->row.job.s),
              LF_S("why", p->row.end_reason));
}

/* The reason is written before the call, so that people and the next leader know whose end it is.
 */
static bool send_end(struct live_pool *p)
{
    struct controller *c = p->io->c;
    struct note_arg n = {.pool = p};
    if (!leader_tx(c, write_note, &n)) {
        return false;
    }
    if (FP("pool.before_update") || !ctl_gate(c).may_send(c)) {
        failed(p);
        return true;
    }
    metric_add(METRIC_AWS_REQUESTS, 1);
    p->io->update =
        sagemaker_update_keep_alive(c->aws, ctl_gate(c), p->row.job.s, 0, on_update, p->io);
    return true;
}

/* False: leadership lost. */
static bool act(struct live_pool *p, int64_t now_us, int64_t *wake_us)
{
    struct controller *c = p->io->c;
    int64_t look_us = p->look_now ? p->next_us : MAX(p->next_us, p->described_us + LOOK_AGAIN_US);
    int64_t left_us = p->row.expires_us + USEC_PER_SEC - clock_wall_us(); /* its time is over */
    if (p->described_us > 0 && left_us > 0) {
        look_us = MIN(look_us, MAX(p->next_us, now_us + left_us));
    }
    if (p->io->describe != NULL || p->io->update != NULL) {
        return true;
    }
    if (p->failures > 0 && now_us >= p->next_us &&
        !retry_budget_take(&c->retries, clock_mono_us())) {
        c->calls_fail = true;
        p->next_us = now_us + c->cfg.observe_interval_us;
    }
    if (p->wants_end && !p->end_taken) {
        if (now_us >= p->next_us) {
            return send_end(p);
        }
        *wake_us = MIN(*wake_us, p->next_us);
        return true;
    }
    if (now_us >= look_us) {
        metric_add(METRIC_AWS_REQUESTS, 1);
        p->io->describe = sagemaker_describe(c->aws, ctl_gate(c), p->row.job.s, on_describe, p->io);
    } else {
        *wake_us = MIN(*wake_us, look_us);
    }
    return true;
}

void pools_tick(struct controller *c, int64_t *wake_us)
{
    int64_t now_us = clock_boot_us();
    int calls = 0;
    for (size_t i = 0; i < c->state.pools_n; i++) {
        calls += c->state.pools[i]->io->describe != NULL || c->state.pools[i]->io->update != NULL;
    }
    for (size_t i = 0; i < c->state.pools_n && c->leading && calls < CALLS_AT_ONCE; i++) {
        struct live_pool *p = c->state.pools[i];
        if (p->row.state != POOL_AVAILABLE) {
            continue; /* its attempt looks after it */
        }
        if (!act(p, now_us, wake_us)) {
            return;
        }
        calls += p->io->describe != NULL || p->io->update != NULL;
    }
}
