/* Aim: every task with done_if is asked about before it may start, an answer moves it once, and
 * what could not be looked at is asked about again and never started unseen. Method: a campaign of
 * a few stages by hand; the clock is a number. */
#include "core/leader/skip_done.h"
#include "life_world.h"

static void ask_about(struct live_stage *ls, int64_t first, int n)
{
    for (int i = 0; i < n; i++) {
        ready_queue_push(ls->unchecked, &(struct ready_queue_task){.task_id = first + i,
                                                                   .seq = (uint32_t)i,
                                                                   .size_mb = (uint32_t)(n - i)});
    }
}

static void answer(struct life_world *l, const struct skip_done_ask *ask, enum skip_done_answer a,
                   usec_t now_us)
{
    skip_done_apply(&l->w.s, ask, skip_done_plan(&l->w.s, ask, a),
                    a == SKIP_DONE_UNCHECKED ? "503 SlowDown" : "", now_us);
}

static void test_skip_done__which_tasks_are_asked_about(void **state)
{
    (void)state;
    struct life_world l;
    life_world_init(&l, 1);
    assert_false(skip_done_wanted(&l.st[0], 0));
    l.spec[0].done_if = "s3://b/{part}/_manifest.json";
    assert_true(skip_done_wanted(&l.st[0], 0));
    assert_false(skip_done_wanted(&l.st[0], 1)); /* an attempt was begun */
    l.st[0].spec = NULL;
    assert_false(skip_done_wanted(&l.st[0], 0));
    life_world_done(&l);
}

static void test_skip_done__stages_take_turns(void **state)
{
    (void)state;
    struct life_world l;
    struct skip_done_ask a[8];
    life_world_init(&l, 3);
    ask_about(&l.st[0], 100, 50);
    ask_about(&l.st[1], 200, 2);
    assert_int_equal(skip_done_next(&l.w.s, WALL, a, 5), 5);
    const int64_t want[] = {100, 200, 101, 201, 102};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(a[i].task.task_id, want[i]);
        assert_int_equal(a[i].campaign_id, 9);
        assert_int_equal(a[i].stage_id, want[i] < 200 ? 90 : 91);
    }
    assert_int_equal(l.st[0].checks_under_way, 3);
    assert_int_equal(skip_done_next(&l.w.s, WALL, a, 0), 0);
    assert_int_equal(ready_queue_n(l.st[0].unchecked), 47);
    life_world_done(&l);
}

static void test_skip_done__nobody_asks_for_what_cannot_start(void **state)
{
    (void)state;
    struct skip_done_ask a[8];
    for (int s = 0; s < STAGE_STATE_COUNT; s++) {
        struct life_world l;
        life_world_init(&l, 1);
        ask_about(&l.st[0], 100, 1);
        l.st[0].row.state = (enum stage_state)s;
        l.lc->row.wanted = WANTED_CANCEL;
        assert_int_equal(skip_done_next(&l.w.s, WALL, a, 8), 0);
        l.lc->row.wanted = WANTED_PAUSE;
        assert_int_equal(skip_done_next(&l.w.s, WALL, a, 8), stage_state_terminal(s) ? 0 : 1);
        life_world_done(&l);
    }
}

static void test_skip_done__what_an_answer_means(void **state)
{
    (void)state;
    struct life_world l;
    struct skip_done_ask a[8];
    struct ready_queue_task t;
    life_world_init(&l, 1);
    ask_about(&l.st[0], 100, 3);
    assert_int_equal(skip_done_next(&l.w.s, WALL, a, 8), 3);
    answer(&l, &a[0], SKIP_DONE_THERE, WALL);
    assert_int_equal(l.st[0].row.counts[TASK_SKIPPED], 1);
    assert_int_equal(l.st[0].row.counts[TASK_WAITING], 9);
    campaign_rest(l.lc);
    answer(&l, &a[1], SKIP_DONE_MISSING, WALL);
    assert_false(l.lc->rests); /* a plan may start it */
    assert_int_equal(l.st[0].row.counts[TASK_WAITING], 9);
    answer(&l, &a[2], SKIP_DONE_UNCHECKED, WALL);
    assert_int_equal(l.st[0].checks_under_way, 0);
    assert_true(ready_queue_pop(l.st[0].ready, WALL, &t));
    assert_int_equal(t.task_id, 101);
    assert_int_equal(t.size_mb, 2);
    assert_false(ready_queue_pop(l.st[0].ready, USEC_NEVER - 1, &t));
    assert_int_equal(ready_queue_n(l.st[0].unchecked), 1);
    assert_true(l.w.s.look_at_db && l.w.s.decide);
    life_world_done(&l);
}

