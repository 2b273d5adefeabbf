/* Aim: the forecast says what the scheduler will do. Method: stages of equal parts whose end is
 * arithmetic; the two engines held against each other over random worlds; caps, quotas and rates
 * that bind; questions a person asks (what-if, why, advice); every bound of the input. */
#include "core/forecast_work.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define NOW    INT64_C(1700000000000000)
#define MIN_US (60 * USEC_PER_SEC)
#define STAGES 6
#define PARTS  64
#define CAMPS  3

struct world {
    struct forecast_input in;
    struct spec spec[CAMPS];
    struct spec_stage stage[STAGES];
    struct forecast_stage stages[STAGES];
    struct forecast_part parts[STAGES][PARTS];
    struct forecast_job jobs[STAGES][PARTS];
    struct forecast_campaign campaigns[CAMPS];
    struct forecast_project projects[2];
    struct slots slots[2];
    struct slots_account account;
    int64_t tasks;
};

/* Two types of 4 slots at 3.60 USD an hour, one campaign, no stage. */
static struct world *world_new(void)
{
    struct world *w = xcalloc(1, sizeof *w);
    w->account = (struct slots_account)SLOTS_ACCOUNT_UNLIMITED;
    for (int i = 0; i < 2; i++) {
        w->slots[i] = (struct slots){
            .quota = 4, .operator_limit = -1, .refused_limit = -1, .price_musd_per_hour = 3600000};
        (void)snprintf(w->slots[i].instance_type, sizeof w->slots[i].instance_type, "ml.%c.large",
                       'a' + i);
        w->projects[i] = (struct forecast_project){
            .project_id = i + 1, .weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
    }
    for (int i = 0; i < CAMPS; i++) {
        w->spec[i].parts_limit = -1;
        w->campaigns[i] = (struct forecast_campaign){.campaign_id = i + 1,
                                                     .priority = 50,
                                                     .weight = 100,
                                                     .parts_limit = -1,
                                                     .left_musd = INT64_MAX};
    }
    w->in = (struct forecast_input){.now_us = NOW,
                                    .seed = 1,
                                    .runs = 60,
                                    .creates_per_s = 1000,
                                    .stages = w->stages,
                                    .campaigns = w->campaigns,
                                    .campaigns_n = 1,
                                    .projects = w->projects,
                                    .projects_n = 1,
                                    .slots = w->slots,
                                    .slots_n = 2,
                                    .account = &w->account,
                                    .parts_limit = -1,
                                    .left_musd = INT64_MAX};
    return w;
}

/* n equal parts of campaign c on type 0; forty were seen to take ten minutes each, none failed. */
static struct forecast_stage *add_stage(struct world *w, int c, int n)
{
    int i = w->in.stages_n++;
    struct forecast_stage *s = &w->stages[i];
    w->stage[i] = (struct spec_stage){.name = i == 0 ? "first" : "second",
                                      .instance_type = {"ml.a.large"},
                                      .instance_type_n = 1,
                                      .instance_count = 1,
                                      .volume_gb = 30,
                                      .max_runtime_s = 7200,
                                      .min_runtime_s = 7200,
                                      .budget_musd = -1,
                                      .per_task_musd = -1};
    *s = (struct forecast_stage){.campaign_id = c + 1,
                                 .stage_id = i + 1,
                                 .campaign_i = c,
                                 .spec = &w->spec[c],
                                 .stage = &w->stage[i],
                                 .may_start = true,
                                 .parts = w->parts[i],
                                 .parts_n = (size_t)n,
                                 .jobs = w->jobs[i],
                                 .parts_limit = -1,
                                 .tries = 1000000};
    duration_init(&s->duration, 0);
    for (int k = 0; k < 40; k++) {
        duration_learn(&s->duration, 0, 10 * MIN_US);
    }
    for (int k = 0; k < n; k++) {
        w->parts[i][k] =
            (struct forecast_part){.task_id = ++w->tasks, .seq = (uint32_t)k, .size_mb = 0};
    }
    return s;
}

/* The last waiting parts of a stage have run for so long, on type 0. */
static void set_running(struct world *w, int stage_i, int n, int64_t ran_us)
{
    struct forecast_stage *s = &w->stages[stage_i];
    for (int k = 0; k < n; k++) {
        const struct forecast_part *p = &w->parts[stage_i][--s->parts_n];
        w->jobs[stage_i][s->jobs_n++] = (struct forecast_job){.task_id = p->task_id,
                                                              .intended_us = NOW - ran_us,
                                                              .started_us = NOW - ran_us,
                                                              .size_mb = p->size_mb,
                                                              .instances = 1};
        w->slots[0].held++;
    }
}

static struct forecast run(const struct world *w)
{
    struct err err = ERR_INIT;
    struct forecast f;
    if (!forecast_run(&w->in, &f, &err)) {
        fail_msg("%s", err.message);
    }
    return f;
}

#define assert_min(us, want_min) assert_int_equal(((us) + MIN_US / 2) / MIN_US, want_min)

static void test_forecast__equal_parts_are_arithmetic(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 16);
    w->campaigns[0].spent_musd = 5;
    struct forecast f = run(w);
    assert_true(f.known && f.price_known);
    assert_min(f.end_us.p50, 40);
    assert_min(f.end_us.p10, 40);
    assert_int_equal(f.cost_musd.p50, 5 + 16 * 600000);
    assert_int_equal(f.stages_n, 1);
    assert_min(f.stage[0].end_us.p50, 40);
    assert_int_equal(f.stage[0].start_us.p50, 0);
    assert_true(fabs(f.stage[0].parts_per_h - 24) < 0.5);
    assert_true(f.fits_budget > 0.999);
    assert_int_equal(f.binding, FORECAST_BINDS_SLOTS);
    assert_int_equal(f.binding_slots_i, 0);
    s->cold_start_s = 120; /* four waves */
    assert_min(run(w).end_us.p50, 48);
    s->parts_n = 17;
    w->parts[0][16] = (struct forecast_part){.task_id = 99};
    assert_min(run(w).end_us.p50, 60);
    s->cold_start_s = 0;
    s->parts_n = 16;
    set_running(w, 0, 4, 7 * MIN_US); /* three minutes to go, then three waves */
    assert_min(run(w).end_us.p50, 33);
    s->parts_n = 0;
    assert_min(run(w).end_us.p50, 3);
    s->jobs_n = 0;
    f = run(w); /* nothing left */
    assert_true(f.known);
    assert_int_equal(f.end_us.p90, 0);
    assert_int_equal(f.cost_musd.p90, 5);
    free(w);
}

