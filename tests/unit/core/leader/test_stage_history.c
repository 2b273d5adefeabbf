/* Aim: what attempts teach a stage: a breaker that trips and is reset, rungs without capacity,
 * durations, start times, promises; and a leader that takes over knows the same. Method: attempts
 * fed by hand, then the same rows fed to a new stage. */
#include "core/leader/attempt.h"
#include "core/leader/stage_history.h"
#include "leader_world.h"
#include <setjmp.h>
#include <stdarg.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static void test_stage_history__signature_joins_cause_and_words(void **state)
{
    (void)state;
    uint64_t a = stage_history_signature(CAUSE_OOM, "killed");
    assert_true(a == stage_history_signature(CAUSE_OOM, "killed"));
    assert_true(a != stage_history_signature(CAUSE_TIMEOUT, "killed"));
    assert_true(a != stage_history_signature(CAUSE_OOM, "no space left"));
}

static void test_stage_history__alike_failures_trip_and_say_why(void **state)
{
    (void)state;
    struct leader_world w;
    char text[400];
    leader_world_init(&w);
    bool tripped = false;
    for (int64_t id = 1; id <= 3; id++) {
        struct live_attempt *a = leader_world_attempt(&w, id, 1);
        assert_false(tripped);
        campaign_rest(w.lc);
        tripped =
            stage_history_ended(a, ATTEMPT_FAILED, CAUSE_USER_CODE, true, "KeyError: x", WALL);
    }
    assert_true(tripped && w.ls->breaker.tripped);
    assert_false(w.lc->rests); /* a plan tells it */
    stage_history_trip_text(w.lc, w.ls, text, sizeof text);
    assert_non_null(strstr(text, "3 of 3 attempts failed alike: user_code: KeyError: x"));
    assert_non_null(strstr(text, "drover resume c-7"));
    w.ls->row.resumes = 1;
    stage_history_resumed(w.ls, 3);
    assert_false(w.ls->breaker.tripped);
    assert_int_equal(w.ls->row.breaker_since, 3);
    assert_int_equal(w.ls->row.resumes_taken, 1);
    leader_world_done(&w);
}

/* A job that ran and failed was paid, whatever it says of itself; one that never ran was not. */
static void test_stage_history__paid_failures_count_whatever_they_say(void **state)
{
    (void)state;
    static const enum cause uncounted[] = {CAUSE_THROTTLED, CAUSE_QUOTA, CAUSE_CAPACITY};
    for (size_t i = 0; i < 2 * ARRAY_LEN(uncounted); i++) {
        bool ran = i % 2 == 0;
        struct leader_world w;
        struct leader_world later;
        leader_world_init(&w);
        leader_world_init(&later);
        stage_history_init(later.ls);
        later.ls->rules = w.ls->rules;
        for (int64_t id = 1; id <= 3; id++) {
            struct live_attempt *a = leader_world_attempt(&w, id, 1);
            (void)stage_history_ended(a, ATTEMPT_FAILED, uncounted[i / 2], ran, "429 of a hub",
                                      WALL);
            struct breaker_row row = {
                .attempt_id = id, .state = ATTEMPT_FAILED, .cause = uncounted[i / 2], .ran = ran};
            (void)snprintf(row.reason, sizeof row.reason, "429 of a hub");
            stage_history_saw_breaker_row(later.ls, &row);
        }
        assert_true(w.ls->breaker.tripped == ran);
        assert_true(later.ls->breaker.tripped == ran);
        leader_world_done(&w);
        leader_world_done(&later);
    }
}

