/* Reads a stage of kind endpoint: the model that is served, on what and for how long, and the smoke
 * test. The model is that of a training stage or any model.tar.gz. */
#include "core/catalog/catalog.h"
#include "spec_read.h"
#include <ctype.h>

#define P95_MS_MAX 60000 /* a container has a minute to answer */

static const char model_hint[] =
    "model: train, or {data: \"s3://bucket/model.tar.gz\", framework: huggingface 4.12.3}";
static const char payload_hint[] =
    "[{inputs: \"Hello\"}], or \"s3://bucket/samples.json\": an object with such a list as JSON";

static bool is_place(const char *text)
{
    return strncmp(text, "s3://", 5) == 0;
}

static void read_types(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    if (!spec_child(r, p, "instance_type", true, &at)) {
        return;
    }
    if (at.node->kind == YAML_LIST) {
        spec_fault(r, &at, "type", "instance_type: ml.g4dn.xlarge", "an endpoint has one type");
    } else if (spec_text(r, &at, BRACES_VARS, 64, &s->instance_type[0])) {
        s->instance_type_n = 1;
        spec_check_type(r, &at, s->instance_type[0], true);
    }
}

static void read_size(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s,
                      struct spec_endpoint *e)
{
    struct spec_node at;
    int64_t n;
    if (spec_child(r, p, "instance_count", false, &at) && spec_i64(r, &at, 1, 256, &n)) {
        s->instance_count = (int)n;
    }
    if (!spec_child(r, p, "volume_gb", false, &at) ||
        !spec_i64(r, &at, 1, SPEC_HOSTING_GB_MAX, &n)) {
        return;
    }
    e->volume_gb = (int)n;
    if (s->instance_type_n > 0 && catalog_has_disks(s->instance_type[0])) {
        spec_fault(r, &at, "conflict", "leave it out",
                   "%.40s has local disks: an endpoint gets no volume there", s->instance_type[0]);
    }
}

/* What a large model or a slow start needs; without them SageMaker gives up by its own defaults. */
static void read_timeouts(struct spec_reader *r, const struct spec_node *p, struct spec_endpoint *e)
{
    struct spec_node at;
    if (spec_child(r, p, "download_timeout", false, &at)) {
        (void)spec_duration(r, &at, SPEC_HOSTING_WAIT_MIN, SPEC_HOSTING_WAIT_MAX,
                            &e->download_timeout_s);
    }
    if (spec_child(r, p, "startup_timeout", false, &at)) {
        (void)spec_duration(r, &at, SPEC_HOSTING_WAIT_MIN, SPEC_HOSTING_WAIT_MAX,
                            &e->startup_timeout_s);
    }
}

/* An endpoint runs and costs until it is deleted, also when nobody thinks of it any more. */
static void read_life(struct spec_reader *r, const struct spec_node *p, struct spec_endpoint *e)
{
    struct spec_node at;
    if (!spec_child(r, p, "ttl", false, &at)) {
        spec_fault(r, p, "required", "add 'ttl: 2h': the endpoint is deleted when it is over",
                   "'ttl' is missing: an endpoint costs money until it is deleted");
    } else {
        (void)spec_duration(r, &at, 1, SPEC_TTL_S_MAX, &e->ttl_s);
    }
    if (!spec_child(r, p, "idle", false, &at) || spec_is_off(&at) ||
        !spec_duration(r, &at, SPEC_IDLE_S_MIN, SPEC_TTL_S_MAX, &e->idle_s)) {
        return;
    }
    if (e->ttl_s > 0 && e->idle_s > e->ttl_s) {
        spec_fault(r, &at, "range", "at most ttl, or off",
                   "idle of %lld s is more than ttl of %lld s", (long long)e->idle_s,
                   (long long)e->ttl_s);
    }
}

/* AWS's image of the framework named at p for the stage's type, as the stage's image. */
static void take_framework(struct spec_reader *r, const struct spec_node *p,
                           const struct image_wish *words, struct spec_stage *s,
                           struct spec_endpoint *e)
{
    const char *type = s->instance_type[0];
    struct image_wish w = *words;
    if (s->instance_type_n == 0) {
        return;
    }
    w.inference = true;
    e->framework =
        spec_framework_gpu(r, p, type, &w.gpu) && spec_framework_image(r, p, &w, &s->image);
}

