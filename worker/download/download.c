/* Wires the stages together, resumes, drains on SIGTERM and writes the manifest last.
 *
 * Threads: main (signals, heartbeat), reader, fetch, one decode thread a decoding process, writer.
 * The decoding processes' mother is forked before the first of them. */
#include "download.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "contract.h"
#include "fetch.h"
#include "input.h"
#include "manifest.h"
#include "mode.h"
#include "parquet.h"
#include "pool.h"
#include "resume.h"
#include "url.h"
#include "worker_protocol.h"
#include "writer.h"
#include <curl/curl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#define FAULTS_BYTES_MAX 8192
#define SIGNAL_WAIT_NS   200000000
#define HEAP_KEPT        (8 << 20)

struct download {
    struct options o;
    struct run run;
    struct pool *pool;
    struct duck duck;
    struct input input;
    struct parquet *parquet;
    struct sink *sink; /* of the main thread */
    struct resume resume;
    struct fetch *fetch;
    struct writer *writer;
    const char *task;
    const char *attempt;
    usec_t started_us;
    _Atomic int decoders_left;
    _Atomic bool finished;
    pthread_t main_thread;
};

static const char *env(const char *name)
{
    const char *v = getenv(name);
    return v != NULL ? v : "";
}

/* --- stages
 * ----------------------------------------------------------------------------------------- */

static bool read_shard(struct download *d, int64_t shard_i, struct err *err)
{
    int64_t n = run_shard_rows(&d->run, shard_i);
    for (int64_t row = 0; row < n; row++) {
        struct sample *s;
        if (!parquet_next(d->parquet, &s, err)) {
            return false;
        }
        if (s == NULL) {
            return err_set(err, ERR_INVALID, "'%s' ends before its %lld rows", d->input.name,
                           (long long)d->run.rows);
        }
        s->shard_i = shard_i;
        s->row_i = (int32_t)row;
        if (!queue_push(d->run.queue_rows, &s->item, sizeof *s + 1024)) {
            sample_free(s); /* stopping */
            return true;
        }
        fetch_wake(d->fetch, false);
    }
    return true;
}

/* Rows beyond the count would be lost without a word. */
static bool check_end(struct download *d, struct err *err)
{
    struct sample *s;
    if (!parquet_next(d->parquet, &s, err)) {
        return false;
    }
    if (s != NULL) {
        sample_free(s);
        return err_set(err, ERR_INVALID, "'%s' has more rows than the %lld it says", d->input.name,
                       (long long)d->run.rows);
    }
    return true;
}

static void *reader_main(void *arg)
{
    struct download *d = arg;
    struct err err = ERR_INIT;
    bool ok = true;
    int64_t shards = run_shards(&d->run);
    for (int64_t i = 0; ok && i < shards && !run_stopping(&d->run); i++) {
        if (resume_is_done(&d->resume, i)) {
            ok = parquet_skip(d->parquet, run_shard_rows(&d->run, i), &err);
        } else if (run_shard_open(&d->run)) {
            ok = read_shard(d, i, &err);
        }
    }
    ok = ok && (run_stopping(&d->run) || check_end(d, &err));
    if (!ok) {
        run_fail(&d->run, &err);
    }
    queue_close(d->run.queue_rows);
    fetch_wake(d->fetch, true);
    return NULL;
}

static void take_decoded(struct progress *p, struct sample *s, struct decoded *out)
{
    p->unsupported += out->result == IMAGE_UNSUPPORTED ? 1 : 0;
    if (out->result != IMAGE_OK) {
        sample_fail(s, STATUS_FAILED_TO_RESIZE, "%s", image_result_text(out->result));
        return;
    }
    s->status = STATUS_SUCCESS;
    s->width = out->width;
    s->height = out->height;
    s->original_width = out->original_width;
    s->original_height = out->original_height;
    memcpy(s->hash, out->hash, sizeof s->hash);
    s->exif = out->exif.n > 0 ? xstrndup(out->exif.p, out->exif.n) : NULL;
    s->image_n = out->image.n;
    s->image = xmalloc(out->image.n + 1);
    memcpy(s->image, out->image.p, out->image.n);
}

