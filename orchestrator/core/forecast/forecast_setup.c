/* Checks the forecast's input and prepares what every run starts from: parts in queue order, fitted
 * models, resolved ladders. */
#include "forecast_work.h"

static bool index_in(int i, int n)
{
    return i >= 0 && i < n;
}

static bool check_head(const struct forecast_input *in, struct err *err)
{
    const char *wrong = NULL;
    if (in->runs < 0 || in->runs > FORECAST_RUNS_MAX) {
        wrong = "runs";
    } else if (in->stages_n < 0 || in->stages_n > FORECAST_STAGES_MAX) {
        wrong = "stages_n";
    } else if (in->campaigns_n < 1 || in->campaigns_n > FORECAST_CAMPAIGNS_MAX ||
               !index_in(in->target_i, in->campaigns_n)) {
        wrong = "campaigns";
    } else if (in->projects_n < 1 || in->projects_n > FORECAST_CAMPAIGNS_MAX) {
        wrong = "projects";
    } else if (!(in->creates_per_s > 0 && in->creates_per_s <= 1e6)) {
        wrong = "creates_per_s";
    } else if (!(in->spot_loss >= 0 && in->spot_loss < 1)) {
        wrong = "spot_loss";
    } else if (in->now_us < 0 || in->slots_n < 0 || in->account == NULL) {
        wrong = "now or slots";
    }
    return wrong == NULL || err_set(err, ERR_INVALID, "forecast: %s is out of bounds", wrong);
}

static bool check_shares(const struct forecast_input *in, struct err *err)
{
    for (int i = 0; i < in->campaigns_n; i++) {
        const struct forecast_campaign *c = &in->campaigns[i];
        if (!index_in(c->project_i, in->projects_n) || c->weight < 1 || c->spent_musd < 0) {
            return err_set(err, ERR_INVALID, "forecast: campaign %d is out of bounds", i);
        }
    }
    for (int i = 0; i < in->projects_n; i++) {
        if (in->projects[i].weight < 1) {
            return err_set(err, ERR_INVALID, "forecast: project %d is out of bounds", i);
        }
    }
    return true;
}

static bool stage_fits(const struct forecast_input *in, const struct forecast_stage *s)
{
    if (!index_in(s->campaign_i, in->campaigns_n) || s->needs_n < 0 ||
        s->needs_n > SPEC_STAGES_MAX || s->stage->instance_count < 1 ||
        s->stage->instance_type_n < 0 || s->stage->instance_type_n > SPEC_LADDER_MAX ||
        s->failed_tries < 0 || s->tries < s->failed_tries || s->cold_start_s < 0 ||
        s->retry_wait_s < 0) {
        return false;
    }
    for (int k = 0; k < s->needs_n; k++) {
        if (!index_in(s->needs[k], in->stages_n)) {
            return false;
        }
    }
    for (size_t k = 0; k < s->jobs_n; k++) {
        if (s->jobs[k].instances < 1 || s->jobs[k].slots_i >= in->slots_n) {
            return false;
        }
    }
    return true;
}

static bool check_stages(struct forecast_setup *f, struct err *err)
{
    int of_target = 0;
    for (int i = 0; i < f->in.stages_n; i++) {
        const struct forecast_stage *s = &f->in.stages[i];
        if (s->parts_n > FORECAST_PARTS_MAX || s->jobs_n > FORECAST_PARTS_MAX ||
            !stage_fits(&f->in, s)) {
            return err_set(err, ERR_INVALID, "forecast: stage %d is out of bounds", i);
        }
        of_target += s->campaign_i == f->in.target_i;
        f->parts_n += s->parts_n + s->jobs_n;
        if (f->parts_n > FORECAST_PARTS_MAX || of_target > SPEC_STAGES_MAX) {
            return err_set(err, ERR_INVALID, "forecast: more than %d parts or %d stages",
                           FORECAST_PARTS_MAX, SPEC_STAGES_MAX);
        }
    }
    return true;
}

static int by_size(const void *a, const void *b)
{
    const struct forecast_part *p = a;
    const struct forecast_part *q = b;
    if (p->size_mb != q->size_mb) {
        return p->size_mb > q->size_mb ? -1 : 1;
    }
    return p->task_id < q->task_id ? -1 : p->task_id > q->task_id;
}

