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
#include "common/log.h"
#include "core/leader/adoption.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "shell.h"
#include <stdio.h>

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

struct adopt_arg {
    const struct job_description *job;
    int64_t task_id; /* out: the part whose job it is; 0 nobody's */
};

static bool adopt(struct controller *c, void *arg, struct err *err)
{
    struct adopt_arg *ad = arg;
    struct adoption_place place;
    struct adoption a;
    int cursor = 0;
    const char *prefix = c->cfg.job_prefix;
    while (adoption_next_place(&c->state, prefix, ad->job->name, &cursor, &place)) {
        int64_t task_id = 0;
        if (!task_by_seq(c->store, place.campaign_id, place.stage_id, place.seq, &task_id, err)) {
            return false;
        }
        if (adoption_of(&c->state, prefix, ad->job, &place, task_id, &a)) {
            return store_adopt(c->store, c->state.epoch, &a, &ad->task_id, err);
        }
    }
    return true;
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
            if (c->leading) {
                again(c);
            }
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
    } else if (c->leading) {
        again(c);
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
        sagemaker_list(c->aws, lease_gate(c), prefix, adoption_since(newest), on_list, c);
}
