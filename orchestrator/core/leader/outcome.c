/* See outcome.h. */
#include "outcome.h"
#include "attempt.h"
#include "budget_state.h"
#include "core/failure/retry_policy.h"
#include "core/money/cost.h"
#include "job_phases.h"
#include "pool_life.h"
#include "rows_read.h"
#include "run_rest.h"
#include "stage_history.h"
#include <stdio.h>
#include <stdlib.h>

/* How often in a row the task has failed like this, this time included. */
static int same_failures(const struct task_change_row *change, uint64_t signature)
{
    return change != NULL && change->signature_hash == signature ? change->same + 1 : 1;
}

/* Does the part's own cap still pay for the next attempt? One that waits for money it will never
 * have only stands in the way of the others. */
static bool cap_pays(struct leader_state *s, const struct live_attempt *a,
                     const struct retry_state *next, musd_t spent_musd)
{
    const struct spec_stage *stage = a->stage->spec;
    const struct live_slots *slots =
        leader_state_slots(s, stage->instance_type[next->instance_type_i],
                           stage->spot ? MARKET_SPOT : MARKET_ON_DEMAND);
    musd_t cap_musd = a->stage->row.per_task_musd;
    if (cap_musd < 0 || slots->s.price_musd_per_hour < 0) {
        return true;
    }
    bool longer = next->max_runtime_s > stage->max_runtime_s;
    int64_t least_s = longer ? next->max_runtime_s : stage->min_runtime_s;
    int64_t fits_s = cost_runtime_that_fits(slots->s.price_musd_per_hour, stage->instance_count, 0,
                                            cap_musd - spent_musd);
    return fits_s >= MAX(least_s, INT64_C(1));
}

static struct retry_state tried(const struct live_attempt *a, enum cause cause, bool ran,
                                const struct task_change_row *change)
{
    bool counts = retry_counts_in(a->stage->spec, cause, ran);
    struct retry_state now = {.attempts = a->row.task_attempts + (counts ? 1 : 0), .ran = ran};
    if (change != NULL) {
        memcpy(now.tries, change->tries, sizeof now.tries);
        int i = change->instance_type_i; /* a row may say a rung that the ladder does not have */
        now.instance_type_i = i >= 0 && i < a->stage->spec->instance_type_n ? i : 0;
        now.volume_gb = MAX(0, change->volume_gb);
        now.max_runtime_s = change->max_runtime_s;
    }
    return now;
}

static struct retry_bounds bounds_of(struct leader_state *s, const struct spec_stage *stage)
{
    struct retry_bounds b = {.run_s = s->account.longest_run_s, .volume_gb = s->account.volume_gb};
    for (int i = 0; i < stage->instance_type_n; i++) {
        const struct live_slots *slots = leader_state_slots(
            s, stage->instance_type[i], stage->spot ? MARKET_SPOT : MARKET_ON_DEMAND);
        b.rung_never[i] = quota_ledger_can_ever(&slots->s, &s->account, stage->instance_count, 0,
                                                0) == WAIT_QUOTA_TOO_SMALL;
    }
    return b;
}

/* What the task's next attempt has to know of those before it. */
static struct task_change_row change_of(const struct live_attempt *a,
                                        const struct retry_decision *d,
                                        const struct task_change_row *before, uint64_t signature,
                                        int same)
{
    bool fresh = d->counts || before == NULL; /* else the last counted failure stays the last */
    struct task_change_row change = {.task_id = a->row.task_id,
                                     .campaign_id = a->row.campaign_id,
                                     .instance_type_i = d->next.instance_type_i,
                                     .volume_gb = d->next.volume_gb,
                                     .max_runtime_s = d->next.max_runtime_s,
                                     .signature_hash = fresh ? signature : before->signature_hash,
                                     .same = fresh ? same : before->same};
    memcpy(change.tries, d->next.tries, sizeof change.tries);
    return change;
}

/* What the task's ended attempts cost or keep reserved, this one included. */
static musd_t spent_with(const struct task_change_row *before, const struct pending_record *p)
{
    musd_t own_musd = p->account.spent_musd + p->account.reserved_musd, sum_musd;
    bool fits = add_i64(before != NULL ? before->spent_musd : 0, own_musd, &sum_musd);
    return fits ? sum_musd : INT64_MAX;
}

/* The next attempt continues the run from its checkpoint. Nothing failed: this one does not count,
 * for the breaker neither, and nothing is waited for. */
