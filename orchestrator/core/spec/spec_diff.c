/* The keys in which two campaign files differ; see spec_diff.h. */
#include "spec_diff.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/yaml.h"
#include <stdio.h>

#define DIFF_NODES_MAX   200000 /* aliases may make a small text a large tree */
#define DIFF_VALUE_MAX   100    /* bytes of a value that are shown */
#define DIFF_PATH_MAX    512
#define DIFF_POINTER_MAX 159 /* of struct fault */

struct diff {
    struct faults *out;
    char path[DIFF_PATH_MAX];
    bool secrets;
    int left; /* nodes that may still be looked at */
};

/* At most that many bytes of s, without half a character at the end. */
static struct str str_cut(struct str s, size_t most)
{
    size_t n = MIN(s.n, most);
    while (n < s.n && n > 0 && ((uint8_t)s.p[n] & 0xc0) == 0x80) {
        n--;
    }
    return (struct str){s.p, n};
}

static bool is_scalar(const struct yaml_node *n)
{
    return n->kind != YAML_LIST && n->kind != YAML_MAP;
}

static struct str scalar_text(const struct yaml_node *n)
{
    return n->text != NULL ? (struct str){n->text, n->text_n} : STR("");
}

static bool same(struct diff *d, const struct yaml_node *a, const struct yaml_node *b)
{
    if (d->left-- <= 0) {
        return true;
    }
    if (is_scalar(a) || is_scalar(b)) {
        return is_scalar(a) && is_scalar(b) && str_eq(scalar_text(a), scalar_text(b));
    }
    if (a->kind != b->kind || a->n != b->n) {
        return false;
    }
    for (size_t i = 0; i < a->n; i++) {
        const struct yaml_node *other =
            a->kind == YAML_LIST ? b->items[i] : yaml_get(b, a->keys[i]);
        if (other == NULL || !same(d, a->items[i], other)) {
            return false;
        }
    }
    return true;
}

/* A scalar or a list of scalars as text, cut at a character; "..." for anything deeper. */
static void value_out(const struct yaml_node *n, struct buf *b)
{
    if (n == NULL) {
        buf_add_cstr(b, "(none)");
        return;
    }
    AUTO_BUF struct buf text = BUF_INIT(1024 * 1024);
    bool list = n->kind == YAML_LIST;
    for (size_t i = 0; list && i < n->n && text.n <= DIFF_VALUE_MAX; i++) {
        buf_add_cstr(&text, i == 0 ? "[" : ", ");
        buf_add_str(&text, is_scalar(n->items[i]) ? scalar_text(n->items[i]) : STR("..."));
    }
    if (list) {
        buf_add_cstr(&text, n->n > 0 ? "]" : "[]");
    } else {
        buf_add_str(&text, is_scalar(n) ? scalar_text(n) : STR("..."));
    }
    struct str shown = str_cut(buf_str(&text), DIFF_VALUE_MAX);
    buf_add_str(b, shown);
    buf_add_cstr(b, shown.n < text.n ? "..." : "");
}

/* True for vars.X and for anything below an `environment`. */
static bool is_secret(struct str path)
{
    bool first = true;
    while (path.n > 0) {
        struct str one = str_split(&path, '.');
        if (str_eq_cstr(one, "environment") || (first && str_eq_cstr(one, "vars"))) {
            return true;
        }
        first = false;
    }
    return false;
}

static void differ(struct diff *d, const struct yaml_node *a, const struct yaml_node *b)
{
    const char *code = a == NULL ? "added" : b == NULL ? "removed" : "changed";
    struct position pos = b != NULL ? b->pos : (struct position){0, 0};
    AUTO_BUF struct buf text = BUF_INIT(1024);
    bool map = (a != NULL && a->kind == YAML_MAP) || (b != NULL && b->kind == YAML_MAP);
    if (map || (!d->secrets && is_secret(str_of(d->path)))) {
        buf_add_cstr(&text, code);
    } else {
        value_out(a, &text);
        buf_add_cstr(&text, " -> ");
        value_out(b, &text);
    }
    AUTO_FREE char *pointer = str_dup(str_cut(str_of(d->path), DIFF_POINTER_MAX));
    faults_add(d->out, pos, pointer, code, "", "%s", buf_cstr(&text));
}

