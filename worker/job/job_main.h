/* Runs a command as a job: settings in, work on its own thread, an exit status out.
 *
 * The main thread only waits for signals and watches the clock, so a stop is carried out even when
 * the work hangs (a stalled bucket, a stopped decoder, a full pipe). SageMaker sends SIGKILL 120 s
 * after SIGTERM; the process ends by itself within stop_us:
 *
 *   asked               before the work says that it drains: the end, at once
 *   asked               tick() is called with the time since then, again and again
 *   asked + stop_us     the end, whatever is still going on
 *
 * Durable output stays. A second SIGTERM changes nothing; a second SIGINT (Ctrl-C) ends the process
 * at once. */
#pragma once
#include "common/buf.h"
#include "common/units.h"
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

enum job_main_end { JOB_MAIN_DONE, JOB_MAIN_STOPPED, JOB_MAIN_FAILED };

struct job_main {
    const char *failed_event; /* log event: "index_failed" */
    const char *stopped;      /* text of the failure file when stopped */
    const char *again;        /* told to people after a stop at once; NULL: nothing */
    int64_t stop_us;          /* from the request to the end */
    /* Called on the calling thread before any other thread exists; may fork helpers. NULL:
     * nothing. */
    bool (*begin)(void *ctx, struct err *err);
    /* Called on its own thread. Returns JOB_MAIN_FAILED with the reason in err. */
    enum job_main_end (*work)(void *ctx, struct err *err);
    /* Called on the main thread a few times a second, and at once when asked to stop. asked_us:
     * time since the request, -1: not asked. */
    void (*tick)(void *ctx, int64_t asked_us);
    void *ctx;

    _Atomic bool drains_, ended_;
    pthread_t main_thread_;
    enum job_main_end end_;
    struct err err_;
};

/* Call first. Until job_main_run a SIGTERM ends the process at once (process 1 of a container would
 * ignore an unhandled SIGTERM). */
void job_main_begin(void);
/* Load hyperparameters and flags with the command's loader. False when there were faults, which are
 * already printed; exit with WP_EXIT_USAGE. */
bool job_main_settings(bool (*load)(const json_t *hyperparameters, int argc, char *const *argv,
                                    void *options, struct buf *faults),
                       int argc, char *const *argv, void *options) MUST_CHECK;
/* Run the work to its end, write the failure file and the last log line, and return the exit
 * status. */
int job_main_run(struct job_main *l);
/* Called by the work: from now on a stop waits for it to drain. */
void job_main_drains(struct job_main *l);
