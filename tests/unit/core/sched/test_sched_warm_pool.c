/* Aim: a plan takes, awaits, leaves and ends warm pools as it should, and never uses a slot or a
 * pool twice. Method: small views with one pool or a few, at a full quota and beside its
 * bounds. Random views: test_sched_warm_pool_random.c. */
#include "core/money/cost.h"
#include "sched_warm_pool_world.h"

static void test_sched_warm_pool__at_a_full_quota_each_pool_takes_one_job(void **state)
{
    (void)state;
    struct world *w = full_world(5, 3);
    pools[1].expires_us -= 50 * SEC;
    struct sched_plan *p = plan_of(w);
    assert_int_equal(p->launches_n, 3);
    assert_int_equal(p->launches[0].pool_i, 1); /* the one that would go first */
    assert_int_equal(p->launches[1].pool_i, 0);
    assert_int_equal(p->launches[2].pool_i, 2);
    assert_reason(p, 0, SLOTS);
    assert_int_equal(p->pool_ends_n, 0);
    plan_free(p);
    w->slots[0].held = 6; /* one slot free besides */
    p = plan_of(w);
    assert_int_equal(p->launches_n, 4);
    assert_int_equal(p->launches[3].pool_i, -1);
    plan_free(p);
    world_free(w);
}

static void test_sched_warm_pool__a_pool_that_is_not_there_takes_nothing(void **state)
{
    (void)state;
    struct world *w = full_world(2, 1);
    assert_plan(w, 1, SLOTS, 0, WARM_POOL_KEEP);
    pools[0].ending = true;
    assert_plan(w, 0, SLOTS, 0, WARM_POOL_KEEP);
    pools[0].ending = false;
    pools[0].expires_us = NOW + WARM_POOL_EXPIRY_MARGIN_US;
    assert_plan(w, 0, SLOTS, 1, WARM_POOL_END_BLOCKS_QUOTA); /* too late to take, but in the way */
    pools[0].expires_us = NOW + 150 * SEC;
    pools[0].state = POOL_IN_USE;
    assert_plan(w, 0, SLOTS, 0, WARM_POOL_KEEP);
    pools[0].state = POOL_EXPECTED;
    pools[0].available_us = USEC_NEVER;
    assert_plan(w, 0, SLOTS, 0, WARM_POOL_KEEP);
    world_free(w);
}

static void test_sched_warm_pool__what_differs_does_not_match(void **state)
{
    (void)state;
    struct world *w = full_world(1, 1);
    w->change[1] = (struct change){0, 60, 0}; /* its volume was doubled */
    assert_plan(w, 0, SLOTS, 1, WARM_POOL_END_BLOCKS_QUOTA);
    w->change[1].rung = -1;
    w->stage[0].network_isolation = true;
    assert_plan(w, 0, SLOTS, 1, WARM_POOL_END_BLOCKS_QUOTA);
    w->stage[0].network_isolation = false;
    w->stage[0].role = "another";
    assert_plan(w, 0, SLOTS, 1, WARM_POOL_END_BLOCKS_QUOTA);
    w->stage[0].role = NULL;
    w->stage[0].spot = true;
    struct sched_plan *p = plan_of(w);
    assert_int_equal(p->launches_n, 0); /* and no slots of the spot market are known */
    plan_free(p);
    w->stage[0].spot = false;
    assert_plan(w, 1, NONE, 0, WARM_POOL_KEEP);
    world_free(w);
}

static void test_sched_warm_pool__another_campaign_takes_it_when_all_is_the_same(void **state)
{
    (void)state;
    struct world *w = full_world(0, 1);
    int other = add_stage(w, add_campaign(w), 0, 1);
    struct sched_plan *p = plan_of(w);
    assert_int_equal(p->launches_n, 1);
    assert_int_equal(p->launches[0].stage_i, other);
    assert_int_equal(p->launches[0].pool_i, 0);
    plan_free(p);
    w->stage[other].role = "another";
    p = plan_of(w);
    assert_int_equal(p->launches_n, 0);
    plan_free(p);
    world_free(w);
}

