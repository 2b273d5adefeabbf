/* Aim: endpoints and file systems are asked for and about at one pace, which neither floods the
 * database and AWS nor lets people wait. Method: tables of intervals and moments, the clock is a
 * number. */
#include "core/leader/resource_pace.h"
#include "leader_world.h"

static void test_resource_pace__looks_are_as_often_as_lists_within_bounds(void **state)
{
    (void)state;
    static const struct {
        int64_t interval_ms, poll_ms;
    } rows[] = {{0, 100}, {50, 100}, {100, 100}, {2000, 2000}, {10000, 10000}, {60000, 10000}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(resource_pace_poll_us(rows[i].interval_ms * USEC_PER_MSEC),
                         rows[i].poll_ms * USEC_PER_MSEC);
    }
}

static void test_resource_pace__an_intent_that_is_refused_waits(void **state)
{
    (void)state;
    struct live_stage ls = {.endpoint_next_us = 0};
    assert_true(resource_pace_due(&ls, BOOT));
    resource_pace_tried(&ls, BOOT);
    assert_false(resource_pace_due(&ls, BOOT + 2 * SEC - 1));
    assert_true(resource_pace_due(&ls, BOOT + 2 * SEC));
}

static void test_resource_pace__a_stage_of_no_request_waits_for_long(void **state)
{
    (void)state;
    struct live_stage ls = {.endpoint_next_us = 0};
    struct err err = ERR_INIT;
    (void)err_set(&err, ERR_OVERFLOW, "more than fits");
    resource_pace_tried(&ls, BOOT);
    resource_pace_not_built(&ls, &err, BOOT);
    assert_false(resource_pace_due(&ls, BOOT + 300 * SEC - 1));
    assert_true(resource_pace_due(&ls, BOOT + 300 * SEC));
    assert_false(ls.endpoint_unmade);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resource_pace__looks_are_as_often_as_lists_within_bounds),
        cmocka_unit_test(test_resource_pace__an_intent_that_is_refused_waits),
        cmocka_unit_test(test_resource_pace__a_stage_of_no_request_waits_for_long),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
