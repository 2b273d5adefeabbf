/* Observe: one ListTrainingJobs in place of a hundred Describes (core/leader/list_round.h); what
 * differs from what we hold is looked at by Describe. Quotas are read here too: unreadable means
 * nothing is intended. */
#include "observe.h"
#include "attempt.h"
#include "calls.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/job_list.h"
#include "core/leader/quota_limits.h"
#include "lease.h"
#include "metrics.h"
#include "orphan_sweep.h"
#include "output_check.h"
#include "shell.h"
#include "store/leader/quotas.h"
#include "store/rows/view.h"
#include "wall.h"
#include <stdio.h>

static void note_failed(const struct aws_failure *f)
{
    metric_add(METRIC_AWS_ERRORS, 1);
    metric_add(METRIC_AWS_THROTTLED, f->outcome == AWS_THROTTLED);
    if (log_allow("list_failed")) {
        log_event(LOG_WARN, "list_failed", LF_S("code", f->code), LF_I("status", f->status),
                  LF_S("text", f->message));
    }
}

static void on_list(void *ctx, const struct job_summary *jobs, size_t n, const char *next,
                    const struct aws_failure *f)
{
    struct controller *c = ctx;
    c->listing = NULL;
    c->listed = listed_page_new(jobs, n, next, f);
    if (f != NULL) {
        note_failed(f);
        return;
    }
    atomic_store(&c->status->aws_ok, true);
    c->state.act |= call_pace_answered(&c->pace, clock_mono_us());
}

static void take_page(struct controller *c, const struct listed_page *page)
{
    orphan_sweep_listed(c, page->jobs, page->n);
    for (size_t i = 0; i < page->n && c->leading; i++) {
        struct live_attempt *a;
        struct fact fact;
        if (leader_listed(&c->state, &page->jobs[i], page->at_us, &a, &fact)) {
            attempt_fact(a, &fact);
        }
    }
    if (c->leading) {
        bool late = c->round.late;
        list_round_page(&c->round, &c->state, page->jobs, page->n, page->next, page->at_us);
        if (c->round.late != late) {
            log_event(LOG_INFO, "list_filters_late",
                      LF_S("why", "pages of ListTrainingJobs are cut before they are filtered"));
        }
    }
}

/* What no page has shown is described. */
static void look_at_absent(struct controller *c)
{
    struct live_attempt *a;
    while (c->leading && (a = list_round_absent(&c->round, &c->state, clock_boot_us())) != NULL) {
        const struct fact fact = {.kind = FACT_HINT, .at_us = clock_boot_us()};
        attempt_fact(a, &fact);
    }
}

void list_tick(struct controller *c)
{
    struct listed_page *page = TAKE(c->listed);
    if (page == NULL) {
        return;
    }
    if (page->failed) {
        list_round_refused(&c->round, &page->failure, page->at_us);
    } else {
        take_page(c, page);
    }
    listed_page_free(page);
    look_at_absent(c);
    if (c->leading) {
        loop_timer_set(c->observe_timer, 0);
    }
}

void observe_go_on(struct controller *c)
{
    struct job_list_query q;
    int64_t skew_us = aws_client_skew_us(c->aws);
    int64_t boot_us = clock_boot_us();
    if (c->listing != NULL || c->listed != NULL) {
        return; /* the tick that takes it goes on */
    }
    list_round_every(&c->round, event_watch_list_us(&c->events, &c->state), boot_us);
    int64_t wait_us = list_round_wait_us(&c->round, &c->state, leader_now(c), skew_us, boot_us);
    wait_us = list_round_yields_us(wait_us, orphan_sweep_asked(c));
    if (wait_us > 0) {
        loop_timer_set(c->observe_timer, wait_us);
        return;
    }
    metric_add(METRIC_AWS_REQUESTS, 1);
    if (list_round_is_first_try(&c->round)) {
        call_pace_first(&c->pace);
    }
    list_round_query(&c->round, &c->state, c->cfg.job_prefix, skew_us, boot_us, &q);
    c->listing = sagemaker_list(c->aws, lease_gate(c), &q, on_list, c);
}

struct quota_arg {
    const struct quota_reading *reading;
};

