/* Aim: a campaign file means what it says: no YAML 1.1 surprises, every limit held, positions
 * right. Method: small texts to trees; each kind of fault with its line and column; bombs. */
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/yaml.h"
#include "tests/unit/unit.h"
#include <math.h>

static struct yaml_doc *parse(const char *text)
{
    struct faults f = {0};
    struct yaml_doc *d = NULL;
    if (!yaml_parse(str_of(text), &d, &f)) {
        fail_msg("'%s': %d:%d %s", text, f.at[0].pos.line, f.at[0].pos.column, f.at[0].message);
    }
    return d;
}

static void check_fault(struct str text, const char *code, int line, int column)
{
    struct faults f = {0};
    struct yaml_doc *d = NULL;
    assert_false(yaml_parse(text, &d, &f));
    assert_null(d);
    assert_true(f.n >= 1);
    if (strcmp(f.at[0].code, code) != 0 || f.at[0].pos.line != line ||
        f.at[0].pos.column != column) {
        fail_msg("'" STR_FMT "': %s at %d:%d (%s), not %s at %d:%d", STR_ARG(text), f.at[0].code,
                 f.at[0].pos.line, f.at[0].pos.column, f.at[0].message, code, line, column);
    }
}

static void test_yaml__maps_lists_and_positions(void **state)
{
    (void)state;
    CLEANUP(yaml_freep)
    struct yaml_doc *d = parse("name: laion\n"
                               "stages:\n"
                               "  - kind: jobs # comment\n"
                               "    n: 18\n"
                               "  - {kind: lustre, size: 12.5}\n");
    const struct yaml_node *root = yaml_root(d);
    assert_int_equal(root->kind, YAML_MAP);
    assert_int_equal(root->n, 2);
    const struct yaml_node *stages = yaml_get(root, "stages");
    assert_int_equal(stages->kind, YAML_LIST);
    assert_int_equal(stages->n, 2);
    assert_int_equal(root->key_pos[1].line, 2);
    assert_int_equal(root->key_pos[1].column, 1);
    assert_int_equal(stages->pos.line, 3);
    assert_int_equal(stages->pos.column, 3);
    const struct yaml_node *n = yaml_get(stages->items[0], "n");
    assert_int_equal(n->kind, YAML_INT);
    assert_int_equal(n->i, 18);
    assert_int_equal(n->pos.line, 4);
    assert_int_equal(n->pos.column, 8);
    const struct yaml_node *size = yaml_get(stages->items[1], "size");
    assert_int_equal(size->kind, YAML_FLOAT);
    assert_true(fabs(size->f - 12.5) < 1e-12);
    assert_string_equal(size->text, "12.5");
    assert_null(yaml_get(root, "nothing"));
    assert_null(yaml_get(stages, "kind"));
    assert_null(yaml_get(NULL, "kind"));
}

static void test_yaml__columns_count_characters_not_bytes(void **state)
{
    (void)state;
    CLEANUP(yaml_freep)
    struct yaml_doc *d = parse("{\"\xc3\xa9\xf0\x9f\x98\x80\": 1, b: x}");
    assert_int_equal(yaml_get(yaml_root(d), "b")->pos.column, 14);
}

static void check_plain(const char *text, enum yaml_kind kind)
{
    CLEANUP(yaml_freep)
    struct yaml_doc *d = parse(text);
    if (yaml_root(d)->kind != kind) {
        fail_msg("'%s' is of kind %d, not %d", text, (int)yaml_root(d)->kind, (int)kind);
    }
    assert_string_equal(yaml_root(d)->text, text);
    assert_false(yaml_root(d)->quoted);
}

static void test_yaml__a_byte_order_mark_is_no_text(void **state)
{
    (void)state;
    static const char *const texts[] = {"\xef\xbb\xbfversion: 1\nname: t\n",
                                        "\xef\xbb\xbf---\nname: t\n",
                                        "\xef\xbb\xbf{\"name\":\n \"t\"}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP(yaml_freep)
        struct yaml_doc *d = parse(texts[i]);
        assert_string_equal(yaml_get(yaml_root(d), "name")->text, "t");
        assert_int_equal(yaml_get(yaml_root(d), "name")->pos.line, 2);
    }
    CLEANUP(yaml_freep)
    struct yaml_doc *d = parse("\xef\xbb\xbfname: t");
    assert_int_equal(yaml_root(d)->key_pos[0].column, 1);
    assert_int_equal(yaml_get(yaml_root(d), "name")->pos.column, 7);
    check_fault(STR("\xef\xbb\xbf"), "empty", 1, 1);
}

