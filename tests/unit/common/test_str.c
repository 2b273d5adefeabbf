/* Aim: numbers, durations and money are read exactly or refused; encoders are each other's inverse.
 * Method: tables of texts, as many bad as good. */
#include "common/cleanup.h"
#include "common/units.h"
#include "tests/unit/unit.h"

static void test_str__views_compare_and_trim(void **state)
{
    (void)state;
    assert_int_equal(str_of(NULL).n, 0);
    assert_true(str_eq(str_of(NULL), STR("")));
    assert_true(str_eq_cstr(STR("ab"), "ab"));
    assert_false(str_eq_cstr(STR("ab"), "abc"));
    assert_false(str_eq_cstr(STR("ab"), "aB"));
    assert_true(str_ieq_cstr(STR("Content-TYPE"), "content-type"));
    assert_false(str_ieq_cstr(STR("a["), "a{")); /* differ by the case bit only */
    assert_true(str_cmp(STR("a"), STR("ab")) < 0);
    assert_true(str_cmp(STR("b"), STR("ab")) > 0);
    assert_true(str_cmp(STR("\xff"), STR("a")) > 0);
    assert_int_equal(str_cmp(STR(""), STR("")), 0);
    assert_true(str_starts(STR("abc"), "ab"));
    assert_true(str_starts(STR("abc"), ""));
    assert_false(str_starts(STR("ab"), "abc"));
    assert_true(str_ends(STR("abc"), "bc"));
    assert_false(str_ends(STR("c"), "bc"));
    assert_str_view(str_trim(STR(" \t\r\n x y \v\f")), "x y");
    assert_str_view(str_trim(STR("   ")), "");
}

static void test_str__split_and_find(void **state)
{
    (void)state;
    struct str s = STR("a,,b");
    assert_str_view(str_split(&s, ','), "a");
    assert_str_view(str_split(&s, ','), "");
    assert_str_view(str_split(&s, ','), "b");
    assert_int_equal(s.n, 0);
    assert_non_null(s.p);
    s = STR("a,");
    assert_str_view(str_split(&s, ','), "a");
    assert_int_equal(s.n, 0);
    s = STR("");
    assert_str_view(str_split(&s, ','), "");
    assert_int_equal(str_find(STR("hello"), STR("lo")), 3);
    assert_int_equal(str_find(STR("hello"), STR("lx")), -1);
    assert_int_equal(str_find(STR(""), STR("a")), -1);
    assert_int_equal(str_find(STR("a"), STR("")), 0);
    assert_int_equal(str_find(STR("a"), STR("ab")), -1);
}

static void test_str__utf8_is_judged_as_unicode_does(void **state)
{
    (void)state;
    static const char *const good[] = {"",
                                       "plain",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf",
                                       "a\xc3\xa9z"};
    static const char *const bad[] = {"\x80",
                                      "\xc0\xaf", /* overlong '/' */
                                      "\xc1\xbf",
                                      "\xc3",
                                      "\xc3(",
                                      "\xe0\x9f\xbf", /* overlong */
                                      "\xed\xa0\x80", /* surrogate */
                                      "\xe2\x82",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80", /* past U+10FFFF */
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "ok\xfe"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_true(str_is_utf8(str_of(good[i])));
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_false(str_is_utf8(str_of(bad[i])));
    }
    assert_false(str_is_utf8(STR("a\0b")));
}

static void test_str__whole_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t v;
    } good[] = {{"0", 0},
                {"-0", 0},
                {"007", 7},
                {"-1", -1},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN}};
    static const char *const bad[] = {"",
                                      "-",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1.0",
                                      "0x1",
                                      "1e3",
                                      "--1",
                                      "1-",
                                      "１",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        int64_t v = 42;
        assert_true(parse_i64(str_of(good[i].text), INT64_MIN, INT64_MAX, &v, NULL));
        assert_int_equal(v, good[i].v);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int64_t v = 42;
        struct err err = ERR_INIT;
        assert_false(parse_i64(str_of(bad[i]), INT64_MIN, INT64_MAX, &v, &err));
        assert_int_equal(err.code, ERR_INVALID);
        assert_int_equal(v, 42);
    }
    assert_false(parse_i64(STR("1\0"), 0, 9, &(int64_t){0}, NULL));
}

static void test_str__ranges_are_inclusive_and_named(void **state)
{
    (void)state;
    int64_t v;
    struct err err = ERR_INIT;
    assert_true(parse_i64(STR("1"), 1, 5, &v, NULL));
    assert_true(parse_i64(STR("5"), 1, 5, &v, NULL));
    assert_false(parse_i64(STR("0"), 1, 5, &v, NULL));
    assert_false(parse_i64(STR("6"), 1, 5, &v, &err));
    assert_string_equal(err.message, "'6' is not within 1 to 5");
}

