/* See size_classes.h. */
#include "size_classes.h"

#define NO_TASK    (-(INT64_C(1) << 40)) /* far below every id */
#define AFTER_TASK (INT64_C(1) << 61)    /* far above */

void size_classes_spread(const struct size_classes *c, size_t entries,
                         struct forecast_part *ret_parts, uint32_t *ret_times)
{
    ASSERT(c->n > 0 && c->waiting > 0 && c->waiting <= c->tasks);
    ASSERT(entries > 0 && (int64_t)entries <= c->waiting);
    int64_t before = 0;
    for (size_t i = 0; i < entries; i++) {
        double share = (double)(i + 1) / (double)entries;
        int64_t upto = i + 1 == entries ? c->waiting : (int64_t)(share * (double)c->waiting);
        double middle = (double)(c->tasks - c->waiting) + (double)(before + upto) / 2;
        size_t at = (size_t)(middle / (double)c->tasks * (double)c->n);
        ret_times[i] = (uint32_t)MIN(upto - before, UINT32_MAX);
        ret_parts[i] = (struct forecast_part){.task_id = NO_TASK + (int64_t)i,
                                              .seq = (uint32_t)i,
                                              .size_mb = c->size_mb[MIN(at, c->n - 1)]};
        before = upto;
    }
}

/* One part less in one of the classes of its size, or near it. */
static void take_one(uint32_t *times, size_t n, size_t near)
{
    for (size_t far = 0; far < n; far++) {
        if (near + far < n && times[near + far] > 1) {
            times[near + far]--;
            return;
        }
        if (far <= near && near - far < n && times[near - far] > 1) {
            times[near - far]--;
            return;
        }
    }
}

void size_classes_put(const struct forecast_part *p, int64_t place, struct forecast_part *parts,
                      uint32_t *times, size_t *n)
{
    int64_t before = 0;
    size_t at = 0;
    while (at < *n && parts[at].size_mb > p->size_mb) {
        before += times[at++];
    }
    take_one(times, *n, MIN(at, *n - 1));
    if (place == 0) {
        parts[*n] = *p;
        parts[*n].seq = (uint32_t)*n;
        times[(*n)++] = 1;
        return;
    }
    while (at < *n && parts[at].size_mb == p->size_mb && before + times[at] < place) {
        before += times[at++];
    }
    bool same = at < *n && parts[at].size_mb == p->size_mb;
    int64_t inside = same ? MAX(0, place - 1 - before) : 0;
    size_t more = inside > 0 && inside < times[at] ? 2 : 1; /* it may cut a class in two */
    memmove(&parts[at + more], &parts[at], (*n - at) * sizeof *parts);
    memmove(&times[at + more], &times[at], (*n - at) * sizeof *times);
    if (more == 2) {
        parts[at] = parts[at + 2];
        times[at] = (uint32_t)inside;
        times[at + 2] -= (uint32_t)inside;
    }
    parts[at + more - 1] = *p;
    times[at + more - 1] = 1;
    *n += more;
    for (size_t i = at; i < *n; i++) {
        parts[i].seq = (uint32_t)i;
        parts[i].task_id = i < at + more ? parts[i].task_id : AFTER_TASK + (int64_t)i;
    }
}