static int by_seq(const void *a, const void *b)
{
    const struct forecast_part *p = a;
    const struct forecast_part *q = b;
    if (p->seq != q->seq) {
        return p->seq < q->seq ? -1 : 1;
    }
    return p->task_id < q->task_id ? -1 : p->task_id > q->task_id;
}

/* A queue from the database or the leader is usually sorted: check before sorting. */
static void sort_parts(struct forecast_part *p, size_t n, bool fifo)
{
    int (*compare)(const void *, const void *) = fifo ? by_seq : by_size;
    for (size_t i = 1; i < n; i++) {
        if (compare(&p[i - 1], &p[i]) > 0) {
            qsort(p, n, sizeof *p, compare);
            return;
        }
    }
}

static void take_times(struct forecast_setup *f, struct forecast_stage_setup *s)
{
    s->bucket = xmalloc((s->due_n + 1) * sizeof *s->bucket);
    for (size_t i = 0; i < s->due_n; i++) {
        ASSERT(s->in->times[i] > 0);
        s->bucket[i] = s->in->times[i];
        s->whole_n += s->bucket[i] - 1;
    }
    f->coarse = true;
}

static void take_parts(struct forecast_setup *f, struct forecast_stage_setup *s)
{
    const struct forecast_stage *in = s->in;
    /* Paused stages of other campaigns take only the slots their jobs hold. */
    size_t waiting = s->target || in->may_start ? in->parts_n : 0;
    s->parts = xmalloc((waiting + in->jobs_n + 1) * sizeof *s->parts);
    for (size_t i = 0; i < waiting; i++) {
        if (in->parts[i].not_before_us <= f->in.now_us) {
            s->parts[s->due_n++] = in->parts[i];
        }
    }
    for (size_t i = 0; s->due_n + s->late_n < waiting; i++) {
        if (in->parts[i].not_before_us > f->in.now_us) {
            s->parts[s->due_n + s->late_n++] = in->parts[i];
        }
    }
    sort_parts(s->parts, s->due_n, f->in.fifo);
    s->parts_n = s->whole_n = waiting + in->jobs_n;
    if (in->times != NULL) {
        take_times(f, s);
    }
    for (size_t i = 0; i < in->jobs_n; i++) {
        s->parts[waiting + i] =
            (struct forecast_part){.task_id = in->jobs[i].task_id, .size_mb = in->jobs[i].size_mb};
    }
}

static int64_t since(usec_t now_us, usec_t then_us)
{
    return now_us > then_us ? now_us - then_us : 0;
}

static void take_running(struct forecast_setup *f, struct forecast_stage_setup *s)
{
    const struct forecast_stage *in = s->in;
    s->running = xmalloc((in->jobs_n + 1) * sizeof *s->running);
    for (size_t i = 0; i < in->jobs_n; i++) {
        if (in->jobs[i].started_us > 0) {
            s->running[s->running_n++] = (struct duration_running){
                in->jobs[i].size_mb, since(f->in.now_us, in->jobs[i].started_us)};
        }
    }
    for (size_t i = 0; i < in->jobs_n; i++) {
        if (in->jobs[i].started_us <= 0) {
            s->running[s->running_n + s->starting_n++] =
                (struct duration_running){0, since(f->in.now_us, in->jobs[i].intended_us)};
        }
    }
}

static bool starts_alike(const struct spec_stage *a, const struct spec_stage *b)
{
    return a->instance_type_n > 0 && b->instance_type_n > 0 && a->spot == b->spot &&
           a->instance_count == b->instance_count &&
           strcmp(a->instance_type[0], b->instance_type[0]) == 0;
}

/* How long starts took: the stage's own, else of the stage that has seen most of that kind. */
static const struct duration *starts_seen(const struct forecast_input *in,
                                          const struct forecast_stage *of)
{
    const struct duration *most = &of->start;
    for (int i = 0; i < in->stages_n && !duration_known(&of->start); i++) {
        const struct forecast_stage *s = &in->stages[i];
        if (s->start.n > most->n && duration_known(&s->start) &&
            starts_alike(s->stage, of->stage)) {
            most = &s->start;
        }
    }
    return most;
}

