/* Aim: each rule of the scheduler holds and each wait has its reason. Method: small worlds by hand,
 * one rule each; one stage of a million tasks is timed. (Random views: test_sched_random.c.) */
#include "sched_world.h"
#include <time.h>

static void test_sched__slots_bound_what_starts(void **state)
{
    (void)state;
    struct world *w = world_new();
    int s = add_stage(w, add_campaign(w), 0, 20);
    w->slots[0].held = 3;
    w->slots[0].foreign = 2;
    struct sched_plan *p = decide(w);
    assert_int_equal(p->launches_n, 5);
    assert_reason(p, s, SLOTS);
    assert_int_equal(ready_queue_n(w->stages[s].ready), 15);
    assert_int_equal(p->launches[0].max_runtime_s, 3600);
    assert_int_equal(p->launches[0].reserve_musd, 4620000); /* 4620 s at 3.60 */
    plan_free(p);
    world_free(w);
}

static void test_sched__a_run_longer_than_a_job_may_last(void **state)
{
    (void)state;
    struct world *w = world_new();
    int s = add_stage(w, add_campaign(w), 0, 1);
    struct spec_training training = {.checkpoint = "s3://b/ckpt/"};
    w->stage[s].training = &training; /* it goes on in its next job */
    w->account.longest_run_s = 3599;
    struct sched_plan *p = decide(w);
    assert_int_equal(p->launches_n, 1);
    assert_int_equal(p->launches[0].max_runtime_s, 3599);
    plan_free(p);
    world_free(w);
}

static void test_sched__each_check_has_its_reason(void **state)
{
    (void)state;
    struct world *w = world_new();
    int c = add_campaign(w);
    int s = add_stage(w, c, 0, 3);
    struct sched_plan *p;
#define EXPECT(change, undo, want)                                                                 \
    do {                                                                                           \
        change;                                                                                    \
        p = decide(w);                                                                             \
        assert_int_equal(p->launches_n, 0);                                                        \
        assert_reason(p, s, want);                                                                 \
        assert_int_equal(ready_queue_n(w->stages[s].ready), 3);                                    \
        plan_free(p);                                                                              \
        undo;                                                                                      \
    } while (0)
    EXPECT(w->slots[0].quota = -1, w->slots[0].quota = 10, QUOTA_UNREADABLE);
    EXPECT(w->slots[0].quota = 0, w->slots[0].quota = 10, QUOTA_TOO_SMALL);
    EXPECT(w->slots[0].held = 10, w->slots[0].held = 0, SLOTS);
    EXPECT(w->slots[0].held = 12, w->slots[0].held = 0, SLOTS);
    EXPECT(w->slots[0].price_musd_per_hour = -1, w->slots[0].price_musd_per_hour = 3600000,
           PRICE_UNKNOWN);
    EXPECT(w->campaigns[0].left_musd = 4619999, w->campaigns[0].left_musd = INT64_MAX, BUDGET);
    EXPECT(w->campaigns[0].left_musd = -5, w->campaigns[0].left_musd = INT64_MAX, BUDGET);
    EXPECT(w->projects[0].left_musd = 4619999, w->projects[0].left_musd = INT64_MAX, BUDGET);
    EXPECT(w->view.left_musd = 4619999, w->view.left_musd = INT64_MAX, BUDGET);
    EXPECT(w->stages[s].stage_left_musd = 0, w->stages[s].stage_left_musd = INT64_MAX,
           STAGE_BUDGET);
    EXPECT(w->stages[s].part_cap_musd = 4619999, w->stages[s].part_cap_musd = INT64_MAX,
           PART_BUDGET);
    EXPECT(w->campaigns[0].parts_limit = 0, w->campaigns[0].parts_limit = -1, CONCURRENCY);
    EXPECT(w->stages[s].parts_limit = 0, w->stages[s].parts_limit = -1, STAGE_LIMIT);
    EXPECT((w->projects[0].parts_limit = 7, w->projects[0].live = 7),
           w->projects[0].parts_limit = -1, PROJECT_LIMIT);
    EXPECT((w->view.parts_limit = 7, w->view.live = 7), w->view.parts_limit = -1, GLOBAL_LIMIT);
    EXPECT(w->account.per_job = 0, w->account.per_job = -1, QUOTA_TOO_SMALL);
    EXPECT(w->account.longest_run_s = 3599, w->account.longest_run_s = -1, QUOTA_TOO_SMALL);
    EXPECT(w->account.volume_gb = 29, w->account.volume_gb = -1, QUOTA_TOO_SMALL);
    EXPECT((w->account.total[0].limit = 30, w->account.total[0].held = 30),
           w->account.total[0].limit = -1, SLOTS);
    EXPECT(w->view.tokens = 0, w->view.tokens = 100, RATE);
    EXPECT((w->stages[s].may_start = false, w->stages[s].why_not = WAIT_PAUSED),
           w->stages[s].may_start = true, PAUSED);
    EXPECT((w->spec[c].instances_n = 1,
            w->spec[c].instances[0] = (struct spec_limit){type_names[0], 2},
            w->campaigns[0].type_held[0] = 2),
           w->spec[c].instances_n = 0, TYPE_LIMIT);
    EXPECT(w->view.slots_n = 0, w->view.slots_n = TYPES, QUOTA_UNREADABLE);
#undef EXPECT
    p = decide(w);
    assert_int_equal(p->launches_n, 3); /* nothing but what was undone kept them back */
    assert_reason(p, s, NONE);
    plan_free(p);
    world_free(w);
}

