/* Aim: a line of POST .../parts is a part or a named fault, and the quick way of reading it agrees
 * with the thorough one. Method: a table of lines; random flat lines through both ways; cuts of a
 * good line at every byte. */
#include "api/handlers/ndjson.h"
#include "common/json.h"
#include "common/rng.h"
#include "tests/unit/unit.h"

struct row {
    const char *line;
    const char *uri; /* NULL: refused */
    int64_t size;
    const char *vars;
};

static const struct row rows[] = {
    {"{\"uri\":\"a\"}", "a", 0, ""},
    {"{\"uri\":\"a\",\"size\":0}", "a", 0, ""},
    {"{\"size\":12,\"uri\":\"a\"}", "a", 12, ""},
    {" { \"uri\" : \"a\" , \"size\" : 7 } ", "a", 7, ""},
    {"{\"uri\":\"a\",\"size\":999999999999999999}", "a", 999999999999999999, ""},
    {"{\"uri\":\"a\",\"size\":1000000000000000000}", "a", 1000000000000000000, ""},
    {"{\"uri\":\"\\u0041\\/\"}", "A/", 0, ""},
    {"{\"uri\":\"\xc3\xa9\"}", "\xc3\xa9", 0, ""},
    {"{\"uri\":\"a\",\"vars\":{\"k\":\"v\"}}", "a", 0, "{\"k\":\"v\"}"},
    {"{\"uri\":\"a\",\"vars\":{}}", "a", 0, ""},
    {"{\"vars\":{\"k\":\"v\",\"l\":\"\"},\"uri\":\"a\"}", "a", 0, "{\"k\":\"v\",\"l\":\"\"}"},
    {"{\"uri\":\"a\",\"vars\":{\"k\":\"\\u0041\"}}", "a", 0, "{\"k\":\"A\"}"},
    {"{\"uri\":\"s3://bucket/0123456789/\xc3\xa9\"}", "s3://bucket/0123456789/\xc3\xa9", 0, ""},
    {"{\"uri\":\"s3://bucket/0123\\\\56789\"}", "s3://bucket/0123\\56789", 0, ""},
    {"{\"uri\":\"s3://bucket/01234\x7f\"}", NULL, 0, NULL},
    {"{\"uri\":\"s3://bucket/0123456\x1f\"}", NULL, 0, NULL},
    {"{\"uri\":\"s3://bucket/01234567", NULL, 0, NULL},
    {"{\"uri\":\"a\",\"vars\":{\"k\":\"v\",\"k\":\"w\"}}", NULL, 0, NULL},
    {"{\"uri\":\"a\",\"vars\":{\"k\":\"v\"},\"vars\":{\"k\":\"v\"}}", NULL, 0, NULL},
    {"{\"uri\":\"a\",\"vars\":{\"k\":\"v\",}}", NULL, 0, NULL},
    {"{\"uri\":\"a\",\"vars\":{\"k\":\"v\"}", NULL, 0, NULL},
    {"{\"uri\":\"a\",\"vars\":{\"k\":{}}}", NULL, 0, NULL},
    {"{\"vars\":{\"k\":\"v\"}}", NULL, 0, NULL},
    {"{\"uri\":\"a\",\"size\":1e3}", NULL, 0, NULL},
    {"{\"uri\":\"a\",\"size\":-1}", NULL, 0, NULL},
    {"{\"uri\":\"a\",\"size\":07}", NULL, 0, NULL},
    {"{\"uri\":\"a\",\"size\":\"7\"}", NULL, 0, NULL},
    {"{\"uri\":\"a\",\"size\":}", NULL, 0, NULL},
    {"{\"uri\":\"a\",\"size\":9223372036854775807}", NULL, 0, NULL},
    {"{\"uri\":\"a\",\"size\":99999999999999999999}", NULL, 0, NULL},
    {"{\"uri\":\"a\",}", NULL, 0, NULL},
    {"{\"uri\":\"a\"}}", NULL, 0, NULL},
    {"{\"uri\":\"a\"} x", NULL, 0, NULL},
    {"{\"uri\":\"a\",\"uri\":\"a\"}", NULL, 0, NULL},
    {"{\"uri\":\"a\",\"size\":1,\"size\":1}", NULL, 0, NULL},
    {"{\"uri\":\"a\",\"x\":1}", NULL, 0, NULL},
    {"{\"uri\":\"\"}", NULL, 0, NULL},
    {"{\"uri\":null}", NULL, 0, NULL},
    {"{\"uri\":\"a\tb\"}", NULL, 0, NULL},
    {"{\"uri\":\"a\\u007fb\"}", NULL, 0, NULL},
    {"{\"uri\":\"a\\u0000b\"}", NULL, 0, NULL},
    {"{\"uri\":\"\xc3\"}", NULL, 0, NULL},
    {"{\"size\":1}", NULL, 0, NULL},
    {"{}", NULL, 0, NULL},
    {"[]", NULL, 0, NULL},
    {"\"a\"", NULL, 0, NULL},
    {"{", NULL, 0, NULL},
    {"{\"uri\":\"a\",\"vars\":{\"k\":1}}", NULL, 0, NULL},
    {"{\"uri\":\"a\",\"vars\":\"x\"}", NULL, 0, NULL},
};

static bool parse(const char *line, size_t n, struct arena *a, struct ndjson_part *ret,
                  struct err *err)
{
    const char *pointer = NULL;
    bool ok = ndjson_part_parse((struct str){line, n}, a, ret, &pointer, err);
    assert_true(ok || (pointer != NULL && err->message[0] != '\0'));
    return ok;
}

