/* Aim: a stage with a gate succeeds only when its gate was judged and passed, or a person overrode
 * it; it is judged only when all its runs have ended and their logs were read. Method: a campaign
 * of two stages by hand, the second needs the first. */
#include "core/leader/stage_gate.h"
#include "life_world.h"

static const struct gate_run good = {.known = true, .value = 1, .step = 5};
static const struct gate_run bad = {.known = true, .value = 4, .step = 5};

static void with_gate(struct life_world *l)
{
    life_world_init(l, 2);
    l->spec[0].gate = (struct spec_gate){.metric = "loss", .has_below = true, .below = 3};
    l->lc->live = 0;
    life_stage_ended(&l->st[0], 0);
}

static void test_gate__a_stage_without_one_is_never_asked(void **state)
{
    (void)state;
    struct life_world l;
    with_gate(&l);
    l.spec[0].gate.metric = NULL;
    assert_false(stage_gate_asks(l.lc, &l.st[0]));
    assert_string_equal(plan(&l), "s0 running>succeeded");
    l.st[0].spec = NULL;
    assert_false(stage_gate_asks(l.lc, &l.st[0]));
    life_world_done(&l);
}

static void test_gate__it_is_judged_when_the_logs_are_read(void **state)
{
    (void)state;
    struct life_world l;
    with_gate(&l);
    assert_true(stage_gate_asks(l.lc, &l.st[0]));
    assert_string_equal(plan(&l), ""); /* not before it is judged */
    stage_gate_judge(l.lc, &l.st[0], &good, 1, false);
    assert_true(stage_gate_asks(l.lc, &l.st[0]));
    assert_string_equal(plan(&l), "");
    stage_gate_judge(l.lc, &l.st[0], &good, 1, true);
    assert_false(stage_gate_asks(l.lc, &l.st[0]));
    assert_string_equal(plan(&l), "s0 running>succeeded");
    life_world_done(&l);
}

static void test_gate__one_that_fails_holds_stage_and_campaign_with_the_reason(void **state)
{
    (void)state;
    struct life_world l;
    struct campaign_life_writes w;
    with_gate(&l);
    stage_gate_judge(l.lc, &l.st[0], &bad, 1, true);
    assert_string_equal(plan(&l), "s0 running>held");
    campaign_life_plan(l.lc, &w);
    assert_string_equal(w.moves[0].reason,
                        "gate: loss is 4 at step 5 of run 0, not below 3: drover override c-9/s0");
    campaign_life_apply(&l.w.s, l.lc, &w.moves[0]);
    assert_string_equal(plan(&l), "c running>held");
    campaign_life_plan(l.lc, &w);
    assert_non_null(strstr(w.moves[0].reason, "stage s0: gate: loss is 4"));
    campaign_life_apply(&l.w.s, l.lc, &w.moves[0]);
    assert_string_equal(plan(&l), ""); /* it stays so, resumed or not */
    l.st[0].row.resumes = 1;
    assert_string_equal(plan(&l), "");
    life_world_done(&l);
}

static void test_gate__a_person_overrides_it(void **state)
{
    (void)state;
    struct life_world l;
    struct campaign_life_writes w;
    with_gate(&l);
    stage_gate_judge(l.lc, &l.st[0], &bad, 1, true);
    campaign_life_plan(l.lc, &w);
    campaign_life_apply(&l.w.s, l.lc, &w.moves[0]);
    l.lc->row.state = CAMPAIGN_HELD;
    l.st[0].row.gate_override = true;
    assert_string_equal(plan(&l), "s0 held>succeeded");
    campaign_life_plan(l.lc, &w);
    assert_string_equal(w.moves[0].reason, "gate overridden");
    campaign_life_apply(&l.w.s, l.lc, &w.moves[0]);
    assert_string_equal(plan(&l), "s1 blocked>running");
    life_world_done(&l);
}

static void test_gate__a_new_leader_judges_a_held_one_again(void **state)
{
    (void)state;
    struct life_world l;
    with_gate(&l);
    l.st[0].row.state = STAGE_HELD;
    assert_true(stage_gate_asks(l.lc, &l.st[0]));
    assert_string_equal(plan(&l), "c running>held");
    stage_gate_judge(l.lc, &l.st[0], &good, 1, true);
    assert_string_equal(plan(&l), "s0 held>succeeded");
    life_world_done(&l);
}

