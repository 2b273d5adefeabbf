/* Reads a stage's inputs and the checks of its output: fan_out, verify, done_if. */
#include "spec_read.h"
#include "spec_worker.h"
#include <stdio.h>

static void read_from(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    const char *from;
    if (!spec_text(r, p, BRACES_VARS, 1024, &from)) {
        return;
    }
    if (strcmp(from, "api") == 0) {
        s->fan_out = FAN_OUT_API;
        return;
    }
    s->fan_out = FAN_OUT_S3;
    s->fan_out_from = from;
    if (!spec_s3(r, p, from)) {
        return;
    }
    const char *key = strchr(from + 5, '/');
    if (key == NULL || strchr(key, '*') == NULL) {
        spec_fault(r, p, "pattern", "s3://bucket/prefix/*.parquet, or api",
                   "'%.120s' has no '*' that stands for the files", from);
    }
}

/* {count: 128}: tasks known by their numbers, for input that an earlier stage makes. */
static void read_count(struct spec_reader *r, const struct spec_node *map,
                       const struct spec_node *p, struct spec_stage *s)
{
    int64_t n = 1;
    if (map->node->n > 1) {
        spec_fault(r, p, "conflict", "fan_out: {count: 128}",
                   "'count' stands alone: its parts have numbers and no input files");
    }
    (void)spec_i64(r, p, 1, SPEC_COUNT_MAX, &n);
    s->fan_out = FAN_OUT_COUNT;
    s->fan_out_count = (int)n;
    r->no_input = true;
}

void spec_read_fan_out(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    static const char *const orders[] = {"name"};
    static const char *const orders_later[] = {"size", "none", NULL};
    struct spec_node at;
    int64_t n;
    int i;
    if (p->node->kind == YAML_STRING) {
        read_from(r, p, s);
        return;
    }
    s->fan_out = FAN_OUT_API; /* some fan-out, whatever is wrong with it: fewer faults behind it */
    if (!spec_is_map(r, p, "{from: \"s3://bucket/prefix/*.parquet\"}")) {
        return;
    }
    spec_check_map(r, p, SPEC_MAP_FAN_OUT);
    if (spec_child(r, p, "count", false, &at)) {
        read_count(r, p, &at, s);
        return;
    }
    if (spec_child(r, p, "from", true, &at)) {
        read_from(r, &at, s);
    }
    if (spec_child(r, p, "order", false, &at)) {
        (void)spec_choice(r, &at, orders, ARRAY_LEN(orders), orders_later, &i);
    }
    if (spec_child(r, p, "per_part", false, &at) && spec_i64(r, &at, 1, 1000000, &n) && n > 1) {
        spec_fault(r, &at, "unsupported", "write 1: one file a part",
                   "%lld files a part are not supported in this version", (long long)n);
    }
    if (spec_child(r, p, "vars", false, &at)) {
        (void)spec_texts(r, &at, BRACES_VARS, ARRAY_LEN(r->task_vars), 64, r->task_vars,
                         &r->task_vars_n);
        if (s->fan_out == FAN_OUT_S3) {
            spec_fault(r, &at, "conflict", "from: api", "files of a listing bring no variables");
        }
    }
}

static const char *const verify_words[] = {
    [VERIFY_MANIFEST] = "manifest",   [VERIFY_IMG2DATASET] = "img2dataset",
    [VERIFY_EXISTS] = "exists",       [VERIFY_COUNT] = "count",
    [VERIFY_ARTIFACTS] = "artifacts", [VERIFY_NONE] = "none",
};

static bool read_target(struct spec_reader *r, const struct spec_node *p, const char **ret)
{
    return spec_text(r, p, BRACES_TEMPLATE, 1024, ret) && spec_s3(r, p, *ret);
}

/* A part would be good because of what another one wrote. */
static void check_proof(struct spec_reader *r, const struct spec_node *p,
                        const struct spec_stage *s, const char *place)
{
    (void)spec_part_place(r, p, s, place, "be proved by the same place");
}

/* {exists: "s3://..."} or {count: 12, prefix: "s3://.../"} */
static void read_verify_map(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    spec_check_map(r, p, SPEC_MAP_VERIFY);
    if (spec_child(r, p, "exists", false, &at)) {
        s->verify = VERIFY_EXISTS;
        if (read_target(r, &at, &s->verify_target)) {
            check_proof(r, &at, s, s->verify_target);
        }
        if (spec_child(r, p, "count", false, &at)) {
            spec_fault(r, &at, "conflict", "", "exists and count exclude each other");
        }
        return;
    }
    s->verify = VERIFY_COUNT;
    if (spec_child(r, p, "count", true, &at)) {
        (void)spec_i64(r, &at, 1, 1000000, &s->verify_count);
    }
    if (spec_child(r, p, "prefix", true, &at) && read_target(r, &at, &s->verify_target)) {
        check_proof(r, &at, s, s->verify_target);
    }
}

