/* Aim: only strict JSON gets in, getters say what is wrong, and what we write reads back.
 * Method: tables of documents; the writer's output goes through jansson and is compared as text. */
#include "common/json.h"
#include "common/rng.h"
#include "tests/unit/unit.h"
#include <math.h>

#define TEXT_MAX ((size_t)1 << 20)

static json_t *parse(const char *text)
{
    json_t *v = NULL;
    struct err err = ERR_INIT;
    if (!json_parse(str_of(text), TEXT_MAX, &v, &err)) {
        fail_msg("'%s': %s", text, err.message);
    }
    return v;
}

static void refuse(struct str text)
{
    json_t *v = NULL;
    struct err err = ERR_INIT;
    assert_false(json_parse(text, TEXT_MAX, &v, &err));
    assert_int_equal(err.code, ERR_MALFORMED);
    assert_null(v);
}

static void test_json__good_documents_are_read(void **state)
{
    (void)state;
    static const char *const good[] = {"{}",
                                       "[]",
                                       "null",
                                       "\"a\"",
                                       "-1.5e3",
                                       " {\"a\" : [1, true, null, \"\\u00e9\\ud83d\\ude00\"]}\n",
                                       "{\"a\":{\"a\":1},\"b\":{\"a\":2}}"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        json_decref(parse(good[i]));
    }
}

static void test_json__bad_documents_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      " ",
                                      "{",
                                      "{\"a\":1,}",
                                      "[1,]",
                                      "{'a':1}",
                                      "{a:1}",
                                      "{\"a\":1,\"a\":2}",
                                      "{\"a\":{\"b\":1,\"b\":1}}",
                                      "NaN",
                                      "[Infinity]",
                                      "[-Infinity]",
                                      "[1e999]",
                                      "[01]",
                                      "[+1]",
                                      "[.5]",
                                      "[1.]",
                                      "[0x1]",
                                      "[9223372036854775808]",
                                      "\"\\u0000\"",
                                      "\"\\ud800\"",
                                      "\"\\x41\"",
                                      "\"a\nb\"",
                                      "\"\xff\"",
                                      "\"\xc0\xaf\"",
                                      "\"\xed\xa0\x80\"",
                                      "{} {}",
                                      "{}x",
                                      "// c\n{}",
                                      "\xef\xbb\xbf{}",
                                      "tru"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        refuse(str_of(bad[i]));
    }
    refuse(STR("\"a\0b\""));
    refuse(STR("{}\0"));
}

static void test_json__depth_ends_at_32(void **state)
{
    (void)state;
    char text[80];

    memset(text, '[', 33);
    memset(text + 33, ']', 33);
    text[66] = '\0';
    refuse(str_of(text));
    text[65] = '\0';
    json_decref(parse(text + 1));
    /* Brackets within strings do not count, an escaped quote does not end one. */
    json_decref(parse("[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[[[[[[[[[[[\"]"));
}

static void test_json__size_is_bounded(void **state)
{
    (void)state;
    json_t *v = NULL;
    struct err err = ERR_INIT;
    assert_true(json_parse(STR("[1]"), 3, &v, &err));
    json_decref(v);
    assert_false(json_parse(STR("[10]"), 3, &v, &err));
    assert_int_equal(err.code, ERR_TOO_LARGE);
}

