/* Aim: each mistake in a stage of kind endpoint gives one fault with its place and what to write
 * instead, all of a file at once; what is right is read as it says, stored and read back; what is
 * not carried out yet is refused by its table alone. Method: a campaign of a training stage and an
 * endpoint, one change at a time, a line each. */
#include "core/spec/spec_json.h"
#include "spec_text.h"

#define BASE                                                                                       \
    "name: c1\n" /* line 1 */                                                                      \
    "vars: {bucket: \"s3://acme\"}\n"                                                              \
    "stages:\n"                                                                                    \
    "  - name: train\n"                                                                            \
    "    framework: pytorch 1.12\n" /* line 5 */                                                   \
    "    source_dir: \"{bucket}/code/sourcedir.tar.gz\"\n"                                         \
    "    entry_point: train.py\n"                                                                  \
    "    instance_type: ml.p3.2xlarge\n"                                                           \
    "    output: \"{bucket}/models/\"\n"                                                           \
    "  - {name: copy, worker: copy, from: \"s3://x-x/y\", to: \"{bucket}/{file_name}\", "          \
    "instance_type: ml.m5.large}\n" /* line 10 */                                                  \
    "  - name: deploy\n"                                                                           \
    "    kind: endpoint\n"                                                                         \
    "    needs: train\n"                                                                           \
    "    model: train\n"                                                                           \
    "    instance_type: ml.m5.large\n" /* line 15 */                                               \
    "    ttl: 2h\n"

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

#define MODEL(text) "model: train\n", "model: " text "\n"
#define END(text)   "    ttl: 2h\n", "    ttl: 2h\n    " text "\n"
#define HF          "framework: huggingface 4.12.3"
#define DATA        "data: \"s3://acme/m/model.tar.gz\""
#define TYPE(text)  "ml.m5.large\n    ttl", text "\n    ttl"
#define TRAINER(text)                                                                              \
    "    output: \"{bucket}/models/\"\n", "    output: \"{bucket}/models/\"\n    " text "\n"