/* A part of which no request can be made says nothing of its stage; a refused Create does. */
static void test_stage_history__a_part_without_a_request_says_nothing(void **state)
{
    (void)state;
    for (int asked = 0; asked < 2; asked++) {
        struct leader_world w, later;
        leader_world_init(&w);
        leader_world_init(&later);
        stage_history_init(later.ls);
        w.ls->rules = later.ls->rules = (struct breaker_rules){.canary = 3, .k = 3, .n = 10};
        for (int64_t id = 1; id <= 3; id++) {
            struct live_attempt *a = leader_world_attempt(&w, id, 1);
            buf_add_str(&a->request, asked ? STR("{\"a\":1}") : STR(ATTEMPT_NO_REQUEST));
            struct breaker_row row = {
                .attempt_id = id, .state = ATTEMPT_VOID, .cause = CAUSE_BAD_REQUEST};
            (void)snprintf(row.reason, sizeof row.reason, "%slr is too long",
                           asked ? "" : ATTEMPT_NO_REQUEST_WHY);
            (void)stage_history_ended(a, row.state, row.cause, false, row.reason, WALL);
            stage_history_saw_breaker_row(later.ls, &row);
        }
        assert_int_equal(w.ls->breaker.tripped, asked);
        assert_int_equal(later.ls->breaker.tripped, asked);
        leader_world_done(&w);
        leader_world_done(&later);
    }
}

static void test_stage_history__a_new_leader_knows_the_same(void **state)
{
    (void)state;
    struct leader_world w;
    struct leader_world later;
    leader_world_init(&w);
    leader_world_init(&later);
    stage_history_init(later.ls);
    later.ls->rules = w.ls->rules;
    for (int64_t id = 1; id <= 3; id++) {
        struct live_attempt *a = leader_world_attempt(&w, id, 1);
        leader_world_ran(a, ATTEMPT_FAILED);
        (void)stage_history_ended(a, ATTEMPT_FAILED, CAUSE_USER_CODE, true, "boom 17", WALL);
        struct breaker_row row = {
            .attempt_id = id, .state = ATTEMPT_FAILED, .cause = CAUSE_USER_CODE};
        (void)snprintf(row.reason, sizeof row.reason, "boom 17");
        stage_history_saw_breaker_row(later.ls, &row);
    }
    assert_true(w.ls->breaker.tripped);
    assert_true(later.ls->breaker.tripped);
    assert_int_equal(later.ls->breaker.ended, w.ls->breaker.ended);
    leader_world_done(&w);
    leader_world_done(&later);
}

static void test_stage_history__capacity_errors_shut_the_rung(void **state)
{
    (void)state;
    struct leader_world w;
    struct capacity_ladder_choice c;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    stage_history_started(a, WALL);
    (void)stage_history_ended(a, ATTEMPT_FAILED, CAUSE_CAPACITY, true, "", WALL);
    assert_true(capacity_ladder_choose(&w.ls->ladder, &w.spec, 0, WALL, NULL, NULL, &c));
    assert_int_equal(c.instance_type_i, 1); /* down the ladder */
    struct live_attempt *b = leader_world_attempt(&w, 2, 1);
    b->row.state = ATTEMPT_RUNNING;
    b->row.created_us = WALL - 100 * SEC;
    b->row.started_us = WALL - 40 * SEC;
    stage_history_moved(&w.s, b, WALL);
    assert_true(capacity_ladder_choose(&w.ls->ladder, &w.spec, 0, WALL, NULL, NULL, &c));
    assert_int_equal(c.instance_type_i, 0); /* it runs there: open again */
    assert_int_equal(w.ls->cold.us, 60 * SEC);
    assert_int_equal(w.ls->warm.n, 0);
    leader_world_done(&w);
}

/* A row may say a rung that the ladder does not have: nothing is learned of one. */
static void test_stage_history__rungs_that_the_ladder_does_not_have(void **state)
{
    (void)state;
    static const int rungs[][2] = {{INT32_MAX, -1}, {2, -1}, {0, INT32_MAX}, {0, 1}};
    for (size_t i = 0; i < ARRAY_LEN(rungs); i++) {
        struct leader_world w;
        struct capacity_ladder_choice c;
        leader_world_init(&w);
        assert_int_equal(w.spec.instance_type_n, 2);
        struct live_attempt *a = leader_world_attempt(&w, 1, 1);
        a->row.instance_type_i = rungs[i][0];
        a->row.subnet_i = rungs[i][1];
        stage_history_started(a, WALL);
        stage_history_refused_capacity(a, WALL);
        a->row.state = ATTEMPT_RUNNING;
        stage_history_moved(&w.s, a, WALL);
        assert_true(capacity_ladder_choose(&w.ls->ladder, &w.spec, 0, WALL, NULL, NULL, &c));
        assert_int_equal(c.instance_type_i, 0);
        leader_world_done(&w);
    }
}

