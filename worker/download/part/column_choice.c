/* See column_choice.h. The order of columns is img2dataset's. */
#include "column_choice.h"
#include "common/cleanup.h"
#include "download/image/bbox.h"

static const char *const urls[] = {"url", "URL", NULL};
static const char *const captions[] = {"TEXT", "text", "caption", NULL};

struct column_search { /* what choosing needs */
    const struct file_column *file;
    size_t file_n;
    const char *name;
    struct column_choice *to;
    struct buf lacking, twice;
};

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(name, *names) != 0) {
        names++;
    }
    return *names != NULL;
}

bool column_is_asked(const struct download_options *o, const char *name)
{
    bool asked = strcmp(name, o->url_col) == 0 || strcmp(name, o->caption_col) == 0 ||
                 (o->verify_col != NULL && strcmp(name, o->verify_col) == 0);
    for (int i = 0; i < o->extra_columns_n; i++) {
        asked = asked || strcmp(name, o->extra_columns[i]) == 0;
    }
    return asked || (strcmp(o->url_col, urls[0]) == 0 && is_one_of(name, urls)) ||
           (strcmp(o->caption_col, "auto") == 0 && is_one_of(name, captions));
}

/* The kind of a plain type, with its text; CELL_NULL: not plain. */
static enum cell_kind plain_kind(const char *type, const char **ret_sql)
{
    static const struct {
        const char *sql;
        enum cell_kind kind;
    } types[] = {
        {"BOOLEAN", CELL_BOOL},   {"TINYINT", CELL_INT},   {"SMALLINT", CELL_INT},
        {"INTEGER", CELL_INT},    {"BIGINT", CELL_INT},    {"UTINYINT", CELL_UINT},
        {"USMALLINT", CELL_UINT}, {"UINTEGER", CELL_UINT}, {"UBIGINT", CELL_UINT},
        {"FLOAT", CELL_FLOAT},    {"DOUBLE", CELL_DOUBLE}, {"VARCHAR", CELL_TEXT},
        {"NULL", CELL_TEXT},
    };
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (strcmp(types[i].sql, type) == 0) {
            *ret_sql = types[i].kind == CELL_TEXT ? "VARCHAR" : types[i].sql;
            return types[i].kind;
        }
    }
    return CELL_NULL;
}

static void set_type(struct columns *columns, int i, const char *type)
{
    struct column *c = &columns->at[i];
    char *text = xstrdup(type);
    free(columns->types_[i]);
    columns->types_[i] = NULL;
    columns->no_value[i] = strcmp(text, "NULL") == 0;
    c->kind = plain_kind(text, &c->sql_type);
    if (c->kind == CELL_NULL) {
        c->sql_type = columns->types_[i] = TAKE(text);
        bool is_json = column_is_nested(c) || str_starts(str_of(c->sql_type), "DECIMAL(");
        c->kind = is_json ? CELL_JSON : CELL_TEXT;
    }
    free(text);
}

/* Index in the file's columns; -1: not found. Case matters, as in every reader but DuckDB. A name
 * that is there twice is a fault. */
static int find_column(struct column_search *s, const char *name)
{
    int found = -1;
    for (size_t i = 0; i < s->file_n; i++) {
        if (strcmp(s->file[i].name, name) == 0) {
            if (found >= 0) {
                buf_addf(&s->twice, "%s'%.60s' (columns %d and %zu)", s->twice.n > 0 ? ", " : "",
                         name, found + 1, i + 1);
                return found;
            }
            found = (int)i;
        }
    }
    return found;
}

static int find_first(struct column_search *s, const char *const *names)
{
    for (; *names != NULL; names++) {
        int i = find_column(s, *names);
        if (i >= 0) {
            return i;
        }
    }
    return -1;
}

static bool missing(const struct column_search *s, const char *what, struct err *err)
{
    AUTO_BUF struct buf b = BUF_INIT(400);
    for (size_t i = 0; i < s->file_n; i++) {
        buf_addf(&b, "%s%.40s", i == 0 ? "" : ", ", s->file[i].name);
    }
    return err_set(err, ERR_INVALID, "'%s' has no column %s; its columns: %s", s->name, what,
                   buf_cstr(&b));
}

static void add_column(struct column_search *s, int file_i, const char *name, const char *type)
{
    struct columns *columns = &s->to->columns;
    int i = columns->n++;
    ASSERT(i < COLUMNS_MAX);
    columns->at[i].name = xstrdup(name);
    set_type(columns, i, type);
    s->to->file_i[i] = file_i;
}

/* The column of a setting; -1, and its name appended to `lacking`, when the file does not have
 * it. */
static int must_find(struct column_search *s, const char *name, const char *setting)
{
    int i = find_column(s, name);
    if (i < 0) {
        buf_addf(&s->lacking, "%s'%.60s'%s", s->lacking.n > 0 ? ", " : "", name, setting);
    }
    return i;
}

/* A URL is a text; as a number or list it would fail in every row. */
static bool check_url(const struct column_search *s, int file_i, struct err *err)
{
    const char *type = s->file[file_i].type;
    return strcmp(type, "VARCHAR") == 0 || strcmp(type, "NULL") == 0 ||
           strncmp(type, "ENUM(", 5) == 0 ||
           err_set(err, ERR_INVALID, "'%s': the URL column '%.60s' is of type %.60s, not text",
                   s->name, s->file[file_i].name, type);
}

static int add_text_column(struct column_search *s, int file_i, const char *name)
{
    add_column(s, file_i, name, "VARCHAR");
    return s->to->columns.n - 1;
}