static void test_str__decimals_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int digits;
        int64_t v;
    } good[] = {{"12.34", 2, 1234}, {"12.3", 2, 1230},
                {"12", 2, 1200},    {"-0.5", 1, -5},
                {"0.1", 6, 100000}, {"0.115", 6, 115000},
                {"7", 0, 7},        {"9223372036854.775807", 6, INT64_MAX}};
    static const struct {
        const char *text;
        int digits;
    } bad[] = {{"", 2},      {".", 2},
               {".5", 2},    {"5.", 2},
               {"1.234", 2}, {"1.230", 2},
               {"1,5", 2},   {"1e2", 2},
               {"1.2.3", 6}, {"-", 2},
               {"- 1", 2},   {"1.0", 0},
               {"nan", 2},   {"9223372036854.775808", 6}};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        int64_t v = 42;
        assert_true(
            parse_decimal(str_of(good[i].text), good[i].digits, INT64_MIN, INT64_MAX, &v, NULL));
        assert_int_equal(v, good[i].v);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int64_t v = 42;
        assert_false(
            parse_decimal(str_of(bad[i].text), bad[i].digits, INT64_MIN, INT64_MAX, &v, NULL));
        assert_int_equal(v, 42);
    }
    int64_t v;
    assert_false(parse_decimal(STR("2.01"), 2, 0, 200, &v, NULL));
}

static void test_str__durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t v;
    } good[] = {{"0", 0},       {"90", 90},      {"90s", 90},         {"15m", 900},   {"4h", 14400},
                {"2d", 172800}, {"1h30m", 5400}, {"1d2h3m4s", 93784}, {"1h90m", 9000}};
    static const char *const bad[] = {"",     "s",    "h1",   "1w",
                                      "1.5h", "-1s",  "1h30", "30m1h",
                                      "1h1h", "1 h",  "1H",   "9223372036854775807d",
                                      "10m ", "1h-5m"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        int64_t v = -1;
        assert_true(parse_duration_s(str_of(good[i].text), 0, INT64_MAX, &v, NULL));
        assert_int_equal(v, good[i].v);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int64_t v = -1;
        assert_false(parse_duration_s(str_of(bad[i]), 0, INT64_MAX, &v, NULL));
        assert_int_equal(v, -1);
    }
    int64_t v;
    assert_true(parse_duration_s(STR("60s"), 60, 60, &v, NULL));
    assert_false(parse_duration_s(STR("61s"), 60, 60, &v, NULL));
    assert_false(parse_duration_s(STR("59s"), 60, 60, &v, NULL));
}

static void test_str__money(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t v;
    } good[] = {{"900 USD", 900000000}, {"12.50 USD", 12500000}, {"900", 900000000}, {"0", 0},
                {"0.000001 USD", 1},    {"0.10", 100000}};
    static const char *const bad[] = {"",    "USD",       " USD",  "-1",     "-0 USD",
                                      "$5",  "5USD",      "5 EUR", "5 usd",  "5  USD",
                                      "1e3", "0.0000001", "1,000", "5 USD ", "9223372036855 USD"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        int64_t v = -1;
        assert_true(parse_usd(str_of(good[i].text), &v, NULL));
        assert_int_equal(v, good[i].v);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int64_t v = -1;
        assert_false(parse_usd(str_of(bad[i]), &v, NULL));
        assert_int_equal(v, -1);
    }
}

static void test_str__percent_encoding(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(4096);
    str_url_encode(&b, STR("AZaz09-_.~ /+%\xc3\xa9\0="), false);
    assert_string_equal(buf_cstr(&b), "AZaz09-_.~%20%2F%2B%25%C3%A9%00%3D");
    buf_reset(&b);
    str_url_encode(&b, STR("a/b c"), true);
    assert_string_equal(buf_cstr(&b), "a/b%20c");
    buf_reset(&b);
    assert_true(str_url_decode(&b, STR("a%2fb%2Fc+d%00"), false));
    assert_int_equal(b.n, 8);
    assert_memory_equal(b.p, "a/b/c+d\0", 8);
    buf_reset(&b);
    assert_true(str_url_decode(&b, STR("c+d"), true));
    assert_string_equal(buf_cstr(&b), "c d");
    static const char *const bad[] = {"%", "%1", "a%", "%g0", "%0g", "%%41", "%-1"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_false(str_url_decode(&b, str_of(bad[i]), false));
    }
}

