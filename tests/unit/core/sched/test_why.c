/* Aim: every waiting task has a reason, each reason of reason.def comes out where it is due, and
 * asking costs nothing that grows with the parts. Method: a table with one case a reason, which
 * fails for a reason without a case; each case is a small world of which the plan and sched_why are
 * asked; seeded views, and one of a million parts, are asked for every part. */
#include "common/rng.h"
#include "sched_warm_world.h"
#include <time.h>

struct scene {
    struct world *w;
    int stage_i;                  /* who is asked about */
    struct ready_queue_task task; /* of it; id 0: the first that waits */
    struct breaker breaker;
    struct capacity_ladder place;
};
typedef void scene_fn(struct scene *s);

/* One stage of three tasks on type 0: as it is, all three start. */
static void plain(struct scene *s)
{
    s->stage_i = add_stage(s->w, add_campaign(s->w), 0, 3);
}

static void stopped(struct scene *s, enum wait_reason why)
{
    plain(s);
    s->w->stages[s->stage_i].may_start = false;
    s->w->stages[s->stage_i].why_not = why;
}

static void because_new(struct scene *s)
{
    s->stage_i = add_stage(s->w, add_campaign(s->w), 0, 1);
    s->task = (struct ready_queue_task){.task_id = 77}; /* the plan has never seen it */
}

static void because_stage_blocked(struct scene *s)
{
    stopped(s, WAIT_STAGE_BLOCKED);
}

static void because_paused(struct scene *s)
{
    stopped(s, WAIT_PAUSED);
}

static void because_held(struct scene *s)
{
    stopped(s, WAIT_HELD);
}

static void because_backoff(struct scene *s)
{
    s->stage_i = add_stage(s->w, add_campaign(s->w), 0, 0);
    s->task = (struct ready_queue_task){.task_id = 1, .not_before_us = NOW + 1};
    s->w->change[1].rung = -1;
    ready_queue_push(s->w->stages[s->stage_i].ready, &s->task);
}

static void because_concurrency(struct scene *s)
{
    plain(s);
    s->w->campaigns[0].parts_limit = s->w->campaigns[0].live = 2;
}

static void because_type_limit(struct scene *s)
{
    plain(s);
    s->w->spec[0].instances_n = 1;
    s->w->spec[0].instances[0] = (struct spec_limit){type_names[0], 2};
    s->w->campaigns[0].type_held[0] = 2;
}

static void because_slots(struct scene *s)
{
    plain(s);
    s->w->slots[0].held = 10;
}

static void because_quota_unreadable(struct scene *s)
{
    plain(s);
    s->w->slots[0].quota = -1;
}

static void because_quota_too_small(struct scene *s)
{
    plain(s);
    s->w->stage[s->stage_i].instance_count = 11;
}

static void because_price_unknown(struct scene *s)
{
    plain(s);
    s->w->slots[0].price_musd_per_hour = -1;
}

static void because_budget(struct scene *s)
{
    plain(s);
    s->w->campaigns[0].left_musd = 1;
}

static void because_rate(struct scene *s)
{
    plain(s);
    s->w->view.tokens = 0;
}

/* As many moved tasks as are looked at stand before it, on a rung that is full. */
static void because_order(struct scene *s)
{
    s->stage_i = add_stage(s->w, add_campaign(s->w), 0, SCHED_LOOK_AHEAD + 3);
    s->w->stage[s->stage_i].instance_type[1] = type_names[1];
    s->w->stage[s->stage_i].instance_type_n = 2;
    s->w->slots[1].held = 10;
    for (int id = 1; id <= SCHED_LOOK_AHEAD + 2; id++) {
        s->w->change[id] = (struct change){.rung = 1};
    }
    s->task = (struct ready_queue_task){.task_id = SCHED_LOOK_AHEAD + 3};
}

static void because_canary(struct scene *s)
{
    plain(s);
    s->w->stages[s->stage_i].breaker = &s->breaker;
    s->w->stages[s->stage_i].breaker_rules = (struct breaker_rules){.canary = 1, .k = 3, .n = 10};
    breaker_started(&s->breaker, 99);
}

static void because_breaker(struct scene *s)
{
    because_canary(s);
    s->w->stages[s->stage_i].breaker_rules.k = 1;
    assert_true(breaker_ended(&s->breaker, &s->w->stages[s->stage_i].breaker_rules, 99,
                              CAUSE_USER_CODE, true, 1));
}

static void because_stage_limit(struct scene *s)
{
    plain(s);
    s->w->stages[s->stage_i].parts_limit = s->w->stages[s->stage_i].live = 2;
}

static void because_project_limit(struct scene *s)
{
    plain(s);
    s->w->projects[0].parts_limit = s->w->projects[0].live = 2;
}

static void because_global_limit(struct scene *s)
{
    plain(s);
    s->w->view.parts_limit = s->w->view.live = 2;
}

static void because_capacity(struct scene *s)
{
    plain(s);
    s->w->stages[s->stage_i].place = &s->place;
    capacity_ladder_refused(&s->place, &s->w->stage[s->stage_i], 0, -1, NOW - 1);
}

