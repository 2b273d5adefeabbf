/* Record: what the protocol concluded becomes rows, in batches, and only then changes the view. */
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "core/failure/cause.h"
#include "core/money/cost.h"
#include "ctl.h"
#include "metrics.h"
#include <stdio.h>

/* How often in a row the task has failed like this, this time included. */
static int same_failures(const struct task_change_row *change, uint64_t signature)
{
    return change != NULL && change->signature_hash == signature ? change->same + 1 : 1;
}

/* Tried again or failed for good, by the cause's row; set aside when it alone fails in this way. */
/* Does the part's own cap still pay for the next attempt? One that waits for money it will never
 * have only stands in the way of the others. */
static bool cap_pays(struct live_attempt *a, const struct retry_state *next, musd_t spent_musd)
{
    const struct spec_stage *stage = a->stage->spec;
    const struct live_slots *slots =
        leader_state_slots(&a->io->c->state, stage->instance_type[next->instance_type_i],
                           stage->spot ? MARKET_SPOT : MARKET_ON_DEMAND);
    if (stage->per_task_musd < 0 || slots->s.price_musd_per_hour < 0) {
        return true;
    }
    bool longer = next->max_runtime_s > stage->max_runtime_s;
    int64_t least_s = longer ? next->max_runtime_s : stage->min_runtime_s;
    int64_t fits_s = cost_runtime_that_fits(slots->s.price_musd_per_hour, stage->instance_count, 0,
                                            stage->per_task_musd - spent_musd);
    return fits_s >= MAX(least_s, INT64_C(1));
}

static void retry_or_fail(struct live_attempt *a, struct pending_record *p)
{
    struct controller *c = a->io->c;
    const struct task_change_row *change = leader_state_change(&c->state, a->row.task_id, false);
    const struct spec_retry *row = &a->stage->spec->retry[p->r.cause];
    bool counts = row->set ? row->counts : retry_counts(p->r.cause);
    struct retry_state now = {.attempts = a->row.task_attempts + (counts ? 1 : 0)};
    struct retry_decision d;
    if (change != NULL) {
        memcpy(now.tries, change->tries, sizeof now.tries);
        now.instance_type_i = change->instance_type_i;
        now.volume_gb = change->volume_gb;
        now.max_runtime_s = change->max_runtime_s;
    }
    retry_decide(a->stage->spec, p->r.cause, &now, &c->state.rng, &d);
    uint64_t signature = stage_history_signature(p->r.cause, p->signature);
    int same = d.counts ? same_failures(change, signature) : 0;
    bool aside =
        d.retry && d.counts && breaker_quarantines(&a->stage->breaker, &a->stage->rules, same);
    p->r.task_counts = d.counts;
    musd_t spent_musd = (change != NULL ? change->spent_musd : 0) + p->account.spent_musd +
                        p->account.reserved_musd;
    bool paid = !d.retry || cap_pays(a, &d.next, spent_musd);
    p->r.task_to = d.retry && !aside && paid ? TASK_WAITING : TASK_FAILED;
    if (!paid) {
        log_event(LOG_WARN, "part_at_its_cap", LF_S("job", a->row.name.s),
                  LF_I("spent_micro_usd", spent_musd));
    }
    if (aside) {
        log_event(LOG_WARN, "part_set_aside", LF_S("job", a->row.name.s), LF_I("failures", same),
                  LF_S("signature", p->signature));
    }
    if (p->r.task_to == TASK_FAILED) {
        return;
    }
    p->r.not_before_us = clock_wall_us() + d.wait_us;
    p->change = (struct task_change_row){
        .task_id = a->row.task_id,
        .campaign_id = a->row.campaign_id,
        .instance_type_i = d.next.instance_type_i,
        .volume_gb = d.next.volume_gb,
        .max_runtime_s = d.next.max_runtime_s,
        .signature_hash = d.counts || change == NULL ? signature : change->signature_hash,
        .same = d.counts         ? same
                : change != NULL ? change->same
                                 : 0,
        .spent_musd = spent_musd};
    memcpy(p->change.tries, d.next.tries, sizeof p->change.tries);
}