static void test_sched__a_stage_goes_as_far_as_its_breaker_allows(void **state)
{
    (void)state;
    struct world *w = world_new();
    int s = add_stage(w, add_campaign(w), 0, 8);
    struct breaker b;
    breaker_init(&b);
    w->stages[s].breaker = &b;
    w->stages[s].breaker_rules = (struct breaker_rules){.canary = 3, .k = 3, .n = 10};
    struct sched_plan *p = decide(w);
    assert_int_equal(p->launches_n, 3);
    assert_reason(p, s, CANARY);
    plan_free(p);
    for (int64_t id = 1; id <= 3; id++) {
        breaker_started(&b, id);
    }
    p = decide(w);
    assert_int_equal(p->launches_n, 0);
    assert_reason(p, s, CANARY);
    plan_free(p);
    for (int64_t id = 1; id <= 3; id++) {
        (void)breaker_ended(&b, &w->stages[s].breaker_rules, id, CAUSE_USER_CODE, true, 1);
    }
    p = decide(w);
    assert_int_equal(p->launches_n, 0);
    assert_reason(p, s, BREAKER);
    plan_free(p);
    breaker_reset(&b, 3);
    breaker_passed(&b); /* the three taken above are off the queue */
    p = decide(w);
    assert_int_equal(p->launches_n, 5);
    assert_reason(p, s, NONE);
    plan_free(p);
    world_free(w);
}

static void test_sched__backing_off_waits_and_says_until_when(void **state)
{
    (void)state;
    struct world *w = world_new();
    int s = add_stage(w, add_campaign(w), 0, 0);
    w->change[1].rung = -1;
    ready_queue_push(
        w->stages[s].ready,
        &(struct ready_queue_task){.task_id = 1, .not_before_us = NOW + 5 * USEC_PER_SEC});
    struct sched_plan *p = decide(w);
    assert_int_equal(p->launches_n, 0);
    assert_reason(p, s, BACKOFF);
    assert_int_equal(p->wake_us, NOW + 5 * USEC_PER_SEC);
    w->view.now_us = p->wake_us;
    sched_decide(&w->view, p);
    assert_int_equal(p->launches_n, 1);
    assert_int_equal(p->wake_us, USEC_NEVER);
    plan_free(p);
    world_free(w);
}