static void go_on(struct leader_state *s, const struct live_attempt *a,
                  const struct task_change_row *change, int64_t rest_s, usec_t now_us,
                  struct pending_record *p, struct outcome_notes *notes)
{
    struct retry_decision d = {.retry = true, .next = tried(a, p->r.cause, false, change)};
    d.next.max_runtime_s = rest_s;
    notes->goes_on_s = rest_s;
    notes->spent_musd = spent_with(change, p);
    notes->at_cap = !cap_pays(s, a, &d.next, notes->spent_musd);
    p->r.task_to = notes->at_cap ? TASK_FAILED : TASK_WAITING;
    if (!notes->at_cap) {
        p->ran = false;
        p->r.cause = CAUSE_NONE;
        p->r.not_before_us = now_us;
        p->change = change_of(a, &d, change, 0, 0);
        p->change.spent_musd = notes->spent_musd;
    }
}

/* Tried again or failed for good, by the cause's row; set aside when it alone fails in this way. */
static void retry_or_fail(struct leader_state *s, const struct live_attempt *a, usec_t now_us,
                          struct pending_record *p, struct outcome_notes *notes)
{
    const struct task_change_row *change = leader_state_change(s, a->row.task_id, false);
    int64_t rest_s = leader_run_rest_s(a, p->r.cause, change);
    if (rest_s > 0) {
        go_on(s, a, change, rest_s, now_us, p, notes);
        return;
    }
    struct retry_state now = tried(a, p->r.cause, p->ran, change);
    struct retry_decision d;
    const struct retry_bounds bounds = bounds_of(s, a->stage->spec);
    retry_decide(a->stage->spec, p->r.cause, &now, &bounds, &s->rng, &d);
    uint64_t signature = stage_history_signature(p->r.cause, p->signature);
    notes->same = d.counts ? same_failures(change, signature) : 0;
    notes->set_aside = d.retry && d.counts &&
                       breaker_quarantines(&a->stage->breaker, &a->stage->rules, notes->same);
    notes->spent_musd = spent_with(change, p);
    notes->at_cap = d.retry && !cap_pays(s, a, &d.next, notes->spent_musd);
    bool last = d.retry && a->row.n >= ATTEMPT_N_RETRIED;
    if (last) {
        (void)snprintf(p->reason, sizeof p->reason, "given up after %d attempts; the last: %.900s",
                       a->row.n, a->reason);
    }
    p->r.task_counts = d.counts;
    p->r.task_to =
        d.retry && !notes->set_aside && !notes->at_cap && !last ? TASK_WAITING : TASK_FAILED;
    if (p->r.task_to == TASK_WAITING) {
        p->r.not_before_us = now_us + d.wait_us;
        p->change = change_of(a, &d, change, signature, notes->same);
        p->change.spent_musd = notes->spent_musd;
    }
}

/* Without a readable spec nothing says how often to try: what ran has failed for good, until a
 * person retries it; what never ran waits. */
static void without_spec(struct pending_record *p)
{
    p->r.task_counts = p->ran;
    p->r.task_to = p->ran ? TASK_FAILED : TASK_WAITING;
}

/* The task's fate when its attempt ended. */
static void decide_task(struct leader_state *s, const struct live_attempt *a,
                        const struct protocol_effect *e, usec_t now_us, struct pending_record *p,
                        struct outcome_notes *notes)
{
    bool cancelled = a->campaign->row.wanted == WANTED_CANCEL;
    bool hung = a->row.stop_cause != CAUSE_NONE && !cancelled;
    /* The job ended by itself and was judged: a pause meanwhile does not make it free. */
    bool judged = e->from == ATTEMPT_VERIFYING && !cancelled;
    p->r.task_moves = true;
    if (a->p.state == ATTEMPT_SUCCEEDED) {
        p->r.task_to = TASK_DONE;
        p->r.task_counts = true;
        return;
    }
    if (!a->p.wanted && !hung && !judged) {
        p->r.task_to = cancelled ? TASK_CANCELLED : TASK_WAITING;
        p->r.cause = CAUSE_NONE;
        return;
    }
    p->r.cause = e->cause != CAUSE_NONE ? e->cause : CAUSE_UNKNOWN;
    if (hung && p->r.cause == CAUSE_STOPPED) {
        p->r.cause = a->row.stop_cause;
    }
    p->ran = a->p.state == ATTEMPT_FAILED && (a->row.started_us > 0 || a->billable_s > 0);
    if (a->stage->spec == NULL) {
        without_spec(p);
        return;
    }
    retry_or_fail(s, a, now_us, p, notes);
}

