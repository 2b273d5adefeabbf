/* The text line uses the words of img2dataset's, so that people and scripts can read it
 * unchanged. */
#include "progress_report.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "memory.h"
#include "progress_bar.h"
#include "progress_hosts.h"
#include "worker_protocol.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define LINE_INTERVAL_US (5 * USEC_PER_SEC)
#define BAR_INTERVAL_US  (200 * USEC_PER_MSEC)
#define LINE_BYTES_MAX   4096
#define FILE_BYTES_MAX   4096

struct progress_report {
    struct progress_report_config c;
    struct sink *sink; /* borrowed */
    struct progress_bar_screen screen;
    struct progress_report_speed speed; /* of the unit of the estimate */
    struct progress_report_speed rows_speed;
    int64_t started_us; /* monotonic, as are the others */
    int64_t next_line_us, next_file_us, next_mark_us;
    int failed_n;          /* in a row */
    _Atomic bool own;      /* the file may be written, whatever stands there ... */
    _Atomic bool borrowed; /* ... also until the stop, which puts that back */
    bool lent;             /* it may have been written */
    struct buf kept;       /* what is put back; empty: nothing stood there */
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t stopped;
    bool stop;
};

int64_t progress_rows(const struct progress *p)
{
    return p->successes + p->failed_to_download + p->failed_to_resize;
}

void progress_prepare(struct progress *p, const char *verb, int64_t n)
{
    p->prepared = 0;
    p->to_prepare = n;
    p->preparing = verb;
}

void progress_report_mark(struct progress_report_speed *s, int64_t now_us, int64_t done)
{
    s->at_us[s->n % PROGRESS_REPORT_MARKS] = now_us;
    s->done[s->n % PROGRESS_REPORT_MARKS] = done;
    s->n++;
}

double progress_report_rate(const struct progress_report_speed *s, int64_t now_us, int64_t done)
{
    if (s->n == 0) {
        return 0;
    }
    int64_t oldest = (s->n > PROGRESS_REPORT_MARKS ? s->n : 0) % PROGRESS_REPORT_MARKS;
    int64_t span_us = now_us - s->at_us[oldest];
    int64_t more = done - s->done[oldest];
    return span_us > 0 && more > 0 ? (double)more * 1e6 / (double)span_us : 0;
}

/* Shards finished by an earlier run do not count for our speed. */
static int64_t rows_of_this_run(const struct progress *p)
{
    return progress_rows(p) - p->rows_kept;
}

static bool is_preparation(const struct progress_report *h)
{
    return h->c.of == PROGRESS_REPORT_OF_PREPARATION;
}

static int64_t done_by_this_run(const struct progress_report *h)
{
    const struct progress *p = h->c.progress;
    return h->c.of == PROGRESS_REPORT_OF_ROWS ? rows_of_this_run(p) : p->shards_done;
}

static struct progress_report_view view_of(const struct progress_report *h, int64_t now_us)
{
    const struct progress *p = h->c.progress;
    bool rows = h->c.of == PROGRESS_REPORT_OF_ROWS;
    struct progress_report_view v = {.done = rows ? progress_rows(p) : p->shards_done,
                                     .total = rows ? p->rows_in : p->shards_in,
                                     .eta_s = -1};
    v.rate = progress_report_rate(&h->speed, now_us, done_by_this_run(h));
    v.rows_rate = progress_report_rate(&h->rows_speed, now_us, rows_of_this_run(p));
    if (v.total >= 0 && v.done >= v.total) {
        v.eta_s = 0;
    } else if (v.total >= 0 && v.rate > 0) {
        double s = ceil((double)(v.total - v.done) / v.rate);
        v.eta_s = s < (double)PROGRESS_REPORT_ETA_S_MAX ? (int64_t)s : -1;
    }
    return v;
}

static void count_or_null(struct json_out *w, const char *key, int64_t n)
{
    if (n < 0) {
        json_out_null(w, key);
    } else {
        json_out_i64(w, key, n);
    }
}

