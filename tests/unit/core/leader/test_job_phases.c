/* Aim: the secondary statuses of a job become the phases of its attempt, and its charge is shared
 * out by them once it is settled. Method: one described job; its channels, its market and its end
 * vary. */
#include "core/leader/attempt_answer.h"
#include "core/leader/job_phases.h"
#include "core/leader/outcome.h"
#include "leader_world.h"

static struct job_description described(void)
{
    static const struct {
        const char *status;
        int64_t from_s, to_s;
    } rows[] = {
        {"Starting", 10, 30},    {"Downloading", 30, 50}, {"Training", 50, 110},
        {"Uploading", 110, 120}, {"Completed", 120, 120},
    };
    struct job_description job = {.created = WALL + 10 * SEC,
                                  .started = WALL + 30 * SEC,
                                  .ended = WALL + 120 * SEC,
                                  .billable_s = 90};
    (void)snprintf(job.status, sizeof job.status, "Completed");
    (void)snprintf(job.request_hash, sizeof job.request_hash, "ours");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct job_transition *t = &job.transitions[job.transitions_n++];
        (void)snprintf(t->status, sizeof t->status, "%s", rows[i].status);
        t->start = WALL + rows[i].from_s * SEC;
        t->end = WALL + rows[i].to_s * SEC;
    }
    return job;
}

static struct live_attempt *intended(struct leader_world *w)
{
    leader_world_init(w);
    struct live_attempt *a = leader_world_attempt(w, 1, 2);
    a->row.intended_us = WALL;
    (void)snprintf(a->row.identity_hash, sizeof a->row.identity_hash, "ours");
    return a;
}

static void assert_elapsed(const struct cost_phase_times *t, const int64_t want[static 6])
{
    for (int p = 0; p < COST_PHASES_OF_JOB; p++) {
        if (t->elapsed_us[p] != want[p] * SEC) {
            fail_msg("%s: %lld us, not %lld s", cost_phase_name((enum cost_phase)p),
                     (long long)t->elapsed_us[p], (long long)want[p]);
        }
    }
}

static void test_job_phases__channels_say_what_was_downloaded(void **state)
{
    (void)state;
    static const struct {
        const char *mode, *input_mode;
        bool fs, data;
    } cases[] = {
        {NULL, "File", false, true},        {"File", "Pipe", false, true},
        {"FastFile", "File", false, false}, {NULL, "FastFile", false, false},
        {NULL, "File", true, false}, /* a file system is mounted */
    };
    struct leader_world w;
    struct live_attempt *a = intended(&w);
    struct job_description job = described();
    struct cost_phase_times t;
    leader_job_phases(a, &job, &t);
    assert_elapsed(&t, (int64_t[]){10, 20, 20, 0, 60, 10}); /* no channels: the image */
    struct spec_training training = {.channels_n = 1};
    w.spec.training = &training;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        training.input_mode = cases[i].input_mode;
        training.channels[0] = (struct spec_channel){.from = cases[i].fs ? NULL : "s3://b/data/",
                                                     .mode = cases[i].mode};
        leader_job_phases(a, &job, &t);
        assert_elapsed(&t, cases[i].data ? (int64_t[]){10, 20, 0, 20, 60, 10}
                                         : (int64_t[]){10, 20, 20, 0, 60, 10});
    }
    a->stage->spec = NULL; /* unreadable */
    leader_job_phases(a, &job, &t);
    assert_elapsed(&t, (int64_t[]){10, 20, 20, 0, 60, 10});
    leader_world_done(&w);
}

static void test_job_phases__waits_for_capacity(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_attempt *a = intended(&w);
    struct job_description job = described();
    struct cost_phase_times t;
    job.transitions[0].no_capacity = true; /* as its message says */
    leader_job_phases(a, &job, &t);
    assert_elapsed(&t, (int64_t[]){30, 0, 20, 0, 60, 10});
    job.transitions_n = 0;
    leader_job_phases(a, &job, &t);
    assert_elapsed(&t, (int64_t[]){0, 0, 0, 0, 0, 0});
    struct attempt_record r = {.cause = CAUSE_CAPACITY};
    a->phases = (struct cost_phase_times){{5 * SEC, 20 * SEC}, {0}};
    leader_bill_phases(a, &r); /* all it did was to wait */
    assert_true(r.has_phases && r.phases[0] == 25000);
    assert_int_equal(r.phases[3 * COST_PHASE_START], 0);
    r.cause = CAUSE_OOM;
    leader_bill_phases(a, &r);
    assert_int_equal(r.phases[3 * COST_PHASE_START], 20000);
    leader_world_done(&w);
}

/* From the answer of Describe to the record of the settled attempt. */
static void test_job_phases__the_charge_is_shared_out(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_attempt *a = intended(&w);
    struct job_description job = described();
    struct fact f = leader_describe_answer(a, &job, false, false, WALL, BOOT);
    assert_true(f.job.ours);
    a->row.state = ATTEMPT_VERIFYING;
    a->p.state = ATTEMPT_SUCCEEDED;
    const struct protocol_effect e = {.changed = true,
                                      .from = ATTEMPT_VERIFYING,
                                      .release_slot = true,
                                      .settle = true,
                                      .task_ends = true};
    struct pending_record p;
    struct outcome_notes n;
    leader_plan_record(&w.s, a, &e, WALL, &p, &n);
    assert_true(p.r.has_phases && p.r.billable_s == 180 && p.r.cost_musd == 180000);
    static const int64_t want[PHASE_FIGURES_N] = {
        10000, 0, 0, 20000, 0, 0, 20000, 40, 40000, 0, 0, 0, 60000, 120, 120000, 10000, 20, 20000};
    assert_memory_equal(p.r.phases, want, sizeof want);
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job_phases__channels_say_what_was_downloaded),
        cmocka_unit_test(test_job_phases__waits_for_capacity),
        cmocka_unit_test(test_job_phases__the_charge_is_shared_out),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
