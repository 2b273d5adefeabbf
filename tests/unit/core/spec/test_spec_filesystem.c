/* Aim: each mistake in a stage of kind lustre, or in a channel that names one, gives one fault with
 * its place and what to write instead; what is right is read as it says, stored, read back, and
 * lowered to the requests of FSx and of the job. Method: a campaign of a file system and a training
 * that mounts it, one change at a time, a line each. */
#include "core/lowering/filesystem_request.h"
#include "core/lowering/request_preview.h"
#include "core/spec/spec_json.h"
#include "spec_text.h"
#include "store/leader/lease.h"

#define BASE                                                                                       \
    "name: c1\n" /* line 1 */                                                                      \
    "vars: {bucket: \"s3://acme\"}\n"                                                              \
    "security: {vpc: {subnets: [subnet-0a1b2c3d], security_groups: [sg-0a1b2c3d]}}\n"              \
    "stages:\n"                                                                                    \
    "  - name: volume\n" /* line 5 */                                                              \
    "    kind: lustre\n"                                                                           \
    "    size_gb: 12000\n"                                                                         \
    "    import: \"{bucket}/img/\"\n"                                                              \
    "    ttl: 24h\n"                                                                               \
    "  - name: train\n" /* line 10 */                                                              \
    "    needs: volume\n"                                                                          \
    "    image: r/w@sha256:"                                                                       \
    "0000000000000000000000000000000000000000000000000000000000000000\n"                           \
    "    instance_type: ml.m5.large\n"                                                             \
    "    output: \"{bucket}/models/\"\n"                                                           \
    "    input: {data: \"lustre:volume\"}\n" /* line 15 */

static const struct spec_defaults in_region = {
    .role = ROLE, .worker_image = "r/w:1", .bucket = "acme", .region = "us-east-1"};

static char *with(const char *from, const char *to)
{
    const char *at = strstr(BASE, from);
    if (at == NULL) {
        fail_msg("'%s' is not in the base", from);
    }
    return xasprintf("%.*s%s%s", (int)(at - BASE), BASE, to, at + strlen(from));
}

#define END(text)  "    ttl: 24h\n", "    ttl: 24h\n    " text "\n"
#define SIZE(text) "    size_gb: 12000\n", text
#define VPC(text)  END("vpc: {subnets: [" text "], security_groups: [sg-0a1b2c3d]}")

static const struct mistake {
    const char *from, *to, *code;
    int line;
    const char *word; /* in the message or in the hint */
} mistakes[] = {
    {"    ttl: 24h\n", "", "required", 5, "ttl: 24h"},
    {"ttl: 24h", "ttl: 24", "type", 9, "unit"},
    {"ttl: 24h", "ttl: 31d", "range", 9, "31d"},
    {SIZE(""), "required", 5, "size_gb"},
    {"size_gb: 12000", "size_gb: 0", "range", 7, "0"},
    {SIZE("    expect: {}\n"), "required", 7, "bytes"},
    {SIZE("    expect: {bytes: many}\n"), "type", 7, "number"},
    {SIZE("    expect: {byte: 1}\n    size_gb: 1\n"), "conflict", 8, "two sizes"},
    {SIZE("    expect: {bytes: 1000000000000000000}\n"), "range", 7, "GiB"},
    {END("vpc: none"), "required", 5, "subnet"},
    {VPC("subnet-0a1b2c3d, subnet-0a1b2c3e"), "limit", 5, "one subnet"},
    {VPC("subnet-0a1b2c3e"), "conflict", 16, "subnet-0a1b2c3e"},
    {"\"{bucket}/img/\"", "/img/", "pattern", 8, "s3://"},
    {"    import: \"{bucket}/img/\"\n", "    export: on\n", "required", 8, "import"},
    {END("export: maybe"), "type", 10, "boolean"},
    {END("delete: never"), "value", 10, "after_last_use"},
    {END("deployment: SCRATCH_1"), "value", 10, "SCRATCH_2"},
    {END("throughput: 125"), "conflict", 10, "PERSISTENT_2"},
    {END("deployment: PERSISTENT_2\n    throughput: 50"), "range", 11, "125, 250, 500 or 1000"},
    {END("deployment: PERSISTENT_1\n    throughput: 125"), "range", 11, "50, 100 or 200"},
    {END("volume_kms_key: alias/a"), "conflict", 10, "PERSISTENT_2"},
    {END("instance_type: ml.m5.large"), "conflict", 10, "another kind"},
    {END("worker: download"), "conflict", 10, "another kind"},
    {"    needs: volume\n", "", "required", 14, "needs: volume"},
    {"lustre:volume", "lustre:volum", "unknown_stage", 15, "volume"},
    {"lustre:volume", "lustre:train", "unknown_stage", 15, "volume"},
    {"lustre:volume", "lustre:volume/../x", "pattern", 15, "folder"},
    {"\"lustre:volume\"", "{from: \"lustre:volume\", mode: Pipe}", "conflict", 15, "mounted"},
    {"\"lustre:volume\"", "{from: \"lustre:volume\", mode: FastFile}", "conflict", 15, "File"},
    {"\"lustre:volume\"", "{from: \"lustre:volume\", compression: None}", "conflict", 15,
     "compression"},
    {"\"lustre:volume\"", "{from: \"lustre:volume\", shuffle_seed: 1}", "conflict", 15, "S3"},
    {"\"lustre:volume\"", "{from: \"lustre:volume\", attributes: [a]}", "conflict", 15, "S3"},
    {"{data: \"lustre:volume\"}", "{data: \"lustre:volume\"}\n    input_mode: Pipe", "conflict", 15,
     "input_mode: File"},
    {"    input:", "    input_mode: FastFile\n    input:", "conflict", 16, "input_mode: File"},
};

