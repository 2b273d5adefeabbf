/* See field_type.h. */
#include "field_type.h"
#include "common/json.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#define NUMBER_BYTES_MAX 64

bool field_is_null(struct str s)
{
    /* pyarrow.csv.ConvertOptions().null_values */
    static const char *const nulls[] = {
        "",        "#N/A", "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND",
        "1.#QNAN", "N/A",  "NA",       "NULL", "NaN",     "n/a",      "nan",  "null"};
    for (size_t i = 0; s.n <= 8 && i < ARRAY_LEN(nulls); i++) {
        if (str_eq_cstr(s, nulls[i])) {
            return true;
        }
    }
    return false;
}

bool field_int(struct str s, int64_t *ret)
{
    size_t from = s.n > 0 && s.p[0] == '-' ? 1 : 0;
    uint64_t n = 0;
    uint64_t max = (uint64_t)INT64_MAX + from;
    for (size_t i = from; i < s.n; i++) {
        unsigned digit = (unsigned)(unsigned char)s.p[i] - '0';
        if (digit > 9 || n > (max - digit) / 10) {
            return false;
        }
        n = n * 10 + digit;
    }
    *ret = from == 1 ? (int64_t)(0 - n) : (int64_t)n;
    return s.n > from;
}

bool field_bool(struct str s, bool *ret)
{
    static const char *const words[] = {"0",     "1",    "false", "true",
                                        "False", "True", "FALSE", "TRUE"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eq_cstr(s, words[i])) {
            *ret = i % 2 == 1;
            return true;
        }
    }
    return false;
}

bool field_real(struct str s, double *ret)
{
    char text[NUMBER_BYTES_MAX];
    char *end;
    if (s.n == 0 || s.n >= sizeof text) {
        return false;
    }
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    const char *first = text + (text[0] == '-' ? 1 : 0);
    bool digit = isdigit((unsigned char)first[0]) || first[0] == '.';
    bool word = strcasecmp(first, "inf") == 0 || strcasecmp(first, "infinity") == 0 ||
                strcasecmp(first, "nan") == 0;
    if ((!digit || strpbrk(text, "xX") != NULL) && !word) {
        return false;
    }
    *ret = strtod(text, &end);
    return end == text + s.n;
}

void field_guess_add(struct field_guess *g, struct str s)
{
    int64_t i;
    bool b;
    double d;
    if (field_is_null(s) || (g->not_int && g->not_bool && g->not_real)) {
        return;
    }
    g->some = true;
    g->not_int = g->not_int || !field_int(s, &i);
    g->not_bool = g->not_bool || !field_bool(s, &b);
    g->not_real = g->not_real || !field_real(s, &d);
}

const char *field_guess_type(const struct field_guess *g)
{
    return !g->some       ? "NULL"
           : !g->not_int  ? "BIGINT"
           : !g->not_bool ? "BOOLEAN"
           : !g->not_real ? "DOUBLE"
                          : "VARCHAR";
}

enum field_kind {
    FIELD_NONE, /* only nulls so far */
    FIELD_BOOL,
    FIELD_INT,
    FIELD_REAL,
    FIELD_TEXT,
    FIELD_LIST,
    FIELD_OBJECT
};
struct field_type {
    enum field_kind kind;
    struct field_type **inner; /* of a list one, of an object one a name */
    char **names;
    size_t inner_n;
};

struct field_type *field_type_new(void)
{
    return xcalloc(1, sizeof(struct field_type));
}

void field_type_free(struct field_type *t)
{
    if (t == NULL) {
        return;
    }
    for (size_t i = 0; i < t->inner_n; i++) {
        field_type_free(t->inner[i]);
        if (t->names != NULL) {
            free(t->names[i]);
        }
    }
    free(t->inner);
    free(t->names);
    free(t);
}

static enum field_kind kind_of(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return FIELD_OBJECT;
    case JSON_ARRAY:
        return FIELD_LIST;
    case JSON_STRING:
        return FIELD_TEXT;
    case JSON_INTEGER:
        return FIELD_INT;
    case JSON_REAL:
        return FIELD_REAL;
    case JSON_TRUE:
    case JSON_FALSE:
        return FIELD_BOOL;
    case JSON_NULL:
        break;
    }
    return FIELD_NONE;
}

/* The type of a member, added when it is new; name NULL: of a list's elements. */
static struct field_type *member(struct field_type *t, const char *name)
{
    for (size_t i = 0; i < t->inner_n; i++) {
        if (name == NULL || strcmp(t->names[i], name) == 0) {
            return t->inner[i];
        }
    }
    size_t n = t->inner_n + 1;
    t->inner = xrealloc(t->inner, n * sizeof(struct field_type *));
    t->inner[n - 1] = field_type_new();
    if (name != NULL) {
        t->names = xrealloc(t->names, n * sizeof *t->names);
        t->names[n - 1] = xstrdup(name);
    }
    t->inner_n = n;
    return t->inner[n - 1];
}

