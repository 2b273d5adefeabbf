/* See strays.h. */
#include "strays.h"
#include "absence.h"
#include "attempt_answer.h"
#include "budget_state.h"
#include "call_again.h"
#include "common/retry.h"
#include "core/money/cost.h"
#include <stdio.h>
#include <stdlib.h>

#define DESCRIBE_EVERY_US  (60 * USEC_PER_SEC)
#define POOL_UNTOLD_US     (60 * USEC_PER_SEC)  /* after the end a pool is told of by then */
#define BILL_UNTOLD_US     (600 * USEC_PER_SEC) /* its slots wait no longer for a bill */
#define RUNTIME_UNTOLD_MAX (5 * 86400) /* of a job that does not say: SageMaker's default */

bool leader_plan_stray(struct leader_state *s, const struct job_description *job, const char *arn,
                       const char *why, struct stray_row *ret)
{
    struct err err = ERR_INIT;
    memset(ret, 0, sizeof *ret);
    if (job->instances < 1 || job->instances > INT32_MAX || job->instance_type[0] == '\0') {
        return false;
    }
    const struct live_slots *slots =
        leader_state_slots(s, job->instance_type, job->spot ? MARKET_SPOT : MARKET_ON_DEMAND);
    int64_t runtime_s = job->max_runtime_s > 0 ? job->max_runtime_s : RUNTIME_UNTOLD_MAX;
    (void)snprintf(ret->name, sizeof ret->name, "%s", job->name);
    (void)snprintf(ret->arn, sizeof ret->arn, "%s", arn);
    (void)snprintf(ret->why, sizeof ret->why, "%s", why);
    (void)snprintf(ret->status, sizeof ret->status, "%s", job->status);
    (void)snprintf(ret->instance_type, sizeof ret->instance_type, "%s", job->instance_type);
    ret->market = slots->s.market;
    ret->instances = (int)job->instances;
    ret->keep_alive_s = job->spot ? 0 : MAX(0, job->keep_alive_s);
    ret->price_musd_per_hour = MAX(0, slots->s.price_musd_per_hour);
    ret->created_us = job->created;
    ret->started_us = job->started;
    ret->stop_asked = strcmp(why, "void") == 0;
    return cost_worst_case(ret->price_musd_per_hour, ret->instances, runtime_s, ret->keep_alive_s,
                           &ret->reserved_musd, &err);
}

struct live_stray *leader_stray_named(struct leader_state *s, const char *name)
{
    for (size_t i = 0; i < s->strays_n; i++) {
        if (strcmp(s->strays[i].row.name, name) == 0) {
            return &s->strays[i];
        }
    }
    return NULL;
}

static void add(struct leader_state *s, const struct stray_row *row)
{
    s->strays = xrealloc(s->strays, (s->strays_n + 1) * sizeof *s->strays);
    s->strays[s->strays_n++] =
        (struct live_stray){.row = *row,
                            .look_now = true,
                            .account = {.reserved_musd = row->reserved_musd, .reserved = true}};
    s->act = true;
}

void leader_apply_stray(struct leader_state *s, const struct stray_row *row)
{
    if (leader_stray_named(s, row->name) != NULL) {
        return;
    }
    add(s, row);
    slots_hold(leader_state_slots(s, row->instance_type, row->market), row->instances);
    leader_state_project(s, 0)->reserved_musd += row->reserved_musd;
}

bool leader_take_strays(struct leader_state *s, const struct stray_row *rows, size_t n)
{
    bool asked = false;
    for (size_t i = 0; i < n; i++) {
        struct live_stray *st = leader_stray_named(s, rows[i].name);
        if (st == NULL) {
            add(s, &rows[i]);
            continue;
        }
        if (rows[i].stop_asked && !st->row.stop_asked) {
            st->row.stop_asked = asked = s->act = true;
            st->next_us = 0;
        }
    }
    return asked;
}

void leader_stray_listed(struct leader_state *s, const char *name, const char *status)
{
    struct live_stray *st = leader_stray_named(s, name);
    if (st != NULL) {
        st->unfound_us = 0;
    }
    if (st != NULL && strcmp(st->row.status, status) != 0) {
        st->look_now = s->act = true;
    }
}

enum stray_action leader_stray_next(const struct live_stray *st, int64_t boot_us, int64_t *wake_us)
{
    bool stop = st->row.stop_asked && !st->stop_taken && st->ended_us == 0;
    int64_t due_us = stop || st->look_now || st->end_pool
                         ? st->next_us
                         : MAX(st->next_us, st->described_us + DESCRIBE_EVERY_US);
    bool look = st->look_first || !(stop || st->end_pool);
    if (boot_us < due_us) {
        *wake_us = MIN(*wake_us, due_us);
        return STRAY_ACT_NONE;
    }
    return look ? STRAY_ACT_DESCRIBE : stop ? STRAY_ACT_STOP : STRAY_ACT_END_POOL;
}

