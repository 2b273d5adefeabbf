/* The query casts every column to one of five plain types, so that one switch reads a vector. The
 * sidecar keeps the original types. */
#include "parquet.h"
#include "column_choice.h"
#include "common/cleanup.h"
#include "second_pass.h"
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
    enum cell_kind kinds[COLUMNS_MAX + 1]; /* of the cells that are read */
    char *source[COLUMNS_MAX + 1];         /* DuckDB's name of each cell's column */
    char *status, *error_message;          /* and of these two, with retry */
    char *path, *name;
    bool retry; /* only rows that failed to download, from an earlier output's sidecars */
};

#define OTHER_FORMAT "; --input_format takes csv, tsv, txt, json and jsonl"

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
        return err_set(err, ERR_INVALID, "'%s' is not a parquet file: only %lld bytes" OTHER_FORMAT,
                       name, (long long)st.st_size);
    }
    if (memcmp(head, "PAR1", 4) != 0) {
        return err_set(err, ERR_INVALID,
                       "'%s' is not a parquet file: no PAR1 at its start" OTHER_FORMAT, name);
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

static void from_clause(struct buf *sql, const char *path)
{
    buf_add_cstr(sql, " FROM read_parquet(");
    duck_quote_text(sql, path);
    buf_add_cstr(sql, ", binary_as_string=true, hive_partitioning=false)");
}

/* Rows worth another attempt: not those that are gone, forbidden, or without a valid URL. */
static void where_clause(const struct parquet *p, struct buf *sql)
{
    if (p->retry) {
        buf_add_cstr(sql, " WHERE ");
        duck_quote_identifier(sql, p->status);
        buf_add_cstr(sql, " = 'failed_to_download' AND NOT ");
        second_pass_final_sql(sql, p->error_message);
    }
}

/* The footer has the count twice, for the file and for each row group. */
static bool count_rows(struct parquet *p, struct err *err)
{
    AUTO_BUF struct buf sql = BUF_INIT(SQL_BYTES_MAX);
    duckdb_result r;
    if (p->retry) {
        buf_add_cstr(&sql, "SELECT count(*)::BIGINT, count(*)::BIGINT");
        from_clause(&sql, p->path);
        where_clause(p, &sql);
    } else {
        buf_add_cstr(&sql, "SELECT (SELECT sum(num_rows)::BIGINT FROM parquet_file_metadata(");
        duck_quote_text(&sql, p->path);
        buf_add_cstr(&sql, ")), (SELECT coalesce(sum(n), 0)::BIGINT FROM (SELECT "
                           "any_value(row_group_num_rows) AS n FROM parquet_metadata(");
        duck_quote_text(&sql, p->path);
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

/* The names as the file has them, names[n] (the caller's): the children of the root of the schema
 * (with retry of the first file), which lists each column before what is nested in it. */
static bool read_names(struct parquet *p, char **names, idx_t n, struct err *err)
{
    AUTO_BUF struct buf sql = BUF_INIT(SQL_BYTES_MAX);
    duckdb_result r;
    buf_add_cstr(&sql, "SELECT name, coalesce(num_children, 0)::BIGINT FROM parquet_schema(");
    duck_quote_text(&sql, p->path);
    buf_add_cstr(&sql, ")");
    if (!duck_query(p->con, buf_cstr(&sql), &r, err)) {
        return err_wrap(err, "'%s'", p->name);
    }
    idx_t rows = duckdb_row_count(&r);
    idx_t at = 1;
    bool ok = rows > 0 && duckdb_value_int64(&r, 1, 0) == (int64_t)n;
    for (idx_t i = 0; ok && i < n; i++) {
        ok = at < rows;
        names[i] = ok ? duckdb_value_varchar(&r, 0, at) : NULL;
        for (int64_t open = 1; open > 0 && at < rows; at++) {
            open += duckdb_value_int64(&r, 1, at) - 1;
        }
    }
    duckdb_destroy_result(&r);
    return ok || err_set(err, ERR_INVALID, "'%s' has a damaged schema", p->name);
}

/* DuckDB renames the later of two columns whose names differ in case only. */
static char *duck_name(const struct file_column *file, duckdb_result *r, const char *name)
{
    idx_t i = 0;
    while (i < duckdb_column_count(r) && strcmp(file[i].name, name) != 0) {
        i++;
    }
    return xstrdup(i < duckdb_column_count(r) ? duckdb_column_name(r, i) : name);
}

/* Choose the columns of the file, which DuckDB calls those of r, with the types of `types`. */
static bool choose_columns(struct parquet *p, duckdb_result *r, duckdb_result *types,
                           const struct download_options *o, struct err *err)
{
    idx_t n = duckdb_column_count(r);
    struct column_choice c;
    struct file_column *file = xcalloc(n + 1, sizeof *file);
    char **texts = xcalloc(n + 1, sizeof *texts);
    char **names = xcalloc(n + 1, sizeof *names);
    bool ok = read_names(p, names, n, err);
    for (idx_t i = 0; ok && i < n; i++) {
        texts[i] = duckdb_value_varchar(types, 1, i);
        file[i] = (struct file_column){names[i], texts[i] != NULL ? texts[i] : "unknown"};
    }
    ok = ok && column_choice(file, n, p->name, p->retry, o, &c, err);
    if (ok) {
        p->columns = c.columns;
        for (int i = 0; i < columns_cells(&p->columns); i++) {
            p->source[i] = xstrdup(duckdb_column_name(r, (idx_t)c.file_i[i]));
        }
        p->status = duck_name(file, r, "status");
        p->error_message = duck_name(file, r, "error_message");
    }
    for (idx_t i = 0; i < n; i++) {
        duckdb_free(texts[i]);
        duckdb_free(names[i]);
    }
    free(texts);
    free(names);
    free(file);
    return ok;
}

static bool read_schema(struct parquet *p, const struct download_options *o, struct err *err)
{
    AUTO_BUF struct buf sql = BUF_INIT(SQL_BYTES_MAX);
    AUTO_BUF struct buf describe = BUF_INIT(SQL_BYTES_MAX);
    duckdb_result r;
    duckdb_result types;
    buf_add_cstr(&sql, "SELECT *");
    from_clause(&sql, p->path);
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
    return ok && count_rows(p, err);
}

bool parquet_start(struct parquet *p, const struct columns *as, struct err *err)
{
    AUTO_BUF struct buf sql = BUF_INIT(SQL_BYTES_MAX);
    buf_add_cstr(&sql, "SELECT ");
    for (int i = 0; i < columns_cells(&p->columns); i++) {
        p->kinds[i] = columns_kind(as, i);
        bool nested = i < p->columns.n && column_is_nested(&p->columns.at[i]);
        buf_addf(&sql, "%sCAST(%s", i == 0 ? "" : ", ", nested ? "nullif(to_json(" : "");
        duck_quote_identifier(&sql, p->source[i]);
        buf_addf(&sql, "%s AS %s)", nested ? ")::VARCHAR, 'null')" : "", cast_of(p->kinds[i]));
    }
    from_clause(&sql, p->path);
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
    p->path = xstrdup(path);
    p->retry = o->retry_failed;
    if (!duck_connect(duck, &p->con, err) || !read_schema(p, o, err)) {
        parquet_free(p);
        return false;
    }
    *ret = p;
    return true;
}

static void end_query(struct parquet *p)
{
    if (p->chunk != NULL) {
        duckdb_destroy_data_chunk(&p->chunk);
    }
    if (p->streaming) {
        duckdb_destroy_result(&p->result);
        p->streaming = false;
    }
    if (p->stmt != NULL) {
        duckdb_destroy_prepare(&p->stmt);
    }
}

void parquet_free(struct parquet *p)
{
    if (p == NULL) {
        return;
    }
    end_query(p);
    if (p->con != NULL) {
        duckdb_disconnect(&p->con);
    }
    columns_done(&p->columns);
    for (size_t i = 0; i < ARRAY_LEN(p->source); i++) {
        free(p->source[i]);
    }
    free(p->status);
    free(p->error_message);
    free(p->path);
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

bool parquet_next(struct parquet *p, struct sample **ret, struct err *err)
{
    *ret = NULL;
    if (!fill(p, err)) {
        return false;
    }
    if (p->chunk == NULL) {
        return true;
    }
    struct sample *s = sample_new(columns_cells(&p->columns));
    for (int i = 0; i < columns_cells(&p->columns); i++) {
        duckdb_vector v = duckdb_data_chunk_get_vector(p->chunk, (idx_t)i);
        s->cells[i] = cell_at(v, p->kinds[i], p->chunk_i);
    }
    p->chunk_i++;
    if (!sample_keep_text(s, columns_cells(&p->columns), err)) {
        sample_free(s);
        return err_wrap(err, "'%s'", p->name);
    }
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

bool parquet_check(struct parquet *p, struct err *err)
{
    bool ok = parquet_start(p, &p->columns, err) && parquet_skip(p, INT64_MAX, err);
    end_query(p);
    return ok;
}