static void test_spec_filesystem__each_mistake_is_one_fault(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        const struct mistake *m = &mistakes[i];
        AUTO_FREE char *text = with(m->from, m->to);
        struct parsed *p = parse_with(text, &in_region);
        if (p->faults.n != 1) {
            show(&p->faults);
            fail_msg("%s: %d faults", m->to, p->faults.n);
        }
        const struct fault *f = &p->faults.at[0];
        bool said = strstr(f->message, m->word) != NULL || strstr(f->hint, m->word) != NULL;
        if (strcmp(f->code, m->code) != 0 || f->pos.line != m->line || !said) {
            show(&p->faults);
            fail_msg("%s: not %s at line %d with '%s'", m->to, m->code, m->line, m->word);
        }
        parsed_free(p);
    }
}

/* The campaign's may be 40, which leaves a stage 4. */
static void test_spec_filesystem__tags_that_fsx_takes(void **state)
{
    (void)state;
    AUTO_BUF struct buf all = BUF_INIT(4096);
    for (int i = 0; i < 40; i++) {
        buf_addf(&all, "%st%d: x", i == 0 ? "tags: {" : ", ", i);
    }
    buf_addf(&all, "}\nstages:\n");
    AUTO_FREE char *of_campaign = with("stages:\n", buf_cstr(&all));
    static const char *const own[] = {"    ttl: 24h\n    tags: {a: x, b: x, c: x, d: x}\n",
                                      "    ttl: 24h\n    tags: {a: x, b: x, c: x, d: x, e: x}\n"};
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(of_campaign, "    ttl: 24h\n");
        AUTO_FREE char *text = xasprintf("%.*s%s%s", (int)(at - of_campaign), of_campaign, own[i],
                                         at + strlen("    ttl: 24h\n"));
        struct parsed *p = parse_with(text, &in_region);
        assert_int_equal(p->faults.n, i);
        assert_true(i == 0 || strstr(p->faults.at[0].message, "FSx takes 44") != NULL);
        parsed_free(p);
    }
}

#define INDEX(from)                                                                                \
    "name: c\nsecurity: {vpc: {subnets: [subnet-0a1b2c3d], security_groups: [sg-0a1b2c3d]}}\n"     \
    "stages:\n"                                                                                    \
    "  - {name: volume, kind: lustre, size_gb: 1, ttl: 1h}\n"                                      \
    "  - {name: index, needs: volume, worker: index, instance_type: ml.m5.large,\n"                \
    "     output: \"s3://acme/index/\",\n"                                                         \
    "     from: " from "}\n" /* line 7 */

/* The index reads a file system of its campaign as the only channel of its job. */
static void test_spec_filesystem__an_index_reads_it_by_a_channel(void **state)
{
    (void)state;
    struct parsed *p = parse_with(INDEX("\"lustre:volume/shards\""), &in_region);
    show(&p->faults);
    assert_true(p->good);
    const struct spec_stage *s = p->spec->stages[1];
    assert_int_equal(s->training->channels_n, 1);
    assert_string_equal(s->training->channels[0].name, "shards");
    assert_string_equal(s->training->channels[0].lustre_stage, "volume");
    assert_string_equal(s->training->channels[0].directory, "/shards");
    const char *input = NULL;
    for (int i = 0; i < s->hyperparameters_n; i++) {
        input =
            strcmp(s->hyperparameters[i].key, "input") == 0 ? s->hyperparameters[i].value : input;
    }
    assert_string_equal(input, "channel:shards");
    parsed_free(p);
    static const char *const wrong[] = {INDEX("\"lustre:volum\""), INDEX("\"lustre:index\""),
                                        INDEX("\"lustre:volume/..\""), INDEX("\"/opt/ml\""),
                                        INDEX("5")};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        p = parse_with(wrong[i], &in_region);
        if (p->faults.n != 1 || p->faults.at[0].pos.line != 7) {
            show(&p->faults);
            fail_msg("%s: not one fault in line 7", wrong[i]);
        }
        parsed_free(p);
    }
}