static void read_image(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s,
                       struct spec_endpoint *e)
{
    struct spec_node at;
    struct image_wish words = {.framework = NULL};
    bool image = spec_child(r, p, "image", false, &at);
    if (image) {
        (void)spec_image(r, &at, &s->image);
    }
    if (spec_child(r, p, "framework", false, &at)) {
        if (image) {
            spec_fault(r, &at, "conflict", "either framework or image", "a model has one image");
        } else if (spec_framework_words(r, &at, &words)) {
            take_framework(r, &at, &words, s, e);
        }
    } else if (!image && e->model_stage == NULL) {
        spec_fault(r, p, "required", "add 'framework: huggingface 4.12.3' or 'image: URI'",
                   "what serves the model is not said");
    }
    if (!spec_child(r, p, "entry_point", false, &at) ||
        !spec_text(r, &at, BRACES_VARS, 256, &e->entry_point)) {
        return;
    }
    if (!spec_script_ok(e->entry_point)) {
        spec_fault(r, &at, "pattern", "inference.py: a file below code/ of the model",
                   "'%.120s' is no script of the model", e->entry_point);
    } else if (image) {
        spec_fault(r, &at, "conflict", "leave it out, or framework in place of image",
                   "an image of your own starts what it has");
    } else if (e->model_type != NULL && strcmp(e->model_type, "S3Object") == 0 &&
               !str_ends(str_of(e->model_data), ".tar.gz")) {
        spec_fault(r, &at, "conflict", "a folder or a model.tar.gz with code/ in it",
                   "a model of one object has no script in it");
    }
}

/* A .tar.gz, the objects of a folder, or one object as it is: what CreateModel is told of them. */
static void read_data(struct spec_reader *r, const struct spec_node *p,
                      const struct spec_node *data, struct spec_endpoint *e)
{
    static const char *const words[] = {"None", "Gzip"};
    struct str name = str_of(e->model_data);
    bool archive = str_ends(name, ".tar.gz"), folder = str_ends(name, "/");
    struct spec_node at;
    int i = archive;
    bool said = spec_child(r, p, "compression", false, &at);
    if (said && !spec_choice(r, &at, words, ARRAY_LEN(words), NULL, &i)) {
        return;
    }
    if (!archive && !folder && !said) {
        spec_fault(r, data, "pattern",
                   "s3://bucket/model.tar.gz, s3://bucket/folder/, or compression: None",
                   "'%.120s' is no .tar.gz and no folder", e->model_data);
    } else if (i != archive) {
        spec_fault(r, &at, "conflict", archive ? "Gzip, or leave it out" : "None", "'%.120s' is %s",
                   e->model_data,
                   archive  ? "a .tar.gz"
                   : folder ? "a folder, which SageMaker takes as it is"
                            : "no .tar.gz");
    } else if (!archive || said) {
        e->model_type = folder ? "S3Prefix" : "S3Object";
    }
}

/* STAGE, or {stage: STAGE | data: "s3://.../model.tar.gz", framework | image, entry_point} */
static void read_model(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s,
                       struct spec_endpoint *e)
{
    struct spec_node at;
    const char *text;
    if (p->node->kind == YAML_STRING) {
        if (spec_text(r, p, BRACES_VARS, SPEC_MODEL_TEXT_MAX, &text) && is_place(text)) {
            spec_fault(r, p, "required", model_hint, "what serves the model is not said");
        } else {
            e->model_stage = text;
        }
        return;
    }
    if (!spec_is_map(r, p, model_hint)) {
        return;
    }
    spec_check_map(r, p, SPEC_MAP_MODEL);
    bool stage = spec_child(r, p, "stage", false, &at);
    bool said = false;
    if (stage) {
        e->model_stage = "";
        (void)spec_text(r, &at, BRACES_VARS, 64, &e->model_stage);
    }
    if (!spec_child(r, p, "data", false, &at)) {
        if (!stage) {
            spec_fault(r, p, "required", model_hint, "which model is served is not said");
            e->model_stage = ""; /* one fault is enough */
        }
    } else if (stage) {
        spec_fault(r, &at, "conflict", "either stage or data", "an endpoint serves one model");
    } else if (spec_text(r, &at, BRACES_VARS, SPEC_MODEL_TEXT_MAX, &e->model_data) &&
               spec_s3(r, &at, e->model_data)) {
        read_data(r, p, &at, e);
    } else {
        said = true; /* one fault is enough */
    }
    if (e->model_data == NULL && !said && spec_child(r, p, "compression", false, &at)) {
        spec_fault(r, &at, "conflict", "leave it out", "the model of a stage is a model.tar.gz");
    }
    read_image(r, p, s, e);
}

