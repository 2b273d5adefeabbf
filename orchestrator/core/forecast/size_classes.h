/* The waiting parts of a large stage by classes of size, instead of one by one. Pure. */
#pragma once
#include "forecast.h"

struct size_classes {
    const uint32_t
        *size_mb;           /* [n]: of parts that are spread evenly over the stage, largest first */
    size_t n;               /* at least one */
    int64_t tasks, waiting; /* of the stage; 0 < waiting <= tasks */
};
/* As `entries` <= waiting classes of about the same number of parts, for a forecast_stage's parts
 * and times, both [entries]. What does not wait any more is taken for the largest of the stage,
 * since these start first. The ids are of no task. */
void size_classes_spread(const struct size_classes *c, size_t entries,
                         struct forecast_part *ret_parts, uint32_t *ret_times);
/* Put a waiting part alone among the classes of its stage, which count it already: about at place
 * `place` (from 1) of all waiting parts in the queue's order, where its size belongs; place 0: it
 * backs off, and stands last. `*n` entries grow; both arrays have room for two more. Classes behind
 * the part get greater ids than its own. */
void size_classes_put(const struct forecast_part *p, int64_t place, struct forecast_part *parts,
                      uint32_t *times, size_t *n);
