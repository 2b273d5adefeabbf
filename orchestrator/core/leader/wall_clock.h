/* The wall clock may step while a leader lives; what it waits for may not. An instant in memory
 * that is compared with the wall clock later moves with each step, so it stays as far away as it
 * was by CLOCK_BOOTTIME: back-offs of parts and of done_if, pools, rungs, reservations, others' use
 * of a quota. Rows keep the times they were written with, and a takeover reads them so; what it
 * reads is bounded (rows_task, leader_pool_timed). Times that AWS or S3 told of jobs do not move;
 * nor do those of endpoints and file systems, which people were shown: they are by AWS's clock,
 * whatever this one does, and nothing of them is over before AWS has told its clock. Pure. */
#pragma once
#include "leader_state.h"

/* Called before each use of the wall clock: wall_us and boot_us were read together, told_us is how
 * far AWS's clock is ahead of this one, as its last answer told (0: not known), of `answers` so
 * far. Returns the step that it found, 0: none. O(all parts that wait) at a step, else O(1). */
int64_t leader_wall_clock(struct leader_state *s, usec_t wall_us, int64_t boot_us, int64_t told_us,
                          uint64_t answers);

/* The time t of AWS's clock by ours. */
usec_t leader_wall_of_aws(const struct leader_state *s, usec_t t);
/* The time now_us of ours by AWS's clock, which no step of ours moves; s->clock.unsure: as far as
 * that is known. */
usec_t leader_wall_to_aws(const struct leader_state *s, usec_t now_us);
