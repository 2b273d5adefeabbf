/* Aim: a plan never uses a slot, limit, cap or token twice, follows the order, gives every waiting
 * stage a reason, and is the same for equal views. Method: 10,000 seeded random views against
 * checks written without the scheduler's own arithmetic; a queue that is worked off to its end. */
#include "common/rng.h"
#include "core/money/cost.h"
#include "sched_world.h"

#define PROJECTS 2

/* Caps and limits over campaigns: of projects, of everything, and the account's quota. */
static void random_levels(struct world *w, struct rng *rng)
{
    for (int p = 0; p < PROJECTS; p++) {
        w->projects[p].live = (int64_t)rng_below(rng, 6);
        w->projects[p].parts_limit = rng_chance(rng, 0.3) ? (int64_t)rng_below(rng, 14) : -1;
        w->projects[p].left_musd =
            rng_chance(rng, 0.2) ? (musd_t)rng_below(rng, 60000000) : INT64_MAX;
    }
    w->view.live = w->projects[0].live + w->projects[1].live;
    w->view.parts_limit = rng_chance(rng, 0.2) ? (int64_t)rng_below(rng, 24) : -1;
    w->view.left_musd = rng_chance(rng, 0.2) ? (musd_t)rng_below(rng, 90000000) : INT64_MAX;
    struct quota_ledger_total *total = &w->account.total[MARKET_ON_DEMAND];
    for (int t = 0; t < TYPES; t++) {
        total->held += w->slots[t].held;
    }
    total->limit = rng_chance(rng, 0.3) ? (int64_t)rng_below(rng, 30) : -1;
}

static struct world *world_random(uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed);
    struct world *w = world_new();
    int campaigns = 1 + (int)rng_below(&rng, CAMPS);
    for (int c = 0; c < campaigns; c++) {
        (void)add_campaign(w);
        w->campaigns[c].live = (int64_t)rng_below(&rng, 6);
        w->campaigns[c].held = (int64_t)rng_below(&rng, 6);
        w->campaigns[c].project_i = (int)rng_below(&rng, PROJECTS);
        if (rng_chance(&rng, 0.4)) {
            w->campaigns[c].left_musd = (musd_t)rng_below(&rng, 60000000) - 1000000;
        }
        if (rng_chance(&rng, 0.3)) {
            w->spec[c].instances_n = 1;
            w->spec[c].instances[0] = (struct spec_limit){type_names[rng_below(&rng, TYPES)],
                                                          (int64_t)rng_below(&rng, 8)};
            w->campaigns[c].type_held[0] = (int64_t)rng_below(&rng, 4);
        }
        w->campaigns[c].parts_limit = rng_chance(&rng, 0.3) ? (int64_t)rng_below(&rng, 12) : -1;
    }
    for (int t = 0; t < TYPES; t++) {
        w->slots[t].quota = (int64_t)rng_below(&rng, 16) - 1;
        w->slots[t].held = (int64_t)rng_below(&rng, 6);
        w->slots[t].foreign = (int64_t)rng_below(&rng, 3);
        w->slots[t].price_musd_per_hour =
            rng_chance(&rng, 0.1) ? -1 : (musd_t)rng_below(&rng, 5000000);
    }
    w->view.tokens = (int64_t)rng_below(&rng, 12);
    random_levels(w, &rng);
    int stages = 1 + (int)rng_below(&rng, STAGES);
    for (int s = 0; s < stages; s++) {
        int c = (int)rng_below(&rng, (uint64_t)campaigns);
        (void)add_stage(w, c, (int)rng_below(&rng, TYPES), 0);
        struct spec_stage *st = &w->stage[s];
        if (rng_chance(&rng, 0.3)) {
            st->instance_type[st->instance_type_n++] = type_names[rng_below(&rng, TYPES)];
        }
        st->instance_count = rng_chance(&rng, 0.3) ? 1 + (int)rng_below(&rng, 5) : 1;
        st->min_runtime_s = rng_chance(&rng, 0.5) ? 600 : 3600;
        w->stages[s].part_cap_musd =
            rng_chance(&rng, 0.2) ? (musd_t)rng_below(&rng, 8000000) : INT64_MAX;
        w->stages[s].priority = 50 + (int)rng_below(&rng, 3);
        w->stages[s].live = (int64_t)rng_below(&rng, 4);
        w->stages[s].parts_limit = rng_chance(&rng, 0.2) ? (int64_t)rng_below(&rng, 9) : -1;
        w->stages[s].may_start = rng_chance(&rng, 0.9);
        w->stages[s].why_not = WAIT_STAGE_BLOCKED;
        if (rng_chance(&rng, 0.3)) {
            w->stages[s].stage_left_musd = (musd_t)rng_below(&rng, 30000000);
        }
        int n = (int)rng_below(&rng, TASKS + 1);
        for (int i = 0; i < n; i++) {
            int64_t id = ++w->tasks_n;
            w->change[id] = (struct change){.rung = -1};
            if (rng_chance(&rng, 0.1)) {
                w->change[id] =
                    (struct change){(int)rng_below(&rng, 2), 60, rng_chance(&rng, 0.5) ? 5400 : 0};
            }
            usec_t later = NOW + (usec_t)rng_below(&rng, 1000) - 500;
            ready_queue_push(
                w->stages[s].ready,
                &(struct ready_queue_task){.task_id = id,
                                           .seq = (uint32_t)i,
                                           .size_mb = (uint32_t)rng_below(&rng, 4),
                                           .not_before_us = rng_chance(&rng, 0.3) ? later : 0});
        }
    }
    return w;
}

