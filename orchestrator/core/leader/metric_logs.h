/* The logs whose metrics are collected, all together: how many are read at once, which job has
 * ended, when a log is given up that the database does not take. What is asked about one is in
 * core/metrics/metric_collect.h. Pure; boot_us is CLOCK_BOOTTIME. */
#pragma once
#include "core/metrics/metric_collect.h"
#include "leader_state.h"

/* interval_us: between two looks at a log with nothing new. */
void metric_logs_begin(struct metric_collect *m, int64_t interval_us);
/* One more log may be asked for while `under_way` calls are. */
bool metric_logs_room(size_t under_way);
/* Its attempt has ended, as far as memory tells: that of a campaign that was not read does not. */
bool metric_logs_ended(struct leader_state *s, int64_t attempt_id, int64_t campaign_id);
/* SageMaker's own figure of this name is kept. */
bool metric_logs_keeps(const char *name);
/* METRIC_CLOSE is carried out now. */
bool metric_logs_closes(const struct metric_collect *m, int64_t boot_us);
/* What was to be written was not: it is later. refused: the database takes none of its values;
 * *refusals: so often in a row, counted here. Then it is given up, since no other log waits for
 * it. */
void metric_logs_not_written(struct metric_collect *m, int *refusals, bool refused,
                             int64_t boot_us);
