/* Aim: warm_pool, spot and resumable mean what the file says, a stage's keys go over the
 * campaign's, a wrong one is one fault in its place, and the stored form keeps them; what is stored
 * from before there were such keys reads as it was meant then. Method: one file with two stages,
 * lines added. */
#include "core/spec/spec_json.h"
#include "spec_text.h"

/* A campaign with a stage of our worker and one of a user's image; %s: top, download, train. */
#define FILE_OF                                                                                    \
    "name: c1\n%s"                                                                                 \
    "stages:\n"                                                                                    \
    "  - name: download\n"                                                                         \
    "    worker: download\n"                                                                       \
    "    fan_out: api\n"                                                                           \
    "    instance_type: ml.c5.18xlarge\n"                                                          \
    "    hyperparameters: {url_list: \"{uri}\", output_folder: \"{bucket}/i/{part:05d}/\"}\n%s"    \
    "  - name: train\n"                                                                            \
    "    image: r/x:1\n"                                                                           \
    "    instance_type: ml.m5.large\n%s"

static struct parsed *parse_file(const char *top, const char *download, const char *train)
{
    AUTO_FREE char *text = xasprintf(FILE_OF, top, download, train);
    return parse(text);
}

static struct parsed *good_file(const char *top, const char *download, const char *train)
{
    struct parsed *p = parse_file(top, download, train);
    show(&p->faults);
    assert_true(p->good);
    return p;
}

static void assert_warm(const struct spec_stage *s, int64_t keep_alive_s, musd_t max_idle, bool end)
{
    assert_int_equal(s->warm.keep_alive_s, keep_alive_s);
    assert_int_equal(s->warm.max_idle_cost_musd, max_idle);
    assert_int_equal(s->warm.end_when_queue_empty, end);
}

static void test_spec_warm__silence_leaves_it_to_break_even(void **state)
{
    (void)state;
    struct parsed *p = good_file("", "", "");
    for (int i = 0; i < 2; i++) {
        assert_warm(p->spec->stages[i], SPEC_KEEP_ALIVE_AUTO, -1, true);
        assert_false(p->spec->stages[i]->spot);
    }
    assert_true(p->spec->stages[0]->resumable);
    assert_false(p->spec->stages[1]->resumable);
    parsed_free(p);
}

static void test_spec_warm__a_stages_keys_go_over_the_campaigns(void **state)
{
    (void)state;
    struct parsed *p = good_file(
        "warm_pool: {keep_alive: 15m, max_idle_cost: 25 USD, kill_when_queue_empty: false}\n", "",
        "    warm_pool: {keep_alive: auto, kill_when_queue_empty: yes}\n");
    assert_warm(p->spec->stages[0], 900, INT64_C(25000000), false);
    assert_warm(p->spec->stages[1], SPEC_KEEP_ALIVE_AUTO, INT64_C(25000000), true);
    parsed_free(p);
    p = good_file("warm_pool: {max_idle_cost: 0.50 USD}\n", "    warm_pool: {keep_alive: off}\n",
                  "    warm_pool: {keep_alive: 60m, max_idle_cost: 3 USD}\n");
    assert_warm(p->spec->stages[0], 0, 500000, true);
    assert_warm(p->spec->stages[1], 3600, 3000000, true);
    parsed_free(p);
    p = good_file("", "", "    warm_pool: {keep_alive: 1s}\n");
    assert_warm(p->spec->stages[1], 1, -1, true);
    parsed_free(p);
}

static void test_spec_warm__spot_for_what_resumes(void **state)
{
    (void)state;
    struct parsed *p = good_file("", "    spot: true\n",
                                 "    spot: yes\n    resumable: true\n"
                                 "    warm_pool: {keep_alive: off}\n");
    assert_true(p->spec->stages[0]->spot);
    assert_true(p->spec->stages[1]->spot);
    assert_true(p->spec->stages[1]->resumable);
    parsed_free(p);
    p = good_file("warm_pool: {keep_alive: 15m}\n", "    spot: false\n", "    spot: no\n");
    assert_false(p->spec->stages[0]->spot);
    assert_warm(p->spec->stages[0], 900, -1, true);
    parsed_free(p);
}

