/* Aim: a spec reads back from its stored form as it was, a stored form that does not fit is
 * refused; templates of a task and globs give what they say. Method: the example there and back;
 * each stored field spoilt in turn; tables of templates and globs, wrong ones included. */
#include "common/buf.h"
#include "common/cleanup.h"
#include "core/spec/spec.h"
#include "core/spec/spec_expand.h"
#include "core/spec/spec_json.h"
#include "core/spec/spec_parse.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static struct spec *example(struct arena *a)
{
    static const struct spec_defaults installed = {.role = "arn:aws:iam::111122223333:role/sm",
                                                   .worker_image = "registry/drover-worker:1"};
    AUTO_FILE FILE *f = fopen("deploy/examples/laion-download.yaml", "r");
    assert_non_null(f);
    char text[16384];
    size_t n = fread(text, 1, sizeof text, f);
    arena_init(a, SPEC_ARENA_BYTES);
    struct spec *s = NULL;
    struct faults faults = {0};
    assert_true(spec_parse((struct str){text, n}, &installed, a, &s, &faults));
    return s;
}

static void test_spec_form__the_stored_form_reads_back(void **state)
{
    (void)state;
    CLEANUP(arena_done)
    struct arena first;
    const struct spec *s = example(&first);
    AUTO_JSON json_t *v = spec_to_json(s);
    struct arena a;
    arena_init(&a, SPEC_ARENA_BYTES);
    struct spec *back = NULL;
    struct err err = ERR_INIT;
    assert_true(spec_from_json(v, &a, &back, &err));
    AUTO_JSON json_t *again = spec_to_json(back);
    assert_true(json_equal(v, again));
    assert_string_equal(back->stages[0]->hyperparameters[5].key, "save_additional_columns");
    assert_string_equal(back->stages[0]->output, s->stages[0]->output);
    assert_null(back->stages[0]->verify_target);
    assert_int_equal(back->stages[0]->retry[CAUSE_INTERNAL].times, 5);
    arena_done(&a);
}

static void test_spec_form__a_stored_form_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    CLEANUP(arena_done)
    struct arena first;
    const struct spec *s = example(&first);
    AUTO_JSON json_t *good = spec_to_json(s);
    const char *key;
    json_t *value;
    int refused = 0;
    for (int of_stage = 0; of_stage < 2; of_stage++) {
        const json_t *from = of_stage ? json_array_get(json_object_get(good, "stages"), 0) : good;
        json_object_foreach((json_t *)(uintptr_t)from, key, value)
        {
            AUTO_JSON json_t *bad = json_deep_copy(good);
            json_t *o = of_stage ? json_array_get(json_object_get(bad, "stages"), 0) : bad;
            (void)json_object_set_new(o, key, json_real(0.5));
            struct arena a;
            arena_init(&a, SPEC_ARENA_BYTES);
            struct spec *back = NULL;
            struct err err = ERR_INIT;
            assert_false(spec_from_json(bad, &a, &back, &err));
            assert_int_equal(err.code, ERR_INTERNAL);
            refused++;
            arena_done(&a);
        }
    }
    assert_true(refused > 30);
    struct arena a;
    arena_init(&a, SPEC_ARENA_BYTES);
    struct spec *back = NULL;
    struct err err = ERR_INIT;
    AUTO_JSON json_t *list = json_array();
    assert_false(spec_from_json(list, &a, &back, &err));
    arena_done(&a);
}

static void assert_expands(const char *template, const char *want)
{
    AUTO_JSON json_t *vars = json_object();
    (void)json_object_set_new(vars, "lang", json_string("{en}"));
    const struct spec_task t = {.campaign_id = 9,
                                .stage_name = "download",
                                .seq = 17,
                                .uri = "s3://b/m/part.017.parquet",
                                .size = 123456789012,
                                .attempt_n = 2,
                                .vars = vars};
    AUTO_BUF struct buf out = BUF_INIT(256);
    struct err err = ERR_INIT;
    bool good = spec_expand(template, &t, &out, &err);
    assert_int_equal(good, want != NULL);
    if (want != NULL) {
        assert_string_equal(buf_cstr(&out), want);
    } else {
        assert_int_equal(err.code, strlen(template) > 200 ? ERR_LIMIT : ERR_INVALID);
    }
}