static void read_verify(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    int i;
    if (p->node->kind == YAML_MAP) {
        read_verify_map(r, p, s);
        return;
    }
    if (!spec_choice(r, p, verify_words, ARRAY_LEN(verify_words), NULL, &i)) {
        return;
    }
    s->verify = (enum spec_verify)i;
    if (s->verify == VERIFY_EXISTS) {
        spec_fault(r, p, "required", "verify: {exists: \"s3://bucket/key\"}",
                   "which key must exist is not said");
    } else if (s->verify == VERIFY_COUNT) {
        spec_fault(r, p, "required", "verify: {count: 12, prefix: \"s3://bucket/prefix/\"}",
                   "how many keys below which prefix is not said");
    } else if (s->worker != WORKER_NONE && s->verify == VERIFY_ARTIFACTS) {
        spec_fault(r, p, "conflict", "manifest", "worker %s leaves no model artifact",
                   spec_worker_verb(s->worker));
    } else if (s->worker == WORKER_NONE && s->output == NULL &&
               (s->verify == VERIFY_MANIFEST || s->verify == VERIFY_IMG2DATASET)) {
        spec_fault(r, p, "required", "output: \"s3://bucket/prefix/{part:05d}/\"",
                   "verify: %s needs the stage's 'output'", verify_words[s->verify]);
    }
}

static void read_done_if(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    static const char *const keys[] = {"manifest", "img2dataset", "exists"};
    struct spec_node at;
    int found = 0;
    if (!spec_is_map(r, p, "{manifest: \"s3://bucket/img/{part:05d}/\"} or {exists: KEY}")) {
        return;
    }
    spec_check_map(r, p, SPEC_MAP_DONE_IF);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (spec_child(r, p, keys[i], false, &at)) {
            found++;
            s->done_if_kind = i == 0   ? VERIFY_MANIFEST
                              : i == 1 ? VERIFY_IMG2DATASET
                                       : VERIFY_EXISTS;
            (void)read_target(r, &at, &s->done_if);
        }
    }
    if (found != 1 && yaml_get(p->node, "any") == NULL) {
        spec_fault(r, p, found == 0 ? "required" : "conflict",
                   "{manifest: \"s3://bucket/img/{part:05d}/\"} or {exists: KEY}",
                   "one of manifest, img2dataset and exists is needed");
    } else if (s->done_if != NULL) {
        check_proof(r, p, s, s->done_if);
    }
}

void spec_default_output(struct spec_reader *r)
{
    for (int i = 0; i < r->vars_n; i++) {
        const char *bucket = r->vars[i].value;
        size_t n = strlen(bucket);
        if (strcmp(r->vars[i].key, "bucket") == 0 && n > 0 && strpbrk(bucket, "{}") == NULL) {
            n -= bucket[n - 1] == '/';
            r->default_output =
                arena_printf(r->a, "%s%.*s/drover/{campaign}/{stage}/{part:05d}/",
                             strstr(bucket, "://") == NULL ? "s3://" : "", (int)n, bucket);
        }
    }
}

/* The output of a user's image: where SageMaker puts model.tar.gz, and where `manifest` and
 * `img2dataset` look. */
static bool read_image_output(struct spec_reader *r, const struct spec_node *p,
                              struct spec_stage *s)
{
    struct spec_node at;
    if (spec_child(r, p, "output", false, &at)) {
        return read_target(r, &at, &s->output);
    }
    if (r->default_output == NULL) {
        spec_fault(r, p, "required", "output: \"s3://bucket/prefix/\"",
                   "'output' is missing, and no default bucket is set");
        return false;
    }
    s->output = r->default_output;
    return spec_s3(r, p, s->output);
}

void spec_read_output(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    bool placed = false;
    s->verify = s->worker == WORKER_NONE ? VERIFY_ARTIFACTS : VERIFY_MANIFEST;
    spec_read_worker(r, p, s);
    spec_check_settings(r, p, s);
    if (s->worker == WORKER_NONE) {
        placed = read_image_output(r, p, s);
    }
    if (spec_child(r, p, "verify", false, &at)) {
        read_verify(r, &at, s);
    }
    if (placed && (s->verify == VERIFY_MANIFEST || s->verify == VERIFY_IMG2DATASET) &&
        spec_child(r, p, "output", false, &at)) {
        check_proof(r, &at, s, s->output);
    }
    if (spec_child(r, p, "done_if", false, &at)) {
        read_done_if(r, &at, s);
    }
}
