/* Aim: each mistake in what only training stages say gives one fault with its place and what to
 * write instead, all of a file at once; what is right is stored and reads back. Method: a campaign
 * with most training keys, one change at a time, a line each. */
#include "core/spec/spec_json.h"
#include "spec_text.h"

#define BASE                                                                                       \
    "name: c1\n" /* line 1 */                                                                      \
    "security: {vpc: {subnets: [subnet-1], security_groups: [sg-1]}}\n"                            \
    "stages:\n"                                                                                    \
    "  - name: train\n"                                                                            \
    "    framework: pytorch 1.12.0\n"                                                              \
    "    source_dir: \"s3://acme/code/sourcedir.tar.gz\"\n"                                        \
    "    entry_point: train.py\n"                                                                  \
    "    instance_type: ml.p3.16xlarge\n"                                                          \
    "    volume_gb: 100\n"                                                                         \
    "    distribution: {smdistributed: {dataparallel: {enabled: true}}}\n" /* line 10 */           \
    "    hyperparameters: {epochs: 3, name: bert}\n"                                               \
    "    input: {train: \"s3://acme/data/\"}\n"                                                    \
    "    metrics: [{name: loss, regex: 'loss=([0-9.]+)'}]\n"                                       \
    "    checkpoint: \"s3://acme/ckpt/\"\n"                                                        \
    "    max_runtime: 4h\n"

struct mistake {
    const char *from, *to, *code;
    int line;
    const char *word; /* in the message or in the hint */
};

static char *with(const char *from, const char *to)
{
    const char *at = strstr(BASE, from);
    if (at == NULL) {
        fail_msg("'%s' is not in the base", from);
    }
    return xasprintf("%.*s%s%s", (int)(at - BASE), BASE, to, at + strlen(from));
}

