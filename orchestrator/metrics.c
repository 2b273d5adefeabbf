/* The process's counters; see metrics.h. */
#include "metrics.h"
#include <inttypes.h>
#include <stdatomic.h>

enum metric_kind { KIND_COUNTER, KIND_GAUGE };
static const struct {
    const char *name;
    enum metric_kind kind;
    const char *help;
} rows[METRIC_COUNT] = {
#define X(m, name, kind, help) [METRIC_##m] = {name, KIND_##kind, help},
#include "metrics.def"
#undef X
};
static _Atomic int64_t values[METRIC_COUNT];

void metric_add(enum metric m, int64_t n)
{
    ASSERT(m < METRIC_COUNT);
    (void)atomic_fetch_add_explicit(&values[m], n, memory_order_relaxed);
}

void metric_set(enum metric m, int64_t v)
{
    ASSERT(m < METRIC_COUNT);
    atomic_store_explicit(&values[m], v, memory_order_relaxed);
}

int64_t metric_get(enum metric m)
{
    ASSERT(m < METRIC_COUNT);
    return atomic_load_explicit(&values[m], memory_order_relaxed);
}

void metrics_render(struct buf *out)
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n%s %" PRId64 "\n", rows[i].name, rows[i].help,
                 rows[i].name, rows[i].kind == KIND_COUNTER ? "counter" : "gauge", rows[i].name,
                 metric_get((enum metric)i));
    }
}