void progress_report_json(const struct progress_report_config *c,
                          const struct progress_report_view *v, usec_t now_us, struct buf *out)
{
    const struct progress *p = c->progress;
    int64_t successes = p->successes;
    int64_t failed_to_download = p->failed_to_download;
    int64_t failed_to_resize = p->failed_to_resize;
    struct json_out w;
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_i64(&w, "version", WP_VERSION);
    json_out_str(&w, "task", c->task);
    json_out_str(&w, "attempt", c->attempt);
    count_or_null(&w, "rows_in", p->rows_in);
    json_out_i64(&w, "rows_done", successes + failed_to_download + failed_to_resize);
    count_or_null(&w, "shards_in", p->shards_in);
    json_out_i64(&w, "shards_done", p->shards_done);
    json_out_i64(&w, "successes", successes);
    json_out_i64(&w, "failed_to_download", failed_to_download);
    json_out_i64(&w, "failed_to_resize", failed_to_resize);
    json_out_i64(&w, "bytes", p->bytes);
    json_out_i64(&w, "bytes_fetched", p->fetched);
    json_out_i64(&w, "transfers", p->transfers);
    json_out_i64(&w, "rows_waiting", p->waiting);
    json_out_i64(&w, "rows_waiting_for_silent_hosts", p->waiting_silent);
    json_out_i64(&w, "rows_waiting_for_one_host", p->waiting_one);
    json_out_bool(&w, "network_away", p->network_away);
    json_out_double(&w, "rows_per_second", v->rows_rate);
    count_or_null(&w, "eta_seconds", v->eta_s);
    json_out_i64(&w, "memory_bytes", v->memory);
    if (c->of == PROGRESS_REPORT_OF_PREPARATION) {
        json_out_i64(&w, "prepared", p->prepared);
        json_out_i64(&w, "to_prepare", p->to_prepare);
    }
    json_out_time(&w, "updated", now_us);
    json_out_end_object(&w);
}

/* What a preparation told is of no use to anybody once it has ended. */
static bool is_of_preparation(struct str text)
{
    AUTO_JSON json_t *v = NULL;
    return json_parse(text, FILE_BYTES_MAX, &v, NULL) && json_object_get(v, "prepared") != NULL;
}

/* Keep what stands there; false: that is not known now. */
static bool keep(struct progress_report *h, const char *key)
{
    AUTO_BUF struct buf b = BUF_INIT(FILE_BYTES_MAX);
    struct err err = ERR_INIT;
    if (!sink_get(h->sink, key, &b, &err)) {
        return err.code == ERR_NOT_FOUND;
    }
    if (!is_of_preparation(buf_str(&b))) {
        buf_reset(&h->kept);
        buf_add_str(&h->kept, buf_str(&b));
    }
    return true;
}

/* Another may have written there meanwhile: that stays. */
static void put_back(struct progress_report *h)
{
    AUTO_BUF struct buf b = BUF_INIT(FILE_BYTES_MAX);
    char key[PROGRESS_HOSTS_KEY_BYTES];
    struct err err = ERR_INIT;
    progress_hosts_key(h->c.host, key);
    bool ok = sink_get(h->sink, key, &b, &err);
    if (ok && is_of_preparation(buf_str(&b))) {
        ok = h->kept.n > 0
                 ? sink_put(h->sink, key, buf_str(&h->kept), "application/json", false, &err)
                 : sink_delete(h->sink, key, &err);
    }
    if (!ok && err.code != ERR_NOT_FOUND) {
        log_event(LOG_WARN, "progress_not_put_back", LF_ERR(&err));
    }
}

/* Whether a preparation may write its file before the output is known to be ours. What stands there
 * says whose it is; by hand there is no task, so nothing does. */
static bool may_write(struct progress_report *h, const char *key, bool *ret_create)
{
    AUTO_BUF struct buf b = BUF_INIT(FILE_BYTES_MAX);
    AUTO_JSON json_t *there = NULL;
    const char *task;
    struct err err = ERR_INIT;
    *ret_create = false;
    if (h->own || h->borrowed) {
        return h->own || keep(h, key);
    }
    if (h->c.keep_file) {
        return false;
    }
    if (!sink_get(h->sink, key, &b, &err)) {
        *ret_create = err.code == ERR_NOT_FOUND;
        return *ret_create;
    }
    return json_parse(buf_str(&b), FILE_BYTES_MAX, &there, &err) &&
           json_get_str(there, "task", "", &task, &err) && task[0] != '\0' &&
           strcmp(task, h->c.task) == 0;
}

