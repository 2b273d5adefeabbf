/* Aim: a slot never stands free while a part of any stage may run on it, however many others of its
 * stage wait for another type or for money. Method: the cases seen by hand, with more parts in the
 * way than any bounded look ahead; then 20,000 seeded random views, where each part that still
 * waits is held against what the plan has left, counted here without the scheduler's code. */
#include "common/rng.h"
#include "core/money/cost.h"
#include "core/sched/sched_work.h"
#include "sched_world.h"

#define USD  1000000
#define MANY 5000

static musd_t spent[STAGES * TASKS + 1];

static musd_t spent_of(void *ctx, int64_t task_id)
{
    (void)ctx;
    return spent[task_id];
}

static struct world *ladder_world(int types)
{
    struct world *w = world_new();
    (void)add_stage(w, add_campaign(w), 0, 0);
    for (int i = 1; i < types; i++) {
        w->stage[0].instance_type[w->stage[0].instance_type_n++] = type_names[i];
    }
    return w;
}

static int64_t add_part(struct world *w, int s, uint32_t size_mb, int rung)
{
    int64_t id = ++w->tasks_n;
    assert_true(id < (int64_t)ARRAY_LEN(w->change));
    w->change[id].rung = rung;
    spent[id] = 0;
    ready_queue_push(w->stages[s].ready,
                     &(struct ready_queue_task){.task_id = id, .size_mb = size_mb});
    return id;
}

static void assert_launches(const struct world *w, int n)
{
    struct sched_plan *p = decide(w);
    assert_int_equal(p->launches_n, n);
    plan_free(p);
}

static void test_sched_free_slots__moved_parts_hide_no_plain_ones(void **state)
{
    (void)state;
    struct world *w = ladder_world(2);
    w->slots[1].held = 10;
    for (int i = 0; i < 17; i++) {
        (void)add_part(w, 0, 1000, 1);
    }
    for (int i = 0; i < 30; i++) {
        (void)add_part(w, 0, 10, -1);
    }
    assert_launches(w, 10);
    w->slots[0].held = 10;
    w->slots[1].held = 7; /* and back: three of the large ones, which wait in the same place */
    assert_launches(w, 3);
    world_free(w);
}

static void test_sched_free_slots__plain_parts_hide_no_moved_ones(void **state)
{
    (void)state;
    struct world *w = ladder_world(3);
    w->slots[0].held = 10;
    for (int i = 0; i < 40; i++) {
        (void)add_part(w, 0, 1000, -1);
    }
    for (int i = 0; i < 20; i++) {
        (void)add_part(w, 0, 500, 1);
    }
    for (int i = 0; i < 4; i++) {
        (void)add_part(w, 0, 10, 2);
    }
    assert_launches(w, 14);
    world_free(w);
}

/* Only so many are set apart in one plan; the next one goes on behind them, and the stage is not
 * said to wait for money before all were looked at. */
static void test_sched_free_slots__more_used_up_caps_than_one_plan_sets_apart(void **state)
{
    (void)state;
    struct world *w = ladder_world(1);
    w->view.spent_of = spent_of;
    w->stages[0].part_cap_musd = 20 * USD;
    int64_t rich = add_part(w, 0, 1000, -1), good = add_part(w, 0, 10, -1);
    spent[rich] = 19 * USD;
    for (int i = 0; i < SCHED_APART_MAX + 10; i++) { /* all of them have spent as much */
        ready_queue_push(w->stages[0].ready,
                         &(struct ready_queue_task){.task_id = rich, .size_mb = 1000});
    }
    struct sched_plan *p = decide(w);
    assert_int_equal(p->launches_n, 0);
    assert_reason(p, 0, ORDER);
    assert_int_equal(p->wake_us, NOW);
    sched_decide(&w->view, p);
    assert_int_equal(p->launches_n, 1);
    assert_int_equal(p->launches[0].task.task_id, good);
    plan_free(p);
    world_free(w);
}

