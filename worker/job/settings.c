/* The reader of settings tables. */
#include "settings.h"
#include "common/cleanup.h"
#include <stdarg.h>
#include <stdio.h>

#define HELP_COLUMNS      79
#define HELP_NAME_COLUMNS 24
#define HELP_BYTES_MAX    1000

static void unknown(const struct setting *rows, size_t rows_n, setting_other_fn *other,
                    const char *name, const char *v, struct buf *faults)
{
    if (other != NULL && other(name, v, faults)) {
        return;
    }
    const struct setting *best = setting_nearest(rows, rows_n, name);
    buf_addf(faults, "unknown setting '%.60s'%s%s%s\n", name,
             best != NULL ? ": did you mean '" : "", best != NULL ? best->name : "",
             best != NULL ? "'?" : "");
}

static char **text_at(void *base, const struct setting *r)
{
    return (char **)(void *)((char *)base + r->offset);
}

static bool is_text(const struct setting *r)
{
    return r->kind == SETTING_TEXT || r->kind == SETTING_OPTIONAL || r->kind == SETTING_LIST ||
           r->kind == SETTING_WORDS;
}

static void set_text(char **at, const struct setting *r, const char *v)
{
    char *now = *at;
    if (r->kind == SETTING_LIST && now != NULL && now[0] != '\0') {
        *at = xasprintf("%s,%s", now, v);
    } else {
        *at = xstrdup(r->kind != SETTING_TEXT && value_is_none(v) ? "" : v);
    }
    free(now);
    value_unquote(*at);
}

static void set(void *base, const struct setting *r, const char *v, struct buf *faults)
{
    void *p = (char *)base + r->offset;
    if (is_text(r)) {
        set_text(text_at(base, r), r, v);
        (void)setting_check(r, *text_at(base, r), faults);
    } else if (setting_check(r, v, faults)) {
        bool ok = r->kind == SETTING_INT    ? value_int(v, r->min, r->max, p)
                  : r->kind == SETTING_REAL ? value_real(v, p)
                                            : value_flag(v, p);
        ASSERT(ok);
    }
}

/* The row of --noNAME or --no-NAME; NULL: it is no negated flag. */
static const struct setting *negated(const struct setting *rows, size_t rows_n, const char *name)
{
    if (strncmp(name, "no", 2) != 0) {
        return NULL;
    }
    const struct setting *r = setting_find(rows, rows_n, name + (name[2] == '_' ? 3 : 2));
    return r != NULL && r->kind == SETTING_FLAG ? r : NULL;
}

/* "--some-name=value": the name with underscores, malloc'd; *ret_value is NULL without "=". */
static char *flag_name(const char *arg, const char **ret_value)
{
    char *name = xstrdup(arg + 2);
    char *eq = strchr(name, '=');
    *ret_value = NULL;
    if (eq != NULL) {
        *eq = '\0';
        *ret_value = arg + 2 + (eq - name) + 1;
    }
    for (char *c = name; *c != '\0'; c++) {
        *c = *c == '-' ? '_' : *c;
    }
    return name;
}

static void load_flags(const struct setting *rows, size_t rows_n, void *base, int argc,
                       char *const *argv, setting_other_fn *other, struct buf *faults)
{
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0) {
            buf_addf(faults, "unexpected argument '%.60s'\n", argv[i]);
            continue;
        }
        const char *v;
        AUTO_FREE char *name = flag_name(argv[i], &v);
        const struct setting *r = setting_find(rows, rows_n, name);
        const struct setting *off = r == NULL && v == NULL ? negated(rows, rows_n, name) : NULL;
        if (off != NULL) {
            set(base, off, "false", faults);
            continue;
        }
        if (v == NULL && i + 1 < argc && strncmp(argv[i + 1], "--", 2) != 0) {
            v = argv[++i];
        }
        if (r == NULL) {
            unknown(rows, rows_n, other, name, v, faults);
        } else if (v == NULL && r->kind != SETTING_FLAG) {
            buf_addf(faults, "--%s needs a value\n", name);
        } else {
            set(base, r, v != NULL ? v : "true", faults);
        }
    }
}

