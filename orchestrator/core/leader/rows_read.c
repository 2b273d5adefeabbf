/* See rows_read.h. */
#include "rows_read.h"
#include "awake.h"
#include "bills.h"
#include "budget_state.h"
#include "core/failure/retry_policy.h"
#include "intents.h"
#include "parking.h"
#include "skip_done.h"

_Static_assert(WARN_AT_MAX == WARNS_MAX, "one bound for thresholds");

bool rows_stage_is_read(const struct live_stage *ls)
{
    return !stage_state_terminal(ls->row.state) || ls->row.state == STAGE_SKIPPED;
}

static void find_spec(const struct live_campaign *lc, struct live_stage *ls)
{
    int i = lc->spec != NULL ? spec_stage_find(lc->spec, ls->row.name) : -1;
    ls->spec = i >= 0 ? lc->spec->stages[i] : NULL;
}

void rows_new_stage(struct live_campaign *lc, struct live_stage *ls, const struct stage_row *row)
{
    ls->row = *row;
    ls->ready = ready_queue_new();
    ls->unchecked = ready_queue_new();
    ls->held = ready_queue_new();
    ls->reason = WAIT_NEW;
    lc->live += row->counts[TASK_ACTIVE];
    find_spec(lc, ls);
}

/* Thresholds of the campaign file, for a cap that says nothing of its own. */
static void default_warn(struct live_campaign *lc)
{
    struct warn_at *w = &lc->row.warn;
    if (lc->spec == NULL || w->n > 0) {
        return;
    }
    w->n = lc->spec->warn_at_n;
    for (int i = 0; i < w->n; i++) {
        w->at_ppm[i] = lc->spec->warn_at_ppm[i];
    }
}

void rows_new_campaign(struct live_campaign *lc)
{
    lc->spec_unreadable = lc->spec == NULL;
    lc->tried_version = lc->row.version;
    lc->waits_for_person = lc->row.state == CAMPAIGN_HELD && lc->row.held_for_money &&
                           lc->row.at_limit != AT_LIMIT_DRAIN &&
                           lc->row.version == lc->row.taken_version;
    default_warn(lc);
}

bool rows_fit_spec(const struct spec *spec, const struct stage_row *rows, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (spec_stage_find(spec, rows[i].name) < 0) {
            return err_set(err, ERR_DATABASE,
                           "stage %lld is named '%s', which no stage of its "
                           "campaign's file is",
                           (long long)rows[i].id, rows[i].name);
        }
    }
    return n == (size_t)spec->stages_n ||
           err_set(err, ERR_DATABASE, "%zu stages have rows, and its campaign's file has %d", n,
                   spec->stages_n);
}

void rows_name_stages(struct live_campaign *lc, const struct stage_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct live_stage *ls = leader_state_stage(lc, rows[i].id);
        if (ls != NULL) {
            memcpy(ls->row.name, rows[i].name, sizeof ls->row.name);
        }
    }
}

void rows_set_spec(struct live_campaign *lc, struct spec *spec)
{
    lc->spec = spec;
    lc->spec_unreadable = spec == NULL;
    campaign_wake(lc);
    for (int k = 0; k < lc->stages_n; k++) {
        find_spec(lc, &lc->stages[k]);
    }
    default_warn(lc);
}

bool rows_new_parts(const struct live_stage *ls, int64_t tasks)
{
    return tasks > ls->row.taken;
}

void rows_take_parts(struct live_stage *ls, int64_t tasks)
{
    ls->row.tasks = tasks;
    if (rows_new_parts(ls, tasks)) {
        task_counts_add(ls, tasks - ls->row.taken);
        ls->row.taken = tasks;
    }
}

bool rows_unloaded(const struct live_stage *ls)
{
    return ls->loaded < ls->row.taken && rows_stage_is_read(ls);
}

bool rows_parts_fit(const struct live_stage *ls, size_t n, struct err *err)
{
    int64_t wait = ls->row.counts[TASK_WAITING] + ls->row.counts[TASK_HELD];
    return ls->loaded > 0 || wait == (int64_t)n ||
           err_set(err, ERR_DATABASE,
                   "%lld parts of stage %lld wait by its counters, and %zu have "
                   "such rows",
                   (long long)wait, (long long)ls->row.id, n);
}

/* No back-off is longer than the longest of its stage: one that is was written before the clock was
 * set back. */
static usec_t not_before(const struct live_stage *ls, const struct task_row *row, usec_t now_us)
{
    bool later = row->not_before_us > now_us && ls->spec != NULL;
    return later ? MIN(row->not_before_us, now_us + retry_wait_longest_s(ls->spec) * USEC_PER_SEC)
                 : row->not_before_us;
}

enum rows_queue rows_task(const struct live_stage *ls, const struct task_row *row, usec_t now_us,
                          struct ready_queue_task *ret)
{
    if (row->state != TASK_WAITING && row->state != TASK_HELD) {
        return ROWS_NO_QUEUE;
    }
    *ret = (struct ready_queue_task){.task_id = row->id,
                                     .not_before_us = MAX(INT64_C(0), not_before(ls, row, now_us)),
                                     .seq = (uint32_t)row->seq,
                                     .size_mb = size_mb_of(row->size)};
    return row->state == TASK_HELD            ? ROWS_HELD
           : skip_done_wanted(ls, row->names) ? ROWS_UNCHECKED
                                              : ROWS_READY;
}

