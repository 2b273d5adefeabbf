/* The waiting tasks of one stage in the order they should start: longest expected first (by size),
 * then lowest id. Tasks that back off return when their time has come. At most 24 bytes per task;
 * O(log n) per change.
 *
 * Tasks that ask for the same (ready_queue_kind) form a group, so that a task that cannot start
 * hides only those that cannot start either. ready_queue_sort makes the groups; a queue that is
 * never sorted is one group. A task whose own cap leaves too little is set apart and comes back
 * with the least spent first. */
#pragma once
#include "core/model.h"

struct ready_queue;
struct ready_queue_task { /* value */
    int64_t task_id;
    int64_t not_before_us; /* wall clock; 0: now */
    uint32_t seq;
    uint32_t size_mb; /* order key, larger first */
};
struct ready_queue_kind { /* value: what an earlier attempt changed; all 0: nothing */
    int rung;
    int volume_gb;
    int64_t max_runtime_s;
};
struct ready_queue *ready_queue_new(void);
void ready_queue_free(struct ready_queue *r);
void ready_queue_push(struct ready_queue *r, const struct ready_queue_task *t);
/* Load many at once, O(n). */
void ready_queue_push_many(struct ready_queue *r, const struct ready_queue_task *t, size_t n);
/* The first task that may start at now_us; false when there is none. ready_queue_pop removes it.
 * Tasks set apart come last. */
bool ready_queue_peek(struct ready_queue *r, usec_t now_us, struct ready_queue_task *ret);
bool ready_queue_pop(struct ready_queue *r, usec_t now_us, struct ready_queue_task *ret);
/* Open all groups. Tasks that came since the last call go to the group of their kind; kind_of NULL:
 * they stay one group. Numbers of groups are valid until the next call. */
typedef void ready_queue_kind_fn(void *ctx, int64_t task_id, struct ready_queue_kind *ret);
void ready_queue_sort(struct ready_queue *r, usec_t now_us, ready_queue_kind_fn *kind_of,
                      void *ctx);
/* The first task of all open groups that may start at now_us, and its group; false: none. */
bool ready_queue_first(struct ready_queue *r, usec_t now_us, struct ready_queue_task *ret,
                       int *ret_group);
/* No task of this group comes first until ready_queue_sort. */
void ready_queue_shut(struct ready_queue *r, int group);
/* Set the first task of this group apart: its own cap leaves too little over spent_musd. */
void ready_queue_set_apart(struct ready_queue *r, int group, musd_t spent_musd);
/* The task of a kind set apart that has spent the least, its number k counted from 0; false: there
 * are no more kinds. ready_queue_readmit: its own cap leaves enough again. */
bool ready_queue_apart(const struct ready_queue *r, int k, struct ready_queue_task *ret);
void ready_queue_readmit(struct ready_queue *r, int k);
/* The number of tasks of one group that may start at now_us; copied to ret, unordered, when there
 * are at most max. */
size_t ready_queue_group_due(struct ready_queue *r, int group, usec_t now_us,
                             struct ready_queue_task *ret, size_t max);
/* The same of all groups; those set apart are left out. */
size_t ready_queue_due(struct ready_queue *r, usec_t now_us, struct ready_queue_task *ret,
                       size_t max);
/* The largest task of a group of at most this size that may start at now_us, searched past at most
 * READY_QUEUE_VISITS larger tasks: exact in small queues, approximate in large
 * ones. False: not found. */
#define READY_QUEUE_VISITS 2048
bool ready_queue_at_most(struct ready_queue *r, int group, usec_t now_us, uint32_t size_mb,
                         struct ready_queue_task *ret);
/* Remove this task from those that may start; false: not found. O(n); O(log n) for the first of a
 * group and for the one that ready_queue_at_most returned last. */
bool ready_queue_take(struct ready_queue *r, int64_t task_id);
/* Remove these n tasks (ids ascending) wherever they are; returns how many were there. O(all). */
size_t ready_queue_drop(struct ready_queue *r, const int64_t *ids, size_t n);
/* A task that backs off may start now; false: it does not back off. O(n). */
bool ready_queue_hurry(struct ready_queue *r, int64_t task_id);
/* The clock has moved by by_us: so has the end of each back-off. O(all). */
void ready_queue_move(struct ready_queue *r, int64_t by_us);
void ready_queue_clear(struct ready_queue *r);
size_t ready_queue_n(const struct ready_queue *r); /* number of all tasks */
size_t ready_queue_backing_off_n(const struct ready_queue *r, usec_t now_us);
usec_t
ready_queue_next_us(const struct ready_queue *r); /* end of the earliest back-off, or USEC_NEVER */
