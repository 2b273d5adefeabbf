/* See size_classes.h. */
#include "size_classes.h"

#define NO_TASK (-(INT64_C(1) << 40)) /* far below every id */

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