static void test_json__integers(void **state)
{
    (void)state;
    AUTO_JSON json_t *o =
        parse("{\"a\":5,\"r\":5.0,\"s\":\"5\",\"n\":null,\"m\":-9223372036854775808}");
    int64_t v = 42;
    struct err err = ERR_INIT;
    assert_true(json_get_i64(o, "a", 5, 5, JSON_ABSENT, &v, NULL));
    assert_int_equal(v, 5);
    assert_true(json_get_i64(o, "m", INT64_MIN, 0, 0, &v, NULL));
    assert_int_equal(v, INT64_MIN);
    assert_true(json_get_i64(o, "x", 0, 9, 77, &v, NULL)); /* a default may lie outside */
    assert_int_equal(v, 77);
    assert_true(json_get_i64(o, "n", 0, 9, 7, &v, NULL));
    assert_int_equal(v, 7);
    assert_false(json_get_i64(o, "x", 0, 9, JSON_ABSENT, &v, &err));
    assert_string_equal(err.message, "'x' is missing");
    assert_false(json_get_i64(o, "n", 0, 9, JSON_ABSENT, &v, &err));
    assert_false(json_get_i64(o, "a", 6, 9, 0, &v, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_non_null(strstr(err.message, "'a' is 5"));
    assert_false(json_get_i64(o, "a", 0, 4, 0, &v, &err));
    assert_false(json_get_i64(o, "r", 0, 9, 0, &v, &err));
    assert_false(json_get_i64(o, "s", 0, 9, 0, &v, &err));
    assert_string_equal(err.message, "'s' must be an integer, it is a string");
    assert_int_equal(v, 7);
}

static void test_json__strings_and_booleans(void **state)
{
    (void)state;
    AUTO_JSON json_t *o =
        parse("{\"s\":\"x\",\"e\":\"\",\"b\":true,\"f\":false,\"n\":null,\"i\":1}");
    const char *s = "kept";
    bool b = false;
    assert_true(json_get_str(o, "s", NULL, &s, NULL));
    assert_string_equal(s, "x");
    assert_true(json_get_str(o, "z", "dflt", &s, NULL));
    assert_string_equal(s, "dflt");
    assert_true(json_get_str(o, "e", "dflt", &s, NULL));
    assert_string_equal(s, "");
    assert_true(json_get_str(o, "z", NULL, &s, NULL));
    assert_null(s);
    s = "kept";
    assert_false(json_get_str(o, "i", "dflt", &s, NULL));
    assert_false(json_get_required_str(o, "e", &s, NULL));
    assert_false(json_get_required_str(o, "z", &s, NULL));
    assert_false(json_get_required_str(o, "n", &s, NULL));
    assert_string_equal(s, "kept");
    assert_true(json_get_required_str(o, "s", &s, NULL));
    assert_true(json_get_bool(o, "b", false, &b, NULL));
    assert_true(b);
    assert_true(json_get_bool(o, "f", true, &b, NULL));
    assert_false(b);
    assert_true(json_get_bool(o, "z", true, &b, NULL));
    assert_true(b);
    assert_false(json_get_bool(o, "i", false, &b, NULL));
    assert_false(json_get_bool(o, "s", false, &b, NULL));
}

static void test_json__objects_arrays_and_the_wrong_container(void **state)
{
    (void)state;
    AUTO_JSON json_t *o = parse("{\"o\":{},\"a\":[],\"n\":null}");
    AUTO_JSON json_t *list = parse("[]");
    json_t *v;
    int64_t i;
    assert_true(json_get_object(o, "o", &v, NULL));
    assert_non_null(v);
    assert_true(json_get_object(o, "z", &v, NULL));
    assert_null(v);
    assert_true(json_get_array(o, "a", &v, NULL));
    assert_non_null(v);
    assert_true(json_get_array(o, "n", &v, NULL));
    assert_null(v);
    assert_false(json_get_object(o, "a", &v, NULL));
    assert_false(json_get_array(o, "o", &v, NULL));
    assert_false(json_get_i64(list, "a", 0, 9, 0, &i, NULL));
    assert_false(json_get_i64(NULL, "a", 0, 9, 0, &i, NULL));
    assert_false(json_get_object(list, "a", &v, NULL));
}

static void test_json__epochs(void **state)
{
    (void)state;
    AUTO_JSON json_t *o = parse("{\"i\":1700000000,\"f\":1700000000.123,\"neg\":-1,\"big\":1e15,"
                                "\"s\":\"1\",\"z\":0,\"edge\":253402300799}");
    usec_t t = 42;
    assert_true(json_get_epoch(o, "i", JSON_ABSENT, &t, NULL));
    assert_int_equal(t, INT64_C(1700000000000000));
    assert_true(json_get_epoch(o, "f", JSON_ABSENT, &t, NULL));
    assert_int_equal(t, INT64_C(1700000000123000));
    assert_true(json_get_epoch(o, "z", 5, &t, NULL));
    assert_int_equal(t, 0);
    assert_true(json_get_epoch(o, "edge", 5, &t, NULL));
    assert_true(json_get_epoch(o, "absent", 5, &t, NULL));
    assert_int_equal(t, 5);
    assert_false(json_get_epoch(o, "absent", JSON_ABSENT, &t, NULL));
    assert_false(json_get_epoch(o, "neg", 5, &t, NULL));
    assert_false(json_get_epoch(o, "big", 5, &t, NULL));
    assert_false(json_get_epoch(o, "s", 5, &t, NULL));
    assert_int_equal(t, 5);
}

static void test_json__unknown_keys_are_named_with_a_guess(void **state)
{
    (void)state;
    static const char *const keys[] = {"instance_type", "count", NULL};
    AUTO_JSON json_t *good = parse("{\"count\":1}");
    AUTO_JSON json_t *near = parse("{\"count\":1,\"instance_typ\":2}");
    AUTO_JSON json_t *far = parse("{\"zzzzzzzz\":1}");
    AUTO_JSON json_t *list = parse("[]");
    struct err err = ERR_INIT;
    assert_true(json_only_keys(good, keys, &err));
    assert_false(json_only_keys(near, keys, &err));
    assert_string_equal(err.message, "unknown key 'instance_typ', did you mean 'instance_type'?");
    assert_false(json_only_keys(far, keys, &err));
    assert_string_equal(err.message, "unknown key 'zzzzzzzz'");
    assert_false(json_only_keys(list, keys, &err));
}

static void test_json__text_keeps_the_order_of_keys(void **state)
{
    (void)state;
    AUTO_JSON json_t *o = parse("{ \"b\" : 1, \"a\" : [ 1, \"x\" ] }");
    AUTO_FREE char *text = json_text(o);
    assert_string_equal(text, "{\"b\":1,\"a\":[1,\"x\"]}");
}

static void test_json__writer_places_commas_and_keys(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(4096);
    struct json_out w;
    json_out_init(&w, &b);
    json_out_object(&w, NULL);
    json_out_str(&w, "s", "x\"y");
    json_out_str(&w, "none", NULL);
    json_out_array(&w, "list");
    json_out_i64(&w, NULL, INT64_MIN);
    json_out_bool(&w, NULL, true);
    json_out_object(&w, NULL);
    json_out_end_object(&w);
    json_out_end_array(&w);
    json_out_raw(&w, "raw", STR("[1]"));
    json_out_strn(&w, "n", (struct str){"abc", 2});
    json_out_null(&w, "null");
    json_out_time(&w, "t0", 0);
    json_out_time(&w, "never", USEC_NEVER);
    json_out_time(&w, "t", 1500000);
    json_out_time(&w, "whole", 1000000);
    json_out_end_object(&w);
    assert_string_equal(
        buf_cstr(&b), "{\"s\":\"x\\\"y\",\"none\":null,\"list\":[-9223372036854775808,true,{}],"
                      "\"raw\":[1],\"n\":\"ab\",\"null\":null,\"t0\":null,\"never\":null,"
                      "\"t\":\"1970-01-01T00:00:01.500000Z\",\"whole\":\"1970-01-01T00:00:01Z\"}");
    json_decref(parse(buf_cstr(&b)));
}

static void check_double(double v, const char *want)
{
    AUTO_BUF struct buf b = BUF_INIT(64);
    struct json_out w;
    json_out_init(&w, &b);
    json_out_double(&w, NULL, v);
    assert_string_equal(buf_cstr(&b), want);
}

static void test_json__doubles_are_written_shortest(void **state)
{
    (void)state;
    check_double(0.3358, "0.3358");
    check_double(0.1, "0.1");
    check_double(1.0 / 3.0, "0.3333333333333333");
    check_double(5, "5");
    check_double(-0.0, "-0");
    check_double(1e22, "1e+22");
    check_double(5e-324, "5e-324");
    check_double(0.1 + 0.2, "0.30000000000000004");
    check_double(NAN, "null");
    check_double(-INFINITY, "null");
}

/* Each text is Python's json.dumps of the number. */
static void test_json__python_floats(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *want;
    } cases[] = {{0, "0.0"},
                 {-0.0, "-0.0"},
                 {1, "1.0"},
                 {100, "100.0"},
                 {0.3358, "0.3358"},
                 {1.0 / 3.0, "0.3333333333333333"},
                 {0.1 + 0.2, "0.30000000000000004"},
                 {1795148923.7106605, "1795148923.7106605"},
                 {9007199254740993.0, "9007199254740992.0"},
                 {1e15, "1000000000000000.0"},
                 {9999999999999998.0, "9999999999999998.0"},
                 {1e16, "1e+16"},
                 {-1.5e300, "-1.5e+300"},
                 {1e22, "1e+22"},
                 {0.0001, "0.0001"},
                 {0.00001, "1e-05"},
                 {5e-324, "5e-324"},
                 {NAN, "NaN"},
                 {INFINITY, "Infinity"},
                 {-INFINITY, "-Infinity"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf b = BUF_INIT(64);
        json_python_float(&b, cases[i].v);
        assert_string_equal(buf_cstr(&b), cases[i].want);
    }
}

static void test_json__doubles_read_back_the_same(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 11);
    for (int i = 0; i < 20000; i++) {
        double v;
        uint64_t bits = rng_u64(&rng);
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v)) {
            continue;
        }
        AUTO_BUF struct buf b = BUF_INIT(64);
        struct json_out w;
        json_out_init(&w, &b);
        json_out_double(&w, NULL, v);
        double back = strtod(buf_cstr(&b), NULL);
        assert_memory_equal(&back, &v, sizeof v);
    }
}