/* s3://bucket/samples.json, or the payloads themselves. */
static void read_payloads(struct spec_reader *r, const struct spec_node *p, struct spec_endpoint *e)
{
    if (p->node->kind == YAML_STRING) {
        bool variable = p->node->text[0] == '{' && isalpha((unsigned char)p->node->text[1]);
        if (!is_place(p->node->text) && !variable) {
            spec_fault(r, p, "pattern", payload_hint,
                       "'%.80s' is neither a place in S3 nor a list of payloads", p->node->text);
        } else if (spec_text(r, p, BRACES_VARS, SPEC_MODEL_TEXT_MAX, &e->payloads_from)) {
            (void)spec_s3(r, p, e->payloads_from);
        }
        return;
    }
    if (!spec_is_list(r, p, SPEC_PAYLOADS_MAX, payload_hint)) {
        return;
    }
    if (p->node->n == 0) {
        spec_fault(r, p, "required", payload_hint, "an empty list");
    }
    for (size_t i = 0; i < p->node->n; i++) {
        char key[24];
        const struct spec_node one = spec_item(p, i, key);
        if (spec_json_body(r, &one, SPEC_PAYLOAD_BYTES_MAX, &e->payloads[e->payloads_n])) {
            e->payloads_n++;
        }
    }
}

/* A media type is sent as a header: visible ASCII with one slash. */
static bool media_type_ok(const char *s)
{
    const char *slash = strchr(s, '/');
    for (const char *c = s; *c != '\0'; c++) {
        if (!isgraph((unsigned char)*c) && *c != ' ') {
            return false;
        }
    }
    return slash != NULL && slash != s && slash[1] != '\0' && s[0] != ' ';
}

/* smoke_test: payloads, or {payloads: ..., content_type: application/json, p95_ms: 200} */
static void read_smoke_test(struct spec_reader *r, const struct spec_node *p,
                            struct spec_endpoint *e)
{
    struct spec_node at;
    int64_t n;
    if (p->node->kind != YAML_MAP) {
        read_payloads(r, p, e);
        return;
    }
    spec_check_map(r, p, SPEC_MAP_SMOKE_TEST);
    if (!spec_child(r, p, "payloads", false, &at)) {
        spec_fault(r, p, "required", payload_hint, "'payloads' is missing");
    } else {
        read_payloads(r, &at, e);
    }
    if (spec_child(r, p, "content_type", false, &at) &&
        spec_text(r, &at, BRACES_VARS, 128, &e->content_type) && !media_type_ok(e->content_type)) {
        spec_fault(r, &at, "pattern", "application/json, text/csv, image/jpeg",
                   "'%.120s' is no media type", e->content_type);
    }
    if (spec_child(r, p, "p95_ms", false, &at) && spec_i64(r, &at, 1, P95_MS_MAX, &n)) {
        e->p95_ms = (int)n;
    }
}

void spec_endpoint_read(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    struct spec_endpoint *e = arena_alloc(r->a, sizeof *e);
    (void)spec_child(r, p, "kind", true, &at);
    *e = (struct spec_endpoint){.at = at.pos, .content_type = "application/json"};
    s->endpoint = e;
    s->image = "";
    s->verify = VERIFY_NONE;
    read_types(r, p, s);
    read_size(r, p, s, e);
    read_timeouts(r, p, e);
    read_life(r, p, e);
    spec_stage_security(r, p, s);
    spec_stage_environment(r, p, BRACES_VARS, SPEC_PAIRS_MAX, SPEC_MODEL_TEXT_MAX, s);
    spec_volume_key(r, p, s);
    spec_stage_tags(r, p, "SageMaker", SPEC_TAGS_MAX, e->tags, &e->tags_n);
    memcpy(s->retry, r->retry, sizeof s->retry);
    if (!spec_child(r, p, "model", false, &at)) {
        spec_fault(r, p, "required", model_hint, "'model' is missing");
    } else {
        read_model(r, &at, s, e);
    }
    if (spec_child(r, p, "smoke_test", false, &at)) {
        read_smoke_test(r, &at, e);
    }
}

static void fault_unknown(struct spec_reader *r, const struct spec_node *at,
                          const struct read_stage *all, int n, const char *name)
{
    const char *names[SPEC_STAGES_MAX] = {NULL};
    const char *row = NULL;
    char hint[256];
    int names_n = 0;
    for (int i = 0; i < n; i++) {
        if (all[i].matrix != NULL && strcmp(all[i].matrix, name) == 0 && row == NULL) {
            row = all[i].stage->name;
        }
        if (all[i].stage->kind == SPEC_KIND_JOBS) {
            names[names_n++] = all[i].stage->name;
        }
    }
    if (row != NULL) {
        spec_fault(r, at, "conflict", arena_printf(r->a, "one of them, like %s", row),
                   "'%.64s' is a matrix: each of its rows makes a model", name);
        return;
    }
    spec_guess(name, names, (size_t)names_n, hint, sizeof hint);
    spec_fault(r, at, "unknown_stage", names_n == 0 ? model_hint : hint,
               "there is no stage '%.64s'", name);
}

