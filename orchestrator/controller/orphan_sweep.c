/* Carries core/leader/sweep.h: lists, asks about each unknown name, and writes what is decided.
 * Answers are noted in the callbacks and taken in the next tick. */
#include "orphan_sweep.h"
#include "calls.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "core/leader/strays.h"
#include "core/leader/sweep.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "parking.h"
#include "store/leader/lease.h"
#include "store/leader/strays.h"
#include <stdio.h>

#define BATCH 500

struct sweep_answer { /* of the question that was under way */
    enum { NO_ANSWER, TAG_ANSWER, DESCRIBE_ANSWER } kind;
    bool failed, not_found;
    struct aws_failure failure;
    char tag[64];
    struct job_description job;
};

struct orphan_sweep {
    struct sagemaker_call *list, *call;
    struct sweep s;
    size_t at;                  /* of the question under way */
    struct list_walk walk;      /* the first list, page by page */
    usec_t since_us;            /* of it */
    bool asked;                 /* for a page of it */
    struct listed_page *listed; /* a page, noted; NULL: none */
    struct sweep_answer answer;
};

void orphan_sweep_cancel(struct controller *c)
{
    struct orphan_sweep *o = c->sweep;
    if (o == NULL) {
        return;
    }
    sagemaker_cancel(o->list);
    sagemaker_cancel(o->call);
    sweep_clear(&o->s);
    listed_page_free(o->listed);
    free(o);
    c->sweep = NULL;
}

static struct orphan_sweep *sweep_of(struct controller *c)
{
    if (c->sweep == NULL) {
        c->sweep = xcalloc(1, sizeof *c->sweep);
    }
    return c->sweep;
}

bool orphan_sweep_lets_intend(struct controller *c)
{
    return sweep_lets_intend(&sweep_of(c)->s, &c->state);
}

bool orphan_sweep_keeps(struct controller *c, int64_t campaign_id, int64_t task_id)
{
    return sweep_keeps_part(&sweep_of(c)->s, campaign_id, task_id);
}

bool orphan_sweep_asked(struct controller *c)
{
    return sweep_of(c)->asked;
}

struct sweep_write {
    const struct job_description *job;
    struct sweep_job *u;
    struct stray_row row;
    bool written;
};

static bool write_stray(struct controller *c, void *arg, struct err *err)
{
    struct sweep_write *v = arg;
    return store_stray_put(c->store, &v->row, &v->written, err);
}

static enum sweep_then hold(struct controller *c, struct sweep_write *v)
{
    struct err err;
    v->written = false;
    enum tx_meaning meaning = leader_try(c, write_stray, v, &err);
    if (meaning == TX_REFUSED) {
        if (log_allow("stray_not_written")) {
            log_event(LOG_ERROR, "stray_not_written", LF_S("job", v->row.name), LF_ERR(&err));
        }
    } else if (meaning == TX_DONE && v->written) {
        leader_apply_stray(&c->state, &v->row);
        log_event(LOG_WARN, "stray_found", LF_S("job", v->row.name), LF_S("why", v->row.why),
                  LF_S("remedy", "drover strays shows it"));
    }
    return sweep_held(meaning);
}

static bool write_adopted(struct controller *c, void *arg, struct err *err)
{
    struct sweep_write *v = arg;
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
    struct sweep_write *v = arg;
    return store_attempt_revive(c->store, c->state.epoch, v->job->name, v->job->request_hash,
                                v->row.reserved_musd, &v->written, err);
}

static enum sweep_then take(struct controller *c, leader_fn *fn, struct sweep_write *v,
                            const char *event)
{
    struct err err;
    enum tx_meaning meaning = leader_try(c, fn, v, &err);
    if (meaning == TX_REFUSED) {
        parking_refuse(c, PARKING_ATTEMPT(v->u->place.campaign_id, v->job->attempt_id), meaning,
                       &err);
    }
    enum sweep_then then = sweep_taken(meaning, v->written, &v->row);
    if (then == SWEEP_ADOPTED) {
        log_event(LOG_WARN, event, LF_S("job", v->job->name));
    }
    return then;
}

