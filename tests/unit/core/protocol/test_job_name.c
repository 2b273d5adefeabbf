/* Aim: a job's name is one SageMaker takes, tells campaign, stage, task and attempt, and keeps the
 * parts that make it unique whatever the words around them. Method: examples, and all the odd words
 * and largest numbers against the rule of SageMaker, checked by hand-written code. */
#include "core/protocol/protocol.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const uint8_t sha[32] = {0xde, 0xad, 0xbe, 0xef, 0x12};

static const char *name(const char *prefix, int64_t campaign, const char *stage, int64_t seq, int n)
{
    static struct job_name out;
    memset(&out, 'x', sizeof out);
    protocol_job_name(prefix, campaign, stage, seq, n, sha, &out);
    size_t len = strnlen(out.s, sizeof out.s);
    assert_in_range(len, 1, 63);
    for (size_t i = 0; i < len; i++) {
        char c = out.s[i];
        bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        assert_true(word || (c == '-' && i > 0 && i + 1 < len));
    }
    return out.s;
}

static void test_protocol_name__reads_well(void **state)
{
    (void)state;
    assert_string_equal(name("drover", 7, "download", 42, 1), "drover-7-download-42-a1-deadbeef");
    assert_string_equal(name("drover", 0, "x", 0, 12), "drover-0-x-0-a12-deadbeef");
    assert_string_equal(name("Team_A", 7, "train 1%", 1, 3), "Team-A-7-train-1-1-a3-deadbeef");
}

static void test_protocol_name__odd_words_become_hyphens_inside_or_nothing(void **state)
{
    (void)state;
    assert_string_equal(name("", 7, "", 1, 1), "d-7-1-a1-deadbeef");
    assert_string_equal(name("--", 7, "__", 1, 1), "d-7-1-a1-deadbeef");
    assert_string_equal(name("-a-", 7, "\xc3\xa4z\n", 1, 1), "a-7-z-1-a1-deadbeef");
    assert_string_equal(name("a/b", 7, "'; drop", 1, 1), "a-b-7-drop-1-a1-deadbeef");
}

static void test_protocol_name__the_stage_is_cut_before_the_prefix_and_the_tail_never(void **state)
{
    (void)state;
    const char *stage = "a-stage-with-a-name-so-long-that-no-job-could-ever-carry-all-of-it";
    const char *s = name("drover", 123456, stage, 99999, 2);
    assert_int_equal(strlen(s), 63);
    assert_non_null(strstr(s, "drover-123456-a-stage-with"));
    assert_string_equal(s + 63 - strlen("-99999-a2-deadbeef"), "-99999-a2-deadbeef");
    s = name("a-prefix-far-longer-than-anybody-needs-for-telling-installs-apart", 1, "s", 1, 1);
    assert_int_equal(strncmp(s, "a-prefix-far-longer-than-1-s-", 29), 0);
    /* A cut that would end in a hyphen loses it. */
    for (size_t i = 1; i < 60; i++) {
        char word[64] = {0};
        memset(word, 'k', i);
        word[i - 1] = '-';
        (void)name("p", 1, word, 1, 1);
        (void)name(word, 1, word, 1, 1);
    }
}

static void test_protocol_name__the_largest_numbers_fit(void **state)
{
    (void)state;
    const char *s = name("drover", INT64_MAX, "download", INT64_MAX, INT32_MAX);
    assert_non_null(strstr(s, "-9223372036854775807-9223372036854775807-a2147483647-deadbeef"));
    s = name("drover", INT64_MAX, "download", 12345, 1);
    assert_non_null(strstr(s, "drover-9223372036854775807-download-12345-a1-deadbeef"));
}

static void test_protocol_name__other_attempts_have_other_names(void **state)
{
    (void)state;
    char first[JOB_NAME_MAX + 1];
    (void)snprintf(first, sizeof first, "%s", name("drover", 1, "s", 11, 1));
    assert_string_not_equal(first, name("drover", 1, "s", 1, 11));
    assert_string_not_equal(first, name("drover", 11, "s", 1, 1));
    assert_string_not_equal(first, name("drover", 1, "s", 11, 2));
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_protocol_name__reads_well),
        cmocka_unit_test(test_protocol_name__odd_words_become_hyphens_inside_or_nothing),
        cmocka_unit_test(test_protocol_name__the_stage_is_cut_before_the_prefix_and_the_tail_never),
        cmocka_unit_test(test_protocol_name__the_largest_numbers_fit),
        cmocka_unit_test(test_protocol_name__other_attempts_have_other_names),
    };
    return cmocka_run_group_tests_name("protocol_name", tests, NULL, NULL);
}
