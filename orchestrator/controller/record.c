/* Record: what the protocol concluded becomes rows, in batches, and only then changes the view. */
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "core/cause.h"
#include "core/cost.h"
#include "ctl.h"
#include "metrics.h"
#include <stdio.h>

/* The task's fate when its attempt ended. */
static void decide_task(struct live_attempt *a, const struct protocol_effect *e,
                        struct pending_record *p)
{
    struct controller *c = a->c;
    struct task_change_row *change = view_change(c, a->row.task_id, false);
    struct retry_state now = {.attempts = a->row.task_attempts};
    struct retry_decision d;
    p->r.task_moves = true;
    if (a->p.state == ATTEMPT_SUCCEEDED) {
        p->r.task_to = TASK_DONE;
        p->r.task_counts = true;
        return;
    }
    if (!a->p.wanted) {
        bool cancelled = a->campaign->row.wanted == WANTED_CANCEL;
        p->r.task_to = cancelled ? TASK_CANCELLED : TASK_WAITING;
        p->r.cause = CAUSE_NONE;
        return;
    }
    if (change != NULL) {
        memcpy(now.tries, change->tries, sizeof now.tries);
        now.instance_type_i = change->instance_type_i;
        now.volume_gb = change->volume_gb;
        now.max_runtime_s = change->max_runtime_s;
    }
    p->r.cause = e->cause != CAUSE_NONE ? e->cause : CAUSE_UNKNOWN;
    retry_decide(a->stage->spec, p->r.cause, &now, &c->rng, &d);
    p->r.task_counts = d.counts;
    p->r.task_to = d.retry ? TASK_WAITING : TASK_FAILED;
    if (d.retry) {
        p->r.not_before_us = clock_wall_us() + d.wait_us;
        p->change = (struct task_change_row){.task_id = a->row.task_id,
                                             .campaign_id = a->row.campaign_id,
                                             .instance_type_i = d.next.instance_type_i,
                                             .volume_gb = d.next.volume_gb,
                                             .max_runtime_s = d.next.max_runtime_s};
        memcpy(p->change.tries, d.next.tries, sizeof p->change.tries);
    }
}

static void settle(struct live_attempt *a, struct pending_record *p)
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

static void add_entry(struct attempt_record *r, enum ledger_kind kind, enum ledger_account from,
                      enum ledger_account to, musd_t musd, int64_t seconds)
{
    r->entries[r->entries_n++] = (struct ledger_entry){.attempt_id = r->attempt_id,
                                                       .kind = kind,
                                                       .from = from,
                                                       .to = to,
                                                       .amount_musd = musd,
                                                       .seconds = seconds};
}

/* The reservation goes back, less what the job cost. */
static void book(struct attempt_record *r)
{
    if (r->cost_musd > r->reserved_musd) {
        add_entry(r, LEDGER_OVERRUN, LEDGER_BUDGET, LEDGER_RESERVED,
                  r->cost_musd - r->reserved_musd, 0);
    }
    if (r->settle) {
        add_entry(r, LEDGER_SETTLE, LEDGER_RESERVED, LEDGER_SPENT, r->cost_musd, r->billable_s);
    }
    add_entry(r, LEDGER_RELEASE, LEDGER_RESERVED, LEDGER_BUDGET,
              MAX(0, r->reserved_musd - r->cost_musd), 0);
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
    if (e->release_slot && e->settle) {
        settle(a, p);
    }
    if (e->release_slot) {
        book(r);
    }
    if (e->task_ends) {
        decide_task(a, e, p);
        cause_signature(str_of(a->reason), p->signature);
        p->manifest = TAKE(a->manifest);
    }
}

static bool ends_in_records(const struct live_attempt *a)
{
    bool over = false;
    for (size_t i = 0; i < a->c->records_n; i++) {
        over |= a->c->records[i].attempt == a && a->c->records[i].r.task_moves;
    }
    return over;
}

