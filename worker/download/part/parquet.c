/* The query casts every column to one of five plain types, so that one switch reads a vector. The
 * sidecar keeps the original types. */
#include "parquet.h"
#include "common/cleanup.h"
#include "download/image/bbox.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define SQL_BYTES_MAX (256u << 10)

struct parquet {
    duckdb_connection con;
    duckdb_prepared_statement stmt;
    duckdb_result result;
    bool streaming;
    duckdb_data_chunk chunk;
    idx_t chunk_n, chunk_i;
    int64_t rows;
    struct columns columns;
    char *source[COLUMNS_MAX + 1]; /* name in the file of each column */
    char *types[COLUMNS_MAX];      /* SQL of columns whose type is not plain */
    char *name;
    bool retry; /* only rows that failed to download, from an earlier output's sidecars */
};

static bool check_file(const char *path, const char *name, struct err *err)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        return err_set_os(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno, "cannot open '%s'",
                          name);
    }
    uint8_t head[4] = {0};
    uint8_t tail[8] = {0};
    if (st.st_size < 12 || pread(fd, head, 4, 0) != 4 || pread(fd, tail, 8, st.st_size - 8) != 8) {
        return err_set(err, ERR_INVALID, "'%s' is not a parquet file: only %lld bytes", name,
                       (long long)st.st_size);
    }
    if (memcmp(head, "PAR1", 4) != 0) {
        return err_set(err, ERR_INVALID, "'%s' is not a parquet file: no PAR1 at its start", name);
    }
    if (memcmp(tail + 4, "PAR1", 4) != 0) {
        return err_set(err, ERR_INVALID,
                       "'%s' is a truncated parquet file: no PAR1 at its end (%lld bytes)", name,
                       (long long)st.st_size);
    }
    int64_t footer =
        (int64_t)tail[0] | (int64_t)tail[1] << 8 | (int64_t)tail[2] << 16 | (int64_t)tail[3] << 24;
    if (footer > st.st_size - 12 || footer > PARQUET_FOOTER_BYTES_MAX) {
        return err_set(err, ERR_INVALID, "'%s' has a damaged parquet footer: %lld bytes long", name,
                       (long long)footer);
    }
    return true;
}

static void column_type(duckdb_type t, struct column *c)
{
    static const struct {
        duckdb_type type;
        const char *sql;
        enum cell_kind kind;
    } types[] = {
        {DUCKDB_TYPE_BOOLEAN, "BOOLEAN", CELL_BOOL},
        {DUCKDB_TYPE_TINYINT, "TINYINT", CELL_INT},
        {DUCKDB_TYPE_SMALLINT, "SMALLINT", CELL_INT},
        {DUCKDB_TYPE_INTEGER, "INTEGER", CELL_INT},
        {DUCKDB_TYPE_BIGINT, "BIGINT", CELL_INT},
        {DUCKDB_TYPE_UTINYINT, "UTINYINT", CELL_UINT},
        {DUCKDB_TYPE_USMALLINT, "USMALLINT", CELL_UINT},
        {DUCKDB_TYPE_UINTEGER, "UINTEGER", CELL_UINT},
        {DUCKDB_TYPE_UBIGINT, "UBIGINT", CELL_UINT},
        {DUCKDB_TYPE_FLOAT, "FLOAT", CELL_FLOAT},
        {DUCKDB_TYPE_DOUBLE, "DOUBLE", CELL_DOUBLE},
    };
    c->sql_type = NULL;
    c->kind = CELL_TEXT;
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (types[i].type == t) {
            c->sql_type = types[i].sql;
            c->kind = types[i].kind;
        }
    }
}

static const char *cast_of(enum cell_kind kind)
{
    switch (kind) {
    case CELL_BOOL:
        return "BOOLEAN";
    case CELL_INT:
        return "BIGINT";
    case CELL_UINT:
        return "UBIGINT";
    case CELL_FLOAT:
    case CELL_DOUBLE:
        return "DOUBLE";
    case CELL_NULL:
    case CELL_TEXT:
    case CELL_JSON:
        break;
    }
    return "VARCHAR";
}

/* Index in the file's columns; -1: not found. Case matters, as in every parquet reader but
 * DuckDB. */
