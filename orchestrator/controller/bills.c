/* See bills.h. */
#include "bills.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/bills.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "parking.h"
#include "store/leader/bills.h"
#include <stdio.h>
#include <stdlib.h>

struct bill_answer {
    char job_name[64];
    bool there, failed, not_found;
    struct job_description job;
};

struct bill_write {
    struct bill_row row;
    enum bill_fate fate;
    struct bill_correction correction;
};

bool bills_read(struct controller *c, struct err *err)
{
    AUTO_FREE struct bill_row *rows = NULL;
    size_t n = 0;
    if (!view_bills(c->store, &rows, &n, err)) {
        return false;
    }
    leader_take_bills(&c->state, rows, n, clock_boot_us());
    return true;
}

static bool write_bill(struct controller *c, void *arg, struct err *err)
{
    struct bill_write *w = arg;
    bool done = true;
    if (w->fate == BILL_NEVER) {
        return store_bill_give_up(c->store, &w->row, err);
    }
    if (!store_bill_correct(c->store, &w->correction, &done, err)) {
        return false;
    }
    w->fate = done ? BILL_CAME : BILL_GONE;
    return true;
}

/* A stray has nothing that could be set aside: it is tried again. */
static bool written(struct controller *c, struct bill_write *w)
{
    return w->row.attempt_id == 0
               ? leader_tx(c, write_bill, w)
               : parking_tx(c, PARKING_ATTEMPT(w->row.campaign_id, w->row.attempt_id), write_bill,
                            w);
}

static void tell(const struct bill_write *w)
{
    const char *job = w->row.job.s;
    if (w->fate == BILL_CAME) {
        log_event(LOG_INFO, "bill_corrected", LF_S("job", job),
                  LF_I("estimated_micro_usd", w->correction.was_musd),
                  LF_I("cost_micro_usd", w->correction.cost_musd));
    } else {
        log_event(LOG_WARN, "bill_not_corrected", LF_S("job", job),
                  LF_S("why", w->fate == BILL_NEVER ? "it never came" : "its row has moved on"));
    }
}

static void take_answer(struct controller *c)
{
    struct bill_answer *a = c->bill;
    const struct live_bill *b =
        a != NULL && a->there ? leader_bill_of(&c->state, a->job_name) : NULL;
    if (b == NULL) {
        return;
    }
    a->there = false;
    struct bill_write w = {.row = b->row};
    w.fate = leader_plan_bill(b, a->failed || a->not_found ? NULL : &a->job, a->not_found,
                              clock_boot_us(), &w.correction);
    if (w.fate == BILL_CAME || w.fate == BILL_NEVER) {
        if (written(c, &w)) {
            tell(&w);
        } else {
            w.fate = BILL_UNANSWERED; /* written later */
        }
    }
    if (c->leading) {
        leader_apply_bill(&c->state, w.row.job.s, w.fate, &w.correction, clock_boot_us());
    }
}

static void on_describe(void *ctx, const struct job_description *job, bool not_found,
                        const struct aws_failure *f)
{
    struct controller *c = ctx;
    struct bill_answer *a = c->bill;
    c->bill_call = NULL;
    c->state.act = true;
    metric_add(METRIC_AWS_ERRORS, f != NULL);
    a->there = true;
    a->failed = f != NULL;
    a->not_found = not_found;
    if (f == NULL && !not_found) {
        a->job = *job;
    }
}

void bills_cancel(struct controller *c)
{
    sagemaker_cancel(c->bill_call);
    c->bill_call = NULL;
    free(c->bill);
    c->bill = NULL;
}

void bills_tick(struct controller *c, int64_t *wake_us)
{
    take_answer(c);
    if (!c->leading || c->bill_call != NULL) {
        return;
    }
    const struct live_bill *b = leader_bill_next(&c->state, clock_boot_us(), wake_us);
    if (b == NULL) {
        return;
    }
    c->bill = c->bill != NULL ? c->bill : xcalloc(1, sizeof *c->bill);
    (void)snprintf(c->bill->job_name, sizeof c->bill->job_name, "%s", b->row.job.s);
    metric_add(METRIC_AWS_REQUESTS, 1);
    c->bill_call = sagemaker_describe(c->aws, lease_gate(c), c->bill->job_name, on_describe, c);
}
