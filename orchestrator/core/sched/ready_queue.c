/* The waiting tasks of one stage: two binary heaps of 24-byte values: tasks that may start, by
 * order, and tasks that back off, by time. A task moves from the second to the first when its
 * back-off ends, and so gets its old place back. */
#include "ready_queue.h"
#include <assert.h>

struct heap {
    struct ready_queue_task *at;
    size_t n;
    size_t cap;
};
typedef bool before_fn(const struct ready_queue_task *a, const struct ready_queue_task *b);

struct ready_queue {
    struct heap due;     /* by order */
    struct heap backoff; /* by not_before_us */
    size_t found;        /* where in due ready_queue_at_most met its task */
};

static_assert(sizeof(struct ready_queue_task) == 24, "a waiting task costs 24 bytes");

static bool order_before(const struct ready_queue_task *a, const struct ready_queue_task *b)
{
    return a->size_mb != b->size_mb ? a->size_mb > b->size_mb : a->task_id < b->task_id;
}

static bool time_before(const struct ready_queue_task *a, const struct ready_queue_task *b)
{
    return a->not_before_us != b->not_before_us ? a->not_before_us < b->not_before_us
                                                : order_before(a, b);
}

static void heap_reserve(struct heap *h, size_t n)
{
    if (n <= h->cap) {
        return;
    }
    /* Large queues grow by an eighth, so 1 M tasks do not take twice their size. */
    size_t cap = h->cap < 4096 ? h->cap * 2 : h->cap + h->cap / 8;
    cap = MAX(MAX(cap, n), (size_t)16);
    h->at = xrealloc(h->at, cap * sizeof *h->at);
    h->cap = cap;
}

