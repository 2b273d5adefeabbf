/* Coverage of a run of many seeds: every site, every fault, and every edge of the state tables
 * except those listed here with the reason. */
#include "sim_world.h"
#include <stdio.h>

static const char *const site_words[] = {
#define X(s, text) #s,
#include "sim_sites.def"
#undef X
};

struct edge {
    int from, to;
};
/* It goes through UNKNOWN and VOID, see core/protocol/protocol.h. */
static const struct edge attempt_unused[] = {{ATTEMPT_INTENDED, ATTEMPT_FAILED},
                                             {ATTEMPT_INTENDED, ATTEMPT_CONFLICT}};
/* Nobody holds single parts; parts are skipped once they have failed. */
static const struct edge task_unused[] = {{TASK_WAITING, TASK_HELD},
                                          {TASK_WAITING, TASK_SKIPPED},
                                          {TASK_ACTIVE, TASK_SKIPPED},
                                          {TASK_HELD, TASK_WAITING},
                                          {TASK_HELD, TASK_FAILED},
                                          {TASK_HELD, TASK_SKIPPED},
                                          {TASK_HELD, TASK_CANCELLED},
                                          /* its file system is gone: the deep simulation's */
                                          {TASK_WAITING, TASK_FAILED}};
/* Only a running stage trips its breaker, and a stage is skipped only before it runs. */
static const struct edge stage_unused[] = {{STAGE_BLOCKED, STAGE_HELD},
                                           /* nothing is listed here */
                                           {STAGE_BLOCKED, STAGE_FAILED},
                                           {STAGE_RUNNING, STAGE_SKIPPED},
                                           {STAGE_HELD, STAGE_SKIPPED},
                                           {STAGE_HELD, STAGE_SUCCEEDED},
                                           /* its people retry only what failed as a whole */
                                           {STAGE_SUCCEEDED, STAGE_RUNNING},
                                           {STAGE_SKIPPED, STAGE_BLOCKED}};
/* The first move of a campaign is to running. */
static const struct edge campaign_unused[] = {
    {CAMPAIGN_PLANNED, CAMPAIGN_DRAINING},
    {CAMPAIGN_PLANNED, CAMPAIGN_PAUSED},
    {CAMPAIGN_PLANNED, CAMPAIGN_HELD},
    {CAMPAIGN_PLANNED, CAMPAIGN_FAILED},
    {CAMPAIGN_PLANNED, CAMPAIGN_CANCELLED},
    /* without live jobs it is paused, not drained; and it ends only after running again */
    {CAMPAIGN_PAUSED, CAMPAIGN_DRAINING},
    {CAMPAIGN_PAUSED, CAMPAIGN_SUCCEEDED},
    {CAMPAIGN_PAUSED, CAMPAIGN_FAILED},
    {CAMPAIGN_PAUSED, CAMPAIGN_HELD},
    {CAMPAIGN_HELD, CAMPAIGN_SUCCEEDED},
    {CAMPAIGN_HELD, CAMPAIGN_FAILED},
    {CAMPAIGN_DRAINING, CAMPAIGN_HELD},
    /* its people retry only what failed as a whole */
    {CAMPAIGN_SUCCEEDED, CAMPAIGN_RUNNING}};

static bool listed(const struct edge *e, size_t n, int from, int to)
{
    for (size_t i = 0; i < n; i++) {
        if (e[i].from == from && e[i].to == to) {
            return true;
        }
    }
    return false;
}

#define EDGES(name, COUNT, unused)                                                                 \
    for (int from = 0; from < COUNT; from++) {                                                     \
        for (int to = 0; to < COUNT; to++) {                                                       \
            bool edge = name##_edge((enum name##_state)from, (enum name##_state)to);               \
            edges += edge;                                                                         \
            if (edge && c->name[from][to] == 0 && !listed(unused, ARRAY_LEN(unused), from, to)) {  \
                printf("#   never: " #name " %s -> %s\n",                                          \
                       name##_state_name((enum name##_state)from),                                 \
                       name##_state_name((enum name##_state)to));                                  \
                missing++;                                                                         \
            }                                                                                      \
        }                                                                                          \
    }

bool cover_check(const struct coverage *c)
{
    /* The attempt's row has what runs on a pool; the pool's row only says whether it is kept. */
    static const struct edge pool_unused[] = {{POOL_EXPECTED, POOL_IN_USE},
                                              {POOL_IN_USE, POOL_AVAILABLE},
                                              {POOL_IN_USE, POOL_REUSED},
                                              {POOL_IN_USE, POOL_TERMINATED}};
    int missing = 0, edges = 0;
    for (int i = 0; i < SITE_N; i++) {
        if (c->sites[i] == 0) {
            printf("#   never: site %s\n", site_words[i]);
            missing++;
        }
    }
    for (int i = 0; i < FAULT_N; i++) {
        if (c->faults[i] == 0) {
            printf("#   never: fault %s\n", fault_word((enum harm)i));
            missing++;
        }
    }
    for (int i = 0; i < WAIT_REASON_COUNT; i++) {
        /* Reasons before the first plan, those of locks and refused rows, which this store
         * does not have, and those of endpoints and done_if, which nobody plays. */
        bool outside = i == WAIT_NEW || i == WAIT_LOCKED || i == WAIT_PARKED || i == WAIT_MODEL ||
                       i == WAIT_UNCHECKED || i == WAIT_FILESYSTEM;
        if (c->reasons[i] == 0 && !outside) {
            printf("#   never: reason %s\n", wait_reason_name((enum wait_reason)i));
            missing++;
        }
    }
    for (int i = CAUSE_NONE + 1; i < CAUSE_COUNT; i++) {
        if (c->causes[i] == 0) {
            printf("#   never: cause %s\n", cause_name((enum cause)i));
            missing++;
        }
    }
    EDGES(attempt, ATTEMPT_STATE_COUNT, attempt_unused)
    EDGES(task, TASK_STATE_COUNT, task_unused)
    EDGES(stage, STAGE_STATE_COUNT, stage_unused)
    EDGES(campaign, CAMPAIGN_STATE_COUNT, campaign_unused)
    EDGES(pool, POOL_STATE_COUNT, pool_unused)
    printf("%s - simulation: %d sites, %d faults and %d edges occurred; %d never did\n",
           missing == 0 ? "ok" : "not ok", SITE_N, FAULT_N, edges, missing);
    return missing == 0;
}
