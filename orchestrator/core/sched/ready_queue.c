/* The waiting tasks of one stage in binary heaps of 24-byte values: those that back off, by time,
 * and those that may start, by order, one heap per group. A task whose back-off ends moves to the
 * group of new tasks, and ready_queue_sort takes it to its own, where it gets its place back. */
#include "ready_queue.h"
#include "common/heap.h"
#include <assert.h>

struct heap {
    struct ready_queue_task *at;
    size_t n;
    size_t cap;
};
typedef bool before_fn(const struct ready_queue_task *a, const struct ready_queue_task *b);

struct group {
    struct ready_queue_kind kind;
    struct heap heap;
    bool shut;
};
#define FRESH_KEPT 4096 /* a larger array of new tasks is freed once they are sorted */

struct ready_queue {
    struct heap backoff;  /* by not_before_us */
    struct group fresh;   /* group 0: their kind was not asked for yet */
    struct group *sorted; /* [sorted_n], groups 1 and up */
    int sorted_n;
    struct group *apart; /* [apart_n], by not_before_us, which holds what a task has spent */
    int apart_n;
    int found_group; /* where ready_queue_at_most met its task */
    size_t found;
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

#define BY_CTX(before, a, b) before(a, b)
HEAP_DEFINE(heap, struct ready_queue_task, before_fn *, BY_CTX, HEAP_PUT);

static void heap_push(struct heap *h, const struct ready_queue_task *t, before_fn *before)
{
    heap_reserve(h, h->n + 1);
    h->at[h->n] = *t;
    heap_up(before, h->at, h->n++);
}

static void heap_drop_first(struct heap *h, before_fn *before)
{
    ASSERT(h->n > 0);
    h->at[0] = h->at[--h->n];
    if (h->n > 0) {
        heap_down(before, h->at, h->n, 0);
    }
}

static void heap_build(struct heap *h, before_fn *before)
{
    for (size_t i = h->n / 2; i > 0; i--) {
        heap_down(before, h->at, h->n, i - 1);
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
    for (int i = 0; i < r->sorted_n; i++) {
        free(r->sorted[i].heap.at);
    }
    for (int i = 0; i < r->apart_n; i++) {
        free(r->apart[i].heap.at);
    }
    free(r->sorted);
    free(r->apart);
    free(r->fresh.heap.at);
    free(r->backoff.at);
    free(r);
}

void ready_queue_push(struct ready_queue *r, const struct ready_queue_task *t)
{
    ASSERT(t->not_before_us >= 0);
    if (t->not_before_us == 0) {
        heap_push(&r->fresh.heap, t, order_before);
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
        heap_up(before, h->at, i);
    }
}

void ready_queue_push_many(struct ready_queue *r, const struct ready_queue_task *t, size_t n)
{
    struct heap *fresh = &r->fresh.heap;
    size_t fresh_n = fresh->n, backoff_n = r->backoff.n;
    size_t later = 0;
    for (size_t i = 0; i < n; i++) {
        later += t[i].not_before_us != 0;
    }
    heap_reserve(fresh, fresh->n + n - later);
    heap_reserve(&r->backoff, r->backoff.n + later);
    for (size_t i = 0; i < n; i++) {
        ASSERT(t[i].not_before_us >= 0);
        struct heap *h = t[i].not_before_us == 0 ? fresh : &r->backoff;
        h->at[h->n++] = t[i];
    }
    heap_append(fresh, fresh_n, order_before);
    heap_append(&r->backoff, backoff_n, time_before);
}

static int groups_n(const struct ready_queue *r)
{
    return 1 + r->sorted_n;
}

static struct group *group_at(struct ready_queue *r, int group)
{
    ASSERT(group >= 0 && group < groups_n(r));
    return group == 0 ? &r->fresh : &r->sorted[group - 1];
}

/* Move tasks whose back-off has ended to those that may start. */
static void move_due(struct ready_queue *r, usec_t now_us)
{
    while (r->backoff.n > 0 && r->backoff.at[0].not_before_us <= now_us) {
        struct ready_queue_task t = r->backoff.at[0];
        heap_drop_first(&r->backoff, time_before);
        heap_push(&r->fresh.heap, &t, order_before);
    }
    /* The wall clock was set back: tasks that came too early wait again. */
    for (int i = 0; i < groups_n(r); i++) {
        struct heap *h = &group_at(r, i)->heap;
        while (h->n > 0 && h->at[0].not_before_us > now_us) {
            struct ready_queue_task t = h->at[0];
            heap_drop_first(h, order_before);
            heap_push(&r->backoff, &t, time_before);
        }
    }
}

/* The group whose first task comes first; -1: none. */
static int first_group(struct ready_queue *r, bool open_only)
{
    int best = -1;
    for (int i = 0; i < groups_n(r); i++) {
        const struct group *g = group_at(r, i);
        if (g->heap.n > 0 && !(open_only && g->shut) &&
            (best < 0 || order_before(&g->heap.at[0], &group_at(r, best)->heap.at[0]))) {
            best = i;
        }
    }
    return best;
}

static bool same_kind(const struct ready_queue_kind *a, const struct ready_queue_kind *b)
{
    return a->rung == b->rung && a->volume_gb == b->volume_gb &&
           a->max_runtime_s == b->max_runtime_s;
}

/* The group of this kind in groups, added when there is none. */
static struct group *group_of(struct group **groups, int *n, const struct ready_queue_kind *kind)
{
    for (int i = 0; i < *n; i++) {
        if (same_kind(&(*groups)[i].kind, kind)) {
            return &(*groups)[i];
        }
    }
    *groups = xrealloc(*groups, (size_t)(*n + 1) * sizeof **groups);
    (*groups)[*n] = (struct group){.kind = *kind};
    return &(*groups)[(*n)++];
}

static void drop_empty(struct group *groups, int *n)
{
    for (int i = *n; i-- > 0;) {
        if (groups[i].heap.n == 0) {
            free(groups[i].heap.at);
            groups[i] = groups[--*n];
        }
    }
}

static bool is_plain(const struct ready_queue_kind *kind)
{
    return same_kind(kind, &(struct ready_queue_kind){0});
}

/* What remains of the new tasks is unchanged: their group takes over the array when it is empty. */
static void sort_plain(struct ready_queue *r, bool ordered)
{
    struct heap *fresh = &r->fresh.heap;
    struct heap *plain = &group_of(&r->sorted, &r->sorted_n, &(struct ready_queue_kind){0})->heap;
    if (plain->n == 0) {
        struct heap empty = *plain;
        *plain = *fresh;
        *fresh = empty;
        if (!ordered) {
            heap_build(plain, order_before);
        }
        return;
    }
    size_t old_n = plain->n;
    heap_reserve(plain, old_n + fresh->n);
    memcpy(plain->at + old_n, fresh->at, fresh->n * sizeof *fresh->at);
    plain->n += fresh->n;
    fresh->n = 0;
    heap_append(plain, old_n, order_before);
}

void ready_queue_sort(struct ready_queue *r, usec_t now_us, ready_queue_kind_fn *kind_of, void *ctx)
{
    drop_empty(r->sorted, &r->sorted_n);
    drop_empty(r->apart, &r->apart_n);
    for (int i = 0; i < groups_n(r); i++) {
        group_at(r, i)->shut = false;
    }
    move_due(r, now_us);
    struct heap *fresh = &r->fresh.heap;
    if (kind_of == NULL || fresh->n == 0) {
        return;
    }
    size_t plain_n = 0;
    for (size_t i = 0; i < fresh->n; i++) {
        struct ready_queue_kind kind = {0};
        kind_of(ctx, fresh->at[i].task_id, &kind);
        if (is_plain(&kind)) {
            fresh->at[plain_n++] = fresh->at[i];
        } else {
            heap_push(&group_of(&r->sorted, &r->sorted_n, &kind)->heap, &fresh->at[i],
                      order_before);
        }
    }
    bool ordered = plain_n == fresh->n;
    fresh->n = plain_n;
    if (plain_n > 0) {
        sort_plain(r, ordered);
    }
    if (fresh->cap > FRESH_KEPT) {
        free(fresh->at);
        *fresh = (struct heap){0};
    }
}

bool ready_queue_first(struct ready_queue *r, usec_t now_us, struct ready_queue_task *ret,
                       int *ret_group)
{
    move_due(r, now_us);
    int group = first_group(r, true);
    if (group < 0) {
        return false;
    }
    *ret = group_at(r, group)->heap.at[0];
    *ret_group = group;
    return true;
}

void ready_queue_shut(struct ready_queue *r, int group)
{
    group_at(r, group)->shut = true;
}

void ready_queue_set_apart(struct ready_queue *r, int group, musd_t spent_musd)
{
    struct group *from = group_at(r, group);
    ASSERT(from->heap.n > 0);
    struct ready_queue_task t = from->heap.at[0];
    heap_drop_first(&from->heap, order_before);
    t.not_before_us = spent_musd;
    heap_push(&group_of(&r->apart, &r->apart_n, &from->kind)->heap, &t, time_before);
}

bool ready_queue_apart(const struct ready_queue *r, int k, struct ready_queue_task *ret)
{
    if (k >= r->apart_n) {
        return false;
    }
    *ret = (struct ready_queue_task){0};
    if (r->apart[k].heap.n > 0) {
        *ret = r->apart[k].heap.at[0];
        ret->not_before_us = 0;
    }
    return true;
}

void ready_queue_readmit(struct ready_queue *r, int k)
{
    struct heap *h = &r->apart[k].heap;
    ASSERT(h->n > 0);
    struct ready_queue_task t = h->at[0];
    heap_drop_first(h, time_before);
    t.not_before_us = 0;
    heap_push(&r->fresh.heap, &t, order_before);
}

/* The heap to pop from and its order; false: nothing may start. */
static bool next_of_all(struct ready_queue *r, usec_t now_us, struct heap **ret, before_fn **order)
{
    move_due(r, now_us);
    int group = first_group(r, false);
    if (group >= 0) {
        *ret = &group_at(r, group)->heap;
        *order = order_before;
        return true;
    }
    for (int i = 0; i < r->apart_n; i++) {
        if (r->apart[i].heap.n > 0) {
            *ret = &r->apart[i].heap;
            *order = time_before;
            return true;
        }
    }
    return false;
}

bool ready_queue_peek(struct ready_queue *r, usec_t now_us, struct ready_queue_task *ret)
{
    struct heap *h = NULL;
    before_fn *order = NULL;
    if (!next_of_all(r, now_us, &h, &order)) {
        return false;
    }
    *ret = h->at[0];
    ret->not_before_us = order == time_before ? 0 : ret->not_before_us;
    return true;
}

bool ready_queue_pop(struct ready_queue *r, usec_t now_us, struct ready_queue_task *ret)
{
    struct heap *h = NULL;
    before_fn *order = NULL;
    if (!ready_queue_peek(r, now_us, ret) || !next_of_all(r, now_us, &h, &order)) {
        return false;
    }
    heap_drop_first(h, order);
    return true;
}

static void heap_take(struct heap *h, size_t i)
{
    h->at[i] = h->at[--h->n];
    if (i < h->n) {
        heap_up(order_before, h->at, i);
        heap_down(order_before, h->at, h->n, i);
    }
}

/* As move_due, for a whole heap: after the clock was set back an early task may be below others. */
static void put_back_early(struct ready_queue *r, struct heap *h, usec_t now_us)
{
    for (size_t i = h->n; i-- > 0;) {
        struct ready_queue_task t = h->at[i];
        if (t.not_before_us > now_us) {
            heap_take(h, i);
            heap_push(&r->backoff, &t, time_before);
            i = h->n; /* other tasks have moved */
        }
    }
}

size_t ready_queue_group_due(struct ready_queue *r, int group, usec_t now_us,
                             struct ready_queue_task *ret, size_t max)
{
    move_due(r, now_us);
    struct heap *h = &group_at(r, group)->heap;
    if (h->n > 0 && h->n <= max) {
        put_back_early(r, h, now_us);
        memcpy(ret, h->at, h->n * sizeof *ret);
    }
    return h->n;
}

size_t ready_queue_due(struct ready_queue *r, usec_t now_us, struct ready_queue_task *ret,
                       size_t max)
{
    size_t n = 0;
    for (int i = 0; i < groups_n(r); i++) {
        n += ready_queue_group_due(r, i, now_us, ret + MIN(n, max), max - MIN(n, max));
    }
    return n;
}

/* Visits the larger tasks from the top; below a task that fits, all others fit less well. */
bool ready_queue_at_most(struct ready_queue *r, int group, usec_t now_us, uint32_t size_mb,
                         struct ready_queue_task *ret)
{
    move_due(r, now_us);
    const struct heap *h = &group_at(r, group)->heap;
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
    r->found_group = group;
    *ret = *best;
    return true;
}

static bool take_at(struct heap *h, size_t i, int64_t task_id)
{
    if (i >= h->n || h->at[i].task_id != task_id) {
        return false;
    }
    heap_take(h, i);
    return true;
}

bool ready_queue_take(struct ready_queue *r, int64_t task_id)
{
    if (r->found_group < groups_n(r) &&
        take_at(&group_at(r, r->found_group)->heap, r->found, task_id)) {
        return true;
    }
    for (int g = 0; g < groups_n(r); g++) {
        if (take_at(&group_at(r, g)->heap, 0, task_id)) {
            return true;
        }
    }
    for (int g = 0; g < groups_n(r); g++) {
        struct heap *h = &group_at(r, g)->heap;
        for (size_t i = 0; i < h->n; i++) {
            if (take_at(h, i, task_id)) {
                return true;
            }
        }
    }
    return false;
}

static int compare_id(const void *key, const void *at)
{
    int64_t a, b;
    memcpy(&a, key, sizeof a);
    memcpy(&b, at, sizeof b);
    return (a > b) - (a < b);
}

static size_t heap_drop(struct heap *h, const int64_t *ids, size_t n, before_fn *before)
{
    size_t kept = 0, old_n = h->n;
    for (size_t i = 0; i < old_n; i++) {
        int64_t id = h->at[i].task_id;
        bool among = id >= ids[0] && id <= ids[n - 1] &&
                     bsearch(&id, ids, n, sizeof *ids, compare_id) != NULL;
        h->at[kept] = h->at[i];
        kept += !among;
    }
    h->n = kept;
    if (kept < old_n) {
        heap_build(h, before);
    }
    return old_n - kept;
}

size_t ready_queue_drop(struct ready_queue *r, const int64_t *ids, size_t n)
{
    size_t dropped = 0;
    if (n == 0) {
        return 0;
    }
    dropped += heap_drop(&r->backoff, ids, n, time_before);
    for (int i = 0; i < groups_n(r); i++) {
        dropped += heap_drop(&group_at(r, i)->heap, ids, n, order_before);
    }
    for (int i = 0; i < r->apart_n; i++) {
        dropped += heap_drop(&r->apart[i].heap, ids, n, time_before);
    }
    return dropped;
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

static void move_heap(struct heap *h, int64_t by_us)
{
    for (size_t i = 0; i < h->n; i++) {
        int64_t to, *at = &h->at[i].not_before_us;
        *at = *at != 0 && add_i64(*at, by_us, &to) ? MAX(to, INT64_C(1)) : *at;
    }
}

void ready_queue_move(struct ready_queue *r, int64_t by_us)
{
    move_heap(&r->backoff, by_us); /* all by as much: the heap stays one */
    heap_build(&r->backoff, time_before);
    for (int i = 0; i < groups_n(r); i++) {
        move_heap(&group_at(r, i)->heap, by_us);
    }
}

void ready_queue_clear(struct ready_queue *r)
{
    for (int i = 0; i < groups_n(r); i++) {
        group_at(r, i)->heap.n = 0;
    }
    for (int i = 0; i < r->apart_n; i++) {
        r->apart[i].heap.n = 0;
    }
    r->backoff.n = 0;
}

size_t ready_queue_n(const struct ready_queue *r)
{
    size_t n = r->backoff.n + r->fresh.heap.n;
    for (int i = 0; i < r->sorted_n; i++) {
        n += r->sorted[i].heap.n;
    }
    for (int i = 0; i < r->apart_n; i++) {
        n += r->apart[i].heap.n;
    }
    return n;
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
