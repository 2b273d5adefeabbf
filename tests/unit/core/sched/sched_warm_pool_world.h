/* Views with warm pools: sched_world.h and a few pools. */
#pragma once
#include "sched_world.h"

#define SEC   USEC_PER_SEC
#define POOLS 8

UNUSED static struct warm_pool pools[POOLS];

/* An available pool left by stage s, which lasts another 150 s. */
UNUSED static int add_pool(struct world *w, int s)
{
    int i = w->view.pools_n++;
    assert_true(i < POOLS);
    const struct spec_stage *st = &w->stage[s];
    int slots_i = 0;
    while (strcmp(w->slots[slots_i].instance_type, st->instance_type[0]) != 0) {
        slots_i++;
    }
    pools[i] = (struct warm_pool){.attempt_id = 100 + i,
                                  .campaign_id = w->stages[s].campaign_id,
                                  .stage_id = w->stages[s].stage_id,
                                  .fingerprint = warm_pool_fingerprint_of(st, 0, st->volume_gb, -1),
                                  .slots_i = slots_i,
                                  .instances = st->instance_count,
                                  .state = POOL_AVAILABLE,
                                  .keep_alive_s = 160,
                                  .available_us = NOW - 10 * SEC,
                                  .expires_us = NOW + 150 * SEC,
                                  .price_musd_per_hour = 3600000};
    w->slots[slots_i].warm_idle += st->instance_count;
    w->slots[slots_i].warm_held += st->instance_count;
    w->view.pools = pools;
    return i;
}

/* One stage with n tasks on type 0, whose 10 slots are used but for what pools keep. */
UNUSED static struct world *full_world(int n, int pools_n)
{
    struct world *w = world_new();
    (void)add_stage(w, add_campaign(w), 0, n);
    w->stages[0].warm = (struct warm_pool_policy){0, -1, true};
    for (int i = 0; i < pools_n; i++) {
        (void)add_pool(w, 0);
    }
    w->slots[0].held = 10 - pools_n;
    return w;
}

/* A plan; the queues are as before it. */
UNUSED static struct sched_plan *plan_of(struct world *w)
{
    struct sched_plan *p = decide(w);
    for (int i = 0; i < p->launches_n; i++) {
        ready_queue_push(w->stages[p->launches[i].stage_i].ready, &p->launches[i].task);
    }
    return p;
}

UNUSED static int ends_of(const struct sched_plan *p, enum warm_pool_end why)
{
    int n = 0;
    for (int i = 0; i < p->pool_ends_n; i++) {
        n += p->pool_ends[i].why == why;
    }
    return n;
}

#define assert_plan(w, launches, reason_, ends, why)                                               \
    do {                                                                                           \
        struct sched_plan *plan_ = plan_of(w);                                                     \
        assert_int_equal(plan_->launches_n, launches);                                             \
        assert_reason(plan_, 0, reason_);                                                          \
        assert_int_equal(ends_of(plan_, why), ends);                                               \
        assert_int_equal(plan_->pool_ends_n, ends);                                                \
        plan_free(plan_);                                                                          \
    } while (0)