static void test_gate__runs_that_are_tried_again_are_judged_again(void **state)
{
    (void)state;
    struct life_world l;
    with_gate(&l);
    stage_gate_judge(l.lc, &l.st[0], &bad, 1, true);
    l.st[0].row.counts[TASK_DONE]--;
    l.st[0].row.counts[TASK_WAITING]++;
    assert_false(stage_gate_asks(l.lc, &l.st[0]));
    life_stage_ended(&l.st[0], 0);
    assert_true(stage_gate_asks(l.lc, &l.st[0]));
    life_world_done(&l);
}

/* Nine runs are good and the tenth fails: so does the stage. Its gate, judged by the nine, does not
 * let it succeed once people give the tenth up, whether this leader goes on or a new one. */
static void test_gate__a_run_that_people_skip_holds_it_as_it_holds_a_new_leader(void **state)
{
    (void)state;
    for (int anew = 0; anew < 2; anew++) {
        struct life_world l;
        struct campaign_life_writes w;
        with_gate(&l);
        life_stage_ended(&l.st[0], 1);
        if (!anew && stage_gate_asks(l.lc, &l.st[0])) {
            stage_gate_judge(l.lc, &l.st[0], &good, 1, true);
            assert_string_equal(plan(&l), "s0 running>failed");
        }
        task_counts_move(l.lc, &l.st[0], TASK_FAILED, TASK_SKIPPED, 1);
        assert_true(stage_gate_asks(l.lc, &l.st[0]));
        stage_gate_judge(l.lc, &l.st[0], &good, 1, true);
        assert_string_equal(plan(&l), "s0 running>held");
        campaign_life_plan(l.lc, &w);
        assert_string_equal(
            w.moves[0].reason,
            "gate: 1 of its runs was skipped: loss is not known: drover override c-9/s0");
        assert_false(stage_gate_asks(l.lc, &l.st[0])); /* once */
        life_world_done(&l);
    }
}

static void test_gate__a_stage_that_failed_or_is_cancelled_has_no_gate(void **state)
{
    (void)state;
    struct life_world l;
    with_gate(&l);
    life_stage_ended(&l.st[0], 10);
    assert_string_equal(plan(&l), "s0 running>failed");
    life_stage_ended(&l.st[0], 0);
    l.lc->row.wanted = WANTED_CANCEL;
    assert_false(stage_gate_asks(l.lc, &l.st[0]));
    assert_string_equal(plan(&l), "s0 running>cancelled");
    life_world_done(&l);
}

/* From the first look to the end: a move asks for another look till nothing moves. */
static void test_stage_gate__a_chain_of_stages_runs_to_its_end(void **state)
{
    (void)state;
    struct life_world l;
    life_world_init(&l, 3);
    l.lc->row.state = CAMPAIGN_PLANNED;
    (void)life_settle(&l);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(l.st[i].row.state, STAGE_RUNNING);
        assert_int_equal(l.lc->row.state, CAMPAIGN_RUNNING);
        life_stage_ended(&l.st[i], 0);
        l.w.s.look_at_db = l.w.s.decide = false;
        (void)life_settle(&l);
        assert_true(l.w.s.look_at_db && l.w.s.decide);
    }
    assert_int_equal(l.lc->row.state, CAMPAIGN_SUCCEEDED);
    life_world_done(&l);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stage_gate__a_chain_of_stages_runs_to_its_end),
        cmocka_unit_test(test_gate__a_stage_without_one_is_never_asked),
        cmocka_unit_test(test_gate__it_is_judged_when_the_logs_are_read),
        cmocka_unit_test(test_gate__one_that_fails_holds_stage_and_campaign_with_the_reason),
        cmocka_unit_test(test_gate__a_person_overrides_it),
        cmocka_unit_test(test_gate__a_new_leader_judges_a_held_one_again),
        cmocka_unit_test(test_gate__runs_that_are_tried_again_are_judged_again),
        cmocka_unit_test(test_gate__a_run_that_people_skip_holds_it_as_it_holds_a_new_leader),
        cmocka_unit_test(test_gate__a_stage_that_failed_or_is_cancelled_has_no_gate),
    };
    return cmocka_run_group_tests_name("stage_gate", tests, NULL, NULL);
}
