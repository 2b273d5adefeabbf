/* Aim: run times follow size as finished parts show, whatever those look like, and nothing is said
 * before there are enough. Method: parts made from a known line, with noise, wild ones, of one
 * size, of no size; quantiles and remaining times against the arithmetic of the data; worlds drawn
 * anew against the spread that the number of parts allows. */
#include "common/cleanup.h"
#include "core/duration/duration.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define S USEC_PER_SEC

static void assert_near(int64_t got_us, int64_t want_us, double share)
{
    double off = fabs((double)got_us / (double)want_us - 1);
    if (off > share) {
        fail_msg("%.3f s, expected %.3f s", (double)got_us / 1e6, (double)want_us / 1e6);
    }
}

/* n parts of 60 s + 0.2 s/MB with log-normal noise. */
static void learn_line(struct duration *d, int n, double sd, uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed);
    for (int i = 0; i < n; i++) {
        uint32_t mb = 100 + (uint32_t)rng_below(&rng, 5000);
        double s = (60 + 0.2 * mb) * exp(sd * rng_normal(&rng));
        duration_learn(d, mb, (int64_t)(s * 1e6));
    }
    duration_fit(d);
}

static void test_duration__says_nothing_before_five_parts(void **state)
{
    (void)state;
    struct duration d;
    duration_init(&d, 0);
    for (int i = 0; i < DURATION_MIN; i++) {
        duration_fit(&d);
        assert_false(duration_known(&d));
        assert_int_equal(duration_needs(&d), 5 - i);
        assert_int_equal(duration_quantile_us(&d, 10, 50), 0);
        assert_int_equal(duration_remaining_us(&d, 10, S, 50), 0);
        assert_int_equal(duration_at_us(&d, 10, S, 0.5), 0);
        struct rng rng;
        rng_seed(&rng, 1);
        assert_int_equal(duration_draw_us(&d, 10, &rng), 0);
        duration_learn(&d, 10, 100 * S);
    }
    duration_fit(&d);
    assert_true(duration_known(&d));
    assert_int_equal(duration_needs(&d), 0);
    assert_near(duration_quantile_us(&d, 10, 50), 100 * S, 0.001);
}

static void test_duration__expect_stands_until_parts_are_seen(void **state)
{
    (void)state;
    struct duration d;
    duration_init(&d, 600 * S);
    duration_fit(&d);
    assert_true(duration_known(&d));
    assert_near(duration_quantile_us(&d, 0, 50), 600 * S, 0.01);
    assert_int_equal(duration_quantile_us(&d, 7, 50), duration_quantile_us(&d, 70000, 50));
    assert_true(duration_quantile_us(&d, 0, 10) < 560 * S);
    assert_true(duration_quantile_us(&d, 0, 90) > 660 * S);
    duration_expect_size(&d, 200);
    duration_fit(&d);
    assert_near(duration_quantile_us(&d, 200, 50), 600 * S, 0.01);
    assert_near(duration_quantile_us(&d, 400, 50), 1050 * S, 0.01); /* a quarter does not grow */
    for (int i = 0; i < DURATION_MIN; i++) {
        duration_learn(&d, 200, 60 * S);
    }
    duration_fit(&d);
    assert_near(duration_quantile_us(&d, 200, 50), 60 * S, 0.01);
    duration_init(&d, -5);
    assert_false(duration_known(&d));
}

static void test_duration__finds_base_and_slope(void **state)
{
    (void)state;
    struct duration d;
    duration_init(&d, 0);
    learn_line(&d, 300, 0.2, 1);
    assert_near((int64_t)(d.per_mb_s * 1e6), (int64_t)(0.2 * 1e6), 0.05);
    assert_near(duration_quantile_us(&d, 100, 50), 80 * S, 0.10);
    assert_near(duration_quantile_us(&d, 5000, 50), 1060 * S, 0.05);
    /* Spread: the 90th of 100 lies 29 % above, the 10th 23 % below. */
    assert_near(duration_quantile_us(&d, 2000, 90), (int64_t)(460 * 1.292 * 1e6), 0.06);
    assert_near(duration_quantile_us(&d, 2000, 10), (int64_t)(460 * 0.774 * 1e6), 0.06);
}

