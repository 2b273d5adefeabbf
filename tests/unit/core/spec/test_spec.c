/* Aim: a right campaign file becomes the tree it says, a wrong one is answered with every fault,
 * where it is and what to write. Method: the files of deploy/examples; one mistake at a time put
 * into a valid file, each with its code and line.
 */
#include "common/rng.h"
#include "core/spec/spec_expand.h"
#include "core/spec/spec_parse.h"
#include "spec_text.h"

/* A valid file in which one line can be put in the place of another, or added ("" for from). */
#define BASE                                                                                       \
    "version: 1\n"                                                                                 \
    "name: c1\n"                                                                                   \
    "vars: {bucket: \"s3://acme-laion\"}\n"                                                        \
    "stages:\n"                                                                                    \
    "  - name: download\n"                                                                         \
    "    worker: download\n"                                                                       \
    "    fan_out: {from: \"{bucket}/meta/*.parquet\"}\n"                                           \
    "    instance_type: ml.c5.18xlarge\n"                                                          \
    "    max_runtime: 4h\n"                                                                        \
    "    hyperparameters:\n"                                                                       \
    "      url_list: \"{uri}\"\n"                                                                  \
    "      output_folder: \"{bucket}/img/{part:05d}/\"\n"

static char *base_with(const char *from, const char *to)
{
    const char *at = strstr(BASE, from);
    assert_non_null(at);
    return xasprintf("%.*s%s%s", (int)(at - BASE), BASE, to, at + strlen(from));
}

static struct parsed *parse_changed(const char *from, const char *to)
{
    AUTO_FREE char *text = base_with(from, to);
    return parse(text);
}

static void assert_fault_at(const char *from, const char *to, const char *code, int line,
                            const char *word)
{
    struct parsed *p = parse_changed(from, to);
    if (p->faults.n != 1 || strcmp(p->faults.at[0].code, code) != 0 ||
        p->faults.at[0].pos.line != line || strstr(p->faults.at[0].message, word) == NULL) {
        (void)printf("# expected one %s at line %d with '%s' for: %s\n", code, line, word, to);
        show(&p->faults);
        fail();
    }
    assert_true(p->faults.at[0].pos.column > 0);
    parsed_free(p);
}

static void assert_good(const char *from, const char *to)
{
    struct parsed *p = parse_changed(from, to);
    if (!p->good) {
        (void)printf("# should be right: %s\n", to);
        show(&p->faults);
        fail();
    }
    parsed_free(p);
}

static void test_spec__the_example_is_read_as_it_stands(void **state)
{
    (void)state;
    AUTO_FREE char *text = file_text("deploy/examples/laion-download.yaml");
    struct parsed *p = parse_with(text, &installed);
    show(&p->faults);
    assert_true(p->good);
    const struct spec *s = p->spec;
    assert_string_equal(s->name, "laion-400m");
    assert_string_equal(s->project, "laion");
    assert_int_equal(s->parts_limit, 16);
    assert_int_equal(s->priority, 50);
    assert_int_equal(s->budget_musd, INT64_C(2000000000));
    assert_int_equal(s->at_limit, AT_LIMIT_DRAIN);
    assert_int_equal(s->instances_n, 1);
    assert_int_equal(s->instances[0].n, 16);
    assert_string_equal(s->tags[0].value, "4711");
    assert_int_equal(s->stages_n, 1);
    const struct spec_stage *d = s->stages[0];
    assert_int_equal(d->worker, WORKER_DOWNLOAD);
    assert_int_equal(d->fan_out, FAN_OUT_S3);
    assert_string_equal(d->fan_out_from, "s3://acme-laion/meta/*.parquet");
    assert_int_equal(d->instance_type_n, 3);
    assert_string_equal(d->instance_type[1], "ml.c5n.18xlarge");
    assert_int_equal(d->volume_gb, 225);
    assert_int_equal(d->max_runtime_s, 14400);
    assert_int_equal(d->min_runtime_s, 14400);
    assert_int_equal(d->expect_s, 6000);
    assert_int_equal(d->hyperparameters_n, 6);
    assert_string_equal(d->hyperparameters[0].value, "{uri}");
    assert_string_equal(d->hyperparameters[2].value, "256");
    assert_string_equal(d->output, "s3://acme-laion/img/{part:05d}/");
    assert_string_equal(d->done_if, d->output);
    assert_int_equal(d->done_if_kind, VERIFY_MANIFEST);
    assert_int_equal(d->verify, VERIFY_MANIFEST);
    assert_int_equal(d->allow_failed_ppm, 20000);
    assert_int_equal(d->budget_musd, INT64_C(1900000000));
    assert_int_equal(d->per_task_musd, 40000000);
    assert_true(d->retry[CAUSE_CAPACITY].set && !d->retry[CAUSE_CAPACITY].counts);
    assert_int_equal(d->retry[CAUSE_CAPACITY].wait_to_s, 1800);
    assert_false(d->retry[CAUSE_OOM].set);
    assert_string_equal(d->role, "arn:aws:iam::111122223333:role/drover-worker");
    assert_int_equal(d->subnets_n, 0);
    parsed_free(p);
}

