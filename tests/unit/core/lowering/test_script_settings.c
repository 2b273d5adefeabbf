/* Aim: the hyperparameters and fields that the SageMaker Python SDK adds are added, no more and no
 * less. Method: one stage, one change a row; the request is read back and compared key by key. */
#include "core/lowering/training_request.h"
#include "store/leader/lease.h"
#include "tests/unit/core/spec/spec_text.h"

#define BASE                                                                                       \
    "name: c1\nsecurity: {vpc: {subnets: [subnet-1], security_groups: [sg-1]}}\n"                  \
    "tags: {team: a, cost: b}\n"                                                                   \
    "stages:\n  - name: train\n    instance_type: ml.p3.16xlarge\n    output: \"s3://acme/o/\"\n"

static const struct spec_defaults in_region = {.role = ROLE, .region = "us-east-1"};
static const struct job_name job = {"drover-c9-train-0-a1-0a1b2c3d"};
static const struct spec_task task = {.campaign_id = 9,
                                      .stage_name = "train",
                                      .task_id = 4,
                                      .uri = "s3://acme/a \"b\".parquet",
                                      .attempt_n = 1};

static json_t *request_of(const char *keys, struct err *err)
{
    AUTO_FREE char *text = xasprintf("%s%s", BASE, keys);
    struct parsed *p = parse_with(text, &in_region);
    if (!p->good) {
        show(&p->faults);
    }
    assert_true(p->good);
    const struct training_request_input in = {.spec = p->spec,
                                              .stage = p->spec->stages[0],
                                              .task = &task,
                                              .name = &job,
                                              .attempt_id = 5,
                                              .instance_type = p->spec->stages[0]->instance_type[0],
                                              .volume_gb = 30,
                                              .max_runtime_s = 3600,
                                              .install_id = "i",
                                              .region = "us-east-1"};
    AUTO_BUF struct buf out = BUF_INIT(1 << 20);
    char id[HASH_HEX_N];
    json_t *v = NULL;
    if (training_request_make(&in, &out, id, err)) {
        assert_true(json_parse(buf_str(&out), out.n, &v, err));
    }
    parsed_free(p);
    return v;
}

#define SCRIPT                                                                                     \
    "    framework: pytorch 1.12.0\n    source_dir: \"s3://acme/code/s.tar.gz\"\n"                 \
    "    entry_point: train.py\n"
/* What every script gets. */
#define OF_SCRIPT                                                                                  \
    "\"sagemaker_submit_directory\":\"\\\"s3://acme/code/s.tar.gz\\\"\","                          \
    "\"sagemaker_program\":\"\\\"train.py\\\"\",\"sagemaker_container_log_level\":\"20\","         \
    "\"sagemaker_job_name\":\"\\\"drover-c9-train-0-a1-0a1b2c3d\\\"\","                            \
    "\"sagemaker_region\":\"\\\"us-east-1\\\"\""
#define TYPE "\"sagemaker_instance_type\":\"\\\"ml.p3.16xlarge\\\"\""

