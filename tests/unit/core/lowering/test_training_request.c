/* Aim: the request of an attempt is exactly what SageMaker is to get, the same bytes each time, and
 * its identity is the hash of all but itself. Method: the example campaign against the whole text;
 * the hash recomputed here; values at and beyond the API's limits. */
#include "common/hash.h"
#include "core/lowering/training_request.h"
#include "core/spec/spec_expand.h"
#include "core/spec/spec_json.h"
#include "store/leader/lease.h"
#include "tests/unit/core/spec/spec_text.h"

static const struct job_name job = {"drover-c9-download-17-a2-0a1b2c3d"};
static const struct spec_task task = {.campaign_id = 9,
                                      .stage_name = "download",
                                      .task_id = 1234,
                                      .seq = 17,
                                      .uri = "s3://acme-laion/meta/part-00017.parquet",
                                      .size = 1000,
                                      .attempt_n = 2};

static struct training_request_input input_of(const struct spec *s)
{
    return (struct training_request_input){.spec = s,
                                           .stage = s->stages[0],
                                           .task = &task,
                                           .name = &job,
                                           .attempt_id = 5678,
                                           .instance_type = "ml.c5n.18xlarge",
                                           .volume_gb = 450,
                                           .max_runtime_s = 7200,
                                           .install_id = "install-1",
                                           .region = "us-east-1"};
}

static bool lower(const struct training_request_input *in, struct buf *out, char id[HASH_HEX_N])
{
    struct err err = ERR_INIT;
    bool good = training_request_make(in, out, id, &err);
    assert_int_equal(good, err.code == ERR_NONE);
    assert_true(good || err.code == ERR_INVALID);
    return good;
}

/* The request as it must read; %s: the DROVER_REQUEST entry, or nothing. */
#define WANT                                                                                       \
    "{\"TrainingJobName\":\"drover-c9-download-17-a2-0a1b2c3d\",\"AlgorithmSpecification\":{"      \
    "\"TrainingImage\":\"111122223333.dkr.ecr.us-east-1.amazonaws.com/drover-worker@sha256:"       \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\","                          \
    "\"TrainingInputMode\":\"File\",\"ContainerArguments\":[\"download\"]},"                       \
    "\"RoleArn\":\"arn:aws:iam::111122223333:role/drover-worker\",\"HyperParameters\":{"           \
    "\"image_size\":\"256\",\"number_sample_per_shard\":\"10000\","                                \
    "\"output_folder\":\"s3://acme-laion/img/00017/\",\"resize_mode\":\"keep_ratio\","             \
    "\"save_additional_columns\":\"[\\\"punsafe\\\",\\\"similarity\\\"]\","                        \
    "\"url_list\":\"s3://acme-laion/meta/part-00017.parquet\"},\"Environment\":{"                  \
    "\"DROVER_ATTEMPT\":\"5678\",\"DROVER_PART\":\"download/17\","                                 \
    "%s\"DROVER_TASK\":\"1234\"},\"OutputDataConfig\":{"                                           \
    "\"S3OutputPath\":\"s3://acme-laion/img/_sagemaker/\"},\"ResourceConfig\":{"                   \
    "\"InstanceType\":\"ml.c5n.18xlarge\",\"InstanceCount\":1,\"VolumeSizeInGB\":450},"            \
    "\"StoppingCondition\":{\"MaxRuntimeInSeconds\":7200},\"EnableNetworkIsolation\":false,"       \
    "\"ProfilerConfig\":{\"DisableProfiler\":true},\"Tags\":["                                     \
    "{\"Key\":\"drover-install\",\"Value\":\"install-1\"},"                                        \
    "{\"Key\":\"drover-campaign\",\"Value\":\"9\"},{\"Key\":\"drover-stage\",\"Value\":"           \
    "\"download\"},{\"Key\":\"drover-part\",\"Value\":\"17\"},{\"Key\":\"drover-attempt\","        \
    "\"Value\":\"5678\"},{\"Key\":\"cost-center\",\"Value\":\"4711\"}]}"

static struct parsed *example(void)
{
    AUTO_FREE char *text = file_text("deploy/examples/laion-download.yaml");
    struct parsed *p = parse_with(text, &installed);
    assert_true(p->good);
    return p;
}

static void test_lower__the_example_gives_these_bytes(void **state)
{
    (void)state;
    struct parsed *p = example();
    struct training_request_input in = input_of(p->spec);
    AUTO_BUF struct buf out = BUF_INIT(1 << 20);
    char id[HASH_HEX_N];
    assert_true(lower(&in, &out, id));
    AUTO_FREE char *bare = xasprintf(WANT, "");
    char want_id[SHA256_HEX_N];
    hash_sha256_hex(bare, strlen(bare), want_id);
    assert_string_equal(id, want_id);
    AUTO_FREE char *entry = xasprintf("\"DROVER_REQUEST\":\"%s\",", want_id);
    AUTO_FREE char *want = xasprintf(WANT, entry);
    assert_string_equal(buf_cstr(&out), want);
    parsed_free(p);
}