static void test_yaml__core_schema(void **state)
{
    (void)state;
    static const char *const strings[] = {"no",    "yes",        "on",     "off",   "y",   "N",
                                          "tRue",  "nULL",       "12:30",  "1_000", "0b1", "1.2.3",
                                          "0o8",   "0xg",        "1e",     "e1",    ".",   "+",
                                          "1,000", "2026-01-02", "1.8 GB", "0O7",   ".e1"};
    static const char *const ints[] = {
        "0", "-1", "+7", "007", "0o17", "0xFf", "9223372036854775807", "-9223372036854775808"};
    static const char *const floats[] = {"1.0", "-0.5", ".5", "1.", "1e3", "1E-3", "+1.5e+3"};
    static const char *const bools[] = {"true", "True", "TRUE", "false", "False", "FALSE"};
    static const char *const nulls[] = {"null", "Null", "NULL", "~"};
    for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
        check_plain(strings[i], YAML_STRING);
    }
    for (size_t i = 0; i < ARRAY_LEN(ints); i++) {
        check_plain(ints[i], YAML_INT);
    }
    for (size_t i = 0; i < ARRAY_LEN(floats); i++) {
        check_plain(floats[i], YAML_FLOAT);
    }
    for (size_t i = 0; i < ARRAY_LEN(bools); i++) {
        check_plain(bools[i], YAML_BOOL);
    }
    for (size_t i = 0; i < ARRAY_LEN(nulls); i++) {
        check_plain(nulls[i], YAML_NULL);
    }
}

static void test_yaml__values_of_numbers_and_booleans(void **state)
{
    (void)state;
    CLEANUP(yaml_freep)
    struct yaml_doc *d = parse("[0o17, 0xFf, 007, +7, -9223372036854775808, true, FALSE, no, on]");
    const struct yaml_node *r = yaml_root(d);
    assert_int_equal(r->items[0]->i, 15);
    assert_int_equal(r->items[1]->i, 255);
    assert_int_equal(r->items[2]->i, 7);
    assert_int_equal(r->items[3]->i, 7);
    assert_true(r->items[4]->i == INT64_MIN);
    assert_true(r->items[5]->b);
    assert_false(r->items[6]->b);
    assert_true(r->items[7]->maybe_bool);
    assert_false(r->items[7]->b);
    assert_true(r->items[8]->maybe_bool);
    assert_true(r->items[8]->b);
    assert_false(r->items[5]->maybe_bool);
}

static void test_yaml__quotes_make_text(void **state)
{
    (void)state;
    CLEANUP(yaml_freep)
    struct yaml_doc *d = parse(
        "a: \"1\"\nb: 'true'\nc: |\n  two\n  lines\nd: \"null\"\ne: \"x\\u00e9\\n\"\nf: 'no'\n");
    static const char *const want[] = {"1", "true", "two\nlines\n", "null", "x\xc3\xa9\n", "no"};
    const struct yaml_node *r = yaml_root(d);
    for (size_t i = 0; i < r->n; i++) {
        assert_int_equal(r->items[i]->kind, YAML_STRING);
        assert_true(r->items[i]->quoted);
        assert_false(r->items[i]->maybe_bool);
        assert_string_equal(r->items[i]->text, want[i]);
    }
}

static void test_yaml__json_is_a_subset(void **state)
{
    (void)state;
    CLEANUP(yaml_freep)
    struct yaml_doc *d = parse("{\"a\":[1,2.5,\"x\\/y\",true,null],\n\t\"b\":{\"c\":\"\"}}");
    const struct yaml_node *a = yaml_get(yaml_root(d), "a");
    assert_int_equal(a->n, 5);
    assert_string_equal(a->items[2]->text, "x/y");
    assert_int_equal(a->items[4]->kind, YAML_NULL);
    assert_string_equal(yaml_get(yaml_get(yaml_root(d), "b"), "c")->text, "");
}