bool settings_load(const struct setting *rows, size_t rows_n, void *base,
                   const json_t *hyperparameters, int argc, char *const *argv,
                   setting_other_fn *other, struct buf *faults)
{
    for (size_t i = 0; i < rows_n; i++) {
        set(base, &rows[i], rows[i].dflt == NULL ? "" : rows[i].dflt, faults);
    }
    /* jansson's iterators take a mutable object but do not change it. */
    json_t *h;
    memcpy(&h, &hyperparameters, sizeof h);
    const char *key;
    json_t *v;
    json_object_foreach(h, key, v)
    {
        const struct setting *r = setting_find(rows, rows_n, key);
        if (r != NULL) {
            set(base, r, json_string_value(v), faults);
        } else if (strncmp(key, "sagemaker_", 10) != 0) {
            unknown(rows, rows_n, other, key, json_string_value(v), faults);
        }
    }
    load_flags(rows, rows_n, base, argc, argv, other, faults);
    for (size_t i = 0; i < rows_n; i++) {
        if (rows[i].dflt == NULL && (*text_at(base, &rows[i]))[0] == '\0') {
            buf_addf(faults, "%s is missing: %s\n", rows[i].name, rows[i].help);
        }
    }
    return faults->n == 0;
}

const char *settings_text(const struct setting *row, const void *base, char number[static 64])
{
    const char *at = (const char *)base + row->offset;
    switch (row->kind) {
    case SETTING_TEXT:
    case SETTING_OPTIONAL:
    case SETTING_LIST:
    case SETTING_WORDS:
        return *(char *const *)(const void *)at;
    case SETTING_INT:
        (void)snprintf(number, 64, "%lld", (long long)*(const int64_t *)(const void *)at);
        break;
    case SETTING_REAL:
        (void)snprintf(number, 64, "%.17g", *(const double *)(const void *)at);
        break;
    case SETTING_FLAG:
        (void)snprintf(number, 64, "%s", *(const bool *)at ? "true" : "false");
        break;
    }
    return number;
}

bool settings_is_default(const struct setting *row, const void *base)
{
    const char *at = (const char *)base + row->offset;
    int64_t i;
    double x;
    double now;
    bool b;
    if (row->dflt == NULL) {
        return false;
    }
    switch (row->kind) {
    case SETTING_TEXT:
    case SETTING_OPTIONAL:
    case SETTING_LIST:
    case SETTING_WORDS:
        return strcmp(*(char *const *)(const void *)at, row->dflt) == 0;
    case SETTING_INT:
        return value_int(row->dflt, INT64_MIN, INT64_MAX, &i) &&
               *(const int64_t *)(const void *)at == i;
    case SETTING_REAL:
        now = *(const double *)(const void *)at;
        return value_real(row->dflt, &x) && now >= x && now <= x;
    case SETTING_FLAG:
        return value_flag(row->dflt, &b) && *(const bool *)at == b;
    }
    return false;
}

void settings_done(const struct setting *rows, size_t rows_n, void *base)
{
    for (size_t i = 0; i < rows_n; i++) {
        if (is_text(&rows[i])) {
            free(TAKE(*text_at(base, &rows[i])));
        }
    }
}

void settings_help_line(struct buf *out, const char *name, const char *fmt, ...)
{
    char text[HELP_BYTES_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    buf_addf(out, "  --%-*s", HELP_NAME_COLUMNS, name);
    size_t column = HELP_NAME_COLUMNS + 4;
    struct str rest = str_of(text);
    while (rest.n > 0) {
        struct str word = str_split(&rest, ' ');
        if (column + 1 + word.n > HELP_COLUMNS) {
            buf_addf(out, "\n%*s", HELP_NAME_COLUMNS + 4, "");
            column = HELP_NAME_COLUMNS + 4;
        }
        buf_addf(out, " %.*s", (int)word.n, word.p);
        column += 1 + word.n;
    }
    buf_add_cstr(out, "\n");
}

void settings_help(const struct setting *rows, size_t rows_n, struct buf *out)
{
    for (size_t i = 0; i < rows_n; i++) {
        const struct setting *r = &rows[i];
        bool none = r->kind == SETTING_OPTIONAL || r->kind == SETTING_LIST;
        const char *dflt = r->dflt == NULL || r->dflt[0] != '\0' ? r->dflt : none ? "None" : "";
        bool shown = dflt != NULL && dflt[0] != '\0';
        settings_help_line(out, r->name, "%s%s%s%s", r->help,
                           dflt == NULL ? " (required)"
                           : shown      ? " ["
                                        : "",
                           shown ? dflt : "", shown ? "]" : "");
        if (r->flag != NULL) {
            settings_help_line(out, r->flag, "the same as --%s", r->name);
        }
    }
}
