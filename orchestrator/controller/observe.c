/* Observe: one ListTrainingJobs in place of a hundred Describes. What differs from what we hold is
 * looked at by Describe. Quotas are read here too: unreadable means nothing is intended. */
#include "observe.h"
#include "attempt.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/job_list.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "shell.h"
#include <stdio.h>

#define STRAY_NAMES_MAX 500

struct stray_arg {
    const char *names[STRAY_NAMES_MAX];
    size_t n;
    bool any;
    struct job_name name;
};

static bool find_stray(struct controller *c, void *arg, struct err *err)
{
    struct stray_arg *s = arg;
    return attempt_names_missing(c->store, s->names, s->n, &s->any, &s->name, err);
}

/* A job with our prefix that no attempt has: somebody else's, or one whose row a failed-over
 * database lost. It is left alone, and a person is told. */
static void look_for_strays(struct controller *c, const struct job_summary *jobs, size_t n)
{
    struct stray_arg s = {.n = 0};
    s.n = leader_strays(&c->state, jobs, n, clock_boot_us(), &c->strays_looked_us, s.names,
                        STRAY_NAMES_MAX);
    if (s.n > 0 && leader_tx(c, find_stray, &s) && s.any) {
        log_event(
            LOG_ERROR, "stray_job", LF_S("job", s.name.s),
            LF_S("remedy",
                 "not of this installation: give it a job_prefix of its own, or stop the job"));
    }
}

static void on_list(void *ctx, const struct job_summary *jobs, size_t n,
                    const struct aws_failure *f)
{
    struct controller *c = ctx;
    c->listing = NULL;
    if (f != NULL) {
        metric_add(METRIC_AWS_ERRORS, 1);
        metric_add(METRIC_AWS_THROTTLED, f->outcome == AWS_THROTTLED);
        if (log_allow("list_failed", 1)) {
            log_event(LOG_WARN, "list_failed", LF_S("code", f->code), LF_I("status", f->status),
                      LF_S("text", f->message));
        }
        return;
    }
    atomic_store(&c->status->aws_ok, true);
    c->state.act |= call_pace_answered(&c->pace, clock_mono_us());
    look_for_strays(c, jobs, n);
    for (size_t i = 0; i < n && c->leading; i++) {
        struct live_attempt *a;
        struct fact fact;
        if (leader_listed(&c->state, &jobs[i], clock_boot_us(), &a, &fact)) {
            attempt_fact(a, &fact);
        }
    }
}

void observe_start(struct controller *c)
{
    usec_t since = leader_list_since(&c->state);
    char prefix[64];
    if (c->listing != NULL || since == USEC_NEVER) {
        return;
    }
    (void)snprintf(prefix, sizeof prefix, "%s-", c->cfg.job_prefix);
    metric_add(METRIC_AWS_REQUESTS, 1);
    call_pace_first(&c->pace);
    c->listing = sagemaker_list(c->aws, lease_gate(c), prefix, since, on_list, c);
}

struct quota_arg {
    const struct quota_reading *reading;
};

/* New values of one kind of quota by type: into the rows, or into what we hold. */
static bool write_kind(struct controller *c, const struct quota_value *v, size_t n,
                       enum market market, bool warm, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct quota_ledger *s =
            &leader_state_slots(&c->state, v[i].instance_type, market)->s;
        if ((warm ? s->warm_quota : s->quota) != v[i].limit &&
            !store_quota_put(c->store, v[i].instance_type, market, warm, v[i].limit, err)) {
            return false;
        }
    }
    return true;
}

static void account_values(const struct quota_reading *r, int64_t ret[static ACCOUNT_QUOTA_COUNT])
{
    ret[ACCOUNT_INSTANCES] = r->total;
    ret[ACCOUNT_SPOT_INSTANCES] = r->spot_total;
    ret[ACCOUNT_PER_JOB] = r->instances_max;
    ret[ACCOUNT_RUN_S] = r->runtime_max_s;
    ret[ACCOUNT_VOLUME_GB] = r->volume_max_gib;
    ret[ACCOUNT_KEEP_ALIVE_S] = r->keep_alive_s;
}

static bool write_quotas(struct controller *c, void *arg, struct err *err)
{
    const struct quota_reading *r = ((struct quota_arg *)arg)->reading;
    int64_t account[ACCOUNT_QUOTA_COUNT];
    int64_t kept[ACCOUNT_QUOTA_COUNT];
    account_values(r, account);
    if (!view_account_quotas(c->store, kept, err)) {
        return false;
    }
    for (int k = 0; k < ACCOUNT_QUOTA_COUNT; k++) {
        if (account[k] != kept[k] &&
            !store_account_quota_put(c->store, (enum account_quota)k, account[k], err)) {
            return false;
        }
    }
    return write_kind(c, r->training, r->training_n, MARKET_ON_DEMAND, false, err) &&
           write_kind(c, r->spot, r->spot_n, MARKET_SPOT, false, err) &&
           write_kind(c, r->warm, r->warm_n, MARKET_ON_DEMAND, true, err);
}

static void take_quotas(struct controller *c, const struct quota_reading *r)
{
    for (size_t i = 0; i < r->training_n; i++) {
        quota_ledger_quota_read(
            &leader_state_slots(&c->state, r->training[i].instance_type, MARKET_ON_DEMAND)->s,
            r->training[i].limit);
    }
    for (size_t i = 0; i < r->spot_n; i++) {
        quota_ledger_quota_read(
            &leader_state_slots(&c->state, r->spot[i].instance_type, MARKET_SPOT)->s,
            r->spot[i].limit);
    }
    for (size_t i = 0; i < r->warm_n; i++) {
        leader_state_slots(&c->state, r->warm[i].instance_type, MARKET_ON_DEMAND)->s.warm_quota =
            r->warm[i].limit;
    }
    c->state.account.total[MARKET_ON_DEMAND].limit = r->total;
    c->state.account.total[MARKET_SPOT].limit = r->spot_total;
    c->state.account.per_job = r->instances_max;
    c->state.account.longest_run_s = r->runtime_max_s;
    c->state.account.volume_gb = r->volume_max_gib;
    c->state.keep_alive_max_s = r->keep_alive_s;
}

static void on_quotas(void *ctx, const struct quota_reading *r, const struct aws_failure *f)
{
    struct controller *c = ctx;
    c->quota_reading = NULL;
    if (f != NULL) {
        metric_add(METRIC_AWS_ERRORS, 1);
        if (log_allow("quotas_unreadable", 1)) {
            log_event(LOG_WARN, "quotas_unreadable", LF_S("code", f->code),
                      LF_I("status", f->status), LF_S("text", f->message));
        }
        bool known = false;
        for (size_t i = 0; i < c->state.slots_n; i++) {
            known |= c->state.slots[i].s.quota >= 0;
        }
        if (!known) { /* nothing starts before this: ask again soon */
            loop_timer_set(c->quota_timer, MIN(c->cfg.quota_interval_us, USEC_PER_SEC));
        }
        return;
    }
    struct quota_arg arg = {.reading = r};
    atomic_store(&c->status->aws_ok, true);
    if (!leader_tx(c, write_quotas, &arg)) {
        return;
    }
    take_quotas(c, r);
    call_pace_rate_read(&c->pace, r->create_rate, clock_mono_us());
    c->state.decide = true;
}

void quota_start(struct controller *c)
{
    if (c->quota_reading == NULL) {
        metric_add(METRIC_AWS_REQUESTS, 1);
        c->quota_reading = quotas_read(c->aws, lease_gate(c), on_quotas, c);
    }
}
