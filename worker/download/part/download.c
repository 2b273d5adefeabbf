/* Connects the stages, resumes, drains on SIGTERM and writes the manifest last.
 *
 * Threads: main (signals), the working thread (begins and ends the run), the progress reporter from
 * the first look at earlier shards, and while the stages run: reader, fetch threads, one decode
 * thread per decoding process, writer. The fork server of the decoding processes is started before
 * the first of them. */
#include "download.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log_people.h"
#include "download/decode/decode_pool.h"
#include "download/fetch/fetch_threads.h"
#include "download/fetch/url.h"
#include "download/image/bbox.h"
#include "download/shard/writer.h"
#include "download_report.h"
#include "finish.h"
#include "incremental_mode.h"
#include "input.h"
#include "job/job_main.h"
#include "job/progress_bar.h"
#include "job/sagemaker_container.h"
#include "part_record.h"
#include "part_rows.h"
#include "resume.h"
#include "second_pass.h"
#include "summary.h"
#include "worker_protocol.h"
#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>

#define COMMAND_COLUMNS 77 /* of a command in a terminal, indented by two */
#define FOREIGN_BYTES   256
#define HEAP_KEPT       (8 << 20)
#define LARGE_BODY      (1 << 20) /* allocated in pages of its own, which are released at once */

struct download {
    struct download_options o;
    struct job_main life;
    struct pipeline run;
    struct decode_pool *pool;
    struct duck duck; /* reads the part with one query that stays open */
    /* writes sidecars; in the reader's database dropped tables would stay in memory until its query
     * ends */
    struct duck duck_out;
    struct input input;
    struct part_rows *rows;
    struct part_record *record;
    struct sagemaker_container_hosts hosts;
    struct part_hosts *part_hosts; /* NULL: this host has the whole part */
    struct sink *sink;             /* of the working thread */
    struct sink *sink_report;
    struct progress_report *report;
    struct progress preparation; /* until the rows are known */
    struct resume resume;
    struct manifest_extend extend;
    struct fetch_threads *fetch_threads;
    struct writer *writer;
    const char *task; /* of this campaign */
    const char *part; /* its name in every campaign of the file */
    const char *attempt;
    usec_t started_us;
    bool finished;
    struct stats total;        /* of all rows, once the manifest is written */
    char *command, *command_1; /* of a second pass, wrapped and on one line; NULL: impossible */
    _Atomic int decoders_left;
    _Atomic int64_t foreign[FOREIGN_COUNT]; /* pictures of formats that are not read */
};

static const char *env(const char *name)
{
    const char *v = getenv(name);
    return v != NULL ? v : "";
}

static bool read_shard(struct download *d, int64_t shard_i, struct err *err)
{
    int64_t n = pipeline_shard_rows(&d->run, shard_i);
    for (int64_t row = 0; row < n; row++) {
        struct sample *s;
        if (!part_rows_next(d->rows, &s, err)) {
            return false;
        }
        ASSERT(s != NULL);
        s->shard_i = shard_i;
        s->row_i = (int32_t)row;
        if (!fetch_threads_push(d->fetch_threads, s)) {
            sample_free(s); /* stopping */
            return true;
        }
    }
    return true;
}

/* Fail when the part has more rows than its count: they would be lost silently. */
static bool check_end(struct download *d, struct err *err)
{
    struct sample *s;
    bool ok = part_rows_next(d->rows, &s, err);
    ASSERT(!ok || s == NULL);
    return ok;
}

static void *reader_main(void *arg)
{
    struct download *d = arg;
    struct err err = ERR_INIT;
    bool ok = true;
    int64_t shards = pipeline_shards(&d->run);
    for (int64_t i = 0; ok && i < shards && !pipeline_stopping(&d->run); i++) {
        if (!pipeline_is_ours(&d->run, i) || resume_is_done(&d->resume, i)) {
            ok = part_rows_skip(d->rows, pipeline_shard_rows(&d->run, i), &err);
        } else if (pipeline_shard_open(&d->run)) {
            ok = read_shard(d, i, &err);
        }
    }
    ok = ok && (pipeline_stopping(&d->run) || check_end(d, &err));
    if (!ok) {
        pipeline_fail(&d->run, &err);
    }
    fetch_threads_close(d->fetch_threads);
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
    if (out->image.n > 0) {
        memcpy(s->image, out->image.p, out->image.n);
    }
}