static int find_column(duckdb_result *r, const char *name)
{
    idx_t n = duckdb_column_count(r);
    for (idx_t i = 0; i < n; i++) {
        if (strcmp(duckdb_column_name(r, i), name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static int find_first(duckdb_result *r, const char *const *names)
{
    for (; *names != NULL; names++) {
        int i = find_column(r, *names);
        if (i >= 0) {
            return i;
        }
    }
    return -1;
}

static bool missing(const struct parquet *p, duckdb_result *r, const char *what, struct err *err)
{
    AUTO_BUF struct buf b = BUF_INIT(400);
    idx_t n = duckdb_column_count(r);
    for (idx_t i = 0; i < n; i++) {
        buf_addf(&b, "%s%.40s", i == 0 ? "" : ", ", duckdb_column_name(r, i));
    }
    return err_set(err, ERR_INVALID, "'%s' has no column %s; its columns: %s", p->name, what,
                   buf_cstr(&b));
}

/* type: its SQL type, for a column whose type is not plain. */
static void add_column(struct parquet *p, duckdb_result *r, int file_i, const char *name,
                       const char *type)
{
    int i = p->columns.n++;
    ASSERT(i < COLUMNS_MAX);
    struct column *c = &p->columns.at[i];
    column_type(duckdb_column_type(r, (idx_t)file_i), c);
    if (c->sql_type == NULL) {
        c->sql_type = p->types[i] = xstrdup(type);
        bool is_json = column_is_nested(c) || str_starts(str_of(type), "DECIMAL(");
        c->kind = is_json ? CELL_JSON : CELL_TEXT;
    }
    c->name = xstrdup(name);
    p->source[i] = xstrdup(duckdb_column_name(r, (idx_t)file_i));
}

/* Cells of a row. */
static int cells_n(const struct parquet *p)
{
    return p->columns.n + (p->columns.verify ? 1 : 0);
}
static enum cell_kind kind_of(const struct parquet *p, int i)
{
    return i < p->columns.n ? p->columns.at[i].kind : CELL_TEXT;
}

/* The column of a setting; -1, and its name appended to `lacking`, when the file does not have
 * it. */
static int must_find(duckdb_result *r, const char *name, const char *setting, struct buf *lacking)
{
    int i = find_column(r, name);
    if (i < 0) {
        buf_addf(lacking, "%s'%.60s'%s", lacking->n > 0 ? ", " : "", name, setting);
    }
    return i;
}

/* A URL is a text; as a number or list it would fail in every row. */
static bool check_url(const struct parquet *p, duckdb_result *types, int file_i, struct err *err)
{
    char *type = duckdb_value_varchar(types, 1, (idx_t)file_i);
    bool ok = type != NULL && (strcmp(type, "VARCHAR") == 0 || strncmp(type, "ENUM(", 5) == 0);
    if (!ok) {
        (void)err_set(err, ERR_INVALID, "'%s': the URL column '%.60s' is of type %.60s, not text",
                      p->name, p->source[p->columns.url_i], type != NULL ? type : "unknown");
    }
    duckdb_free(type);
    return ok;
}

static int add_text_column(struct parquet *p, duckdb_result *r, int file_i, const char *name)
{
    add_column(p, r, file_i, name, "VARCHAR");
    struct column *c = &p->columns.at[p->columns.n - 1];
    c->sql_type = "VARCHAR";
    c->kind = CELL_TEXT;
    return p->columns.n - 1;
}

/* A column that cannot hold boxes is one fault, not one per row. */
static bool check_boxes(const struct parquet *p, struct err *err)
{
    if (p->columns.boxes_i < 0) {
        return true;
    }
    const struct column *c = &p->columns.at[p->columns.boxes_i];
    return bbox_type_fits(c->sql_type) ||
           err_set(err, ERR_INVALID,
                   "'%s': bbox_col '%.60s' is of type %.60s; expected a list of lists of numbers, "
                   "or JSON text",
                   p->name, c->name, c->sql_type);
}

/* The order is img2dataset's. All missing columns are reported at once. */
static bool choose_columns(struct parquet *p, duckdb_result *r, duckdb_result *types,
                           const struct download_options *o, struct err *err)
{
    static const char *const urls[] = {"url", "URL", NULL};
    static const char *const captions[] = {"TEXT", "text", "caption", NULL};
    if (p->retry && find_column(r, "status") < 0) {
        return missing(p, r, "'status': it is no output of an earlier run", err);
    }
    AUTO_BUF struct buf lacking = BUF_INIT(400);
    p->columns.boxes_i = -1;
    for (int k = 0; k < o->extra_columns_n; k++) {
        bool boxes = strcmp(o->extra_columns[k], o->bbox_col) == 0;
        int i = must_find(r, o->extra_columns[k], boxes ? " (bbox_col)" : "", &lacking);
        if (i >= 0) {
            p->columns.boxes_i = boxes ? p->columns.n : p->columns.boxes_i;
            char *type = duckdb_value_varchar(types, 1, (idx_t)i);
            add_column(p, r, i, o->extra_columns[k], type);
            duckdb_free(type);
        }
    }
    p->columns.caption_i = -1;
    if (o->caption_col[0] != '\0') {
        bool any = strcmp(o->caption_col, "auto") == 0;
        int i = any ? find_first(r, captions)
                    : must_find(r, o->caption_col, " (caption_col)", &lacking);
        p->columns.caption_i = i >= 0 ? add_text_column(p, r, i, "caption") : -1;
    }
    bool any = strcmp(o->url_col, urls[0]) == 0;
    int i = any ? find_first(r, urls) : must_find(r, o->url_col, " (url_col)", &lacking);
    if (i >= 0) {
        p->columns.url_i = add_text_column(p, r, i, "url");
    } else if (any) {
        buf_addf(&lacking, "%s'url' or 'URL' (set url_col)", lacking.n > 0 ? ", " : "");
    }
    if (o->verify_col != NULL && must_find(r, o->verify_col, " (verify_hash)", &lacking) >= 0) {
        p->source[p->columns.n] = xstrdup(o->verify_col); /* read but not written */
        p->columns.verify = true;
    }
    return lacking.n != 0 ? missing(p, r, buf_cstr(&lacking), err)
                          : check_url(p, types, i, err) && check_boxes(p, err);
}

static void from_clause(struct buf *sql, const char *path)
{
    buf_add_cstr(sql, " FROM read_parquet(");
    duck_quote_text(sql, path);
    buf_add_cstr(sql, ", binary_as_string=true)");
}

/* Rows worth another attempt: not those that are gone, forbidden, or without a valid URL. */
static void where_clause(const struct parquet *p, struct buf *sql)
{
    if (p->retry) {
        buf_add_cstr(sql, " WHERE status = 'failed_to_download' AND NOT regexp_matches("
                          "coalesce(error_message, ''), '^HTTP Error 4(04|10):|X-Robots-Tag|"
                          "unknown url type|address not allowed|user name in url')");
    }
}

/* The footer has the count twice, for the file and for each row group. */
static bool count_rows(struct parquet *p, const char *path, struct err *err)
{
    AUTO_BUF struct buf sql = BUF_INIT(SQL_BYTES_MAX);
    duckdb_result r;
    if (p->retry) {
        buf_add_cstr(&sql, "SELECT count(*)::BIGINT, count(*)::BIGINT");
        from_clause(&sql, path);
        where_clause(p, &sql);
    } else {
        buf_add_cstr(&sql, "SELECT (SELECT sum(num_rows)::BIGINT FROM parquet_file_metadata(");
        duck_quote_text(&sql, path);
        buf_add_cstr(&sql, ")), (SELECT coalesce(sum(n), 0)::BIGINT FROM (SELECT "
                           "any_value(row_group_num_rows) AS n FROM parquet_metadata(");
        duck_quote_text(&sql, path);
        buf_add_cstr(&sql, ") GROUP BY row_group_id))");
    }
    if (!duck_query(p->con, buf_cstr(&sql), &r, err)) {
        return err_wrap(err, "'%s'", p->name);
    }
    p->rows = duckdb_value_int64(&r, 0, 0);
    int64_t in_groups = duckdb_value_int64(&r, 1, 0);
    duckdb_destroy_result(&r);
    if (p->rows < 0 || p->rows != in_groups) {
        return err_set(err, ERR_INVALID,
                       "'%s' has a damaged footer: %lld rows for the file, %lld in its row groups",
                       p->name, (long long)p->rows, (long long)in_groups);
    }
    return true;
}

static bool read_schema(struct parquet *p, const char *path, const struct download_options *o,
                        struct err *err)
{
    AUTO_BUF struct buf sql = BUF_INIT(SQL_BYTES_MAX);
    AUTO_BUF struct buf describe = BUF_INIT(SQL_BYTES_MAX);
    duckdb_result r;
    duckdb_result types;
    buf_add_cstr(&sql, "SELECT *");
    from_clause(&sql, path);
    buf_add_cstr(&sql, " LIMIT 0");
    buf_addf(&describe, "DESCRIBE %s", buf_cstr(&sql));
    if (!duck_query(p->con, buf_cstr(&sql), &r, err)) {
        return err_wrap(err, "'%s'", p->name);
    }
    bool ok = duck_query(p->con, buf_cstr(&describe), &types, err);
    if (ok) {
        ok = choose_columns(p, &r, &types, o, err);
        duckdb_destroy_result(&types);
    }
    duckdb_destroy_result(&r);
    if (!ok) {
        return false;
    }
    return count_rows(p, path, err);
}

static bool start_stream(struct parquet *p, const char *path, struct err *err)
{
    AUTO_BUF struct buf sql = BUF_INIT(SQL_BYTES_MAX);
    buf_add_cstr(&sql, "SELECT ");
    for (int i = 0; i < cells_n(p); i++) {
        bool nested = i < p->columns.n && column_is_nested(&p->columns.at[i]);
        buf_addf(&sql, "%sCAST(%s", i == 0 ? "" : ", ", nested ? "nullif(to_json(" : "");
        duck_quote_identifier(&sql, p->source[i]);
        buf_addf(&sql, "%s AS %s)", nested ? ")::VARCHAR, 'null')" : "", cast_of(kind_of(p, i)));
    }
    from_clause(&sql, path);
    where_clause(p, &sql);
    if (duckdb_prepare(p->con, buf_cstr(&sql), &p->stmt) != DuckDBSuccess) {
        (void)duck_fail(err, duckdb_prepare_error(p->stmt));
        return err_wrap(err, "'%s'", p->name);
    }
    duckdb_pending_result pending;
    if (duckdb_pending_prepared_streaming(p->stmt, &pending) != DuckDBSuccess) {
        (void)duck_fail(err, duckdb_pending_error(pending));
        duckdb_destroy_pending(&pending);
        return err_wrap(err, "'%s'", p->name);
    }
    duckdb_state rc = duckdb_execute_pending(pending, &p->result);
    duckdb_destroy_pending(&pending);
    p->streaming = true; /* destroy the result in any case */
    if (rc != DuckDBSuccess) {
        (void)duck_fail(err, duckdb_result_error(&p->result));
        return err_wrap(err, "'%s'", p->name);
    }
    return true;
}

bool parquet_open(struct duck *duck, const char *path, const char *name,
                  const struct download_options *o, struct parquet **ret, struct err *err)
{
    if (!o->retry_failed && !check_file(path, name, err)) {
        return false;
    }
    struct parquet *p = xcalloc(1, sizeof *p);
    p->name = xstrdup(name);
    p->retry = o->retry_failed;
    if (!duck_connect(duck, &p->con, err) || !read_schema(p, path, o, err) ||
        !start_stream(p, path, err)) {
        parquet_free(p);
        return false;
    }
    *ret = p;
    return true;
}

void parquet_free(struct parquet *p)
{
    if (p == NULL) {
        return;
    }
    if (p->chunk != NULL) {
        duckdb_destroy_data_chunk(&p->chunk);
    }
    if (p->streaming) {
        duckdb_destroy_result(&p->result);
    }
    if (p->stmt != NULL) {
        duckdb_destroy_prepare(&p->stmt);
    }
    if (p->con != NULL) {
        duckdb_disconnect(&p->con);
    }
    for (int i = 0; i < p->columns.n; i++) {
        free(p->columns.at[i].name);
        free(p->types[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(p->source); i++) {
        free(p->source[i]);
    }
    free(p->name);
    free(p);
}

int64_t parquet_rows(const struct parquet *p)
{
    return p->rows;
}

const struct columns *parquet_columns(const struct parquet *p)
{
    return &p->columns;
}

/* Make chunk_i < chunk_n, or set chunk to NULL at the end. */
static bool fill(struct parquet *p, struct err *err)
{
    while (p->chunk == NULL || p->chunk_i >= p->chunk_n) {
        if (p->chunk != NULL) {
            duckdb_destroy_data_chunk(&p->chunk);
        }
        p->chunk = duckdb_fetch_chunk(p->result);
        if (p->chunk == NULL) {
            const char *text = duckdb_result_error(&p->result);
            if (text != NULL && text[0] != '\0') {
                (void)duck_fail(err, text);
                return err_wrap(err, "'%s'", p->name);
            }
            return true;
        }
        p->chunk_n = duckdb_data_chunk_get_size(p->chunk);
        p->chunk_i = 0;
        if (p->chunk_n == 0) {
            duckdb_destroy_data_chunk(&p->chunk);
            return true;
        }
    }
    return true;
}

static struct cell cell_at(duckdb_vector v, enum cell_kind kind, idx_t row)
{
    uint64_t *valid = duckdb_vector_get_validity(v);
    if (valid != NULL && !duckdb_validity_row_is_valid(valid, row)) {
        return (struct cell){.kind = CELL_NULL};
    }
    const void *data = duckdb_vector_get_data(v);
    struct cell c = {.kind = kind};
    switch (kind) {
    case CELL_BOOL:
        c.b = ((const bool *)data)[row];
        break;
    case CELL_INT:
        c.i = ((const int64_t *)data)[row];
        break;
    case CELL_UINT:
        c.u = ((const uint64_t *)data)[row];
        break;
    case CELL_FLOAT:
    case CELL_DOUBLE:
        c.d = ((const double *)data)[row];
        break;
    case CELL_NULL:
        break;
    case CELL_TEXT:
    case CELL_JSON: {
        duckdb_string_t *s = (duckdb_string_t *)(uintptr_t)data + row;
        c.s = (struct str){duckdb_string_t_data(s), duckdb_string_t_length(*s)};
        break;
    }
    }
    return c;
}

static bool has_text(const struct cell *c)
{
    return c->kind == CELL_TEXT || c->kind == CELL_JSON;
}

bool parquet_next(struct parquet *p, struct sample **ret, struct err *err)
{
    if (!fill(p, err)) {
        return false;
    }
    if (p->chunk == NULL) {
        *ret = NULL;
        return true;
    }
    struct sample *s = sample_new(cells_n(p));
    size_t text_n = 0;
    for (int i = 0; i < cells_n(p); i++) {
        duckdb_vector v = duckdb_data_chunk_get_vector(p->chunk, (idx_t)i);
        s->cells[i] = cell_at(v, kind_of(p, i), p->chunk_i);
        text_n += has_text(&s->cells[i]) ? s->cells[i].s.n + 1 : 0;
    }
    if (text_n > ROW_TEXT_BYTES_MAX) {
        sample_free(s);
        return err_set(err, ERR_LIMIT, "'%s' has a row with %zu bytes of text", p->name, text_n);
    }
    s->text_n = text_n;
    s->text = xmalloc(text_n + 1);
    char *at = s->text;
    for (int i = 0; i < cells_n(p); i++) {
        if (has_text(&s->cells[i])) {
            size_t n = s->cells[i].s.n;
            memcpy(at, s->cells[i].s.p, n);
            at[n] = '\0';
            s->cells[i].s.p = at;
            at += n + 1;
        }
    }
    p->chunk_i++;
    *ret = s;
    return true;
}

bool parquet_skip(struct parquet *p, int64_t n, struct err *err)
{
    while (n > 0) {
        if (!fill(p, err)) {
            return false;
        }
        if (p->chunk == NULL) {
            return true;
        }
        int64_t step = MIN(n, (int64_t)(p->chunk_n - p->chunk_i));
        p->chunk_i += (idx_t)step;
        n -= step;
    }
    return true;
}