static const struct {
    const char *keys, *want; /* the hyperparameters as JSON */
} rows[] = {
    {SCRIPT, "{" OF_SCRIPT "}"},
    {"    image: r/x:1\n    hyperparameters: {a: 1, b: x, c: true, d: \"{uri}\"}\n",
     "{\"a\":\"1\",\"b\":\"x\",\"c\":\"true\",\"d\":\"s3://acme/a \\\"b\\\".parquet\"}"},
    {SCRIPT "    hyperparameters: {a: 1, b: x, c: true, d: \"{uri}\", e: {k: [1, 0.9, 5.0e-5, "
            ""
            "\"{{\"]}, "
            "f: 1e-4, g: 0.50, h: null, i: \"\"}\n",
     "{" OF_SCRIPT ",\"a\":\"1\",\"b\":\"\\\"x\\\"\",\"c\":\"true\","
     "\"d\":\"\\\"s3://acme/a "
     "\\\\\\\"b\\\\\\\".parquet\\\"\",\"e\":\"{\\\"k\\\":[1,0.9,5e-5,\\\"{\\\"]"
     "}\","
     "\"f\":\"1e-4\",\"g\":\"0.50\",\"h\":\"null\",\"i\":\"\\\"\\\"\"}"},
    {SCRIPT "    distribution: {smdistributed: {dataparallel: {enabled: true}}}\n",
     "{" OF_SCRIPT "," TYPE ",\"sagemaker_distributed_dataparallel_enabled\":\"true\","
     "\"sagemaker_distributed_dataparallel_custom_mpi_options\":\"\\\"\\\"\"}"},
    {SCRIPT "    distribution: {kind: smdistributed, mode: data_parallel, mpi_options: "
            "\"-verbose -x NCCL_DEBUG=VERSION {x}\"}\n",
     "{" OF_SCRIPT "," TYPE ",\"sagemaker_distributed_dataparallel_enabled\":\"true\","
     "\"sagemaker_distributed_dataparallel_custom_mpi_options\":"
     "\"\\\"-verbose -x NCCL_DEBUG=VERSION {x}\\\"\"}"},
    {SCRIPT "    distribution: {smdistributed: {dataparallel: {enabled: \"true\"}}}\n",
     "{" OF_SCRIPT "," TYPE ",\"sagemaker_distributed_dataparallel_enabled\":\"\\\"true\\\"\","
     "\"sagemaker_distributed_dataparallel_custom_mpi_options\":\"\\\"\\\"\"}"},
    {SCRIPT "    distribution: {smdistributed: {dataparallel: {enabled: false}}}\n",
     "{" OF_SCRIPT "," TYPE ",\"sagemaker_distributed_dataparallel_enabled\":\"false\"}"},
    {SCRIPT "    distribution: {smdistributed: {modelparallel: {enabled: true, parameters: "
            "{microbatches: 12, ddp: true}}}, mpi: {enabled: true, processes_per_host: 8}}\n",
     "{" OF_SCRIPT "," TYPE ",\"sagemaker_mpi_enabled\":\"true\","
     "\"sagemaker_mpi_num_of_processes_per_host\":\"8\","
     "\"sagemaker_mpi_custom_mpi_options\":\"\\\"\\\"\","
     "\"mp_parameters\":\"{\\\"microbatches\\\":12,\\\"ddp\\\":true}\","
     "\"sagemaker_distributed_dataparallel_enabled\":\"false\"}"},
    {SCRIPT "    distribution: {smdistributed: {dataparallel: {enabled: false}, modelparallel: "
            "{enabled: true}}, mpi: {enabled: true}}\n",
     "{" OF_SCRIPT ",\"sagemaker_mpi_enabled\":\"true\","
     "\"sagemaker_mpi_custom_mpi_options\":\"\\\"\\\"\","
     "\"sagemaker_distributed_dataparallel_enabled\":\"false\"," TYPE "}"},
    {SCRIPT "    distribution: {mpi: {enabled: true, custom_mpi_options: \"-x A=1\"}}\n",
     "{" OF_SCRIPT ",\"sagemaker_mpi_enabled\":\"true\","
     "\"sagemaker_mpi_custom_mpi_options\":\"\\\"-x A=1\\\"\"}"},
    {SCRIPT "    distribution: {pytorchddp: {enabled: true}}\n",
     "{" OF_SCRIPT "," TYPE ",\"sagemaker_pytorch_ddp_enabled\":\"true\"}"},
    {SCRIPT "    distribution: {pytorchddp: {enabled: \"true\"}}\n",
     "{" OF_SCRIPT "," TYPE ",\"sagemaker_pytorch_ddp_enabled\":\"\\\"true\\\"\"}"},
    {SCRIPT "    distribution: {kind: pytorchddp, mode: smddp_rewrite}\n",
     "{" OF_SCRIPT "," TYPE ",\"sagemaker_distributed_dataparallel_enabled\":\"true\","
     "\"sagemaker_distributed_dataparallel_custom_mpi_options\":\"\\\"\\\"\"}"},
    {SCRIPT "    distribution: {torch_distributed: {enabled: true}}\n",
     "{" OF_SCRIPT "," TYPE ",\"sagemaker_torch_distributed_enabled\":\"true\"}"},
    {SCRIPT "    distribution: {pytorchxla: {enabled: true}}\n    compiler: {debug: on}\n",
     "{" OF_SCRIPT ",\"sagemaker_pytorch_xla_multi_worker_enabled\":\"true\","
     "\"sagemaker_training_compiler_enabled\":\"true\","
     "\"sagemaker_training_compiler_debug_mode\":\"true\"}"},
    {SCRIPT "    distribution: {kind: parameter_server}\n    log_level: 10\n",
     "{\"sagemaker_submit_directory\":\"\\\"s3://acme/code/s.tar.gz\\\"\","
     "\"sagemaker_program\":\"\\\"train.py\\\"\",\"sagemaker_container_log_level\":\"10\","
     "\"sagemaker_job_name\":\"\\\"drover-c9-train-0-a1-0a1b2c3d\\\"\","
     "\"sagemaker_region\":\"\\\"us-east-1\\\"\","
     "\"sagemaker_parameter_server_enabled\":\"true\"}"},
};

