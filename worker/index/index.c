/* Connects listing, scanning threads and ordered output, and writes the manifest last.
 *
 * Threads: main (signals), the working thread, the progress report, and one per shard read at once.
 * An index is complete or absent: a stopped or killed run leaves a checkpoint and data that is not
 * visible under the output's names, and the next run continues from there. */
#include "index.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/log_people.h"
#include "index_options.h"
#include "io/sink.h"
#include "job/job_main.h"
#include "job/last_words.h"
#include "job/manifest.h"
#include "job/progress_report.h"
#include "job/sagemaker_container.h"
#include "order.h"
#include "shards.h"
#include "worker_protocol.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#define BAD_TARS_LOGGED    100
#define THREADS_FOLDER_MIN 4
#define THREADS_FOLDER_MAX 16
#define THREADS_S3_MIN     16
#define THREADS_S3_MAX     32

#define SUMMARY_NAME "summary.json"

struct index {
    struct index_options o;
    struct job_main life;
    struct progress progress;
    struct shards shards;
    struct sink *sink;       /* used by the main thread */
    struct sink *lines_sink; /* used by order */
    struct order *order;
    char *input;
    char *prefix; /* prefix of paths, with '/' at its end, or empty */
    const char *task;
    const char *attempt;
    usec_t started_us;
    bool finished;    /* by this run */
    bool left;        /* for the next run to go on */
    _Atomic int stop; /* 1: an error or a signal */
    _Atomic bool signalled;
    _Atomic int64_t bad_told; /* archives */
};

struct worker { /* one scanning thread */
    struct index *x;
    struct source src;
    struct scan scan;
    size_t shard_i;
    struct scan_counts told; /* the part of scan.counts (one shard) already added to the progress */
    int64_t told_bytes;
    struct checkpoint_sums sums; /* of the shard */
    pthread_t thread;
};

static const char *env(const char *name)
{
    const char *v = getenv(name);
    return v != NULL ? v : "";
}

static void tell_progress(struct worker *w)
{
    struct progress *p = &w->x->progress;
    const struct scan_counts *c = &w->scan.counts;
    int64_t pairs = scan_counts_pairs(c) - scan_counts_pairs(&w->told);
    int64_t whole = c->pairs[PAIR_WHOLE] - w->told.pairs[PAIR_WHOLE];
    p->successes += whole;
    p->failed_to_resize += pairs - whole;
    p->bytes += w->src.read_bytes - w->told_bytes;
    w->told = *c;
    w->told_bytes = w->src.read_bytes;
}

static bool on_flush(void *ctx, struct err *err)
{
    struct worker *w = ctx;
    tell_progress(w);
    return order_flush(w->x->order, w->shard_i) || err_set(err, ERR_UNAVAILABLE, "stopped");
}

static void note_bad(struct worker *w, const char *path)
{
    const struct scan *s = &w->scan;
    struct err bad = s->fault;
    (void)err_wrap(&bad, "'%s' at byte %" PRIi64, path, s->fault_at);
    (void)snprintf(w->sums.first_bad, sizeof w->sums.first_bad, "%.*s",
                   (int)sizeof w->sums.first_bad - 1, bad.message);
    if (w->x->bad_told++ < BAD_TARS_LOGGED) {
        log_event(LOG_WARN, "bad_archive", LF_S("shard", path), LF_I("offset", s->fault_at),
                  LF_S("error", s->fault.message));
    }
}

static bool scan_one(struct worker *w, struct err *err)
{
    struct index *x = w->x;
    const char *below = shards_path(&x->shards, w->shard_i);
    int64_t read_bytes = w->src.read_bytes;
    int64_t streamed = w->src.streamed_files;
    AUTO_FREE char *path = xasprintf("%s%s", x->prefix, below);
    w->sums = (struct checkpoint_sums){.streamed = 0};
    w->scan.counts = w->told = (struct scan_counts){.members = 0};
    w->scan.rows_max = order_rows_left(x->order);
    if (!shards_open(&x->shards, w->shard_i, &w->src, err) ||
        !scan_shard(&w->scan, str_of(path), err)) {
        return err_wrap(err, "'%s'", below);
    }
    int64_t broken = scan_counts_pairs(&w->scan.counts) - w->scan.counts.pairs[PAIR_WHOLE];
    if (w->scan.fault.code != ERR_NONE) {
        note_bad(w, below);
    }
    w->sums.counts = w->scan.counts;
    w->sums.read_bytes = w->src.read_bytes - read_bytes;
    w->sums.streamed = w->src.streamed_files - streamed;
    if (x->o.strict && w->scan.fault.code != ERR_NONE) {
        *err = w->scan.fault;
        return err_wrap(err, "'%s' at byte %" PRIi64, below, w->scan.fault_at);
    }
    if (x->o.strict && broken > 0) {
        return err_set(err, ERR_INVALID, "'%s' at byte %" PRIi64 ": a pair is broken: %s", below,
                       w->scan.first_broken_at, pair_fault_text(w->scan.first_broken));
    }
    return true;
}

