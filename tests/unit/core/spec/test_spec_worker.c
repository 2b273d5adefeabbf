/* Aim: the keys of a stage that runs drover-worker reach its job, and a wrong one is one fault with
 * its place and what to write. Method: whole files, one line put in the place of another; the
 * request of the job. */
#include "core/lowering/training_request.h"
#include "core/spec/spec_expand.h"
#include "core/spec/spec_json.h"
#include "spec_text.h"
#include "store/leader/lease.h"

#define INDEX                                                                                      \
    "name: c1\n"                                                                                   \
    "stages:\n"                                                                                    \
    "  - name: index\n"                                                                            \
    "    worker: index\n"                                                                          \
    "    from: \"{bucket}/img/\"\n"                                                                \
    "    output: \"{bucket}/index/\"\n"                                                            \
    "    instance_type: ml.m5.12xlarge\n"                                                          \
    "    max_runtime: 2h\n"                                                                        \
    "    path_prefix: /opt/ml/input/data/data\n"                                                   \
    "    hyperparameters: {sample: 0.01}\n"

#define COUNTED                                                                                    \
    "name: c1\n"                                                                                   \
    "stages:\n"                                                                                    \
    "  - name: download\n"                                                                         \
    "    worker: download\n"                                                                       \
    "    fan_out: {count: 128}\n"                                                                  \
    "    instance_type: ml.c5.18xlarge\n"                                                          \
    "    hyperparameters:\n"                                                                       \
    "      url_list: \"{bucket}/meta/{part:05d}.parquet\"\n"                                       \
    "      output_folder: \"{bucket}/img/{part:05d}/\"\n"

#define COPY                                                                                       \
    "name: c1\n"                                                                                   \
    "stages:\n"                                                                                    \
    "  - name: copy\n"                                                                             \
    "    worker: copy\n"                                                                           \
    "    from: \"https://host/part-[000-127].parquet\"\n"                                          \
    "    to: \"{bucket}/meta/{part:05d}.parquet\"\n"                                               \
    "    instance_type: ml.m5.large\n"                                                             \
    "    max_runtime: 2h\n"

static char *with(const char *base, const char *from, const char *to)
{
    const char *at = strstr(base, from);
    assert_non_null(at);
    return xasprintf("%.*s%s%s", (int)(at - base), base, to, at + strlen(from));
}

static void assert_one_fault(const char *base, const char *from, const char *to, const char *code,
                             int line, const char *word)
{
    AUTO_FREE char *text = with(base, from, to);
    struct parsed *p = parse(text);
    if (p->faults.n != 1 || strcmp(p->faults.at[0].code, code) != 0 ||
        p->faults.at[0].pos.line != line || p->faults.at[0].pos.column == 0 ||
        strstr(p->faults.at[0].message, word) == NULL || p->faults.at[0].hint[0] == '\0') {
        (void)printf("# expected one %s at line %d with '%s' for: %s\n", code, line, word, to);
        show(&p->faults);
        fail();
    }
    parsed_free(p);
}

static const char *hyper(const struct spec_stage *s, const char *key)
{
    for (int i = 0; i < s->hyperparameters_n; i++) {
        if (strcmp(s->hyperparameters[i].key, key) == 0) {
            return s->hyperparameters[i].value;
        }
    }
    return "";
}

static const struct spec_stage *stage_with(struct parsed **ret, const char *base, const char *from,
                                           const char *to)
{
    AUTO_FREE char *text = with(base, from, to);
    *ret = parse(text);
    show(&(*ret)->faults);
    assert_true((*ret)->good);
    return (*ret)->spec->stages[0];
}

/* The stage as the leader reads it from the store. */
static struct spec_stage *stored_stage(struct parsed *p, int i)
{
    AUTO_JSON json_t *stored = spec_to_json(p->spec);
    struct spec *back;
    struct err err = ERR_INIT;
    assert_true(spec_from_json(stored, &p->arena, &back, &err));
    return back->stages[i];
}

