/* See outcome.h. */
#include "outcome.h"
#include "attempt.h"
#include "calls.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "core/leader/outcome.h"
#include "core/leader/pool_life.h"
#include "core/leader/record_queue.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "parking.h"
#include "pool_life.h"
#include "store/leader/attempts.h"
#include "store/leader/campaigns.h"
#include "wall.h"

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
    if (n->goes_on_s > 0 && !n->at_cap) {
        log_event(LOG_INFO, "run_goes_on", LF_S("job", a->row.name.s),
                  LF_I("rest_seconds", n->goes_on_s));
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
    leader_plan_record(&c->state, a, e, leader_now(c), &p, &notes);
    log_notes(a, &p, &notes);
    leader_push_record(&c->state, a, &p);
}

static bool write_alert(struct controller *c, const struct pending_record *p, struct err *err)
{
    char text[1400];
    if (!p->alert) {
        return true;
    }
    leader_alert_text(&c->state, p, text, sizeof text);
    return store_alert(c->store, p->r.campaign_id, text, err);
}

/* The records that are written in one transaction. */
struct flush {
    struct pending_record **records;
    struct attempt_record *rows;
    size_t n;
};

static bool write_all(struct controller *c, void *arg, struct err *err)
{
    struct flush *f = arg;
    for (size_t i = 0; i < f->n; i++) {
        f->rows[i] = leader_record_row(f->records[i]);
        if (!write_alert(c, f->records[i], err)) {
            return false;
        }
    }
    if (FP("record.in_transaction")) {
        return err_set(err, ERR_UNAVAILABLE, "failpoint");
    }
    return store_record(c->store, f->rows, f->n, err);
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

static void committed(struct controller *c, struct pending_record *p,
                      const struct attempt_record *row)
{
    struct live_attempt *a = leader_state_attempt(&c->state, p->r.attempt_id);
    struct record_applied then;
    leader_record_written(&c->state, p, row);
    leader_apply_record(&c->state, p, leader_now(c), clock_boot_us(), &then);
    count(&p->r);
    if (then.trips) {
        log_event(LOG_WARN, "breaker_tripped", LF_I("stage", a->stage->row.id),
                  LF_S("cause", cause_name(p->r.cause)), LF_S("signature", p->signature));
    }
    if (then.ended_pool != NULL) {
        pool_remove(c, then.ended_pool);
    }
    if (then.ended) {
        attempt_remove(c, a);
    }
}

static struct parking_subject subject_of(const struct pending_record *p)
{
    return PARKING_ATTEMPT(p->r.campaign_id, p->r.attempt_id);
}

/* One by one: a record that is refused is dropped, its attempt parked and read again from its row
 * when it is due. A record of a locked campaign stays. False: leadership lost. */
static bool flush_each(struct controller *c, const struct flush *all)
{
    for (size_t i = 0; i < all->n && c->leading; i++) {
        struct pending_record *p = all->records[i];
        struct flush one = {.records = &p, .rows = all->rows, .n = 1};
        if (!leader_record_due(&c->state, p, clock_boot_us())) {
            continue;
        }
        if (parking_tx(c, subject_of(p), write_all, &one)) {
            committed(c, p, &one.rows[0]);
            p->over = true;
        } else if (c->leading) {
            leader_record_not_taken(&c->state, p);
        }
    }
    return c->leading;
}

static bool flush_due(struct controller *c, struct flush *f)
{
    struct err err;
    enum tx_batch then = tx_batch_after(leader_try(c, write_all, f, &err));
    if (then == TX_BATCH_LEFT) {
        return false;
    }
    if (then == TX_BATCH_EACH) {
        return flush_each(c, f);
    }
    if (FP("record.after_commit")) {
        leader_lose(c, "failpoint", NULL);
        return false;
    }
    for (size_t i = 0; i < f->n; i++) {
        struct parking_subject who = subject_of(f->records[i]);
        committed(c, f->records[i], &f->rows[i]);
        f->records[i]->over = true;
        parking_done(c, who);
    }
    return c->leading;
}

bool record_flush(struct controller *c)
{
    size_t n = c->state.records_n;
    struct flush f = {.n = 0};
    if (n == 0) {
        return true;
    }
    if (FP("record.before")) {
        leader_lose(c, "failpoint", NULL);
        return false;
    }
    f.records = xcalloc(n, sizeof(struct pending_record *));
    f.rows = xcalloc(n, sizeof *f.rows);
    for (size_t i = 0; i < n; i++) {
        if (leader_record_due(&c->state, &c->state.records[i], clock_boot_us())) {
            f.records[f.n++] = &c->state.records[i];
        }
    }
    bool ok = f.n == 0 || flush_due(c, &f);
    free(f.rows);
    free(f.records);
    ASSERT(!ok || c->state.records_n == n);
    leader_forget_records(&c->state);
    return ok;
}
