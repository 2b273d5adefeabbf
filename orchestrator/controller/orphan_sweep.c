/* Jobs that read like ours and that no live attempt stands for. A database that failed over may
 * have lost its newest commits, a restored one more, and with them the rows of jobs that run and
 * cost money; a Create that was given up may land late. So before the first intent of an epoch
 * everything with our prefix that is younger than the newest intent we know of is listed, and later
 * each List is looked through. One by one it is decided whose such a job is:
 *  - it has the very name that one of our parts would have had: it is ours. It is adopted as that
 *    attempt, of unknown outcome; where that cannot be, it is held as a stray;
 *  - its attempt is void: it goes on when nothing has replaced it, else it is a stray to be
 *    stopped;
 *  - it carries our drover-install tag: a stray of a campaign that we have lost;
 *  - anything else is nobody's business.
 * No intent commits before all that the first list has shown is decided. */
#include "orphan_sweep.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "common/retry.h"
#include "core/leader/adoption.h"
#include "core/leader/strays.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "parking.h"
#include "store/leader/strays.h"
#include <stdio.h>

#define AGAIN_US     USEC_PER_SEC
#define AGAIN_MAX_US (60 * USEC_PER_SEC)
#define BATCH        500

struct undecided {
    struct unknown_name job;
    char arn[257];
    int failures;
    int64_t next_us; /* boot */
    /* once it is known to be ours by its name */
    struct adoption_place place;
    int64_t task_id; /* 0: it is not */
};

struct orphan_sweep {
    struct sagemaker_call *list, *call;
    bool listed; /* the first list of this epoch */
    int64_t list_us;
    struct undecided *jobs; /* the one under way is at `at` */
    size_t n, at;
    int adopted;
    struct name_set seen; /* decided, or in jobs */
};

void orphan_sweep_cancel(struct controller *c)
{
    struct orphan_sweep *s = c->sweep;
    if (s == NULL) {
        return;
    }
    sagemaker_cancel(s->list);
    sagemaker_cancel(s->call);
    name_set_clear(&s->seen);
    free(s->jobs);
    free(s);
    c->sweep = NULL;
}

static struct orphan_sweep *sweep_of(struct controller *c)
{
    if (c->sweep == NULL) {
        c->sweep = xcalloc(1, sizeof *c->sweep);
    }
    return c->sweep;
}

/* The job under way is decided. */
static void decided(struct controller *c)
{
    struct orphan_sweep *s = c->sweep;
    s->jobs[s->at] = s->jobs[--s->n];
}

static void later(struct controller *c)
{
    struct undecided *u = &c->sweep->jobs[c->sweep->at];
    u->failures = MIN(u->failures + 1, 1000);
    u->next_us = clock_boot_us() + retry_step_us(AGAIN_US, AGAIN_MAX_US, u->failures - 1);
}

struct sweep_verdict {
    const struct job_description *job;
    const struct undecided *u;
    struct stray_row stray;
    bool written;
};

static bool write_stray(struct controller *c, void *arg, struct err *err)
{
    struct sweep_verdict *v = arg;
    return store_stray_put(c->store, &v->stray, &v->written, err);
}

/* Held, with slots and money, until it ends. */
static void hold(struct controller *c, const struct job_description *job, const char *why)
{
    struct err err;
    const struct undecided *u = &c->sweep->jobs[c->sweep->at];
    struct sweep_verdict v = {.job = job, .u = u};
    if (!leader_plan_stray(&c->state, job, u->arn, why, &v.stray)) {
        log_event(LOG_ERROR, "stray_job", LF_S("job", job->name),
                  LF_S("remedy", "it does not say what it uses: look at it at SageMaker"));
        decided(c);
        return;
    }
    v.stray.campaign_id = u->task_id != 0 ? u->place.campaign_id : 0;
    v.stray.task_id = u->task_id;
    v.stray.n = u->task_id != 0 ? u->place.n : 0;
    v.stray.attempt_id = u->task_id != 0 ? job->attempt_id : 0;
    enum tx_meaning meaning = leader_try(c, write_stray, &v, &err);
    if (meaning == TX_LOST) {
        return;
    }
    if (meaning == TX_BUSY) {
        later(c);
        return;
    }
    if (meaning == TX_REFUSED) {
        log_event(LOG_ERROR, "stray_not_written", LF_S("job", job->name), LF_ERR(&err));
    } else if (v.written) {
        leader_apply_stray(&c->state, &v.stray);
        log_event(LOG_WARN, "stray_found", LF_S("job", job->name), LF_S("why", why),
                  LF_S("remedy", "drover strays shows it"));
    }
    decided(c);
}