/* A part costs 3.60 USD an hour and its upload; the first 40 have 1 USD of their own left. */
static void test_sched_free_slots__used_up_caps_hide_no_others(void **state)
{
    (void)state;
    struct world *w = ladder_world(1);
    w->view.spent_of = spent_of;
    w->stages[0].part_cap_musd = 20 * USD;
    for (int i = 0; i < 40; i++) {
        spent[add_part(w, 0, 1000, -1)] = (19 - i % 3) * USD;
    }
    struct sched_plan *p = decide(w);
    assert_int_equal(p->launches_n, 0);
    assert_reason(p, 0, PART_BUDGET);
    /* One that only backs off will start without anybody: the stage waits for that. */
    ready_queue_push(
        w->stages[0].ready,
        &(struct ready_queue_task){.task_id = 99, .not_before_us = NOW + 60 * USEC_PER_SEC});
    sched_decide(&w->view, p);
    assert_int_equal(p->launches_n, 0);
    assert_reason(p, 0, BACKOFF);
    assert_int_equal(ready_queue_drop(w->stages[0].ready, &(int64_t){99}, 1), 1);
    for (int i = 0; i < 5; i++) {
        (void)add_part(w, 0, 10, -1);
    }
    sched_decide(&w->view, p);
    assert_int_equal(p->launches_n, 5);
    w->stages[0].part_cap_musd = 23 * USD; /* raised: those with 6 USD left may start, 13 of them */
    sched_decide(&w->view, p);
    assert_int_equal(p->launches_n, 10);
    for (int i = 0; i < p->launches_n; i++) {
        assert_true(spent[p->launches[i].task.task_id] <= 18 * USD);
    }
    plan_free(p);
    world_free(w);
}

/* Each kind is as many parts as one may think of: all but one of the stage wait in a plan that
 * starts the last. */
static void test_sched_free_slots__however_many_wait(void **state)
{
    (void)state;
    struct world *w = ladder_world(3);
    w->slots[0].held = 10;
    w->slots[1].held = 10;
    w->view.spent_of = spent_of;
    w->stages[0].part_cap_musd = 20 * USD;
    int64_t last = add_part(w, 0, 1, 2);
    struct ready_queue_task *t = xcalloc(MANY, sizeof *t);
    for (int i = 0; i < MANY; i++) {
        /* ids of this world's table: even ones are plain, odd ones moved, some have spent all */
        t[i] = (struct ready_queue_task){.task_id = 2 + i % 400, .size_mb = 9};
        w->change[2 + i % 400].rung = i % 2 == 0 ? -1 : 1 + i % 4 / 2;
        spent[2 + i % 400] = i % 4 == 3 ? 20 * USD : 0;
    }
    ready_queue_push_many(w->stages[0].ready, t, MANY);
    struct sched_plan *p = decide(w);
    for (int plans = 0; p->launches_n == 0 && plans < 3; plans++) {
        assert_int_equal(p->wake_us, NOW); /* goes on at once with those whose money is used up */
        sched_decide(&w->view, p);
    }
    assert_int_equal(p->launches_n, 1);
    assert_int_equal(p->launches[0].task.task_id, last);
    assert_int_equal(ready_queue_n(w->stages[0].ready), MANY);
    free(t);
    plan_free(p);
    world_free(w);
}

