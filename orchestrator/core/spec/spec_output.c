/* Reads a stage's inputs and the checks of its output: fan_out, the worker's url_list and
 * output_folder, verify, done_if. */
#include "spec_read.h"
#include <stdio.h>

static bool names_the_task(const char *template)
{
    const char *t = template;
    while (*t != '\0') {
        struct str literal;
        struct spec_field f;
        bool has_field;
        if (!spec_next_piece(&t, &literal, &has_field, &f, NULL)) {
            return false;
        }
        if (has_field && !str_eq_cstr(f.name, "campaign") && !str_eq_cstr(f.name, "stage") &&
            !str_eq_cstr(f.name, "attempt") && !str_eq_cstr(f.name, "size")) {
            return true;
        }
    }
    return false;
}

static bool names_the_attempt(const char *template)
{
    return strstr(template, "{attempt}") != NULL || strstr(template, "{attempt:") != NULL;
}

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

void spec_read_fan_out(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    static const struct spec_key keys[] = {
        {"from", KEY_OPEN}, {"order", KEY_OPEN}, {"per_part", KEY_OPEN}, {"vars", KEY_OPEN}};
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
    spec_check_keys(r, p, keys, ARRAY_LEN(keys), false);
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

/* The hyperparameters that drover-worker requires. */
static void check_download(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node hyper;
    struct spec_node at;
    if (!spec_child(r, p, "hyperparameters", false, &hyper)) {
        spec_fault(r, p, "required", "hyperparameters: {url_list: \"{uri}\", output_folder: ...}",
                   "worker download needs the hyperparameters url_list and output_folder");
        return;
    }
    if (hyper.node->kind != YAML_MAP) {
        return; /* said already */
    }
    (void)spec_child(r, &hyper, "url_list", true, &at);
    if (!spec_child(r, &hyper, "output_folder", true, &at)) {
        return;
    }
    for (int i = 0; i < s->hyperparameters_n; i++) {
        if (strcmp(s->hyperparameters[i].key, "output_folder") == 0) {
            s->output = s->hyperparameters[i].value;
        }
    }
    if (s->output == NULL || !spec_s3(r, &at, s->output)) {
        return;
    }
    if (s->fan_out != FAN_OUT_NONE && !names_the_task(s->output)) {
        spec_fault(r, &at, "conflict", "add {part:05d}: s3://bucket/img/{part:05d}/",
                   "every part would write to the same place");
    }
    if (names_the_attempt(s->output)) {
        spec_fault(r, &at, "conflict", "leave {attempt} out",
                   "a retry must find what the attempt before it finished");
    }
}

static void check_isolation(struct spec_reader *r, const struct spec_node *p,
                            const struct spec_stage *s)
{
    struct spec_node at;
    if (s->worker == WORKER_DOWNLOAD && s->network_isolation &&
        spec_child(r, p, "network_isolation", false, &at)) {
        spec_fault(r, &at, "conflict", "leave it out",
                   "an isolated container has no network at all: it could not download");
    }
}

static const char *const verify_words[] = {
    [VERIFY_MANIFEST] = "manifest",   [VERIFY_IMG2DATASET] = "img2dataset",
    [VERIFY_EXISTS] = "exists",       [VERIFY_COUNT] = "count",
    [VERIFY_ARTIFACTS] = "artifacts", [VERIFY_NONE] = "none",
};

static void read_target(struct spec_reader *r, const struct spec_node *p, const char **ret)
{
    if (spec_text(r, p, BRACES_TEMPLATE, 1024, ret)) {
        (void)spec_s3(r, p, *ret);
    }
}

/* {exists: "s3://..."} or {count: 12, prefix: "s3://.../"} */
static void read_verify_map(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    static const struct spec_key keys[] = {
        {"exists", KEY_OPEN}, {"count", KEY_OPEN}, {"prefix", KEY_OPEN}};
    struct spec_node at;
    spec_check_keys(r, p, keys, ARRAY_LEN(keys), false);
    if (spec_child(r, p, "exists", false, &at)) {
        s->verify = VERIFY_EXISTS;
        read_target(r, &at, &s->verify_target);
        if (spec_child(r, p, "count", false, &at)) {
            spec_fault(r, &at, "conflict", "", "exists and count exclude each other");
        }
        return;
    }
    s->verify = VERIFY_COUNT;
    if (spec_child(r, p, "count", true, &at)) {
        (void)spec_i64(r, &at, 1, 1000000, &s->verify_count);
    }
    if (spec_child(r, p, "prefix", true, &at)) {
        read_target(r, &at, &s->verify_target);
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
    } else if (s->worker == WORKER_DOWNLOAD && s->verify == VERIFY_ARTIFACTS) {
        spec_fault(r, p, "conflict", "manifest", "worker download leaves no model artifact");
    } else if (s->worker == WORKER_NONE && s->output == NULL &&
               (s->verify == VERIFY_MANIFEST || s->verify == VERIFY_IMG2DATASET)) {
        spec_fault(r, p, "required", "output: \"s3://bucket/prefix/{part:05d}/\"",
                   "verify: %s needs the stage's 'output'", verify_words[s->verify]);
    }
}

static void read_done_if(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    static const struct spec_key keys[] = {{"manifest", KEY_OPEN},
                                           {"img2dataset", KEY_OPEN},
                                           {"exists", KEY_OPEN},
                                           {"any", KEY_LATER},
                                           {"min", KEY_LATER}};
    struct spec_node at;
    int found = 0;
    if (!spec_is_map(r, p, "{manifest: \"s3://bucket/img/{part:05d}/\"} or {exists: KEY}")) {
        return;
    }
    spec_check_keys(r, p, keys, ARRAY_LEN(keys), false);
    for (size_t i = 0; i < 3; i++) {
        if (spec_child(r, p, keys[i].name, false, &at)) {
            found++;
            s->done_if_kind = i == 0   ? VERIFY_MANIFEST
                              : i == 1 ? VERIFY_IMG2DATASET
                                       : VERIFY_EXISTS;
            read_target(r, &at, &s->done_if);
        }
    }
    if (found != 1 && yaml_get(p->node, "any") == NULL) {
        spec_fault(r, p, found == 0 ? "required" : "conflict",
                   "{manifest: \"s3://bucket/img/{part:05d}/\"} or {exists: KEY}",
                   "one of manifest, img2dataset and exists is needed");
    } else if (s->done_if != NULL && s->fan_out != FAN_OUT_NONE && !names_the_task(s->done_if)) {
        spec_fault(r, p, "conflict", "add {part:05d}",
                   "the same place would prove every part done");
    }
}

/* The output of a user's image: where SageMaker puts model.tar.gz, and where `manifest` and
 * `img2dataset` look. */
static void read_image_output(struct spec_reader *r, const struct spec_node *p,
                              struct spec_stage *s)
{
    struct spec_node at;
    if (spec_child(r, p, "output", false, &at)) {
        read_target(r, &at, &s->output);
    } else if (r->default_output != NULL) {
        s->output = r->default_output;
    } else {
        spec_fault(r, p, "required", "output: \"s3://bucket/prefix/\"",
                   "'output' is missing, and no default bucket is set");
    }
}

void spec_read_output(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    s->verify = s->worker == WORKER_NONE ? VERIFY_ARTIFACTS : VERIFY_MANIFEST;
    if (s->worker == WORKER_DOWNLOAD) {
        check_download(r, p, s);
        if (spec_child(r, p, "output", false, &at)) {
            spec_fault(r, &at, "conflict", "hyperparameters: {output_folder: ...}",
                       "the output of worker download is its hyperparameter output_folder");
        }
    } else {
        read_image_output(r, p, s);
    }
    check_isolation(r, p, s);
    if (spec_child(r, p, "verify", false, &at)) {
        read_verify(r, &at, s);
    }
    if (spec_child(r, p, "done_if", false, &at)) {
        read_done_if(r, &at, s);
    }
}