static void test_forecast__starts_take_as_long_as_was_seen(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 16);
    s->cold_start_s = 9999; /* not asked once starts were seen */
    duration_init(&s->start, 0);
    for (int i = 0; i < 40; i++) {
        duration_learn(&s->start, 0, 5 * MIN_US);
    }
    assert_min(run(w).end_us.p50, 60);
    set_running(w, 0, 4, 4 * MIN_US);
    for (int i = 0; i < 4; i++) {
        w->jobs[0][i].started_us = 0; /* intended four minutes ago, run from the fifth on */
    }
    assert_min(run(w).end_us.p50, 56);
    free(w);
}

static void test_forecast__says_how_many_parts_it_needs(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 16);
    duration_init(&s->duration, 0);
    struct forecast f = run(w);
    assert_false(f.known);
    assert_int_equal(f.needs_parts, 5);
    assert_string_equal(f.needs_stage, "first");
    assert_int_equal(f.end_us.p50, 0);
    duration_learn(&s->duration, 0, MIN_US);
    assert_int_equal(run(w).needs_parts, 4);
    duration_init(&s->duration, 10 * MIN_US); /* expect: */
    f = run(w);
    assert_true(f.known);
    assert_true(f.end_us.p50 > 34 * MIN_US && f.end_us.p50 < 46 * MIN_US);
    struct forecast_stage *later = add_stage(w, 0, 3);
    duration_init(&later->duration, 0);
    later->needs[0] = 0;
    later->needs_n = 1;
    f = run(w); /* the first stage is known all the same */
    assert_false(f.known);
    assert_string_equal(f.needs_stage, "second");
    assert_int_equal(f.end_us.p50, 0);
    assert_true(f.stage[0].known && !f.stage[1].known);
    assert_true(f.stage[0].end_us.p50 > 34 * MIN_US);
    assert_int_equal(f.stage[1].end_us.p50, 0);
    free(w);
}

