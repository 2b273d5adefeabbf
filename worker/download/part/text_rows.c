/* The scan knows of each column its name and type, and of JSON the first value that did not fit, as
 * only a column that is read may fail the run. */
#include "text_rows.h"
#include "common/cleanup.h"
#include "download/text/field_type.h"

#define TYPE_BYTES_MAX (64u << 10)
#define WHY_BYTES      80

struct text_column {
    char *name;
    bool asked; /* by the settings: the type is needed */
    struct field_guess guess;
    struct field_type *type; /* json */
    char why[WHY_BYTES];     /* json: a value that does not fit; "": none ... */
    int64_t why_line;        /* ... and its line */
    struct buf sql;
};
struct text_rows {
    char *path, *name;
    enum records_format format;
    bool gzip, json;
    struct record_reader *records; /* of the second pass */
    struct text_column *columns;   /* columns[columns_n] of the file */
    size_t columns_n;
    int64_t rows;
    struct column_choice choice;
    enum cell_kind kinds[COLUMNS_MAX + 1]; /* of the cells that are read */
    struct buf nested[COLUMNS_MAX];        /* texts of the current row */
};

static struct text_column *add_column(struct text_rows *t, const char *name,
                                      const struct download_options *o)
{
    t->columns = xrealloc(t->columns, (t->columns_n + 1) * sizeof *t->columns);
    struct text_column *c = &t->columns[t->columns_n++];
    *c = (struct text_column){.name = xstrdup(name),
                              .asked = column_is_asked(o, name),
                              .type = t->json ? field_type_new() : NULL,
                              .sql = BUF_INIT(TYPE_BYTES_MAX)};
    return c;
}

/* The column of a key; `hint` is where it was in the last record. NULL: too many. */
static struct text_column *column_of(struct text_rows *t, const char *key, size_t hint,
                                     const struct download_options *o)
{
    if (hint < t->columns_n && strcmp(t->columns[hint].name, key) == 0) {
        return &t->columns[hint];
    }
    for (size_t i = 0; i < t->columns_n; i++) {
        if (strcmp(t->columns[i].name, key) == 0) {
            return &t->columns[i];
        }
    }
    return t->columns_n < RECORDS_FIELDS_MAX ? add_column(t, key, o) : NULL;
}

static bool scan_object(struct text_rows *t, const struct record_reader *r,
                        const struct download_options *o, struct err *err)
{
    const json_t *object = records_object(r);
    json_t *all; /* jansson's iterators take a mutable object but do not change it */
    memcpy(&all, &object, sizeof all);
    const char *key;
    json_t *v;
    size_t i = 0;
    json_object_foreach(all, key, v)
    {
        struct text_column *c = column_of(t, key, i++, o);
        if (c == NULL) {
            return records_fault(r, err, "more than %d different keys", RECORDS_FIELDS_MAX);
        }
        if (c->asked && c->why[0] == '\0' && !field_type_add(c->type, v, c->why)) {
            c->why_line = records_line(r);
        }
    }
    return true;
}

static bool scan_fields(struct text_rows *t, const struct record_reader *r, struct err *err)
{
    for (size_t i = 0; i < t->columns_n; i++) {
        struct text_column *c = &t->columns[i];
        struct str s = records_field(r, i);
        if (c->asked && !str_is_utf8(s)) {
            bool nul = memchr(s.p, '\0', s.n) != NULL;
            return records_fault(r, err, "column '%.60s' %s", c->name,
                                 nul ? "has a NUL byte" : "is not UTF-8 text");
        }
        if (c->asked) {
            field_guess_add(&c->guess, s);
        }
    }
    return true;
}