static void heap_up(struct heap *h, size_t i, before_fn *before)
{
    struct ready_queue_task t = h->at[i];
    while (i > 0 && before(&t, &h->at[(i - 1) / 2])) {
        h->at[i] = h->at[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->at[i] = t;
}

static void heap_down(struct heap *h, size_t i, before_fn *before)
{
    struct ready_queue_task t = h->at[i];
    for (size_t child = 2 * i + 1; child < h->n; child = 2 * i + 1) {
        if (child + 1 < h->n && before(&h->at[child + 1], &h->at[child])) {
            child++;
        }
        if (!before(&h->at[child], &t)) {
            break;
        }
        h->at[i] = h->at[child];
        i = child;
    }
    h->at[i] = t;
}

static void heap_push(struct heap *h, const struct ready_queue_task *t, before_fn *before)
{
    heap_reserve(h, h->n + 1);
    h->at[h->n] = *t;
    heap_up(h, h->n++, before);
}

static void heap_drop_first(struct heap *h, before_fn *before)
{
    ASSERT(h->n > 0);
    h->at[0] = h->at[--h->n];
    if (h->n > 0) {
        heap_down(h, 0, before);
    }
}

static void heap_build(struct heap *h, before_fn *before)
{
    for (size_t i = h->n / 2; i > 0; i--) {
        heap_down(h, i - 1, before);
    }
}

struct ready_queue *ready_queue_new(void)
{
    return xcalloc(1, sizeof(struct ready_queue));
}

void ready_queue_free(struct ready_queue *r)
{
    if (r == NULL) {
        return;
    }
    free(r->due.at);
    free(r->backoff.at);
    free(r);
}

void ready_queue_push(struct ready_queue *r, const struct ready_queue_task *t)
{
    ASSERT(t->not_before_us >= 0);
    if (t->not_before_us == 0) {
        heap_push(&r->due, t, order_before);
    } else {
        heap_push(&r->backoff, t, time_before);
    }
}

/* Many new tasks: rebuild the heap once. Few new tasks in a large heap: sift each one up; its place
 * is usually near the end. So a queue of a million read in pages is not rebuilt for every page. */
static void heap_append(struct heap *h, size_t old_n, before_fn *before)
{
    if (h->n - old_n >= old_n) {
        heap_build(h, before);
        return;
    }
    for (size_t i = old_n; i < h->n; i++) {
        heap_up(h, i, before);
    }
}

void ready_queue_push_many(struct ready_queue *r, const struct ready_queue_task *t, size_t n)
{
    size_t due_n = r->due.n, backoff_n = r->backoff.n;
    size_t later = 0;
    for (size_t i = 0; i < n; i++) {
        later += t[i].not_before_us != 0;
    }
    heap_reserve(&r->due, r->due.n + n - later);
    heap_reserve(&r->backoff, r->backoff.n + later);
    for (size_t i = 0; i < n; i++) {
        ASSERT(t[i].not_before_us >= 0);
        struct heap *h = t[i].not_before_us == 0 ? &r->due : &r->backoff;
        h->at[h->n++] = t[i];
    }
    heap_append(&r->due, due_n, order_before);
    heap_append(&r->backoff, backoff_n, time_before);
}

/* Move tasks whose back-off has ended to those that may start. */
static void move_due(struct ready_queue *r, usec_t now_us)
{
    while (r->backoff.n > 0 && r->backoff.at[0].not_before_us <= now_us) {
        struct ready_queue_task t = r->backoff.at[0];
        heap_drop_first(&r->backoff, time_before);
        heap_push(&r->due, &t, order_before);
    }
    /* The wall clock was set back: tasks that came too early wait again. */
    while (r->due.n > 0 && r->due.at[0].not_before_us > now_us) {
        struct ready_queue_task t = r->due.at[0];
        heap_drop_first(&r->due, order_before);
        heap_push(&r->backoff, &t, time_before);
    }
}

bool ready_queue_peek(struct ready_queue *r, usec_t now_us, struct ready_queue_task *ret)
{
    move_due(r, now_us);
    if (r->due.n == 0) {
        return false;
    }
    *ret = r->due.at[0];
    return true;
}

bool ready_queue_pop(struct ready_queue *r, usec_t now_us, struct ready_queue_task *ret)
{
    if (!ready_queue_peek(r, now_us, ret)) {
        return false;
    }
    heap_drop_first(&r->due, order_before);
    return true;
}

/* As move_due, for the whole heap: after the clock was set back an early task may be below
 * others. */
static void put_back_early(struct ready_queue *r, usec_t now_us)
{
    for (size_t i = r->due.n; i-- > 0;) {
        struct ready_queue_task t = r->due.at[i];
        if (t.not_before_us > now_us) {
            bool there = ready_queue_take(r, t.task_id);
            ASSERT(there);
            heap_push(&r->backoff, &t, time_before);
            i = r->due.n; /* other tasks have moved */
        }
    }
}

size_t ready_queue_due(struct ready_queue *r, usec_t now_us, struct ready_queue_task *ret,
                       size_t max)
{
    move_due(r, now_us);
    if (r->due.n > 0 && r->due.n <= max) {
        put_back_early(r, now_us);
    }
    if (r->due.n > 0 && r->due.n <= max) {
        memcpy(ret, r->due.at, r->due.n * sizeof *ret);
    }
    return r->due.n;
}

/* Visits the larger tasks from the top; below a task that fits, all others fit less well. */
bool ready_queue_at_most(struct ready_queue *r, usec_t now_us, uint32_t size_mb,
                         struct ready_queue_task *ret)
{
    move_due(r, now_us);
    const struct heap *h = &r->due;
    size_t stack[2 * 64] = {0}; /* at most one child per level of the heap */
    size_t stack_n = h->n > 0;
    const struct ready_queue_task *best = NULL;
    for (int visits = 0; stack_n > 0 && visits < READY_QUEUE_VISITS; visits++) {
        size_t i = stack[--stack_n];
        const struct ready_queue_task *t = &h->at[i];
        if (t->size_mb <= size_mb) {
            /* skip tasks that came early because the clock was set back */
            best = t->not_before_us <= now_us && (best == NULL || order_before(t, best)) ? t : best;
            continue;
        }
        for (size_t child = 2 * i + 2; child > 2 * i; child--) {
            if (child < h->n) {
                ASSERT(stack_n < ARRAY_LEN(stack));
                stack[stack_n++] = child;
            }
        }
    }
    if (best == NULL) {
        return false;
    }
    r->found = (size_t)(best - h->at);
    *ret = *best;
    return true;
}

bool ready_queue_take(struct ready_queue *r, int64_t task_id)
{
    struct heap *h = &r->due;
    size_t i = r->found < h->n && h->at[r->found].task_id == task_id ? r->found : 0;
    while (i < h->n && h->at[i].task_id != task_id) {
        i++;
    }
    if (i == h->n) {
        return false;
    }
    h->at[i] = h->at[--h->n];
    if (i < h->n) {
        heap_up(h, i, order_before);
        heap_down(h, i, order_before);
    }
    return true;
}

bool ready_queue_hurry(struct ready_queue *r, int64_t task_id)
{
    struct heap *h = &r->backoff;
    for (size_t i = 0; i < h->n; i++) {
        if (h->at[i].task_id == task_id) {
            struct ready_queue_task t = h->at[i];
            h->at[i] = h->at[--h->n];
            heap_build(h, time_before);
            t.not_before_us = 0;
            ready_queue_push(r, &t);
            return true;
        }
    }
    return false;
}

void ready_queue_clear(struct ready_queue *r)
{
    r->due.n = 0;
    r->backoff.n = 0;
}

size_t ready_queue_n(const struct ready_queue *r)
{
    return r->due.n + r->backoff.n;
}

/* Number of tasks in the subtree at i whose back-off has ended; visits only those nodes and their
 * children. */
static size_t due_in(const struct heap *h, size_t i, usec_t now_us)
{
    if (i >= h->n || h->at[i].not_before_us > now_us) {
        return 0;
    }
    return 1 + due_in(h, 2 * i + 1, now_us) + due_in(h, 2 * i + 2, now_us);
}

size_t ready_queue_backing_off_n(const struct ready_queue *r, usec_t now_us)
{
    return r->backoff.n - due_in(&r->backoff, 0, now_us);
}

usec_t ready_queue_next_us(const struct ready_queue *r)
{
    return r->backoff.n > 0 ? r->backoff.at[0].not_before_us : USEC_NEVER;
}
