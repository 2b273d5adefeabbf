/* Act: do what the protocol of each due attempt asks for and turn answers into facts. Observe by
 * List, read quotas. */
#include "core/leader/attempt_answer.h"
#include "core/leader/job_list.h"
#include "core/leader/pool_life.h"
#include "core/leader/quota_limits.h"
#include "sim_world.h"
#include <stdio.h>

static void fact_of(struct world *w, struct ctl *c, int64_t id, enum fact_kind kind,
                    enum cause cause)
{
    carry_fact(w, c, id, &(struct fact){.kind = kind, .at_us = ctl_boot(w, c), .cause = cause});
}

static int call_of(struct world *w, struct ctl *c, enum call_kind kind,
                   const struct live_attempt *a)
{
    int k = call_new(w, c, kind, row_of_id(a->row.id));
    w->calls[k].name_hash = name_hash_of(a->row.name.s);
    w->calls[k].request = rows_hash_of(a->row.identity_hash);
    return k;
}

static void do_create(struct world *w, struct ctl *c, struct live_attempt *a)
{
    int64_t id = a->row.id;
    if (!call_pace_take_create(&c->pace, ctl_boot(w, c))) {
        fact_of(w, c, id, FACT_CREATE_UNSENT, CAUSE_NONE);
        return;
    }
    bool asleep = fault(w, FAULT_FREEZE_SIGN); /* after the signature, past the lease's end */
    if (asleep) {
        ctl_freeze(w, c, 2 * w->cfg.lease_us);
    }
    if (asleep || !ctl_may_send(w, c)) {
        SOMETIMES(w, UNSENT_AFTER_LEASE);
        fact_of(w, c, id, FACT_CREATE_UNSENT, CAUSE_NONE);
        return;
    }
    fact_of(w, c, id, FACT_CREATE_SIGNED, CAUSE_NONE);
    int k = call_of(w, c, CALL_CREATE, a);
    w->calls[k].signed_us = w->now_us;
    tell(w, row_of_id(a->row.task_id), "controller %d sends Create of a%d", c->id, a->row.n);
    call_send(w, k);
    if (fault(w, FAULT_CRASH_SEND)) {
        ctl_crash(w, c);
    } else if (fault(w, FAULT_FREEZE_SEND)) {
        ctl_freeze(w, c, between(&w->rng_fault[FAULT_FREEZE_SEND], SEC, 3 * w->cfg.lease_us));
    }
}

/* The judge counts calls that are made again. */
static void count_try(struct world *w, struct ctl *c, int failures)
{
    if (failures == 0) {
        c->tally.firsts++;
    } else {
        c->tally.retries++;
        w->traffic.retries++;
        judge_retry_traffic(w, c);
    }
}

/* Its log could not be read in time, or says nothing. */
static void log_says_nothing(struct world *w, struct ctl *c, struct live_attempt *a)
{
    struct fact f = leader_log_answer(a, NULL, ctl_boot(w, c));
    carry_fact(w, c, a->row.id, &f);
}

static void act(struct world *w, struct ctl *c, struct live_attempt *a)
{
    struct protocol_config pc;
    int64_t now_us = ctl_boot(w, c);
    ctl_protocol(w, &pc);
    if (call_pace_holds(&c->pace, a, &pc, w->cfg.observe_us, now_us, now_us)) {
        w->cover->sites[SITE_RETRY_HELD] += a->p.failures > 0;
        return;
    }
    int failures = a->p.failures;
    enum protocol_action next = protocol_next(&a->p, now_us, &pc, &a->wake_us);
    if (next == ACT_CREATE || next == ACT_DESCRIBE || next == ACT_STOP) {
        count_try(w, c, failures);
    }
    switch (next) {
    case ACT_NONE:
        break;
    case ACT_CREATE:
        do_create(w, c, a);
        break;
    case ACT_DESCRIBE:
        a->describe_sent_us = ctl_boot(w, c);
        call_send(w, call_of(w, c, CALL_DESCRIBE, a));
        break;
    case ACT_STOP:
        a->stopped_by_us = true;
        call_send(w, call_of(w, c, CALL_STOP, a));
        break;
    case ACT_VERIFY:
        if (a->p.failed_as != CAUSE_NONE && now_us >= a->p.examine_until_us) {
            log_says_nothing(w, c, a);
        } else {
            call_send(w, call_of(w, c, CALL_VERIFY, a));
        }
        break;
    case ACT_VOID:
        w->cover->sites[SITE_VOID_AFTER_WINDOW] += a->p.state == ATTEMPT_UNKNOWN;
        fact_of(w, c, a->row.id, FACT_VOID, CAUSE_NONE);
        break;
    }
}

