/* Shared state of a download. */
#include "pipeline.h"
#include "download/shard/body.h"
#include <time.h>

#define GUESS_NS 100000000

static void count_shards(struct pipeline *r)
{
    int64_t per = r->format.rows_per_shard;
    int64_t shards = 0;
    r->shard_ends = xcalloc(r->files_n, sizeof *r->shard_ends);
    for (size_t i = 0; i < r->files_n; i++) {
        r->rows += r->file_rows[i];
        shards += (r->file_rows[i] + per - 1) / per;
        r->shard_ends[i] = shards;
    }
}

void pipeline_init(struct pipeline *r, const struct download_options *o,
                   const struct columns *columns, const int64_t *file_rows, size_t files_n)
{
    ASSERT(files_n > 0);
    *r = (struct pipeline){
        .o = o, .columns = columns, .file_rows = file_rows, .files_n = files_n, .err = ERR_INIT};
    r->format = (struct shard_format){.rows_per_shard = o->number_sample_per_shard,
                                      .digits = (int)o->oom_shard_count,
                                      .image = o->image.format,
                                      .hash = o->image.hash,
                                      .exif = o->extract_exif,
                                      .output = o->output};
    count_shards(r);
    int64_t rows_open =
        o->processes_count * PIPELINE_IMAGES_A_SECOND * (o->timeout_s + o->host_patience_s + 1);
    rows_open = MIN(MAX(rows_open, PIPELINE_ROWS_OPEN_MIN), PIPELINE_ROWS_OPEN_MAX);
    int64_t open = rows_open / o->number_sample_per_shard + 1;
    int64_t least = o->number_sample_per_shard > PIPELINE_LARGE_SHARD_ROWS ? 2 : 3;
    r->shards_open_least = (int)least;
    r->held_bytes = body_held_bytes(o->output, sink_is_s3(o->output_folder));
    r->shards_open_max = (int)MIN(MAX(open, least), PIPELINE_SHARDS_OPEN_MAX);
    pipeline_take_share(r, 0, 1);
    int64_t fetch_threads_n = o->fetch_threads != 0
                                  ? o->fetch_threads
                                  : (o->processes_count + PIPELINE_FETCH_THREAD_PROCESSES - 1) /
                                        PIPELINE_FETCH_THREAD_PROCESSES;
    r->transfers = (int)MIN(o->thread_count * MAX(o->processes_count, 1), PIPELINE_TRANSFERS_MAX);
    r->fetch_threads_n =
        (int)MIN(MAX(fetch_threads_n, 1), MIN(PIPELINE_FETCH_THREADS_MAX, r->transfers));
    for (int i = 0; i < r->fetch_threads_n; i++) {
        r->queue_rows[i] = queue_new(PIPELINE_ROWS_BYTES_MAX / (size_t)r->fetch_threads_n);
    }
    r->queue_bodies = queue_new(PIPELINE_BODIES_BYTES_MAX);
    r->queue_results = queue_new(PIPELINE_RESULTS_BYTES_MAX);
    queue_wake_at(r->queue_results, PIPELINE_RESULTS_WAKE_BYTES);
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->window, NULL);
}

static void drain(struct queue *q)
{
    for (struct queue_item *i = queue_pop(q, false); i != NULL; i = queue_pop(q, false)) {
        sample_free(sample_of(i));
    }
    queue_free(q);
}

void pipeline_done(struct pipeline *r)
{
    for (int i = 0; i < r->fetch_threads_n; i++) {
        drain(r->queue_rows[i]);
    }
    drain(r->queue_bodies);
    drain(r->queue_results);
    free(r->shard_ends);
    (void)pthread_mutex_destroy(&r->lock);
    (void)pthread_cond_destroy(&r->window);
}

void pipeline_fail(struct pipeline *r, const struct err *err)
{
    (void)pthread_mutex_lock(&r->lock);
    if (r->err.code == ERR_NONE) {
        r->err = *err;
    }
    (void)pthread_mutex_unlock(&r->lock);
    pipeline_stop(r, STOP_ERROR);
}

void pipeline_stop(struct pipeline *r, enum stop why)
{
    (void)pthread_mutex_lock(&r->lock);
    if (r->stop != STOP_ERROR) {
        r->stop = (int)why;
    }
    (void)pthread_cond_broadcast(&r->window);
    (void)pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < r->fetch_threads_n; i++) {
        queue_close(r->queue_rows[i]);
    }
}