static void test_ndjson__every_line_is_a_part_or_a_named_fault(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 1 << 20);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ndjson_part p;
        struct err err = ERR_INIT;
        bool ok = parse(rows[i].line, strlen(rows[i].line), &a, &p, &err);
        if (ok != (rows[i].uri != NULL)) {
            fail_msg("%s: %s", rows[i].line, ok ? "taken" : err.message);
        }
        if (ok) {
            assert_str_view(p.uri, rows[i].uri);
            assert_int_equal(p.size, rows[i].size);
            assert_str_view(p.vars, rows[i].vars);
        }
    }
    arena_done(&a);
}

static void test_ndjson__a_line_cut_anywhere_is_refused(void **state)
{
    (void)state;
    static const char line[] = "{\"uri\":\"s3://b/k\",\"size\":123,\"vars\":{\"a\":\"b\"}}";
    struct arena a;
    arena_init(&a, 1 << 20);
    for (size_t n = 0; n < sizeof line - 1; n++) {
        AUTO_FREE char *exact = xstrndup(line, n); /* so that ASan sees a read behind it */
        struct ndjson_part p;
        struct err err = ERR_INIT;
        assert_false(parse(exact, n, &a, &p, &err));
    }
    arena_done(&a);
}

static void random_line(struct rng *r, struct buf *out)
{
    static const char *const bits[] = {
        "{", "}",  "\"uri\"", "\"size\"", ":",   ",",  "\"a\"", "12",   "-3", "\"",
        " ", "\\", "0",       "\"b/c\"",  "1.5", "\t", "[",     "null", "{}", "\"vars\""};
    buf_reset(out);
    if (rng_chance(r, 0.5)) {
        static const char *const vars[] = {"", ",\"vars\":{\"a\":\"b\"}",
                                           ",\"vars\":{\"a\":\"0123456789\",\"b\":\"\"}"};
        buf_addf(out, "{\"uri\":\"%020llx\",\"size\":%llu%s}",
                 (unsigned long long)rng_below(r, 1000), (unsigned long long)rng_below(r, 100),
                 vars[rng_below(r, ARRAY_LEN(vars))]);
        out->p[rng_below(r, out->n)] = (char)(0x20 + rng_below(r, 95));
        return;
    }
    for (uint64_t n = rng_below(r, 9); n > 0; n--) {
        buf_add_cstr(out, bits[rng_below(r, ARRAY_LEN(bits))]);
    }
}

/* What jansson and the rules of the header say, without the quick way. */
static bool thorough(struct str line, const char **ret_uri, int64_t *ret_size, json_t **ret_hold)
{
    static const char *const keys[] = {"uri", "size", "vars", NULL};
    struct err err = ERR_INIT;
    json_t *v = NULL;
    *ret_hold = NULL;
    if (!json_parse(line, NDJSON_LINE_MAX, &v, &err)) {
        return false;
    }
    *ret_hold = v;
    json_t *vars = json_object_get(v, "vars");
    const char *key;
    json_t *value;
    json_object_foreach(vars, key, value)
    {
        if (!json_is_string(value)) {
            return false;
        }
    }
    return json_is_object(v) && json_only_keys(v, keys, &err) &&
           json_get_required_str(v, "uri", ret_uri, &err) && (*ret_uri)[0] != '\0' &&
           strpbrk(*ret_uri, "\a\b\t\n\v\f\r\x7f") == NULL &&
           json_get_i64(v, "size", 0, INT64_MAX / 2, 0, ret_size, &err) &&
           (vars == NULL || json_is_object(vars));
}

static void test_ndjson__quick_and_thorough_agree_on_random_lines(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 1);
    struct arena a;
    arena_init(&a, 1 << 20);
    AUTO_BUF struct buf b = BUF_INIT(4096);
    int taken = 0;
    for (int i = 0; i < 200000; i++) {
        random_line(&r, &b);
        struct ndjson_part p;
        struct err err = ERR_INIT;
        const char *uri = "";
        int64_t size = 0;
        json_t *hold;
        bool want = thorough(buf_str(&b), &uri, &size, &hold);
        bool ok = parse(buf_cstr(&b), b.n, &a, &p, &err);
        if (ok != want || (ok && (!str_eq_cstr(p.uri, uri) || p.size != size))) {
            fail_msg("line %d: %s: %s", i, buf_cstr(&b), ok ? "taken" : err.message);
        }
        taken += ok;
        json_decref(hold);
        arena_reset(&a);
    }
    assert_true(taken > 1000);
    arena_done(&a);
}

static void test_ndjson__lines_end_with_lf_crlf_or_the_text(void **state)
{
    (void)state;
    struct str text = STR("a\r\nb\n\n\rc"), line;
    static const char *const want[] = {"a", "b", "", "\rc"};
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_true(ndjson_next(&text, &line));
        assert_str_view(line, want[i]);
    }
    assert_false(ndjson_next(&text, &line));
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ndjson__every_line_is_a_part_or_a_named_fault),
        cmocka_unit_test(test_ndjson__a_line_cut_anywhere_is_refused),
        cmocka_unit_test(test_ndjson__quick_and_thorough_agree_on_random_lines),
        cmocka_unit_test(test_ndjson__lines_end_with_lf_crlf_or_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