/* True when the body has the hash of its row, or rows have no hash. */
static bool hash_holds(const struct pipeline *r, const struct sample *s)
{
    char hash[IMAGE_HASH_HEX_N];
    if (!r->columns->verify) {
        return true;
    }
    const struct cell *want = &s->cells[r->columns->n];
    decode_hash((struct str){(const char *)s->body, s->body_n}, r->o->image.hash, hash);
    return want->kind == CELL_TEXT && str_eq_cstr(want->s, hash);
}

/* Checks before decoding. False: the row has failed. */
static bool may_decode(const struct pipeline *r, struct sample *s, struct bboxes *ret)
{
    struct err why = ERR_INIT;
    ret->n = 0;
    if (!hash_holds(r, s)) {
        sample_fail(s, STATUS_FAILED_TO_DOWNLOAD, "hash mismatch");
        return false;
    }
    if (r->columns->boxes_i >= 0 && !sample_boxes(s, r->columns->boxes_i, ret, &why)) {
        sample_fail(s, STATUS_FAILED_TO_RESIZE, "%s", why.message);
        return false;
    }
    return true;
}

static void *decode_main(void *arg)
{
    struct download *d = arg;
    struct err err = ERR_INIT;
    struct decode_pool_child *child = NULL;
    struct decoded out = {.image = BUF_INIT(IMAGE_OUT_BYTES_MAX),
                          .exif = BUF_INIT(IMAGE_EXIF_BYTES_MAX)};
    struct bboxes *boxes = xcalloc(1, sizeof *boxes);
    bool ok = decode_pool_child_new(d->pool, &child, &err);
    if (!ok) {
        pipeline_fail(&d->run, &err);
    }
    for (struct sample *s = sample_of(queue_pop(d->run.queue_bodies, true)); s != NULL;
         s = sample_of(queue_pop(d->run.queue_bodies, true))) {
        size_t body_n = s->body_n;
        bool died = false;
        buf_reset(&out.image);
        buf_reset(&out.exif);
        struct str body = {(const char *)s->body, body_n};
        bool may = may_decode(&d->run, s, boxes);
        if (ok && may) {
            ok = decode_pool_decode(child, body, boxes, &out, &died, &err);
            if (!ok) {
                pipeline_fail(&d->run, &err);
            }
        }
        if (ok && may && !died && out.result == IMAGE_UNSUPPORTED) {
            d->foreign[image_foreign(body)]++;
        }
        sample_drop_body(s);
        fetch_threads_release(d->fetch_threads, s->fetch_thread, body_n);
        if (!ok) { /* the run has failed, not this image: it must not get into a shard */
            sample_free(s);
            continue;
        }
        if (may && died) {
            sample_fail(s, STATUS_FAILED_TO_RESIZE, "decoder crashed or hit a limit");
        } else if (may) {
            take_decoded(&d->run.progress, s, &out);
        }
        if (!queue_push(d->run.queue_results, &s->item, s->image_n + sizeof *s)) {
            sample_free(s);
        }
    }
    buf_done(&out.image);
    buf_done(&out.exif);
    free(boxes);
    decode_pool_child_free(child);
    if (--d->decoders_left == 0) {
        queue_close(d->run.queue_results);
    }
    return NULL;
}

static void on_tick(void *ctx, int64_t asked_us)
{
    struct download *d = ctx;
    if (asked_us >= 0 && d->run.stop == STOP_NO) {
        pipeline_stop(&d->run, STOP_SIGNAL);
    }
    if (asked_us >= d->life.stop_us / 2) {
        pipeline_abandon(&d->run);
    }
    if (pipeline_stopping(&d->run)) {
        fetch_threads_wake(d->fetch_threads);
    }
}

static void run_stages(struct download *d)
{
    int decoders = (int)d->o.processes_count;
    d->decoders_left = decoders;
    pthread_t reader;
    pthread_t writer;
    pthread_t *decode = xcalloc((size_t)decoders, sizeof *decode);
    int rc = pthread_create(&writer, NULL, writer_main, d->writer);
    fetch_threads_start(d->fetch_threads);
    for (int i = 0; i < decoders; i++) {
        rc |= pthread_create(&decode[i], NULL, decode_main, d);
    }
    rc |= pthread_create(&reader, NULL, reader_main, d);
    ASSERT(rc == 0);
    (void)pthread_join(reader, NULL);
    fetch_threads_join(d->fetch_threads);
    for (int i = 0; i < decoders; i++) {
        (void)pthread_join(decode[i], NULL);
    }
    (void)pthread_join(writer, NULL);
    free(decode);
}

