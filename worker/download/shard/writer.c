/* Rows are given to the shard's body in order of completion, as img2dataset does. Their data is
 * kept until the sidecar is written in row order. */
#include "writer.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "download/part/resume.h"
#include "io/sink.h"
#include "sidecar.h"
#include <sys/mman.h>

#define SAMPLE_BYTES_MAX ((size_t)IMAGE_OUT_BYTES_MAX + (256u << 20))

struct open_shard {
    int64_t i;
    struct sample **samples; /* samples[rows_n], NULL until done */
    int64_t rows_n;
    int64_t done_n;
    struct body *body;
    struct stats stats;
};
struct writer {
    struct pipeline *run;
    struct sink *sink;
    struct sidecar *sidecar;
    const struct body_ops *ops;
    struct body_io io;
    struct buf scratch; /* of io */
    struct open_shard *open[PIPELINE_SHARDS_OPEN_MAX];
    int open_n;
    struct stats total;
    struct shard_sizes *written;
    size_t written_n;
    int64_t *lost;
    size_t lost_n;
};

bool writer_new(struct pipeline *run, struct duck *duck, struct writer **ret, struct err *err)
{
    struct writer *w = xcalloc(1, sizeof *w);
    enum output_format output = run->format.output;
    w->run = run;
    w->ops = body_ops(output);
    buf_init(&w->scratch, SAMPLE_BYTES_MAX);
    if (!sink_open(run->o->output_folder, &w->sink, err) ||
        !sidecar_new(duck, run->columns, &run->format, output == OUTPUT_PARQUET, &w->sidecar,
                     err)) {
        writer_free(w);
        return false;
    }
    w->io = (struct body_io){.sink = w->sink,
                             .format = &run->format,
                             .columns = run->columns,
                             .sidecar = w->sidecar,
                             .scratch = &w->scratch};
    sink_be_patient(w->sink, run->o->s3_patience_s * USEC_PER_SEC);
    *ret = w;
    return true;
}

static void shard_free(struct writer *w, struct open_shard *s)
{
    if (s->body != NULL) {
        w->ops->abort(s->body);
    }
    for (int64_t i = 0; i < s->rows_n; i++) {
        sample_free(s->samples[i]);
    }
    stats_done(&s->stats);
    free(s->samples);
    free(s);
}

void writer_free(struct writer *w)
{
    if (w == NULL) {
        return;
    }
    for (int i = 0; i < w->open_n; i++) {
        shard_free(w, w->open[i]);
    }
    stats_done(&w->total);
    sidecar_free(w->sidecar);
    sink_free(w->sink);
    buf_done(&w->scratch);
    free(w->written);
    free(w->lost);
    free(w);
}

static bool shard_of(struct writer *w, int64_t i, struct open_shard **ret, struct err *err)
{
    for (int k = 0; k < w->open_n; k++) {
        if (w->open[k]->i == i) {
            *ret = w->open[k];
            return true;
        }
    }
    struct open_shard *s = xcalloc(1, sizeof *s);
    s->i = i;
    s->rows_n = pipeline_shard_rows(w->run, i);
    s->samples = xcalloc((size_t)s->rows_n, sizeof(struct sample *));
    s->stats.start_us = clock_wall_us();
    ASSERT(w->open_n < PIPELINE_SHARDS_OPEN_MAX);
    w->open[w->open_n++] = s;
    *ret = s;
    return w->ops->begin(&w->io, i, &s->body, err);
}

static bool put_sidecar(struct writer *w, struct open_shard *s, int64_t *ret_size, struct err *err)
{
    char name[SHARD_KEY_BYTES];
    shard_name(&w->run->format, s->i, ".parquet", name);
    return sidecar_put(w->sidecar, w->sink, name, s->samples, (size_t)s->rows_n, ret_size, err);
}

static bool put_stats(struct writer *w, struct open_shard *s, struct err *err)
{
    char name[SHARD_KEY_BYTES];
    AUTO_BUF struct buf b = BUF_INIT(STATS_FILE_BYTES_MAX);
    s->stats.end_us = clock_wall_us();
    stats_json(&s->stats, &b);
    shard_name(&w->run->format, s->i, "_stats.json", name);
    if (b.overflow) {
        return err_set(err, ERR_LIMIT, "'%s' is longer than %zu bytes", name, b.max);
    }
    return sink_put(w->sink, name, buf_str(&b), "application/json", true, err);
}

