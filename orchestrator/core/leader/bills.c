/* See bills.h. */
#include "bills.h"
#include "attempt_answer.h"
#include "budget_state.h"
#include "common/retry.h"
#include "core/money/cost.h"
#include "strays.h"
#include <stdlib.h>

#define PACE_US           USEC_PER_SEC /* between two Describes, the least urgent of all calls */
#define BILL_AGAIN_US     (5 * USEC_PER_SEC)
#define BILL_AGAIN_MAX_US (600 * USEC_PER_SEC)
#define PHASE_MOST        INT64_C(1000000000000000) /* milliseconds, seconds or micro-USD */

/* After this leader has read its row. */
static const int64_t asked_after_s[] = {10, 60, 180, 600, 1800, 7200, 21600};
#define LAST_S asked_after_s[ARRAY_LEN(asked_after_s) - 1]

struct live_bill *leader_bill_of(struct leader_state *s, const char *job)
{
    for (size_t i = 0; i < s->bills_n; i++) {
        if (strcmp(s->bills[i].row.job.s, job) == 0) {
            return &s->bills[i];
        }
    }
    return NULL;
}

static bool known(const struct leader_state *s, const struct bill_row *row)
{
    for (size_t i = 0; i < s->bills_n; i++) {
        const struct bill_row *b = &s->bills[i].row;
        if (b->attempt_id == row->attempt_id &&
            (row->attempt_id != 0 || strcmp(b->job.s, row->job.s) == 0)) {
            return true;
        }
    }
    return false;
}

/* The first of its times after boot_us; the last once that has passed. */
static int64_t next_us(const struct live_bill *b, int64_t boot_us)
{
    size_t i = 0;
    while (i + 1 < ARRAY_LEN(asked_after_s) &&
           b->since_us + asked_after_s[i] * USEC_PER_SEC <= boot_us) {
        i++;
    }
    return b->since_us + asked_after_s[i] * USEC_PER_SEC;
}

/* Nobody writes others, and sums of those would overflow. */
static bool shares_known(const struct bill_row *row)
{
    for (int i = 0; i < PHASE_FIGURES_N; i++) {
        if (row->phases[i] < 0 || row->phases[i] > PHASE_MOST) {
            return false;
        }
    }
    return row->has_phases;
}

void leader_take_bills(struct leader_state *s, const struct bill_row *rows, size_t n,
                       int64_t boot_us)
{
    s->bills_unread = false;
    s->bills_more = n >= BILLS_MAX;
    for (size_t i = 0; i < n; i++) {
        if (!known(s, &rows[i])) {
            s->bills = xrealloc(s->bills, (s->bills_n + 1) * sizeof *s->bills);
            struct live_bill *b = &s->bills[s->bills_n++];
            *b = (struct live_bill){.row = rows[i], .since_us = boot_us};
            b->row.has_phases = shares_known(&rows[i]);
            b->next_us = next_us(b, boot_us);
            s->act = true;
        }
    }
}

struct live_bill *leader_bill_next(struct leader_state *s, int64_t boot_us, int64_t *wake_us)
{
    struct live_bill *first = NULL;
    for (size_t i = 0; i < s->bills_n; i++) {
        if (first == NULL || s->bills[i].next_us < first->next_us) {
            first = &s->bills[i];
        }
    }
    if (first == NULL) {
        return NULL;
    }
    int64_t due_us = MAX(first->next_us, s->bill_pace_us);
    if (boot_us < due_us) {
        *wake_us = MIN(*wake_us, due_us);
        return NULL;
    }
    s->bill_pace_us = boot_us + PACE_US;
    return first;
}

/* What the bill says that the row has booked: of a stray with its idle pool. */
static bool billed(const struct bill_row *row, const struct job_description *job,
                   struct bill_correction *ret)
{
    struct err err = ERR_INIT;
    bool estimated;
    if (row->attempt_id == 0) {
        return leader_stray_cost(job, row->instances, row->price_musd_per_hour, &ret->billable_s,
                                 &ret->cost_musd, &estimated);
    }
    ret->billable_s = cost_billable_s(job->billable_s, 0, 0, row->instances, &estimated);
    return cost_of_seconds(row->price_musd_per_hour, ret->billable_s, &ret->cost_musd, &err);
}

