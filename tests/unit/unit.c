/* What unit tests share. */
#include "unit.h"
#include "common/cleanup.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

void unit_assert_view(struct str got, const char *want, const char *file, int line)
{
    char *text = str_dup(got);
    _assert_string_equal(text, want, file, line);
    free(text);
}

void unit_read_file(const char *path, struct buf *out)
{
    AUTO_FILE FILE *f = fopen(path, "rb");
    if (f == NULL) {
        fail_msg("cannot open %s: tests run from the top of the source tree", path);
        return;
    }
    assert_true(buf_add_file(out, f));
}

int unit_child_status(void (*fn)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit no_core = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(null, STDERR_FILENO);
        (void)signal(SIGABRT, SIG_DFL);
        fn();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

void unit_assert_aborts(void (*fn)(void), const char *name, const char *file, int line)
{
    int status = unit_child_status(fn);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) {
        print_error("%s:%d: %s did not abort: status %#x\n", file, line, name, (unsigned)status);
        _fail(file, line);
    }
}
