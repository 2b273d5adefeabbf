/* Aim: `extends` and `matrix` give exactly the stages that written out would be there, and each
 * mistake in them is one fault at its place, whatever the number of rows. Method: files with rows
 * against the same file written out, compared in the stored form; a table of mistakes with line,
 * column, code and words; several mistakes at once; bounds. */
#include "core/spec/spec_json.h"
#include "spec_text.h"

#define HEAD "name: m\nstages:\n"
#define TRAIN                                                                                      \
    "  - name: train\n"                                                                            \
    "    image: r/x:1\n"                                                                           \
    "    instance_type: ml.p4d.24xlarge\n"                                                         \
    "    max_runtime: 2h\n"

static struct parsed *parse_good(const char *text)
{
    struct parsed *p = parse(text);
    if (!p->good) {
        (void)printf("# should be right:\n%s", text);
        show(&p->faults);
        fail();
    }
    return p;
}

/* The stored form, but for what a row remembers of its matrix. */
static json_t *without_group(const struct spec *spec)
{
    json_t *o = spec_to_json(spec);
    size_t i;
    json_t *stage;
    json_array_foreach(json_object_get(o, "stages"), i, stage)
    {
        (void)json_object_del(stage, "group");
        (void)json_object_del(stage, "scales_with");
    }
    return o;
}

static void assert_same(const char *text, const char *written_out)
{
    struct parsed *a = parse_good(text);
    struct parsed *b = parse_good(written_out);
    AUTO_JSON json_t *got = without_group(a->spec);
    AUTO_JSON json_t *want = without_group(b->spec);
    if (!json_equal(got, want)) {
        AUTO_FREE char *x = json_dumps(got, JSON_INDENT(1) | JSON_SORT_KEYS);
        AUTO_FREE char *y = json_dumps(want, JSON_INDENT(1) | JSON_SORT_KEYS);
        (void)printf("# got\n%s\n# want\n%s\n", x, y);
        fail();
    }
    parsed_free(a);
    parsed_free(b);
}

/* The names of all stages, in the order they are run in, and what each needs. */
static void assert_names(const struct spec *spec, const char *want)
{
    AUTO_BUF struct buf b = BUF_INIT(4096);
    for (int i = 0; i < spec->stages_n; i++) {
        const struct spec_stage *s = spec->stages[i];
        buf_addf(&b, "%s%s", i == 0 ? "" : " ", s->name);
        for (int k = 0; k < s->needs_n; k++) {
            buf_addf(&b, "%s%s", k == 0 ? "<" : ",", s->needs[k]);
        }
    }
    assert_string_equal(buf_cstr(&b), want);
}

static void assert_stages(const char *text, const char *want)
{
    struct parsed *p = parse_good(text);
    assert_names(p->spec, want);
    parsed_free(p);
}