/* False: it cannot be booked. */
static bool correct(const struct bill_row *row, const struct job_description *job,
                    struct bill_correction *ret)
{
    struct err err = ERR_INIT;
    *ret = (struct bill_correction){.attempt_id = row->attempt_id,
                                    .job = row->job,
                                    .was_billable_s = row->billable_s,
                                    .was_musd = row->cost_musd,
                                    .has_phases = row->has_phases,
                                    .rules = job->rules[0] != '\0' ? job->rules : NULL};
    if (!billed(row, job, ret) ||
        !ledger_correct(row->attempt_id, row->cost_musd, row->billable_s, ret->cost_musd,
                        ret->billable_s, &ret->entry, &err)) {
        return false;
    }
    if (row->has_phases) {
        memcpy(ret->phases, row->phases, sizeof ret->phases);
        cost_phase_share_again(ret->phases, ret->billable_s, ret->cost_musd);
    }
    return true;
}

/* What the pool of a stray idles is not told before it is over, and may be told later; at last it
 * is taken for nothing. */
static bool idle_told(const struct bill_row *row, const struct job_description *job, bool last)
{
    enum warm_pool_status pool = job->pool.status;
    bool over = pool == WARM_POOL_REUSED || pool == WARM_POOL_TERMINATED;
    return row->attempt_id != 0 || pool == WARM_POOL_NONE ||
           (over && (job->pool.retained_s >= 0 || last));
}

enum bill_fate leader_plan_bill(const struct live_bill *b, const struct job_description *job,
                                bool not_found, int64_t boot_us, struct bill_correction *ret)
{
    bool last = boot_us >= b->since_us + LAST_S * USEC_PER_SEC;
    if (job == NULL && !not_found) {
        return BILL_UNANSWERED;
    }
    bool priced = b->row.price_musd_per_hour > 0;
    if (job != NULL && job->billable_s > 0 && idle_told(&b->row, job, last) && priced) {
        return correct(&b->row, job, ret) ? BILL_CAME : BILL_NEVER;
    }
    if (job != NULL && !leader_job_over(job)) {
        return BILL_UNANSWERED;
    }
    return last ? BILL_NEVER : BILL_AWAITED;
}

/* Memory follows the ledger: caps that the money counts against, and accounts still open. */
static void corrected(struct leader_state *s, const struct bill_row *row,
                      const struct bill_correction *c)
{
    musd_t musd = budget_state_spent_by(&c->entry, 1);
    s->decide = s->look_at_db = true;
    if (row->attempt_id == 0) {
        leader_state_project(s, 0)->spent_musd += musd;
        budget_state_freed(s, 0, NULL);
        return;
    }
    struct live_attempt *a = leader_state_attempt(s, row->attempt_id);
    struct task_change_row *change = leader_state_change(s, row->task_id, false);
    budget_state_move_of(s, row->project_id, row->campaign_id, row->stage_id, 0, musd);
    for (size_t i = 0; i < s->pools_n; i++) {
        if (s->pools[i]->row.attempt_id == row->attempt_id && s->pools[i]->attempt == NULL) {
            s->pools[i]->account.spent_musd += musd;
        }
    }
    if (a != NULL) { /* its output is being verified */
        a->account.spent_musd += musd;
        if (c->rules != NULL) {
            free(a->rules); /* older ones, which the verdict would write again */
            a->rules = NULL;
        }
    } else if (change != NULL) {
        change->spent_musd = MAX(0, change->spent_musd + musd);
    }
    budget_state_freed(s, row->project_id, leader_state_campaign(s, row->campaign_id));
}

static void forget(struct leader_state *s, struct live_bill *b)
{
    *b = s->bills[--s->bills_n];
    s->bills_unread |= s->bills_more;
}

void leader_forget_unpriced_bills(struct leader_state *s)
{
    for (size_t i = s->bills_n; i-- > 0;) {
        if (s->bills[i].row.price_musd_per_hour == 0) {
            s->bills[i] = s->bills[--s->bills_n];
            s->bills_unread = true;
        }
    }
}

void leader_apply_bill(struct leader_state *s, const char *job, enum bill_fate fate,
                       const struct bill_correction *correction, int64_t boot_us)
{
    struct live_bill *b = leader_bill_of(s, job);
    ASSERT(b != NULL);
    switch (fate) {
    case BILL_UNANSWERED:
        b->next_us = boot_us + retry_step_us(BILL_AGAIN_US, BILL_AGAIN_MAX_US, b->failures);
        b->failures = MIN(b->failures + 1, 1000);
        break;
    case BILL_AWAITED:
        b->failures = 0;
        b->next_us = next_us(b, boot_us);
        break;
    case BILL_CAME:
        corrected(s, &b->row, correction);
        forget(s, b);
        break;
    case BILL_NEVER:
        forget(s, b);
        break;
    case BILL_GONE:
        forget(s, b);
        s->bills_unread = true; /* its row may still wait, with other figures */
        break;
    }
}
