/* The sweep at takeover. A database that failed over may have lost its newest commits, and with
 * them the rows of jobs that run and cost money. So before the first intent of an epoch everything
 * with our prefix that is younger than the newest intent we know of is listed and held against the
 * rows. A job under the very name that one of our parts would have had, with a proof in its
 * environment, is taken in as an attempt of unknown outcome: its slots and its money are held, and
 * the protocol finds out the rest. Anything else is somebody else's: it is left alone and a person
 * is told. */
#include "orphan_sweep.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/hash.h"
#include "common/log.h"
#include "core/leader/intents.h"
#include "core/money/cost.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "shell.h"
#include <stdio.h>

#define SWEEP_BACK_US  (15 * 60 * USEC_PER_SEC) /* before the newest intent: clocks differ */
#define SWEEP_AGAIN_US USEC_PER_SEC
#define SWEEP_MAX      (100 * SAGEMAKER_LIST_PAGES_MAX)
#define SWEEP_BATCH    200

struct orphan_sweep {
    struct sagemaker_call *list, *describe;
    char (*names)[64]; /* without a row; [n] */
    size_t n, next;
    int adopted;
};

static void sweep_free(struct orphan_sweep *s)
{
    sagemaker_cancel(s->list);
    sagemaker_cancel(s->describe);
    free(s->names);
    free(s);
}

void orphan_sweep_cancel(struct controller *c)
{
    if (c->sweep != NULL) {
        sweep_free(c->sweep);
        c->sweep = NULL;
    }
}

static void again(struct controller *c)
{
    orphan_sweep_cancel(c);
    c->sweep_us = clock_boot_us() + SWEEP_AGAIN_US;
}

/* --- whose job is it? --- */

#define HASH_N 8

/* The number before `end`, whose digits begin after a hyphen; ret_at: where they do. */
static bool number_before(const char *name, const char *end, int64_t max, int64_t *ret,
                          const char **ret_at)
{
    const char *p = end;
    while (p > name && p[-1] >= '0' && p[-1] <= '9') {
        p--;
    }
    *ret_at = p;
    return p < end && parse_i64((struct str){p, (size_t)(end - p)}, 0, max, ret, NULL);
}

/* <anything>-<seq>-a<n>-<hash8> */
static bool read_tail(const char *name, int64_t *ret_seq, int *ret_n)
{
    size_t length = strlen(name);
    const char *at;
    int64_t n = 0;
    if (length < HASH_N + 2 || name[length - HASH_N - 1] != '-' ||
        !number_before(name, name + length - HASH_N - 1, 32000, &n, &at) || n < 1 ||
        at - name < 3 || at[-1] != 'a' || at[-2] != '-') {
        return false;
    }
    *ret_n = (int)n;
    return number_before(name, at - 2, INT32_MAX, ret_seq, &at) && at > name && at[-1] == '-';
}

struct adopt_arg {
    const struct job_description *job;
    struct adoption a;
    struct live_stage *stage;
    int64_t task_id;
};

/* Is it the very name that part seq of this stage would have had? Task ids are the database's. */
static bool try_stage(struct controller *c, struct adopt_arg *ad, struct live_stage *ls,
                      int64_t seq, int n, struct err *err)
{
    static const uint8_t no_id[32];
    struct intent *in = &ad->a.intent;
    struct job_name name;
    uint8_t id[32];
    int64_t task_id = 0;
    protocol_job_name(c->cfg.job_prefix, ls->row.campaign_id, ls->row.name, seq, n, no_id, &name);
    size_t length = strlen(name.s);
    if (strlen(ad->job->name) != length || seq >= ls->row.taken ||
        strncmp(ad->job->name, name.s, length - HASH_N) != 0) {
        return true;
    }
    if (!task_by_seq(c->store, ls->row.campaign_id, ls->row.id, seq, &task_id, err)) {
        return false;
    }
    *in = (struct intent){.campaign_id = ls->row.campaign_id,
                          .stage_id = ls->row.id,
                          .task_id = task_id,
                          .seq = (int32_t)seq,
                          .n = n};
    leader_intent_identity(&c->state, in, id);
    protocol_job_name(c->cfg.job_prefix, in->campaign_id, ls->row.name, seq, n, id, &in->name);
    ad->stage = task_id != 0 && strcmp(in->name.s, ad->job->name) == 0 ? ls : NULL;
    return true;
}