static void test_forecast__stages_wait_for_those_they_need(void **state)
{
    (void)state;
    struct world *w = world_new();
    add_stage(w, 0, 8);
    struct forecast_stage *b = add_stage(w, 0, 4);
    w->stage[1].instance_type[0] = "ml.b.large";
    assert_min(run(w).end_us.p50, 20); /* side by side */
    b->needs[0] = 0;
    b->needs_n = 1;
    struct forecast f = run(w);
    assert_min(f.end_us.p50, 30);
    assert_min(f.stage[1].start_us.p50, 20);
    assert_min(f.stage[1].end_us.p50, 30);
    struct forecast_stage *c = add_stage(w, 0, 0); /* empty: ends as soon as it may */
    c->needs[0] = 1;
    c->needs_n = 1;
    f = run(w);
    assert_min(f.stage[2].end_us.p50, 30);
    c->needs[0] = 2; /* itself */
    assert_int_equal(run(w).end_us.p50, USEC_NEVER);
    free(w);
}

static void test_forecast__others_take_their_share(void **state)
{
    (void)state;
    struct world *w = world_new();
    w->in.campaigns_n = 2;
    add_stage(w, 0, 16);
    struct forecast_stage *other = add_stage(w, 1, 16);
    assert_min(run(w).end_us.p50, 80); /* two slots each */
    w->campaigns[0].priority = 60;
    assert_min(run(w).end_us.p50, 40);
    w->campaigns[1].priority = 70;
    assert_min(run(w).end_us.p50, 80);
    other->may_start = false; /* paused: what it runs, it runs on */
    assert_min(run(w).end_us.p50, 40);
    set_running(w, 1, 2, 0);
    assert_min(run(w).end_us.p50, 50); /* 2 slots for the first wave, then 4: 2 + 4 + 4 + 4 + 2 */
    w->campaigns[0].priority = 50;
    w->campaigns[1].priority = 50;
    other->jobs_n = 0;
    w->slots[0].held = 0;
    other->may_start = true;
    w->campaigns[1].weight = 300; /* three slots to one */
    struct forecast f = run(w);
    assert_true(f.end_us.p50 >= 80 * MIN_US);
    duration_init(&other->duration, 0); /* theirs is not known: ours is told all the same */
    assert_true(run(w).known);
    free(w);
}

static void test_forecast__limits_bind(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 16);
    w->campaigns[0].parts_limit = 2;
    struct forecast f = run(w);
    assert_min(f.end_us.p50, 80);
    assert_int_equal(f.binding, FORECAST_BINDS_CONCURRENCY);
    assert_int_equal(f.binding_slots_i, -1);
    w->campaigns[0].parts_limit = -1;
    s->parts_limit = 1;
    assert_min(run(w).end_us.p50, 160);
    s->parts_limit = -1;
    w->in.parts_limit = 2;
    assert_min(run(w).end_us.p50, 80);
    w->in.parts_limit = -1;
    w->projects[0].parts_limit = 2;
    assert_min(run(w).end_us.p50, 80);
    w->projects[0].parts_limit = -1;
    w->spec[0].instances[0] = (struct spec_limit){"ml.a.large", 2};
    w->spec[0].instances_n = 1;
    f = run(w);
    assert_min(f.end_us.p50, 80);
    assert_int_equal(f.binding, FORECAST_BINDS_CONCURRENCY);
    w->spec[0].instances_n = 0;
    w->slots[0].quota = 100;
    w->in.creates_per_s = 1.0 / 120; /* sixteen starts, two minutes apart */
    f = run(w);
    assert_min(f.end_us.p50, 40);
    assert_int_equal(f.binding, FORECAST_BINDS_RATE);
    free(w);
}