static void test_sched_warm_pool__a_lower_rung_that_is_warm_comes_first(void **state)
{
    (void)state;
    struct world *w = full_world(1, 0);
    w->stage[0].instance_type[0] = type_names[1];
    (void)add_pool(w, 0); /* of type 1 */
    w->stage[0].instance_type[0] = type_names[0];
    w->stage[0].instance_type[1] = type_names[1];
    w->stage[0].instance_type_n = 2;
    w->slots[0].held = 0;
    struct sched_plan *p = plan_of(w);
    assert_int_equal(p->launches_n, 1);
    assert_int_equal(p->launches[0].pool_i, 0);
    assert_int_equal(p->launches[0].instance_type_i, 1);
    assert_int_equal(p->launches[0].slots_i, 1);
    plan_free(p);
    w->stage[0].instance_type[2] = type_names[2]; /* moved on by an earlier attempt: not back up */
    w->stage[0].instance_type_n = 3;
    w->change[1] = (struct change){2, 0, 0};
    p = plan_of(w);
    assert_int_equal(p->launches[0].pool_i, -1);
    assert_int_equal(p->launches[0].instance_type_i, 2);
    plan_free(p);
    world_free(w);
}

static void test_sched_warm_pool__the_pools_subnet_is_the_launchs(void **state)
{
    (void)state;
    struct world *w = full_world(1, 0);
    w->stage[0].subnets[0] = "subnet-1";
    w->stage[0].subnets[1] = "subnet-2";
    w->stage[0].subnets_n = 2;
    (void)add_pool(w, 0);
    w->slots[0].held = 9;
    struct sched_plan *p = plan_of(w);
    assert_int_equal(p->launches[0].pool_i, 0);
    assert_int_equal(p->launches[0].subnet_i, -1);
    plan_free(p);
    pools[0].fingerprint = warm_pool_fingerprint_of(&w->stage[0], 0, 30, 1);
    p = plan_of(w);
    assert_int_equal(p->launches[0].pool_i, 0);
    assert_int_equal(p->launches[0].subnet_i, 1);
    plan_free(p);
    world_free(w);
}

static void test_sched_warm_pool__several_instances_match_as_many(void **state)
{
    (void)state;
    struct world *w = full_world(1, 0);
    w->stage[0].instance_count = 4;
    (void)add_pool(w, 0);
    w->slots[0].held = 6;
    assert_plan(w, 1, NONE, 0, WARM_POOL_KEEP);
    w->stage[0].instance_count = 3;
    struct sched_plan *p = plan_of(w);
    assert_int_equal(p->launches_n, 0);
    assert_int_equal(ends_of(p, WARM_POOL_END_BLOCKS_QUOTA), 1);
    plan_free(p);
    world_free(w);
}

static void test_sched_warm_pool__a_lowered_limit_drains_pools_first(void **state)
{
    (void)state;
    struct world *w = full_world(5, 3);
    w->slots[0].operator_limit = 10;
    assert_plan(w, 3, SLOTS, 0, WARM_POOL_KEEP);
    w->slots[0].operator_limit = 9;              /* one too many is there: nothing is passed on */
    assert_plan(w, 0, SLOTS, 0, WARM_POOL_KEEP); /* perhaps one counts twice for a moment */
    for (int i = 0; i < 3; i++) {
        pools[i].available_us = NOW - WARM_POOL_HAND_OVER_US;
    }
    assert_plan(w, 0, SLOTS, 1, WARM_POOL_END_BLOCKS_QUOTA);
    w->slots[0].quota = -1; /* unreadable: nothing starts, and nothing is thrown away for it */
    w->slots[0].operator_limit = -1;
    assert_plan(w, 0, QUOTA_UNREADABLE, 0, WARM_POOL_KEEP);
    world_free(w);
}

static struct world *ending_world(int tasks)
{
    struct world *w = full_world(tasks, 1);
    w->slots[0].held = 0; /* nine slots free */
    pools[0].state = POOL_EXPECTED;
    pools[0].available_us = NOW - 5 * SEC;
    return w;
}