static bool find_place(struct controller *c, struct adopt_arg *ad, struct err *err)
{
    int64_t seq = 0;
    int n = 0;
    if (!read_tail(ad->job->name, &seq, &n)) {
        return true;
    }
    for (size_t i = 0; i < c->state.campaigns_n; i++) {
        struct live_campaign *lc = c->state.campaigns[i];
        for (int k = 0; k < lc->stages_n && ad->stage == NULL; k++) {
            if (lc->stages[k].spec != NULL && !try_stage(c, ad, &lc->stages[k], seq, n, err)) {
                return false;
            }
        }
    }
    return true;
}

/* What it may cost at worst: reserved, as if we had just intended it. */
static bool fill_adoption(struct controller *c, struct adopt_arg *ad)
{
    const struct job_description *job = ad->job;
    struct intent *in = &ad->a.intent;
    struct err err = ERR_INIT;
    struct live_slots *s = leader_state_slots(&c->state, job->instance_type,
                                              job->spot ? MARKET_SPOT : MARKET_ON_DEMAND);
    if (job->instances < 1 || job->instances > INT32_MAX || job->instance_type[0] == '\0' ||
        job->volume_gb < 0 || job->volume_gb > INT32_MAX || job->max_runtime_s < 1 ||
        job->keep_alive_s < 0 || job->request_hash[0] == '\0' || job->attempt_id == 0) {
        return false;
    }
    (void)snprintf(in->instance_type, sizeof in->instance_type, "%s", job->instance_type);
    (void)snprintf(in->identity_hash, sizeof in->identity_hash, "%s", job->request_hash);
    in->instances = (int)job->instances;
    in->volume_gb = (int)job->volume_gb;
    in->max_runtime_s = job->max_runtime_s;
    in->keep_alive_s = job->spot ? 0 : job->keep_alive_s;
    in->market = s->s.market;
    in->price_musd_per_hour = MAX(0, s->s.price_musd_per_hour);
    in->attempt_id = job->attempt_id;
    in->request = STR("{}"); /* never sent: a Create of this name would meet the job */
    ad->a.created_us = job->created;
    return cost_worst_case(in->price_musd_per_hour, in->instances, in->max_runtime_s,
                           in->keep_alive_s, &in->reserve_musd, &err);
}

static bool adopt(struct controller *c, void *arg, struct err *err)
{
    struct adopt_arg *ad = arg;
    if (!find_place(c, ad, err)) {
        return false;
    }
    if (ad->stage == NULL || !fill_adoption(c, ad)) {
        return true;
    }
    return store_adopt(c->store, c->state.epoch, &ad->a, &ad->task_id, err);
}

static void stray(const char *job)
{
    log_event(LOG_ERROR, "stray_job", LF_S("job", job),
              LF_S("remedy", "no part of this installation: give it a job_prefix of its own, or "
                             "stop the job"));
}

static void next_name(struct controller *c);

static void on_describe(void *ctx, const struct job_description *job, bool not_found,
                        const struct aws_failure *f)
{
    struct controller *c = ctx;
    c->sweep->describe = NULL;
    if (f != NULL) {
        metric_add(METRIC_AWS_ERRORS, 1);
        again(c);
        return;
    }
    struct adopt_arg ad = {.job = job};
    if (!not_found) {
        if (!leader_tx(c, adopt, &ad)) {
            return;
        }
        if (ad.task_id != 0) {
            c->sweep->adopted++;
            log_event(LOG_WARN, "job_adopted", LF_S("job", job->name));
        } else {
            stray(job->name);
        }
    }
    c->sweep->next++;
    next_name(c);
}

