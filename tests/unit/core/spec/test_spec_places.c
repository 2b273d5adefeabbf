/* Aim: two stages never write, go on from or are proved by one place without meaning it. Method:
 * files with a second stage that has a place of the first, by `extends` or written again, each with
 * its fault or with none. */
#include "spec_text.h"

#define DOWNLOAD                                                                                   \
    "name: p\nstages:\n"                                                                           \
    "  - name: d256\n"                                                                             \
    "    worker: download\n"                                                                       \
    "    fan_out: {from: \"{bucket}/meta/*.parquet\"}\n"                                           \
    "    instance_type: ml.c5.18xlarge\n"                                                          \
    "    hyperparameters: {url_list: \"{uri}\", output_folder: \"{bucket}/img/{part:05d}/\"}\n"
#define TRAIN                                                                                      \
    "name: p\nstages:\n"                                                                           \
    "  - name: native\n"                                                                           \
    "    image: r/x:1\n"                                                                           \
    "    instance_type: ml.m5.large\n"
#define MANIFEST "    done_if: {manifest: \"{bucket}/img/{part:05d}/\"}\n"
#define OK_KEY   "    done_if: {exists: \"{bucket}/ok/{part:05d}\"}\n"
#define SHARDS   "hyperparameters: {output_folder: \"{bucket}/512/{part:05d}/\"}"

static const struct row {
    const char *head, *tail;
    int line; /* 0: there is no fault */
    const char *word;
} rows[] = {
    {TRAIN, "    checkpoint: \"s3://bkt/ck/\"\n  - {name: compiled, extends: native}\n", 6,
     "'native' and 'compiled' would use the same checkpoints"},
    {TRAIN,
     "    checkpoint: \"s3://bkt/ck/\"\n"
     "  - {name: compiled, extends: native, checkpoint: {to: \"s3://bkt/ck\"}}\n",
     7, "the same checkpoints"},
    {TRAIN,
     "    checkpoint: \"s3://bkt/ck/\"\n  - {name: compiled, extends: native}\n"
     "  - {name: third, extends: compiled}\n",
     6, "'native' and 'compiled'"},
    {TRAIN, "    checkpoint: \"s3://bkt/{stage}/\"\n  - {name: b, extends: native}\n", 0, ""},
    {TRAIN, "    checkpoint: \"s3://bkt/ck/\"\n  - {name: b, extends: native, needs: native}\n", 0,
     ""},
    {TRAIN,
     "    checkpoint: \"s3://bkt/ck/\"\n  - {name: mid, needs: native, image: r/x, instance_type: "
     "ml.m5.large}\n  - {name: last, extends: native, needs: mid}\n",
     0, ""},
    {TRAIN,
     "    checkpoint: \"s3://bkt/ck/\"\n  - {name: b, extends: native, needs: native, matrix: "
     "{volume_gb: [7, 8]}}\n",
     6, "more than one row"},
    {TRAIN,
     "    output: \"s3://bkt/o/\"\n    verify: manifest\n  - {name: b, extends: native, needs: "
     "native}\n",
     6, "'native' and 'b' would write to the same place"},
    {TRAIN, "    output: \"s3://bkt/o/\"\n  - {name: b, extends: native}\n", 0, ""},
    {DOWNLOAD, "  - {name: d512, extends: d256}\n", 7, "write to the same place"},
    {DOWNLOAD, "  - {name: d512, extends: d256, needs: d256}\n", 7, "write to the same place"},
    {DOWNLOAD,
     "  - {name: more, extends: d256, needs: d256, hyperparameters: {incremental_mode: extend}}\n",
     0, ""},
    {DOWNLOAD, "  - {name: more, extends: d256, hyperparameters: {incremental_mode: extend}}\n", 7,
     "write to the same place"},
    {DOWNLOAD MANIFEST, "  - {name: d512, extends: d256, " SHARDS "}\n", 8,
     "'d256' and 'd512' would be skipped for the same output"},
    {DOWNLOAD MANIFEST,
     "  - {name: d512, extends: d256, needs: d256, " SHARDS ", done_if: {manifest: "
     "\"{bucket}/512/{part:05d}/\"}}\n",
     0, ""},
    {DOWNLOAD OK_KEY, "  - {name: d512, extends: d256, " SHARDS "}\n", 8, "be skipped"},
    {DOWNLOAD OK_KEY, "  - name: d512\n    extends: d256\n    " SHARDS "\n" OK_KEY, 0, ""},
    {DOWNLOAD MANIFEST, "  - name: d512\n    extends: d256\n    " SHARDS "\n" MANIFEST, 12,
     "be skipped"},
    {TRAIN, "    done_if: {exists: \"s3://bkt/trained\"}\n    matrix: {instance_count: [1, 2]}\n",
     0, ""},
    {TRAIN, "    done_if: {manifest: \"s3://bkt/m/\"}\n    matrix: {instance_count: [1, 2]}\n", 6,
     "more than one row would be skipped"},
    /* what needs a stage that is not there is not judged: its order is not known */
    {TRAIN, "    checkpoint: \"s3://bkt/ck/\"\n  - {name: b, extends: native, needs: natve}\n", 7,
     "no stage"},
};

static void test_spec_places__what_two_stages_share(void **state)
{
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *w = &rows[i];
        AUTO_FREE char *text = xasprintf("%s%s", w->head, w->tail);
        struct parsed *p = parse(text);
        const struct fault *f = &p->faults.at[0];
        bool right = w->line == 0 ? p->good
                                  : p->faults.n == 1 && f->pos.line == w->line &&
                                        strstr(f->message, w->word) != NULL && f->hint[0] != '\0';
        if (!right) {
            (void)printf("# expected one at %d with '%s' and a hint for:\n# %s", w->line, w->word,
                         w->tail);
            show(&p->faults);
            bad++;
        }
        parsed_free(p);
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_places__what_two_stages_share),
    };
    return cmocka_run_group_tests_name("spec_places", tests, NULL, NULL);
}
