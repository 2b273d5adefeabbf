/* Start, stop and end of a job. */
#include "job_main.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log_people.h"
#include "sagemaker_container.h"
#include "worker_protocol.h"
#include <signal.h>
#include <stdio.h>
#include <time.h>

#define FAULTS_BYTES_MAX 8192
#define TICK_NS          100000000

static void stop_at_once(int sig UNUSED)
{
    _exit(WP_EXIT_STOPPED);
}

void job_main_begin(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGTERM, stop_at_once);
}

bool job_main_settings(bool (*load)(const json_t *hyperparameters, int argc, char *const *argv,
                                    void *options, struct buf *faults),
                       int argc, char *const *argv, void *options)
{
    AUTO_BUF struct buf faults = BUF_INIT(FAULTS_BYTES_MAX);
    AUTO_JSON json_t *hyper = NULL;
    struct err err = ERR_INIT;
    if (!sagemaker_container_hyperparameters(&hyper, &err)) {
        buf_addf(&faults, "%s\n", err.message);
    }
    if (faults.n == 0 && load(hyper, argc, argv, options, &faults)) {
        return true;
    }
    (void)fprintf(stderr, "%s", buf_cstr(&faults));
    sagemaker_container_fail("bad_input", buf_cstr(&faults));
    return false;
}

static void *work_main(void *arg)
{
    struct job_main *l = arg;
    l->end_ = l->work(l->ctx, &l->err_);
    l->ended_ = true;
    (void)pthread_kill(l->main_thread_, SIGUSR1);
    return NULL;
}

void job_main_drains(struct job_main *l)
{
    l->drains_ = true;
}

/* Other threads may hang or hold any lock: wait for nothing and free nothing. */
NORETURN static void leave(const struct job_main *l, const char *why)
{
    log_event(LOG_WARN, "stopped_at_once", LF_S("why", why));
    if (l->again != NULL) {
        log_people("%s", l->again);
    }
    sagemaker_container_fail("stopped", l->stopped);
    _exit(WP_EXIT_STOPPED);
}

/* Wait for signals until the work has ended. */
static void watch(struct job_main *l, const sigset_t *signals)
{
    int64_t asked_at = 0;
    while (!l->ended_) {
        struct timespec wait = {0, TICK_NS};
        int sig = sigtimedwait(signals, NULL, &wait);
        bool asks = sig == SIGTERM || sig == SIGINT;
        int64_t now = clock_mono_us();
        if (asks && asked_at != 0 && sig == SIGINT) {
            leave(l, "asked a second time");
        }
        if (asks && asked_at == 0) {
            log_event(LOG_INFO, "stop_asked", LF_I("signal", sig));
            if (l->drains_) {
                log_people("Stopping: what is under way is finished, within %lld seconds. Ctrl-C "
                           "again stops at once.",
                           (long long)(l->stop_us / USEC_PER_SEC));
            }
            asked_at = now;
        }
        if (asked_at != 0 && !l->drains_) {
            leave(l, "nothing was begun");
        }
        if (asked_at != 0 && now - asked_at >= l->stop_us) {
            leave(l, "out of time");
        }
        if (l->drains_) {
            l->tick(l->ctx, asked_at != 0 ? now - asked_at : -1);
        }
    }
}

static int exit_of(const struct job_main *l)
{
    const char *cause = sagemaker_container_cause(&l->err_);
    switch (l->end_) {
    case JOB_MAIN_DONE:
        break;
    case JOB_MAIN_STOPPED:
        sagemaker_container_fail("stopped", l->stopped);
        return WP_EXIT_STOPPED;
    case JOB_MAIN_FAILED:
        log_event(LOG_ERROR, l->failed_event, LF_S("cause", cause), LF_ERR(&l->err_));
        sagemaker_container_fail(cause, l->err_.message);
        return sagemaker_container_exit(cause);
    }
    return WP_EXIT_OK;
}

int job_main_run(struct job_main *l)
{
    sigset_t signals;
    pthread_t thread;
    ASSERT(l->stop_us > 0);
    l->err_ = (struct err)ERR_INIT;
    if (l->begin != NULL && !l->begin(l->ctx, &l->err_)) {
        l->end_ = JOB_MAIN_FAILED;
        return exit_of(l);
    }
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGUSR1);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    l->main_thread_ = pthread_self();
    int rc = pthread_create(&thread, NULL, work_main, l);
    ASSERT(rc == 0);
    watch(l, &signals);
    (void)pthread_join(thread, NULL);
    return exit_of(l);
}