/* A part with a cap of its own keeps what it has cost, though nothing was learned: another leader
 * has to know it, and a person may try it again. */
static void keep_spent(struct leader_state *s, const struct live_attempt *a,
                       struct pending_record *p)
{
    bool again = p->r.task_to == TASK_WAITING || p->r.task_to == TASK_FAILED;
    if (p->change.task_id != 0 || a->stage->row.per_task_musd < 0 || !again ||
        p->account.spent_musd + p->account.reserved_musd == 0) {
        return;
    }
    const struct task_change_row *change = leader_state_change(s, a->row.task_id, false);
    musd_t spent_musd = spent_with(change, p);
    p->change = change != NULL ? *change
                               : (struct task_change_row){.task_id = a->row.task_id,
                                                          .campaign_id = a->row.campaign_id};
    p->change.spent_musd = spent_musd;
}

/* It was adopted before the price of its type was known: it has no cost. */
static bool unpriced(struct leader_state *s, const struct live_attempt *a)
{
    return a->row.price_musd_per_hour == 0 &&
           leader_state_slots(s, a->row.instance_type, a->row.market)->s.price_musd_per_hour != 0;
}

static void cost_of_job(struct leader_state *s, const struct live_attempt *a,
                        struct attempt_record *r, struct outcome_notes *notes)
{
    r->settle = true;
    r->billable_s = cost_billable_s(a->billable_s, a->row.started_us, a->row.ended_us,
                                    a->row.instances, &r->estimated);
    if (unpriced(s, a)) { /* what is estimated for nothing is nothing: its bill only adds to it */
        r->billable_s = r->estimated ? 0 : r->billable_s;
        r->estimated = true;
    }
    if (!cost_of_seconds(a->row.price_musd_per_hour, r->billable_s, &r->cost_musd,
                         &notes->cost_error)) {
        r->cost_musd = 0;
        notes->cost_overflow = true;
    }
}

/* What becomes of the pool when the attempt releases its slots. */
static void move_pool(const struct leader_state *s, const struct live_attempt *a, usec_t now_us,
                      struct attempt_record *r, struct outcome_notes *notes)
{
    const struct warm_pool_report *seen = &a->pool_seen;
    bool ran = r->settle && a->row.started_us > 0;
    bool reused = seen->status == WARM_POOL_REUSED && seen->retained_s >= 0; /* else asked again */
    r->pool_moves = true;
    r->pool_to = POOL_AVAILABLE; /* unless we know better: it holds its slots until we do */
    if (!r->settle || (!ran && seen->status == WARM_POOL_NONE)) {
        r->pool_to = POOL_TERMINATED; /* no job of ours ended, so none has left a pool */
    } else if (reused || seen->status == WARM_POOL_TERMINATED) {
        r->pool_to = seen->status == WARM_POOL_REUSED ? POOL_REUSED : POOL_TERMINATED;
        r->retained_s = MAX(0, seen->retained_s);
        r->frees_pool_id =
            r->pool_to == POOL_REUSED ? leader_pool_meant(s, a->pool, seen->reused_by) : 0;
        if (__builtin_mul_overflow(r->retained_s, (int64_t)a->row.instances, &r->warm_s) ||
            !cost_of_seconds(leader_pool_price(s, a->row.instance_type, a->row.price_musd_per_hour),
                             r->warm_s, &r->warm_musd, &notes->cost_error)) {
            r->warm_s = r->warm_musd = 0;
            notes->cost_overflow = true;
        }
    } else {
        usec_t from = a->row.ended_us > 0 ? a->row.ended_us : now_us + s->clock.aws_ahead_us;
        r->pool_expires_us = from + a->row.keep_alive_s * USEC_PER_SEC;
    }
}

/* What is kept reserved for a pool that is still there; by the price that its end is booked by. */
static musd_t keep_for_pool(const struct leader_state *s, const struct live_attempt *a,
                            const struct attempt_record *r)
{
    struct err ignored = ERR_INIT;
    musd_t keep = 0;
    if (!r->pool_moves) {
        return 0;
    }
    if (r->pool_to != POOL_AVAILABLE) {
        return r->warm_musd;
    }
    musd_t price = leader_pool_price(s, a->row.instance_type, a->row.price_musd_per_hour);
    return cost_of_seconds(price, a->row.keep_alive_s * a->row.instances, &keep, &ignored)
               ? keep
               : INT64_MAX;
}