static void test_forecast__money_and_quotas_that_never_come(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 16);
    /* The worst case of one part is 8.22 USD, its cost 0.60. */
    w->campaigns[0].left_musd = 20 * MUSD_PER_USD;
    struct forecast f = run(w);
    /* Two at once while 16.44 USD are left, that is for six parts, then one by one. */
    assert_min(f.end_us.p50, 30 + 100);
    assert_true(f.fits_budget > 0.99);
    assert_int_equal(f.binding, FORECAST_BINDS_MONEY);
    w->campaigns[0].left_musd = 10 * MUSD_PER_USD; /* one by one, and the fourth does not fit */
    f = run(w);
    assert_int_equal(f.end_us.p50, USEC_NEVER);
    assert_true(f.fits_budget < 0.01);
    assert_int_equal(f.cost_musd.p50, 3 * 600000);
    w->campaigns[0].left_musd = INT64_MAX;
    w->stage[0].budget_musd = 30 * MUSD_PER_USD;
    assert_true(run(w).fits_budget > 0.99);
    s->committed_musd = 25 * MUSD_PER_USD;
    assert_true(run(w).fits_budget < 0.01);
    w->stage[0].budget_musd = -1;
    w->in.left_musd = MUSD_PER_USD;
    assert_true(run(w).fits_budget < 0.01);
    w->in.left_musd = INT64_MAX;
    w->projects[0].left_musd = MUSD_PER_USD;
    assert_true(run(w).fits_budget < 0.01);
    w->projects[0].left_musd = INT64_MAX;
    w->slots[0].price_musd_per_hour = -1;
    f = run(w);
    assert_false(f.price_known);
    assert_min(f.end_us.p50, 40);
    assert_int_equal(f.cost_musd.p50, 0);
    w->slots[0].price_musd_per_hour = 3600000;
    w->slots[0].quota = -1;
    assert_int_equal(run(w).end_us.p10, USEC_NEVER);
    w->slots[0].quota = 0;
    assert_int_equal(run(w).end_us.p10, USEC_NEVER);
    w->slots[0].quota = 4;
    w->slots[0].foreign = 4; /* others' use fades: 2 slots after ten minutes, 3 after twenty */
    w->slots[0].foreign_us = NOW;
    f = run(w);
    assert_true(f.end_us.p50 > 40 * MIN_US && f.end_us.p50 < 70 * MIN_US);
    free(w);
}

static void test_forecast__failures_take_time_and_money(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 60);
    w->in.runs = 200;
    struct forecast sound = run(w);
    s->failed_tries = 200000; /* of a million: one in five, half way on average */
    struct forecast f = run(w);
    double dearer = (double)f.cost_musd.p50 / (double)sound.cost_musd.p50;
    assert_true(dearer > 1.10 && dearer < 1.15); /* 1 + 0.25 * 0.5 */
    assert_true(f.end_us.p50 > sound.end_us.p50);
    s->retry_wait_s = 3600;
    assert_true(run(w).end_us.p50 > f.end_us.p50);
    s->failed_tries = 0;
    w->in.spot_loss = 0.2;
    f = run(w);
    dearer = (double)f.cost_musd.p50 / (double)sound.cost_musd.p50;
    assert_true(dearer > 1.10 && dearer < 1.15);
    w->in.spot_loss = 0.99; /* hardly one comes through: bounded all the same */
    assert_true(run(w).known);
    w->in.spot_loss = 0;
    w->stage[0].max_runtime_s = 60; /* shorter than any part */
    f = run(w);
    assert_int_equal(f.cost_musd.p50, 60 * FORECAST_TRIES_MAX * 60000);
    free(w);
}

static void test_forecast__place_and_start_of_one_part(void **state)
{
    (void)state;
    struct world *w = world_new();
    add_stage(w, 0, 24); /* more than the look-ahead lays out */
    struct forecast f = run(w);
    assert_int_equal(f.place, 0);
    w->in.why_task_id = 10;
    f = run(w);
    assert_int_equal(f.place, 10);
    assert_int_equal(f.place_of, 24);
    assert_min(f.start_us.p50, 20);
    w->parts[0][9].size_mb = 5; /* longest first */
    f = run(w);
    assert_int_equal(f.place, 1);
    assert_int_equal(f.start_us.p50, 0);
    w->in.fifo = true;
    f = run(w);
    assert_int_equal(f.place, 10);
    assert_min(f.start_us.p50, 20);
    w->in.fifo = false;
    w->parts[0][9].not_before_us = NOW + 35 * MIN_US; /* backs off, keeps its place */
    f = run(w);
    assert_int_equal(f.place, 1);
    assert_true(f.start_us.p50 >= 35 * MIN_US);
    w->in.why_task_id = 12345;
    f = run(w);
    assert_int_equal(f.place, 0);
    assert_int_equal(f.start_us.p50, 0);
    free(w);
}

