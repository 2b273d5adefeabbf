/* Aim: the three requests of an endpoint are exactly what SageMaker is to get, the same bytes from
 * the file and from its stored form; the preview is whole for any file. Method: the example's whole
 * text; one stage with all keys; values at and beyond the API's limits. */
#include "core/lowering/endpoint_request.h"
#include "core/lowering/request_preview.h"
#include "core/spec/spec_json.h"
#include "store/leader/lease.h"
#include "tests/unit/core/spec/spec_text.h"

static const struct job_name name = {"drover-9-deploy-0-a1-0a1b2c3d"};
static const struct spec_defaults in_region = {
    .role = ROLE, .worker_image = "r/w:1", .bucket = "acme", .region = "us-east-1"};

#define FULL                                                                                       \
    "name: c1\ntags: {team: a, cost: \"1\"}\n"                                                     \
    "security: {vpc: {subnets: [subnet-a, subnet-b], security_groups: [sg-1]}}\n"                  \
    "stages:\n"                                                                                    \
    "  - {name: train, image: \"r/x:1\", instance_type: ml.m5.large, output: \"%s\"}\n"            \
    "  - name: deploy\n"                                                                           \
    "    kind: endpoint\n"                                                                         \
    "    needs: train\n"                                                                           \
    "    model: {stage: train, framework: pytorch 1.12, entry_point: inference.py}\n"              \
    "    environment: {B: \"2\", A: \"{{1}}\", SAGEMAKER_REGION: elsewhere}\n"                     \
    "    instance_type: ml.m5.large\n"                                                             \
    "    instance_count: 2\n"                                                                      \
    "    volume_gb: 20\n    download_timeout: 20m\n    startup_timeout: 1h\n"                      \
    "    volume_kms_key: alias/sm\n"                                                               \
    "    network_isolation: on\n"                                                                  \
    "    tags: {team: b}\n"                                                                        \
    "    ttl: 2h\n"

static struct endpoint_request_input input_of(const struct spec *s)
{
    return (struct endpoint_request_input){.spec = s,
                                           .stage = s->stages[spec_stage_find(s, "deploy")],
                                           .campaign_id = 9,
                                           .name = &name,
                                           .attempt_id = 56,
                                           .install_id = "install-1",
                                           .region = "us-east-1"};
}

static struct parsed *full(const char *output)
{
    AUTO_FREE char *text = xasprintf(FULL, output);
    struct parsed *p = parse_with(text, &in_region);
    show(&p->faults);
    assert_true(p->good);
    return p;
}

#define TAGS(more)                                                                                 \
    "\"Tags\":[{\"Key\":\"drover-install\",\"Value\":\"install-1\"},"                              \
    "{\"Key\":\"drover-campaign\",\"Value\":\"9\"},"                                               \
    "{\"Key\":\"drover-stage\",\"Value\":\"deploy\"},{\"Key\":\"drover-part\",\"Value\":\"0\"},"   \
    "{\"Key\":\"drover-attempt\",\"Value\":\"56\"}," more "]}"
#define EXAMPLE_TAGS TAGS("{\"Key\":\"cost-center\",\"Value\":\"4711\"}")
#define NAME         "\"drover-9-deploy-0-a1-0a1b2c3d\""

static void test_endpoint_request__the_example_gives_these_bytes(void **state)
{
    (void)state;
    AUTO_FREE char *text = file_text("deploy/examples/huggingface-endpoint.yaml");
    struct parsed *p = parse_with(text, &in_region);
    assert_true(p->good);
    const struct endpoint_request_input in = input_of(p->spec);
    CLEANUP(endpoint_requests_done)
    struct endpoint_requests r;
    struct err err = ERR_INIT;
    endpoint_requests_init(&r);
    buf_add_cstr(&r.model, "what stood there before");
    assert_true(endpoint_request_make(&in, &r, &err));
    assert_string_equal(
        buf_cstr(&r.model),
        "{\"ModelName\":" NAME ",\"PrimaryContainer\":{\"Image\":"
        "\"763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-inference:"
        "1.9.1-transformers4.12.3-gpu-py38-cu111-ubuntu20.04\",\"ModelDataUrl\":"
        "\"s3://huggingface-models/roberta-base-squad2/model.tar.gz\",\"Environment\":{"
        "\"HF_TASK\":\"question-answering\",\"SAGEMAKER_CONTAINER_LOG_LEVEL\":\"20\","
        "\"SAGEMAKER_PROGRAM\":\"\",\"SAGEMAKER_REGION\":\"us-east-1\","
        "\"SAGEMAKER_SUBMIT_DIRECTORY\":\"\"}},\"ExecutionRoleArn\":"
        "\"arn:aws:iam::111122223333:role/"
        "drover-training\",\"EnableNetworkIsolation\":false," EXAMPLE_TAGS);
    assert_string_equal(buf_cstr(&r.config),
                        "{\"EndpointConfigName\":" NAME ",\"ProductionVariants\":[{"
                        "\"VariantName\":\"AllTraffic\",\"ModelName\":" NAME
                        ",\"InitialInstanceCount\":1,\"InstanceType\":\"ml.g4dn.xlarge\","
                        "\"InitialVariantWeight\":1}]," EXAMPLE_TAGS);
    assert_string_equal(buf_cstr(&r.endpoint),
                        "{\"EndpointName\":" NAME ",\"EndpointConfigName\":" NAME "," EXAMPLE_TAGS);
    parsed_free(p);
}

