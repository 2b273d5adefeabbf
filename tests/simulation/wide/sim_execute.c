/* Act: ask the protocol of every due attempt what to do, do it, turn answers into facts; observe by
 * List, read quotas. */
#include "core/failure/cause.h"
#include "sim_world.h"

static void fact_of(struct world *w, struct ctl *c, int attempt, enum fact_kind kind,
                    enum cause cause)
{
    live_fact(w, c, attempt, &(struct fact){.kind = kind, .at_us = ctl_boot(w, c), .cause = cause});
}

/* --- what is asked --- */
static void do_create(struct world *w, struct ctl *c, int attempt)
{
    if (!token_bucket_take(&c->bucket, ctl_boot(w, c))) {
        fact_of(w, c, attempt, FACT_CREATE_UNSENT, CAUSE_NONE);
        return;
    }
    bool asleep = fault(w, FAULT_FREEZE_SIGN); /* after the signature, past the lease's end */
    if (asleep) {
        ctl_freeze(w, c, 2 * w->cfg.lease_us);
    }
    if (asleep || !ctl_may_send(w, c)) {
        SOMETIMES(w, UNSENT_AFTER_LEASE);
        fact_of(w, c, attempt, FACT_CREATE_UNSENT, CAUSE_NONE);
        return;
    }
    fact_of(w, c, attempt, FACT_CREATE_SIGNED, CAUSE_NONE);
    int k = call_new(w, c, CALL_CREATE, attempt);
    w->calls[k].signed_us = w->now_us;
    tell(w, live_get(c, attempt)->row.task, "controller %d sends Create of a%d", c->id,
         live_get(c, attempt)->row.n);
    call_send(w, k);
    if (fault(w, FAULT_CRASH_SEND)) {
        ctl_crash(w, c);
    } else if (fault(w, FAULT_FREEZE_SEND)) {
        ctl_freeze(w, c, between(&w->rng_fault[FAULT_FREEZE_SEND], SEC, 3 * w->cfg.lease_us));
    }
}

/* A call that failed before is made again only as far as the budget of all retries goes. */
static bool retry_holds(struct world *w, struct ctl *c, struct live *a,
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

static void act(struct world *w, struct ctl *c, int attempt)
{
    struct protocol_config pc;
    struct live *a = live_get(c, attempt);
    ctl_protocol(w, &pc);
    if (retry_holds(w, c, a, &pc)) {
        return;
    }
    switch (protocol_next(&a->p, ctl_boot(w, c), &pc, &a->wake_us)) {
    case ACT_NONE:
        break;
    case ACT_CREATE:
        do_create(w, c, attempt);
        break;
    case ACT_DESCRIBE:
        a->describe_sent_us = ctl_boot(w, c);
        call_send(w, call_new(w, c, CALL_DESCRIBE, attempt));
        break;
    case ACT_STOP:
        a->stopped_by_us = true;
        call_send(w, call_new(w, c, CALL_STOP, attempt));
        break;
    case ACT_VERIFY:
        call_send(w, call_new(w, c, CALL_VERIFY, attempt));
        break;
    case ACT_VOID:
        if (a->p.state == ATTEMPT_UNKNOWN) {
            SOMETIMES(w, VOID_AFTER_WINDOW);
        }
        fact_of(w, c, attempt, FACT_VOID, CAUSE_NONE);
        break;
    }
}

/* A Create that may not be sent yet for the rate's sake waits without touching the protocol. */
static bool rate_holds(struct world *w, struct ctl *c, struct live *a, int64_t now_us)
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
    c->act = false;
    for (size_t i = c->live_n; i-- > 0 && c->leading && !c->frozen;) {
        struct live *a = &c->live[i];
        if (a->recording) {
            continue;
        }
        if (now_us >= a->wake_us && !rate_holds(w, c, a, now_us)) {
            act(w, c, a->id);
        }
        if (c->leading && i < c->live_n) {
            wake_us = MIN(wake_us, c->live[i].wake_us);
        }
    }
    c->acted_until_us = wake_us;
    if (c->leading && wake_us != INT64_MAX && wake_us - now_us < w->cfg.tick_us) {
        ctl_timer(w, c, TIMER_ACT, MAX(1000, wake_us - now_us));
    }
}

/* --- what is answered --- */
/* Instances of ours that we know to exist at AWS: of this type, and of
 * all of its market. */
static int64_t ours(const struct world *w, const struct ctl *c, int type, int64_t *ret_total)
{
    enum market market = market_of(w, type);
    int64_t n = 0;
    *ret_total = 0;
    for (size_t i = 0; i < c->live_n; i++) {
        const struct live *a = &c->live[i];
        bool exists = a->p.state >= ATTEMPT_SUBMITTED && a->p.state <= ATTEMPT_STOPPING;
        n += exists && a->row.type == type ? a->row.instances : 0;
        *ret_total += exists && market_of(w, a->row.type) == market ? a->row.instances : 0;
    }
    for (size_t i = 0; i < c->pool_n; i++) {
        n += !c->pool[i].row.claimed && c->pool[i].row.type == type ? c->pool[i].row.instances : 0;
        bool counts = !c->pool[i].row.claimed && market_of(w, c->pool[i].row.type) == market;
        *ret_total += counts ? c->pool[i].row.instances : 0;
    }
    return n;
}