static void because_hand_over(struct scene *s)
{
    plain(s);
    int i = add_pool(s->w, s->stage_i);
    pools[i].state = POOL_EXPECTED;
    pools[i].available_us = NOW + 5 * SEC;
    pools[i].expires_us = USEC_NEVER;
    s->w->slots[0].warm_idle = 0; /* its job holds it still */
    s->w->slots[0].held = 10;
}

static void because_gang(struct scene *s)
{
    plain(s);
    s->w->stage[s->stage_i].instance_count = 8;
    s->w->slots[0].held = 5;
}

static void because_reserved(struct scene *s)
{
    because_gang(s);
    s->w->stages[s->stage_i].priority = 60;
    s->stage_i = add_stage(s->w, add_campaign(s->w), 0, 3);
}

static scene_fn *const scenes[WAIT_REASON_COUNT] = {
    [WAIT_NEW] = because_new,
    [WAIT_STAGE_BLOCKED] = because_stage_blocked,
    [WAIT_PAUSED] = because_paused,
    [WAIT_HELD] = because_held,
    [WAIT_BACKOFF] = because_backoff,
    [WAIT_CONCURRENCY] = because_concurrency,
    [WAIT_TYPE_LIMIT] = because_type_limit,
    [WAIT_SLOTS] = because_slots,
    [WAIT_QUOTA_UNREADABLE] = because_quota_unreadable,
    [WAIT_QUOTA_TOO_SMALL] = because_quota_too_small,
    [WAIT_PRICE_UNKNOWN] = because_price_unknown,
    [WAIT_BUDGET] = because_budget,
    [WAIT_RATE] = because_rate,
    [WAIT_ORDER] = because_order,
    [WAIT_CANARY] = because_canary,
    [WAIT_STAGE_LIMIT] = because_stage_limit,
    [WAIT_PROJECT_LIMIT] = because_project_limit,
    [WAIT_GLOBAL_LIMIT] = because_global_limit,
    [WAIT_BREAKER] = because_breaker,
    [WAIT_CAPACITY] = because_capacity,
    [WAIT_HAND_OVER] = because_hand_over,
    [WAIT_RESERVED] = because_reserved,
    [WAIT_GANG] = because_gang,
};

static void scene_init(struct scene *s)
{
    memset(s, 0, sizeof *s);
    s->w = world_new();
    breaker_init(&s->breaker);
}

static void test_why__each_reason_of_the_list_is_produced(void **state)
{
    (void)state;
    for (int r = 0; r < WAIT_REASON_COUNT; r++) {
        if (r == WAIT_NONE) {
            assert_null(scenes[r]); /* nobody who waits has it */
            continue;
        }
        if (scenes[r] == NULL) {
            fail_msg("no test produces '%s'", wait_reason_name((enum wait_reason)r));
        }
        struct scene s;
        scene_init(&s);
        scenes[r](&s);
        struct sched_plan *p = decide(s.w);
        if (s.task.task_id == 0) {
            assert_true(ready_queue_peek(s.w->stages[s.stage_i].ready, NOW, &s.task));
            assert_string_equal(wait_reason_name(p->reason[s.stage_i]),
                                wait_reason_name((enum wait_reason)r));
        }
        assert_string_equal(wait_reason_name(sched_why(&s.w->view, p, s.stage_i, &s.task)),
                            wait_reason_name((enum wait_reason)r));
        free(p);
        world_free(s.w);
    }
}

/* The same world without what keeps them back: all start. */
static void test_why__without_a_reason_they_start(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    plain(&s);
    struct sched_plan *p = decide(s.w);
    assert_int_equal(p->launches_n, 3);
    assert_reason(p, s.stage_i, NONE);
    free(p);
    world_free(s.w);
}

/* Two tasks of one stage that wait for different things each say their own. */
static void test_why__a_task_that_was_looked_at_has_its_own(void **state)
{
    (void)state;
    struct world *w = world_new();
    int s = add_stage(w, add_campaign(w), 0, 4);
    w->stage[s].instance_type[1] = type_names[1];
    w->stage[s].instance_type_n = 2;
    w->slots[0].held = 10;
    w->slots[1].quota = -1;
    w->change[2] = (struct change){.rung = 1};
    struct sched_plan *p = decide(w);
    assert_int_equal(p->launches_n, 0);
    for (int64_t id = 1; id <= 4; id++) {
        struct ready_queue_task t = {.task_id = id};
        assert_string_equal(wait_reason_name(sched_why(&w->view, p, s, &t)),
                            id == 2 ? "quota_unreadable" : "slots");
    }
    free(p);
    world_free(w);
}

