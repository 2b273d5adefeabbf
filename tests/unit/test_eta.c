/* Aim: no figure where none can be known, one that holds where it can. Method: constant durations
 * whose end is arithmetic; a simulated stage against the estimate's P10 and P90; limits. */
#include "common/rng.h"
#include "core/eta.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define MIN_US (60 * USEC_PER_SEC)

static void test_eta__is_silent_under_five_parts(void **state)
{
    (void)state;
    const int64_t d[5] = {MIN_US, MIN_US, MIN_US, MIN_US, MIN_US};
    struct eta e;
    for (size_t n = 0; n < ETA_PARTS_MIN; n++) {
        eta_estimate(d, n, 100, 4, 1, &e);
        assert_false(e.known);
        assert_int_equal(e.p50_us, 0);
    }
    eta_estimate(d, 5, 100, 0, 1, &e);
    assert_false(e.known);
    eta_estimate(d, 5, 100, -1, 1, &e);
    assert_false(e.known);
    eta_estimate(d, 5, 100, 4, 1, &e);
    assert_true(e.known);
    const int64_t zero[5] = {0};
    eta_estimate(zero, 5, 100, 4, 1, &e);
    assert_false(e.known);
}

static void test_eta__equal_parts_are_arithmetic(void **state)
{
    (void)state;
    int64_t d[20];
    for (size_t i = 0; i < 20; i++) {
        d[i] = 10 * MIN_US;
    }
    struct eta e;
    eta_estimate(d, 20, 16, 4, 1, &e);
    assert_int_equal(e.p10_us, 40 * MIN_US);
    assert_int_equal(e.p50_us, 40 * MIN_US);
    assert_int_equal(e.p90_us, 40 * MIN_US);
    assert_true(e.parts_per_h > 23.999 && e.parts_per_h < 24.001);
    eta_estimate(d, 20, 17, 4, 1, &e); /* one more wave */
    assert_int_equal(e.p50_us, 50 * MIN_US);
    eta_estimate(d, 20, 2, 4, 1, &e); /* more slots than parts */
    assert_int_equal(e.p90_us, 10 * MIN_US);
    eta_estimate(d, 20, 0, 4, 1, &e);
    assert_true(e.known);
    assert_int_equal(e.p90_us, 0);
    eta_estimate(d, 20, 1000000, 16, 1, &e);
    assert_true(e.p50_us > 624990 * MIN_US && e.p50_us < 625010 * MIN_US);
}

static int64_t draw(struct rng *rng)
{
    return MIN_US / 2 + (int64_t)rng_below(rng, 10 * (uint64_t)MIN_US);
}

/* A stage of 200 parts on 8 slots, 40 done: does its true end lie between P10 and P90 as often as
 * that says? */
static void test_eta__holds_as_often_as_it_says(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 4);
    int inside = 0;
    const int stages = 200;
    for (int s = 0; s < stages; s++) {
        int64_t seen[40];
        for (size_t i = 0; i < 40; i++) {
            seen[i] = draw(&rng);
        }
        int64_t free_at[8] = {0};
        for (int i = 0; i < 160; i++) {
            size_t first = 0;
            for (size_t k = 1; k < 8; k++) {
                first = free_at[k] < free_at[first] ? k : first;
            }
            free_at[first] += draw(&rng);
        }
        int64_t end = 0;
        for (size_t k = 0; k < 8; k++) {
            end = MAX(end, free_at[k]);
        }
        struct eta e;
        eta_estimate(seen, 40, 160, 8, (uint64_t)s, &e);
        assert_true(e.p10_us <= e.p50_us && e.p50_us <= e.p90_us);
        inside += end >= e.p10_us && end <= e.p90_us;
    }
    (void)printf("# %d of %d true ends between P10 and P90\n", inside, stages);
    assert_true(inside >= stages * 65 / 100 && inside <= stages * 95 / 100);
}

static void test_eta__same_seed_same_answer_and_limits_hold(void **state)
{
    (void)state;
    static int64_t d[2000];
    struct rng rng;
    rng_seed(&rng, 8);
    for (size_t i = 0; i < 2000; i++) {
        d[i] = draw(&rng);
    }
    struct eta a;
    struct eta b;
    eta_estimate(d, 2000, 5000, 100000, 3, &a);
    eta_estimate(d, 2000, 5000, 100000, 3, &b);
    assert_int_equal(a.p10_us, b.p10_us);
    assert_int_equal(a.p90_us, b.p90_us);
    const int64_t huge[5] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    eta_estimate(huge, 5, INT64_MAX, 1, 1, &a);
    assert_true(a.known && a.p90_us > 0);
    eta_estimate(d, 2000, -1, 4, 1, &a);
    assert_false(a.known);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eta__is_silent_under_five_parts),
        cmocka_unit_test(test_eta__equal_parts_are_arithmetic),
        cmocka_unit_test(test_eta__holds_as_often_as_it_says),
        cmocka_unit_test(test_eta__same_seed_same_answer_and_limits_hold),
    };
    return cmocka_run_group_tests_name("eta", tests, NULL, NULL);
}