static void test_spec_matrix__rows_are_the_stages_written_out(void **state)
{
    (void)state;
    assert_same(
        HEAD TRAIN "    hyperparameters: {epochs: 1, tag: \"{matrix.instance_count} of 4\"}\n"
                   "    output: \"{bucket}/m/{stage}/\"\n"
                   "    matrix: {instance_count: [1, 4]}\n",
        HEAD "  - {name: train-1, image: \"r/x:1\", instance_type: ml.p4d.24xlarge,\n"
             "     max_runtime: 2h, instance_count: 1,\n"
             "     hyperparameters: {epochs: 1, tag: 1 of 4}, output: \"{bucket}/m/{stage}/\"}\n"
             "  - {name: train-4, image: \"r/x:1\", instance_type: ml.p4d.24xlarge,\n"
             "     max_runtime: 2h, instance_count: 4,\n"
             "     hyperparameters: {epochs: 1, tag: 4 of 4},\n"
             "     output: \"{bucket}/m/{stage}/\"}\n");
    /* lists multiply, the last going round first; include has rows of its own */
    assert_same(HEAD TRAIN
                "    hyperparameters: {lr: \"{matrix.lr}\", a: x}\n"
                "    matrix:\n"
                "      instance_count: [1, 2]\n"
                "      lr: [0.1, 1e-2]\n"
                "      include:\n"
                "        - {name: big, instance_count: 8, lr: 3, hyperparameters: {a: y}}\n",
                HEAD "  - {name: train-1-0-1, image: \"r/x:1\", instance_type: ml.p4d.24xlarge,\n"
                     "     max_runtime: 2h, instance_count: 1, hyperparameters: {lr: 0.1, a: x}}\n"
                     "  - {name: train-1-1e-2, image: \"r/x:1\", instance_type: ml.p4d.24xlarge,\n"
                     "     max_runtime: 2h, instance_count: 1, hyperparameters: {lr: 1e-2, a: x}}\n"
                     "  - {name: train-2-0-1, image: \"r/x:1\", instance_type: ml.p4d.24xlarge,\n"
                     "     max_runtime: 2h, instance_count: 2, hyperparameters: {lr: 0.1, a: x}}\n"
                     "  - {name: train-2-1e-2, image: \"r/x:1\", instance_type: ml.p4d.24xlarge,\n"
                     "     max_runtime: 2h, instance_count: 2, hyperparameters: {lr: 1e-2, a: x}}\n"
                     "  - {name: train-big, image: \"r/x:1\", instance_type: ml.p4d.24xlarge,\n"
                     "     max_runtime: 2h, instance_count: 8, hyperparameters: {lr: 3, a: y}}\n");
    /* one hyperparameter by its dotted name */
    assert_same(HEAD TRAIN "    hyperparameters: {a: x}\n"
                           "    matrix: {hyperparameters.b: [on, off]}\n",
                HEAD "  - {name: train-on, image: \"r/x:1\", instance_type: ml.p4d.24xlarge,\n"
                     "     max_runtime: 2h, hyperparameters: {a: x, b: on}}\n"
                     "  - {name: train-off, image: \"r/x:1\", instance_type: ml.p4d.24xlarge,\n"
                     "     max_runtime: 2h, hyperparameters: {a: x, b: off}}\n");
}

/* A row's values are texts like others: {bucket} and {{ mean what they mean elsewhere. */
static void test_spec_matrix__values_of_rows_have_the_files_variables(void **state)
{
    (void)state;
    assert_same(HEAD TRAIN
                "    hyperparameters: {data: \"{matrix.data}\", note: \"{matrix.note}\"}\n"
                "    input: {data: \"{matrix.data}\"}\n"
                "    matrix:\n"
                "      include: [{name: a, data: \"{bucket}/1pct/\", note: \"{{x\"}]\n",
                HEAD "  - {name: train-a, image: \"r/x:1\", instance_type: ml.p4d.24xlarge,\n"
                     "     max_runtime: 2h, input: {data: \"s3://acme/1pct/\"},\n"
                     "     hyperparameters: {data: \"s3://acme/1pct/\", note: \"{{x\"}}\n");
    /* a key of the stage keeps what differs from task to task; {matrix.KEY} has it expanded */
    assert_same(HEAD TRAIN "    fan_out: {count: 2}\n"
                           "    hyperparameters: {data: \"{matrix.environment.A}\"}\n"
                           "    matrix:\n"
                           "      include: [{name: a, environment.A: \"{bucket}/x\",\n"
                           "                 output: \"{bucket}/o/{part:05d}/\"}]\n",
                HEAD "  - {name: train-a, image: \"r/x:1\", instance_type: ml.p4d.24xlarge,\n"
                     "     max_runtime: 2h, fan_out: {count: 2}, environment: {A: s3://acme/x},\n"
                     "     output: \"s3://acme/o/{part:05d}/\",\n"
                     "     hyperparameters: {data: \"s3://acme/x\"}}\n");
}

