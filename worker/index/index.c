/* Wires listing, scanning threads and ordered output together, and writes the manifest last.
 *
 * Threads: main (signals, heartbeat) and one for each shard read at once. An index is either whole
 * or not there: a run that was stopped or killed leaves nothing but temporary files and pieces
 * without a manifest, which the next run takes away before it begins anew. */
#include "index.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "contract.h"
#include "heartbeat.h"
#include "index_options.h"
#include "manifest.h"
#include "order.h"
#include "shards.h"
#include "worker_protocol.h"
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#define FAULTS_BYTES_MAX   8192
#define SIGNAL_WAIT_NS     200000000
#define S3_TRIES           6
#define BAD_TARS_LOGGED    100
#define THREADS_FOLDER_MIN 4
#define THREADS_FOLDER_MAX 16
#define THREADS_S3_MIN     16
#define THREADS_S3_MAX     32

#define SUMMARY_NAME "summary.json"

struct index {
    struct index_options o;
    struct progress progress;
    struct shards shards;
    struct sink *sink;       /* of the main thread */
    struct sink *lines_sink; /* of order's */
    struct order *order;
    char *input;
    char *prefix; /* of paths, with '/' at its end, or empty */
    const char *task;
    const char *attempt;
    usec_t started_us;
    int64_t started_mono_us;
    _Atomic int stop; /* 1: an error, or a signal */
    _Atomic bool signalled;
    _Atomic int threads_left;
    pthread_t main_thread;
    pthread_mutex_t lock; /* of what follows */
    struct scan_counts counts;
    int64_t streamed_files;
    struct err first_bad; /* archive */
};

struct worker { /* one scanning thread */
    struct index *x;
    struct source src;
    struct scan scan;
    size_t shard_i;
    struct scan_counts told; /* of scan.counts: already in the progress */
    int64_t told_bytes;
    pthread_t thread;
};

static const char *env(const char *name)
{
    const char *v = getenv(name);
    return v != NULL ? v : "";
}

/* --- scanning
 * -------------------------------------------------------------------------------------- */

static void tell_progress(struct worker *w)
{
    struct progress *p = &w->x->progress;
    const struct scan_counts *c = &w->scan.counts;
    int64_t pairs = scan_counts_pairs(c) - scan_counts_pairs(&w->told);
    int64_t whole = c->pairs[PAIR_WHOLE] - w->told.pairs[PAIR_WHOLE];
    p->rows_done += pairs;
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

static void note_bad(struct index *x, const char *path, const struct scan *s)
{
    struct err bad = s->fault;
    (void)err_wrap(&bad, "'%s' at byte %" PRIi64, path, s->fault_at);
    (void)pthread_mutex_lock(&x->lock);
    int64_t n = x->counts.bad_tars++;
    if (n == 0) {
        x->first_bad = bad;
    }
    (void)pthread_mutex_unlock(&x->lock);
    if (n < BAD_TARS_LOGGED) {
        log_event(LOG_WARN, "bad_archive", LF_S("shard", path), LF_I("offset", s->fault_at),
                  LF_S("error", s->fault.message));
    }
}

static bool scan_one(struct worker *w, struct err *err)
{
    struct index *x = w->x;
    const char *below = shards_path(&x->shards, w->shard_i);
    int64_t broken = scan_counts_pairs(&w->scan.counts) - w->scan.counts.pairs[PAIR_WHOLE];
    AUTO_FREE char *path = xasprintf("%s%s", x->prefix, below);
    if (!shards_open(&x->shards, w->shard_i, &w->src, err) ||
        !scan_shard(&w->scan, str_of(path), err)) {
        return err_wrap(err, "'%s'", below);
    }
    broken = scan_counts_pairs(&w->scan.counts) - w->scan.counts.pairs[PAIR_WHOLE] - broken;
    if (w->scan.fault.code != ERR_NONE) {
        note_bad(x, below, &w->scan);
    }
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
    bool ok = x->shards.folder != NULL || s3_sync_new(S3_TRIES, &w->src.s3, &err);
    while (ok && order_claim(x->order, &w->shard_i, &w->scan.out)) {
        ok = scan_one(w, &err);
        if (ok) {
            tell_progress(w);
            order_finish(x->order, w->shard_i);
            x->progress.shards_done++;
        }
    }
    if (!ok) {
        order_fail(x->order, &err);
    }
    w->scan.counts.bad_tars = 0; /* counted where they were told */
    (void)pthread_mutex_lock(&x->lock);
    scan_counts_add(&x->counts, &w->scan.counts);
    x->streamed_files += w->src.streamed_files;
    (void)pthread_mutex_unlock(&x->lock);
    s3_sync_free(w->src.s3);
    source_done(&w->src);
    scan_done(&w->scan);
    if (--x->threads_left == 0) {
        (void)pthread_kill(x->main_thread, SIGUSR1);
    }
    return NULL;
}

/* --- the run
 * --------------------------------------------------------------------------------------- */

static void print_line(void *ctx)
{
    const struct index *x = ctx;
    const struct progress *p = &x->progress;
    double s = (double)(clock_mono_us() - x->started_mono_us) / 1e6;
    (void)printf("worker  - shards: %" PRIi64 " of %zu - pairs: %" PRIi64 " - broken: %" PRIi64
                 " - pairs per sec: %.0f - MB read per sec: %.0f\n",
                 (int64_t)p->shards_done, x->shards.n, (int64_t)p->rows_done,
                 (int64_t)p->failed_to_resize, s > 0 ? (double)p->rows_done / s : 0,
                 s > 0 ? (double)p->bytes / 1e6 / s : 0);
}

static void watch(struct index *x, const sigset_t *signals)
{
    struct heartbeat h;
    heartbeat_init(&h, &x->progress, x->sink, x->task, x->attempt,
                   x->o.progress_interval_s * USEC_PER_SEC);
    h.print_line = print_line;
    h.print_ctx = x;
    heartbeat_now(&h);
    while (x->threads_left > 0) {
        struct timespec wait = {0, SIGNAL_WAIT_NS};
        int sig = sigtimedwait(signals, NULL, &wait);
        if (sig == SIGTERM || sig == SIGINT) {
            log_event(LOG_INFO, "stop_asked", LF_I("signal", sig));
            x->signalled = true;
            x->stop = 1;
        }
        if (x->stop != 0) {
            order_wake(x->order);
        }
        heartbeat_tick(&h);
    }
    x->progress.rows_in = x->stop == 0 ? (int64_t)x->progress.rows_done : -1;
    heartbeat_now(&h);
}

static int threads_of(const struct index *x)
{
    int64_t cpus = MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
    bool s3 = x->shards.folder == NULL;
    int64_t n = x->o.shards_at_once;
    if (n == 0) {
        n = MAX(2 * cpus, s3 ? THREADS_S3_MIN : THREADS_FOLDER_MIN);
        n = MIN(n, s3 ? THREADS_S3_MAX : THREADS_FOLDER_MAX);
    }
    return (int)MIN(n, (int64_t)x->shards.n);
}

static void run_threads(struct index *x, int threads)
{
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGUSR1);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    x->main_thread = pthread_self();
    x->threads_left = threads;
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
    watch(x, &signals);
    for (int i = 0; i < threads; i++) {
        (void)pthread_join(all[i].thread, NULL);
    }
    free(all);
}

