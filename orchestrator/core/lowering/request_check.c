/* See request_check.h. */
#include "request_check.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "core/spec/spec_expand.h"
#include "core/spec/spec_read.h"
#include "request_parts.h"
#include "request_preview.h"

#define WHOLE_MAX  100000  /* of all stages, some 12 us each: a submit answers within its time */
#define VARS_BYTES 1000000 /* of one part */
#define NOT_TEXT_N 32      /* a number as wide as it can be, the name of a stage */
#define QUOTED_N   6       /* bytes of JSON that one byte may become */

/* Written by their stage, not by their part. */
static bool of_part(struct str name)
{
    return str_eq_cstr(name, "uri") || str_eq_cstr(name, "file_name") || str_eq_cstr(name, "stem");
}

static void needs_var(struct request_checks *c, struct str name)
{
    for (int i = 0; i < c->vars_n; i++) {
        if (str_eq(c->vars[i], name)) {
            return;
        }
    }
    if (c->vars_n < REQUEST_CHECK_VARS_MAX) { /* more: the leader finds them */
        c->vars[c->vars_n++] = name;
    }
}

/* What is known of every part by one look at a template that takes `max` bytes. */
static void look_at(struct request_checks *c, const char *template, size_t max, bool quoted)
{
    size_t fixed = quoted ? 2 : 0, texts = 0, per_byte = quoted ? QUOTED_N : 1;
    const char *t = template;
    while (t != NULL && *t != '\0') {
        struct str literal;
        struct spec_field f;
        bool has_field;
        if (!spec_next_piece(&t, &literal, &has_field, &f, NULL)) {
            return;
        }
        fixed += literal.n * per_byte;
        bool var = has_field && !spec_is_task_variable(f.name);
        if (var) {
            needs_var(c, f.name);
        }
        if (var || (has_field && of_part(f.name))) {
            texts += per_byte;
        } else if (has_field) {
            fixed += NOT_TEXT_N * per_byte;
        }
    }
    if (texts > 0) {
        c->text_max = MIN(c->text_max, fixed < max ? (max - fixed) / texts : 0);
    }
}

static bool look_at_one(void *ctx, const char *what, const char *template, size_t max)
{
    (void)what;
    /* a name is not only short: with a part's text in it each part is looked at whole */
    look_at(ctx, template, max == SPEC_EXPERIMENT_MAX ? 0 : max, false);
    return true;
}

void request_check_begin(struct request_checks *c, const struct spec *s,
                         const struct spec_stage *stage, const char *region)
{
    const struct spec_training *t = stage->training;
    *c = (struct request_checks){.spec = s,
                                 .stage = stage,
                                 .region = region != NULL ? region : "us-east-1",
                                 .text_max = SIZE_MAX,
                                 .whole_left = WHOLE_MAX / MAX(s->stages_n, 1),
                                 .request = BUF_INIT(1024 * 1024)};
    for (int i = 0; i < stage->hyperparameters_n; i++) {
        look_at(c, stage->hyperparameters[i].value, HYPER_VALUE_MAX, t != NULL && t->quoted[i]);
    }
    for (int i = 0; i < stage->environment_n; i++) {
        look_at(c, stage->environment[i].value, ENV_VALUE_MAX, false);
    }
    for (int i = 0; i < stage->command_n; i++) {
        look_at(c, stage->command[i], ARGUMENT_MAX, false);
    }
    look_at(c, stage->output, S3_URI_MAX, false);
    look_at(c, stage->done_if, S3_URI_MAX, false);
    look_at(c, stage->verify_target, S3_URI_MAX, false);
    for (int i = 0; t != NULL && i < t->channels_n; i++) {
        look_at(c, t->channels[i].from, S3_URI_MAX, false);
    }
    if (t != NULL) {
        look_at(c, t->checkpoint, S3_URI_MAX, false);
        look_at(c, t->mp_parameters, HYPER_VALUE_MAX, false);
        (void)debug_fields_each(t, look_at_one, c);
    }
}

void request_check_done(struct request_checks *c)
{
    buf_done(&c->request);
}