/* Has the body the hash its row says? True when rows say none. */
static bool hash_holds(const struct run *r, const struct sample *s)
{
    char hash[IMAGE_HASH_HEX_N];
    if (!r->columns->verify) {
        return true;
    }
    const struct cell *want = &s->cells[r->columns->n];
    decode_hash((struct str){(const char *)s->body, s->body_n}, r->o->image.hash, hash);
    return want->kind == CELL_TEXT && str_eq_cstr(want->s, hash);
}

static void *decode_main(void *arg)
{
    struct download *d = arg;
    struct err err = ERR_INIT;
    struct pool_child *child = NULL;
    struct decoded out = {.image = BUF_INIT(IMAGE_OUT_BYTES_MAX),
                          .exif = BUF_INIT(IMAGE_EXIF_BYTES_MAX)};
    bool ok = pool_child_new(d->pool, &child, &err);
    if (!ok) {
        run_fail(&d->run, &err);
    }
    for (struct sample *s = sample_of(queue_pop(d->run.queue_bodies, true)); s != NULL;
         s = sample_of(queue_pop(d->run.queue_bodies, true))) {
        size_t body_n = s->body_n;
        bool died = false;
        buf_reset(&out.image);
        buf_reset(&out.exif);
        bool had_child = ok;
        bool holds = hash_holds(&d->run, s);
        if (ok && holds) {
            ok = pool_decode(child, (struct str){(const char *)s->body, body_n}, &out, &died, &err);
            if (!ok) {
                run_fail(&d->run, &err);
            }
        }
        sample_drop_body(s);
        fetch_release(d->fetch, body_n);
        if (!had_child) {
            sample_free(s);
            continue;
        }
        if (!holds) {
            sample_fail(s, STATUS_FAILED_TO_DOWNLOAD, "hash mismatch");
        } else if (died) {
            sample_fail(s, STATUS_FAILED_TO_RESIZE, "decoder crashed or hit a limit");
        } else {
            take_decoded(&d->run.progress, s, &out);
        }
        if (!queue_push(d->run.queue_results, &s->item, s->image_n + sizeof *s)) {
            sample_free(s);
        }
    }
    buf_done(&out.image);
    buf_done(&out.exif);
    pool_child_free(child);
    if (--d->decoders_left == 0) {
        queue_close(d->run.queue_results);
    }
    return NULL;
}

static void *writer_then_tell(void *arg)
{
    struct download *d = arg;
    (void)writer_main(d->writer);
    d->finished = true;
    (void)pthread_kill(d->main_thread, SIGUSR1);
    return NULL;
}

/* --- the run
 * ---------------------------------------------------------------------------------------- */

static void watch(struct download *d, const sigset_t *signals)
{
    struct heartbeat h;
    heartbeat_init(&h, &d->run.progress, d->sink, d->task, d->attempt,
                   d->o.progress_interval_s * USEC_PER_SEC);
    heartbeat_now(&h);
    while (!d->finished) {
        struct timespec wait = {0, SIGNAL_WAIT_NS};
        int sig = sigtimedwait(signals, NULL, &wait);
        if (sig == SIGTERM || sig == SIGINT) {
            log_event(LOG_INFO, "stop_asked", LF_I("signal", sig));
            run_stop(&d->run, STOP_SIGNAL);
            fetch_wake(d->fetch, true);
        } else if (run_stopping(&d->run)) {
            fetch_wake(d->fetch, true);
        }
        heartbeat_tick(&h);
    }
    heartbeat_now(&h);
    const struct progress *p = &d->run.progress;
    log_event(LOG_INFO, "stages_ended", LF_I("rows", p->rows_done), LF_I("successes", p->successes),
              LF_I("failed_to_download", p->failed_to_download),
              LF_I("failed_to_resize", p->failed_to_resize), LF_I("unsupported", p->unsupported));
}

