/* Where an attempt goes: a ladder of instance types, on each the subnets, with memory of which rung
 * has capacity now. One struct place a stage; the caller keeps it. Pure; wall clock. */
#pragma once
#include "spec.h"

#define PLACE_SUBNETS_MAX 16
#define PLACE_RUNGS_MAX   (SPEC_LADDER_MAX * PLACE_SUBNETS_MAX)

struct place_rung {
    usec_t shut_until_us; /* a capacity error shut it; 0: open */
    int failures;         /* capacity errors in a row: shut for 2, 4, 8 .. 60 min */
};
struct place {
    struct place_rung rung[PLACE_RUNGS_MAX]; /* type-major: all subnets of type 0 first */
};
struct place_choice {
    int instance_type_i; /* of the stage's ladder */
    int subnet_i;        /* -1: the stage names none, or all are sent */
    bool probe;          /* every rung is shut: this one is tried since it opens first */
    usec_t open_us;      /* when !ok: the earliest time a rung opens */
};
/* The first open rung at or below `from_type` that `fits` (slots and quota; may be NULL). False:
 * none is open now. */
bool place_choose(const struct place *p, const struct spec_stage *stage, int from_type,
                  usec_t now_us, bool (*fits)(void *ctx, int instance_type_i), void *ctx,
                  struct place_choice *ret);
/* A capacity error on a rung; a start on it (running) opens it again. */
void place_refused(struct place *p, const struct spec_stage *stage, int instance_type_i,
                   int subnet_i, usec_t now_us);
void place_worked(struct place *p, const struct spec_stage *stage, int instance_type_i,
                  int subnet_i);
