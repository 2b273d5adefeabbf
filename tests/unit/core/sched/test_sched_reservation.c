/* Aim: who waits for whom when a task of several instances is there, and where tasks go when AWS
 * has no capacity. Method: small worlds by hand, one rule each, plan after plan with the
 * reservation kept between them. (Over time and many seeds: test_gang_sim.c.) */
#include "common/cleanup.h"
#include "sched_world.h"

#define MIN_US (60 * USEC_PER_SEC)

struct gang_world {
    struct world *w;
    struct sched_job jobs[16];
    struct duration duration;
    struct reservation reservation[STAGES];
    struct capacity_ladder ladder;
    struct sched_plan plan;
    int small, large;
};

/* A stage of small tasks of a minute for each MB (known to within 1 %), one of runs of 8 instances;
 * 10 slots. A start takes 180 s. */
static struct gang_world *gang_world_new(int small_n, int large_n)
{
    struct gang_world *g = xcalloc(1, sizeof *g);
    struct world *w = g->w = world_new();
    g->large = add_stage(w, add_campaign(w), 0, large_n); /* the first campaign: it goes first */
    w->stage[g->large].instance_count = 8;
    g->small = add_stage(w, add_campaign(w), 0, 0);
    for (int i = 0; i < small_n; i++) {
        int64_t id = ++w->tasks_n;
        w->change[id].rung = -1;
        ready_queue_push(w->stages[g->small].ready,
                         &(struct ready_queue_task){
                             .task_id = id, .seq = (uint32_t)i, .size_mb = 60 - (uint32_t)i});
    }
    duration_init(&g->duration, 0);
    for (uint32_t mb = 1; mb <= 100; mb++) {
        double off = 1 + 0.01 * (mb % 3 - 1.0);
        duration_learn(&g->duration, mb, (int64_t)(mb * 60e6 * off));
    }
    duration_fit(&g->duration);
    w->stages[g->small].duration = &g->duration;
    for (int i = 0; i < STAGES; i++) {
        w->stages[i].reservation = &g->reservation[i];
    }
    w->view.jobs = g->jobs;
    return g;
}

static void gang_world_free(struct gang_world *g)
{
    sched_plan_done(&g->plan);
    world_free(g->w);
    free(g);
}

/* n live small jobs that end `minutes` from now, within a few seconds. */
static void add_jobs(struct gang_world *g, int n, int minutes)
{
    for (int i = 0; i < n; i++) {
        struct sched_job *j = &g->jobs[g->w->view.jobs_n++];
        *j = (struct sched_job){.attempt_id = g->w->view.jobs_n,
                                .instances = 1,
                                .end_p50_us = NOW + minutes * MIN_US,
                                .end_p90_us = NOW + minutes * MIN_US + USEC_PER_SEC};
        g->w->slots[0].held++;
    }
}

static const struct sched_plan *plan(struct gang_world *g)
{
    sched_decide(&g->w->view, &g->plan);
    return &g->plan;
}

static double minutes_to(const struct gang_world *g, usec_t t)
{
    return (double)(t - g->w->view.now_us) / (double)MIN_US;
}

static void assert_about(double got, double want, double by)
{
    if (got < want - by || got > want + by) {
        fail_msg("%.2f, not %.2f", got, want);
    }
}

static void test_sched_reservation__is_promised_a_start_that_never_moves_later(void **state)
{
    (void)state;
    struct gang_world *g = gang_world_new(0, 1);
    add_jobs(g, 3, 20); /* 10 - 3 < 8: one of them must end */
    add_jobs(g, 3, 50);
    const struct sched_plan *p = plan(g);
    assert_int_equal(p->launches_n, 0);
    assert_reason(p, g->large, GANG);
    struct reservation *k = &g->reservation[g->large];
    assert_int_equal(k->task_id, 1);
    assert_int_equal(k->instances, 8);
    assert_int_equal(k->since_us, NOW);
    assert_about(minutes_to(g, k->promised_us), 50, 0.5); /* two may stay, four must end */
    assert_about(minutes_to(g, k->expected_us), 50, 0.5);
    usec_t promised = k->promised_us;
    g->w->view.now_us += MIN_US;
    for (int i = 0; i < 6; i++) {
        g->jobs[i].end_p50_us += 40 * MIN_US; /* all take longer */
        g->jobs[i].end_p90_us += 40 * MIN_US;
    }
    (void)plan(g);
    assert_int_equal(k->promised_us, promised);
    assert_int_equal(k->since_us, NOW);
    assert_about(minutes_to(g, k->latest_us), 89, 0.5); /* but it is told what to expect now */
    g->w->slots[0].held = 2;
    g->w->view.jobs_n = 2;
    p = plan(g);
    assert_int_equal(p->launches_n, 1);
    assert_reason(p, g->large, NONE);
    assert_int_equal(k->task_id, 0);
    gang_world_free(g);
}

