/* Values of a campaign file as lines, and as JSON text: hyperparameters of a script, which the
 * SageMaker Python SDK encodes, and parameters of the model parallel library. */
#include "common/json.h"
#include "spec_read.h"
#include <stdio.h>

void spec_one_line(struct spec_reader *r, const struct spec_node *p, const char *text)
{
    if (strpbrk(text, "\r\n") != NULL) {
        spec_fault(r, p, "pattern", "one line, or a file that is named here",
                   "SageMaker takes no line break here");
    }
}

void spec_lines(struct spec_reader *r, const struct spec_node *p, enum braces braces, size_t max_n,
                size_t max_len, const char **ret, int *ret_n)
{
    if (!spec_texts(r, p, braces, max_n, max_len, ret, ret_n)) {
        return;
    }
    for (int i = 0; i < *ret_n; i++) {
        char key[24];
        const struct spec_node one = p->node->kind == YAML_LIST ? spec_item(p, (size_t)i, key) : *p;
        spec_one_line(r, &one, ret[i]);
    }
}

void spec_pairs_lines(struct spec_reader *r, const struct spec_node *p,
                      const struct spec_pair *pairs, int n)
{
    for (int i = 0; i < n; i++) {
        struct spec_node at;
        if (spec_child(r, p, pairs[i].key, false, &at)) {
            spec_one_line(r, &at,
                          strpbrk(pairs[i].key, "\r\n") != NULL ? pairs[i].key : pairs[i].value);
        }
    }
}

static json_t *json_of(struct spec_reader *r, const struct spec_node *p);

static json_t *string_of(struct spec_reader *r, const struct spec_node *p)
{
    const char *text = "";
    (void)spec_scalar(r, p, BRACES_VARS, SPEC_STRING_MAX, &text);
    return json_string(text);
}

static json_t *list_of(struct spec_reader *r, const struct spec_node *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->node->n; i++) {
        char key[24];
        const struct spec_node item = spec_item(p, i, key);
        (void)json_array_append_new(list, json_of(r, &item));
    }
    return list;
}

static json_t *map_of(struct spec_reader *r, const struct spec_node *p)
{
    json_t *map = json_object();
    for (size_t i = 0; i < p->node->n; i++) {
        const struct spec_node item = {p, p->node->keys[i], p->node->items[i],
                                       p->node->items[i]->pos};
        (void)json_object_set_new(map, p->node->keys[i], json_of(r, &item));
    }
    return map;
}

/* Depth is bounded by the reader of YAML. */
static json_t *json_of(struct spec_reader *r, const struct spec_node *p)
{
    switch (p->node->kind) {
    case YAML_NULL:
        return json_null();
    case YAML_BOOL:
        return json_boolean(p->node->b);
    case YAML_INT:
        return json_integer(p->node->i);
    case YAML_FLOAT:
        return json_real(p->node->f); /* finite: the reader of YAML sees to it */
    case YAML_STRING:
        return string_of(r, p);
    case YAML_LIST:
        return list_of(r, p);
    case YAML_MAP:
        return map_of(r, p);
    }
    return json_null();
}

/* Braces doubled: the text is a template. */
static const char *as_template(struct spec_reader *r, const char *text)
{
    AUTO_BUF struct buf b = BUF_INIT(2 * SPEC_STRING_MAX);
    for (; *text != '\0'; text++) {
        buf_add_char(&b, *text);
        if (*text == '{' || *text == '}') {
            buf_add_char(&b, *text);
        }
    }
    return arena_strndup(r->a, buf_cstr(&b), b.n);
}

/* A number as it was written when JSON writes it so, too: 1e-4 stays 1e-4. */
static bool written_as_json(const struct yaml_node *node)
{
    struct err ignored = ERR_INIT;
    AUTO_JSON json_t *v = NULL;
    char text[64];
    int n = snprintf(text, sizeof text, "[%.60s]", node->text);
    return node->kind == YAML_FLOAT && node->text_n <= 60 &&
           json_parse((struct str){text, (size_t)n}, sizeof text, &v, &ignored);
}