static void test_spec_filesystem__sizes_are_those_of_fsx(void **state)
{
    static const struct {
        const char *size;
        int64_t gib;
    } rows[] = {
        {"size_gb: 1", 1200},
        {"size_gb: 1200", 1200},
        {"size_gb: 1201", 2400},
        {"size_gb: 2401", 4800},
        {"size_gb: 12000", 12000},
        {"expect: {bytes: 1}", 1200},
        {"expect: {bytes: 9500000000000}", 12000}, /* 9.5 TB, and a quarter for what jobs write */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *text = with("size_gb: 12000", rows[i].size);
        struct parsed *p = parse_with(text, &in_region);
        show(&p->faults);
        assert_true(p->good);
        assert_int_equal(p->spec->stages[0]->filesystem->capacity_gib, rows[i].gib);
        parsed_free(p);
    }
}

static void test_spec_filesystem__is_read_stored_and_read_back(void **state)
{
    (void)state;
    AUTO_FREE char *text = with(END("export: off\n    delete: after_ttl\n    deployment: "
                                    "PERSISTENT_2\n    throughput: 250\n    volume_kms_key: "
                                    "alias/a\n    tags: {team: a}"));
    struct parsed *p = parse_with(text, &in_region);
    show(&p->faults);
    assert_true(p->good);
    CLEANUP(arena_done)
    struct arena a;
    arena_init(&a, SPEC_ARENA_BYTES);
    struct err err = ERR_INIT;
    struct spec *again = NULL;
    AUTO_JSON json_t *stored = spec_to_json(p->spec);
    assert_true(spec_from_json(stored, &a, &again, &err));
    const struct spec *both[] = {p->spec, again};
    for (int i = 0; i < 2; i++) {
        const struct spec_stage *s = both[i]->stages[0];
        assert_int_equal(s->kind, SPEC_KIND_LUSTRE);
        assert_string_equal(s->instance_type[0], "storage:PERSISTENT_2");
        char tier[SPEC_STORAGE_TIER_MAX];
        spec_storage_tier(s->filesystem->deployment, s->filesystem->throughput, tier);
        assert_string_equal(tier, "PERSISTENT_2/250");
        spec_storage_tier("SCRATCH_2", 200, tier);
        assert_string_equal(tier, "SCRATCH_2");
        assert_string_equal(s->volume_kms_key, "alias/a");
        const struct spec_filesystem *f = s->filesystem;
        assert_string_equal(f->deployment, "PERSISTENT_2");
        assert_int_equal(f->throughput, 250);
        assert_string_equal(f->import_from, "s3://acme/img/");
        assert_false(f->exports);
        assert_true(f->keep);
        assert_int_equal(f->ttl_s, 86400);
        assert_int_equal(f->tags_n, 1);
        const struct spec_channel *c = &both[i]->stages[1]->training->channels[0];
        assert_string_equal(c->lustre_stage, "volume");
        assert_string_equal(c->access, "rw");
        assert_string_equal(c->directory, "");
    }
    parsed_free(p);
}

