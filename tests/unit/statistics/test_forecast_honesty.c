/* Aim: P10-P90 holds the true end about four times in five, plans with durations given are near,
 * and plans without say so. Method: fifty campaigns of bench_forecast's five hundred, four checks
 * each. The bounds are wider than the bench's 75 to 85 %: checks of one campaign hang together. */
#include "forecast_honesty.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define CAMPAIGNS 50

static struct honesty seen;

static int look_at_all(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= CAMPAIGNS; seed++) {
        honesty_campaign(seed, 40, &seen);
    }
    return 0;
}

static void test_forecast_honesty__the_band_holds_the_truth_as_often_as_it_says(void **state)
{
    (void)state;
    double inside = honesty_inside_percent(&seen);
    double cost = 100.0 * seen.cost_inside / seen.checks;
    (void)printf("# %.1f %% of %d true ends inside, %.1f %% of true costs, width %.2f\n", inside,
                 seen.checks, cost, seen.width / seen.checks);
    assert_true(inside >= 72 && inside <= 88);
    assert_true(cost >= 70 && cost <= 90);
    assert_true(seen.width / seen.checks < 0.8);
}

static void test_forecast_honesty__plans_with_durations_are_near(void **state)
{
    (void)state;
    (void)printf("# %d of %d plans within 20 %%\n", seen.plans_near, seen.plans);
    assert_true(seen.plans >= CAMPAIGNS / 2);
    assert_true(seen.plans_near * 100 >= seen.plans * 95);
}

static void test_forecast_honesty__plans_without_durations_ask_for_five_parts(void **state)
{
    (void)state;
    assert_int_equal(seen.needs_told, CAMPAIGNS);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forecast_honesty__the_band_holds_the_truth_as_often_as_it_says),
        cmocka_unit_test(test_forecast_honesty__plans_with_durations_are_near),
        cmocka_unit_test(test_forecast_honesty__plans_without_durations_ask_for_five_parts),
    };
    return cmocka_run_group_tests_name("forecast_honesty", tests, look_at_all, NULL);
}
