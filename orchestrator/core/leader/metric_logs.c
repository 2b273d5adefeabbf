/* See metric_logs.h. */
#include "metric_logs.h"
#include "core/metrics/metric_line.h"
#include "parking.h"
#include <stdio.h>

#define AT_ONCE       4
#define SETTLE_ROUNDS 3 /* intervals that lines may come late */
#define REFUSALS_MAX  5

void metric_logs_begin(struct metric_collect *m, int64_t interval_us)
{
    m->interval_us = interval_us;
    m->settle_us = SETTLE_ROUNDS * interval_us;
}

bool metric_logs_room(size_t under_way)
{
    return under_way < AT_ONCE;
}

bool metric_logs_ended(struct leader_state *s, int64_t attempt_id, int64_t campaign_id)
{
    return leader_state_attempt(s, attempt_id) == NULL && !parking_unread(s, campaign_id);
}

bool metric_logs_keeps(const char *name)
{
    return strcmp(name, METRIC_STEP) != 0; /* it numbers the others */
}

bool metric_logs_closes(const struct metric_collect *m, int64_t boot_us)
{
    return boot_us >= m->due_us;
}

void metric_logs_not_written(struct metric_collect *m, int *refusals, bool refused, int64_t boot_us)
{
    m->due_us = boot_us + m->interval_us;
    if (refused && ++*refusals == REFUSALS_MAX) {
        (void)snprintf(m->note, sizeof m->note, "the database refuses its values");
    }
}
