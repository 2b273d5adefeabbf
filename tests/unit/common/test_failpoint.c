/* Aim: a failpoint kills, freezes or fails the process at its name, after the passes let through,
 * and nowhere else. Method: the module compiled in with FAILPOINTS; each case in a child of its
 * own. */
#ifndef FAILPOINTS
#define FAILPOINTS
#endif
#include "common/cleanup.h"
#include "tests/unit/unit.h"
/* Static state starts fresh in each child: the parent never passes a failpoint. */
#include "common/failpoint.c" /* NOLINT(bugprone-suspicious-include): for its static functions */
#include <sys/wait.h>

/* Start a child that passes the names in turn and exits with the bits of FP's answers. */
static pid_t start(const char *setting, const char *list, const char *const *names)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) {
        return pid;
    }
    if (setting == NULL) {
        (void)unsetenv("DROVER_FAILPOINT");
    } else {
        (void)setenv("DROVER_FAILPOINT", setting, 1);
    }
    if (list == NULL) {
        (void)unsetenv("DROVER_FAILPOINT_LIST");
    } else {
        (void)setenv("DROVER_FAILPOINT_LIST", list, 1);
    }
    (void)close(STDERR_FILENO);
    int bits = 0;
    for (size_t i = 0; names[i] != NULL; i++) {
        bits |= FP(names[i]) ? 1 << i : 0;
    }
    _exit(bits);
}

static int status_of(pid_t pid, int options)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, options), pid);
    return status;
}

static void check_bits(const char *setting, const char *const *names, int want)
{
    int status = status_of(start(setting, NULL, names), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), want);
}

static const char *const abab[] = {"a", "b", "a", "b", NULL};

static void test_failpoint__unset_does_nothing(void **state)
{
    (void)state;
    check_bits(NULL, abab, 0);
    check_bits("", abab, 0);
    check_bits("c:kill", abab, 0);
    check_bits("aa:kill", abab, 0);
}

static void test_failpoint__error_is_returned_at_its_name(void **state)
{
    (void)state;
    check_bits("a:error", abab, 1);
    check_bits("a:error:0:9", abab, 5);
    check_bits("b:error:0:2", abab, 10);
    check_bits("a:error:0:9, b:error:0:9", abab, 15);
}

static void test_failpoint__skips_are_counted_by_entry(void **state)
{
    (void)state;
    check_bits("a:error:0", abab, 1);
    check_bits("a:error:1", abab, 4);
    check_bits("a:error:2", abab, 0);
    check_bits("a:error:1,b:error:1", abab, 12);
}

static void test_failpoint__kill_ends_the_process_at_once(void **state)
{
    (void)state;
    int status = status_of(start("b:kill", NULL, abab), 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void test_failpoint__pause_stops_until_continued(void **state)
{
    (void)state;
    pid_t pid = start("a:pause:1,b:error:1", NULL, abab);
    int status = status_of(pid, WUNTRACED);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(kill(pid, SIGCONT), 0);
    status = status_of(pid, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 8); /* went on and met the other entry */
}

static void test_failpoint__misspelt_entries_end_the_process(void **state)
{
    (void)state;
    static const char *const bad[] = {"a",         "a:",        ":kill",      "a:explode",
                                      "a:kill:x",  "a:kill:-1", "a:kill:1:0", "a:kill:1:2:3",
                                      "b:error,a", "a:KILL"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        check_bits(bad[i], abab, 2);
    }
}

static void test_failpoint__names_passed_are_listed_once(void **state)
{
    (void)state;
    char path[] = "/tmp/test_failpoint.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    int status = status_of(start(NULL, path, abab), 0);
    assert_int_equal(status, 0);
    AUTO_BUF struct buf b = BUF_INIT(4096);
    unit_read_file(path, &b);
    assert_string_equal(buf_cstr(&b), "a\nb\n");
    (void)unlink(path);
}

static void test_failpoint__too_many_entries_end_the_process(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(4096);
    for (int i = 0; i < FAILPOINTS_MAX; i++) {
        buf_addf(&b, "%sx%d:error", i == 0 ? "" : ",", i);
    }
    check_bits(buf_cstr(&b), abab, 0);
    buf_add_cstr(&b, ",a:error");
    check_bits(buf_cstr(&b), abab, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failpoint__unset_does_nothing),
        cmocka_unit_test(test_failpoint__error_is_returned_at_its_name),
        cmocka_unit_test(test_failpoint__skips_are_counted_by_entry),
        cmocka_unit_test(test_failpoint__kill_ends_the_process_at_once),
        cmocka_unit_test(test_failpoint__pause_stops_until_continued),
        cmocka_unit_test(test_failpoint__misspelt_entries_end_the_process),
        cmocka_unit_test(test_failpoint__names_passed_are_listed_once),
        cmocka_unit_test(test_failpoint__too_many_entries_end_the_process),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
