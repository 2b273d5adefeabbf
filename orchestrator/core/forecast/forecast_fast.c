/* The fast engine: the scheduler's order and checks without its plan. It takes sorted parts from an
 * array, so a start costs some tens of nanoseconds where sched_decide needs microseconds. It leaves
 * out the look-ahead over a stage's tail and backfilling around a reservation. test_forecast
 * compares it with sched_decide. */
#include "core/money/cost.h"
#include "core/sched/fair_share.h"
#include "forecast_work.h"

/* What one decision has closed. stages_n is bounded, so this fits on the stack. */
struct closing {
    bool stage[FORECAST_STAGES_MAX];
    bool kept[256]; /* slots that a multi-instance task waits for */
};

static struct fair_share share_of(const struct forecast_pass *r, int64_t id, int64_t held,
                                  int64_t weight, usec_t last_start_us)
{
    return (struct fair_share){id, held, weight, MAX(0, r->now_us - last_start_us)};
}

/* True when stage i goes before stage k: by priority, the project's share, the campaign's share in
 * it, the stage. */
static bool goes_before(const struct forecast_pass *r, int i, int k)
{
    const struct forecast_stage *x = &r->f->in.stages[i];
    const struct forecast_stage *y = &r->f->in.stages[k];
    int px = r->f->in.campaigns[x->campaign_i].priority;
    int py = r->f->in.campaigns[y->campaign_i].priority;
    if (px != py) {
        return px > py;
    }
    if (x->campaign_i == y->campaign_i) {
        return x->stage_id < y->stage_id;
    }
    const struct sched_campaign *a = &r->campaigns[x->campaign_i];
    const struct sched_campaign *b = &r->campaigns[y->campaign_i];
    const struct sched_project *p = &r->projects[a->project_i];
    const struct sched_project *q = &r->projects[b->project_i];
    bool same = a->project_i == b->project_i;
    struct fair_share m = same ? share_of(r, a->campaign_id, a->held, a->weight, a->last_start_us)
                               : share_of(r, p->project_id, p->held, p->weight, p->last_start_us);
    struct fair_share n = same ? share_of(r, b->campaign_id, b->held, b->weight, b->last_start_us)
                               : share_of(r, q->project_id, q->held, q->weight, q->last_start_us);
    return fair_share_before(&m, &n);
}

static int first_open(const struct forecast_pass *r, int stages_n, const struct closing *c)
{
    int best = -1;
    for (int i = 0; i < stages_n; i++) {
        if (!c->stage[i] && (best < 0 || goes_before(r, i, best))) {
            best = i;
        }
    }
    return best;
}

static bool full(int64_t limit, int64_t live)
{
    return limit >= 0 && live >= limit;
}

static enum wait_reason check_limits(const struct forecast_pass *r, int stage_i)
{
    const struct forecast_stage *in = &r->f->in.stages[stage_i];
    const struct sched_campaign *c = &r->campaigns[in->campaign_i];
    const struct sched_project *p = &r->projects[c->project_i];
    if (full(in->parts_limit, r->stage[stage_i].live)) {
        return WAIT_STAGE_LIMIT;
    }
    if (full(c->parts_limit, c->live)) {
        return WAIT_CONCURRENCY;
    }
    if (full(p->parts_limit, p->live)) {
        return WAIT_PROJECT_LIMIT;
    }
    return full(r->f->in.parts_limit, r->live) ? WAIT_GLOBAL_LIMIT : WAIT_NONE;
}

/* The first rung that can ever hold the stage's jobs; -1 with the reason. */
static int rung_of(const struct forecast_pass *r, const struct forecast_stage_setup *s,
                   enum wait_reason *ret_why)
{
    const struct spec_stage *stage = s->in->stage;
    int64_t run_s = quota_ledger_job_run_s(&r->account, stage->max_runtime_s, spec_goes_on(stage));
    *ret_why = WAIT_QUOTA_UNREADABLE;
    for (int k = 0; k < stage->instance_type_n; k++) {
        enum wait_reason why = WAIT_QUOTA_UNREADABLE;
        if (s->slots_i[k] >= 0) {
            why = quota_ledger_can_ever(&r->slots[s->slots_i[k]], &r->account,
                                        stage->instance_count, run_s, stage->volume_gb);
        }
        if (why == WAIT_NONE) {
            *ret_why = WAIT_NONE;
            return k;
        }
        *ret_why = k == 0 ? why : *ret_why;
        if (why == WAIT_QUOTA_UNREADABLE) {
            break;
        }
    }
    return -1;
}