static bool write_adopted(struct controller *c, void *arg, struct err *err)
{
    struct sweep_verdict *v = arg;
    struct adoption a;
    int64_t task_id = 0;
    if (!adoption_of(&c->state, c->cfg.job_prefix, v->job, &v->u->place, v->u->task_id, &a)) {
        return true; /* it lacks the fields of an attempt */
    }
    if (!store_adopt(c->store, c->state.epoch, &a, &task_id, err)) {
        return false;
    }
    v->written = task_id != 0;
    return true;
}

static bool write_revived(struct controller *c, void *arg, struct err *err)
{
    struct sweep_verdict *v = arg;
    return store_attempt_revive(c->store, c->state.epoch, v->job->name, v->job->request_hash,
                                v->stray.reserved_musd, &v->written, err);
}

/* True: the job is an attempt again, or will be tried later, or the leadership is lost. */
static bool taken(struct controller *c, leader_fn *fn, struct sweep_verdict *v, const char *event)
{
    struct err err;
    enum tx_meaning meaning = leader_try(c, fn, v, &err);
    if (meaning == TX_BUSY) {
        later(c);
    } else if (meaning == TX_REFUSED) {
        /* The database refuses its rows: the job is held as a stray, and the log says so. */
        parking_refuse(c, PARKING_ATTEMPT(v->u->place.campaign_id, v->job->attempt_id), meaning,
                       &err);
        return !c->leading;
    } else if (meaning == TX_DONE && v->written) {
        log_event(LOG_WARN, event, LF_S("job", v->job->name));
        c->sweep->adopted++;
        decided(c);
    } else if (meaning == TX_DONE) {
        return false;
    }
    return true;
}

static void decide(struct controller *c, const struct job_description *job)
{
    struct undecided *u = &c->sweep->jobs[c->sweep->at];
    struct sweep_verdict v = {.job = job, .u = u};
    if (u->task_id != 0) {
        if (!taken(c, write_adopted, &v, "job_adopted")) {
            hold(c, job, "unplaced");
        }
    } else if (!u->job.is_void) {
        hold(c, job, "lost");
    } else if (job->request_hash[0] == '\0' ||
               !leader_plan_stray(&c->state, job, u->arn, "void", &v.stray)) {
        decided(c); /* somebody else's job under a name that no attempt of ours has had */
    } else if (!taken(c, write_revived, &v, "void_attempt_alive")) {
        hold(c, job, "void");
    }
}

static void on_describe(void *ctx, const struct job_description *job, bool not_found,
                        const struct aws_failure *f)
{
    struct controller *c = ctx;
    c->sweep->call = NULL;
    c->state.act = true;
    if (f != NULL) {
        metric_add(METRIC_AWS_ERRORS, 1);
        later(c);
    } else if (not_found) {
        decided(c);
    } else {
        decide(c, job);
    }
}

static void describe(struct controller *c)
{
    struct orphan_sweep *s = c->sweep;
    metric_add(METRIC_AWS_REQUESTS, 1);
    s->call = sagemaker_describe(c->aws, lease_gate(c), s->jobs[s->at].job.name, on_describe, c);
}

static void on_tag(void *ctx, const char *value, const struct aws_failure *f)
{
    struct controller *c = ctx;
    struct orphan_sweep *s = c->sweep;
    s->call = NULL;
    c->state.act = true;
    metric_add(METRIC_AWS_ERRORS, f != NULL);
    if (f == NULL && strcmp(value, c->state.install_id) == 0) {
        describe(c);
    } else if (f == NULL) {
        decided(c);
    } else if (f->outcome == AWS_REFUSED) {
        log_event(LOG_WARN, "tags_unreadable", LF_S("job", s->jobs[s->at].job.name),
                  LF_S("code", f->code), LF_S("remedy", "allow sagemaker:ListTags"));
        decided(c);
    } else {
        later(c);
    }
}

/* Which of our parts would have had this very name? */
static bool find_task(struct controller *c, void *arg, struct err *err)
{
    struct undecided *u = arg;
    int cursor = 0;
    const char *prefix = c->cfg.job_prefix;
    while (u->task_id == 0 &&
           adoption_next_place(&c->state, prefix, u->job.name, &cursor, &u->place)) {
        int64_t task_id = 0;
        if (!task_by_seq(c->store, u->place.campaign_id, u->place.stage_id, u->place.seq, &task_id,
                         err)) {
            return false;
        }
        u->task_id =
            adoption_is_ours(&c->state, prefix, u->job.name, &u->place, task_id) ? task_id : 0;
    }
    return true;
}

