/* Aim: stages differ in exactly the settings that can change a result, by the names of the file.
 * Method: pairs of stages in one file, stored and compared. */
#include "core/spec/spec_json.h"
#include "core/spec/stage_settings.h"
#include "spec_text.h"

#define HEAD "name: m\nstages:\n"
#define TRAIN                                                                                      \
    "  - name: train\n"                                                                            \
    "    image: r/x:1\n"                                                                           \
    "    instance_type: ml.p4d.24xlarge\n"                                                         \
    "    max_runtime: 2h\n"                                                                        \
    "    input: {data: \"s3://bkt/d/\"}\n"                                                         \
    "    hyperparameters: {epochs: 1, lr: 0.1}\n"                                                  \
    "    environment: {TOKEN: one}\n"

/* "key: a|b" of each difference between the two stages of the file. */
static void assert_differ(const char *tail, const char *want)
{
    AUTO_FREE char *text = xasprintf("%s%s  - {name: b, extends: train%s}\n", HEAD, TRAIN, tail);
    struct parsed *p = parse(text);
    show(&p->faults);
    assert_true(p->good);
    AUTO_JSON json_t *v = spec_to_json(p->spec);
    const json_t *stages = json_object_get(v, "stages");
    struct stage_settings *s = xcalloc(2, sizeof *s);
    struct stage_difference *d = xcalloc((size_t)2 * STAGE_SETTINGS_MAX, sizeof *d);
    for (size_t i = 0; i < 2; i++) {
        stage_settings_read(json_array_get(stages, i), &p->arena, &s[i]);
    }
    int equal;
    int n = stage_settings_differ(&s[0], &s[1], d, &equal);
    AUTO_BUF struct buf b = BUF_INIT(4096);
    for (int i = 0; i < n; i++) {
        buf_addf(&b, "%s%s: %s|%s", i > 0 ? "; " : "", d[i].key, d[i].a != NULL ? d[i].a : "-",
                 d[i].b != NULL ? d[i].b : "-");
    }
    assert_string_equal(buf_cstr(&b), want);
    assert_true(equal > 15);
    for (int i = 1; i < s[0].n; i++) {
        assert_true(strcmp(s[0].at[i - 1].key, s[0].at[i].key) < 0);
    }
    free(s);
    free(d);
    parsed_free(p);
}

static void test_stage_settings__what_can_change_a_result(void **state)
{
    (void)state;
    static const struct {
        const char *tail, *want;
    } cases[] = {
        {"", ""},
        {", instance_count: 4", "instance_count: 1|4"},
        {", hyperparameters: {lr: 0.2, warmup: 5}",
         "hyperparameters.lr: 0.1|0.2; hyperparameters.warmup: -|5"},
        {", environment: {TOKEN: two}", "environment.TOKEN: (hidden)|(hidden)"},
        {", environment: {OTHER: two}", "environment.OTHER: -|(hidden)"},
        {", instance_type: [ml.p4d.24xlarge, ml.g5.48xlarge], volume_gb: 99",
         "instance_type: ml.p4d.24xlarge|ml.p4d.24xlarge, ml.g5.48xlarge; volume_gb: 30|99"},
        {", distribution: {mpi: {enabled: true, processes_per_host: 8}}",
         "distribution.mpi: -|true; mpi_processes: 0|8"},
        {", input: {data: {from: \"s3://bkt/e/\", mode: FastFile}}",
         "input.data.from: s3://bkt/d/|s3://bkt/e/; input.data.mode: -|FastFile"},
        /* what changes no result */
        {", needs: train, max_runtime: 3h, output: \"s3://bkt/x/\", retry: [{cause: oom, times: "
         "3}]",
         ""},
        {", metrics: [{name: loss, regex: 'l=([0-9]+)'}], gate: {metric: loss, below: 3}", ""},
        {", tags: {a: b}, warm_pool: {keep_alive: 5m}, allow_failed: 2%", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_differ(cases[i].tail, cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stage_settings__what_can_change_a_result),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
