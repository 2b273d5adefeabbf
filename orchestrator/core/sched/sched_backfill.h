/* The reservations of one plan and what each needs room in. For sched_gang.c alone.
 *
 * What must have room at the start of a gang is counted apart: the slots of its type, the quota
 * over all types, the campaign's own limit of that type. */
#pragma once
#include "sched_work.h"

#define SCHED_COLD_START_S 180 /* until a stage's own is learned */

enum room_kind { ROOM_TYPE, ROOM_TOTAL, ROOM_LIMIT, ROOMS };

struct room {
    bool on;
    int64_t usable; /* instances of ours it holds at most */
    /* Instances whose P90 end lies after the target, or is no more than a bound: what merely must
     * end by then may hold up a gang that could start long before. */
    int64_t late;
    struct gang_odds odds; /* at the target */
};
struct reservation {
    int stage_i, slots_i, campaign_i, limit_i, priority, instances;
    uint32_t size_mb;
    bool confirmed; /* its task was looked at in this plan and still waits for slots */
    bool gone;      /* started or dropped */
    bool started;   /* in this plan */
    struct gang *kept;
    struct gang own; /* where nobody keeps one */
    struct room room[ROOMS];
};
struct user { /* somebody who holds instances, and until when */
    int slots_i, campaign_i;
    struct gang_end end;
};
struct sched_gangs {
    struct reservation *at; /* room for one a stage of several instances */
    int n;
    struct user *users; /* live jobs, then the launches of this plan */
    int users_n;
    struct gang_end *scratch; /* room for every user and reservation */
    int searches;
};

/* Does somebody on these slots, of this campaign, take from this room of r? */
bool sched_line_inside(const struct sched_work *w, const struct reservation *r, enum room_kind kind,
                       int slots_i, int campaign_i);
void sched_line_job_end(const struct sched_view *v, const struct sched_job *j,
                        struct gang_end *ret);
/* The end of a task that would start at this time. */
void sched_line_task_end(const struct sched_work *w, const struct sched_try *t, usec_t at_us,
                         struct gang_end *ret);
/* A strict order: priority, age, stage. */
bool sched_line_ahead(const struct reservation *a, const struct reservation *b);
/* Of this stage; NULL: none, or none any more. */
struct reservation *sched_line_find(const struct sched_work *w, int stage_i);
/* One that is held until then, seen from r's target. */
void sched_line_room_add(const struct reservation *r, struct room *m, const struct gang_end *end);
/* Could it run when all of ours were back? Fills its rooms' usable. */
bool sched_line_could(const struct sched_work *w, struct reservation *r);
void sched_line_describe(const struct sched_work *w, const struct sched_try *t,
                         struct reservation *ret);
/* Puts it in line: times, odds and what is spare; those behind it reckon with it from now on. */
struct reservation *sched_line_reserve(struct sched_work *w, const struct reservation *like);
void sched_line_drop(struct reservation *r);
