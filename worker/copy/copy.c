/* Connects the list of files, the threads that copy them, and the manifest, which is written last.
 *
 * Threads: main (signals), the working thread, the progress report, and one per file copied at
 * once. _files.jsonl holds a line per file that is done, so that the next run leaves it alone. */
#include "copy.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/log_people.h"
#include "copy_options.h"
#include "copy_sweep.h"
#include "file_copy.h"
#include "file_list.h"
#include "job/job_main.h"
#include "job/last_words.h"
#include "job/manifest.h"
#include "job/progress_report.h"
#include "job/sagemaker_container.h"
#include "secret.h"
#include "worker_protocol.h"
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>

#define RECEIPT_NAME        "_files.jsonl"
#define RECEIPT_BYTES_MAX   ((size_t)1 << 30)
#define CHECKSUMS_BYTES_MAX ((size_t)16 << 20)

struct copy {
    struct copy_options o;
    struct job_main life;
    struct progress progress;
    struct file_list list;
    struct file_copied *done; /* done[list.n]; size -1: not copied yet */
    char *output;
    char *auth; /* value of the header with the secret; NULL: none */
    struct sink *sink;
    const char *task;
    const char *attempt;
    usec_t started_us;
    bool finished; /* by this run */
    _Atomic int stop;
    _Atomic bool signalled;
    _Atomic size_t next; /* file to claim */

    pthread_mutex_t mu; /* the members below, done[], and the receipt */
    struct sink *receipt_sink;
    int64_t receipt_us; /* when it was written last */
    struct err first;   /* why the first file failed */
    int64_t failed_n;
};

static const char *env(const char *name)
{
    const char *v = getenv(name);
    return v != NULL ? v : "";
}

static struct remote_config remote_config_of(const struct copy *x)
{
    return (struct remote_config){.region = x->o.region[0] != '\0' ? x->o.region : NULL,
                                  .is_unsigned = x->o.is_unsigned,
                                  .auth_header = x->o.auth_header,
                                  .auth_value = x->auth,
                                  .stall_us = x->o.stall_s * USEC_PER_SEC,
                                  .stop = &x->stop};
}

static void receipt_line(const struct copy *x, size_t i, struct buf *out)
{
    const struct copy_file *f = &x->list.files[i];
    const struct file_copied *d = &x->done[i];
    struct json_out w;
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_i64(&w, "n", (int64_t)i);
    json_out_str(&w, "from", f->from);
    AUTO_FREE char *to = xasprintf("%s%s", f->folder, f->name);
    json_out_str(&w, "to", to);
    json_out_i64(&w, "size", d->size);
    json_out_str(&w, "sha256", d->sha256);
    json_out_str(&w, "version", d->version);
    json_out_end_object(&w);
    buf_add_char(out, '\n');
}

/* mu held. */
static bool receipt_write(struct copy *x, struct err *err)
{
    AUTO_BUF struct buf out = BUF_INIT(RECEIPT_BYTES_MAX);
    for (size_t i = 0; i < x->list.n; i++) {
        if (x->done[i].size >= 0) {
            receipt_line(x, i, &out);
        }
    }
    x->receipt_us = clock_mono_us();
    if (out.overflow) {
        return err_set(err, ERR_LIMIT, "the receipt is longer than %zu bytes", RECEIPT_BYTES_MAX);
    }
    return sink_put(x->receipt_sink, RECEIPT_NAME, buf_str(&out), "application/jsonl", false, err);
}

/* The file a line is about, when it is still to be copied from and to the same places. */
static void receipt_take(struct copy *x, const json_t *o)
{
    const char *from = json_string_value(json_object_get(o, "from"));
    const char *to = json_string_value(json_object_get(o, "to"));
    const char *sum = json_string_value(json_object_get(o, "sha256"));
    const char *version = json_string_value(json_object_get(o, "version"));
    json_int_t n = json_integer_value(json_object_get(o, "n"));
    json_int_t size = json_integer_value(json_object_get(o, "size"));
    if (from == NULL || to == NULL || sum == NULL || version == NULL || n < 0 ||
        (size_t)n >= x->list.n || size < 0) {
        return;
    }
    const struct copy_file *f = &x->list.files[n];
    size_t folder_n = strlen(f->folder);
    if (strcmp(from, f->from) != 0 || strncmp(to, f->folder, folder_n) != 0 ||
        strcmp(to + folder_n, f->name) != 0) {
        return;
    }
    struct file_copied *d = &x->done[n];
    d->size = size;
    (void)snprintf(d->sha256, sizeof d->sha256, "%s", sum);
    (void)snprintf(d->version, sizeof d->version, "%s", version);
    x->progress.rows_kept++;
    x->progress.successes++;
    x->progress.bytes += size;
}

