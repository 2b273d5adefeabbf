/* See ndjson.h. */
#include "ndjson.h"
#include "common/json.h"
#include "common/secret_shape.h"

bool ndjson_next(struct str *text, struct str *ret_line)
{
    if (text->n == 0) {
        return false;
    }
    const char *nl = memchr(text->p, '\n', text->n);
    size_t n = nl == NULL ? text->n : (size_t)(nl - text->p);
    size_t skip = nl == NULL ? n : n + 1;
    *ret_line = (struct str){text->p, n > 0 && text->p[n - 1] == '\r' ? n - 1 : n};
    *text = (struct str){text->p + skip, text->n - skip};
    return true;
}

struct cursor {
    const char *p, *end;
};

static bool eat(struct cursor *c, char want)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t')) {
        c->p++;
    }
    if (c->p == c->end || *c->p != want) {
        return false;
    }
    c->p++;
    return true;
}

/* True when one of eight bytes cannot be in a plain string: below 0x20, above 0x7e, quote or
 * backslash. A byte next to such a byte may match falsely, which only costs the slow check. */
static bool plain_8(const char *p)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t v;
    memcpy(&v, p, sizeof v);
    uint64_t quote = v ^ (ones * '"'), slash = v ^ (ones * '\\');
    uint64_t low = (v - ones * 0x20) | (quote - ones) | (slash - ones);
    return ((low | v | (v + ones)) & tops) == 0;
}

/* A string without escapes, control characters or bytes outside ASCII. */
static bool eat_plain_string(struct cursor *c, struct str *ret)
{
    if (!eat(c, '"')) {
        return false;
    }
    const char *begin = c->p;
    while (c->end - c->p >= 8 && plain_8(c->p)) {
        c->p += 8;
    }
    while (c->p < c->end && *c->p != '"') {
        if ((signed char)*c->p < 0x20 || *c->p == '\\' || *c->p == 0x7f) {
            return false;
        }
        c->p++;
    }
    if (c->p == c->end) {
        return false;
    }
    *ret = (struct str){begin, (size_t)(c->p - begin)};
    c->p++;
    return true;
}

static bool eat_size(struct cursor *c, int64_t *ret)
{
    while (c->p < c->end && *c->p == ' ') {
        c->p++;
    }
    const char *begin = c->p;
    int64_t v = 0;
    while (c->p < c->end && *c->p >= '0' && *c->p <= '9' && c->p - begin < 18) {
        v = v * 10 + (*c->p - '0');
        c->p++;
    }
    size_t n = (size_t)(c->p - begin);
    *ret = v;
    /* the next byte decides whether the number is complete */
    return n > 0 && (n == 1 || *begin != '0');
}

/* An object of plain strings with distinct keys, as its text. */
static bool eat_vars(struct cursor *c, struct str *ret)
{
    struct str keys[NDJSON_VARS_MAX], value;
    size_t n = 0;
    if (!eat(c, '{')) {
        return false;
    }
    const char *begin = c->p - 1;
    do {
        if (n == NDJSON_VARS_MAX || !eat_plain_string(c, &keys[n]) || !eat(c, ':') ||
            !eat_plain_string(c, &value)) {
            return false;
        }
        for (size_t i = 0; i < n; i++) {
            if (str_eq(keys[i], keys[n])) {
                return false;
            }
        }
        n++;
    } while (eat(c, ','));
    if (!eat(c, '}')) {
        return false;
    }
    *ret = (struct str){begin, (size_t)(c->p - begin)};
    return true;
}

/* The flat form: uri, size and vars, each at most once, in any order. False: not flat; jansson
 * decides whether it is valid. */
static bool parse_flat(struct str line, struct ndjson_part *ret)
{
    struct cursor c = {line.p, line.p + line.n};
    bool uri = false, size = false, vars = false;
    if (line.n > NDJSON_LINE_MAX || !eat(&c, '{')) {
        return false;
    }
    do {
        struct str key;
        if (!eat_plain_string(&c, &key) || !eat(&c, ':')) {
            return false;
        }
        if (!uri && str_eq_cstr(key, "uri")) {
            uri = eat_plain_string(&c, &ret->uri);
            if (!uri) {
                return false;
            }
        } else if (!size && str_eq_cstr(key, "size")) {
            size = eat_size(&c, &ret->size);
            if (!size) {
                return false;
            }
        } else if (!vars && str_eq_cstr(key, "vars")) {
            vars = eat_vars(&c, &ret->vars);
            if (!vars) {
                return false;
            }
        } else {
            return false;
        }
    } while (eat(&c, ','));
    if (!eat(&c, '}')) {
        return false;
    }
    while (c.p < c.end && (*c.p == ' ' || *c.p == '\t')) {
        c.p++;
    }
    return uri && c.p == c.end && ret->uri.n > 0 && ret->uri.n <= NDJSON_URI_MAX;
}