/* Templates that no request has, but the look at an output. */
static bool places(const struct spec_stage *s, const struct spec_task *task, struct err *err)
{
    const char *const templates[][2] = {
        {"output", s->output}, {"done_if", s->done_if}, {"verify", s->verify_target}};
    for (size_t i = 0; i < ARRAY_LEN(templates); i++) {
        AUTO_BUF struct buf out = BUF_INIT(SPEC_STRING_MAX);
        if (templates[i][1] != NULL && !spec_expand(templates[i][1], task, &out, err)) {
            return err_wrap(err, "%s", templates[i][0]);
        }
    }
    return true;
}

static bool whole(struct request_checks *c, struct spec_task *task, struct err *err)
{
    const struct preview_attempt first = {0};
    task->campaign_id = task->task_id = 1;
    task->attempt_n = 1;
    task->stage_name = c->stage->name;
    buf_reset(&c->request);
    return request_preview(c->spec, c->stage, task, &first, c->region, &c->request, err) &&
           places(c->stage, task, err);
}

bool request_check_stage(struct request_checks *c, struct err *err)
{
    AUTO_JSON json_t *vars = json_object();
    struct spec_task task = {.uri = "s3://x/x", .vars = vars};
    buf_reset(&c->request);
    if (c->stage->kind == SPEC_KIND_ENDPOINT) {
        return request_preview_endpoint(c->spec, c->stage, c->region, &c->request, err);
    }
    if (c->stage->kind == SPEC_KIND_LUSTRE) {
        return request_preview_filesystem(c->spec, c->stage, &c->request, err);
    }
    for (int i = 0; i < c->vars_n; i++) {
        AUTO_FREE char *name = str_dup(c->vars[i]);
        (void)json_object_set_new(vars, name, json_string("x"));
    }
    return whole(c, &task, err);
}

/* Is `"name":` in vars? In an object of strings only a key looks so, when it is not escaped. */
static bool says(struct str vars, struct str name)
{
    for (size_t i = 0; i + name.n + 2 < vars.n; i++) {
        const char *at = memmem(vars.p + i, vars.n - i, name.p, name.n);
        if (at == NULL) {
            return false;
        }
        i = (size_t)(at - vars.p);
        size_t after = i + name.n;
        if (i == 0 || vars.p[i - 1] != '"' || after == vars.n || vars.p[after] != '"') {
            continue;
        }
        do {
            after++;
        } while (after < vars.n && (vars.p[after] == ' ' || vars.p[after] == '\t'));
        if (after < vars.n && vars.p[after] == ':') {
            return true;
        }
    }
    return false;
}

static bool doubtful(const struct request_checks *c, struct str uri, struct str vars)
{
    if (MAX(uri.n, vars.n) > c->text_max) {
        return true;
    }
    for (int i = 0; i < c->vars_n; i++) {
        if (!says(vars, c->vars[i])) {
            return true;
        }
    }
    return false;
}

static bool has_all(const struct request_checks *c, const json_t *own, struct err *err)
{
    for (int i = 0; i < c->vars_n; i++) {
        AUTO_FREE char *name = str_dup(c->vars[i]);
        if (json_object_get(own, name) == NULL) {
            return err_set(err, ERR_INVALID,
                           "vars has no '%.64s', which a template of stage '%s' names", name,
                           c->stage->name);
        }
    }
    return true;
}

bool request_check_part(struct request_checks *c, int64_t seq, struct str uri, int64_t size,
                        struct str vars, struct err *err)
{
    AUTO_JSON json_t *own = NULL;
    if (!doubtful(c, uri, vars) || c->whole_left == 0) {
        return true;
    }
    c->whole_left--;
    if ((vars.n > 0 && !json_parse(vars, VARS_BYTES, &own, err)) || !has_all(c, own, err)) {
        return false;
    }
    AUTO_FREE char *text = str_dup(uri);
    struct spec_task task = {.seq = seq, .uri = text, .size = size, .vars = own};
    return whole(c, &task, err);
}