/* The task's fate when its attempt ended. */
static void decide_task(struct live_attempt *a, const struct protocol_effect *e,
                        struct pending_record *p)
{
    bool hung = a->row.stop_cause != CAUSE_NONE && a->campaign->row.wanted != WANTED_CANCEL;
    p->r.task_moves = true;
    if (a->p.state == ATTEMPT_SUCCEEDED) {
        p->r.task_to = TASK_DONE;
        p->r.task_counts = true;
        return;
    }
    if (!a->p.wanted && !hung) {
        bool cancelled = a->campaign->row.wanted == WANTED_CANCEL;
        p->r.task_to = cancelled ? TASK_CANCELLED : TASK_WAITING;
        p->r.cause = CAUSE_NONE;
        return;
    }
    p->r.cause = e->cause != CAUSE_NONE ? e->cause : CAUSE_UNKNOWN;
    if (hung && p->r.cause == CAUSE_STOPPED) {
        p->r.cause = a->row.stop_cause;
    }
    retry_or_fail(a, p);
}

static void cost_of_job(struct live_attempt *a, struct pending_record *p)
{
    struct err err = ERR_INIT;
    bool estimated = false;
    int64_t seconds = cost_billable_s(a->billable_s, a->row.started_us, a->row.ended_us,
                                      a->row.instances, &estimated);
    musd_t cost = 0;
    if (!cost_of_seconds(a->row.price_musd_per_hour, seconds, &cost, &err)) {
        log_event(LOG_ERROR, "cost_overflow", LF_S("job", a->row.name.s), LF_ERR(&err));
    }
    p->r.settle = true;
    p->r.billable_s = seconds;
    p->r.cost_musd = cost;
    p->r.estimated = estimated;
}

/* What becomes of the pool when the attempt lets go of its slots. */
static void move_pool(struct live_attempt *a, const struct protocol_effect *e,
                      struct attempt_record *r)
{
    struct err err = ERR_INIT;
    bool ran = e->settle && a->row.started_us > 0;
    const struct warm_pool_report *seen = &a->pool_seen;
    r->pool_moves = true;
    r->pool_to = POOL_AVAILABLE; /* unless we know better: it holds its slots till we do */
    if (!ran && seen->status == WARM_POOL_NONE) {
        r->pool_to = POOL_TERMINATED;
    } else if (seen->status == WARM_POOL_REUSED || seen->status == WARM_POOL_TERMINATED) {
        r->pool_to = seen->status == WARM_POOL_REUSED ? POOL_REUSED : POOL_TERMINATED;
        r->retained_s = MAX(0, seen->retained_s);
        if (__builtin_mul_overflow(r->retained_s, (int64_t)a->row.instances, &r->warm_s) ||
            !cost_of_seconds(a->row.price_musd_per_hour, r->warm_s, &r->warm_musd, &err)) {
            r->warm_s = r->warm_musd = 0;
            log_event(LOG_ERROR, "cost_overflow", LF_S("job", a->row.name.s), LF_ERR(&err));
        }
    } else {
        usec_t from = a->row.ended_us > 0 ? a->row.ended_us : clock_wall_us();
        r->pool_expires_us = from + a->row.keep_alive_s * USEC_PER_SEC;
    }
}

/* What is kept reserved for a pool that is still there. */
static musd_t keep_for_pool(const struct live_attempt *a, const struct attempt_record *r)
{
    struct err ignored = ERR_INIT;
    musd_t keep = 0;
    bool open = r->pool_moves && r->pool_to == POOL_AVAILABLE;
    if (!r->pool_moves) {
        return 0;
    }
    if (!open) {
        return r->warm_musd;
    }
    return cost_of_seconds(a->row.price_musd_per_hour, a->row.keep_alive_s * a->row.instances,
                           &keep, &ignored)
               ? keep
               : INT64_MAX;
}

/* The ledger's entries for what the attempt gives back now; the account as it is after them. */
static void book(struct live_attempt *a, struct pending_record *p)
{
    struct attempt_record *r = &p->r;
    struct err err = ERR_INIT;
    bool open = r->pool_moves && r->pool_to == POOL_AVAILABLE;
    bool ok = true;
    int n = 0;
    if (r->settle) {
        ok = ledger_settle_job(&p->account, r->attempt_id, r->cost_musd, r->billable_s,
                               r->estimated, keep_for_pool(a, r), r->entries, &n, &err);
        r->entries_n = n;
    }
    if (ok && !open) {
        ok = ledger_close(&p->account, r->attempt_id, r->warm_musd, r->warm_s,
                          r->entries + r->entries_n, &n, &err);
        r->entries_n += n;
    }
    if (!ok) {
        log_event(LOG_ERROR, "not_booked", LF_S("job", a->row.name.s), LF_ERR(&err));
    }
    r->open_musd = p->account.reserved_musd;
}