static void test_spec__eight_mistakes_give_eight_faults(void **state)
{
    (void)state;
    static const struct {
        int line;
        int column;
        const char *code;
        const char *pointer;
        const char *hint; /* a word of what to write */
    } want[] = {
        {6, 17, "range", "limits.parts", "1 to"},
        {7, 17, "type", "budget.total", "900 USD"},
        {8, 18, "pattern", "security.role", "arn:aws:iam::"},
        {15, 5, "unknown_key", "stages.download.volume_size", "volume_gb"},
        {16, 18, "type", "stages.download.max_runtime", "4h"},
        {19, 22, "unknown_variable", "stages.download.hyperparameters.output_folder", "bucket"},
        {20, 5, "required", "stages.volume", "ttl: 24h"},
        {22, 12, "unknown_stage", "stages.volume.needs", "download"},
    };
    AUTO_FREE char *text = file_text("deploy/examples/broken.yaml");
    struct parsed *p = parse(text);
    show(&p->faults);
    assert_int_equal(p->faults.n, ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        const struct fault *f = &p->faults.at[i];
        assert_int_equal(f->pos.line, want[i].line);
        assert_int_equal(f->pos.column, want[i].column);
        assert_string_equal(f->code, want[i].code);
        assert_string_equal(f->pointer, want[i].pointer);
        assert_non_null(strstr(f->hint, want[i].hint));
        assert_true(f->message[0] != '\0');
    }
    parsed_free(p);
}

static void test_spec__json_is_read_as_well(void **state)
{
    (void)state;
    struct parsed *p =
        parse("{\"version\":1,\"name\":\"c1\",\"stages\":[{\"name\":\"d\",\"worker\":\"download\","
              "\"fan_out\":{\"from\":\"{bucket}/m/*.csv\"},\"instance_type\":\"ml.m5.large\","
              "\"network_isolation\":false,\"hyperparameters\":{\"url_list\":\"{uri}\","
              "\"output_folder\":\"{bucket}/o/{stem}/\"}}]}");
    show(&p->faults);
    assert_true(p->good);
    assert_string_equal(p->spec->stages[0]->fan_out_from, "s3://acme/m/*.csv");
    assert_string_equal(p->spec->stages[0]->output, "s3://acme/o/{stem}/");
    assert_string_equal(p->spec->stages[0]->image, "registry/drover-worker:1");
    assert_int_equal(p->spec->stages[0]->max_runtime_s, 86400);
    parsed_free(p);
}