static void test_spec_worker__index_gets_its_keys_as_settings(void **state)
{
    (void)state;
    struct parsed *p = parse(INDEX);
    show(&p->faults);
    assert_true(p->good);
    const struct spec_stage *s = stored_stage(p, 0);
    assert_int_equal(s->worker, WORKER_INDEX);
    assert_int_equal(s->fan_out, FAN_OUT_NONE);
    assert_int_equal(s->verify, VERIFY_MANIFEST);
    assert_true(s->resumable);
    assert_string_equal(s->image, "registry/drover-worker:1");
    assert_string_equal(s->output, "s3://acme/index/");
    assert_int_equal(s->hyperparameters_n, 4);
    assert_string_equal(hyper(s, "input"), "s3://acme/img/");
    assert_string_equal(hyper(s, "output_folder"), "s3://acme/index/");
    assert_string_equal(hyper(s, "path_prefix"), "/opt/ml/input/data/data");
    assert_string_equal(hyper(s, "sample"), "0.01");
    parsed_free(p);
}

static void test_spec_worker__the_job_runs_index(void **state)
{
    (void)state;
    struct parsed *p = parse(INDEX);
    assert_true(p->good);
    const struct job_name job = {"drover-c9-index-0-a1-0a1b2c3d"};
    const struct spec_task task = {.campaign_id = 9, .stage_name = "index", .attempt_n = 1};
    const struct training_request_input in = {.spec = p->spec,
                                              .stage = p->spec->stages[0],
                                              .task = &task,
                                              .name = &job,
                                              .attempt_id = 7,
                                              .instance_type = "ml.m5.12xlarge",
                                              .volume_gb = 30,
                                              .max_runtime_s = 7200,
                                              .install_id = "install-1",
                                              .region = "us-east-1"};
    AUTO_BUF struct buf out = BUF_INIT(1 << 20);
    char id[HASH_HEX_N];
    struct err err = ERR_INIT;
    assert_true(training_request_make(&in, &out, id, &err));
    const char *text = buf_cstr(&out);
    assert_non_null(strstr(text, "\"ContainerArguments\":[\"index\"]"));
    assert_non_null(strstr(text, "\"input\":\"s3://acme/img/\""));
    assert_non_null(strstr(text, "\"S3OutputPath\":\"s3://acme/index/_sagemaker/\""));
    parsed_free(p);
}

static void test_spec_worker__counted_parts_have_numbers_and_no_input(void **state)
{
    (void)state;
    struct parsed *p = parse(COUNTED);
    show(&p->faults);
    assert_true(p->good);
    const struct spec_stage *s = stored_stage(p, 0);
    assert_int_equal(s->fan_out, FAN_OUT_COUNT);
    assert_int_equal(s->fan_out_count, 128);
    assert_int_equal(s->verify, VERIFY_MANIFEST);
    parsed_free(p);
}

static void test_spec_worker__several_instances_share_a_part(void **state)
{
    (void)state;
    AUTO_FREE char *text = with(COUNTED, "hyperparameters:\n",
                                "instance_count: 3\n    hyperparameters:\n"
                                "      incremental_mode: incremental\n");
    struct parsed *p = parse(text);
    show(&p->faults);
    assert_true(p->good);
    assert_int_equal(stored_stage(p, 0)->instance_count, 3);
    parsed_free(p);
}

static void test_spec_worker__copy_of_many_files_leaves_their_names_to_the_job(void **state)
{
    (void)state;
    struct parsed *p = parse(COPY);
    show(&p->faults);
    assert_true(p->good);
    const struct spec_stage *s = stored_stage(p, 0);
    assert_int_equal(s->worker, WORKER_COPY);
    assert_int_equal(s->fan_out, FAN_OUT_NONE);
    assert_string_equal(hyper(s, "from"), "https://host/part-[000-127].parquet");
    assert_string_equal(hyper(s, "to"), "s3://acme/meta/{{part:05d}}.parquet");
    assert_string_equal(s->output, "s3://acme/meta/");
    assert_string_equal(hyper(s, "output_folder"), s->output);
    parsed_free(p);
    s = stage_with(&p, COPY, "{bucket}/meta/{part:05d}",
                   "{bucket}/{campaign}/{{x}}/{stem}/{file_name}");
    assert_string_equal(hyper(s, "to"),
                        "s3://acme/{campaign}/{{{{x}}}}/{{stem}}/{{file_name}}.parquet");
    assert_string_equal(s->output, "s3://acme/{campaign}/{{{{x}}}}/");
    parsed_free(p);
    s = stage_with(&p, COPY, "\"https://host/part-[000-127].parquet\"",
                   "[\"s3://a-b/x\", \"http://h/y\"]");
    assert_string_equal(hyper(s, "from"), "s3://a-b/x http://h/y");
    parsed_free(p);
}