static enum sweep_then described(struct controller *c, const struct sweep_answer *a)
{
    struct orphan_sweep *o = c->sweep;
    struct sweep_write v = {.job = a->not_found ? NULL : &a->job, .u = &o->s.jobs[o->at]};
    enum sweep_then then =
        sweep_described(&c->state, v.u, v.job, a->failed ? &a->failure : NULL, &v.row);
    if (then == SWEEP_ADOPT) {
        then = take(c, write_adopted, &v, "job_adopted");
    } else if (then == SWEEP_REVIVE) {
        then = take(c, write_revived, &v, "void_attempt_alive");
    }
    if (then == SWEEP_HOLD && c->leading) {
        then = hold(c, &v);
    } else if (then == SWEEP_UNTOLD && log_allow("stray_job")) {
        log_event(LOG_ERROR, "stray_job", LF_S("job", a->job.name),
                  LF_S("remedy", "it does not say what it uses: look at it at SageMaker"));
    }
    return then;
}

static void note(struct controller *c, const struct aws_failure *f)
{
    struct orphan_sweep *o = c->sweep;
    o->call = NULL;
    o->answer.failed = f != NULL;
    o->answer.failure = f != NULL ? *f : (struct aws_failure){.outcome = AWS_OK};
    c->state.act = true;
    metric_add(METRIC_AWS_ERRORS, f != NULL);
}

static void on_describe(void *ctx, const struct job_description *job, bool not_found,
                        const struct aws_failure *f)
{
    struct controller *c = ctx;
    struct sweep_answer *a = &c->sweep->answer;
    note(c, f);
    a->kind = DESCRIBE_ANSWER;
    a->not_found = f == NULL && not_found;
    if (f == NULL && !not_found) {
        a->job = *job;
    }
}

static void on_tag(void *ctx, const char *value, const struct aws_failure *f)
{
    struct controller *c = ctx;
    struct sweep_answer *a = &c->sweep->answer;
    note(c, f);
    a->kind = TAG_ANSWER;
    (void)snprintf(a->tag, sizeof a->tag, "%s", f == NULL ? value : "");
}

static void describe(struct controller *c)
{
    struct orphan_sweep *o = c->sweep;
    metric_add(METRIC_AWS_REQUESTS, 1);
    o->call = sagemaker_describe(c->aws, lease_gate(c), o->s.jobs[o->at].job.name, on_describe, c);
}

static void take_answer(struct controller *c)
{
    struct orphan_sweep *o = c->sweep;
    struct sweep_answer a = o->answer;
    enum sweep_then then;
    if (a.kind == NO_ANSWER) {
        return;
    }
    o->answer.kind = NO_ANSWER;
    if (a.kind == DESCRIBE_ANSWER) {
        then = described(c, &a);
    } else {
        then = sweep_tag_answered(a.tag, c->state.install_id, a.failed ? &a.failure : NULL);
        if (then == SWEEP_ASIDE && log_allow("tags_unreadable")) {
            log_event(LOG_WARN, "tags_unreadable", LF_S("job", o->s.jobs[o->at].job.name),
                      LF_S("code", a.failure.code), LF_S("remedy", "allow sagemaker:ListTags"));
        }
    }
    if (then == SWEEP_LOOK) {
        describe(c);
    } else {
        sweep_apply(&o->s, o->at, then, clock_boot_us());
    }
}