static enum wait_reason check_slots(struct forecast_pass *r, int stage_i, struct forecast_start *s,
                                    struct closing *c)
{
    const struct forecast_stage *in = &r->f->in.stages[stage_i];
    int64_t n = in->stage->instance_count;
    if (s->limit_i >= 0 && r->campaigns[in->campaign_i].type_held[s->limit_i] + n >
                               in->spec->instances[s->limit_i].n) {
        return WAIT_TYPE_LIMIT;
    }
    const struct quota_ledger *slots = &r->slots[s->slots_i];
    bool known = s->slots_i < (int)ARRAY_LEN(c->kept);
    if (n > quota_ledger_free(slots, &r->account, r->now_us)) {
        if (n > 1 && known &&
            n <= quota_ledger_limit(slots, &r->account) - quota_ledger_foreign(slots, r->now_us)) {
            c->kept[s->slots_i] = true;
        }
        return WAIT_SLOTS;
    }
    return known && c->kept[s->slots_i] ? WAIT_RESERVED : WAIT_NONE;
}

static enum wait_reason check_money(const struct forecast_pass *r, int stage_i,
                                    struct forecast_start *s)
{
    const struct forecast_stage_setup *stage = &r->f->stage[stage_i];
    const struct spec_stage *spec = stage->in->stage;
    if (!stage->counts_money) {
        return WAIT_NONE;
    }
    const struct sched_campaign *c = &r->campaigns[stage->in->campaign_i];
    const struct sched_money of = {
        .shared = MIN(c->left_musd, MIN(r->projects[c->project_i].left_musd, r->left_musd)),
        .stage = r->stage[stage_i].left_musd,
        .part = stage->in->part_cap_musd};
    musd_t left = MIN(of.shared, MIN(of.stage, of.part));
    musd_t price = r->slots[s->slots_i].price_musd_per_hour;
    int64_t fits_s = cost_runtime_that_fits(price, spec->instance_count, 0, left);
    int64_t least_s = MIN(spec->min_runtime_s, spec->max_runtime_s);
    if (fits_s < least_s || fits_s < 1) {
        return sched_money_short(&of, price, spec->instance_count, least_s);
    }
    s->max_runtime_s = MIN(s->max_runtime_s, fits_s);
    struct err ignored = ERR_INIT;
    return cost_worst_case(price, spec->instance_count, s->max_runtime_s, 0, &s->reserve_musd,
                           &ignored)
               ? WAIT_NONE
               : WAIT_BUDGET;
}

/* Start the stage's first part, or return why not. */
static enum wait_reason step(struct forecast_pass *r, int stage_i, int rung, struct closing *c)
{
    const struct forecast_stage_setup *stage = &r->f->stage[stage_i];
    struct ready_queue_task t;
    if (!forecast_peek(r, stage_i, &t)) {
        return forecast_waiting_n(r, stage_i) > 0 ? WAIT_BACKOFF : WAIT_NONE;
    }
    struct forecast_start s = {.stage_i = stage_i,
                               .slots_i = stage->slots_i[rung],
                               .rung = rung,
                               .limit_i = stage->limit_i[rung],
                               .max_runtime_s = stage->in->stage->max_runtime_s};
    enum wait_reason why = check_limits(r, stage_i);
    why = why == WAIT_NONE ? check_slots(r, stage_i, &s, c) : why;
    why = why == WAIT_NONE ? check_money(r, stage_i, &s) : why;
    why = why == WAIT_NONE && forecast_tokens(r) <= 0 ? WAIT_RATE : why;
    if (why == WAIT_NONE) {
        forecast_pop(r, stage_i);
        forecast_start(r, &s, &t);
        return WAIT_NEW; /* started; examine the next one */
    }
    return why;
}

usec_t forecast_decide_kernel(struct forecast_pass *r)
{
    struct closing c;
    int rung[FORECAST_STAGES_MAX];
    const int stages_n = r->f->in.stages_n;
    memset(c.stage, 0, (size_t)stages_n);
    memset(c.kept, 0, sizeof c.kept);
    usec_t wake_us = USEC_NEVER;
    for (int i = 0; i < stages_n; i++) {
        bool waits = forecast_waiting_n(r, i) > 0;
        enum wait_reason why = waits ? WAIT_STAGE_BLOCKED : WAIT_NONE;
        rung[i] = waits && r->stage[i].open ? rung_of(r, &r->f->stage[i], &why) : -1;
        c.stage[i] = rung[i] < 0;
        r->stage[i].reason = why;
    }
    for (int i = first_open(r, stages_n, &c); i >= 0; i = first_open(r, stages_n, &c)) {
        enum wait_reason why = step(r, i, rung[i], &c);
        if (why == WAIT_NEW) {
            continue;
        }
        c.stage[i] = true;
        r->stage[i].reason = why;
        if (why == WAIT_RATE) {
            wake_us = MIN(wake_us, forecast_rate_wake(r));
        }
        wake_us = MIN(wake_us, MAX(ready_queue_next_us(r->stage[i].ready), r->now_us));
    }
    return wake_us;
}