static const struct mistake mistakes[] = {
    /* framework */
    {"pytorch 1.12.0", "pytorch", "required", 5, "version"},
    {"pytorch 1.12.0", "\"1.12\"", "value", 5, "pytorch 1.8"},
    {"pytorch 1.12.0", "tensorflow 2.9", "value", 5, "tensorflow"},
    {"pytorch 1.12.0", "pytorch 7.1", "value", 5, "7.1"},
    {"pytorch 1.12.0", "pytorch 1.12 py27", "value", 5, "py27"},
    {"pytorch 1.12.0", "pytorch 1.12 1.13 1.14", "value", 5, "1.14"},
    {"pytorch 1.12.0", "huggingface 4.21 pytorch 2.0", "value", 5, "1.11.0"},
    {"pytorch 1.12.0", "huggingface 9.9", "value", 5, "4.21.1"},
    {"pytorch 1.12.0", "1", "type", 5, "quotes"},
    {"framework: pytorch 1.12.0", "framework: pytorch 1.12.0\n    image: r/x:1", "conflict", 5,
     "one image"},
    {"ml.p3.16xlarge\n    volume_gb: 100\n    distribution: {smdistributed: {dataparallel: "
     "{enabled: true}}}",
     "ml.trn1.2xlarge", "conflict", 5, "do not run on ml.trn1.2xlarge"},
    {"framework: pytorch 1.12.0", "framework: pytorch 1.12.0\n    instance_groups: []",
     "unsupported", 6, "counts in several quotas and has several prices"},
    /* image_config */
    {"framework: pytorch 1.12.0", "framework: pytorch 1.12.0\n    image_config: Vpc", "type", 6,
     "access"},
    {"framework: pytorch 1.12.0",
     "framework: pytorch 1.12.0\n    image_config: {access: Platform, credential: x}",
     "unknown_key", 6, "credentials"},
    {"framework: pytorch 1.12.0", "framework: pytorch 1.12.0\n    image_config: {}", "required", 6,
     "access"},
    {"framework: pytorch 1.12.0", "framework: pytorch 1.12.0\n    image_config: {access: Public}",
     "value", 6, "Platform"},
    {"framework: pytorch 1.12.0", "framework: pytorch 1.12.0\n    image_config: {access: Vpc}",
     "conflict", 6, "in ECR"},
    {"framework: pytorch 1.12.0", "image: r/x:1\n    vpc: none\n    image_config: {access: Vpc}",
     "required", 7, "has none"},
    {"framework: pytorch 1.12.0",
     "image: r/x:1\n    image_config: {access: Vpc, credentials: \"arn:aws:iam::1:role/x\"}",
     "pattern", 6, "Lambda"},
    {"framework: pytorch 1.12.0",
     "image: r/x:1\n    image_config: {access: Vpc, credentials: "
     "\"arn:aws:lambda:us-east-1:11112222333:function:x\"}",
     "pattern", 6, "Lambda"},
    {"framework: pytorch 1.12.0",
     "image: r/x:1\n    image_config: {access: Platform, credentials: "
     "\"arn:aws:lambda:us-east-1:111122223333:function:x\"}",
     "conflict", 6, "access: Vpc"},
    /* script */
    {"    source_dir: \"s3://acme/code/sourcedir.tar.gz\"\n", "", "required", 4, "source_dir"},
    {"s3://acme/code/sourcedir.tar.gz", "./train", "unsupported", 6, "drover submit packs"},
    {"s3://acme/code/sourcedir.tar.gz", "s3://acme/code/", "pattern", 6, ".tar.gz"},
    {"s3://acme/code/sourcedir.tar.gz", "s3://A/x.tar.gz", "pattern", 6, "S3"},
    {"    entry_point: train.py\n", "", "required", 4, "entry_point"},
    {"train.py", "/opt/train.py", "pattern", 7, "script"},
    {"train.py", "../train.py", "pattern", 7, "script"},
    {"train.py", "train", "pattern", 7, "script"},
    {"train.py", "train.py\n    command: [x]", "conflict", 8, "toolkit"},
    {"train.py", "train.py\n    log_level: loud", "type", 8, "whole number"},
    {"train.py", "train.py\n    log_level: 51", "range", 8, "51"},
    {"{epochs: 3, name: bert}", "{sagemaker_program: x}", "conflict", 11, "sagemaker_program"},
    {"{epochs: 3, name: bert}", "{mp_parameters: {}}", "conflict", 11, "mp_parameters"},
    {"{epochs: 3, name: bert}", "{lr: .inf}", "range", 11, "infinity"},
    {"{epochs: 3, name: bert}", "{a: {b: [\"{part}\"]}}", "unknown_variable", 11, "{part}"},
    {"{epochs: 3, name: bert}", "[1]", "type", 11, "map"},
    /* instances */
    {"ml.p3.16xlarge", "ml.p4dn.24xlarge", "value", 8, "did you mean ml.p4d.24xlarge?"},
    {"ml.p3.16xlarge", "ml.p3.16xlarg", "value", 8, "ml.p3.16xlarge"},
    {"ml.p3.16xlarge", "ml.zz9.plural", "value", 8, "limits"},
    {"ml.p3.16xlarge", "ml.p9.48xlarge", "value", 8, "ml.p5.48xlarge"},
    {"ml.p3.16xlarge", "p3.16xlarge", "pattern", 8, "no instance type"},
    {"ml.p3.16xlarge\n    volume_gb: 100\n    distribution: {smdistributed: {dataparallel: "
     "{enabled: true}}}",
     "[ml.p3.16xlarge, ml.c5.xlarge]", "conflict", 5, "GPUs"},
    {"ml.p3.16xlarge\n    volume_gb: 100", "ml.p3dn.24xlarge\n    volume_gb: 1900", "range", 9,
     "1800"},
    /* lines */
    {"name: loss", "name: \"lo\\nss\"", "pattern", 13, "line break"},
    {"'loss=([0-9.]+)'", "\"loss=\\n([0-9.]+)\"", "pattern", 13, "line break"},
    {"max_runtime: 4h", "entrypoint: [x, \"y\\rz\"]", "pattern", 15, "line break"},
    {"framework: pytorch 1.12.0\n    source_dir: \"s3://acme/code/sourcedir.tar.gz\"\n"
     "    entry_point: train.py\n",
     "image: r/x:1\n    command: \"a\\nb\"\n", "pattern", 6, "line break"},
    /* distribution */
    {"{smdistributed: {dataparallel: {enabled: true}}}", "{}", "required", 10, "kind"},
    {"{smdistributed: {dataparallel: {enabled: true}}}", "on", "type", 10, "map"},
    {"{smdistributed: {dataparallel: {enabled: true}}}", "{smdistributd: {}}", "unknown_key", 10,
     "smdistributed"},
    {"{dataparallel: {enabled: true}}", "{}", "required", 10, "dataparallel"},
    {"{dataparallel: {enabled: true}}", "{dataparallell: {}}", "unknown_key", 10, "dataparallel"},
    {"{enabled: true}", "{enable: true}", "unknown_key", 10, "enabled"},
    {"{enabled: true}", "{enabled: maybe}", "type", 10, "boolean"},
    {"{enabled: true}", "{enabled: true, custom_mpi_options: [x]}", "type", 10, "MPI"},
    {"{dataparallel: {enabled: true}}",
     "{dataparallel: {enabled: true}, modelparallel: {enabled: true}}", "conflict", 10, "both"},
    {"{dataparallel: {enabled: true}}", "{modelparallel: {enabled: true}}", "required", 10, "mpi"},
    {"{smdistributed: {dataparallel: {enabled: true}}}",
     "{smdistributed: {modelparallel: {parameters: 2}}, mpi: {}}", "type", 10, "microbatches"},
    {"{smdistributed: {dataparallel: {enabled: true}}}",
     "{smdistributed: {modelparallel: {}}, mpi: {processes_per_host: 16}}", "range", 10, "8 GPUs"},
    {"{smdistributed: {dataparallel: {enabled: true}}}", "{mpi: {processes_per_host: 0}}", "range",
     10, "0"},
    {"{smdistributed: {dataparallel: {enabled: true}}}", "{kind: horovod}", "value", 10, "horovod"},
    {"{smdistributed: {dataparallel: {enabled: true}}}", "{kind: smdistributed}", "required", 10,
     "mode"},
    {"{smdistributed: {dataparallel: {enabled: true}}}", "{kind: smdistributed, mode: both}",
     "value", 10, "data_parallel"},
    {"{smdistributed: {dataparallel: {enabled: true}}}", "{kind: mpi, mode: data_parallel}",
     "conflict", 10, "modes"},
    {"{smdistributed: {dataparallel: {enabled: true}}}", "{instance_groups: []}", "unsupported", 10,
     "jobs have no instance_groups here"},
    {"ml.p3.16xlarge", "ml.c5.18xlarge", "conflict", 10, "GPUs"},
    {"framework: pytorch 1.12.0\n    source_dir: \"s3://acme/code/sourcedir.tar.gz\"\n"
     "    entry_point: train.py\n    instance_type: ml.p3.16xlarge",
     "image: r/x:1\n    instance_type: [ml.p3.16xlarge, ml.c5.18xlarge]", "conflict", 8,
     "ml.c5.18xlarge has none"},
    {"ml.p3.16xlarge\n    volume_gb: 100\n    distribution: {smdistributed: {dataparallel: "
     "{enabled: true}}}",
     "[ml.p3.16xlarge, ml.p3.2xlarge]\n    distribution: {smdistributed: {modelparallel: {}}, "
     "mpi: {processes_per_host: 8}}",
     "range", 9, "ml.p3.2xlarge has 1 GPUs"},
    {"framework: pytorch 1.12.0\n    source_dir: \"s3://acme/code/sourcedir.tar.gz\"\n"
     "    entry_point: train.py\n    instance_type: ml.p3.16xlarge\n    volume_gb: 100\n"
     "    distribution: {smdistributed: {dataparallel: {enabled: true}}}\n    hyperparameters: {",
     "image: r/x:1\n    instance_type: ml.p3.16xlarge\n    distribution: {mpi: {enabled: true}}\n"
     "    hyperparameters: {sagemaker_program: x.py, sagemaker_mpi_enabled: \"true\", ",
     "conflict", 8, "'sagemaker_mpi_enabled' is set by distribution"},
    /* compiler */
    {"train.py", "train.py\n    compiler: on", "conflict", 8, "smdistributed"},
    {"ml.p3.16xlarge\n    volume_gb: 100\n    distribution: {smdistributed: {dataparallel: "
     "{enabled: true}}}",
     "[ml.p3.16xlarge, ml.p5.48xlarge]\n    compiler: on", "conflict", 9,
     "does not work on ml.p5.48xlarge"},
    {"train.py", "train.py\n    compiler: [x]", "type", 8, "boolean"},
    {"train.py", "train.py\n    compiler: {debugg: on, enabled: off}", "unknown_key", 8, "debug"},
    {"    distribution: {smdistributed: {dataparallel: {enabled: true}}}\n",
     "    compiler: on\n    instance_count: 2\n", "required", 10, "pytorchxla"},
    /* input */
    {"{train: \"s3://acme/data/\"}", "{}", "limit", 12, "channels"},
    {"{train: \"s3://acme/data/\"}", "[x]", "type", 12, "map"},
    {"{train: ", "{a b: ", "pattern", 12, "channel"},
    {"\"s3://acme/data/\"", "/data", "pattern", 12, "S3"},
    {"\"s3://acme/data/\"", "\"lustre:volume\"", "unknown_stage", 12, "volume"},
    {"\"s3://acme/data/\"", "{mode: File}", "required", 12, "from"},
    {"\"s3://acme/data/\"", "{from: \"s3://acme/d\", mode: Fastfile}", "value", 12, "FastFile"},
    {"\"s3://acme/data/\"", "{from: \"s3://acme/d\", type: S3Object}", "value", 12, "S3Object"},
    {"\"s3://acme/data/\"", "{from: \"s3://acme/d\", type: AugmentedManifestFile}", "conflict", 12,
     "Pipe"},
    {"\"s3://acme/data/\"", "{from: \"s3://acme/d\", type: AugmentedManifestFile, mode: Pipe}",
     "required", 12, "attributes"},
    {"\"s3://acme/data/\"", "{from: \"s3://acme/d/\", type: ManifestFile}", "pattern", 12,
     "one object"},
    {"\"s3://acme/data/\"", "{from: \"s3://acme\", type: ManifestFile}", "pattern", 12, "prefix"},
    {"\"s3://acme/data/\"",
     "{from: \"s3://acme/{part}/\", type: AugmentedManifestFile, mode: Pipe, attributes: [a]}",
     "pattern", 12, "one object"},
    {"\"s3://acme/data/\"",
     "{from: \"s3://acme/d\", type: AugmentedManifestFile, mode: Pipe, attributes: [a, \"\"]}",
     "required", 12, "empty"},
    {"\"s3://acme/data/\"",
     "{from: \"s3://acme/d\", type: AugmentedManifestFile, mode: Pipe, attributes: [a, b, c, d, e, "
     "f, g, h, i, j, k, l, m, n, o, p, q]}",
     "limit", 12, "16"},
    {"\"s3://acme/data/\"", "{from: \"s3://acme/d\", attributes: [a]}", "conflict", 12,
     "attributes"},
    {"\"s3://acme/data/\"", "{from: \"s3://acme/d\", type: ManifestFile, mode: FastFile}",
     "conflict", 12, "manifests"},
    {"\"s3://acme/data/\"", "{from: \"s3://acme/d\", compression: Gzip}", "conflict", 12, "gzip"},
    {"\"s3://acme/data/\"", "{from: \"s3://acme/d\", record_wrapper: RecordIO}", "conflict", 12,
     "RecordIO"},
    {"\"s3://acme/data/\"", "{from: \"s3://acme/d\", shuffle_seed: -1}", "range", 12, "-1"},
    {"\"s3://acme/data/\"", "{file_system: vol-1, path: /x}", "pattern", 12, "fs-"},
    {"\"s3://acme/data/\"", "{file_system: fs-0123456789abcdef0}", "required", 12, "path"},
    {"\"s3://acme/data/\"", "{file_system: fs-0123456789abcdef0, path: x}", "pattern", 12, "slash"},
    {"\"s3://acme/data/\"", "{file_system: fs-0123456789abcdef0, path: /x, access: write}", "value",
     12, "write"},
    {"    input: {train: \"s3://acme/data/\"}",
     "    input: {d: {file_system: fs-0123456789abcdef0, path: /x}}\n    vpc: none", "required", 12,
     "VPC"},
    {"    input: {train: \"s3://acme/data/\"}",
     "    network_isolation: true\n    input: {code: \"s3://acme/d\"}", "conflict", 13, "isolated"},
    /* metrics */
    {"[{name: loss, regex: 'loss=([0-9.]+)'}]", "{loss: x}", "type", 13, "list"},
    {"name: loss, ", "", "required", 13, "name"},
    {", regex: 'loss=([0-9.]+)'", "", "required", 13, "regex"},
    {"'loss=([0-9.]+)'", "'loss=([0-9'", "pattern", 13, "character"},
    {"[{name: loss, ", "[{name: loss, regex: a}, {name: loss, ", "duplicate", 13, "two metrics"},
    {"{name: loss, ", "{name: loss, unit: s, ", "unknown_key", 13, "unit"},
    /* checkpoint, retries, keys, switches */
    {"\"s3://acme/ckpt/\"", "/opt/ml/checkpoints", "pattern", 14, "S3"},
    {"\"s3://acme/ckpt/\"", "\"s3://acme/ckpt/{attempt}/\"", "conflict", 14, "attempt"},
    {"\"s3://acme/ckpt/\"", "{path: /x}", "required", 14, "to"},
    {"\"s3://acme/ckpt/\"", "{to: \"s3://acme/c\", path: x}", "pattern", 14, "absolute"},
    {"    checkpoint: \"s3://acme/ckpt/\"", "    spot: true", "required", 14, "checkpoint"},
    {"    max_runtime: 4h", "    max_runtime: 4h\n    retry_strategy: 31", "range", 16, "31"},
    {"    max_runtime: 4h", "    max_runtime: 4h\n    max_pending: 119m", "range", 16, "7200 to"},
    {"    max_runtime: 4h", "    max_runtime: 4h\n    max_pending: 29d", "range", 16, "to 2419200"},
    {"    max_runtime: 4h", "    max_runtime: 4h\n    volume_kms_key: a b", "pattern", 16, "KMS"},
    {"    max_runtime: 4h", "    max_runtime: 4h\n    volume_kms_key: alias/sm", "pattern", 16,
     "alias"},
    {"ml.p3.16xlarge\n", "ml.p4d.24xlarge\n    volume_kms_key: 1234abcd-12ab\n", "conflict", 9,
     "disks"},
    {"    max_runtime: 4h", "    max_runtime: 4h\n    encrypt_traffic: 1", "type", 16, "boolean"},
    {"    max_runtime: 4h", "    max_runtime: 4h\n    profiler: full", "type", 16, "boolean"},
    {"    max_runtime: 4h", "    max_runtime: 4h\n    training_plan: p1", "pattern", 16, "ARN"},
    {"    max_runtime: 4h",
     "    max_runtime: 4h\n    spot: true\n    training_plan: "
     "arn:aws:sagemaker:us-east-1:111122223333:training-plan/p1",
     "conflict", 17, "spot"},
    {"    max_runtime: 4h", "    max_runtime: 4h\n    tags: {\"aws:x\": y}", "pattern", 16,
     "reserved"},
    {"    max_runtime: 4h", "    max_runtime: 4h\n    output_compression: zip", "type", 16,
     "boolean"},
    {"    max_runtime: 4h", "    max_runtime: 4h\n    input_mode: Stream", "value", 16, "FastFile"},
    {"    max_runtime: 4h", "    max_runtime: 4h\n    entrypoint: []\n    bogus: 1", "unknown_key",
     17, "bogus"},
};

