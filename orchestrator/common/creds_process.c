/* Running a credential_process: see creds_process.h. */
#include "creds_process.h"
#include "common/cleanup.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESS_OUTPUT_MAX ((size_t)64 * 1024)
#define PROCESS_TIME_US    (60 * USEC_PER_SEC)
#define PROCESS_WORDS_MAX  64

struct creds_process {
    struct loop *l;
    pid_t pid;
    int out_fd, pid_fd; /* -1: closed */
    struct loop_fd *out_watch, *pid_watch;
    struct loop_timer *limit;
    struct buf out;
    bool timed_out;
    creds_process_cb cb;
    void *ctx;
};

/* Copies one word to *to and moves *s behind it. False: a quote is not closed. */
static bool take_word(const char **s, char **to)
{
    char quote = '\0';
    const char *p = *s;
    char *out = *to;
    for (; *p != '\0' && (quote != '\0' || !isspace((unsigned char)*p)); p++) {
        if (quote == '\0' && (*p == '"' || *p == '\'')) {
            quote = *p;
        } else if (quote != '\0' && *p == quote) {
            quote = '\0';
        } else if (*p == '\\' &&
                   (quote == '\0' || (quote == '"' && (p[1] == '"' || p[1] == '\\')))) {
            if (p[1] == '\0') {
                return false;
            }
            *out++ = *++p;
        } else {
            *out++ = *p;
        }
    }
    *out++ = '\0';
    *s = p;
    *to = out;
    return quote == '\0';
}

bool creds_process_split(const char *command, char ***ret, size_t *ret_n)
{
    size_t bytes =
        (PROCESS_WORDS_MAX + 1) * sizeof(char *) + strlen(command) + PROCESS_WORDS_MAX + 1;
    char **words = xcalloc(1, bytes);
    char *to = (char *)(words + PROCESS_WORDS_MAX + 1);
    size_t n = 0;
    for (;;) {
        while (isspace((unsigned char)*command)) {
            command++;
        }
        if (*command == '\0') {
            break;
        }
        if (n < PROCESS_WORDS_MAX) {
            words[n] = to;
        }
        if (n == PROCESS_WORDS_MAX || !take_word(&command, &to)) {
            n = 0;
            break;
        }
        n++;
    }
    if (n == 0) {
        free(words);
        return false;
    }
    *ret = words;
    *ret_n = n;
    return true;
}

static void close_output(struct creds_process *p)
{
    loop_fd_del(p->l, TAKE(p->out_watch));
    if (p->out_fd >= 0) {
        (void)close(p->out_fd);
    }
    p->out_fd = -1;
}

static void process_free(struct creds_process *p)
{
    close_output(p);
    loop_fd_del(p->l, TAKE(p->pid_watch));
    if (p->pid_fd >= 0) {
        (void)close(p->pid_fd);
    }
    loop_timer_free(p->limit);
    if (p->out.p != NULL) {
        explicit_bzero(p->out.p, p->out.n);
    }
    buf_done(&p->out);
    free(p);
}

static void read_output(struct creds_process *p)
{
    char chunk[4096];
    ssize_t n;
    while ((n = read(p->out_fd, chunk, sizeof chunk)) > 0) {
        buf_add(&p->out, chunk, (size_t)n);
    }
    explicit_bzero(chunk, sizeof chunk);
    if (n == 0) {
        close_output(p);
    }
}

static void on_output(void *ctx, int fd UNUSED, uint32_t events UNUSED)
{
    read_output(ctx);
}

/* The process has ended. What a child of its own may still write is not waited for. */
static void on_end(void *ctx, int fd UNUSED, uint32_t events UNUSED)
{
    struct creds_process *p = ctx;
    int status = 0;
    struct err err = ERR_INIT;
    (void)waitpid(p->pid, &status, 0);
    p->pid = -1;
    if (p->out_fd >= 0) {
        read_output(p);
    }
    bool ok = !p->timed_out && !p->out.overflow && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (p->timed_out) {
        (void)err_set(&err, ERR_UNAUTHENTICATED, "credential_process did not end within %d s",
                      (int)(PROCESS_TIME_US / USEC_PER_SEC));
    } else if (p->out.overflow) {
        (void)err_set(&err, ERR_UNAUTHENTICATED, "credential_process wrote more than %zu bytes",
                      p->out.max);
    } else if (!ok) {
        (void)err_set(&err, ERR_UNAUTHENTICATED, "credential_process ended with %s %d",
                      WIFEXITED(status) ? "status" : "signal",
                      WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    }
    p->cb(p->ctx, buf_str(&p->out), ok ? NULL : &err);
    process_free(p);
}

static void on_limit(void *ctx)
{
    struct creds_process *p = ctx;
    p->timed_out = true;
    (void)kill(p->pid, SIGKILL);
}

static int spawn(char *const *argv, int out_fd, pid_t *ret)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int rc = posix_spawn_file_actions_init(&files);
    ASSERT(rc == 0 && posix_spawnattr_init(&attr) == 0);
    (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&files, out_fd, 1);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &all);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    rc = posix_spawnp(ret, argv[0], &files, &attr, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attr);
    return rc;
}

bool creds_process_start(struct loop *l, const char *command, creds_process_cb cb, void *ctx,
                         struct creds_process **ret, struct err *err)
{
    AUTO_FREE char **argv = NULL;
    size_t n;
    int fds[2];
    pid_t pid;
    if (!creds_process_split(command, &argv, &n)) {
        return err_set(err, ERR_UNAUTHENTICATED, "credential_process is no command");
    }
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return err_set_os(err, ERR_UNAUTHENTICATED, errno, "cannot make a pipe");
    }
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
    int rc = spawn(argv, fds[1], &pid);
    (void)close(fds[1]);
    int pid_fd = rc == 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (pid_fd < 0) {
        int os_errno = rc != 0 ? rc : errno;
        (void)close(fds[0]);
        return err_set_os(err, ERR_UNAUTHENTICATED, os_errno,
                          "cannot start the credential_process '%.100s'", argv[0]);
    }
    struct creds_process *p = xcalloc(1, sizeof *p);
    *p = (struct creds_process){.l = l,
                                .pid = pid,
                                .out_fd = fds[0],
                                .pid_fd = pid_fd,
                                .out = BUF_INIT(PROCESS_OUTPUT_MAX),
                                .cb = cb,
                                .ctx = ctx};
    p->out_watch = loop_fd_add(l, fds[0], EPOLLIN, on_output, p);
    p->pid_watch = loop_fd_add(l, pid_fd, EPOLLIN, on_end, p);
    p->limit = loop_timer_new(l, on_limit, p);
    loop_timer_set(p->limit, PROCESS_TIME_US);
    *ret = p;
    return true;
}

void creds_process_cancel(struct creds_process *p)
{
    (void)kill(p->pid, SIGKILL);
    (void)waitpid(p->pid, NULL, 0);
    process_free(p);
}
