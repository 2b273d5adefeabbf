/* Aim: what no request can be made of is known before it is accepted, of a million parts by a look
 * at each. Method: a stage by hand, one limit a row; the time of many short lines. */
#include "common/cleanup.h"
#include "core/lowering/request_check.h"
#include "tests/unit/unit.h"
#include <stdio.h>

static const struct spec campaign = {.name = "c"};

static struct spec_stage a_stage(void)
{
    return (struct spec_stage){.kind = SPEC_KIND_JOBS,
                               .name = "train",
                               .image = "image",
                               .role = "role",
                               .instance_type = {"ml.m5.large"},
                               .instance_type_n = 1,
                               .instance_count = 1,
                               .per_part = 1,
                               .volume_gb = 30,
                               .max_runtime_s = 60,
                               .output = "s3://bucket/{part}/",
                               .hyperparameters = {{"rate", "{lr}"}},
                               .hyperparameters_n = 1,
                               .command = {"--from={uri}"},
                               .command_n = 1};
}

static bool fits(struct request_checks *c, const char *uri, const char *vars, const char *want)
{
    struct err err = ERR_INIT;
    bool good = request_check_part(c, 0, str_of(uri), 1, str_of(vars), &err);
    if (!good && strstr(err.message, want) == NULL) {
        fail_msg("%s, not %s", err.message, want);
    }
    return good;
}

static void test_request_check__a_part_has_each_variable_and_fits(void **state)
{
    (void)state;
    const struct spec_stage s = a_stage();
    struct err err = ERR_INIT;
    char longest[260];
    CLEANUP(request_check_done)
    struct request_checks c;
    request_check_begin(&c, &campaign, &s, NULL);
    assert_true(request_check_stage(&c, &err));
    assert_true(fits(&c, "s3://b/k", "{\"lr\":\"0.1\"}", ""));
    assert_true(fits(&c, "s3://b/k", "{\"x\":\"lr\",\"lr\" : \"0.1\"}", ""));
    assert_true(fits(&c, "s3://b/k", "{\"\\u006cr\":\"0.1\"}", "")); /* read as JSON it has it */
    assert_false(
        fits(&c, "s3://b/k", "", "vars has no 'lr', which a template of stage 'train' names"));
    assert_false(fits(&c, "s3://b/k", "{\"x\":\"lr\"}",
                      "vars has no 'lr', which a template of stage 'train' names"));
    assert_false(fits(&c, "s3://b/k", "{\"alr\":\"lr\",\"lra\":\"1\"}", "vars has no 'lr'"));
    memset(longest, 'u', sizeof longest);
    longest[256 - strlen("--from=")] = '\0';
    assert_true(fits(&c, longest, "{\"lr\":\"0.1\"}", ""));
    longest[256 - strlen("--from=")] = 'u';
    longest[257 - strlen("--from=")] = '\0';
    assert_false(fits(&c, longest, "{\"lr\":\"0.1\"}",
                      "command is 257 bytes long; CreateTrainingJob takes 256"));
}

static void test_request_check__variables_of_the_output_and_what_json_makes_longer(void **state)
{
    (void)state;
    struct spec_stage s = a_stage();
    struct spec_training t = {.quoted = {true}};
    char vars[1400] = "{\"lr\":\"";
    s.training = &t;
    s.done_if = "s3://bucket/{run}/{part}";
    CLEANUP(request_check_done)
    struct request_checks c;
    request_check_begin(&c, &campaign, &s, NULL);
    assert_false(fits(&c, "s3://b/k", "{\"lr\":\"1\"}", "vars has no 'run'"));
    assert_true(fits(&c, "s3://b/k", "{\"lr\":\"1\",\"run\":\"2\"}", ""));
    size_t n = strlen(vars);
    memset(vars + n, '\\', 1000); /* 500 backslashes, which JSON writes as 1000 */
    (void)snprintf(vars + n + 1000, sizeof vars - n - 1000, "\",\"run\":\"2\"}");
    assert_true(fits(&c, "s3://b/k", vars, ""));
    s.hyperparameters[0].value = "{lr}{lr}{lr}";
    request_check_done(&c);
    request_check_begin(&c, &campaign, &s, NULL);
    assert_false(fits(&c, "s3://b/k", vars, "hyperparameter rate is 3002 bytes long as JSON"));
}

