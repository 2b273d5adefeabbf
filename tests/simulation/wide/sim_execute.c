/* Act: ask the protocol of every due attempt what to do, do it, turn answers into facts; observe by
 * List, read quotas. */
#include "core/failure/cause.h"
#include "core/leader/pool_life.h"
#include "core/leader/quota_learning.h"
#include "sim_world.h"
#include <stdio.h>

static void fact_of(struct world *w, struct ctl *c, int64_t id, enum fact_kind kind,
                    enum cause cause)
{
    carry_fact(w, c, id, &(struct fact){.kind = kind, .at_us = ctl_boot(w, c), .cause = cause});
}

/* --- what is asked --- */
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
    if (!token_bucket_take(&c->bucket, ctl_boot(w, c))) {
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

/* A call that failed before is made again only as far as the budget of all retries goes. */
static bool retry_holds(struct world *w, struct ctl *c, struct live_attempt *a,
                        const struct protocol_config *pc)
{
    struct protocol_attempt copy = a->p;
    int64_t wake_us, now_us = ctl_boot(w, c);
    enum protocol_action next = protocol_next(&copy, now_us, pc, &wake_us);
    if (next != ACT_CREATE && next != ACT_DESCRIBE && next != ACT_STOP) {
        return false;
    }
    if (a->p.failures == 0) {
        retry_budget_first(&c->retries);
        c->tally.firsts++;
        return false;
    }
    c->calls_fail = true;
    if (retry_budget_take(&c->retries, now_us)) {
        c->tally.retries++;
        w->traffic.retries++;
        judge_retry_traffic(w, c);
        return false;
    }
    SOMETIMES(w, RETRY_HELD);
    a->wake_us = now_us + MIN(retry_budget_wait_us(&c->retries, now_us), w->cfg.observe_us);
    return true;
}

static void act(struct world *w, struct ctl *c, struct live_attempt *a)
{
    struct protocol_config pc;
    ctl_protocol(w, &pc);
    if (retry_holds(w, c, a, &pc)) {
        return;
    }
    switch (protocol_next(&a->p, ctl_boot(w, c), &pc, &a->wake_us)) {
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
        call_send(w, call_of(w, c, CALL_VERIFY, a));
        break;
    case ACT_VOID:
        w->cover->sites[SITE_VOID_AFTER_WINDOW] += a->p.state == ATTEMPT_UNKNOWN;
        fact_of(w, c, a->row.id, FACT_VOID, CAUSE_NONE);
        break;
    }
}

/* A Create that may not be sent yet for the rate's sake waits without touching the protocol. */
static bool rate_holds(struct world *w, struct ctl *c, struct live_attempt *a, int64_t now_us)
{
    (void)w;
    if (!a->p.wanted || (a->p.state != ATTEMPT_INTENDED && a->p.state != ATTEMPT_UNKNOWN)) {
        return false;
    }
    int64_t wait_us = token_bucket_wait_us(&c->bucket, now_us);
    if (wait_us > 0) {
        a->wake_us = now_us + wait_us;
    }
    return wait_us > 0;
}

void execute_tick(struct world *w, struct ctl *c)
{
    int64_t now_us = ctl_boot(w, c);
    int64_t wake_us = INT64_MAX;
    struct leader_state *s = &c->state;
    s->act = false;
    for (size_t i = s->attempts_n; i-- > 0 && c->leading && !c->frozen;) {
        struct live_attempt *a = s->attempts[i];
        if (a->recording) {
            continue;
        }
        if (now_us >= a->wake_us && !rate_holds(w, c, a, now_us)) {
            act(w, c, a);
        }
        if (c->leading && i < s->attempts_n) {
            wake_us = MIN(wake_us, s->attempts[i]->wake_us);
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

/* --- what is answered --- */
static enum cause refused(struct world *w, struct ctl *c, struct live_attempt *a,
                          const struct call *k)
{
    struct quota_learning_refusal r;
    enum cause cause = cause_of_refusal(k->http, k->code, str_of(k->text));
    (void)snprintf(a->reason, sizeof a->reason, "%s: %s", k->code, k->text);
    if (cause == CAUSE_QUOTA && quota_learning_refused(&c->state, a, k->text, ctl_wall(w, c), &r)) {
        int type = rows_kind(w, a->row.instance_type, a->row.market);
        if (strstr(r.said.quota, "training job usage") != NULL) {
            judge_taught(w, c, type, a->row.instances, r.said.limit, r.said.used);
        }
        w->judge.told_per_job = c->state.account.per_job; /* a refusal tells the limit too */
        w->judge.told_run_s = c->state.account.longest_run_s;
        w->judge.told_volume_gb = c->state.account.volume_gb;
    }
    return cause;
}

static void on_create(struct world *w, struct ctl *c, struct live_attempt *a, const struct call *k)
{
    int64_t id = a->row.id;
    switch (k->answer) {
    case ANSWER_OK:
        judge_untaught(w);
        a->reason[0] = '\0';
        if (a->taken != NULL) {
            a->taken->look_now = true;
        }
        fact_of(w, c, id, FACT_CREATE_OK, CAUSE_NONE);
        return;
    case ANSWER_IN_USE:
        fact_of(w, c, id, FACT_CREATE_IN_USE, CAUSE_NONE);
        return;
    case ANSWER_REFUSED:
        fact_of(w, c, id, FACT_CREATE_REFUSED, refused(w, c, a, k));
        return;
    case ANSWER_THROTTLED:
        fact_of(w, c, id, FACT_CREATE_REFUSED, CAUSE_THROTTLED);
        return;
    case ANSWER_CREDENTIALS:
        fact_of(w, c, id, FACT_CREATE_REFUSED, CAUSE_NETWORK);
        return;
    case ANSWER_UNSENT:
        fact_of(w, c, id, FACT_CREATE_UNSENT, CAUSE_NETWORK);
        return;
    case ANSWER_LOST:
    case ANSWER_NONE:
    case ANSWER_NOT_FOUND:
        fact_of(w, c, id, FACT_CREATE_UNKNOWN, CAUSE_NETWORK);
        return;
    }
}

static enum cause cause_of_end(const struct live_attempt *a, const struct job_view *v)
{
    enum job_end end = JOB_END_FAILED;
    if (v->status == JOB_STOPPED) {
        end = v->phase == PHASE_MAX_RUNTIME ? JOB_END_MAX_RUNTIME
              : v->phase == PHASE_MAX_WAIT  ? JOB_END_MAX_WAIT
                                            : JOB_END_STOPPED;
    } else if (v->status != JOB_FAILED) {
        return CAUSE_NONE;
    }
    return cause_of_job(end, str_of(a->reason), a->stopped_by_us);
}

static void on_describe(struct world *w, struct ctl *c, struct live_attempt *a,
                        const struct call *k)
{
    const struct job_view *v = &k->seen;
    if (k->answer == ANSWER_NOT_FOUND) {
        carry_fact(w, c, a->row.id,
                   &(struct fact){.kind = FACT_NOT_FOUND, .at_us = a->describe_sent_us});
        return;
    }
    if (k->answer != ANSWER_OK) {
        fact_of(w, c, a->row.id, FACT_DESCRIBE_FAILED, CAUSE_NONE);
        return;
    }
    struct fact f = {
        .kind = FACT_DESCRIBED,
        .at_us = ctl_boot(w, c),
        .job = {.status = v->status, .phase = v->phase, .ours = k->ours, .modified = v->modified}};
    if (k->ours) {
        (void)snprintf(a->reason, sizeof a->reason, "%s", v->reason != NULL ? v->reason : "");
        a->created_us = w->aws.jobs[k->job].created_us;
        a->row.started_us = v->started;
        a->row.ended_us = v->ended;
        a->billable_s = v->billable_s;
        pool_report_of(w, v, &a->pool_seen);
        f.cause = cause_of_end(a, v);
    }
    carry_fact(w, c, a->row.id, &f);
}

/* It answers again: what has waited may be tried. */
static void answers_again(struct world *w, struct ctl *c)
{
    if (c->calls_fail) {
        c->calls_fail = false;
        retry_budget_init(&c->retries, RETRY_BUDGET_BURST, RETRY_BUDGET_TRICKLE_US, ctl_boot(w, c));
        c->tally.refills++;
        c->state.act = true;
    }
    retry_budget_first(&c->retries);
    c->tally.firsts++;
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
        if (in != NULL) { /* by its name; the judge's index only spares a search */
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

static void on_quota(struct world *w, struct ctl *c, const struct call *k)
{
    c->quota_reading = false;
    if (k->answer != ANSWER_OK) {
        if (c->state.slots[0].s.quota < 0) { /* nothing starts before this: ask again soon */
            ctl_timer(w, c, TIMER_QUOTA, SEC);
        }
        return;
    }
    if (!db_begin(w, c)) {
        return;
    }
    for (int i = 0; i < w->kinds; i++) {
        struct db_slots *s = db_touch(w, T_SLOTS, (size_t)i);
        s->quota = k->quota[i];
        s->warm_quota = k->warm_quota[i];
    }
    if (!db_commit(w, c)) {
        return;
    }
    judge_untaught(w);
    struct quota_ledger_account *account = &c->state.account;
    for (int i = 0; i < w->kinds; i++) {
        struct quota_ledger *l = &c->state.slots[i].s;
        quota_ledger_quota_read(l, k->quota[i]);
        l->warm_quota = k->warm_quota[i];
    }
    for (int m = 0; m < MARKET_COUNT; m++) {
        account->total[m].limit = k->total_quota[m];
    }
    account->per_job = k->per_job;
    account->longest_run_s = k->longest_run_s;
    account->volume_gb = k->volume_gb;
    w->judge.told_per_job = k->per_job;
    w->judge.told_run_s = k->longest_run_s;
    w->judge.told_volume_gb = k->volume_gb;
    c->state.decide = true;
}

static void on_verified(struct world *w, struct ctl *c, struct live_attempt *a,
                        const struct call *k)
{
    if (!k->good) {
        (void)snprintf(a->reason, sizeof a->reason, "short output");
    }
    fact_of(w, c, a->row.id, k->answer == ANSWER_OK ? FACT_VERIFIED : FACT_VERIFY_FAILED,
            k->good ? CAUSE_NONE : CAUSE_SHORT_OUTPUT);
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
        fact_of(w, c, a->row.id, k->answer == ANSWER_OK ? FACT_STOP_OK : FACT_STOP_FAILED,
                CAUSE_NONE);
    } else {
        on_verified(w, c, a, k);
    }
}

void execute_observe(struct world *w, struct ctl *c)
{
    usec_t oldest = USEC_NEVER;
    hang_ask(w, c);
    if (c->listing) {
        return;
    }
    for (size_t i = 0; i < c->state.attempts_n; i++) {
        oldest = MIN(oldest, c->state.attempts[i]->row.intended_us);
    }
    for (size_t i = 0; i < c->state.pools_n; i++) {
        oldest = MIN(oldest, c->state.pools[i]->row.intended_us);
    }
    if (oldest == USEC_NEVER && !c->hold) {
        return;
    }
    int k = call_new(w, c, CALL_LIST, -1);
    w->calls[k].since_us = c->hold ? 0 : oldest - MINUTE;
    c->listing = true;
    call_send(w, k);
}

void execute_quota(struct world *w, struct ctl *c)
{
    if (!c->quota_reading) {
        c->quota_reading = true;
        call_send(w, call_new(w, c, CALL_QUOTA, -1));
    }
}