static void test_script__hyperparameters_are_those_of_the_sdk(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        AUTO_JSON json_t *got = request_of(rows[i].keys, &err);
        AUTO_JSON json_t *want = NULL;
        assert_true(json_parse(str_of(rows[i].want), 1 << 16, &want, &err));
        assert_non_null(got);
        const json_t *hyper = json_object_get(got, "HyperParameters");
        if (!json_equal(hyper, want)) {
            AUTO_FREE char *text = json_text(hyper);
            (void)printf("# row %zu\n# got  %s\n# want %s\n", i, text, rows[i].want);
            fail();
        }
    }
}

/* A field by its path: "A.B.0.C". */
static const json_t *at_path(const json_t *v, const char *path)
{
    struct str rest = str_of(path);
    for (struct str k = str_split(&rest, '.'); k.n > 0 && v != NULL; k = str_split(&rest, '.')) {
        AUTO_FREE char *key = xasprintf(STR_FMT, STR_ARG(k));
        v = json_is_array(v) ? json_array_get(v, (size_t)(key[0] - '0')) : json_object_get(v, key);
    }
    return v;
}

static const struct {
    const char *keys, *path, *want; /* NULL: absent */
} fields[] = {
    {SCRIPT, "AlgorithmSpecification.EnableSageMakerMetricsTimeSeries", "true"},
    {"    image: r/x:1\n", "AlgorithmSpecification.EnableSageMakerMetricsTimeSeries", NULL},
    {SCRIPT, "DebugHookConfig", NULL},
    {SCRIPT, "ProfilerConfig", "{\"DisableProfiler\":true}"},
    {SCRIPT, "InputDataConfig", NULL},
    {SCRIPT, "AlgorithmSpecification.TrainingInputMode", "\"File\""},
    {SCRIPT, "AlgorithmSpecification.TrainingImage",
     "\"763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:1.12.0-gpu-py38\""},
    {SCRIPT, "AlgorithmSpecification.TrainingImageConfig", NULL},
    {"    image: r/x:1\n    vpc: {subnets: [subnet-1], security_groups: [sg-1]}\n"
     "    image_config: {access: Vpc, credentials: "
     "\"arn:aws:lambda:us-east-1:111122223333:function:x\"}\n",
     "AlgorithmSpecification.TrainingImageConfig",
     "{\"TrainingRepositoryAccessMode\":\"Vpc\",\"TrainingRepositoryAuthConfig\":{"
     "\"TrainingRepositoryCredentialsProviderArn\":"
     "\"arn:aws:lambda:us-east-1:111122223333:function:x\"}}"},
    {SCRIPT "    image_config: {access: Platform}\n", "AlgorithmSpecification.TrainingImageConfig",
     "{\"TrainingRepositoryAccessMode\":\"Platform\"}"},
    {SCRIPT "    input_mode: FastFile\n", "AlgorithmSpecification.TrainingInputMode",
     "\"FastFile\""},
    {SCRIPT "    network_isolation: true\n", "HyperParameters.sagemaker_submit_directory",
     "\"\\\"/opt/ml/input/data/code/sourcedir.tar.gz\\\"\""},
    {SCRIPT "    network_isolation: true\n", "InputDataConfig",
     "[{\"ChannelName\":\"code\",\"DataSource\":{\"S3DataSource\":{\"S3DataType\":\"S3Prefix\","
     "\"S3Uri\":\"s3://acme/code/s.tar.gz\",\"S3DataDistributionType\":\"FullyReplicated\"}},"
     "\"InputMode\":\"File\"}]"},
    {SCRIPT "    input: {a: \"{uri}\"}\n", "InputDataConfig.0.DataSource.S3DataSource.S3Uri",
     "\"s3://acme/a \\\"b\\\".parquet\""},
    {SCRIPT "    input: {a: {file_system: fs-0123456789abcdef0, path: /m/x, content_type: a/b}}\n",
     "InputDataConfig.0.ContentType", "\"a/b\""},
    {SCRIPT "    input_mode: Pipe\n    input: {a: {from: \"{uri}\", shuffle_seed: 0}}\n",
     "AlgorithmSpecification.TrainingInputMode", "\"Pipe\""},
    {SCRIPT "    input: {a: {file_system: fs-0123456789abcdef0, path: /m/x, access: rw}}\n",
     "InputDataConfig.0.DataSource",
     "{\"FileSystemDataSource\":{\"FileSystemId\":\"fs-0123456789abcdef0\","
     "\"FileSystemAccessMode\":\"rw\",\"FileSystemType\":\"FSxLustre\","
     "\"DirectoryPath\":\"/m/x\"}}"},
    {SCRIPT "    input: {a: {from: \"s3://acme/m\", type: AugmentedManifestFile, mode: Pipe, "
            "attributes: [x, y], record_wrapper: RecordIO, compression: Gzip, shuffle_seed: 7, "
            "content_type: a/b, spread: ShardedByS3Key}}\n",
     "InputDataConfig.0",
     "{\"ChannelName\":\"a\",\"DataSource\":{\"S3DataSource\":{\"S3DataType\":"
     "\"AugmentedManifestFile\",\"S3Uri\":\"s3://acme/m\",\"S3DataDistributionType\":"
     "\"ShardedByS3Key\",\"AttributeNames\":[\"x\",\"y\"]}},\"ContentType\":\"a/b\","
     "\"CompressionType\":\"Gzip\",\"RecordWrapperType\":\"RecordIO\",\"InputMode\":\"Pipe\","
     "\"ShuffleConfig\":{\"Seed\":7}}"},
    {SCRIPT "    metrics: [{name: l, regex: 'l=(\\d{1,3})'}]\n",
     "AlgorithmSpecification.MetricDefinitions", "[{\"Name\":\"l\",\"Regex\":\"l=(\\\\d{1,3})\"}]"},
    {SCRIPT "    checkpoint: {to: \"s3://acme/c/{part}/\", path: /opt/ml/c}\n", "CheckpointConfig",
     "{\"S3Uri\":\"s3://acme/c/0/\",\"LocalPath\":\"/opt/ml/c\"}"},
    {SCRIPT "    retry_strategy: 30\n", "RetryStrategy", "{\"MaximumRetryAttempts\":30}"},
    {SCRIPT, "StoppingCondition", "{\"MaxRuntimeInSeconds\":3600}"},
    {SCRIPT "    max_pending: 2h\n", "StoppingCondition",
     "{\"MaxRuntimeInSeconds\":3600,\"MaxPendingTimeInSeconds\":7200}"},
    {SCRIPT "    debugger: on\n", "DebugHookConfig",
     "{\"S3OutputPath\":\"s3://acme/o/\",\"CollectionConfigurations\":[]}"},
    {SCRIPT "    profiler: on\n", "ProfilerConfig",
     "{\"S3OutputPath\":\"s3://acme/o/\",\"DisableProfiler\":false}"},
    {SCRIPT
     "    debugger: {to: \"s3://acme/d/{part}/\", path: /opt/t, parameters: {z: \"{attempt}\", "
     "a: 1}, collections: [{name: losses, parameters: {save_interval: 5}}, {name: w}]}\n",
     "DebugHookConfig",
     "{\"S3OutputPath\":\"s3://acme/d/0/\",\"LocalPath\":\"/opt/"
     "t\",\"HookParameters\":{\"a\":\"1\","
     "\"z\":\"1\"},\"CollectionConfigurations\":[{\"CollectionName\":\"losses\","
     "\"CollectionParameters\":{\"save_interval\":\"5\"}},{\"CollectionName\":\"w\"}]}"},
    {SCRIPT "    debugger: {rules: [{name: loss, image: r/x:1, instance_type: ml.t3.medium, "
            "volume_gb: 9, path: /opt/r, to: \"s3://acme/{part:02d}\", parameters: {b: \"{{x}}\", "
            "a: \"{stage}\"}}, {name: b, image: r/y:1}]}\n",
     "DebugRuleConfigurations",
     "[{\"RuleConfigurationName\":\"loss\",\"RuleEvaluatorImage\":\"r/x:1\",\"InstanceType\":"
     "\"ml.t3.medium\",\"VolumeSizeInGB\":9,\"RuleParameters\":{\"a\":\"train\",\"b\":\"{x}\"},"
     "\"LocalPath\":\"/opt/r\",\"S3OutputPath\":\"s3://acme/00\"},"
     "{\"RuleConfigurationName\":\"b\",\"RuleEvaluatorImage\":\"r/y:1\"}]"},
    {SCRIPT "    profiler: {interval_ms: 1000, parameters: {a: b}}\n", "ProfilerConfig",
     "{\"S3OutputPath\":\"s3://acme/o/\",\"ProfilingIntervalInMilliseconds\":1000,"
     "\"ProfilingParameters\":{\"a\":\"b\"},\"DisableProfiler\":false}"},
    {SCRIPT "    profiler: {rules: [{name: b, image: r/y:1}]}\n", "ProfilerRuleConfigurations",
     "[{\"RuleConfigurationName\":\"b\",\"RuleEvaluatorImage\":\"r/y:1\"}]"},
    {SCRIPT, "DebugRuleConfigurations", NULL},
    {SCRIPT, "ProfilerRuleConfigurations", NULL},
    {SCRIPT, "TensorBoardOutputConfig", NULL},
    {SCRIPT "    tensorboard: \"s3://acme/tb/{part}/\"\n", "TensorBoardOutputConfig",
     "{\"S3OutputPath\":\"s3://acme/tb/0/\"}"},
    {SCRIPT "    tensorboard: {to: \"s3://acme/tb\", path: /opt/tb}\n", "TensorBoardOutputConfig",
     "{\"LocalPath\":\"/opt/tb\",\"S3OutputPath\":\"s3://acme/tb\"}"},
    {SCRIPT, "ExperimentConfig", NULL},
    {SCRIPT
     "    experiment: {name: e, trial: \"t-{part:02d}\", display_name: d, run: \"r{attempt}\"}\n",
     "ExperimentConfig",
     "{\"ExperimentName\":\"e\",\"TrialName\":\"t-00\",\"TrialComponentDisplayName\":\"d\","
     "\"RunName\":\"r1\"}"},
    {SCRIPT "    experiment: {trial: t}\n", "ExperimentConfig", "{\"TrialName\":\"t\"}"},
    {SCRIPT "    encrypt_traffic: on\n", "EnableInterContainerTrafficEncryption", "true"},
    {SCRIPT "    infra_check: on\n", "InfraCheckConfig", "{\"EnableInfraCheck\":true}"},
    {SCRIPT "    remote_debug: on\n", "RemoteDebugConfig", "{\"EnableRemoteDebug\":true}"},
    {SCRIPT "    session_tags: on\n", "SessionChainingConfig",
     "{\"EnableSessionTagChaining\":true}"},
    {SCRIPT "    volume_kms_key: 1234-ab\n", "ResourceConfig.VolumeKmsKeyId", "\"1234-ab\""},
    {SCRIPT "    output_kms_key: alias/o\n    output_compression: off\n", "OutputDataConfig",
     "{\"S3OutputPath\":\"s3://acme/o/\",\"KmsKeyId\":\"alias/o\",\"CompressionType\":\"NONE\"}"},
    {SCRIPT "    training_plan: arn:aws:sagemaker:us-east-1:111122223333:training-plan/p\n",
     "ResourceConfig.TrainingPlanArn",
     "\"arn:aws:sagemaker:us-east-1:111122223333:training-plan/p\""},
    {SCRIPT "    entrypoint: [python, -u]\n", "AlgorithmSpecification.ContainerEntrypoint",
     "[\"python\",\"-u\"]"},
    {SCRIPT "    tags: {team: z, run: \"1\"}\n", "Tags",
     "[{\"Key\":\"drover-install\",\"Value\":\"i\"},{\"Key\":\"drover-campaign\",\"Value\":\"9\"},"
     "{\"Key\":\"drover-stage\",\"Value\":\"train\"},{\"Key\":\"drover-part\",\"Value\":\"0\"},"
     "{\"Key\":\"drover-attempt\",\"Value\":\"5\"},{\"Key\":\"team\",\"Value\":\"z\"},"
     "{\"Key\":\"run\",\"Value\":\"1\"},{\"Key\":\"cost\",\"Value\":\"b\"}]"},
};