static void fill(struct world *w, struct rng *rng)
{
    for (int c = 0; c < CAMPS; c++) {
        (void)add_campaign(w);
        w->campaigns[c].parts_limit = rng_chance(rng, 0.3) ? (int64_t)rng_below(rng, 9) : -1;
    }
    for (int k = 0; k < STAGES; k++) {
        int s = add_stage(w, (int)rng_below(rng, CAMPS), (int)rng_below(rng, TYPES), 0);
        w->stage[s].instance_type[1] = type_names[rng_below(rng, TYPES)];
        w->stage[s].instance_type_n = 1 + (int)rng_below(rng, 2);
        w->stage[s].instance_count = rng_chance(rng, 0.2) ? 4 : 1;
        w->stage[s].per_task_musd = rng_chance(rng, 0.2) ? 4000000 : -1;
        w->stages[s].priority = 50 + (int)rng_below(rng, 2);
        w->stages[s].may_start = rng_chance(rng, 0.9);
        w->stages[s].why_not = WAIT_PAUSED;
        for (int i = 0; i < TASKS; i++) {
            int64_t id = ++w->tasks_n;
            w->change[id].rung = rng_chance(rng, 0.3) ? (int)rng_below(rng, 2) : -1;
            ready_queue_push(
                w->stages[s].ready,
                &(struct ready_queue_task){.task_id = id,
                                           .not_before_us = rng_chance(rng, 0.2) ? NOW + 9 : 0,
                                           .size_mb = (uint32_t)rng_below(rng, 99)});
        }
    }
    w->slots[0].held = (int64_t)rng_below(rng, 11);
    w->slots[1].quota = (int64_t)rng_below(rng, 12) - 1;
    w->slots[2].price_musd_per_hour = rng_chance(rng, 0.3) ? -1 : 3600000;
}

/* Whoever waits after a plan has a reason, and it is not that the leader has not looked. */
static void test_why__nobody_waits_without_a_reason(void **state)
{
    (void)state;
    int64_t asked = 0;
    int64_t of[WAIT_REASON_COUNT] = {0};
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        struct world *w = world_new();
        fill(w, &rng);
        struct sched_plan *p = decide(w);
        for (int s = 0; s < STAGES; s++) {
            struct ready_queue_task t;
            while (ready_queue_pop(w->stages[s].ready, USEC_NEVER, &t)) {
                enum wait_reason why = sched_why(&w->view, p, s, &t);
                assert_int_not_equal(why, WAIT_NONE);
                assert_int_not_equal(why, WAIT_NEW);
                assert_int_equal(why == WAIT_BACKOFF,
                                 t.not_before_us > NOW && w->stages[s].may_start);
                of[why]++;
                asked++;
            }
        }
        free(p);
        world_free(w);
    }
    int kinds = 0;
    for (int r = 0; r < WAIT_REASON_COUNT; r++) {
        kinds += of[r] > 0;
    }
    (void)printf("# %lld waiting tasks, %d different reasons\n", (long long)asked, kinds);
    assert_true(asked > 200000);
    assert_true(kinds >= 10);
}

static double now_s(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void test_why__a_million_parts_each_have_one(void **state)
{
    (void)state;
    const int64_t n = 1000000;
    struct world *w = world_new();
    int s[2] = {add_stage(w, add_campaign(w), 0, 0), add_stage(w, add_campaign(w), 1, 0)};
    struct ready_queue_task *t = xmalloc((size_t)n * sizeof *t);
    for (int64_t i = 0; i < n; i++) {
        t[i] = (struct ready_queue_task){.task_id = i + 1,
                                         .size_mb = (uint32_t)(i % 977),
                                         .not_before_us = i % 10 == 0 ? NOW + 1 + i : 0};
    }
    ready_queue_push_many(w->stages[s[0]].ready, t, (size_t)n / 2);
    ready_queue_push_many(w->stages[s[1]].ready, t + n / 2, (size_t)n / 2);
    free(t);
    w->view.change_of = NULL;
    w->campaigns[1].parts_limit = 3;
    struct sched_plan *p = decide(w);
    assert_int_equal(p->launches_n, 13);
    int64_t of[WAIT_REASON_COUNT] = {0};
    double start = now_s();
    for (int k = 0; k < 2; k++) {
        struct ready_queue_task next;
        while (ready_queue_pop(w->stages[s[k]].ready, USEC_NEVER, &next)) {
            of[sched_why(&w->view, p, s[k], &next)]++;
        }
    }
    (void)printf("# %.0f ns a part, its queue's pop included\n",
                 (now_s() - start) * 1e9 / (double)n);
    assert_int_equal(of[WAIT_NONE] + of[WAIT_NEW], 0);
    assert_int_equal(of[WAIT_BACKOFF], n / 10);
    assert_int_equal(of[WAIT_SLOTS], n / 2 - n / 20 - 10);
    assert_int_equal(of[WAIT_CONCURRENCY], n / 2 - n / 20 - 3);
    free(p);
    world_free(w);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_why__each_reason_of_the_list_is_produced),
        cmocka_unit_test(test_why__without_a_reason_they_start),
        cmocka_unit_test(test_why__a_task_that_was_looked_at_has_its_own),
        cmocka_unit_test(test_why__nobody_waits_without_a_reason),
        cmocka_unit_test(test_why__a_million_parts_each_have_one),
    };
    return cmocka_run_group_tests_name("why", tests, NULL, NULL);
}
