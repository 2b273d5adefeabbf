/* Aim: a hung job is told from a slow one. Method:
 * the progress of one attempt minute by minute, at each period's last instant and the one before;
 * old, broken and falling figures; clocks that jump. */
#include "core/failure/hang_detector.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define MIN_US (60 * USEC_PER_SEC)
#define T0     INT64_C(1700000000000000)

static const struct hang_detector_rules rules = {15 * MIN_US, 30 * MIN_US, 30 * MIN_US};

static void saw(struct hang_detector_state *h, int64_t at_min, int64_t rows, int64_t total)
{
    struct hang_detector_seen s = {
        .at_us = T0 + at_min * MIN_US, .rows_done = rows, .rows_total = total};
    hang_detector_saw(h, &s, s.at_us + 5 * USEC_PER_SEC);
}

static enum hang_detector_verdict check(const struct hang_detector_state *h, int64_t at_us)
{
    return hang_detector_check(h, &rules, T0, T0 + at_us);
}

static void test_hang__never_started(void **state)
{
    (void)state;
    struct hang_detector_state h = {0};
    hang_detector_saw(&h, NULL, T0);
    assert_int_equal(check(&h, 0), HANG_DETECTOR_NONE);
    assert_int_equal(check(&h, 30 * MIN_US - 1), HANG_DETECTOR_NONE);
    assert_int_equal(check(&h, 30 * MIN_US), HANG_DETECTOR_NEVER_STARTED);
    saw(&h, 29, 1, 100);
    assert_int_equal(check(&h, 30 * MIN_US), HANG_DETECTOR_NONE);
}

/* Reading an earlier output is progress, until it stands still; it is no part of the rows' rate. */
static void test_hang__preparation_is_progress(void **state)
{
    (void)state;
    struct hang_detector_state h = {0};
    struct hang_detector_seen s = {.prepares = true};
    for (int64_t m = 1; m <= 100; m++) {
        s.at_us = T0 + m * MIN_US;
        s.prepared = MIN(m, 60) * 1000;
        hang_detector_saw(&h, &s, s.at_us);
        assert_int_equal(check(&h, m * MIN_US),
                         m < 90 ? HANG_DETECTOR_NONE : HANG_DETECTOR_STANDSTILL);
    }
    saw(&h, 101, 500, 1000); /* kept from an earlier try */
    assert_int_equal(check(&h, 101 * MIN_US), HANG_DETECTOR_NONE);
    saw(&h, 111, 600, 1000);
    assert_true(hang_detector_expected_end_us(&h, T0, T0) == T0 + 151 * MIN_US);
}

/* One huge object to read, an earlier output to count: nothing grows, and hang.start is for that.
 * The rows that follow are judged by hang.standstill again. */
static void test_hang__long_preparation_has_the_time_of_a_start(void **state)
{
    (void)state;
    struct hang_detector_state h = {0};
    const struct hang_detector_rules r = {15 * MIN_US, 30 * MIN_US, 180 * MIN_US};
    struct hang_detector_rules off = {15 * MIN_US, 30 * MIN_US, 0};
    struct hang_detector_rules never = {15 * MIN_US, 0, 180 * MIN_US};
    struct hang_detector_seen s = {.prepares = true};
    for (int64_t m = 1; m <= 181; m += 10) {
        s.at_us = T0 + m * MIN_US;
        hang_detector_saw(&h, &s, s.at_us);
        assert_int_equal(hang_detector_check(&h, &r, T0, s.at_us),
                         m < 181 ? HANG_DETECTOR_NONE : HANG_DETECTOR_STANDSTILL);
        assert_int_equal(hang_detector_check(&h, &off, T0, s.at_us), HANG_DETECTOR_NONE);
        assert_int_equal(hang_detector_check(&h, &never, T0, s.at_us), HANG_DETECTOR_NONE);
    }
    saw(&h, 182, 5, 1000);
    saw(&h, 212, 5, 1000);
    assert_int_equal(hang_detector_check(&h, &r, T0, T0 + 213 * MIN_US), HANG_DETECTOR_STANDSTILL);
}

static void test_hang__silent(void **state)
{
    (void)state;
    struct hang_detector_state h = {0};
    saw(&h, 1, 10, 1000);
    saw(&h, 2, 20, 1000);
    assert_int_equal(check(&h, 17 * MIN_US - 1), HANG_DETECTOR_NONE);
    assert_int_equal(check(&h, 17 * MIN_US), HANG_DETECTOR_SILENT);
    saw(&h, 17, 30, 1000);
    assert_int_equal(check(&h, 17 * MIN_US), HANG_DETECTOR_NONE);
}

static void test_hang__standstill(void **state)
{
    (void)state;
    struct hang_detector_state h = {0};
    for (int64_t m = 1; m <= 45; m++) {
        saw(&h, m, MIN(m, 10), 1000);
        /* It moved last in minute 10, as we saw it five seconds later. */
        int64_t now = m * MIN_US + 5 * USEC_PER_SEC;
        assert_int_equal(check(&h, now), m < 40 ? HANG_DETECTOR_NONE : HANG_DETECTOR_STANDSTILL);
    }
    struct hang_detector_seen bytes = {
        .at_us = T0 + 46 * MIN_US, .rows_done = 10, .rows_total = 1000};
    bytes.bytes = 5; /* no row more, but bytes */
    hang_detector_saw(&h, &bytes, bytes.at_us);
    assert_int_equal(check(&h, 47 * MIN_US), HANG_DETECTOR_NONE);
}