static void test_yaml__surrogate_pairs_of_json_are_one_character(void **state)
{
    (void)state;
    CLEANUP(yaml_freep)
    struct yaml_doc *d =
        parse("{\"a\\\"\\ud83d\\ude00\": \"\\uD83D\\uDE00x\\ud83d\\ude00\", \"b\": 1,\n"
              " \"c\": \"\\\\ud83d\", \"d\": 2}");
    const struct yaml_node *r = yaml_root(d);
    assert_string_equal(r->keys[0], "a\"\xf0\x9f\x98\x80");
    assert_string_equal(r->items[0]->text, "\xf0\x9f\x98\x80x\xf0\x9f\x98\x80");
    assert_string_equal(yaml_get(r, "c")->text, "\\ud83d");
    assert_int_equal(r->items[0]->pos.column, 21); /* as in the text given */
    assert_int_equal(r->key_pos[1].column, 50);
    assert_int_equal(yaml_get(r, "d")->pos.column, 23);
    /* Halves, the wrong order, and pairs outside of JSON stay what they are: refused. */
    check_fault(STR("{\"a\": \"\\ud83d\"}"), "syntax", 1, 10);
    check_fault(STR("{\"a\": \"\\ude00\\ud83d\"}"), "syntax", 1, 10);
    check_fault(STR("a: \"\\ud83d\\ude00\"\n"), "syntax", 1, 7);
    check_fault(STR("{\"\\ud83d\\ude00\": 1, \"b\": *x}"), "alias", 1, 26);
}

/* CPU time to read 60,000 texts of one emoji each, in JSON's escapes, with `between` after each. */
static int64_t cpu_of_emoji(const char *between)
{
    AUTO_BUF struct buf b = BUF_INIT(1024 * 1024);
    buf_add_cstr(&b, "[");
    for (int i = 0; i < 60000; i++) {
        buf_addf(&b, "\"\\ud83d\\ude00\",%s", between);
    }
    buf_add_cstr(&b, "\"\\ud83d\\ude00\"]");
    assert_false(b.overflow);
    CLEANUP(yaml_freep)
    struct yaml_doc *d = NULL;
    int64_t began_us = clock_cpu_us();
    d = parse(buf_cstr(&b));
    int64_t took_us = clock_cpu_us() - began_us;
    const struct yaml_node *last = yaml_root(d)->items[60000];
    assert_string_equal(last->text, "\xf0\x9f\x98\x80");
    assert_int_equal(last->pos.column, between[0] == '\n' ? 1 : 2 + 60000 * 15);
    return took_us;
}

/* A megabyte of them in one line took 1.4 s: each place looked at all pairs before it. */
static void test_yaml__many_surrogate_pairs_in_one_line_cost_no_more(void **state)
{
    (void)state;
    int64_t lines_us = cpu_of_emoji("\n");
    int64_t line_us = cpu_of_emoji("");
    if (line_us > 4 * lines_us) {
        fail_msg("one line %lld us, many lines %lld us", (long long)line_us, (long long)lines_us);
    }
}

static void test_yaml__aliases_stand_for_their_anchor(void **state)
{
    (void)state;
    CLEANUP(yaml_freep)
    struct yaml_doc *d = parse("a: &x {n: 1}\nb: *x\nc: &x 2\nd: *x\n");
    const struct yaml_node *r = yaml_root(d);
    assert_int_equal(yaml_get(yaml_get(r, "b"), "n")->i, 1);
    assert_int_equal(yaml_get(r, "d")->i, 2); /* the anchor was set anew */
}

static void test_yaml__syntax_faults_say_where(void **state)
{
    (void)state;
    check_fault(STR("a: [1, 2\nb: 3\n"), "syntax", 2, 2);
    check_fault(STR("a: 1\n\tb: 2\n"), "syntax", 2, 1);
    check_fault(STR("a:\n\t- 1\n"), "syntax", 2, 1);
    check_fault(STR("a: 1\n  b: 2\n"), "syntax", 2, 4);
    check_fault(STR("a: \"x\n"), "syntax", 2, 1);
    check_fault(STR("a: b: c\n"), "syntax", 1, 5);
    check_fault(STR("- a\nb: 1\n"), "syntax", 2, 1);
    check_fault(STR("a: @x\n"), "syntax", 1, 4);
    check_fault(STR("a: \"\\x\"\n"), "syntax", 1, 7);
    check_fault(STR("}"), "syntax", 1, 1);
    check_fault(STR("a: x\ny: \x01z\n"), "syntax", 2, 4);
}

