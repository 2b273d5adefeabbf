/* The waiting tasks of one stage in the order they should start: longest expected first (by size),
 * then lowest id. Tasks that back off return when their time has come. At most 24 bytes per task;
 * O(log n) per change. */
#pragma once
#include "core/model.h"

struct ready_queue;
struct ready_queue_task { /* value */
    int64_t task_id;
    int64_t not_before_us; /* wall clock; 0: now */
    uint32_t seq;
    uint32_t size_mb; /* order key, larger first */
};
struct ready_queue *ready_queue_new(void);
void ready_queue_free(struct ready_queue *r);
void ready_queue_push(struct ready_queue *r, const struct ready_queue_task *t);
/* Load many at once, O(n). */
void ready_queue_push_many(struct ready_queue *r, const struct ready_queue_task *t, size_t n);
/* The first task that may start at now_us; false when there is none. ready_queue_pop removes it. */
bool ready_queue_peek(struct ready_queue *r, usec_t now_us, struct ready_queue_task *ret);
bool ready_queue_pop(struct ready_queue *r, usec_t now_us, struct ready_queue_task *ret);
/* The number of tasks that may start at now_us; copied to ret, unordered, when there are at most
 * max. */
size_t ready_queue_due(struct ready_queue *r, usec_t now_us, struct ready_queue_task *ret,
                       size_t max);
/* The largest task of at most this size that may start at now_us, searched past at most
 * READY_QUEUE_VISITS larger tasks: exact in small queues, approximate in large
 * ones. False: not found. */
#define READY_QUEUE_VISITS 2048
bool ready_queue_at_most(struct ready_queue *r, usec_t now_us, uint32_t size_mb,
                         struct ready_queue_task *ret);
/* Remove this task from those that may start; false: not found. O(n); O(log n) for the one that
 * ready_queue_at_most or ready_queue_peek returned last. */
bool ready_queue_take(struct ready_queue *r, int64_t task_id);
/* A task that backs off may start now; false: it does not back off. O(n). */
bool ready_queue_hurry(struct ready_queue *r, int64_t task_id);
void ready_queue_clear(struct ready_queue *r);
size_t ready_queue_n(const struct ready_queue *r); /* number of all tasks */
size_t ready_queue_backing_off_n(const struct ready_queue *r, usec_t now_us);
usec_t
ready_queue_next_us(const struct ready_queue *r); /* end of the earliest back-off, or USEC_NEVER */