bool leader_plan_stray_price(struct leader_state *s, const struct live_stray *st,
                             const struct job_description *job, struct stray_row *ret)
{
    struct err ignored = ERR_INIT;
    const struct stray_row *row = &st->row;
    musd_t price = leader_state_slots(s, row->instance_type, row->market)->s.price_musd_per_hour;
    int64_t runs_s = job->max_runtime_s > 0 ? job->max_runtime_s : RUNTIME_UNTOLD_MAX;
    musd_t worst_musd;
    *ret = *row;
    if (row->price_musd_per_hour > 0 || price <= 0) {
        return false;
    }
    ret->price_musd_per_hour = price;
    if (cost_worst_case(price, row->instances, runs_s, row->keep_alive_s, &worst_musd, &ignored)) {
        ret->reserved_musd = MAX(row->reserved_musd, worst_musd); /* else more than fits */
    }
    return true;
}

void leader_apply_stray_price(struct leader_state *s, struct live_stray *st,
                              const struct stray_row *row)
{
    musd_t more_musd = row->reserved_musd - st->row.reserved_musd;
    st->row.price_musd_per_hour = row->price_musd_per_hour;
    st->row.reserved_musd = row->reserved_musd;
    st->account.reserved_musd += more_musd;
    leader_state_project(s, 0)->reserved_musd += more_musd;
}

/* Its row tells what is reserved for it, and so how long it may run; while its price is not known,
 * only what was seen of it does. */
static int64_t runtime_s(const struct live_stray *st)
{
    const struct stray_row *row = &st->row;
    if (row->price_musd_per_hour <= 0 || row->reserved_musd <= 0) {
        return st->runs_s > 0 ? st->runs_s : RUNTIME_UNTOLD_MAX;
    }
    return cost_runtime_that_fits(row->price_musd_per_hour, MAX(1, row->instances),
                                  MAX(0, row->keep_alive_s), row->reserved_musd);
}

static bool is_gone(struct live_stray *st, usec_t now_us, int64_t boot_us,
                    struct job_description *job)
{
    const struct stray_row *row = &st->row;
    usec_t began = row->started_us > 0 ? row->started_us : row->created_us;
    usec_t end = absence_last_end(began, runtime_s(st));
    if (!absence_proven(&st->unfound_us, end, now_us, boot_us)) {
        return false;
    }
    *job = (struct job_description){
        .status = "Deleted",
        .max_runtime_s = st->runs_s,
        .started = began,
        .ended = end,
        .pool = {.status = WARM_POOL_TERMINATED, .retained_s = MAX(0, row->keep_alive_s)}};
    return true;
}

bool leader_stray_answered(struct live_stray *st, enum stray_action action, bool failed,
                           bool not_found, usec_t now_us, int64_t boot_us,
                           struct job_description *job)
{
    bool describe = action == STRAY_ACT_DESCRIBE;
    int *in_vain = describe ? &st->failures : &st->refused;
    bool gone = describe && !failed && not_found && is_gone(st, now_us, boot_us, job);
    st->unfound_us = describe && !failed && !not_found ? 0 : st->unfound_us;
    failed |= describe && not_found;
    *in_vain = failed ? MIN(*in_vain + 1, 1000) : 0;
    st->next_us = boot_us + retry_step_us(AGAIN_US, AGAIN_MAX_US, MAX(0, *in_vain - 1));
    st->look_first = !describe && failed;
    st->look_now |= !describe;
    st->stop_taken |= action == STRAY_ACT_STOP && !failed;
    st->end_pool = st->end_pool && (failed || action != STRAY_ACT_END_POOL);
    return gone || (describe && !failed);
}

/* Its pool is over, but not for how long it was kept. */
static bool idle_untold(const struct job_description *job)
{
    bool over = job->pool.status == WARM_POOL_REUSED || job->pool.status == WARM_POOL_TERMINATED;
    return over && job->pool.retained_s < 0;
}

/* Is its pool over as well? One that is kept is asked to end: nobody counts on it. */
static bool pool_over(struct live_stray *st, const struct job_description *job, int64_t boot_us)
{
    switch (job->pool.status) {
    case WARM_POOL_NONE:
        return st->row.keep_alive_s == 0 || boot_us >= st->ended_us + POOL_UNTOLD_US;
    case WARM_POOL_REUSED:
    case WARM_POOL_TERMINATED:
        return !idle_untold(job) || boot_us >= st->ended_us + POOL_UNTOLD_US;
    case WARM_POOL_AVAILABLE:
        st->end_pool = true;
        return false;
    case WARM_POOL_IN_USE:
    case WARM_POOL_UNKNOWN:
    case WARM_POOL_STATUS_COUNT:
        return false;
    }
    return false;
}

