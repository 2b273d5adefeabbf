/* The process above one job: see supervise.h. */
#include "supervise.h"
#include "common/clock.h"
#include "container.h"
#include "feed.h"
#include "feed_plan.h"
#include "files.h"
#include "transfer.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPEC_BYTES_MAX    (4u << 20)
#define FAILURE_BYTES_MAX 1024
#define SYNC_EVERY_US     USEC_PER_SEC

enum ending {
    END_NONE,
    END_EXIT,
    END_STOPPED,
    END_MAX_RUNTIME,
    END_MAX_WAIT,
    END_INJECTED,
    END_INPUT, /* a Pipe channel could not be sent */
    ENDING_COUNT
};

int64_t supervise_i64(const struct supervisor *s, const char *key)
{
    return json_integer_value(json_object_get(s->spec, key));
}

static bool exists(const struct supervisor *s, const char *file)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    return files_path(path, sizeof path, &err, "%s/%s", s->folder, file) && access(path, F_OK) == 0;
}

void supervise_mark(const struct supervisor *s, const char *kind, const char *outcome, int code,
                    const char *text)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    AUTO_JSON json_t *o = json_pack("{s:I, s:s, s:i}", "at", (json_int_t)clock_wall_us(), "outcome",
                                    outcome, "exit_code", code);
    json_t *v = json_string(text);
    (void)json_object_set_new(o, "text", v != NULL ? v : json_string("(not UTF-8)"));
    AUTO_FREE char *line = json_text(o);
    if (!files_path(path, sizeof path, &err, "%s/state/marks/%s.%s", s->root, s->name, kind) ||
        !files_write(path, str_of(line), &err)) {
        (void)fprintf(stderr, "supervise: %s\n", err.message);
    }
}

void supervise_signal(const struct supervisor *s, int signo)
{
    for (int i = 0; i < s->hosts_n; i++) {
        if (s->hosts[i].pid > 0) {
            /* As docker does: TERM goes to the container's first process, KILL to all processes. */
            (void)kill(signo == SIGKILL ? -s->hosts[i].pid : s->hosts[i].pid, signo);
        }
    }
}

static void children_reap(struct supervisor *s)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        feeds_reaped(s, pid);
        for (int i = 0; i < s->hosts_n; i++) {
            struct job_host *h = &s->hosts[i];
            if (h->pid == pid) {
                (void)kill(-pid, SIGKILL); /* its remaining processes end with the container */
                container_finish(h);
                feeds_end_host(s, h->k);
                h->pid = 0;
                h->exited = true;
                h->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            }
        }
    }
}

bool supervise_pump(struct supervisor *s, usec_t until)
{
    struct pollfd fds[HOSTS_MAX + 2];
    nfds_t n = 2;
    fds[0] = (struct pollfd){s->inotify_fd, POLLIN, 0};
    fds[1] = (struct pollfd){s->signal_fd, POLLIN, 0};
    for (int i = 0; i < s->hosts_n; i++) {
        if (s->hosts[i].pipe_fd >= 0) {
            fds[n++] = (struct pollfd){s->hosts[i].pipe_fd, POLLIN, 0};
        }
    }
    int64_t longest = s->inotify_fd >= 0 ? 3600 * USEC_PER_SEC : UNWATCHED_US;
    int64_t wait = MIN(MAX(INT64_C(0), until - clock_wall_us()), longest);
    struct timespec ts = {wait / USEC_PER_SEC, wait % USEC_PER_SEC * 1000};
    (void)ppoll(fds, n, &ts, NULL);
    for (int i = 0; i < s->hosts_n; i++) {
        container_drain(&s->hosts[i]);
    }
    _Alignas(struct inotify_event) char events[4096];
    while (read(s->inotify_fd, events, sizeof events) > 0) {
    }
    struct signalfd_siginfo info;
    bool term = false;
    while (read(s->signal_fd, &info, sizeof info) == sizeof info) {
        term = term || info.ssi_signo == SIGTERM;
    }
    children_reap(s);
    if (!s->stop && (term || exists(s, "stop"))) {
        s->stop = true;
        s->stop_at = clock_wall_us();
    }
    if (exists(s, "kill")) {
        supervise_signal(s, SIGKILL);
        return false;
    }
    return true;
}

