/* Settings by table. The file is strict JSON. The YAML reader (JSON is its subset) reads it again
 * to find the line and column of every value. Keys that begin with "//" are comments. */
#include "common/config.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/yaml.h"
#include <errno.h>
#include <fcntl.h>

#define CONFIG_FILE_BYTES_MAX ((size_t)256 * 1024)
#define CONFIG_NAME_N         96
#define MICROSECONDS          "_us"

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

/* A time has two names: tick_interval_us takes a number, tick_interval "10s". */
static bool is_time(const struct config_row *r)
{
    return r->kind == CONFIG_I64 && str_ends(str_of(r->name), MICROSECONDS);
}

/* The name without its unit: of a key "_us", of a variable "_US". */
static void without_unit(const char *name, char ret[static CONFIG_NAME_N])
{
    ASSERT(strlen(name) > strlen(MICROSECONDS) && strlen(name) < CONFIG_NAME_N);
    (void)snprintf(ret, CONFIG_NAME_N, "%.*s", (int)(strlen(name) - strlen(MICROSECONDS)), name);
}

/* "10s", "250ms" or "1h30m". */
static bool parse_time(const char *text, int64_t *ret_us)
{
    size_t n = strlen(text);
    int64_t v = 0, unit = USEC_PER_SEC;
    if (str_ends(str_of(text), "ms") || str_ends(str_of(text), "us")) {
        unit = text[n - 2] == 'm' ? USEC_PER_MSEC : 1;
        if (!parse_i64((struct str){text, n - 2}, 0, INT64_MAX, &v, NULL)) {
            return false;
        }
    } else if (n == 0 || (text[n - 1] >= '0' && text[n - 1] <= '9') ||
               !parse_duration_s(str_of(text), 0, INT64_MAX, &v, &(struct err){0})) {
        return false;
    }
    return !__builtin_mul_overflow(v, unit, ret_us);
}