static void test_spec_matrix__extends_lays_keys_over_those_of_another(void **state)
{
    (void)state;
    assert_same(
        HEAD "  - {name: full, extends: mid, needs: train, matrix: none,\n"
             "     hyperparameters: {sample: 1}}\n" /* above what it extends */
             "  - {name: mid, extends: train, matrix: {instance_count: [1, 2]}}\n" TRAIN
             "    hyperparameters: {sample: 0.01, batch: 64}\n"
             "    environment: {A: b}\n",
        HEAD
        "  - {name: full, needs: train, image: \"r/x:1\", instance_type: ml.p4d.24xlarge,\n"
        "     max_runtime: 2h, hyperparameters: {sample: 1, batch: 64},\n"
        "     environment: {A: b}}\n"
        "  - {name: mid-1, image: \"r/x:1\", instance_type: ml.p4d.24xlarge, instance_count: 1,\n"
        "     max_runtime: 2h, hyperparameters: {sample: 0.01, batch: 64},\n"
        "     environment: {A: b}}\n"
        "  - {name: mid-2, image: \"r/x:1\", instance_type: ml.p4d.24xlarge, instance_count: 2,\n"
        "     max_runtime: 2h, hyperparameters: {sample: 0.01, batch: 64},\n"
        "     environment: {A: b}}\n" TRAIN "    hyperparameters: {sample: 0.01, batch: 64}\n"
        "    environment: {A: b}\n");
}

static void test_spec_matrix__names_and_needs(void **state)
{
    (void)state;
    assert_stages(HEAD TRAIN "    matrix: {instance_count: [1, 2]}\n"
                             "  - {name: full, extends: train, matrix: none, needs: train}\n",
                  "train-1 train-2 full<train-1,train-2");
    assert_stages(HEAD TRAIN "    matrix: {instance_count: [1, 2]}\n"
                             "  - {name: full, extends: train, matrix: none, needs: [train-2]}\n",
                  "train-1 train-2 full<train-2");
    /* a matrix that needs a matrix needs all its rows, and hands `needs` on */
    assert_stages(HEAD TRAIN "    matrix: {instance_count: [1, 2]}\n"
                             "  - {name: b, extends: train, needs: train}\n"
                             "  - {name: c, extends: b, matrix: none}\n",
                  "train-1 train-2 b-1<train-1,train-2 b-2<train-1,train-2 c<train-1,train-2");
    assert_stages(HEAD TRAIN "    matrix: {instance_type: [ml.p4d.24xlarge, ml.g5.48xlarge]}\n",
                  "train-ml-p4d-24xlarge train-ml-g5-48xlarge");
    assert_stages(HEAD TRAIN "    matrix: {distribution: [{mpi: {enabled: true}}]}\n", "train-1");
    /* labels that are equal, too long or missing give way to numbers */
    assert_stages(HEAD TRAIN "    matrix: {environment.A: [a_b, a-b]}\n", "train-row1 train-row2");
    assert_stages(HEAD TRAIN "    matrix: {environment.A: [\"?\", x]}\n", "train-row1 train-row2");
    assert_stages(HEAD TRAIN
                  "    matrix: {environment.A: [aaaaaaaaaabbbbbbbbbbccccccccccddddd, x]}\n",
                  "train-row1 train-row2");
    assert_stages(HEAD TRAIN
                  "    matrix: {include: [{hyperparameters: {a: 1}}, {hyperparameters: {a: "
                  "2}}]}\n",
                  "train-row1 train-row2");
}

