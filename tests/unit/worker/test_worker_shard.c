/* Aim: keys, names, json text, stats and status words as img2dataset writes them. Method: values
 * worked out by hand from its rules and by Python's json.dumps. */
#include "download/fetch/robots.h"
#include "download/shard/shard.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void test_worker_shard__key_digits(void **state UNUSED)
{
    static const struct {
        int64_t per;
        int digits;
    } cases[] = {{1, 0},   {2, 1},   {9, 1},    {10, 1},    {11, 2},
                 {100, 2}, {101, 3}, {1000, 3}, {10000, 4}, {10001, 5}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(shard_row_digits(cases[i].per), cases[i].digits);
    }
}

static void key_is(int64_t per, int digits, int64_t shard, int64_t row, const char *want)
{
    struct shard_format f = {.rows_per_shard = per, .digits = digits};
    char key[SHARD_KEY_BYTES];
    shard_key(&f, shard, row, key);
    assert_string_equal(key, want);
}

static void test_worker_shard__keys(void **state UNUSED)
{
    key_is(1000, 5, 0, 0, "00000000");
    key_is(1000, 5, 12, 999, "00012999");
    key_is(10000, 5, 3, 7, "000030007");
    key_is(10000, 7, 99999, 9999, "00999999999");
    key_is(1, 5, 4, 0, "00004");
    key_is(3, 3, 2, 2, "0022");
    key_is(1000, 2, 123, 1, "123001");
}

static void test_worker_shard__names_go_both_ways(void **state UNUSED)
{
    struct shard_format f = {.rows_per_shard = 10, .digits = 5};
    char name[SHARD_KEY_BYTES];
    shard_name(&f, 12, "_stats.json", name);
    assert_string_equal(name, "00012_stats.json");
    assert_int_equal(shard_parse_name(&f, "00012_stats.json", "_stats.json"), 12);
    assert_int_equal(shard_parse_name(&f, "123456.tar", ".tar"), 123456);
    static const char *const other[] = {"0012.tar",   "000012.tar",    "00012.tar.gz",
                                        "x00012.tar", ".tar",          "",
                                        "-0001.tar",  "00012.parquet", "99999999999999999999.tar"};
    for (size_t i = 0; i < ARRAY_LEN(other); i++) {
        assert_int_equal(shard_parse_name(&f, other[i], ".tar"), -1);
    }
}

static void json_of(double d, char *out, size_t n)
{
    struct columns c = {.n = 1, .caption_i = -1};
    c.at[0] = (struct column){(char *)(uintptr_t) "x", "DOUBLE", CELL_DOUBLE};
    struct shard_format f = {.rows_per_shard = 10, .digits = 5};
    struct sample *s = sample_new(1);
    s->cells[0] = (struct cell){.kind = CELL_DOUBLE, .d = d};
    struct buf b = BUF_INIT(4096);
    shard_json(&f, &c, s, &b);
    const char *from = strstr(b.p, "\"x\": ");
    assert_non_null(from);
    from += 5;
    (void)snprintf(out, n, "%.*s", (int)strcspn(from, ","), from);
    buf_done(&b);
    sample_free(s);
}