void execute_tick(struct world *w, struct ctl *c)
{
    int64_t now_us = ctl_boot(w, c);
    int64_t wake_us = INT64_MAX;
    struct leader_state *s = &c->state;
    s->act = false;
    for (size_t i = 0; i < s->attempts_n && c->leading && !c->frozen; i++) {
        struct live_attempt *a = s->attempts[i];
        if (!a->recording && now_us >= a->wake_us) {
            act(w, c, a);
        }
        if (!a->recording) {
            wake_us = MIN(wake_us, a->wake_us);
        }
    }
    c->acted_until_us = wake_us;
    if (c->leading && !c->frozen) {
        carry_pools(w, c);
        wake_us = c->acted_until_us;
    }
    if (c->leading && wake_us != INT64_MAX && wake_us - now_us < w->cfg.tick_us) {
        ctl_timer(w, c, TIMER_ACT, MAX(1000, wake_us - now_us));
    }
}

static enum aws_outcome outcome_of(enum answer answer)
{
    static const enum aws_outcome outcomes[] = {[ANSWER_OK] = AWS_OK,
                                                [ANSWER_IN_USE] = AWS_REFUSED,
                                                [ANSWER_REFUSED] = AWS_REFUSED,
                                                [ANSWER_THROTTLED] = AWS_THROTTLED,
                                                [ANSWER_CREDENTIALS] = AWS_CREDENTIALS,
                                                [ANSWER_UNSENT] = AWS_UNSENT,
                                                [ANSWER_LOST] = AWS_UNKNOWN,
                                                [ANSWER_NONE] = AWS_UNKNOWN,
                                                [ANSWER_NOT_FOUND] = AWS_UNKNOWN};
    return outcomes[answer];
}

/* A quota refusal tells the leader how much is free; the judge notes it. */
static void judge_refused(struct world *w, const struct ctl *c, const struct live_attempt *a,
                          const struct quota_learning_refusal *r)
{
    if (strstr(r->said.quota, "training job usage") != NULL) {
        judge_taught(w, c, rows_kind(w, a->row.instance_type, a->row.market), a->row.instances,
                     r->said.limit, r->said.used);
    }
    w->judge.told_per_job = c->state.account.per_job;
    w->judge.told_run_s = c->state.account.longest_run_s;
    w->judge.told_volume_gb = c->state.account.volume_gb;
    int64_t *total = &w->judge.told_total[a->row.market];
    *total = *total < 0 ? -1 : MAX(*total, c->state.account.total[a->row.market].limit);
}

static void on_create(struct world *w, struct ctl *c, struct live_attempt *a, const struct call *k)
{
    struct create_notes notes;
    struct aws_failure failure = {.outcome = outcome_of(k->answer), .status = k->http};
    (void)snprintf(failure.code, sizeof failure.code, "%s", k->code);
    (void)snprintf(failure.message, sizeof failure.message, "%s", k->text);
    if (failure.outcome != AWS_UNKNOWN && failure.outcome != AWS_UNSENT) {
        call_pace_create_answered(&c->pace, failure.outcome == AWS_THROTTLED, 0, k->boot_us,
                                  ctl_boot(w, c));
    }
    struct fact f = leader_create_answer(&c->state, a, "", k->answer == ANSWER_OK ? NULL : &failure,
                                         ctl_wall(w, c), ctl_boot(w, c), &notes);
    if (k->answer == ANSWER_OK) {
        judge_untaught(w);
    }
    if (notes.quota_refused) {
        judge_refused(w, c, a, &notes.refusal);
    }
    carry_fact(w, c, a->row.id, &f);
}

static void text_to(char *to, const char *text) /* that fits */
{
    memcpy(to, text, strlen(text) + 1);
}