static void test_endpoint_request__all_keys_also_after_the_store(void **state)
{
    (void)state;
    struct parsed *p = full("s3://acme/o/");
    AUTO_JSON json_t *stored = spec_to_json(p->spec);
    struct spec *back;
    struct err err = ERR_INIT;
    assert_true(spec_from_json(stored, &p->arena, &back, &err));
    const struct spec *of[] = {p->spec, back};
    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        struct endpoint_request_input in = input_of(of[i]);
        CLEANUP(endpoint_requests_done)
        struct endpoint_requests r;
        endpoint_requests_init(&r);
        in.model_data = "s3://acme/o/job/output/model.tar.gz";
        assert_true(endpoint_request_make(&in, &r, &err));
        assert_string_equal(
            buf_cstr(&r.model),
            "{\"ModelName\":" NAME ",\"PrimaryContainer\":{\"Image\":"
            "\"763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference:1.12-cpu-py38\","
            "\"ModelDataUrl\":\"s3://acme/o/job/output/model.tar.gz\",\"Environment\":{"
            "\"A\":\"{1}\",\"B\":\"2\",\"SAGEMAKER_CONTAINER_LOG_LEVEL\":\"20\","
            "\"SAGEMAKER_PROGRAM\":\"inference.py\",\"SAGEMAKER_REGION\":\"elsewhere\","
            "\"SAGEMAKER_SUBMIT_DIRECTORY\":\"/opt/ml/model/code\"}},\"ExecutionRoleArn\":\"" ROLE
            "\",\"VpcConfig\":{\"SecurityGroupIds\":[\"sg-1\"],\"Subnets\":[\"subnet-a\","
            "\"subnet-b\"]},\"EnableNetworkIsolation\":true," TAGS(
                "{\"Key\":\"team\",\"Value\":\"b\"},{\"Key\":\"cost\",\"Value\":\"1\"}"));
        assert_non_null(strstr(buf_cstr(&r.config), "\"InitialInstanceCount\":2,"));
        assert_non_null(strstr(buf_cstr(&r.config),
                               "\"VolumeSizeInGB\":20,\"ModelDataDownloadTimeoutInSeconds\":1200,"
                               "\"ContainerStartupHealthCheckTimeoutInSeconds\":3600}],"
                               "\"KmsKeyId\":\"alias/sm\",\"Tags\":"));
    }
    parsed_free(p);
}

static void assert_refused(const struct endpoint_request_input *in, const char *word)
{
    CLEANUP(endpoint_requests_done)
    struct endpoint_requests r;
    struct err err = ERR_INIT;
    endpoint_requests_init(&r);
    assert_false(endpoint_request_make(in, &r, &err));
    assert_int_equal(err.code, ERR_INVALID);
    if (strstr(err.message, word) == NULL) {
        fail_msg("no '%s' in: %s", word, err.message);
    }
}

static void test_endpoint_request__limits_of_the_api(void **state)
{
    (void)state;
    struct parsed *p = full("s3://acme/o/");
    struct endpoint_request_input in = input_of(p->spec);
    assert_refused(&in, "the model of stage 'train' is not known yet");
    char place[1200] = "s3://acme/";
    memset(place + 10, 'x', sizeof place - 11);
    in.model_data = place;
    assert_refused(&in, "1199 bytes");
    place[1024] = '\0';
    CLEANUP(endpoint_requests_done)
    struct endpoint_requests r;
    struct err err = ERR_INIT;
    endpoint_requests_init(&r);
    assert_true(endpoint_request_make(&in, &r, &err));
    char install[300];
    memset(install, 'i', sizeof install);
    install[sizeof install - 1] = '\0';
    in.install_id = install;
    assert_refused(&in, "install id");
    in.install_id = "i";
    struct spec_stage many = *in.stage;
    for (many.environment_n = 0; many.environment_n < 97; many.environment_n++) {
        many.environment[many.environment_n] =
            (struct spec_pair){arena_printf(&p->arena, "K%d", many.environment_n), "v"};
    }
    in.stage = &many;
    assert_refused(&in, "101 variables");
    many.environment_n = 96;
    assert_true(endpoint_request_make(&in, &r, &err));
    r.config.max = 100;
    assert_false(endpoint_request_make(&in, &r, &err));
    parsed_free(p);
}

