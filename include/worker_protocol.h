/* The contract between controller and worker: environment names, exit codes, manifest and progress
 * fields. */
#pragma once

#define WP_VERSION 1

/* Environment of a job. Set by training_request.c, echoed by DescribeTrainingJob. */
/* SHA-256 (hex) of the request without this variable: proves that the job is ours. */
#define WP_ENV_REQUEST "DROVER_REQUEST"
#define WP_ENV_ATTEMPT "DROVER_ATTEMPT" /* attempt id, decimal */
#define WP_ENV_TASK    "DROVER_TASK"    /* task id, decimal */
#define WP_ENV_PART    "DROVER_PART" /* "<stage>/<number>": the same in every campaign of a file */
/* How many of the variables above each job gets: AWS allows 100 in all. */
#define WP_ENV_N 4
/* Of the stage's output_kms_key, to drover-worker only: what it uploads is encrypted with it. */
#define WP_ENV_OUTPUT_KMS_KEY "DROVER_OUTPUT_KMS_KEY"
#define WP_ENV_ML_ROOT        "DROVER_ML_ROOT" /* replaces /opt/ml on one machine */
/* The hosts of a job without resourceconfig.json: "a,b,c" or "a=address,..."; and which it is. */
#define WP_ENV_HOSTS "DROVER_HOSTS"
#define WP_ENV_HOST  "DROVER_HOST"

/* Objects in the output folder, relative to output_folder. */
#define WP_MANIFEST_KEY "_manifest.json"
#define WP_PROGRESS_KEY "_progress.json"

/* What the controller reads of an output, in its only thread; one beyond cannot be checked. Of a
 * manifest's output the objects directly in its folder count, each folder of files as one; of one
 * verified as img2dataset's every key (with output_format files, its default: each image). */
#define WP_OBJECTS_MAX        200000
#define WP_MANIFEST_BYTES_MAX (16 * 1024 * 1024)
#define WP_STATS_BYTES_MAX    (1024 * 1024) /* one _stats.json */

/* Manifest, written last with If-None-Match: *
 * {"version":1,"task":"123","attempt":"456","rows_in":N,"rows_out":N,"successes":N,
 * "failed_to_download":N,"failed_to_resize":N,"bytes":N,
 * "started":"RFC3339","ended":"RFC3339","statuses":{"success":N,"<error text>":N},
 * "objects":[{"key":"00000.tar","size":N,"etag":"..."}], "sha256":"hex over the objects' lines
 * key\tsize\tetag\n in key order"} An extended output (incremental_mode extend) also has, before
 * "objects":
 * "first_shard":N,"earlier":[{"task":"12","attempt":"34","first_shard":N,"rows_in":N,"rows_out":N,
 * "successes":N,"failed_to_download":N,"failed_to_resize":N,"bytes":N}] Counts and bytes describe
 * the part added last, "earlier" the parts before it; objects and sha256 cover all of them: one
 * manifest proves the whole folder. Keys are relative to output_folder; one that ends with '/' is a
 * folder of files (output_format files), of size 0 and without an ETag; rows_in = rows in the
 * parquet part; rows_out = rows in all sidecars. statuses holds at most 256 texts, the rarest are
 * added up as "(others)". ETags are compared when both sides have one; a folder sink has etag "".
 * For index, rows are pairs: rows_in = rows_out = pairs found, successes = lines written,
 * failed_to_resize = broken pairs. */

/* Progress, rewritten every progress interval:
 * {"version":1,"task":"123","attempt":"456","rows_in":N or null,"rows_done":N,
 * "shards_in":N or null,"shards_done":N,"successes":N,"failed_to_download":N,
 * "failed_to_resize":N,"bytes":N,"bytes_fetched":N,"transfers":N,"rows_waiting":N,
 * "rows_waiting_for_silent_hosts":N,"rows_waiting_for_one_host":N,"network_away":false,
 * "rows_per_second":X,"eta_seconds":N or null,"memory_bytes":N,"updated":"RFC3339"}
 * rows_done is the sum of the three outcomes. bytes counts finished shards (index: bytes read).
 * While input objects are read or an earlier output is removed, before the rows are known, there
 * are also "prepared":N,"to_prepare":N: objects done and all, of the step that goes on. transfers
 * are open now. Rows wait for hosts that are busy, paused or silent, and all of them when
 * the network is away. The speed covers the last minutes; 0 until it is known. Where several hosts
 * share a part, this is the sum over all of them; hosts other than the first write their own as
 * _progress-1.json and so on, which are removed at the end. */

/* Bounds of settings (worker_download.def, worker_index.def, worker_copy.def). */
#define IMAGE_BODY_BYTES_MAX     (64u << 20) /* compressed, as downloaded */
#define IMAGE_SIDE_MAX           16384
#define IMAGE_PIXELS_MAX         (IMAGE_SIDE_MAX * IMAGE_SIDE_MAX)
#define INDEX_SHARDS_AT_ONCE_MAX 256
#define COPY_FILES_AT_ONCE_MAX   16
#define COPY_FILES_MAX           1000000
/* Words of X-Robots-Tag that forbid use, unless disallowed_header_directives says otherwise. */
#define WP_ROBOTS_DIRECTIVES "noai,noimageai,noindex,noimageindex"

/* Exit codes of drover-worker. The failure file starts with "<CAUSE>: ", a name of cause.def. */
#define WP_EXIT_OK        0
#define WP_EXIT_FAILED    1 /* see the failure file */
#define WP_EXIT_USAGE     2
#define WP_EXIT_BAD_INPUT 65 /* missing column, truncated parquet */
#define WP_EXIT_NO_ACCESS 77 /* bucket unreadable or not writable */
#define WP_EXIT_DISK_FULL 74
#define WP_EXIT_NETWORK   75
#define WP_EXIT_STOPPED   143 /* SIGTERM; what was durable is kept */