static musd_t reserve_of(const struct world *w, const struct sched_launch *l)
{
    musd_t ret = 0;
    struct err err = ERR_INIT;
    assert_true(cost_worst_case(w->slots[l->slots_i].price_musd_per_hour,
                                w->stage[l->stage_i].instance_count, l->max_runtime_s, 0, &ret,
                                &err));
    return ret;
}

/* The same of what lies over the campaigns: each level is within its limits, or started nothing. */
static void check_levels(const struct world *w, const struct sched_plan *p)
{
    int64_t stage_live[STAGES] = {0};
    int64_t live[PROJECTS] = {0};
    musd_t money[PROJECTS] = {0};
    int64_t instances = 0;
    for (int i = 0; i < p->launches_n; i++) {
        const struct sched_launch *l = &p->launches[i];
        int project = w->campaigns[w->stages[l->stage_i].campaign_i].project_i;
        stage_live[l->stage_i]++;
        live[project]++;
        money[project] += l->reserve_musd;
        instances += w->stage[l->stage_i].instance_count;
    }
    for (int s = 0; s < w->view.stages_n; s++) {
        assert_true(stage_live[s] == 0 || w->stages[s].parts_limit < 0 ||
                    stage_live[s] + w->stages[s].live <= w->stages[s].parts_limit);
    }
    for (int k = 0; k < PROJECTS; k++) {
        const struct sched_project *project = &w->projects[k];
        assert_true(live[k] == 0 || project->parts_limit < 0 ||
                    live[k] + project->live <= project->parts_limit);
        assert_true(money[k] == 0 || money[k] <= project->left_musd);
    }
    assert_true(p->launches_n == 0 || w->view.parts_limit < 0 ||
                p->launches_n + w->view.live <= w->view.parts_limit);
    assert_true(p->launches_n == 0 || money[0] + money[1] <= w->view.left_musd);
    const struct quota_ledger_total *total = &w->account.total[MARKET_ON_DEMAND];
    assert_true(instances == 0 || total->limit < 0 || instances + total->held <= total->limit);
}

/* Whether a plan keeps every bound, summed from its launches alone. */
static void check_bounds(const struct world *w, const struct sched_plan *p)
{
    int64_t held[TYPES] = {0};
    int64_t live[CAMPS] = {0};
    int64_t of_type[CAMPS][TYPES] = {0};
    musd_t money[CAMPS] = {0};
    musd_t stage_money[STAGES] = {0};
    assert_true(p->launches_n <= w->view.tokens);
    for (int i = 0; i < p->launches_n; i++) {
        const struct sched_launch *l = &p->launches[i];
        const struct sched_stage *s = &w->stages[l->stage_i];
        const struct spec_stage *st = s->stage;
        assert_true(s->may_start);
        assert_true(l->task.not_before_us <= w->view.now_us);
        assert_string_equal(w->slots[l->slots_i].instance_type,
                            st->instance_type[l->instance_type_i]);
        assert_true(w->slots[l->slots_i].price_musd_per_hour >= 0);
        assert_int_equal(l->reserve_musd, reserve_of(w, l));
        assert_true(l->max_runtime_s >= MIN(st->min_runtime_s, st->max_runtime_s));
        assert_true(l->reserve_musd <= s->part_cap_musd);
        held[l->slots_i] += st->instance_count;
        live[s->campaign_i]++;
        of_type[s->campaign_i][l->slots_i] += st->instance_count;
        money[s->campaign_i] += l->reserve_musd;
        stage_money[l->stage_i] += l->reserve_musd;
        for (int j = 0; j < i; j++) {
            assert_int_not_equal(p->launches[j].task.task_id, l->task.task_id);
        }
    }
    for (int t = 0; t < TYPES; t++) {
        assert_true(held[t] == 0 ||
                    held[t] + w->slots[t].held + w->slots[t].foreign <= w->slots[t].quota);
    }
    for (int c = 0; c < w->view.campaigns_n; c++) {
        assert_true(money[c] == 0 || money[c] <= w->campaigns[c].left_musd);
        assert_true(live[c] == 0 || w->campaigns[c].parts_limit < 0 ||
                    live[c] + w->campaigns[c].live <= w->campaigns[c].parts_limit);
        if (w->spec[c].instances_n > 0) {
            for (int t = 0; t < TYPES; t++) {
                bool same = strcmp(type_names[t], w->spec[c].instances[0].instance_type) == 0;
                assert_true(!same || of_type[c][t] == 0 ||
                            of_type[c][t] + w->campaigns[c].type_held[0] <=
                                w->spec[c].instances[0].n);
            }
        }
    }
    for (int s = 0; s < w->view.stages_n; s++) {
        assert_true(stage_money[s] == 0 || stage_money[s] <= w->stages[s].stage_left_musd);
    }
}

