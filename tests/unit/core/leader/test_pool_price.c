/* Aim: the idle time of a pool whose job was adopted before its price was known is paid for.
 * Method: a state by hand; a pool that ends alone, and one that is over with its job. */
#include "core/leader/pool_life.h"
#include "outcome_world.h"

static void test_pool_price__it_ends_alone(void **state)
{
    (void)state;
    struct leader_world w;
    struct pool_writes writes;
    const struct warm_pool_report r = {.status = WARM_POOL_TERMINATED, .retained_s = 100};
    leader_world_init(&w);
    struct live_pool *p = leader_world_pool(&w, 5, POOL_AVAILABLE, NULL);
    p->account = (struct ledger_account_of_attempt){.reserved = true, .job_settled = true};
    p->row.price_musd_per_hour = 0;
    leader_plan_pool_seen(&w.s, p, &r, true, BOOT, &writes);
    assert_int_equal(writes.fate, POOL_FATE_OVER);
    assert_int_equal(writes.end.warm_musd, 100000);
    p->row.price_musd_per_hour = 7200000; /* what was known then stays */
    leader_plan_pool_seen(&w.s, p, &r, true, BOOT, &writes);
    assert_int_equal(writes.end.warm_musd, 200000);
    p->row.price_musd_per_hour = 0;
    leader_state_slots(&w.s, "ml.a.large", MARKET_ON_DEMAND)->s.price_musd_per_hour = -1;
    leader_plan_pool_seen(&w.s, p, &r, true, BOOT, &writes);
    assert_int_equal(writes.end.warm_musd, 0);
    leader_world_done(&w);
}

static void test_pool_price__it_is_over_with_its_job(void **state)
{
    (void)state;
    struct leader_world w;
    struct outcome_notes n;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 2);
    (void)leader_world_pool(&w, 5, POOL_EXPECTED, a);
    leader_world_ran(a, ATTEMPT_FAILED);
    a->row.price_musd_per_hour = 0;
    a->pool_seen = (struct warm_pool_report){.status = WARM_POOL_REUSED, .retained_s = 100};
    struct protocol_effect e = ended_as(CAUSE_USER_CODE);
    struct pending_record p = plan(&w, a, &e, &n);
    assert_int_equal(p.r.warm_musd, 200000);
    assert_false(n.not_booked);
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool_price__it_ends_alone),
        cmocka_unit_test(test_pool_price__it_is_over_with_its_job),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
