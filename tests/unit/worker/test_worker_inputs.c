/* Aim: records of text files are split as RFC 4180 and JSON say, with the right lines, wherever the
 * blocks of the file end; types are inferred from all values; columns of several files are widened
 * to one type. Method: small texts written to a file, also with each field across a block's end;
 * tables of values; column lists by hand. */
#include "common/cleanup.h"
#include "download/part/column_choice.h"
#include "download/text/field_type.h"
#include "download/text/records.h"
#include "download/text/text_file.h"
#include "tests/unit/unit.h"
#include <fcntl.h>

static struct record_reader *open_text(const char *text, size_t n, enum records_format format)
{
    char path[64];
    struct record_reader *r;
    struct err err = ERR_INIT;
    int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, n), (ssize_t)n);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!records_open(path, "f", format, false, &r, &err)) {
        fail_msg("%s", err.message);
    }
    (void)close(fd);
    return r;
}

/* All fields of all records: "a|b;c|d;", or "!" and the error. */
static void split(const char *text, size_t n, enum records_format format, struct buf *out)
{
    struct err err = ERR_INIT;
    bool end = false;
    char *const *names;
    struct record_reader *r = open_text(text, n, format);
    size_t fields = records_names(r, &names);
    while (records_next(r, &end, &err) && !end) {
        for (size_t i = 0; i < fields; i++) {
            buf_add_cstr(out, i == 0 ? "" : "|");
            buf_add_str(out, records_field(r, i));
        }
        buf_addf(out, "@%lld;", (long long)records_line(r));
    }
    if (err.code != ERR_NONE) {
        buf_addf(out, "!%s", err.message);
    }
    records_free(r);
}

static void test_worker_inputs__records(void **state UNUSED)
{
    static const struct {
        enum records_format format;
        const char *text, *want;
    } cases[] = {
        {RECORDS_CSV, "a,b\n1,2\n", "1|2@2;"},
        {RECORDS_CSV, "a,b\r\n\r\n1,2\r\r3,4", "1|2@3;3|4@5;"},
        {RECORDS_CSV, "a,b\n\"1\n\",\"\"\"\"\n3,\n", "1\n|\"@2;3|@4;"},
        {RECORDS_CSV, "\xef\xbb\xbf\"a\"\n1\n", "1@2;"},
        {RECORDS_CSV, "a,b\n1\"2,x\"\n", "1\"2|x\"@2;"},
        {RECORDS_CSV, "a,b\n1\n", "!'f', line 2: 1 fields, expected 2 as in the header"},
        {RECORDS_CSV, "a,b\n1,2\n\"x\n\n", "1|2@2;!'f', line 3: a quote is not closed"},
        {RECORDS_CSV, "a,b\n\"x\"y,2\n", "!'f', line 2: text after a closing quote (field 1)"},
        {RECORDS_TSV, "a\tb\n1,2\t\"3\t\"\n", "1,2|3\t@2;"},
        {RECORDS_TXT, "http://x/\"a,b\n\nhttp://y", "http://x/\"a,b@1;http://y@3;"},
        {RECORDS_TXT, "", ""},
    };
    AUTO_BUF struct buf b = BUF_INIT(4096);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        buf_reset(&b);
        split(cases[i].text, strlen(cases[i].text), cases[i].format, &b);
        assert_string_equal(buf_cstr(&b), cases[i].want);
    }
}

/* Every end of a block: within \r\n, a quote, a doubled quote. */
static void test_worker_inputs__blocks(void **state UNUSED)
{
    static const char tail[] = ",\"x\"\"y\r\n\"\r\n3,4\r\n";
    AUTO_BUF struct buf b = BUF_INIT(4 * TEXT_FILE_BLOCK_BYTES);
    AUTO_BUF struct buf out = BUF_INIT(4 * TEXT_FILE_BLOCK_BYTES);
    for (size_t back = 0; back < sizeof tail + 1; back++) {
        size_t pad = TEXT_FILE_BLOCK_BYTES - 5 - back;
        buf_reset(&b);
        buf_reset(&out);
        buf_add_cstr(&b, "a,b\r\n");
        for (size_t i = 0; i < pad; i++) {
            buf_add_char(&b, 'p');
        }
        buf_add_cstr(&b, tail);
        split(b.p, b.n, RECORDS_CSV, &out);
        assert_string_equal(buf_cstr(&out) + pad, "|x\"y\r\n@2;3|4@4;");
    }
}