static const struct spec_defaults in_region = {
    .role = ROLE, .worker_image = "r/w:1", .bucket = "acme", .region = "us-east-1"};

static bool one_fault(const struct mistake *m)
{
    AUTO_FREE char *text = with(m->from, m->to);
    struct parsed *p = parse_with(text, &in_region);
    const struct fault *f = &p->faults.at[0];
    bool good = p->faults.n == 1 && strcmp(f->code, m->code) == 0 && f->pos.line == m->line &&
                f->pos.column > 0 && f->hint[0] != '\0' &&
                (strstr(f->message, m->word) != NULL || strstr(f->hint, m->word) != NULL);
    if (!good) {
        (void)printf("# '%s' as '%s': wanted one fault [%s] in line %d with '%s'\n", m->from, m->to,
                     m->code, m->line, m->word);
        show(&p->faults);
    }
    parsed_free(p);
    return good;
}

/* A source that was sent lies in droverd's bucket, under its digest. */
static void test_spec_training__a_digest_is_a_place_in_the_bucket(void **state)
{
    (void)state;
    static const char sent[] =
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    static const struct {
        const char *bucket, *uri;
    } rows[] = {{"acme", "s3://acme/sources/"},
                {"s3://acme/", "s3://acme/sources/"},
                {"s3://acme/team/a", "s3://acme/team/a/sources/"},
                {NULL, NULL}};
    AUTO_FREE char *text = with("s3://acme/code/sourcedir.tar.gz", sent);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct spec_defaults d = in_region;
        d.bucket = rows[i].bucket;
        struct parsed *p = parse_with(text, &d);
        if (rows[i].uri == NULL) {
            bool said = false;
            for (int k = 0; k < p->faults.n; k++) {
                said |= strstr(p->faults.at[k].hint, "DROVER_BUCKET=") != NULL;
            }
            assert_true(said);
        } else {
            const struct spec_training *t = p->spec->stages[0]->training;
            AUTO_FREE char *uri =
                xasprintf("%s%s/sourcedir.tar.gz", rows[i].uri, sent + strlen("sha256:"));
            assert_int_equal(p->faults.n, 0);
            assert_string_equal(t->source_dir, uri);
            assert_string_equal(t->source_sha256, sent + strlen("sha256:"));
        }
        parsed_free(p);
    }
}

