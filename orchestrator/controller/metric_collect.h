/* Collects the metrics of training jobs from their logs, while they run and for a while after
 * their end: core/metrics says what to ask, this carries it. A log is read once, also when
 * another droverd leads: how far it was read is written in the transaction of the values found. */
#pragma once
#include "shell.h"

/* At a takeover: the logs that are still read. */
bool metric_collect_load(struct controller *c, void *arg, struct err *err) MUST_CHECK;
/* The spec of a campaign can be read: its logs that wait for that are read on. */
void metric_collect_spec_read(struct controller *c, int64_t campaign_id);
/* An attempt was intended whose stage defines metrics; others are ignored. */
void metric_collect_watch(struct controller *c, const struct live_attempt *a);
/* Writes what answers have brought, then makes the calls that are due. */
void metric_collect_tick(struct controller *c, int64_t *wake_us);
/* Discards all of it, with its calls. */
void metric_collect_cancel(struct controller *c);
