/* Aim: only an attempt's own progress object counts, a job is stopped as hung only when SageMaker
 * says that it runs, and our own wall clock has no say. Method: objects as text, times as numbers.
 */
#include "core/leader/progress.h"
#include "leader_world.h"

#define SILENT 900

static struct live_attempt *running(struct leader_world *w)
{
    leader_world_init(w);
    w->spec.worker = WORKER_DOWNLOAD;
    w->spec.guard = (struct spec_guard){
        .hang_silent_s = SILENT, .hang_standstill_s = 1800, .hang_start_s = 1800};
    struct live_attempt *a = leader_world_attempt(w, 1, 1);
    a->row.state = a->p.state = ATTEMPT_RUNNING;
    a->running_us = WALL;
    return a;
}

static void test_progress__what_an_answer_says(void **state)
{
    (void)state;
    static const struct {
        enum aws_outcome outcome;
        int status;
        const char *text;
        enum progress_answer want;
    } cases[] = {
        {AWS_OK, 200,
         "{\"attempt\":\"1\",\"updated\":\"2026-01-02T03:04:05Z\",\"rows_done\":5,\"rows_in\":9,"
         "\"bytes\":7,\"shards_done\":2,\"prepared\":3}",
         PROGRESS_THERE},
        {AWS_OK, 200, "{\"attempt\":\"1\",\"updated\":\"2026-01-02T03:04:05Z\"}", PROGRESS_THERE},
        {AWS_OK, 200, "{\"attempt\":\"2\",\"updated\":\"2026-01-02T03:04:05Z\"}", PROGRESS_ABSENT},
        {AWS_OK, 200, "{\"attempt\":1,\"updated\":\"2026-01-02T03:04:05Z\"}", PROGRESS_ABSENT},
        {AWS_OK, 200, "{\"updated\":\"2026-01-02T03:04:05Z\"}", PROGRESS_ABSENT},
        {AWS_OK, 200, "{\"attempt\":\"1\",\"updated\":\"yesterday\"}", PROGRESS_ABSENT},
        {AWS_OK, 200, "{\"attempt\":\"1\"}", PROGRESS_ABSENT},
        {AWS_OK, 200, "{\"attempt\":\"1\",\"updated\":\"2026-01-02T03:04:05Z\",\"rows_done\":-1}",
         PROGRESS_ABSENT},
        {AWS_OK, 200, "[]", PROGRESS_ABSENT},
        {AWS_OK, 200, "{", PROGRESS_ABSENT},
        {AWS_REFUSED, 404, "", PROGRESS_ABSENT},
        {AWS_REFUSED, 403, "", PROGRESS_UNKNOWN},
        {AWS_UNKNOWN, 500, "", PROGRESS_UNKNOWN},
        {AWS_UNSENT, 0, "", PROGRESS_UNKNOWN},
        {AWS_THROTTLED, 503, "", PROGRESS_UNKNOWN},
    };
    struct leader_world w;
    struct hang_detector_seen seen;
    struct live_attempt *a = running(&w);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        memset(&seen, 0, sizeof seen);
        assert_int_equal(leader_progress_answer(a, cases[i].outcome, cases[i].status,
                                                str_of(cases[i].text), &seen),
                         cases[i].want);
    }
    assert_int_equal(leader_progress_answer(a, AWS_OK, 200, str_of(cases[0].text), &seen),
                     PROGRESS_THERE);
    assert_int_equal(seen.at_us, INT64_C(1767323045) * SEC);
    assert_true(seen.rows_done == 5 && seen.rows_total == 9 && seen.bytes == 7);
    assert_int_equal(seen.shards_done, 2);
    assert_true(seen.prepares && seen.prepared == 3);
    leader_world_done(&w);
}

static void test_progress__who_is_watched_and_when(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_attempt *a = running(&w);
    assert_true(leader_progress_watched(a));
    a->p.wanted = false;
    assert_false(leader_progress_watched(a));
    a->p.wanted = true;
    a->row.state = ATTEMPT_STARTING;
    assert_false(leader_progress_watched(a));
    a->row.state = ATTEMPT_RUNNING;
    w.spec.worker = WORKER_NONE;
    assert_false(leader_progress_watched(a));
    a->stage->spec = NULL;
    assert_false(leader_progress_watched(a));
    a->stage->spec = &w.spec;
    assert_true(leader_progress_due(a, BOOT, 5));
    assert_false(leader_progress_due(a, BOOT + 4, 5));
    assert_true(leader_progress_due(a, BOOT + 5, 5));
    leader_world_done(&w);
}

static bool saw(struct leader_world *w, struct live_attempt *a, usec_t at_us, int64_t rows,
                int64_t shards, int64_t boot_us)
{
    const struct hang_detector_seen seen = {
        .at_us = at_us, .rows_done = rows, .rows_total = 100, .shards_done = shards};
    return leader_progress_saw(&w->s, a, &seen, boot_us);
}