bool leader_stray_cost(const struct job_description *job, int instances, musd_t price_musd_per_hour,
                       int64_t *ret_s, musd_t *ret_musd, bool *ret_estimated)
{
    struct err err = ERR_INIT;
    musd_t idle_musd = 0;
    int64_t idle_s = MAX(0, job->pool.retained_s) * instances;
    int64_t ran_s = cost_billable_s(job->billable_s, job->started, leader_job_ended(job), instances,
                                    ret_estimated);
    return cost_of_seconds(price_musd_per_hour, ran_s, ret_musd, &err) &&
           cost_of_seconds(price_musd_per_hour, idle_s, &idle_musd, &err) &&
           add_i64(*ret_musd, idle_musd, ret_musd) && add_i64(ran_s, idle_s, ret_s);
}

static bool book(const struct live_stray *st, const struct job_description *job,
                 struct stray_end *ret)
{
    struct err err = ERR_INIT;
    struct ledger_account_of_attempt account = st->account;
    int n = 0;
    if (!leader_stray_cost(job, st->row.instances, st->row.price_musd_per_hour, &ret->billable_s,
                           &ret->cost_musd, &ret->estimated)) {
        ret->billable_s = ret->cost_musd = 0; /* more than fits: others do not wait for its slots */
        ret->estimated = true;
    }
    if (st->row.price_musd_per_hour <= 0) { /* none was known when it was found: as of attempts */
        ret->billable_s = ret->estimated ? 0 : ret->billable_s;
        ret->estimated |= ret->billable_s > 0;
    }
    ret->estimated |= idle_untold(job); /* bills.h asks for it */
    if (!ledger_settle_job(&account, 0, ret->cost_musd, ret->billable_s, ret->estimated, 0,
                           ret->entries, &ret->entries_n, &err)) {
        return false;
    }
    bool ok = ledger_close(&account, 0, 0, 0, ret->entries + ret->entries_n, &n, &err);
    ret->entries_n += ok ? n : 0;
    return ok;
}

/* Its bill is waited for a while; one that comes later corrects what is booked (bills.h). */
static bool billed(const struct live_stray *st, const struct job_description *job, int64_t boot_us)
{
    return job->billable_s > 0 || job->started == 0 || boot_us >= st->ended_us + BILL_UNTOLD_US;
}

enum stray_seen leader_plan_stray_seen(struct live_stray *st, const struct job_description *job,
                                       int64_t boot_us, struct stray_end *ret)
{
    bool news = strcmp(st->row.status, job->status) != 0 || st->row.started_us != job->started;
    usec_t ended_us = leader_job_ended(job);
    st->described_us = boot_us;
    st->runs_s = job->max_runtime_s > 0 ? job->max_runtime_s : st->runs_s;
    st->look_now = ended_us != 0; /* until it is over and written */
    st->row.started_us = job->started;
    (void)snprintf(st->row.status, sizeof st->row.status, "%s", job->status);
    if (ended_us == 0) {
        return news ? STRAY_NEWS : STRAY_AS_BEFORE;
    }
    st->ended_us = st->ended_us != 0 ? st->ended_us : boot_us;
    *ret = (struct stray_end){.name = st->row.name,
                              .status = st->row.status,
                              .started_us = job->started,
                              .ended_us = ended_us};
    if (pool_over(st, job, boot_us)) {
        st->look_now = billed(st, job, boot_us);
        if (st->look_now && book(st, job, ret)) {
            return STRAY_OVER;
        }
    }
    return news ? STRAY_NEWS : STRAY_AS_BEFORE;
}

void leader_apply_stray_end(struct leader_state *s, const struct stray_end *e)
{
    struct live_stray *st = leader_stray_named(s, e->name);
    struct project_row *all = leader_state_project(s, 0);
    ASSERT(st != NULL);
    slots_release(leader_state_slots(s, st->row.instance_type, st->row.market), st->row.instances);
    all->reserved_musd += budget_state_reserved_by(e->entries, e->entries_n);
    all->spent_musd += budget_state_spent_by(e->entries, e->entries_n);
    *st = s->strays[--s->strays_n];
    budget_state_freed(s, 0, NULL);
    s->bills_unread |= e->estimated;
    s->decide = s->look_at_db = s->act = true;
}
