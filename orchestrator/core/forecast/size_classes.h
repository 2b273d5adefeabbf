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
