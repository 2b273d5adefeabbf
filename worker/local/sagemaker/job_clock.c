/* The thread for timed changes: see job_clock.h. */
#include "job_clock.h"
#include "common/clock.h"
#include "common/log.h"
#include "local/app.h"
#include "local/fsx/fsx_life.h"
#include "local/hosting/fleet.h"
#include "local/http/dispatch.h"
#include "local/http/server.h"
#include "local/jobs/files.h"
#include "local/jobs/process.h"
#include "local/services/state_events.h"
#include "warm.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

#define RENEW_EVERY_US (10 * USEC_PER_MSEC)
#define DELAYED_MAX    10000

struct delayed {
    usec_t due;
    struct MHD_Connection *conn; /* to resume; NULL: an effect */
    struct request *request;
    bool waits; /* conn's ReceiveMessage waits for a message */
};
struct job_clock {
    pthread_t thread;
    bool running;
    bool stop;
    int wake_fd;
    int inotify_fd;
    usec_t next_check;
    uint64_t messages; /* put into queues */
    struct delayed *delayed;
    size_t delayed_n;
    size_t delayed_cap;
};

struct job_clock *job_clock_new(void)
{
    struct job_clock *t = xcalloc(1, sizeof *t);
    t->wake_fd = -1;
    t->inotify_fd = -1;
    return t;
}

void job_clock_reset(struct app *app)
{
    struct job_clock *t = app->ticker;
    size_t kept = 0;
    for (size_t i = 0; i < t->delayed_n; i++) {
        if (t->delayed[i].conn != NULL) {
            t->delayed[kept++] = t->delayed[i];
        } else {
            request_free(t->delayed[i].request);
        }
    }
    t->delayed_n = kept;
}

void job_clock_free(struct job_clock *t)
{
    if (t == NULL) {
        return;
    }
    for (size_t i = 0; i < t->delayed_n; i++) {
        request_free(t->delayed[i].request);
    }
    free(t->delayed);
    fd_closep(&t->wake_fd);
    fd_closep(&t->inotify_fd);
    free(t);
}

void job_clock_wake(struct app *app)
{
    uint64_t one = 1;
    if (app->ticker->wake_fd >= 0) {
        (void)!write(app->ticker->wake_fd, &one, sizeof one);
    }
}

static void delayed_add(struct app *app, struct delayed d)
{
    struct job_clock *t = app->ticker;
    ARRAY_ROOM(t->delayed, t->delayed_n, t->delayed_cap);
    t->delayed[t->delayed_n++] = d;
    job_clock_wake(app);
}

void job_clock_resume_at(struct app *app, struct MHD_Connection *conn, usec_t due)
{
    delayed_add(app, (struct delayed){.due = due, .conn = conn});
}

void job_clock_wait(struct app *app, struct MHD_Connection *conn, usec_t due, uint64_t seen)
{
    due = app->ticker->messages == seen ? due : 0;
    delayed_add(app, (struct delayed){.due = due, .conn = conn, .waits = true});
}

uint64_t job_clock_messages(const struct app *app)
{
    return app->ticker->messages;
}

void job_clock_message_put(struct app *app)
{
    struct job_clock *t = app->ticker;
    t->messages++;
    for (size_t i = 0; i < t->delayed_n; i++) {
        if (t->delayed[i].waits) {
            t->delayed[i].due = 0;
        }
    }
    job_clock_wake(app);
}

bool job_clock_stops(const struct app *app)
{
    return app->ticker->stop;
}

void job_clock_effect_at(struct app *app, struct request *take, usec_t due)
{
    take->detached = true;
    if (app->ticker->delayed_n >= DELAYED_MAX) {
        request_free(take);
        return;
    }
    delayed_add(app, (struct delayed){.due = due, .request = take});
}

bool job_clock_replay_delayed(struct app *app, const json_t *entry, struct err *err)
{
    const char *body = json_string_value(json_object_get(entry, "body"));
    const char *operation = json_string_value(json_object_get(entry, "operation"));
    if (body == NULL || operation == NULL) {
        return err_set(err, ERR_MALFORMED, "journal: incomplete delayed entry");
    }
    struct request *r = request_new(app, "/");
    r->id = (uint64_t)json_integer_value(json_object_get(entry, "id"));
    r->arrival = json_integer_value(json_object_get(entry, "arrival"));
    r->signed_ok = true;
    buf_add_cstr(&r->body, body);
    dispatch_restore(r, operation);
    job_clock_effect_at(app, r, json_integer_value(json_object_get(entry, "due")));
    return true;
}

