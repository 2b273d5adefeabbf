/* The contract between controller and worker: environment names, exit codes, manifest and progress
 * fields. */
#pragma once

#define WP_VERSION 1

/* Environment of a job, set by lower.c, echoed by DescribeTrainingJob. */
#define WP_ENV_REQUEST                                                                             \
    "DROVER_REQUEST" /* hex SHA-256 of the request without itself: proves the job is ours */
#define WP_ENV_ATTEMPT "DROVER_ATTEMPT" /* attempt id, decimal */
#define WP_ENV_TASK    "DROVER_TASK"    /* task id, decimal */
#define WP_ENV_ML_ROOT "DROVER_ML_ROOT" /* in place of /opt/ml on one machine */

/* Objects beside the output, relative to output_folder. */
#define WP_MANIFEST_KEY "_manifest.json"
#define WP_PROGRESS_KEY "_progress.json"

/* Manifest, written last with If-None-Match: *
 * {"version":1,"task":"123","attempt":"456","rows_in":N,"rows_out":N,"successes":N,
 *  "failed_to_download":N,"failed_to_resize":N,"bytes":N,
 *  "started":"RFC3339","ended":"RFC3339","statuses":{"success":N,"<error text>":N},
 *  "objects":[{"key":"00000.tar","size":N,"etag":"..."}],
 *  "sha256":"hex over the objects' lines key\tsize\tetag\n in key order"}
 * An output that was extended (incremental_mode extend) has besides, before objects:
 *  "first_shard":N,"earlier":[{"task":"12","attempt":"34","first_shard":N,"rows_in":N,"rows_out":N,
 *  "successes":N,"failed_to_download":N,"failed_to_resize":N,"bytes":N}]
 * Counts and bytes are of the part added last, "earlier" has those of the parts before it, and
 * objects and sha256 are of all: one manifest proves the whole folder.
 * Keys are relative to output_folder; rows_in = rows the parquet part has; rows_out = rows in all
 * sidecars. statuses holds at most 256 texts, the rarer ones are summed up as "(others)". ETags are
 * compared when both sides have one; a folder sink has etag "". Of index: rows are pairs; rows_in =
 * rows_out = pairs found, successes = lines written, failed_to_resize = pairs that are broken. */

/* Progress, rewritten every progress interval:
 * {"version":1,"task":"123","attempt":"456","rows_in":N or null,"rows_done":N,
 *  "shards_in":N or null,"shards_done":N,"successes":N,"failed_to_download":N,
 *  "failed_to_resize":N,"bytes":N,"bytes_fetched":N,"transfers":N,"rows_per_second":X,
 *  "eta_seconds":N or null,"memory_bytes":N,"updated":"RFC3339"}
 * rows_done is the sum of the three outcomes; bytes are those of finished shards (index: read);
 * transfers are open now; the speed is that of the last minutes and 0 while nothing can be said. */

/* Exit codes of drover-worker. The failure file starts with "<CAUSE>: ", a name of cause.def. */
#define WP_EXIT_OK        0
#define WP_EXIT_FAILED    1 /* see the failure file */
#define WP_EXIT_USAGE     2
#define WP_EXIT_BAD_INPUT 65 /* missing column, truncated parquet */
#define WP_EXIT_NO_ACCESS 77 /* bucket unreadable or not writable */
#define WP_EXIT_DISK_FULL 74
#define WP_EXIT_NETWORK   75
#define WP_EXIT_STOPPED   143 /* SIGTERM: what was durable is kept */
