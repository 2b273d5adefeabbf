/* See outcome.h. */
#include "outcome.h"
#include "attempt.h"
#include "calls.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "core/leader/outcome.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "pool_life.h"

static void log_notes(const struct live_attempt *a, const struct pending_record *p,
                      const struct outcome_notes *n)
{
    if (n->cost_overflow) {
        log_event(LOG_ERROR, "cost_overflow", LF_S("job", a->row.name.s), LF_ERR(&n->cost_error));
    }
    if (n->not_booked) {
        log_event(LOG_ERROR, "not_booked", LF_S("job", a->row.name.s), LF_ERR(&n->book_error));
    }
    if (n->at_cap) {
        log_event(LOG_WARN, "part_at_its_cap", LF_S("job", a->row.name.s),
                  LF_I("spent_micro_usd", n->spent_musd));
    }
    if (n->set_aside) {
        log_event(LOG_WARN, "part_set_aside", LF_S("job", a->row.name.s), LF_I("failures", n->same),
                  LF_S("signature", p->signature));
    }
}

void record_push(struct live_attempt *a, const struct protocol_effect *e)
{
    struct controller *c = a->io->c;
    struct outcome_notes notes;
    struct pending_record p;
    leader_plan_record(&c->state, a, e, clock_wall_us(), &p, &notes);
    log_notes(a, &p, &notes);
    leader_push_record(&c->state, a, &p);
}

static bool write_alerts(struct controller *c, struct err *err)
{
    char text[1400];
    for (size_t i = 0; i < c->state.records_n; i++) {
        const struct pending_record *p = &c->state.records[i];
        if (p->alert) {
            leader_alert_text(&c->state, p, text, sizeof text);
            if (!store_alert(c->store, p->r.campaign_id, text, err)) {
                return false;
            }
        }
    }
    return true;
}

static bool write_all(struct controller *c, void *arg, struct err *err)
{
    struct attempt_record *rows = arg;
    for (size_t i = 0; i < c->state.records_n; i++) {
        rows[i] = leader_record_row(&c->state.records[i]);
    }
    if (!write_alerts(c, err)) {
        return false;
    }
    if (FP("record.in_transaction")) {
        return err_set(err, ERR_DATABASE, "failpoint");
    }
    return store_record(c->store, rows, c->state.records_n, err);
}

static void count(const struct attempt_record *r)
{
    if (r->release) {
        metric_add(METRIC_COST_MUSD, r->cost_musd + r->warm_musd);
        metric_add(METRIC_JOBS_ENDED, r->settle);
    }
    if (r->task_moves && r->task_to != TASK_WAITING) {
        metric_add(METRIC_PARTS_DONE, r->task_to == TASK_DONE);
        metric_add(METRIC_PARTS_FAILED, r->task_to == TASK_FAILED);
    }
}

static void committed(struct controller *c, struct pending_record *p)
{
    struct live_attempt *a = leader_state_attempt(&c->state, p->r.attempt_id);
    struct live_pool *over = NULL;
    leader_apply_record(&c->state, p, clock_wall_us(), clock_boot_us(), &over);
    if (over != NULL) {
        pool_remove(c, over);
    }
    count(&p->r);
    stage_history_moved(&c->state, a, clock_wall_us());
    if (p->r.task_moves) {
        if (stage_history_ended(a, p->r.to, p->r.cause, p->ran, p->signature, clock_wall_us())) {
            log_event(LOG_WARN, "breaker_tripped", LF_I("stage", a->stage->row.id),
                      LF_S("cause", cause_name(p->r.cause)), LF_S("signature", p->signature));
        }
        attempt_remove(c, a);
    }
}

bool record_flush(struct controller *c)
{
    size_t n = c->state.records_n;
    if (n == 0) {
        return true;
    }
    if (FP("record.before")) {
        leader_lose(c, "failpoint", NULL);
        return false;
    }
    struct attempt_record *rows = xcalloc(n, sizeof *rows);
    bool ok = leader_tx(c, write_all, rows);
    free(rows);
    if (!ok) {
        return false;
    }
    if (FP("record.after_commit")) {
        leader_lose(c, "failpoint", NULL);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        committed(c, &c->state.records[i]);
    }
    ASSERT(c->state.records_n == n);
    c->state.records_n = 0;
    return true;
}