static const struct mistake {
    const char *from;
    const char *to;
    const char *code;
    int line;
    const char *word;
} mistakes[] = {
    {"version: 1", "version: 2", "range", 1, "2"},
    {"name: c1\n", "", "required", 1, "'name'"},
    {"name: c1", "name: 7", "type", 2, "text is needed"},
    {"name: c1", "name: a b", "pattern", 2, "'a b'"},
    {"name: c1", "name: hf_abcdefghijklmnopqrstuvwxyz0123456", "secret", 2, "Hugging Face"},
    {"name: c1", "name: c1\ntags: {AKIAIOSFODNN7EXAMPLE: y}", "secret", 3, "the key looks like"},
    {"name: c1", "name: c1\ntags: {x: \"https://me:word@host/x\"}", "secret", 3, "password"},
    {"name: c1", "nam: c1\nname: c1", "unknown_key", 2, "'nam'"},
    {"name: c1", "name: c1\nnotify: {}", "unsupported", 3, "'notify'"},
    {"name: c1", "name: c1\ntags: {\"aws:x\": y}", "pattern", 3, "reserved"},
    {"name: c1", "name: c1\ntags: {x: \"a<b\"}", "pattern", 3, "character"},
    {"name: c1", "name: c1\ntags: {x: \"a – b\"}", "pattern", 3, "character"},
    {"name: c1", "name: c1\ntags: {\"\xf0\x9f\x90\x84\": x}", "pattern", 3, "character"},
    {"name: c1", "name: c1\ntags: {x: \"a\\nb\"}", "pattern", 3, "character"},
    {"name: c1", "name: c1\ntags: {\"AWS:x\": y}", "pattern", 3, "reserved"},
    {"name: c1", "name: c1\nlimits: {priority: 101}", "range", 3, "101"},
    {"name: c1", "name: c1\nlimits: {deadline: tomorrow}", "pattern", 3, "'tomorrow' is no time"},
    {"name: c1", "name: c1\nlimits: {deadline: 2026-12-01T18:00:00+01:00}", "pattern", 3, "time"},
    {"name: c1", "name: c1\nlimits: {deadline: 2026-13-01T18:00:00Z}", "pattern", 3, "no time"},
    {"name: c1", "name: c1\nlimits: {parts: many}", "type", 3, "whole number"},
    {"name: c1", "name: c1\nlimits: {parts: 1.5}", "type", 3, "whole number"},
    {"name: c1", "name: c1\nlimits: {instances: {c5.large: 2}}", "pattern", 3, "c5.large"},
    {"name: c1", "name: c1\nlimits: []", "type", 3, "a map"},
    {"name: c1", "name: c1\nbudget: {total: 1 EUR}", "type", 3, "USD"},
    {"name: c1", "name: c1\nbudget: {total: -1 USD}", "type", 3, "-1"},
    {"name: c1", "name: c1\nbudget: {at_limit: halt}", "value", 3, "halt"},
    {"name: c1", "name: c1\nbudget: {warn_at: 50%}", "type", 3, "a list"},
    {"name: c1", "name: c1\nbudget: {stages: {dl: {total: 1 USD}}}", "unknown_stage", 3, "dl"},
    {"name: c1", "name: c1\nretry: [{cause: bad_luck}]", "value", 3, "bad_luck"},
    {"name: c1", "name: c1\nretry: [{times: 1}]", "required", 3, "cause"},
    {"name: c1", "name: c1\nretry: [{cause: oom, wait: soon}]", "type", 3, "wait"},
    {"name: c1", "name: c1\nretry: [{cause: oom, wait: 10m..1m}]", "type", 3, "wait"},
    {"name: c1", "name: c1\nretry: [{cause: oom, times: often}]", "type", 3, "often"},
    {"name: c1", "name: c1\nretry: [{cause: oom, counts: 1}]", "type", 3, "boolean"},
    {"name: c1", "name: c1\nretry: [{cause: oom, change: {}}]", "required", 3, "nothing"},
    {"name: c1", "name: c1\nsecurity: {vpc: {subnets: [subnet-1]}}", "required", 3,
     "security_groups"},
    {"name: c1", "name: c1\nsecurity: {vpc: {subnets: [a_b], security_groups: [sg-1]}}", "pattern",
     3, "a_b"},
    {"vars: {", "vars: {part: x, ", "pattern", 3, "part"},
    {"vars: {", "vars: {x: \"{y}\", ", "unknown_variable", 3, "{y}"},
    {"vars: {", "vars: {x: [1], ", "type", 3, "one value"},
    {"name: download", "name: Down load", "pattern", 5, "Down load"},
    {"name: download", "name: download\n    needs: download", "cycle", 6, "itself"},
    {"name: download", "name: download\n    needs: [a]", "unknown_stage", 6, "'a'"},
    {"worker: download", "worker: train-sample", "unsupported", 6, "train-sample"},
    {"worker: download", "worker: downlaod", "value", 6, "downlaod"},
    {"worker: download", "kind: luster\n    worker: download", "value", 6, "luster"},
    {"worker: download", "kind: job\n    worker: download", "value", 6, "job"},
    {"worker: download", "worker: download\n    ttl: 2h", "conflict", 7, "another kind"},
    {"worker: download", "extends: other", "unknown_stage", 6, "'other'"},
    {"worker: download", "worker: download\n    matrix: {}", "required", 7, "without rows"},
    {"worker: download", "worker: download\n    image: \"a b\"", "pattern", 7, "no image"},
    {"worker: download", "worker: download\n    image: a@sha256:12", "pattern", 7, "no image"},
    {"worker: download", "worker: download\n    command: [x]", "conflict", 7, "command"},
    {"worker: download", "worker: download\n    network_isolation: true", "conflict", 7,
     "isolated"},
    {"worker: download", "worker: download\n    network_isolation: \"yes\"", "type", 7, "boolean"},
    {"worker: download", "worker: download\n    role: nobody", "pattern", 7, "nobody"},
    {"worker: download", "worker: download\n    instance_count: 0", "range", 7, "0"},
    {"worker: download", "worker: download\n    volume_gb: 0", "range", 7, "0"},
    {"worker: download", "worker: download\n    volume_gb: 30 GB", "type", 7, "whole"},
    {"worker: download", "worker: download\n    min_runtime: 5h", "range", 7, "18000"},
    {"worker: download", "worker: download\n    expect: 100m", "type", 7, "a map"},
    {"worker: download", "worker: download\n    vpc: yes", "type", 7, "a map"},
    {"worker: download", "worker: download\n    allow_failed: 2", "type", 7, "percentage"},
    {"worker: download", "worker: download\n    allow_failed: 101%", "range", 7, "101%"},
    {"worker: download", "worker: download\n    verify: hope", "value", 7, "hope"},
    {"worker: download", "worker: download\n    verify: exists", "required", 7, "key"},
    {"worker: download", "worker: download\n    verify: artifacts", "conflict", 7, "artifact"},
    {"worker: download", "worker: download\n    verify: {count: 3}", "required", 7, "prefix"},
    {"worker: download", "worker: download\n    verify: {exists: nowhere}", "pattern", 7,
     "nowhere"},
    {"worker: download", "worker: download\n    done_if: {}", "required", 7, "one of"},
    {"worker: download", "worker: download\n    done_if: {exists: \"s3://bkt/k\"}", "conflict", 7,
     "every part"},
    {"worker: download", "worker: download\n    environment: {1A: x}", "pattern", 7, "1A"},
    {"worker: download", "worker: download\n    environment: {DROVER_TASK: x}", "pattern", 7,
     "DROVER_TASK"},
    {"worker: download", "worker: download\n    output: \"s3://bkt/\"", "conflict", 7,
     "output_folder"},
    {"fan_out: {", "fan_out: {per_part: 4, ", "unsupported", 7, "4 files"},
    {"fan_out: {", "fan_out: {order: size, ", "unsupported", 7, "size"},
    {"{bucket}/meta/*.parquet", "{bucket}/meta/", "pattern", 7, "'*'"},
    {"{bucket}/meta/*.parquet", "/data/*.parquet", "pattern", 7, "S3"},
    {"{bucket}/meta/*.parquet", "{bucket}/{part}/*", "unknown_variable", 7, "task to task"},
    {"ml.c5.18xlarge", "ml.c5", "pattern", 8, "ml.c5"},
    {"ml.c5.18xlarge", "[ml.c5.xlarge, ml.c5.xlarge]", "duplicate", 8, "twice"},
    {"ml.c5.18xlarge", "[]", "required", 8, "empty"},
    {"    instance_type: ml.c5.18xlarge\n", "", "required", 5, "instance_type"},
    {"max_runtime: 4h", "max_runtime: 14400", "type", 9, "unit"},
    {"max_runtime: 4h", "max_runtime: 29d", "range", 9, "29d"},
    {"max_runtime: 4h", "max_runtime:", "type", 9, "nothing"},
    {"\"{uri}\"", "[1, 2]", "type", 11, "one value"},
    {"\"{uri}\"", "\"{uri}\\n\"", "pattern", 11, "line break"},
    {"      url_list: \"{uri}\"\n", "", "required", 11, "url_list"},
    {"\"{uri}\"", "\"{uri\"", "braces", 11, "brace"},
    {"{part:05d}", "{part:5x}", "braces", 12, "format"},
    {"{part:05d}", "{uri:05d}", "braces", 12, "format"},
    {"{part:05d}", "all", "conflict", 12, "same place"},
    {"{part:05d}", "{part}/{attempt}", "conflict", 12, "retry"},
    {"{part:05d}", "{prt}", "unknown_variable", 12, "{prt}"},
    {"{bucket}/img", "file:///img", "pattern", 12, "S3"},
};