static void write_file(struct progress_report *h, struct progress_report_view v)
{
    bool create = false;
    AUTO_BUF struct buf b = BUF_INIT(FILE_BYTES_MAX);
    struct progress_report_config c = h->c;
    struct progress all;
    char key[PROGRESS_HOSTS_KEY_BYTES];
    v.memory = memory_of_all();
    progress_hosts_key(c.host, key);
    if (!may_write(h, key, &create)) {
        return;
    }
    if (c.hosts > 1 && c.host == 0) {
        progress_hosts_sum(&h->c, h->sink, &all, &v);
        c.progress = &all;
    }
    progress_report_json(&c, &v, clock_wall_us(), &b);
    struct err err = ERR_INIT;
    h->lent = true;
    if (sink_put(h->sink, key, buf_str(&b), "application/json", create, &err)) {
        h->failed_n = 0;
        if (!h->borrowed) {
            h->own = true;
        }
        return;
    }
    if (create && err.code == ERR_PRECONDITION) {
        return; /* another's, written meanwhile */
    }
    h->failed_n++;
    log_event(LOG_WARN, "progress_not_written", LF_I("in_a_row", h->failed_n), LF_ERR(&err));
}

static double mean_rate(const struct progress_report *h, double seconds)
{
    int64_t done = rows_of_this_run(h->c.progress);
    return seconds > 0 ? (double)done / seconds : 0;
}

static void preparation_line(const struct progress *p, struct buf *out)
{
    char done[PROGRESS_BAR_TEXT_BYTES];
    char all[PROGRESS_BAR_TEXT_BYTES];
    progress_bar_count(p->prepared, done);
    progress_bar_count(p->to_prepare, all);
    buf_addf(out, "worker  - %s %s of %s objects", p->preparing, done, all);
}

static void write_line(struct progress_report *h)
{
    AUTO_BUF struct buf b = BUF_INIT(LINE_BYTES_MAX);
    double seconds = (double)(clock_mono_us() - h->started_us) / 1e6;
    if (is_preparation(h) && h->c.progress->preparing == NULL) {
        return;
    }
    if (is_preparation(h)) {
        preparation_line(h->c.progress, &b);
    } else {
        h->c.line(h->c.progress, seconds, mean_rate(h, seconds), &b);
    }
    (void)printf("%s\n", buf_cstr(&b));
    (void)fflush(stdout);
}

/* One write, so that it does not mix with lines of the log. */
static void write_json_line(const struct progress_report *h, struct progress_report_view v)
{
    AUTO_BUF struct buf json = BUF_INIT(LINE_BYTES_MAX);
    AUTO_BUF struct buf b = BUF_INIT(LINE_BYTES_MAX + 64);
    v.memory = memory_of_all();
    progress_report_json(&h->c, &v, clock_wall_us(), &json);
    ASSERT(json.n > 2);
    buf_addf(&b, "{\"event\":\"progress\",%s\n", buf_cstr(&json) + 1);
    (void)fwrite(b.p, 1, b.n, stderr);
}

static void write_lines(struct progress_report *h, const struct progress_report_view *v)
{
    switch (h->c.as) {
    case PROGRESS_REPORT_TEXT:
        write_line(h);
        break;
    case PROGRESS_REPORT_JSON:
        write_json_line(h, *v);
        break;
    case PROGRESS_REPORT_NONE:
        break;
    }
}

static void draw_bar(const struct progress_report *h, const struct progress_report_view *v)
{
    const struct progress *p = h->c.progress;
    AUTO_BUF struct buf b = BUF_INIT(LINE_BYTES_MAX);
    struct progress_bar_view bar = {.done = v->done,
                                    .total = v->total,
                                    .rate = v->rate,
                                    .eta_s = v->eta_s,
                                    .failed = p->failed_to_download + p->failed_to_resize,
                                    .transfers = p->transfers,
                                    .bytes =
                                        h->c.of == PROGRESS_REPORT_OF_ROWS ? p->fetched : p->bytes,
                                    .unit = h->c.of == PROGRESS_REPORT_OF_ROWS ? "rows" : "shards"};
    progress_bar_line(&bar, &h->screen, progress_bar_width(STDOUT_FILENO), &b);
    (void)fwrite(b.p, 1, b.n, stdout);
    (void)fflush(stdout);
}