static void test_spec_form__templates_of_a_task(void **state)
{
    (void)state;
    assert_expands("", "");
    assert_expands("plain", "plain");
    assert_expands("{part}", "17");
    assert_expands("{part:05d}", "00017");
    assert_expands("{part:5d}", "   17");
    assert_expands("{part:d}", "17");
    assert_expands("{part:0d}", "17");
    assert_expands("{uri}", "s3://b/m/part.017.parquet");
    assert_expands("{file_name}|{stem}", "part.017.parquet|part.017");
    assert_expands("{size}-{attempt}-{campaign}-{stage}", "123456789012-2-9-download");
    assert_expands("{lang}", "{en}");
    assert_expands("{{part}} {{{part}}} }{{", "{part} {17} }{");
    assert_expands("{", NULL);
    assert_expands("{part", NULL);
    assert_expands("{part:{part}}", NULL);
    assert_expands("{}", NULL);
    assert_expands("{nope}", NULL);
    assert_expands("{part:05x}", NULL);
    assert_expands("{part:99d}", NULL);
    assert_expands("{part:-5d}", NULL);
    assert_expands("{uri:5d}", NULL);
    assert_expands("{lang:5d}", NULL);
    char big[400];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    assert_expands(big, NULL);
    const struct spec_task bare = {.stage_name = "s"};
    AUTO_BUF struct buf out = BUF_INIT(64);
    struct err err = ERR_INIT;
    assert_true(spec_expand("[{uri}{stem}{file_name}]", &bare, &out, &err));
    assert_string_equal(buf_cstr(&out), "[]");
}

static void test_spec_form__globs(void **state)
{
    (void)state;
    static const struct {
        const char *glob;
        const char *key;
        bool match;
    } rows[] = {
        {"s3://b/m/*.parquet", "s3://b/m/1.parquet", true},
        {"s3://b/m/*.parquet", "m/1.parquet", true},
        {"s3://b/m/*.parquet", "s3://b/m/sub/1.parquet", false},
        {"s3://b/m/**.parquet", "s3://b/m/sub/1.parquet", true},
        {"s3://b/m/**/x*.parquet", "s3://b/m/a/b/x1.parquet", true},
        {"s3://b/m/**/x*.parquet", "s3://b/m/a/b/y1.parquet", false},
        {"s3://b/m/*.parquet", "s3://b/m/.parquet", true},
        {"s3://b/m/*.parquet", "s3://b/m/1.parquet.tmp", false},
        {"s3://b/m/*.parquet", "s3://c/m/1.parquet", false},
        {"s3://b/*/*", "s3://b/x/y", true},
        {"s3://b/*/*", "s3://b/x", false},
        {"s3://b/a*b*c", "s3://b/aXbYbZc", true},
        {"s3://b/a*b*c", "s3://b/aXbYbZ", false},
        {"s3://b/*", "s3://b/", false}, /* markers of folders are no input */
        {"s3://b/in/*", "in/", false},
        {"s3://b/in/**", "s3://b/in/a/", false},
        {"s3://b/in/**/", "s3://b/in/a/", true},
        {"s3://b/in//*", "s3://b/in//a", true},
        {"s3://b/in/*", "s3://b/in//a", false},
        {"s3://b", "x", false},
        {"*", "abc", true},
        {"", "", true},
        {"", "a", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(spec_glob_match(rows[i].glob, rows[i].key), rows[i].match);
    }
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_form__the_stored_form_reads_back),
        cmocka_unit_test(test_spec_form__a_stored_form_that_does_not_fit_is_refused),
        cmocka_unit_test(test_spec_form__templates_of_a_task),
        cmocka_unit_test(test_spec_form__globs),
    };
    return cmocka_run_group_tests_name("spec_form", tests, NULL, NULL);
}