static void test_spec_training__one_mistake_one_fault(void **state)
{
    (void)state;
    size_t good = 0;
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        good += one_fault(&mistakes[i]);
    }
    (void)printf("# %zu of %zu mistakes have one fault each\n", good, ARRAY_LEN(mistakes));
    assert_int_equal(good, ARRAY_LEN(mistakes));
}

static void test_spec_training__all_faults_of_a_file_at_once(void **state)
{
    (void)state;
    AUTO_FREE char *text = xstrdup(
        "name: c1\nstages:\n  - name: train\n    framework: pytorch 7\n    source_dir: ./x\n"
        "    entry_point: train\n    instance_type: ml.p4d.24xlarge\n    volume_gb: 9000\n"
        "    volume_kms_key: 1234abcd-12ab\n    distribution: {kind: horovod}\n"
        "    input: {a: nowhere, b: {from: \"s3://acme/x\", mode: Fast}}\n"
        "    metrics: [{name: loss}, {name: x, regex: '('}]\n    checkpoint: here\n"
        "    retry_strategy: 0\n    training_plan: x\n    profiler: 3\n    output: "
        "\"s3://acme/o\"\n");
    static const int lines[] = {4, 5, 6, 8, 9, 10, 11, 11, 12, 12, 13, 14, 15, 16};
    struct parsed *p = parse_with(text, &in_region);
    show(&p->faults);
    assert_int_equal(p->faults.n, ARRAY_LEN(lines));
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_int_equal(p->faults.at[i].pos.line, lines[i]);
        assert_true(p->faults.at[i].pos.column > 0);
    }
    parsed_free(p);
}