static void test_spec__one_mistake_one_fault(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        assert_fault_at(mistakes[i].from, mistakes[i].to, mistakes[i].code, mistakes[i].line,
                        mistakes[i].word);
    }
    (void)printf("# %zu mistakes, one fault each\n", ARRAY_LEN(mistakes));
}

static void test_spec__what_is_right_has_no_fault(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"name: c1", "name: c1"},
        {"name: c1", "name: c1\nbudget: 900 USD"},
        {"name: c1", "name: c1\nbudget: {total: 12.50 USD, at_limit: stop}"},
        {"name: c1", "name: c1\ntags: {\"größe\": \"ü x\", n: 4711, b: yes}"},
        {"name: c1", "name: c1\nretry: [{cause: [oom, internal], times: forever, counts: no}]"},
        {"name: c1", "name: c1\nretry: [{cause: oom, wait: auto}, {cause: oom, wait: 5s}]"},
        {"name: c1", "name: c1\nsecurity: {vpc: none}"},
        {"vars: {", "vars: {a: x, b: \"{a}/y\", "},
        {"worker: download", "worker: download\n    network_isolation: no"},
        {"worker: download", "worker: download\n    kind: jobs"},
        {"worker: download", "worker: download\n    needs: []"},
        {"worker: download", "worker: download\n    verify: img2dataset"},
        {"worker: download", "worker: download\n    verify: none"},
        {"worker: download",
         "worker: download\n    verify: {count: 3, prefix: \"{bucket}/{part:05d}/\"}"},
        {"worker: download", "worker: download\n    done_if: {exists: \"{bucket}/{stem}.ok\"}"},
        {"worker: download", "worker: download\n    environment: {A_b: \"{stage}-{{x}}\"}"},
        {"worker: download", "worker: download\n    allow_failed: 0.5%"},
        {"worker: download", "worker: download\n    min_runtime: 30m"},
        {"fan_out: {from: \"{bucket}/meta/*.parquet\"}", "fan_out: api"},
        {"fan_out: {from: \"{bucket}/meta/*.parquet\"}", "fan_out: {from: api, per_part: 1}"},
        {"fan_out: {", "fan_out: {order: name, "},
        {"ml.c5.18xlarge", "[ml.p4d.24xlarge, ml.trn1n.32xlarge, ml.p6-b200.48xlarge]"},
        {"max_runtime: 4h", "max_runtime: 1h30m"},
        {"{part:05d}", "{file_name}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_good(rows[i][0], rows[i][1]);
    }
}

