/* Observe: one ListTrainingJobs in place of a hundred Describes. What differs from what we hold is
 * looked at by Describe. Quotas are read here too: unreadable means nothing is intended. */
#include "observe.h"
#include "attempt.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/pool_life.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "shell.h"
#include <stdio.h>

#define STRAYS_EVERY_US (60 * USEC_PER_SEC)
#define STRAY_NAMES_MAX 500
#define LIST_MARGIN_US  (60 * USEC_PER_SEC) /* clocks differ, List's filter has whole seconds */

static const struct {
    const char *name;
    enum job_phase phase;
} phases[] = {
    {"Pending", PHASE_PENDING},
    {"Starting", PHASE_STARTING},
    {"LaunchingMLInstances", PHASE_STARTING},
    {"PreparingTrainingStack", PHASE_STARTING},
    {"Downloading", PHASE_RUNNING},
    {"DownloadingTrainingImage", PHASE_RUNNING},
    {"Training", PHASE_RUNNING},
    {"Restarting", PHASE_RUNNING},
    {"Updating", PHASE_RUNNING},
    {"Uploading", PHASE_UPLOADING},
    {"Interrupted", PHASE_INTERRUPTED},
    {"Stopping", PHASE_STOPPING},
    {"MaxRuntimeExceeded", PHASE_MAX_RUNTIME},
    {"MaxWaitTimeExceeded", PHASE_MAX_WAIT},
    {"Completed", PHASE_ENDED},
    {"Failed", PHASE_ENDED},
    {"Stopped", PHASE_ENDED},
};
static const struct {
    const char *name;
    enum job_status status;
} statuses[] = {
    {"InProgress", JOB_IN_PROGRESS}, {"Completed", JOB_COMPLETED}, {"Failed", JOB_FAILED},
    {"Stopping", JOB_STOPPING},      {"Stopped", JOB_STOPPED},
};

struct job_seen observe_seen(const char *status, const char *secondary, usec_t modified)
{
    struct job_seen seen = {
        .status = JOB_STATUS_UNKNOWN, .phase = PHASE_OTHER, .modified = modified};
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        if (strcmp(status, statuses[i].name) == 0) {
            seen.status = statuses[i].status;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        if (strcmp(secondary, phases[i].name) == 0) {
            seen.phase = phases[i].phase;
        }
    }
    return seen;
}

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
 * database lost. It is left alone, and a person is told. Looked at once a minute, since ended
 * attempts of ours are in every list too. */
static void look_for_strays(struct controller *c, const struct job_summary *jobs, size_t n)
{
    struct stray_arg s = {.n = 0};
    int64_t now_us = clock_boot_us();
    if (now_us < c->strays_looked_us + STRAYS_EVERY_US) {
        return;
    }
    for (size_t i = 0; i < n && s.n < STRAY_NAMES_MAX; i++) {
        if (leader_state_attempt_named(&c->state, jobs[i].name) == NULL) {
            s.names[s.n++] = jobs[i].name;
        }
    }
    if (s.n == 0) {
        return;
    }
    c->strays_looked_us = now_us;
    if (leader_tx(c, find_stray, &s) && s.any) {
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
    if (c->calls_fail) { /* it answers again: what has waited may be tried */
        c->calls_fail = false;
        retry_budget_init(&c->retries, RETRY_BUDGET_BURST, RETRY_BUDGET_TRICKLE_US,
                          clock_mono_us());
        c->state.act = true;
    }
    look_for_strays(c, jobs, n);
    for (size_t i = 0; i < n && c->leading; i++) {
        struct live_attempt *a = leader_state_attempt_named(&c->state, jobs[i].name);
        if (a != NULL) {
            attempt_fact(a, &(struct fact){.kind = FACT_LISTED,
                                           .at_us = clock_boot_us(),
                                           .job = observe_seen(jobs[i].status, jobs[i].secondary,
                                                               jobs[i].modified)});
        } else {
            leader_pool_listed(&c->state, jobs[i].name, jobs[i].pool.status);
        }
    }
}

void observe_start(struct controller *c)
{
    usec_t oldest = USEC_NEVER;
    char prefix[64];
    if (c->listing != NULL) {
        return;
    }
    for (size_t i = 0; i < c->state.attempts_n; i++) {
        oldest = MIN(oldest, c->state.attempts[i]->row.intended_us);
    }
    for (size_t i = 0; i < c->state.pools_n; i++) {
        oldest = MIN(oldest, c->state.pools[i]->row.intended_us);
    }
    if (oldest == USEC_NEVER) {
        return;
    }
    (void)snprintf(prefix, sizeof prefix, "%s-", c->cfg.job_prefix);
    metric_add(METRIC_AWS_REQUESTS, 1);
    retry_budget_first(&c->retries);
    c->listing =
        sagemaker_list(c->aws, lease_gate(c), prefix, MAX(0, oldest - LIST_MARGIN_US), on_list, c);
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
    if (r->create_rate > 0 && !c->create_unlimited) {
        token_bucket_set_rate(&c->create_bucket, r->create_rate, clock_mono_us());
    }
    c->state.decide = true;
}

void quota_start(struct controller *c)
{
    if (c->quota_reading == NULL) {
        metric_add(METRIC_AWS_REQUESTS, 1);
        c->quota_reading = quotas_read(c->aws, lease_gate(c), on_quotas, c);
    }
}
