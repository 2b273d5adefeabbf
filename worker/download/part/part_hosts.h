/* Several hosts share one part: host i of n takes every n-th shard, from shard i on. A host that
 * has finished and checked its share writes _host-ATTEMPT-i-of-n.json with its counts; the host
 * that finds all of them writes the manifest and removes them. Host 0 waits for the others, so that
 * a job ends with a manifest or with a reason. The file of a host says that its shards are finished
 * and checked; it is removed when that host begins again. */
#pragma once
#include "common/units.h"
#include "io/sink.h"
#include "job/sagemaker_container.h"
#include "job/stats.h"
#include "pipeline.h"

#define PART_HOSTS_BYTES_MAX (STATS_FILE_BYTES_MAX + 4096)

struct part_hosts;
/* Opens a sink of its own. All borrowed; the caller frees *ret. */
bool part_hosts_new(const struct pipeline *run, const struct sagemaker_container_hosts *hosts,
                    const char *task, const char *attempt, struct part_hosts **ret,
                    struct err *err) MUST_CHECK;
void part_hosts_free(struct part_hosts *h);
struct sink *part_hosts_sink(struct part_hosts *h); /* borrowed */
/* Withdraw what an earlier run of this host said. Call before any shard is written. */
bool part_hosts_begin(struct part_hosts *h, struct err *err) MUST_CHECK;
/* Our share is finished and checked; `total` counts its rows. */
bool part_hosts_put(struct part_hosts *h, struct stats *total, usec_t started_us,
                    struct err *err) MUST_CHECK;
/* Read what hosts have said that had said nothing yet. *ret_all: every host has. */
bool part_hosts_collect(struct part_hosts *h, bool *ret_all, struct err *err) MUST_CHECK;
/* Ask all of them again. */
void part_hosts_forget(struct part_hosts *h);
/* True when another host has written the manifest of this task. */
bool part_hosts_ended(struct part_hosts *h);
/* Wait until every host has finished its share, the manifest is there or the run stops.
 * ERR_UNAVAILABLE with the host's name when one has reported no progress for --hosts_patience. */
bool part_hosts_wait(struct part_hosts *h, struct err *err) MUST_CHECK;
/* Sum of what all have said; *ret_started_us: when the first of them began. */
void part_hosts_total(const struct part_hosts *h, struct stats *ret, usec_t *ret_started_us);
/* After the manifest: remove what the hosts have said, and as host 0, which writes the last
 * _progress.json, their progress. late: the manifest was there before this host had written its
 * progress for the last time, so that host 0 may have removed the others' before: it removes its
 * own. A failure is only logged. */
void part_hosts_clean(struct sink *sink, int host, bool late);
