/* Aim: Creates keep the account's rate, and an AWS in trouble is not asked more than one that is
 * well. Method: attempts and pools by hand, the clocks are numbers. */
#include "core/leader/call_pace.h"
#include "leader_world.h"

#define MONO  INT64_C(9000000000)
#define AGAIN (2 * SEC)

static const struct protocol_config config = {.signature_window_us = 900 * SEC,
                                              .describe_stale_us = 600 * SEC,
                                              .resend_base_us = SEC,
                                              .resend_cap_us = 60 * SEC};

static bool holds(struct call_pace *p, struct live_attempt *a)
{
    return call_pace_holds(p, a, &config, AGAIN, BOOT, MONO);
}

static void test_call_pace__creates_wait_for_the_rate(void **state)
{
    (void)state;
    struct leader_world w;
    struct call_pace p;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    call_pace_init(&p, 2, 1, MONO);
    assert_false(holds(&p, a));
    assert_true(call_pace_take_create(&p, MONO));
    assert_false(call_pace_take_create(&p, MONO));
    assert_true(holds(&p, a));
    assert_in_range(a->wake_us, BOOT + SEC / 2 - 1, BOOT + SEC / 2 + 1);
    a->p.wanted = false; /* it sends no Create any more */
    assert_false(holds(&p, a));
    a->p.wanted = true;
    buf_add_str(&a->request, STR(ATTEMPT_NO_REQUEST)); /* nothing is sent of it */
    assert_false(holds(&p, a));
    call_pace_create_answered(&p, true, 0, MONO, MONO);
    assert_false(holds(&p, a));
    buf_reset(&a->request);
    assert_true(holds(&p, a));
    a->p.state = ATTEMPT_RUNNING;
    assert_false(holds(&p, a));
    leader_world_done(&w);
}

static void test_call_pace__no_rate_is_no_limit(void **state)
{
    (void)state;
    struct call_pace p;
    call_pace_init(&p, 0, 1, MONO);
    for (int i = 0; i < 100; i++) {
        assert_true(call_pace_take_create(&p, MONO));
    }
    assert_int_equal(call_pace_intents(&p, 5000, MONO), SCHED_LAUNCHES_MAX);
    assert_true(call_pace_rate_u(&p, 0.5) > 1000000);
    call_pace_rate_read(&p, 0.5, MONO); /* the operator's word stands */
    assert_int_equal(call_pace_intents(&p, 5000, MONO), SCHED_LAUNCHES_MAX);
    assert_true(call_pace_take_create(&p, MONO));
    assert_true(call_pace_take_create(&p, MONO));
}

static void test_call_pace__no_more_is_intended_than_can_be_sent(void **state)
{
    (void)state;
    struct call_pace p;
    call_pace_init(&p, 3, 10, MONO);
    assert_int_equal(call_pace_intents(&p, 0, MONO), 16); /* ten saved, two seconds of three */
    assert_int_equal(call_pace_intents(&p, 4, MONO), 12);
    assert_int_equal(call_pace_intents(&p, 40, MONO), 0);
    assert_int_equal(call_pace_rate_u(&p, 5), 5000000); /* what others are told, before it is so */
    assert_int_equal(call_pace_rate_u(&p, -1), 3000000);
    call_pace_rate_read(&p, 5, MONO);
    assert_int_equal(call_pace_intents(&p, 0, MONO), 20);
    assert_int_equal(call_pace_rate_u(&p, -1), 5000000);
    call_pace_rate_read(&p, -1, MONO); /* not listed: as before */
    assert_int_equal(call_pace_intents(&p, 0, MONO), 20);
}

static void test_call_pace__throttled_creates_come_more_rarely(void **state)
{
    (void)state;
    struct leader_world w;
    struct call_pace p;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    for (int unlimited = 0; unlimited < 2; unlimited++) {
        call_pace_init(&p, unlimited ? 0 : 1, 10, MONO);
        call_pace_create_answered(&p, false, 0, MONO, MONO);
        assert_true(call_pace_take_create(&p, MONO));
        assert_true(call_pace_take_create(&p, MONO)); /* two of ten saved */
        assert_true(call_pace_intents(&p, 0, MONO) >= 10);
        call_pace_create_answered(&p, true, 0, MONO, MONO);
        assert_false(call_pace_take_create(&p, MONO));
        assert_true(holds(&p, a));
        assert_int_equal(a->wake_us, BOOT + 2 * SEC);
        assert_int_equal(call_pace_intents(&p, 0, MONO), 2); /* one now, one in two seconds */
        assert_int_equal(call_pace_intents(&p, 5, MONO), 0);
        call_pace_create_answered(&p, true, 0, MONO - 1, MONO + 1); /* it was under way by then */
        assert_int_equal(p.throttle.gap_us, 2 * SEC);
        assert_true(call_pace_take_create(&p, MONO + 2 * SEC));
        assert_false(call_pace_take_create(&p, MONO + 3 * SEC));
        for (int i = 0; i < 30; i++) {
            call_pace_create_answered(&p, false, 0, MONO + 2 * SEC, MONO + 3 * SEC);
        }
        assert_true(call_pace_take_create(&p, MONO + 3 * SEC)); /* as at the beginning */
        assert_true(call_pace_take_create(&p, MONO + 3 * SEC));
        assert_false(holds(&p, a));
    }
    call_pace_init(&p, 1, 1, MONO);
    call_pace_rate_read(&p, 10, MONO);
    call_pace_create_answered(&p, true, 0, MONO, MONO);
    assert_int_equal(p.throttle.gap_us, SEC / 5); /* of the rate that was read */
    call_pace_create_answered(&p, true, 7 * SEC, MONO, MONO);
    assert_true(holds(&p, a));
    assert_int_equal(a->wake_us, BOOT + 7 * SEC);
    a->p.wanted = false;
    assert_false(holds(&p, a));
    leader_world_done(&w);
}