/* The ledger's entries for what the attempt returns now; the account as it is after them. */
static void book(const struct leader_state *s, const struct live_attempt *a,
                 struct pending_record *p, struct outcome_notes *notes)
{
    struct attempt_record *r = &p->r;
    bool open = r->pool_moves && r->pool_to == POOL_AVAILABLE;
    bool ok = true;
    int n = 0;
    if (r->settle) {
        ok =
            ledger_settle_job(&p->account, r->attempt_id, r->cost_musd, r->billable_s, r->estimated,
                              keep_for_pool(s, a, r), r->entries, &n, &notes->book_error);
        r->entries_n = n;
    }
    if (ok && !open) {
        ok = ledger_close(&p->account, r->attempt_id, r->warm_musd, r->warm_s,
                          r->entries + r->entries_n, &n, &notes->book_error);
        r->entries_n += n;
    }
    notes->not_booked = !ok;
    r->open_musd = p->account.reserved_musd;
}

static struct attempt_record observed(const struct live_attempt *a, const struct protocol_effect *e)
{
    struct attempt_record r = {.attempt_id = a->row.id,
                               .campaign_id = a->row.campaign_id,
                               .project_id = a->campaign->row.project_id,
                               .stage_id = a->row.stage_id,
                               .task_id = a->row.task_id,
                               .seq = a->row.seq,
                               .from = e->changed ? e->from : a->p.state,
                               .to = a->p.state,
                               .cause = e->cause,
                               .failed_as =
                                   a->p.state == ATTEMPT_VERIFYING ? a->p.failed_as : CAUSE_NONE,
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
    (void)snprintf(r.instance_type, sizeof r.instance_type, "%s", a->row.instance_type);
    if (a->row.started_us > 0 && a->row.ended_us > a->row.started_us) {
        r.run_seconds = (a->row.ended_us - a->row.started_us) / USEC_PER_SEC;
    }
    return r;
}

void leader_plan_record(struct leader_state *s, const struct live_attempt *a,
                        const struct protocol_effect *e, usec_t now_us, struct pending_record *ret,
                        struct outcome_notes *ret_notes)
{
    *ret_notes = (struct outcome_notes){.cost_error = ERR_INIT, .book_error = ERR_INIT};
    memset(ret, 0, sizeof *ret);
    ret->r = observed(a, e);
    ret->account = a->account;
    ret->alert = e->alert;
    (void)snprintf(ret->arn, sizeof ret->arn, "%s", a->arn);
    (void)snprintf(ret->reason, sizeof ret->reason, "%s", a->reason);
    (void)snprintf(ret->artifacts, sizeof ret->artifacts, "%s", a->artifacts);
    ret->placed = a->placed;
    if (e->release_slot) {
        if (e->settle) {
            cost_of_job(s, a, &ret->r, ret_notes);
            leader_bill_phases(a, &ret->r);
        }
        if (a->pool != NULL) {
            move_pool(s, a, now_us, &ret->r, ret_notes);
        }
        book(s, a, ret, ret_notes);
    }
    if (e->task_ends) {
        if (a->p.state != ATTEMPT_SUCCEEDED) {
            cause_signature(str_of(a->reason), ret->signature);
        }
        decide_task(s, a, e, now_us, ret, ret_notes);
        keep_spent(s, a, ret);
    }
}

struct attempt_record leader_record_row(const struct pending_record *p)
{
    struct attempt_record row = p->r;
    /* NULL: as it is; what an earlier trouble left there is not that of a success */
    row.reason = p->reason[0] != '\0' || p->r.to == ATTEMPT_SUCCEEDED ? p->reason : NULL;
    row.arn = p->arn[0] != '\0' ? p->arn : NULL;
    row.artifacts = p->placed ? p->artifacts : NULL;
    row.signature = p->signature;
    row.manifest_json = p->manifest;
    row.evidence_json = p->evidence;
    row.change = p->change.task_id != 0 ? &p->change : NULL;
    return row;
}

void leader_alert_text(const struct leader_state *s, const struct pending_record *p, char *ret,
                       size_t size)
{
    const struct live_attempt *a = leader_state_attempt(s, p->r.attempt_id);
    ASSERT(a != NULL);
    (void)snprintf(ret, size, "part %d: job %s is %s and needs a person: %s", p->r.seq,
                   a->row.name.s, attempt_state_name(p->r.to),
                   p->reason[0] != '\0' ? p->reason : "AWS answers nothing that settles it");
}

/* What the next attempt has to know of this one; at least what it has cost, whatever became of the
 * part: a person may try it again. */
static void remember(struct leader_state *s, const struct live_attempt *a,
                     const struct pending_record *p)
{
    struct task_change_row *change = leader_state_change(s, a->row.task_id, p->change.task_id != 0);
    if (p->change.task_id != 0) {
        *change = p->change;
    } else if (change != NULL) {
        change->spent_musd = spent_with(change, p);
    }
}

static void task_moved(struct leader_state *s, struct live_attempt *a,
                       const struct pending_record *p)
{
    task_counts_move(a->campaign, a->stage, TASK_ACTIVE, p->r.task_to, 1);
    if (p->r.task_to == TASK_WAITING) {
        rows_part_waits(a->campaign, a->stage,
                        &(struct ready_queue_task){.task_id = a->row.task_id,
                                                   .not_before_us = p->r.not_before_us,
                                                   .seq = (uint32_t)a->row.seq,
                                                   .size_mb = size_mb_of(a->row.size)});
    }
    remember(s, a, p);
}

/* The attempt's pool moves as its row did, and one that it or the job that took its pool was
 * intended on and did not take stands alone again. Returns the pool when it is over. */
static struct live_pool *pools_moved(struct leader_state *s, struct live_slots *slots,
                                     struct live_attempt *a, const struct pending_record *p,
                                     usec_t now_us, int64_t boot_us)
{
    struct live_pool *own = a->pool;
    leader_pools_stand_alone(s, slots, a, p);
    if (own == NULL || !p->r.pool_moves) {
        return NULL;
    }
    if (p->r.pool_to != POOL_AVAILABLE) {
        return own;
    }
    slots_idle(slots, a->row.instances);
    pool_set_state(own, POOL_AVAILABLE);
    own->row.expires_us = p->r.pool_expires_us;
    leader_pool_timed(s, own, now_us);
    own->row.available_us = now_us;
    own->account = p->account;
    own->attempt = NULL;
    own->seen = a->pool_seen.status == WARM_POOL_AVAILABLE;
    own->look_now = !own->seen;
    own->described_us = own->seen ? boot_us : 0;
    a->pool = NULL;
    return NULL;
}

static struct live_pool *released(struct leader_state *s, struct live_attempt *a,
                                  const struct pending_record *p, usec_t now_us, int64_t boot_us)
{
    struct live_slots *slots = leader_state_slots(s, a->row.instance_type, a->row.market);
    slots_release(slots, a->row.instances);
    budget_state_move(s, a->campaign, a->stage,
                      budget_state_reserved_by(p->r.entries, p->r.entries_n),
                      budget_state_spent_by(p->r.entries, p->r.entries_n), p->r.warm_musd);
    struct live_pool *over = pools_moved(s, slots, a, p, now_us, boot_us);
    a->account = p->account;
    a->row.holds = false;
    budget_state_freed(s, a->campaign->row.project_id, a->campaign);
    return over;
}

void leader_apply_record(struct leader_state *s, struct pending_record *p, usec_t now_us,
                         int64_t boot_us, struct record_applied *ret)
{
    struct live_attempt *a = leader_state_attempt(s, p->r.attempt_id);
    ASSERT(a != NULL && a->recording);
    *ret = (struct record_applied){.ended = p->r.task_moves};
    attempt_set_state(a, p->r.to);
    a->recording = false;
    free(p->manifest);
    free(p->evidence);
    p->manifest = p->evidence = NULL;
    if (p->r.release) {
        ret->ended_pool = released(s, a, p, now_us, boot_us);
        s->bills_unread |= p->r.settle && p->r.estimated;
    }
    stage_history_moved(s, a, now_us);
    if (p->r.task_moves) {
        task_moved(s, a, p);
        ret->trips = stage_history_ended(a, p->r.to, p->r.cause, p->ran, p->signature, now_us);
        s->look_at_db = true; /* the stage or the campaign may have ended */
    }
    s->decide = s->act = true;
}
