/* Aim: an attempt is found by its id and by its job's name, whatever came and went before; what
 * comes into view is read whole. Method: hundreds of attempts by hand, half of them removed. */
#include "leader_world.h"

#define MANY 300

static void test_leader_state__attempts_by_name(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_attempt *all[MANY];
    leader_world_init(&w);
    assert_null(leader_state_attempt_named(&w.s, "d-7-shards-1-a1-00000000"));
    w.ls->row.counts[TASK_WAITING] = MANY;
    for (int i = 0; i < MANY; i++) {
        all[i] = leader_world_attempt(&w, i + 1, 1);
    }
    for (int i = 0; i < MANY; i += 2) {
        leader_state_remove_attempt(&w.s, all[i]);
    }
    for (int i = 0; i < MANY; i++) {
        char name[64];
        struct live_attempt *want = i % 2 == 0 ? NULL : all[i];
        (void)snprintf(name, sizeof name, "d-7-shards-%d-a1-00000000", i + 1);
        assert_ptr_equal(leader_state_attempt_named(&w.s, name), want);
        assert_ptr_equal(leader_state_attempt(&w.s, i + 1), want);
    }
    assert_null(leader_state_attempt_named(&w.s, ""));
    assert_null(leader_state_attempt_named(&w.s, "d-7-shards-2-a1-00000001"));
    leader_state_clear(&w.s);
    assert_null(leader_state_attempt_named(&w.s, "d-7-shards-2-a1-00000000"));
    leader_state_done(&w.s);
}

static void test_leader_state__earlier_tries_of_a_campaign_in_view_are_read(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    assert_false(w.s.tries_unread);
    (void)leader_world_campaign(&w, 8, 3);
    assert_true(w.s.tries_unread);
    leader_world_done(&w);
}

static void test_leader_state__what_changes_a_campaign_wakes_it(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    assert_false(w.lc->rests); /* a new one */
    assert_int_equal(w.s.awake->n, 1);
    campaign_rest(w.lc);
    assert_int_equal(w.s.awake->n, 0);
    campaign_set_state(w.lc, CAMPAIGN_HELD);
    assert_false(w.lc->rests);
    campaign_rest(w.lc);
    stage_set_state(w.lc, w.ls, STAGE_HELD);
    assert_false(w.lc->rests);
    campaign_rest(w.lc);
    task_counts_move(w.lc, w.ls, TASK_WAITING, TASK_CANCELLED, 1);
    assert_false(w.lc->rests);
    campaign_rest(w.lc);
    struct live_pool *p = leader_world_pool(&w, 5, POOL_EXPECTED, NULL);
    assert_false(w.lc->rests);
    assert_int_equal(w.lc->pools_n, 1);
    leader_state_remove_pool(&w.s, p);
    assert_int_equal(w.lc->pools_n, 0);
    leader_state_drop_campaign(&w.s, w.lc);
    assert_int_equal(w.s.awake->n, 0);
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leader_state__attempts_by_name),
        cmocka_unit_test(test_leader_state__earlier_tries_of_a_campaign_in_view_are_read),
        cmocka_unit_test(test_leader_state__what_changes_a_campaign_wakes_it),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
