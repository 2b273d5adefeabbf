/* Aim: parts that name a file system fail once it is gone for good, and not before, and a campaign
 * that is cancelled waits for its end. Method: campaigns in memory; what is planned is compared. */
#include "core/leader/endpoint_intent.h"
#include "core/leader/filesystem_intent.h"
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

/* Its campaign ends meanwhile; its row says what it waits for, and what ends it. */
static void test_filesystem_use__one_that_a_retry_needs_is_kept(void **state UNUSED)
{
    struct life_world l;
    struct spec_training training = {.channels_n = 1, .channels = {{.lustre_stage = "s0"}}};
    struct spec_filesystem volume = {.deployment = "SCRATCH_2"};
    struct filesystem_row row = {.id = 70,
                                 .campaign_id = 9,
                                 .stage_id = 90,
                                 .n = 1,
                                 .state = FILESYSTEM_AVAILABLE,
                                 .created_us = 100,
                                 .ttl_s = 3600,
                                 .ready = true};
    struct filesystem_writes w;
    struct campaign_life_writes life;
    life_world_init(&l, 3);
    l.spec[0].name = "s0";
    l.spec[0].kind = SPEC_KIND_LUSTRE;
    l.spec[0].filesystem = &volume;
    l.spec[2].training = &training;
    (void)snprintf(row.token.s, sizeof row.token.s, "d-9-s0");
    (void)leader_take_filesystems(&l.w.s, &row, 1, 1);
    struct live_filesystem *f = l.w.s.filesystems[0];
    l.st[0].row.state = l.st[1].row.state = STAGE_SUCCEEDED;
    l.st[2].row.state = STAGE_FAILED;
    leader_filesystems_mark(&l.w.s, 200);
    campaign_life_plan(l.lc, &life);
    assert_int_equal(life.n, 0); /* its campaign waits until that is said */
    leader_plan_filesystem_end(&l.w.s, f, 200, &w);
    assert_int_equal(w.news, FILESYSTEM_MOVED);
    assert_true(w.row.state == FILESYSTEM_AVAILABLE && w.row.kept_for_retry);
    assert_string_equal(w.row.reason,
                        "kept for a retry until its ttl is over: drover retry c-9, or "
                        "drover filesystems delete d-9-s0");
    leader_apply_filesystem(&l.w.s, f, &w);
    leader_filesystems_mark(&l.w.s, 200);
    campaign_life_plan(l.lc, &life);
    assert_int_equal(life.n, 1);
    assert_int_equal(life.moves[0].to, CAMPAIGN_FAILED);
    l.lc->row.state = CAMPAIGN_FAILED;
    leader_plan_filesystem_end(&l.w.s, f, 200, &w);
    assert_int_equal(w.news, FILESYSTEM_AS_BEFORE);
    size_t n = l.w.s.campaigns_n;
    l.w.s.campaigns_n = 0; /* nor is it unsaid once that is forgotten */
    leader_plan_filesystem_end(&l.w.s, f, 200, &w);
    assert_int_equal(w.news, FILESYSTEM_AS_BEFORE);
    l.w.s.campaigns_n = n;
    l.lc->row.state = CAMPAIGN_RUNNING; /* the retry */
    l.st[2].row.state = STAGE_RUNNING;
    leader_plan_filesystem_end(&l.w.s, f, 200, &w);
    assert_int_equal(w.news, FILESYSTEM_MOVED);
    assert_string_equal(w.row.reason, "");
    assert_false(w.row.kept_for_retry);
    l.st[2].row.state = STAGE_SKIPPED; /* or another one failed for which it was skipped */
    assert_int_equal(leader_filesystem_use(&l.w.s, &row), FILESYSTEM_UNUSED);
    l.st[1].row.state = STAGE_FAILED;
    assert_int_equal(leader_filesystem_use(&l.w.s, &row), FILESYSTEM_KEPT);
    l.spec[1].kind = SPEC_KIND_ENDPOINT; /* of that no part can be retried */
    assert_int_equal(leader_filesystem_use(&l.w.s, &row), FILESYSTEM_UNUSED);
    l.st[2].row.state = STAGE_FAILED;
    leader_plan_filesystem_end(&l.w.s, f, 100 + 3600 * USEC_PER_SEC, &w);
    assert_int_equal(w.row.state, FILESYSTEM_DELETING);
    l.lc->row.wanted = WANTED_CANCEL;
    leader_plan_filesystem_end(&l.w.s, f, 200, &w);
    assert_int_equal(w.row.state, FILESYSTEM_DELETING);
    l.lc->row.wanted = WANTED_RUN;
    l.lc->row.state = CAMPAIGN_CANCELLED;
    assert_int_equal(leader_filesystem_use(&l.w.s, &row), FILESYSTEM_UNUSED);
    life_world_done(&l);
}

/* Of which stage it is its row says, also when the campaign's file cannot be read. */
static void test_filesystem_use__an_unreadable_campaign_waits_for_it(void **state UNUSED)
{
    struct life_world l;
    struct filesystem_row row = {
        .id = 70, .campaign_id = 9, .stage_id = 90, .n = 1, .state = FILESYSTEM_AVAILABLE};
    struct campaign_life_writes life;
    life_world_init(&l, 1);
    l.lc->spec_unreadable = true;
    l.st[0].spec = NULL;
    memset(l.st[0].row.counts, 0, sizeof l.st[0].row.counts);
    l.st[0].row.state = STAGE_RUNNING;
    l.lc->row.wanted = WANTED_CANCEL;
    (void)leader_take_filesystems(&l.w.s, &row, 1, 1);
    for (int gone = 0; gone < 2; gone++) {
        l.w.s.filesystems[0]->row.state = gone ? FILESYSTEM_DELETED : FILESYSTEM_DELETING;
        leader_endpoints_mark(&l.w.s);
        leader_filesystems_mark(&l.w.s, 200);
        campaign_life_plan(l.lc, &life);
        assert_int_equal(life.n, gone);
    }
    life_world_done(&l);
}

static void test_filesystem_use__an_end_not_written_waits_a_moment(void **state UNUSED)
{
    struct live_filesystem f = {.write_us = 50};
    assert_false(leader_filesystem_end_due(&f, 49));
    assert_true(leader_filesystem_end_due(&f, 50));
}

static void test_filesystem_use__a_stage_nobody_can_read_mounts_none(void **state UNUSED)
{
    struct life_world l;
    struct request_volume volumes[SPEC_CHANNELS_MAX];
    life_world_init(&l, 2);
    assert_false(leader_filesystem_going(&l.w.s, l.lc, NULL));
    assert_int_equal(leader_filesystem_volumes(&l.w.s, l.lc->row.id, NULL, volumes), 0);
    life_world_done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filesystem_use__parts_whose_file_system_is_gone_fail),
        cmocka_unit_test(test_filesystem_use__one_that_a_retry_needs_is_kept),
        cmocka_unit_test(test_filesystem_use__an_unreadable_campaign_waits_for_it),
        cmocka_unit_test(test_filesystem_use__an_end_not_written_waits_a_moment),
        cmocka_unit_test(test_filesystem_use__a_stage_nobody_can_read_mounts_none),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("filesystem use", tests, NULL, NULL);
}
