/* Aim: money is exact to the micro-USD, and a shortened run time is the longest that fits.
 * Method: figures worked out by hand; the inverse is held against the forward sum at random points;
 * every input at and beyond its limits. */
#include "common/rng.h"
#include "core/money/cost.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static musd_t seconds(musd_t price, int64_t s)
{
    musd_t ret = -1;
    struct err err = ERR_INIT;
    assert_true(cost_of_seconds(price, s, &ret, &err));
    return ret;
}

static void test_cost__seconds_are_rounded_half_up_once(void **state)
{
    (void)state;
    assert_int_equal(seconds(115000, 3600), 115000);
    assert_int_equal(seconds(115000, 1), 32);        /* 31.94 */
    assert_int_equal(seconds(1, 1800), 1);           /* 0.5 */
    assert_int_equal(seconds(1, 1799), 0);           /* 0.4997 */
    assert_int_equal(seconds(3, 1800), 2);           /* 1.5 */
    assert_int_equal(seconds(37688000, 24), 251253); /* 251253.33 */
    assert_int_equal(seconds(0, 1000000), 0);
    assert_int_equal(seconds(115000, 0), 0);
}

static void test_cost__too_much_or_negative_is_an_error(void **state)
{
    (void)state;
    musd_t ret = -7;
    struct err err = ERR_INIT;
    assert_false(cost_of_seconds(INT64_MAX, 3601, &ret, &err));
    assert_int_equal(err.code, ERR_OVERFLOW);
    assert_false(cost_of_seconds(-1, 1, &ret, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_false(cost_of_seconds(1, -1, &ret, &err));
    assert_false(cost_worst_case(1, -1, 1, 0, &ret, &err));
    assert_false(cost_worst_case(1, 1, INT64_MAX, 0, &ret, &err));
    assert_int_equal(err.code, ERR_OVERFLOW);
    assert_false(cost_worst_case(1, INT64_MAX, 10, 0, &ret, &err));
    assert_false(cost_worst_case(1, 1, INT64_MAX, INT64_MAX, &ret, &err));
    assert_int_equal(ret, -7);
    assert_true(cost_of_seconds(INT64_MAX, 3600, &ret, &err));
    assert_int_equal(ret, INT64_MAX);
}

static void test_cost__worst_case_of_the_seed_campaign(void **state)
{
    (void)state;
    musd_t ret;
    struct err err = ERR_INIT;
    /* 3.06 USD, 4 h + 120 s + 15 min: 15420 s */
    assert_true(cost_worst_case(3060000, 1, 14400, 0, &ret, &err));
    assert_int_equal(ret, 13107000);
    /* 24 instances, 5 h, 30 min kept alive: 24 x 20820 s */
    assert_true(cost_worst_case(37688000, 24, 18000, 1800, &ret, &err));
    assert_int_equal(ret, INT64_C(5231094400));
}

static void test_cost__runtime_that_fits_is_the_longest(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 7);
    for (int i = 0; i < 200000; i++) {
        musd_t price = 1 + (musd_t)rng_below(&rng, i % 2 == 0 ? 1000 : 100000000);
        int64_t n = 1 + (int64_t)rng_below(&rng, 64);
        int64_t keep = (int64_t)rng_below(&rng, 3600);
        musd_t left = (musd_t)rng_below(&rng, UINT64_C(1) << (1 + rng_below(&rng, 40)));
        int64_t fits = cost_runtime_that_fits(price, n, keep, left);
        musd_t worst;
        struct err err = ERR_INIT;
        assert_true(fits >= 0);
        if (fits > 0) {
            assert_true(cost_worst_case(price, n, fits, keep, &worst, &err));
            assert_true(worst <= left);
        }
        assert_true(cost_worst_case(price, n, fits + 1, keep, &worst, &err));
        assert_true(worst > left);
    }
}

static void test_cost__runtime_that_fits_at_its_limits(void **state)
{
    (void)state;
    assert_int_equal(cost_runtime_that_fits(3060000, 1, 0, -1), 0);
    assert_int_equal(cost_runtime_that_fits(3060000, 1, 0, 0), 0);
    assert_true(cost_runtime_that_fits(3060000, 1, 0, INT64_MAX) > 2419200);
    assert_int_equal(cost_runtime_that_fits(0, 1, 0, 0), INT64_MAX);
    assert_int_equal(cost_runtime_that_fits(1, 1, 0, INT64_MAX), INT64_MAX);
    /* 1021 s at 3600 micro-USD an hour: one micro-USD a second */
    assert_int_equal(cost_runtime_that_fits(3600, 1, 0, 1021), 1);
    assert_int_equal(cost_runtime_that_fits(3600, 1, 0, 1020), 0);
}

static void test_cost__billable_seconds(void **state)
{
    (void)state;
    bool estimated;
    assert_int_equal(cost_billable_s(312, 1, 2, 1, &estimated), 312);
    assert_false(estimated);
    assert_int_equal(cost_billable_s(312, 0, 0, 24, &estimated), 24 * 312);
    assert_false(estimated);
    usec_t t = INT64_C(1700000000000000);
    assert_int_equal(cost_billable_s(0, t, t + 10 * USEC_PER_SEC, 1, &estimated), 10);
    assert_true(estimated);
    assert_int_equal(cost_billable_s(0, t, t + 10 * USEC_PER_SEC + 1, 2, &estimated), 22);
    assert_int_equal(cost_billable_s(0, t, t, 1, &estimated), 1);
    assert_int_equal(cost_billable_s(0, t, t - 5, 3, &estimated), 3); /* clocks disagree */
    assert_int_equal(cost_billable_s(0, 0, t, 1, &estimated), 0);
    assert_int_equal(cost_billable_s(-1, 0, 0, 1, &estimated), 0);
    assert_int_equal(cost_billable_s(INT64_MAX, 1, 1, 2, &estimated), INT64_MAX);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost__seconds_are_rounded_half_up_once),
        cmocka_unit_test(test_cost__too_much_or_negative_is_an_error),
        cmocka_unit_test(test_cost__worst_case_of_the_seed_campaign),
        cmocka_unit_test(test_cost__runtime_that_fits_is_the_longest),
        cmocka_unit_test(test_cost__runtime_that_fits_at_its_limits),
        cmocka_unit_test(test_cost__billable_seconds),
    };
    return cmocka_run_group_tests_name("cost", tests, NULL, NULL);
}