static enum cause refused(struct world *w, struct ctl *c, const struct live *a,
                          const struct call *k)
{
    struct quota_ledger_refusal r;
    enum cause cause = cause_of_refusal(k->http, k->code, str_of(k->text));
    int stage = TASK_STAGE(w, a->row.task);
    if (cause == CAUSE_QUOTA && quota_ledger_refusal_parse(k->text, &r)) {
        int64_t total;
        int64_t n = ours(w, c, a->row.type, &total);
        if (quota_ledger_learn(&c->slots[a->row.type], &c->account, &r, n, total, ctl_wall(w, c)) ==
            QUOTA_LEDGER_QUOTA_TYPE) {
            judge_taught(w, c, a->row.type, a->row.instances, r.limit, r.used);
        }
        w->judge.told_per_job = c->account.per_job; /* a refusal tells the limit too */
        w->judge.told_run_s = c->account.longest_run_s;
        w->judge.told_volume_gb = c->account.volume_gb;
    } else if (cause == CAUSE_CAPACITY) {
        capacity_ladder_refused(&c->mem[stage].place, &w->stage[stage], a->row.rung,
                                a->row.subnet_i, ctl_wall(w, c));
    }
    return cause;
}

static void on_create(struct world *w, struct ctl *c, const struct call *k)
{
    struct live *a = live_get(c, k->attempt);
    int64_t total;
    switch (k->answer) {
    case ANSWER_OK:
        fact_of(w, c, k->attempt, FACT_CREATE_OK, CAUSE_NONE);
        if (c->leading && (a = live_get(c, k->attempt)) != NULL) {
            int64_t n = ours(w, c, a->row.type, &total);
            judge_untaught(w);
            quota_ledger_accepted(&c->slots[a->row.type], &c->account, n, total, ctl_wall(w, c));
        }
        return;
    case ANSWER_IN_USE:
        fact_of(w, c, k->attempt, FACT_CREATE_IN_USE, CAUSE_NONE);
        return;
    case ANSWER_REFUSED:
        fact_of(w, c, k->attempt, FACT_CREATE_REFUSED, refused(w, c, a, k));
        return;
    case ANSWER_THROTTLED:
        fact_of(w, c, k->attempt, FACT_CREATE_REFUSED, CAUSE_THROTTLED);
        return;
    case ANSWER_CREDENTIALS:
        fact_of(w, c, k->attempt, FACT_CREATE_REFUSED, CAUSE_NETWORK);
        return;
    case ANSWER_UNSENT:
        fact_of(w, c, k->attempt, FACT_CREATE_UNSENT, CAUSE_NETWORK);
        return;
    case ANSWER_LOST:
    case ANSWER_NONE:
    case ANSWER_NOT_FOUND:
        fact_of(w, c, k->attempt, FACT_CREATE_UNKNOWN, CAUSE_NETWORK);
        return;
    }
}

static enum cause cause_of_end(struct live *a, const struct job_view *v)
{
    enum job_end end = JOB_END_FAILED;
    char signature[SIGNATURE_MAX + 1];
    struct str reason = str_of(v->reason != NULL ? v->reason : "");
    if (v->status == JOB_STOPPED) {
        end = v->phase == PHASE_MAX_RUNTIME ? JOB_END_MAX_RUNTIME
              : v->phase == PHASE_MAX_WAIT  ? JOB_END_MAX_WAIT
                                            : JOB_END_STOPPED;
    } else if (v->status != JOB_FAILED) {
        return CAUSE_NONE;
    }
    cause_signature(reason, signature);
    a->signature = name_hash_of(signature);
    return cause_of_job(end, reason, a->stopped_by_us);
}

static void on_describe(struct world *w, struct ctl *c, const struct call *k)
{
    struct live *a = live_get(c, k->attempt);
    if (k->answer == ANSWER_NOT_FOUND) {
        live_fact(w, c, k->attempt,
                  &(struct fact){.kind = FACT_NOT_FOUND, .at_us = a->describe_sent_us});
        return;
    }
    if (k->answer != ANSWER_OK) {
        fact_of(w, c, k->attempt, FACT_DESCRIBE_FAILED, CAUSE_NONE);
        return;
    }
    struct fact f = {.kind = FACT_DESCRIBED,
                     .at_us = ctl_boot(w, c),
                     .job = {.status = k->seen.status,
                             .phase = k->seen.phase,
                             .ours = k->ours,
                             .modified = k->seen.modified}};
    if (k->ours) {
        a->seen = k->seen;
        f.cause = cause_of_end(a, &k->seen);
    }
    if (k->ours && k->seen.started != 0) {
        int stage = TASK_STAGE(w, a->row.task);
        capacity_ladder_worked(&c->mem[stage].place, &w->stage[stage], a->row.rung,
                               a->row.subnet_i);
        if (k->seen.phase == PHASE_RUNNING &&
            SIM_EPOCH_US + w->now_us - k->seen.started > 10 * MINUTE) {
            breaker_passed(&c->mem[stage].breaker);
        }
    }
    if (k->ours && k->seen.phase == PHASE_RUNNING) {
        a->run_from_us = k->seen.modified;
    }
    live_fact(w, c, k->attempt, &f);
}

