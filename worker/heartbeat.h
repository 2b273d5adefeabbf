/* Signs of life: a line for people every few seconds, and _progress.json beside the output for
 * drover every progress interval. Counters are atomic: any thread adds, the main thread reads. */
#pragma once
#include "common/units.h"
#include "sink.h"
#include <stdatomic.h>

struct progress {
    _Atomic int64_t rows_in; /* -1 until known */
    _Atomic int64_t rows_done;
    _Atomic int64_t rows_kept; /* of rows_done: in shards an earlier run had finished */
    _Atomic int64_t shards_done;
    _Atomic int64_t successes;
    _Atomic int64_t failed_to_download;
    _Atomic int64_t failed_to_resize;
    _Atomic int64_t bytes;
    _Atomic int64_t unsupported; /* of failed_to_resize: pictures of a kind we do not decode */
};

struct heartbeat {
    const struct progress *progress; /* borrowed */
    struct sink *sink;               /* borrowed; of the main thread */
    const char *task;
    const char *attempt;
    int64_t interval_us; /* between _progress.json */
    int64_t line_us;     /* between lines */
    int64_t started_mono_us;
    int64_t next_file_mono_us;
    int64_t next_line_mono_us;
    int failed_n; /* in a row */
    /* The people's line of another command than download; NULL: download's. Set after init. */
    void (*print_line)(void *ctx);
    void *print_ctx;
};
void heartbeat_init(struct heartbeat *h, const struct progress *p, struct sink *sink,
                    const char *task, const char *attempt, int64_t interval_us);
/* Do what is due. A failed write is warned of and tried again at the next interval: progress is
 * a convenience, output is not. */
void heartbeat_tick(struct heartbeat *h);
/* Write both now: at the start and at the end. */
void heartbeat_now(struct heartbeat *h);
/* The text of _progress.json. */
void heartbeat_json(const struct heartbeat *h, usec_t now_us, struct buf *out);