static void test_script__fields_are_there_only_when_said(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        struct err err = ERR_INIT;
        AUTO_JSON json_t *got = request_of(fields[i].keys, &err);
        assert_non_null(got);
        const json_t *v = at_path(got, fields[i].path);
        AUTO_FREE char *text = v == NULL ? NULL : json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
        bool same = text == NULL || fields[i].want == NULL ? text == NULL && fields[i].want == NULL
                                                           : strcmp(text, fields[i].want) == 0;
        if (!same) {
            (void)printf("# row %zu %s\n# got  %s\n# want %s\n", i, fields[i].path,
                         text == NULL ? "nothing" : text,
                         fields[i].want == NULL ? "nothing" : fields[i].want);
            fail();
        }
    }
}

static void test_script__limits_of_the_api_hold_after_encoding(void **state)
{
    (void)state;
    AUTO_BUF struct buf keys = BUF_INIT(1 << 16);
    struct err err = ERR_INIT;
    buf_add_cstr(&keys, SCRIPT "    hyperparameters: {");
    for (int i = 0; i < 96; i++) {
        buf_addf(&keys, "%sk%d: 1", i == 0 ? "" : ", ", i);
    }
    buf_add_cstr(&keys, "}\n");
    AUTO_JSON json_t *many = request_of(buf_cstr(&keys), &err);
    assert_null(many); /* 96 and the script's five */
    assert_int_equal(err.code, ERR_INVALID);
    assert_non_null(strstr(err.message, "101 hyperparameters"));
    buf_reset(&keys);
    buf_add_cstr(&keys, SCRIPT "    hyperparameters: {a: '");
    for (int i = 0; i < 1250; i++) {
        buf_add_cstr(&keys, "\"");
    }
    buf_add_cstr(&keys, "'}\n");
    struct err too_long = ERR_INIT;
    AUTO_JSON json_t *one = request_of(buf_cstr(&keys), &too_long);
    assert_null(one); /* each quote takes two bytes, and two are around them */
    assert_non_null(strstr(too_long.message, "2502 bytes"));
}