static void run_stages(struct download *d)
{
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGUSR1);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    d->main_thread = pthread_self();
    int decoders = (int)d->o.processes_count;
    d->decoders_left = decoders;
    pthread_t reader;
    pthread_t fetch;
    pthread_t writer;
    pthread_t *decode = xcalloc((size_t)decoders, sizeof *decode);
    int rc = pthread_create(&writer, NULL, writer_then_tell, d);
    rc |= pthread_create(&fetch, NULL, fetch_main, d->fetch);
    for (int i = 0; i < decoders; i++) {
        rc |= pthread_create(&decode[i], NULL, decode_main, d);
    }
    rc |= pthread_create(&reader, NULL, reader_main, d);
    ASSERT(rc == 0);
    watch(d, &signals);
    (void)pthread_join(reader, NULL);
    (void)pthread_join(fetch, NULL);
    for (int i = 0; i < decoders; i++) {
        (void)pthread_join(decode[i], NULL);
    }
    (void)pthread_join(writer, NULL);
    free(decode);
}

static bool finish(struct download *d, struct err *err)
{
    struct stats total = {0};
    struct sink_listing objects = {0};
    const struct shard_sizes *sizes;
    const int64_t *lost;
    size_t sizes_n = writer_written(d->writer, &sizes);
    size_t lost_n = writer_lost(d->writer, &lost);
    stats_merge(&total, &d->resume.total);
    stats_merge(&total, writer_total(d->writer));
    bool ok = resume_add_lost(d->sink, &d->run, lost, lost_n, &total, err) &&
              resume_check(d->sink, &d->run, sizes, sizes_n, &objects, err);
    if (ok && total.count != d->run.rows) {
        ok = err_set(err, ERR_INTERNAL, "%lld rows came out of %lld", (long long)total.count,
                     (long long)d->run.rows);
    }
    if (ok) {
        stats_sort(&total);
        struct manifest m = {.task = d->task,
                             .attempt = d->attempt,
                             .rows_in = d->run.rows,
                             .rows_out = total.count,
                             .total = total,
                             .started_us = d->started_us,
                             .ended_us = clock_wall_us(),
                             .objects = objects.objects,
                             .objects_n = objects.n};
        AUTO_BUF struct buf b = BUF_INIT(MANIFEST_BYTES_MAX);
        manifest_json(&m, &b);
        /* When extending the manifest is of the shards added last. */
        bool create_only = d->o.mode != MODE_EXTEND;
        ok =
            sink_put(d->sink, WP_MANIFEST_KEY, buf_str(&b), "application/json", create_only, err) &&
            mode_end(d->sink, &d->o, err);
        if (!ok && err->code == ERR_PRECONDITION) {
            (void)err_wrap(err, "another writer finished this part first");
        }
    }
    sink_listing_done(&objects);
    stats_done(&total);
    return ok;
}

static bool prepare(struct download *d, struct err *err)
{
    if (!input_open(&d->o, &d->input, err) || !duck_open(&d->duck, err) ||
        !parquet_open(&d->duck, d->input.path, d->input.name, &d->o, &d->parquet, err)) {
        return false;
    }
    run_init(&d->run, &d->o, parquet_columns(d->parquet), parquet_rows(d->parquet));
    if (!mode_begin(d->sink, &d->o, d->task, &d->run.format, err)) {
        return false;
    }
    if (!resume_load(d->sink, &d->run, &d->resume, err)) {
        return err_wrap(err, "cannot resume in '%s'", d->o.output_folder);
    }
    d->run.progress.rows_done = d->run.progress.rows_kept = d->resume.total.count;
    d->run.progress.successes = d->resume.total.successes;
    d->run.progress.failed_to_download = d->resume.total.failed_to_download;
    d->run.progress.failed_to_resize = d->resume.total.failed_to_resize;
    d->run.progress.shards_done = d->resume.done_n;
    return fetch_new(&d->run, &d->fetch, err) && writer_new(&d->run, &d->duck, &d->writer, err);
}