static void test_sched__priority_is_strict_and_equals_share(void **state)
{
    (void)state;
    struct world *w = world_new();
    int a = add_stage(w, add_campaign(w), 0, 20);
    int b = add_stage(w, add_campaign(w), 0, 20);
    int c = add_stage(w, add_campaign(w), 0, 20);
    w->campaigns[0].held = 4; /* it has its share already */
    struct sched_plan *p = decide(w);
    assert_int_equal(p->launches_n, 10);
    assert_int_equal(launches_of(p, a), 1); /* all hold five then, the fourth of c too */
    assert_int_equal(launches_of(p, b), 5);
    assert_int_equal(launches_of(p, c), 4);
    plan_free(p);
    world_free(w);

    w = world_new();
    a = add_stage(w, add_campaign(w), 0, 20);
    b = add_stage(w, add_campaign(w), 0, 3);
    w->stages[b].priority = 51;
    w->campaigns[1].held = 100;
    p = decide(w);
    assert_int_equal(launches_of(p, b), 3);
    assert_int_equal(launches_of(p, a), 7);
    assert_int_equal(p->launches[0].stage_i, b);
    plan_free(p);
    world_free(w);
}

static void test_sched__near_a_cap_a_shorter_run_time_never_below_the_minimum(void **state)
{
    (void)state;
    struct world *w = world_new();
    int s = add_stage(w, add_campaign(w), 0, 5);
    w->stage[s].min_runtime_s = 1800;
    /* two whole ones (4.62 each), then 2000 s + 1020 s for 3.02 */
    w->campaigns[0].left_musd = 2 * 4620000 + 3020000;
    struct sched_plan *p = decide(w);
    assert_int_equal(p->launches_n, 3);
    assert_int_equal(p->launches[1].max_runtime_s, 3600);
    assert_int_equal(p->launches[2].max_runtime_s, 2000);
    assert_int_equal(p->launches[2].reserve_musd, 3020000);
    assert_reason(p, s, BUDGET);
    plan_free(p);
    world_free(w);
}

static void test_sched__what_a_timeout_extended_is_not_shortened(void **state)
{
    (void)state;
    struct world *w = world_new();
    int s = add_stage(w, add_campaign(w), 0, 1);
    w->stage[s].min_runtime_s = 1800;
    w->change[1] = (struct change){.rung = 0, .runtime_s = 5400};
    w->campaigns[0].left_musd = 5000000;
    struct sched_plan *p = decide(w);
    assert_int_equal(p->launches_n, 0);
    assert_reason(p, s, BUDGET);
    w->campaigns[0].left_musd = 6420000;
    sched_decide(&w->view, p);
    assert_int_equal(p->launches_n, 1);
    assert_int_equal(p->launches[0].max_runtime_s, 5400);
    plan_free(p);
    world_free(w);
}

static void test_sched__a_gang_is_not_starved_by_small_tasks(void **state)
{
    (void)state;
    struct world *w = world_new();
    int gang = add_stage(w, add_campaign(w), 0, 1);
    int small = add_stage(w, add_campaign(w), 0, 20);
    w->stage[gang].instance_count = 8;
    w->stages[gang].priority = 60;
    w->slots[0].held = 5;
    struct sched_plan *p = decide(w);
    assert_int_equal(p->launches_n, 0);
    assert_reason(p, gang, GANG);
    assert_reason(p, small, RESERVED);
    /* slots of others never come back by our doing: then nothing is kept for it */
    w->slots[0].held = 0;
    w->slots[0].foreign = 5;
    sched_decide(&w->view, p);
    assert_int_equal(launches_of(p, small), 5);
    assert_reason(p, gang, SLOTS);
    plan_free(p);
    world_free(w);
}

