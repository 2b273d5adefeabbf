/* Settings by table. The file is strict JSON. The YAML reader (JSON is its subset) reads it again
 * to find the line and column of every value. Keys that begin with "//" are comments. */
#include "common/config.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/yaml.h"
#include <errno.h>
#include <fcntl.h>

#define CONFIG_FILE_BYTES_MAX ((size_t)256 * 1024)

/* Fields are written with memcpy: only their offsets in the caller's struct are known here. */
static void set_field(void *target, const struct config_row *r, const void *v, size_t n)
{
    memcpy((char *)target + r->offset, v, n);
}

static char *get_string(const void *target, const struct config_row *r)
{
    char *s;
    memcpy(&s, (const char *)target + r->offset, sizeof s);
    return s;
}

static bool is_string(const struct config_row *r)
{
    return r->kind == CONFIG_STR || r->kind == CONFIG_SECRET_FILE;
}

static void set_string(void *target, const struct config_row *r, const char *v)
{
    char *copy = xstrdup(v);
    free(get_string(target, r));
    set_field(target, r, &copy, sizeof copy);
}

static bool parse_bool(const char *s, bool *ret)
{
    *ret = strcmp(s, "true") == 0 || strcmp(s, "1") == 0;
    return *ret || strcmp(s, "false") == 0 || strcmp(s, "0") == 0;
}

/* Set a value from text: a default or an environment variable. */
static void set_text(void *target, const struct config_row *r, const char *text,
                     struct position pos, const char *pointer, struct faults *faults)
{
    struct err err = ERR_INIT;
    int64_t i;
    bool b;
    switch (r->kind) {
    case CONFIG_STR:
    case CONFIG_SECRET_FILE:
        set_string(target, r, text);
        return;
    case CONFIG_I64:
        if (parse_i64(str_of(text), r->min, r->max, &i, &err)) {
            set_field(target, r, &i, sizeof i);
        } else {
            faults_add(faults, pos, pointer, "range", r->help, "%s", err.message);
        }
        return;
    case CONFIG_BOOL:
        if (parse_bool(text, &b)) {
            set_field(target, r, &b, sizeof b);
        } else {
            faults_add(faults, pos, pointer, "type", r->help, "'%.64s' is not true or false", text);
        }
        return;
    }
}

static const char *kind_name(enum config_kind kind)
{
    switch (kind) {
    case CONFIG_STR:
        return "a string";
    case CONFIG_I64:
        return "an integer";
    case CONFIG_BOOL:
        return "true or false";
    case CONFIG_SECRET_FILE:
        return "a file's path";
    }
    return "";
}

static void set_node(void *target, const struct config_row *r, const struct yaml_node *n,
                     struct faults *faults)
{
    bool fits = (is_string(r) && n->kind == YAML_STRING) ||
                (r->kind == CONFIG_I64 && n->kind == YAML_INT) ||
                (r->kind == CONFIG_BOOL && n->kind == YAML_BOOL);
    if (!fits) {
        faults_add(faults, n->pos, r->name, "type", r->help, "'%s' must be %s", r->name,
                   kind_name(r->kind));
        return;
    }
    set_text(target, r, n->text, n->pos, r->name, faults);
}

static const struct config_row *find_row(const struct config_row *rows, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

static void unknown_key(const struct config_row *rows, size_t n, const char *key,
                        struct position pos, struct faults *faults)
{
    const char *best = NULL;
    size_t best_distance = MAX((size_t)2, strlen(key) / 3) + 1;
    for (size_t i = 0; i < n; i++) {
        size_t d = str_distance(str_of(key), str_of(rows[i].name));
        if (d < best_distance) {
            best = rows[i].name;
            best_distance = d;
        }
    }
    char hint[128] = "";
    if (best != NULL) {
        (void)snprintf(hint, sizeof hint, "did you mean '%s'?", best);
    }
    faults_add(faults, pos, key, "unknown_key", hint, "unknown setting '%.64s'", key);
}

static bool read_file(const char *file, struct buf *ret, struct faults *faults)
{
    AUTO_FD int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0 && !ret->overflow) {
        char chunk[8192];
        n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) {
            n = 1;
            continue;
        }
        buf_add(ret, chunk, n < 0 ? 0 : (size_t)n);
    }
    if (n < 0) {
        char text[128];
        const char *why = strerror_r(errno, text, sizeof text);
        faults_add(faults, (struct position){0}, "", "file", "", "cannot read '%s': %s", file, why);
        return false;
    }
    if (ret->overflow) {
        faults_add(faults, (struct position){0}, "", "too_large", "", "'%s' is over %zu bytes",
                   file, CONFIG_FILE_BYTES_MAX);
        return false;
    }
    return true;
}