static bool receipt_load(struct copy *x, struct err *err)
{
    AUTO_BUF struct buf b = BUF_INIT(RECEIPT_BYTES_MAX);
    struct err why = ERR_INIT;
    if (!sink_get(x->sink, RECEIPT_NAME, &b, &why)) {
        if (why.code == ERR_NOT_FOUND) {
            return true;
        }
        *err = why;
        return false;
    }
    struct str rest = buf_str(&b);
    while (rest.n > 0) {
        AUTO_JSON json_t *o = NULL;
        struct str line = str_split(&rest, '\n');
        if (json_parse(line, line.n, &o, &why)) {
            receipt_take(x, o);
        }
    }
    if (x->progress.rows_kept > 0) {
        log_event(LOG_INFO, "resumed", LF_I("files_kept", x->progress.rows_kept));
    }
    return true;
}

static void note_done(struct copy *x, size_t i, const struct file_copied *d)
{
    struct err err = ERR_INIT;
    (void)pthread_mutex_lock(&x->mu);
    x->done[i] = *d;
    x->progress.successes++;
    bool due = clock_mono_us() - x->receipt_us >= x->o.checkpoint_s * USEC_PER_SEC;
    if (due && !receipt_write(x, &err)) {
        log_event(LOG_WARN, "receipt_not_written", LF_ERR(&err));
    }
    (void)pthread_mutex_unlock(&x->mu);
}

static void note_failed(struct copy *x, const struct copy_file *f, const struct err *err)
{
    (void)pthread_mutex_lock(&x->mu);
    if (x->failed_n++ == 0) {
        x->first = *err;
    }
    x->progress.failed_to_download++;
    (void)pthread_mutex_unlock(&x->mu);
    log_event(LOG_ERROR, "file_failed", LF_S("file", f->name), LF_ERR(err));
}

struct copy_thread {
    struct file_copy_config c;
    struct sink *there; /* of the target looked at last, and its folder */
    const char *folder;
};

/* A receipt is not believed: the file may have been removed since, for it to be copied again. */
static bool is_there(struct copy_thread *t, const struct copy_file *f, int64_t size, bool *ret,
                     struct err *err)
{
    int64_t found;
    if (t->there == NULL || strcmp(t->folder, f->folder) != 0) {
        sink_free(TAKE(t->there));
        t->folder = f->folder;
        if (!sink_open(f->folder, &t->there, err)) {
            return false;
        }
    }
    if (!sink_size(t->there, f->name, &found, err)) {
        return err_wrap(err, "cannot look at '%.200s'", f->name);
    }
    *ret = found == size;
    return true;
}

static void forget(struct copy *x, size_t i)
{
    (void)pthread_mutex_lock(&x->mu);
    x->progress.rows_kept--;
    x->progress.successes--;
    x->progress.bytes -= x->done[i].size;
    x->done[i].size = -1;
    (void)pthread_mutex_unlock(&x->mu);
    log_event(LOG_WARN, "copied_file_is_gone", LF_S("file", x->list.files[i].name));
}

static enum file_copy_end copy_file(struct copy *x, struct copy_thread *t, size_t i,
                                    struct err *err)
{
    struct file_copied d;
    bool there = false;
    if (x->done[i].size >= 0) {
        if (!is_there(t, &x->list.files[i], x->done[i].size, &there, err)) {
            x->progress.rows_kept--;
            x->progress.successes--;
            return FILE_COPY_FAILED;
        }
        if (there) {
            return FILE_COPY_DONE;
        }
        forget(x, i);
    }
    enum file_copy_end end = file_copy_run(&t->c, &x->list.files[i], i, &d, err);
    if (end == FILE_COPY_DONE) {
        note_done(x, i, &d);
    }
    return end;
}

static void *copy_thread(void *arg)
{
    struct copy *x = arg;
    struct err err = ERR_INIT;
    struct copy_thread t = {.c = {.o = &x->o, .progress = &x->progress, .stop = &x->stop}};
    const struct remote_config rc = remote_config_of(x);
    bool ok = sink_open(x->output, &t.c.state, &err) && remote_new(&rc, &t.c.remote, &err);
    for (size_t i = 0; x->stop == 0 && (i = x->next++) < x->list.n;) {
        if ((ok ? copy_file(x, &t, i, &err) : FILE_COPY_FAILED) == FILE_COPY_FAILED) {
            note_failed(x, &x->list.files[i], &err);
        }
    }
    remote_free(t.c.remote);
    sink_free(t.c.state);
    sink_free(t.there);
    return NULL;
}