static void test_sched_reservation__what_ends_before_the_promise_runs_meanwhile(void **state)
{
    (void)state;
    struct gang_world *g = gang_world_new(60, 1); /* 1 .. 60 minutes */
    add_jobs(g, 3, 45);
    add_jobs(g, 1, 500); /* two may stay: this one and one more */
    add_jobs(g, 1, 600);
    const struct sched_plan *p = plan(g);
    assert_int_equal(p->launches_n, 5);
    assert_reason(p, g->large, GANG);
    assert_reason(p, g->small, SLOTS);
    for (int i = 0; i < p->launches_n; i++) {
        /* 3 to start, some to be seen; well below, for the slot to take another one */
        assert_in_range(p->launches[i].task.size_mb, 26, 33);
    }
    g->w->slots[0].held = 8; /* 2 free */
    g->w->view.jobs_n = 0;
    add_jobs(g, 0, 0);
    for (int i = 0; i < 8; i++) {
        g->jobs[i] =
            (struct sched_job){.instances = 1,
                               .end_p50_us = g->reservation[g->large].promised_us - MIN_US,
                               .end_p90_us = g->reservation[g->large].promised_us - MIN_US};
    }
    g->w->view.jobs_n = 8;
    g->w->view.now_us = g->reservation[g->large].promised_us - 4 * MIN_US; /* nothing is so short */
    g->duration.per_mb_s = 600;
    p = plan(g);
    assert_int_equal(p->launches_n, 2); /* two are spare: they may take as long as they like */
    p = plan(g);
    gang_world_free(g);
}

static void test_sched_reservation__nothing_passes_what_nothing_could_be_promised_for(void **state)
{
    (void)state;
    struct gang_world *g = gang_world_new(20, 1);
    g->w->slots[0].held = 6; /* of which nothing is known */
    const struct sched_plan *p = plan(g);
    assert_int_equal(p->launches_n, 0);
    assert_reason(p, g->large, GANG);
    assert_reason(p, g->small, RESERVED);
    assert_int_equal(g->reservation[g->large].promised_us, USEC_NEVER);
    assert_int_equal(p->wake_us, USEC_NEVER);
    g->w->stages[g->small].duration = NULL; /* nor of the small ones: they take 1 h at most */
    add_jobs(g, 0, 0);
    for (int i = 0; i < 6; i++) {
        g->jobs[i] = (struct sched_job){.instances = 1,
                                        .end_p50_us = USEC_NEVER,
                                        .end_p90_us = USEC_NEVER,
                                        .last_us = NOW + 90 * MIN_US};
    }
    g->w->view.jobs_n = 6;
    p = plan(g);
    assert_about(minutes_to(g, g->reservation[g->large].promised_us), 90, 0.1);
    assert_int_equal(p->launches_n, 4); /* 3 + 60 + 2 min */
    g->w->view.now_us += 30 * MIN_US;
    g->w->slots[0].held = 6;
    p = plan(g);
    assert_int_equal(p->launches_n, 0); /* now they might be late */
    assert_reason(p, g->small, RESERVED);
    gang_world_free(g);
}

static void test_sched_reservation__higher_priority_passes_and_other_types_do_not_care(void **state)
{
    (void)state;
    struct gang_world *g = gang_world_new(20, 1);
    g->w->slots[0].held = 6;
    g->w->stages[g->small].priority = 51;
    const struct sched_plan *p = plan(g);
    assert_int_equal(launches_of(p, g->small), 4);
    assert_reason(p, g->large, GANG);
    p = plan(g); /* nor does a reservation that is there hold them up */
    assert_int_equal(launches_of(p, g->small), 4);
    assert_reason(p, g->large, GANG);
    gang_world_free(g);

    g = gang_world_new(20, 1);
    int other = add_stage(g->w, add_campaign(g->w), 1, 30);
    int other_large = add_stage(g->w, add_campaign(g->w), 2, 1);
    g->w->stage[other_large].instance_count = 9;
    g->w->slots[0].held = 6;
    g->w->slots[2].held = 5;
    p = plan(g);
    assert_int_equal(launches_of(p, other), 10);
    assert_int_equal(launches_of(p, g->small), 0);
    assert_reason(p, g->large, GANG);
    assert_reason(p, other_large, GANG);
    g->w->slots[2].held = 0;
    p = plan(g);
    assert_int_equal(launches_of(p, other_large), 1);
    assert_reason(p, g->large, GANG);
    gang_world_free(g);
}

