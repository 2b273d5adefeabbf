/* State shared by the stages of one download. Rows flow reader -> rows -> fetch threads -> bodies
 * -> decode threads -> results -> writer. Every arrow is a queue bounded in bytes, or a budget. The
 * first error stops all stages. SIGTERM stops the stages before the writer, which finishes the
 * complete shards. */
#pragma once
#include "download/shard/shard.h"
#include "job/progress_report.h"
#include "options.h"
#include <pthread.h>
#include <stdatomic.h>

#define PIPELINE_FETCH_THREADS_MAX      32
#define PIPELINE_FETCH_THREAD_PROCESSES 8 /* decoding processes one fetching thread can feed */
/* Transfers at once per host: an eighth of all, but 32 to 64; a sixteenth where that is more. The
 * largest host of a part like LAION's has an eighth of its rows: with less all wait for it. */
#define PIPELINE_HOST_SHARE         8
#define PIPELINE_HOST_MIN           32
#define PIPELINE_HOST_ENOUGH        64
#define PIPELINE_HOST_SHARE_OF_MANY 16
#define PIPELINE_TRANSFERS_MAX      32768
#define PIPELINE_ROWS_BYTES_MAX     (8u << 20) /* of all fetch threads */
/* of a fetch thread: bodies arriving and waiting for a decoder */
#define PIPELINE_BODIES_BYTES_MAX   (64u << 20)
#define PIPELINE_RESULTS_BYTES_MAX  (32u << 20)
#define PIPELINE_RESULTS_WAKE_BYTES (256u << 10) /* wake the writer at once from here on */
#define PIPELINE_SHARDS_OPEN_MAX    512
#define PIPELINE_LARGE_SHARD_ROWS   20000 /* an open shard needs about 1 kB of memory per row */
/* What open shards keep in memory (body_held_bytes): limit over all of them per decoding process,
 * estimated from the shards so far. */
#define PIPELINE_PARTS_BYTES     ((size_t)32 << 20)
#define PIPELINE_PARTS_BYTES_MIN ((size_t)64 << 20)
/* The texts of their rows, which stay in memory until a shard is written. */
#define PIPELINE_TEXT_BYTES ((size_t)256 << 20)
/* Approximate rows of open shards: as many as the decoders process while the slowest URL of the
 * oldest shard reaches its deadline, or its host our patience, so that decoders never wait for
 * it. */
#define PIPELINE_ROWS_OPEN_MIN   4096
#define PIPELINE_ROWS_OPEN_MAX   400000
#define PIPELINE_IMAGES_A_SECOND 500 /* maximum of one decoding process */

enum stop { STOP_NO, STOP_SIGNAL, STOP_ERROR };

struct pipeline {
    const struct download_options *o;
    const struct columns *columns;
    struct shard_format format;
    int64_t rows;
    const int64_t *file_rows; /* file_rows[files_n]; borrowed */
    int64_t *shard_ends;      /* shard_ends[files_n]: shards of the files up to this one */
    size_t files_n;
    int host, hosts;    /* our share: every shard i with i % hosts == host */
    int64_t share_rows; /* rows of our share */
    struct progress progress;
    int fetch_threads_n;
    int transfers; /* at once, over all fetch threads */
    struct queue *queue_rows[PIPELINE_FETCH_THREADS_MAX];
    struct queue *queue_bodies;
    struct queue *queue_results;
    _Atomic int stop;
    _Atomic bool abandoned; /* open shards are discarded */
    /* Results so far, to estimate the size of a shard. */
    _Atomic int64_t body_rows, body_bytes, text_bytes;
    size_t held_bytes;    /* an open shard keeps in memory, at most; 0: nothing */
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t window;
    int shards_open;
    int shards_open_max, shards_open_least;
    struct err err; /* the first error */
};

/* All borrowed. file_rows[files_n]: the rows of each file of the part; a shard has rows of one
 * file. */
void pipeline_init(struct pipeline *r, const struct download_options *o,
                   const struct columns *columns, const int64_t *file_rows, size_t files_n);
void pipeline_done(struct pipeline *r);
/* Several hosts share the part, and this is number `host` of them. Without this call the share is
 * the whole part. */
void pipeline_take_share(struct pipeline *r, int host, int hosts);
/* True for a shard of our share. */
bool pipeline_is_ours(const struct pipeline *r, int64_t shard_i);
/* Rows and shards of the share of one of the hosts. */
int64_t pipeline_rows_of(const struct pipeline *r, int host, int64_t *ret_shards);
/* Keep the first error and stop all stages. */
void pipeline_fail(struct pipeline *r, const struct err *err);
/* Stop the stages before the writer. */
void pipeline_stop(struct pipeline *r, enum stop why);
/* No time is left to finish open shards: the writer discards them. Call from any thread after the
 * stop. */
void pipeline_abandon(struct pipeline *r);
bool pipeline_stopping(const struct pipeline *r);
int64_t pipeline_shards(const struct pipeline *r); /* of the part */
int64_t pipeline_shard_rows(const struct pipeline *r,
                            int64_t shard_i); /* the last one of a file may be short */
/* Maximum of transfers at once per host; host_share: its share of those when nothing is asked. */
int64_t pipeline_host_share(int64_t transfers);
int64_t pipeline_host_connections(const struct pipeline *r);
/* Wait until one more shard may be open. False when stopping. */
bool pipeline_shard_open(struct pipeline *r) MUST_CHECK;
void pipeline_shard_closed(struct pipeline *r);
