/* Aim: what proves one part is not what proves another. Method: stages of our worker and of an own
 * image with one line changed or added, each with its one fault or with none. */
#include "spec_text.h"

#define BASE                                                                                       \
    "name: c1\n"                                                                                   \
    "vars: {bucket: \"s3://acme-laion\"}\n"                                                        \
    "stages:\n"                                                                                    \
    "  - name: download\n"                                                                         \
    "    worker: download\n"                                                                       \
    "    fan_out: {from: \"{bucket}/meta/*.parquet\"}\n"                                           \
    "    instance_type: ml.c5.18xlarge\n"                                                          \
    "    hyperparameters: {url_list: \"{uri}\", output_folder: \"{bucket}/img/{part:05d}/\"}\n"
#define WORKER "worker: download\n    "
#define IMAGE  "image: r/x:1\n    "

static const struct row {
    const char *from, *to; /* in BASE */
    const char *code;      /* NULL: there is no fault */
    int line;
    const char *word;
} rows[] = {
    {"worker: download", WORKER "verify: {exists: \"s3://bkt/_SUCCESS\"}", "conflict", 6,
     "every part"},
    {"worker: download", WORKER "verify: {count: 3, prefix: \"{bucket}/{stage}/\"}", "conflict", 6,
     "every part"},
    {"worker: download", WORKER "verify: {count: 3, prefix: \"{bucket}/{stem}/\"}", NULL, 0, ""},
    {"worker: download", IMAGE "output: \"{bucket}/o/\"\n    verify: img2dataset", "conflict", 6,
     "every part"},
    {"worker: download", IMAGE "verify: manifest\n    output: \"{bucket}/o/{attempt}/\"",
     "conflict", 7, "every part"},
    {"worker: download", IMAGE "output: \"file:///o/\"\n    verify: manifest", "pattern", 6,
     "place in S3"},
    {"/*.parquet", "/**.parquet", NULL, 0, ""},
    {"meta/*.parquet\"}", "meta/**.parquet\"}\n    done_if: {manifest: \"s3://bkt/{stem}/\"}",
     "conflict", 7, "called alike"},
    {"meta/*.parquet\"}", "m*/a.parquet\"}\n    done_if: {manifest: \"s3://bkt/{file_name}/\"}",
     "conflict", 7, "called alike"},
    {"meta/*.parquet\"}", "*/*/*.parquet\"}\n    done_if: {exists: \"s3://bkt/{file_name}\"}",
     "conflict", 7, "called alike"},
    {"meta/*.parquet\"}", "meta/part-*\"}\n    done_if: {manifest: \"s3://bkt/{stem}/\"}",
     "conflict", 7, "called alike"},
    {"meta/*.parquet\"}", "meta/a.*\"}\n    done_if: {manifest: \"s3://bkt/{stem}/\"}", "conflict",
     7, "called alike"},
    {"meta/*.parquet\"}", "meta/part-*\"}\n    done_if: {manifest: \"s3://bkt/{file_name}/\"}",
     NULL, 0, ""},
    {"meta/*.parquet\"}", "me/p-*.snappy.parquet\"}\n    done_if: {exists: \"s3://bkt/{stem}\"}",
     NULL, 0, ""},
    {"meta/*.parquet\"}", "meta/**\"}\n    done_if: {exists: \"s3://bkt/{stem}-{part}\"}", NULL, 0,
     ""},
    {"fan_out: {from: \"{bucket}/meta/*.parquet\"}",
     "fan_out: api\n    done_if: {exists: \"s3://bkt/{stem}\"}", NULL, 0, ""},
    {"worker: download", IMAGE "output: \"{bucket}/o/\"", NULL, 0, ""},
    {"worker: download", IMAGE "output: \"{bucket}/o/{part}/\"\n    verify: img2dataset", NULL, 0,
     ""},
    {"worker: download", IMAGE "verify: manifest", NULL, 0, ""},
    {"worker: download\n    fan_out: {from: \"{bucket}/meta/*.parquet\"}",
     IMAGE "output: \"{bucket}/o/\"\n    verify: {exists: \"{bucket}/o/done\"}\n    fan_out: api",
     "conflict", 7, "every part"},
    {"    worker: download\n    fan_out: {from: \"{bucket}/meta/*.parquet\"}",
     "    image: r/x:1\n    output: \"{bucket}/o/\"\n    verify: manifest", NULL, 0, ""},
};

static void test_spec_output__one_place_proves_one_part(void **state)
{
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *w = &rows[i];
        const char *at = strstr(BASE, w->from);
        assert_non_null(at);
        AUTO_FREE char *text =
            xasprintf("%.*s%s%s", (int)(at - BASE), BASE, w->to, at + strlen(w->from));
        struct parsed *p = parse(text);
        const struct fault *f = &p->faults.at[0];
        bool right = w->code == NULL
                         ? p->good
                         : p->faults.n == 1 && strcmp(f->code, w->code) == 0 &&
                               f->pos.line == w->line && strstr(f->message, w->word) != NULL &&
                               f->hint[0] != '\0';
        if (!right) {
            (void)printf("# expected %s at line %d with '%s' for: %s\n",
                         w->code == NULL ? "no fault" : w->code, w->line, w->word, w->to);
            show(&p->faults);
            bad++;
        }
        parsed_free(p);
    }
    assert_int_equal(bad, 0);
}

/* Where SageMaker puts the model of an image that names no output. */
static void test_spec_output__the_bucket_is_the_default_place(void **state)
{
    (void)state;
    static const struct {
        const char *bucket, *output; /* NULL: a fault */
    } of[] = {
        {"acme", "s3://acme/drover/{campaign}/{stage}/{part:05d}/"},
        {"s3://acme", "s3://acme/drover/{campaign}/{stage}/{part:05d}/"},
        {"s3://acme/", "s3://acme/drover/{campaign}/{stage}/{part:05d}/"},
        {"acme/jobs/", "s3://acme/jobs/drover/{campaign}/{stage}/{part:05d}/"},
        {"Acme_1", NULL},
        {"file:///acme", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        AUTO_FREE char *text = xasprintf("name: c\nvars: {bucket: \"%s\"}\nstages:\n"
                                         "  - {name: t, image: r/x, instance_type: ml.m5.large}\n",
                                         of[i].bucket);
        struct parsed *p = parse(text);
        show(&p->faults);
        if (of[i].output != NULL) {
            assert_true(p->good);
            assert_string_equal(p->spec->stages[0]->output, of[i].output);
        } else {
            assert_int_equal(p->faults.n, 1);
            assert_non_null(strstr(p->faults.at[0].message, "not a place in S3"));
        }
        parsed_free(p);
    }
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_output__one_place_proves_one_part),
        cmocka_unit_test(test_spec_output__the_bucket_is_the_default_place),
    };
    return cmocka_run_group_tests_name("spec_output", tests, NULL, NULL);
}