static const struct mistake {
    const char *tail; /* after HEAD TRAIN: line 7 is the first */
    const char *code;
    int line, column;
    const char *word;
} mistakes[] = {
    {"    matrix: [1, 2]\n", "type", 7, 13, "a map"},
    {"    matrix: off\n", "type", 7, 13, "a map"},
    {"    matrix: {}\n", "required", 7, 13, "without rows"},
    {"    matrix: {include: []}\n", "required", 7, 13, "without rows"},
    {"    matrix: {include: {a: 1}}\n", "type", 7, 23, "a list"},
    {"    matrix: {include: [3, {instance_count: 2}]}\n", "type", 7, 24, "a map"},
    {"    matrix: {include: [{}]}\n", "limit", 7, 24, "1 to"},
    {"    matrix: {instance_count: 4}\n", "type", 7, 14, "a list"},
    {"    matrix: {instance_count: []}\n", "required", 7, 14, "empty"},
    {"    matrix: {instance_count: [1, 2, 1]}\n", "duplicate", 7, 37, "'1'"},
    {"    matrix: {instance_count: [1, two]}\n", "type", 7, 34, "whole number"},
    {"    matrix: {instance_count: [1, 0, 2]}\n", "range", 7, 34, "0"},
    {"    matrix: {instance_cuont: [1, 2]}\n", "unknown_key", 7, 14, "instance_cuont"},
    {"    matrix: {include: [{instance_cuont: 1}]}\n", "unknown_key", 7, 25, "instance_cuont"},
    {"    matrix: {include: [{hyperparmeters: {a: 1}}]}\n", "unknown_key", 7, 25, "hyperparmeters"},
    {"    matrix: {lr: [{a: 1}]}\n", "type", 7, 19, "one value"},
    {"    matrix: {name: [a, b]}\n", "conflict", 7, 14, "'name'"},
    {"    matrix: {include: [{matrix: 1}]}\n", "conflict", 7, 25, "'matrix'"},
    {"    matrix: {include: [{name: A_b}]}\n", "pattern", 7, 25, "row's name"},
    {"    matrix: {include: [{name: x, volume_gb: 7}, {name: x, volume_gb: 8}]}\n", "duplicate", 7,
     50, "two rows are called 'x'"},
    {"    matrix: {volume_gb: [7, 8], include: [{name: \"8\", volume_gb: 9}]}\n", "duplicate", 7,
     44, "two rows"},
    {"    matrix: {include: [{name: abcdefghijklmnopqrstuvwxyz01, volume_gb: 7}]}\n", "limit", 7,
     25, "32 characters"},
    {"    matrix: {output.x: [a, b]}\n", "pattern", 7, 14, "output.x"},
    {"    matrix: {hyperparameters.: [a, b]}\n", "pattern", 7, 14, "hyperparameters."},
    {"    matrix: {instance_count: [1], scales_with: [lr]}\n", "unknown_key", 7, 49, "'lr'"},
    {"    matrix: {instance_count: [1], scales_with: volume_gb}\n", "type", 7, 48, "a list"},
    {"    matrix: {instance_count: [1], scales_with: [3]}\n", "type", 7, 49, "text"},
    {"    matrix: {instance_count: [1], scales_with: [instance_count]}\n", "conflict", 7, 49,
     "instance counts"},
    {"    matrix: {instance_count: [1], scales_with: [input.data]}\n", "unknown_key", 7, 49,
     "input.data"},
    {"    matrix: {instance_count: [1], scales_with: [volume_gb, volume_gb]}\n", "duplicate", 7, 60,
     "twice"},
    {"    matrix: {scales_with: [volume_gb]}\n", "required", 7, 13, "without rows"},
    {"    matrix: {instance_count: [1, 2, 3], volume_gb: [1, 2, 3], environment.A: [1, 2, 3, 4]}\n",
     "limit", 7, 13, "36 rows"},
    {"    matrix: {instance_count: [1, 2]}\n    hyperparameters: {a: \"{matrix.lr}\"}\n",
     "unknown_variable", 8, 26, "{matrix.lr}"},
    {"    hyperparameters: {a: \"{matrix.lr}\"}\n", "unknown_variable", 7, 26, "{matrix.lr}"},
    {"    matrix: {lr: [\"{bukcet}/a\", \"b\"]}\n    hyperparameters: {a: \"{matrix.lr}\"}\n",
     "unknown_variable", 7, 19, "{bukcet}"},
    {"    matrix: {lr: [\"{part}\", \"b\"]}\n    hyperparameters: {a: \"{matrix.lr}\"}\n",
     "unknown_variable", 7, 19, "no value here"},
    {"    matrix: {volume_gb: [\"{bukcet}\"]}\n", "type", 7, 26, "whole number"},
    {"    matrix: {environment.A: [\"{part}\"]}\n"
     "    hyperparameters: {a: \"{matrix.environment.A}\"}\n",
     "unknown_variable", 8, 26, "differs from task to task"},
    {"    input: {data: \"{{bucket}}/a/\"}\n", "pattern", 7, 19, "not a place in S3"},
    {"    input: {data: \"{part:05d}/a/\"}\n", "pattern", 7, 19, "not a place in S3"},
    {"    fan_out: {from: api, vars: [shard]}\n    input: {data: \"{shard}/a/\", b: \"{uri}\"}\n",
     NULL, 0, 0, NULL},
    {"    matrix: {instance_count: [1, 2]}\n    volume_gb: none\n", "type", 8, 16, "whole"},
    {"    matrix: {instance_count: [1, 2]}\n    volum_gb: 3\n", "unknown_key", 8, 5, "volum_gb"},
    {"    matrix: {instance_count: [1, 2]}\n    needs: train\n", "cycle", 8, 12, "itself"},
    {"    matrix: {instance_count: [1, 2]}\n    checkpoint: \"s3://bkt/c/\"\n", "conflict", 8, 17,
     "same checkpoints"},
    {"    matrix: {instance_count: [1, 2]}\n    output: \"s3://bkt/c/\"\n    verify: manifest\n",
     "conflict", 8, 13, "same place"},
    {"    matrix: {volume_gb: [7, 8], instance_count: [1, 2]}\n"
     "    checkpoint: \"s3://bkt/c{matrix.instance_count}/\"\n",
     "conflict", 8, 17, "same checkpoints"},
    {"    matrix: {include: [{name: x, checkpoint: \"s3://b12/ck\"}, {name: y, checkpoint: "
     "\"s3://b12/ck/\"}]}\n",
     "conflict", 7, 84, "same checkpoints"},
    {"    matrix: {volume_gb: [7, 8], instance_count: [1, 2]}\n"
     "    output: \"s3://bkt/c{matrix.instance_count}/\"\n    verify: manifest\n",
     "conflict", 8, 13, "same place"},
    {"    matrix: {lr: [1, 2, 1.0], include: [{lr: 2, name: again}]}\n"
     "    checkpoint: \"s3://bkt/c{matrix.lr}/\"\n",
     "conflict", 8, 17, "same checkpoints"},
    {"    matrix: {volume_gb: [7, 8], instance_count: [1, 2]}\n"
     "    checkpoint: \"s3://bkt/c{matrix.volume_gb}-{matrix.instance_count}/\"\n",
     NULL, 0, 0, NULL},
    {"  - {name: b, image: \"r/x:1\", instance_type: ml.m5.large, max_runtime: 1h, volume_gb: "
     "16384}\n",
     NULL, 0, 0, NULL},
    {"  - {name: b, image: \"r/x:1\", instance_type: ml.m5.large, max_runtime: 1h, volume_gb: "
     "16385}\n",
     "range", 7, 87, "16385"},
    {"    extends: [a]\n", "type", 7, 14, "name of one stage"},
    {"    extends: trian\n", "unknown_stage", 7, 14, "'trian'"},
    {"    extends: train\n", "cycle", 7, 14, "itself"},
    {"  - {name: b, extends: c}\n  - {name: c, extends: b}\n", "cycle", 7, 24, "by way of"},
    {"  - {name: a, extends: b}\n  - {name: b, extends: b}\n", "cycle", 8, 24, "itself"},
    {"  - {name: a, extends: b}\n  - {name: b, extends: x}\n", "unknown_stage", 8, 24, "'x'"},
    {"    volume_gb: none\n  - {name: b, extends: train}\n", "type", 7, 16, "whole"},
    {"  - {extends: train}\n", "required", 7, 5, "'name'"},
    {"  - {name: b, extends: train, volum_gb: 1}\n", "unknown_key", 7, 31, "volum_gb"},
    {"  - {name: B, extends: train, matrix: {instance_count: [1, 2]}}\n", "pattern", 7, 12, "'B'"},
    {"  - {name: abcdefghijklmnopqrstuvwxyz, extends: train, matrix: {instance_count: [1, 2]}}\n",
     NULL, 0, 0, NULL},
    {"  - {name: abcdefghijklmnopqrstuvwxyz0, extends: train, matrix: {instance_count: [1]}}\n",
     "limit", 7, 12, "no room"},
    {"    matrix: {instance_count: [1, 2]}\n  - {name: train-2, extends: train, matrix: none}\n",
     "duplicate", 8, 12, "'train-2'"},
};