static void test_spec__what_droverd_does_not_add_the_file_must_say(void **state)
{
    (void)state;
    const struct spec_defaults none = {0};
    struct parsed *p = parse_with(BASE, &none);
    assert_int_equal(p->faults.n, 2);
    assert_non_null(strstr(p->faults.at[0].message, "image"));
    assert_non_null(strstr(p->faults.at[1].message, "role"));
    parsed_free(p);
    AUTO_FREE char *text = base_with("vars: {bucket: \"s3://acme-laion\"}\n", "");
    p = parse_with(text, &none);
    assert_int_equal(p->faults.n, 4); /* {bucket} twice */
    parsed_free(p);
    const struct spec_defaults with_scheme = {ROLE, "i", "s3://own", NULL, false, NULL};
    p = parse_with(text, &with_scheme);
    assert_true(p->good);
    assert_string_equal(p->spec->stages[0]->fan_out_from, "s3://own/meta/*.parquet");
    parsed_free(p);
}

static void test_spec__an_image_of_the_users(void **state)
{
    (void)state;
    struct parsed *p = parse("name: c\nstages:\n  - name: train\n    image: r/x:1\n"
                             "    command: [\"--part\", \"{part}\"]\n"
                             "    instance_type: ml.m5.large\n    instance_count: 4\n");
    show(&p->faults);
    assert_true(p->good);
    const struct spec_stage *s = p->spec->stages[0];
    assert_int_equal(s->verify, VERIFY_ARTIFACTS);
    assert_int_equal(s->fan_out, FAN_OUT_NONE);
    assert_int_equal(s->command_n, 2);
    assert_string_equal(s->output, "s3://acme/drover/{campaign}/{stage}/{part:05d}/");
    struct faults warnings = {0};
    spec_warn(p->spec, &warnings);
    assert_int_equal(warnings.n, 2); /* not in ECR, no budget */
    assert_string_equal(warnings.at[0].code, "image_registry");
    parsed_free(p);
    p = parse("name: c\nstages: [{name: t, instance_type: ml.m5.large}]");
    assert_int_equal(p->faults.n, 1);
    assert_non_null(strstr(p->faults.at[0].message, "what the stage runs"));
    parsed_free(p);
}

