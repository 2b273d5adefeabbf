/* Aim: P9: a job that was seen and that AWS knows no more is gone after its last possible end, and
 * not before; nothing is sent under its name. Method: facts by hand. (All orders of events:
 * tests/simulation/exhaustive/exhaustive.c.) */
#include "protocol_help.h"

static void test_protocol_gone__not_found_concludes_nothing_of_a_job_that_was_there(void **state)
{
    (void)state;
    for (int s = ATTEMPT_SUBMITTED; s <= ATTEMPT_STOPPING; s++) {
        struct protocol_attempt a = in_state((enum attempt_state)s);
        int64_t now = 60 * S;
        int alerts = 0;
        for (int i = 1; i <= 30; i++) {
            struct protocol_effect e = give_at(&a, FACT_NOT_FOUND, now);
            alerts += e.alert;
            assert_int_equal(e.alert, i == PROTOCOL_ALERT_FAILURES);
            assert_int_equal(a.state, s);
            now += 3600 * S;
            assert_int_equal(next(&a, now), ACT_DESCRIBE);
        }
        assert_int_equal(alerts, 1);
        struct protocol_effect e = give_at(&a, FACT_GONE, now); /* after its last possible end */
        assert_int_equal(a.state, ATTEMPT_FAILED);
        assert_int_equal(e.cause, CAUSE_UNKNOWN);
        assert_true(e.release_slot && e.settle && e.task_ends);
    }
}

/* It may have run and been deleted: the next one of this name would be paid, too. */
static void test_protocol_gone__a_name_that_was_seen_is_not_sent_again(void **state)
{
    (void)state;
    static const enum fact_kind tells[] = {FACT_LISTED, FACT_CREATE_IN_USE};
    for (size_t i = 0; i < ARRAY_LEN(tells) * 2; i++) {
        struct protocol_attempt a = in_state(ATTEMPT_UNKNOWN);
        bool wanted = i < ARRAY_LEN(tells);
        int64_t now = 10 * S;
        (void)give_at(&a, tells[i % ARRAY_LEN(tells)], now);
        if (!wanted) {
            (void)give_at(&a, FACT_UNWANTED, now);
        }
        for (int k = 0; k < 30; k++) {
            now += 3600 * S;
            assert_int_equal(next(&a, now), ACT_DESCRIBE);
            (void)give_at(&a, FACT_NOT_FOUND, now);
            assert_int_equal(a.state, ATTEMPT_UNKNOWN);
        }
        assert_true(protocol_may_be_gone(&a, now));
        struct protocol_effect e = give_at(&a, FACT_GONE, now);
        assert_int_equal(a.state, ATTEMPT_FAILED); /* not void: it has cost something */
        assert_true(e.release_slot && e.settle);
    }
    struct protocol_attempt a = in_state(ATTEMPT_UNKNOWN);
    assert_false(protocol_may_be_gone(&a, 99999 * S)); /* nobody has seen it */
}

/* What was sent before it was found may still take effect. */
static void test_protocol_gone__nothing_is_gone_while_a_create_may_land(void **state)
{
    (void)state;
    struct protocol_attempt a = in_state(ATTEMPT_RUNNING);
    assert_false(protocol_may_be_gone(&a, a.void_after_us));
    (void)give_at(&a, FACT_GONE, a.void_after_us);
    assert_int_equal(a.state, ATTEMPT_RUNNING);
    a.create_in_flight = true;
    assert_false(protocol_may_be_gone(&a, a.void_after_us + 1));
    a.create_in_flight = false;
    assert_true(protocol_may_be_gone(&a, a.void_after_us + 1));
    a = in_state(ATTEMPT_UNKNOWN);
    (void)give_at(&a, FACT_CREATE_IN_USE, 100 * S);
    (void)describe(&a, JOB_IN_PROGRESS, PHASE_RUNNING, 11);
    assert_false(a.was_there); /* now its state says so */
}

/* A Describe that does not say whose the job is has shown a job of the name: the name is not sent
 * again, nor is the attempt void when a later Describe is behind. */
static void test_protocol_gone__a_silent_job_was_there(void **state)
{
    (void)state;
    struct protocol_attempt a = in_state(ATTEMPT_UNKNOWN);
    struct fact seen = {.kind = FACT_DESCRIBE_FAILED, .seen = true};
    for (int64_t now = 60 * S; now < 3000 * S; now += 60 * S) {
        enum protocol_action action = next(&a, now);
        assert_true(action == ACT_DESCRIBE || now == 60 * S); /* at first it may be sent again */
        seen.at_us = now;
        (void)give(&a, seen);
    }
    (void)give_at(&a, FACT_UNWANTED, 3000 * S);
    for (int64_t now = 3060 * S; now < 6000 * S; now += 60 * S) {
        assert_int_equal(next(&a, now), ACT_DESCRIBE);
        (void)give_at(&a, FACT_NOT_FOUND, now);
    }
    assert_int_equal(a.state, ATTEMPT_UNKNOWN);
    (void)describe(&a, JOB_IN_PROGRESS, PHASE_RUNNING, 7);
    assert_int_equal(a.state, ATTEMPT_RUNNING);
    a.failures = 0;
    seen.at_us = 6000 * S;
    (void)give(&a, seen);
    assert_true(a.state == ATTEMPT_RUNNING && !a.was_there && a.look_now);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_protocol_gone__a_silent_job_was_there),
        cmocka_unit_test(test_protocol_gone__not_found_concludes_nothing_of_a_job_that_was_there),
        cmocka_unit_test(test_protocol_gone__a_name_that_was_seen_is_not_sent_again),
        cmocka_unit_test(test_protocol_gone__nothing_is_gone_while_a_create_may_land),
    };
    return cmocka_run_group_tests_name("protocol_gone", tests, NULL, NULL);
}
