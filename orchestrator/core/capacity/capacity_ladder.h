/* Chooses instance type and subnet of an attempt: a ladder of instance types, on each the subnets,
 * with memory of which rung has capacity. The caller keeps one struct capacity_ladder per stage.
 * Pure; wall clock.
 *
 * A rung is open, or shut for some time after a capacity error: for the stage's wait of cause
 * capacity (its retry row, else cause.def), doubled by each further error up to the row's longest
 * wait. When that time is over, one attempt probes it. Until the probe's result is known (or
 * CAPACITY_LADDER_PROBE_US have passed) other attempts go further down or wait, so that a whole
 * queue does not meet the same refusal. A stage with at most one subnet has one rung per type.
 */
#pragma once
#include "core/spec/spec.h"

#define CAPACITY_LADDER_SUBNETS_MAX 16
#define CAPACITY_LADDER_RUNGS_MAX   (SPEC_LADDER_MAX * CAPACITY_LADDER_SUBNETS_MAX)
#define CAPACITY_LADDER_PROBE_US                                                                   \
    INT64_C(900000000) /* a probe without a result by then is forgotten */

struct capacity_ladder_rung {
    usec_t shut_until_us;  /* a capacity error shut it; 0: open */
    usec_t probe_until_us; /* an attempt is probing it; 0: no probe */
    int failures;          /* capacity errors in a row; each doubles the wait */
};
struct capacity_ladder {
    struct capacity_ladder_rung
        rung[CAPACITY_LADDER_RUNGS_MAX]; /* type-major: all subnets of type 0 first */
};
struct capacity_ladder_choice {
    int instance_type_i; /* of the stage's ladder */
    int subnet_i;        /* -1: the stage names at most one subnet */
    /* the rung is no longer shut: one attempt at a time, marked by capacity_ladder_started */
    bool probe;
    /* when no rung is open: the earliest time one may open; USEC_NEVER: none fits */
    usec_t open_us;
};
/* Choose the first open rung at or below `from_type` that `fits` (slots and quota; NULL: all fit).
 * False: no rung is open now, and only ret->open_us is written. p NULL: no memory, all rungs
 * open. */
bool capacity_ladder_choose(const struct capacity_ladder *p, const struct spec_stage *stage,
                            int from_type, usec_t now_us,
                            bool (*fits)(void *ctx, int instance_type_i), void *ctx,
                            struct capacity_ladder_choice *ret);
/* An attempt was intended on a rung. When it is a probe, no other attempt uses the rung for now. */
void capacity_ladder_started(struct capacity_ladder *p, const struct spec_stage *stage,
                             int instance_type_i, int subnet_i, usec_t now_us);
/* A capacity error on a rung. Errors that arrive while it is shut belong to earlier requests and
 * are ignored. subnet_i -1: every subnet of that type. */
void capacity_ladder_refused(struct capacity_ladder *p, const struct spec_stage *stage,
                             int instance_type_i, int subnet_i, usec_t now_us);
/* An attempt runs there: open the rung again. */
void capacity_ladder_worked(struct capacity_ladder *p, const struct spec_stage *stage,
                            int instance_type_i, int subnet_i);