/* Which of our parts would have had this very name? */
static bool find_task(struct controller *c, void *arg, struct err *err)
{
    struct sweep_job *u = arg;
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
    struct orphan_sweep *o = c->sweep;
    struct sweep_job *u = &o->s.jobs[o->at];
    if (sweep_wants_task(u) && !leader_tx(c, find_task, u)) {
        sweep_apply(&o->s, o->at, c->leading ? SWEEP_LATER : SWEEP_STOP, clock_boot_us());
        return;
    }
    switch (sweep_question(u)) {
    case SWEEP_ASK_DESCRIBE:
        describe(c);
        break;
    case SWEEP_ASK_TAG:
        metric_add(METRIC_AWS_REQUESTS, 1);
        o->call = sagemaker_tag(c->aws, lease_gate(c), u->arn, "drover-install", on_tag, c);
        break;
    case SWEEP_ASK_NOTHING:
        sweep_apply(&o->s, o->at, SWEEP_DECIDED, clock_boot_us());
        break;
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

/* False: the rows could not be read. */
static bool look_through(struct controller *c, const struct job_summary *jobs, size_t n)
{
    struct orphan_sweep *o = sweep_of(c);
    for (;;) {
        struct lookup l = {.n = 0};
        l.n =
            leader_unknown_names(&c->state, c->cfg.job_prefix, &o->s.seen, jobs, n, l.names, BATCH);
        if (l.n == 0) {
            return true;
        }
        if (!leader_tx(c, look_up, &l)) {
            return false;
        }
        sweep_add(&o->s, l.names, l.n, l.unknown, l.unknown_n, jobs, n);
        free(l.unknown);
    }
}

void orphan_sweep_listed(struct controller *c, const struct job_summary *jobs, size_t n)
{
    (void)look_through(c, jobs, n); /* else with the next List */
}

static void on_list(void *ctx, const struct job_summary *jobs, size_t n, const char *next,
                    const struct aws_failure *f)
{
    static const struct aws_failure broken = {.outcome = AWS_UNKNOWN};
    struct controller *c = ctx;
    struct orphan_sweep *o = c->sweep;
    o->list = NULL;
    c->state.act = true;
    f = f == NULL && FP("sweep.after_list") ? &broken : f;
    o->listed = listed_page_new(jobs, n, next, f);
    if (f != NULL) {
        metric_add(METRIC_AWS_ERRORS, 1);
        if (log_allow("sweep_failed")) {
            log_event(LOG_WARN, "sweep_failed", LF_S("code", f->code));
        }
    }
}

static enum list_walk_then take_page(struct controller *c, const struct listed_page *page)
{
    struct orphan_sweep *o = c->sweep;
    if (page->failed) {
        return list_walk_refused(&o->walk, &page->failure, c->cfg.observe_interval_us, page->at_us);
    }
    if (!look_through(c, page->jobs, page->n)) {
        return LIST_WALK_CUT;
    }
    return sweep_list_page(&o->walk, page->next);
}

static void take_list(struct controller *c)
{
    struct orphan_sweep *o = c->sweep;
    struct listed_page *page = TAKE(o->listed);
    if (page == NULL) {
        return;
    }
    enum list_walk_then then = take_page(c, page);
    if (then != LIST_WALK_ON) {
        o->walk = (struct list_walk){.pages = 0};
        sweep_list_answered(&o->s, then == LIST_WALK_OVER, clock_boot_us());
    }
    listed_page_free(page);
}

struct known_intents {
    usec_t newest, oldest_void;
};

static bool read_intents(struct controller *c, void *arg, struct err *err)
{
    struct known_intents *k = arg;
    return newest_intent(c->store, &k->newest, err) &&
           void_intent(c->store, ADOPTION_VOID_US, &k->oldest_void, err);
}

/* False: the rows could not be read. */
static bool list_begins(struct controller *c, int64_t boot_us)
{
    struct known_intents k = {.newest = 0};
    if (!leader_tx(c, read_intents, &k)) {
        return false;
    }
    c->sweep->since_us = sweep_list_begins(&c->state, k.newest, k.oldest_void, c->lease_longest_us,
                                           c->cfg.signature_window_us, boot_us);
    return true;
}

static void list(struct controller *c)
{
    struct orphan_sweep *o = c->sweep;
    int64_t boot_us = clock_boot_us();
    bool first = o->walk.pages == 0 && o->walk.failures == 0;
    if (o->list != NULL || !sweep_list_due(&o->s, boot_us) || boot_us < o->walk.next_us ||
        list_round_urgent_wait_us(&c->round, boot_us) > 0 || (first && !list_begins(c, boot_us))) {
        return;
    }
    struct job_list_query q = {.status = "",
                               .pool = "",
                               .created_after =
                                   leader_list_from(o->since_us, aws_client_skew_us(c->aws))};
    leader_list_prefix(c->cfg.job_prefix, q.contains);
    (void)snprintf(q.token, sizeof q.token, "%s", o->walk.token);
    metric_add(METRIC_AWS_REQUESTS, 1);
    list_round_sent(&c->round, boot_us);
    o->asked = true;
    o->list = sagemaker_list(c->aws, lease_gate(c), &q, on_list, c);
}

/* One question at a time. */
static void ask_all(struct controller *c)
{
    struct orphan_sweep *o = c->sweep;
    for (size_t at = 0; c->leading && o->call == NULL;) {
        size_t before = o->s.n;
        o->at = sweep_due(&o->s, at, clock_boot_us());
        if (o->at == o->s.n) {
            return;
        }
        ask(c);
        at = o->at + (o->s.n == before);
    }
}

void orphan_sweep_tick(struct controller *c)
{
    struct orphan_sweep *o = sweep_of(c);
    take_list(c);
    if (c->leading) {
        take_answer(c);
    }
    if (c->leading) {
        list(c);
        ask_all(c);
    }
    if (!c->leading || o->call != NULL) {
        return;
    }
    switch (sweep_end(&o->s)) {
    case SWEEP_GOES_ON:
        break;
    case SWEEP_READ_AGAIN:
        leader_lose(c, "adopted", NULL); /* a takeover from ourselves */
        break;
    case SWEEP_COMPLETE:
        c->state.decide = true;
        break;
    }
}
