/* Signs of life, from a thread of their own, so that neither a stalled bucket nor a full pipe holds
 * up anything else: for people a line every few seconds, or a bar where standard output is a
 * terminal; for drover _progress.json beside the output every progress interval, and once more at
 * the end. A failed write of that file is warned of and tried again at the next interval: progress
 * is a convenience, output is not. Counters are atomic: any thread adds, the heart only reads. */
#pragma once
#include "common/units.h"
#include "io/sink.h"
#include <stdatomic.h>

struct progress {
    _Atomic int64_t rows_in;   /* -1 until known */
    _Atomic int64_t rows_kept; /* of the rows done: in shards an earlier run had finished */
    _Atomic int64_t shards_in; /* -1 until known */
    _Atomic int64_t shards_done;
    _Atomic int64_t successes;
    _Atomic int64_t failed_to_download;
    _Atomic int64_t failed_to_resize;
    _Atomic int64_t bytes;       /* of finished shards; index: read */
    _Atomic int64_t fetched;     /* bytes of bodies that came in */
    _Atomic int64_t transfers;   /* open now */
    _Atomic int64_t unsupported; /* of failed_to_resize: pictures of a kind we do not decode */
};
/* Every row that is done has one outcome. */
int64_t progress_rows(const struct progress *p);

enum progress_report_of {
    PROGRESS_REPORT_OF_ROWS,
    PROGRESS_REPORT_OF_SHARDS
}; /* what is counted down */

struct progress_report_config { /* value; all borrowed */
    const struct progress *progress;
    enum progress_report_of of;
    const char *task;
    const char *attempt;
    int64_t interval_us; /* between _progress.json */
    /* The people's line; without a newline it is the bar's last. */
    void (*line)(const struct progress *p, double seconds, double rate, struct buf *out);
};
/* What the counters say at one moment. */
struct progress_report_view { /* value */
    int64_t done, total;      /* of what is counted down; total -1: not known */
    double rate;              /* of that a second, over the last minutes; 0: not known yet */
    double rows_rate;         /* the same of rows */
    int64_t eta_s;            /* -1: not known */
    int64_t memory;           /* bytes of this process and those below it, shared ones once */
};

struct progress_report;
/* Write both signs and go on from a thread of its own until progress_report_stop. The sink is lent
 * until then. */
void progress_report_start(const struct progress_report_config *c, struct sink *sink,
                           struct progress_report **ret);
/* Both once more, as things are now. NULL ignored. */
void progress_report_stop(struct progress_report *h);
/* The text of _progress.json. */
void progress_report_json(const struct progress_report_config *c,
                          const struct progress_report_view *v, usec_t now_us, struct buf *out);

/* Speed over a window: marks of (time, done), the oldest dropped. Pure. */
#define PROGRESS_REPORT_MARKS 64
struct progress_report_speed {
    int64_t at_us[PROGRESS_REPORT_MARKS];
    int64_t done[PROGRESS_REPORT_MARKS];
    int64_t n; /* marks ever made */
};
void progress_report_mark(struct progress_report_speed *s, int64_t now_us, int64_t done);
/* From the oldest mark kept to now; 0 while nothing can be said. */
double progress_report_rate(const struct progress_report_speed *s, int64_t now_us, int64_t done);