static void next_name(struct controller *c)
{
    struct orphan_sweep *s = c->sweep;
    if (s->next >= s->n && s->adopted > 0) {
        /* Slots, money, counters, queues, pools: read whole again, by a takeover from ourselves. */
        leader_lose(c, "adopted", NULL);
        return;
    }
    if (s->next >= s->n) {
        orphan_sweep_cancel(c);
        c->swept = c->state.decide = true;
        return;
    }
    metric_add(METRIC_AWS_REQUESTS, 1);
    s->describe = sagemaker_describe(c->aws, lease_gate(c), s->names[s->next], on_describe, c);
}

/* --- the list --- */

struct names_arg {
    const struct job_summary *jobs;
    size_t n;
};

/* A batch of names, of which those without a row are kept, one answer each. */
static bool missing_of(struct controller *c, const char **names, size_t n, struct err *err)
{
    struct orphan_sweep *s = c->sweep;
    for (;;) {
        struct job_name missing;
        bool any = false;
        if (n == 0) {
            return true;
        }
        if (!attempt_names_missing(c->store, names, n, &any, &missing, err)) {
            return false;
        }
        if (!any) {
            return true;
        }
        (void)snprintf(s->names[s->n++], sizeof s->names[0], "%s", missing.s);
        size_t kept = 0;
        for (size_t i = 0; i < n; i++) {
            if (strcmp(names[i], missing.s) != 0) {
                names[kept++] = names[i];
            }
        }
        ASSERT(kept < n);
        n = kept;
    }
}

static bool keep_missing(struct controller *c, void *arg, struct err *err)
{
    const struct names_arg *na = arg;
    const char *batch[SWEEP_BATCH];
    size_t n = 0;
    for (size_t i = 0; i < na->n && i < SWEEP_MAX; i++) {
        if (leader_state_attempt_named(&c->state, na->jobs[i].name) == NULL) {
            batch[n++] = na->jobs[i].name;
        }
        if (n == SWEEP_BATCH && !missing_of(c, batch, n, err)) {
            return false;
        }
        n = n == SWEEP_BATCH ? 0 : n;
    }
    return missing_of(c, batch, n, err);
}

static void on_list(void *ctx, const struct job_summary *jobs, size_t n,
                    const struct aws_failure *f)
{
    struct controller *c = ctx;
    c->sweep->list = NULL;
    if (f != NULL || FP("sweep.after_list")) {
        metric_add(METRIC_AWS_ERRORS, 1);
        if (log_allow("sweep_failed", 1)) {
            log_event(LOG_WARN, "sweep_failed", LF_S("code", f != NULL ? f->code : ""));
        }
        again(c);
        return;
    }
    struct names_arg na = {.jobs = jobs, .n = n};
    c->sweep->names = xcalloc(MIN(n, (size_t)SWEEP_MAX) + 1, sizeof *c->sweep->names);
    if (leader_tx(c, keep_missing, &na)) {
        next_name(c);
    }
}

static bool read_newest(struct controller *c, void *arg, struct err *err)
{
    return newest_intent(c->store, arg, err);
}

void orphan_sweep_tick(struct controller *c)
{
    char prefix[64];
    usec_t newest = 0;
    if (c->sweep != NULL || clock_boot_us() < c->sweep_us || !leader_tx(c, read_newest, &newest)) {
        return;
    }
    (void)snprintf(prefix, sizeof prefix, "%s-", c->cfg.job_prefix);
    c->sweep = xcalloc(1, sizeof *c->sweep);
    metric_add(METRIC_AWS_REQUESTS, 1);
    c->sweep->list =
        sagemaker_list(c->aws, lease_gate(c), prefix, MAX(0, newest - SWEEP_BACK_US), on_list, c);
}