static void fill(struct live_attempt *a, const struct protocol_effect *e, struct pending_record *p)
{
    struct attempt_record *r = &p->r;
    *r = (struct attempt_record){.attempt_id = a->row.id,
                                 .campaign_id = a->row.campaign_id,
                                 .project_id = a->campaign->row.project_id,
                                 .stage_id = a->row.stage_id,
                                 .task_id = a->row.task_id,
                                 .seq = a->row.seq,
                                 .from = e->changed ? e->from : a->p.state,
                                 .to = a->p.state,
                                 .cause = e->cause,
                                 .created_us = a->created_us,
                                 .started_us = a->row.started_us,
                                 .ended_us = a->row.ended_us,
                                 .release = e->release_slot,
                                 .reserved_musd = a->row.reserved_musd,
                                 .instances = a->row.instances,
                                 .rows_in = a->rows_in,
                                 .successes = a->successes,
                                 .failed_to_download = a->failed_to_download,
                                 .failed_to_resize = a->failed_to_resize,
                                 .bytes = a->bytes};
    (void)snprintf(r->instance_type, sizeof r->instance_type, "%s", a->row.instance_type);
    (void)snprintf(p->arn, sizeof p->arn, "%s", a->arn);
    (void)snprintf(p->reason, sizeof p->reason, "%s", a->reason);
    if (a->row.started_us > 0 && a->row.ended_us > a->row.started_us) {
        r->run_seconds = (a->row.ended_us - a->row.started_us) / USEC_PER_SEC;
    }
    p->account = a->account;
    if (e->release_slot) {
        if (e->settle) {
            cost_of_job(a, p);
        }
        if (a->pool != NULL) {
            move_pool(a, e, r);
        }
        book(a, p);
    }
    if (e->task_ends) {
        cause_signature(str_of(a->reason), p->signature);
        decide_task(a, e, p);
        p->manifest = TAKE(a->manifest);
    }
}

static bool ends_in_records(const struct live_attempt *a)
{
    bool over = false;
    for (size_t i = 0; i < a->io->c->state.records_n; i++) {
        over |= a->io->c->state.records[i].attempt == a && a->io->c->state.records[i].r.task_moves;
    }
    return over;
}

void record_push(struct live_attempt *a, const struct protocol_effect *e)
{
    struct controller *c = a->io->c;
    if (a->recording) {
        bool over = ends_in_records(a);
        if (!record_flush(c) || over) {
            return; /* the attempt is gone: with the leadership, or by its own end */
        }
    }
    if (c->state.records_n == c->state.records_cap) {
        c->state.records_cap = MAX(64, c->state.records_cap * 2);
        c->state.records =
            xrealloc(c->state.records, c->state.records_cap * sizeof *c->state.records);
    }
    struct pending_record *p = &c->state.records[c->state.records_n++];
    memset(p, 0, sizeof *p);
    p->attempt = a;
    fill(a, e, p);
    p->alert = e->alert;
    a->recording = true;
}

static bool write_alert(struct controller *c, const struct pending_record *p, struct err *err)
{
    char text[1400];
    (void)snprintf(text, sizeof text, "part %d: job %s is %s and needs a person: %s", p->r.seq,
                   p->attempt->row.name.s, attempt_state_name(p->r.to),
                   p->reason[0] != '\0' ? p->reason : "AWS answers nothing that settles it");
    return store_alert(c->store, p->r.campaign_id, text, err);
}

/* Pointers into the array are set only now: it may have moved while it grew. */
static bool write_all(struct controller *c, void *arg, struct err *err)
{
    struct attempt_record *rows = arg;
    for (size_t i = 0; i < c->state.records_n; i++) {
        struct pending_record *p = &c->state.records[i];
        rows[i] = p->r;
        rows[i].reason = p->reason[0] != '\0' ? p->reason : NULL;
        rows[i].arn = p->arn[0] != '\0' ? p->arn : NULL;
        rows[i].signature = p->signature;
        rows[i].manifest_json = p->manifest;
        rows[i].change = p->change.task_id != 0 ? &p->change : NULL;
    }
    for (size_t i = 0; i < c->state.records_n; i++) {
        if (c->state.records[i].alert && !write_alert(c, &c->state.records[i], err)) {
            return false;
        }
    }
    if (FP("record.in_transaction")) {
        return err_set(err, ERR_DATABASE, "failpoint");
    }
    return store_record(c->store, rows, c->state.records_n, err);
}

