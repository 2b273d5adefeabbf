/* Counters and gauges of the process, from metrics.def; any thread, relaxed atomics. */
#pragma once
#include "common/buf.h"

enum metric {
#define X(m, name, kind, help) METRIC_##m,
#include "metrics.def"
#undef X
    METRIC_COUNT
};
void metric_add(enum metric m, int64_t n);
void metric_set(enum metric m, int64_t v);
int64_t metric_get(enum metric m);
/* Prometheus text format 0.0.4. */
void metrics_render(struct buf *out);