static void test_yaml__empty_doubled_and_foreign_texts(void **state)
{
    (void)state;
    check_fault(STR(""), "empty", 1, 1);
    check_fault(STR("# only a comment\n"), "empty", 2, 1);
    check_fault(STR("a: 1\n---\nb: 2\n"), "documents", 2, 1);
    check_fault(STR("a: \xff\n"), "encoding", 1, 4);
    check_fault(STR("a: 1\nb: \xc3\xa9\xc3(\n"), "encoding", 2, 5);
    check_fault(STR("a: \0b"), "encoding", 1, 4);
    check_fault(STR("\xff\xfe"
                    "a\0"),
                "encoding", 1, 1);
    check_fault(STR("a: \"x\\0y\""), "nul", 1, 4);
    check_fault(STR("{\"x\\0y\": 1}"), "nul", 1, 2);
}

static void test_yaml__duplicate_keys_are_all_reported(void **state)
{
    (void)state;
    struct faults f = {0};
    struct yaml_doc *d = NULL;
    assert_false(yaml_parse(STR("a: 1\nb:\n  c: 1\n  \"c\": 2\na: 2\na: 3\n"), &d, &f));
    assert_int_equal(f.n, 3);
    assert_string_equal(f.at[0].code, "duplicate_key");
    assert_int_equal(f.at[0].pos.line, 4);
    assert_int_equal(f.at[0].pos.column, 3);
    assert_int_equal(f.at[1].pos.line, 5);
    assert_int_equal(f.at[2].pos.line, 6);
    assert_string_equal(f.at[1].message, "'a' was set before, in line 1");
}

static void test_yaml__tags_merges_and_odd_keys_are_faults(void **state)
{
    (void)state;
    check_fault(STR("a: !!str 1\n"), "tag", 1, 4);
    check_fault(STR("a: !x {b: 1}\n"), "tag", 1, 4);
    check_fault(STR("!!map {a: 1}\n"), "tag", 1, 1);
    check_fault(STR("- !<tag:yaml.org,2002:python/object> x\n"), "tag", 1, 3);
    check_fault(STR("a: &x {b: 1}\nc:\n  <<: *x\n"), "merge", 3, 3);
    check_fault(STR("? [a]\n: 1\n"), "key", 1, 3);
    check_fault(STR("{a: 1}: 2\n"), "key", 1, 1);
    check_fault(STR("a: &x k\n*x : 1\n"), "key", 2, 1);
    check_fault(STR("{\"\": 1}"), "key", 1, 2);
    check_fault(STR("&k a: 1\n"), "key", 1, 1);
    CLEANUP(yaml_freep)
    struct yaml_doc *quoted = parse("\"<<\": 1\n");
    assert_non_null(yaml_get(yaml_root(quoted), "<<"));
}

static void test_yaml__numbers_too_large_are_faults(void **state)
{
    (void)state;
    check_fault(STR("a: 9223372036854775808\n"), "range", 1, 4);
    check_fault(STR("a: -9223372036854775809\n"), "range", 1, 4);
    check_fault(STR("a: 0xffffffffffffffff\n"), "range", 1, 4);
    check_fault(STR("a: 1e999\n"), "range", 1, 4);
    check_fault(STR("a: .inf\n"), "range", 1, 4);
    check_fault(STR("a: -.INF\n"), "range", 1, 4);
    check_fault(STR("a: .nan\n"), "range", 1, 4);
}

static void repeat(struct buf *b, const char *s, int n)
{
    for (int i = 0; i < n; i++) {
        buf_add_cstr(b, s);
    }
}

static void test_yaml__depth_ends_at_32(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(1 << 20);
    repeat(&b, "[", 32);
    repeat(&b, "]", 32);
    CLEANUP(yaml_freep)
    struct yaml_doc *d = parse(buf_cstr(&b));
    assert_non_null(d);
    buf_reset(&b);
    repeat(&b, "[", 33);
    repeat(&b, "]", 33);
    check_fault(buf_str(&b), "too_deep", 1, 33);
    buf_reset(&b);
    repeat(&b, "[", 100000);
    check_fault(buf_str(&b), "too_deep", 1, 33);
    buf_reset(&b);
    repeat(&b, "- ", 40);
    check_fault(buf_str(&b), "too_deep", 1, 65);
    /* Through aliases: 20 levels hung below 20 others. */
    buf_reset(&b);
    buf_add_cstr(&b, "a: &x ");
    repeat(&b, "[", 20);
    repeat(&b, "]", 20);
    buf_add_cstr(&b, "\nb: ");
    repeat(&b, "[", 20);
    buf_add_cstr(&b, "*x");
    repeat(&b, "]", 20);
    check_fault(buf_str(&b), "too_deep", 2, 24);
}