static const struct mistake {
    const char *from, *to, *code;
    int line;
    const char *word; /* in the message or in the hint */
} mistakes[] = {
    /* what an endpoint must say */
    {"    ttl: 2h\n", "", "required", 11, "ttl: 2h"},
    {"    model: train\n", "", "required", 11, "model.tar.gz"},
    {"    instance_type: ml.m5.large\n    ttl", "    ttl", "required", 11, "instance_type"},
    {"ttl: 2h", "ttl: 7200", "type", 16, "unit"},
    {"ttl: 2h", "ttl: 0s", "range", 16, "0s"},
    {"ttl: 2h", "ttl: 31d", "range", 16, "31d"},
    {"ttl: 2h", "ttl: off", "type", 16, "duration"},
    {END("idle: 30s"), "range", 17, "30s"},
    {END("idle: 3h"), "range", 17, "at most ttl"},
    {END("idle: 20"), "type", 17, "unit"},
    /* keys of other kinds of stages */
    {END("fan_out: {count: 2}"), "conflict", 17, "another kind"},
    {END("image: r/x:1"), "conflict", 17, "model: {"},
    {END("framework: pytorch 1.12"), "conflict", 17, "framework: ...}"},
    {END("max_runtime: 4h"), "conflict", 17, "another kind"},
    {END("spot: true"), "conflict", 17, "another kind"},
    {END("encrypt_traffic: on"), "conflict", 17, "another kind"},
    {END("size_gb: 1200"), "conflict", 17, "size_gb"},
    {END("idel: 20m"), "unknown_key", 17, "idle"},
    {TRAINER("smoke_test: [x]"), "conflict", 10, "another kind"},
    {TRAINER("model: x"), "conflict", 10, "another kind"},
    /* where it runs */
    {TYPE("[ml.m5.large, ml.m5.xlarge]"), "type", 15, "one type"},
    {TYPE("ml.m5.larg"), "value", 15, "ml.m5.large"},
    {TYPE("m5.large"), "pattern", 15, "no instance type"},
    {TYPE("ml.quantum.large"), "value", 15, "limits"},
    {TYPE("ml.c6g.large"), "conflict", 14, "image: URI"},
    {TYPE("ml.inf1.xlarge"), "conflict", 14, "do not run on ml.inf1.xlarge"},
    {TYPE("ml.trn1.2xlarge"), "conflict", 14, "do not run on ml.trn1.2xlarge"},
    {END("instance_count: 0"), "range", 17, "0"},
    {END("volume_gb: 513"), "range", 17, "512"},
    {TYPE("ml.g4dn.xlarge\n    volume_gb: 20"), "conflict", 16, "local disks"},
    {TYPE("ml.m5d.large\n    volume_gb: 20"), "conflict", 16, "local disks"},
    {TYPE("ml.g4dn.xlarge\n    volume_kms_key: alias/x"), "conflict", 16, "disks"},
    {END("volume_kms_key: a b"), "pattern", 17, "KMS"},
    {END("vpc: {subnets: [subnet-1]}"), "required", 17, "security_groups"},
    {END("role: nobody"), "pattern", 17, "nobody"},
    {END("network_isolation: 1"), "type", 17, "boolean"},
    {END("tags: {\"aws:x\": y}"), "pattern", 17, "reserved"},
    {END("environment: {1A: x}"), "pattern", 17, "1A"},
    {END("environment: {A: \"{part}\"}"), "unknown_variable", 17, "task to task"},
    {END("environment: {TOKEN: ghp_abcdefghijklmnopqrstuvwxyz0123456789}"), "secret", 17, "looks"},
    /* the model of a stage */
    {MODEL("trian"), "unknown_stage", 14, "did you mean 'train'?"},
    {MODEL("copy"), "conflict", 14, "our workers"},
    {MODEL("deploy"), "conflict", 14, "runs no job"},
    {MODEL("7"), "type", 14, "map"},
    {"    needs: train\n", "", "required", 13, "needs: train"},
    {"    needs: train\n", "    needs: copy\n", "required", 14, "needs: train"},
    {TRAINER("fan_out: {count: 2}"), "conflict", 15, "each of its parts"},
    {TRAINER("output_compression: off"), "conflict", 15, "output_compression"},
    {"    framework: pytorch 1.12\n    source_dir: \"{bucket}/code/sourcedir.tar.gz\"\n"
     "    entry_point: train.py\n",
     "    image: r.corp/x:1\n    image_config: {access: Vpc}\n    vpc: {subnets: [subnet-1], "
     "security_groups: [sg-1]}\n",
     "required", 14, "by its VPC"},
    {TRAINER("matrix: {hyperparameters.lr: [1, 2]}"), "conflict", 15, "train-1"},
    {"pytorch 1.12\n", "pytorch 2.8.0\n", "value", 14, "2.6.0"},
    {"pytorch 1.12\n", "huggingface 4.21\n", "value", 14, "4.26.0"},
    {MODEL("{stage: trian}"), "unknown_stage", 14, "'trian'"},
    {MODEL("{stage: train, framework: pytorch 7}"), "value", 14, "pytorch 7"},
    {MODEL("{stage: train, " DATA "}"), "conflict", 14, "either stage or data"},
    /* any model */
    {MODEL("\"s3://acme/m/model.tar.gz\""), "required", 14, "framework"},
    {MODEL("\"{bucket}/m/model.tar.gz\""), "required", 14, "framework"},
    {MODEL("{}"), "required", 14, "which model"},
    {MODEL("{" HF "}"), "required", 14, "which model"},
    {MODEL("{" DATA "}"), "required", 14, "what serves"},
    {MODEL("{data: ./model.tar.gz, " HF "}"), "pattern", 14, "S3"},
    {MODEL("{data: \"s3://acme/m/x.pt\", " HF "}"), "pattern", 14, ".tar.gz"},
    {MODEL("{data: \"s3://acme/m/\", compression: Gzip, " HF "}"), "conflict", 14, "a folder"},
    {MODEL("{data: \"s3://acme/m.pt\", compression: Gzip, " HF "}"), "conflict", 14, "no .tar.gz"},
    {MODEL("{" DATA ", compression: None, " HF "}"), "conflict", 14, "Gzip"},
    {MODEL("{" DATA ", compression: gzip, " HF "}"), "value", 14, "Gzip"},
    {MODEL("{data: x, compression: None, " HF "}"), "pattern", 14, "S3"},
    {MODEL("{stage: train, compression: None}"), "conflict", 14, "model.tar.gz"},
    {MODEL("{" DATA ", framework: huggingface}"), "required", 14, "version"},
    {MODEL("{" DATA ", framework: huggingface 4.12.3 pytorch 2.0}"), "value", 14, "1.9.1"},
    {MODEL("{" DATA ", framework: huggingface 4.12.3 py27}"), "value", 14, "py27"},
    {MODEL("{" DATA ", " HF ", image: r/x:1}"), "conflict", 14, "one image"},
    {MODEL("{" DATA ", image: \"a b\"}"), "pattern", 14, "no image"},
    {MODEL("{" DATA ", " HF ", imge: x}"), "unknown_key", 14, "image"},
    {MODEL("{" DATA ", " HF ", entry_point: ../x.py}"), "pattern", 14, "code/"},
    {MODEL("{" DATA ", image: r/x:1, entry_point: x.py}"), "conflict", 14, "framework in place"},
    {MODEL("{data: \"s3://acme/m.pt\", compression: None, " HF ", entry_point: x.py}"), "conflict",
     14, "no script"},
    /* smoke test */
    {END("smoke_test: samples.json"), "pattern", 17, "samples.json"},
    {END("smoke_test: '{\"inputs\": 1}'"), "pattern", 17, "list of payloads"},
    {END("smoke_test: []"), "required", 17, "empty"},
    {END("download_timeout: 59s"), "range", 17, "59"},
    {END("startup_timeout: 61m"), "range", 17, "60 to 3600"},
    {END("startup_timeout: 600"), "type", 17, "unit"},
    {END("smoke_test: 3"), "type", 17, "list"},
    {END("smoke_test: [\"\"]"), "limit", 17, "1 to 4096"},
    {END("smoke_test: \"s3://A/x\""), "pattern", 17, "S3"},
    {END("smoke_test: {p95_ms: 200}"), "required", 17, "payloads"},
    {END("smoke_test: {payloads: [1], p95_ms: 0}"), "range", 17, "60000"},
    {END("smoke_test: {payloads: [1], content_type: json}"), "pattern", 17, "text/csv"},
    {END("smoke_test: {payloads: [1], p95: 200}"), "unknown_key", 17, "p95_ms"},
};

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

