/* The life of a verb as a job: settings in, work on a thread of its own, an exit status out.
 *
 * The main thread does nothing but wait for signals and watch the clock, so that whatever hangs
 * (a stalled bucket, a stopped decoder, a full pipe), a stop is carried out. SageMaker sends
 * SIGKILL 120 s after SIGTERM; by stop_us at the latest the process has ended by itself:
 *
 *   asked               before the work says that it drains: the end, at once
 *   asked               tick() is called with the time since then, again and again
 *   asked + stop_us     the end, whatever is still going on
 *
 * What is durable then stays durable. A second SIGTERM is the same request again; a second SIGINT
 * (Ctrl-C by an impatient user) is the end at once. */
#pragma once
#include "common/buf.h"
#include "common/units.h"
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

enum job_main_end { JOB_MAIN_DONE, JOB_MAIN_STOPPED, JOB_MAIN_FAILED };

struct job_main {
    const char *failed_event; /* of the log: "index_failed" */
    const char *stopped;      /* the failure file's text when stopped */
    int64_t stop_us;          /* from being asked to the end */
    /* On the calling thread, before there is any other; NULL: nothing. Helpers are forked here. */
    bool (*begin)(void *ctx, struct err *err);
    /* On a thread of its own. JOB_MAIN_FAILED with the reason. */
    enum job_main_end (*work)(void *ctx, struct err *err);
    /* On the main thread, a few times a second, and at once when asked. asked_us: how long ago,
     * -1: not. */
    void (*tick)(void *ctx, int64_t asked_us);
    void *ctx;

    _Atomic bool drains_, ended_;
    pthread_t main_thread_;
    enum job_main_end end_;
    struct err err_;
};

/* Before all else: until job_main_run a SIGTERM ends the process at once (as process 1 of a
 * container an unhandled one would be ignored). */
void job_main_begin(void);
/* Hyperparameters and flags by the verb's own loader; false when there were faults, which have been
 * told: WP_EXIT_USAGE. */
bool job_main_settings(bool (*load)(const json_t *hyperparameters, int argc, char *const *argv,
                                    void *options, struct buf *faults),
                       int argc, char *const *argv, void *options) MUST_CHECK;
/* Work to the end. The exit status; the failure file and the log's last line are written. */
int job_main_run(struct job_main *l);
/* By the work: from now on a stop is drained. */
void job_main_drains(struct job_main *l);