static void test_spec_training__what_is_right_has_no_fault(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"name: c1", "name: c1"},
        {"pytorch 1.12.0", "pytorch 1.8 py36"},
        {"pytorch 1.12.0", "huggingface 4.21 pytorch 1.11 py38"},
        {"framework: pytorch 1.12.0", "image: r/x:1"},
        {"framework: pytorch 1.12.0",
         "image: registry.acme.internal:5000/x:1\n    image_config: {access: Vpc, credentials: "
         "\"arn:aws-us-gov:lambda:us-gov-west-1:111122223333:function:keys:live\"}"},
        {"framework: pytorch 1.12.0",
         "framework: pytorch 1.12.0\n    image_config: {access: Platform}"},
        {"{enabled: true}", "{enabled: \"true\"}"},
        {"{enabled: true}", "{enabled: True, custom_mpi_options: \"-x A={b}\"}"},
        {"{smdistributed: {dataparallel: {enabled: true}}}",
         "{smdistributed: {modelparallel: {enabled: true, parameters: {partitions: 2}}}, "
         "mpi: {enabled: true, processes_per_host: 8}}"},
        {"{smdistributed: {dataparallel: {enabled: true}}}",
         "{smdistributed: {modelparallel: {enabled: true}}, torch_distributed: {enabled: true}}"},
        {"{smdistributed: {dataparallel: {enabled: true}}}", "{pytorchddp: {enabled: \"true\"}}"},
        {"{smdistributed: {dataparallel: {enabled: true}}}",
         "{kind: pytorchddp, mode: smddp_rewrite}"},
        {"{smdistributed: {dataparallel: {enabled: true}}}", "{pytorchxla: {enabled: true}}"},
        {"{epochs: 3, name: bert}", "{a: {b: [1, x, null, true]}, lr: 1e-4, e: \"\"}"},
        {"\"s3://acme/data/\"", "\"{uri}\""},
        {"\"s3://acme/data/\"", "{file_system: fs-0123456789abcdef0, path: /mnt/x, access: rw}"},
        {"\"s3://acme/data/\"",
         "{from: \"s3://acme/d\", type: AugmentedManifestFile, mode: Pipe, attributes: [a], "
         "compression: Gzip, record_wrapper: RecordIO, shuffle_seed: 7, spread: ShardedByS3Key}"},
        {"\"s3://acme/data/\"", "{from: \"{uri}\", type: ManifestFile}"},
        {"\"s3://acme/data/\"",
         "{from: \"s3://acme/d\", mode: Pipe, shuffle_seed: 9223372036854775807}"},
        {"'loss=([0-9.]+)'", "'(?P<x>\\d{2,3})'"},
        {"\"s3://acme/ckpt/\"",
         "{to: \"s3://acme/c/\", path: /opt/ml/checkpoints}\n    spot: true"},
        {"    max_runtime: 4h",
         "    max_runtime: 4h\n    retry_strategy: 30\n    infra_check: on\n    debugger: on\n"
         "    profiler: on\n    session_tags: on\n    remote_debug: on\n    encrypt_traffic: on\n"
         "    volume_kms_key: 1234abcd-12ab\n    output_kms_key: alias/s3\n    tags: {a: b}\n"
         "    output_compression: off\n    entrypoint: [python]\n    input_mode: FastFile\n"
         "    log_level: 10\n    metrics_series: off\n    max_pending: 2h"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *text = with(rows[i][0], rows[i][1]);
        struct parsed *p = parse_with(text, &in_region);
        if (!p->good) {
            (void)printf("# '%s'\n", rows[i][1]);
            show(&p->faults);
        }
        assert_true(p->good);
        AUTO_JSON json_t *stored = spec_to_json(p->spec);
        CLEANUP(arena_done)
        struct arena a;
        arena_init(&a, SPEC_ARENA_BYTES);
        struct spec *back;
        struct err err = ERR_INIT;
        assert_true(spec_from_json(stored, &a, &back, &err));
        AUTO_JSON json_t *again = spec_to_json(back);
        assert_true(json_equal(stored, again));
        parsed_free(p);
    }
}