/* A campaign that holds less would go first, and take the one request there is. */
static void test_sched_reservation__what_has_a_promise_goes_first(void **state)
{
    (void)state;
    struct gang_world *g = gang_world_new(20, 1);
    g->w->slots[0].held = 6;
    (void)plan(g);
    assert_int_equal(g->reservation[g->large].task_id, 1);
    g->w->campaigns[0].held = 1;
    g->w->slots[0].held = 1;
    g->w->view.tokens = 1;
    const struct sched_plan *p = plan(g);
    assert_int_equal(p->launches_n, 1);
    assert_int_equal(p->launches[0].stage_i, g->large);
    gang_world_free(g);
}

static void test_sched_reservation__reservations_stand_in_line_and_add_up(void **state)
{
    (void)state;
    struct gang_world *g = gang_world_new(0, 1);
    g->w->stage[g->large].max_runtime_s = 3600;
    int second = add_stage(g->w, add_campaign(g->w), 0, 1);
    g->w->stage[second].instance_count = 4;
    g->w->stages[second].reservation = &g->reservation[second];
    add_jobs(g, 9, 20);
    const struct sched_plan *p = plan(g);
    assert_reason(p, g->large, GANG);
    assert_reason(p, second, GANG);
    double first = minutes_to(g, g->reservation[g->large].promised_us);
    assert_about(first, 20, 0.5);
    /* 8 + 4 > 10: only when the first has had its hour, 3 min to start, 2 to stop */
    assert_about(minutes_to(g, g->reservation[second].promised_us), first + 65, 0.1);
    g->w->view.now_us += MIN_US;
    g->w->slots[0].held = 3; /* the second would fit, the first not yet */
    g->w->view.jobs_n = 3;
    p = plan(g);
    assert_int_equal(p->launches_n, 0);
    g->w->slots[0].held = 0;
    g->w->view.jobs_n = 0;
    p = plan(g);
    assert_int_equal(p->launches_n, 1);
    assert_int_equal(p->launches[0].stage_i, g->large);
    assert_reason(p, second, GANG);
    gang_world_free(g);
}

static void test_sched_reservation__only_what_could_start_is_waited_for(void **state)
{
    (void)state;
    struct gang_world *g = gang_world_new(20, 1);
    struct world *w = g->w;
    w->slots[0].held = 6;
    const struct sched_plan *p = plan(g);
    assert_reason(p, g->large, GANG);
    w->campaigns[0].left_musd =
        0; /* no money for it: nobody waits for it, and it loses its place */
    p = plan(g);
    assert_int_equal(launches_of(p, g->small), 4);
    assert_reason(p, g->large, BUDGET);
    assert_int_equal(g->reservation[g->large].task_id, 0);
    gang_world_free(g);

    g = gang_world_new(20, 1);
    w = g->w;
    w->slots[0].held = 4;
    w->slots[0].foreign = 3; /* others' instances do not come back by our doing */
    p = plan(g);
    assert_int_equal(launches_of(p, g->small), 3);
    assert_reason(p, g->large, SLOTS);
    gang_world_free(g);

    g = gang_world_new(20, 1);
    w = g->w;
    w->slots[0].held = 6;
    (void)plan(g);
    w->stages[g->large].may_start = false; /* paused */
    w->stages[g->large].why_not = WAIT_PAUSED;
    p = plan(g);
    assert_int_equal(launches_of(p, g->small), 4);
    assert_int_equal(g->reservation[g->large].task_id, 0);
    gang_world_free(g);
}