static void test_spec_endpoint__one_mistake_one_fault(void **state)
{
    (void)state;
    size_t good = 0;
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        good += one_fault(&mistakes[i]);
    }
    (void)printf("# %zu of %zu mistakes have one fault each\n", good, ARRAY_LEN(mistakes));
    assert_int_equal(good, ARRAY_LEN(mistakes));
}

static void test_spec_endpoint__all_faults_of_a_stage_at_once(void **state)
{
    (void)state;
    struct parsed *p = parse_with("name: c1\nstages:\n  - name: deploy\n    kind: endpoint\n"
                                  "    model: {data: here, framework: pytorch}\n"
                                  "    instance_type: m5\n    instance_count: many\n"
                                  "    idle: 1s\n    volume_gb: 0\n    spot: on\n"
                                  "    smoke_test: {p95_ms: -1}\n",
                                  &in_region);
    static const int lines[] = {3, 5, 5, 6, 7, 8, 9, 10, 11, 11};
    show(&p->faults);
    assert_int_equal(p->faults.n, ARRAY_LEN(lines));
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_int_equal(p->faults.at[i].pos.line, lines[i]);
    }
    parsed_free(p);
}

static void there_and_back(const struct spec *s)
{
    AUTO_JSON json_t *stored = spec_to_json(s);
    CLEANUP(arena_done)
    struct arena a;
    arena_init(&a, SPEC_ARENA_BYTES);
    struct spec *back;
    struct err err = ERR_INIT;
    if (!spec_from_json(stored, &a, &back, &err)) {
        fail_msg("%s", err.message);
    }
    AUTO_JSON json_t *again = spec_to_json(back);
    assert_true(json_equal(stored, again));
}

