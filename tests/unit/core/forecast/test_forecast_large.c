/* Aim: a forecast of very many parts stays within its time and says what one of all parts would:
 * neighbours in the queue as one, and parts by classes of size. Method: equal parts whose end is
 * arithmetic, with fewer looks at the time than all parts would need; the coarse engine against the
 * fine one. */
#include "common/cleanup.h"
#include "core/forecast/size_classes.h"
#include "forecast_help.h"
#include <math.h>

static int64_t pick(struct rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)rng_below(rng, (uint64_t)(high - low + 1));
}

#define MANY 2000

/* One campaign of MANY parts of some sizes, of which some fail, on four slots. */
static struct world *many_world(uint64_t seed, struct forecast_part *parts)
{
    struct rng rng;
    rng_seed(&rng, seed);
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 0);
    w->in.seed = seed;
    w->in.runs = 16;
    w->in.creates_per_s = rng_chance(&rng, 0.3) ? 0.003 : 5; /* slower than the slots, or not */
    w->campaigns[0].left_musd = rng_chance(&rng, 0.5) ? 2000 * MUSD_PER_USD : INT64_MAX;
    w->in.fifo = rng_chance(&rng, 0.3);
    w->stage[0].min_runtime_s = 60;
    s->cold_start_s = pick(&rng, 0, 200);
    s->retry_wait_s = 30;
    s->failed_tries = rng_chance(&rng, 0.5) ? 200000 : 0;
    duration_init(&s->duration, 0);
    for (int n = 0; n < 20; n++) {
        uint32_t mb = (uint32_t)pick(&rng, 50, 900);
        duration_learn(&s->duration, mb, (int64_t)(mb + 60) * pick(&rng, 600000, 1400000));
    }
    for (int n = 0; n < MANY; n++) {
        parts[n] = (struct forecast_part){
            .task_id = n + 1, .seq = (uint32_t)n, .size_mb = (uint32_t)pick(&rng, 50, 900)};
    }
    s->parts = parts;
    s->parts_n = MANY;
    return w;
}

static double off(int64_t coarse, int64_t fine)
{
    return fine == 0 ? (double)coarse : (double)coarse / (double)fine - 1;
}

/* Neighbours as one: time and money are nearly those of all parts one by one, and the part that is
 * asked about keeps its place and its start. */
static void test_forecast_large__coarser_is_close(void **state)
{
    (void)state;
    AUTO_FREE struct forecast_part *parts = xcalloc(MANY, sizeof *parts);
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct world *w = many_world(seed, parts);
        struct forecast fine, coarse;
        struct err err = ERR_INIT;
        w->in.why_task_id = 777;
        assert_true(forecast_forecast(&w->in, FORECAST_ENGINE_FAST, &fine, &err));
        assert_true(forecast_forecast(&w->in, FORECAST_ENGINE_COARSE, &coarse, &err));
        assert_true(fine.known && coarse.known);
        assert_int_equal(coarse.place, fine.place);
        assert_int_equal(coarse.place_of, fine.place_of);
        assert_int_equal(coarse.binding, fine.binding);
        double end = off(coarse.end_us.p50, fine.end_us.p50);
        double cost = off(coarse.cost_musd.p50, fine.cost_musd.p50);
        double rate = coarse.stage[0].parts_per_h / MAX(fine.stage[0].parts_per_h, 1e-9) - 1;
        double start = (double)(coarse.start_us.p50 - fine.start_us.p50) / (double)fine.end_us.p50;
        (void)printf("# seed %d: end %+.4f, cost %+.4f, parts an hour %+.4f, start %+.4f\n",
                     (int)seed, end, cost, rate, start);
        assert_true(fabs(end) < 0.03 && fabs(cost) < 0.03 && fabs(rate) < 0.03);
        assert_true(fabs(start) < 0.03);
        free(w);
    }
}

struct looks {
    int left;
};

static bool used_up(void *ctx)
{
    struct looks *l = ctx;
    return l->left-- <= 0;
}

#define LARGE 100000

/* So many parts that eight runs of all of them take longer than there is time: neighbours become
 * one, and what is known of the end is the same. */
static void test_forecast_large__a_large_one_gets_coarser(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_part *parts = xcalloc(LARGE, sizeof *parts);
    struct forecast_stage *stages = xcalloc(SPEC_STAGES_MAX + STAGES, sizeof *stages);
    for (int i = 0; i < LARGE; i++) {
        parts[i] = (struct forecast_part){.task_id = i + 1, .seq = (uint32_t)i};
    }
    stages[0] = *add_stage(w, 0, 0);
    stages[0].parts = parts;
    stages[0].parts_n = LARGE;
    w->in.campaigns_n = 2;
    struct forecast_stage *other = add_stage(w, 1, 0);
    w->in.stages = stages;
    for (w->in.stages_n = 1; w->in.stages_n < 48; w->in.stages_n++) {
        stages[w->in.stages_n] = *other; /* each decision looks at all of them */
        stages[w->in.stages_n].stage_id = 100 + w->in.stages_n;
    }
    w->in.runs = 16;
    w->in.why_task_id = LARGE / 2;
    struct looks l = {.left = 1100}; /* one in 512 steps */
    w->in.expired = used_up;
    w->in.expired_ctx = &l;
    struct forecast f = run(w);
    assert_true(f.known && !f.too_large && f.runs >= 8);
    assert_in_range(f.end_us.p50, LARGE / 4 * 10 * MIN_US / 100 * 99,
                    LARGE / 4 * 10 * MIN_US / 100 * 101);
    assert_in_range(f.start_us.p50, LARGE / 8 * 10 * MIN_US / 100 * 99,
                    LARGE / 8 * 10 * MIN_US / 100 * 101);
    assert_int_equal(f.place, LARGE / 2);
    assert_int_equal(f.place_of, LARGE);
    assert_true(fabs(f.stage[0].parts_per_h - 24) < 0.3);
    w->in.runs = 0; /* as many as it wants: little more than a band needs */
    l = (struct looks){.left = 1000000};
    assert_in_range(run(w).runs, 16, 32);
    free(stages);
    free(parts);
    free(w);
}

