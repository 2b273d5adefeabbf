/* Aim: limits, weight, canary, breaker, quarantine, hang, warn_at and retry's change mean
 * what the file says, a wrong one is one fault in its place with what to write, and the stored form
 * keeps them. Method: one file with one stage, lines added. */
#include "core/failure/breaker.h"
#include "core/spec/spec_json.h"
#include "spec_text.h"

/* %s: beside the stages (from line 2 on), in the stage (from line 8 on when nothing is above). */
#define FILE_OF                                                                                    \
    "name: c1\n%s"                                                                                 \
    "stages:\n"                                                                                    \
    "  - name: download\n"                                                                         \
    "    worker: download\n"                                                                       \
    "    fan_out: api\n"                                                                           \
    "    instance_type: [ml.c5.18xlarge, ml.c5.24xlarge]\n"                                        \
    "    hyperparameters: {url_list: \"{uri}\", output_folder: \"{bucket}/i/{part:05d}/\"}\n%s"

static struct parsed *parse_file(const char *top, const char *stage)
{
    AUTO_FREE char *text = xasprintf(FILE_OF, top, stage);
    return parse(text);
}

static struct parsed *good_file(const char *top, const char *stage)
{
    struct parsed *p = parse_file(top, stage);
    show(&p->faults);
    assert_true(p->good);
    return p;
}

static void test_spec_guard__silence_gives_the_defaults(void **state)
{
    (void)state;
    struct parsed *p = good_file("", "");
    const struct spec_stage *s = p->spec->stages[0];
    assert_int_equal(p->spec->weight, 100);
    assert_int_equal(p->spec->warn_at_n, 2);
    assert_int_equal(p->spec->warn_at_ppm[0], 500000);
    assert_int_equal(p->spec->warn_at_ppm[1], 800000);
    assert_int_equal(s->parts_limit, -1);
    struct breaker_rules r = breaker_rules_of(&s->guard);
    assert_int_equal(r.canary, 3);
    assert_int_equal(r.k, 3);
    assert_int_equal(r.n, 10);
    assert_int_equal(r.quarantine, 3);
    assert_int_equal(s->guard.hang_silent_s, 15 * 60);
    assert_int_equal(s->guard.hang_standstill_s, 30 * 60);
    assert_int_equal(s->guard.hang_start_s, 30 * 60);
    for (int c = 0; c < CAUSE_COUNT; c++) {
        assert_false(s->retry[c].set);
    }
    parsed_free(p);
}

static void test_spec_guard__what_is_said_is_meant(void **state)
{
    (void)state;
    struct parsed *p = good_file("limits: {parts: 16, priority: 60, weight: 250, "
                                 "deadline: 2026-12-01T18:00:00Z}\n"
                                 "budget: {total: 900 USD, warn_at: [90%, 12.5%, 50%]}\n",
                                 "    limits: {parts: 4}\n"
                                 "    canary: 1\n"
                                 "    breaker: {same: 5, of: 20}\n"
                                 "    quarantine: 2\n"
                                 "    hang: {silent: 5m, standstill: off, start: 1h30m}\n");
    const struct spec_stage *s = p->spec->stages[0];
    assert_int_equal(p->spec->parts_limit, 16);
    assert_int_equal(p->spec->weight, 250);
    assert_int_equal(p->spec->deadline_us, INT64_C(1796148000000000));
    assert_int_equal(p->spec->warn_at_n, 3);
    assert_int_equal(p->spec->warn_at_ppm[0], 125000);
    assert_int_equal(p->spec->warn_at_ppm[1], 500000);
    assert_int_equal(p->spec->warn_at_ppm[2], 900000);
    assert_int_equal(s->parts_limit, 4);
    assert_int_equal(s->guard.canary, 1);
    assert_int_equal(s->guard.breaker_same, 5);
    assert_int_equal(s->guard.breaker_of, 20);
    assert_int_equal(s->guard.quarantine, 2);
    assert_int_equal(s->guard.hang_silent_s, 300);
    assert_int_equal(s->guard.hang_standstill_s, 0);
    assert_int_equal(s->guard.hang_start_s, 5400);
    parsed_free(p);
    p = good_file("budget: {warn_at: []}\n", "    canary: off\n    breaker: no\n"
                                             "    quarantine: false\n    hang: off\n");
    s = p->spec->stages[0];
    assert_int_equal(p->spec->warn_at_n, 0);
    const struct spec_guard none = {0};
    assert_memory_equal(&s->guard, &none, sizeof none);
    parsed_free(p);
    p = good_file("", "    breaker: {same: 12}\n"); /* 'of' is no less by itself */
    assert_int_equal(p->spec->stages[0]->guard.breaker_of, 12);
    parsed_free(p);
    p = good_file("", "    breaker: {of: 64}\n    canary: 1000\n    quarantine: 1000\n");
    assert_int_equal(p->spec->stages[0]->guard.breaker_same, 3);
    assert_int_equal(p->spec->stages[0]->guard.breaker_of, BREAKER_OF_MAX);
    parsed_free(p);
}

