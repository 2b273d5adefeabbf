/* Aim: only a whole output is good; anything else is short_output with a text that says which
 * object or number it was. Method: a manifest as the worker writes it, spoilt in one place at a
 * time, the checksum made right again where the fault lies elsewhere; stats of img2dataset alike.
 */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/hash.h"
#include "common/json.h"
#include "core/failure/verify.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static const struct verify_object listing[] = {
    {"00001.tar", 2048, "\"bbb\""}, {"00000.tar", 1024, "aaa"},    {"00000_stats.json", 10, "ccc"},
    {"_manifest.json", 500, "mmm"}, {"_progress.json", 90, "ppp"}, {"00000.parquet", 77, ""},
};

static json_t *object_json(const char *key, int64_t size, const char *etag)
{
    json_t *o = json_object();
    (void)json_object_set_new(o, "key", json_string(key));
    (void)json_object_set_new(o, "size", json_integer(size));
    (void)json_object_set_new(o, "etag", json_string(etag));
    return o;
}

static json_t *manifest_new(void)
{
    json_t *m = json_object();
    (void)json_object_set_new(m, "version", json_integer(1));
    (void)json_object_set_new(m, "task", json_string("123"));
    (void)json_object_set_new(m, "attempt", json_string("456"));
    (void)json_object_set_new(m, "rows_in", json_integer(500));
    (void)json_object_set_new(m, "rows_out", json_integer(500));
    (void)json_object_set_new(m, "successes", json_integer(400));
    (void)json_object_set_new(m, "failed_to_download", json_integer(90));
    (void)json_object_set_new(m, "failed_to_resize", json_integer(10));
    (void)json_object_set_new(m, "bytes", json_integer(3159));
    json_t *list = json_array();
    (void)json_array_append_new(list, object_json("00000.parquet", 77, "zzz"));
    (void)json_array_append_new(list, object_json("00000.tar", 1024, "aaa"));
    (void)json_array_append_new(list, object_json("00000_stats.json", 10, "\"ccc\""));
    (void)json_array_append_new(list, object_json("00001.tar", 2048, "bbb"));
    (void)json_object_set_new(m, "objects", list);
    return m;
}

/* The checksum over the lines as they stand. */
static void seal(json_t *m)
{
    AUTO_BUF struct buf lines = BUF_INIT(1 << 20);
    const json_t *list = json_object_get(m, "objects");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        buf_addf(&lines, "%s\t%lld\t%s\n", json_string_value(json_object_get(o, "key")),
                 (long long)json_integer_value(json_object_get(o, "size")),
                 json_string_value(json_object_get(o, "etag")));
    }
    char hex[SHA256_HEX_N];
    hash_sha256_hex(buf_cstr(&lines), lines.n, hex);
    (void)json_object_set_new(m, "sha256", json_string(hex));
}

static struct verify_verdict judge_expecting(const json_t *m, const char *task, int64_t rows)
{
    AUTO_FREE char *text = json_text(m);
    const struct verify_expect e = {task, rows};
    struct verify_verdict v;
    verify_manifest(str_of(text), &e, listing, ARRAY_LEN(listing), &v);
    return v;
}

static struct verify_verdict judge(const json_t *m)
{
    return judge_expecting(m, "123", 500);
}

static void assert_short(const struct verify_verdict *v, const char *word)
{
    assert_false(v->good);
    assert_int_equal(v->cause, CAUSE_SHORT_OUTPUT);
    if (strstr(v->text, word) == NULL) {
        fail_msg("'%s' does not say '%s'", v->text, word);
    }
}

static void test_verify__a_whole_output_is_good(void **state)
{
    (void)state;
    AUTO_JSON json_t *m = manifest_new();
    seal(m);
    struct verify_verdict v = judge(m);
    assert_string_equal(v.text, "");
    assert_true(v.good);
    assert_int_equal(v.cause, CAUSE_NONE);
    assert_int_equal(v.rows_in, 500);
    assert_int_equal(v.successes, 400);
    assert_int_equal(v.failed_to_download, 90);
    assert_int_equal(v.failed_to_resize, 10);
    assert_int_equal(v.bytes, 3159);
    assert_true(judge_expecting(m, NULL, -1).good);
}

static void test_verify__of_another_task_or_part(void **state)
{
    (void)state;
    AUTO_JSON json_t *m = manifest_new();
    seal(m);
    struct verify_verdict v = judge_expecting(m, "124", 500);
    assert_short(&v, "task 123");
    v = judge_expecting(m, "123", 501);
    assert_short(&v, "501");
}

static void test_verify__an_object_missing_or_changed(void **state)
{
    (void)state;
    static const struct {
        size_t drop;
        struct verify_object instead;
        const char *word;
    } rows[] = {
        {1, {"00000.tar_", 1024, "aaa"}, "'00000.tar' is missing"},
        {1, {"00000.tar", 1023, "aaa"}, "1023 bytes"},
        {1, {"00000.tar", 1024, "aab"}, "overwritten"},
        {0, {"00001.tar", 0, "bbb"}, "'00001.tar' has 0 bytes"},
    };
    AUTO_JSON json_t *m = manifest_new();
    seal(m);
    AUTO_FREE char *text = json_text(m);
    const struct verify_expect e = {"123", 500};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct verify_object there[ARRAY_LEN(listing)];
        memcpy(there, listing, sizeof there);
        there[rows[i].drop] = rows[i].instead;
        struct verify_verdict v;
        verify_manifest(str_of(text), &e, there, ARRAY_LEN(there), &v);
        assert_short(&v, rows[i].word);
    }
    struct verify_verdict v;
    verify_manifest(str_of(text), &e, NULL, 0, &v);
    assert_short(&v, "missing");
}