/* Ten million parts as a few thousand entries: the end is that of the sum of their times. */
static void test_forecast_large__parts_by_size_class(void **state)
{
    (void)state;
    static const uint32_t sample[] = {900, 500, 400, 300, 300, 200, 100, 100, 60, 40};
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 0);
    size_t entries = 4096;
    struct forecast_part *parts = xcalloc(entries, sizeof *parts);
    uint32_t *times = xcalloc(entries, sizeof *times);
    duration_init(&s->duration, 0);
    for (uint32_t mb = 1; mb <= 40; mb++) { /* a second a megabyte */
        duration_learn(&s->duration, mb * 25, (int64_t)mb * 25 * USEC_PER_SEC);
    }
    /* The largest tenth has started; nine of the others take 2,000 s. */
    const struct size_classes c = {
        .size_mb = sample, .n = ARRAY_LEN(sample), .tasks = 10000000, .waiting = 9000000};
    size_classes_spread(&c, entries, parts, times);
    uint64_t sum = 0;
    for (size_t i = 0; i < entries; i++) {
        sum += times[i];
        assert_true(i == 0 || (parts[i].size_mb <= parts[i - 1].size_mb &&
                               parts[i].task_id > parts[i - 1].task_id));
    }
    assert_int_equal(sum, 9000000);
    assert_int_equal(parts[0].size_mb, 500);
    assert_int_equal(parts[entries - 1].size_mb, 40);
    s->parts = parts;
    s->times = times;
    s->parts_n = entries;
    struct forecast f = run(w);
    assert_true(f.known);
    int64_t want_us = INT64_C(2000) * 1000000 / 4 * USEC_PER_SEC;
    assert_in_range(f.end_us.p50, want_us / 100 * 99, want_us / 100 * 101);
    assert_true(fabs(f.stage[0].parts_per_h / (9000000 * 3600e6 / (double)want_us) - 1) < 0.01);
    musd_t want_musd = 2000 * MUSD_PER_USD * 1000; /* 3.60 USD an hour: 1,000 micro-USD a second */
    assert_in_range(f.cost_musd.p50, want_musd / 100 * 99, want_musd / 100 * 101);
    free(parts);
    free(times);
    free(w);
}

/* One part among classes: its place, and when it starts there. */
static void put_one(uint32_t mb, int64_t place, int64_t want_place, int64_t want_n)
{
    static const uint32_t sample[] = {500, 300, 300, 300, 100};
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 0);
    const struct forecast_part p = {
        .task_id = 4711, .size_mb = mb, .not_before_us = place == 0 ? NOW + (60 * MIN_US) : 0};
    struct forecast_part parts[102];
    uint32_t times[102];
    size_t n = 100;
    uint64_t sum = 0;
    const struct size_classes c = {
        .size_mb = sample, .n = ARRAY_LEN(sample), .tasks = 1000000, .waiting = 1000000};
    duration_init(&s->duration, 0);
    for (uint32_t k = 1; k <= 40; k++) { /* a second a megabyte */
        duration_learn(&s->duration, k * 25, (int64_t)k * 25 * USEC_PER_SEC);
    }
    size_classes_spread(&c, n, parts, times);
    size_classes_put(&p, place, parts, times, &n);
    for (size_t i = 0; i < n; i++) {
        sum += times[i];
        assert_int_equal(parts[i].seq, i);
        assert_true(
            i == 0 || place == 0 || parts[i].size_mb < parts[i - 1].size_mb ||
            (parts[i].size_mb == parts[i - 1].size_mb && parts[i].task_id > parts[i - 1].task_id));
    }
    assert_int_equal(sum, 1000000);
    assert_int_equal(n, want_n);
    s->parts = parts;
    s->times = times;
    s->parts_n = n;
    w->in.why_task_id = p.task_id;
    struct forecast f = run(w);
    assert_int_equal(f.place_of, 1000000);
    assert_in_range(f.place, want_place - 1, want_place + 1);
    int64_t before = f.place - 1; /* 200,000 of 500 s, 600,000 of 300 s, the rest of 100 s */
    int64_t start_s = MIN(before, 200000) * 500 + MAX(0, MIN(before, 800000) - 200000) * 300 +
                      MAX(0, before - 800000) * 100;
    int64_t want_us = start_s / 4 * USEC_PER_SEC;
    assert_in_range(f.start_us.p50, want_us / 100 * 97, want_us / 100 * 103 + 2 * (60 * MIN_US));
    free(w);
}

static void test_forecast_large__one_part_among_classes(void **state)
{
    (void)state;
    put_one(300, 455000, 455000, 102); /* inside of a class of its size */
    put_one(300, 1, 200001, 101);      /* no class of its size is before it */
    put_one(300, 999999, 800000, 101); /* nor behind */
    put_one(400, 600000, 200001, 101); /* of a size that no class has */
    put_one(900, 600000, 1, 101);
    put_one(10, 1, 1000000, 101);
    put_one(300, 0, 800000, 101); /* backs off for an hour: it stands last of its size */
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forecast_large__coarser_is_close),
        cmocka_unit_test(test_forecast_large__a_large_one_gets_coarser),
        cmocka_unit_test(test_forecast_large__parts_by_size_class),
        cmocka_unit_test(test_forecast_large__one_part_among_classes),
    };
    return cmocka_run_group_tests_name("forecast_large", tests, NULL, NULL);
}