static bool scan(struct text_rows *t, const struct download_options *o, struct err *err)
{
    struct record_reader *r;
    char *const *names;
    bool end = false;
    bool ok = true;
    if (!records_open(t->path, t->name, t->format, t->gzip, &r, err)) {
        return false;
    }
    size_t names_n = records_names(r, &names);
    for (size_t i = 0; i < names_n; i++) {
        (void)add_column(t, names[i], o);
        t->columns[i].asked |= t->format == RECORDS_TXT;
    }
    while (ok) {
        ok = records_next(r, &end, err);
        if (!ok || end) {
            break;
        }
        ok = t->json ? scan_object(t, r, o, err) : scan_fields(t, r, err);
        t->rows++;
    }
    records_free(r);
    bool empty = t->rows == 0 && (t->json || t->format == RECORDS_TXT);
    return ok && empty ? err_set(err, ERR_INVALID, "'%s' has no rows", t->name) : ok;
}

/* The SQL type of a column of the file. A caption may be of any plain type: it is read as text. */
static const char *type_of(struct text_rows *t, struct text_column *c)
{
    if (!t->json) {
        return field_guess_type(&c->guess);
    }
    buf_reset(&c->sql);
    field_type_sql(c->type, &c->sql);
    return c->sql.overflow ? "VARCHAR" : buf_cstr(&c->sql);
}

static bool choose(struct text_rows *t, const struct download_options *o, struct err *err)
{
    struct file_column *file = xcalloc(t->columns_n + 1, sizeof *file);
    struct download_options any = *o;
    char url[] = "url";
    if (t->format == RECORDS_TXT) { /* one column, whatever it would be called */
        any.url_col = url;
    }
    for (size_t i = 0; i < t->columns_n; i++) {
        struct text_column *c = &t->columns[i];
        bool is_url = strcmp(c->name, any.url_col) == 0 || strcmp(c->name, "URL") == 0;
        file[i] = (struct file_column){c->name, is_url && !t->json ? "VARCHAR" : type_of(t, c)};
    }
    bool ok = column_choice(file, t->columns_n, t->name, false, &any, &t->choice, err);
    free(file);
    for (int i = 0; ok && i < columns_cells(&t->choice.columns); i++) {
        const struct text_column *c = &t->columns[t->choice.file_i[i]];
        if (c->why[0] != '\0') {
            ok = err_set(err, ERR_INVALID, "'%s', line %lld: column '%.60s' is %s", t->name,
                         (long long)c->why_line, c->name, c->why);
        }
    }
    return ok;
}

bool text_rows_open(const char *path, const char *name, enum records_format format, bool gzip,
                    const struct download_options *o, struct text_rows **ret, struct err *err)
{
    struct text_rows *t = xcalloc(1, sizeof *t);
    t->path = xstrdup(path);
    t->name = xstrdup(name);
    t->format = format;
    t->gzip = gzip;
    t->json = format == RECORDS_JSON || format == RECORDS_JSONL;
    for (int i = 0; i < COLUMNS_MAX; i++) {
        buf_init(&t->nested[i], ROW_TEXT_BYTES_MAX);
    }
    if (!scan(t, o, err) || !choose(t, o, err)) {
        text_rows_free(t);
        return false;
    }
    *ret = t;
    return true;
}

void text_rows_free(struct text_rows *t)
{
    if (t == NULL) {
        return;
    }
    records_free(t->records);
    for (size_t i = 0; i < t->columns_n; i++) {
        free(t->columns[i].name);
        field_type_free(t->columns[i].type);
        buf_done(&t->columns[i].sql);
    }
    for (int i = 0; i < COLUMNS_MAX; i++) {
        buf_done(&t->nested[i]);
    }
    columns_done(&t->choice.columns);
    free(t->columns);
    free(t->path);
    free(t->name);
    free(t);
}

int64_t text_rows_count(const struct text_rows *t)
{
    return t->rows;
}

const struct columns *text_rows_columns(const struct text_rows *t)
{
    return &t->choice.columns;
}

bool text_rows_start(struct text_rows *t, const struct columns *as, struct err *err)
{
    for (int i = 0; i < columns_cells(&t->choice.columns); i++) {
        t->kinds[i] = columns_kind(as, i);
    }
    return records_open(t->path, t->name, t->format, t->gzip, &t->records, err);
}

