/* See sweep.h. */
#include "sweep.h"
#include "attempt_answer.h"
#include "call_again.h"
#include "common/retry.h"
#include "strays.h"
#include <stdio.h>
#include <stdlib.h>

#define PAGES_MAX 1000
#define ASIDE_US  (60 * USEC_PER_SEC) /* from one that was set aside to the next */
/* A List showed the job, and AWS may know nothing else of a young one yet; rows that refuse it may
 * take it later. After this many times in a row, some three minutes, it is set aside. */
#define REPEATS_MOST 8
/* After this many Describes in a row that do not say whose the job is, some 15 s, its name is
 * believed: nobody else can have made it. */
#define SWEEP_UNTOLD_MOST 5

void sweep_clear(struct sweep *w)
{
    name_set_clear(&w->seen);
    free(w->jobs);
    free(w->aside);
    *w = (struct sweep){.n = 0};
}

enum list_walk_then sweep_list_page(struct list_walk *walk, const char *next)
{
    return list_walk_page(walk, next, PAGES_MAX);
}

bool sweep_list_due(const struct sweep *w, int64_t boot_us)
{
    return !w->complete && !w->listed && boot_us >= w->list_us;
}

usec_t sweep_list_begins(struct leader_state *s, usec_t newest_us, usec_t void_us, int64_t lease_us,
                         int64_t signature_us, int64_t boot_us)
{
    usec_t since_us = adoption_since(newest_us, void_us);
    leader_list_watch(s, since_us, boot_us + lease_us + signature_us, boot_us);
    return since_us;
}

void sweep_list_answered(struct sweep *w, bool looked_through, int64_t boot_us)
{
    w->listed = looked_through;
    w->list_us = boot_us + AGAIN_US;
}

static void put_arn(struct sweep_job *u, const struct job_summary *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(jobs[i].name, u->job.name) == 0) {
            (void)snprintf(u->arn, sizeof u->arn, "%s", jobs[i].arn);
            return;
        }
    }
}

void sweep_add(struct sweep *w, const char *const *names, size_t n,
               const struct unknown_name *unknown, size_t unknown_n, const struct job_summary *jobs,
               size_t jobs_n)
{
    w->jobs = xrealloc(w->jobs, (w->n + unknown_n + 1) * sizeof *w->jobs);
    for (size_t i = 0; i < unknown_n; i++) {
        struct sweep_job *u = &w->jobs[w->n++];
        *u = (struct sweep_job){.job = unknown[i]};
        put_arn(u, jobs, jobs_n);
    }
    for (size_t i = 0; i < n; i++) {
        name_set_add(&w->seen, names[i]);
    }
}

/* The oldest that was set aside is to be decided again. */
static void recall(struct sweep *w, int64_t boot_us)
{
    w->jobs = xrealloc(w->jobs, (w->n + 1) * sizeof *w->jobs);
    w->jobs[w->n] = w->aside[0];
    w->jobs[w->n++].next_us = 0;
    w->aside_n--;
    memmove(&w->aside[0], &w->aside[1], w->aside_n * sizeof *w->aside);
    w->aside_us = boot_us + ASIDE_US;
}

static void set_aside(struct sweep *w, struct sweep_job *u, int64_t boot_us)
{
    w->aside = xrealloc(w->aside, (w->aside_n + 1) * sizeof *w->aside);
    if (w->aside_n == 0) {
        w->aside_us = boot_us + ASIDE_US;
    }
    u->was_aside = true;
    w->aside[w->aside_n++] = *u;
    *u = w->jobs[--w->n];
}

size_t sweep_due(struct sweep *w, size_t at, int64_t boot_us)
{
    if (at == 0 && w->complete && w->aside_n > 0 && boot_us >= w->aside_us) {
        recall(w, boot_us);
    }
    while (at < w->n && boot_us < w->jobs[at].next_us) {
        at++;
    }
    return at;
}

bool sweep_wants_task(const struct sweep_job *u)
{
    return !u->job.is_void && u->task_id == 0;
}

enum sweep_ask sweep_question(const struct sweep_job *u)
{
    if (u->job.is_void || u->task_id != 0) {
        return SWEEP_ASK_DESCRIBE;
    }
    return u->arn[0] != '\0' ? SWEEP_ASK_TAG : SWEEP_ASK_NOTHING;
}

static bool unknown_to_aws(const struct aws_failure *f)
{
    return strcmp(f->code, "ValidationException") == 0 ||
           strncmp(f->code, "ResourceNotFound", 16) == 0;
}

enum sweep_then sweep_tag_answered(const char *value, const char *install_id,
                                   const struct aws_failure *f)
{
    if (f == NULL) {
        return strcmp(value, install_id) == 0 ? SWEEP_LOOK : SWEEP_DECIDED;
    }
    if (f->outcome != AWS_REFUSED) {
        return SWEEP_LATER;
    }
    return unknown_to_aws(f) ? SWEEP_REPEAT : SWEEP_ASIDE; /* until ListTags is allowed */
}

