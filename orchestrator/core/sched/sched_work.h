/* Shared by the scheduler's files while a plan is made: what is left, and one task with everything
 * it would use. Other modules use sched.h. */
#pragma once
#include "sched.h"
#include "wait_reason.h"

#define SCHED_APART_MAX 1024 /* tasks of a stage set apart or readmitted in one plan */

/* What is left while the plan is made; the view is not changed. */
struct sched_work {
    const struct sched_view *view;
    struct sched_plan *plan;
    int64_t tokens;
    int64_t live;
    musd_t left;
    struct quota_ledger_account account;
    struct quota_ledger *slots;       /* [slots_n], with the plan's own launches */
    struct sched_project *projects;   /* [projects_n] */
    struct sched_campaign *campaigns; /* [campaigns_n] */
    struct sched_stage_left {         /* [stages_n] */
        int64_t live;                 /* of the stage */
        int64_t canary;               /* starts its breaker allows, INT64_MAX: any number */
        musd_t left_musd;             /* of the stage's cap */
        int slots_i[SPEC_LADDER_MAX]; /* into view->slots, per rung of the ladder; -1: none */
        int64_t turn;           /* order within its priority, smaller first (sched_reservation.c) */
        bool closed;            /* its reason is decided */
        int set_apart;          /* tasks, in this plan */
        bool tail_asked;        /* sched_tail_packing.c has looked at it */
        int tail_i, tail_n;     /* into tail: the tasks to start next, then the queue's order */
        int tail_group;         /* of them */
        enum wait_reason first; /* reason of the first group shut; NONE: no group yet */
        enum wait_reason plain; /* reason of the unchanged tasks, else of the first group */
        struct capacity_ladder
            *ladder; /* memory of its rungs with this plan's probe; NULL: the view's */
    } * stages;
    struct sched_order *order;
    struct ready_queue_task *tail; /* [tail_n]: tasks chosen by look-ahead, stage after stage */
    int tail_n, tails_n;
    struct sched_reservations *reservations; /* NULL: no stage has tasks of several instances */
    struct sched_warm_pool *warm;            /* sched_warm_pool.c's own */
};
/* One task with all it would take. */
struct sched_try {
    int stage_i, group; /* of its queue */
    struct ready_queue_task task;
    int rung, subnet_i, slots_i, pool_i;
    int limit_i; /* of spec->instances; -1: none */
    int volume_gb;
    int64_t max_runtime_s, min_runtime_s;
    int64_t keep_alive_s;
    uint64_t print; /* fingerprint of the pool it leaves; 0 without */
    musd_t reserve_musd;
    bool changed; /* by an earlier attempt */
    bool probe;   /* its rung was shut: no other task follows before its result */
};
/* What the task requests, including an earlier attempt's changes; then its rung (sched_ladder). */
enum wait_reason sched_prepare(const struct sched_work *w, int stage_i, int group,
                               const struct ready_queue_task *task, struct sched_try *ret);
/* What the task's attempts have spent. */
musd_t sched_spent(const struct sched_work *w, int64_t task_id);
/* True when the task's own cap (per_task) leaves less than its shortest run would reserve, whatever
 * the other caps leave. After sched_prepare. */
bool sched_own_cap_short(const struct sched_work *w, const struct sched_try *t);
/* All checks, in the order in which their reasons are reported; NONE: it may start. */
enum wait_reason sched_check(const struct sched_work *w, struct sched_try *t);
/* The last of these checks: the worst case must fit every cap. */
enum wait_reason sched_check_money(const struct sched_work *w, struct sched_try *t);
/* Count a launch against everything it uses. */
void sched_take(struct sched_work *w, const struct sched_try *t);

/* sched_ladder.c: where it goes. */
/* The rung to use, from t->rung on; fills rung, subnet_i, slots_i, probe. CAPACITY sets when to
 * look again in the plan. */
enum wait_reason sched_ladder(const struct sched_work *w, struct sched_try *t);
/* After sched_take: a probe is out. */
void sched_ladder_launched(struct sched_work *w, const struct sched_try *t);

/* sched_reservation.c, sched_backfill.c: multi-instance tasks. */
/* Call before any task is examined: restores the reservations of earlier plans and with them the
 * order of stages within a priority: reserved ones by age, then all others, then those that had
 * their turn while smaller tasks waited. */
void sched_reservations_open(struct sched_work *w);
void sched_reservations_close(struct sched_work *w);
/* True when the stage has had its turn and smaller tasks of its priority still wait. */
bool sched_reservation_yields(const struct sched_work *w, int stage_i);
/* NONE when this task may take free slots despite earlier reservations, else RESERVED. */
enum wait_reason sched_reservation_check(const struct sched_work *w, const struct sched_try *t);
/* The stage's first task does not start, for this reason. A multi-instance task that could have its
 * instances gets a reservation (GANG); one that waits for something else loses it. */
enum wait_reason sched_reservation_waits(struct sched_work *w, struct sched_try *t,
                                         enum wait_reason why);
/* A replacement for a task that is RESERVED or only just meets a promise (why NONE): the largest
 * task of its stage that may start and leaves time for another, else the largest that may start. */
bool sched_reservation_smaller(struct sched_work *w, const struct sched_try *t,
                               enum wait_reason why, struct ready_queue_task *ret);
/* After sched_take. */
void sched_reservation_launched(struct sched_work *w, const struct sched_try *t);

/* sched_tail_packing.c: which task of a stage is next. */
/* The task to try next and its group; false: no open group has a task that may start now. */
bool sched_next(struct sched_work *w, int stage_i, struct ready_queue_task *ret, int *ret_group);
/* Remove the task that sched_next returned from its queue. */
void sched_next_pop(struct sched_work *w, int stage_i, const struct ready_queue_task *task);

/* sched_warm_pool.c: warm pools. */
void sched_warm_pool_init(struct sched_work *w);
void sched_warm_pool_done(struct sched_work *w);
/* True when there is an available pool for it, on its rung or below. Fills rung, subnet_i, slots_i,
 * pool_i. */
bool sched_warm_pool_match(const struct sched_work *w, struct sched_try *t);
/* Number of pools that tasks like this one could take now. */
int64_t sched_warm_pools(const struct sched_work *w, const struct sched_try *t);
/* True when waiting for a coming pool is better than a cold start (quota_ledger_free true) or than
 * waiting for slots. The pool is then assigned to this task, and the plan's wake_us is when the
 * wait ends. */
bool sched_warm_pool_wait(const struct sched_work *w, const struct sched_try *t,
                          bool quota_ledger_free);
/* Fills keep_alive_s. */
void sched_warm_pool_keep(const struct sched_work *w, struct sched_try *t);
/* Count a launch, the last one of the plan: its pool's slots are moved, not added. */
void sched_warm_pool_take(struct sched_work *w, const struct sched_try *t);
/* A task waits for slots: mark idle pools that it does not match as blocking. Of its type, and
 * where the quota over all types lacks room of any type of its market. */
void sched_warm_pool_blocked(const struct sched_work *w, const struct sched_try *t);
/* Call after all launches, with the queues restored: finds the pools that no task will take. */
void sched_warm_pool_ends(struct sched_work *w);

/* sched_order.c: which stage is next. */
struct sched_order *sched_order_new(const struct sched_work *w);
void sched_order_free(struct sched_order *o);
/* The open stage of highest rank; -1: all are closed. Between two calls only the stage that the
 * first one returned may launch or close. */
int sched_order_next(const struct sched_work *w, struct sched_order *o);
