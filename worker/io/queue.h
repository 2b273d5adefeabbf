/* A queue between threads, bounded in bytes, not items: each item has a weight, and a push waits
 * while the queue is full. Many producers, many consumers. */
#pragma once
#include "common/base.h"

struct queue_item { /* first member of every item type */
    struct queue_item *next;
    size_t bytes;
};
struct queue;

struct queue *queue_new(size_t bytes_max);
/* Wake a waiting consumer only when this many bytes are queued, or after a short time. For a fast
 * consumer, where each wake costs as much as handling an item. Call before the first pop. */
void queue_wake_at(struct queue *q, size_t bytes);
/* Free the queue but not its items: it must be empty, or the items owned elsewhere. NULL
 * ignored. */
void queue_free(struct queue *q);
/* Append, waiting while the queue is full (an item above the maximum is accepted when the queue is
 * empty). False when the queue is closed; the caller then keeps the item. */
bool queue_push(struct queue *q, struct queue_item *item, size_t bytes) MUST_CHECK;
/* Append without waiting, for a thread that must not block and bounds itself otherwise. */
bool queue_push_now(struct queue *q, struct queue_item *item, size_t bytes) MUST_CHECK;
/* Remove and return the oldest item; NULL when closed and empty, or when empty and wait is
 * false. */
struct queue_item *queue_pop(struct queue *q, bool wait);
/* Refuse further pushes; queued items can still be popped. */
void queue_close(struct queue *q);
/* True when closed and empty. */
bool queue_ended(struct queue *q);
size_t queue_bytes(struct queue *q);