static void *scan_main(void *arg)
{
    struct worker *w = arg;
    struct index *x = w->x;
    struct err err = ERR_INIT;
    bool ok = x->shards.folder != NULL || s3_blocking_new(S3_TRIES, &w->src.s3, &err);
    if (w->src.s3 != NULL) {
        s3_blocking_be_patient(w->src.s3, SINK_S3_PATIENCE_US);
    }
    while (ok && order_claim(x->order, &w->shard_i, &w->scan.out)) {
        ok = scan_one(w, &err);
        if (ok) {
            tell_progress(w);
            order_finish(x->order, w->shard_i, &w->sums);
            x->progress.shards_done++;
        }
    }
    if (!ok) {
        order_fail(x->order, &err);
    }
    s3_blocking_free(w->src.s3);
    source_done(&w->src);
    scan_done(&w->scan);
    return NULL;
}

static void print_line(const struct progress *p, double seconds, double rate, struct buf *out)
{
    buf_addf(out,
             "worker  - shards: %" PRIi64 " of %" PRIi64 " - pairs: %" PRIi64 " - broken: %" PRIi64
             " - pairs per sec: %.0f - MB read per sec: %.0f",
             (int64_t)p->shards_done, (int64_t)p->shards_in, progress_rows(p),
             (int64_t)p->failed_to_resize, rate,
             seconds > 0 ? (double)p->bytes / 1e6 / seconds : 0);
}

static void on_tick(void *ctx, int64_t asked_us)
{
    struct index *x = ctx;
    if (asked_us >= 0) {
        x->signalled = true;
        x->stop = 1;
    }
    if (x->stop != 0) {
        order_wake(x->order);
    }
}

static int threads_of(const struct index *x)
{
    int64_t cpus = MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
    bool s3 = x->shards.folder == NULL;
    int64_t n = x->o.scan.rows > 0 ? 1 : x->o.shards_at_once; /* what is left is known in order */
    if (n == 0) {
        n = MAX(2 * cpus, s3 ? THREADS_S3_MIN : THREADS_FOLDER_MIN);
        n = MIN(n, s3 ? THREADS_S3_MAX : THREADS_FOLDER_MAX);
    }
    return (int)MAX(MIN(n, (int64_t)x->shards.n), 1);
}

static void run_threads(struct index *x, int threads)
{
    struct worker *all = xcalloc((size_t)threads, sizeof *all);
    for (int i = 0; i < threads; i++) {
        struct worker *w = &all[i];
        w->x = x;
        source_init(&w->src, x->o.mode);
        w->src.stop = &x->stop;
        scan_init(&w->scan, &x->o.scan, &w->src);
        w->scan.flush = on_flush;
        w->scan.ctx = w;
        int rc = pthread_create(&w->thread, NULL, scan_main, w);
        ASSERT(rc == 0);
    }
    for (int i = 0; i < threads; i++) {
        (void)pthread_join(all[i].thread, NULL);
    }
    free(all);
}

/* Run all threads and report progress meanwhile. */
static void run_alive(struct index *x, int threads)
{
    struct progress *p = &x->progress;
    const struct progress_report_config config = {.progress = p,
                                                  .of = PROGRESS_REPORT_OF_SHARDS,
                                                  .task = x->task,
                                                  .attempt = x->attempt,
                                                  .interval_us =
                                                      x->o.progress_interval_s * USEC_PER_SEC,
                                                  .line = print_line};
    struct progress_report *heart;
    p->shards_in = (int64_t)x->shards.n;
    progress_report_start(&config, x->sink, &heart);
    job_main_drains(&x->life);
    run_threads(x, threads);
    p->rows_in = x->stop == 0 ? progress_rows(p) : -1;
    if (x->stop == 0) {
        p->shards_in = p->shards_done; /* fewer when the rows asked for were in these */
    }
    progress_report_stop(heart);
}