/* A cell of a text; *ret_ok false: the text is not of that kind, so the file has changed. */
static struct cell text_cell(struct str s, enum cell_kind kind, bool *ret_ok)
{
    struct cell c = {.kind = kind};
    if (kind != CELL_TEXT && field_is_null(s)) {
        return (struct cell){.kind = CELL_NULL};
    }
    switch (kind) {
    case CELL_BOOL:
        *ret_ok = field_bool(s, &c.b);
        break;
    case CELL_INT:
        *ret_ok = field_int(s, &c.i);
        break;
    case CELL_FLOAT:
    case CELL_DOUBLE:
        *ret_ok = field_real(s, &c.d);
        break;
    case CELL_TEXT:
        c.s = s;
        break;
    case CELL_NULL:
    case CELL_UINT:
    case CELL_JSON:
        *ret_ok = false;
        break;
    }
    return c;
}

/* A cell of a JSON value (NULL: absent). A text of another type, as of a caption, is its JSON. */
static struct cell json_cell(struct text_rows *t, int i, const json_t *v, bool *ret_ok)
{
    struct cell c = {.kind = t->kinds[i]};
    if (v == NULL || json_is_null(v)) {
        return (struct cell){.kind = CELL_NULL};
    }
    switch (t->kinds[i]) {
    case CELL_BOOL:
        c.b = json_is_true(v);
        *ret_ok = json_is_boolean(v);
        break;
    case CELL_INT:
        c.i = (int64_t)json_integer_value(v);
        *ret_ok = json_is_integer(v);
        break;
    case CELL_FLOAT:
    case CELL_DOUBLE:
        c.d = json_number_value(v);
        *ret_ok = json_is_number(v);
        break;
    case CELL_TEXT:
    case CELL_JSON:
        if (t->kinds[i] == CELL_TEXT && json_is_string(v)) {
            c.s = (struct str){json_string_value(v), json_string_length(v)};
            break;
        }
        struct buf *text = &t->nested[MIN(i, COLUMNS_MAX - 1)];
        buf_reset(text);
        bool typed = t->kinds[i] == CELL_JSON;
        field_json(text, typed ? t->columns[t->choice.file_i[i]].type : NULL, v);
        c.s = buf_str(text);
        *ret_ok = !text->overflow;
        break;
    case CELL_NULL:
    case CELL_UINT:
        *ret_ok = false;
        break;
    }
    return c;
}

bool text_rows_next(struct text_rows *t, struct sample **ret, struct err *err)
{
    bool end;
    bool ok = true;
    *ret = NULL;
    if (!records_next(t->records, &end, err)) {
        return false;
    }
    if (end) {
        return true;
    }
    int n = columns_cells(&t->choice.columns);
    struct sample *s = sample_new(n);
    for (int i = 0; ok && i < n; i++) {
        size_t at = (size_t)t->choice.file_i[i];
        if (t->json) {
            const json_t *v = json_object_get(records_object(t->records), t->columns[at].name);
            s->cells[i] = json_cell(t, i, v, &ok);
        } else {
            s->cells[i] = text_cell(records_field(t->records, at), t->kinds[i], &ok);
        }
    }
    if (!ok) {
        sample_free(s);
        return records_fault(t->records, err, "another value than when the file was scanned");
    }
    if (!sample_keep_text(s, n, err)) {
        sample_free(s);
        return err_wrap(err, "'%s', line %lld", t->name, (long long)records_line(t->records));
    }
    *ret = s;
    return true;
}

bool text_rows_skip(struct text_rows *t, int64_t n, struct err *err)
{
    bool end = false;
    for (int64_t i = 0; i < n && !end; i++) {
        if (!records_next(t->records, &end, err)) {
            return false;
        }
    }
    return true;
}