/* --- what is written at the end
 * ------------------------------------------------------------------- */

static void summary_json(const struct index *x, struct buf *out)
{
    const struct scan_counts *c = &x->counts;
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
    json_out_i64(&w, "sampled", c->sampled);
    json_out_str(&w, "sample", x->o.sample);
    json_out_str(&w, "fields", x->o.fields);
    json_out_str(&w, "path_prefix", x->prefix);
    json_out_i64(&w, "bytes_read", x->progress.bytes);
    json_out_i64(&w, "shards_streamed",
                 x->shards.folder == NULL ? (int64_t)x->shards.n : x->streamed_files);
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

static bool put_manifest(struct index *x, struct err *err)
{
    struct stats_text texts[PAIR_FAULT_COUNT];
    struct stats total = {.texts = texts, .count = scan_counts_pairs(&x->counts)};
    for (size_t i = 0; i < PAIR_FAULT_COUNT; i++) {
        if (x->counts.pairs[i] > 0) {
            union { /* the texts of a borrowed struct are only read */
                const char *in;
                char *out;
            } text = {pair_fault_text((enum pair_fault)i)};
            texts[total.texts_n++] = (struct stats_text){text.out, x->counts.pairs[i]};
        }
    }
    total.successes = x->counts.pairs[PAIR_WHOLE];
    total.failed_to_resize = total.count - total.successes;
    struct sink_listing l = {0};
    if (!sink_list(x->sink, &l, err)) {
        return false;
    }
    struct sink_object ours[ARRAY_LEN(own_names)];
    size_t n = 0;
    for (size_t i = 0; i < l.n && n < ARRAY_LEN(ours); i++) {
        if (is_own(l.objects[i].name)) {
            ours[n++] = l.objects[i];
        }
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
    AUTO_BUF struct buf b = BUF_INIT(1u << 20);
    manifest_json(&m, &b);
    bool ok = sink_put(x->sink, WP_MANIFEST_KEY, buf_str(&b), "application/json", true, err);
    sink_listing_done(&l);
    return ok || err_wrap(err, "the manifest");
}

static bool finish(struct index *x, struct err *err)
{
    AUTO_BUF struct buf b = BUF_INIT(1u << 20);
    if (!order_check(x->order, err)) {
        return false;
    }
    if (x->counts.bad_tars == (int64_t)x->shards.n) {
        *err = x->first_bad;
        return err_wrap(err, "none of %zu archives could be read to its end", x->shards.n);
    }
    summary_json(x, &b);
    return order_publish(x->order, err) &&
           sink_put(x->sink, SUMMARY_NAME, buf_str(&b), "application/json", true, err) &&
           put_manifest(x, err);
}

/* --- the beginning
 * --------------------------------------------------------------------------------- */

static bool find_input(struct index *x, struct err *err)
{
    struct str in = str_of(x->o.input);
    if (in.n == 0 || str_starts(in, "channel:")) {
        return contract_channel(in.n == 0 ? NULL : x->o.input + 8, &x->input, err);
    }
    x->input = str_starts(in, "s3://")
                   ? xstrdup(x->o.input)
                   : contract_path(str_starts(in, "file://") ? x->o.input + 7 : x->o.input);
    return true;
}

/* One '/' between the prefix and what lies below the input; one archive's own place is its folder.
 */
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

/* Done by an earlier attempt already? Else take away what such a one left. */
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
    bool ok = *ret_done || sink_sweep(x->sink, err);
    for (size_t i = 0; ok && !*ret_done && i < ARRAY_LEN(own_names); i++) {
        ok = sink_delete(x->sink, own_names[i], err);
    }
    return ok;
}

static bool run(struct index *x, struct err *err)
{
    int hosts = 1;
    bool done = false;
    if (!contract_hosts(&hosts, err)) {
        return false;
    }
    if (hosts != 1) {
        return err_set(err, ERR_INVALID,
                       "this job has %d hosts: index runs on one; set instance_count: 1", hosts);
    }
    if (!find_input(x, err) || !prepare_output(x, &done, err)) {
        return false;
    }
    if (done) {
        (void)printf("worker  - '%s' is finished already\n", x->o.output_folder);
        return true;
    }
    if (!shards_list(x->input, &x->shards, err)) {
        return err_wrap(err, "cannot list the shards");
    }
    find_prefix(x);
    int threads = threads_of(x);
    if (!sink_open(x->o.output_folder, &x->lines_sink, err) ||
        !order_new(x->lines_sink, x->shards.n, 2 * threads, x->o.scan.sample, &x->stop, &x->order,
                   err)) {
        return false;
    }
    run_threads(x, threads);
    if (x->signalled && x->progress.shards_done < (int64_t)x->shards.n) {
        return true;
    }
    x->stop = 0;
    return finish(x, err);
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
    (void)pthread_mutex_destroy(&x->lock);
    free(x);
}

static bool load_options(int argc, char *const *argv, struct index_options *ret)
{
    AUTO_BUF struct buf faults = BUF_INIT(FAULTS_BYTES_MAX);
    AUTO_JSON json_t *hyper = NULL;
    struct err err = ERR_INIT;
    if (!contract_hyperparameters(&hyper, &err)) {
        buf_addf(&faults, "%s\n", err.message);
    }
    if (faults.n == 0 && index_options_load(hyper, argc, argv, ret, &faults)) {
        return true;
    }
    (void)fprintf(stderr, "%s", buf_cstr(&faults));
    contract_fail("bad_input", buf_cstr(&faults));
    return false;
}

/* Until the threads run there is nothing to clean up. As process 1 of a container an unhandled
 * SIGTERM would be ignored. */
static void stop_at_once(int sig UNUSED)
{
    _exit(WP_EXIT_STOPPED);
}

int index_main(int argc, char *const *argv)
{
    struct err err = ERR_INIT;
    struct index *x = xcalloc(1, sizeof *x);
    x->task = env(WP_ENV_TASK);
    x->attempt = env(WP_ENV_ATTEMPT);
    x->started_us = clock_wall_us();
    x->started_mono_us = clock_mono_us();
    x->progress.rows_in = -1;
    if (!load_options(argc, argv, &x->o)) {
        free(x);
        return WP_EXIT_USAGE;
    }
    (void)pthread_mutex_init(&x->lock, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGTERM, stop_at_once);
    int rc = WP_EXIT_OK;
    if (!run(x, &err)) {
        const char *cause = contract_cause(&err);
        rc = contract_exit(cause);
        log_event(LOG_ERROR, "index_failed", LF_S("cause", cause), LF_ERR(&err));
        contract_fail(cause, err.message);
    } else if (x->signalled && x->progress.shards_done < (int64_t)x->shards.n) {
        rc = WP_EXIT_STOPPED;
        contract_fail("stopped", "SIGTERM: an index is written whole or not at all");
    }
    index_done(x);
    return rc;
}