bool quota_kept_read(struct controller *c, struct err *err)
{
    int64_t kept[ACCOUNT_QUOTA_COUNT];
    if (!view_account_quotas(c->store, kept, err)) {
        return false;
    }
    leader_kept_account_quotas(&c->state, kept);
    return true;
}

static bool write_quotas(struct controller *c, void *arg, struct err *err)
{
    const struct quota_reading *r = ((struct quota_arg *)arg)->reading;
    size_t most = r->training_n + r->spot_n + r->warm_n;
    AUTO_FREE struct quota_limit_write *w = xcalloc(most + 1, sizeof *w);
    struct account_quota_write account[ACCOUNT_QUOTA_COUNT];
    int64_t kept[ACCOUNT_QUOTA_COUNT];
    if (!view_account_quotas(c->store, kept, err)) {
        return false;
    }
    int account_n = leader_plan_account_quotas(r, kept, account);
    for (int k = 0; k < account_n; k++) {
        if (!store_account_quota_put(c->store, account[k].quota, account[k].limit, err)) {
            return false;
        }
    }
    size_t n = leader_plan_quotas(&c->state, r, w);
    for (size_t i = 0; i < n; i++) {
        if (!store_quota_put(c->store, w[i].instance_type, w[i].market, w[i].warm, w[i].limit,
                             err)) {
            return false;
        }
    }
    return store_create_rate_put(c->store, call_pace_rate_u(&c->pace, r->create_rate), err);
}

static struct quota_value *values_dup(const struct quota_value *v, size_t n)
{
    struct quota_value *ret = xmalloc((n + 1) * sizeof *ret);
    if (n > 0) {
        memcpy(ret, v, n * sizeof *ret);
    }
    return ret;
}

static struct quota_reading *quota_reading_dup(const struct quota_reading *r)
{
    struct quota_reading *ret = xmalloc(sizeof *ret);
    *ret = *r;
    ret->training = values_dup(r->training, r->training_n);
    ret->warm = values_dup(r->warm, r->warm_n);
    ret->spot = values_dup(r->spot, r->spot_n);
    return ret;
}

static void quotas_forget(struct controller *c)
{
    struct quota_reading *r = TAKE(c->quotas_read);
    if (r != NULL) {
        free(r->training);
        free(r->warm);
        free(r->spot);
        free(r);
    }
}

static void on_quotas(void *ctx, const struct quota_reading *r, const struct aws_failure *f)
{
    struct controller *c = ctx;
    c->quota_reading = NULL;
    if (f != NULL) {
        metric_add(METRIC_AWS_ERRORS, 1);
        if (log_allow("quotas_unreadable")) {
            log_event(LOG_WARN, "quotas_unreadable", LF_S("code", f->code),
                      LF_I("status", f->status), LF_S("text", f->message));
        }
        int64_t again_us = leader_quotas_again_us(&c->state, c->cfg.quota_interval_us);
        if (again_us >= 0) {
            loop_timer_set(c->quota_timer, again_us);
        }
        return;
    }
    atomic_store(&c->status->aws_ok, true);
    quotas_forget(c);
    c->quotas_read = quota_reading_dup(r);
    c->quotas_write_us = 0;
}

void quota_tick(struct controller *c)
{
    const struct quota_reading *r = c->quotas_read;
    struct quota_arg arg = {.reading = r};
    if (r == NULL || clock_boot_us() < c->quotas_write_us) {
        return;
    }
    if (!leader_tx(c, write_quotas, &arg)) {
        c->quotas_write_us = leader_quotas_write_us(clock_boot_us());
        return;
    }
    leader_apply_quotas(&c->state, r);
    call_pace_rate_read(&c->pace, r->create_rate, clock_mono_us());
    atomic_store(&c->status->creates_per_s_u, c->pace.creates.rate_per_s_u);
    quotas_forget(c);
}

void observe_cancel(struct controller *c)
{
    sagemaker_cancel(c->listing);
    c->listing = NULL;
    listed_page_free(TAKE(c->listed));
    list_round_clear(&c->round);
    quotas_cancel(c->quota_reading);
    c->quota_reading = NULL;
    quotas_forget(c);
}

void quota_start(struct controller *c)
{
    if (c->quota_reading == NULL) {
        metric_add(METRIC_AWS_REQUESTS, 1);
        c->quota_reading = quotas_read(c->aws, lease_gate(c), on_quotas, c);
    }
}
