/* What a seed draws first: which faults exist and how strong they are, and all sizes. Most
 * faults are absent from most worlds; a few are overwhelming. */
#include "sim_world.h"

static double strength(struct rng *r)
{
    uint64_t kind = rng_below(r, 20);
    if (kind < 12) {
        return 0;
    }
    if (kind < 16) {
        return 0.01 + 0.1 * rng_unit(r);
    }
    return kind < 19 ? 0.1 + 0.2 * rng_unit(r) : 0.3 + 0.7 * rng_unit(r);
}

void swarm_draw(uint64_t seed, struct sim_config *ret)
{
    struct rng root, r;
    rng_seed(&root, seed);
    rng_split(&root, "swarm", &r);
    *ret = (struct sim_config){.seed = seed};
    bool calm_world = rng_chance(&r, 0.05); /* and some worlds have no fault at all */
    for (int f = 0; f < FAULT_N; f++) {
        ret->strength[f] = strength(&r);
        if (calm_world) {
            ret->strength[f] = 0;
        }
    }
    rng_split(&root, "sizes", &r);
    ret->ctls = rng_chance(&r, 0.5) ? 1 : (int)between(&r, 2, CTLS_MAX);
    ret->projects = (int)between(&r, 1, PROJECTS_MAX);
    ret->campaigns = rng_chance(&r, 0.5) ? 1 : (int)between(&r, 2, CAMPAIGNS_MAX - 2);
    ret->types = (int)between(&r, 1, TYPES_MAX);
    ret->parts = rng_chance(&r, 0.7) ? 128 : (int)between(&r, 1, 256);
    ret->fault_us = between(&r, 20, 240) * MINUTE;
    ret->tick_us = between(&r, 1, 10) * SEC;
    ret->observe_us = between(&r, 5, 30) * SEC;
    ret->lease_us = between(&r, 5, 15) * SEC;
    ret->renew_us = ret->lease_us * between(&r, 20, 40) / 100;
    ret->poll_us = between(&r, 1000, 5000) * 1000;
    ret->quota_us = between(&r, 60, 900) * SEC;
    ret->window_us = 15 * MINUTE;
    ret->create_rate = (double)between(&r, 1, 4);
    ret->create_burst = (double)between(&r, 1, 16);
}