/* Wait for this time, shorter when asked to stop. */
static bool pause_for(struct supervisor *s, int64_t span_us, bool stop_ends_it)
{
    usec_t until = clock_wall_us() + span_us;
    while (clock_wall_us() < until && !(stop_ends_it && s->stop)) {
        if (!supervise_pump(s, until)) {
            return false;
        }
    }
    return true;
}

static int hosts_running(const struct supervisor *s)
{
    int n = 0;
    for (int i = 0; i < s->hosts_n; i++) {
        n += s->hosts[i].pid > 0;
    }
    return n;
}

static const struct job_host *host_failed(const struct supervisor *s)
{
    for (int i = 0; i < s->hosts_n; i++) {
        if (s->hosts[i].exited && s->hosts[i].exit_code != 0) {
            return &s->hosts[i];
        }
    }
    return NULL;
}

/* Why the hosts should end now; END_NONE to let them run. */
static enum ending ending_now(const struct supervisor *s, usec_t deadline, usec_t inject_at)
{
    usec_t now = clock_wall_us();
    char reason[FEED_REASON_MAX + 1];
    if (s->stop) {
        return END_STOPPED;
    }
    if (feeds_failed(s, reason)) {
        return END_INPUT;
    }
    if (now >= deadline) {
        return END_MAX_RUNTIME;
    }
    if (now >= supervise_i64(s, "wait_until")) {
        return END_MAX_WAIT;
    }
    if (now >= inject_at) {
        return END_INJECTED;
    }
    return host_failed(s) != NULL ? END_EXIT : END_NONE;
}

/* True when the end is an injected reclaim of spot instances, not a failure. */
static bool spot_reclaimed(const struct supervisor *s)
{
    return json_is_true(json_object_get(s->spec, "interrupt"));
}

/* As at AWS, a checkpoint failure does not end a running job. */
static void checkpoints_save(struct supervisor *s)
{
    struct err err = ERR_INIT;
    if (!transfer_checkpoints_save(s, &err)) {
        (void)fprintf(stderr, "supervise: %s\n", err.message);
    }
}

/* Run the hosts to their end. *ret_failed: the host whose exit code counts; NULL when all
 * succeeded. */
static bool hosts_run(struct supervisor *s, enum ending *ret, const struct job_host **ret_failed)
{
    int64_t inject_us = supervise_i64(s, "inject_after_us");
    usec_t deadline = supervise_i64(s, "started") + supervise_i64(s, "max_runtime_us");
    usec_t inject_at = inject_us < 0 ? USEC_NEVER : clock_wall_us() + inject_us;
    usec_t wait_until = supervise_i64(s, "wait_until");
    usec_t kill_at = USEC_NEVER;
    enum ending ending = END_NONE;
    bool sync = transfer_has_checkpoints(s);
    const struct job_host *failed = NULL;
    for (;;) {
        if (ending == END_NONE) {
            ending = ending_now(s, deadline, inject_at);
            failed = host_failed(s);
            if (ending != END_NONE) {
                bool now = ending == END_INJECTED;
                supervise_signal(s, now ? SIGKILL : SIGTERM);
                kill_at = clock_wall_us() + supervise_i64(s, "stop_grace_us");
            }
        }
        if (hosts_running(s) == 0) {
            break;
        }
        if (clock_wall_us() >= kill_at) {
            supervise_signal(s, SIGKILL);
            kill_at = USEC_NEVER;
        }
        usec_t until = ending == END_NONE ? MIN(MIN(deadline, inject_at), wait_until) : kill_at;
        usec_t sync_at = sync ? clock_wall_us() + SYNC_EVERY_US : USEC_NEVER;
        if (!supervise_pump(s, MIN(until, sync_at))) {
            return false;
        }
        if (sync) {
            checkpoints_save(s);
        }
    }
    *ret = ending == END_NONE ? END_EXIT : ending;
    *ret_failed = failed != NULL ? failed : host_failed(s);
    if (inject_us >= 0 && *ret == END_EXIT && !spot_reclaimed(s)) {
        *ret = END_INJECTED; /* it ended before the fault */
    }
    return true;
}

