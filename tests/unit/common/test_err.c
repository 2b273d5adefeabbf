/* Aim: errors carry what happened without allocating, whatever their length; faults pile up
 * bounded; assertions and allocation end the process as promised. Method: texts at and past the
 * limits; children that must die. */
#include "common/err.h"
#include "common/position.h"
#include "tests/unit/unit.h"
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

static void test_err__set_fills_all_and_returns_false(void **state)
{
    (void)state;
    struct err err = {.http_status = 500, .aws_code = "Old", .request_id = "old"};
    assert_false(err_set(&err, ERR_THROTTLED, "too %s", "fast"));
    assert_int_equal(err.code, ERR_THROTTLED);
    assert_string_equal(err.message, "too fast");
    assert_int_equal(err.http_status, 0);
    assert_string_equal(err.aws_code, "");
    assert_string_equal(err.request_id, "");
    assert_true(str_starts(str_of(err.where), "test_err.c:"));
    assert_false(err_set(NULL, ERR_IO, "nowhere to put it"));
    assert_false(err_set_os(NULL, ERR_IO, ENOENT, "nowhere"));
    assert_false(err_wrap(NULL, "x"));
    err_clear(NULL);
    err_clear(&err);
    assert_int_equal(err.code, ERR_NONE);
}

static void test_err__of_the_system_names_the_cause(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_false(err_set_os(&err, ERR_IO, ENOENT, "cannot open '%s'", "x"));
    assert_int_equal(err.os_errno, ENOENT);
    assert_string_equal(err.message, "cannot open 'x': No such file or directory");
}

static void test_err__wrap_puts_context_in_front(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    (void)err_set(&err, ERR_AWS, "inner");
    (void)snprintf(err.aws_code, sizeof err.aws_code, "Code");
    assert_false(err_wrap(&err, "campaign %d", 7));
    assert_string_equal(err.message, "campaign 7: inner");
    assert_int_equal(err.code, ERR_AWS);
    assert_string_equal(err.aws_code, "Code");
}

static void test_err__its_own_text_may_be_an_argument(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    (void)err_set(&err, ERR_AWS, "inner");
    (void)err_set(&err, ERR_IO, "outer %s", err.message);
    assert_string_equal(err.message, "outer inner");
    (void)err_wrap(&err, "%s", err.message);
    assert_string_equal(err.message, "outer inner: outer inner");
}

static void test_err__long_texts_are_cut_not_overrun(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    char text[2000];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    (void)err_set(&err, ERR_IO, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    (void)err_wrap(&err, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    (void)err_set_os(&err, ERR_IO, ENOENT, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    (void)err_set(&err, ERR_IO, "short");
    (void)err_wrap(&err, "%.760s", text);
    assert_int_equal(strlen(err.message), 767);
}

static void test_err__every_code_has_its_row(void **state)
{
    (void)state;
    for (enum err_code c = ERR_NONE; c < ERR_CODE_COUNT; c++) {
        assert_non_null(err_code_name(c));
        assert_true(err_code_http(c) >= 200 && err_code_http(c) < 600);
        assert_true(err_code_exit(c) >= 0 && err_code_exit(c) < 126);
        for (enum err_code d = ERR_NONE; d < c; d++) {
            assert_string_not_equal(err_code_name(c), err_code_name(d));
        }
    }
    assert_int_equal(err_code_retry(ERR_THROTTLED), RETRY_BACKOFF);
    assert_int_equal(err_code_retry(ERR_FORBIDDEN), RETRY_NEVER);
    assert_int_equal(err_code_http(ERR_NOT_FOUND), 404);
    assert_int_equal(err_code_exit(ERR_NONE), 0);
}

static void test_pos__faults_are_kept_to_the_maximum_and_counted_beyond(void **state)
{
    (void)state;
    struct faults f = {0};
    for (int i = 0; i < FAULTS_MAX + 3; i++) {
        faults_add(&f, (struct position){i + 1, 2}, "a.b", "type", "hint", "fault %d", i);
    }
    assert_int_equal(f.n, FAULTS_MAX);
    assert_int_equal(f.dropped, 3);
    assert_int_equal(f.at[FAULTS_MAX - 1].pos.line, FAULTS_MAX);
    assert_string_equal(f.at[0].message, "fault 0");
    assert_string_equal(f.at[0].hint, "hint");
    struct faults g = {0};
    char text[1000];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    faults_add(&g, (struct position){0}, text, text, text, "%s", text);
    faults_add(&g, (struct position){0}, NULL, NULL, NULL, "x");
    assert_int_equal(strlen(g.at[0].pointer), sizeof g.at[0].pointer - 1);
    assert_int_equal(strlen(g.at[0].message), sizeof g.at[0].message - 1);
    assert_string_equal(g.at[1].code, "");
}

static void fail_assertion(void)
{
    int two = 2;
    ASSERT(two == 3);
}

static void pass_assertion(void)
{
    int two = 2;
    ASSERT(two == 2);
}

static void want_too_much(void)
{
    void *p = xmalloc(SIZE_MAX / 2);
    free(p);
}

static void test_base__a_failed_assertion_aborts(void **state)
{
    (void)state;
    assert_aborts(fail_assertion);
    assert_int_equal(unit_child_status(pass_assertion), 0);
}

static void test_base__out_of_memory_ends_with_status_71(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    /* These allocators end the process themselves, in their own way. */
    assert_int_not_equal(unit_child_status(want_too_much), 0);
#else
    int status = unit_child_status(want_too_much);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 71);
#endif
}

static void test_base__allocation_of_nothing_is_something(void **state)
{
    (void)state;
    void *p = xmalloc(0);
    p = xrealloc(p, 0);
    free(p);
    free(xcalloc(0, 8));
    char *s = xasprintf("%s-%d", "a", 1);
    assert_string_equal(s, "a-1");
    char *t = xstrndup("abc", 2);
    assert_string_equal(t, "ab");
    char *u = TAKE(t);
    assert_null(t);
    assert_string_equal(u, "ab");
    free(u);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_err__set_fills_all_and_returns_false),
        cmocka_unit_test(test_err__of_the_system_names_the_cause),
        cmocka_unit_test(test_err__wrap_puts_context_in_front),
        cmocka_unit_test(test_err__its_own_text_may_be_an_argument),
        cmocka_unit_test(test_err__long_texts_are_cut_not_overrun),
        cmocka_unit_test(test_err__every_code_has_its_row),
        cmocka_unit_test(test_pos__faults_are_kept_to_the_maximum_and_counted_beyond),
        cmocka_unit_test(test_base__a_failed_assertion_aborts),
        cmocka_unit_test(test_base__out_of_memory_ends_with_status_71),
        cmocka_unit_test(test_base__allocation_of_nothing_is_something),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