static void note_written(struct writer *w, struct open_shard *s, const struct shard_sizes *sizes)
{
    w->written = xrealloc(w->written, (w->written_n + 1) * sizeof *w->written);
    w->written[w->written_n++] = *sizes;
    stats_merge(&w->total, &s->stats);
    struct progress *p = &w->run->progress;
    p->shards_done++;
    p->bytes += sizes->body.bytes + sizes->parquet_size;
}

/* Write body, parquet and stats, each create-only. When the body exists, another writer owns this
 * shard and we write nothing more of it. When a later piece exists, two writers have mixed. */
static bool finish(struct writer *w, struct open_shard *s, struct err *err)
{
    struct shard_sizes sizes = {.shard_i = s->i};
    struct err e = ERR_INIT;
    if (!w->ops->finish(TAKE(s->body), &sizes.body, &e)) {
        if (e.code != ERR_PRECONDITION) {
            *err = e;
            return false;
        }
        log_event(LOG_WARN, "shard_lost_to_other_writer", LF_I("shard", s->i));
        w->lost = xrealloc(w->lost, (w->lost_n + 1) * sizeof *w->lost);
        w->lost[w->lost_n++] = s->i;
        return true;
    }
    bool sidecar = output_has_sidecar(w->run->format.output);
    if ((sidecar && !put_sidecar(w, s, &sizes.parquet_size, &e)) || !put_stats(w, s, &e)) {
        *err = e;
        if (e.code != ERR_PRECONDITION) {
            return false;
        }
        resume_remove_shard(w->sink, w->run, s->i);
        return err_wrap(err, "another writer is at work in the same output folder");
    }
    note_written(w, s, &sizes);
    return true;
}

static void count(struct writer *w, const struct sample *s)
{
    struct progress *p = &w->run->progress;
    switch (s->status) {
    case STATUS_SUCCESS:
        p->successes++;
        break;
    case STATUS_FAILED_TO_DOWNLOAD:
        p->failed_to_download++;
        break;
    case STATUS_FAILED_TO_RESIZE:
        p->failed_to_resize++;
        break;
    }
}

/* Takes ownership of the sample. */
static bool add(struct writer *w, struct sample *sample, struct err *err)
{
    struct open_shard *s;
    bool ok = shard_of(w, sample->shard_i, &s, err);
    ASSERT(sample->row_i >= 0 && sample->row_i < s->rows_n);
    ASSERT(s->samples[sample->row_i] == NULL);
    s->samples[sample->row_i] = sample;
    s->done_n++;
    count(w, sample);
    stats_add(&s->stats, sample->status,
              sample->status == STATUS_SUCCESS ? "success" : sample->error);
    if (ok) {
        int64_t before = s->body->size.bytes;
        ok = w->ops->add(s->body, sample, err);
        w->run->body_bytes += s->body->size.bytes - before;
    }
    w->run->text_bytes += (int64_t)sidecar_row_bytes(sample);
    w->run->body_rows++;
    if (!ok || s->done_n < s->rows_n) {
        return ok;
    }
    ok = finish(w, s, err);
    for (int k = 0; k < w->open_n; k++) {
        if (w->open[k] == s) {
            w->open[k] = w->open[--w->open_n];
            break;
        }
    }
    shard_free(w, s);
    pipeline_shard_closed(w->run);
    return ok;
}

void *writer_main(void *arg)
{
    struct writer *w = arg;
    struct err err = ERR_INIT;
    bool ok = true;
    for (struct sample *s = sample_of(queue_pop(w->run->queue_results, true)); s != NULL;
         s = sample_of(queue_pop(w->run->queue_results, true))) {
        if (!ok || w->run->abandoned) {
            sample_free(s); /* drained, so that no thread waits for space in the queue */
            continue;
        }
        ok = add(w, s, &err);
        if (!ok) {
            pipeline_fail(w->run, &err);
        }
    }
    /* Not in writer_free, which need not wait for decoders that hang. */
    while (w->open_n > 0) {
        shard_free(w, w->open[--w->open_n]);
    }
    return NULL;
}

const struct stats *writer_total(const struct writer *w)
{
    return &w->total;
}

size_t writer_written(const struct writer *w, const struct shard_sizes **ret_sizes)
{
    *ret_sizes = w->written;
    return w->written_n;
}

size_t writer_lost(const struct writer *w, const int64_t **ret)
{
    *ret = w->lost;
    return w->lost_n;
}