static const struct mistake {
    const char *top, *download, *train;
    const char *code;
    int line;
    const char *word;
} mistakes[] = {
    {"warm_pool: 15m\n", "", "", "type", 2, "a map"},
    {"warm_pool: {keepalive: 15m}\n", "", "", "unknown_key", 2, "'keepalive'"},
    {"warm_pool: {keep_alive: 15}\n", "", "", "type", 2, "duration"},
    {"warm_pool: {keep_alive: false}\n", "", "", "type", 2, "duration"},
    {"warm_pool: {keep_alive: [15m]}\n", "", "", "type", 2, "duration"},
    {"warm_pool: {keep_alive: for a while}\n", "", "", "type", 2, "duration"},
    {"warm_pool: {keep_alive: 0s}\n", "", "", "range", 2, "'0s'"},
    {"warm_pool: {keep_alive: 61m}\n", "", "", "range", 2, "'61m'"},
    {"warm_pool: {keep_alive: 3601s}\n", "", "", "range", 2, "3600"},
    {"warm_pool: {max_idle_cost: 25}\n", "", "", "type", 2, "USD"},
    {"warm_pool: {max_idle_cost: -1 USD}\n", "", "", "type", 2, "-1"},
    {"warm_pool: {kill_when_queue_empty: 1}\n", "", "", "type", 2, "boolean"},
    {"", "", "    warm_pool: {keep_alive: 2h}\n", "range", 11, "'2h'"},
    {"", "", "    warm_pool: {}\n    keep_alive: 15m\n", "unknown_key", 12, "'keep_alive'"},
    {"", "", "    spot: maybe\n", "type", 11, "boolean"},
    {"", "", "    resumable: 1\n", "type", 11, "boolean"},
    {"", "", "    spot: true\n", "required", 11, "resume"},
    {"", "", "    spot: true\n    resumable: false\n", "required", 11, "resume"},
    {"", "    resumable: no\n    spot: yes\n", "", "required", 9, "resume"},
    {"warm_pool: {keep_alive: 15m}\n", "    spot: true\n", "", "conflict", 9, "900 s"},
    {"", "    spot: true\n    warm_pool: {keep_alive: 1m}\n", "", "conflict", 8, "60 s"},
};

static void test_spec_warm__one_mistake_one_fault(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        const struct mistake *m = &mistakes[i];
        struct parsed *p = parse_file(m->top, m->download, m->train);
        if (p->faults.n != 1 || strcmp(p->faults.at[0].code, m->code) != 0 ||
            p->faults.at[0].pos.line != m->line ||
            strstr(p->faults.at[0].message, m->word) == NULL || p->faults.at[0].hint[0] == '\0') {
            (void)printf("# expected one %s at line %d with '%s' for row %zu\n", m->code, m->line,
                         m->word, i);
            show(&p->faults);
            fail();
        }
        parsed_free(p);
    }
    struct parsed *p = parse_file("warm_pool: {keep_alive: 15m}\n", "",
                                  "    spot: true\n"); /* both things wrong: both are said */
    assert_int_equal(p->faults.n, 2);
    parsed_free(p);
}

static void test_spec_warm__the_stored_form_keeps_it(void **state)
{
    (void)state;
    struct parsed *p =
        good_file("warm_pool: {keep_alive: 15m, max_idle_cost: 25 USD}\n",
                  "    warm_pool: {keep_alive: auto, kill_when_queue_empty: no}\n    spot: yes\n",
                  "    resumable: true\n");
    AUTO_JSON json_t *v = spec_to_json(p->spec);
    struct spec *back = NULL;
    struct err err = ERR_INIT;
    assert_true(spec_from_json(v, &p->arena, &back, &err));
    assert_warm(back->stages[0], SPEC_KEEP_ALIVE_AUTO, INT64_C(25000000), false);
    assert_warm(back->stages[1], 900, INT64_C(25000000), true);
    assert_true(back->stages[0]->spot && !back->stages[1]->spot);
    assert_true(back->stages[0]->resumable && back->stages[1]->resumable);
    /* Every part of it is needed, and bounded. */
    json_t *stage = json_array_get(json_object_get(v, "stages"), 1);
    json_t *warm = json_object_get(stage, "warm");
    static const int64_t wrong[] = {-2, 3601};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        (void)json_object_set_new(warm, "keep_alive_s", json_integer(wrong[i]));
        assert_false(spec_from_json(v, &p->arena, &back, &err));
        assert_int_equal(err.code, ERR_INTERNAL);
    }
    (void)json_object_set_new(warm, "keep_alive_s", json_integer(3600));
    assert_true(spec_from_json(v, &p->arena, &back, &err));
    (void)json_object_del(stage, "spot");
    assert_false(spec_from_json(v, &p->arena, &back, &err));
    parsed_free(p);
}

static void test_spec_warm__a_spec_stored_before_reads_as_it_was_meant(void **state)
{
    (void)state;
    struct parsed *p = good_file("", "", "");
    AUTO_JSON json_t *v = spec_to_json(p->spec);
    for (size_t i = 0; i < 2; i++) {
        json_t *stage = json_array_get(json_object_get(v, "stages"), i);
        static const char *const keys[] = {"warm", "spot", "resumable"};
        for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
            assert_int_equal(json_object_del(stage, keys[k]), 0);
        }
    }
    struct spec *back = NULL;
    struct err err = ERR_INIT;
    assert_true(spec_from_json(v, &p->arena, &back, &err));
    for (int i = 0; i < 2; i++) { /* no pool was asked for then, and none was reserved for */
        assert_warm(back->stages[i], 0, -1, true);
        assert_false(back->stages[i]->spot);
    }
    parsed_free(p);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_warm__silence_leaves_it_to_break_even),
        cmocka_unit_test(test_spec_warm__a_stages_keys_go_over_the_campaigns),
        cmocka_unit_test(test_spec_warm__spot_for_what_resumes),
        cmocka_unit_test(test_spec_warm__one_mistake_one_fault),
        cmocka_unit_test(test_spec_warm__the_stored_form_keeps_it),
        cmocka_unit_test(test_spec_warm__a_spec_stored_before_reads_as_it_was_meant),
    };
    return cmocka_run_group_tests_name("spec_warm", tests, NULL, NULL);
}