static void test_hang__new_start_counts_anew(void **state)
{
    (void)state;
    struct hang_detector_state h = {0};
    for (int64_t m = 1; m <= 20; m++) {
        saw(&h, m, 500, 1000);
    }
    /* RetryStrategy: running again since minute 60, the objects are the old start's. */
    usec_t again = T0 + 60 * MIN_US;
    assert_int_equal(hang_detector_check(&h, &rules, again, again + 29 * MIN_US),
                     HANG_DETECTOR_NONE);
    assert_int_equal(hang_detector_check(&h, &rules, again, again + 30 * MIN_US),
                     HANG_DETECTOR_NEVER_STARTED);
    assert_int_equal(hang_detector_expected_end_us(&h, again, again + MIN_US), USEC_NEVER);
    saw(&h, 62, 500, 1000); /* figures as before: it moved no later than its start */
    assert_int_equal(hang_detector_check(&h, &rules, again, again + 3 * MIN_US),
                     HANG_DETECTOR_NONE);
    saw(&h, 63, 3, 1000); /* they fell: it begins from nothing */
    assert_int_equal(h.first.rows_done, 3);
    assert_int_equal(h.moved_us, T0 + 63 * MIN_US + 5 * USEC_PER_SEC);
}

static void test_hang__old_and_broken_objects_change_nothing(void **state)
{
    (void)state;
    struct hang_detector_state h = {0};
    saw(&h, 10, 50, 100);
    struct hang_detector_state before = h;
    saw(&h, 9, 70, 100);
    struct hang_detector_seen bad[] = {{.at_us = T0 + 11 * MIN_US, .rows_done = -1},
                                       {.at_us = T0 + 11 * MIN_US, .rows_total = -1},
                                       {.at_us = T0 + 11 * MIN_US, .bytes = INT64_MIN},
                                       {.at_us = T0 + 11 * MIN_US, .shards_done = -1},
                                       {.at_us = -5},
                                       {.at_us = 0}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        hang_detector_saw(&h, &bad[i], T0 + 12 * MIN_US);
    }
    hang_detector_saw(&h, NULL, T0 + 12 * MIN_US);
    assert_memory_equal(&h, &before, sizeof h);
    assert_int_equal(check(&h, -MIN_US), HANG_DETECTOR_NONE); /* the clock went back */
    struct hang_detector_rules off = {0};
    assert_int_equal(hang_detector_check(&h, &off, T0, T0 + 9999 * MIN_US), HANG_DETECTOR_NONE);
    struct hang_detector_state none = {0};
    assert_int_equal(hang_detector_check(&none, &off, T0, T0 + 9999 * MIN_US), HANG_DETECTOR_NONE);
}

static void test_hang__expected_end_is_rows_left_over_rate(void **state)
{
    (void)state;
    struct hang_detector_state h = {0};
    assert_int_equal(hang_detector_expected_end_us(&h, T0, T0 + MIN_US), USEC_NEVER);
    saw(&h, 10, 100, 1000);
    assert_int_equal(hang_detector_expected_end_us(&h, T0, T0 + 10 * MIN_US), T0 + 100 * MIN_US);
    saw(&h, 20, 300, 1000); /* 20 rows a minute between the two */
    assert_int_equal(hang_detector_expected_end_us(&h, T0, T0 + 20 * MIN_US), T0 + 55 * MIN_US);
    assert_int_equal(hang_detector_expected_end_us(&h, T0, T0 + 80 * MIN_US), T0 + 80 * MIN_US);
    saw(&h, 30, 1000, 1000);
    assert_int_equal(hang_detector_expected_end_us(&h, T0, T0 + 31 * MIN_US), T0 + 31 * MIN_US);
    /* A retry that found 900 of 1,000 rows durable and does 5 a minute is not almost done. */
    struct hang_detector_state r = {0};
    saw(&r, 1, 900, 1000);
    saw(&r, 11, 950, 1000);
    assert_int_equal(hang_detector_expected_end_us(&r, T0, T0 + 11 * MIN_US), T0 + 21 * MIN_US);
    struct hang_detector_state z = {0};
    saw(&z, 5, 0, 1000);
    assert_int_equal(hang_detector_expected_end_us(&z, T0, T0 + 5 * MIN_US), USEC_NEVER);
    saw(&z, 6, 1, INT64_MAX);
    saw(&z, 700000, 2, INT64_MAX);
    assert_int_equal(hang_detector_expected_end_us(&z, T0, T0 + 6 * MIN_US), USEC_NEVER);
}

static void test_hang__verdicts_have_names(void **state)
{
    (void)state;
    assert_string_equal(hang_detector_verdict_name(HANG_DETECTOR_NONE), "none");
    assert_string_equal(hang_detector_verdict_name(HANG_DETECTOR_SILENT), "silent");
    assert_string_equal(hang_detector_verdict_name(HANG_DETECTOR_STANDSTILL), "standstill");
    assert_string_equal(hang_detector_verdict_name(HANG_DETECTOR_NEVER_STARTED), "never_started");
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hang__never_started),
        cmocka_unit_test(test_hang__preparation_is_progress),
        cmocka_unit_test(test_hang__long_preparation_has_the_time_of_a_start),
        cmocka_unit_test(test_hang__silent),
        cmocka_unit_test(test_hang__standstill),
        cmocka_unit_test(test_hang__new_start_counts_anew),
        cmocka_unit_test(test_hang__old_and_broken_objects_change_nothing),
        cmocka_unit_test(test_hang__expected_end_is_rows_left_over_rate),
        cmocka_unit_test(test_hang__verdicts_have_names),
    };
    return cmocka_run_group_tests_name("hang", tests, NULL, NULL);
}