/* Every stage with something waiting has a reason, and only those. */
static void check_reasons(const struct world *w, const struct sched_plan *p)
{
    for (int s = 0; s < w->view.stages_n; s++) {
        bool waits = ready_queue_n(w->stages[s].ready) > 0;
        assert_int_equal(p->reason[s] != WAIT_NONE, waits);
        if (!w->stages[s].may_start && waits) {
            assert_reason(p, s, STAGE_BLOCKED);
        }
    }
}

/* Would one more job of stage s fit, were every launch of lower priority not there? */
static bool fits_without_lower(const struct world *w, const struct sched_plan *p, int s, int type)
{
    const struct sched_stage *st = &w->stages[s];
    const struct spec *spec = st->spec;
    int64_t n = st->stage->instance_count;
    int64_t held = w->slots[type].held + w->slots[type].foreign + n;
    int64_t live = w->campaigns[st->campaign_i].live + 1;
    int64_t of_type = w->campaigns[st->campaign_i].type_held[0] + n;
    struct sched_launch one = {.stage_i = s, .slots_i = type};
    one.max_runtime_s = MIN(st->stage->min_runtime_s, st->stage->max_runtime_s);
    musd_t need = w->slots[type].price_musd_per_hour < 0 ? INT64_MAX : reserve_of(w, &one);
    musd_t left = w->campaigns[st->campaign_i].left_musd;
    musd_t stage_left = st->stage_left_musd;
    const struct sched_project *project = &w->projects[w->campaigns[st->campaign_i].project_i];
    const struct quota_ledger_total *total = &w->account.total[MARKET_ON_DEMAND];
    int64_t project_live = project->live + 1;
    int64_t all_live = w->view.live + 1;
    int64_t stage_live = st->live + 1;
    int64_t all_held = total->held + n;
    musd_t project_left = project->left_musd;
    musd_t all_left = w->view.left_musd;
    bool limited =
        spec->instances_n > 0 && strcmp(spec->instances[0].instance_type, type_names[type]) == 0;
    for (int i = 0; i < p->launches_n; i++) {
        const struct sched_launch *l = &p->launches[i];
        const struct sched_stage *o = &w->stages[l->stage_i];
        if (o->priority < st->priority) {
            continue;
        }
        held += l->slots_i == type ? o->stage->instance_count : 0;
        all_held += o->stage->instance_count;
        all_live++;
        all_left -= all_left == INT64_MAX ? 0 : l->reserve_musd;
        stage_live += l->stage_i == s;
        if (&w->projects[w->campaigns[o->campaign_i].project_i] == project) {
            project_live++;
            project_left -= project_left == INT64_MAX ? 0 : l->reserve_musd;
        }
        if (o->campaign_i == st->campaign_i) {
            live++;
            of_type += l->slots_i == type ? o->stage->instance_count : 0;
            left -= left == INT64_MAX ? 0 : l->reserve_musd;
        }
        stage_left -= l->stage_i == s && stage_left != INT64_MAX ? l->reserve_musd : 0;
    }
    if ((st->parts_limit >= 0 && stage_live > st->parts_limit) ||
        (project->parts_limit >= 0 && project_live > project->parts_limit) ||
        (w->view.parts_limit >= 0 && all_live > w->view.parts_limit) ||
        (total->limit >= 0 && all_held > total->limit) || need > project_left || need > all_left) {
        return false;
    }
    return held <= w->slots[type].quota &&
           (w->campaigns[st->campaign_i].parts_limit < 0 ||
            live <= w->campaigns[st->campaign_i].parts_limit) &&
           (!limited || of_type <= spec->instances[0].n) && need != INT64_MAX && need <= left &&
           need <= stage_left && need <= st->part_cap_musd;
}