/* In the largest unit that divides it. */
static const char *time_text(int64_t us, char ret[static 32])
{
    static const struct {
        const char *name;
        int64_t us;
    } units[] = {{"d", 86400 * USEC_PER_SEC}, {"h", 3600 * USEC_PER_SEC}, {"m", 60 * USEC_PER_SEC},
                 {"s", USEC_PER_SEC},         {"ms", USEC_PER_MSEC},      {"us", 1}};
    size_t i = us == 0 ? 3 : 0;
    while (us % units[i].us != 0) {
        i++;
    }
    (void)snprintf(ret, 32, "%lld%s", (long long)(us / units[i].us), units[i].name);
    return ret;
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

/* A time with its unit, under the name without one. */
static void set_time(void *target, const struct config_row *r, const char *text,
                     struct position pos, const char *pointer, struct faults *faults)
{
    char least[32], most[32];
    int64_t us;
    if (!parse_time(text, &us)) {
        faults_add(faults, pos, pointer, "type", r->help,
                   "'%.64s' is not a time with its unit, like 10s, 250ms or 1h30m", text);
    } else if (us < r->min || us > r->max) {
        faults_add(faults, pos, pointer, "range", r->help, "'%.64s' is not within %s to %s", text,
                   time_text(r->min, least), time_text(r->max, most));
    } else {
        set_field(target, r, &us, sizeof us);
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

static void set_node(void *target, const struct config_row *r, const char *key,
                     const struct yaml_node *n, struct faults *faults)
{
    if (strcmp(key, r->name) != 0 && n->kind == YAML_STRING) {
        set_time(target, r, n->text, n->pos, key, faults);
        return;
    }
    if (strcmp(key, r->name) != 0) {
        faults_add(faults, n->pos, key, "type", r->help,
                   "'%s' must be a time with its unit, like \"10s\"", key);
        return;
    }
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
        char plain[CONFIG_NAME_N] = "";
        if (is_time(&rows[i])) {
            without_unit(rows[i].name, plain);
        }
        if (strcmp(rows[i].name, name) == 0 || (plain[0] != '\0' && strcmp(plain, name) == 0)) {
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
    AUTO_FREE bool *named = xcalloc(n, sizeof *named);
    if (!json_parse(str_without_mark(buf_str(&text)), CONFIG_FILE_BYTES_MAX, &json, &err)) {
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
        if (r != NULL && named[r - rows]) {
            faults_add(faults, root->key_pos[i], key, "twice", "", "'%s' is set twice", r->name);
        } else if (r != NULL) {
            seen[r - rows] = named[r - rows] = true;
            set_node(target, r, key, root->items[i], faults);
        } else if (!str_starts(str_of(key), "//")) {
            unknown_key(rows, n, key, root->key_pos[i], faults);
        }
    }
}

static void load_environment(const struct config_row *rows, size_t n, void *target, bool *seen,
                             struct faults *faults)
{
    for (size_t i = 0; i < n; i++) {
        const struct config_row *r = &rows[i];
        char plain[CONFIG_NAME_N] = "";
        if (r->env == NULL) {
            continue;
        }
        if (is_time(r) && str_ends(str_of(r->env), "_US")) {
            without_unit(r->env, plain);
        }
        const char *text = getenv(r->env);
        const char *timed = plain[0] != '\0' ? getenv(plain) : NULL;
        seen[i] |= text != NULL || timed != NULL;
        if (text != NULL && timed != NULL) {
            faults_add(faults, (struct position){0}, plain, "twice", "", "%s and %s: set one",
                       plain, r->env);
        } else if (timed != NULL) {
            set_time(target, r, timed, (struct position){0}, plain, faults);
        } else if (text != NULL) {
            set_text(target, r, text, (struct position){0}, r->env, faults);
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
    load_environment(rows, n, target, seen, mine);
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

/* What the example says of a setting, its name and its value: a time in its unit. */
static void example_row(const struct config_row *r, struct buf *note,
                        char name[static CONFIG_NAME_N], struct buf *value)
{
    char least[32], most[32], env[CONFIG_NAME_N];
    bool time = is_time(r);
    int64_t v = r->min;
    (void)snprintf(name, CONFIG_NAME_N, "%s", r->name);
    (void)snprintf(env, sizeof env, "%s", r->env == NULL ? "" : r->env);
    if (time) {
        without_unit(r->name, name);
    }
    if (time && r->env != NULL && str_ends(str_of(r->env), "_US")) {
        without_unit(r->env, env);
    }
    buf_addf(note, "%s", r->help == NULL ? "" : r->help);
    if (r->kind == CONFIG_I64 && time) {
        buf_addf(note, " (%s to %s)", time_text(r->min, least), time_text(r->max, most));
    } else if (r->kind == CONFIG_I64) {
        buf_addf(note, " (%lld to %lld)", (long long)r->min, (long long)r->max);
    }
    if (env[0] != '\0') {
        buf_addf(note, " [%s]", env);
    }
    buf_add_cstr(note, r->dflt == NULL ? " (required)" : "");
    bool known = r->dflt == NULL || !time || parse_i64(str_of(r->dflt), r->min, r->max, &v, NULL);
    ASSERT(known);
    if (time) {
        buf_addf(value, "\"%s\"", time_text(v, least));
    } else if (is_string(r)) {
        json_escape(value, str_of(r->dflt == NULL ? "" : r->dflt), false);
    } else if (r->dflt == NULL && r->kind == CONFIG_I64) {
        buf_addf(value, "%lld", (long long)r->min);
    } else {
        buf_add_cstr(value, r->dflt != NULL ? r->dflt : "false");
    }
}

/* Each setting with a comment key in front. Required ones are empty or have their minimum. */
void config_example(const struct config_row *rows, size_t n, struct buf *out)
{
    buf_add_char(out, '{');
    for (size_t i = 0; i < n; i++) {
        AUTO_BUF struct buf note = BUF_INIT(1024);
        AUTO_BUF struct buf value = BUF_INIT(4096);
        char name[CONFIG_NAME_N];
        example_row(&rows[i], &note, name, &value);
        indent(out, i);
        buf_addf(out, "\"// %s\": ", name);
        json_escape(out, buf_str(&note), false);
        buf_addf(out, ",\n  \"%s\": %s", name, buf_cstr(&value));
    }
    buf_add_cstr(out, "\n}\n");
}