static void test_spec_matrix__one_mistake_one_fault(void **state)
{
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        const struct mistake *m = &mistakes[i];
        AUTO_FREE char *text = xasprintf("%s%s%s", HEAD, TRAIN, m->tail);
        struct parsed *p = parse(text);
        const struct fault *f = &p->faults.at[0];
        bool right = m->code == NULL
                         ? p->good
                         : p->faults.n == 1 && strcmp(f->code, m->code) == 0 &&
                               f->pos.line == m->line && f->pos.column == m->column &&
                               strstr(f->message, m->word) != NULL && f->hint[0] != '\0';
        if (!right) {
            (void)printf("# expected one %s at %d:%d with '%s' and a hint for:\n# %s",
                         m->code == NULL ? "(none)" : m->code, m->line, m->column, m->word,
                         m->tail);
            show(&p->faults);
            bad++;
        }
        parsed_free(p);
    }
    assert_int_equal(bad, 0);
    (void)printf("# %zu mistakes, one fault each\n", ARRAY_LEN(mistakes));
}

static void test_spec_matrix__all_mistakes_at_once(void **state)
{
    (void)state;
    struct parsed *p = parse(HEAD TRAIN "    volume_gb: none\n"
                                        "    matrix:\n"
                                        "      instance_count: [1, 0]\n"
                                        "      environment.A: x\n"
                                        "      typo: [1, 2]\n"
                                        "      include:\n"
                                        "        - 7\n"
                                        "        - {volume_gb: 0}\n"
                                        "  - {name: b, extends: train, max_runtime: 5}\n"
                                        "  - {name: c, extends: nothing, typo: 1}\n");
    static const struct {
        int line;
        const char *code;
    } want[] = {{7, "type"},         {9, "range"},          {10, "type"},
                {11, "unknown_key"}, {13, "type"},          {14, "range"},
                {15, "type"},        {16, "unknown_stage"}, {16, "unknown_key"}};
    show(&p->faults);
    assert_int_equal(p->faults.n, ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_int_equal(p->faults.at[i].pos.line, want[i].line);
        assert_string_equal(p->faults.at[i].code, want[i].code);
    }
    parsed_free(p);
}