static bool check_vars(const json_t *vars, struct err *err)
{
    if (json_object_size(vars) > NDJSON_VARS_MAX) {
        return err_set(err, ERR_INVALID, "vars: at most %d", NDJSON_VARS_MAX);
    }
    void *it = json_object_iter((json_t *)(uintptr_t)vars);
    for (; it != NULL; it = json_object_iter_next((json_t *)(uintptr_t)vars, it)) {
        if (!json_is_string(json_object_iter_value(it))) {
            return err_set(err, ERR_INVALID, "vars.%.64s must be a string",
                           json_object_iter_key(it));
        }
    }
    return true;
}

static bool check_uri(const char *uri, struct err *err)
{
    size_t n = strlen(uri);
    if (n == 0 || n > NDJSON_URI_MAX) {
        return err_set(err, ERR_INVALID, "uri: 1 to %d bytes", NDJSON_URI_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        if ((uint8_t)uri[i] < 0x20 || uri[i] == 0x7f) {
            return err_set(err, ERR_INVALID, "uri has a control character");
        }
    }
    return true;
}

static bool parse_any(struct str line, struct arena *a, struct ndjson_part *ret,
                      const char **ret_pointer, struct err *err)
{
    static const char *const keys[] = {"uri", "size", "vars", NULL};
    AUTO_JSON json_t *v = NULL;
    const char *uri;
    json_t *vars;
    *ret_pointer = "";
    if (!json_parse(line, NDJSON_LINE_MAX, &v, err)) {
        return false;
    }
    if (!json_is_object(v)) {
        return err_set(err, ERR_INVALID, "a line must be a JSON object");
    }
    if (!json_only_keys(v, keys, err)) {
        return false;
    }
    *ret_pointer = "uri";
    if (!json_get_required_str(v, "uri", &uri, err) || !check_uri(uri, err)) {
        return false;
    }
    *ret_pointer = "size";
    if (!json_get_i64(v, "size", 0, INT64_MAX / 2, 0, &ret->size, err)) {
        return false;
    }
    *ret_pointer = "vars";
    if (!json_get_object(v, "vars", &vars, err) || (vars != NULL && !check_vars(vars, err))) {
        return false;
    }
    size_t n = strlen(uri);
    ret->uri = (struct str){arena_strndup(a, uri, n), n};
    if (vars != NULL && json_object_size(vars) > 0) {
        AUTO_FREE char *text = json_text(vars);
        n = strlen(text);
        ret->vars = (struct str){arena_strndup(a, text, n), n};
    }
    return true;
}

/* Everybody who may see the campaign sees the addresses and the variables of its parts. */
static bool no_secrets(const struct ndjson_part *part, const char **ret_pointer, struct err *err)
{
    const char *uri = secret_shape(part->uri);
    const char *what = uri != NULL ? uri : part->vars.n > 0 ? secret_shape(part->vars) : NULL;
    *ret_pointer = uri != NULL ? "uri" : "vars";
    return what == NULL || err_set(err, ERR_INVALID,
                                   "it has what looks like %s: parts are shown; let the job's role "
                                   "read it from Secrets Manager",
                                   what);
}

static bool part_parse(struct str line, struct arena *a, struct ndjson_part *ret,
                       const char **ret_pointer, struct err *err)
{
    *ret = (struct ndjson_part){0};
    if (parse_flat(line, ret)) {
        return true;
    }
    *ret = (struct ndjson_part){0};
    if (line.n > NDJSON_LINE_MAX) {
        *ret_pointer = "";
        return err_set(err, ERR_INVALID, "a line has at most %d bytes", NDJSON_LINE_MAX);
    }
    return parse_any(line, a, ret, ret_pointer, err);
}

bool ndjson_part_parse(struct str line, struct arena *a, struct ndjson_part *ret,
                       const char **ret_pointer, struct err *err)
{
    return part_parse(line, a, ret, ret_pointer, err) && no_secrets(ret, ret_pointer, err);
}
