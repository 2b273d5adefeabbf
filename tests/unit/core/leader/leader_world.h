/* A leader's state made by hand, without store or AWS: one campaign (id 7, project 3) with one
 * running stage (id 70) of part jobs on a ladder of two types, and attempts and pools as asked for.
 * Prices: ml.a.large 3.60 USD an hour, ml.b.large 36 USD. */
#pragma once
#include "core/leader/awake.h"
#include "core/sched/ready_queue.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>

#define WALL INT64_C(1700000000000000)
#define BOOT INT64_C(5000000000)
#define SEC  USEC_PER_SEC
#define USD  INT64_C(1000000)

struct leader_world {
    struct leader_state s;
    struct spec_stage spec;
    struct live_campaign *lc;
    struct live_stage *ls;
};

UNUSED static struct live_campaign *leader_world_campaign(struct leader_world *w, int64_t id,
                                                          int64_t project_id)
{
    struct live_campaign *lc = xcalloc(1, sizeof *lc);
    lc->row = (struct campaign_row){.id = id,
                                    .project_id = project_id,
                                    .name = "laion",
                                    .state = CAMPAIGN_RUNNING,
                                    .wanted = WANTED_RUN,
                                    .parts_limit = -1,
                                    .cap_musd = -1,
                                    .weight = 100};
    lc->stages_n = 1;
    lc->stages = xcalloc(1, sizeof *lc->stages);
    struct live_stage *ls = &lc->stages[0];
    ls->row = (struct stage_row){.id = id * 10,
                                 .campaign_id = id,
                                 .name = "shards",
                                 .state = STAGE_RUNNING,
                                 .tasks = 100,
                                 .cap_musd = -1,
                                 .per_task_musd = -1,
                                 .parts_limit = -1};
    ls->row.counts[TASK_WAITING] = 100;
    ls->spec = &w->spec;
    ls->ready = ready_queue_new();
    ls->loaded = 100000; /* every part is in its queue or runs */
    breaker_init(&ls->breaker);
    ls->rules = (struct breaker_rules){.canary = 3, .k = 3, .n = 10, .quarantine = 3};
    arena_init(&lc->arena, 4096);
    leader_state_add_campaign(&w->s, lc);
    return lc;
}

UNUSED static void leader_world_init(struct leader_world *w)
{
    memset(w, 0, sizeof *w);
    leader_state_init(&w->s);
    rng_seed(&w->s.rng, 1);
    w->spec = (struct spec_stage){.instance_type = {"ml.a.large", "ml.b.large"},
                                  .instance_type_n = 2,
                                  .instance_count = 1,
                                  .volume_gb = 30,
                                  .max_runtime_s = 3600,
                                  .min_runtime_s = 600,
                                  .per_task_musd = -1};
    w->s.projects_n = 3;
    w->s.projects = xcalloc(3, sizeof *w->s.projects);
    w->s.projects[0] = (struct project_row){.id = 0, .cap_musd = -1, .parts_limit = -1};
    w->s.projects[1] = (struct project_row){.id = 3, .cap_musd = -1, .parts_limit = -1};
    w->s.projects[2] = (struct project_row){.id = 4, .cap_musd = -1, .parts_limit = -1};
    (void)snprintf(w->s.projects[1].name, sizeof w->s.projects[1].name, "vision");
    leader_state_slots(&w->s, "ml.a.large", MARKET_ON_DEMAND)->s.price_musd_per_hour = 3600000;
    leader_state_slots(&w->s, "ml.b.large", MARKET_ON_DEMAND)->s.price_musd_per_hour = 36000000;
    w->lc = leader_world_campaign(w, 7, 3);
    w->ls = &w->lc->stages[0];
    w->s.tries_unread = false;
}

UNUSED static void leader_world_done(struct leader_world *w)
{
    leader_state_done(&w->s);
}

/* Attempt `id` of task 1000 + id, intended with 2 USD reserved, holding `instances` slots. */
UNUSED static struct live_attempt *leader_world_attempt(struct leader_world *w, int64_t id,
                                                        int instances)
{
    struct attempt_row row = {.id = id,
                              .project_id = 3,
                              .campaign_id = w->lc->row.id,
                              .stage_id = w->ls->row.id,
                              .task_id = 1000 + id,
                              .seq = (int32_t)id,
                              .n = 1,
                              .state = ATTEMPT_INTENDED,
                              .epoch = 1,
                              .instances = instances,
                              .max_runtime_s = 3600,
                              .price_musd_per_hour = 3600000,
                              .reserved_musd = 2 * USD,
                              .open_musd = 2 * USD,
                              .holds = true,
                              .intended_us = WALL - 1000 * SEC,
                              .market = MARKET_ON_DEMAND,
                              .size = INT64_C(300) * 1024 * 1024};
    (void)snprintf(row.name.s, sizeof row.name.s, "d-7-shards-%lld-a1-00000000", (long long)id);
    (void)snprintf(row.instance_type, sizeof row.instance_type, "ml.a.large");
    struct live_attempt *a = leader_state_add_attempt(&w->s, &row, w->lc);
    protocol_intended(&a->p);
    slots_hold(leader_state_slots(&w->s, "ml.a.large", MARKET_ON_DEMAND), instances);
    task_counts_move(w->lc, w->ls, TASK_WAITING, TASK_ACTIVE, 1);
    breaker_started(&w->ls->breaker, id);
    return a;
}

/* The attempt's job is in `state` and ran for an hour: 3.60 USD an instance. */
UNUSED static void leader_world_ran(struct live_attempt *a, enum attempt_state state)
{
    a->row.started_us = WALL - 3700 * SEC;
    a->row.ended_us = WALL - 100 * SEC;
    a->billable_s = 3600;
    a->row.state = ATTEMPT_RUNNING;
    a->p.state = state;
}

/* A pool of job `job`, in `state`, that `a` leaves (NULL: it stands alone). */
UNUSED static struct live_pool *leader_world_pool(struct leader_world *w, int64_t id,
                                                  enum pool_state state, struct live_attempt *a)
{
    struct pool_row row = {.id = id,
                           .attempt_id = a != NULL ? a->row.id : 900 + id,
                           .campaign_id = w->lc->row.id,
                           .stage_id = w->ls->row.id,
                           .state = state,
                           .instances = a != NULL ? a->row.instances : 1,
                           .keep_alive_s = 600,
                           .expires_us = WALL + 600 * SEC,
                           .price_musd_per_hour = 3600000};
    (void)snprintf(row.job.s, sizeof row.job.s, "d-7-shards-pool-%lld", (long long)id);
    (void)snprintf(row.instance_type, sizeof row.instance_type, "ml.a.large");
    struct live_pool *p = leader_state_add_pool(&w->s, &row, w->lc);
    p->attempt = a;
    if (a != NULL) {
        a->pool = p;
        a->row.keep_alive_s = 600;
    } else if (state == POOL_AVAILABLE) {
        slots_idle(leader_state_slots(&w->s, "ml.a.large", MARKET_ON_DEMAND), row.instances);
    }
    return p;
}