static void test_worker_inputs__objects(void **state UNUSED)
{
    static const struct {
        enum records_format format;
        const char *text;
        int n;
        const char *word; /* NULL: no fault */
    } cases[] = {
        {RECORDS_JSON, " [ ]\n", 0, NULL},
        {RECORDS_JSON, "[{},{\"a\":\"}]\\\"\"}\n,{\"b\":[{}]}]", 3, NULL},
        {RECORDS_JSON, "[{},]", 1, "line 1: an object expected"},
        {RECORDS_JSON, "[{} {}]", 1, "line 1: ',' or ']' expected"},
        {RECORDS_JSON, "[,{}]", 0, "line 1: an object expected"},
        {RECORDS_JSON, "[{}\n,", 1, "line 2: the list is not closed"},
        {RECORDS_JSON, "[{}]]", 1, "text after the list"},
        {RECORDS_JSON, "", 0, "is empty"},
        {RECORDS_JSONL, "{}\n  \n{\"a\":\"\\\"\"}", 2, NULL},
        {RECORDS_JSONL, "{}\n{\n", 1, "line 2: "},
        {RECORDS_JSONL, "{} {}\n", 0, "line 1: "},
        {RECORDS_JSONL, "[]\n", 0, "line 1: not an object"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = ERR_INIT;
        bool end = false;
        int n = 0;
        struct record_reader *r = open_text(cases[i].text, strlen(cases[i].text), cases[i].format);
        while (records_next(r, &end, &err) && !end) {
            assert_true(json_is_object(records_object(r)));
            n++;
        }
        records_free(r);
        assert_int_equal(n, cases[i].n);
        bool as_wanted = cases[i].word == NULL ? err.code == ERR_NONE
                                               : strstr(err.message, cases[i].word) != NULL;
        if (!as_wanted) {
            fail_msg("%s: '%s'", cases[i].text, err.message);
        }
    }
}

static void test_worker_inputs__guesses(void **state UNUSED)
{
    static const struct {
        const char *values[4];
        const char *type;
    } cases[] = {
        {{"", "NA"}, "NULL"},
        {{"1", "-007", "NULL"}, "BIGINT"},
        {{"1", "0"}, "BIGINT"},
        {{"1", "true"}, "BOOLEAN"},
        {{"True", "FALSE"}, "BOOLEAN"},
        {{"1", "2.5"}, "DOUBLE"},
        {{".5", "1e9", "-inf"}, "DOUBLE"},
        {{"9223372036854775807"}, "BIGINT"},
        {{"9223372036854775808"}, "DOUBLE"},
        {{"-9223372036854775808"}, "BIGINT"},
        {{"0x10"}, "VARCHAR"},
        {{"1 "}, "VARCHAR"},
        {{"-"}, "VARCHAR"},
        {{"+1"}, "VARCHAR"},
        {{"2020-01-01"}, "VARCHAR"},
        {{"1", "x"}, "VARCHAR"},
        {{"yes"}, "VARCHAR"},
        {{"infinite"}, "VARCHAR"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct field_guess g = {0};
        for (size_t k = 0; k < 4 && cases[i].values[k] != NULL; k++) {
            field_guess_add(&g, str_of(cases[i].values[k]));
        }
        assert_string_equal(field_guess_type(&g), cases[i].type);
    }
    int64_t n;
    assert_true(field_int(STR("-9223372036854775808"), &n));
    assert_true(n == INT64_MIN);
    assert_false(field_int(STR("-9223372036854775809"), &n));
    assert_false(field_int(STR(""), &n));
}

static void test_worker_inputs__json_types(void **state UNUSED)
{
    static const struct {
        const char *values, *type, *last; /* last: as it is written */
    } cases[] = {
        {"[null]", "NULL", "null"},
        {"[1,2.5]", "DOUBLE", "2.5"},
        {"[[],[1]]", "BIGINT[]", "[1]"},
        {"[[]]", "VARCHAR[]", "[]"},
        {"[{\"a\":1},{\"b\":[\"x\"]}]", "STRUCT(\"a\" BIGINT, \"b\" VARCHAR[])",
         "{\"a\":null,\"b\":[\"x\"]}"},
        {"[{\"q\\\"\":true}]", "STRUCT(\"q\"\"\" BOOLEAN)", "{\"q\\\"\":true}"},
        {"[{}]", "MAP(VARCHAR, VARCHAR)", "{}"},
        {"[1,\"x\"]", NULL, "a text, in rows before a number"},
        {"[[1],[[1]]]", NULL, "a list, in rows before a number"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_JSON json_t *v = json_loads(cases[i].values, 0, NULL);
        AUTO_BUF struct buf b = BUF_INIT(4096);
        char why[80] = "";
        struct field_type *t = field_type_new();
        bool ok = true;
        for (size_t k = 0; k < json_array_size(v); k++) {
            ok = ok && field_type_add(t, json_array_get(v, k), why);
        }
        assert_int_equal(ok, cases[i].type != NULL);
        if (ok) {
            field_type_sql(t, &b);
            assert_string_equal(buf_cstr(&b), cases[i].type);
            buf_reset(&b);
            field_json(&b, t, json_array_get(v, json_array_size(v) - 1));
        }
        assert_string_equal(ok ? buf_cstr(&b) : why, cases[i].last);
        field_type_free(t);
    }
}

static void chosen(const char *type, struct column_choice *ret)
{
    char url[] = "url";
    char none[] = "";
    char x[] = "x";
    struct err err = ERR_INIT;
    struct download_options o = {.url_col = url, .caption_col = none, .bbox_col = none};
    o.extra_columns[0] = x;
    o.extra_columns_n = 1;
    const struct file_column file[] = {{"x", type}, {"url", "VARCHAR"}};
    if (!column_choice(file, 2, "f", false, &o, ret, &err)) {
        fail_msg("%s", err.message);
    }
}

static void test_worker_inputs__widened(void **state UNUSED)
{
    static const struct {
        const char *a, *b, *parquet, *texts; /* the type of both; NULL: refused */
    } cases[] = {
        {"BIGINT", "BIGINT", "BIGINT", "BIGINT"},
        {"INTEGER", "BIGINT", "BIGINT", "BIGINT"},
        {"INTEGER", "DOUBLE", "DOUBLE", "DOUBLE"},
        {"NULL", "DOUBLE", "DOUBLE", "DOUBLE"},
        {"DOUBLE", "NULL", "DOUBLE", "DOUBLE"},
        {"NULL", "NULL", "VARCHAR", "VARCHAR"},
        {"BOOLEAN", "BIGINT", NULL, "VARCHAR"},
        {"BIGINT[]", "BIGINT[]", "BIGINT[]", "BIGINT[]"},
        {"BIGINT[]", "VARCHAR", NULL, "VARCHAR"},
        {"NULL", "STRUCT(a BIGINT)", "STRUCT(a BIGINT)", "STRUCT(a BIGINT)"},
    };
    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
        struct column_choice a;
        struct column_choice b;
        struct columns all;
        struct err err = ERR_INIT;
        bool texts = i % 2 == 1;
        const char *want = texts ? cases[i / 2].texts : cases[i / 2].parquet;
        chosen(cases[i / 2].a, &a);
        chosen(cases[i / 2].b, &b);
        columns_copy(&all, &a.columns);
        assert_int_equal(columns_widen(&all, &b.columns, texts, &err), want != NULL);
        if (want != NULL) {
            assert_string_equal(all.at[0].sql_type, want);
        }
        columns_done(&all);
        columns_done(&a.columns);
        columns_done(&b.columns);
    }
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker_inputs__records),
        cmocka_unit_test(test_worker_inputs__blocks),
        cmocka_unit_test(test_worker_inputs__objects),
        cmocka_unit_test(test_worker_inputs__guesses),
        cmocka_unit_test(test_worker_inputs__json_types),
        cmocka_unit_test(test_worker_inputs__widened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