static void random_stage(struct world *w, struct rng *rng, int campaigns)
{
    int s = add_stage(w, (int)rng_below(rng, (uint64_t)campaigns), 0, 0);
    struct spec_stage *st = &w->stage[s];
    st->instance_type_n = 1 + (int)rng_below(rng, 3);
    for (int i = 0; i < st->instance_type_n; i++) {
        st->instance_type[i] = type_names[(s + i) % TYPES];
    }
    st->min_runtime_s = rng_chance(rng, 0.5) ? 600 : 3600;
    w->stages[s].part_cap_musd = rng_chance(rng, 0.5) ? 12 * USD : INT64_MAX;
    w->stages[s].priority = 50 + (int)rng_below(rng, 2);
    w->stages[s].parts_limit = rng_chance(rng, 0.1) ? (int64_t)rng_below(rng, 9) : -1;
    w->stages[s].stage_left_musd =
        rng_chance(rng, 0.2) ? (musd_t)rng_below(rng, 40) * USD : INT64_MAX;
    w->stages[s].may_start = rng_chance(rng, 0.9);
    w->stages[s].why_not = WAIT_STAGE_BLOCKED;
    int n = (int)rng_below(rng, TASKS + 1);
    for (int i = 0; i < n; i++) {
        int64_t id = ++w->tasks_n;
        w->change[id] = (struct change){.rung = -1};
        spent[id] = 0;
        if (rng_chance(rng, 0.4)) {
            w->change[id] = (struct change){(int)rng_below(rng, 4), rng_chance(rng, 0.3) ? 60 : 0,
                                            rng_chance(rng, 0.3) ? 5400 : 0};
            spent[id] = (musd_t)rng_below(rng, 13) * USD;
        }
        usec_t later = NOW + (usec_t)rng_below(rng, 1000) - 500;
        ready_queue_push(
            w->stages[s].ready,
            &(struct ready_queue_task){.task_id = id,
                                       .size_mb = (uint32_t)rng_below(rng, 4),
                                       .not_before_us = rng_chance(rng, 0.3) ? later : 0});
    }
}

static struct world *world_random(uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed);
    struct world *w = world_new();
    w->view.spent_of = spent_of;
    int campaigns = 1 + (int)rng_below(&rng, CAMPS);
    for (int c = 0; c < campaigns; c++) {
        (void)add_campaign(w);
        w->campaigns[c].parts_limit = rng_chance(&rng, 0.1) ? (int64_t)rng_below(&rng, 12) : -1;
        w->campaigns[c].left_musd =
            rng_chance(&rng, 0.2) ? (musd_t)rng_below(&rng, 60) * USD : INT64_MAX;
        w->spec[c].instances_n = rng_chance(&rng, 0.3);
        w->spec[c].instances[0] =
            (struct spec_limit){type_names[rng_below(&rng, TYPES)], (int64_t)rng_below(&rng, 8)};
    }
    for (int t = 0; t < TYPES; t++) {
        w->slots[t].quota = (int64_t)rng_below(&rng, 16);
        w->slots[t].held = (int64_t)rng_below(&rng, 12);
        w->slots[t].price_musd_per_hour = (musd_t)rng_below(&rng, 5 * USD);
        w->account.total[MARKET_ON_DEMAND].held += w->slots[t].held;
    }
    w->account.total[MARKET_ON_DEMAND].limit =
        rng_chance(&rng, 0.2) ? (int64_t)rng_below(&rng, 40) : -1;
    int stages = 1 + (int)rng_below(&rng, STAGES);
    for (int s = 0; s < stages; s++) {
        random_stage(w, &rng, campaigns);
    }
    return w;
}

struct left { /* after the plan's launches */
    int64_t slots[TYPES], all;
    int64_t stage_parts[STAGES], parts[CAMPS], of_type[CAMPS];
    musd_t stage[STAGES], campaign[CAMPS];
};

static bool limited_type(const struct world *w, int c, int type)
{
    return w->spec[c].instances_n > 0 &&
           strcmp(w->spec[c].instances[0].instance_type, type_names[type]) == 0;
}

static void left_after(const struct world *w, const struct sched_plan *p, struct left *ret)
{
    const struct quota_ledger_total *total = &w->account.total[MARKET_ON_DEMAND];
    ret->all = total->limit < 0 ? INT64_MAX : total->limit - total->held - p->launches_n;
    for (int t = 0; t < TYPES; t++) {
        ret->slots[t] = w->slots[t].quota - w->slots[t].held;
    }
    for (int c = 0; c < w->view.campaigns_n; c++) {
        ret->parts[c] = w->campaigns[c].parts_limit < 0 ? INT64_MAX : w->campaigns[c].parts_limit;
        ret->of_type[c] = w->spec[c].instances[0].n;
        ret->campaign[c] = w->campaigns[c].left_musd;
    }
    for (int s = 0; s < w->view.stages_n; s++) {
        ret->stage_parts[s] = w->stages[s].parts_limit < 0 ? INT64_MAX : w->stages[s].parts_limit;
        ret->stage[s] = w->stages[s].stage_left_musd;
    }
    for (int i = 0; i < p->launches_n; i++) {
        const struct sched_launch *l = &p->launches[i];
        int c = w->stages[l->stage_i].campaign_i;
        ret->slots[l->slots_i]--;
        ret->stage_parts[l->stage_i]--;
        ret->parts[c]--;
        ret->of_type[c] -= limited_type(w, c, l->slots_i);
        ret->stage[l->stage_i] -= l->reserve_musd;
        ret->campaign[c] -= l->reserve_musd;
    }
}