/* A column that cannot hold boxes is one fault, not one per row. */
static bool check_boxes(const struct column_search *s, struct err *err)
{
    if (s->to->columns.boxes_i < 0) {
        return true;
    }
    const struct column *c = &s->to->columns.at[s->to->columns.boxes_i];
    return bbox_type_fits(c->sql_type) ||
           err_set(err, ERR_INVALID,
                   "'%s': bbox_col '%.60s' is of type %.60s; expected a list of lists of numbers, "
                   "or JSON text",
                   s->name, c->name, c->sql_type);
}

static void choose_extra(struct column_search *s, const struct download_options *o)
{
    for (int k = 0; k < o->extra_columns_n; k++) {
        bool boxes = strcmp(o->extra_columns[k], o->bbox_col) == 0;
        int i = must_find(s, o->extra_columns[k], boxes ? " (bbox_col)" : "");
        if (i >= 0) {
            struct columns *c = &s->to->columns;
            c->boxes_i = boxes ? c->n : c->boxes_i;
            add_column(s, i, o->extra_columns[k], s->file[i].type);
        }
    }
}

/* All columns of the settings; the index of the URLs in the file. */
static int choose(struct column_search *s, const struct download_options *o)
{
    struct columns *columns = &s->to->columns;
    choose_extra(s, o);
    if (o->caption_col[0] != '\0') {
        bool any = strcmp(o->caption_col, "auto") == 0;
        int i = any ? find_first(s, captions) : must_find(s, o->caption_col, " (caption_col)");
        columns->caption_i = i >= 0 ? add_text_column(s, i, "caption") : -1;
    }
    bool any = strcmp(o->url_col, urls[0]) == 0;
    int url = any ? find_first(s, urls) : must_find(s, o->url_col, " (url_col)");
    if (url >= 0) {
        columns->url_i = add_text_column(s, url, "url");
    } else if (any) {
        buf_addf(&s->lacking, "%s'url' or 'URL' (set url_col)", s->lacking.n > 0 ? ", " : "");
    }
    if (o->verify_col != NULL) {
        s->to->file_i[columns->n] = must_find(s, o->verify_col, " (verify_hash)");
        columns->verify = true; /* read but not written */
    }
    return url;
}

bool column_choice(const struct file_column *file, size_t file_n, const char *name, bool retry,
                   const struct download_options *o, struct column_choice *ret, struct err *err)
{
    struct column_choice c = {.columns = {.boxes_i = -1, .caption_i = -1}};
    struct column_search s = {.file = file,
                              .file_n = file_n,
                              .name = name,
                              .to = &c,
                              .lacking = BUF_INIT(400),
                              .twice = BUF_INIT(400)};
    bool ok = true;
    int url = -1;
    if (retry && find_column(&s, "status") < 0) {
        ok = missing(&s, "'status': it is no output of an earlier run", err);
    } else {
        url = choose(&s, o);
    }
    if (ok && s.lacking.n > 0) {
        ok = missing(&s, buf_cstr(&s.lacking), err);
    } else if (ok && s.twice.n > 0) {
        ok = err_set(err, ERR_INVALID, "'%s' has two columns of one name: %s", name,
                     buf_cstr(&s.twice));
    }
    ok = ok && check_url(&s, url, err) && check_boxes(&s, err);
    buf_done(&s.lacking);
    buf_done(&s.twice);
    if (!ok) {
        columns_done(&c.columns);
        return false;
    }
    *ret = c;
    return true;
}

int columns_cells(const struct columns *c)
{
    return c->n + (c->verify ? 1 : 0);
}

enum cell_kind columns_kind(const struct columns *c, int cell_i)
{
    return cell_i < c->n ? c->at[cell_i].kind : CELL_TEXT;
}

static bool is_number(enum cell_kind kind)
{
    return kind == CELL_INT || kind == CELL_UINT || kind == CELL_FLOAT || kind == CELL_DOUBLE;
}

/* The type of column i for both; NULL: there is none. */
static const char *wider(const struct columns *x, const struct columns *y, int i, bool texts)
{
    const struct column *a = &x->at[i];
    const struct column *b = &y->at[i];
    if (strcmp(a->sql_type, b->sql_type) == 0 || y->no_value[i]) {
        return a->sql_type;
    }
    if (x->no_value[i]) {
        return b->sql_type;
    }
    if (a->kind == CELL_INT && b->kind == CELL_INT) {
        return "BIGINT";
    }
    if (is_number(a->kind) && is_number(b->kind)) {
        return "DOUBLE";
    }
    return texts ? "VARCHAR" : NULL;
}

bool columns_widen(struct columns *to, const struct columns *other, bool texts, struct err *err)
{
    if (to->n != other->n || to->caption_i != other->caption_i) {
        return err_set(err, ERR_INVALID, "it has %s caption column, unlike the files before it",
                       other->caption_i >= 0 ? "a" : "no");
    }
    for (int i = 0; i < to->n; i++) {
        bool no_value = to->no_value[i] && other->no_value[i];
        const char *type = wider(to, other, i, texts);
        if (type == NULL) {
            return err_set(err, ERR_INVALID,
                           "its column '%.60s' is of type %.80s, in the files before it %.80s",
                           to->at[i].name, other->at[i].sql_type, to->at[i].sql_type);
        }
        if (type != to->at[i].sql_type) {
            set_type(to, i, type);
        }
        to->no_value[i] = no_value;
    }
    return true;
}

void columns_copy(struct columns *to, const struct columns *from)
{
    *to = *from;
    for (int i = 0; i < from->n; i++) {
        to->at[i].name = xstrdup(from->at[i].name);
        if (from->types_[i] != NULL) {
            to->at[i].sql_type = to->types_[i] = xstrdup(from->types_[i]);
        }
    }
}

void columns_done(struct columns *c)
{
    for (int i = 0; i < c->n; i++) {
        free(c->at[i].name);
        free(c->types_[i]);
    }
    *c = (struct columns){0};
}
