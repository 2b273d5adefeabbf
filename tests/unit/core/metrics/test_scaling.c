/* Aim: speed-up, efficiency, cost of an epoch, the cheapest in time and the step of the break-even
 * are what the definitions say. Method: tables worked out by hand, odd ones included. */
#include "core/metrics/break_even.h"
#include "core/metrics/scaling.h"
#include "tests/unit/unit.h"
#include <math.h>

#define USD INT64_C(1000000)

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want)))) {
        fail_msg("%.17g, not %.17g", got, want);
    }
}

static struct scaling_run run(int64_t instances, double seconds, double rate)
{
    return (struct scaling_run){.instances = instances,
                                .seconds = seconds,
                                .rate = {.n = rate > 0, .median = rate},
                                .price_musd_per_hour = 36 * USD};
}

static void test_scaling__by_the_time_of_whole_runs(void **state)
{
    (void)state;
    struct scaling_row rows[4];
    struct err err = ERR_INIT;
    const struct scaling_run runs[] = {run(4, 1000, 0), run(1, 3600, 0), run(2, 1800, 0),
                                       run(8, 900, 0)};
    assert_true(scaling_table(runs, 4, 0, 0, rows, &err));
    static const double speedup[] = {3.6, 1, 2, 4}, efficiency[] = {0.9, 1, 1, 0.5};
    static const int64_t musd[] = {40 * USD, 36 * USD, 36 * USD, 72 * USD};
    for (int i = 0; i < 4; i++) {
        assert_near(rows[i].speedup, speedup[i]);
        assert_near(rows[i].efficiency, efficiency[i]);
        assert_int_equal(rows[i].musd, musd[i]);
        assert_true(rows[i].in_time);
        assert_int_equal(rows[i].cheapest, i == 1); /* as cheap as two, with fewer instances */
    }
    assert_true(scaling_table(runs, 4, 0, 1000, rows, &err));
    assert_true(rows[0].in_time && !rows[1].in_time && !rows[2].in_time && rows[3].in_time);
    assert_true(rows[0].cheapest && !rows[1].cheapest && !rows[3].cheapest);
    assert_true(scaling_table(runs, 4, 0, 899, rows, &err)); /* none is in time */
    for (int i = 0; i < 4; i++) {
        assert_false(rows[i].in_time || rows[i].cheapest);
    }
}

static void test_scaling__by_a_rate(void **state)
{
    (void)state;
    struct scaling_row rows[2];
    struct err err = ERR_INIT;
    const struct scaling_run runs[] = {run(2, 60, 4700), run(8, 60, 16900)};
    assert_true(scaling_table(runs, 2, 400e6, 36000, rows, &err));
    assert_near(rows[0].seconds, 400e6 / 4700);
    assert_near(rows[1].speedup, 16900.0 / 4700);
    assert_near(rows[1].efficiency, 16900.0 / 4700 / 4);
    assert_near(rows[0].efficiency, 1);
    assert_int_equal(rows[1].musd, (int64_t)8 * 23669 * 10000); /* 23668.6 s, 0.01 USD a second */
    assert_true(!rows[0].in_time && rows[1].in_time && rows[1].cheapest);
    const struct scaling_run bad[] = {run(1, 60, 10), run(2, 60, 0)};
    assert_false(scaling_table(bad, 2, 10, 0, rows, &err));
    assert_int_equal(err.code, ERR_INVALID);
    const struct scaling_run none[] = {run(1, 0, 10)};
    assert_false(scaling_table(none, 1, 0, 0, rows, &err));
    const struct scaling_run slow[] = {run(1, 60, 1e-9)};
    assert_false(scaling_table(slow, 1, 1e9, 0, rows, &err)); /* longer than money can count */
    assert_true(scaling_table(NULL, 0, 0, 0, rows, &err));
}

static void test_scaling__pace_of_a_run(void **state)
{
    (void)state;
    struct pace p;
    assert_true(pace_of(100, 750, 1100, 1550, &p)); /* 700 s before 0.8 s a step */
    assert_near(p.step_s, 0.8);
    assert_near(p.overhead_s, 670);
    assert_false(pace_of(100, 750, 100, 1550, &p));
    assert_false(pace_of(100, 750, 200, 750, &p));
}

static void test_scaling__break_even(void **state)
{
    (void)state;
    static const struct {
        struct pace a, b;
        enum ahead ahead;
        int64_t step;
    } cases[] = {
        {{0.75, 0}, {0.5, 700}, AHEAD_FROM, 2801}, /* at 2800 they are level */
        {{0.8, 10}, {0.5, 11}, AHEAD_FROM, 4},
        {{0.8, 700}, {0.6, 0}, AHEAD_ALWAYS, 0},
        {{0.8, 5}, {0.6, 5}, AHEAD_ALWAYS, 0},
        {{0.6, 0}, {0.8, 700}, AHEAD_NEVER, 0},
        {{0.6, 700}, {0.8, 0}, AHEAD_NEVER, 0}, /* ahead at first, and then no more */
        {{0.6, 5}, {0.6, 5}, AHEAD_NEVER, 0},
        {{0.6, 5}, {0.6, 4}, AHEAD_ALWAYS, 0},
        {{1, 0}, {1 - 1e-15, 1e9}, AHEAD_FROM, INT64_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t step = -1;
        enum ahead got = break_even(&cases[i].a, &cases[i].b, &step);
        if (got != cases[i].ahead || (cases[i].step != INT64_MAX && step != cases[i].step)) {
            fail_msg("case %zu: %d from %lld", i, got, (long long)step);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scaling__by_the_time_of_whole_runs),
        cmocka_unit_test(test_scaling__by_a_rate),
        cmocka_unit_test(test_scaling__pace_of_a_run),
        cmocka_unit_test(test_scaling__break_even),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