/* It answers again: what has waited may be tried. */
static void answers_again(struct world *w, struct ctl *c)
{
    if (c->calls_fail) {
        c->calls_fail = false;
        retry_budget_init(&c->retries, RETRY_BUDGET_BURST, RETRY_BUDGET_TRICKLE_US, ctl_boot(w, c));
        c->tally.refills++;
        c->act = true;
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
        struct live *a = NULL;
        const struct intent_seen *in = judge_intent(w, w->aws.jobs[l->job].name_hash);
        if (in != NULL) { /* by its name; the judge's index only spares a search */
            a = live_get(c, in->id);
        }
        if (a == NULL || a->row.name_hash != w->aws.jobs[l->job].name_hash) {
            continue;
        }
        live_fact(w, c, a->id,
                  &(struct fact){
                      .kind = FACT_LISTED,
                      .at_us = ctl_boot(w, c),
                      .job = {.status = l->status, .phase = l->phase, .modified = l->modified}});
    }
    if (c->leading && c->hold) {
        adopt_listed(w, c, k);
    }
}

static void on_quota(struct world *w, struct ctl *c, const struct call *k)
{
    c->quota_reading = false;
    if (k->answer != ANSWER_OK) {
        if (c->slots[0].quota < 0) { /* nothing starts before this: ask again soon */
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
    for (int i = 0; i < w->kinds; i++) {
        quota_ledger_quota_read(&c->slots[i], k->quota[i]);
        c->slots[i].warm_quota = k->warm_quota[i];
    }
    for (int m = 0; m < MARKET_COUNT; m++) {
        c->account.total[m].limit = k->total_quota[m];
    }
    c->account.per_job = k->per_job;
    c->account.longest_run_s = k->longest_run_s;
    c->account.volume_gb = k->volume_gb;
    w->judge.told_per_job = k->per_job;
    w->judge.told_run_s = k->longest_run_s;
    w->judge.told_volume_gb = k->volume_gb;
    c->decide = true;
}

/* Does SageMaker answer at all? After a minute in which it did not, what is known of it is old. */
static void hear(struct world *w, struct ctl *c, const struct call *k)
{
    bool good = k->answer == ANSWER_OK || k->answer == ANSWER_IN_USE ||
                k->answer == ANSWER_REFUSED || k->answer == ANSWER_NOT_FOUND;
    int64_t now_us = ctl_boot(w, c);
    if (k->kind == CALL_VERIFY || k->kind == CALL_PROGRESS) {
        return; /* the object store */
    }
    if (good && c->failing_since_us != 0 && now_us - c->failing_since_us > MINUTE) {
        c->well_since_us = now_us;
    }
    c->failing_since_us = good ? 0 : c->failing_since_us != 0 ? c->failing_since_us : now_us;
}

void execute_reply(struct world *w, struct ctl *c, struct call *k)
{
    hear(w, c, k);
    switch ((enum call_kind)k->kind) {
    case CALL_LIST:
        on_list(w, c, k);
        return;
    case CALL_QUOTA:
        on_quota(w, c, k);
        return;
    case CALL_UPDATE:
        pools_reply(w, c, k);
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
    if (live_get(c, k->attempt) == NULL) {
        if (k->kind == CALL_DESCRIBE) {
            pools_reply(w, c, k);
        }
    } else if (k->kind == CALL_CREATE) {
        on_create(w, c, k);
    } else if (k->kind == CALL_DESCRIBE) {
        on_describe(w, c, k);
    } else if (k->kind == CALL_STOP) {
        fact_of(w, c, k->attempt, k->answer == ANSWER_OK ? FACT_STOP_OK : FACT_STOP_FAILED,
                CAUSE_NONE);
    } else if (k->kind == CALL_VERIFY) {
        struct live *a = live_get(c, k->attempt);
        a->signature = k->good ? a->signature : name_hash_of("short output");
        fact_of(w, c, k->attempt, k->answer == ANSWER_OK ? FACT_VERIFIED : FACT_VERIFY_FAILED,
                k->good ? CAUSE_NONE : CAUSE_SHORT_OUTPUT);
    }
}

void execute_observe(struct world *w, struct ctl *c)
{
    usec_t oldest = USEC_NEVER;
    hang_ask(w, c);
    if (c->listing) {
        return;
    }
    for (size_t i = 0; i < c->live_n; i++) {
        oldest = MIN(oldest, c->live[i].row.intended_us);
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