static void test_forecast__same_seed_same_answer(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 40);
    duration_init(&s->duration, 0);
    for (int i = 0; i < 20; i++) {
        duration_learn(&s->duration, (uint32_t)(100 + 20 * i), (300 + 31 * i % 170) * USEC_PER_SEC);
    }
    struct forecast a = run(w);
    struct forecast b = run(w);
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(a.end_us.p10 < a.end_us.p50 && a.end_us.p50 < a.end_us.p90);
    w->in.seed = 2;
    b = run(w);
    assert_true(a.end_us.p50 != b.end_us.p50);
    for (size_t i = 0; i < 20; i++) { /* the order parts come in does not matter */
        struct forecast_part p = w->parts[0][i];
        w->parts[0][i] = w->parts[0][39 - i];
        w->parts[0][39 - i] = p;
    }
    struct forecast c = run(w);
    assert_memory_equal(&b, &c, sizeof b);
    free(w);
}

/* --- the engines ------------------------------------------------------------------------------ */

static int64_t pick(struct rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)rng_below(rng, (uint64_t)(high - low + 1));
}

/* Up to three campaigns with two stages each, sizes, noise, failures, limits, caps, back-offs. */
static struct world *random_world(uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed);
    struct world *w = world_new();
    w->in.seed = seed;
    w->in.runs = 7;
    w->in.campaigns_n = (int)pick(&rng, 1, CAMPS);
    w->in.projects_n = 2;
    w->in.creates_per_s = rng_chance(&rng, 0.3) ? 0.01 : 5;
    w->in.parts_limit = rng_chance(&rng, 0.2) ? pick(&rng, 1, 8) : -1;
    w->slots[0].quota = pick(&rng, 1, 6);
    w->slots[1].quota = pick(&rng, 1, 6);
    w->account.total[MARKET_ON_DEMAND].limit = rng_chance(&rng, 0.2) ? pick(&rng, 1, 8) : -1;
    for (int c = 0; c < w->in.campaigns_n; c++) {
        w->campaigns[c].project_i = (int)pick(&rng, 0, 1);
        w->campaigns[c].weight = pick(&rng, 1, 300);
        w->campaigns[c].priority = rng_chance(&rng, 0.3) ? 60 : 50;
        w->campaigns[c].parts_limit = rng_chance(&rng, 0.3) ? pick(&rng, 1, 5) : -1;
        w->campaigns[c].left_musd =
            rng_chance(&rng, 0.3) ? pick(&rng, 5, 60) * MUSD_PER_USD : INT64_MAX;
        for (int k = 0; k < 2; k++) {
            int i = w->in.stages_n;
            struct forecast_stage *s = add_stage(w, c, (int)pick(&rng, 0, 25));
            w->stage[i].instance_type[0] = rng_chance(&rng, 0.5) ? "ml.a.large" : "ml.b.large";
            w->stage[i].budget_musd = rng_chance(&rng, 0.1) ? pick(&rng, 5, 60) * MUSD_PER_USD : -1;
            s->parts_limit = rng_chance(&rng, 0.2) ? pick(&rng, 1, 4) : -1;
            s->needs[0] = i - 1;
            s->needs_n = k == 1 && rng_chance(&rng, 0.5);
            s->failed_tries = rng_chance(&rng, 0.5) ? 100000 : 0;
            s->retry_wait_s = pick(&rng, 0, 300);
            s->cold_start_s = pick(&rng, 0, 200);
            duration_init(&s->duration, 0);
            for (int n = 0; n < 20; n++) {
                uint32_t mb = (uint32_t)pick(&rng, 50, 900);
                duration_learn(&s->duration, mb, (int64_t)(mb + 60) * pick(&rng, 600000, 1400000));
            }
            for (size_t n = 0; n < s->parts_n; n++) {
                w->parts[i][n].size_mb = (uint32_t)pick(&rng, 50, 900);
                w->parts[i][n].not_before_us =
                    rng_chance(&rng, 0.1) ? NOW + pick(&rng, 0, 1000) * USEC_PER_SEC : 0;
            }
        }
    }
    return w;
}