/* n stages by name with their needs: "a:b,c d:" */
static struct parsed *parse_graph(const char *const rows[][2], int n)
{
    AUTO_BUF struct buf b = BUF_INIT(65536);
    buf_add_cstr(&b, "name: g\nstages:\n");
    for (int i = 0; i < n; i++) {
        buf_addf(&b, "  - {name: %s, needs: [%s], image: r/x, instance_type: ml.m5.large}\n",
                 rows[i][0], rows[i][1]);
    }
    return parse(buf_cstr(&b));
}

static void test_spec__stages_stand_in_dependency_order(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{"d", "b, c"}, {"b", "a"}, {"c", "a"}, {"a", ""}};
    struct parsed *p = parse_graph(rows, 4);
    assert_true(p->good);
    assert_string_equal(p->spec->stages[0]->name, "a");
    assert_string_equal(p->spec->stages[1]->name, "b");
    assert_string_equal(p->spec->stages[2]->name, "c");
    assert_string_equal(p->spec->stages[3]->name, "d");
    assert_int_equal(spec_stage_find(p->spec, "c"), 2);
    assert_int_equal(spec_stage_find(p->spec, "x"), -1);
    parsed_free(p);
}

static void test_spec__circles_and_doubles_are_named(void **state)
{
    (void)state;
    static const char *const circle[][2] = {{"a", "c"}, {"b", "a"}, {"c", "b"}, {"d", ""}};
    struct parsed *p = parse_graph(circle, 4);
    assert_int_equal(p->faults.n, 1);
    assert_string_equal(p->faults.at[0].code, "cycle");
    assert_non_null(strstr(p->faults.at[0].message, "circular needs: a, b, c"));
    parsed_free(p);
    static const char *const doubles[][2] = {{"a", ""}, {"b", "a"}, {"a", ""}};
    p = parse_graph(doubles, 3);
    assert_int_equal(p->faults.n, 1);
    assert_string_equal(p->faults.at[0].code, "duplicate");
    assert_int_equal(p->faults.at[0].pos.line, 5);
    parsed_free(p);
}

static void test_spec__text_that_is_no_campaign_file(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "[]",
                                        "7",
                                        "a: [",
                                        "\t",
                                        "name: a\nname: b",
                                        "stages: {}",
                                        "name: x\nstages: []",
                                        "name: x",
                                        "name: x\nstages: [1, [], null, \"\"]",
                                        "a: !!python/object x",
                                        "{\"name\":\"x\",\"stages\":[{}]}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct parsed *p = parse(texts[i]);
        assert_false(p->good);
        assert_true(p->faults.n > 0);
        assert_null(p->spec);
        parsed_free(p);
    }
    AUTO_FREE char *big = xmalloc(SPEC_TEXT_MAX + 2);
    memset(big, 'a', SPEC_TEXT_MAX + 1);
    big[SPEC_TEXT_MAX + 1] = '\0';
    struct parsed *p = parse(big);
    assert_false(p->good);
    parsed_free(p);
}