void record_push(struct live_attempt *a, const struct protocol_effect *e)
{
    struct controller *c = a->c;
    if (a->recording) {
        bool over = ends_in_records(a);
        if (!record_flush(c) || over) {
            return; /* the attempt is gone: with the leadership, or by its own end */
        }
    }
    if (c->records_n == c->records_cap) {
        c->records_cap = MAX(64, c->records_cap * 2);
        c->records = xrealloc(c->records, c->records_cap * sizeof *c->records);
    }
    struct pending_record *p = &c->records[c->records_n++];
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
    for (size_t i = 0; i < c->records_n; i++) {
        struct pending_record *p = &c->records[i];
        rows[i] = p->r;
        rows[i].reason = p->reason[0] != '\0' ? p->reason : NULL;
        rows[i].arn = p->arn[0] != '\0' ? p->arn : NULL;
        rows[i].signature = p->signature;
        rows[i].manifest_json = p->manifest;
        rows[i].change = p->change.task_id != 0 ? &p->change : NULL;
    }
    for (size_t i = 0; i < c->records_n; i++) {
        if (c->records[i].alert && !write_alert(c, &c->records[i], err)) {
            return false;
        }
    }
    if (FP("record.in_transaction")) {
        return err_set(err, ERR_DATABASE, "failpoint");
    }
    return store_record(c->store, rows, c->records_n, err);
}

static void task_moved(struct controller *c, const struct pending_record *p)
{
    struct live_attempt *a = p->attempt;
    struct live_stage *ls = a->stage;
    ls->row.counts[TASK_ACTIVE]--;
    ls->row.counts[p->r.task_to]++;
    a->campaign->live--;
    if (p->r.task_to == TASK_WAITING) {
        int64_t size_mb = a->row.size / (1024 * 1024);
        ready_push(ls->ready, &(struct ready_task){.task_id = a->row.task_id,
                                                   .not_before_us = p->r.not_before_us,
                                                   .seq = (uint32_t)a->row.seq,
                                                   .size_mb = (uint32_t)size_mb});
    } else {
        metric_add(p->r.task_to == TASK_DONE ? METRIC_PARTS_DONE : METRIC_PARTS_FAILED,
                   p->r.task_to == TASK_DONE || p->r.task_to == TASK_FAILED);
    }
    if (p->change.task_id != 0) {
        *view_change(c, p->change.task_id, true) = p->change;
    }
}

static void committed(struct controller *c, struct pending_record *p)
{
    struct live_attempt *a = p->attempt;
    struct campaign_row *cr = &a->campaign->row;
    a->row.state = p->r.to;
    a->recording = false;
    free(p->manifest);
    if (p->r.release) {
        musd_t less = p->r.reserved_musd - p->r.cost_musd;
        view_slots_of(c, a->row.instance_type)->row.held -= a->row.instances;
        cr->reserved_musd -= p->r.reserved_musd;
        cr->spent_musd += p->r.cost_musd;
        a->stage->row.reserved_musd -= p->r.reserved_musd;
        a->stage->row.spent_musd += p->r.cost_musd;
        for (size_t i = 0; i < c->campaigns_n; i++) {
            struct campaign_row *other = &c->campaigns[i]->row;
            other->global_used_musd -= less;
            other->project_used_musd -= other->project_id == cr->project_id ? less : 0;
        }
        a->row.holds = false;
        metric_add(METRIC_COST_MUSD, p->r.cost_musd);
        metric_add(METRIC_JOBS_ENDED, p->r.settle);
        a->campaign->budget_held = false;
    }
    if (p->r.task_moves) {
        task_moved(c, p);
        attempt_remove(c, a);
        c->look_at_db = true; /* the stage or the campaign may have ended */
    }
    c->decide = c->act = true;
}

bool record_flush(struct controller *c)
{
    if (c->records_n == 0) {
        return true;
    }
    if (FP("record.before")) {
        leader_lose(c, "failpoint", NULL);
        return false;
    }
    struct attempt_record *rows = xcalloc(c->records_n, sizeof *rows);
    bool ok = leader_tx(c, write_all, rows);
    free(rows);
    if (!ok) {
        return false;
    }
    if (FP("record.after_commit")) {
        leader_lose(c, "failpoint", NULL);
        return false;
    }
    size_t n = c->records_n;
    for (size_t i = 0; i < n; i++) {
        committed(c, &c->records[i]);
    }
    ASSERT(c->records_n == n);
    c->records_n = 0;
    return true;
}
