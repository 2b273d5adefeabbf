/* Aim: INI files are read as Python's configparser reads them, which the AWS CLI uses, and a wrong
 * file is refused with its line and never with a value. Method: texts and what they mean; the
 * comparison with configparser itself is tests/integration/common/creds_botocore.py. */
#include "common/ini.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void expect(const char *text, const char *section, const char *key, const char *want)
{
    struct ini i;
    struct err err = ERR_INIT;
    if (!ini_parse(str_of(text), &i, &err)) {
        fail_msg("%s", err.message);
    }
    const char *got = ini_value(&i, section, key);
    if (want == NULL) {
        assert_null(got);
    } else {
        assert_non_null(got);
        assert_string_equal(got, want);
    }
    ini_done(&i);
}

static void refuse(const char *text, const char *fragment)
{
    struct ini i;
    struct err err = ERR_INIT;
    assert_false(ini_parse(str_of(text), &i, &err));
    assert_int_equal(err.code, ERR_MALFORMED);
    assert_non_null(strstr(err.message, fragment));
    assert_null(strstr(err.message, "TOPSECRET"));
    assert_int_equal(i.n, 0);
}

static void test_ini__keys_values_and_comments(void **state)
{
    (void)state;
    expect("[a]\nk=v", "a", "k", "v");
    expect("[a]\r\n  K :  v w  \r\n", "a", "k", "v w");
    expect("# c\n; c\n[a]\n  # c\nk = v = w # not a comment\n", "a", "k", "v = w # not a comment");
    expect("[a]\nk =\n[b]\nk=2", "a", "k", "");
    expect("[a]\nk=1\n[b]\nj=2", "b", "k", NULL);
    expect("[ a ]\nk=1", "a", "k", NULL);
    expect("[ a ]\nk=1", " a ", "k", "1");
    expect("[a]b]c\nk=1", "a]b", "k", "1");
    expect("[DEFAULT]\nd=0\n[a]\nk=1\n[DEFAULT]\ne=3\n", "a", "e", "3");
    expect("[DEFAULT]\nd=0\n[a]\nd=1\n", "a", "d", "1");
    expect("[DEFAULT]\nd=0\n", "a", "d", NULL);
}

static void test_ini__deeper_lines_continue_a_value(void **state)
{
    (void)state;
    expect("[a]\nk = 1\n 2\n\t3\n", "a", "k", "1\n2\n3");
    expect("[a]\nk = 1\n\n  2\n\n\nj=3\n", "a", "k", "1\n\n2");
    expect("[a]\nk = 1\n\n  2\n\n\nj=3\n", "a", "j", "3");
    expect("[a]\nk = 1\n # c\n 2\n", "a", "k", "1\n2");
    expect("[a]\n  k = 1\n  j = 2\n", "a", "j", "2");
    expect("[a]\ns3 =\n  x = 1\n  y=2\n", "a", "s3", "\nx = 1\ny=2");
    expect("[a]\nk=1\n [b]\n", "a", "k", "1\n[b]");
    assert_true(str_eq_cstr(ini_nested("\nx = 1\ny=2", "y"), "2"));
    assert_true(str_eq_cstr(ini_nested("\nx = 1\ny=2", "x"), "1"));
    assert_int_equal(ini_nested("\nx = 1", "z").n, 0);
    assert_int_equal(ini_nested(NULL, "z").n, 0);
}

static void test_ini__wrong_files_are_refused_with_their_line(void **state)
{
    (void)state;
    refuse("k=TOPSECRET", "line 1: no '[section]'");
    refuse("[a]\nTOPSECRET\n", "line 2: write 'key = value'");
    refuse("[a]\n= TOPSECRET\n", "line 2: write 'key = value'");
    refuse("[a]\nk=TOPSECRET\n\nK=TOPSECRET\n", "line 4: 'k' is there twice in section 'a'");
    refuse("[a]\n[b]\n[a]\n", "line 3: section 'a' is there twice");
    refuse("[]\n", "line 1: no '[section]'");
    refuse("[\n", "line 1");
    refuse("[a]\nk=\xff\n", "UTF-8");
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ini__keys_values_and_comments),
        cmocka_unit_test(test_ini__deeper_lines_continue_a_value),
        cmocka_unit_test(test_ini__wrong_files_are_refused_with_their_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