bool field_type_add(struct field_type *t, const json_t *v, char ret_why[static 80])
{
    static const char *const names[] = {"null",   "a boolean", "a number", "a number",
                                        "a text", "a list",    "an object"};
    enum field_kind kind = kind_of(v);
    bool numbers = (t->kind == FIELD_INT && kind == FIELD_REAL) ||
                   (t->kind == FIELD_REAL && kind == FIELD_INT);
    if (kind == FIELD_NONE) {
        return true;
    }
    if (t->kind == FIELD_NONE) {
        t->kind = kind;
    } else if (numbers) {
        t->kind = FIELD_REAL;
    } else if (t->kind != kind) {
        (void)snprintf(ret_why, 80, "%s, in rows before %s", names[kind], names[t->kind]);
        return false;
    }
    for (size_t i = 0; kind == FIELD_LIST && i < json_array_size(v); i++) {
        if (!field_type_add(member(t, NULL), json_array_get(v, i), ret_why)) {
            return false;
        }
    }
    json_t *o; /* jansson's iterators take a mutable object but do not change it */
    memcpy(&o, &v, sizeof o);
    const char *key;
    json_t *value;
    json_object_foreach(kind == FIELD_OBJECT ? o : NULL, key, value)
    {
        if (!field_type_add(member(t, key), value, ret_why)) {
            return false;
        }
    }
    return true;
}

/* Within a type a part without values is a text: parquet has no other null. */
static void inner_sql(const struct field_type *t, struct buf *out)
{
    if (t->kind == FIELD_NONE) {
        buf_add_cstr(out, "VARCHAR");
    } else {
        field_type_sql(t, out);
    }
}

static void object_sql(const struct field_type *t, struct buf *out)
{
    buf_add_cstr(out, "STRUCT(");
    for (size_t i = 0; i < t->inner_n; i++) {
        buf_add_cstr(out, i == 0 ? "\"" : ", \"");
        for (const char *c = t->names[i]; *c != '\0'; c++) {
            buf_add_char(out, *c);
            if (*c == '"') {
                buf_add_char(out, '"');
            }
        }
        buf_add_cstr(out, "\" ");
        inner_sql(t->inner[i], out);
    }
    buf_add_cstr(out, ")");
}

void field_type_sql(const struct field_type *t, struct buf *out)
{
    switch (t->kind) {
    case FIELD_NONE:
        buf_add_cstr(out, "NULL");
        break;
    case FIELD_BOOL:
        buf_add_cstr(out, "BOOLEAN");
        break;
    case FIELD_INT:
        buf_add_cstr(out, "BIGINT");
        break;
    case FIELD_REAL:
        buf_add_cstr(out, "DOUBLE");
        break;
    case FIELD_TEXT:
        buf_add_cstr(out, "VARCHAR");
        break;
    case FIELD_LIST:
        if (t->inner_n > 0) {
            inner_sql(t->inner[0], out);
        } else {
            buf_add_cstr(out, "VARCHAR");
        }
        buf_add_cstr(out, "[]");
        break;
    case FIELD_OBJECT:
        if (t->inner_n > 0) {
            object_sql(t, out);
        } else {
            buf_add_cstr(out, "MAP(VARCHAR, VARCHAR)"); /* {} in every row */
        }
        break;
    }
}

static void member_json(struct buf *out, const char *name, const struct field_type *t,
                        const json_t *v)
{
    buf_add_cstr(out, out->n > 0 && out->p[out->n - 1] == '{' ? "" : ",");
    json_escape(out, str_of(name), false);
    buf_add_char(out, ':');
    if (v == NULL) {
        buf_add_cstr(out, "null");
    } else {
        field_json(out, t, v);
    }
}

static void object_json(struct buf *out, const struct field_type *t, const json_t *v)
{
    const char *key;
    json_t *value;
    json_t *o; /* jansson's iterators take a mutable object but do not change it */
    memcpy(&o, &v, sizeof o);
    buf_add_char(out, '{');
    for (size_t i = 0; t != NULL && i < t->inner_n; i++) {
        member_json(out, t->names[i], t->inner[i], json_object_get(v, t->names[i]));
    }
    json_object_foreach(t == NULL ? o : NULL, key, value)
    {
        member_json(out, key, NULL, value);
    }
    buf_add_char(out, '}');
}

static void list_json(struct buf *out, const struct field_type *t, const json_t *v)
{
    const struct field_type *inner = t != NULL && t->inner_n > 0 ? t->inner[0] : NULL;
    buf_add_char(out, '[');
    for (size_t i = 0; i < json_array_size(v); i++) {
        buf_add_cstr(out, i == 0 ? "" : ",");
        field_json(out, inner, json_array_get(v, i));
    }
    buf_add_char(out, ']');
}

void field_json(struct buf *out, const struct field_type *t, const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        object_json(out, t, v);
        break;
    case JSON_ARRAY:
        list_json(out, t, v);
        break;
    case JSON_STRING:
        json_escape(out, (struct str){json_string_value(v), json_string_length(v)}, false);
        break;
    case JSON_INTEGER:
        buf_addf(out, "%" PRIi64, (int64_t)json_integer_value(v));
        break;
    case JSON_REAL:
        json_python_float(out, json_real_value(v));
        break;
    case JSON_TRUE:
        buf_add_cstr(out, "true");
        break;
    case JSON_FALSE:
        buf_add_cstr(out, "false");
        break;
    case JSON_NULL:
        buf_add_cstr(out, "null");
        break;
    }
}