/* 0.9 as 0.9, not as 0.90000000000000002: 15 digits when they read back as the same number. */
static char *dump(const json_t *v)
{
    const size_t flags = JSON_COMPACT | JSON_ENCODE_ANY;
    char *text = json_dumps(v, flags | JSON_REAL_PRECISION(15));
    AUTO_JSON json_t *back = json_loads(text, JSON_DECODE_ANY, NULL);
    if (!json_equal(v, back)) {
        free(text);
        text = json_dumps(v, flags | JSON_REAL_PRECISION(17));
    }
    return text;
}

/* A value that is no string as JSON text of at most max bytes; NULL: a fault says why not. */
static const char *json_text_of(struct spec_reader *r, const struct spec_node *p, size_t max)
{
    int before = r->faults->n;
    AUTO_JSON json_t *v = json_of(r, p);
    AUTO_FREE char *dumped = dump(v);
    const char *text = written_as_json(p->node) ? p->node->text : dumped;
    if (r->faults->n > before) {
        return NULL;
    }
    if (text == NULL || strlen(text) > max || r->strings_bytes + strlen(text) > SPEC_STRINGS_MAX) {
        spec_fault(r, p, "limit", "put it into a file and name the file",
                   "longer than %zu bytes as JSON", max);
        return NULL;
    }
    r->strings_bytes += strlen(text);
    return arena_strndup(r->a, text, strlen(text));
}

bool spec_json_value(struct spec_reader *r, const struct spec_node *p, size_t max, const char **ret,
                     bool *ret_quoted)
{
    *ret_quoted = p->node->kind == YAML_STRING;
    if (*ret_quoted) {
        return spec_scalar(r, p, BRACES_TEMPLATE, max, ret);
    }
    const char *text = json_text_of(r, p, max);
    if (text != NULL) {
        *ret = as_template(r, text);
    }
    return text != NULL;
}

bool spec_json_body(struct spec_reader *r, const struct spec_node *p, size_t max, const char **ret)
{
    const struct yaml_node *node = p->node;
    if (node->kind != YAML_STRING) {
        const char *text = json_text_of(r, p, max);
        *ret = text != NULL ? text : "";
        return text != NULL;
    }
    if (node->text_n == 0 || node->text_n > max || strlen(node->text) != node->text_n ||
        r->strings_bytes + node->text_n > SPEC_STRINGS_MAX) {
        spec_fault(r, p, "limit", "an object in S3 may hold more",
                   "a text of 1 to %zu bytes without NUL is needed here", max);
        return false;
    }
    r->strings_bytes += node->text_n;
    *ret = arena_strndup(r->a, node->text, node->text_n);
    return true;
}

void spec_json_pairs(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s,
                     struct spec_training *t)
{
    if (!spec_is_map(r, p, "key: value, ...")) {
        return;
    }
    if (p->node->n > SPEC_PAIRS_MAX) {
        spec_fault(r, p, "limit", "", "%zu keys; at most %d are allowed", p->node->n,
                   SPEC_PAIRS_MAX);
        return;
    }
    for (size_t i = 0; i < p->node->n; i++) {
        const char *key = p->node->keys[i];
        struct spec_node at = {p, key, p->node->items[i], p->node->items[i]->pos};
        const char *value;
        if (key[0] == '\0' || strlen(key) > 256) {
            spec_fault(r, &at, "limit", "", "a key of 1 to 256 bytes is needed");
        } else if (strncmp(key, "sagemaker_", 10) == 0 || strcmp(key, "mp_parameters") == 0) {
            at.pos = p->node->key_pos[i];
            spec_fault(r, &at, "conflict",
                       "entry_point, source_dir, distribution and compiler set "
                       "these",
                       "'%.64s' is set by drover", key);
        } else if (spec_json_value(r, &at, HYPER_VALUE_MAX, &value,
                                   &t->quoted[s->hyperparameters_n])) {
            r->strings_bytes += strlen(key);
            s->hyperparameters[s->hyperparameters_n++] =
                (struct spec_pair){arena_strndup(r->a, key, strlen(key)), value};
        }
    }
}