static void test_duration__wild_parts_bend_the_line_little_and_stay_in_the_draws(void **state)
{
    (void)state;
    struct duration clean;
    duration_init(&clean, 0);
    learn_line(&clean, 100, 0.05, 2);
    struct duration d = clean;
    for (int i = 0; i < 12; i++) { /* ten times as long, all of them small */
        duration_learn(&d, 200, 1000 * S);
    }
    duration_fit(&d);
    assert_near(duration_quantile_us(&d, 4000, 50), duration_quantile_us(&clean, 4000, 50), 0.05);
    assert_near(duration_quantile_us(&d, 200, 40), duration_quantile_us(&clean, 200, 40), 0.15);
    assert_true(duration_quantile_us(&d, 200, 95) > 800 * S);
    struct rng rng;
    rng_seed(&rng, 3);
    int wild = 0;
    for (int i = 0; i < 1000; i++) {
        wild += duration_draw_us(&d, 200, &rng) > 800 * S;
    }
    assert_in_range(wild, 70, 150); /* 12 of 112 */
}

static void test_duration__one_size_no_size_and_falling_times(void **state)
{
    (void)state;
    struct duration d;
    duration_init(&d, 0);
    for (int i = 0; i < 20; i++) {
        duration_learn(&d, 300, (90 + i) * S);
    }
    duration_fit(&d);
    assert_near(duration_quantile_us(&d, 300, 50), 99 * S + S / 2, 0.01);
    assert_true(duration_quantile_us(&d, 600, 50) > duration_quantile_us(&d, 300, 50));
    assert_true(duration_quantile_us(&d, 0, 50) >= 40 * S);
    duration_init(&d, 0);
    for (int i = 0; i < 20; i++) {
        duration_learn(&d, 0, (90 + i) * S);
    }
    duration_fit(&d);
    assert_near(duration_quantile_us(&d, 0, 50), 99 * S + S / 2, 0.01);
    assert_near(duration_quantile_us(&d, 1000, 50), 99 * S + S / 2, 0.01);
    duration_init(&d, 0); /* bigger parts were faster: never a negative slope */
    for (int i = 0; i < 20; i++) {
        duration_learn(&d, 100 + (uint32_t)i * 50, (400 - 10 * i) * S);
    }
    duration_fit(&d);
    assert_true(d.per_mb_s >= 0 && d.base_s >= 0);
    assert_true(duration_quantile_us(&d, UINT32_MAX, 50) < 400 * S);
    duration_init(&d, 0); /* steeper than proportional: never a negative base */
    for (int i = 0; i < 20; i++) {
        duration_learn(&d, 100 + (uint32_t)i * 10, (10 + 20 * i) * S);
    }
    duration_fit(&d);
    assert_true(d.per_mb_s > 0 && d.base_s >= 0);
    duration_init(&d, 0); /* all but two of one size */
    for (int i = 0; i < 18; i++) {
        duration_learn(&d, 100, 100 * S);
    }
    duration_learn(&d, 200, 200 * S);
    duration_learn(&d, 300, 300 * S);
    duration_fit(&d);
    assert_near(duration_quantile_us(&d, 300, 50), 300 * S, 0.05);
}

static void test_duration__takes_any_number(void **state)
{
    (void)state;
    struct duration d;
    duration_init(&d, 0);
    duration_learn(&d, 1, 0);
    duration_learn(&d, 1, -5);
    duration_learn(&d, 1, INT64_MIN);
    assert_int_equal(d.n, 0);
    for (int i = 0; i < 5; i++) {
        duration_learn(&d, i % 2 == 0 ? 0 : UINT32_MAX, i % 2 == 0 ? 1 : INT64_MAX);
    }
    duration_fit(&d);
    for (int p = 1; p <= 99; p++) {
        assert_true(duration_quantile_us(&d, 0, p) > 0);
        assert_true(duration_quantile_us(&d, UINT32_MAX, p) > 0);
        assert_true(duration_quantile_us(&d, UINT32_MAX, p) <= DURATION_LONGEST_US);
        assert_true(duration_remaining_us(&d, UINT32_MAX, INT64_MAX / 2, p) > 0);
    }
    d.n = UINT32_MAX; /* as many as can be counted: not few again */
    duration_learn(&d, 5, 5 * S);
    duration_learn(&d, 5, 5 * S);
    assert_true(d.n > UINT32_MAX / 2);
    duration_init(&d, INT64_MAX);
    duration_fit(&d);
    assert_true(duration_quantile_us(&d, UINT32_MAX, 99) == DURATION_LONGEST_US);
}