void job_clock_forget_delayed(struct app *app, uint64_t id)
{
    struct job_clock *t = app->ticker;
    for (size_t i = 0; i < t->delayed_n; i++) {
        if (t->delayed[i].request != NULL && t->delayed[i].request->id == id) {
            request_free(t->delayed[i].request);
            t->delayed[i] = t->delayed[--t->delayed_n];
            return;
        }
    }
}

static void job_save(struct app *app, struct local_job *job)
{
    struct err err = ERR_INIT;
    if (!journal_write_job(&app->state, job, &err)) {
        log_event(LOG_ERROR, "journal_failed", LF_S("job", job->name), LF_ERR(&err));
    }
    state_events_tell(app, job);
    if (job_is_over(job)) {
        jobs_retire(&app->jobs, job);
    }
}

/* End a job and decide what happens to its instances. */
static void job_close(const struct app *app, struct local_job *job, enum local_job_phase phase,
                      const char *reason, usec_t ended, usec_t now)
{
    job_end(job, phase, reason, ended, now);
    warm_keep(app, job, now);
}

/* Set the job's next step while it waits for spot instances, at most its wait time. */
static void spot_wait(struct local_job *job, usec_t due)
{
    job->due = MIN(due, job->wait_until);
}

/* The instances are reclaimed during a run. */
static void job_interrupt(struct app *app, struct local_job *job, usec_t at)
{
    job_enter(job, PHASE_INTERRUPTED, at);
    job->ran_us += job->modified - job->run_started;
    job->run_started = 0;
    if (--job->inject_times <= 0) {
        job->inject = INJECT_NONE;
    }
    spot_wait(job, job->modified + app->set.spot_wait_us);
    job_save(app, job);
    job_clock_wake(app);
}

/* Starting is over: instances are up or unavailable. */
static void job_launch(struct app *app, struct local_job *job, usec_t now)
{
    struct err err = ERR_INIT;
    job->due = 0;
    if (now >= job->wait_until) {
        job_close(app, job, PHASE_MAX_WAIT, "", job->wait_until, now);
    } else if (job->started != 0 && !process_renew(app, job, &err)) {
        job->due = now + RENEW_EVERY_US; /* the supervisor of the run before is still cleaning up */
        return;
    } else if (job->inject == INJECT_CAPACITY && job->spot) {
        job->due = job->wait_until; /* spot waits for capacity */
    } else if (job->inject == INJECT_CAPACITY) {
        job_close(app, job, PHASE_FAILED, job->inject_reason, now, now);
    } else if (job->ghost) {
        job->started = now;
        job->run_started = now;
        job_enter(job, PHASE_TRAINING, now);
        job->due = now + job->inject_after_us;
    } else {
        char reason[JOB_REASON_MAX + 1];
        if (!process_image_known(app, job, reason)) {
            job_close(app, job, PHASE_FAILED, reason, now, now);
        } else {
            job->started = job->started == 0 ? now : job->started;
            job->run_started = now;
            job_enter(job, PHASE_DOWNLOADING, now);
            /* journal before the process: a second supervisor is harmless, a lost one is not */
            job_save(app, job);
            if (!process_start(app, job, &err)) {
                log_event(LOG_ERROR, "job_start_failed", LF_S("job", job->name), LF_ERR(&err));
            }
            return;
        }
    }
    job_save(app, job);
}

static void job_due(struct app *app, struct local_job *job, usec_t now)
{
    if (job->phase == PHASE_STARTING) {
        job_launch(app, job, now);
        return;
    }
    job->due = 0;
    if (job->phase == PHASE_INTERRUPTED && now >= job->wait_until) {
        job_close(app, job, PHASE_MAX_WAIT, "", job->wait_until, now);
    } else if (job->phase == PHASE_INTERRUPTED) {
        job_enter(job, PHASE_STARTING, now);
        spot_wait(job, now + app->set.cold_start_us);
    }
    if (job->phase == PHASE_STOPPING) {
        job_close(app, job, PHASE_STOPPED, "", now, now);
    } else if (job->ghost) {
        job_close(app, job, PHASE_COMPLETED, "", now, now);
    }
    job_save(app, job);
}