static void test_sched_reservation__its_campaigns_own_limit_is_gathered_too(void **state)
{
    (void)state;
    struct gang_world *g = gang_world_new(40, 1);
    struct world *w = g->w;
    int own = add_stage(w, 0, 0, 20); /* of the large one's campaign, beside it */
    w->spec[0].instances_n = 1;
    w->spec[0].instances[0] = (struct spec_limit){type_names[0], 8};
    w->campaigns[0].type_held[0] = 4;
    w->campaigns[0].held = 4;
    w->slots[0].held = 4;
    w->slots[0].quota = 30;
    for (int i = 0; i < 4; i++) {
        g->jobs[i] = (struct sched_job){
            .instances = 1, .end_p50_us = NOW + 5 * MIN_US, .end_p90_us = NOW + 5 * MIN_US};
    }
    w->view.jobs_n = 4;
    const struct sched_plan *p = plan(g);
    assert_reason(p, g->large, GANG);
    assert_about(minutes_to(g, g->reservation[g->large].promised_us), 5, 0.1);
    assert_int_equal(launches_of(p, own), 0);
    assert_reason(p, own, RESERVED);
    assert_int_equal(launches_of(p, g->small), 22); /* 30 less the 8 it will need */
    gang_world_free(g);
}

static void test_sched_reservation__a_quota_over_all_types_is_gathered_too(void **state)
{
    (void)state;
    struct gang_world *g = gang_world_new(0, 1);
    struct world *w = g->w;
    int other = add_stage(w, add_campaign(w), 1, 20);
    w->account.total[MARKET_ON_DEMAND].limit = 12;
    w->account.total[MARKET_ON_DEMAND].held = 6;
    w->slots[1].held = 6;
    w->slots[1].quota = 20;
    for (int i = 0; i < 6; i++) {
        g->jobs[i] = (struct sched_job){.instances = 1,
                                        .slots_i = 1,
                                        .end_p50_us = NOW + 5 * MIN_US,
                                        .end_p90_us = NOW + 5 * MIN_US};
    }
    w->view.jobs_n = 6;
    const struct sched_plan *p = plan(g);
    assert_reason(p, g->large, GANG);
    assert_int_equal(launches_of(p, other), 4); /* 12 - 8; the six will have ended */
    gang_world_free(g);
}

static void test_sched_reservation__after_its_turn_smaller_ones_have_theirs(void **state)
{
    (void)state;
    struct gang_world *g = gang_world_new(30, 3);
    add_jobs(g, 4, 20);
    const struct sched_plan *p = plan(g);
    assert_reason(p, g->large, GANG);
    g->w->view.jobs_n = 0;
    g->w->slots[0].held = 0;
    p = plan(g);
    assert_int_equal(launches_of(p, g->large), 1);
    assert_int_equal(g->reservation[g->large].owed, 8 - launches_of(p, g->small));
    assert_reason(p, g->large, ORDER);
    assert_true(p->wake_us <= NOW + USEC_PER_SEC);
    /* its run has ended; all small ones have: they go first, the stage reserves again after 8 */
    p = plan(g);
    assert_int_equal(launches_of(p, g->large), 0);
    assert_int_equal(launches_of(p, g->small), 10);
    assert_reason(p, g->large, GANG);
    assert_int_equal(g->reservation[g->large].owed, 0);
    p = plan(g);
    assert_int_equal(launches_of(p, g->large), 1); /* and has its turn again */
    ready_queue_clear(g->w->stages[g->small].ready);
    p = plan(g);
    assert_int_equal(launches_of(p, g->large), 1); /* nobody else waits: at once */
    gang_world_free(g);
}

static void
test_sched_ladder__capacity_moves_down_the_ladder_and_says_when_to_look_again(void **state)
{
    (void)state;
    struct gang_world *g = gang_world_new(0, 0);
    struct world *w = g->w;
    int s = add_stage(w, add_campaign(w), 0, 9);
    w->stage[s].instance_type[1] = type_names[1];
    w->stage[s].instance_type_n = 2;
    w->stages[s].ladder = &g->ladder;
    w->slots[0].quota = 3;
    const struct sched_plan *p = plan(g);
    assert_int_equal(p->launches_n, 3); /* a full rung is waited for */
    assert_int_equal(p->launches[0].slots_i, 0);
    assert_reason(p, s, SLOTS);
    capacity_ladder_refused(&g->ladder, &w->stage[s], 0, -1, NOW);
    p = plan(g);
    assert_int_equal(p->launches_n, 6);
    assert_int_equal(p->launches[0].slots_i, 1);
    assert_int_equal(p->launches[0].instance_type_i, 1);
    for (int i = 0; i < 4; i++) {
        ready_queue_push(w->stages[s].ready, &p->launches[i].task);
    }
    capacity_ladder_refused(&g->ladder, &w->stage[s], 1, -1, NOW + USEC_PER_SEC);
    p = plan(g);
    assert_int_equal(p->launches_n, 0);
    assert_reason(p, s, CAPACITY);
    assert_int_equal(p->wake_us, NOW + 2 * MIN_US);
    w->view.now_us = NOW + 2 * MIN_US;
    p = plan(g);
    assert_int_equal(p->launches_n, 1); /* one finds out for all; the second opens later */
    assert_int_equal(p->launches[0].instance_type_i, 0);
    assert_reason(p, s, CAPACITY);
    assert_int_equal(p->wake_us, NOW + 2 * MIN_US + USEC_PER_SEC);
    gang_world_free(g);
}