void pipeline_abandon(struct pipeline *r)
{
    if (!r->abandoned) {
        r->abandoned = true;
        queue_close(r->queue_results);
    }
}

bool pipeline_stopping(const struct pipeline *r)
{
    return r->stop != STOP_NO;
}

int64_t pipeline_host_share(int64_t transfers)
{
    int64_t few =
        MIN(MAX(transfers / PIPELINE_HOST_SHARE, PIPELINE_HOST_MIN), PIPELINE_HOST_ENOUGH);
    return MAX(few, transfers / PIPELINE_HOST_SHARE_OF_MANY);
}

int64_t pipeline_host_connections(const struct pipeline *r)
{
    int64_t asked = r->o->host_connections;
    return asked != 0 ? asked : pipeline_host_share(r->transfers);
}

int64_t pipeline_shards(const struct pipeline *r)
{
    return r->shard_ends[r->files_n - 1];
}

int64_t pipeline_shard_rows(const struct pipeline *r, int64_t shard_i)
{
    ASSERT(shard_i >= 0 && shard_i < pipeline_shards(r));
    size_t lo = 0; /* the first file that ends after the shard */
    size_t hi = r->files_n - 1;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (r->shard_ends[mid] > shard_i) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    int64_t per = r->format.rows_per_shard;
    int64_t in_file = shard_i - (lo > 0 ? r->shard_ends[lo - 1] : 0);
    return MIN(per, r->file_rows[lo] - in_file * per);
}

bool pipeline_is_ours(const struct pipeline *r, int64_t shard_i)
{
    return shard_i % r->hosts == r->host;
}

int64_t pipeline_rows_of(const struct pipeline *r, int host, int64_t *ret_shards)
{
    int64_t rows = 0;
    *ret_shards = 0;
    for (int64_t i = host; i < pipeline_shards(r); i += r->hosts) {
        rows += pipeline_shard_rows(r, i);
        ++*ret_shards;
    }
    return rows;
}

void pipeline_take_share(struct pipeline *r, int host, int hosts)
{
    int64_t shards;
    ASSERT(host >= 0 && host < hosts);
    r->host = host;
    r->hosts = hosts;
    r->share_rows = pipeline_rows_of(r, host, &shards);
    r->progress.rows_in = r->share_rows;
    r->progress.shards_in = shards;
}

/* True when one more shard may be open; always for the oldest few, or no shard would ever be
 * finished. */
static bool has_room(const struct pipeline *r)
{
    int64_t most = (int64_t)r->held_bytes;
    int64_t room = (int64_t)MAX(PIPELINE_PARTS_BYTES * (size_t)r->o->processes_count,
                                PIPELINE_PARTS_BYTES_MIN);
    if (r->shards_open < r->shards_open_least || r->shards_open >= r->shards_open_max) {
        return r->shards_open < r->shards_open_least;
    }
    int64_t rows = r->body_rows;
    int64_t shard = rows > 0 ? r->body_bytes / rows * r->format.rows_per_shard : most;
    int64_t text = rows > 0 ? r->text_bytes / rows * r->format.rows_per_shard : 0;
    if ((r->shards_open + 1) * text > (int64_t)PIPELINE_TEXT_BYTES) {
        return false;
    }
    return most == 0 || (r->shards_open + 1) * MIN(shard, most) <= room;
}

bool pipeline_shard_open(struct pipeline *r)
{
    (void)pthread_mutex_lock(&r->lock);
    while (!has_room(r) && !pipeline_stopping(r)) {
        struct timespec until; /* the estimate changes without a signal */
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += GUESS_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&r->window, &r->lock, &until);
    }
    bool ok = !pipeline_stopping(r);
    r->shards_open += ok ? 1 : 0;
    (void)pthread_mutex_unlock(&r->lock);
    return ok;
}

void pipeline_shard_closed(struct pipeline *r)
{
    (void)pthread_mutex_lock(&r->lock);
    ASSERT(r->shards_open > 0);
    r->shards_open--;
    (void)pthread_cond_signal(&r->window);
    (void)pthread_mutex_unlock(&r->lock);
}