/* The first type from its rung on that has any quota, from the top when none has; -1: none. */
static int type_of(const struct world *w, int s, int rung)
{
    const struct spec_stage *st = &w->stage[s];
    for (int r = rung > 0 && rung < st->instance_type_n ? rung : 0; r < st->instance_type_n; r++) {
        int type = (s + r) % TYPES;
        if (w->slots[type].quota > 0) {
            return type;
        }
    }
    return rung > 0 ? type_of(w, s, 0) : -1;
}

static bool may_run(const struct world *w, const struct left *l, int s, int64_t id)
{
    const struct spec_stage *st = &w->stage[s];
    int c = w->stages[s].campaign_i;
    int type = type_of(w, s, w->change[id].rung);
    if (type < 0 || l->slots[type] < 1 || l->all < 1 || l->stage_parts[s] < 1 || l->parts[c] < 1 ||
        (limited_type(w, c, type) && l->of_type[c] < 1)) {
        return false;
    }
    bool longer = w->change[id].rung >= 0 && w->change[id].runtime_s > st->max_runtime_s;
    int64_t run_s = longer ? w->change[id].runtime_s : st->min_runtime_s;
    musd_t need = 0;
    struct err err = ERR_INIT;
    assert_true(cost_worst_case(w->slots[type].price_musd_per_hour, 1, run_s, 0, &need, &err));
    return need <= l->stage[s] && need <= l->campaign[c] &&
           need <= w->stages[s].part_cap_musd - spent[id];
}

static void test_sched_free_slots__no_slot_is_free_beside_a_part_that_may_use_it(void **state)
{
    (void)state;
    int views = 0, wrong = 0;
    int64_t waited = 0;
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        struct world *w = world_random(seed);
        size_t before = 0, after = 0;
        for (int s = 0; s < w->view.stages_n; s++) {
            before += ready_queue_n(w->stages[s].ready);
        }
        struct sched_plan *p = decide(w);
        struct left left;
        left_after(w, p, &left);
        bool idle = false;
        for (int s = 0; s < w->view.stages_n; s++) {
            struct ready_queue_task t;
            after += ready_queue_n(w->stages[s].ready);
            while (w->stages[s].may_start && ready_queue_pop(w->stages[s].ready, NOW, &t)) {
                idle = idle || may_run(w, &left, s, t.task_id);
                waited++;
            }
        }
        assert_int_equal(before, after + (size_t)p->launches_n);
        views += p->launches_n > 0;
        wrong += idle;
        plan_free(p);
        world_free(w);
    }
    (void)printf("# a slot stood free in %d of 20,000 views, %d with launches; %lld parts waited\n",
                 wrong, views, (long long)waited);
    assert_true(views > 10000);
    assert_true(waited > 1000000);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sched_free_slots__moved_parts_hide_no_plain_ones),
        cmocka_unit_test(test_sched_free_slots__plain_parts_hide_no_moved_ones),
        cmocka_unit_test(test_sched_free_slots__used_up_caps_hide_no_others),
        cmocka_unit_test(test_sched_free_slots__more_used_up_caps_than_one_plan_sets_apart),
        cmocka_unit_test(test_sched_free_slots__however_many_wait),
        cmocka_unit_test(test_sched_free_slots__no_slot_is_free_beside_a_part_that_may_use_it),
    };
    return cmocka_run_group_tests_name("sched_free_slots", tests, NULL, NULL);
}
