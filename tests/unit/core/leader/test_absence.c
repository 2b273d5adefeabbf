/* Aim: a job counts as gone only when it cannot live any more and has not been found for long
 * enough, by the clock that nobody sets. Method: times by hand. */
#include "core/leader/absence.h"
#include "core/leader/attempt.h"
#include "core/leader/attempt_answer.h"
#include "core/leader/outcome.h"
#include "core/money/cost.h"
#include "leader_world.h"

static void test_absence__is_proven_by_looks_and_by_its_last_end(void **state)
{
    (void)state;
    int64_t unfound_us = 0;
    usec_t end = WALL + SEC;
    assert_false(absence_proven(&unfound_us, end, WALL + 9 * SEC, BOOT));
    assert_false(absence_proven(&unfound_us, end, WALL + 9 * SEC, BOOT + 899 * SEC));
    assert_true(absence_proven(&unfound_us, end, WALL + 9 * SEC, BOOT + 900 * SEC));
    assert_false(absence_proven(&unfound_us, end, end, BOOT + 9000 * SEC));
    unfound_us = 0; /* it was found meanwhile */
    assert_false(absence_proven(&unfound_us, end, WALL + 9 * SEC, BOOT + 9000 * SEC));
    assert_int_equal(unfound_us, BOOT + 9000 * SEC);
}

static void test_absence__the_last_end_allows_for_stop_and_upload(void **state)
{
    (void)state;
    assert_int_equal(absence_last_end(WALL, 60),
                     WALL + (60 + COST_STOP_GRACE_S + COST_UPLOAD_S) * SEC);
    assert_true(absence_last_end(WALL, INT64_MAX) == USEC_NEVER);
    assert_true(absence_last_end(WALL, INT64_MAX / SEC) == USEC_NEVER);
    assert_true(absence_last_end(USEC_NEVER, 1) == USEC_NEVER);
}

#define LIFE_S (3600 + COST_STOP_GRACE_S + COST_UPLOAD_S)

/* From the answer to the record: slots come back, the bound is booked, the pool is kept on. */
static void test_absence__ends_an_attempt_with_its_slots_and_its_bound(void **state)
{
    (void)state;
    struct leader_world w;
    struct protocol_config cfg;
    struct protocol_effect e;
    struct pending_record p;
    struct outcome_notes notes;
    leader_world_init(&w);
    leader_protocol_config(900 * SEC, &cfg);
    struct live_attempt *a = leader_world_attempt(&w, 1, 2);
    a->p.state = a->row.state = ATTEMPT_RUNNING;
    a->row.started_us = WALL;
    a->row.keep_alive_s = 600;
    a->row.reserved_musd = a->account.reserved_musd = 2 * (LIFE_S + 600) * 1000;
    a->pool = leader_world_pool(&w, 5, POOL_EXPECTED, a);
    usec_t now_us = WALL + (LIFE_S + 1) * SEC;
    for (int i = 0; i <= 3; i++) { /* every five minutes */
        a->describe_sent_us = BOOT + i * 300 * SEC;
        struct fact f = leader_describe_answer(a, NULL, true, false, now_us, a->describe_sent_us);
        leader_attempt_fact(&w.s, a, &f, &cfg, &e);
        assert_int_equal(e.changed, i == 3);
    }
    leader_plan_record(&w.s, a, &e, now_us, &p, &notes);
    assert_int_equal(p.r.to, ATTEMPT_FAILED);
    assert_int_equal(p.r.cause, CAUSE_UNKNOWN);
    assert_true(p.r.release && p.r.settle && p.r.estimated && p.r.task_moves);
    assert_int_equal(p.r.billable_s, 2 * LIFE_S);
    assert_int_equal(p.r.cost_musd, 2 * LIFE_S * 1000); /* 1,000 micro-USD a second */
    assert_int_equal(p.r.pool_to, POOL_AVAILABLE);
    assert_int_equal(p.r.pool_expires_us, WALL + (LIFE_S + 600) * SEC);
    assert_int_equal(p.r.open_musd, 2 * 600 * 1000); /* for the pool */
    assert_non_null(strstr(p.signature, "deleted at AWS"));
    leader_world_done(&w);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_absence__is_proven_by_looks_and_by_its_last_end),
        cmocka_unit_test(test_absence__the_last_end_allows_for_stop_and_upload),
        cmocka_unit_test(test_absence__ends_an_attempt_with_its_slots_and_its_bound),
    };
    return cmocka_run_group_tests_name("absence", tests, NULL, NULL);
}
