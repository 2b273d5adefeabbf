/* Aim: no plan uses a pool or a slot twice, gives a pool to a task that SageMaker would not, keeps
 * more than the warm quota takes, or differs for equal views. Method: 4,000 random views, each plan
 * checked field by field, without the fingerprint. */
#include "common/rng.h"
#include "sched_warm_pool_world.h"

static struct world *world_random(struct rng *rng)
{
    struct world *w = world_new();
    for (int t = 0; t < TYPES; t++) {
        w->slots[t].quota = (int64_t)rng_below(rng, 12);
        w->slots[t].warm_quota = (int64_t)rng_below(rng, 12);
    }
    int campaigns = 1 + (int)rng_below(rng, 3);
    for (int i = 0; i < campaigns; i++) {
        (void)add_campaign(w);
    }
    int stages = 1 + (int)rng_below(rng, 5);
    for (int i = 0; i < stages; i++) {
        int s = add_stage(w, (int)rng_below(rng, (uint64_t)campaigns), (int)rng_below(rng, TYPES),
                          (int)rng_below(rng, 8));
        w->stage[s].volume_gb = 30 + (int)rng_below(rng, 2);
        w->stage[s].role = rng_chance(rng, 0.2) ? "other" : "role";
        w->stage[s].instance_count = rng_chance(rng, 0.2) ? 2 : 1;
        w->stages[s].priority = 50 + (int)rng_below(rng, 2);
        w->stages[s].warm = (struct warm_pool_policy){rng_chance(rng, 0.3) ? 900 : -1, -1, true};
        w->stages[s].may_start = rng_chance(rng, 0.9);
        w->stages[s].why_not = WAIT_PAUSED;
        if (rng_chance(rng, 0.3)) {
            w->stage[s].instance_type[1] = type_names[rng_below(rng, TYPES)];
            w->stage[s].instance_type_n = 2;
        }
    }
    for (int64_t id = 1; id <= w->tasks_n; id++) {
        if (rng_chance(rng, 0.1)) {
            w->change[id] = (struct change){0, 31, 0};
        }
    }
    int n = (int)rng_below(rng, POOLS + 1);
    for (int i = 0; i < n; i++) {
        int p = add_pool(w, (int)rng_below(rng, (uint64_t)stages));
        pools[p].ending = rng_chance(rng, 0.1);
        pools[p].expires_us = NOW + (usec_t)rng_below(rng, 60) * SEC;
        if (rng_chance(rng, 0.3)) {
            pools[p].state = POOL_EXPECTED;
            pools[p].available_us = NOW + ((usec_t)rng_below(rng, 80) - 40) * SEC;
        }
    }
    for (int t = 0; t < TYPES; t++) {
        int64_t room = w->slots[t].quota - w->slots[t].warm_idle;
        w->slots[t].held = room > 0 ? (int64_t)rng_below(rng, (uint64_t)room + 1) : 0;
    }
    w->view.tokens = (int64_t)rng_below(rng, 9);
    return w;
}

/* Every field SageMaker compares, of the launch and of the stage that left the pool. */
static void assert_matches(const struct world *w, const struct sched_launch *l)
{
    const struct warm_pool *p = &pools[l->pool_i];
    const struct spec_stage *left = &w->stage[p->stage_id - 1];
    const struct spec_stage *takes = &w->stage[l->stage_i];
    assert_int_equal(p->state, POOL_AVAILABLE);
    assert_false(p->ending);
    assert_string_equal(takes->instance_type[l->instance_type_i], left->instance_type[0]);
    assert_int_equal(takes->instance_count, left->instance_count);
    assert_int_equal(l->volume_gb, left->volume_gb);
    assert_string_equal(takes->role, left->role);
}

static void check(const struct world *w, const struct sched_plan *p, int *reused)
{
    int64_t added[TYPES] = {0};
    int64_t kept_n[TYPES] = {0};
    bool used[POOLS] = {false};
    for (int i = 0; i < p->launches_n; i++) {
        const struct sched_launch *l = &p->launches[i];
        int64_t n = w->stage[l->stage_i].instance_count;
        kept_n[l->slots_i] += l->keep_alive_s > 0 ? n : 0;
        if (l->pool_i < 0) {
            added[l->slots_i] += n;
            continue;
        }
        assert_false(used[l->pool_i]);
        used[l->pool_i] = true;
        kept_n[l->slots_i] -= n; /* what it moves */
        assert_matches(w, l);
        (*reused)++;
    }
    for (int t = 0; t < TYPES; t++) {
        const struct quota_ledger *s = &w->slots[t];
        assert_true(added[t] == 0 || s->held + s->warm_idle + added[t] <= s->quota);
        assert_true(kept_n[t] <= 0 || s->warm_held + kept_n[t] <= s->warm_quota);
    }
    for (int i = 0; i < p->pool_ends_n; i++) {
        int pool_i = p->pool_ends[i].pool_i;
        assert_false(used[pool_i]);
        used[pool_i] = true; /* not twice either */
        assert_int_equal(pools[pool_i].state, POOL_AVAILABLE);
        assert_false(pools[pool_i].ending);
        assert_int_not_equal(p->pool_ends[i].why, WARM_POOL_KEEP);
    }
    assert_true(p->launches_n <= w->view.tokens);
}

static void test_sched_warm_pool_random__no_pool_or_slot_is_used_twice(void **state)
{
    (void)state;
    int reused = 0;
    int ended = 0;
    int awaited = 0;
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        struct world *w = world_random(&rng);
        struct sched_plan *p = plan_of(w);
        check(w, p, &reused);
        ended += p->pool_ends_n;
        for (int s = 0; s < w->view.stages_n; s++) {
            awaited += p->reason[s] == WAIT_HAND_OVER;
        }
        world_free(w);
        rng_seed(&rng, seed);
        w = world_random(&rng); /* the same again */
        struct sched_plan *q = plan_of(w);
        assert_int_equal(p->launches_n, q->launches_n);
        assert_memory_equal(p->launches, q->launches,
                            (size_t)p->launches_n * sizeof p->launches[0]);
        assert_int_equal(p->pool_ends_n, q->pool_ends_n);
        assert_memory_equal(p->pool_ends, q->pool_ends,
                            (size_t)p->pool_ends_n * sizeof p->pool_ends[0]);
        plan_free(p);
        plan_free(q);
        world_free(w);
    }
    (void)printf("# %d pools taken, %d ended, %d stages waited for one\n", reused, ended, awaited);
    assert_true(reused > 1000 && ended > 1000 && awaited > 100);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sched_warm_pool_random__no_pool_or_slot_is_used_twice),
    };
    return cmocka_run_group_tests_name("sched_warm_pool_random", tests, NULL, NULL);
}