static bool mark_read(struct app *app, const struct local_job *job, const char *kind, json_t **ret)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    AUTO_BUF struct buf text = BUF_INIT(MARK_BYTES_MAX);
    *ret = NULL;
    return files_path(path, sizeof path, &err, "%s/state/marks/%s.%s", app->root, job->name,
                      kind) &&
           files_read(path, &text, &err) && json_parse(buf_str(&text), MARK_BYTES_MAX, ret, &err);
}

static void job_finish(struct app *app, struct local_job *job, const json_t *mark, usec_t now)
{
    const char *outcome = json_string_value(json_object_get(mark, "outcome"));
    const char *text = json_string_value(json_object_get(mark, "text"));
    int64_t code = json_integer_value(json_object_get(mark, "exit_code"));
    usec_t at = json_integer_value(json_object_get(mark, "at"));
    char reason[JOB_REASON_MAX + 1] = "";
    enum local_job_phase phase = PHASE_FAILED;
    outcome = outcome == NULL ? "lost" : outcome;
    text = text == NULL ? "" : text;
    if (job->phase == PHASE_STOPPING || strcmp(outcome, "stopped") == 0) {
        phase = PHASE_STOPPED;
    } else if (strcmp(outcome, "max_runtime") == 0) {
        phase = PHASE_MAX_RUNTIME;
    } else if (strcmp(outcome, "max_wait") == 0) {
        phase = PHASE_MAX_WAIT;
    } else if (strcmp(outcome, "interrupted") == 0) {
        job_interrupt(app, job, at);
        return;
    } else if (strcmp(outcome, "exit") == 0 && code == 0) {
        phase = PHASE_COMPLETED;
    } else if (strcmp(outcome, "exit") == 0) {
        char tail[48];
        int tail_n = snprintf(tail, sizeof tail, ", exit code: %lld", (long long)code);
        struct str head = {text, MIN(strlen(text), (size_t)(JOB_REASON_MAX - 16 - tail_n))};
        while (head.n > 0 && !str_is_utf8(head)) {
            head.n--; /* not in the middle of a character */
        }
        (void)snprintf(reason, sizeof reason, "AlgorithmError: " STR_FMT "%s", STR_ARG(head), tail);
    } else if (strcmp(outcome, "error") == 0) {
        (void)snprintf(reason, sizeof reason, "%s", text);
    } else {
        (void)snprintf(reason, sizeof reason,
                       "InternalServerError: We encountered an internal error. Please try again.");
    }
    job_close(app, job, phase, reason, at, now);
    job_save(app, job);
    process_marks_remove(app, job);
}

static void marks_apply(struct app *app, struct local_job *job, usec_t now)
{
    static const struct {
        const char *kind;
        enum local_job_phase phase;
    } steps[] = {{"train", PHASE_TRAINING}, {"upload", PHASE_UPLOADING}};
    if (job->run_started == 0 || job->ghost || job_has_ended(job)) {
        return;
    }
    /* The end is read first: when it is there, the marks of all steps before it are. */
    AUTO_JSON json_t *end = NULL;
    bool over = mark_read(app, job, "end", &end);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        json_t *mark = NULL;
        if (job->phase < steps[i].phase && mark_read(app, job, steps[i].kind, &mark)) {
            job_enter(job, steps[i].phase, json_integer_value(json_object_get(mark, "at")));
            job_save(app, job);
        }
        json_decref(mark);
    }
    if (over) {
        job_finish(app, job, end, now);
    }
}

static void supervisors_check(struct app *app, usec_t now)
{
    for (size_t i = app->jobs.live_n; i > 0; i--) {
        struct local_job *job = app->jobs.live[i - 1];
        struct err err = ERR_INIT;
        if (job->run_started == 0 || job->ghost || job_has_ended(job)) {
            continue;
        }
        marks_apply(app, job, now);
        if (!job_has_ended(job) && job->run_started != 0 && !process_alive(app, job) &&
            !process_start(app, job, &err)) {
            log_event(LOG_ERROR, "job_start_failed", LF_S("job", job->name), LF_ERR(&err));
        }
    }
}

