/* Aim: quotas are learned from refusals, others' use is probed after 5, 10, 20 .. 300 s, and only
 * what differs from the rows is written. Method: a leader's state made by hand, tables of what is
 * refused and when. */
#include "core/leader/quota_learning.h"
#include "core/leader/strays.h"
#include "leader_world.h"
#include <setjmp.h>
#include <stdarg.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static struct live_slots *slots(struct leader_world *w)
{
    return leader_state_slots(&w->s, "ml.a.large", MARKET_ON_DEMAND);
}

static bool refuse(struct leader_world *w, const struct live_attempt *a, int limit, int used,
                   usec_t now_us, struct quota_learning_refusal *ret)
{
    char text[400];
    (void)snprintf(text, sizeof text,
                   "The account-level service limit 'ml.a.large for training job usage' is %d "
                   "Instances, with current utilization of %d Instances and a request delta of 1 "
                   "Instances.",
                   limit, used);
    return quota_learning_refused(&w->s, a, text, now_us, ret);
}

static void test_quota_learning__counts_only_what_aws_has_seen(void **state)
{
    (void)state;
    struct leader_world w;
    struct quota_learning_refusal r;
    leader_world_init(&w);
    slots(&w)->s.quota = 10;
    struct live_attempt *known = leader_world_attempt(&w, 1, 2);
    struct live_attempt *sent = leader_world_attempt(&w, 2, 1);
    known->p.state = ATTEMPT_RUNNING;
    (void)leader_world_pool(&w, 5, POOL_AVAILABLE, NULL);
    assert_true(refuse(&w, sent, 10, 10, WALL, &r));
    assert_int_equal(r.ours, 3); /* two that run and the idle pool; the refused one is not there */
    assert_int_equal(r.others, 7); /* of ten */
    assert_true(w.s.decide);
    w.s.decide = false;
    assert_false(quota_learning_refused(&w.s, sent, "no numbers here", WALL, &r));
    assert_false(w.s.decide);
    leader_world_done(&w);
}

static void test_quota_learning__strays_are_ours(void **state)
{
    (void)state;
    struct leader_world w;
    struct quota_learning_refusal r;
    struct stray_row stray = {
        .name = "d-9-s-0-a1-0a1b2c3d", .instance_type = "ml.a.large", .instances = 4};
    leader_world_init(&w);
    slots(&w)->s.quota = 10;
    leader_apply_stray(&w.s, &stray);
    (void)snprintf(stray.name, sizeof stray.name, "d-9-s-1-a1-0a1b2c3d");
    stray.market = MARKET_SPOT;
    leader_apply_stray(&w.s, &stray);
    struct live_attempt *known = leader_world_attempt(&w, 1, 6);
    known->p.state = ATTEMPT_RUNNING;
    assert_true(refuse(&w, leader_world_attempt(&w, 2, 1), 10, 10, WALL, &r));
    assert_int_equal(r.ours, 10);
    assert_int_equal(r.others, 0);
    leader_world_done(&w);
}

static void test_quota_learning__probes_after_waits_that_double(void **state)
{
    (void)state;
    static const int64_t waits_s[] = {5, 10, 20, 40, 80, 160, 300, 300};
    struct leader_world w;
    struct quota_learning_refusal r;
    leader_world_init(&w);
    slots(&w)->s.quota = 10;
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    usec_t now_us = WALL;
    for (size_t i = 0; i < ARRAY_LEN(waits_s); i++) {
        struct quota_ledger seen;
        assert_true(refuse(&w, a, 10, 10, now_us, &r));
        assert_false(quota_learning_slots(slots(&w), now_us + waits_s[i] * SEC - 1, &seen));
        assert_int_equal(seen.foreign, slots(&w)->s.foreign);
        now_us += waits_s[i] * SEC;
        int64_t believed = quota_ledger_foreign(&slots(&w)->s, now_us);
        assert_true(quota_learning_slots(slots(&w), now_us, &seen));
        assert_int_equal(seen.foreign, MIN(believed, 9) - 1); /* one is ours */
    }
    a->p.state = ATTEMPT_SUBMITTED;
    quota_learning_accepted(&w.s, a, now_us);
    assert_int_equal(slots(&w)->refusals, 0);
    assert_int_equal(slots(&w)->probe_us, now_us + 5 * SEC); /* others still hold some */
    leader_world_done(&w);
}

static void test_quota_learning__nobody_else_needs_no_probe(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    slots(&w)->s.quota = 1;
    slots(&w)->s.foreign = 1;
    slots(&w)->s.foreign_us = WALL;
    slots(&w)->probe_us = WALL;
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    a->p.state = ATTEMPT_SUBMITTED;
    quota_learning_accepted(&w.s, a, WALL);
    assert_int_equal(slots(&w)->probe_us, 0);
    leader_world_done(&w);
}

static void test_quota_learning__writes_what_differs_once(void **state)
{
    (void)state;
    struct leader_world w;
    struct quota_learning_refusal r;
    struct quota_learning_write q;
    leader_world_init(&w);
    slots(&w)->s.quota = 10;
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    assert_false(quota_learning_dirty(&w.s, WALL));
    assert_true(refuse(&w, a, 8, 8, WALL, &r));
    assert_true(quota_learning_dirty(&w.s, WALL));
    assert_true(quota_learning_plan(slots(&w), WALL, &q));
    assert_int_equal(q.refused_limit, 8);
    assert_int_equal(q.foreign_us, WALL);
    assert_true(quota_learning_plan(slots(&w), WALL, &q)); /* a plan writes nothing */
    quota_learning_apply(slots(&w), &q);
    assert_false(quota_learning_plan(slots(&w), WALL, &q));
    assert_true(quota_learning_dirty(&w.s, WALL + 24 * 3600 * SEC)); /* it has faded since */
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quota_learning__counts_only_what_aws_has_seen),
        cmocka_unit_test(test_quota_learning__strays_are_ours),
        cmocka_unit_test(test_quota_learning__probes_after_waits_that_double),
        cmocka_unit_test(test_quota_learning__nobody_else_needs_no_probe),
        cmocka_unit_test(test_quota_learning__writes_what_differs_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