/* Why the jobs of a stage leave no single model.tar.gz; NULL: they leave one, or its faults say
 * more. */
static const char *no_model(const struct spec_stage *from)
{
    if (from->kind != SPEC_KIND_JOBS) {
        return "it runs no job";
    }
    if (from->worker != WORKER_NONE) {
        return "our workers leave their results elsewhere";
    }
    if (from->fan_out != FAN_OUT_NONE) {
        return "each of its parts makes one";
    }
    bool folder = from->training != NULL && from->training->uncompressed;
    return folder ? "output_compression is off there" : NULL;
}

/* The image that serves what a stage trained: its framework's, or its own. */
static void take_image(struct spec_reader *r, const struct spec_node *at,
                       const struct read_stage *from, struct spec_stage *s)
{
    struct spec_node words_at;
    struct image_wish words = {.framework = NULL};
    if (spec_image_by_vpc(from->stage)) {
        spec_fault(r, at, "required", "model: {stage: STAGE, image: URI in ECR}",
                   "the image of stage '%.64s' comes by its VPC, which no model's does",
                   from->stage->name);
    } else if (!spec_child(r, &from->at, "framework", false, &words_at)) {
        s->image = from->stage->image != NULL ? from->stage->image : s->image;
    } else if (spec_framework_words(r, &words_at, &words)) {
        struct spec_endpoint *e = arena_alloc(r->a, sizeof *e);
        *e = *s->endpoint;
        take_framework(r, at, &words, s, e);
        s->endpoint = e;
    }
}

static void link_model(struct spec_reader *r, const struct read_stage *all, int n,
                       const struct read_stage *of)
{
    const char *name = of->stage->endpoint->model_stage;
    const struct read_stage *from = spec_stage_called(all, n, name);
    struct spec_node model;
    struct spec_node at;
    (void)spec_child(r, &of->at, "model", true, &model);
    bool map = model.node->kind == YAML_MAP;
    if (!map || !spec_child(r, &model, "stage", true, &at)) {
        at = model;
    }
    if (from == NULL) {
        fault_unknown(r, &at, all, n, name);
        return;
    }
    const char *why = no_model(from->stage);
    if (why != NULL) {
        spec_fault(r, &at, "conflict", "the name of a training stage, or data: s3://...",
                   "stage '%.64s' leaves no model.tar.gz: %s", name, why);
        return;
    }
    if (!spec_stage_is_after(all, n, of->stage, name)) {
        spec_fault(r, &at, "required", arena_printf(r->a, "needs: %.64s in this stage", name),
                   "the endpoint does not wait for stage '%.64s'", name);
    }
    if (!map ||
        (yaml_get(model.node, "image") == NULL && yaml_get(model.node, "framework") == NULL)) {
        take_image(r, &at, from, of->stage);
    }
}

static void check_environment(struct spec_reader *r, const struct read_stage *of)
{
    static const char *const added[] = SPEC_SERVER_SETTINGS;
    const struct spec_stage *s = of->stage;
    struct spec_node at;
    int n = s->environment_n + (int)ARRAY_LEN(added);
    for (int i = 0; i < s->environment_n; i++) {
        for (size_t j = 0; j < ARRAY_LEN(added); j++) {
            n -= strcmp(s->environment[i].key, added[j]) == 0;
        }
    }
    if (s->endpoint->framework && n > SPEC_PAIRS_MAX &&
        spec_child(r, &of->at, "environment", false, &at)) {
        spec_fault(r, &at, "limit", "fewer variables, or an image of your own",
                   "%d variables with those of AWS's image; CreateModel takes %d", n,
                   SPEC_PAIRS_MAX);
    }
}

void spec_endpoint_link(struct spec_reader *r, const struct read_stage *all, int n)
{
    for (int i = 0; i < n; i++) {
        const struct spec_endpoint *e = all[i].stage->endpoint;
        if (e != NULL && e->model_stage != NULL && e->model_stage[0] != '\0') {
            link_model(r, all, n, &all[i]);
        }
        if (e != NULL) {
            check_environment(r, &all[i]);
        }
    }
}