static void test_spec__substitution_is_text_and_bounded(void **state)
{
    (void)state;
    struct parsed *p = parse_changed("vars: {", "vars: {q: \"a{{b}}: [x]\", ");
    assert_true(p->good);
    parsed_free(p);
    AUTO_FREE char *text = base_with(
        "    hyperparameters:\n", "    hyperparameters:\n      user_agent_token: \"{q}-{part}\"\n");
    const char *at = strstr(text, "vars: {");
    AUTO_FREE char *both =
        xasprintf("%.*svars: {q: \"x{{part}}, z: [1]\", %s", (int)(at - text), text, at + 7);
    p = parse(both);
    show(&p->faults);
    assert_true(p->good);
    assert_int_equal(p->spec->stages[0]->hyperparameters_n, 3);
    AUTO_BUF struct buf out = BUF_INIT(1000);
    struct err err = ERR_INIT;
    struct spec_task t = {.stage_name = "s", .seq = 7, .uri = "s3://b/k"};
    assert_true(spec_expand(p->spec->stages[0]->hyperparameters[0].value, &t, &out, &err));
    assert_string_equal(buf_cstr(&out), "x{part}, z: [1]-7"); /* no second pass */
    parsed_free(p);
    /* a value that grows too long is one fault, not memory */
    AUTO_BUF struct buf b = BUF_INIT(1 << 20);
    buf_add_cstr(&b, "name: c\nvars: {v: \"");
    for (int i = 0; i < 1000; i++) {
        buf_add_char(&b, 'x');
    }
    buf_add_cstr(&b, "\"}\nproject: \"");
    for (int i = 0; i < 100000; i++) {
        buf_add_cstr(&b, "{v}");
    }
    buf_add_cstr(&b, "\"\nstages: []\n");
    p = parse(buf_cstr(&b));
    assert_false(p->good);
    assert_string_equal(p->faults.at[0].code, "limit");
    parsed_free(p);
}

/* What the YAML reader finds hides nothing of what stands beside it, and is not said twice. */
static void test_spec__faults_of_the_text_and_of_its_meaning_together(void **state)
{
    (void)state;
    struct parsed *p = parse("version: 1\nname: c1\nname: c2\nlimits: {parts: 0, parts: 3}\n"
                             "budget: {total: 99999999999999999999}\n"
                             "stages: [{name: a, kind: job, image: r/x, instance_type: m5}]\n");
    show(&p->faults);
    assert_int_equal(p->faults.n, 6);
    assert_string_equal(p->faults.at[0].code, "duplicate_key");
    assert_int_equal(p->faults.at[0].pos.line, 3);
    assert_string_equal(p->faults.at[1].code, "range");
    assert_string_equal(p->faults.at[2].code, "duplicate_key");
    assert_string_equal(p->faults.at[3].code, "range");
    assert_int_equal(p->faults.at[3].pos.line, 5);
    assert_string_equal(p->faults.at[4].code, "value");
    assert_string_equal(p->faults.at[5].code, "pattern");
    parsed_free(p);
}

static void test_spec__many_faults_are_counted_not_lost(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(1 << 20);
    buf_add_cstr(&b, "name: c\nstages: []\n");
    for (int i = 0; i < 200; i++) {
        buf_addf(&b, "zzz%d: 1\n", i);
    }
    struct parsed *p = parse(buf_cstr(&b));
    assert_int_equal(p->faults.n, FAULTS_MAX);
    assert_int_equal(p->faults.n + p->faults.dropped, 201);
    parsed_free(p);
}

static bool price_3_usd(void *ctx, const struct spec_stage *s, musd_t *ret)
{
    (void)ctx;
    *ret = 3060000;
    return strcmp(s->instance_type[0], "ml.c5.18xlarge") == 0;
}