static void test_lower__same_input_same_bytes_after_the_store_too(void **state)
{
    (void)state;
    struct parsed *p = example();
    AUTO_JSON json_t *stored = spec_to_json(p->spec);
    CLEANUP(arena_done)
    struct arena a;
    arena_init(&a, SPEC_ARENA_BYTES);
    struct spec *back;
    struct err err = ERR_INIT;
    assert_true(spec_from_json(stored, &a, &back, &err));
    struct training_request_input one = input_of(p->spec);
    struct training_request_input two = input_of(back);
    AUTO_BUF struct buf x = BUF_INIT(1 << 20);
    AUTO_BUF struct buf y = BUF_INIT(1 << 20);
    char id_x[HASH_HEX_N];
    char id_y[HASH_HEX_N];
    buf_add_cstr(&y, "what stood there before");
    assert_true(lower(&one, &x, id_x));
    assert_true(lower(&two, &y, id_y));
    assert_string_equal(buf_cstr(&x), buf_cstr(&y));
    assert_string_equal(id_x, id_y);
    two.attempt_id++;
    assert_true(lower(&two, &y, id_y));
    assert_string_not_equal(id_x, id_y);
    parsed_free(p);
}

static void test_lower__a_users_image_with_network_and_command(void **state)
{
    (void)state;
    struct parsed *p =
        parse("name: c\nsecurity: {vpc: {subnets: [subnet-1], security_groups: [sg-1, sg-2]}}\n"
              "stages:\n  - name: train\n    image: r/x:1\n    command: [\"--part\", \"{part}\"]\n"
              "    output: \"s3://out/{stem}/\"\n    network_isolation: true\n"
              "    environment: {B: \"{attempt}\", A: \"{{x}}\", E: \"\\u00fc\"}\n"
              "    instance_type: ml.m5.large\n    instance_count: 4\n");
    show(&p->faults);
    assert_true(p->good);
    struct training_request_input in = input_of(p->spec);
    AUTO_BUF struct buf out = BUF_INIT(1 << 20);
    char id[HASH_HEX_N];
    assert_true(lower(&in, &out, id));
    AUTO_JSON json_t *v = NULL;
    struct err err = ERR_INIT;
    assert_true(json_parse(buf_str(&out), 1 << 20, &v, &err));
    AUTO_JSON json_t *want =
        json_pack("{s:[s,s],s:[s]}", "SecurityGroupIds", "sg-1", "sg-2", "Subnets", "subnet-1");
    assert_true(json_equal(json_object_get(v, "VpcConfig"), want));
    assert_true(json_is_true(json_object_get(v, "EnableNetworkIsolation")));
    assert_null(json_object_get(v, "HyperParameters"));
    AUTO_FREE char *arguments = json_text(
        json_object_get(json_object_get(v, "AlgorithmSpecification"), "ContainerArguments"));
    assert_string_equal(arguments, "[\"--part\",\"17\"]");
    AUTO_FREE char *place = json_text(json_object_get(v, "OutputDataConfig"));
    assert_string_equal(place, "{\"S3OutputPath\":\"s3://out/part-00017/\"}");
    const json_t *env = json_object_get(v, "Environment");
    assert_string_equal(json_string_value(json_object_get(env, "A")), "{x}");
    assert_string_equal(json_string_value(json_object_get(env, "B")), "2");
    assert_string_equal(json_string_value(json_object_get(env, "DROVER_REQUEST")), id);
    /* the identity is the hash of the rest, byte for byte */
    AUTO_FREE char *entry = xasprintf("\"DROVER_REQUEST\":\"%s\",", id);
    const char *at = strstr(buf_cstr(&out), entry);
    assert_non_null(at);
    AUTO_FREE char *rest =
        xasprintf("%.*s%s", (int)(at - buf_cstr(&out)), buf_cstr(&out), at + strlen(entry));
    char again[SHA256_HEX_N];
    hash_sha256_hex(rest, strlen(rest), again);
    assert_string_equal(again, id);
    assert_true(strstr(rest, "\"A\":") < strstr(rest, "\"B\":"));
    parsed_free(p);
}