static void test_spec_guard__retries_change_what_the_file_says(void **state)
{
    (void)state;
    struct parsed *p = good_file(
        "retry:\n"
        "  - {cause: [capacity, spot_interrupted], times: 50, change: {instance_type: next}}\n"
        "  - {cause: disk_full, times: 2, change: {volume_gb: x2, max: 2000}}\n"
        "  - {cause: oom, change: {instance_type: next, volume_gb: x1.25}}\n"
        "  - {cause: timeout, change: {max_runtime: x1.5, max: 12h}}\n"
        "  - {cause: internal, times: 4}\n",
        "    retry:\n"
        "      - {cause: timeout, change: none}\n"
        "      - {cause: disk_full, times: 7}\n");
    const struct spec_retry *r = p->spec->stages[0]->retry;
    assert_int_equal(r[CAUSE_CAPACITY].change.next, NEXT_AROUND);
    assert_int_equal(r[CAUSE_SPOT_INTERRUPTED].change.next, NEXT_AROUND);
    assert_int_equal(r[CAUSE_OOM].change.next, NEXT_UP);
    assert_int_equal(r[CAUSE_OOM].change.volume_x100, 125);
    assert_int_equal(r[CAUSE_DISK_FULL].change.volume_x100, 200);
    assert_int_equal(r[CAUSE_DISK_FULL].change.volume_max_gb, 2000);
    assert_int_equal(r[CAUSE_DISK_FULL].times, 7); /* the stage's row goes over what it says only */
    assert_true(r[CAUSE_TIMEOUT].set_change);
    assert_int_equal(r[CAUSE_TIMEOUT].change.runtime_x100, 0);
    assert_true(r[CAUSE_INTERNAL].set);
    assert_false(r[CAUSE_INTERNAL].set_change);
    parsed_free(p);
    p = good_file("retry: [{cause: timeout, change: {max_runtime: x1.5, max: 12h}}]\n", "");
    assert_int_equal(p->spec->stages[0]->retry[CAUSE_TIMEOUT].change.runtime_x100, 150);
    assert_int_equal(p->spec->stages[0]->retry[CAUSE_TIMEOUT].change.runtime_max_s, 43200);
    parsed_free(p);
}

