/* Aim: lines that come late are read, a few logs at once, and a log that the database refuses holds
 * up no other. Method: logs and attempts by hand, the clock is a number. */
#include "core/leader/metric_logs.h"
#include "core/leader/parking.h"
#include "leader_world.h"

static void test_metric_logs__lines_may_come_three_rounds_late(void **state)
{
    (void)state;
    struct metric_collect m = {.failures = 0};
    metric_logs_begin(&m, 10 * SEC);
    assert_int_equal(m.interval_us, 10 * SEC);
    assert_int_equal(m.settle_us, 30 * SEC);
    assert_true(metric_logs_room(3));
    assert_false(metric_logs_room(4));
}

static void test_metric_logs__a_job_has_ended_when_memory_is_whole(void **state)
{
    (void)state;
    struct leader_world w;
    struct parking_subject who = PARKING_CAMPAIGN(9);
    leader_world_init(&w);
    (void)leader_world_attempt(&w, 1, 1);
    assert_false(metric_logs_ended(&w.s, 1, 7));
    assert_true(metric_logs_ended(&w.s, 2, 7));
    assert_true(metric_logs_ended(&w.s, 2, 9));
    (void)parking_failed(&w.s, &who, TX_REFUSED, BOOT); /* its rows cannot be read */
    assert_false(metric_logs_ended(&w.s, 2, 9));
    leader_world_done(&w);
}

static void test_metric_logs__what_the_database_refuses_is_given_up(void **state)
{
    (void)state;
    struct metric_collect m = {.failures = 0};
    int refusals = 0;
    metric_logs_begin(&m, 10 * SEC);
    assert_true(metric_logs_closes(&m, BOOT));
    for (int i = 1; i <= 4; i++) {
        metric_logs_not_written(&m, &refusals, true, BOOT);
        metric_logs_not_written(&m, &refusals, false, BOOT); /* a database that is away */
        assert_int_equal(refusals, i);
        assert_string_equal(m.note, "");
    }
    assert_false(metric_logs_closes(&m, BOOT + 10 * SEC - 1));
    assert_true(metric_logs_closes(&m, BOOT + 10 * SEC));
    metric_logs_not_written(&m, &refusals, true, BOOT);
    assert_string_equal(m.note, "the database refuses its values");
}

static void test_metric_logs__the_step_is_no_figure(void **state)
{
    (void)state;
    assert_false(metric_logs_keeps("step"));
    assert_true(metric_logs_keeps("steps"));
    assert_true(metric_logs_keeps("loss"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metric_logs__lines_may_come_three_rounds_late),
        cmocka_unit_test(test_metric_logs__a_job_has_ended_when_memory_is_whole),
        cmocka_unit_test(test_metric_logs__what_the_database_refuses_is_given_up),
        cmocka_unit_test(test_metric_logs__the_step_is_no_figure),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