/* A type that is newer than the table: named in limits.instances, it is taken as it is. */
static void test_spec_training__a_type_named_in_the_limits_is_taken(void **state)
{
    (void)state;
    static const char text[] = "name: c1\n%sstages:\n  - name: a\n    image: r/x:1\n"
                               "    instance_type: ml.p9.48xlarge\n    output: \"s3://acme/o/\"\n";
    AUTO_FREE char *named = xasprintf(text, "limits: {instances: {ml.p9.48xlarge: 4}}\n");
    AUTO_FREE char *not_named = xasprintf(text, "");
    struct parsed *p = parse_with(named, &in_region);
    assert_true(p->good);
    parsed_free(p);
    p = parse_with(not_named, &in_region);
    assert_int_equal(p->faults.n, 1);
    assert_non_null(strstr(p->faults.at[0].hint, "limits: {instances: {ml.p9.48xlarge: 1}}"));
    parsed_free(p);
    /* nobody knows whether AWS's image for it is the one with GPUs */
    p = parse_with("name: c1\nlimits: {instances: {ml.p9.48xlarge: 4}}\nstages:\n  - name: a\n"
                   "    framework: pytorch 1.12\n    source_dir: \"s3://acme/x.tar.gz\"\n"
                   "    entry_point: x.py\n    instance_type: ml.p9.48xlarge\n"
                   "    output: \"s3://acme/o/\"\n",
                   &in_region);
    show(&p->faults);
    assert_int_equal(p->faults.n, 1);
    assert_int_equal(p->faults.at[0].pos.line, 5);
    assert_non_null(strstr(p->faults.at[0].hint, "image: URI"));
    parsed_free(p);
}