static void test_sched_warm_pool__the_last_task_waits_for_a_job_that_ends(void **state)
{
    (void)state;
    struct world *w = ending_world(1);
    struct sched_plan *p = plan_of(w);
    assert_int_equal(p->launches_n, 0);
    assert_reason(p, 0, HAND_OVER);
    assert_int_equal(p->wake_us, pools[0].available_us + WARM_POOL_HAND_OVER_US);
    plan_free(p);
    w->view.now_us = pools[0].available_us + WARM_POOL_HAND_OVER_US; /* it did not come */
    assert_plan(w, 1, NONE, 0, WARM_POOL_KEEP);
    w->view.now_us--;
    assert_plan(w, 0, HAND_OVER, 0, WARM_POOL_KEEP);
    w->view.now_us = NOW;
    w->stages[0].cold_start_s = 30; /* as fast cold */
    assert_plan(w, 1, NONE, 0, WARM_POOL_KEEP);
    w->stages[0].cold_start_s = 0;
    pools[0].available_us = NOW + 31 * SEC;
    assert_plan(w, 1, NONE, 0, WARM_POOL_KEEP);
    world_free(w);
}

static void test_sched_warm_pool__free_slots_are_not_left_empty_for_pools(void **state)
{
    (void)state;
    struct world *w = ending_world(3);
    struct sched_plan *p = plan_of(w);
    assert_int_equal(p->launches_n, 2); /* and the third takes the pool */
    assert_reason(p, 0, HAND_OVER);
    plan_free(p);
    world_free(w);
    w = ending_world(3);
    w->slots[0].held = 9; /* full: the first waits for it, not just for slots */
    assert_plan(w, 0, HAND_OVER, 0, WARM_POOL_KEEP);
    world_free(w);
}

static void test_sched_warm_pool__a_pool_that_comes_is_awaited_once(void **state)
{
    (void)state;
    struct world *w = ending_world(1);
    int other = add_stage(w, add_campaign(w), 0, 1); /* alike: two tasks, one pool */
    struct sched_plan *p = plan_of(w);
    assert_int_equal(p->launches_n, 1);
    assert_int_equal(p->launches[0].stage_i, 0);
    assert_reason(p, other, HAND_OVER);
    plan_free(p);
    w->slots[0].held = 9; /* full: the first waits for it, the other for slots */
    p = plan_of(w);
    assert_int_equal(p->launches_n, 0);
    assert_reason(p, 0, HAND_OVER);
    assert_reason(p, other, SLOTS);
    plan_free(p);
    world_free(w);
}

static struct world *keeping_world(int tasks, int64_t keep_alive_s, int64_t warm_quota)
{
    struct world *w = full_world(tasks, 0);
    w->slots[0].held = 0;
    w->slots[0].warm_quota = warm_quota;
    w->stages[0].warm = (struct warm_pool_policy){keep_alive_s, -1, true};
    return w;
}

static int kept(const struct sched_plan *p)
{
    int n = 0;
    for (int i = 0; i < p->launches_n; i++) {
        n += p->launches[i].keep_alive_s > 0;
    }
    return n;
}

