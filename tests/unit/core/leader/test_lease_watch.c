/* Aim: nobody signs after the lease, a standby takes over from a dead leader at once and from a
 * frozen one only after a whole lease without a renewal. Method: tables of moments; the clock is a
 * number. */
#include "core/leader/lease_watch.h"
#include "core/protocol/protocol.h"
#include "tests/unit/unit.h"

#define T0     INT64_C(5000000000)
#define SEC    USEC_PER_SEC
#define LENGTH (6 * SEC)

static const struct lease_terms terms = {.length_us = LENGTH, .renew_us = 2 * SEC};

static void test_lease_watch__when_a_lease_is_ours(void **state)
{
    (void)state;
    int64_t end = lease_end_us(&terms, T0);
    assert_int_equal(end, T0 + LENGTH);
    static const struct row {
        int64_t after_us;
        bool due, lapsed;
    } rows[] = {
        {0, false, false},
        {2 * SEC - 1, false, false},
        {2 * SEC, true, false},
        {LENGTH - PROTOCOL_SIGN_MARGIN_US - 1, true, false},
        {LENGTH - PROTOCOL_SIGN_MARGIN_US, true, true},
        {LENGTH, true, true},
        {10 * LENGTH, true, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(lease_renewal_due(&terms, end, T0 + rows[i].after_us), rows[i].due);
        assert_int_equal(lease_lapsed(end, T0 + rows[i].after_us), rows[i].lapsed);
    }
}

static void test_lease_watch__a_longer_lease_of_others_is_kept_until_it_is_over(void **state)
{
    (void)state;
    int64_t alone = T0 + 60 * SEC;
    assert_int_equal(lease_longest_us(&terms, 60 * SEC, alone, T0), 60 * SEC);
    assert_int_equal(lease_longest_us(&terms, 60 * SEC, alone, alone - 1), 60 * SEC);
    assert_int_equal(lease_longest_us(&terms, 60 * SEC, alone, alone), LENGTH);
}

static void test_lease_watch__an_early_renewal_is_tried_again_in_time(void **state)
{
    (void)state;
    int64_t again_us = lease_renew_again_us(&terms);
    assert_true(again_us > 0 && again_us <= terms.renew_us / 2);
}

static void test_lease_watch__only_a_lock_lets_a_renewal_fail(void **state)
{
    (void)state;
    assert_true(lease_outlives_renewal(TX_BUSY));
    assert_false(lease_outlives_renewal(TX_LOST));
    assert_false(lease_outlives_renewal(TX_REFUSED));
}

static enum lease_step look(struct lease_watch *w, int64_t renewals, int64_t row_length_us,
                            int64_t after_us)
{
    const struct lease_look l = {.renewals = renewals,
                                 .length_us = row_length_us,
                                 .asked_us = T0 + after_us,
                                 .answered_us = T0 + after_us};
    return lease_watch_step(w, &l, &terms);
}

static void test_lease_watch__who_does_not_renew_is_waited_out(void **state)
{
    (void)state;
    struct lease_watch w = {.renewals = 0};
    assert_int_equal(look(&w, 0, LENGTH, 0), LEASE_STEP_WAIT); /* 0 renewals are news at first */
    assert_int_equal(look(&w, 0, LENGTH, LENGTH), LEASE_STEP_WAIT);
    assert_int_equal(look(&w, 0, LENGTH, LENGTH + 1), LEASE_STEP_TAKE_FROM_FROZEN);
    assert_int_equal(look(&w, 1, LENGTH, LENGTH + 2), LEASE_STEP_WAIT); /* it woke up */
    assert_int_equal(look(&w, 1, LENGTH, 2 * LENGTH + 2), LEASE_STEP_WAIT);
    assert_int_equal(look(&w, 2, LENGTH, 2 * LENGTH + 3), LEASE_STEP_WAIT);
    /* the longer of both lengths: that of the row may be another binary's */
    assert_int_equal(look(&w, 2, 3 * LENGTH, 4 * LENGTH), LEASE_STEP_WAIT);
    assert_int_equal(look(&w, 2, 3 * LENGTH, 5 * LENGTH + 4), LEASE_STEP_TAKE_FROM_FROZEN);
    assert_int_equal(look(&w, 2, SEC, 2 * LENGTH + 3 + 2 * SEC), LEASE_STEP_WAIT);
    /* a free lock is taken at once, whatever was seen */
    const struct lease_look ours = {.locked = true, .renewals = 2, .length_us = LENGTH};
    assert_int_equal(lease_watch_step(&w, &ours, &terms), LEASE_STEP_TAKE);
}

/* A standby that is frozen while it asks must not take the time for one without a renewal. */
static void test_lease_watch__a_standby_that_was_frozen_itself_waits_anew(void **state)
{
    (void)state;
    struct lease_watch w = {.renewals = 0};
    struct lease_look l = {.renewals = 4, .length_us = LENGTH, .asked_us = T0, .answered_us = T0};
    assert_int_equal(lease_watch_step(&w, &l, &terms), LEASE_STEP_WAIT);
    l.asked_us = T0 + SEC;
    l.answered_us = T0 + 9 * LENGTH; /* the answer was read long ago and is as it was */
    assert_int_equal(lease_watch_step(&w, &l, &terms), LEASE_STEP_WAIT);
    l.renewals = 5; /* the answer is news */
    assert_int_equal(lease_watch_step(&w, &l, &terms), LEASE_STEP_WAIT);
    l.asked_us = l.answered_us = T0 + 9 * LENGTH + SEC;
    assert_int_equal(lease_watch_step(&w, &l, &terms), LEASE_STEP_WAIT);
    l.asked_us = l.answered_us = T0 + 10 * LENGTH;
    assert_int_equal(lease_watch_step(&w, &l, &terms), LEASE_STEP_WAIT);
    l.asked_us = l.answered_us = T0 + 10 * LENGTH + 1;
    assert_int_equal(lease_watch_step(&w, &l, &terms), LEASE_STEP_TAKE_FROM_FROZEN);
}

static void test_lease_watch__after_a_loss_a_whole_lease_is_watched_again(void **state)
{
    (void)state;
    struct lease_watch w = {.renewals = 0};
    assert_int_equal(look(&w, 7, LENGTH, 0), LEASE_STEP_WAIT);
    assert_int_equal(lease_watch_pause_us(&w, LEASE_TRY_LEADS, &terms), -1);
    assert_in_range(lease_watch_pause_us(&w, LEASE_TRY_LOST, &terms), 1, SEC);
    assert_int_equal(look(&w, 7, LENGTH, 9 * LENGTH), LEASE_STEP_WAIT);
    assert_int_equal(look(&w, 7, LENGTH, 10 * LENGTH + 1), LEASE_STEP_TAKE_FROM_FROZEN);
}

static void test_lease_watch__pauses_of_a_standby(void **state)
{
    (void)state;
    struct lease_watch w = {.renewals = 0};
    const int64_t ms = USEC_PER_MSEC;
    const int64_t down[] = {200 * ms,  200 * ms,  400 * ms, 800 * ms,
                            1600 * ms, 1600 * ms, 1600 * ms};
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < ARRAY_LEN(down); i++) {
            assert_int_equal(lease_watch_pause_us(&w, LEASE_TRY_NO_DATABASE, &terms), down[i]);
        }
        assert_int_equal(lease_watch_pause_us(&w, LEASE_TRY_LEADS, &terms), -1);
    }
    assert_int_equal(lease_watch_pause_us(&w, LEASE_TRY_HELD, &terms), 400 * ms);
    const struct lease_terms brief = {.length_us = 800 * ms, .renew_us = 200 * ms};
    assert_int_equal(lease_watch_pause_us(&w, LEASE_TRY_HELD, &brief), 200 * ms);
    assert_int_equal(lease_watch_pause_us(&w, LEASE_TRY_NOT_DURABLE, &terms), 5 * SEC);
    assert_int_equal(lease_watch_pause_us(&w, LEASE_TRY_FAILED, &terms), 200 * ms);
}

