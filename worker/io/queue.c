/* The byte-bounded queue: one mutex, two conditions, a singly linked list. */
#include "queue.h"
#include <pthread.h>
#include <time.h>

#define MOMENT_NS 10000000 /* of queue_wake_at */

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t not_empty;
    pthread_cond_t not_full;
    struct queue_item *head;
    struct queue_item **tail;
    size_t bytes;
    size_t bytes_max;
    size_t wake_at; /* 0: each item wakes */
    bool closed;
};

struct queue *queue_new(size_t bytes_max)
{
    ASSERT(bytes_max > 0);
    struct queue *q = xcalloc(1, sizeof *q);
    (void)pthread_mutex_init(&q->lock, NULL);
    (void)pthread_cond_init(&q->not_empty, NULL);
    (void)pthread_cond_init(&q->not_full, NULL);
    q->tail = &q->head;
    q->bytes_max = bytes_max;
    return q;
}

void queue_free(struct queue *q)
{
    if (q == NULL) {
        return;
    }
    (void)pthread_mutex_destroy(&q->lock);
    (void)pthread_cond_destroy(&q->not_empty);
    (void)pthread_cond_destroy(&q->not_full);
    free(q);
}

static bool push(struct queue *q, struct queue_item *item, size_t bytes, bool wait)
{
    (void)pthread_mutex_lock(&q->lock);
    while (wait && !q->closed && q->head != NULL && q->bytes + bytes > q->bytes_max) {
        (void)pthread_cond_wait(&q->not_full, &q->lock);
    }
    bool open = !q->closed;
    if (open) {
        item->next = NULL;
        item->bytes = bytes;
        *q->tail = item;
        q->tail = &item->next;
        q->bytes += bytes;
        if (q->bytes >= q->wake_at) {
            (void)pthread_cond_signal(&q->not_empty);
        }
    }
    (void)pthread_mutex_unlock(&q->lock);
    return open;
}

bool queue_push(struct queue *q, struct queue_item *item, size_t bytes)
{
    return push(q, item, bytes, true);
}

bool queue_push_now(struct queue *q, struct queue_item *item, size_t bytes)
{
    return push(q, item, bytes, false);
}

void queue_wake_at(struct queue *q, size_t bytes)
{
    q->wake_at = bytes;
}

static void wait_for_item(struct queue *q)
{
    if (q->wake_at == 0) {
        (void)pthread_cond_wait(&q->not_empty, &q->lock);
        return;
    }
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += MOMENT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(&q->not_empty, &q->lock, &until);
}

struct queue_item *queue_pop(struct queue *q, bool wait)
{
    (void)pthread_mutex_lock(&q->lock);
    while (wait && q->head == NULL && !q->closed) {
        wait_for_item(q);
    }
    struct queue_item *item = q->head;
    if (item != NULL) {
        q->head = item->next;
        if (q->head == NULL) {
            q->tail = &q->head;
        }
        ASSERT(q->bytes >= item->bytes);
        q->bytes -= item->bytes;
        (void)pthread_cond_broadcast(&q->not_full);
    }
    (void)pthread_mutex_unlock(&q->lock);
    return item;
}

void queue_close(struct queue *q)
{
    (void)pthread_mutex_lock(&q->lock);
    q->closed = true;
    (void)pthread_cond_broadcast(&q->not_empty);
    (void)pthread_cond_broadcast(&q->not_full);
    (void)pthread_mutex_unlock(&q->lock);
}

bool queue_ended(struct queue *q)
{
    (void)pthread_mutex_lock(&q->lock);
    bool ended = q->closed && q->head == NULL;
    (void)pthread_mutex_unlock(&q->lock);
    return ended;
}

size_t queue_bytes(struct queue *q)
{
    (void)pthread_mutex_lock(&q->lock);
    size_t n = q->bytes;
    (void)pthread_mutex_unlock(&q->lock);
    return n;
}