static struct finish finish_of(struct download *d)
{
    return (struct finish){.sink = d->sink,
                           .run = &d->run,
                           .resume = &d->resume,
                           .writer = d->writer,
                           .extend = &d->extend,
                           .hosts = d->part_hosts,
                           .task = d->task,
                           .attempt = d->attempt,
                           .started_us = d->started_us};
}

/* Of several hosts, the first waits for the others while it reports their progress. */
static void wait_for_hosts(struct download *d)
{
    struct err err = ERR_INIT;
    const struct finish f = finish_of(d);
    if (d->run.stop == STOP_NO &&
        !(finish_share(&f, &err) && part_hosts_wait(d->part_hosts, &err))) {
        pipeline_fail(&d->run, &err);
    }
}

/* "tiff 3, svg 1" */
static void foreign_text(const struct download *d, char out[static FOREIGN_BYTES])
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < FOREIGN_COUNT; i++) {
        int64_t n = d->foreign[i];
        if (n > 0 && at < FOREIGN_BYTES) {
            at +=
                (size_t)snprintf(out + at, FOREIGN_BYTES - at, "%s%s %" PRIi64, at > 0 ? ", " : "",
                                 image_foreign_name((enum image_foreign)i), n);
        }
    }
}

static bool open_output(const struct download *d, struct sink **ret, struct err *err)
{
    if (!sink_open(d->o.output_folder, ret, err)) {
        return false;
    }
    sink_be_patient(*ret, d->o.s3_patience_s * USEC_PER_SEC);
    return true;
}

static struct download_report report_of(const struct download *d)
{
    return (struct download_report){
        .o = &d->o, .task = d->task, .attempt = d->attempt, .sink = d->sink_report};
}

static bool report_preparation(struct download *d, bool finished, struct err *err)
{
    if (!open_output(d, &d->sink_report, err)) {
        return false;
    }
    struct download_report r = report_of(d);
    r.finished = finished;
    download_report_preparation(&r, &d->preparation, d->hosts.me, &d->report);
    return download_report_claim(&r, d->sink, d->part, d->report, err);
}

static void report_rows(struct download *d)
{
    const struct download_report r = report_of(d);
    progress_report_stop(d->report);
    download_report_rows(&r, &d->run, &d->report);
}

static void run_alive(struct download *d)
{
    const struct progress *p = &d->run.progress;
    job_main_drains(&d->life);
    run_stages(d);
    if (d->part_hosts != NULL && d->run.host == 0) {
        wait_for_hosts(d);
    }
    progress_report_stop(d->report);
    char foreign[FOREIGN_BYTES];
    foreign_text(d, foreign);
    log_event(LOG_INFO, "stages_ended", LF_I("rows", progress_rows(p)),
              LF_I("successes", p->successes), LF_I("failed_to_download", p->failed_to_download),
              LF_I("failed_to_resize", p->failed_to_resize), LF_I("unsupported", p->unsupported),
              LF_S("unsupported_formats", foreign));
}

static enum job_main_end finish(struct download *d, struct err *err)
{
    struct finish f = finish_of(d);
    bool other = d->part_hosts != NULL && d->run.host > 0;
    bool whole;
    f.late = other && part_hosts_ended(d->part_hosts); /* others took its earlier word */
    if ((other && !finish_share(&f, err)) || !finish_part(&f, &d->total, &whole, err)) {
        return JOB_MAIN_FAILED;
    }
    d->finished = whole;
    if (whole) {
        return JOB_MAIN_DONE;
    }
    bool ended = part_hosts_ended(d->part_hosts);
    if (ended) {
        part_hosts_clean(d->sink, d->run.host, f.late);
    }
    log_event(LOG_INFO, "share_finished", LF_I("host", d->run.host + 1),
              LF_I("hosts", d->run.hosts), LF_I("rows", d->run.share_rows));
    log_people("This host's %lld rows are finished; the host that ends last finishes the part.",
               (long long)d->run.share_rows);
    return other || ended ? JOB_MAIN_DONE : JOB_MAIN_STOPPED;
}