static void summary_json(const struct index *x, struct buf *out)
{
    const struct checkpoint_sums *sums = &order_done(x->order)->sums;
    const struct scan_counts *c = &sums->counts;
    struct json_out w;
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_i64(&w, "shards", (int64_t)x->shards.n);
    json_out_i64(&w, "bad_archives", c->bad_tars);
    json_out_i64(&w, "members", c->members);
    json_out_i64(&w, "other_members", c->others);
    json_out_i64(&w, "pairs", scan_counts_pairs(c));
    json_out_object(&w, "outcomes");
    for (size_t i = 0; i < PAIR_FAULT_COUNT; i++) {
        json_out_i64(&w, pair_fault_text((enum pair_fault)i), c->pairs[i]);
    }
    json_out_end_object(&w);
    if (x->o.scan.rows > 0) {
        json_out_i64(&w, "rows", x->o.scan.rows);
        json_out_i64(&w, "shards_read", order_done(x->order)->shards_done);
    }
    json_out_i64(&w, "sampled", c->sampled);
    json_out_str(&w, "sample", x->o.sample);
    json_out_str(&w, "fields", x->o.fields);
    json_out_str(&w, "path_prefix", x->prefix);
    json_out_i64(&w, "bytes_read", sums->read_bytes);
    json_out_i64(&w, "shards_streamed",
                 x->shards.folder == NULL ? order_done(x->order)->shards_done : sums->streamed);
    json_out_end_object(&w);
    buf_add_char(out, '\n');
}

static const char *const own_names[] = {ORDER_INDEX_NAME, ORDER_SAMPLE_NAME, ORDER_BROKEN_NAME,
                                        SUMMARY_NAME};