static void test_call_pace__retries_have_a_budget(void **state)
{
    (void)state;
    struct leader_world w;
    struct call_pace p;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    call_pace_init(&p, 0, 1, MONO);
    a->p.failures = 1;
    for (int i = 0; i < RETRY_BUDGET_BURST; i++) {
        assert_false(holds(&p, a));
    }
    assert_true(holds(&p, a));
    assert_int_equal(a->wake_us, BOOT + AGAIN); /* the budget's own time would be a minute */
    struct live_attempt *fresh = leader_world_attempt(&w, 2, 1);
    for (int i = 0; i < 100 / RETRY_BUDGET_SHARE; i++) {
        assert_false(holds(&p, fresh)); /* first tries are free, and earn */
    }
    assert_false(holds(&p, a));
    assert_true(holds(&p, a));
    assert_true(call_pace_answered(&p, MONO)); /* AWS is well again */
    assert_false(call_pace_answered(&p, MONO));
    assert_false(holds(&p, a));
    leader_world_done(&w);
}

static void test_call_pace__only_calls_cost(void **state)
{
    (void)state;
    struct leader_world w;
    struct call_pace p;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    call_pace_init(&p, 0, 1, MONO);
    a->p.state = ATTEMPT_VERIFYING; /* S3's, not SageMaker's */
    a->p.failures = 3;
    for (int i = 0; i < 3 * RETRY_BUDGET_BURST; i++) {
        assert_false(holds(&p, a));
    }
    assert_false(call_pace_answered(&p, MONO));
    leader_world_done(&w);
}

static void test_call_pace__pools_share_the_budget(void **state)
{
    (void)state;
    struct leader_world w;
    struct call_pace p;
    leader_world_init(&w);
    struct live_pool *pool = leader_world_pool(&w, 5, POOL_AVAILABLE, NULL);
    call_pace_init(&p, 0, 1, MONO);
    for (int i = 0; i < 3 * RETRY_BUDGET_BURST; i++) {
        assert_false(call_pace_holds_pool(&p, pool, AGAIN, BOOT, MONO));
    }
    pool->failures = 1;
    for (int i = 0; i < RETRY_BUDGET_BURST; i++) {
        assert_false(call_pace_holds_pool(&p, pool, AGAIN, BOOT, MONO));
    }
    assert_true(call_pace_holds_pool(&p, pool, AGAIN, BOOT, MONO));
    assert_int_equal(pool->next_us, BOOT + AGAIN);
    assert_true(call_pace_answered(&p, MONO));
    for (int i = 0; i < RETRY_BUDGET_BURST; i++) {
        assert_false(call_pace_holds_pool(&p, pool, AGAIN, BOOT, MONO));
    }
    assert_true(call_pace_holds_pool(&p, pool, AGAIN, BOOT, MONO));
    for (int i = 0; i < 100 / RETRY_BUDGET_SHARE; i++) {
        call_pace_first(&p);
    }
    assert_false(call_pace_holds_pool(&p, pool, AGAIN, BOOT, MONO));
    leader_world_done(&w);
}

static void test_call_pace__eight_of_a_kind_at_once(void **state)
{
    (void)state;
    assert_true(call_pace_room(0));
    assert_true(call_pace_room(7));
    assert_false(call_pace_room(8));
    assert_false(call_pace_room(9));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_pace__creates_wait_for_the_rate),
        cmocka_unit_test(test_call_pace__no_rate_is_no_limit),
        cmocka_unit_test(test_call_pace__no_more_is_intended_than_can_be_sent),
        cmocka_unit_test(test_call_pace__throttled_creates_come_more_rarely),
        cmocka_unit_test(test_call_pace__retries_have_a_budget),
        cmocka_unit_test(test_call_pace__only_calls_cost),
        cmocka_unit_test(test_call_pace__pools_share_the_budget),
        cmocka_unit_test(test_call_pace__eight_of_a_kind_at_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