static void check_escape(struct str s, bool ascii, const char *want)
{
    AUTO_BUF struct buf b = BUF_INIT(1024);
    json_escape(&b, s, ascii);
    assert_string_equal(buf_cstr(&b), want);
    json_decref(parse(buf_cstr(&b)));
}

static void test_json__escapes(void **state)
{
    (void)state;
    check_escape(STR(""), false, "\"\"");
    check_escape(STR("a/\"\\\b\f\n\r\t\x1f\x7f"), false,
                 "\"a/\\\"\\\\\\b\\f\\n\\r\\t\\u001f\x7f\"");
    check_escape(STR("\xc3\xa9\xf0\x9f\x98\x80"), false, "\"\xc3\xa9\xf0\x9f\x98\x80\"");
    check_escape(STR("\xc3\xa9\xf0\x9f\x98\x80"), true, "\"\\u00e9\\ud83d\\ude00\"");
    check_escape(STR("\xef\xbf\xbd"), false, "\"\xef\xbf\xbd\"");
    check_escape(STR("a\xff\xc3(\xed\xa0\x80z"), true,
                 "\"a\\ufffd\\ufffd(\\ufffd\\ufffd\\ufffdz\"");
    check_escape(STR("a\xff z"), false, "\"a\xef\xbf\xbd z\"");
    check_escape(STR("\xf0\x9f"), true, "\"\\ufffd\\ufffd\"");
}