static void take_models(const struct forecast_setup *f, struct forecast_stage_setup *s)
{
    const struct forecast_stage *in = s->in;
    s->duration = xmalloc(sizeof *s->duration);
    *s->duration = in->duration;
    if (!duration_known(s->duration)) {
        /* For the target this is reported; other campaigns' stages take slots with this
         * assumption. */
        int64_t half_s = MIN(MAX(in->stage->max_runtime_s / 2, 1), INT64_C(100000000));
        s->duration->expect_us = half_s * USEC_PER_SEC;
        s->duration->stale = true;
    }
    duration_fit(s->duration);
    for (size_t i = 0; i < s->running_n; i++) {
        const struct duration_running *r = &s->running[i];
        int64_t half_us = duration_quantile_us(s->duration, r->size_mb, 50);
        s->passed += MIN((double)r->elapsed_us / (double)half_us, 1.0);
    }
    s->start = xmalloc(sizeof *s->start);
    *s->start = *starts_seen(&f->in, in);
    for (size_t i = 0; i < in->jobs_n; i++) {
        if (in->jobs[i].started_us > 0) {
            duration_learn(s->start, 0, in->jobs[i].started_us - in->jobs[i].intended_us);
        }
    }
    duration_fit(s->start);
    if (!duration_known(s->start)) {
        free(TAKE(s->start));
    }
}

static int slots_named(const struct forecast_input *in, const char *type, enum market market)
{
    for (int i = 0; i < in->slots_n; i++) {
        if (in->slots[i].market == market && strcmp(in->slots[i].instance_type, type) == 0) {
            return i;
        }
    }
    return -1;
}

static void take_ladder(struct forecast_setup *f, struct forecast_stage_setup *s)
{
    const struct spec *spec = s->in->spec;
    const struct spec_stage *stage = s->in->stage;
    for (int k = 0; k < stage->instance_type_n; k++) {
        s->slots_i[k] = slots_named(&f->in, stage->instance_type[k],
                                    stage->spot ? MARKET_SPOT : MARKET_ON_DEMAND);
        s->limit_i[k] = -1;
        for (int i = 0; i < spec->instances_n; i++) {
            if (strcmp(spec->instances[i].instance_type, stage->instance_type[k]) == 0) {
                s->limit_i[k] = i;
                break;
            }
        }
    }
    const struct forecast_campaign *c = &f->in.campaigns[s->in->campaign_i];
    s->counts_money = s->in->left_musd != INT64_MAX || s->in->part_cap_musd != INT64_MAX ||
                      c->left_musd != INT64_MAX ||
                      f->in.projects[c->project_i].left_musd != INT64_MAX ||
                      f->in.left_musd != INT64_MAX;
}

#define SCHED_STEPS  150000   /* starts decided by sched_decide: about two seconds */
#define KERNEL_STEPS 15000000 /* starts decided by the fast engine */
#define RUNS_WANTED  200
#define RUNS_LEAST   16
/* When that many runs make more starts than this (about a second), neighbours in the queue become
 * one, as long as a stage has enough of them left to fill its slots evenly. */
#define FINE_STEPS     4000000
#define BUCKETS_LEAST  1024
#define BUCKETS_A_SLOT 32

/* Each decision also visits every stage. */
static size_t steps_of(const struct forecast_setup *f)
{
    return (f->parts_n + 1) * (1 + (size_t)f->in.stages_n / 16);
}

static size_t buckets_least(const struct forecast_setup *f, const struct forecast_stage_setup *s)
{
    int64_t at_once = 0;
    for (int k = 0; k < s->in->stage->instance_type_n; k++) {
        int64_t limit =
            s->slots_i[k] < 0 ? 0 : quota_ledger_limit(&f->in.slots[s->slots_i[k]], f->in.account);
        at_once += MIN(MAX(limit, 0) / s->in->stage->instance_count, FORECAST_PARTS_MAX);
    }
    return (size_t)MAX(BUCKETS_LEAST, BUCKETS_A_SLOT * at_once);
}

/* `most` due entries, which follow each other in the queue, as one of their mean size. The part
 * that is asked about stays alone. */
static void merge_stage(const struct forecast_setup *f, struct forecast_stage_setup *s, size_t most)
{
    const int64_t why = f->in.why_task_id;
    bool first_time = s->bucket == NULL;
    size_t n = 0;
    size_t rest = s->parts_n - s->due_n;
    s->bucket = xrealloc(s->bucket, (s->due_n + 1) * sizeof *s->bucket);
    for (size_t i = 0; i < s->due_n;) {
        struct forecast_part first = s->parts[i];
        uint64_t size_mb = 0;
        uint64_t of = 0;
        size_t end = MIN(first.task_id == why ? i + 1 : i + most, s->due_n);
        do {
            uint64_t here = first_time ? 1 : s->bucket[i];
            size_mb += here * s->parts[i++].size_mb;
            of += here;
        } while (i < end && s->parts[i].task_id != why);
        first.size_mb = (uint32_t)(size_mb / of);
        s->bucket[n] = (uint32_t)MIN(of, UINT32_MAX);
        s->parts[n++] = first;
    }
    memmove(&s->parts[n], &s->parts[s->due_n], rest * sizeof *s->parts);
    s->due_n = n;
    s->parts_n = n + rest;
}