static void test_spec_training__without_a_region_a_framework_has_no_image(void **state)
{
    (void)state;
    struct parsed *p = parse(BASE);
    assert_int_equal(p->faults.n, 1);
    assert_non_null(strstr(p->faults.at[0].hint, "AWS_REGION"));
    parsed_free(p);
}

/* What is told of an image, in a region. */
static void test_spec_training__an_image_is_of_the_region(void **state)
{
    (void)state;
    static const struct {
        const char *image, *region, *word; /* NULL: no fault */
    } rows[] = {
        {"111122223333.dkr.ecr.eu-west-1.amazonaws.com/x@sha256:1", "eu-west-1", "no image"},
        {"111122223333.dkr.ecr.eu-west-1.amazonaws.com/x:1", "us-east-1", "is in eu-west-1"},
        {"111122223333.dkr.ecr-fips.us-east-1.amazonaws.com/x:1", "us-east-1", NULL},
        {"111122223333.dkr.ecr.eu-west-1.amazonaws.com/x:1", NULL, NULL},
        {"763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch-training:2.1", "eu-west-1", NULL},
        {"763104351884.dkr.ecr.eu-south-1.amazonaws.com/pytorch-training:2.1", "eu-south-1",
         "account 763104351884"},
        {"763104351884.dkr.ecr.xx-new-1.amazonaws.com/pytorch-training:2.1", "xx-new-1", NULL},
        {"docker.io/library/busybox:1", "us-east-1", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct spec_defaults d = in_region;
        d.region = rows[i].region;
        AUTO_FREE char *text =
            xasprintf("name: c\nstages: [{name: t, image: \"%s\", instance_type: ml.m5.large}]\n",
                      rows[i].image);
        struct parsed *p = parse_with(text, &d);
        assert_int_equal(p->faults.n, rows[i].word != NULL);
        assert_true(rows[i].word == NULL || strstr(p->faults.at[0].message, rows[i].word) != NULL);
        parsed_free(p);
        d.any_region = true;
        p = parse_with(text, &d);
        assert_int_equal(p->faults.n, i == 0);
        parsed_free(p);
    }
}

static void test_spec_training__what_is_risky_is_warned_of(void **state)
{
    (void)state;
    AUTO_FREE char *text = with("'loss=([0-9.]+)'", "'loss=[0-9.]+'");
    char *type = strstr(text, "ml.p3.16xlarge");
    assert_non_null(type);
    memcpy(type, "ml.p3.32xlarge", 14);
    struct parsed *p = parse_with(text, &in_region);
    assert_true(p->good);
    struct faults w = {0};
    spec_warn(p->spec, &w);
    assert_int_equal(w.n, 3);
    assert_string_equal(w.at[0].code, "instance_type");
    assert_string_equal(w.at[0].hint, "ml.p3.2xlarge");
    assert_string_equal(w.at[1].code, "metric_group");
    assert_string_equal(w.at[2].code, "no_budget"); /* and none that AWS's image has a tag */
    parsed_free(p);
}

/* SageMaker retries internal errors itself, so drover does not; the stage may say otherwise. */
static void test_spec_training__retry_strategy_takes_internal_errors(void **state)
{
    (void)state;
    AUTO_FREE char *text =
        with("    max_runtime: 4h", "    max_runtime: 4h\n    retry_strategy: 3");
    struct parsed *p = parse_with(text, &in_region);
    assert_true(p->good);
    assert_true(p->spec->stages[0]->retry[CAUSE_INTERNAL].set);
    assert_int_equal(p->spec->stages[0]->retry[CAUSE_INTERNAL].times, 0);
    assert_true(p->spec->stages[0]->resumable);
    parsed_free(p);
}

/* A stored training part that does not fit is refused, field by field. */
static void test_spec_training__a_stored_form_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct parsed *p = parse_with(BASE, &in_region);
    assert_true(p->good);
    AUTO_JSON json_t *good = spec_to_json(p->spec);
    const char *key;
    json_t *value;
    int refused = 0;
    json_object_foreach(
        json_object_get(json_array_get(json_object_get(good, "stages"), 0), "training"), key, value)
    {
        AUTO_JSON json_t *bad = json_deep_copy(good);
        json_t *o = json_object_get(json_array_get(json_object_get(bad, "stages"), 0), "training");
        (void)json_object_set_new(o, key, json_real(0.5));
        CLEANUP(arena_done)
        struct arena a;
        arena_init(&a, SPEC_ARENA_BYTES);
        struct spec *back = NULL;
        struct err err = ERR_INIT;
        if (spec_from_json(bad, &a, &back, &err)) {
            fail_msg("'%s' as 0.5 was read", key);
        }
        refused++;
    }
    assert_true(refused > 20);
    parsed_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_training__a_digest_is_a_place_in_the_bucket),
        cmocka_unit_test(test_spec_training__one_mistake_one_fault),
        cmocka_unit_test(test_spec_training__all_faults_of_a_file_at_once),
        cmocka_unit_test(test_spec_training__what_is_right_has_no_fault),
        cmocka_unit_test(test_spec_training__a_type_named_in_the_limits_is_taken),
        cmocka_unit_test(test_spec_training__without_a_region_a_framework_has_no_image),
        cmocka_unit_test(test_spec_training__an_image_is_of_the_region),
        cmocka_unit_test(test_spec_training__what_is_risky_is_warned_of),
        cmocka_unit_test(test_spec_training__retry_strategy_takes_internal_errors),
        cmocka_unit_test(test_spec_training__a_stored_form_that_does_not_fit_is_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("spec_training", tests, NULL, NULL);
}