static void compare(struct diff *d, const struct yaml_node *a, const struct yaml_node *b);

/* Compare below `key`; the path is as before afterwards. */
static void compare_key(struct diff *d, const char *key, const struct yaml_node *a,
                        const struct yaml_node *b)
{
    size_t n = strlen(d->path);
    (void)snprintf(d->path + n, sizeof d->path - n, "%s%s", n > 0 ? "." : "", key);
    compare(d, a, b);
    d->path[n] = '\0';
}

static const char *name_of(const struct yaml_node *n)
{
    const struct yaml_node *name = n->kind == YAML_MAP ? yaml_get(n, "name") : NULL;
    return name != NULL && is_scalar(name) ? name->text : NULL;
}

static bool all_named(const struct yaml_node *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (name_of(list->items[i]) == NULL) {
            return false;
        }
    }
    return true;
}

static const struct yaml_node *named(const struct yaml_node *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(name_of(list->items[i]), name) == 0) {
            return list->items[i];
        }
    }
    return NULL;
}

static void compare_named(struct diff *d, const struct yaml_node *a, const struct yaml_node *b)
{
    for (size_t i = 0; i < b->n; i++) {
        compare_key(d, name_of(b->items[i]), named(a, name_of(b->items[i])), b->items[i]);
    }
    for (size_t i = 0; i < a->n; i++) {
        if (named(b, name_of(a->items[i])) == NULL) {
            compare_key(d, name_of(a->items[i]), a->items[i], NULL);
        }
    }
}

static void compare_maps(struct diff *d, const struct yaml_node *a, const struct yaml_node *b)
{
    for (size_t i = 0; i < b->n; i++) {
        compare_key(d, b->keys[i], yaml_get(a, b->keys[i]), b->items[i]);
    }
    for (size_t i = 0; i < a->n; i++) {
        if (yaml_get(b, a->keys[i]) == NULL) {
            compare_key(d, a->keys[i], a->items[i], NULL);
        }
    }
}

static void compare(struct diff *d, const struct yaml_node *a, const struct yaml_node *b)
{
    if (d->left-- <= 0) {
        return;
    }
    ASSERT(a != NULL || b != NULL);
    static const struct yaml_node empty = {.kind = YAML_MAP};
    const struct yaml_node *only = a == NULL ? b : b == NULL ? a : NULL;
    if (only != NULL && only->kind == YAML_MAP && only->n > 0 && name_of(only) == NULL) {
        compare_maps(d, a == NULL ? &empty : a, b == NULL ? &empty : b);
    } else if (only == NULL && a->kind == YAML_MAP && b->kind == YAML_MAP) {
        compare_maps(d, a, b);
    } else if (only == NULL && a->kind == YAML_LIST && b->kind == YAML_LIST && a->n > 0 &&
               b->n > 0 && all_named(a) && all_named(b)) {
        compare_named(d, a, b);
    } else if (only != NULL || !same(d, a, b)) {
        differ(d, a, b);
    }
}

void spec_diff(struct str before, struct str after, bool secrets, struct faults *out)
{
    struct faults *ignored = xcalloc(1, sizeof *ignored);
    CLEANUP(yaml_freep)
    struct yaml_doc *a = NULL;
    CLEANUP(yaml_freep)
    struct yaml_doc *b = NULL;
    struct diff d = {.out = out, .secrets = secrets, .left = DIFF_NODES_MAX};
    if (yaml_parse(before, &a, ignored) && yaml_parse(after, &b, ignored)) {
        compare(&d, yaml_root(a), yaml_root(b));
    }
    free(ignored);
}