static void test_stage_history__starts_on_pools_are_learned_apart(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    a->row.pool_id = 9;
    a->row.state = ATTEMPT_RUNNING;
    a->row.created_us = WALL - 30 * SEC;
    a->row.started_us = WALL - 10 * SEC;
    stage_history_moved(&w.s, a, WALL);
    assert_int_equal(w.ls->warm.us, 20 * SEC);
    assert_int_equal(w.ls->cold.n, 0);
    leader_world_done(&w);
}

static void test_stage_history__a_job_that_starts_again_is_watched_anew(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    a->row.state = ATTEMPT_RUNNING;
    a->row.started_us = WALL - 500 * SEC;
    stage_history_moved(&w.s, a, WALL);
    assert_int_equal(a->running_us, WALL - 500 * SEC);
    a->hang.last.rows_done = 7;
    a->suspect_us = 5;
    stage_history_moved(&w.s, a, WALL + 900 * SEC); /* spot started it again */
    assert_int_equal(a->running_us, WALL + 900 * SEC);
    assert_int_equal(a->hang.last.rows_done, 0);
    assert_int_equal(a->suspect_us, 0);
    a->row.state = ATTEMPT_STOPPING;
    stage_history_moved(&w.s, a, WALL + 1000 * SEC);
    stage_history_moved(&w.s, a, WALL + 1100 * SEC);
    assert_int_equal(a->ending_us, WALL + 1000 * SEC); /* the first time it was seen so */
    leader_world_done(&w);
}

static void test_stage_history__ten_minutes_alive_prove_a_foreign_image(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    a->row.state = ATTEMPT_RUNNING;
    a->row.started_us = WALL - 24 * 3600 * SEC; /* our wall clock may have jumped */
    stage_history_moved(&w.s, a, WALL);
    stage_history_tick(&w.s, BOOT);
    stage_history_tick(&w.s, BOOT + 599 * SEC);
    assert_false(a->passed);
    a->row.state = ATTEMPT_STARTING; /* interrupted: it begins anew */
    stage_history_tick(&w.s, BOOT + 600 * SEC);
    a->row.state = ATTEMPT_RUNNING;
    stage_history_moved(&w.s, a, WALL);
    stage_history_tick(&w.s, BOOT + 700 * SEC);
    assert_false(a->passed);
    w.spec.worker = WORKER_DOWNLOAD; /* ours proves itself by a durable shard */
    stage_history_tick(&w.s, BOOT + 1300 * SEC);
    assert_false(a->passed);
    w.spec.worker = WORKER_NONE;
    stage_history_tick(&w.s, BOOT + 1299 * SEC);
    assert_false(a->passed);
    stage_history_tick(&w.s, BOOT + 1300 * SEC);
    assert_true(a->passed && w.ls->breaker.passed && w.s.decide);
    leader_world_done(&w);
}

static void test_stage_history__only_successes_teach_durations(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    stage_history_init(w.ls);
    for (int64_t id = 1; id <= 6; id++) {
        struct live_attempt *a = leader_world_attempt(&w, id, 1);
        leader_world_ran(a, ATTEMPT_FAILED);
        (void)stage_history_ended(a, ATTEMPT_FAILED, CAUSE_INTERNAL, true, "", WALL);
    }
    duration_fit(&w.ls->duration);
    assert_false(duration_known(&w.ls->duration));
    for (int64_t id = 11; id <= 16; id++) {
        struct live_attempt *a = leader_world_attempt(&w, id, 1);
        leader_world_ran(a, ATTEMPT_SUCCEEDED);
        (void)stage_history_ended(a, ATTEMPT_SUCCEEDED, CAUSE_NONE, true, "", WALL);
    }
    duration_fit(&w.ls->duration);
    assert_true(duration_known(&w.ls->duration));
    leader_world_done(&w);
}