static void test_yaml__alias_bombs_end(void **state)
{
    (void)state;
    /* Billion laughs: nine levels of nine. */
    AUTO_BUF struct buf b = BUF_INIT(1 << 20);
    buf_add_cstr(&b, "a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i <= 7; i++) {
        buf_addf(&b, "a%d: &a%d [", i, i);
        for (int j = 0; j < 9; j++) {
            buf_addf(&b, "%s*a%d", j == 0 ? "" : ", ", i - 1);
        }
        buf_add_cstr(&b, "]\n");
    }
    struct faults f = {0};
    struct yaml_doc *d = NULL;
    assert_false(yaml_parse(buf_str(&b), &d, &f));
    assert_string_equal(f.at[0].code, "too_large");
    /* What an alias stands for counts at once, also as the last thing of the text. */
    buf_reset(&b);
    buf_add_cstr(&b, "a: &a [");
    repeat(&b, "1,", 60000);
    buf_add_cstr(&b, "1]\nb: *a\n");
    check_fault(buf_str(&b), "too_large", 2, 4);
    /* 64 aliases pass, 65 do not; neither do 65 anchors. */
    buf_reset(&b);
    buf_add_cstr(&b, "- &a 1\n");
    repeat(&b, "- *a\n", 64);
    yaml_doc_free(parse(buf_cstr(&b)));
    buf_add_cstr(&b, "- *a\n");
    check_fault(buf_str(&b), "too_large", 66, 3);
    buf_reset(&b);
    repeat(&b, "- &a 1\n", 65);
    check_fault(buf_str(&b), "too_large", 65, 3);
    check_fault(STR("&a [*a]"), "alias", 1, 5);
    check_fault(STR("- *a\n- &a 1\n"), "alias", 1, 3);
}

static void test_yaml__nodes_and_bytes_are_bounded(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(4 << 20);
    repeat(&b, "- 1\n", 99999);
    CLEANUP(yaml_freep)
    struct yaml_doc *d = parse(buf_cstr(&b));
    assert_int_equal(yaml_root(d)->n, 99999);
    buf_add_cstr(&b, "- 1\n");
    check_fault(buf_str(&b), "too_large", 100000, 3);
    buf_reset(&b);
    repeat(&b, "x", 1 << 20);
    yaml_doc_free(parse(buf_cstr(&b)));
    buf_add_char(&b, 'x');
    check_fault(buf_str(&b), "too_large", 0, 0);
}

static void test_yaml__a_map_of_many_keys_is_quick(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(4 << 20);
    for (int i = 0; i < 80000; i++) {
        buf_addf(&b, "k%d: 1\n", i);
    }
    CLEANUP(yaml_freep)
    struct yaml_doc *d = parse(buf_cstr(&b));
    assert_int_equal(yaml_root(d)->n, 80000);
    assert_int_equal(yaml_get(yaml_root(d), "k79999")->i, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml__maps_lists_and_positions),
        cmocka_unit_test(test_yaml__columns_count_characters_not_bytes),
        cmocka_unit_test(test_yaml__a_byte_order_mark_is_no_text),
        cmocka_unit_test(test_yaml__core_schema),
        cmocka_unit_test(test_yaml__values_of_numbers_and_booleans),
        cmocka_unit_test(test_yaml__quotes_make_text),
        cmocka_unit_test(test_yaml__json_is_a_subset),
        cmocka_unit_test(test_yaml__surrogate_pairs_of_json_are_one_character),
        cmocka_unit_test(test_yaml__many_surrogate_pairs_in_one_line_cost_no_more),
        cmocka_unit_test(test_yaml__aliases_stand_for_their_anchor),
        cmocka_unit_test(test_yaml__syntax_faults_say_where),
        cmocka_unit_test(test_yaml__empty_doubled_and_foreign_texts),
        cmocka_unit_test(test_yaml__duplicate_keys_are_all_reported),
        cmocka_unit_test(test_yaml__tags_merges_and_odd_keys_are_faults),
        cmocka_unit_test(test_yaml__numbers_too_large_are_faults),
        cmocka_unit_test(test_yaml__depth_ends_at_32),
        cmocka_unit_test(test_yaml__alias_bombs_end),
        cmocka_unit_test(test_yaml__nodes_and_bytes_are_bounded),
        cmocka_unit_test(test_yaml__a_map_of_many_keys_is_quick),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
