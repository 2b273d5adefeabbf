/* See pool_life.h. */
#include "pool_life.h"
#include "absence.h"
#include "budget_state.h"
#include "common/retry.h"
#include "core/capacity/warm_pool.h"
#include "core/money/cost.h"
#include "wall_clock.h"
#include <stdio.h>

#define LOOK_AGAIN_US (60 * USEC_PER_SEC) /* Describe an idle pool this often, unasked */
#define RETRY_BASE_US (500 * USEC_PER_MSEC)
#define RETRY_CAP_US  (30 * USEC_PER_SEC)
/* After its time was over: SageMaker never showed it. */
#define NEVER_CAME_US (120 * USEC_PER_SEC)
/* Its retained seconds are asked for so long after it was over without them. */
#define UNTOLD_US (300 * USEC_PER_SEC)

struct live_pool *leader_load_pool(struct leader_state *s, const struct pool_row *row,
                                   struct live_campaign *lc)
{
    struct live_pool *p = leader_state_add_pool(s, row, lc);
    struct live_attempt *taker = leader_state_attempt(s, row->taken_by);
    if (taker != NULL && taker->row.pool_id == row->id) {
        taker->taken = p; /* of a campaign that was in memory before this one */
    }
    p->account = (struct ledger_account_of_attempt){.reserved_musd = row->open_musd,
                                                    .spent_musd = row->cost_musd,
                                                    .reserved = true,
                                                    .job_settled = true};
    return p;
}

void leader_pool_listed(struct leader_state *s, const char *job, enum warm_pool_status status)
{
    for (size_t i = 0; i < s->pools_n; i++) {
        struct live_pool *p = s->pools[i];
        if (p->row.state == POOL_AVAILABLE && strcmp(p->row.job.s, job) == 0) {
            p->unfound_us = 0;
            p->look_now |= (status == WARM_POOL_AVAILABLE) != p->seen;
        }
    }
}

void leader_pool_failed(struct live_pool *p, int64_t boot_us)
{
    p->next_us = boot_us + retry_step_us(RETRY_BASE_US, RETRY_CAP_US, p->failures++);
}

bool leader_pool_described(struct live_pool *p, bool failed, bool not_found, usec_t now_us,
                           int64_t boot_us, struct warm_pool_report *report)
{
    p->look_first = false;
    if (failed || not_found) {
        leader_pool_failed(p, boot_us);
    } else {
        p->unfound_us = 0;
    }
    if (failed || !not_found) {
        return !failed;
    }
    *report = (struct warm_pool_report){.status = WARM_POOL_TERMINATED,
                                        .retained_s = p->row.keep_alive_s};
    return absence_proven(&p->unfound_us, p->row.expires_us, now_us, boot_us);
}

void leader_pool_end_answered(struct live_pool *p, bool failed, bool not_found, int64_t boot_us)
{
    p->look_now = true;
    p->look_first = failed || not_found;
    if (p->look_first) {
        leader_pool_failed(p, boot_us);
    } else {
        p->end_taken = true;
        p->failures = 0;
    }
}

int64_t leader_pool_meant(const struct leader_state *s, const struct live_pool *p,
                          const char *reused_by)
{
    const struct live_attempt *taker = leader_state_attempt_named(s, reused_by);
    bool other = taker != NULL && taker->taken != NULL && taker->taken != p &&
                 taker->taken->row.state == POOL_AVAILABLE;
    return other ? taker->taken->row.id : 0;
}

musd_t leader_pool_price(const struct leader_state *s, const char *instance_type, musd_t of_row)
{
    musd_t price = of_row;
    for (size_t i = 0; i < s->slots_n && price <= 0; i++) {
        const struct quota_ledger *q = &s->slots[i].s;
        bool same = q->market == MARKET_ON_DEMAND && strcmp(q->instance_type, instance_type) == 0;
        price = same ? MAX(of_row, q->price_musd_per_hour) : price;
    }
    return price;
}

/* Final: what its idle time cost, and the entries that close the account. */
static void plan_end(const struct leader_state *s, const struct live_pool *p, enum pool_state to,
                     int64_t retained_s, const char *reused_by, struct pool_writes *ret)
{
    struct pool_end *e = &ret->end;
    *e = (struct pool_end){.pool_id = p->row.id,
                           .to = to,
                           .retained_s = retained_s,
                           .open_musd = p->account.reserved_musd};
    ret->account = p->account;
    ret->swap_with = to == POOL_REUSED ? leader_pool_meant(s, p, reused_by) : 0;
    musd_t price = leader_pool_price(s, p->row.instance_type, p->row.price_musd_per_hour);
    bool ok = !__builtin_mul_overflow(retained_s, (int64_t)p->row.instances, &e->warm_s) &&
              cost_of_seconds(price, e->warm_s, &e->warm_musd, &ret->error) &&
              ledger_close(&ret->account, p->row.attempt_id, e->warm_musd, e->warm_s, e->entries,
                           &e->entries_n, &ret->error);
    ret->fate = ok ? POOL_FATE_OVER : POOL_FATE_NOT_BOOKED;
}