static void test_spec_endpoint__what_is_right_has_no_fault(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"name: c1", "name: c1"},
        {MODEL("{stage: train}")},
        {MODEL("{stage: train, entry_point: inference.py}")},
        {MODEL("{stage: train, framework: pytorch 2.6}")},
        {MODEL("{stage: train, image: r/serve@sha256:"
               "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}")},
        {MODEL("{" DATA ", " HF "}")},
        {MODEL("{data: \"{bucket}/model.tar.gz\", image: r/x:1}")},
        {MODEL("{data: \"{bucket}/folder/\", image: r/x:1}")},
        {MODEL("{data: \"{bucket}/folder/\", compression: None, image: r/x:1}")},
        {MODEL("{data: \"{bucket}/x.safetensors\", compression: None, image: r/x:1}")},
        {MODEL("{data: \"{bucket}/model.tar.gz\", compression: Gzip, image: r/x:1}")},
        {TYPE("ml.t2.medium")},
        {TYPE("ml.g4dn.xlarge")},
        {TYPE("ml.m5.large\n    volume_gb: 512\n    volume_kms_key: alias/sm")},
        {"model: train\n    instance_type: ml.m5.large",
         "model: {stage: train, image: r/x:1}\n    instance_type: ml.inf1.xlarge"},
        {"    needs: train\n", "    needs: [copy, train]\n"},
        {"ttl: 2h", "ttl: 30d"},
        {END("idle: off")},
        {END("idle: 2h")},
        {END("instance_count: 3\n    network_isolation: on\n    tags: {a: b}\n    vpc: none")},
        {END("environment: {HF_TASK: question-answering, A: \"{{b}} {bucket}\"}")},
        {END("smoke_test: \"{bucket}/samples.json\"")},
        {END("smoke_test: [{inputs: \"Hello {bucket}\"}, '{\"inputs\": 1}', [1, 2], 0.5, yes]")},
        {END("smoke_test: {payloads: [a], content_type: text/csv, p95_ms: 200}")},
        {END("matrix: {instance_count: [1, 2]}")},
        {"    ttl: 2h\n", "    ttl: 2h\n  - {name: twin, extends: deploy, ttl: 1h}\n"},
        {"    ttl: 2h\n",
         "    ttl: 2h\n  - {name: after, extends: deploy, needs: [copy, deploy]}\n"},
        {"    ttl: 2h\n", "    ttl: 2h\n  - {name: last, needs: deploy, image: r/x:1, "
                          "instance_type: ml.m5.large}\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *text = with(rows[i][0], rows[i][1]);
        struct parsed *p = parse_with(text, &in_region);
        if (!p->good) {
            (void)printf("# '%s'\n", rows[i][1]);
            show(&p->faults);
        }
        assert_true(p->good);
        there_and_back(p->spec);
        parsed_free(p);
    }
}

static void test_spec_endpoint__is_read_as_it_stands(void **state)
{
    (void)state;
    AUTO_FREE char *text = with(END("idle: 20m\n    instance_count: 2\n    tags: {a: b}\n"
                                    "    environment: {A: \"{{b}}\"}\n"
                                    "    smoke_test: {payloads: [{n: 1}, \"x{y}\"], p95_ms: 200}"));
    struct parsed *p = parse_with(text, &in_region);
    show(&p->faults);
    assert_true(p->good);
    const struct spec_stage *s = p->spec->stages[spec_stage_find(p->spec, "deploy")];
    const struct spec_endpoint *e = s->endpoint;
    assert_int_equal(s->kind, SPEC_KIND_ENDPOINT);
    assert_null(s->training);
    assert_string_equal(s->image, "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference:"
                                  "1.12-cpu-py38");
    assert_string_equal(s->environment[0].value, "{b}");
    assert_int_equal(s->instance_count, 2);
    assert_string_equal(s->role, ROLE);
    assert_int_equal(e->at.line, 12);
    assert_int_equal(e->at.column, 11);
    assert_string_equal(e->model_stage, "train");
    assert_null(e->model_data);
    assert_true(e->framework && e->entry_point == NULL);
    assert_true(e->ttl_s == 7200 && e->idle_s == 1200 && e->volume_gb == 0);
    assert_int_equal(e->payloads_n, 2);
    assert_string_equal(e->payloads[0], "{\"n\":1}");
    assert_string_equal(e->payloads[1], "x{y}");
    assert_string_equal(e->content_type, "application/json");
    assert_int_equal(e->p95_ms, 200);
    assert_string_equal(e->tags[0].value, "b");
    assert_int_equal(p->spec->stages[spec_stage_find(p->spec, "train")]->kind, SPEC_KIND_JOBS);
    parsed_free(p);
}

/* The campaign's key is for volumes: a type with disks of its own has none. */
static void test_spec_endpoint__takes_what_the_campaign_says(void **state)
{
    (void)state;
    static const char security[] = "security: {volume_kms_key: 1234-ab, encrypt_traffic: on, vpc: "
                                   "{subnets: [subnet-1], security_groups: [sg-1]}}\nvars: {";
    AUTO_FREE char *text = with("vars: {", security);
    struct parsed *p = parse_with(text, &in_region);
    assert_true(p->good);
    const struct spec_stage *s = p->spec->stages[spec_stage_find(p->spec, "deploy")];
    assert_string_equal(s->volume_kms_key, "1234-ab");
    assert_string_equal(s->subnets[0], "subnet-1");
    parsed_free(p);
    AUTO_FREE char *disks = xasprintf("%s  - {name: disks, extends: deploy, instance_type: "
                                      "ml.g4dn.xlarge}\n",
                                      text);
    p = parse_with(disks, &in_region);
    assert_true(p->good);
    assert_null(p->spec->stages[spec_stage_find(p->spec, "disks")]->volume_kms_key);
    parsed_free(p);
}