/* One hyperparameter of n bytes after expansion. */
static bool lower_with_value(size_t n)
{
    struct parsed *p = example();
    AUTO_FREE char *big = xmalloc(n + 1);
    memset(big, 'x', n);
    big[n] = '\0';
    p->spec->stages[0]->hyperparameters[2].value = big;
    struct training_request_input in = input_of(p->spec);
    AUTO_BUF struct buf out = BUF_INIT(1 << 20);
    char id[HASH_HEX_N];
    bool good = lower(&in, &out, id);
    parsed_free(p);
    return good;
}

static void test_lower__limits_of_the_api(void **state)
{
    (void)state;
    assert_true(lower_with_value(2500));
    assert_false(lower_with_value(2501));
    assert_false(lower_with_value(100000));
    struct parsed *p = example();
    struct spec_stage *s = p->spec->stages[0];
    struct training_request_input in = input_of(p->spec);
    AUTO_BUF struct buf out = BUF_INIT(1 << 20);
    char id[HASH_HEX_N] = "kept";
    s->hyperparameters[2].value = "{nobody}";
    assert_false(lower(&in, &out, id));
    assert_string_equal(id, "kept");
    s->hyperparameters[2].value = "256";
    s->environment[0] = (struct spec_pair){"A", "x"};
    s->environment_n = 98;
    assert_false(lower(&in, &out, id));
    s->environment_n = 0;
    s->output = "{uri}/";
    assert_false(lower(&in, &out, id));
    s->output = NULL;
    assert_false(lower(&in, &out, id));
    s->output = "s3://acme-laion/img/{part}/";
    AUTO_BUF struct buf small = BUF_INIT(100);
    assert_false(lower(&in, &small, id));
    assert_true(lower(&in, &out, id));
    parsed_free(p);
}

/* The object `key` of a request made with this run time and keep-alive. */
static json_t *lowered(const struct training_request_input *in)
{
    AUTO_BUF struct buf out = BUF_INIT(1 << 20);
    char id[HASH_HEX_N];
    assert_true(lower(in, &out, id));
    json_t *v = json_loads(buf_cstr(&out), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(v);
    return v;
}

static json_int_t field_of(const json_t *v, const char *object, const char *key)
{
    const json_t *n = json_object_get(json_object_get(v, object), key);
    return json_is_integer(n) ? json_integer_value(n) : -1;
}

static void test_lower__keep_alive_stands_in_the_resources_only_when_asked_for(void **state)
{
    (void)state;
    struct parsed *p = example();
    struct training_request_input in = input_of(p->spec);
    AUTO_JSON json_t *none = lowered(&in);
    assert_int_equal(field_of(none, "ResourceConfig", "KeepAlivePeriodInSeconds"), -1);
    assert_null(json_object_get(none, "EnableManagedSpotTraining"));
    assert_int_equal(field_of(none, "StoppingCondition", "MaxWaitTimeInSeconds"), -1);
    in.keep_alive_s = 180;
    AUTO_JSON json_t *kept = lowered(&in);
    assert_int_equal(field_of(kept, "ResourceConfig", "KeepAlivePeriodInSeconds"), 180);
    parsed_free(p);
}

static void test_lower__spot_waits_at_least_as_long_as_it_may_run(void **state)
{
    (void)state;
    struct parsed *p = parse(
        "name: c\nstages:\n  - name: train\n    image: r/x:1\n    instance_type: ml.m5.large\n"
        "    spot: true\n    resumable: true\n");
    assert_true(p->good);
    static const int64_t rows[][2] = {
        {1, 3601}, {3600, 7200}, {36000, 72000}, {1300000, 2419200}, {2419200, 2419200}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct training_request_input in = input_of(p->spec);
        in.max_runtime_s = rows[i][0];
        AUTO_JSON json_t *v = lowered(&in);
        assert_true(json_is_true(json_object_get(v, "EnableManagedSpotTraining")));
        assert_int_equal(field_of(v, "StoppingCondition", "MaxRuntimeInSeconds"), rows[i][0]);
        assert_int_equal(field_of(v, "StoppingCondition", "MaxWaitTimeInSeconds"), rows[i][1]);
        assert_int_equal(field_of(v, "ResourceConfig", "KeepAlivePeriodInSeconds"), -1);
    }
    parsed_free(p);
}

static const char *text_of(const json_t *v, const char *object, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(v, object), key));
    return text != NULL ? text : "";
}

#define COPIES_TO(place)                                                                           \
    "worker: copy\n    from: s3://acme/in/*\n    to: \"s3://" place "{file_name}\""
#define WORKERS COPIES_TO("acme/out/")
/* The file's own key wins; SageMaker's uploads have it, and our worker, but no image of others.
 * droverd's is for what is written into its bucket. */