/* What a Describe says, in SageMaker's words. */
static void description_of(const struct world *w, const struct call *k,
                           const struct live_attempt *a, struct job_description *ret)
{
    static const char *const status[] = {
        [JOB_STATUS_UNKNOWN] = "Dreaming", [JOB_IN_PROGRESS] = "InProgress",
        [JOB_COMPLETED] = "Completed",     [JOB_FAILED] = "Failed",
        [JOB_STOPPING] = "Stopping",       [JOB_STOPPED] = "Stopped"};
    static const char *const phase[] = {
        [PHASE_PENDING] = "Pending",         [PHASE_STARTING] = "Starting",
        [PHASE_RUNNING] = "Training",        [PHASE_UPLOADING] = "Uploading",
        [PHASE_INTERRUPTED] = "Interrupted", [PHASE_STOPPING] = "Stopping",
        [PHASE_ENDED] = "Completed",         [PHASE_MAX_RUNTIME] = "MaxRuntimeExceeded",
        [PHASE_OTHER] = "Dreaming",          [PHASE_MAX_WAIT] = "MaxWaitTimeExceeded"};
    const struct job_view *v = &k->seen;
    text_to(ret->status, status[v->status]);
    text_to(ret->secondary, phase[v->phase]);
    text_to(ret->request_hash, k->ours ? a->row.identity_hash : "another");
    text_to(ret->failure_reason, v->reason != NULL ? v->reason : "");
    ret->arn[0] = ret->artifacts[0] = '\0';
    ret->transitions_n = 0; /* where its time went is of no matter here */
    ret->spot = false;
    ret->created = w->aws.jobs[k->job].created_us;
    ret->started = v->started;
    ret->ended = v->ended;
    ret->modified = v->modified;
    ret->billable_s = v->billable_s;
    pool_report_of(w, v, &ret->pool);
}

static void on_describe(struct world *w, struct ctl *c, struct live_attempt *a,
                        const struct call *k)
{
    struct job_description job; /* not cleared: only what is read is set */
    bool found = k->answer == ANSWER_OK;
    bool not_found = k->answer == ANSWER_NOT_FOUND;
    if (found) {
        description_of(w, k, a, &job);
    }
    struct fact f = leader_describe_answer(a, &job, not_found, !found && !not_found, ctl_wall(w, c),
                                           ctl_boot(w, c));
    carry_fact(w, c, a->row.id, &f);
}

/* SageMaker answers again: what has waited is tried. */
static void answers_again(struct world *w, struct ctl *c)
{
    if (call_pace_answered(&c->pace, ctl_boot(w, c))) {
        c->tally.refills++;
        c->state.act = true;
    }
}

static void on_list(struct world *w, struct ctl *c, struct call *k)
{
    c->listing = false;
    if (k->answer != ANSWER_OK) {
        return;
    }
    answers_again(w, c);
    for (size_t i = 0; i < k->list_n && c->leading; i++) {
        const struct listed *l = &k->list[i];
        const struct job *j = &w->aws.jobs[l->job];
        struct live_attempt *a = NULL;
        const struct intent_seen *in = judge_intent(w, j->name_hash);
        if (in != NULL) { /* found by its name; the judge's index saves a search */
            a = leader_state_attempt(&c->state, id_of(in->id));
        }
        if (a != NULL && strcmp(a->row.name.s, j->name.s) == 0) {
            carry_fact(
                w, c, a->row.id,
                &(struct fact){
                    .kind = FACT_LISTED,
                    .at_us = ctl_boot(w, c),
                    .job = {.status = l->status, .phase = l->phase, .modified = l->modified}});
        } else if (in != NULL && leader_state_pool(&c->state, id_of(in->id)) != NULL) {
            struct warm_pool_report r;
            pool_report_of(w, &j->v, &r);
            leader_pool_listed(&c->state, j->name.s, r.status);
        }
    }
    if (c->leading && c->hold) {
        adopt_listed(w, c, k);
    }
}

/* The quotas of a listing, by type and market. */
static void reading_of(const struct world *w, const struct call *k,
                       struct quota_value v[static 2 * KINDS_MAX], struct quota_reading *ret)
{
    *ret = (struct quota_reading){.whole = true,
                                  .total = k->total_quota[MARKET_ON_DEMAND],
                                  .spot_total = k->total_quota[MARKET_SPOT],
                                  .instances_max = k->per_job,
                                  .runtime_max_s = k->longest_run_s,
                                  .volume_max_gib = k->volume_gb,
                                  .keep_alive_s = -1,
                                  .create_rate = -1,
                                  .training = v,
                                  .spot = v + w->cfg.types,
                                  .warm = v + KINDS_MAX,
                                  .training_n = (size_t)w->cfg.types,
                                  .spot_n = (size_t)w->cfg.types,
                                  .warm_n = (size_t)w->cfg.types};
    for (int i = 0; i < w->kinds; i++) {
        v[i].limit = k->quota[i];
        v[KINDS_MAX + i].limit = k->warm_quota[i];
        text_to(v[i].instance_type, w->types[i]);
        text_to(v[KINDS_MAX + i].instance_type, w->types[i]);
    }
}