static bool engines(struct world *w, struct forecast *ret_sched, struct forecast *ret_kernel)
{
    struct err err = ERR_INIT;
    return fc_forecast(&w->in, FC_ENGINE_SCHED, ret_sched, &err) &&
           fc_forecast(&w->in, FC_ENGINE_KERNEL, ret_kernel, &err);
}

/* First in, first out leaves the tail alone: then both must start the same parts at the same time,
 * whatever limits, caps, shares and failures there are. */
static void test_forecast__kernel_starts_what_sched_decide_starts(void **state)
{
    (void)state;
    int ends = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct world *w = random_world(seed);
        w->in.fifo = true;
        struct forecast a;
        struct forecast b;
        assert_true(engines(w, &a, &b));
        if (memcmp(&a, &b, sizeof a) != 0) {
            fail_msg("seed %d: ends %.3f and %.3f min, cost %.6f and %.6f, binding %d and %d",
                     (int)seed, (double)a.end_us.p50 / 60e6, (double)b.end_us.p50 / 60e6,
                     (double)a.cost_musd.p50 / 1e6, (double)b.cost_musd.p50 / 1e6, (int)a.binding,
                     (int)b.binding);
        }
        ends += a.end_us.p50 != USEC_NEVER;
        free(w);
    }
    (void)printf("# %d of 150 worlds come to their end\n", ends);
    assert_in_range(ends, 75, 149);
}

/* With look-ahead over the tail sched_decide ends a little sooner. */
static void test_forecast__kernel_is_close_with_look_ahead(void **state)
{
    (void)state;
    double sum = 0;
    double worst = 0;
    int n = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct world *w = random_world(seed);
        struct forecast a;
        struct forecast b;
        assert_true(engines(w, &a, &b));
        if (a.end_us.p50 != USEC_NEVER && b.end_us.p50 != USEC_NEVER && a.end_us.p50 > 0) {
            double off = (double)b.end_us.p50 / (double)a.end_us.p50 - 1;
            sum += off;
            worst = fmax(worst, fabs(off));
            n++;
        }
        free(w);
    }
    (void)printf("# kernel against sched_decide: mean %+.4f, worst %.4f of %d\n", sum / n, worst,
                 n);
    assert_true(n > 75);
    assert_true(fabs(sum / n) < 0.01 && worst < 0.10);
}

/* A job of four instances among small ones: it is waited for by both. */
static void test_forecast__tasks_of_several_instances(void **state)
{
    (void)state;
    struct world *w = world_new();
    w->in.campaigns_n = 2;
    add_stage(w, 0, 1);
    add_stage(w, 1, 40);
    set_running(w, 1, 4, 3 * MIN_US);
    w->stage[0].instance_count = 4;
    w->campaigns[0].priority = 60;
    struct forecast a;
    struct forecast b;
    assert_true(engines(w, &a, &b));
    assert_min(a.stage[0].start_us.p50, 7);
    assert_min(b.stage[0].start_us.p50, 7);
    assert_min(a.end_us.p50, 17);
    assert_int_equal(a.cost_musd.p50, 4 * 600000);
    w->stage[0].instance_count = 5; /* more than there are */
    assert_true(engines(w, &a, &b));
    assert_int_equal(a.end_us.p50, USEC_NEVER);
    assert_int_equal(b.end_us.p50, USEC_NEVER);
    free(w);
}

/* --- what if, advice -------------------------------------------------------------------------- */

static struct what_if no_change(void)
{
    return (struct what_if){.slots = -1, .parts = -1, .spot_loss = -1};
}

static int64_t what_if(const struct world *w, const struct what_if *what)
{
    struct err err = ERR_INIT;
    struct forecast f;
    if (!forecast_run_what_if(&w->in, what, &f, &err)) {
        fail_msg("%s", err.message);
    }
    return f.end_us.p50;
}

