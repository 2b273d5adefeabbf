/* Where an attempt goes: a ladder of instance types, on each the subnets, with memory of which rung
 * has capacity now. One struct capacity_ladder a stage; the caller keeps it. Pure; wall clock.
 *
 * A rung is open, or shut after a capacity error until its time is over. Then one attempt probes
 * it: until that one has told (or CAPACITY_LADDER_PROBE_US have passed), others go further down or
 * wait, so that a whole queue does not run into the same refusal. A stage with one subnet or none
 * has one rung a type. */
#pragma once
#include "core/spec/spec.h"

#define CAPACITY_LADDER_SUBNETS_MAX 16
#define CAPACITY_LADDER_RUNGS_MAX   (SPEC_LADDER_MAX * CAPACITY_LADDER_SUBNETS_MAX)
#define CAPACITY_LADDER_SHUT_MIN_US                                                                \
    INT64_C(120000000) /* after the first capacity error, then doubled */
#define CAPACITY_LADDER_SHUT_MAX_US INT64_C(3600000000) /* never shut for longer */
#define CAPACITY_LADDER_PROBE_US                                                                   \
    INT64_C(900000000) /* a probe that has not told by then is forgotten */

struct capacity_ladder_rung {
    usec_t shut_until_us;  /* a capacity error shut it; 0: open */
    usec_t probe_until_us; /* an attempt probes it; 0: none does */
    int failures;          /* capacity errors in a row: shut for 2, 4, 8 .. 60 min */
};
struct capacity_ladder {
    struct capacity_ladder_rung
        rung[CAPACITY_LADDER_RUNGS_MAX]; /* type-major: all subnets of type 0 first */
};
struct capacity_ladder_choice {
    int instance_type_i; /* of the stage's ladder */
    int subnet_i;        /* -1: the stage names none, or its only one */
    bool probe; /* it was shut, its time is over: one attempt at a time, capacity_ladder_started */
    usec_t open_us; /* when none is open: the earliest time one may be; USEC_NEVER: none fits */
};
/* The first open rung at or below `from_type` that `fits` (slots and quota; may be NULL: all do).
 * False: none is open now, and of ret only open_us is written. p NULL: no memory, all open. */
bool capacity_ladder_choose(const struct capacity_ladder *p, const struct spec_stage *stage,
                            int from_type, usec_t now_us,
                            bool (*fits)(void *ctx, int instance_type_i), void *ctx,
                            struct capacity_ladder_choice *ret);
/* An attempt was intended on a rung: when that rung is a probe, nobody follows for now. */
void capacity_ladder_started(struct capacity_ladder *p, const struct spec_stage *stage,
                             int instance_type_i, int subnet_i, usec_t now_us);
/* A capacity error on a rung; those that come while it is shut were sent before and teach nothing
 * new. subnet_i -1: every subnet of that type. */
void capacity_ladder_refused(struct capacity_ladder *p, const struct spec_stage *stage,
                             int instance_type_i, int subnet_i, usec_t now_us);
/* An attempt runs there: open again. */
void capacity_ladder_worked(struct capacity_ladder *p, const struct spec_stage *stage,
                            int instance_type_i, int subnet_i);
