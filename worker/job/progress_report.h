/* Reports progress from its own thread, so that neither a stalled bucket nor a full pipe delays it:
 * for people a text line every few seconds, or a bar when standard output is a terminal; for
 * programs, when asked, a line of JSON on standard error just as often; for drover
 * _progress.json in the output folder every progress interval and once at the end. A failed write
 * of that file is logged and retried at the next interval. Counters are atomic: any thread adds,
 * this thread only reads. */
#pragma once
#include "common/units.h"
#include "io/sink.h"
#include <stdatomic.h>

struct progress {
    _Atomic int64_t rows_in;   /* -1 until known */
    _Atomic int64_t rows_kept; /* rows of shards that an earlier run had finished */
    _Atomic int64_t shards_in; /* -1 until known */
    _Atomic int64_t shards_done;
    _Atomic int64_t successes;
    _Atomic int64_t failed_to_download;
    _Atomic int64_t failed_to_resize;
    _Atomic int64_t bytes;          /* of finished shards; index: bytes read */
    _Atomic int64_t fetched;        /* bytes of response bodies received */
    _Atomic int64_t transfers;      /* open now */
    _Atomic int64_t waiting;        /* rows that wait for their hosts ... */
    _Atomic int64_t waiting_silent; /* ... of these, for silent hosts */
    _Atomic int64_t waiting_one;    /* ... for the busy host with the longest queue */
    _Atomic bool network_away;      /* most hosts are silent: everything waits */
    _Atomic int64_t unsupported;    /* of failed_to_resize: pictures of an unsupported format */
    /* Before the first row: objects of what has to be read or removed first. */
    const char *_Atomic preparing; /* "read", a literal; NULL: nothing */
    _Atomic int64_t prepared, to_prepare;
};
/* From now on n objects are `verb`; the caller counts them in prepared. */
void progress_prepare(struct progress *p, const char *verb, int64_t n);
/* Rows done: the sum of the outcomes. */
int64_t progress_rows(const struct progress *p);

/* The unit of the estimate. A preparation has lines, no bar, and nothing before the first interval
 * has passed nor at the end: a short one leaves no trace. */
enum progress_report_of {
    PROGRESS_REPORT_OF_ROWS,
    PROGRESS_REPORT_OF_SHARDS,
    PROGRESS_REPORT_OF_PREPARATION
};

enum progress_report_as {
    PROGRESS_REPORT_TEXT, /* lines, or the bar */
    PROGRESS_REPORT_JSON, /* {"event":"progress", then the fields of _progress.json} */
    PROGRESS_REPORT_NONE  /* only _progress.json */
};

struct progress_report_config { /* value; all borrowed */
    const struct progress *progress;
    enum progress_report_of of;
    enum progress_report_as as;
    const char *task;
    const char *attempt;
    int64_t interval_us; /* between _progress.json */
    /* Of a part that several hosts share (progress_hosts.h): this one, how many, and the rows and
     * shards of all of them. hosts 0 or 1: one host. */
    int host, hosts;
    int64_t rows_all, shards_all;
    bool keep_file; /* of a finished output: not written unless it is borrowed */
    /* Appends the text line; without a newline it is the bar's last one. */
    void (*line)(const struct progress *p, double seconds, double rate, struct buf *out);
};
/* A snapshot of the counters. */
struct progress_report_view { /* value */
    int64_t done, total;      /* of the unit of the estimate; total -1: not known */
    double rate;              /* units per second over the last minutes; 0: not known yet */
    double rows_rate;         /* rows per second */
    int64_t eta_s;            /* -1: not known */
    int64_t memory;           /* bytes of this process and its descendants, shared pages once */
};

#define PROGRESS_REPORT_ETA_S_MAX INT64_C(100000000) /* a later end is not known */

struct progress_report;
/* Write both reports and continue on a new thread until progress_report_stop. The sink is borrowed
 * until then. */
void progress_report_start(const struct progress_report_config *c, struct sink *sink,
                           struct progress_report **ret);
/* Of a preparation: the output is ours from now on. Before, its file is written only where there is
 * none, or that of an earlier attempt at the task: another job may be at work there. */
void progress_report_own(struct progress_report *h);
/* Of a preparation: its file may be written from now on, and what stood there is put back when it
 * stops before the output is its own: of a finished output, and of a run that is refused. */
void progress_report_borrow(struct progress_report *h);
/* Write both once more and stop. NULL ignored. */
void progress_report_stop(struct progress_report *h);
/* Append the text of _progress.json. */
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
/* The rate from the oldest mark kept to now; 0 while unknown. */
double progress_report_rate(const struct progress_report_speed *s, int64_t now_us, int64_t done);
