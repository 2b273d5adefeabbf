/* Aim: instants as text and back, in the three forms AWS uses.
 * Method: known pairs, a walk over centuries against the C library's timegm, and bad texts. */
#include "common/clock.h"
#include "common/rng.h"
#include "tests/unit/unit.h"
#include <time.h>

static void test_clock__known_instants(void **state)
{
    (void)state;
    static const struct {
        usec_t t;
        const char *rfc, *amz, *http;
    } cases[] = {
        {0, "1970-01-01T00:00:00Z", "19700101T000000Z", "Thu, 01 Jan 1970 00:00:00 GMT"},
        {INT64_C(1440938160) * 1000000, "2015-08-30T12:36:00Z", "20150830T123600Z",
         "Sun, 30 Aug 2015 12:36:00 GMT"},
        {INT64_C(951782399) * 1000000, "2000-02-28T23:59:59Z", "20000228T235959Z",
         "Mon, 28 Feb 2000 23:59:59 GMT"},
        {INT64_C(951782400) * 1000000, "2000-02-29T00:00:00Z", "20000229T000000Z",
         "Tue, 29 Feb 2000 00:00:00 GMT"},
        {INT64_C(4107542400) * 1000000, "2100-03-01T00:00:00Z", "21000301T000000Z",
         "Mon, 01 Mar 2100 00:00:00 GMT"},
        {-1000000, "1969-12-31T23:59:59Z", "19691231T235959Z", "Wed, 31 Dec 1969 23:59:59 GMT"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[32];
        char amz[17];
        usec_t back;
        clock_format_rfc3339(cases[i].t, false, text);
        assert_string_equal(text, cases[i].rfc);
        assert_true(clock_parse_rfc3339(text, &back, NULL));
        assert_int_equal(back, cases[i].t);
        clock_format_amz(cases[i].t, amz);
        assert_string_equal(amz, cases[i].amz);
        assert_true(clock_parse_amz(amz, &back, NULL));
        assert_int_equal(back, cases[i].t);
        clock_format_http(cases[i].t, text);
        assert_string_equal(text, cases[i].http);
        assert_true(clock_parse_http(text, &back, NULL));
        assert_int_equal(back, cases[i].t);
    }
}

static void test_clock__agrees_with_the_c_library_over_centuries(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 7);
    for (int i = 0; i < 20000; i++) {
        int64_t s = (int64_t)rng_below(&rng, UINT64_C(250000000000)) - INT64_C(2000000000);
        time_t t = (time_t)s;
        struct tm tm;
        char want[64];
        char got[32];
        char http[32];
        assert_non_null(gmtime_r(&t, &tm));
        (void)strftime(want, sizeof want, "%Y-%m-%dT%H:%M:%SZ", &tm);
        clock_format_rfc3339(s * USEC_PER_SEC, false, got);
        assert_string_equal(got, want);
        (void)strftime(want, sizeof want, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        clock_format_http(s * USEC_PER_SEC, http);
        assert_string_equal(http, want);
        usec_t back;
        assert_true(clock_parse_rfc3339(got, &back, NULL));
        assert_int_equal(back, s * USEC_PER_SEC);
    }
}

static void test_clock__fractions_and_zones(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        usec_t t;
    } cases[] = {
        {"1970-01-01T00:00:01.5Z", 1500000},        {"1970-01-01T00:00:00.000001Z", 1},
        {"1970-01-01T00:00:00.123456789Z", 123456}, {"1970-01-01t00:00:00z", 0},
        {"1970-01-01T02:00:00+02:00", 0},           {"1969-12-31T16:00:00-08:00", 0},
        {"1970-01-01T05:45:00+05:45", 0},           {"1970-01-01T00:00:00-00:00", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        usec_t t = -7;
        assert_true(clock_parse_rfc3339(cases[i].text, &t, NULL));
        assert_int_equal(t, cases[i].t);
    }
    char text[32];
    clock_format_rfc3339(1700000000000123, true, text);
    assert_string_equal(text, "2023-11-14T22:13:20.000123Z");
    clock_format_rfc3339(-1, true, text);
    assert_string_equal(text, "1969-12-31T23:59:59.999999Z");
}

static void test_clock__years_are_held_to_four_digits(void **state)
{
    (void)state;
    char text[32];
    clock_format_rfc3339(INT64_MAX, true, text);
    assert_string_equal(text, "9999-12-31T23:59:59.999999Z");
    clock_format_rfc3339(INT64_MIN, true, text);
    assert_string_equal(text, "0000-01-01T00:00:00.000000Z");
    char amz[17];
    clock_format_amz(INT64_MAX, amz);
    assert_string_equal(amz, "99991231T235959Z");
}

static void test_clock__bad_texts_are_refused(void **state)
{
    (void)state;
    static const char *const rfc[] = {"",
                                      "2026-01-02",
                                      "2026-01-02T03:04:05",
                                      "2026-01-02 03:04:05Z",
                                      "2026-13-02T03:04:05Z",
                                      "2026-00-02T03:04:05Z",
                                      "2026-02-29T03:04:05Z",
                                      "2100-02-29T00:00:00Z",
                                      "2026-04-31T00:00:00Z",
                                      "2026-01-00T00:00:00Z",
                                      "2026-01-02T24:00:00Z",
                                      "2026-01-02T03:60:05Z",
                                      "2026-01-02T03:04:60Z",
                                      "2026-01-02T03:04:05.Z",
                                      "2026-01-02T03:04:05.1234567890Z",
                                      "2026-01-02T03:04:05+0200",
                                      "2026-01-02T03:04:05+24:00",
                                      "2026-01-02T03:04:05+02:60",
                                      "2026-01-02T03:04:05Z ",
                                      " 2026-01-02T03:04:05Z",
                                      "26-01-02T03:04:05Z",
                                      "2026-1-2T03:04:05Z",
                                      "-026-01-02T03:04:05Z"};
    static const char *const amz[] = {"",
                                      "20260102T030405",
                                      "20260102T030405z",
                                      "20260102030405Z",
                                      "20261302T030405Z",
                                      "20260102T250405Z",
                                      "20260102T030405Z0",
                                      "2026-01-02T03:04:05Z"};
    static const char *const http[] = {"",
                                       "Thu, 1 Jan 1970 00:00:00 GMT",
                                       "Thu 01 Jan 1970 00:00:00 GMT",
                                       "Foo, 01 Jan 1970 00:00:00 GMT",
                                       "Thu, 01 Foo 1970 00:00:00 GMT",
                                       "Thu, 01 Jan 1970 00:00:00",
                                       "Thu, 01 Jan 1970 00:00:00 UTC",
                                       "Thu, 31 Feb 1970 00:00:00 GMT",
                                       "Thu, 01 Jan 1970 00:00:00 GMT "};
    usec_t t = 42;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(rfc); i++) {
        assert_false(clock_parse_rfc3339(rfc[i], &t, &err));
        assert_int_equal(err.code, ERR_INVALID);
    }
    for (size_t i = 0; i < ARRAY_LEN(amz); i++) {
        assert_false(clock_parse_amz(amz[i], &t, &err));
    }
    for (size_t i = 0; i < ARRAY_LEN(http); i++) {
        assert_false(clock_parse_http(http[i], &t, &err));
    }
    assert_int_equal(t, 42);
}

static void test_clock__clocks_run_forwards(void **state)
{
    (void)state;
    int64_t mono = clock_mono_us();
    int64_t boot = clock_boot_us();
    assert_true(clock_wall_us() > INT64_C(1577836800) * USEC_PER_SEC); /* 2020 */
    assert_true(clock_mono_us() >= mono);
    assert_true(clock_boot_us() >= boot);
    assert_true(boot >= mono);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock__known_instants),
        cmocka_unit_test(test_clock__agrees_with_the_c_library_over_centuries),
        cmocka_unit_test(test_clock__fractions_and_zones),
        cmocka_unit_test(test_clock__years_are_held_to_four_digits),
        cmocka_unit_test(test_clock__bad_texts_are_refused),
        cmocka_unit_test(test_clock__clocks_run_forwards),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
