/* The waiting tasks of one stage in the order they should start: longest expected first (size),
 * then lowest id; those that back off come back when their time is there. 24 bytes a task at most;
 * O(log n) a change. */
#pragma once
#include "core/model.h"

struct ready;
struct ready_task { /* value */
    int64_t task_id;
    int64_t not_before_us; /* wall clock; 0: now */
    uint32_t seq;
    uint32_t size_mb; /* order key, larger first */
};
struct ready *ready_new(void);
void ready_free(struct ready *r);
void ready_push(struct ready *r, const struct ready_task *t);
/* Load many at once, O(n). */
void ready_push_many(struct ready *r, const struct ready_task *t, size_t n);
/* The first task that may start at now_us; false when none may. Its removal is ready_pop. */
bool ready_peek(struct ready *r, usec_t now_us, struct ready_task *ret);
bool ready_pop(struct ready *r, usec_t now_us, struct ready_task *ret);
/* How many may start at now_us; copied to ret, in no order, when they are at most max. */
size_t ready_due(struct ready *r, usec_t now_us, struct ready_task *ret, size_t max);
/* The largest task of at most this size that may start at now_us, of the first READY_VISITS larger
 * ones looked through: exact in small queues, near it in large ones. False: none was met. */
#define READY_VISITS 2048
bool ready_at_most(struct ready *r, usec_t now_us, uint32_t size_mb, struct ready_task *ret);
/* Remove this task from those that may start; false: not there. O(n); O(log n) for
 * the one ready_at_most or ready_peek gave last. */
bool ready_take(struct ready *r, int64_t task_id);
/* How many due ones come before this task in the stage's order: its place in the queue, from 0. For
 * one that backs off: the place it will come back to, were it due now. O(n). */
size_t ready_before(const struct ready *r, usec_t now_us, const struct ready_task *t);
void ready_clear(struct ready *r);
size_t ready_n(const struct ready *r); /* all */
size_t ready_backing_off_n(const struct ready *r, usec_t now_us);
usec_t ready_next_us(const struct ready *r); /* when the earliest back-off ends; USEC_NEVER */