static void test_sched__a_moved_task_does_not_hold_up_those_behind_it(void **state)
{
    (void)state;
    struct world *w = world_new();
    int s = add_stage(w, add_campaign(w), 0, 4);
    w->stage[s].instance_type[1] = type_names[1];
    w->stage[s].instance_type_n = 2;
    w->change[1] = (struct change){.rung = 1, .volume_gb = 60};
    w->slots[1].held = 10;
    struct sched_plan *p = decide(w);
    assert_int_equal(p->launches_n, 3);
    assert_reason(p, s, SLOTS); /* of the first task, which still waits */
    assert_int_equal(ready_queue_n(w->stages[s].ready), 1);
    w->slots[1].held = 0;
    sched_decide(&w->view, p);
    assert_int_equal(p->launches_n, 1);
    assert_int_equal(p->launches[0].task.task_id, 1);
    assert_int_equal(p->launches[0].slots_i, 1);
    assert_int_equal(p->launches[0].instance_type_i, 1);
    assert_int_equal(p->launches[0].volume_gb, 60);
    plan_free(p);
    world_free(w);
}

static void test_sched__a_rung_that_can_never_hold_the_job_is_passed(void **state)
{
    (void)state;
    struct world *w = world_new();
    int s = add_stage(w, add_campaign(w), 0, 2);
    w->stage[s].instance_type[1] = type_names[1];
    w->stage[s].instance_type_n = 2;
    w->slots[0].quota = 0;
    struct sched_plan *p = decide(w);
    assert_int_equal(p->launches_n, 2);
    assert_int_equal(p->launches[0].instance_type_i, 1);
    plan_free(p);
    world_free(w);
}

static void test_sched__a_moved_task_whose_rung_shrinks_goes_back(void **state)
{
    (void)state;
    struct world *w = world_new();
    int s = add_stage(w, add_campaign(w), 0, 1);
    w->stage[s].instance_type[1] = type_names[1];
    w->stage[s].instance_type_n = 2;
    w->change[1] = (struct change){.rung = 1};
    w->slots[0].quota = w->slots[1].quota = 0;
    struct sched_plan *p = decide(w);
    assert_int_equal(p->launches_n, 0);
    assert_reason(p, s, QUOTA_TOO_SMALL);
    w->slots[0].quota = 10;
    w->slots[1].quota = -1; /* not read yet: it may be large enough */
    sched_decide(&w->view, p);
    assert_int_equal(p->launches_n, 0);
    assert_reason(p, s, QUOTA_UNREADABLE);
    w->slots[1].quota = 0;
    sched_decide(&w->view, p);
    assert_int_equal(p->launches_n, 1);
    assert_int_equal(p->launches[0].instance_type_i, 0);
    assert_int_equal(p->launches[0].slots_i, 0);
    plan_free(p);
    world_free(w);
}

static void test_sched__what_was_changed_beyond_a_quota_is_cut_to_it(void **state)
{
    (void)state;
    static const struct row {
        int64_t quota_gb, quota_s;
        int volume_gb;
        int64_t runtime_s;
    } rows[] = {
        {-1, -1, 600, 7200},    {500, 7200, 500, 7200}, {700, 9000, 600, 7200},
        {500, 5400, 500, 5400}, {200, 3600, 200, 3600},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world *w = world_new();
        (void)add_stage(w, add_campaign(w), 0, 1);
        w->change[1] = (struct change){.rung = 0, .volume_gb = 600, .runtime_s = 7200};
        w->account.volume_gb = rows[i].quota_gb;
        w->account.longest_run_s = rows[i].quota_s;
        struct sched_plan *p = decide(w);
        assert_int_equal(p->launches_n, 1);
        assert_int_equal(p->launches[0].volume_gb, rows[i].volume_gb);
        assert_int_equal(p->launches[0].max_runtime_s, rows[i].runtime_s);
        plan_free(p);
        world_free(w);
    }
    struct world *w = world_new(); /* what the file asks for is not cut */
    int s = add_stage(w, add_campaign(w), 0, 1);
    w->change[1] = (struct change){.rung = 0, .volume_gb = w->stage[s].volume_gb + 10};
    w->account.volume_gb = w->stage[s].volume_gb - 1;
    struct sched_plan *p = decide(w);
    assert_int_equal(p->launches_n, 0);
    assert_reason(p, s, QUOTA_TOO_SMALL);
    plan_free(p);
    world_free(w);
}

