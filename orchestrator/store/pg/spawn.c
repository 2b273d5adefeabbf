/* posix_spawn with a memory file for the output (a pipe would stay open in servers the program
 * leaves behind) and a pidfd to wait with a time-out. */
#include "spawn.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/units.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h> /* NOLINT(readability-duplicate-include): the system's header, not ours */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

static void read_tail(int fd, struct buf *out)
{
    off_t end = lseek(fd, 0, SEEK_END);
    off_t from = end > SPAWN_OUTPUT_MAX ? end - SPAWN_OUTPUT_MAX : 0;
    char text[SPAWN_OUTPUT_MAX];
    ssize_t n = pread(fd, text, sizeof text, from);
    if (n > 0) {
        buf_add(out, text, (size_t)n);
    }
}

static bool start(const char *const *argv, int out_fd, pid_t *ret_pid, struct err *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    (void)sigemptyset(&none);
    int rc = posix_spawn_file_actions_init(&actions);
    ASSERT(rc == 0 && posix_spawnattr_init(&attr) == 0);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
    (void)posix_spawn_file_actions_adddup2(&actions, out_fd, 2);
    (void)posix_spawnattr_setsigmask(&attr, &none); /* our mask blocks the signals the loop reads */
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    char *args[32];
    size_t n = 0;
    for (; argv[n] != NULL; n++) {
        ASSERT(n + 1 < ARRAY_LEN(args));
        args[n] = xstrdup(argv[n]);
    }
    ASSERT(n > 0);
    args[n] = NULL;
    rc = posix_spawnp(ret_pid, args[0], &actions, &attr, args, environ);
    for (size_t i = 0; i < n; i++) {
        free(args[i]);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attr);
    return rc == 0 ? true : err_set_os(err, ERR_IO, rc, "cannot run '%s'", argv[0]);
}

/* Wait for its end; kill it after the deadline. */
static bool finish(pid_t pid, int64_t timeout_us, int *ret_status)
{
    AUTO_FD int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    int64_t deadline = clock_mono_us() + timeout_us;
    bool in_time = false;
    while (fd >= 0 && !in_time) {
        int64_t left = deadline - clock_mono_us();
        if (left <= 0) {
            break;
        }
        struct pollfd p = {.fd = fd, .events = POLLIN};
        in_time = poll(&p, 1, (int)(left / USEC_PER_MSEC) + 1) > 0;
    }
    if (fd >= 0 && !in_time) {
        (void)kill(pid, SIGKILL);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return fd < 0 || in_time;
}

bool spawn_run(const char *const *argv, int64_t timeout_us, int *ret_status, struct buf *out,
               struct err *err)
{
    AUTO_FD int fd = memfd_create("output", MFD_CLOEXEC);
    if (fd < 0) {
        return err_set_os(err, ERR_IO, errno, "cannot make a memory file");
    }
    pid_t pid;
    if (!start(argv, fd, &pid, err)) {
        return false;
    }
    int status = 0;
    bool in_time = finish(pid, timeout_us, &status);
    read_tail(fd, out);
    if (!in_time) {
        return err_set(err, ERR_TIMEOUT, "'%s' did not end in time", argv[0]);
    }
    *ret_status = status;
    return true;
}