/* Open the part, and check that existing output is of this part and these settings. */
static bool compare(struct download *d, bool finished, struct err *err)
{
    int64_t resumed;
    return input_open(&d->o, &d->preparation, &d->input, err) && duck_open(&d->duck, err) &&
           part_rows_open(&d->duck, &d->input, &d->o, &d->rows, err) &&
           part_record_new(&d->o, &d->input, d->part, part_rows_of_files(d->rows), &d->record,
                           err) &&
           incremental_mode_resumes(d->sink, &d->o, d->task, &resumed, err) &&
           part_record_check(d->record, d->sink, finished, resumed, err);
}

static bool prepare(struct download *d, struct err *err)
{
    pipeline_init(&d->run, &d->o, part_rows_columns(d->rows), part_rows_of_files(d->rows),
                  d->input.files_n);
    if (!finish_can_be_checked(&d->run, d->attempt, 0, err)) {
        return false;
    }
    pipeline_take_share(&d->run, d->hosts.me, d->hosts.n);
    if (d->hosts.n > 1 &&
        (!part_hosts_new(&d->run, &d->hosts, d->task, d->attempt, &d->part_hosts, err) ||
         !part_hosts_begin(d->part_hosts, err))) {
        return false;
    }
    if (d->o.mode != MODE_EXTEND) { /* which may still be refused, by its marker */
        progress_report_own(d->report);
    }
    if (!incremental_mode_begin(d->sink, &d->o, d->task, &d->preparation, &d->run.format,
                                &d->extend, err) ||
        !finish_can_be_checked(&d->run, d->attempt, d->run.format.first_shard, err) ||
        !part_record_write(d->record, d->sink, d->run.format.first_shard, err)) {
        return false;
    }
    progress_report_own(d->report);
    report_rows(d);
    if (!resume_load(d->sink, &d->run, &d->resume, err)) {
        return err_wrap(err, "cannot resume in '%s'", d->o.output_folder);
    }
    return fetch_threads_new(&d->run, &d->fetch_threads, err) && duck_open(&d->duck_out, err) &&
           writer_new(&d->run, &d->duck_out, &d->writer, err);
}

/* Call before the first thread. */
static bool begin(void *ctx, struct err *err)
{
    struct download *d = ctx;
    return decode_pool_new(&d->o.image, &d->pool, err);
}

static bool find_hosts(struct download *d, struct err *err)
{
    return sagemaker_container_hosts(&d->hosts, err) &&
           (d->hosts.n == 1 || d->o.mode == MODE_INCREMENTAL ||
            err_set(err, ERR_INVALID,
                    "this job has %d hosts: incremental_mode '%s' is possible on one only",
                    d->hosts.n, d->o.incremental_mode));
}

static enum job_main_end download(void *ctx, struct err *err)
{
    struct download *d = ctx;
    bool done = false;
    if (!find_hosts(d, err) || !open_output(d, &d->sink, err) ||
        !incremental_mode_is_done(d->sink, &d->o, d->task, &done, err) ||
        !report_preparation(d, done, err) || !compare(d, done, err)) {
        progress_report_stop(d->report);
        return JOB_MAIN_FAILED;
    }
    if (done) {
        progress_report_stop(d->report);
        resume_abort_uploads(d->sink);
        summary_tell_already(&d->o);
        if (d->hosts.n > 1) {
            part_hosts_clean(d->sink, d->hosts.me, true);
        }
        bool ok = sink_sweep(d->sink, err) && incremental_mode_end(d->sink, &d->o, d->task, err);
        return ok ? JOB_MAIN_DONE : JOB_MAIN_FAILED; /* killed right after */
    }
    if (!prepare(d, err)) {
        progress_report_stop(d->report);
        return JOB_MAIN_FAILED;
    }
    run_alive(d);
    if (d->run.stop == STOP_ERROR) {
        *err = d->run.err;
        return JOB_MAIN_FAILED;
    }
    if (d->run.stop == STOP_SIGNAL && progress_rows(&d->run.progress) < d->run.share_rows) {
        return JOB_MAIN_STOPPED;
    }
    return finish(d, err);
}

/* Rows in finished shards. */
static int64_t rows_durable(const struct download *d)
{
    return d->resume.total.count + (d->writer != NULL ? writer_total(d->writer)->count : 0);
}