static double now_s(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static musd_t spent_19_usd(void *ctx, int64_t task_id)
{
    (void)ctx;
    (void)task_id;
    return 19000000;
}

/* A person raises the cap while each rung is shut: a part set apart waits for capacity from then,
 * or its campaign is held for a wish that was heard. */
static void test_sched__a_cap_raised_while_the_ladder_is_shut(void **state)
{
    (void)state;
    struct world *w = world_new();
    int s = add_stage(w, add_campaign(w), 0, 1);
    struct capacity_ladder place = {.rung = {{0}}};
    w->stages[s].ladder = &place;
    w->stages[s].part_cap_musd = 20000000;
    w->view.spent_of = spent_19_usd;
    struct sched_plan *p = decide(w);
    assert_reason(p, s, PART_BUDGET);
    place.rung[0].shut_until_us = NOW + 60 * USEC_PER_SEC;
    sched_decide(&w->view, p);
    assert_reason(p, s, PART_BUDGET); /* on no rung there is enough */
    w->stages[s].part_cap_musd = 30000000;
    sched_decide(&w->view, p);
    assert_int_equal(p->launches_n, 0);
    assert_reason(p, s, CAPACITY);
    w->view.now_us += 61 * USEC_PER_SEC;
    sched_decide(&w->view, p);
    assert_int_equal(p->launches_n, 1);
    plan_free(p);
    world_free(w);
}

static void test_sched__a_million_tasks_cost_a_plan_nothing(void **state)
{
    (void)state;
    const size_t n = 1000000;
    struct world *w = world_new();
    int s = add_stage(w, add_campaign(w), 0, 0);
    struct ready_queue_task *t = xcalloc(n, sizeof *t);
    for (size_t i = 0; i < n; i++) {
        t[i] = (struct ready_queue_task){.task_id = (int64_t)i, .size_mb = (uint32_t)(i % 977)};
    }
    double start = now_s();
    ready_queue_push_many(w->stages[s].ready, t, n);
    double loaded = now_s();
    free(t);
    w->view.change_of = NULL;
    struct sched_plan *p = xcalloc(1, sizeof *p);
    const int ticks = 1000;
    for (int i = 0; i < ticks; i++) {
        sched_decide(&w->view, p);
        assert_int_equal(p->launches_n, 10);
    }
    double us = (now_s() - loaded) * 1e6 / ticks;
    (void)printf("# 1 M waiting tasks: loaded in %.0f ms, %.1f us a plan of 10 launches\n",
                 (loaded - start) * 1e3, us);
    assert_true(us < 10000);
    plan_free(p);
    world_free(w);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sched__slots_bound_what_starts),
        cmocka_unit_test(test_sched__a_run_longer_than_a_job_may_last),
        cmocka_unit_test(test_sched__each_check_has_its_reason),
        cmocka_unit_test(test_sched__a_stage_goes_as_far_as_its_breaker_allows),
        cmocka_unit_test(test_sched__backing_off_waits_and_says_until_when),
        cmocka_unit_test(test_sched__priority_is_strict_and_equals_share),
        cmocka_unit_test(test_sched__near_a_cap_a_shorter_run_time_never_below_the_minimum),
        cmocka_unit_test(test_sched__what_a_timeout_extended_is_not_shortened),
        cmocka_unit_test(test_sched__a_gang_is_not_starved_by_small_tasks),
        cmocka_unit_test(test_sched__a_moved_task_does_not_hold_up_those_behind_it),
        cmocka_unit_test(test_sched__a_rung_that_can_never_hold_the_job_is_passed),
        cmocka_unit_test(test_sched__a_moved_task_whose_rung_shrinks_goes_back),
        cmocka_unit_test(test_sched__what_was_changed_beyond_a_quota_is_cut_to_it),
        cmocka_unit_test(test_sched__a_cap_raised_while_the_ladder_is_shut),
        cmocka_unit_test(test_sched__a_million_tasks_cost_a_plan_nothing),
    };
    return cmocka_run_group_tests_name("sched", tests, NULL, NULL);
}
