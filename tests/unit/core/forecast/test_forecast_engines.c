/* Aim: the list kernel, which forecasts big campaigns, starts what sched_decide starts. Method:
 * both run the same worlds, drawn with limits, caps, shares, rates, failures and back-offs; every
 * figure of the two answers must be equal where order is all, and close where look-ahead plays a
 * part. */
#include "forecast_help.h"
#include <math.h>

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
    w->projects[0].parts_limit = rng_chance(&rng, 0.3) ? pick(&rng, 1, 6) : -1;
    w->projects[1].left_musd = rng_chance(&rng, 0.3) ? pick(&rng, 5, 60) * MUSD_PER_USD : INT64_MAX;
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
            s->left_musd = rng_chance(&rng, 0.1) ? pick(&rng, 5, 60) * MUSD_PER_USD : INT64_MAX;
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
    return forecast_forecast(&w->in, FORECAST_ENGINE_SCHED, ret_sched, &err) &&
           forecast_forecast(&w->in, FORECAST_ENGINE_FAST, ret_kernel, &err);
}

/* First in, first out leaves the tail alone: then both must start the same parts at the same time,
 * whatever limits, caps, shares and failures there are. */
static void test_forecast_engines__kernel_starts_what_sched_decide_starts(void **state)
{
    (void)state;
    int ends = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct world *w = random_world(seed);
        w->in.fifo = true;
        struct forecast a;
        struct forecast b;
        assert_true(engines(w, &a, &b));
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): both were zeroed, padding too */
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
static void test_forecast_engines__kernel_is_close_with_look_ahead(void **state)
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
static void test_forecast_engines__tasks_of_several_instances(void **state)
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

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forecast_engines__kernel_starts_what_sched_decide_starts),
        cmocka_unit_test(test_forecast_engines__kernel_is_close_with_look_ahead),
        cmocka_unit_test(test_forecast_engines__tasks_of_several_instances),
    };
    return cmocka_run_group_tests_name("forecast_engines", tests, NULL, NULL);
}