static bool is_own(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(own_names); i++) {
        if (strcmp(name, own_names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_own_upload(void *ctx UNUSED, const char *name)
{
    return is_own(name);
}

/* What was made must still be there as it was written. */
static bool find_ours(const struct index *x, const struct sink_listing *l, int64_t summary_bytes,
                      struct sink_object ours[static ARRAY_LEN(own_names)], size_t *ret_n,
                      struct err *err)
{
    *ret_n = 0;
    for (size_t i = 0; i < ARRAY_LEN(own_names); i++) {
        const char *name = own_names[i];
        int64_t bytes =
            strcmp(name, SUMMARY_NAME) == 0 ? summary_bytes : order_size(x->order, name);
        const struct sink_object *o = sink_listing_find(l, name);
        if (bytes >= 0 && (o == NULL || o->size != bytes)) {
            return err_set(err, ERR_CONFLICT,
                           "'%s' has %" PRIi64 " bytes, %" PRIi64
                           " were written: somebody else is at work in the output folder",
                           name, o == NULL ? -1 : o->size, bytes);
        }
        if (bytes >= 0) {
            ours[(*ret_n)++] = *o;
        }
    }
    return true;
}

static bool put_manifest(struct index *x, int64_t summary_bytes, struct err *err)
{
    struct stats_text texts[PAIR_FAULT_COUNT];
    const struct scan_counts *c = &order_done(x->order)->sums.counts;
    struct stats total = {.texts = texts, .count = scan_counts_pairs(c)};
    for (size_t i = 0; i < PAIR_FAULT_COUNT; i++) {
        if (c->pairs[i] > 0) {
            union { /* the texts of the struct are borrowed and only read */
                const char *in;
                char *out;
            } text = {pair_fault_text((enum pair_fault)i)};
            texts[total.texts_n++] = (struct stats_text){text.out, c->pairs[i]};
        }
    }
    total.successes = c->pairs[PAIR_WHOLE];
    total.failed_to_resize = total.count - total.successes;
    struct sink_listing l = {0};
    if (!sink_list(x->sink, &l, err)) {
        return false;
    }
    struct sink_object ours[ARRAY_LEN(own_names)];
    size_t n;
    if (!find_ours(x, &l, summary_bytes, ours, &n, err)) {
        sink_listing_done(&l);
        return false;
    }
    struct manifest m = {.task = x->task,
                         .attempt = x->attempt,
                         .rows_in = total.count,
                         .rows_out = total.count,
                         .total = total,
                         .started_us = x->started_us,
                         .ended_us = clock_wall_us(),
                         .objects = ours,
                         .objects_n = n};
    sink_abort_uploads(x->sink, is_own_upload, NULL);
    bool ok = manifest_put(x->sink, &m, true, err);
    sink_listing_done(&l);
    return ok || err_wrap(err, "the manifest");
}

static bool finish(struct index *x, struct err *err)
{
    AUTO_BUF struct buf b = BUF_INIT(1u << 20);
    if (!order_check(x->order, err)) {
        return false;
    }
    const struct checkpoint_sums *sums = &order_done(x->order)->sums;
    if (x->shards.n > 0 && sums->counts.bad_tars == (int64_t)x->shards.n) {
        return err_set(err, ERR_MALFORMED, "none of %zu archives could be read to its end: %s",
                       x->shards.n, sums->first_bad);
    }
    summary_json(x, &b);
    return order_publish(x->order, err) &&
           sink_put(x->sink, SUMMARY_NAME, buf_str(&b), "application/json", true, err) &&
           put_manifest(x, (int64_t)b.n, err);
}

static bool is_channel(const struct index *x)
{
    return x->o.input[0] == '\0' || str_starts(str_of(x->o.input), "channel:");
}

static bool find_input(struct index *x, struct err *err)
{
    struct str in = str_of(x->o.input);
    if (is_channel(x)) {
        return sagemaker_container_channel(in.n == 0 ? NULL : x->o.input + 8, &x->input, err);
    }
    x->input =
        str_starts(in, "s3://")
            ? xstrdup(x->o.input)
            : sagemaker_container_path(str_starts(in, "file://") ? x->o.input + 7 : x->o.input);
    return true;
}

/* Put one '/' between the prefix and the path below the input. For a single archive the prefix is
 * its folder. */
static void find_prefix(struct index *x)
{
    const char *p = x->o.path_prefix;
    AUTO_FREE char *own = NULL;
    if (strcmp(p, "auto") == 0) {
        const struct shards *s = &x->shards;
        own = s->folder != NULL ? xstrdup(s->folder)
                                : xasprintf("s3://%s/%s", s->base.bucket, s->base.key);
        p = own;
    }
    size_t n = strlen(p);
    x->prefix = xasprintf("%s%s", p, n == 0 || p[n - 1] == '/' ? "" : "/");
}

/* Set *ret_done when an earlier attempt has finished. Otherwise remove what an earlier attempt left
 * without a manifest. */
static bool prepare_output(struct index *x, bool *ret_done, struct err *err)
{
    AUTO_FREE char *task = NULL;
    if (!sink_open(x->o.output_folder, &x->sink, err)) {
        return false;
    }
    if (!manifest_task(x->sink, &task, err)) {
        return err_wrap(err, "cannot read '%s'", x->o.output_folder);
    }
    if (task != NULL && strcmp(task, x->task) != 0) {
        return err_set(err, ERR_INVALID, "'%s' holds the finished output of task '%s', not '%s'",
                       x->o.output_folder, task, x->task);
    }
    *ret_done = task != NULL;
    bool ok = true;
    for (size_t i = 0; ok && !*ret_done && i < ARRAY_LEN(own_names); i++) {
        ok = sink_delete(x->sink, own_names[i], err);
    }
    return ok;
}

static bool one_host(struct err *err)
{
    AUTO_FREE struct sagemaker_container_hosts *hosts = xcalloc(1, sizeof *hosts);
    if (!sagemaker_container_hosts(hosts, err)) {
        return false;
    }
    return hosts->n == 1 ||
           err_set(err, ERR_INVALID,
                   "this job has %d hosts: index runs on one; set instance_count: 1", hosts->n);
}

/* Start where an earlier run was stopped, or at the beginning. */
static bool begin_order(struct index *x, int threads, struct err *err)
{
    char fingerprint[65];
    checkpoint_fingerprint(&x->o.scan, x->prefix, &x->shards, fingerprint);
    if (!sink_open(x->o.output_folder, &x->lines_sink, err)) {
        return false;
    }
    const struct order_config config = {.sink = x->lines_sink,
                                        .n = x->shards.n,
                                        .slots = 2 * threads,
                                        .sample = x->o.scan.sample,
                                        .rows = x->o.scan.rows,
                                        .fingerprint = fingerprint,
                                        .save_every_us = x->o.checkpoint_s * USEC_PER_SEC,
                                        .stop = &x->stop};
    if (!order_new(&config, &x->order, err)) {
        return false;
    }
    const struct checkpoint *done = order_done(x->order);
    struct progress *p = &x->progress;
    p->shards_done = done->shards_done;
    p->rows_kept = scan_counts_pairs(&done->sums.counts);
    p->successes = done->sums.counts.pairs[PAIR_WHOLE];
    p->failed_to_resize = p->rows_kept - p->successes;
    p->bytes = done->sums.read_bytes;
    return true;
}

/* True when a retry may succeed, so the checkpoint is worth keeping. */
static bool may_pass(const struct err *err)
{
    const char *cause = sagemaker_container_cause(err);
    return strcmp(cause, "network") == 0 || strcmp(cause, "throttled") == 0;
}

static enum job_main_end run(void *ctx, struct err *err)
{
    struct index *x = ctx;
    bool done = false;
    if (!one_host(err) || !find_input(x, err) || !prepare_output(x, &done, err)) {
        return JOB_MAIN_FAILED;
    }
    if (done) {
        (void)printf("worker  - '%s' is already finished\n", x->o.output_folder);
        /* the earlier run was killed right after its manifest */
        return sink_sweep(x->sink, err) ? JOB_MAIN_DONE : JOB_MAIN_FAILED;
    }
    if (!shards_list(x->input, &x->shards, err)) {
        (void)err_wrap(err, "cannot list the shards");
        return JOB_MAIN_FAILED;
    }
    if (is_channel(x)) {
        shards_forget_times(&x->shards);
    }
    find_prefix(x);
    int threads = threads_of(x);
    if (!begin_order(x, threads, err)) {
        return JOB_MAIN_FAILED;
    }
    run_alive(x, threads);
    if (x->signalled && !order_complete(x->order)) {
        (void)order_leave(x->order);
        x->left = true;
        return JOB_MAIN_STOPPED;
    }
    if (finish(x, err)) {
        x->finished = true;
        return JOB_MAIN_DONE;
    }
    if (may_pass(err)) {
        x->left = order_leave(x->order);
    } else {
        order_give_up(x->order);
    }
    return JOB_MAIN_FAILED;
}

static void add_outcomes(const struct index *x, struct buf *b)
{
    const struct scan_counts *c = &order_done(x->order)->sums.counts;
    int64_t pairs = scan_counts_pairs(c);
    last_words_line(b, pairs, "pairs");
    last_words_share(b, c->pairs[PAIR_WHOLE], pairs, "whole, a line each");
    for (size_t i = 0; i < PAIR_FAULT_COUNT; i++) {
        if (i != PAIR_WHOLE && c->pairs[i] > 0) {
            last_words_share(b, c->pairs[i], pairs, pair_fault_text((enum pair_fault)i));
        }
    }
    if (c->sampled > 0) {
        last_words_line(b, c->sampled, "lines of the sample");
    }
    last_words_line(b, order_done(x->order)->shards_done, "shards read");
    if (c->bad_tars > 0) {
        last_words_line(b, c->bad_tars, "of them not to their end, see " ORDER_BROKEN_NAME);
    }
    buf_addf(b, "\nOutput: %s\n", x->o.output_folder);
}

/* The last words for people, after everything else has been written. */
static void tell_end(const struct index *x, int exit_status)
{
    AUTO_BUF struct buf b = BUF_INIT(LAST_WORDS_BYTES_MAX);
    if (!log_for_people()) {
        return;
    }
    if (x->finished) {
        last_words_finished(&b, (double)(clock_wall_us() - x->started_us) / 1e6);
        add_outcomes(x, &b);
    } else if (x->left) {
        last_words_again(&b, exit_status == WP_EXIT_STOPPED, x->progress.shards_done,
                         x->progress.shards_in, "shards", x->o.output_folder);
        buf_add_cstr(&b, b.n > 0 ? LAST_WORDS_GO_ON "\n" : "");
    }
    (void)fwrite(buf_cstr(&b), 1, b.n, stderr);
}

static void index_done(struct index *x)
{
    order_free(x->order);
    sink_free(x->lines_sink);
    sink_free(x->sink);
    shards_done(&x->shards);
    free(x->input);
    free(x->prefix);
    index_options_done(&x->o);
    free(x);
}

static bool load_options(const json_t *hyperparameters, int argc, char *const *argv, void *options,
                         struct buf *faults)
{
    return index_options_load(hyperparameters, argc, argv, options, faults);
}

int index_main(int argc, char *const *argv)
{
    struct index *x = xcalloc(1, sizeof *x);
    job_main_begin();
    x->task = env(WP_ENV_TASK);
    x->attempt = env(WP_ENV_ATTEMPT);
    x->started_us = clock_wall_us();
    x->progress.rows_in = -1;
    if (!job_main_settings(load_options, argc, argv, &x->o)) {
        free(x);
        return WP_EXIT_USAGE;
    }
    x->life = (struct job_main){.failed_event = "index_failed",
                                .stopped = "SIGTERM: the next run goes on from the last checkpoint",
                                .again = LAST_WORDS_GO_ON,
                                .stop_us = x->o.stop_s * USEC_PER_SEC,
                                .work = run,
                                .tick = on_tick,
                                .ctx = x};
    int rc = job_main_run(&x->life);
    tell_end(x, rc);
    index_done(x);
    return rc;
}