static const struct mistake {
    const char *top, *stage, *code;
    int line;
    const char *word;
} mistakes[] = {
    {"limits: {weight: 0}\n", "", "range", 2, "0"},
    {"limits: {weight: 10001}\n", "", "range", 2, "10001"},
    {"limits: {weight: heavy}\n", "", "type", 2, "whole number"},
    {"limits: {wait: 5}\n", "", "unknown_key", 2, "'wait'"},
    {"budget: {warn_at: 50%}\n", "", "type", 2, "list"},
    {"budget: {warn_at: [50]}\n", "", "type", 2, "percentage"},
    {"budget: {warn_at: [0%]}\n", "", "range", 2, "before anything"},
    {"budget: {warn_at: [101%]}\n", "", "range", 2, "101%"},
    {"budget: {warn_at: [50%, 80%, 50.0%]}\n", "", "duplicate", 2, "50.0%"},
    {"budget: {warn_at: [1%, 2%, 3%, 4%, 5%, 6%, 7%, 8%, 9%]}\n", "", "limit", 2, "9"},
    {"canary: 3\n", "", "unknown_key", 2, "'canary'"},
    {"", "    limits: 4\n", "type", 8, "a map"},
    {"", "    limits: {parts: 0}\n", "range", 8, "0"},
    {"", "    limits: {priority: 4}\n", "unknown_key", 8, "'priority'"},
    {"", "    canary: 0\n", "range", 8, "0"},
    {"", "    canary: 1001\n", "range", 8, "1001"},
    {"", "    canary: on\n", "type", 8, "'on'"},
    {"", "    canary: few\n", "type", 8, "'few'"},
    {"", "    canary: [3]\n", "type", 8, "whole number"},
    {"", "    quarantine: -1\n", "range", 8, "-1"},
    {"", "    breaker: 3\n", "type", 8, "a map"},
    {"", "    breaker: {same: 0}\n", "range", 8, "0"},
    {"", "    breaker: {same: 5, of: 4}\n", "range", 8, "among 4"},
    {"", "    breaker: {same: 3, of: 65}\n", "range", 8, "65"},
    {"", "    breaker: {same: x, of: 9}\n", "type", 8, "whole number"},
    {"", "    breaker: {k: 3}\n", "unknown_key", 8, "'k'"},
    {"", "    hang: 5m\n", "type", 8, "a map"},
    {"", "    hang: {silent: 5}\n", "type", 8, "duration"},
    {"", "    hang: {silent: 0s}\n", "range", 8, "'0s'"},
    {"", "    hang: {start: 29d}\n", "range", 8, "'29d'"},
    {"", "    hang: {stalled: 5m}\n", "unknown_key", 8, "'stalled'"},
    {"", "    twin: on\n", "unknown_key", 8, "'twin'"},
    {"retry: [{cause: oom, change: next}]\n", "", "type", 2, "a map"},
    {"retry: [{cause: oom, change: {instance_type: ml.m5.large}}]\n", "", "value", 2, "ml.m5"},
    {"retry: [{cause: oom, change: {memory: x2}}]\n", "", "unknown_key", 2, "'memory'"},
    {"retry: [{cause: disk_full, change: {volume_gb: 2}}]\n", "", "type", 2, "factor"},
    {"retry: [{cause: disk_full, change: {volume_gb: x}}]\n", "", "type", 2, "factor"},
    {"retry: [{cause: disk_full, change: {volume_gb: x1}}]\n", "", "range", 2, "x1"},
    {"retry: [{cause: disk_full, change: {volume_gb: x0.5}}]\n", "", "range", 2, "x0.5"},
    {"retry: [{cause: disk_full, change: {volume_gb: x100.01}}]\n", "", "range", 2, "x100.01"},
    {"retry: [{cause: disk_full, change: {volume_gb: x1.001}}]\n", "", "type", 2, "factor"},
    {"retry: [{cause: disk_full, change: {volume_gb: x-2}}]\n", "", "type", 2, "factor"},
    {"retry: [{cause: disk_full, change: {volume_gb: x2, max: 20000}}]\n", "", "range", 2, "20000"},
    {"retry: [{cause: disk_full, change: {volume_gb: x2, max: 2h}}]\n", "", "type", 2, "'max'"},
    {"retry: [{cause: timeout, change: {max_runtime: x2, max: 200}}]\n", "", "type", 2, "'max'"},
    {"retry: [{cause: timeout, change: {max_runtime: x2, max: 29d}}]\n", "", "range", 2, "29d"},
    {"retry: [{cause: oom, change: {max: 200}}]\n", "", "required", 2, "nothing"},
};

static void test_spec_guard__an_unknown_key_is_guessed_by_how_it_begins(void **state)
{
    (void)state;
    struct parsed *p = parse_file("", "    retries: {}\n");
    assert_int_equal(p->faults.n, 1);
    assert_string_equal(p->faults.at[0].hint, "did you mean 'retry'?"); /* 'metrics' is nearer */
    parsed_free(p);
}

static void test_spec_guard__one_mistake_one_fault(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        const struct mistake *m = &mistakes[i];
        struct parsed *p = parse_file(m->top, m->stage);
        if (p->faults.n != 1 || strcmp(p->faults.at[0].code, m->code) != 0 ||
            p->faults.at[0].pos.line != m->line || p->faults.at[0].pos.column < 1 ||
            strstr(p->faults.at[0].message, m->word) == NULL || p->faults.at[0].hint[0] == '\0') {
            (void)printf("# expected one %s at line %d with '%s' for row %zu\n", m->code, m->line,
                         m->word, i);
            show(&p->faults);
            fail();
        }
        parsed_free(p);
    }
}

static void test_spec_guard__the_stored_form_keeps_it(void **state)
{
    (void)state;
    struct parsed *p = good_file("limits: {weight: 7}\n"
                                 "budget: {total: 9 USD, warn_at: [20%, 99.9999%]}\n"
                                 "retry: [{cause: oom, change: {instance_type: next}},\n"
                                 "  {cause: timeout, change: {max_runtime: x1.5, max: 3h}},\n"
                                 "  {cause: disk_full, change: {volume_gb: x3, max: 100}},\n"
                                 "  {cause: network, times: 1}]\n",
                                 "    limits: {parts: 9}\n    canary: 2\n    quarantine: off\n"
                                 "    breaker: {same: 2, of: 4}\n    hang: {start: 9m}\n");
    AUTO_JSON json_t *v = spec_to_json(p->spec);
    struct spec *back = NULL;
    struct err err = ERR_INIT;
    assert_true(spec_from_json(v, &p->arena, &back, &err));
    const struct spec_stage *was = p->spec->stages[0];
    const struct spec_stage *is = back->stages[0];
    assert_int_equal(back->weight, 7);
    assert_int_equal(back->warn_at_n, 2);
    assert_memory_equal(back->warn_at_ppm, p->spec->warn_at_ppm, sizeof back->warn_at_ppm[0] * 2);
    assert_int_equal(is->parts_limit, 9);
    assert_memory_equal(&is->guard, &was->guard, sizeof is->guard);
    assert_memory_equal(is->retry, was->retry, sizeof is->retry);
    AUTO_JSON json_t *again = spec_to_json(back);
    assert_true(json_equal(v, again));
    parsed_free(p);
}