/* SageMaker has shown it as kept: to this leader, or to the one before, whose scheduler ends only
 * such ones; a person may ask for any. */
static bool was_kept(const struct live_pool *p)
{
    const char *why = p->row.end_reason;
    return p->seen || (why[0] != '\0' && strcmp(why, warm_pool_end_name(WARM_POOL_END_ASKED)) != 0);
}

/* It is over. One that was kept has cost something, so that is asked for again when it is not told,
 * and estimated when it never is. One that never was seen may never have been kept. */
static void plan_over(const struct leader_state *s, const struct live_pool *p,
                      const struct warm_pool_report *seen, int64_t boot_us, struct pool_writes *ret)
{
    bool reused = seen->status == WARM_POOL_REUSED;
    bool untold = seen->retained_s < 0 && (was_kept(p) || reused);
    if (untold && (p->over_us == 0 || boot_us < p->over_us + UNTOLD_US)) {
        ret->fate = POOL_FATE_UNTOLD;
        return;
    }
    plan_end(s, p, reused ? POOL_REUSED : POOL_TERMINATED,
             untold ? p->untold_s : MAX(0, seen->retained_s), reused ? seen->reused_by : "", ret);
}

void leader_plan_pool_seen(const struct leader_state *s, const struct live_pool *p,
                           const struct warm_pool_report *seen, bool job_ended, int64_t boot_us,
                           struct pool_writes *ret)
{
    *ret = (struct pool_writes){.fate = POOL_FATE_STAYS, .error = ERR_INIT};
    switch (seen->status) {
    case WARM_POOL_REUSED:
    case WARM_POOL_TERMINATED:
        plan_over(s, p, seen, boot_us, ret);
        return;
    case WARM_POOL_AVAILABLE:
        ret->fate = POOL_FATE_THERE;
        return;
    case WARM_POOL_NONE:
        /* Not told yet, or never kept: believed when its time is over, by the boot clock. */
        if (job_ended && !p->seen && p->first_look_us > 0 &&
            boot_us > p->first_look_us + p->row.keep_alive_s * USEC_PER_SEC + NEVER_CAME_US) {
            plan_end(s, p, POOL_TERMINATED, 0, "", ret);
        }
        return;
    case WARM_POOL_IN_USE:
    case WARM_POOL_UNKNOWN:
    case WARM_POOL_STATUS_COUNT:
        return;
    }
}

void leader_pool_timed(const struct leader_state *s, struct live_pool *p, usec_t now_us)
{
    struct pool_row *r = &p->row;
    int64_t keep_us = r->keep_alive_s * USEC_PER_SEC;
    if (p->timed) {
        return;
    }
    p->timed = true;
    if (r->expires_us > 0) {
        r->expires_us = MIN(leader_wall_of_aws(s, r->expires_us), now_us + keep_us);
        r->available_us = r->expires_us - keep_us;
    }
}

void leader_apply_pool_seen(struct leader_state *s, struct live_pool *p, enum pool_fate fate,
                            usec_t now_us, int64_t boot_us)
{
    leader_pool_timed(s, p, now_us);
    if (!p->wants_end || p->end_taken) { /* else its refusals in a row are counted on */
        p->failures = 0;
    }
    p->look_now = false;
    p->described_us = boot_us;
    p->first_look_us = p->first_look_us == 0 ? boot_us : p->first_look_us;
    if (fate == POOL_FATE_THERE) {
        s->decide |= !p->seen;
        p->seen = true;
        p->row.available_us = p->row.available_us == 0 ? now_us : p->row.available_us;
    } else if (fate == POOL_FATE_NOT_BOOKED) {
        leader_pool_failed(p, boot_us);
    } else if (fate == POOL_FATE_UNTOLD && p->over_us == 0) {
        int64_t kept_s = (now_us - p->row.available_us) / USEC_PER_SEC;
        s->decide = true; /* nobody takes it any more */
        p->over_us = boot_us;
        p->untold_s = MIN(MAX(0, kept_s), p->row.keep_alive_s);
    }
}

static void swap(struct leader_state *s, struct live_pool *p, struct live_pool *meant)
{
    int64_t taker = meant->row.taken_by;
    int64_t kept_for = p->row.taken_by;
    meant->row.taken_by = kept_for;
    p->row.taken_by = taker;
    for (size_t i = 0; i < s->attempts_n; i++) {
        struct live_attempt *a = s->attempts[i];
        if (a->row.id == taker || a->row.id == kept_for) {
            a->taken = a->row.id == taker ? p : meant;
            a->row.pool_id = a->taken->row.id;
        }
    }
    meant->look_now = true;
}

/* The part whose job left the pool has reserved nothing more for it, and paid what it cost. While
 * its output is verified its attempt has the account, which counts when it ends. */
static void part_pays(struct leader_state *s, const struct live_pool *p,
                      const struct pool_writes *w)
{
    struct live_attempt *a = leader_state_attempt(s, p->row.attempt_id);
    struct task_change_row *change = leader_state_change(s, p->row.task_id, false);
    if (a != NULL) {
        a->account = w->account;
    } else if (change != NULL) {
        change->spent_musd =
            MAX(0, change->spent_musd + budget_state_reserved_by(w->end.entries, w->end.entries_n) +
                       budget_state_spent_by(w->end.entries, w->end.entries_n));
    }
}