/* Makes the input coarser when it is too large to be run often enough. */
static void merge(struct forecast_setup *f, enum forecast_engine engine)
{
    bool forced = engine == FORECAST_ENGINE_COARSE;
    size_t runs = (size_t)(f->in.runs > 0 ? MIN(f->in.runs, RUNS_LEAST) : RUNS_LEAST);
    size_t most = forced                            ? FORECAST_COARSE
                  : engine == FORECAST_ENGINE_SCHED ? 1
                                                    : (steps_of(f) * runs - 1) / FINE_STEPS + 1;
    if (most == 1) {
        return;
    }
    f->parts_n = 0;
    for (int i = 0; i < f->in.stages_n; i++) {
        struct forecast_stage_setup *s = &f->stage[i];
        size_t here = forced ? most : MIN(most, s->due_n / buckets_least(f, s));
        if (here > 1) {
            merge_stage(f, s, here);
            f->coarse = true;
        }
        f->parts_n += s->parts_n;
    }
}

static void take_effort(struct forecast_setup *f, enum forecast_engine engine)
{
    size_t steps = steps_of(f);
    f->engine = engine == FORECAST_ENGINE_COARSE ? FORECAST_ENGINE_FAST : engine;
    if (engine == FORECAST_ENGINE_BY_SIZE) {
        bool few = steps * (size_t)(f->in.runs > 0 ? f->in.runs : RUNS_WANTED / 2) <= SCHED_STEPS;
        f->engine = few && !f->coarse ? FORECAST_ENGINE_SCHED : FORECAST_ENGINE_FAST;
    }
    size_t can = (f->engine == FORECAST_ENGINE_SCHED ? SCHED_STEPS
                  : f->coarse                        ? FINE_STEPS
                                                     : KERNEL_STEPS) /
                 steps;
    f->runs =
        f->in.runs > 0 ? f->in.runs : (int)MIN(MAX(can, (size_t)RUNS_LEAST), (size_t)RUNS_WANTED);
}

/* Each stage once, however many need it; a circle is not known. */
static bool ask_known(struct forecast_setup *f, int stage_i)
{
    struct forecast_stage_setup *s = &f->stage[stage_i];
    if (s->known != FORECAST_UNASKED) {
        return s->known == FORECAST_KNOWN;
    }
    s->known = FORECAST_ASKING;
    bool known = s->parts_n == 0 || duration_known(&s->in->duration);
    for (int k = 0; k < s->in->needs_n; k++) {
        known = ask_known(f, s->in->needs[k]) && known; /* depth: the stages of one chain */
    }
    s->known = known ? FORECAST_KNOWN : FORECAST_UNKNOWN;
    return known;
}

bool forecast_prepare(struct forecast_setup *f, const struct forecast_input *in,
                      enum forecast_engine engine, struct err *err)
{
    *f = (struct forecast_setup){.in = *in};
    if (!check_head(in, err) || !check_shares(in, err) || !check_stages(f, err)) {
        return false;
    }
    f->stage = xcalloc((size_t)in->stages_n + 1, sizeof *f->stage);
    for (int i = 0; i < in->stages_n; i++) {
        struct forecast_stage_setup *s = &f->stage[i];
        s->in = &in->stages[i];
        s->target = s->in->campaign_i == in->target_i;
        take_parts(f, s);
        take_running(f, s);
        take_models(f, s);
        take_ladder(f, s);
    }
    for (int i = 0; i < in->stages_n; i++) {
        (void)ask_known(f, i);
    }
    merge(f, engine);
    take_effort(f, engine);
    return true;
}

void forecast_release(struct forecast_setup *f)
{
    for (int i = 0; f->stage != NULL && i < f->in.stages_n; i++) {
        free(f->stage[i].parts);
        free(f->stage[i].bucket);
        free(f->stage[i].duration);
        free(f->stage[i].start);
        free(f->stage[i].running);
    }
    free(f->stage);
    f->stage = NULL;
}