/* An hour of S3 refusing: the task is never started, asked about less and less often, yet again
 * after 10 s at most, and once S3 answers it goes on. */
static void test_skip_done__unchecked_is_asked_again_and_never_started(void **state)
{
    (void)state;
    struct life_world l;
    struct skip_done_ask a[8];
    usec_t now = WALL;
    usec_t last = 0;
    int asked = 0;
    life_world_init(&l, 1);
    ask_about(&l.st[0], 100, 1);
    for (usec_t end = WALL + 3600 * SEC; now < end; now += SEC / 10) {
        if (skip_done_next(&l.w.s, now, a, 8) == 0) {
            continue;
        }
        if (asked > 0) {
            usec_t want = MIN(10 * SEC, SEC << MIN(asked - 1, 6));
            assert_in_range(now - last, want / 2, want + SEC / 10);
        }
        answer(&l, &a[0], SKIP_DONE_UNCHECKED, now);
        assert_int_equal(ready_queue_n(l.st[0].ready), 0);
        last = now;
        asked++;
    }
    assert_in_range(asked, 360, 730);
    now += 11 * SEC;
    assert_int_equal(skip_done_next(&l.w.s, now, a, 8), 1);
    answer(&l, &a[0], SKIP_DONE_MISSING, now);
    assert_int_equal(l.st[0].checks_failed, 0);
    assert_true(ready_queue_peek(l.st[0].ready, now, &a[0].task));
    assert_int_equal(a[0].task.not_before_us, 0);
    life_world_done(&l);
}

static void test_skip_done__one_question_at_a_time_while_nothing_answers(void **state)
{
    (void)state;
    struct life_world l;
    struct skip_done_ask a[8];
    life_world_init(&l, 2);
    ask_about(&l.st[0], 100, 20);
    ask_about(&l.st[1], 200, 3);
    assert_int_equal(skip_done_next(&l.w.s, WALL, a, 2), 2);
    answer(&l, &a[0], SKIP_DONE_UNCHECKED, WALL);
    answer(&l, &a[1], SKIP_DONE_MISSING, WALL);
    assert_int_equal(skip_done_next(&l.w.s, WALL, a, 8), 3); /* one of s0, both others of s1 */
    assert_int_equal(l.st[0].checks_under_way, 1);
    assert_int_equal(skip_done_next(&l.w.s, WALL, &a[3], 5), 0);
    answer(&l, &a[0], SKIP_DONE_THERE, WALL); /* S3 is back */
    assert_int_equal(skip_done_next(&l.w.s, WALL, &a[3], 5), 5);
    life_world_done(&l);
}

static void test_skip_done__a_campaign_may_end_while_it_is_asked_about(void **state)
{
    (void)state;
    struct life_world l;
    struct skip_done_ask a[8];
    life_world_init(&l, 1);
    ask_about(&l.st[0], 100, 1);
    assert_int_equal(skip_done_next(&l.w.s, WALL, a, 8), 1);
    leader_state_drop_campaign(&l.w.s, l.lc);
    assert_int_equal(skip_done_plan(&l.w.s, &a[0], SKIP_DONE_THERE), SKIP_DONE_FORGET);
    answer(&l, &a[0], SKIP_DONE_THERE, WALL);
    answer(&l, &a[0], SKIP_DONE_UNCHECKED, WALL);
    /* taken over anew, with the same ids: the old answer is not about this one */
    struct live_campaign *again = leader_world_campaign(&l.w, 9, 3);
    again->stages[0].unchecked = ready_queue_new();
    assert_int_equal(skip_done_plan(&l.w.s, &a[0], SKIP_DONE_THERE), SKIP_DONE_FORGET);
    answer(&l, &a[0], SKIP_DONE_MISSING, WALL);
    assert_int_equal(ready_queue_n(again->stages[0].ready), 0);
    assert_int_equal(again->stages[0].checks_under_way, 0);
    life_world_done(&l);
}

