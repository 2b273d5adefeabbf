/* From runs to answers: bands over the samples, the position of one part, what binds. */
#include "forecast.h"
#include "core/money/cost.h"
#include "core/sched/wait_reason.h"
#include "forecast_work.h"

#define RUNS_ENOUGH 8 /* fewer give no band */

static int i64_cmp(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* The (n+1)q-th value, interpolated: few runs give a wide band, not a narrow one. */
static int64_t quantile(const int64_t *v, size_t n, double q)
{
    double at = q * (double)(n + 1) - 1;
    if (at <= 0) {
        return v[0];
    }
    size_t i = (size_t)at;
    if (i + 1 >= n) {
        return v[n - 1];
    }
    double part = at - (double)i;
    if (v[i + 1] == USEC_NEVER) {
        return part > 0 ? USEC_NEVER : v[i];
    }
    return v[i] + (int64_t)(part * (double)(v[i + 1] - v[i]));
}

struct forecast_band forecast_band_of(int64_t *v, size_t n)
{
    qsort(v, n, sizeof *v, i64_cmp);
    return (struct forecast_band){
        .p10 = quantile(v, n, 0.1), .p50 = quantile(v, n, 0.5), .p90 = quantile(v, n, 0.9)};
}

struct series { /* one value per run */
    int64_t *end, *cost, *why;
    int64_t *stage_start, *stage_end, *stage_cost; /* [of the target's stages][run] */
    int paid;                                      /* runs that no cap stopped */
    double waited[FORECAST_BINDS_COUNT];
    double *waited_slots;
};

static int64_t from_now(const struct forecast_pass *r, usec_t at_us)
{
    return at_us == USEC_NEVER ? USEC_NEVER : MAX(at_us - r->f->in.now_us, 0);
}

/* What the stage's ended attempts of the run cost; attempts still running when a run stops are
 * counted up to then. */
static musd_t stage_cost(const struct forecast_pass *r, int stage_i)
{
    const struct forecast_stage_setup *s = &r->f->stage[stage_i];
    musd_t sum = 0;
    for (int k = 0; k < SPEC_LADDER_MAX; k++) {
        musd_t cost = 0;
        struct err ignored = ERR_INIT;
        bool some = r->stage[stage_i].seconds[k] > 0 && s->slots_i[k] >= 0;
        if (some && (!cost_of_seconds(r->slots[s->slots_i[k]].price_musd_per_hour,
                                      r->stage[stage_i].seconds[k], &cost, &ignored) ||
                     !add_i64(sum, cost, &sum))) {
            return INT64_MAX / SPEC_STAGES_MAX / 2;
        }
    }
    return MIN(sum, INT64_MAX / SPEC_STAGES_MAX / 2);
}

static void read_run(const struct forecast_pass *r, size_t run_i, size_t runs, struct series *out)
{
    const struct forecast_input *in = &r->f->in;
    int64_t end = 0;
    musd_t cost = MIN(in->campaigns[in->target_i].spent_musd, INT64_MAX / 2);
    bool paid = true;
    size_t nth = 0;
    for (int i = 0; i < in->stages_n; i++) {
        if (!r->f->stage[i].target) {
            continue;
        }
        const struct forecast_stage_pass *s = &r->stage[i];
        musd_t c = stage_cost(r, i);
        out->stage_start[nth * runs + run_i] = s->left > 0 || s->start_us != USEC_NEVER
                                                   ? from_now(r, s->start_us)
                                                   : from_now(r, s->end_us);
        out->stage_end[nth * runs + run_i] = from_now(r, s->end_us);
        out->stage_cost[nth * runs + run_i] = c;
        end = MAX(end, from_now(r, s->end_us));
        cost += c;
        paid = paid &&
               (s->end_us != USEC_NEVER || wait_reason_row(s->reason)->binds != WAIT_BINDS_MONEY);
        nth++;
    }
    out->end[run_i] = end;
    out->cost[run_i] = cost;
    out->why[run_i] = from_now(r, r->why_start_us);
    out->paid += paid;
    for (int b = 0; b < FORECAST_BINDS_COUNT; b++) {
        out->waited[b] += r->waited[b];
    }
    for (int i = 0; i < in->slots_n; i++) {
        out->waited_slots[i] += r->waited_slots[i];
    }
}

static void series_free(struct series *s)
{
    free(s->end);
    free(s->stage_start);
    free(s->waited_slots);
}

static void series_init(struct series *s, size_t runs, size_t slots_n)
{
    size_t stages = SPEC_STAGES_MAX;
    *s = (struct series){.end = xcalloc(3 * runs, sizeof(int64_t)),
                         .stage_start = xcalloc(3 * runs * stages, sizeof(int64_t)),
                         .waited_slots = xcalloc(slots_n + 1, sizeof(double))};
    s->cost = s->end + runs;
    s->why = s->end + 2 * runs;
    s->stage_end = s->stage_start + runs * stages;
    s->stage_cost = s->stage_start + 2 * runs * stages;
}

static void put_binding(const struct forecast_input *in, const struct series *s,
                        struct forecast *ret)
{
    for (int b = 0; b < FORECAST_BINDS_COUNT; b++) {
        /* NONE is a wait that only time ends: nothing binds. */
        if (b != FORECAST_BINDS_NONE && s->waited[b] > 0 &&
            (ret->binding == FORECAST_BINDS_NONE || s->waited[b] > s->waited[ret->binding])) {
            ret->binding = (enum forecast_binding)b;
        }
    }
    for (int i = 0; ret->binding == FORECAST_BINDS_SLOTS && i < in->slots_n; i++) {
        if (s->waited_slots[i] > 0 &&
            (ret->binding_slots_i < 0 ||
             s->waited_slots[i] > s->waited_slots[ret->binding_slots_i])) {
            ret->binding_slots_i = i;
        }
    }
}

static const struct forecast_band never = {USEC_NEVER, USEC_NEVER, USEC_NEVER};

/* From the runs to the ETA, the cost and what binds. n: of the runs that there is room for, those
 * that were made. */
static void put_answers(const struct forecast_setup *f, struct series *s, size_t n,
                        struct forecast *ret)
{
    size_t runs = (size_t)f->runs;
    ret->runs = (int)n;
    if (ret->known) {
        ret->end_us = forecast_band_of(s->end, n);
        ret->cost_musd = forecast_band_of(s->cost, n);
        ret->fits_budget = (double)s->paid / (double)n;
    }
    for (int i = 0; i < f->in.stages_n; i++) {
        if (!f->stage[i].target) {
            continue;
        }
        size_t at = (size_t)ret->stages_n * runs;
        struct forecast_stage_out *o = &ret->stage[ret->stages_n++];
        o->stage_i = i;
        o->known = f->stage[i].known == FORECAST_KNOWN;
        if (!o->known) {
            continue;
        }
        o->start_us = forecast_band_of(s->stage_start + at, n);
        o->end_us = forecast_band_of(s->stage_end + at, n);
        o->cost_musd = forecast_band_of(s->stage_cost + at, n);
        int64_t span_us = o->end_us.p50 == USEC_NEVER ? 0 : o->end_us.p50 - o->start_us.p50;
        o->parts_per_h = span_us > 0 ? (double)f->stage[i].whole_n * 3600e6 / (double)span_us : 0;
        if (f->stage[i].in->held_n > 0) {
            o->end_us = never;
            ret->end_us = ret->known ? never : ret->end_us;
        }
    }
    put_binding(&f->in, s, ret);
}

/* Set the position of the part in its stage's queue; parts that back off keep theirs. Returns its
 * stage, or -1. */
static int put_place(const struct forecast_setup *f, struct forecast *ret)
{
    for (int i = 0; i < f->in.stages_n; i++) {
        const struct forecast_stage *s = f->stage[i].in;
        const struct forecast_part *why = NULL;
        for (size_t k = 0; f->stage[i].target && k < s->parts_n && why == NULL; k++) {
            why = s->parts[k].task_id == f->in.why_task_id ? &s->parts[k] : NULL;
        }
        if (why == NULL) {
            continue;
        }
        int64_t before = 0;
        int64_t all = 0;
        for (size_t k = 0; k < s->parts_n; k++) {
            uint32_t key = forecast_key(f, &s->parts[k]);
            bool first = key > forecast_key(f, why) ||
                         (key == forecast_key(f, why) && s->parts[k].task_id < why->task_id);
            int64_t of = s->times != NULL ? s->times[k] : 1;
            before += first ? of : 0;
            all += of;
        }
        ret->place = before + 1;
        ret->place_of = all;
        return i;
    }
    return -1;
}

/* What is still missing for a forecast: the stage that lacks the most parts. */
static void put_needs(const struct forecast_setup *f, struct forecast *ret)
{
    ret->known = true;
    ret->price_known = true;
    for (int i = 0; i < f->in.stages_n; i++) {
        const struct forecast_stage_setup *s = &f->stage[i];
        if (!s->target || s->parts_n == 0) {
            continue;
        }
        int needs = duration_needs(&s->in->duration);
        if (needs > ret->needs_parts) {
            ret->known = false;
            ret->needs_parts = needs;
            size_t n = strnlen(s->in->stage->name, sizeof ret->needs_stage - 1);
            memcpy(ret->needs_stage, s->in->stage->name, n);
            ret->needs_stage[n] = '\0';
        }
        for (int k = 0; k < s->in->stage->instance_type_n; k++) {
            ret->price_known = ret->price_known && s->slots_i[k] >= 0 &&
                               f->in.slots[s->slots_i[k]].price_musd_per_hour >= 0;
        }
    }
}

/* More than fits the bounds; the caller may have left the rest out. */
static bool too_large(const struct forecast_input *in)
{
    if (in->too_large || in->stages_n > FORECAST_STAGES_MAX ||
        in->campaigns_n > FORECAST_CAMPAIGNS_MAX || in->projects_n > FORECAST_CAMPAIGNS_MAX) {
        return true;
    }
    size_t parts = 0;
    for (int i = 0; i < in->stages_n && parts <= FORECAST_PARTS_MAX; i++) {
        parts += MIN(in->stages[i].parts_n, (size_t)FORECAST_PARTS_MAX + 1);
        parts += MIN(in->stages[i].jobs_n, (size_t)FORECAST_PARTS_MAX + 1);
    }
    return parts > FORECAST_PARTS_MAX;
}

/* All runs, or as many as the time allows. */
static void run_all(const struct forecast_setup *f, int why_stage, struct forecast *ret)
{
    CLEANUP(series_free)
    struct series s;
    CLEANUP(forecast_pass_free)
    struct forecast_pass r = {0};
    size_t n = 0;
    series_init(&s, (size_t)f->runs, (size_t)f->in.slots_n);
    forecast_pass_init(&r, f);
    while (n < (size_t)f->runs && forecast_pass(&r, (int)n)) {
        read_run(&r, n++, (size_t)f->runs, &s);
    }
    if (n < MIN((size_t)f->runs, (size_t)RUNS_ENOUGH)) {
        *ret = (struct forecast){.binding_slots_i = -1, .too_large = true};
        return;
    }
    put_answers(f, &s, n, ret);
    if (why_stage >= 0 && f->stage[why_stage].known == FORECAST_KNOWN) {
        ret->start_us = forecast_band_of(s.why, n);
    }
}

bool forecast_forecast(const struct forecast_input *in, enum forecast_engine engine,
                       struct forecast *ret, struct err *err)
{
    CLEANUP(forecast_release)
    struct forecast_setup f = {0};
    if (in->unread || too_large(in)) {
        *ret = (struct forecast){
            .binding_slots_i = -1, .too_large = !in->unread, .unread = in->unread};
        return true;
    }
    if (!forecast_prepare(&f, in, engine, err)) {
        return false;
    }
    struct forecast out = {.binding_slots_i = -1};
    put_needs(&f, &out);
    int why_stage = in->why_task_id != 0 ? put_place(&f, &out) : -1;
    bool some = out.known;
    for (int i = 0; i < in->stages_n && !some; i++) {
        some = f.stage[i].target && f.stage[i].parts_n > 0 && f.stage[i].known == FORECAST_KNOWN;
    }
    if (some) {
        run_all(&f, why_stage, &out);
    }
    *ret = out;
    return true;
}

bool forecast_run(const struct forecast_input *in, struct forecast *ret, struct err *err)
{
    return forecast_forecast(in, FORECAST_ENGINE_BY_SIZE, ret, err);
}