static void ask(struct controller *c)
{
    struct orphan_sweep *s = c->sweep;
    struct undecided *u = &s->jobs[s->at];
    if (!u->job.is_void && !leader_tx(c, find_task, u)) {
        if (c->leading) {
            later(c);
        }
    } else if (u->job.is_void || u->task_id != 0) {
        describe(c);
    } else if (u->arn[0] == '\0') {
        decided(c);
    } else {
        metric_add(METRIC_AWS_REQUESTS, 1);
        s->call = sagemaker_tag(c->aws, lease_gate(c), u->arn, "drover-install", on_tag, c);
    }
}

struct lookup {
    const char *names[BATCH];
    size_t n;
    struct unknown_name *unknown;
    size_t unknown_n;
};

static bool look_up(struct controller *c, void *arg, struct err *err)
{
    struct lookup *l = arg;
    return names_unknown(c->store, l->names, l->n, &l->unknown, &l->unknown_n, err);
}

static void queue(struct orphan_sweep *s, const struct lookup *l, const struct job_summary *jobs,
                  size_t n)
{
    s->jobs = xrealloc(s->jobs, (s->n + l->unknown_n + 1) * sizeof *s->jobs);
    for (size_t i = 0; i < l->unknown_n; i++) {
        struct undecided *u = &s->jobs[s->n++];
        *u = (struct undecided){.job = l->unknown[i]};
        for (size_t k = 0; k < n; k++) {
            if (strcmp(jobs[k].name, u->job.name) == 0) {
                (void)snprintf(u->arn, sizeof u->arn, "%s", jobs[k].arn);
                break;
            }
        }
    }
}

/* False: the rows could not be read. */
static bool look_through(struct controller *c, const struct job_summary *jobs, size_t n)
{
    struct orphan_sweep *s = sweep_of(c);
    for (;;) {
        struct lookup l = {.n = 0};
        l.n = leader_unknown_names(&c->state, c->cfg.job_prefix, &s->seen, jobs, n, l.names, BATCH);
        if (l.n == 0) {
            return true;
        }
        if (!leader_tx(c, look_up, &l)) {
            return false;
        }
        queue(s, &l, jobs, n);
        free(l.unknown);
        for (size_t i = 0; i < l.n; i++) {
            name_set_add(&s->seen, l.names[i]);
        }
    }
}

void orphan_sweep_listed(struct controller *c, const struct job_summary *jobs, size_t n)
{
    (void)look_through(c, jobs, n); /* else with the next List */
}

static void on_list(void *ctx, const struct job_summary *jobs, size_t n,
                    const struct aws_failure *f)
{
    struct controller *c = ctx;
    struct orphan_sweep *s = c->sweep;
    s->list = NULL;
    c->state.act = true;
    s->list_us = clock_boot_us() + AGAIN_US;
    if (f != NULL || FP("sweep.after_list")) {
        metric_add(METRIC_AWS_ERRORS, 1);
        if (log_allow("sweep_failed")) {
            log_event(LOG_WARN, "sweep_failed", LF_S("code", f != NULL ? f->code : ""));
        }
        return;
    }
    s->listed = look_through(c, jobs, n);
}

static bool read_newest(struct controller *c, void *arg, struct err *err)
{
    return newest_intent(c->store, arg, err);
}

static void list(struct controller *c)
{
    char prefix[JOB_PREFIX_MAX + 2];
    usec_t newest = 0;
    struct orphan_sweep *s = c->sweep;
    if (s->list != NULL || clock_boot_us() < s->list_us || !leader_tx(c, read_newest, &newest)) {
        return;
    }
    leader_list_prefix(c->cfg.job_prefix, prefix);
    /* What an older leader has signed may land until its signatures are over. */
    leader_list_watch(&c->state, adoption_since(newest),
                      clock_boot_us() + c->cfg.lease_length_us + c->cfg.signature_window_us,
                      clock_boot_us());
    metric_add(METRIC_AWS_REQUESTS, 1);
    s->list = sagemaker_list(c->aws, lease_gate(c), prefix, adoption_since(newest), on_list, c);
}

void orphan_sweep_tick(struct controller *c)
{
    struct orphan_sweep *s = sweep_of(c);
    if (!c->swept && !s->listed) {
        list(c);
    }
    for (s->at = s->call != NULL ? s->at : 0; c->leading && s->call == NULL && s->at < s->n;) {
        size_t before = s->n;
        if (clock_boot_us() >= s->jobs[s->at].next_us) {
            ask(c);
        }
        s->at += s->n == before && s->call == NULL;
    }
    if (!c->leading || s->call != NULL) {
        return;
    }
    if (s->adopted > 0) {
        /* Slots, money, counters, queues, pools: read whole again, by a takeover from ourselves. */
        leader_lose(c, "adopted", NULL);
    } else if (!c->swept && s->listed && s->n == 0) {
        c->swept = c->state.decide = true;
    }
}