static void test_lower__the_worker_is_told_the_key_of_its_uploads(void **state)
{
    (void)state;
    static const struct {
        const char *bucket, *campaign, *stage, *runs, *key, *told;
    } rows[] = {
        {NULL, "", "", WORKERS, "", ""},
        {"alias/bucket", "", "", WORKERS, "alias/bucket", "alias/bucket"},
        {"alias/bucket", "alias/file", "", WORKERS, "alias/file", "alias/file"},
        {"alias/bucket", "alias/file", "alias/own", WORKERS, "alias/own", "alias/own"},
        {NULL, "", "alias/own", WORKERS, "alias/own", "alias/own"},
        {"alias/bucket", "", "", COPIES_TO("acme2/out/"), "", ""}, /* not droverd's bucket */
        {"alias/bucket", "alias/file", "", COPIES_TO("acme2/out/"), "alias/file", "alias/file"},
        {"alias/bucket", "", "", "image: r/x:1", "", ""},
        {"alias/bucket", "alias/file", "", "image: r/x:1", "alias/file", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct spec_defaults d = defaults;
        d.bucket_kms_key = rows[i].bucket;
        AUTO_FREE char *text = xasprintf(
            "name: c\nsecurity: {encrypt_traffic: false%s%s}\nstages:\n  - name: s\n"
            "    instance_type: ml.m5.large\n    %s\n%s%s\n",
            rows[i].campaign[0] != '\0' ? ", output_kms_key: " : "", rows[i].campaign, rows[i].runs,
            rows[i].stage[0] != '\0' ? "    output_kms_key: " : "", rows[i].stage);
        struct parsed *p = parse_with(text, &d);
        show(&p->faults);
        assert_true(p->good);
        AUTO_JSON json_t *stored = spec_to_json(p->spec);
        struct spec *back;
        assert_true(spec_from_json(stored, &p->arena, &back, NULL));
        struct training_request_input in = input_of(back);
        AUTO_JSON json_t *v = lowered(&in);
        assert_string_equal(text_of(v, "OutputDataConfig", "KmsKeyId"), rows[i].key);
        assert_string_equal(text_of(v, "Environment", "DROVER_OUTPUT_KMS_KEY"), rows[i].told);
        parsed_free(p);
    }
}

/* env variables and a key of n bytes. */
static struct parsed *with_room(int env, size_t n)
{
    AUTO_BUF struct buf b = BUF_INIT(65536);
    buf_add_cstr(&b, "name: c\nstages:\n  - name: s\n    instance_type: ml.m5.large\n    " WORKERS
                     "\n    environment:\n");
    for (int i = 0; i < env; i++) {
        buf_addf(&b, "      E%d: x\n", i);
    }
    buf_add_cstr(&b, "    output_kms_key: ");
    for (size_t i = 0; i < n; i++) {
        buf_add_cstr(&b, "k");
    }
    buf_add_cstr(&b, "\n");
    return parse(buf_cstr(&b));
}

/* A file that leaves none is refused. One of an earlier release goes on without. */
static void test_lower__a_workers_key_takes_its_room_in_the_environment(void **state)
{
    (void)state;
    static const struct {
        int env;
        size_t key_n;
        bool good;
    } rows[] = {{95, 512, true}, {96, 1, false}, {95, 513, false}, {97, 1, false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct parsed *p = with_room(rows[i].env, rows[i].key_n);
        assert_int_equal(p->good, rows[i].good);
        parsed_free(p);
    }
    struct parsed *p = with_room(95, 512);
    struct spec_stage *s = p->spec->stages[0];
    struct training_request_input in = input_of(p->spec);
    AUTO_JSON json_t *told = lowered(&in);
    assert_int_equal(strlen(text_of(told, "Environment", "DROVER_OUTPUT_KMS_KEY")), 512);
    s->environment[95] = (struct spec_pair){"E95", "x"};
    s->environment_n = 96;
    AUTO_JSON json_t *full = lowered(&in);
    assert_string_equal(text_of(full, "Environment", "DROVER_OUTPUT_KMS_KEY"), "");
    assert_string_equal(text_of(full, "Environment", "E95"), "x");
    parsed_free(p);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lower__the_example_gives_these_bytes),
        cmocka_unit_test(test_lower__same_input_same_bytes_after_the_store_too),
        cmocka_unit_test(test_lower__a_users_image_with_network_and_command),
        cmocka_unit_test(test_lower__limits_of_the_api),
        cmocka_unit_test(test_lower__keep_alive_stands_in_the_resources_only_when_asked_for),
        cmocka_unit_test(test_lower__spot_waits_at_least_as_long_as_it_may_run),
        cmocka_unit_test(test_lower__the_worker_is_told_the_key_of_its_uploads),
        cmocka_unit_test(test_lower__a_workers_key_takes_its_room_in_the_environment),
    };
    return cmocka_run_group_tests_name("lower", tests, NULL, NULL);
}
