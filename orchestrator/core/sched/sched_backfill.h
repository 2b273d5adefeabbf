/* The reservations of one plan and the limits each must fit into. Used by sched_reservation.c only.
 *
 * Each limit that a multi-instance task must fit into is a room, counted separately: the slots of
 * its type, the quota over all types, the campaign's own limit of that type. */
#pragma once
#include "sched_work.h"

#define SCHED_COLD_START_S 180 /* used until the stage's own is learned */

enum room_kind { ROOM_TYPE, ROOM_TOTAL, ROOM_LIMIT, ROOMS };

struct room {
    bool on;
    int64_t usable; /* maximum instances of ours */
    /* Instances whose P90 end is after the target or only a bound: a bound may be far later than
     * the actual end, and waiting for it would delay the start. */
    int64_t late;
    struct reservation_odds odds; /* at the target */
};
struct backfill_line {
    int stage_i, slots_i, campaign_i, limit_i, priority, instances;
    uint32_t size_mb;
    bool confirmed; /* its task was examined in this plan and still waits for slots */
    bool gone;      /* started or dropped */
    bool started;   /* in this plan */
    struct reservation *kept;
    struct reservation own; /* used when the caller keeps none */
    struct room room[ROOMS];
};
struct user { /* a holder of instances and the end of its use */
    int slots_i, campaign_i;
    const struct sched_job *job; /* whose end was not asked for yet; NULL: `end` is known */
    struct reservation_end end;
};
struct sched_reservations {
    struct backfill_line *at; /* one per stage with instance_count > 1 */
    int n;
    struct user *users; /* live jobs, then the launches of this plan */
    int users_n;
    struct reservation_end *scratch; /* space for every user and reservation */
    int searches;
};

/* True when a holder on these slots, of this campaign, uses this room of r. */
bool sched_backfill_inside(const struct sched_work *w, const struct backfill_line *r,
                           enum room_kind kind, int slots_i, int campaign_i);
/* The end of a task that would start at this time. */
void sched_backfill_task_end(const struct sched_work *w, const struct sched_try *t, usec_t at_us,
                             struct reservation_end *ret);
/* A strict order: priority, age, stage. */
bool sched_backfill_ahead(const struct backfill_line *a, const struct backfill_line *b);
/* The reservation of this stage; NULL: no reservation, or no longer. */
struct backfill_line *sched_backfill_find(const struct sched_work *w, int stage_i);
/* Add a holder until then, seen from r's target. */
void sched_backfill_room_add(const struct backfill_line *r, struct room *m,
                             const struct reservation_end *end);
/* True when it could run if all of ours ended. Fills its rooms' usable. */
bool sched_backfill_could(const struct sched_work *w, struct backfill_line *r);
void sched_backfill_describe(const struct sched_work *w, const struct sched_try *t,
                             struct backfill_line *ret);
/* Puts it in line: times, odds and what is spare; those behind it reckon with it from now on. */
struct backfill_line *sched_backfill_reserve(struct sched_work *w,
                                             const struct backfill_line *like);
void sched_backfill_drop(struct backfill_line *r);