static void test_sched_warm_pool__as_many_are_kept_as_the_warm_quota_takes(void **state)
{
    (void)state;
    static const int64_t rows[][3] = {{-1, 10, 10}, {-1, 4, 4},  {-1, 0, 0},
                                      {-1, -1, 0},  {900, 7, 7}, {0, 10, 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world *w = keeping_world(40, rows[i][0], rows[i][1]);
        struct sched_plan *p = plan_of(w);
        assert_int_equal(p->launches_n, 10);
        assert_int_equal(kept(p), rows[i][2]);
        for (int k = 0; k < p->launches_n; k++) {
            const struct sched_launch *l = &p->launches[k];
            musd_t want;
            struct err err = ERR_INIT;
            assert_true(l->keep_alive_s == 0 ||
                        l->keep_alive_s == (rows[i][0] < 0 ? 160 : rows[i][0]));
            assert_true(
                cost_worst_case(3600000, 1, l->max_runtime_s, l->keep_alive_s, &want, &err));
            assert_int_equal(l->reserve_musd, want);
        }
        plan_free(p);
        world_free(w);
    }
}

static void test_sched_warm_pool__a_spot_job_leaves_none(void **state)
{
    (void)state;
    struct world *w = keeping_world(40, -1, 10);
    w->stage[0].spot = true;
    w->slots[0].market = MARKET_SPOT;
    struct sched_plan *p = plan_of(w);
    assert_int_equal(p->launches_n, 10);
    assert_int_equal(kept(p), 0);
    plan_free(p);
    world_free(w);
}

static void test_sched_warm_pool__the_last_ones_leave_nothing(void **state)
{
    (void)state;
    struct world *w = keeping_world(10, -1, 10); /* all start at once */
    struct sched_plan *p = plan_of(w);
    assert_int_equal(p->launches_n, 10);
    assert_int_equal(p->launches[9].keep_alive_s, 0);
    plan_free(p);
    world_free(w);
    w = keeping_world(12, -1, 10); /* pools of this very plan will be there before the last ones' */
    p = plan_of(w);
    assert_int_equal(p->launches_n, 10);
    assert_int_equal(kept(p), 8);
    plan_free(p);
    world_free(w);
    w = keeping_world(1, 900, 10);
    p = plan_of(w);
    assert_int_equal(p->launches[0].keep_alive_s, 0);
    plan_free(p);
    w->stages[0].warm.end_when_queue_empty = false; /* for what comes later */
    p = plan_of(w);
    assert_int_equal(p->launches[0].keep_alive_s, 900);
    plan_free(p);
    world_free(w);
}

static void test_sched_warm_pool__a_reused_pool_is_kept_on_its_own_quota(void **state)
{
    (void)state;
    struct world *w = full_world(30, 3);
    w->slots[0].warm_quota = 3;
    w->stages[0].warm = (struct warm_pool_policy){-1, -1, true};
    struct sched_plan *p = plan_of(w); /* what the pools held passes on with them */
    assert_int_equal(p->launches_n, 3);
    assert_int_equal(kept(p), 3);
    plan_free(p);
    world_free(w);
    w = full_world(30, 3);
    w->slots[0].warm_quota = 2; /* lowered meanwhile */
    w->stages[0].warm = (struct warm_pool_policy){-1, -1, true};
    p = plan_of(w);
    assert_int_equal(p->launches_n, 3);
    assert_true(kept(p) <= 2);
    plan_free(p);
    world_free(w);
}

static void test_sched_warm_pool__money_goes_to_run_time_before_keep_alive(void **state)
{
    (void)state;
    struct world *w = keeping_world(20, 900, 10); /* 3600 + 1020 s run, 900 s kept: 5.52 USD */
    w->campaigns[0].left_musd = 5520000;
    struct sched_plan *p = plan_of(w);
    assert_int_equal(p->launches_n, 1);
    assert_int_equal(p->launches[0].keep_alive_s, 900);
    plan_free(p);
    world_free(w);
    w = keeping_world(20, 900, 10);
    w->campaigns[0].left_musd = 5519999;
    p = plan_of(w);
    assert_int_equal(p->launches[0].keep_alive_s, 0);
    assert_int_equal(p->launches[0].max_runtime_s, 3600);
    assert_int_equal(p->launches[0].reserve_musd, 4620000);
    plan_free(p);
    world_free(w);
    w = keeping_world(20, 900, 10);
    w->stages[0].warm.max_idle_cost_musd = 2000000; /* 0.90 USD each: two whole ones, and 200 s */
    p = plan_of(w);
    assert_int_equal(p->launches_n, 10);
    assert_int_equal(kept(p), 3);
    assert_int_equal(p->launches[2].keep_alive_s, 200);
    plan_free(p);
    world_free(w);
}

static void test_sched_warm_pool__what_nothing_can_take_soon_is_given_back(void **state)
{
    (void)state;
    struct world *w = full_world(0, 3);
    assert_plan(w, 0, NONE, 3, WARM_POOL_END_NO_MATCH);
    pools[1].stays = true;
    assert_plan(w, 0, NONE, 2, WARM_POOL_END_NO_MATCH);
    pools[1].stays = false;
    ready_queue_push(w->stages[0].ready, &(struct ready_queue_task){.task_id = 1});
    assert_plan(w, 1, NONE, 2, WARM_POOL_END_NO_MATCH); /* as many as are left over */
    w->view.tokens = 0;                                 /* in a moment */
    assert_plan(w, 0, RATE, 2, WARM_POOL_END_NO_MATCH);
    w->stages[0].parts_limit = 0;
    assert_plan(w, 0, STAGE_LIMIT, 2, WARM_POOL_END_NO_MATCH);
    w->stages[0].parts_limit = -1;
    w->view.tokens = 9;
    w->campaigns[0].left_musd = 1;
    assert_plan(w, 0, BUDGET, 3, WARM_POOL_END_NO_MATCH);
    w->stages[0].may_start = false;
    w->stages[0].why_not = WAIT_PAUSED;
    assert_plan(w, 0, PAUSED, 3, WARM_POOL_END_NO_MATCH);
    world_free(w);
}

static void test_sched_warm_pool__a_retry_is_awaited_as_long_as_it_pays(void **state)
{
    (void)state;
    struct world *w = full_world(0, 2);
    ready_queue_push(w->stages[0].ready,
                     &(struct ready_queue_task){.task_id = 1, .not_before_us = NOW + 160 * SEC});
    w->change[1].rung = -1;
    assert_plan(w, 0, BACKOFF, 1, WARM_POOL_END_NO_MATCH);
    (void)ready_queue_clear(w->stages[0].ready);
    ready_queue_push(w->stages[0].ready,
                     &(struct ready_queue_task){.task_id = 1, .not_before_us = NOW + 161 * SEC});
    assert_plan(w, 0, BACKOFF, 2, WARM_POOL_END_NO_MATCH);
    world_free(w);
}

static void test_sched_warm_pool__the_last_task_with_another_volume_holds_no_pool(void **state)
{
    (void)state;
    struct world *w = full_world(1, 1);
    w->slots[0].held = 5;
    w->view.tokens = 0;
    assert_plan(w, 0, RATE, 0, WARM_POOL_KEEP);
    w->change[1] = (struct change){0, 60, 0};
    assert_plan(w, 0, RATE, 1, WARM_POOL_END_NO_MATCH);
    w->change[1] = (struct change){0, 30, 7200}; /* run time is not compared */
    assert_plan(w, 0, RATE, 0, WARM_POOL_KEEP);
    world_free(w);
}

static void test_sched_warm_pool__a_task_of_higher_rank_gets_the_slots(void **state)
{
    (void)state;
    struct world *w = full_world(5, 3);
    int other = add_stage(w, add_campaign(w), 0, 1);
    w->stage[other].volume_gb = 99;
    w->stages[other].priority = 60;
    struct sched_plan *p = plan_of(w);
    assert_int_equal(launches_of(p, 0), 2); /* and two pools go on */
    assert_int_equal(ends_of(p, WARM_POOL_END_BLOCKS_QUOTA), 1);
    assert_reason(p, other, SLOTS);
    plan_free(p);
    w->stages[other].priority = 40; /* of lower rank it gets what is left: nothing */
    p = plan_of(w);
    assert_int_equal(launches_of(p, 0), 3);
    assert_int_equal(p->pool_ends_n, 0);
    plan_free(p);
    world_free(w);
}

/* The quota over all types is full, the type of the task that waits has room of its own. */
static void test_sched_warm_pool__a_pool_of_another_type_gives_its_place(void **state)
{
    (void)state;
    struct world *w = full_world(5, 3);
    w->slots[0].held = 0;
    int other = add_stage(w, add_campaign(w), 1, 1);
    w->stages[other].priority = 60;
    w->account.total[MARKET_ON_DEMAND] = (struct quota_ledger_total){.limit = 3, .held = 3};
    struct sched_plan *p = plan_of(w);
    assert_int_equal(launches_of(p, 0), 2); /* and two pools go on */
    assert_int_equal(ends_of(p, WARM_POOL_END_BLOCKS_QUOTA), 1);
    assert_reason(p, other, SLOTS);
    plan_free(p);
    w->slots[1].held = 10; /* its own type is full: no other pool helps it */
    w->account.total[MARKET_ON_DEMAND] = (struct quota_ledger_total){.limit = 13, .held = 13};
    p = plan_of(w);
    assert_int_equal(launches_of(p, 0), 3);
    assert_int_equal(p->pool_ends_n, 0);
    plan_free(p);
    w->slots[1].held = 9; /* room for one, of the type and of all: nothing needs to go */
    w->account.total[MARKET_ON_DEMAND].held = 12;
    p = plan_of(w);
    assert_int_equal(launches_of(p, other), 1);
    assert_int_equal(p->pool_ends_n, 0);
    plan_free(p);
    world_free(w);
}

static void test_sched_warm_pool__no_more_is_given_back_than_helps(void **state)
{
    (void)state;
    struct world *w = full_world(5, 3);
    w->view.tokens = 0; /* the pools' own tasks wait for a moment */
    int other = add_stage(w, add_campaign(w), 0, 1);
    w->stage[other].instance_count = 4; /* more than all pools together */
    w->stages[other].priority = 60;
    assert_plan(w, 0, RESERVED, 3, WARM_POOL_END_NO_MATCH); /* nothing may take them now */
    for (int i = 0; i < 3; i++) {
        pools[i].stays = true;
    }
    assert_plan(w, 0, RESERVED, 0, WARM_POOL_KEEP);
    w->slots[0].held = 6; /* with a free slot it is enough */
    struct sched_plan *p = plan_of(w);
    assert_int_equal(ends_of(p, WARM_POOL_END_BLOCKS_QUOTA), 3);
    plan_free(p);
    pools[0].ending = true; /* on their way: no more are needed */
    pools[1].ending = true;
    p = plan_of(w);
    assert_int_equal(ends_of(p, WARM_POOL_END_BLOCKS_QUOTA), 1);
    plan_free(p);
    world_free(w);
}

static void test_sched_warm_pool__the_cap_of_idle_cost_ends_pools(void **state)
{
    (void)state;
    struct world *w = full_world(5, 2); /* idle for 10 s: 0.01 USD each */
    w->view.tokens = 0;
    w->stages[0].warm.max_idle_cost_musd = 1000000;
    w->campaigns[0].idle_spent_musd = 1000000 - 20001;
    assert_plan(w, 0, RATE, 0, WARM_POOL_KEEP);
    w->campaigns[0].idle_spent_musd++;
    assert_plan(w, 0, RATE, 2, WARM_POOL_END_COST);
    w->campaigns[0].idle_spent_musd = INT64_MAX;
    assert_plan(w, 0, RATE, 2, WARM_POOL_END_COST);
    w->stages[0].warm.max_idle_cost_musd = -1;
    assert_plan(w, 0, RATE, 0, WARM_POOL_KEEP);
    pools[0].expires_us = NOW - WARM_POOL_HAND_OVER_US - 1;
    assert_plan(w, 0, RATE, 1, WARM_POOL_END_EXPIRED);
    world_free(w);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sched_warm_pool__at_a_full_quota_each_pool_takes_one_job),
        cmocka_unit_test(test_sched_warm_pool__a_pool_that_is_not_there_takes_nothing),
        cmocka_unit_test(test_sched_warm_pool__what_differs_does_not_match),
        cmocka_unit_test(test_sched_warm_pool__another_campaign_takes_it_when_all_is_the_same),
        cmocka_unit_test(test_sched_warm_pool__a_lower_rung_that_is_warm_comes_first),
        cmocka_unit_test(test_sched_warm_pool__the_pools_subnet_is_the_launchs),
        cmocka_unit_test(test_sched_warm_pool__several_instances_match_as_many),
        cmocka_unit_test(test_sched_warm_pool__a_lowered_limit_drains_pools_first),
        cmocka_unit_test(test_sched_warm_pool__the_last_task_waits_for_a_job_that_ends),
        cmocka_unit_test(test_sched_warm_pool__free_slots_are_not_left_empty_for_pools),
        cmocka_unit_test(test_sched_warm_pool__a_pool_that_comes_is_awaited_once),
        cmocka_unit_test(test_sched_warm_pool__as_many_are_kept_as_the_warm_quota_takes),
        cmocka_unit_test(test_sched_warm_pool__a_spot_job_leaves_none),
        cmocka_unit_test(test_sched_warm_pool__the_last_ones_leave_nothing),
        cmocka_unit_test(test_sched_warm_pool__a_reused_pool_is_kept_on_its_own_quota),
        cmocka_unit_test(test_sched_warm_pool__money_goes_to_run_time_before_keep_alive),
        cmocka_unit_test(test_sched_warm_pool__what_nothing_can_take_soon_is_given_back),
        cmocka_unit_test(test_sched_warm_pool__a_retry_is_awaited_as_long_as_it_pays),
        cmocka_unit_test(test_sched_warm_pool__the_last_task_with_another_volume_holds_no_pool),
        cmocka_unit_test(test_sched_warm_pool__a_task_of_higher_rank_gets_the_slots),
        cmocka_unit_test(test_sched_warm_pool__a_pool_of_another_type_gives_its_place),
        cmocka_unit_test(test_sched_warm_pool__no_more_is_given_back_than_helps),
        cmocka_unit_test(test_sched_warm_pool__the_cap_of_idle_cost_ends_pools),
    };
    return cmocka_run_group_tests_name("sched_warm_pool", tests, NULL, NULL);
}