/* The last words, after everything else has been written. */
static void tell_end(const struct download *d, int exit_status)
{
    AUTO_BUF struct buf b = BUF_INIT(SUMMARY_BYTES_MAX);
    bool people = log_for_people();
    bool json = d->o.report == PROGRESS_REPORT_JSON;
    if (d->finished) {
        struct summary s = {.o = &d->o,
                            .total = &d->total,
                            .rows_before = d->resume.total.count,
                            .shards = pipeline_shards(&d->run),
                            .seconds = (double)(clock_wall_us() - d->started_us) / 1e6,
                            .second_pass = json ? d->command_1 : d->command};
        if (json) {
            summary_json(&s, &b);
        } else if (people) {
            summary_text(&s, progress_bar_width(STDERR_FILENO), &b);
        }
    } else if (people && exit_status != WP_EXIT_OK && d->run.columns != NULL) {
        summary_again(&d->o, exit_status == WP_EXIT_STOPPED, rows_durable(d), d->run.share_rows,
                      &b);
    }
    (void)fwrite(buf_cstr(&b), 1, b.n, stderr);
}

static void download_done(struct download *d)
{
    part_hosts_free(d->part_hosts);
    writer_free(d->writer);
    fetch_threads_free(d->fetch_threads);
    resume_done(&d->resume);
    manifest_extend_done(&d->extend);
    if (d->run.columns != NULL) {
        pipeline_done(&d->run);
    }
    part_rows_free(d->rows);
    part_record_free(d->record);
    duck_close(&d->duck);
    duck_close(&d->duck_out);
    input_done(&d->input);
    stats_done(&d->total);
    free(d->command);
    free(d->command_1);
    sink_free(d->sink_report);
    sink_free(d->sink);
    decode_pool_free(d->pool);
    options_done(&d->o);
}

static bool load_options(const json_t *hyperparameters, int argc, char *const *argv, void *options,
                         struct buf *faults)
{
    return options_load(hyperparameters, argc, argv, options, faults);
}

/* A buffer is NULL when there can be no second pass. */
static char *second_pass(const struct download_options *o, size_t columns)
{
    AUTO_BUF struct buf b = BUF_INIT(SECOND_PASS_BYTES_MAX);
    return second_pass_command(o, program_invocation_name, columns, &b) ? buf_take(&b) : NULL;
}

/* How lines look and what is told at the end. */
static void set_words(struct download *d)
{
    if (d->o.report == PROGRESS_REPORT_JSON) {
        log_set_terminal_style(LOG_STYLE_JSON);
    }
    d->command = second_pass(&d->o, COMMAND_COLUMNS);
    d->command_1 = second_pass(&d->o, 0);
}

int download_main(int argc, char *const *argv)
{
    struct download *d = xcalloc(1, sizeof *d);
    job_main_begin();
    d->input.fd = -1;
    d->task = env(WP_ENV_TASK);
    d->part = env(WP_ENV_PART);
    if (d->part[0] == '\0') {
        d->part = d->task;
    }
    d->attempt = env(WP_ENV_ATTEMPT);
    d->started_us = clock_wall_us();
    if (!job_main_settings(load_options, argc, argv, &d->o)) {
        free(d);
        return WP_EXIT_USAGE;
    }
    set_words(d); /* before settings change */
    if (d->o.processes_count == 0) {
        d->o.processes_count = MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
    }
    if (d->o.enable_wandb) {
        log_event(LOG_WARN, "nothing_is_sent_to_wandb",
                  LF_S("figures", "_progress.json, _stats.json, drover's metrics"));
    }
    if (d->o.rules.n > 0) {
        log_event(LOG_WARN, "private_addresses_opened", LF_S("allow_net", d->o.allow_net));
    }
    /* Bodies are short-lived: use two heaps and keep freed pages. */
    (void)mallopt(M_ARENA_MAX, 2);
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BODY);
    (void)mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
    url_setup();
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    d->life = (struct job_main){.failed_event = "download_failed",
                                .stopped = "SIGTERM: finished shards are kept",
                                .again = summary_how_to_go_on(&d->o),
                                .stop_us = d->o.stop_s * USEC_PER_SEC,
                                .begin = begin,
                                .work = download,
                                .tick = on_tick,
                                .ctx = d};
    int rc = job_main_run(&d->life);
    tell_end(d, rc);
    download_done(d);
    free(d);
    return rc;
}