static void test_spec_matrix__rows_are_bounded(void **state)
{
    (void)state;
    struct parsed *p =
        parse_good(HEAD TRAIN "    matrix: {instance_count: [1, 2, 3, 4, 5, 6, 7, 8],\n"
                              "             volume_gb: [10, 20, 30, 40]}\n");
    assert_int_equal(p->spec->stages_n, SPEC_STAGES_MAX);
    parsed_free(p);
    /* what others need is left for them */
    p = parse(HEAD TRAIN "    matrix: {instance_count: [1, 2, 3, 4, 5, 6, 7, 8],\n"
                         "             volume_gb: [10, 20, 30, 40]}\n"
                         "  - {name: b, extends: train, matrix: none}\n");
    assert_int_equal(p->faults.n, 1);
    assert_string_equal(p->faults.at[0].code, "limit");
    parsed_free(p);
    /* large values and many rows stay within the arena; the limit of one value is said once */
    AUTO_BUF struct buf b = BUF_INIT(SPEC_TEXT_MAX);
    buf_add_cstr(&b, HEAD TRAIN "    hyperparameters: {x: \"{matrix.big}\"}\n    matrix:\n"
                                "      instance_count: [1, 2, 3, 4, 5, 6, 7, 8]\n"
                                "      volume_gb: [10, 20, 30, 40]\n      big: [\"");
    while (b.n < SPEC_TEXT_MAX - 100) {
        buf_add_cstr(&b, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    }
    buf_add_cstr(&b, "\"]\n");
    p = parse(buf_cstr(&b));
    assert_int_equal(p->faults.n, 1);
    assert_string_equal(p->faults.at[0].code, "limit");
    parsed_free(p);
}

static void test_spec_matrix__the_example_is_eight_runs(void **state)
{
    (void)state;
    AUTO_FREE char *text = file_text("deploy/examples/lightning-scaling.yaml");
    const struct spec_defaults region = {.region = "us-east-1"};
    struct parsed *p = parse_with(text, &region);
    show(&p->faults);
    assert_true(p->good);
    assert_names(p->spec, "smddp-1 smddp-2 smddp-4 smddp-8 ddp-1 ddp-2 ddp-4 ddp-8");
    parsed_free(p);
}

/* A row knows its matrix and what scales with it, also when it was stored and read again. */
static void test_spec_matrix__rows_know_their_matrix(void **state)
{
    (void)state;
    AUTO_FREE char *text = file_text("deploy/examples/lightning-scaling.yaml");
    const struct spec_defaults region = {.region = "us-east-1"};
    struct parsed *p = parse_with(text, &region);
    struct arena a;
    struct err err = ERR_INIT;
    struct spec *back = NULL;
    arena_init(&a, SPEC_ARENA_BYTES);
    AUTO_JSON json_t *stored = spec_to_json(p->spec);
    assert_true(spec_from_json(stored, &a, &back, &err));
    for (int i = 0; i < back->stages_n; i++) {
        const struct spec_stage *s = back->stages[i];
        assert_string_equal(s->group, i < 4 ? "smddp" : "ddp");
        assert_int_equal(s->scales_with_n, 1);
        assert_string_equal(s->scales_with[0], "hyperparameters.learning_rate");
    }
    arena_done(&a);
    parsed_free(p);
    p = parse_good(HEAD TRAIN "    matrix: {instance_count: [1, 2], scales_with: []}\n"
                              "  - {name: full, extends: train, matrix: none}\n");
    assert_string_equal(p->spec->stages[0]->group, "train");
    assert_int_equal(p->spec->stages[0]->scales_with_n, 0);
    assert_null(p->spec->stages[2]->group);
    parsed_free(p);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_matrix__rows_are_the_stages_written_out),
        cmocka_unit_test(test_spec_matrix__values_of_rows_have_the_files_variables),
        cmocka_unit_test(test_spec_matrix__extends_lays_keys_over_those_of_another),
        cmocka_unit_test(test_spec_matrix__names_and_needs),
        cmocka_unit_test(test_spec_matrix__one_mistake_one_fault),
        cmocka_unit_test(test_spec_matrix__all_mistakes_at_once),
        cmocka_unit_test(test_spec_matrix__rows_are_bounded),
        cmocka_unit_test(test_spec_matrix__the_example_is_eight_runs),
        cmocka_unit_test(test_spec_matrix__rows_know_their_matrix),
    };
    return cmocka_run_group_tests_name("spec_matrix", tests, NULL, NULL);
}