/* A row that somebody has changed: nobody would take over from a frozen leader for ever. */
static void test_lease_watch__a_length_that_nobody_can_set_counts_as_our_own(void **state)
{
    (void)state;
    assert_int_equal(lease_told_us(&terms, 60 * SEC), 60 * SEC);
    assert_int_equal(lease_told_us(&terms, 3600 * SEC), 3600 * SEC);
    static const int64_t odd[] = {INT64_MAX, INT64_MAX - 6000, 3600 * SEC + 1, 0, -1, INT64_MIN};
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        struct lease_watch w = {.renewals = 0};
        assert_int_equal(lease_told_us(&terms, odd[i]), LENGTH);
        assert_int_equal(look(&w, 3, odd[i], 0), LEASE_STEP_WAIT);
        assert_int_equal(look(&w, 3, odd[i], LENGTH + 1), LEASE_STEP_TAKE_FROM_FROZEN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lease_watch__when_a_lease_is_ours),
        cmocka_unit_test(test_lease_watch__a_longer_lease_of_others_is_kept_until_it_is_over),
        cmocka_unit_test(test_lease_watch__an_early_renewal_is_tried_again_in_time),
        cmocka_unit_test(test_lease_watch__only_a_lock_lets_a_renewal_fail),
        cmocka_unit_test(test_lease_watch__who_does_not_renew_is_waited_out),
        cmocka_unit_test(test_lease_watch__a_standby_that_was_frozen_itself_waits_anew),
        cmocka_unit_test(test_lease_watch__after_a_loss_a_whole_lease_is_watched_again),
        cmocka_unit_test(test_lease_watch__pauses_of_a_standby),
        cmocka_unit_test(test_lease_watch__a_length_that_nobody_can_set_counts_as_our_own),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("lease watch", tests, NULL, NULL);
}