void rows_part_waits(struct live_campaign *lc, struct live_stage *ls,
                     const struct ready_queue_task *t)
{
    if (t->seq >= ls->loaded) {
        lc->seen_tasks = -1;
        return;
    }
    ready_queue_push(ls->ready, t);
    campaign_wake(lc);
}

bool rows_new_wish(struct live_campaign *lc, const struct campaign_version *v)
{
    bool moved = lc->tried_version != v->version;
    lc->tried_version = v->version;
    return moved;
}

bool rows_moved(const struct live_campaign *lc, const struct campaign_version *v)
{
    return lc == NULL || lc->row.version != v->version || lc->seen_tasks != v->tasks;
}

enum rows_look rows_look(struct leader_state *s, const struct campaign_version *v, int64_t boot_us)
{
    const struct parking_subject who = PARKING_CAMPAIGN(v->id);
    struct live_campaign *lc = leader_state_campaign(s, v->id);
    if (lc != NULL && rows_new_wish(lc, v)) {
        parking_hurry(s, &who);
    }
    if (!rows_moved(lc, v) || !parking_may(s, &who, boot_us)) {
        return ROWS_LEAVE;
    }
    s->decide = true;
    return lc == NULL ? ROWS_TAKE : ROWS_REFRESH;
}

void rows_refreshed(struct live_campaign *lc, const struct campaign_version *v, bool loaded)
{
    lc->seen_tasks = loaded ? v->tasks : -1;
    campaign_wake(lc); /* parts were queued, or some of them */
}

bool rows_fresh(const struct live_campaign *lc)
{
    return lc->seen_tasks >= 0;
}

bool rows_spec_due(const struct leader_state *s, const struct live_campaign *lc, int64_t boot_us)
{
    const struct parking_subject who = PARKING_CAMPAIGN(lc->row.id);
    return lc->spec_unreadable && (rows_fresh(lc) || campaign_state_terminal(lc->row.state)) &&
           parking_may(s, &who, boot_us);
}

void rows_queue_anew(struct live_campaign *lc)
{
    for (int k = 0; k < lc->stages_n; k++) {
        struct live_stage *ls = &lc->stages[k];
        ready_queue_free(ls->ready);
        ready_queue_free(ls->unchecked);
        ready_queue_free(ls->held);
        ls->ready = ready_queue_new();
        ls->unchecked = ready_queue_new();
        ls->held = ready_queue_new();
        ls->loaded = 0;
    }
    lc->seen_tasks = -1;
    campaign_wake(lc);
}

bool rows_spec_read(struct leader_state *s, struct live_campaign *lc, bool taken)
{
    for (size_t i = 0; lc->spec != NULL && i < s->attempts_n; i++) {
        struct live_attempt *a = s->attempts[i];
        if (a->campaign == lc) {
            breaker_started(&a->stage->breaker, a->row.id);
        }
    }
    if (lc->spec == NULL || !taken) {
        rows_set_spec(lc, NULL);
        return false;
    }
    rows_queue_anew(lc);
    s->decide = true;
    return true;
}

bool rows_attempt_placed(struct live_campaign *lc, const struct attempt_row *row, struct err *err)
{
    return leader_state_stage(lc, row->stage_id) != NULL ||
           err_set(err, ERR_DATABASE, "stage %lld of job %s is not in campaign %lld",
                   (long long)row->stage_id, row->name.s, (long long)lc->row.id);
}

void rows_refresh_campaign(struct live_campaign *lc, const struct campaign_row *now)
{
    struct campaign_row *row = &lc->row;
    row->wanted = now->wanted;
    row->priority = now->priority;
    row->parts_limit = now->parts_limit;
    row->cap_musd = now->cap_musd;
    row->at_limit = now->at_limit;
    row->weight = now->weight;
    row->warn = now->warn;
    campaign_wake(lc);
    bool edited = row->version != now->version;
    row->version = now->version;
    default_warn(lc);
    if (edited) { /* new parts alone bring no money */
        lc->budget_short = lc->budget_spent = lc->waits_for_person = false;
    }
    for (int i = 0; edited && i < lc->stages_n; i++) {
        leader_propose_again(&lc->stages[i]);
    }
}

void rows_refresh_stage(struct live_stage *ls, const struct stage_row *now)
{
    rows_take_parts(ls, now->tasks);
    ls->row.closed = now->closed;
    ls->row.input = now->input;
    memcpy(ls->row.input_problem, now->input_problem, sizeof ls->row.input_problem);
    ls->row.gate_override = now->gate_override;
    ls->row.cap_musd = now->cap_musd;
    ls->row.per_task_musd = now->per_task_musd;
    ls->cap_short = WAIT_NONE;
    ls->row.parts_limit = now->parts_limit;
    ls->row.resumes = now->resumes;
    ls->row.warn = now->warn;
}

