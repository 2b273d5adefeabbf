/* The waiting tasks of one stage in the order they should start: longest expected first (size),
 * then lowest id; those that back off come back when their time is there. 24 bytes a task at most;
 * O(log n) a change. */
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
/* The first task that may start at now_us; false when none may. Its removal is ready_queue_pop. */
bool ready_queue_peek(struct ready_queue *r, usec_t now_us, struct ready_queue_task *ret);
bool ready_queue_pop(struct ready_queue *r, usec_t now_us, struct ready_queue_task *ret);
/* How many may start at now_us; copied to ret, in no order, when they are at most max. */
size_t ready_queue_due(struct ready_queue *r, usec_t now_us, struct ready_queue_task *ret,
                       size_t max);
/* The largest task of at most this size that may start at now_us, of the first READY_QUEUE_VISITS
 * larger ones looked through: exact in small queues, near it in large ones. False: none was met. */
#define READY_QUEUE_VISITS 2048
bool ready_queue_at_most(struct ready_queue *r, usec_t now_us, uint32_t size_mb,
                         struct ready_queue_task *ret);
/* Remove this task from those that may start; false: not there. O(n); O(log n) for
 * the one ready_queue_at_most or ready_queue_peek gave last. */
bool ready_queue_take(struct ready_queue *r, int64_t task_id);
/* How many due ones come before this task in the stage's order: its place in the queue, from 0. For
 * one that backs off: the place it will come back to, were it due now. O(n). */
size_t ready_queue_before(const struct ready_queue *r, usec_t now_us,
                          const struct ready_queue_task *t);
void ready_queue_clear(struct ready_queue *r);
size_t ready_queue_n(const struct ready_queue *r); /* all */
size_t ready_queue_backing_off_n(const struct ready_queue *r, usec_t now_us);
usec_t
ready_queue_next_us(const struct ready_queue *r); /* when the earliest back-off ends; USEC_NEVER */
