/* The ladder's memory: a few numbers per rung, read from the top. */
#include "capacity_ladder.h"
#include "core/failure/retry_policy.h"

static int subnets_of(const struct spec_stage *stage)
{
    ASSERT(stage->subnets_n >= 0 && stage->subnets_n <= CAPACITY_LADDER_SUBNETS_MAX);
    ASSERT(stage->instance_type_n >= 1 && stage->instance_type_n <= SPEC_LADDER_MAX);
    return stage->subnets_n > 1 ? stage->subnets_n : 1;
}

static int rung_of(int instance_type_i, int subnet)
{
    return instance_type_i * CAPACITY_LADDER_SUBNETS_MAX + subnet;
}

/* True when the time is in the future. A time further away than any we set was set before the wall
 * clock went back and is ignored. */
static bool ahead(usec_t until_us, usec_t now_us, int64_t max_us)
{
    return until_us > now_us && until_us - now_us <= max_us;
}

/* How long a rung is shut after its first error, and at most. */
static int64_t shortest_us(const struct spec_stage *stage)
{
    return retry_row(stage, CAUSE_CAPACITY)->wait_from_s * USEC_PER_SEC;
}

static int64_t longest_us(const struct spec_stage *stage)
{
    return retry_row(stage, CAUSE_CAPACITY)->wait_to_s * USEC_PER_SEC;
}

static bool is_shut(const struct capacity_ladder_rung *r, const struct spec_stage *stage,
                    usec_t now_us)
{
    return ahead(r->shut_until_us, now_us, longest_us(stage));
}

/* When this rung may be tried; now_us: at once. */
static usec_t open_at(const struct capacity_ladder_rung *r, const struct spec_stage *stage,
                      usec_t now_us)
{
    usec_t at = is_shut(r, stage, now_us) ? r->shut_until_us : now_us;
    return ahead(r->probe_until_us, now_us, CAPACITY_LADDER_PROBE_US) ? MAX(at, r->probe_until_us)
                                                                      : at;
}

bool capacity_ladder_choose(const struct capacity_ladder *p, const struct spec_stage *stage,
                            int from_type, usec_t now_us,
                            bool (*fits)(void *ctx, int instance_type_i), void *ctx,
                            struct capacity_ladder_choice *ret)
{
    static const struct capacity_ladder all_open;
    const struct capacity_ladder *memory = p != NULL ? p : &all_open;
    int subnets = subnets_of(stage);
    usec_t open_us = USEC_NEVER;
    ASSERT(from_type >= 0);
    for (int type = from_type; type < stage->instance_type_n; type++) {
        if (fits != NULL && !fits(ctx, type)) {
            continue;
        }
        for (int subnet = 0; subnet < subnets; subnet++) {
            const struct capacity_ladder_rung *r = &memory->rung[rung_of(type, subnet)];
            usec_t at = open_at(r, stage, now_us);
            if (at <= now_us) {
                *ret = (struct capacity_ladder_choice){type, subnets > 1 ? subnet : -1,
                                                       r->failures > 0, now_us};
                return true;
            }
            open_us = MIN(open_us, at);
        }
    }
    ret->open_us = open_us;
    return false;
}

/* The range of rungs that subnet_i stands for: one, or with -1 all of the type. */
static void range(const struct spec_stage *stage, int instance_type_i, int subnet_i, int *ret_from,
                  int *ret_to)
{
    int subnets = subnets_of(stage);
    ASSERT(instance_type_i >= 0 && instance_type_i < stage->instance_type_n);
    ASSERT(subnet_i >= -1 && subnet_i < subnets);
    *ret_from = rung_of(instance_type_i, subnet_i < 0 ? 0 : subnet_i);
    *ret_to = subnet_i < 0 ? *ret_from + subnets : *ret_from + 1;
}

void capacity_ladder_started(struct capacity_ladder *p, const struct spec_stage *stage,
                             int instance_type_i, int subnet_i, usec_t now_us)
{
    int from, to;
    range(stage, instance_type_i, subnet_i, &from, &to);
    for (int i = from; i < to; i++) {
        if (p->rung[i].failures > 0 && !is_shut(&p->rung[i], stage, now_us)) {
            p->rung[i].probe_until_us = now_us + CAPACITY_LADDER_PROBE_US;
        }
    }
}

void capacity_ladder_refused(struct capacity_ladder *p, const struct spec_stage *stage,
                             int instance_type_i, int subnet_i, usec_t now_us)
{
    int from, to;
    range(stage, instance_type_i, subnet_i, &from, &to);
    for (int i = from; i < to; i++) {
        struct capacity_ladder_rung *r = &p->rung[i];
        if (is_shut(r, stage, now_us)) {
            continue;
        }
        int64_t shut_us = shortest_us(stage);
        for (int k = 0; k < r->failures && shut_us < longest_us(stage); k++) {
            shut_us *= 2;
        }
        /* far beyond the longest delay, so the shift does not overflow */
        r->failures = MIN(r->failures + 1, 16);
        r->shut_until_us = now_us + MIN(shut_us, longest_us(stage));
        r->probe_until_us = 0;
    }
}

void capacity_ladder_worked(struct capacity_ladder *p, const struct spec_stage *stage,
                            int instance_type_i, int subnet_i)
{
    int from, to;
    range(stage, instance_type_i, subnet_i, &from, &to);
    for (int i = from; i < to; i++) {
        p->rung[i] = (struct capacity_ladder_rung){0};
    }
}