static void test_worker_shard__numbers_are_the_shortest_that_read_back(void **state UNUSED)
{
    static const struct {
        double d;
        const char *text;
    } cases[] = {{0.3358, "0.3358"},
                 {0.1, "0.1"},
                 {1, "1.0"},
                 {0, "0.0"},
                 {-2.5, "-2.5"},
                 {0.10000000149011612, "0.10000000149011612"},
                 {1e22, "1e+22"},
                 {5e-324, "5e-324"},
                 {1.0 / 3, "0.3333333333333333"},
                 {(double)NAN, "NaN"},
                 {(double)INFINITY, "Infinity"},
                 {-(double)INFINITY, "-Infinity"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char got[64];
        json_of(cases[i].d, got, sizeof got);
        assert_string_equal(got, cases[i].text);
    }
}

static void test_worker_shard__json_text(void **state UNUSED)
{
    struct columns c = {.n = 3, .url_i = 2, .caption_i = 1};
    c.at[0] = (struct column){(char *)(uintptr_t) "NSFW", "VARCHAR", CELL_TEXT};
    c.at[1] = (struct column){(char *)(uintptr_t) "caption", "VARCHAR", CELL_TEXT};
    c.at[2] = (struct column){(char *)(uintptr_t) "url", "VARCHAR", CELL_TEXT};
    struct shard_format f = {1000, 5, 0, IMAGE_JPEG, HASH_SHA256, true, OUTPUT_WEBDATASET};
    struct sample *s = sample_new(3);
    s->cells[1] =
        (struct cell){.kind = CELL_TEXT, .s = STR("\xc3\xa9 \xf0\x9f\x98\x80 \"\\\n\x7f")};
    s->cells[2] = (struct cell){.kind = CELL_TEXT, .s = STR("http://h/")};
    s->shard_i = 1;
    s->row_i = 2;
    s->width = 256;
    s->height = 128;
    s->original_width = 512;
    s->original_height = 256;
    s->exif = xstrdup("{\"a\": \"b\"}");
    (void)snprintf(s->hash, sizeof s->hash, "00ff");
    struct buf b = BUF_INIT(4096);
    shard_json(&f, &c, s, &b);
    assert_string_equal(buf_cstr(&b),
                        "{\n    \"NSFW\": null,\n"
                        "    \"caption\": \"\\u00e9 \\ud83d\\ude00 \\\"\\\\\\n\x7f\",\n"
                        "    \"url\": \"http://h/\",\n    \"key\": \"00001002\",\n"
                        "    \"status\": \"success\",\n    \"error_message\": null,\n"
                        "    \"width\": 256,\n    \"height\": 128,\n    \"original_width\": 512,\n"
                        "    \"original_height\": 256,\n    \"exif\": \"{\\\"a\\\": \\\"b\\\"}\",\n"
                        "    \"sha256\": \"00ff\"\n}");
    buf_done(&b);
    sample_free(s);
}

static void test_worker_shard__errors_are_printable(void **state UNUSED)
{
    struct sample *s = sample_new(1);
    sample_fail(s, STATUS_FAILED_TO_DOWNLOAD, "HTTP Error 404: %s",
                "N\xc3\xa9"
                "ant\x01\n\xc3\x7f\xf0\x9f\x98\x80\xed\xa0\x80\xe2\x82");
    assert_string_equal(s->error, "HTTP Error 404: N\xc3\xa9"
                                  "ant????\xf0\x9f\x98\x80?????");
    char longer[1000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    sample_fail(s, STATUS_FAILED_TO_RESIZE, "%s", longer);
    assert_int_equal(strlen(s->error), SAMPLE_ERROR_BYTES_MAX - 1);
    sample_free(s);
}

static void test_worker_shard__stats_text_and_back(void **state UNUSED)
{
    struct stats s = {.start_us = 1795157273624471, .end_us = 1795157275124471};
    for (int i = 0; i < 5; i++) {
        stats_add(&s, STATUS_SUCCESS, "success");
    }
    stats_add(&s, STATUS_FAILED_TO_RESIZE, "Image decoding error");
    stats_add(&s, STATUS_FAILED_TO_DOWNLOAD, "b\"");
    stats_add(&s, STATUS_FAILED_TO_DOWNLOAD, "a");
    struct buf b = BUF_INIT(4096);
    stats_json(&s, &b);
    assert_string_equal(
        buf_cstr(&b),
        "{\n    \"count\": 8,\n    \"successes\": 5,\n    \"failed_to_download\": 2,\n"
        "    \"failed_to_resize\": 1,\n    \"duration\": 1.500000,\n"
        "    \"start_time\": 1795157273.624471,\n    \"end_time\": 1795157275.124471,\n"
        "    \"status_dict\": {\n        \"success\": 5,\n        \"Image decoding error\": 1,\n"
        "        \"a\": 1,\n        \"b\\\"\": 1\n    }\n}");
    struct stats back;
    struct err err = ERR_INIT;
    assert_true(stats_parse(buf_str(&b), &back, &err));
    stats_merge(&back, &s);
    assert_int_equal(back.count, 16);
    assert_int_equal(back.texts_n, 4);
    stats_sort(&back);
    assert_string_equal(back.texts[0].text, "success");
    assert_int_equal(back.texts[0].n, 10);
    static const char *const bad[] = {
        "", "{", "[]", "{}", "{\"count\":1}",
        "{\"count\":-1,\"successes\":0,\"failed_to_download\":0,\"failed_to_resize\":0}",
        /* NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one row takes two lines */
        "{\"count\":1,\"successes\":1,\"failed_to_download\":0,\"failed_to_resize\":0,"
        "\"status_dict\":{\"success\":\"1\"}}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct stats x;
        assert_false(stats_parse(str_of(bad[i]), &x, &err));
    }
    stats_done(&s);
    stats_done(&back);
    buf_done(&b);
}

static void test_worker_shard__distinct_texts_are_capped(void **state UNUSED)
{
    struct stats s = {0};
    char text[32];
    for (int i = 0; i < STATS_TEXTS_MAX + 10; i++) {
        (void)snprintf(text, sizeof text, "e%d", i);
        stats_add(&s, STATUS_FAILED_TO_DOWNLOAD, text);
        stats_add(&s, STATUS_SUCCESS, "success");
    }
    assert_int_equal(s.count, 2 * (STATS_TEXTS_MAX + 10));
    assert_true(s.texts_n <= STATS_TEXTS_MAX);
    stats_sort(&s);
    assert_string_equal(s.texts[0].text, "success");
    assert_int_equal(s.texts[0].n, STATS_TEXTS_MAX + 10);
    stats_done(&s);
}

/* A server that makes up a reason for each answer: the file of them is whole and is read again. */
static void test_worker_shard__distinct_texts_fit_the_file(void **state UNUSED)
{
    struct stats s = {0};
    struct stats back;
    struct err err = ERR_INIT;
    struct buf b = BUF_INIT(STATS_FILE_BYTES_MAX);
    char text[256];
    for (int i = 0; i < STATS_TEXTS_MAX; i++) {
        int n = snprintf(text, sizeof text, "HTTP Error 404: %d", i);
        memset(text + n, 1, sizeof text - (size_t)n - 1); /* 6 bytes of JSON each */
        text[sizeof text - 1] = '\0';
        stats_add(&s, STATUS_FAILED_TO_DOWNLOAD, text);
        stats_add(&s, STATUS_SUCCESS, "success");
    }
    stats_json(&s, &b);
    assert_false(b.overflow);
    if (!stats_parse(buf_str(&b), &back, &err)) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(back.count, 2 * STATS_TEXTS_MAX);
    assert_true(back.texts_n == s.texts_n && s.texts_n > 1000);
    assert_string_equal(back.texts[0].text, "success");
    assert_int_equal(back.texts[0].n, STATS_TEXTS_MAX);
    stats_done(&s);
    stats_done(&back);
    buf_done(&b);
}

static void test_worker_shard__robots(void **state UNUSED)
{
    struct robots r = {.directives = {STR("noai"), STR("noindex")}, .n = 2, .token = STR("mybot")};
    static const struct {
        const char *value;
        bool forbids;
    } cases[] = {{"noai", true},        {"NOAI", true},         {" foo , noindex ", true},
                 {"mybot: noai", true}, {"MyBot:x,noai", true}, {"", false},
                 {",", false},          {"noaix", false},       {"other: noai", false},
                 {"noai: noai", false}, {"x:y:noai", false},    {":noai", false},
                 {"mybot", false},      {"all", false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (robots_forbids(&r, str_of(cases[i].value)) != cases[i].forbids) {
            fail_msg("'%s'", cases[i].value);
        }
    }
    r.token = STR("");
    assert_false(robots_forbids(&r, STR("mybot: noai")));
    r.n = 0;
    assert_false(robots_forbids(&r, STR("noai")));
}

static void test_worker_shard__extending_numbers_on(void **state UNUSED)
{
    struct shard_format f = {.rows_per_shard = 10, .digits = 5, .first_shard = 42};
    char text[SHARD_KEY_BYTES];
    shard_name(&f, 3, ".tar", text);
    assert_string_equal(text, "00045.tar");
    shard_key(&f, 3, 7, text);
    assert_string_equal(text, "000457");
    assert_int_equal(shard_parse_name(&f, "00045.tar", ".tar"), 3);
    assert_int_equal(shard_parse_name(&f, "00042.tar", ".tar"), 0);
    assert_int_equal(shard_parse_name(&f, "00041.tar", ".tar"), -1);
    assert_int_equal(shard_parse_name(&f, "45.tar", ".tar"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker_shard__extending_numbers_on),
        cmocka_unit_test(test_worker_shard__key_digits),
        cmocka_unit_test(test_worker_shard__keys),
        cmocka_unit_test(test_worker_shard__names_go_both_ways),
        cmocka_unit_test(test_worker_shard__numbers_are_the_shortest_that_read_back),
        cmocka_unit_test(test_worker_shard__json_text),
        cmocka_unit_test(test_worker_shard__errors_are_printable),
        cmocka_unit_test(test_worker_shard__stats_text_and_back),
        cmocka_unit_test(test_worker_shard__distinct_texts_are_capped),
        cmocka_unit_test(test_worker_shard__distinct_texts_fit_the_file),
        cmocka_unit_test(test_worker_shard__robots),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