static void test_forecast__what_if(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 16);
    struct what_if x = no_change();
    assert_min(what_if(w, &x), 40);
    x.slots = 8;
    assert_min(what_if(w, &x), 20);
    w->campaigns[0].parts_limit = 4; /* lifted with the slots */
    w->slots[0].operator_limit = 4;
    w->slots[0].refused_limit = 3;
    w->spec[0].instances[0] = (struct spec_limit){"ml.a.large", 4};
    w->spec[0].instances_n = 1;
    assert_min(what_if(w, &x), 20);
    x.parts = 2; /* unless it is said */
    assert_min(what_if(w, &x), 80);
    assert_int_equal(w->campaigns[0].parts_limit, 4); /* the input stays */
    assert_int_equal(w->slots[0].operator_limit, 4);
    w->campaigns[0].parts_limit = -1;
    w->spec[0].instances_n = 0;
    w->slots[0].operator_limit = w->slots[0].refused_limit = -1;
    x = no_change();
    w->slots[1].quota = 16;
    (void)snprintf(x.instance_type, sizeof x.instance_type, "ml.b.large");
    assert_min(what_if(w, &x), 10);
    (void)snprintf(x.instance_type, sizeof x.instance_type, "ml.z.large");
    struct err err = ERR_INIT;
    struct forecast f;
    assert_false(forecast_run_what_if(&w->in, &x, &f, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_non_null(strstr(err.message, "ml.z.large"));
    x = no_change();
    x.spot_loss = 0.5;
    assert_true(what_if(w, &x) > 45 * MIN_US);
    /* One part takes four times as long: last in the list it ends the campaign late. */
    duration_init(&s->duration, 0);
    for (int i = 0; i < 40; i++) {
        duration_learn(&s->duration, 10 + (uint32_t)(i % 2) * 30, (10 + i % 2 * 30) * MIN_US);
    }
    for (int i = 0; i < 16; i++) {
        w->parts[0][i].size_mb = i == 15 ? 40 : 10;
    }
    x = no_change();
    assert_min(what_if(w, &x), 50);
    x.fifo = true;
    assert_min(what_if(w, &x), 70);
    w->in.fifo = true;
    x.fifo = false;
    assert_min(what_if(w, &x), 70);
    x.longest_first = true;
    assert_min(what_if(w, &x), 50);
    free(w);
}

static int advise(const struct world *w, struct forecast_advice *a, int n_max)
{
    struct err err = ERR_INIT;
    struct forecast f;
    int n = -1;
    assert_true(forecast_run(&w->in, &f, &err));
    assert_true(forecast_advise(&w->in, &f, a, n_max, &n, &err));
    return n;
}

static void test_forecast__advice_is_worth_it(void **state)
{
    (void)state;
    struct world *w = world_new();
    add_stage(w, 0, 48); /* two hours on four slots */
    struct forecast_advice a[8];
    assert_int_equal(advise(w, a, 8), 3);
    assert_int_equal(a[0].slots_i, 0);
    assert_int_equal(a[0].more, 4);
    assert_min(a[0].sooner_us, 60);
    assert_int_equal(a[0].dearer_musd, 0);
    assert_int_equal(a[1].more, 2);
    assert_min(a[1].sooner_us, 40);
    assert_int_equal(a[2].more, 1);
    assert_min(a[2].sooner_us, 20);
    assert_int_equal(advise(w, a, 1), 1);
    assert_int_equal(a[0].more, 4);
    w->campaigns[0].parts_limit = 3; /* its own limit binds; one more fits the quota */
    assert_int_equal(advise(w, a, 8), 1);
    assert_int_equal(a[0].slots_i, -1);
    assert_int_equal(a[0].more, 1);
    assert_min(a[0].sooner_us, 40);
    w->slots[0].quota = 3;
    assert_int_equal(advise(w, a, 8), 0);
    w->campaigns[0].parts_limit = -1;
    w->in.creates_per_s = 1.0 / 600; /* slots would not help */
    assert_int_equal(advise(w, a, 8), 0);
    w->in.creates_per_s = 1000;
    duration_init(&w->stages[0].duration, 0);
    assert_int_equal(advise(w, a, 8), 0); /* nothing known, nothing advised */
    free(w);
}

/* --- bounds ----------------------------------------------------------------------------------- */

#define assert_refused(w)                                                                          \
    do {                                                                                           \
        struct err err_ = ERR_INIT;                                                                \
        struct forecast f_;                                                                        \
        assert_false(forecast_run(&(w)->in, &f_, &err_));                                          \
        assert_int_equal(err_.code, ERR_INVALID);                                                  \
    } while (0)

/* Set a field to a value out of bounds, see it refused, set it back. */
#define refuse(w, field, value)                                                                    \
    do {                                                                                           \
        __typeof__(field) was_ = (field);                                                          \
        (field) = (value);                                                                         \
        assert_refused(w);                                                                         \
        (field) = was_;                                                                            \
    } while (0)

static void test_forecast__input_out_of_bounds_is_an_error(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 4);
    set_running(w, 0, 1, MIN_US);
    assert_true(run(w).known);
    refuse(w, w->in.runs, -1);
    refuse(w, w->in.runs, FORECAST_RUNS_MAX + 1);
    refuse(w, w->in.creates_per_s, 0);
    refuse(w, w->in.creates_per_s, -1);
    refuse(w, w->in.creates_per_s, NAN);
    refuse(w, w->in.spot_loss, 1);
    refuse(w, w->in.spot_loss, -0.1);
    refuse(w, w->in.spot_loss, NAN);
    refuse(w, w->in.target_i, 1);
    refuse(w, w->in.target_i, -1);
    refuse(w, w->in.stages_n, -1);
    refuse(w, w->in.stages_n, FORECAST_STAGES_MAX + 1);
    refuse(w, w->in.campaigns_n, 0);
    refuse(w, w->in.projects_n, 0);
    refuse(w, w->in.slots_n, -1);
    refuse(w, w->in.now_us, -1);
    refuse(w, w->in.account, NULL);
    refuse(w, w->campaigns[0].project_i, 1);
    refuse(w, w->campaigns[0].weight, 0);
    refuse(w, w->campaigns[0].spent_musd, -1);
    refuse(w, w->projects[0].weight, 0);
    refuse(w, s->campaign_i, 1);
    refuse(w, s->needs_n, -1);
    refuse(w, s->needs_n, SPEC_STAGES_MAX + 1);
    refuse(w, s->tries, -1);
    refuse(w, s->failed_tries, -1);
    refuse(w, s->cold_start_s, -1);
    refuse(w, s->retry_wait_s, -1);
    refuse(w, s->parts_n, FORECAST_PARTS_MAX + 1);
    refuse(w, w->stage[0].instance_count, 0);
    refuse(w, w->jobs[0][0].instances, 0);
    refuse(w, w->jobs[0][0].slots_i, 2);
    s->needs_n = 1;
    s->needs[0] = 1;
    assert_refused(w);
    s->needs_n = 0;
    w->jobs[0][0].slots_i = -1; /* of a type nobody knows any more: it ends all the same */
    w->jobs[0][0].started_us = NOW + 5 * MIN_US;
    assert_true(run(w).known);
    w->in.stages_n = 0;
    struct forecast f = run(w);
    assert_true(f.known);
    assert_int_equal(f.end_us.p50, 0);
    free(w);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forecast__equal_parts_are_arithmetic),
        cmocka_unit_test(test_forecast__starts_take_as_long_as_was_seen),
        cmocka_unit_test(test_forecast__says_how_many_parts_it_needs),
        cmocka_unit_test(test_forecast__stages_wait_for_those_they_need),
        cmocka_unit_test(test_forecast__others_take_their_share),
        cmocka_unit_test(test_forecast__limits_bind),
        cmocka_unit_test(test_forecast__money_and_quotas_that_never_come),
        cmocka_unit_test(test_forecast__failures_take_time_and_money),
        cmocka_unit_test(test_forecast__place_and_start_of_one_part),
        cmocka_unit_test(test_forecast__same_seed_same_answer),
        cmocka_unit_test(test_forecast__kernel_starts_what_sched_decide_starts),
        cmocka_unit_test(test_forecast__kernel_is_close_with_look_ahead),
        cmocka_unit_test(test_forecast__tasks_of_several_instances),
        cmocka_unit_test(test_forecast__what_if),
        cmocka_unit_test(test_forecast__advice_is_worth_it),
        cmocka_unit_test(test_forecast__input_out_of_bounds_is_an_error),
    };
    return cmocka_run_group_tests_name("forecast", tests, NULL, NULL);
}