static void test_stage_history__promises_are_written_when_they_move(void **state)
{
    (void)state;
    struct leader_world w;
    struct stage_history_write h;
    leader_world_init(&w);
    assert_false(stage_history_dirty(&w.s));
    w.ls->reservation = (struct reservation){.task_id = 5,
                                             .instances = 8,
                                             .since_us = WALL,
                                             .promised_us = WALL + 1000 * SEC,
                                             .expected_us = WALL + 900 * SEC,
                                             .latest_us = USEC_NEVER};
    assert_true(stage_history_plan(w.ls, &h));
    assert_true(h.promise_moves && !h.passed);
    assert_int_equal(h.promise.task_id, 5);
    assert_int_equal(h.promise.latest_us, 0); /* not known */
    stage_history_apply(w.ls, &h);
    assert_false(stage_history_dirty(&w.s));
    w.ls->reservation.expected_us += 30 * SEC; /* half a minute is not told */
    assert_false(stage_history_dirty(&w.s));
    w.ls->reservation.expected_us += 1;
    assert_true(stage_history_dirty(&w.s));
    w.ls->reservation.expected_us -= 1;
    w.ls->reservation.promised_us += 1; /* a promise is, always */
    assert_true(stage_history_dirty(&w.s));
    w.ls->reservation = (struct reservation){0};
    assert_true(stage_history_plan(w.ls, &h));
    assert_int_equal(h.promise.task_id, 0);
    stage_history_apply(w.ls, &h);
    struct reservation before = {.task_id = 5, .promised_us = WALL + 1000 * SEC};
    const struct promise_row rows[] = {
        {.stage_id = 71, .task_id = 4, .promised_us = 1},
        {.stage_id = w.ls->row.id, .task_id = 5, .promised_us = before.promised_us},
        {.stage_id = 72, .task_id = 6, .promised_us = 2},
    };
    stage_history_take_promises(w.ls, rows, ARRAY_LEN(rows));
    assert_int_equal(w.ls->reservation.task_id, 5);
    assert_int_equal(w.ls->reservation.promised_us, before.promised_us);
    assert_int_equal(w.ls->reservation.latest_us, USEC_NEVER);
    leader_world_done(&w);
}

static void test_stage_history__a_pass_is_written_once(void **state)
{
    (void)state;
    struct leader_world w;
    struct stage_history_write h;
    leader_world_init(&w);
    struct live_attempt *first = leader_world_attempt(&w, 1, 1);
    campaign_rest(w.lc);
    stage_history_passed(&w.s, first);
    assert_false(w.lc->rests);
    assert_true(stage_history_plan(w.ls, &h) && h.passed && !h.promise_moves);
    w.lc->locked = true; /* what cannot be written asks for no transaction */
    assert_false(stage_history_dirty(&w.s));
    w.lc->locked = false;
    assert_true(stage_history_dirty(&w.s));
    stage_history_apply(w.ls, &h);
    assert_false(stage_history_dirty(&w.s));
    stage_history_resumed(w.ls, 1);
    stage_history_passed(&w.s, leader_world_attempt(&w, 2, 1));
    assert_true(stage_history_dirty(&w.s)); /* a person's resume asked for proof anew */
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stage_history__signature_joins_cause_and_words),
        cmocka_unit_test(test_stage_history__alike_failures_trip_and_say_why),
        cmocka_unit_test(test_stage_history__paid_failures_count_whatever_they_say),
        cmocka_unit_test(test_stage_history__a_part_without_a_request_says_nothing),
        cmocka_unit_test(test_stage_history__a_new_leader_knows_the_same),
        cmocka_unit_test(test_stage_history__capacity_errors_shut_the_rung),
        cmocka_unit_test(test_stage_history__rungs_that_the_ladder_does_not_have),
        cmocka_unit_test(test_stage_history__starts_on_pools_are_learned_apart),
        cmocka_unit_test(test_stage_history__a_job_that_starts_again_is_watched_anew),
        cmocka_unit_test(test_stage_history__ten_minutes_alive_prove_a_foreign_image),
        cmocka_unit_test(test_stage_history__only_successes_teach_durations),
        cmocka_unit_test(test_stage_history__promises_are_written_when_they_move),
        cmocka_unit_test(test_stage_history__a_pass_is_written_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