/* A value of the stored form changed: it is refused, not believed. */
static void refuse_changed(const json_t *good, struct arena *a, const char *key, json_t *value,
                           json_t *(*of)(json_t *v))
{
    AUTO_JSON json_t *v = json_deep_copy(good);
    (void)json_object_set_new(of(v), key, value);
    struct spec *back = NULL;
    struct err err = ERR_INIT;
    assert_false(spec_from_json(v, a, &back, &err));
    assert_int_equal(err.code, ERR_INTERNAL);
}

static json_t *top_of(json_t *v)
{
    return v;
}

static json_t *guard_of(json_t *v)
{
    return json_object_get(json_array_get(json_object_get(v, "stages"), 0), "guard");
}

static json_t *change_of(json_t *v)
{
    const json_t *retry = json_object_get(json_array_get(json_object_get(v, "stages"), 0), "retry");
    return json_object_get(json_object_get(retry, "oom"), "change");
}

static void test_spec_guard__a_stored_form_out_of_bounds_is_refused(void **state)
{
    (void)state;
    struct parsed *p = good_file("retry: [{cause: oom, change: {instance_type: next}}]\n", "");
    AUTO_JSON json_t *v = spec_to_json(p->spec);
    refuse_changed(v, &p->arena, "weight", json_integer(0), top_of);
    refuse_changed(v, &p->arena, "warn_at_ppm", json_pack("[i,i]", 800000, 500000), top_of);
    refuse_changed(v, &p->arena, "warn_at_ppm", json_pack("[i]", 1000001), top_of);
    refuse_changed(v, &p->arena, "warn_at_ppm", json_pack("[s]", "50%"), top_of);
    refuse_changed(v, &p->arena, "canary", json_integer(-1), guard_of);
    refuse_changed(v, &p->arena, "breaker_of", json_integer(BREAKER_OF_MAX + 1), guard_of);
    refuse_changed(v, &p->arena, "hang_start_s", json_string("9m"), guard_of);
    refuse_changed(v, &p->arena, "next", json_integer(3), change_of);
    refuse_changed(v, &p->arena, "volume_x100", json_integer(-1), change_of);
    parsed_free(p);
}

static void test_spec_guard__a_spec_stored_before_reads_as_it_was_meant(void **state)
{
    (void)state;
    struct parsed *p = good_file("retry: [{cause: oom, times: 2}]\n", "");
    AUTO_JSON json_t *v = spec_to_json(p->spec);
    (void)json_object_del(v, "weight");
    (void)json_object_del(v, "warn_at_ppm");
    json_t *stage = json_array_get(json_object_get(v, "stages"), 0);
    (void)json_object_del(stage, "guard");
    (void)json_object_del(stage, "parts_limit");
    struct spec *back = NULL;
    struct err err = ERR_INIT;
    assert_true(spec_from_json(v, &p->arena, &back, &err));
    const struct spec_guard none = {0};
    assert_memory_equal(&back->stages[0]->guard, &none, sizeof none);
    assert_int_equal(back->stages[0]->parts_limit, -1);
    assert_int_equal(back->weight, 100);
    assert_int_equal(back->warn_at_n, 0);
    assert_false(
        back->stages[0]->retry[CAUSE_OOM].set_change); /* the cause's own change, as then */
    parsed_free(p);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_guard__silence_gives_the_defaults),
        cmocka_unit_test(test_spec_guard__what_is_said_is_meant),
        cmocka_unit_test(test_spec_guard__retries_change_what_the_file_says),
        cmocka_unit_test(test_spec_guard__an_unknown_key_is_guessed_by_how_it_begins),
        cmocka_unit_test(test_spec_guard__one_mistake_one_fault),
        cmocka_unit_test(test_spec_guard__the_stored_form_keeps_it),
        cmocka_unit_test(test_spec_guard__a_stored_form_out_of_bounds_is_refused),
        cmocka_unit_test(test_spec_guard__a_spec_stored_before_reads_as_it_was_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