/* What a part brings may be too long only in what watches the job. */
static void test_script__parameters_fit_after_expansion(void **state)
{
    (void)state;
    AUTO_BUF struct buf keys = BUF_INIT(4096);
    buf_add_cstr(&keys, SCRIPT "    debugger: {rules: [{name: a, image: r/x:1, parameters: {k: \"");
    for (int i = 0; i < 20; i++) {
        buf_add_cstr(&keys, "{uri}");
    }
    buf_add_cstr(&keys, "\"}}]}\n");
    struct err err = ERR_INIT;
    AUTO_JSON json_t *got = request_of(buf_cstr(&keys), &err);
    assert_null(got);
    assert_int_equal(err.code, ERR_INVALID);
    assert_non_null(strstr(err.message, "takes 256"));
    struct err named = ERR_INIT;
    AUTO_JSON json_t *uri = request_of(SCRIPT "    experiment: {trial: \"{uri}\"}\n", &named);
    assert_null(uri);
    assert_int_equal(named.code, ERR_INVALID);
    assert_non_null(strstr(named.message, "hyphens"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_script__hyperparameters_are_those_of_the_sdk),
        cmocka_unit_test(test_script__fields_are_there_only_when_said),
        cmocka_unit_test(test_script__limits_of_the_api_hold_after_encoding),
        cmocka_unit_test(test_script__parameters_fit_after_expansion),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("script_settings", tests, NULL, NULL);
}