static void test_spec_worker__copy_of_a_file_a_job(void **state)
{
    (void)state;
    struct parsed *p;
    const struct spec_stage *s =
        stage_with(&p, COPY, "    from: \"https://host/part-[000-127].parquet\"\n",
                   "    fan_out: {from: \"s3://laion/*.parquet\"}\n");
    assert_string_equal(hyper(s, "from"), "{uri}");
    assert_string_equal(hyper(s, "to"), "s3://acme/meta/{part:05d}.parquet");
    assert_string_equal(s->output, "s3://acme/meta/_copy/{part:05d}/");
    parsed_free(p);
    s = stage_with(&p, COPY, "    from: \"https://host/part-[000-127].parquet\"\n",
                   "    fan_out: {count: 128}\n    from: \"https://host/{part:03d}.parquet\"\n");
    assert_string_equal(hyper(s, "from"), "https://host/{part:03d}.parquet");
    parsed_free(p);
    s = stage_with(&p, COPY, "    to: \"{bucket}/meta/{part:05d}.parquet\"\n",
                   "    fan_out: {count: 128}\n    to: \"{bucket}/meta/{part:05d}/{file_name}\"\n");
    assert_string_equal(hyper(s, "to"), "s3://acme/meta/{part:05d}/{{file_name}}");
    assert_string_equal(s->output, "s3://acme/meta/{part:05d}/");
    parsed_free(p);
}

static void test_spec_worker__the_example_is_read_as_it_stands(void **state)
{
    (void)state;
    AUTO_FREE char *text = file_text("deploy/examples/laion-pipeline.yaml");
    struct parsed *p = parse_with(text, &installed);
    show(&p->faults);
    assert_true(p->good);
    assert_int_equal(p->spec->stages_n, 3);
    assert_int_equal(p->spec->stages[0]->worker, WORKER_COPY);
    assert_int_equal(p->spec->stages[1]->fan_out_count, 128);
    assert_int_equal(p->spec->stages[2]->worker, WORKER_INDEX);
    parsed_free(p);
}

static void test_spec_worker__a_secret_is_a_reference(void **state)
{
    (void)state;
    struct parsed *p;
    const struct spec_stage *s = stage_with(
        &p, COPY, "max_runtime: 2h",
        "auth: {secret: \"arn:aws:ssm:us-east-1:1:parameter/x\", header: X-Key, prefix: \"t \"}");
    assert_string_equal(hyper(s, "secret"), "arn:aws:ssm:us-east-1:1:parameter/x");
    assert_string_equal(hyper(s, "auth_header"), "X-Key");
    assert_string_equal(hyper(s, "auth_prefix"), "t ");
    parsed_free(p);
    p = parse("name: c1\nstages:\n  - {name: c, worker: copy, from: \"https://h/x\", to: "
              "\"s3://acme/x\", instance_type: ml.m5.large, auth: {secret: hunter2}}\n");
    show(&p->faults);
    assert_int_equal(p->faults.n, 1);
    assert_null(strstr(p->faults.at[0].message, "hunter2"));
    assert_string_equal(p->faults.at[0].code, "secret");
    parsed_free(p);
}