/* S3 refuses, and refuses again, and answers: what is told of the stage, and how often. */
static void test_skip_done__tells_why_its_stage_waits(void **state)
{
    (void)state;
    struct life_world l;
    struct skip_done_ask a[8];
    struct skip_done_wait w;
    life_world_init(&l, 1);
    struct live_stage *ls = &l.st[0];
    ls->reason = WAIT_NEW;
    ask_about(ls, 100, 1);
    assert_false(skip_done_tells(l.lc, ls, WALL, &w)); /* it has no done_if */
    l.spec[0].done_if = "s3://b/{part}/_manifest.json";
    assert_true(skip_done_tells(l.lc, ls, WALL, &w)); /* its row may be of an earlier leader */
    assert_int_equal(w.why, WAIT_NEW);
    skip_done_told(ls, &w);
    assert_int_equal(skip_done_next(&l.w.s, WALL, a, 8), 1);
    assert_false(skip_done_tells(l.lc, ls, WALL, &w)); /* asked about, no answer yet */
    answer(&l, &a[0], SKIP_DONE_UNCHECKED, WALL);
    assert_true(skip_done_tells(l.lc, ls, WALL, &w));
    assert_int_equal(w.why, WAIT_UNCHECKED);
    assert_string_equal(w.said, "503 SlowDown");
    assert_in_range(w.again_us, WALL + SEC / 2, WALL + SEC);
    skip_done_told(ls, &w);
    assert_int_equal(ls->reason, WAIT_UNCHECKED);
    usec_t again = w.again_us;
    assert_false(skip_done_tells(l.lc, ls, again, &w)); /* the same */
    assert_int_equal(skip_done_next(&l.w.s, again, a, 8), 1);
    answer(&l, &a[0], SKIP_DONE_UNCHECKED, again);
    assert_false(skip_done_tells(l.lc, ls, again - 1, &w)); /* what was told is still to come */
    assert_true(skip_done_tells(l.lc, ls, again, &w));
    assert_in_range(w.again_us, again + SEC, again + 2 * SEC);
    skip_done_told(ls, &w);
    again = w.again_us;
    ls->row.state = STAGE_BLOCKED; /* what else keeps it comes first */
    assert_true(skip_done_tells(l.lc, ls, again, &w));
    assert_int_equal(w.why, WAIT_STAGE_BLOCKED);
    assert_int_equal(w.again_us, 0);
    assert_string_equal(w.said, "");
    ls->row.state = STAGE_SKIPPED; /* nothing of it waits */
    assert_false(skip_done_tells(l.lc, ls, again, &w));
    ls->row.state = STAGE_RUNNING;
    ask_about(ls, 200, 1);
    assert_int_equal(skip_done_next(&l.w.s, again, a, 1), 1);
    answer(&l, &a[0], SKIP_DONE_THERE, again); /* S3 is back; the other is still to be asked */
    assert_true(skip_done_tells(l.lc, ls, again, &w));
    assert_int_equal(w.why, WAIT_NEW);
    assert_string_equal(w.said, "");
    skip_done_told(ls, &w);
    assert_int_equal(skip_done_next(&l.w.s, again, a, 1), 1);
    answer(&l, &a[0], SKIP_DONE_UNCHECKED, again);
    assert_true(skip_done_tells(l.lc, ls, again, &w));
    ready_queue_push(ls->ready, &a[0].task); /* the scheduler tells why */
    assert_false(skip_done_tells(l.lc, ls, again, &w));
    life_world_done(&l);
}

/* Its parts are asked about one after the other, whatever its state: a reason of that goes with it,
 * though no answer failed and nothing is ready. */