/* What a part brings may not fit only in what watches its job, or may be no name of a trial. */
static void test_request_check__what_watches_a_part_and_where_it_is_listed(void **state)
{
    (void)state;
    const struct spec_pair parameter = {"from", "{uri}{uri}"};
    const struct spec_rule rule = {
        .name = "r", .image = "i", .parameters = &parameter, .parameters_n = 1};
    const struct spec_training rules = {.debugger = true, .debug = {.rules = &rule, .rules_n = 1}};
    const struct spec_training trial = {.experiment_trial = "t-{run}"};
    struct spec_stage s = a_stage();
    char uri[] = "s3://b/0123456789012345678901234567890123456789012345678901234567890123456789"
                 "0123456789012345678901234567890123456789012345678901234567890123456789";
    CLEANUP(request_check_done)
    struct request_checks c;
    s.training = &rules;
    request_check_begin(&c, &campaign, &s, NULL);
    assert_false(fits(&c, uri, "{\"lr\":\"1\"}", "from is 294 bytes long"));
    uri[128] = '\0';
    assert_true(fits(&c, uri, "{\"lr\":\"1\"}", ""));
    request_check_done(&c);
    s.training = &trial;
    request_check_begin(&c, &campaign, &s, NULL);
    assert_false(fits(&c, "u", "{\"lr\":\"1\"}", "vars has no 'run'"));
    assert_false(fits(&c, "u", "{\"lr\":\"1\",\"run\":\"a_b\"}", "'t-a_b' is no name"));
    assert_true(fits(&c, "u", "{\"lr\":\"1\",\"run\":\"a-b\"}", ""));
}

static void test_request_check__limits_of_the_stage(void **state)
{
    (void)state;
    struct spec_stage s = a_stage();
    struct spec_training t = {.script = true, .source_dir = "s3://b/s", .entry_point = "t.py"};
    struct err err = ERR_INIT;
    CLEANUP(request_check_done)
    struct request_checks c;
    char keys[96][8];
    for (int i = 0; i < 96; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "k%d", i);
        s.hyperparameters[i] = (struct spec_pair){keys[i], "1"};
    }
    s.training = &t;
    s.hyperparameters_n = 95;
    request_check_begin(&c, &campaign, &s, NULL);
    assert_true(request_check_stage(&c, &err));
    s.hyperparameters_n = 96;
    assert_false(request_check_stage(&c, &err));
    assert_string_equal(err.message, "101 hyperparameters with those of the script; "
                                     "CreateTrainingJob takes 100");
}

/* A million lines are looked at in a second or so: no request is made of what is short. */
static void test_request_check__only_so_many_requests_are_made(void **state)
{
    (void)state;
    const struct spec_stage s = a_stage();
    CLEANUP(request_check_done)
    struct request_checks c;
    request_check_begin(&c, &campaign, &s, NULL);
    int most = c.whole_left;
    for (int i = 0; i < 100000; i++) {
        assert_true(fits(&c, "s3://b/k", "{\"lr\":\"0.1\"}", ""));
    }
    assert_int_equal(c.whole_left, most);
    c.whole_left = 1;
    assert_false(fits(&c, "s3://b/k", "", "vars has no"));
    assert_true(fits(&c, "s3://b/k", "", "")); /* the leader looks again */
}

/* A submit checks every stage before it answers: the stages share the time there is. */
static void test_request_check__many_stages_share_the_requests(void **state)
{
    (void)state;
    struct spec one = {.stages_n = 1}, many = {.stages_n = 32};
    const struct spec_stage s = {.name = "train"};
    struct request_checks a, b;
    request_check_begin(&a, &one, &s, NULL);
    request_check_begin(&b, &many, &s, NULL);
    assert_true(b.whole_left > 0 && b.whole_left * 32 <= a.whole_left);
    request_check_done(&a);
    request_check_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_check__a_part_has_each_variable_and_fits),
        cmocka_unit_test(test_request_check__variables_of_the_output_and_what_json_makes_longer),
        cmocka_unit_test(test_request_check__what_watches_a_part_and_where_it_is_listed),
        cmocka_unit_test(test_request_check__limits_of_the_stage),
        cmocka_unit_test(test_request_check__only_so_many_requests_are_made),
        cmocka_unit_test(test_request_check__many_stages_share_the_requests),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
