/* Aim: calls of AWS are counted against the time that jobs lived, and only against that. Method:
 * attempts by hand, the clock is a number. */
#include "core/leader/call_count.h"
#include "leader_world.h"

static void test_call_count__calls_against_the_hours_of_live_jobs(void **state)
{
    (void)state;
    struct leader_world w;
    struct call_count n = {.counted_us = 0};
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    struct live_attempt *b = leader_world_attempt(&w, 2, 1);
    a->p.state = b->p.state = ATTEMPT_RUNNING;
    call_count_tick(&n, &w.s, BOOT); /* nothing is known of the time before */
    assert_int_equal(call_count_job_s(&n), 0);
    assert_int_equal(call_count_per_1000_hours(&n, 50), 0);
    call_count_tick(&n, &w.s, BOOT + 3600 * SEC);
    assert_int_equal(call_count_job_s(&n), 7200);
    b->p.state = ATTEMPT_SUCCEEDED;
    call_count_tick(&n, &w.s, BOOT + 2 * 3600 * SEC);
    assert_int_equal(call_count_job_s(&n), 3 * 3600);
    assert_int_equal(call_count_per_1000_hours(&n, 6), 2000);
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_count__calls_against_the_hours_of_live_jobs),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
