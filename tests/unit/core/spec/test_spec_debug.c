/* Aim: each mistake in what watches a training job (debugger, profiler, their rules, tensorboard)
 * gives one fault with its place; what is right is stored and reads back, and a rule that costs is
 * warned of. Method: one line of a stage, changed. */
#include "core/spec/spec_json.h"
#include "spec_text.h"

#define BASE                                                                                       \
    "name: c1\nsecurity: {role: \"" ROLE "\"}\nbudget: 9 USD\nstages:\n"                           \
    "  - name: train\n    image: 111122223333.dkr.ecr.us-east-1.amazonaws.com/"                    \
    "x@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"                  \
    "    instance_type: ml.m5.xlarge\n    output: \"s3://acme/o/\"\n    %s\n" /* line 9 */
#define RULE(keys) "debugger: {rules: [{name: a, image: r/x:1, " keys "}]}"

static const struct {
    const char *line, *code, *word; /* in the message or in the hint */
} mistakes[] = {
    {"debugger: {to: here}", "pattern", "S3"},
    {"debugger: {to: \"s3://acme/{x}\"}", "unknown_variable", "{x}"},
    {"debugger: {path: x}", "pattern", "absolute"},
    {"debugger: {interval_ms: 500}", "unknown_key", "interval_ms"},
    {"debugger: [on]", "type", "boolean"},
    {"debugger: {parameters: [a]}", "type", "map"},
    {"debugger: {parameters: {a: [b]}}", "type", "list"},
    {"debugger: {parameters: {a: \"b\\nc\"}}", "pattern", "line break"},
    {"debugger: {collections: {a: b}}", "type", "list"},
    {"debugger: {collections: [a]}", "type", "name: losses"},
    {"debugger: {collections: [{name: a}, {name: a}]}", "duplicate", "two are named"},
    {"debugger: {collections: [{name: \"\"}]}", "required", "empty"},
    {"debugger: {collections: [{parameters: {a: b}}]}", "required", "name"},
    {"debugger: {collections: [{name: a, regex: b}]}", "unknown_key", "regex"},
    {"debugger: {rules: [{name: a}]}", "required", "image"},
    {"debugger: {rules: [{image: r/x:1}]}", "required", "name"},
    {"debugger: {rules: [{name: a, image: \"x y\"}]}", "pattern", "no image"},
    {"debugger: {rules: [{name: a, image: r/x:1}, {name: a, image: r/x:1}]}", "duplicate", "two"},
    {RULE("instance_type: c5"), "pattern", "instance type"},
    {RULE("instance_type: ml.zz9.large"), "value", "not known"},
    {RULE("volume_gb: 0"), "range", "0"},
    {RULE("path: x"), "pattern", "absolute"},
    {RULE("to: x"), "pattern", "S3"},
    {RULE("parameters: {a: \"{b}\"}"), "unknown_variable", "{b}"},
    {RULE("speed: 1"), "unknown_key", "speed"},
    {"profiler: {interval_ms: 300}", "value", "5000"},
    {"profiler: {interval_ms: 99}", "range", "99"},
    {"profiler: {collections: []}", "unknown_key", "collections"},
    {"profiler: full", "type", "boolean"},
    {"tensorboard: {path: /x}", "required", "to"},
    {"tensorboard: {to: \"s3://acme/x\", path: x}", "pattern", "absolute"},
    {"tensorboard: x", "pattern", "S3"},
    {"experiment: e", "type", "map"},
    {"experiment: {}", "required", "name"},
    {"experiment: {trail: a}", "unknown_key", "trial"},
    {"experiment: {name: a_b}", "pattern", "hyphens"},
    {"experiment: {name: -a}", "pattern", "hyphens"},
    {"experiment: {trial: a-}", "pattern", "hyphens"},
    {"experiment: {run: \"\"}", "required", "empty"},
    {"experiment: {display_name: \"{x}\"}", "unknown_variable", "{x}"},
};

static struct parsed *parsed_with(const char *line)
{
    AUTO_FREE char *text = xasprintf(BASE, line);
    return parse(text);
}

static void test_spec_debug__one_mistake_one_fault(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        struct parsed *p = parsed_with(mistakes[i].line);
        const struct fault *f = &p->faults.at[0];
        bool good = p->faults.n == 1 && strcmp(f->code, mistakes[i].code) == 0 &&
                    f->pos.line == 9 && f->pos.column > 0 && f->hint[0] != '\0' &&
                    (strstr(f->message, mistakes[i].word) != NULL ||
                     strstr(f->hint, mistakes[i].word) != NULL);
        if (!good) {
            show(&p->faults);
            fail_msg("'%s': wanted one fault [%s] with '%s'", mistakes[i].line, mistakes[i].code,
                     mistakes[i].word);
        }
        parsed_free(p);
    }
}

/* n of `one`, each with a name of its own: its key, or with a brace before it its `name`. */
static void many(struct buf *b, const char *before, const char *one, int n, const char *after)
{
    buf_add_cstr(b, before);
    for (int i = 0; i < n; i++) {
        buf_addf(b, "%sn%d%s,", one[0] == '{' ? "{name: " : "", i, one + (one[0] == '{'));
    }
    buf_add_cstr(b, after);
}