void leader_apply_pool_end(struct leader_state *s, struct live_pool *p, const struct pool_writes *w)
{
    struct live_stage *ls = leader_state_stage(p->campaign, p->row.stage_id);
    struct live_slots *slots = leader_state_slots(s, p->row.instance_type, MARKET_ON_DEMAND);
    if (w->swap_with != 0) {
        struct live_pool *meant = leader_state_pool(s, w->swap_with);
        ASSERT(meant != NULL);
        swap(s, p, meant);
    }
    if (p->row.taken_by == 0) {
        slots_idle_end(slots, p->row.instances);
    }
    budget_state_move(s, p->campaign, ls,
                      budget_state_reserved_by(w->end.entries, w->end.entries_n),
                      budget_state_spent_by(w->end.entries, w->end.entries_n), w->end.warm_musd);
    part_pays(s, p, w);
    budget_state_freed(s, p->campaign->row.project_id, p->campaign);
    s->decide = s->look_at_db = true;
}

bool leader_pool_want_end(struct leader_state *s, struct live_pool *p, enum warm_pool_end why)
{
    if (p->wants_end) {
        return false;
    }
    p->wants_end = true;
    s->act = true;
    (void)snprintf(p->row.end_reason, sizeof p->row.end_reason, "%s", warm_pool_end_name(why));
    return true;
}

size_t leader_take_pool_ends(struct leader_state *s, const int64_t *ids, size_t n)
{
    size_t fresh = 0;
    for (size_t i = 0; i < n; i++) {
        struct live_pool *p = leader_state_pool(s, ids[i]);
        bool idle = p != NULL && p->row.state == POOL_AVAILABLE && p->row.taken_by == 0;
        fresh += idle && leader_pool_want_end(s, p, WARM_POOL_END_ASKED);
    }
    return fresh;
}

enum pool_action leader_pool_next(const struct live_pool *p, usec_t now_us, int64_t boot_us,
                                  int64_t *wake_us)
{
    int64_t at_us = p->look_now ? p->next_us : MAX(p->next_us, p->described_us + LOOK_AGAIN_US);
    int64_t left_us = p->row.expires_us + USEC_PER_SEC - now_us; /* its time is over */
    bool end = p->wants_end && !p->end_taken && !p->look_first && p->over_us == 0;
    if (p->row.state != POOL_AVAILABLE) {
        return POOL_ACT_NONE;
    }
    if (p->described_us > 0 && left_us > 0) {
        at_us = MIN(at_us, MAX(p->next_us, boot_us + left_us));
    }
    if (end) {
        at_us = p->next_us;
    }
    if (boot_us >= at_us) {
        return end ? POOL_ACT_END : POOL_ACT_DESCRIBE;
    }
    *wake_us = MIN(*wake_us, at_us);
    return POOL_ACT_NONE;
}

/* Pools that stand alone again with p: what a was intended on, and what the job that took a's pool
 * was intended on; NULL: none. */
static void pools_not_taken(const struct leader_state *s, const struct live_attempt *a,
                            const struct pending_record *p, struct live_pool *ret[2])
{
    struct live_pool *meant = leader_state_pool(s, p->r.frees_pool_id);
    ret[0] = a->taken != NULL && a->taken->row.taken_by == a->row.id ? a->taken : NULL;
    ret[1] = meant != NULL && meant != ret[0] && meant->row.taken_by != 0 ? meant : NULL;
}

void leader_record_written(const struct leader_state *s, struct pending_record *p,
                           const struct attempt_record *row)
{
    const struct live_attempt *a = leader_state_attempt(s, p->r.attempt_id);
    struct live_pool *freed[2];
    ASSERT(a != NULL);
    pools_not_taken(s, a, p, freed);
    p->absent_idle = row->idle_again;
    for (size_t i = 0; i < ARRAY_LEN(freed); i++) {
        p->absent_idle -= freed[i] != NULL ? freed[i]->row.instances : 0;
    }
}

/* The attempt that was intended on this pool did not take it: it stands alone again. */
static void pool_not_taken(struct leader_state *s, struct live_slots *slots, struct live_pool *p)
{
    struct live_attempt *taker = leader_state_attempt(s, p->row.taken_by);
    p->row.taken_by = 0;
    p->look_now = true;
    slots_idle(slots, p->row.instances);
    if (taker != NULL) {
        taker->taken = NULL;
    }
}

void leader_pools_stand_alone(struct leader_state *s, struct live_slots *slots,
                              const struct live_attempt *a, const struct pending_record *p)
{
    struct live_pool *freed[2];
    pools_not_taken(s, a, p, freed);
    for (size_t i = 0; i < ARRAY_LEN(freed); i++) {
        if (freed[i] != NULL) {
            pool_not_taken(s, slots, freed[i]);
        }
    }
    if (p->absent_idle > 0) {
        slots_idle(slots, p->absent_idle);
    }
}
