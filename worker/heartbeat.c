/* The people's line has the words of img2dataset's, so that eyes and scripts used to it can read
 * it. */
#include "heartbeat.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "worker_protocol.h"
#include <inttypes.h>

#define LINE_INTERVAL_US (5 * USEC_PER_SEC)

void heartbeat_init(struct heartbeat *h, const struct progress *p, struct sink *sink,
                    const char *task, const char *attempt, int64_t interval_us)
{
    int64_t now = clock_mono_us();
    *h = (struct heartbeat){.progress = p,
                            .sink = sink,
                            .task = task,
                            .attempt = attempt,
                            .interval_us = interval_us,
                            .line_us = LINE_INTERVAL_US,
                            .started_mono_us = now,
                            .next_file_mono_us = now + interval_us,
                            .next_line_mono_us = now + LINE_INTERVAL_US};
}

void heartbeat_json(const struct heartbeat *h, usec_t now_us, struct buf *out)
{
    const struct progress *p = h->progress;
    struct json_out w;
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_i64(&w, "version", WP_VERSION);
    json_out_str(&w, "task", h->task);
    json_out_str(&w, "attempt", h->attempt);
    if (p->rows_in < 0) {
        json_out_null(&w, "rows_in");
    } else {
        json_out_i64(&w, "rows_in", p->rows_in);
    }
    json_out_i64(&w, "rows_done", p->rows_done);
    json_out_i64(&w, "shards_done", p->shards_done);
    json_out_i64(&w, "successes", p->successes);
    json_out_i64(&w, "bytes", p->bytes);
    json_out_time(&w, "updated", now_us);
    json_out_end_object(&w);
}

static void write_file(struct heartbeat *h)
{
    AUTO_BUF struct buf b = BUF_INIT(4096);
    heartbeat_json(h, clock_wall_us(), &b);
    struct err err = ERR_INIT;
    if (sink_put(h->sink, WP_PROGRESS_KEY, buf_str(&b), "application/json", false, &err)) {
        h->failed_n = 0;
        return;
    }
    h->failed_n++;
    log_event(LOG_WARN, "progress_not_written", LF_I("in_a_row", h->failed_n), LF_ERR(&err));
}

static void write_line(const struct heartbeat *h)
{
    if (h->print_line != NULL) {
        h->print_line(h->print_ctx);
        (void)fflush(stdout);
        return;
    }
    const struct progress *p = h->progress;
    int64_t done = p->rows_done;
    double n = done > 0 ? (double)done : 1.0;
    double s = (double)(clock_mono_us() - h->started_mono_us) / 1e6;
    double rate = s > 0 ? (double)(done - p->rows_kept) / s : 0;
    (void)printf("worker  - success: %.3f - failed to download: %.3f - failed to resize: %.3f - "
                 "images per sec: %.0f - count: %" PRIi64 " of %" PRIi64 "\n",
                 (double)p->successes / n, (double)p->failed_to_download / n,
                 (double)p->failed_to_resize / n, rate, done, (int64_t)p->rows_in);
    (void)fflush(stdout);
}

void heartbeat_tick(struct heartbeat *h)
{
    int64_t now = clock_mono_us();
    if (now >= h->next_line_mono_us) {
        write_line(h);
        h->next_line_mono_us = now + h->line_us;
    }
    if (now >= h->next_file_mono_us) {
        write_file(h);
        h->next_file_mono_us = clock_mono_us() + h->interval_us;
    }
}

void heartbeat_now(struct heartbeat *h)
{
    write_line(h);
    write_file(h);
}