/* Held with slots and money until it ends. */
static void put_row(struct leader_state *s, const struct sweep_job *u,
                    const struct job_description *job, struct stray_row *ret)
{
    const char *why = u->task_id != 0 ? "unplaced" : u->job.is_void ? "void" : "lost";
    if (!leader_plan_stray(s, job, u->arn, why, ret)) {
        *ret = (struct stray_row){.campaign_id = 0};
    } else if (u->task_id != 0) {
        ret->campaign_id = u->place.campaign_id;
        ret->task_id = u->task_id;
        ret->n = u->place.n;
        ret->attempt_id = job->attempt_id;
    }
}

static enum sweep_then hold(const struct stray_row *row)
{
    return row->name[0] != '\0' ? SWEEP_HOLD : SWEEP_UNTOLD;
}

enum sweep_then sweep_described(struct leader_state *s, struct sweep_job *u,
                                const struct job_description *job, const struct aws_failure *f,
                                struct stray_row *ret_row)
{
    *ret_row = (struct stray_row){.campaign_id = 0};
    if (f != NULL) {
        return SWEEP_LATER;
    }
    u->lives = job != NULL && !leader_job_over(job);
    if (job == NULL) {
        return SWEEP_REPEAT;
    }
    put_row(s, u, job, ret_row);
    if (!u->job.is_void && u->task_id == 0) {
        return hold(ret_row);
    }
    u->untold = job->untold ? MIN(u->untold + 1, SWEEP_UNTOLD_MOST) : 0;
    if (job->untold && u->untold < SWEEP_UNTOLD_MOST) {
        return SWEEP_LATER;
    }
    if (u->task_id != 0) {
        return SWEEP_ADOPT;
    }
    if (!job->untold && job->request_hash[0] == '\0') {
        return SWEEP_DECIDED; /* somebody else's, under a name that no job of ours has had */
    }
    return ret_row->name[0] != '\0' ? SWEEP_REVIVE : SWEEP_UNTOLD;
}

enum sweep_then sweep_taken(enum tx_meaning meaning, bool written, const struct stray_row *row)
{
    switch (meaning) {
    case TX_LOST:
        return SWEEP_STOP;
    case TX_BUSY:
        return SWEEP_LATER;
    case TX_REFUSED: /* the database refuses its rows; its slots and its money still count */
        return hold(row);
    case TX_DONE:
        break;
    }
    return written ? SWEEP_ADOPTED : hold(row);
}

enum sweep_then sweep_held(enum tx_meaning meaning)
{
    switch (meaning) {
    case TX_LOST:
        return SWEEP_STOP;
    case TX_BUSY:
        return SWEEP_LATER;
    case TX_REFUSED:
        return SWEEP_REPEAT;
    case TX_DONE:
        break;
    }
    return SWEEP_DECIDED;
}

void sweep_apply(struct sweep *w, size_t at, enum sweep_then then, int64_t boot_us)
{
    struct sweep_job *u = &w->jobs[at];
    u->repeats = then == SWEEP_REPEAT || then == SWEEP_UNTOLD ? u->repeats + 1 : 0;
    if (u->repeats > 0) {
        then = u->repeats < REPEATS_MOST && !u->was_aside ? SWEEP_LATER : SWEEP_ASIDE;
    }
    switch (then) {
    case SWEEP_LATER:
        u->failures = MIN(u->failures + 1, 1000);
        u->next_us = boot_us + retry_step_us(AGAIN_US, AGAIN_MAX_US, u->failures - 1);
        break;
    case SWEEP_ADOPTED:
        w->adopted++;
        *u = w->jobs[--w->n];
        break;
    case SWEEP_DECIDED:
        *u = w->jobs[--w->n];
        break;
    case SWEEP_ASIDE:
        set_aside(w, u, boot_us);
        break;
    case SWEEP_UNTOLD:
    case SWEEP_REPEAT:
    case SWEEP_LOOK:
    case SWEEP_ADOPT:
    case SWEEP_REVIVE:
    case SWEEP_HOLD:
    case SWEEP_STOP:
        break;
    }
}

enum sweep_end sweep_end(struct sweep *w)
{
    if (w->adopted > 0) {
        return SWEEP_READ_AGAIN;
    }
    if (w->complete || !w->listed || w->n > 0) {
        return SWEEP_GOES_ON;
    }
    w->complete = true;
    return SWEEP_COMPLETE;
}

bool sweep_keeps_part(const struct sweep *w, int64_t campaign_id, int64_t task_id)
{
    for (size_t i = 0; i < w->aside_n + w->n; i++) { /* of jobs, those that came back */
        const struct sweep_job *u = i < w->aside_n ? &w->aside[i] : &w->jobs[i - w->aside_n];
        if (u->lives && u->task_id == task_id && u->place.campaign_id == campaign_id) {
            return true;
        }
    }
    return false;
}

bool sweep_lets_intend(const struct sweep *w, const struct leader_state *s)
{
    return w->complete && s->decide;
}