static bool preview(const char *output, struct buf *ret, struct err *err)
{
    struct parsed *p = full(output);
    const struct spec_stage *stage = p->spec->stages[spec_stage_find(p->spec, "deploy")];
    buf_reset(ret);
    bool good = request_preview_endpoint(p->spec, stage, "us-east-1", ret, err);
    parsed_free(p);
    return good;
}

static void test_endpoint_request__the_preview_names_the_model_of_the_first_attempt(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT(1 << 20);
    struct err err = ERR_INIT;
    static const char want[] =
        "\"ModelDataUrl\":\"s3://acme/o/1/drover-1-train-0-a1-00000000/output/model.tar.gz\"";
    assert_true(preview("s3://acme/o/{campaign}/", &out, &err));
    assert_non_null(strstr(buf_cstr(&out), want));
    assert_true(preview("s3://acme/o/{campaign}", &out, &err));
    assert_non_null(strstr(buf_cstr(&out), want));
    AUTO_JSON json_t *v = NULL;
    assert_true(json_parse(buf_str(&out), out.n, &v, &err));
    static const char *const operations[] = {"CreateModel", "CreateEndpointConfig",
                                             "CreateEndpoint"};
    assert_int_equal(json_object_size(v), ARRAY_LEN(operations));
    for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
        assert_true(json_is_object(json_object_get(v, operations[i])));
    }
    char place[1001] = "s3://acme/{campaign}/";
    memset(place + 21, 'x', sizeof place - 22);
    assert_false(preview(place, &out, &err)); /* with the job's name it is too long */
    assert_non_null(strstr(err.message, "CreateModel takes 1024"));
}

/* A folder, one object and an archive that is told to be one; else a URL. */
static void test_endpoint_request__data_that_is_no_archive(void **state)
{
    (void)state;
    static const struct {
        const char *data, *want;
    } rows[] = {
        {"\"s3://acme/m/\"", "\"ModelDataSource\":{\"S3DataSource\":{\"S3Uri\":\"s3://acme/m/\","
                             "\"S3DataType\":\"S3Prefix\",\"CompressionType\":\"None\"}}}"},
        {"\"s3://acme/x.pt\", compression: None",
         "\"ModelDataSource\":{\"S3DataSource\":{\"S3Uri\":\"s3://acme/x.pt\",\"S3DataType\":"
         "\"S3Object\",\"CompressionType\":\"None\"}}}"},
        {"\"s3://acme/m.tar.gz\", compression: Gzip",
         "\"ModelDataSource\":{\"S3DataSource\":{\"S3Uri\":\"s3://acme/m.tar.gz\",\"S3DataType\":"
         "\"S3Object\",\"CompressionType\":\"Gzip\"}}}"},
        {"\"s3://acme/m.tar.gz\"", "\"ModelDataUrl\":\"s3://acme/m.tar.gz\"}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *text = xasprintf(
            "name: c1\nstages:\n  - {name: deploy, kind: endpoint, model: {data: %s, image: "
            "\"r/x:1\"}, instance_type: ml.m5.large, ttl: 2h}\n",
            rows[i].data);
        struct parsed *p = parse_with(text, &in_region);
        show(&p->faults);
        assert_true(p->good);
        AUTO_JSON json_t *stored = spec_to_json(p->spec);
        struct spec *back;
        struct err err = ERR_INIT;
        assert_true(spec_from_json(stored, &p->arena, &back, &err));
        const struct spec *of[] = {p->spec, back};
        for (size_t k = 0; k < ARRAY_LEN(of); k++) {
            const struct endpoint_request_input in = input_of(of[k]);
            CLEANUP(endpoint_requests_done)
            struct endpoint_requests r;
            endpoint_requests_init(&r);
            assert_true(endpoint_request_make(&in, &r, &err));
            if (strstr(buf_cstr(&r.model), rows[i].want) == NULL) {
                fail_msg("%s: %s", rows[i].data, buf_cstr(&r.model));
            }
        }
        parsed_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_endpoint_request__the_example_gives_these_bytes),
        cmocka_unit_test(test_endpoint_request__all_keys_also_after_the_store),
        cmocka_unit_test(test_endpoint_request__limits_of_the_api),
        cmocka_unit_test(test_endpoint_request__the_preview_names_the_model_of_the_first_attempt),
        cmocka_unit_test(test_endpoint_request__data_that_is_no_archive),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("endpoint_request", tests, NULL, NULL);
}