static void test_json__a_nul_is_escaped_and_then_refused_by_the_reader(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(1024);
    json_escape(&b, STR("a\0b"), false);
    assert_string_equal(buf_cstr(&b), "\"a\\u0000b\"");
    refuse(buf_str(&b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json__good_documents_are_read),
        cmocka_unit_test(test_json__bad_documents_are_refused),
        cmocka_unit_test(test_json__depth_ends_at_32),
        cmocka_unit_test(test_json__size_is_bounded),
        cmocka_unit_test(test_json__integers),
        cmocka_unit_test(test_json__strings_and_booleans),
        cmocka_unit_test(test_json__objects_arrays_and_the_wrong_container),
        cmocka_unit_test(test_json__epochs),
        cmocka_unit_test(test_json__unknown_keys_are_named_with_a_guess),
        cmocka_unit_test(test_json__text_keeps_the_order_of_keys),
        cmocka_unit_test(test_json__writer_places_commas_and_keys),
        cmocka_unit_test(test_json__doubles_are_written_shortest),
        cmocka_unit_test(test_json__python_floats),
        cmocka_unit_test(test_json__doubles_read_back_the_same),
        cmocka_unit_test(test_json__escapes),
        cmocka_unit_test(test_json__a_nul_is_escaped_and_then_refused_by_the_reader),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