static void end_failed(const struct supervisor *s, const struct job_host *h)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    AUTO_BUF struct buf text = BUF_INIT(FAILURE_BYTES_MAX * 4);
    if (files_path(path, sizeof path, &err, "%s/output/failure", h->ml)) {
        files_read_head(path, FAILURE_BYTES_MAX, &text);
    }
    /* A character cut in half at the limit is dropped; other bytes that are not text become '?'. */
    struct str cut = buf_str(&text);
    for (int i = 0; i < 4 && text.n == FAILURE_BYTES_MAX && !str_is_utf8(cut); i++) {
        cut.n--;
    }
    if (str_is_utf8(cut) && cut.n < text.n) {
        text.n = cut.n;
        text.p[text.n] = '\0';
    }
    if (!str_is_utf8(buf_str(&text))) {
        for (size_t i = 0; i < text.n; i++) {
            bool plain = (text.p[i] >= 32 && text.p[i] < 127) || text.p[i] == '\n';
            text.p[i] = plain ? text.p[i] : '?';
        }
    }
    supervise_mark(s, "end", "exit", h->exit_code, buf_cstr(&text));
}

/* Everything from download to upload. False: asked to end without a record. */
static bool job_run(struct supervisor *s)
{
    struct err err = ERR_INIT;
    enum ending ending = END_STOPPED;
    const struct job_host *failed = NULL;
    if (!container_prepare(s, &err) || !transfer_channels(s, &err) ||
        !transfer_checkpoints_load(s, &err)) {
        supervise_mark(s, "end", "error", 0, err.message);
        return true;
    }
    if (!pause_for(s, supervise_i64(s, "download_us"), true)) {
        return false;
    }
    if (!s->stop) {
        if (!feeds_start(s, &err)) {
            supervise_mark(s, "end", err.code == ERR_CONFLICT ? "error" : "lost", 0, err.message);
            return true;
        }
        supervise_mark(s, "train", "", 0, "");
        for (int i = 0; i < s->hosts_n; i++) {
            if (!container_spawn(s, &s->hosts[i], &err)) {
                supervise_signal(s, SIGKILL);
                supervise_mark(s, "end", "lost", 0, err.message);
                return true;
            }
        }
        if (!hosts_run(s, &ending, &failed)) {
            return false;
        }
        feeds_end(s);
        checkpoints_save(s);
    }
    if (ending == END_INPUT) {
        char reason[FEED_REASON_MAX + 1];
        (void)feeds_failed(s, reason);
        supervise_mark(s, "end", "error", 0, reason);
        return true;
    }
    if (ending == END_INJECTED) {
        supervise_mark(s, "end", spot_reclaimed(s) ? "interrupted" : "error", 0,
                       json_string_value(json_object_get(s->spec, "inject_reason")));
        return true;
    }
    if (ending == END_EXIT && failed != NULL) {
        end_failed(s, failed);
        return true;
    }
    supervise_mark(s, "upload", "", 0, "");
    bool uploaded = transfer_artifacts(s, &err);
    if (!pause_for(s, supervise_i64(s, "upload_us"), false)) {
        return false;
    }
    if (s->stop &&
        !pause_for(s, s->stop_at + supervise_i64(s, "stop_us") - clock_wall_us(), false)) {
        return false;
    }
    if (!uploaded && ending == END_EXIT) {
        supervise_mark(s, "end", "error", 0, err.message);
    } else {
        static const char *const outcomes[ENDING_COUNT] = {
            [END_EXIT] = "exit",
            [END_STOPPED] = "stopped",
            [END_MAX_RUNTIME] = "max_runtime",
            [END_MAX_WAIT] = "max_wait",
        };
        supervise_mark(s, "end", outcomes[ending], 0, "");
    }
    return true;
}

/* Remove the copies of the input; logs and outputs stay for inspection. */
static void inputs_remove(const struct supervisor *s)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    for (int i = 0; i < s->hosts_n; i++) {
        if (files_path(path, sizeof path, &err, "%s/input/data", s->hosts[i].ml)) {
            files_remove_tree(path);
        }
    }
}