static void marks_drain(struct app *app, usec_t now)
{
    _Alignas(struct inotify_event) char b[16384];
    ssize_t n;
    while ((n = read(app->ticker->inotify_fd, b, sizeof b)) > 0) {
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *e = (const void *)(b + at);
            at += (ssize_t)(sizeof *e + e->len);
            char name[64];
            const char *dot = e->len > 0 ? strchr(e->name, '.') : NULL;
            if (dot == NULL || (size_t)(dot - e->name) >= sizeof name) {
                continue;
            }
            (void)snprintf(name, sizeof name, "%.*s", (int)(dot - e->name), e->name);
            struct local_job *job = jobs_find(&app->jobs, name);
            if (job != NULL) {
                marks_apply(app, job, now);
            }
        }
    }
}

static void delayed_run(struct app *app, usec_t now)
{
    struct job_clock *t = app->ticker;
    for (size_t i = 0; i < t->delayed_n;) {
        struct delayed d = t->delayed[i];
        if (d.due > now) {
            i++;
            continue;
        }
        t->delayed[i] = t->delayed[--t->delayed_n];
        if (d.conn != NULL) {
            server_resume(d.conn);
        } else {
            dispatch_detached(d.request);
            request_free(d.request);
        }
    }
}

/* One pass; returns when the next one is due. */
static usec_t ticker_pass(struct app *app)
{
    struct job_clock *t = app->ticker;
    usec_t now = clock_wall_us();
    marks_drain(app, now);
    if (now >= t->next_check || t->next_check > now + 2 * CHECK_EVERY_US) {
        supervisors_check(app, now);
        t->next_check = now + (t->inotify_fd >= 0 ? CHECK_EVERY_US : UNWATCHED_US);
    }
    delayed_run(app, now);
    warm_expire(app, now);
    usec_t next = MIN(t->next_check, MIN(hosting_tick(app, now), fsx_tick(app, now)));
    for (size_t i = app->jobs.live_n; i > 0; i--) {
        struct local_job *job = app->jobs.live[i - 1];
        if (job->due != 0 && job->due <= now && !job_has_ended(job)) {
            job_due(app, job, now);
        }
        if (job->due != 0) {
            next = MIN(next, job->due);
        }
    }
    for (size_t i = 0; i < t->delayed_n; i++) {
        next = MIN(next, t->delayed[i].due);
    }
    return next;
}

static void *ticker_main(void *arg)
{
    struct app *app = arg;
    struct job_clock *t = app->ticker;
    struct pollfd fds[] = {{t->wake_fd, POLLIN, 0}, {t->inotify_fd, POLLIN, 0}};
    for (;;) {
        pthread_mutex_lock(&app->mu);
        bool stop = t->stop;
        usec_t next = stop ? 0 : ticker_pass(app);
        pthread_mutex_unlock(&app->mu);
        if (stop) {
            return NULL;
        }
        int64_t wait = MAX(INT64_C(0), next - clock_wall_us());
        struct timespec ts = {wait / USEC_PER_SEC, wait % USEC_PER_SEC * 1000};
        if (ppoll(fds, ARRAY_LEN(fds), &ts, NULL) > 0) {
            uint64_t n;
            (void)!read(t->wake_fd, &n, sizeof n);
        }
    }
}

bool job_clock_start(struct app *app, struct err *err)
{
    struct job_clock *t = app->ticker;
    char path[PATH_MAX];
    if (!files_path(path, sizeof path, err, "%s/state/marks", app->root)) {
        return false;
    }
    t->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    t->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    bool none_left = t->inotify_fd < 0 && errno == EMFILE;
    if (t->wake_fd < 0 || (!none_left && inotify_add_watch(t->inotify_fd, path, IN_MOVED_TO) < 0)) {
        return err_set_os(err, ERR_IO, errno, "cannot watch '%s'", path);
    }
    int rc = pthread_create(&t->thread, NULL, ticker_main, app);
    if (rc != 0) {
        return err_set_os(err, ERR_IO, rc, "cannot start a thread");
    }
    t->running = true;
    return true;
}

void job_clock_stop(struct app *app)
{
    struct job_clock *t = app->ticker;
    if (!t->running) {
        return;
    }
    pthread_mutex_lock(&app->mu);
    t->stop = true;
    /* Suspended connections would keep MHD from stopping. */
    for (size_t i = 0; i < t->delayed_n; i++) {
        if (t->delayed[i].conn != NULL) {
            server_resume(t->delayed[i].conn);
            t->delayed[i].conn = NULL;
        }
    }
    job_clock_wake(app);
    pthread_mutex_unlock(&app->mu);
    (void)pthread_join(t->thread, NULL);
    t->running = false;
}