/* As many as AWS takes, and one more. */
static void test_spec_debug__so_many_and_no_more(void **state)
{
    (void)state;
    static const struct {
        const char *before, *one, *after;
        int max;
    } rows[] = {
        {"debugger: {collections: [", "{}", "]}", 20},
        {"debugger: {rules: [", "{, image: r/x:1}", "]}", 20},
        {"profiler: {rules: [", "{, image: r/x:1}", "]}", 20},
        {"debugger: {parameters: {", ": x", "}}", 20},
        {"profiler: {parameters: {", ": x", "}}", 20},
        {"debugger: {collections: [{name: a, parameters: {", ": x", "}}]}", 20},
        {"debugger: {rules: [{name: a, image: r/x:1, parameters: {", ": x", "}}]}", 100},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (int more = 0; more < 2; more++) {
            AUTO_BUF struct buf line = BUF_INIT(65536);
            many(&line, rows[i].before, rows[i].one, rows[i].max + more, rows[i].after);
            struct parsed *p = parsed_with(buf_cstr(&line));
            if (p->faults.n != more || (more && strcmp(p->faults.at[0].code, "limit") != 0)) {
                show(&p->faults);
                fail_msg("row %zu with %d", i, rows[i].max + more);
            }
            parsed_free(p);
        }
    }
}

static void test_spec_debug__what_is_right_reads_back(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "debugger: on",
        "debugger: off\n    profiler: no",
        "debugger: {}\n    profiler: {}",
        "debugger: {to: \"s3://acme/d/{part}/\", path: /opt/t, parameters: {save_interval: 100}, "
        "collections: [{name: losses, parameters: {b: \"{part}\", a: 1}}, {name: weights}]}",
        RULE("instance_type: ml.t3.medium, volume_gb: 9, path: /opt/r, to: "
             "\"s3://acme/r/{attempt}\","
             " parameters: {rule_to_invoke: LossNotDecreasing}"),
        "profiler: {to: \"s3://acme/p/\", interval_ms: 60000, parameters: {x: y}, rules: [{name: "
        "report, image: r/x:1}]}",
        "tensorboard: \"s3://acme/tb/{part}/\"",
        "tensorboard: {to: \"s3://acme/tb/\", path: /opt/tb}",
        "experiment: {name: a--b, trial: \"part-{part:05d}\", display_name: C1, run: "
        "\"{attempt}\"}",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct parsed *p = parsed_with(lines[i]);
        if (!p->good) {
            show(&p->faults);
            fail_msg("'%s'", lines[i]);
        }
        AUTO_JSON json_t *stored = spec_to_json(p->spec);
        CLEANUP(arena_done)
        struct arena a;
        arena_init(&a, SPEC_ARENA_BYTES);
        struct spec *back;
        struct err err = ERR_INIT;
        assert_true(spec_from_json(stored, &a, &back, &err));
        AUTO_JSON json_t *again = spec_to_json(back);
        assert_true(json_equal(stored, again));
        struct faults w = {0};
        spec_warn(back, &w);
        bool costs = strstr(lines[i], "instance_type") != NULL;
        assert_int_equal(w.n, costs);
        assert_true(!costs || strcmp(w.at[0].code, "rule_cost") == 0);
        parsed_free(p);
    }
}

/* Each field of the stored form that does not fit is refused. */
static void test_spec_debug__a_stored_form_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct parsed *p = parsed_with(RULE(
        "volume_gb: 9, to: \"s3://acme/r\", path: /r, instance_type: ml.t3.medium, parameters: "
        "{a: b}"));
    assert_true(p->good);
    AUTO_JSON json_t *good = spec_to_json(p->spec);
    for (int inner = 0; inner < 2; inner++) {
        json_t *hook = json_object_get(
            json_object_get(json_array_get(json_object_get(good, "stages"), 0), "training"),
            "debug");
        json_t *from = inner ? json_array_get(json_object_get(hook, "rules"), 0) : hook;
        AUTO_JSON json_t *keys = json_copy(from);
        const char *key;
        json_t *value;
        assert_true(json_object_size(keys) >= 3);
        json_object_foreach(keys, key, value)
        {
            (void)json_object_set_new(from, key, json_real(0.5));
            CLEANUP(arena_done)
            struct arena a;
            arena_init(&a, SPEC_ARENA_BYTES);
            struct spec *back;
            struct err err = ERR_INIT;
            assert_false(spec_from_json(good, &a, &back, &err));
            (void)json_object_set(from, key, value);
        }
    }
    parsed_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_debug__one_mistake_one_fault),
        cmocka_unit_test(test_spec_debug__so_many_and_no_more),
        cmocka_unit_test(test_spec_debug__what_is_right_reads_back),
        cmocka_unit_test(test_spec_debug__a_stored_form_that_does_not_fit_is_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("spec_debug", tests, NULL, NULL);
}