/* Does a job of several instances of the same type wait whose slots may be kept for it? */
static bool gang_waits(const struct world *w, const struct sched_plan *p, const char *type)
{
    for (int s = 0; s < w->view.stages_n; s++) {
        const struct spec_stage *st = w->stages[s].stage;
        for (int r = 0; r < st->instance_type_n; r++) {
            if (st->instance_count > 1 && strcmp(st->instance_type[r], type) == 0 &&
                p->reason[s] != WAIT_NONE) {
                return true;
            }
        }
    }
    return false;
}

/* No first task of a stage waits beside a launch of lower priority in whose place it would fit. */
static int check_order(const struct world *w, const struct sched_plan *p)
{
    int checked = 0;
    for (int s = 0; s < w->view.stages_n; s++) {
        const struct sched_stage *st = &w->stages[s];
        struct ready_queue_task first;
        if (!st->may_start || !ready_queue_peek(st->ready, w->view.now_us, &first) ||
            w->change[first.task_id].rung >= 0 || st->stage->instance_type_n > 1 ||
            gang_waits(w, p, st->stage->instance_type[0])) {
            continue;
        }
        bool lower_started = false;
        for (int i = 0; i < p->launches_n; i++) {
            lower_started =
                lower_started || w->stages[p->launches[i].stage_i].priority < st->priority;
        }
        int type = 0;
        while (strcmp(type_names[type], st->stage->instance_type[0]) != 0) {
            type++;
        }
        if (lower_started) {
            assert_false(fits_without_lower(w, p, s, type));
            checked++;
        }
    }
    return checked;
}

static void check_same(const struct sched_plan *a, const struct sched_plan *b, int stages_n)
{
    assert_int_equal(a->launches_n, b->launches_n);
    assert_int_equal(a->wake_us, b->wake_us);
    for (int i = 0; i < a->launches_n; i++) {
        assert_int_equal(a->launches[i].task.task_id, b->launches[i].task.task_id);
        assert_int_equal(a->launches[i].slots_i, b->launches[i].slots_i);
        assert_int_equal(a->launches[i].max_runtime_s, b->launches[i].max_runtime_s);
        assert_int_equal(a->launches[i].reserve_musd, b->launches[i].reserve_musd);
    }
    for (int s = 0; s < stages_n; s++) {
        assert_int_equal(a->reason[s], b->reason[s]);
    }
}

static void test_sched_random__random_views_keep_every_promise(void **state)
{
    (void)state;
    int64_t launches = 0;
    int ordered = 0;
    for (uint64_t seed = 1; seed <= 10000; seed++) {
        struct world *w = world_random(seed);
        struct world *twin = world_random(seed);
        struct sched_plan *p = decide(w);
        struct sched_plan *q = decide(twin);
        check_bounds(w, p);
        check_levels(w, p);
        check_reasons(w, p);
        ordered += check_order(w, p);
        check_same(p, q, w->view.stages_n);
        launches += p->launches_n;
        plan_free(p);
        plan_free(q);
        world_free(w);
        world_free(twin);
    }
    (void)printf("# %lld launches in 10,000 random views, order checked at %d waiting stages\n",
                 (long long)launches, ordered);
    assert_true(launches > 10000);
    assert_true(ordered > 1000);
}

/* Ticks after ticks with jobs that end: everything that can start has started in the end. */
static void test_sched_random__everything_gets_its_turn(void **state)
{
    (void)state;
    struct world *w = world_new();
    int a = add_stage(w, add_campaign(w), 0, 30);
    int b = add_stage(w, add_campaign(w), 0, 30);
    int gang = add_stage(w, add_campaign(w), 0, 2);
    w->stage[gang].instance_count = 10;
    struct sched_plan *p = xcalloc(1, sizeof *p);
    int started = 0;
    for (int tick = 0; tick < 100 && started < 62; tick++) {
        sched_decide(&w->view, p);
        started += p->launches_n;
        check_bounds(w, p);
        /* all that started has ended by the next tick */
    }
    assert_int_equal(started, 62);
    assert_int_equal(ready_queue_n(w->stages[a].ready) + ready_queue_n(w->stages[b].ready), 0);
    plan_free(p);
    world_free(w);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sched_random__random_views_keep_every_promise),
        cmocka_unit_test(test_sched_random__everything_gets_its_turn),
    };
    return cmocka_run_group_tests_name("sched_random", tests, NULL, NULL);
}
