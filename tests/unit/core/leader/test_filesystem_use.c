/* Aim: parts that name a file system fail once it is gone for good, and not before. Method: a
 * campaign of two stages in memory; what is planned is compared. */
#include "core/leader/filesystem_life.h"
#include "core/leader/filesystem_use.h"
#include "life_world.h"

static void fill(struct live_stage *ls, int first, int n)
{
    for (int i = 0; i < n; i++) {
        ready_queue_push(i % 2 == 0 ? ls->ready : ls->unchecked,
                         &(struct ready_queue_task){.task_id = first + i, .seq = (uint32_t)i});
    }
}

static void test_filesystem_use__parts_whose_file_system_is_gone_fail(void **state)
{
    (void)state;
    struct life_world l;
    struct ready_queue_task tasks[4] = {0};
    struct campaign_life_cancel w = {.tasks = tasks};
    struct spec_training training = {.channels_n = 1, .channels = {{.lustre_stage = "s0"}}};
    struct filesystem_row row = {
        .id = 70, .campaign_id = 9, .stage_id = 90, .n = 1, .state = FILESYSTEM_AVAILABLE};
    life_world_init(&l, 2);
    l.spec[0].kind = SPEC_KIND_LUSTRE;
    l.spec[1].training = &training;
    fill(&l.st[1], 200, 3);
    l.st[1].row.state = STAGE_RUNNING;
    assert_false(campaign_life_plan_cancel(&l.w.s, l.lc, 4, &w)); /* it is not made yet */
    l.st[0].row.state = STAGE_SUCCEEDED;
    (void)leader_take_filesystems(&l.w.s, &row, 1, 1);
    assert_false(campaign_life_plan_cancel(&l.w.s, l.lc, 4, &w)); /* it is there */
    l.w.s.filesystems[0]->row.state = FILESYSTEM_DELETED;
    l.lc->row.wanted = WANTED_PAUSE;
    assert_false(campaign_life_plan_cancel(&l.w.s, l.lc, 4, &w));
    l.lc->row.wanted = WANTED_RUN;
    assert_true(campaign_life_plan_cancel(&l.w.s, l.lc, 4, &w));
    assert_int_equal(w.n, 3);
    assert_int_equal(w.stage_id, 91);
    assert_int_equal(w.to, TASK_FAILED);
    assert_int_equal(w.cause, CAUSE_BAD_INPUT);
    assert_string_equal(w.message, "the file system of stage s0 is gone: its time was over, or "
                                   "somebody deleted it");
    campaign_life_apply_cancel(&l.w.s, l.lc, &w, true, w.n);
    assert_int_equal(l.st[1].row.counts[TASK_FAILED], 3);
    fill(&l.st[1], 200, 1);
    leader_filesystems_forget(&l.w.s); /* once its stage has ended, too */
    assert_int_equal(l.w.s.filesystems_n, 0);
    assert_true(campaign_life_plan_cancel(&l.w.s, l.lc, 4, &w));
    campaign_life_apply_cancel(&l.w.s, l.lc, &w, true, w.n);
    l.spec[1].training = NULL;
    fill(&l.st[1], 200, 1);
    assert_false(campaign_life_plan_cancel(&l.w.s, l.lc, 4, &w)); /* names none */
    life_world_done(&l);
}

static void test_filesystem_use__an_end_not_written_waits_a_moment(void **state UNUSED)
{
    struct live_filesystem f = {.write_us = 50};
    assert_false(leader_filesystem_end_due(&f, 49));
    assert_true(leader_filesystem_end_due(&f, 50));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filesystem_use__parts_whose_file_system_is_gone_fail),
        cmocka_unit_test(test_filesystem_use__an_end_not_written_waits_a_moment),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("filesystem use", tests, NULL, NULL);
}