static bool cap_moved(const struct leader_state *s, const struct project_row *rows, size_t n)
{
    for (size_t i = 0; i < s->projects_n; i++) {
        for (size_t k = 0; k < n; k++) {
            if (rows[k].id == s->projects[i].id && rows[k].cap_musd != s->projects[i].cap_musd) {
                return true;
            }
        }
    }
    return false;
}

void rows_refresh_projects(struct leader_state *s, const struct project_row *rows, size_t n)
{
    bool moved = cap_moved(s, rows, n);
    for (size_t i = 0; moved && i < s->campaigns_n; i++) {
        budget_state_not_short(s->campaigns[i]);
    }
    if (n != s->projects_n) {
        s->projects = xrealloc(s->projects, n * sizeof *rows);
        s->projects_n = n;
    }
    memcpy(s->projects, rows, n * sizeof *rows);
}

bool rows_project_known(const struct leader_state *s, int64_t project_id)
{
    for (size_t i = 0; i < s->projects_n; i++) {
        if (s->projects[i].id == project_id) {
            return true;
        }
    }
    return false;
}

/* Figures that no account has: somebody else has written them. Sums of them would overflow. */
#define INSTANCES_MOST INT64_C(1000000000)
#define PRICE_MOST     (INT64_C(1000000) * MUSD_PER_USD) /* an hour */

static int64_t instances(int64_t n)
{
    return MIN(n, INSTANCES_MOST);
}

void rows_slot_limits(struct leader_state *s, const struct slot_limit_row *rows, size_t n)
{
    for (size_t i = 0; i < s->slots_n; i++) {
        s->slots[i].s.operator_limit = -1;
    }
    for (size_t i = 0; i < n; i++) {
        leader_state_slots(s, rows[i].instance_type, rows[i].market)->s.operator_limit =
            instances(rows[i].limit);
    }
}

void rows_slots(struct leader_state *s, const struct slots_row *rows, size_t n, usec_t now_us)
{
    for (size_t i = 0; i < n; i++) {
        const struct slots_row *r = &rows[i];
        struct live_slots *ls = leader_state_slots(s, r->instance_type, r->market);
        ls->s.held = instances(r->held);
        ls->s.warm_idle = instances(r->warm_idle);
        ls->s.operator_limit = instances(r->operator_limit);
        ls->s.foreign = ls->kept_foreign = instances(r->foreign);
        ls->s.foreign_us = MIN(r->foreign_us, now_us);
        ls->s.refused_limit = ls->kept_limit = instances(r->refused_limit);
        ls->probe_us = r->foreign > 0 ? now_us : 0;
    }
    rows_prices(s, rows, n);
}

void rows_prices(struct leader_state *s, const struct slots_row *rows, size_t n)
{
    bool moved = false;
    for (size_t i = 0; i < n; i++) {
        musd_t price = rows[i].price_musd_per_hour;
        musd_t *known =
            &leader_state_slots(s, rows[i].instance_type, rows[i].market)->s.price_musd_per_hour;
        price = price <= PRICE_MOST ? price : -1;
        moved |= price != *known;
        *known = price;
    }
    if (moved) {
        budget_state_prices_moved(s);
    }
    leader_forget_unpriced_bills(s);
}

#define EARLIEST_US (INT64_C(1577836800) * USEC_PER_SEC)
#define LATEST_US   (INT64_C(4102444800) * USEC_PER_SEC) /* 2100: this clock may be days behind */

static usec_t intended(usec_t at_us, usec_t now_us)
{
    return at_us < EARLIEST_US || at_us > LATEST_US ? now_us : at_us;
}

static void heal(usec_t *at, usec_t intended_us)
{
    if (*at != 0 && (*at < intended_us - USEC_PER_DAY || *at > LATEST_US)) {
        *at = intended_us;
    }
}

void rows_endpoint_times(struct endpoint_row *r, usec_t now_us)
{
    usec_t *const past[] = {&r->created_us,  &r->in_service_us, &r->tested_us, &r->invoked_us,
                            &r->deleting_us, &r->served_us,     &r->off_us};
    r->intended_us = intended(r->intended_us, now_us);
    for (size_t i = 0; i < ARRAY_LEN(past); i++) {
        heal(past[i], r->intended_us);
    }
}

void rows_filesystem_times(struct filesystem_row *r, usec_t now_us)
{
    usec_t *const past[] = {&r->created_us, &r->available_us, &r->ending_us, &r->off_us};
    r->intended_us = intended(r->intended_us, now_us);
    for (size_t i = 0; i < ARRAY_LEN(past); i++) {
        heal(past[i], r->intended_us);
    }
}

bool rows_filesystem_differ(const struct filesystem_row *a, const struct filesystem_row *b)
{
    return a->state != b->state || a->ready != b->ready || a->failed != b->failed ||
           a->created_us != b->created_us || a->available_us != b->available_us ||
           a->off_us != b->off_us || strcmp(a->aws_id, b->aws_id) != 0 ||
           strcmp(a->mount, b->mount) != 0 || strcmp(a->link_id, b->link_id) != 0 ||
           a->kept_for_retry != b->kept_for_retry || strcmp(a->reason, b->reason) != 0;
}