static bool price_36_usd(void *ctx, const struct spec_stage *s, musd_t *ret)
{
    (void)ctx;
    *ret = 36000000;
    return s->endpoint != NULL;
}

/* Its whole ttl is reserved: a budget below it could never start it. */
/* AWS's image has four more, of which a file may have said one; another image has none. */
static void test_spec_endpoint__variables_that_create_model_takes(void **state)
{
    (void)state;
    static const struct {
        const char *model, *also;
        int n, faults;
    } rows[] = {{"{" DATA ", " HF "}", "", 96, 0},
                {"{" DATA ", " HF "}", "", 97, 1},
                {"{" DATA ", " HF "}", "SAGEMAKER_REGION: x, ", 96, 0},
                {"{" DATA ", " HF "}", "SAGEMAKER_REGION: x, ", 97, 1},
                {"{" DATA ", image: r/x:1}", "", 100, 0},
                {"train", "", 97, 1}}; /* its framework's */
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_BUF struct buf env = BUF_INIT(4096);
        buf_addf(&env, "model: %s\n    environment: {%s", rows[i].model, rows[i].also);
        for (int k = 0; k < rows[i].n; k++) {
            buf_addf(&env, "%sA%d: x", k == 0 ? "" : ", ", k);
        }
        buf_add_cstr(&env, "}\n");
        AUTO_FREE char *text = with("model: train\n", buf_cstr(&env));
        struct parsed *p = parse_with(text, &in_region);
        if (p->faults.n != rows[i].faults) {
            show(&p->faults);
            fail_msg("row %zu: %d faults", i, p->faults.n);
        }
        assert_true(p->faults.n == 0 || strstr(p->faults.at[0].message, "takes 100") != NULL);
        parsed_free(p);
    }
}

static void test_spec_endpoint__a_budget_below_its_ttl_is_refused(void **state)
{
    (void)state;
    struct faults f = {0};
    AUTO_FREE char *text = xasprintf("budget: 73 USD\n%s", BASE);
    struct parsed *p = parse_with(text, &in_region);
    show(&p->faults);
    assert_true(p->good);
    assert_false(spec_check_budget(p->spec, price_36_usd, NULL, &f));
    assert_non_null(strstr(f.at[0].hint, "a ttl of at most"));
    p->spec->budget_musd = 90 * INT64_C(1000000);
    f.n = 0;
    assert_true(spec_check_budget(p->spec, price_36_usd, NULL, &f));
    parsed_free(p);
}

static void test_spec_endpoint__a_stored_form_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    AUTO_FREE char *text = with(MODEL("{" DATA ", " HF ", entry_point: x.py}"));
    struct parsed *p = parse_with(text, &in_region);
    assert_true(p->good);
    AUTO_JSON json_t *good = spec_to_json(p->spec);
    const char *key;
    json_t *value;
    int refused = 0;
    json_object_foreach(
        json_object_get(json_array_get(json_object_get(good, "stages"), 2), "endpoint"), key, value)
    {
        AUTO_JSON json_t *bad = json_deep_copy(good);
        json_t *o = json_object_get(json_array_get(json_object_get(bad, "stages"), 2), "endpoint");
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
    assert_int_equal(refused, 10);
    json_t *o = json_object_get(json_array_get(json_object_get(good, "stages"), 2), "endpoint");
    (void)json_object_del(o, "model_data");
    struct spec *back = NULL;
    struct err err = ERR_INIT;
    assert_false(spec_from_json(good, &p->arena, &back, &err));
    parsed_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_endpoint__one_mistake_one_fault),
        cmocka_unit_test(test_spec_endpoint__all_faults_of_a_stage_at_once),
        cmocka_unit_test(test_spec_endpoint__what_is_right_has_no_fault),
        cmocka_unit_test(test_spec_endpoint__is_read_as_it_stands),
        cmocka_unit_test(test_spec_endpoint__takes_what_the_campaign_says),
        cmocka_unit_test(test_spec_endpoint__variables_that_create_model_takes),
        cmocka_unit_test(test_spec_endpoint__a_budget_below_its_ttl_is_refused),
        cmocka_unit_test(test_spec_endpoint__a_stored_form_that_does_not_fit_is_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("spec_endpoint", tests, NULL, NULL);
}