static void test_skip_done__a_reason_that_is_over_is_taken_back(void **state)
{
    (void)state;
    struct life_world l;
    struct skip_done_wait w;
    life_world_init(&l, 1);
    struct live_stage *ls = &l.st[0];
    l.spec[0].done_if = "s3://b/{part}/_manifest.json";
    ask_about(ls, 100, 1);
    ls->row.state = STAGE_BLOCKED;
    const struct {
        enum stage_state stage;
        enum wanted wanted;
        usec_t no_start_s;
        enum wait_reason told; /* NONE: nothing new */
    } steps[] = {
        {STAGE_BLOCKED, WANTED_RUN, 0, WAIT_STAGE_BLOCKED},
        {STAGE_RUNNING, WANTED_RUN, 0, WAIT_NEW},
        {STAGE_RUNNING, WANTED_RUN, 0, WAIT_NONE},
        {STAGE_RUNNING, WANTED_RUN, 60, WAIT_NONE}, /* no part of it was refused */
        {STAGE_RUNNING, WANTED_PAUSE, 0, WAIT_PAUSED},
        {STAGE_RUNNING, WANTED_PAUSE, 0, WAIT_NONE},
        {STAGE_RUNNING, WANTED_RUN, 0, WAIT_NEW},
        {STAGE_HELD, WANTED_RUN, 0, WAIT_HELD},
        {STAGE_RUNNING, WANTED_RUN, 60, WAIT_NEW},
    };
    l.lc->row.state = CAMPAIGN_RUNNING;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        ls->row.state = steps[i].stage;
        l.lc->row.wanted = steps[i].wanted;
        ls->no_start_until_us = steps[i].no_start_s > 0 ? WALL + steps[i].no_start_s * SEC : 0;
        bool tells = skip_done_tells(l.lc, ls, WALL, &w);
        if (tells != (steps[i].told != WAIT_NONE) || (tells && w.why != steps[i].told)) {
            fail_msg("step %zu: told %d, reason %d", i, tells, (int)w.why);
        }
        if (tells) {
            skip_done_told(ls, &w);
        }
    }
    ls->reason = WAIT_SLOTS; /* of one that was ready, and others will be */
    assert_false(skip_done_tells(l.lc, ls, WALL, &w));
    life_world_done(&l);
}

static void test_skip_done__only_a_checked_output_says_anything(void **state)
{
    (void)state;
    static const struct {
        bool checked, good;
        enum cause cause;
        enum skip_done_answer answer;
    } rows[] = {{true, true, CAUSE_NONE, SKIP_DONE_THERE},
                {true, false, CAUSE_SHORT_OUTPUT, SKIP_DONE_MISSING},
                {true, false, CAUSE_ACCESS_DENIED, SKIP_DONE_UNCHECKED}, /* S3 did not say */
                {true, false, CAUSE_BAD_REQUEST, SKIP_DONE_UNCHECKED},
                {true, false, CAUSE_BAD_INPUT, SKIP_DONE_UNCHECKED}, /* too large to be checked */
                {false, true, CAUSE_NONE, SKIP_DONE_UNCHECKED},
                {false, false, CAUSE_NONE, SKIP_DONE_UNCHECKED}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct output_verdict v = {
            .checked = rows[i].checked, .good = rows[i].good, .cause = rows[i].cause};
        assert_int_equal(skip_done_answer_of(&v), rows[i].answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skip_done__which_tasks_are_asked_about),
        cmocka_unit_test(test_skip_done__stages_take_turns),
        cmocka_unit_test(test_skip_done__nobody_asks_for_what_cannot_start),
        cmocka_unit_test(test_skip_done__what_an_answer_means),
        cmocka_unit_test(test_skip_done__unchecked_is_asked_again_and_never_started),
        cmocka_unit_test(test_skip_done__one_question_at_a_time_while_nothing_answers),
        cmocka_unit_test(test_skip_done__a_campaign_may_end_while_it_is_asked_about),
        cmocka_unit_test(test_skip_done__tells_why_its_stage_waits),
        cmocka_unit_test(test_skip_done__a_reason_that_is_over_is_taken_back),
        cmocka_unit_test(test_skip_done__only_a_checked_output_says_anything),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("skip done", tests, NULL, NULL);
}
