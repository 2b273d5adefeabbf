/* Aim: the idle time of a pool is paid for whose job was adopted before its price was known, or
 * whose retained seconds are told late or never.
 * Method: a state by hand; a pool that ends alone, and one that is over with its job. */
#include "core/leader/pool_life.h"
#include "core/leader/sched_view.h"
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

/* Its job was recast without a price, with what its row reserved. */
static void test_pool_price__it_reserves_by_the_price_known_now(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 2);
    (void)leader_world_pool(&w, 5, POOL_EXPECTED, a);
    leader_world_ran(a, ATTEMPT_FAILED);
    a->row.price_musd_per_hour = 0;
    a->row.keep_alive_s = 100;
    a->account.reserved_musd = USD;
    struct protocol_effect e = ended_as(CAUSE_USER_CODE);
    struct pending_record p = plan(&w, a, &e, NULL);
    assert_int_equal(p.r.pool_to, POOL_AVAILABLE);
    assert_int_equal(p.account.reserved_musd, 200000);
    leader_world_done(&w);
}

#define UNTOLD_S 300

static struct pool_writes describe(struct leader_world *w, struct live_pool *p,
                                   enum warm_pool_status status, int64_t retained_s, int64_t at_s)
{
    struct pool_writes writes;
    const struct warm_pool_report r = {.status = status, .retained_s = retained_s};
    leader_plan_pool_seen(&w->s, p, &r, true, BOOT + at_s * SEC, &writes);
    leader_apply_pool_seen(&w->s, p, writes.fate, WALL + at_s * SEC, BOOT + at_s * SEC);
    return writes;
}

static void test_pool_price__untold_time_is_asked_for_then_estimated(void **state)
{
    (void)state;
    static const struct {
        enum warm_pool_status status;
        int64_t over_s; /* after it was seen */
        int64_t told_s; /* at last; -1: never */
        int64_t booked_s;
    } cases[] = {
        {WARM_POOL_TERMINATED, 100, -1, 100}, /* a person ended it */
        {WARM_POOL_TERMINATED, 700, -1, 600}, /* no longer than its keep-alive */
        {WARM_POOL_REUSED, 40, -1, 40},
        {WARM_POOL_TERMINATED, 100, 93, 93}, /* told late */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct leader_world w;
        struct leader_view view;
        int64_t wake_us = INT64_MAX, over_s = cases[i].over_s;
        leader_world_init(&w);
        struct live_pool *p = leader_world_pool(&w, 5, POOL_AVAILABLE, NULL);
        p->account = (struct ledger_account_of_attempt){.reserved = true, .job_settled = true};
        p->timed = true;
        assert_int_equal(describe(&w, p, WARM_POOL_AVAILABLE, -1, 0).fate, POOL_FATE_THERE);
        w.s.decide = false;
        assert_int_equal(describe(&w, p, cases[i].status, -1, over_s).fate, POOL_FATE_UNTOLD);
        assert_true(w.s.decide);
        sched_view_make(&w.s, WALL, 0, &view); /* no job is meant for it any more */
        assert_true(view.view.pools[0].ending);
        sched_view_done(&view);
        assert_int_equal(describe(&w, p, cases[i].status, -1, over_s + UNTOLD_S - 1).fate,
                         POOL_FATE_UNTOLD);
        p->wants_end = true; /* nothing is left to end */
        assert_int_equal(leader_pool_next(p, WALL, BOOT + 3600 * SEC, &wake_us), POOL_ACT_DESCRIBE);
        struct pool_writes e = describe(&w, p, cases[i].status, cases[i].told_s, over_s + UNTOLD_S);
        assert_int_equal(e.fate, POOL_FATE_OVER);
        assert_int_equal(e.end.retained_s, cases[i].booked_s);
        assert_int_equal(e.end.warm_musd, cases[i].booked_s * 1000);
        leader_world_done(&w);
    }
}

/* A new leader knows it from its row alone. */
static void test_pool_price__of_one_that_another_leader_has_seen(void **state)
{
    (void)state;
    static const enum warm_pool_end whys[] = {WARM_POOL_KEEP, WARM_POOL_END_ASKED,
                                              WARM_POOL_END_BLOCKS_QUOTA};
    for (size_t i = 0; i < ARRAY_LEN(whys); i++) {
        struct leader_world w;
        leader_world_init(&w);
        struct live_pool *p = leader_world_pool(&w, 5, POOL_AVAILABLE, NULL);
        p->account = (struct ledger_account_of_attempt){.reserved = true, .job_settled = true};
        if (i > 0) {
            (void)snprintf(p->row.end_reason, sizeof p->row.end_reason, "%s",
                           warm_pool_end_name(whys[i]));
        }
        assert_int_equal(describe(&w, p, WARM_POOL_TERMINATED, -1, 0).fate,
                         whys[i] == WARM_POOL_END_BLOCKS_QUOTA ? POOL_FATE_UNTOLD : POOL_FATE_OVER);
        leader_world_done(&w);
    }
}

/* Its job's end shows that another has it already: it stands alone until its time is told. */
static void test_pool_price__taken_at_once_and_untold(void **state)
{
    (void)state;
    struct leader_world w;
    struct outcome_notes n;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 2);
    (void)leader_world_pool(&w, 5, POOL_EXPECTED, a);
    leader_world_ran(a, ATTEMPT_FAILED);
    a->pool_seen = (struct warm_pool_report){.status = WARM_POOL_REUSED, .retained_s = -1};
    struct protocol_effect e = ended_as(CAUSE_USER_CODE);
    struct pending_record p = plan(&w, a, &e, &n);
    assert_int_equal(p.r.pool_to, POOL_AVAILABLE);
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool_price__it_ends_alone),
        cmocka_unit_test(test_pool_price__it_is_over_with_its_job),
        cmocka_unit_test(test_pool_price__it_reserves_by_the_price_known_now),
        cmocka_unit_test(test_pool_price__untold_time_is_asked_for_then_estimated),
        cmocka_unit_test(test_pool_price__of_one_that_another_leader_has_seen),
        cmocka_unit_test(test_pool_price__taken_at_once_and_untold),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