static bool download(struct download *d, struct err *err)
{
    bool done = false;
    int hosts;
    if (!contract_hosts(&hosts, err)) {
        return false;
    }
    if (hosts != 1) {
        return err_set(err, ERR_INVALID,
                       "this job has %d hosts: download runs on one; set instance_count: 1 and let "
                       "each part be a job",
                       hosts);
    }
    if (!pool_new(&d->o.image, &d->pool, err) || !sink_open(d->o.output_folder, &d->sink, err) ||
        !mode_is_done(d->sink, &d->o, d->task, &done, err)) {
        return false;
    }
    if (done) {
        (void)printf("worker  - '%s' is finished already\n", d->o.output_folder);
        return true;
    }
    if (!prepare(d, err)) {
        return false;
    }
    run_stages(d);
    if (d->run.stop == STOP_ERROR) {
        *err = d->run.err;
        return false;
    }
    if (d->run.stop == STOP_SIGNAL && d->run.progress.rows_done < d->run.rows) {
        return true;
    }
    return finish(d, err);
}

static void download_done(struct download *d)
{
    writer_free(d->writer);
    fetch_free(d->fetch);
    resume_done(&d->resume);
    if (d->run.columns != NULL) {
        run_done(&d->run);
    }
    parquet_free(d->parquet);
    duck_close(&d->duck);
    input_done(&d->input);
    sink_free(d->sink);
    pool_free(d->pool);
    options_done(&d->o);
}

static bool load_options(int argc, char *const *argv, struct options *ret)
{
    AUTO_BUF struct buf faults = BUF_INIT(FAULTS_BYTES_MAX);
    AUTO_JSON json_t *hyper = NULL;
    struct err err = ERR_INIT;
    if (!contract_hyperparameters(&hyper, &err)) {
        buf_addf(&faults, "%s\n", err.message);
    }
    if (faults.n == 0 && options_load(hyper, argc, argv, ret, &faults)) {
        return true;
    }
    (void)fprintf(stderr, "%s", buf_cstr(&faults));
    contract_fail("bad_input", buf_cstr(&faults));
    return false;
}

/* Until the stages run there is nothing to drain. As process 1 of a container an unhandled SIGTERM
 * would be ignored. */
static void stop_at_once(int sig UNUSED)
{
    _exit(WP_EXIT_STOPPED);
}

int download_main(int argc, char *const *argv)
{
    struct err err = ERR_INIT;
    struct download *d = xcalloc(1, sizeof *d);
    d->input.fd = -1;
    d->task = env(WP_ENV_TASK);
    d->attempt = env(WP_ENV_ATTEMPT);
    d->started_us = clock_wall_us();
    if (!load_options(argc, argv, &d->o)) {
        free(d);
        return WP_EXIT_USAGE;
    }
    if (d->o.processes_count == 0) {
        d->o.processes_count = MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
    }
    if (d->o.rules.n > 0) {
        log_event(LOG_WARN, "private_addresses_opened", LF_S("allow_net", d->o.allow_net));
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGTERM, stop_at_once);
    /* Bodies live a moment: two heaps, and pages that are not given back after each. */
    (void)mallopt(M_ARENA_MAX, 2);
    (void)mallopt(M_MMAP_THRESHOLD, HEAP_KEPT);
    (void)mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
    url_setup();
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    bool ok = download(d, &err);
    int rc = WP_EXIT_OK;
    if (!ok) {
        const char *cause = contract_cause(&err);
        rc = contract_exit(cause);
        log_event(LOG_ERROR, "download_failed", LF_S("cause", cause), LF_ERR(&err));
        contract_fail(cause, err.message);
    } else if (d->run.stop == STOP_SIGNAL && d->run.progress.rows_done < d->run.rows) {
        rc = WP_EXIT_STOPPED;
        contract_fail("stopped", "SIGTERM: finished shards are kept");
    }
    download_done(d);
    free(d);
    return rc;
}