static void print_line(const struct progress *p, double seconds, double rate UNUSED,
                       struct buf *out)
{
    buf_addf(out,
             "worker  - files: %" PRIi64 " of %" PRIi64 " - failed: %" PRIi64
             " - MB: %.1f - MB per sec: %.1f",
             (int64_t)p->successes, (int64_t)p->rows_in, (int64_t)p->failed_to_download,
             (double)p->bytes / 1e6, seconds > 0 ? (double)p->fetched / 1e6 / seconds : 0);
}

static void on_tick(void *ctx, int64_t asked_us)
{
    struct copy *x = ctx;
    if (asked_us >= 0) {
        x->signalled = true;
        x->stop = 1;
    }
}

static void run_alive(struct copy *x)
{
    const struct progress_report_config config = {.progress = &x->progress,
                                                  .of = PROGRESS_REPORT_OF_ROWS,
                                                  .task = x->task,
                                                  .attempt = x->attempt,
                                                  .interval_us =
                                                      x->o.progress_interval_s * USEC_PER_SEC,
                                                  .line = print_line};
    pthread_t threads[COPY_FILES_AT_ONCE_MAX];
    struct progress_report *heart;
    size_t n = MIN((size_t)x->o.files_at_once, MAX(x->list.n, (size_t)1));
    progress_report_start(&config, x->sink, &heart);
    job_main_drains(&x->life);
    for (size_t i = 0; i < n; i++) {
        int rc = pthread_create(&threads[i], NULL, copy_thread, x);
        ASSERT(rc == 0);
    }
    for (size_t i = 0; i < n; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    progress_report_stop(heart);
}

struct own { /* names of this command in the output folder, sorted */
    struct own_name {
        const char *name;
        int64_t size; /* of a copied file; -1: any */
    } * at;
    size_t n;
};

static int name_cmp(const void *a, const void *b)
{
    const struct own_name *x = a;
    const struct own_name *y = b;
    return strcmp(x->name, y->name);
}

static void own_of(const struct copy *x, struct own *ret)
{
    size_t n = strlen(x->output);
    size_t slash = x->output[n - 1] == '/' ? 0 : 1;
    ret->at = xcalloc(x->list.n + 1, sizeof *ret->at);
    ret->at[0] = (struct own_name){RECEIPT_NAME, -1};
    ret->n = 1;
    for (size_t i = 0; i < x->list.n; i++) {
        const struct copy_file *f = &x->list.files[i];
        if (strlen(f->folder) == n + slash && strncmp(f->folder, x->output, n) == 0) {
            ret->at[ret->n++] = (struct own_name){f->name, x->done[i].size};
        }
    }
    qsort(ret->at, ret->n, sizeof *ret->at, name_cmp);
}

static bool is_own(void *ctx, const char *name)
{
    const struct own *own = ctx;
    const struct own_name key = {name, -1};
    return bsearch(&key, own->at, own->n, sizeof *own->at, name_cmp) != NULL;
}

/* What the next run would copy again is no complete output. */
static bool all_there(const struct own *own, const struct sink_listing *l, struct err *err)
{
    for (size_t i = 0; i < own->n; i++) {
        const struct own_name *want = &own->at[i];
        const struct sink_object *o = sink_listing_find(l, want->name);
        if (o == NULL || (want->size >= 0 && o->size != want->size)) {
            return err_set(err, ERR_CONFLICT,
                           "'%.200s' has %" PRId64 " bytes, %" PRId64
                           " were copied: somebody else is at work in the output folder",
                           want->name, o == NULL ? -1 : o->size, want->size);
        }
    }
    return true;
}

static bool can_be_checked(const struct copy *x, struct err *err)
{
    struct own own;
    int64_t bytes = 0;
    own_of(x, &own);
    for (size_t i = 0; i < own.n; i++) {
        bytes += (int64_t)strlen(own.at[i].name);
    }
    free(own.at);
    return manifest_can_be_checked(x->attempt, (int64_t)own.n, bytes, err);
}

/* The manifest names the files in the output folder, and the receipt, which names all of them. */
static bool put_manifest(struct copy *x, struct err *err)
{
    int64_t n = (int64_t)x->list.n;
    char success[] = "success";
    struct stats_text text = {success, n};
    struct stats total = {.count = n, .successes = n, .texts = &text, .texts_n = 1};
    struct sink_listing l = {0};
    size_t kept = 0;
    struct own own;
    if (!sink_list(x->sink, &l, err)) {
        return false;
    }
    own_of(x, &own);
    AUTO_FREE struct own_name *names UNUSED = own.at;
    if (!all_there(&own, &l, err)) {
        sink_listing_done(&l);
        return false;
    }
    AUTO_FREE struct sink_object *ours = xcalloc(l.n + 1, sizeof *ours);
    for (size_t i = 0; i < l.n; i++) {
        if (is_own(&own, l.objects[i].name)) {
            ours[kept++] = l.objects[i];
        }
    }
    const struct manifest m = {.task = x->task,
                               .attempt = x->attempt,
                               .rows_in = n,
                               .rows_out = n,
                               .total = total,
                               .started_us = x->started_us,
                               .ended_us = clock_wall_us(),
                               .objects = ours,
                               .objects_n = kept};
    sink_abort_uploads(x->sink, is_own, &own);
    bool ok = manifest_put(x->sink, &m, true, err);
    sink_listing_done(&l);
    return ok || err_wrap(err, "the manifest");
}

/* A text of the sources' side, whole. */
static bool read_checksums(struct copy *x, struct remote *r, struct err *err)
{
    const struct remote_ask ask = {
        .uri = x->o.checksums, .n = CHECKSUMS_BYTES_MAX, .validator = ""};
    for (int64_t i = 1;; i++) {
        CLEANUP(remote_answer_done)
        struct remote_answer a;
        remote_get(r, &ask, &a);
        bool whole = a.status == 200 || (a.status == 206 && a.to == a.total);
        if (whole) {
            return file_list_checksums(&x->list, buf_str(&a.body), err);
        }
        bool passing = a.status == 0 || a.status == 429 || a.status >= 500;
        if (!passing || i == x->o.tries || x->stop != 0) {
            enum err_code code = a.status == 404                      ? ERR_NOT_FOUND
                                 : a.status == 401 || a.status == 403 ? ERR_FORBIDDEN
                                 : passing                            ? ERR_NETWORK
                                                                      : ERR_INVALID;
            return err_set(err, code, "cannot read the checksums '%.200s': %d %.200s",
                           x->o.checksums, a.status, a.err.code != ERR_NONE ? a.err.message : "");
        }
        (void)poll(NULL, 0, 200);
    }
}

static bool find_files(struct copy *x, struct err *err)
{
    AUTO_FREE char *secret = NULL;
    if (x->o.secret[0] != '\0') {
        if (!secret_read(x->o.secret, &secret, err)) {
            return false;
        }
        x->auth = xasprintf("%s%s", x->o.auth_prefix, secret);
        explicit_bzero(secret, strlen(secret));
    }
    struct remote *r = NULL;
    const struct remote_config rc = remote_config_of(x);
    bool ok = remote_new(&rc, &r, err) &&
              file_list_make(r, x->o.from, x->o.to, x->o.part, &x->list, err) &&
              (x->o.checksums[0] == '\0' || read_checksums(x, r, err));
    remote_free(r);
    if (ok && x->o.expect_files > 0 && (int64_t)x->list.n != x->o.expect_files) {
        return err_set(err, ERR_INVALID, "%zu files were found, %" PRIi64 " are expected",
                       x->list.n, x->o.expect_files);
    }
    x->done = xcalloc(x->list.n + 1, sizeof *x->done);
    for (size_t i = 0; i < x->list.n; i++) {
        x->done[i].size = -1;
    }
    x->progress.rows_in = (int64_t)x->list.n;
    return ok;
}

static bool prepare_output(struct copy *x, bool *ret_done, struct err *err)
{
    AUTO_FREE char *task = NULL;
    x->output = x->o.output_folder[0] != '\0' ? xstrdup(x->o.output_folder)
                                              : file_list_fixed_folder(x->o.to);
    if (!sink_open(x->output, &x->sink, err) || !sink_open(x->output, &x->receipt_sink, err)) {
        return false;
    }
    if (!manifest_task(x->sink, &task, err)) {
        return err_wrap(err, "cannot read '%s'", x->output);
    }
    if (task != NULL && strcmp(task, x->task) != 0) {
        return err_set(err, ERR_INVALID, "'%s' holds the finished output of task '%s', not '%s'",
                       x->output, task, x->task);
    }
    *ret_done = task != NULL;
    return true;
}

static bool finish(struct copy *x, struct err *err)
{
    (void)pthread_mutex_lock(&x->mu);
    bool ok = receipt_write(x, err);
    (void)pthread_mutex_unlock(&x->mu);
    if (x->failed_n > 0) {
        *err = x->first;
        return err_wrap(err, "%" PRIi64 " of %zu files failed; the first", x->failed_n, x->list.n);
    }
    copy_sweep(&x->list, x->sink);
    return ok && put_manifest(x, err);
}

static enum job_main_end run(void *ctx, struct err *err)
{
    struct copy *x = ctx;
    bool done = false;
    if (!prepare_output(x, &done, err)) {
        return JOB_MAIN_FAILED;
    }
    if (done) {
        (void)printf("worker  - '%s' is already finished\n", x->output);
        return JOB_MAIN_DONE;
    }
    if (!find_files(x, err) || !can_be_checked(x, err) || !receipt_load(x, err)) {
        return JOB_MAIN_FAILED;
    }
    copy_sweep(&x->list, x->sink);
    run_alive(x);
    bool all = x->next >= x->list.n && x->progress.successes == (int64_t)x->list.n;
    if (x->signalled && !all) {
        (void)pthread_mutex_lock(&x->mu);
        bool ok = receipt_write(x, err);
        (void)pthread_mutex_unlock(&x->mu);
        return ok ? JOB_MAIN_STOPPED : JOB_MAIN_FAILED;
    }
    x->finished = finish(x, err);
    return x->finished ? JOB_MAIN_DONE : JOB_MAIN_FAILED;
}

/* The last words for people, after everything else has been written. */
static void tell_end(const struct copy *x, int exit_status)
{
    AUTO_BUF struct buf b = BUF_INIT(LAST_WORDS_BYTES_MAX);
    int64_t bytes = 0;
    if (!log_for_people()) {
        return;
    }
    for (size_t i = 0; i < x->list.n; i++) {
        bytes += MAX(x->done[i].size, 0);
    }
    if (x->finished) {
        last_words_finished(&b, (double)(clock_wall_us() - x->started_us) / 1e6);
        last_words_line(&b, (int64_t)x->list.n, "files copied");
        if (x->progress.rows_kept > 0) {
            last_words_line(&b, x->progress.rows_kept, "of them by earlier runs");
        }
        buf_add_cstr(&b, "\nSize:   ");
        last_words_bytes(&b, bytes);
        buf_addf(&b, "\nOutput: %s\n", x->output);
    } else if (exit_status != WP_EXIT_OK && x->list.n > 0) {
        last_words_again(&b, exit_status == WP_EXIT_STOPPED, x->progress.successes,
                         (int64_t)x->list.n, "files", x->output);
        buf_add_cstr(&b, b.n > 0 ? LAST_WORDS_GO_ON "\n" : "");
    }
    (void)fwrite(buf_cstr(&b), 1, b.n, stderr);
}

static void copy_free(struct copy *x)
{
    file_list_done(&x->list);
    free(x->done);
    free(x->output);
    if (x->auth != NULL) {
        explicit_bzero(x->auth, strlen(x->auth));
        free(x->auth);
    }
    sink_free(x->sink);
    sink_free(x->receipt_sink);
    (void)pthread_mutex_destroy(&x->mu);
    copy_options_done(&x->o);
    free(x);
}

static bool load_options(const json_t *hyperparameters, int argc, char *const *argv, void *options,
                         struct buf *faults)
{
    return copy_options_load(hyperparameters, argc, argv, options, faults);
}

int copy_main(int argc, char *const *argv)
{
    struct copy *x = xcalloc(1, sizeof *x);
    job_main_begin();
    (void)pthread_mutex_init(&x->mu, NULL);
    x->task = env(WP_ENV_TASK);
    x->attempt = env(WP_ENV_ATTEMPT);
    x->started_us = clock_wall_us();
    x->progress.rows_in = -1;
    x->progress.shards_in = -1;
    if (!job_main_settings(load_options, argc, argv, &x->o)) {
        free(x);
        return WP_EXIT_USAGE;
    }
    x->life = (struct job_main){.failed_event = "copy_failed",
                                .stopped = "SIGTERM: the next run goes on where this one was",
                                .again = LAST_WORDS_GO_ON,
                                .stop_us = x->o.stop_s * USEC_PER_SEC,
                                .work = run,
                                .tick = on_tick,
                                .ctx = x};
    int rc = job_main_run(&x->life);
    tell_end(x, rc);
    copy_free(x);
    return rc;
}