static void load_file(const struct config_row *rows, size_t n, const char *file, void *target,
                      bool *seen, struct faults *faults)
{
    AUTO_BUF struct buf text = BUF_INIT(CONFIG_FILE_BYTES_MAX);
    AUTO_JSON json_t *json = NULL;
    CLEANUP(yaml_freep)
    struct yaml_doc *doc = NULL;
    struct err err = ERR_INIT;
    if (!read_file(file, &text, faults) || !yaml_parse(buf_str(&text), &doc, faults)) {
        return;
    }
    const struct yaml_node *root = yaml_root(doc);
    if (!json_parse(buf_str(&text), CONFIG_FILE_BYTES_MAX, &json, &err)) {
        faults_add(faults, (struct position){0}, "", "syntax", "", "%s", err.message);
        return;
    }
    if (root->kind != YAML_MAP) {
        faults_add(faults, root->pos, "", "type", "", "the settings must be one JSON object");
        return;
    }
    for (size_t i = 0; i < root->n; i++) {
        const char *key = root->keys[i];
        const struct config_row *r = find_row(rows, n, key);
        if (r != NULL) {
            seen[r - rows] = true;
            set_node(target, r, root->items[i], faults);
        } else if (!str_starts(str_of(key), "//")) {
            unknown_key(rows, n, key, root->key_pos[i], faults);
        }
    }
}

bool config_load(const struct config_row *rows, size_t n, const char *file, void *target,
                 struct faults *faults)
{
    struct faults *mine = xcalloc(1, sizeof *mine);
    AUTO_FREE bool *seen = xcalloc(n, sizeof *seen);
    static char *const none = NULL;
    for (size_t i = 0; i < n; i++) {
        if (is_string(&rows[i])) {
            set_field(target, &rows[i], &none, sizeof none);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (rows[i].dflt != NULL) {
            seen[i] = true;
            set_text(target, &rows[i], rows[i].dflt, (struct position){0}, rows[i].name, mine);
        }
    }
    ASSERT(mine->n == 0); /* a default that violates its own row */
    if (file != NULL) {
        load_file(rows, n, file, target, seen, mine);
    }
    for (size_t i = 0; i < n; i++) {
        const char *text = rows[i].env == NULL ? NULL : getenv(rows[i].env);
        if (text != NULL) {
            seen[i] = true;
            set_text(target, &rows[i], text, (struct position){0}, rows[i].env, mine);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (!seen[i]) {
            faults_add(mine, (struct position){0}, rows[i].name, "required", rows[i].help,
                       "'%s' is missing%s%s", rows[i].name, rows[i].env == NULL ? "" : ", also as ",
                       rows[i].env == NULL ? "" : rows[i].env);
        }
    }
    bool good = mine->n == 0;
    for (int i = 0; i < mine->n; i++) {
        const struct fault *f = &mine->at[i];
        faults_add(faults, f->pos, f->pointer, f->code, f->hint, "%s", f->message);
    }
    faults->dropped += mine->dropped;
    free(mine);
    if (!good) {
        config_free(rows, n, target);
    }
    return good;
}

void config_free(const struct config_row *rows, size_t n, void *target)
{
    static char *const none = NULL;
    for (size_t i = 0; i < n; i++) {
        if (is_string(&rows[i])) {
            free(get_string(target, &rows[i]));
            set_field(target, &rows[i], &none, sizeof none);
        }
    }
}

static void indent(struct buf *out, size_t i)
{
    buf_add_cstr(out, i == 0 ? "\n  " : ",\n  ");
}

static void add_pair(struct buf *out, const struct config_row *r, const char *text)
{
    json_escape(out, str_of(r->name), false);
    buf_add_cstr(out, ": ");
    if (is_string(r)) {
        json_escape(out, str_of(text), false);
    } else {
        buf_add_cstr(out, text);
    }
}

void config_print(const struct config_row *rows, size_t n, const void *target, struct buf *out)
{
    buf_add_char(out, '{');
    for (size_t i = 0; i < n; i++) {
        const char *at = (const char *)target + rows[i].offset;
        char digits[24];
        const char *text = digits;
        int64_t v;
        bool b;
        switch (rows[i].kind) {
        case CONFIG_STR:
        case CONFIG_SECRET_FILE:
            text = get_string(target, &rows[i]);
            break;
        case CONFIG_I64:
            memcpy(&v, at, sizeof v);
            (void)snprintf(digits, sizeof digits, "%lld", (long long)v);
            break;
        case CONFIG_BOOL:
            memcpy(&b, at, sizeof b);
            text = b ? "true" : "false";
            break;
        }
        indent(out, i);
        add_pair(out, &rows[i], text);
    }
    buf_add_cstr(out, "\n}\n");
}

/* Each setting with a comment key in front. Required ones are empty or have their minimum. */
void config_example(const struct config_row *rows, size_t n, struct buf *out)
{
    buf_add_char(out, '{');
    for (size_t i = 0; i < n; i++) {
        const struct config_row *r = &rows[i];
        AUTO_BUF struct buf note = BUF_INIT(1024);
        buf_addf(&note, "%s", r->help == NULL ? "" : r->help);
        if (r->kind == CONFIG_I64) {
            buf_addf(&note, " (%lld to %lld)", (long long)r->min, (long long)r->max);
        }
        if (r->env != NULL) {
            buf_addf(&note, " [%s]", r->env);
        }
        if (r->dflt == NULL) {
            buf_add_cstr(&note, " (required)");
        }
        indent(out, i);
        buf_addf(out, "\"// %s\": ", r->name);
        json_escape(out, buf_str(&note), false);
        buf_add_cstr(out, ",\n  ");
        char least[24];
        (void)snprintf(least, sizeof least, "%lld", (long long)r->min);
        const char *text = r->dflt != NULL          ? r->dflt
                           : r->kind == CONFIG_I64  ? least
                           : r->kind == CONFIG_BOOL ? "false"
                                                    : "";
        add_pair(out, r, text);
    }
    buf_add_cstr(out, "\n}\n");
}