static void test_spec_filesystem__its_requests(void **state)
{
    (void)state;
    struct parsed *p = parse_with(BASE, &in_region);
    show(&p->faults);
    assert_true(p->good);
    const struct spec_stage *s = p->spec->stages[0];
    const struct job_name token = {"d-7-volume-0-a1-0a1b2c3d"};
    const struct filesystem_request_input in = {p->spec, s, 7, &token, 5, "install-1"};
    AUTO_BUF struct buf out = BUF_INIT(64 * 1024);
    struct err err = ERR_INIT;
    assert_true(filesystem_request_make(&in, &out, &err));
    assert_string_equal(
        buf_cstr(&out),
        "{\"ClientRequestToken\":\"d-7-volume-0-a1-0a1b2c3d\",\"FileSystemType\":\"LUSTRE\","
        "\"FileSystemTypeVersion\":\"2.15\",\"StorageCapacity\":12000,\"StorageType\":\"SSD\","
        "\"SubnetIds\":[\"subnet-0a1b2c3d\"],\"SecurityGroupIds\":[\"sg-0a1b2c3d\"],"
        "\"LustreConfiguration\":{\"DeploymentType\":\"SCRATCH_2\"},\"Tags\":[{\"Key\":"
        "\"drover-install\",\"Value\":\"install-1\"},{\"Key\":\"drover-campaign\",\"Value\":\"7\"},"
        "{\"Key\":\"drover-stage\",\"Value\":\"volume\"},{\"Key\":\"drover-part\",\"Value\":\"0\"},"
        "{\"Key\":\"drover-attempt\",\"Value\":\"5\"},{\"Key\":\"drover-token\",\"Value\":"
        "\"d-7-volume-0-a1-0a1b2c3d\"}]}");
    const struct filesystem_request_of of = {
        "a-name-of-sixty-three-characters-and-no-more-than-that-0a1b2c3d", "fs-0123456789abcdef0"};
    buf_reset(&out);
    filesystem_request_link(&of, "s3://acme/img/", &out);
    assert_string_equal(
        buf_cstr(&out),
        "{\"ClientRequestToken\":\"link1--of-sixty-three-characters-and-no-more-than-that-"
        "0a1b2c3d\",\"FileSystemId\":\"fs-0123456789abcdef0\",\"FileSystemPath\":\"/\","
        "\"DataRepositoryPath\":\"s3://acme/img/\",\"BatchImportMetaDataOnCreate\":true,\"S3\":{"
        "\"AutoImportPolicy\":{\"Events\":[\"NEW\",\"CHANGED\",\"DELETED\"]}}}");
    buf_reset(&out);
    filesystem_request_export(&of, 12, &out);
    assert_non_null(strstr(buf_cstr(&out), "\"ClientRequestToken\":\"export12-"));
    assert_non_null(strstr(buf_cstr(&out), "\"Type\":\"EXPORT_TO_REPOSITORY\""));
    parsed_free(p);
}

/* A job gets the file system that is there, and no request while there is none. */
static void test_spec_filesystem__a_channel_is_that_file_system(void **state)
{
    (void)state;
    AUTO_FREE char *text = with("lustre:volume", "lustre:volume/raw");
    struct parsed *p = parse_with(text, &in_region);
    show(&p->faults);
    assert_true(p->good);
    const struct spec_stage *s = p->spec->stages[1];
    const struct spec_task task = {
        .campaign_id = 7, .stage_name = "train", .task_id = 1, .attempt_n = 1};
    const struct job_name name = {"d-7-train-0-a1-0a1b2c3d"};
    const struct request_volume volume = {"volume", "fs-0123456789abcdef0", "1234abcd"};
    struct training_request_input in = {.spec = p->spec,
                                        .stage = s,
                                        .task = &task,
                                        .name = &name,
                                        .attempt_id = 1,
                                        .instance_type = s->instance_type[0],
                                        .volume_gb = 30,
                                        .max_runtime_s = 60,
                                        .install_id = "i",
                                        .region = "us-east-1"};
    AUTO_BUF struct buf out = BUF_INIT(64 * 1024);
    char id[HASH_HEX_N];
    struct err err = ERR_INIT;
    assert_false(training_request_make(&in, &out, id, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(err.message, "'volume' is not there"));
    in.volumes = &volume;
    in.volumes_n = 1;
    buf_reset(&out);
    assert_true(training_request_make(&in, &out, id, &err));
    assert_non_null(
        strstr(buf_cstr(&out),
               "\"FileSystemDataSource\":{\"FileSystemId\":\"fs-0123456789abcdef0\","
               "\"FileSystemAccessMode\":\"rw\",\"FileSystemType\":\"FSxLustre\",\"DirectoryPath\":"
               "\"/1234abcd/raw\"}"));
    buf_reset(&out);
    assert_true(request_preview_filesystem(p->spec, p->spec->stages[0], &out, &err));
    assert_non_null(strstr(buf_cstr(&out), "{\"CreateFileSystem\":{"));
    parsed_free(p);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_filesystem__each_mistake_is_one_fault),
        cmocka_unit_test(test_spec_filesystem__tags_that_fsx_takes),
        cmocka_unit_test(test_spec_filesystem__an_index_reads_it_by_a_channel),
        cmocka_unit_test(test_spec_filesystem__sizes_are_those_of_fsx),
        cmocka_unit_test(test_spec_filesystem__is_read_stored_and_read_back),
        cmocka_unit_test(test_spec_filesystem__its_requests),
        cmocka_unit_test(test_spec_filesystem__a_channel_is_that_file_system),
    };
    return cmocka_run_group_tests_name("spec_filesystem", tests, NULL, NULL);
}