static void test_spec__a_step_no_cap_admits_is_refused_with_both_numbers(void **state)
{
    (void)state;
    /* 4 h + 17 min of 3.06 USD: 13.107 */
    struct parsed *p = parse_changed("name: c1", "name: c1\nbudget: 13.106999 USD");
    assert_true(p->good);
    struct faults f = {0};
    assert_false(spec_check_budget(p->spec, price_3_usd, NULL, &f));
    assert_int_equal(f.n, 1);
    assert_non_null(strstr(f.at[0].message, "may cost 13.107 USD"));
    assert_non_null(strstr(f.at[0].message, "is 13.106999 USD"));
    assert_non_null(strstr(f.at[0].hint, "at least 13.107 USD, or a max_runtime"));
    parsed_free(p);
    p = parse_changed("name: c1", "name: c1\nbudget: 13.107 USD");
    memset(&f, 0, sizeof f);
    assert_true(spec_check_budget(p->spec, price_3_usd, NULL, &f));
    parsed_free(p);
    p = parse_changed("name: c1",
                      "name: c1\nbudget: {stages: {download: {total: 99 USD, per_task: 1 USD}}}");
    assert_false(spec_check_budget(p->spec, price_3_usd, NULL, &f));
    assert_non_null(strstr(f.at[0].message, "per_task"));
    parsed_free(p);
    /* a shorter run may be sent: then that has to fit; no price: nothing to say */
    AUTO_FREE char *text = base_with("max_runtime: 4h", "max_runtime: 4h\n    min_runtime: 1h");
    AUTO_FREE char *capped = xasprintf("budget: 5 USD\n%s", text);
    p = parse(capped);
    memset(&f, 0, sizeof f);
    assert_true(spec_check_budget(p->spec, price_3_usd, NULL, &f));
    parsed_free(p);
    AUTO_FREE char *unpriced = base_with("ml.c5.18xlarge", "ml.c5.large");
    AUTO_FREE char *poor = xasprintf("budget: 0 USD\n%s", unpriced);
    p = parse(poor);
    assert_true(spec_check_budget(p->spec, price_3_usd, NULL, &f));
    parsed_free(p);
}

/* Bytes of the example changed at random: an answer each time, the same twice, never a crash. */
static void test_spec__damaged_files_are_answered(void **state)
{
    (void)state;
    AUTO_FREE char *text = file_text("deploy/examples/laion-download.yaml");
    size_t n = strlen(text);
    struct rng rng;
    rng_seed(&rng, 21);
    int good = 0;
    for (int round = 0; round < 3000; round++) {
        AUTO_FREE char *copy = xstrndup(text, n);
        for (uint64_t k = 1 + rng_below(&rng, 3); k > 0; k--) {
            static const char bytes[] = "{}[]:,'\"*&!#-\n x0%\x80";
            copy[rng_below(&rng, n)] = bytes[rng_below(&rng, sizeof bytes - 1)];
        }
        struct parsed *p = parse(copy);
        good += p->good;
        for (int i = 0; i < p->faults.n; i++) {
            assert_true(p->faults.at[i].message[0] != '\0');
            assert_true(p->faults.at[i].code[0] != '\0');
        }
        parsed_free(p);
    }
    assert_true(good > 0 && good < 3000);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec__the_example_is_read_as_it_stands),
        cmocka_unit_test(test_spec__eight_mistakes_give_eight_faults),
        cmocka_unit_test(test_spec__json_is_read_as_well),
        cmocka_unit_test(test_spec__one_mistake_one_fault),
        cmocka_unit_test(test_spec__what_is_right_has_no_fault),
        cmocka_unit_test(test_spec__what_droverd_does_not_add_the_file_must_say),
        cmocka_unit_test(test_spec__an_image_of_the_users),
        cmocka_unit_test(test_spec__stages_stand_in_dependency_order),
        cmocka_unit_test(test_spec__circles_and_doubles_are_named),
        cmocka_unit_test(test_spec__text_that_is_no_campaign_file),
        cmocka_unit_test(test_spec__substitution_is_text_and_bounded),
        cmocka_unit_test(test_spec__faults_of_the_text_and_of_its_meaning_together),
        cmocka_unit_test(test_spec__many_faults_are_counted_not_lost),
        cmocka_unit_test(test_spec__a_step_no_cap_admits_is_refused_with_both_numbers),
        cmocka_unit_test(test_spec__damaged_files_are_answered),
    };
    return cmocka_run_group_tests_name("spec", tests, NULL, NULL);
}
