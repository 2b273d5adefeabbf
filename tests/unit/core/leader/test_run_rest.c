/* Aim: a run with checkpoints that is longer than its job may last goes on in the next one, and no
 * other end is taken for that. Method: attempts by hand, recorded as the leader does. */
#include "core/leader/run_rest.h"
#include "outcome_world.h"

/* A run of 2 1/2 hours in jobs of one: the third is its last, and only its end is a failure. */
static void test_run_rest__a_run_goes_on_in_its_next_attempt(void **state)
{
    (void)state;
    static const int64_t rest_s[] = {5400, 1800, 0};
    struct leader_world w;
    struct outcome_notes n;
    struct spec_training training = {.checkpoint = "s3://b/ckpt/"};
    struct protocol_effect e = ended_as(CAUSE_TIMEOUT);
    leader_world_init(&w);
    w.spec.training = &training;
    w.spec.max_runtime_s = 9000;
    w.ls->rules.k = w.ls->rules.canary = 1; /* the breaker would trip by any failure */
    for (int i = 0; i < 3; i++) {
        struct live_attempt *a = leader_world_attempt(&w, i + 1, 1);
        a->row.task_id = 1001;
        leader_world_ran(a, ATTEMPT_FAILED);
        a->row.max_runtime_s = i < 2 ? 3600 : 1800;
        (void)snprintf(a->reason, sizeof a->reason, "MaxRuntimeExceeded");
        struct pending_record p = plan(&w, a, &e, &n);
        assert_int_equal(n.goes_on_s, rest_s[i]);
        assert_int_equal(p.r.task_counts, rest_s[i] == 0);
        assert_int_equal(p.r.cause, rest_s[i] == 0 ? CAUSE_TIMEOUT : CAUSE_NONE);
        assert_int_equal(p.r.task_to, TASK_WAITING);
        assert_true(rest_s[i] == 0 || p.r.not_before_us == WALL);
        assert_true(rest_s[i] == 0 || p.change.max_runtime_s == rest_s[i]);
        assert_int_equal(p.change.spent_musd, (i + 1) * 3600000);
        assert_int_equal(commit(&w, a, &p), rest_s[i] == 0);
    }
    leader_world_done(&w);
}

/* What is no end of such a job: each counts as ever. */
static void test_run_rest__only_the_end_of_its_time_lets_a_run_go_on(void **state)
{
    (void)state;
    struct outcome_notes n;
    struct spec_training training = {.checkpoint = "s3://b/ckpt/"};
    for (int i = 0; i < 6; i++) {
        struct leader_world w;
        leader_world_init(&w);
        w.spec.training = i == 1 ? NULL : &training;
        w.spec.max_runtime_s = i == 2 ? 3600 : 9000;
        struct live_attempt *a = leader_world_attempt(&w, 1, 1);
        leader_world_ran(a, ATTEMPT_FAILED);
        a->row.ended_us -= i == 3 ? SEC : 0; /* its words say so, its times do not */
        a->row.stop_cause = i == 4 ? CAUSE_TIMEOUT : CAUSE_NONE;
        struct protocol_effect e = ended_as(i == 5 ? CAUSE_USER_CODE : CAUSE_TIMEOUT);
        struct pending_record p = plan(&w, a, &e, &n);
        assert_int_equal(n.goes_on_s > 0, i == 0);
        assert_int_equal(p.r.task_counts, i != 0);
        leader_world_done(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_rest__a_run_goes_on_in_its_next_attempt),
        cmocka_unit_test(test_run_rest__only_the_end_of_its_time_lets_a_run_go_on),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
