/* Aim: a job that ends since its time to wait for instances is over had no capacity, and one that
 * ran or was stopped by somebody keeps its own cause. Method: ends by hand, a line each. */
#include "core/leader/attempt_answer.h"
#include "leader_world.h"

static struct live_attempt *waiting(struct leader_world *w)
{
    leader_world_init(w);
    struct live_attempt *a = leader_world_attempt(w, 1, 1);
    (void)snprintf(a->row.identity_hash, sizeof a->row.identity_hash, "ours");
    return a;
}

/* No attempt is used up, whatever status says so. */
static void test_attempt_waited__in_vain_is_capacity(void **state)
{
    (void)state;
    static const struct {
        const char *status, *secondary, *reason;
        int64_t pending_s, waited_s, ran_s; /* ran_s -1: it had no instances */
        bool by_us;
        enum cause want;
    } cases[] = {
        {"Stopped", "Stopped", "", 7200, 7200, -1, false, CAUSE_CAPACITY},
        {"Stopped", "Stopped", "", 7200, 7150, -1, false, CAUSE_CAPACITY},
        {"Stopped", "MaxPendingTimeExceeded", "", 7200, 7300, -1, false, CAUSE_CAPACITY},
        {"Stopped", "MaxRuntimeExceeded", "", 7200, 7300, -1, false, CAUSE_CAPACITY},
        {"Failed", "Failed", "it took too long", 7200, 7300, -1, false, CAUSE_CAPACITY},
        {"Failed", "Failed", "MaxPendingTimeInSeconds is over", 0, 60, -1, false, CAUSE_CAPACITY},
        {"Stopped", "MaxWaitTimeExceeded", "", 0, 7200, -1, false, CAUSE_CAPACITY},
        {"Failed", "Failed", "InternalServerError: x", 7200, 7300, -1, false, CAUSE_INTERNAL},
        {"Stopped", "Stopped", "", 7200, 7100, -1, false, CAUSE_STOPPED},
        {"Stopped", "Stopped", "", 0, 99999, -1, false, CAUSE_STOPPED},
        {"Stopped", "Stopped", "", 7200, 7300, -1, true, CAUSE_STOPPED},
        {"Stopped", "Stopped", "", 7200, 9000, 60, false, CAUSE_STOPPED},
        {"Stopped", "MaxWaitTimeExceeded", "", 0, 9000, 60, false, CAUSE_TIMEOUT},
        {"Stopped", "MaxRuntimeExceeded", "", 7200, 9000, 60, false, CAUSE_TIMEOUT},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct spec_training training = {.max_pending_s = cases[i].pending_s};
        struct spec_stage spec = {.training = &training};
        struct leader_world w;
        struct live_attempt *a = waiting(&w);
        const struct spec_stage *was = a->stage->spec;
        struct job_description job = {.created = WALL, .modified = WALL};
        (void)snprintf(job.status, sizeof job.status, "%s", cases[i].status);
        (void)snprintf(job.secondary, sizeof job.secondary, "%s", cases[i].secondary);
        (void)snprintf(job.failure_reason, sizeof job.failure_reason, "%s", cases[i].reason);
        (void)snprintf(job.request_hash, sizeof job.request_hash, "ours");
        job.ended = WALL + cases[i].waited_s * SEC;
        job.started = cases[i].ran_s < 0 ? 0 : job.ended - cases[i].ran_s * SEC;
        job.billable_s = MAX(cases[i].ran_s, INT64_C(0));
        a->stopped_by_us = cases[i].by_us;
        a->stage->spec = &spec;
        struct fact f = leader_describe_answer(a, &job, false, false, job.ended, BOOT);
        a->stage->spec = was;
        assert_int_equal(f.cause, cases[i].want);
        assert_true(f.cause != CAUSE_CAPACITY || a->reason[0] != '\0');
        leader_world_done(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attempt_waited__in_vain_is_capacity),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("attempt_waited", tests, NULL, NULL);
}