/* Counts, prices, times and a kept promise near the end of what fits: no sum overflows (UBSan), and
 * nothing starts that does not fit. */
static void test_sched_reservation__absurd_sizes_and_times(void **state)
{
    (void)state;
    static const int64_t most[] = {10, INT32_MAX, INT64_MAX / 2, INT64_MAX - 1, INT64_MAX};
    static const usec_t ends[] = {NOW + MIN_US, INT64_MAX / 2, INT64_MAX - 1, USEC_NEVER};
    for (size_t i = 0; i < ARRAY_LEN(most) * ARRAY_LEN(ends) * 4; i++) {
        struct gang_world *g = gang_world_new(20, 2);
        int64_t n = most[i % ARRAY_LEN(most)];
        usec_t end_us = ends[i / ARRAY_LEN(most) % ARRAY_LEN(ends)];
        size_t kind = i / ARRAY_LEN(most) / ARRAY_LEN(ends);
        g->w->stage[g->large].instance_count = (int)MIN(n, INT32_MAX);
        g->w->slots[0].quota = n;
        g->w->slots[0].price_musd_per_hour = kind == 1 ? n : 1;
        add_jobs(g, 3, 20);
        for (int k = 0; k < 3; k++) {
            g->jobs[k].stage_id = g->w->stages[g->small].stage_id;
            g->jobs[k].instances = kind == 2 ? INT32_MAX : 1;
            g->jobs[k].end_p50_us = g->jobs[k].end_p90_us = g->jobs[k].last_us = end_us;
        }
        g->w->slots[0].held = kind == 2 ? n : 3;
        if (kind == 3) {
            g->reservation[g->large] = (struct reservation){.task_id = 1,
                                                            .instances = INT32_MAX,
                                                            .since_us = NOW,
                                                            .promised_us = end_us,
                                                            .expected_us = end_us,
                                                            .latest_us = end_us,
                                                            .target_us = end_us,
                                                            .owed = INT64_MAX};
        }
        for (int turn = 0; turn < 2; turn++) {
            const struct sched_plan *p = plan(g);
            assert_true(p->wake_us > NOW);
            assert_true(kind != 2 || p->launches_n == 0);
            assert_true(p->launches_n <= n);
        }
        gang_world_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sched_reservation__absurd_sizes_and_times),
        cmocka_unit_test(test_sched_reservation__is_promised_a_start_that_never_moves_later),
        cmocka_unit_test(test_sched_reservation__what_ends_before_the_promise_runs_meanwhile),
        cmocka_unit_test(test_sched_reservation__nothing_passes_what_nothing_could_be_promised_for),
        cmocka_unit_test(
            test_sched_reservation__higher_priority_passes_and_other_types_do_not_care),
        cmocka_unit_test(test_sched_reservation__what_has_a_promise_goes_first),
        cmocka_unit_test(test_sched_reservation__reservations_stand_in_line_and_add_up),
        cmocka_unit_test(test_sched_reservation__only_what_could_start_is_waited_for),
        cmocka_unit_test(test_sched_reservation__its_campaigns_own_limit_is_gathered_too),
        cmocka_unit_test(test_sched_reservation__a_quota_over_all_types_is_gathered_too),
        cmocka_unit_test(test_sched_reservation__after_its_turn_smaller_ones_have_theirs),
        cmocka_unit_test(
            test_sched_ladder__capacity_moves_down_the_ladder_and_says_when_to_look_again),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