static void task_moved(struct controller *c, const struct pending_record *p)
{
    struct live_attempt *a = p->attempt;
    struct live_stage *ls = a->stage;
    task_counts_move(a->campaign, ls, TASK_ACTIVE, p->r.task_to, 1);
    if (p->r.task_to == TASK_WAITING) {
        int64_t size_mb = a->row.size / (1024 * 1024);
        ready_queue_push(ls->ready, &(struct ready_queue_task){.task_id = a->row.task_id,
                                                               .not_before_us = p->r.not_before_us,
                                                               .seq = (uint32_t)a->row.seq,
                                                               .size_mb = (uint32_t)size_mb});
    } else {
        metric_add(p->r.task_to == TASK_DONE ? METRIC_PARTS_DONE : METRIC_PARTS_FAILED,
                   p->r.task_to == TASK_DONE || p->r.task_to == TASK_FAILED);
    }
    if (p->change.task_id != 0) {
        *leader_state_change(&c->state, p->change.task_id, true) = p->change;
    }
}

/* The attempt's pool moves as its row did, and one it was intended on and did not take stands alone
 * again. */
static void pools_moved(struct controller *c, const struct pending_record *p)
{
    struct live_attempt *a = p->attempt;
    struct live_slots *s = leader_state_slots(&c->state, a->row.instance_type, a->row.market);
    if (a->taken != NULL && a->taken->row.taken_by == a->row.id) {
        a->taken->row.taken_by = 0;
        a->taken->look_now = true;
        slots_idle(s, a->taken->row.instances);
        a->taken = NULL;
    }
    if (a->pool == NULL || !p->r.pool_moves) {
        return;
    }
    if (p->r.pool_to != POOL_AVAILABLE) {
        pool_remove(c, a->pool);
        return;
    }
    slots_idle(s, a->row.instances);
    pool_set_state(a->pool, POOL_AVAILABLE);
    a->pool->row.available_us = clock_wall_us();
    a->pool->row.expires_us = p->r.pool_expires_us;
    a->pool->account = p->account;
    a->pool->attempt = NULL;
    a->pool->seen = a->pool_seen.status == WARM_POOL_AVAILABLE;
    a->pool->look_now = !a->pool->seen;
    a->pool->described_us = a->pool->seen ? clock_boot_us() : 0;
    a->pool = NULL;
}

static void released(struct controller *c, struct pending_record *p)
{
    struct live_attempt *a = p->attempt;
    slots_release(leader_state_slots(&c->state, a->row.instance_type, a->row.market),
                  a->row.instances);
    budget_state_move(c, a->campaign, a->stage,
                      budget_state_reserved_by(p->r.entries, p->r.entries_n),
                      budget_state_spent_by(p->r.entries, p->r.entries_n), p->r.warm_musd);
    pools_moved(c, p);
    a->account = p->account;
    a->row.holds = false;
    metric_add(METRIC_COST_MUSD, p->r.cost_musd + p->r.warm_musd);
    metric_add(METRIC_JOBS_ENDED, p->r.settle);
    budget_state_freed(c, a->campaign);
}

static void committed(struct controller *c, struct pending_record *p)
{
    struct live_attempt *a = p->attempt;
    attempt_set_state(a, p->r.to);
    a->recording = false;
    free(p->manifest);
    if (p->r.release) {
        released(c, p);
    }
    stage_history_moved(&c->state, a, clock_wall_us());
    if (p->r.task_moves) {
        if (stage_history_ended(a, p->r.to, p->r.cause, p->signature, clock_wall_us())) {
            log_event(LOG_WARN, "breaker_tripped", LF_I("stage", a->stage->row.id),
                      LF_S("cause", cause_name(p->r.cause)), LF_S("signature", p->signature));
        }
        task_moved(c, p);
        attempt_remove(c, a);
        c->state.look_at_db = true; /* the stage or the campaign may have ended */
    }
    c->state.decide = c->state.act = true;
}

bool record_flush(struct controller *c)
{
    if (c->state.records_n == 0) {
        return true;
    }
    if (FP("record.before")) {
        leader_lose(c, "failpoint", NULL);
        return false;
    }
    struct attempt_record *rows = xcalloc(c->state.records_n, sizeof *rows);
    bool ok = leader_tx(c, write_all, rows);
    free(rows);
    if (!ok) {
        return false;
    }
    if (FP("record.after_commit")) {
        leader_lose(c, "failpoint", NULL);
        return false;
    }
    size_t n = c->state.records_n;
    for (size_t i = 0; i < n; i++) {
        committed(c, &c->state.records[i]);
    }
    ASSERT(c->state.records_n == n);
    c->state.records_n = 0;
    return true;
}