/* Take the lock that marks a live supervisor; held until the process ends. */
static bool lock_take(const struct supervisor *s)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (!files_path(path, sizeof path, &err, "%s/lock", s->folder)) {
        return false;
    }
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    return fd >= 0 && fcntl(fd, F_SETLK, &fl) == 0;
}

static bool spec_read(struct supervisor *s, struct err *err)
{
    char path[PATH_MAX];
    AUTO_BUF struct buf text = BUF_INIT(SPEC_BYTES_MAX);
    if (!files_path(path, sizeof path, err, "%s/spec.json", s->folder) ||
        !files_read(path, &text, err) ||
        !json_parse(buf_str(&text), SPEC_BYTES_MAX, &s->spec, err)) {
        return false;
    }
    s->name = json_string_value(json_object_get(s->spec, "name"));
    s->root = json_string_value(json_object_get(s->spec, "root"));
    s->region = json_string_value(json_object_get(s->spec, "region"));
    s->request = json_object_get(s->spec, "request");
    s->seq = supervise_i64(s, "seq");
    int64_t hosts = supervise_i64(s, "hosts");
    if (s->name == NULL || s->root == NULL || s->region == NULL || s->request == NULL ||
        hosts < 1 || hosts > HOSTS_MAX) {
        return err_set(err, ERR_MALFORMED, "'%s' is incomplete", path);
    }
    s->hosts_n = (int)hosts;
    s->hosts = xcalloc((size_t)hosts, sizeof *s->hosts);
    for (int i = 0; i < s->hosts_n; i++) {
        s->hosts[i].pipe_fd = -1;
        s->hosts[i].log_fd = -1;
    }
    return true;
}

static bool watches_open(struct supervisor *s)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    s->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    /* A user has 128 of them on many systems; the jobs beyond look by the clock. */
    bool none_left = s->inotify_fd < 0 && errno == EMFILE;
    return s->signal_fd >= 0 &&
           (none_left || inotify_add_watch(s->inotify_fd, s->folder, IN_MOVED_TO) >= 0);
}

bool supervise_open(struct supervisor *s, const char *folder, bool *ret_taken, struct err *err)
{
    *ret_taken = false;
    if (!files_path(s->folder, sizeof s->folder, err, "%s", folder)) {
        return false;
    }
    if (!lock_take(s)) {
        *ret_taken = true;
        return false;
    }
    return spec_read(s, err) &&
           (watches_open(s) || err_set(err, ERR_IO, "cannot watch '%s'", folder));
}

void supervise_close(struct supervisor *s)
{
    json_decref(s->spec);
    json_decref(s->synced);
    for (size_t i = 0; i < s->plans_n; i++) {
        feed_plan_done(&s->plans[i]);
    }
    free(s->plans);
    free(s->feeders);
    free(s->hosts);
}

int supervise_main(const char *folder)
{
    struct supervisor s = {0};
    struct err err = ERR_INIT;
    char begun[PATH_MAX];
    char end[PATH_MAX];
    bool taken;
    if (!supervise_open(&s, folder, &taken, &err) ||
        !files_path(begun, sizeof begun, &err, "%s/begun", s.folder) ||
        !files_path(end, sizeof end, &err, "%s/state/marks/%s.end", s.root, s.name)) {
        if (taken) {
            return 0; /* another supervisor has the job */
        }
        (void)fprintf(stderr, "supervise: %s\n", err.message);
        return 1;
    }
    if (access(begun, F_OK) == 0) {
        /* An earlier supervisor died during the run. Its hosts died with it, but their children may
         * still run. */
        container_strays_kill(s.folder);
        if (access(end, F_OK) != 0) {
            supervise_mark(&s, "end", "lost", 0, "");
        }
    } else if (files_write(begun, STR("begun\n"), &err) && supervise_pump(&s, 0)) {
        bool recorded = job_run(&s);
        feeds_end(&s);
        if (recorded) {
            inputs_remove(&s);
        }
    }
    supervise_close(&s);
    return 0;
}