static void test_str__every_byte_survives_encoding_and_back(void **state)
{
    (void)state;
    char all[256];
    for (size_t i = 0; i < sizeof all; i++) {
        all[i] = (char)i;
    }
    for (size_t n = 0; n <= sizeof all; n++) {
        AUTO_BUF struct buf text = BUF_INIT(4096);
        AUTO_BUF struct buf back = BUF_INIT(4096);
        str_url_encode(&text, (struct str){all, n}, false);
        assert_true(str_url_decode(&back, buf_str(&text), true));
        assert_true(str_eq(buf_str(&back), (struct str){all, n}));
        buf_reset(&text);
        str_base64(&text, all, n);
        assert_int_equal(text.n, (n + 2) / 3 * 4);
        char hex[513];
        uint8_t bytes[256];
        str_hex((const uint8_t *)all, n, hex);
        assert_int_equal(strlen(hex), 2 * n);
        assert_true(str_unhex(str_of(hex), bytes, n));
        assert_memory_equal(bytes, all, n);
    }
}

static void test_str__base64_of_rfc_4648(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        AUTO_BUF struct buf b = BUF_INIT(64);
        str_base64(&b, pairs[i][0], strlen(pairs[i][0]));
        assert_string_equal(buf_cstr(&b), pairs[i][1]);
    }
}

static void test_str__hex_of_another_length_or_letter_is_refused(void **state)
{
    (void)state;
    uint8_t out[2] = {7, 7};
    static const char *const bad[] = {"", "ab", "abc", "abcde", "abcdef", "abcg", "ab d", "-1ab"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_false(str_unhex(str_of(bad[i]), out, 2));
        assert_int_equal(out[0], 7);
    }
    assert_true(str_unhex(STR("aBfF"), out, 2));
    assert_int_equal(out[1], 0xff);
}

static void test_str__distance_between_words(void **state)
{
    (void)state;
    assert_int_equal(str_distance(STR("kitten"), STR("sitting")), 3);
    assert_int_equal(str_distance(STR("same"), STR("same")), 0);
    assert_int_equal(str_distance(STR(""), STR("abc")), 3);
    assert_int_equal(str_distance(STR("abc"), STR("")), 3);
    assert_int_equal(str_distance(STR("instance_typ"), STR("instance_type")), 1);
    char a[64];
    char b[65];
    memset(a, 'a', sizeof a);
    memset(b, 'b', sizeof b);
    assert_int_equal(str_distance((struct str){a, 64}, (struct str){b, 64}), 64);
    assert_int_equal(str_distance((struct str){a, 1}, (struct str){b, 65}), 64);
    assert_int_equal(str_distance((struct str){b, 65}, (struct str){b, 65}), 0);
}

static void test_units__sums_and_products_do_not_wrap(void **state)
{
    (void)state;
    int64_t v = 42;
    assert_true(add_i64(INT64_MAX - 1, 1, &v));
    assert_int_equal(v, INT64_MAX);
    v = 42;
    assert_false(add_i64(INT64_MAX, 1, &v));
    assert_int_equal(v, 42);
    assert_false(add_i64(INT64_MIN, -1, &v));
    assert_true(muldiv_i64(5, 1, 2, &v));
    assert_int_equal(v, 3); /* half goes up */
    assert_true(muldiv_i64(4, 1, 3, &v));
    assert_int_equal(v, 1);
    assert_true(muldiv_i64(INT64_MAX, INT64_MAX, INT64_MAX, &v));
    assert_int_equal(v, INT64_MAX);
    v = 42;
    assert_false(muldiv_i64(INT64_MAX, 2, 1, &v));
    assert_int_equal(v, 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_str__views_compare_and_trim),
        cmocka_unit_test(test_str__split_and_find),
        cmocka_unit_test(test_str__utf8_is_judged_as_unicode_does),
        cmocka_unit_test(test_str__whole_numbers),
        cmocka_unit_test(test_str__ranges_are_inclusive_and_named),
        cmocka_unit_test(test_str__decimals_are_exact),
        cmocka_unit_test(test_str__durations),
        cmocka_unit_test(test_str__money),
        cmocka_unit_test(test_str__percent_encoding),
        cmocka_unit_test(test_str__every_byte_survives_encoding_and_back),
        cmocka_unit_test(test_str__base64_of_rfc_4648),
        cmocka_unit_test(test_str__hex_of_another_length_or_letter_is_refused),
        cmocka_unit_test(test_str__distance_between_words),
        cmocka_unit_test(test_units__sums_and_products_do_not_wrap),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