static void set_i64(json_t *m, const char *key, int64_t n)
{
    (void)json_object_set_new(m, key, json_integer(n));
}

static void test_verify__numbers_that_do_not_add_up(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int64_t n;
        const char *word;
    } rows[] = {
        {"rows_in", 499, "499 rows were read"},
        {"rows_out", 499, "499 came out"},
        {"rows_out", 501, "501 came out"},
        {"successes", 399, "add up to 499"},
        {"rows_in", -1, "rows_in"},
        {"version", 2, "version"},
        {"bytes", -5, "bytes"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_JSON json_t *m = manifest_new();
        set_i64(m, rows[i].key, rows[i].n);
        seal(m);
        struct verify_verdict v = judge(m);
        assert_short(&v, rows[i].word);
    }
}

static void test_verify__fewer_rows_in_than_the_part_has(void **state)
{
    (void)state;
    AUTO_JSON json_t *m = manifest_new();
    set_i64(m, "rows_in", 490);
    set_i64(m, "rows_out", 490);
    set_i64(m, "successes", 390);
    seal(m);
    struct verify_verdict v = judge(m);
    assert_short(&v, "the part has 500");
}

static void test_verify__a_manifest_that_was_touched(void **state)
{
    (void)state;
    AUTO_JSON json_t *m = manifest_new();
    seal(m);
    json_t *list = json_object_get(m, "objects");
    (void)json_array_remove(list, 3);
    struct verify_verdict v = judge(m);
    assert_short(&v, "checksum");
    (void)json_object_set_new(m, "sha256", json_string("00"));
    v = judge(m);
    assert_short(&v, "checksum");
    (void)json_object_del(m, "sha256");
    v = judge(m);
    assert_short(&v, "sha256");
    AUTO_JSON json_t *n = manifest_new();
    list = json_object_get(n, "objects");
    (void)json_array_append_new(list, object_json("00000.tar", 1024, "aaa")); /* twice */
    seal(n);
    v = judge(n);
    assert_short(&v, "key order");
    AUTO_JSON json_t *none = manifest_new();
    (void)json_array_clear(json_object_get(none, "objects"));
    seal(none);
    v = judge(none);
    assert_short(&v, "not one object");
}

static void test_verify__text_that_is_no_manifest(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "{",
                                        "[]",
                                        "7",
                                        "null",
                                        "{}",
                                        "{\"task\":\"123\"}",
                                        "{\"task\":123}",
                                        "\xff\xfe",
                                        "{\"task\":\"123\",\"task\":1}"};
    const struct verify_expect e = {"123", -1};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct verify_verdict v = {.good = true};
        verify_manifest(str_of(texts[i]), &e, listing, ARRAY_LEN(listing), &v);
        assert_false(v.good);
        assert_int_equal(v.cause, CAUSE_SHORT_OUTPUT);
        assert_true(v.text[0] != '\0');
    }
    AUTO_JSON json_t *m = manifest_new();
    (void)json_array_append_new(json_object_get(m, "objects"), json_string("x"));
    (void)json_object_set_new(m, "sha256", json_string("x"));
    struct verify_verdict v = judge(m);
    assert_short(&v, "object");
}

#define STATS(n, good)                                                                             \
    STR("{\"count\":" #n ",\"successes\":" #good ",\"failed_to_download\":3,"                      \
        "\"failed_to_resize\":2,\"duration\":1.5,\"bytes_downloaded\":1000,\"status_dict\":{}}")

static struct verify_sums sums(const struct str *stats, size_t n)
{
    struct verify_sums s = {.n = 0};
    for (size_t i = 0; i < n; i++) {
        verify_sums_add(&s, stats[i]);
    }
    return s;
}

static void test_verify__stats_of_img2dataset(void **state)
{
    (void)state;
    const struct str stats[] = {STATS(100, 95), STATS(50, 45)};
    const struct verify_sums both = sums(stats, 2), first = sums(stats, 1), none = {.n = 0};
    struct verify_verdict v;
    verify_img2dataset(&both, 150, 0, &v);
    assert_true(v.good);
    assert_int_equal(v.rows_in, 150);
    assert_int_equal(v.successes, 140);
    assert_int_equal(v.failed_to_download, 6);
    assert_int_equal(v.bytes, 2000);
    verify_img2dataset(&both, -1, 930000, &v);
    assert_true(v.good);
    verify_img2dataset(&both, 151, 0, &v);
    assert_short(&v, "the part has 151");
    verify_img2dataset(&first, 150, 0, &v);
    assert_short(&v, "count 100 rows");
    verify_img2dataset(&both, -1, 950000, &v);
    assert_short(&v, "95.00 %");
    verify_img2dataset(&none, -1, 0, &v);
    assert_short(&v, "no _stats.json");
    const struct str zero[] = {STATS(0, 0)};
    const struct verify_sums empty = sums(zero, 1);
    verify_img2dataset(&empty, -1, 0, &v);
    assert_short(&v, "no row");
    const struct str bad[] = {STATS(100, 95), STR("{\"count\":-1}")};
    const struct verify_sums damaged = sums(bad, 2);
    verify_img2dataset(&damaged, -1, 0, &v);
    assert_short(&v, "stats file 2");
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verify__a_whole_output_is_good),
        cmocka_unit_test(test_verify__of_another_task_or_part),
        cmocka_unit_test(test_verify__an_object_missing_or_changed),
        cmocka_unit_test(test_verify__numbers_that_do_not_add_up),
        cmocka_unit_test(test_verify__fewer_rows_in_than_the_part_has),
        cmocka_unit_test(test_verify__a_manifest_that_was_touched),
        cmocka_unit_test(test_verify__text_that_is_no_manifest),
        cmocka_unit_test(test_verify__stats_of_img2dataset),
    };
    return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
