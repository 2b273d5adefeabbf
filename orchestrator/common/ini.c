/* Reading INI files: see ini.h. */
#include "ini.h"
#include "common/cleanup.h"
#include <ctype.h>

#define INI_ROWS_MAX        4000
#define INI_VALUE_BYTES_MAX ((size_t)64 * 1024)

struct ini_reader {
    struct ini *ini;
    char *section; /* borrowed from a row; NULL before the first header */
    bool in_value; /* the last row is a key, which an indented line continues */
    size_t indent; /* of the line that began the key or section */
    size_t line_n;
};

static struct ini_row *row_add(struct ini *i, struct str section, struct str key, struct str value)
{
    ARRAY_ROOM(i->rows, i->n, i->cap);
    struct ini_row *r = &i->rows[i->n++];
    *r = (struct ini_row){.section = str_dup(section)};
    if (key.n > 0) { /* else it is a section */
        r->key = str_dup(key);
        r->value = str_dup(value);
        for (char *p = r->key; *p != '\0'; p++) {
            *p = (char)tolower((unsigned char)*p);
        }
    }
    return r;
}

/* Append "\n" and the line to the value of the last key. */
static bool continue_value(struct ini_reader *r, struct str line, struct err *err)
{
    struct ini_row *row = &r->ini->rows[r->ini->n - 1];
    size_t n = strlen(row->value);
    if (n + line.n >= INI_VALUE_BYTES_MAX) {
        return err_set(err, ERR_TOO_LARGE, "line %zu: the value is too long", r->line_n);
    }
    row->value = xrealloc(row->value, n + line.n + 2);
    row->value[n] = '\n';
    memcpy(row->value + n + 1, line.p, line.n);
    row->value[n + 1 + line.n] = '\0';
    return true;
}

/* "[name]": the name reaches to the last bracket of the line. False: the line is no header. */
static bool header_name(struct str line, struct str *ret)
{
    size_t end = line.n;
    while (end > 0 && line.p[end - 1] != ']') {
        end--;
    }
    if (line.p[0] != '[' || end < 3) {
        return false;
    }
    *ret = (struct str){line.p + 1, end - 2};
    return true;
}

static bool begin_section(struct ini_reader *r, struct str name, struct err *err)
{
    r->in_value = false;
    AUTO_FREE char *text = str_dup(name);
    const struct ini_row *known = ini_section(r->ini, text);
    if (known != NULL && strcmp(text, "DEFAULT") != 0) {
        return err_set(err, ERR_MALFORMED, "line %zu: section '%.64s' is there twice", r->line_n,
                       text);
    }
    r->section = row_add(r->ini, name, (struct str){NULL, 0}, (struct str){NULL, 0})->section;
    return true;
}

static bool add_key(struct ini_reader *r, struct str line, struct err *err)
{
    size_t at = 0;
    while (at < line.n && line.p[at] != '=' && line.p[at] != ':') {
        at++;
    }
    struct str key = str_trim((struct str){line.p, at});
    if (at == line.n || key.n == 0) {
        return err_set(err, ERR_MALFORMED, "line %zu: write 'key = value'", r->line_n);
    }
    AUTO_FREE char *section = xstrdup(r->section);
    const struct ini_row *row = row_add(r->ini, str_of(section), key,
                                        str_trim((struct str){line.p + at + 1, line.n - at - 1}));
    for (size_t i = 0; i + 1 < r->ini->n; i++) {
        const struct ini_row *old = &r->ini->rows[i];
        if (old->key != NULL && strcmp(old->key, row->key) == 0 &&
            strcmp(old->section, row->section) == 0) {
            return err_set(err, ERR_MALFORMED,
                           "line %zu: '%.64s' is there twice in section '%.64s'", r->line_n,
                           row->key, row->section);
        }
    }
    r->in_value = true;
    return true;
}

static bool add_line(struct ini_reader *r, struct str raw, struct err *err)
{
    struct str line = str_trim(raw);
    r->line_n++;
    if (line.n > 0 && (line.p[0] == '#' || line.p[0] == ';')) {
        return true;
    }
    if (line.n == 0) {
        return !r->in_value || continue_value(r, line, err);
    }
    size_t indent = (size_t)(line.p - raw.p);
    if (r->in_value && indent > r->indent) {
        return continue_value(r, line, err);
    }
    r->indent = indent;
    struct str name;
    if (r->ini->n >= INI_ROWS_MAX) {
        return err_set(err, ERR_TOO_LARGE, "more than %d keys", INI_ROWS_MAX);
    }
    if (header_name(line, &name)) {
        return begin_section(r, name, err);
    }
    if (r->section == NULL) {
        return err_set(err, ERR_MALFORMED, "line %zu: no '[section]' before it", r->line_n);
    }
    return add_key(r, line, err);
}

/* Lines end with \n, \r\n or \r. */
static struct str take_line(struct str *rest)
{
    size_t n = 0;
    while (n < rest->n && rest->p[n] != '\n' && rest->p[n] != '\r') {
        n++;
    }
    struct str line = {rest->p, n};
    if (n + 1 < rest->n && rest->p[n] == '\r' && rest->p[n + 1] == '\n') {
        n++;
    }
    n += n < rest->n;
    *rest = (struct str){rest->p + n, rest->n - n};
    return line;
}

bool ini_parse(struct str text, struct ini *ret, struct err *err)
{
    struct ini i = {.n = 0};
    struct ini_reader r = {.ini = &i};
    bool ok = str_is_utf8(text) || err_set(err, ERR_MALFORMED, "not UTF-8 text");
    while (ok && text.n > 0) {
        ok = add_line(&r, take_line(&text), err);
    }
    for (size_t k = 0; k < i.n; k++) { /* blank lines at the end are no part of a value */
        char *v = i.rows[k].value;
        size_t n = v != NULL ? strlen(v) : 0;
        while (n > 0 && isspace((unsigned char)v[n - 1])) {
            v[--n] = '\0';
        }
    }
    if (!ok) {
        ini_done(&i);
    }
    *ret = i;
    return ok;
}

void ini_done(struct ini *i)
{
    for (size_t k = 0; k < i->n; k++) {
        free(i->rows[k].section);
        free(i->rows[k].key);
        if (i->rows[k].value != NULL) {
            explicit_bzero(i->rows[k].value, strlen(i->rows[k].value));
        }
        free(i->rows[k].value);
    }
    free(i->rows);
    *i = (struct ini){.n = 0};
}

const struct ini_row *ini_section(const struct ini *i, const char *section)
{
    for (size_t k = 0; k < i->n; k++) {
        if (i->rows[k].key == NULL && strcmp(i->rows[k].section, section) == 0) {
            return &i->rows[k];
        }
    }
    return NULL;
}

static const char *own_value(const struct ini *i, const char *section, const char *key)
{
    for (size_t k = 0; k < i->n; k++) {
        const struct ini_row *r = &i->rows[k];
        if (r->key != NULL && strcmp(r->key, key) == 0 && strcmp(r->section, section) == 0) {
            return r->value;
        }
    }
    return NULL;
}

const char *ini_value(const struct ini *i, const char *section, const char *key)
{
    if (ini_section(i, section) == NULL) {
        return NULL;
    }
    const char *v = own_value(i, section, key);
    return v != NULL ? v : own_value(i, "DEFAULT", key);
}

struct str ini_nested(const char *value, const char *key)
{
    struct str rest = str_of(value);
    while (rest.n > 0) {
        struct str line = str_split(&rest, '\n');
        if (str_eq_cstr(str_trim(str_split(&line, '=')), key)) {
            return str_trim(line);
        }
    }
    return (struct str){"", 0};
}