static void test_duration__the_newest_parts_count(void **state)
{
    (void)state;
    struct duration d;
    duration_init(&d, 0);
    for (int i = 0; i < 300; i++) {
        duration_learn(&d, 10, 10 * S);
    }
    duration_fit(&d);
    for (int i = 0; i < DURATION_KEPT; i++) {
        duration_learn(&d, 10, 50 * S);
    }
    assert_near(duration_quantile_us(&d, 10, 50), 10 * S, 0.001); /* not before the fit */
    duration_fit(&d);
    assert_near(duration_quantile_us(&d, 10, 1), 50 * S, 0.001);
}

/* Ratios 0.1 .. 2.0 around 100 s: what is left of a part depends on how long it has run. */
static void test_duration__remaining_time_knows_what_has_passed(void **state)
{
    (void)state;
    struct duration d;
    duration_init(&d, 0);
    for (int i = 1; i <= 200; i++) {
        duration_learn(&d, 0, i * S);
    }
    duration_fit(&d);
    assert_near(duration_remaining_us(&d, 0, 0, 50), 100 * S, 0.02);
    assert_near(duration_remaining_us(&d, 0, 100 * S, 50), 50 * S, 0.03);
    assert_near(duration_remaining_us(&d, 0, 180 * S, 50), 10 * S, 0.1);
    assert_near(duration_remaining_us(&d, 0, 100 * S, 90), 90 * S, 0.03);
    assert_near(duration_remaining_us(&d, 0, 400 * S, 50), 40 * S, 0.01); /* overdue */
    int64_t last = 0;
    for (int64_t e = 0; e < 400; e++) {
        int64_t end = e * S + duration_remaining_us(&d, 0, e * S, 50);
        assert_true(end >= last && end > e * S); /* waiting never brings the end closer */
        last = end;
    }
    for (int u = 0; u < 100; u++) {
        assert_true(duration_at_us(&d, 0, 150 * S, u / 100.0) > 150 * S);
        assert_true(duration_at_us(&d, 0, 1500 * S, u / 100.0) > 1500 * S);
    }
}

/* Median over worlds and its spread for a part of 2,000 MB when n parts were seen. */
static double world_spread(int n, double *ret_mean)
{
    struct duration d;
    duration_init(&d, 0);
    learn_line(&d, n, 0.3, (uint64_t)n);
    struct rng rng;
    rng_seed(&rng, 5);
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < 200; i++) {
        struct duration world;
        duration_resample(&d, NULL, 0, &rng, &world);
        double mean = 0;
        for (int u = 0; u < 100; u++) {
            mean += (double)duration_at_us(&world, 2000, 0, u / 100.0) / 100e6;
        }
        sum += mean;
        squares += mean * mean;
    }
    *ret_mean = sum / 200;
    return sqrt(squares / 200 - *ret_mean * *ret_mean) / *ret_mean;
}

static void test_duration__worlds_differ_as_much_as_few_parts_allow(void **state)
{
    (void)state;
    double mean_few;
    double mean_many;
    double few = world_spread(10, &mean_few);
    double many = world_spread(400, &mean_many);
    (void)printf("# spread of worlds: %.3f of 10 parts, %.3f of 400\n", few, many);
    assert_true(few > 0.05 && few < 0.20);   /* 0.3 / sqrt(10) = 0.095 */
    assert_true(many > 0.01 && many < 0.03); /* 0.3 / sqrt(400) = 0.015 */
    assert_true(fabs(mean_many / (460 * exp(0.045)) - 1) < 0.05);
}

/* 40 slow and 40 fast parts start together; at 100 s all fast ones have ended and no slow one. */
static void test_duration__running_parts_count_as_slow(void **state)
{
    (void)state;
    struct duration d;
    duration_init(&d, 0);
    for (int i = 0; i < 40; i++) {
        duration_learn(&d, 10, (50 + i) * S);
    }
    duration_fit(&d);
    struct duration_running running[40];
    for (int i = 0; i < 40; i++) {
        running[i] = (struct duration_running){.size_mb = 10, .elapsed_us = 100 * S};
    }
    struct rng rng;
    rng_seed(&rng, 9);
    int64_t without = 0;
    int64_t with = 0;
    for (int i = 0; i < 50; i++) {
        struct duration world;
        duration_resample(&d, NULL, 0, &rng, &world);
        without += duration_draw_us(&world, 10, &rng) / 50;
        duration_resample(&d, running, 40, &rng, &world);
        for (int k = 0; k < 20; k++) {
            with += duration_draw_us(&world, 10, &rng) / 1000;
        }
    }
    assert_near(without, 70 * S, 0.1);
    assert_near(with, 97 * S, 0.12); /* half of them run over 100 s */
}