static void on_quota(struct world *w, struct ctl *c, const struct call *k)
{
    struct quota_value values[2 * KINDS_MAX];
    struct quota_limit_write writes[2 * KINDS_MAX];
    struct quota_reading r;
    c->quota_reading = false;
    if (k->answer != ANSWER_OK) {
        if (!leader_quotas_known(&c->state)) {
            ctl_timer(w, c, TIMER_QUOTA, SEC);
        }
        return;
    }
    reading_of(w, k, values, &r);
    if (!db_begin(w, c)) {
        return;
    }
    size_t n = leader_plan_quotas(&c->state, &r, writes);
    for (size_t i = 0; i < n; i++) {
        const struct quota_limit_write *q = &writes[i];
        struct db_slots *s =
            db_touch(w, T_SLOTS, (size_t)rows_kind(w, q->instance_type, q->market));
        *(q->warm ? &s->warm_quota : &s->quota) = q->limit;
    }
    if (!db_commit(w, c)) {
        return;
    }
    judge_untaught(w);
    leader_apply_quotas(&c->state, &r);
    w->judge.told_per_job = k->per_job;
    w->judge.told_run_s = k->longest_run_s;
    w->judge.told_volume_gb = k->volume_gb;
    memcpy(w->judge.told_total, k->total_quota, sizeof w->judge.told_total);
}

static void on_verified(struct world *w, struct ctl *c, struct live_attempt *a,
                        const struct call *k)
{
    struct output_verdict v = {.checked = k->answer == ANSWER_OK, .good = k->good};
    if (v.checked && a->p.failed_as != CAUSE_NONE) {
        log_says_nothing(w, c, a);
        return;
    }
    v.cause = v.good ? CAUSE_NONE : CAUSE_SHORT_OUTPUT;
    (void)snprintf(v.text, sizeof v.text, "%s", v.good ? "" : "short output");
    struct fact f = leader_verify_answer(a, &v, ctl_boot(w, c));
    carry_fact(w, c, a->row.id, &f);
}

void execute_reply(struct world *w, struct ctl *c, struct call *k)
{
    struct live_attempt *a = leader_state_attempt(&c->state, id_of(k->attempt));
    switch ((enum call_kind)k->kind) {
    case CALL_LIST:
        on_list(w, c, k);
        return;
    case CALL_QUOTA:
        on_quota(w, c, k);
        return;
    case CALL_POOL:
    case CALL_UPDATE:
        carry_pool_reply(w, c, k);
        return;
    case CALL_PROGRESS:
        hang_answer(w, c, k);
        return;
    case CALL_CREATE:
    case CALL_DESCRIBE:
    case CALL_STOP:
    case CALL_VERIFY:
    case CALL_KINDS:
        break;
    }
    if (a == NULL) {
        return;
    }
    if (k->kind == CALL_CREATE) {
        on_create(w, c, a, k);
    } else if (k->kind == CALL_DESCRIBE) {
        on_describe(w, c, a, k);
    } else if (k->kind == CALL_STOP) {
        bool not_found = k->answer == ANSWER_NOT_FOUND;
        struct fact f =
            leader_stop_answer(k->answer != ANSWER_OK && !not_found, not_found, ctl_boot(w, c));
        carry_fact(w, c, a->row.id, &f);
    } else {
        on_verified(w, c, a, k);
    }
}

void execute_observe(struct world *w, struct ctl *c)
{
    usec_t since_us = leader_list_since(&c->state, ctl_boot(w, c));
    hang_ask(w, c);
    if (c->listing || (since_us == USEC_NEVER && !c->hold)) {
        return;
    }
    int k = call_new(w, c, CALL_LIST, -1);
    w->calls[k].since_us = c->hold ? 0 : since_us;
    c->listing = true;
    c->tally.firsts++;
    call_pace_first(&c->pace);
    call_send(w, k);
}

void execute_quota(struct world *w, struct ctl *c)
{
    if (!c->quota_reading) {
        c->quota_reading = true;
        call_send(w, call_new(w, c, CALL_QUOTA, -1));
    }
}