static void test_progress__silence_is_a_hang_once_sagemaker_says_it_runs(void **state)
{
    (void)state;
    struct leader_world w;
    enum hang_detector_verdict v;
    struct live_attempt *a = running(&w);
    assert_false(saw(&w, a, WALL + SEC, 1, 0, BOOT));
    assert_false(leader_progress_saw(&w.s, a, NULL, BOOT + (SILENT - 1) * SEC));
    int64_t boot_us = BOOT + (SILENT + 1) * SEC;
    assert_true(leader_progress_saw(&w.s, a, NULL, boot_us)); /* ask first */
    assert_false(leader_progress_stops(a, &v));
    assert_false(leader_progress_saw(&w.s, a, NULL, boot_us + SEC)); /* asked already */
    assert_false(leader_progress_stops(a, &v));
    a->p.described_us = boot_us + 2 * SEC;
    assert_false(leader_progress_saw(&w.s, a, NULL, boot_us + 3 * SEC));
    assert_true(leader_progress_stops(a, &v));
    assert_int_equal(v, HANG_DETECTOR_SILENT);
    assert_false(leader_progress_stops(a, &v)); /* once */
    char text[160];
    leader_hung_text(v, text, sizeof text);
    assert_non_null(strstr(text, hang_detector_verdict_name(v)));
    leader_apply_hung(a);
    assert_true(a->row.unwanted);
    assert_int_equal(a->row.stop_cause, CAUSE_TIMEOUT);
    leader_world_done(&w);
}

static void test_progress__a_sign_of_life_ends_the_suspicion(void **state)
{
    (void)state;
    struct leader_world w;
    enum hang_detector_verdict v;
    struct live_attempt *a = running(&w);
    assert_false(saw(&w, a, WALL + SEC, 1, 0, BOOT));
    int64_t boot_us = BOOT + (SILENT + 1) * SEC;
    assert_true(leader_progress_saw(&w.s, a, NULL, boot_us));
    assert_false(saw(&w, a, WALL + 1000 * SEC, 2, 0, boot_us + SEC));
    assert_int_equal(a->suspect_us, 0);
    a->p.described_us = boot_us + 2 * SEC;
    assert_false(leader_progress_saw(&w.s, a, NULL, boot_us + 3 * SEC));
    assert_false(leader_progress_stops(a, &v));
    leader_world_done(&w);
}

static void test_progress__what_ends_already_is_not_stopped(void **state)
{
    (void)state;
    for (int k = 0; k < 6; k++) {
        struct leader_world w;
        enum hang_detector_verdict v;
        struct live_attempt *a = running(&w);
        assert_false(saw(&w, a, WALL + SEC, 1, 0, BOOT));
        int64_t boot_us = BOOT + (SILENT + 1) * SEC;
        bool late = k >= 3; /* found hung, then it changes before it is stopped */
        if (late) {
            assert_true(leader_progress_saw(&w.s, a, NULL, boot_us));
            a->p.described_us = boot_us + SEC;
            assert_false(leader_progress_saw(&w.s, a, NULL, boot_us + 2 * SEC));
        }
        a->p.wanted = k % 3 != 0;
        a->row.state = k % 3 == 1 ? ATTEMPT_UPLOADING : ATTEMPT_RUNNING;
        a->recording = k % 3 == 2;
        assert_false(!late && leader_progress_saw(&w.s, a, NULL, boot_us));
        assert_false(leader_progress_stops(a, &v));
        a->recording = false;
        leader_world_done(&w);
    }
}

static void test_progress__time_is_that_of_who_writes(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_attempt *a = running(&w);
    /* The writer's clock is a day behind ours: its object is new all the same. */
    assert_false(saw(&w, a, WALL + SEC, 1, 0, BOOT));
    assert_false(saw(&w, a, WALL + 2 * SEC, 2, 0, BOOT + 86400 * SEC));
    assert_false(leader_progress_saw(&w.s, a, NULL, BOOT + (86400 + SILENT - 10) * SEC));
    assert_true(leader_progress_saw(&w.s, a, NULL, BOOT + (86400 + SILENT + 10) * SEC));
    leader_world_done(&w);
}

static void test_progress__a_durable_shard_proves_the_stage(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_attempt *a = running(&w);
    assert_false(saw(&w, a, WALL + SEC, 1, 0, BOOT));
    assert_false(a->passed);
    assert_false(saw(&w, a, WALL + 2 * SEC, 2, 1, BOOT + SEC));
    assert_true(a->passed);
    leader_world_done(&w);
    a = running(&w);
    a->row.n = 2; /* a retry finds the shards of the attempt before it */
    assert_false(saw(&w, a, WALL + SEC, 1, 4, BOOT));
    assert_false(a->passed);
    assert_false(saw(&w, a, WALL + 2 * SEC, 2, 5, BOOT + SEC));
    assert_true(a->passed);
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_progress__what_an_answer_says),
        cmocka_unit_test(test_progress__who_is_watched_and_when),
        cmocka_unit_test(test_progress__silence_is_a_hang_once_sagemaker_says_it_runs),
        cmocka_unit_test(test_progress__a_sign_of_life_ends_the_suspicion),
        cmocka_unit_test(test_progress__what_ends_already_is_not_stopped),
        cmocka_unit_test(test_progress__time_is_that_of_who_writes),
        cmocka_unit_test(test_progress__a_durable_shard_proves_the_stage),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