static void test_spec_worker__one_mistake_one_fault(void **state)
{
    (void)state;
    static const struct {
        const char *base, *from, *to, *code;
        int line;
        const char *word;
    } rows[] = {
        {INDEX, "    from: \"{bucket}/img/\"\n", "", "required", 3, "from"},
        {INDEX, "    output: \"{bucket}/index/\"\n", "", "required", 3, "output"},
        {INDEX, "{bucket}/img/", "/data/img", "pattern", 5, "/data/img"},
        {INDEX, "{bucket}/index/", "index", "pattern", 6, "'index'"},
        {INDEX, "{bucket}/index/", "{bucket}/{attempt}/", "conflict", 6, "retry"},
        {INDEX, "{sample: 0.01}", "{output_folder: x}", "conflict", 6, "twice"},
        {INDEX, "{sample: 0.01}", "{input: x}", "conflict", 5, "twice"},
        {INDEX, "max_runtime: 2h", "instance_count: 2", "conflict", 8, "worker index"},
        {COPY, "max_runtime: 2h", "instance_count: 2", "conflict", 8, "worker copy"},
        {COUNTED, "hyperparameters:\n",
         "instance_count: 3\n    hyperparameters:\n      incremental_mode: extend\n", "conflict", 9,
         "3 instances"},
        {INDEX, "max_runtime: 2h", "network_isolation: yes", "conflict", 8, "index"},
        {INDEX, "max_runtime: 2h", "verify: artifacts", "conflict", 8, "worker index"},
        {INDEX, "max_runtime: 2h", "command: [x]", "conflict", 8, "command"},
        {INDEX, "max_runtime: 2h", "fan_out: {count: 2}", "conflict", 6, "same place"},
        {COPY, "    from: \"https://host/part-[000-127].parquet\"\n", "", "required", 3, "from"},
        {COPY, "    to: \"{bucket}/meta/{part:05d}.parquet\"\n", "", "required", 3, "to"},
        {COPY, "https://host", "ftp://host", "pattern", 5, "ftp://"},
        {COPY, "https://host/", "https://host/a b", "pattern", 5, "blank"},
        {COPY, "{part:05d}.parquet", "", "pattern", 6, "end in a name"},
        {COPY, "{part:05d}", "{uri}", "pattern", 6, "made of"},
        {COPY, "{part:05d}", "{attempt}", "pattern", 6, "retry"},
        {COPY, "{bucket}/meta", "/meta", "pattern", 6, "/meta"},
        {COPY, "max_runtime: 2h", "auth: {header: X}", "required", 8, "secret"},
        {COPY, "max_runtime: 2h", "auth: token", "type", 8, "a map"},
        {COPY, "max_runtime: 2h", "network_isolation: true", "conflict", 8, "copy"},
        {COPY, "max_runtime: 2h", "path_prefix: /x", "conflict", 8, "path_prefix"},
        {COPY, "max_runtime: 2h", "fan_out: {count: 2}\n    hyperparameters: {to: x}", "conflict",
         6, "twice"},
        {COPY,
         "    from: \"https://host/part-[000-127].parquet\"\n"
         "    to: \"{bucket}/meta/{part:05d}.parquet\"\n",
         "    fan_out: {from: \"{bucket}/in/**.parquet\"}\n    to: \"{bucket}/meta/{file_name}\"\n",
         "conflict", 6, "called alike would write to the same place"},
        {COPY, "{part:05d}.parquet\"", "all\"\n    fan_out: {count: 2}", "conflict", 6,
         "same place"},
        {INDEX, "max_runtime: 2h", "to: \"{bucket}/x\"", "conflict", 8, "does not read 'to'"},
        {COUNTED, "{count: 128}", "{count: 0}", "range", 5, "0"},
        {COUNTED, "{count: 128}", "{count: many}", "type", 5, "whole"},
        {COUNTED, "{count: 128}", "{count: 2, from: \"{bucket}/*\"}", "conflict", 5, "alone"},
        {COUNTED, "meta/{part:05d}", "meta/{stem}", "unknown_variable", 8, "no input"},
        {COUNTED, "img/{part:05d}", "img/all", "conflict", 9, "same place"},
        {COUNTED, "    instance_type", "    from: \"{bucket}/img/\"\n    instance_type", "conflict",
         6, "does not read 'from'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_one_fault(rows[i].base, rows[i].from, rows[i].to, rows[i].code, rows[i].line,
                         rows[i].word);
    }
    (void)printf("# %zu mistakes, one fault each\n", ARRAY_LEN(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_worker__index_gets_its_keys_as_settings),
        cmocka_unit_test(test_spec_worker__the_job_runs_index),
        cmocka_unit_test(test_spec_worker__counted_parts_have_numbers_and_no_input),
        cmocka_unit_test(test_spec_worker__several_instances_share_a_part),
        cmocka_unit_test(test_spec_worker__copy_of_many_files_leaves_their_names_to_the_job),
        cmocka_unit_test(test_spec_worker__copy_of_a_file_a_job),
        cmocka_unit_test(test_spec_worker__a_secret_is_a_reference),
        cmocka_unit_test(test_spec_worker__the_example_is_read_as_it_stands),
        cmocka_unit_test(test_spec_worker__one_mistake_one_fault),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
