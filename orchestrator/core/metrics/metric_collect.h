/* What to ask next about the log of one attempt whose metrics are collected, and when all of it was
 * read: its job has ended, and a page asked for a while after that brought no more lines. Facts in,
 * one action out. Pure. boot_us: CLOCK_BOOTTIME. */
#pragma once
#include "common/aws_outcome.h"
#include "metric_place.h"

#define METRIC_LOG_LINES_MAX 5000000                  /* of a stream; the rest is not read */
#define METRIC_GIVE_UP_US    (15 * 60 * USEC_PER_SEC) /* after the job's end, unreadable */
#define METRIC_REFUSALS_MAX  5
#define METRIC_BLIND_US      (10 * 60 * USEC_PER_SEC) /* between two looks at an unreadable spec */

enum metric_act {
    METRIC_WAIT, /* until due_us */
    METRIC_ASK_STREAM,
    METRIC_ASK_PAGE,
    METRIC_ASK_FINAL,
    METRIC_READ_SPEC, /* what is to be found may be known by now, of a campaign that ended, too */
    METRIC_CLOSE
};
struct metric_collect {
    struct metric_place place;
    bool blind; /* what is to be found in it is not known: it waits, and looks again */
    char
        next_stream[METRIC_STREAM_MAX]; /* seen: read when this one was read to its end once more */
    bool ended;                         /* its attempt */
    bool at_end;                        /* the last page had no more lines */
    bool last_stream;    /* and no later stream was there when it was asked for last */
    bool final_known;    /* SageMaker's own figures, or that there are none to be had */
    int64_t ended_us;    /* boot: seen */
    int64_t asked_us;    /* boot: the last page or stream */
    int64_t due_us;      /* boot */
    int64_t interval_us; /* between two looks while nothing is new */
    int64_t settle_us;   /* lines may come so long after the end */
    int failures;        /* in a row */
    int refusals;        /* in a row, since its job has ended */
    char note[300];      /* why it is not whole; "": it is */
};
/* Its spec cannot be read: nothing is asked of its log until that can be. */
void metric_collect_blind(struct metric_collect *m, int64_t boot_us);
void metric_collect_ended(struct metric_collect *m, int64_t boot_us);
/* A call is counted as asked from here on. Of a log that was given up SageMaker's own figures are
 * still asked for once its job has ended. */
enum metric_act metric_collect_next(struct metric_collect *m, int64_t boot_us);

/* Answers. name "": no further stream. */
void metric_collect_stream(struct metric_collect *m, const char *name, int64_t boot_us);
/* Lines up to `upto` of a page of n were taken. */
void metric_collect_page(struct metric_collect *m, int64_t n, int64_t upto, const char *next_token,
                         int64_t boot_us);
void metric_collect_final(struct metric_collect *m);
/* The call of `act` failed: a throttle or an outage is waited out, a refused token is dropped. */
void metric_collect_failed(struct metric_collect *m, enum metric_act act,
                           const struct aws_failure *f, int64_t boot_us);