static void test_duration__same_seed_same_world(void **state)
{
    (void)state;
    struct duration d = {0}; /* compared whole, unused samples too */
    duration_init(&d, 0);
    learn_line(&d, 50, 0.3, 7);
    struct duration_running running = {.size_mb = 77, .elapsed_us = S};
    struct duration a = {0};
    struct duration b = {0};
    struct rng r;
    rng_seed(&r, 1);
    duration_resample(&d, &running, 1, &r, &a);
    int64_t draw = duration_draw_us(&a, 9, &r);
    rng_seed(&r, 1);
    duration_resample(&d, &running, 1, &r, &b);
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_equal(duration_draw_us(&b, 9, &r), draw);
    struct duration e;
    duration_init(&e, 100 * S);
    duration_fit(&e);
    duration_resample(&e, NULL, 0, &r, &a);
    assert_true(duration_quantile_us(&a, 1, 50) != duration_quantile_us(&e, 1, 50));
}

/* The line's own error is what it says: lines fitted to draw after draw scatter so around it. */
static void test_duration__doubt_is_how_far_lines_scatter(void **state)
{
    (void)state;
    static const uint32_t at_mb[] = {300, 1500, 2500};
    AUTO_FREE struct duration *d = xcalloc(1, sizeof *d);
    double off2[3] = {0};
    double doubt[3] = {0};
    struct rng rng;
    rng_seed(&rng, 31);
    for (int round = 0; round < 400; round++) {
        duration_init(d, 0);
        for (int i = 0; i < 40; i++) {
            uint32_t mb = 1200 + (uint32_t)rng_below(&rng, 1200);
            double s = (600 + 1.5 * mb) * (1 + 0.1 * rng_normal(&rng));
            duration_learn(d, mb, (int64_t)(s * 1e6));
        }
        duration_fit(d);
        for (int k = 0; k < 3; k++) {
            double truth = 600 + 1.5 * at_mb[k];
            double off = (d->base_s + d->per_mb_s * at_mb[k]) / truth - 1;
            off2[k] += off * off / 400;
            doubt[k] += duration_doubt(d, at_mb[k]) / 400;
        }
    }
    for (int k = 0; k < 3; k++) {
        assert_in_range((int64_t)(doubt[k] * 1e4), (int64_t)(sqrt(off2[k]) * 0.7e4),
                        (int64_t)(sqrt(off2[k]) * 1.4e4));
    }
    assert_true(doubt[0] > 3 * doubt[1]); /* far from what was seen */
    duration_init(d, 0);
    for (int i = 0; i < 10; i++) {
        duration_learn(d, 1000, (1000 + i) * USEC_PER_SEC);
    }
    duration_fit(d);
    assert_true(duration_doubt(d, 1000) < 0.01);
    assert_true(duration_doubt(d, 200) > 0.2); /* one size tells nothing of others */
    duration_init(d, 600 * USEC_PER_SEC);
    duration_fit(d);
    assert_true(duration_doubt(d, 1000) > 0.05);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_duration__says_nothing_before_five_parts),
        cmocka_unit_test(test_duration__expect_stands_until_parts_are_seen),
        cmocka_unit_test(test_duration__finds_base_and_slope),
        cmocka_unit_test(test_duration__wild_parts_bend_the_line_little_and_stay_in_the_draws),
        cmocka_unit_test(test_duration__one_size_no_size_and_falling_times),
        cmocka_unit_test(test_duration__takes_any_number),
        cmocka_unit_test(test_duration__the_newest_parts_count),
        cmocka_unit_test(test_duration__remaining_time_knows_what_has_passed),
        cmocka_unit_test(test_duration__worlds_differ_as_much_as_few_parts_allow),
        cmocka_unit_test(test_duration__running_parts_count_as_slow),
        cmocka_unit_test(test_duration__same_seed_same_world),
        cmocka_unit_test(test_duration__doubt_is_how_far_lines_scatter),
    };
    return cmocka_run_group_tests_name("duration", tests, NULL, NULL);
}