/* Report everything that is due. */
static void beat(struct progress_report *h, bool all)
{
    int64_t now = clock_mono_us();
    struct progress_report_view v = view_of(h, now);
    if (now >= h->next_mark_us) {
        progress_report_mark(&h->speed, now, done_by_this_run(h));
        progress_report_mark(&h->rows_speed, now, rows_of_this_run(h->c.progress));
        h->next_mark_us = now + LINE_INTERVAL_US;
    }
    if (h->screen.on) {
        draw_bar(h, &v);
    } else if (all || now >= h->next_line_us) {
        write_lines(h, &v);
        h->next_line_us = now + LINE_INTERVAL_US;
    }
    if (all || now >= h->next_file_us) {
        write_file(h, v);
        h->next_file_us = clock_mono_us() + h->c.interval_us;
    }
}

/* Wait until the next report is due; false when stopping. */
static bool rest(struct progress_report *h)
{
    int64_t due = MIN(h->next_file_us, h->next_mark_us);
    due = h->screen.on ? MIN(due, clock_mono_us() + BAR_INTERVAL_US) : MIN(due, h->next_line_us);
    struct timespec until = {due / USEC_PER_SEC, due % USEC_PER_SEC * 1000};
    (void)pthread_mutex_lock(&h->lock);
    int rc = 0;
    while (!h->stop && rc == 0) {
        rc = pthread_cond_timedwait(&h->stopped, &h->lock, &until);
    }
    bool go_on = !h->stop;
    (void)pthread_mutex_unlock(&h->lock);
    return go_on;
}

static void *heart_main(void *arg)
{
    struct progress_report *h = arg;
    log_set_line_start(progress_bar_line_start(&h->screen));
    beat(h, !is_preparation(h));
    while (rest(h)) {
        beat(h, false);
    }
    if (!is_preparation(h)) {
        beat(h, true);
    }
    if (h->screen.on) {
        (void)printf("\n");
        write_line(h);
    }
    log_set_line_start("");
    return NULL;
}

void progress_report_start(const struct progress_report_config *c, struct sink *sink,
                           struct progress_report **ret)
{
    struct progress_report *h = xcalloc(1, sizeof *h);
    pthread_condattr_t clock;
    h->c = *c;
    h->sink = sink;
    h->kept = (struct buf)BUF_INIT(FILE_BYTES_MAX);
    h->started_us = clock_mono_us();
    h->own = !is_preparation(h);
    if (is_preparation(h)) {
        h->next_line_us = h->started_us + LINE_INTERVAL_US;
        h->next_file_us = h->started_us + c->interval_us;
    }
    progress_bar_screen_of(&h->screen);
    h->screen.on = h->screen.on && c->as == PROGRESS_REPORT_TEXT && !is_preparation(h);
    (void)pthread_mutex_init(&h->lock, NULL);
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&h->stopped, &clock);
    (void)pthread_condattr_destroy(&clock);
    int rc = pthread_create(&h->thread, NULL, heart_main, h);
    ASSERT(rc == 0);
    *ret = h;
}

void progress_report_borrow(struct progress_report *h)
{
    h->borrowed = true;
}

void progress_report_own(struct progress_report *h)
{
    h->own = true;
}

void progress_report_stop(struct progress_report *h)
{
    if (h == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&h->lock);
    h->stop = true;
    (void)pthread_cond_signal(&h->stopped);
    (void)pthread_mutex_unlock(&h->lock);
    (void)pthread_join(h->thread, NULL);
    if (h->borrowed && h->lent && !h->own) {
        put_back(h);
    }
    buf_done(&h->kept);
    (void)pthread_mutex_destroy(&h->lock);
    (void)pthread_cond_destroy(&h->stopped);
    free(h);
}
