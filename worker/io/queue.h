/* A queue between threads whose bound is bytes, not items: an item says what it weighs, and a push
 * waits while the queue is full. Many producers, many consumers. */
#pragma once
#include "common/base.h"

struct queue_item { /* first member of whatever travels */
    struct queue_item *next;
    size_t bytes;
};
struct queue;

struct queue *queue_new(size_t bytes_max);
/* Whoever waits for an item is woken when there are that many bytes, or after a moment: for a
 * consumer who is quick, since each wake costs as much as handling an item. Before the first pop.
 */
void queue_wake_at(struct queue *q, size_t bytes);
/* The queue must be empty or its items owned elsewhere: they are not freed. NULL ignored. */
void queue_free(struct queue *q);
/* Append, waiting while bytes are over the maximum (an item heavier than the maximum passes when
 * the queue is empty). False when the queue is closed: the item stays the caller's. */
bool queue_push(struct queue *q, struct queue_item *item, size_t bytes) MUST_CHECK;
/* Append without waiting, for a thread that must not block; it bounds itself by other means. */
bool queue_push_now(struct queue *q, struct queue_item *item, size_t bytes) MUST_CHECK;
/* The oldest item; NULL when closed and empty, or when empty and wait is false. */
struct queue_item *queue_pop(struct queue *q, bool wait);
/* No more pushes; what is inside is still handed out. */
void queue_close(struct queue *q);
/* Closed and empty. */
bool queue_ended(struct queue *q);
size_t queue_bytes(struct queue *q);
