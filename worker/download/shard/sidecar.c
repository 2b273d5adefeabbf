/* Rows go into a table by the appender, the table into a memfd by COPY. Table columns are called
 * c0, c1, ... and get their names in COPY's SELECT.
 *
 * DuckDB treats "WIDTH" and "width" as one name; every parquet reader treats them as two. LAION's
 * parts have the first, the output has the second. The later of such a pair is written with a first
 * byte that no name has. The footer stores names behind their length, so that byte is then
 * corrected in the footer. */
#include "sidecar.h"
#include "common/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SQL_BYTES_MAX   (64u << 10)
#define OWN_COLUMNS_MAX 10
#define ROW_GROUP_ROWS  2048 /* DuckDB's minimum: readers take a few rows of many shards */
#define ALIASES_MAX     8    /* \1 to \8: below the control bytes that SQL text treats as space */

struct alias {
    char *as;   /* "\1idth" */
    char first; /* 'w' */
};
struct sidecar {
    duckdb_connection con;
    const struct columns *columns;
    struct shard_format format;
    bool images;
    char *create;
    char *select;
    struct alias aliases[ALIASES_MAX];
    int aliases_n;
};

struct own_column {
    const char *name;
    const char *type;
};

/* Name of a column in COPY: its own, or an alias when DuckDB takes an earlier one for the same. */
static const char *call_it(struct sidecar *s, const char *name, const char *const *earlier, int n)
{
    bool taken = false;
    for (int i = 0; i < n; i++) {
        taken = taken || strcasecmp(earlier[i], name) == 0;
    }
    if (!taken || name[0] == '\0' || s->aliases_n == ALIASES_MAX || strlen(name) > 127) {
        return name;
    }
    struct alias *a = &s->aliases[s->aliases_n++];
    *a = (struct alias){xstrdup(name), name[0]};
    a->as[0] = (char)s->aliases_n;
    return a->as;
}

/* Restore the first byte of the aliased names in the footer. */
static bool restore_names(const struct sidecar *s, int fd, size_t file_n, struct err *err)
{
    uint8_t tail[8];
    if (s->aliases_n == 0) {
        return true;
    }
    if (file_n < 12 || pread(fd, tail, 8, (off_t)(file_n - 8)) != 8) {
        return err_set(err, ERR_INTERNAL, "sidecar: no footer");
    }
    size_t n =
        (size_t)tail[0] | (size_t)tail[1] << 8 | (size_t)tail[2] << 16 | (size_t)tail[3] << 24;
    if (n > file_n - 12) {
        return err_set(err, ERR_INTERNAL, "sidecar: a footer of %zu bytes", n);
    }
    off_t at = (off_t)(file_n - 8 - n);
    AUTO_FREE char *footer = xmalloc(n);
    bool ok = pread(fd, footer, n, at) == (ssize_t)n;
    for (int k = 0; k < s->aliases_n; k++) {
        size_t as_n = strlen(s->aliases[k].as);
        for (size_t i = 1; i + as_n <= n; i++) {
            if ((size_t)footer[i - 1] == as_n && memcmp(footer + i, s->aliases[k].as, as_n) == 0) {
                footer[i] = s->aliases[k].first;
            }
        }
    }
    ok = ok && pwrite(fd, footer, n, at) == (ssize_t)n;
    return ok ? true : err_set_os(err, ERR_INTERNAL, errno, "sidecar: cannot write the footer");
}

/* True when the value is appended as text, for any final type. */
static bool is_text(const struct column *c)
{
    return c->kind == CELL_TEXT || c->kind == CELL_JSON;
}

static void build_sql(struct sidecar *s)
{
    const char *names[COLUMNS_MAX + OWN_COLUMNS_MAX];
    struct own_column own[] = {{"key", "VARCHAR"},
                               {"status", "VARCHAR"},
                               {"error_message", "VARCHAR"},
                               {"width", "INTEGER"},
                               {"height", "INTEGER"},
                               {"original_width", "INTEGER"},
                               {"original_height", "INTEGER"},
                               {s->format.exif ? "exif" : NULL, "VARCHAR"},
                               {shard_hash_name(s->format.hash), "VARCHAR"},
                               {s->images ? shard_image_suffix(s->format.image) : NULL, "BLOB"}};
    AUTO_BUF struct buf create = BUF_INIT(SQL_BYTES_MAX);
    AUTO_BUF struct buf select = BUF_INIT(SQL_BYTES_MAX);
    int n = 0;
    buf_add_cstr(&create, "CREATE OR REPLACE TABLE shard(");
    for (int i = 0; i < s->columns->n + (int)ARRAY_LEN(own); i++) {
        bool given = i < s->columns->n;
        const char *name = given ? s->columns->at[i].name : own[i - s->columns->n].name;
        const char *type = given ? s->columns->at[i].sql_type : own[i - s->columns->n].type;
        if (name == NULL) {
            continue;
        }
        bool cast = given && is_text(&s->columns->at[i]);
        const char *json = cast && column_is_nested(&s->columns->at[i]) ? "::JSON" : "";
        buf_addf(&create, "%sc%d %s", n == 0 ? "" : ", ", n, cast ? "VARCHAR" : type);
        buf_addf(&select, "%sCAST(c%d%s AS %s) AS ", n == 0 ? "" : ", ", n, json, type);
        duck_quote_identifier(&select, call_it(s, name, names, n));
        names[n++] = name;
    }
    buf_add_cstr(&create, ")");
    s->create = buf_take(&create);
    s->select = buf_take(&select);
}

bool sidecar_new(struct duck *duck, const struct columns *columns, const struct shard_format *f,
                 bool images, struct sidecar **ret, struct err *err)
{
    struct sidecar *s = xcalloc(1, sizeof *s);
    s->columns = columns;
    s->format = *f;
    s->images = images;
    if (!duck_connect(duck, &s->con, err)) {
        sidecar_free(s);
        return false;
    }
    build_sql(s);
    *ret = s;
    return true;
}

void sidecar_free(struct sidecar *s)
{
    if (s == NULL) {
        return;
    }
    if (s->con != NULL) {
        duckdb_disconnect(&s->con);
    }
    for (int i = 0; i < s->aliases_n; i++) {
        free(s->aliases[i].as);
    }
    free(s->create);
    free(s->select);
    free(s);
}

static bool text(duckdb_appender a, const char *v)
{
    return (v == NULL ? duckdb_append_null(a) : duckdb_append_varchar(a, v)) == DuckDBSuccess;
}

static bool side(duckdb_appender a, const struct sample *s, int32_t v)
{
    bool known = s->status == STATUS_SUCCESS && v != 0;
    return (known ? duckdb_append_int32(a, v) : duckdb_append_null(a)) == DuckDBSuccess;
}

static bool cell(duckdb_appender a, const struct cell *c)
{
    duckdb_state rc = DuckDBError;
    switch (c->kind) {
    case CELL_NULL:
        rc = duckdb_append_null(a);
        break;
    case CELL_BOOL:
        rc = duckdb_append_bool(a, c->b);
        break;
    case CELL_INT:
        rc = duckdb_append_int64(a, c->i);
        break;
    case CELL_UINT:
        rc = duckdb_append_uint64(a, c->u);
        break;
    case CELL_FLOAT:
        rc = duckdb_append_float(a, (float)c->d);
        break;
    case CELL_DOUBLE:
        rc = duckdb_append_double(a, c->d);
        break;
    case CELL_TEXT:
    case CELL_JSON:
        rc = duckdb_append_varchar_length(a, c->s.p, c->s.n);
        break;
    }
    return rc == DuckDBSuccess;
}

static bool append_row(struct sidecar *c, duckdb_appender a, const struct sample *s)
{
    char key[SHARD_KEY_BYTES];
    bool ok = true;
    for (int i = 0; i < c->columns->n; i++) {
        ok = ok && cell(a, &s->cells[i]);
    }
    bool won = s->status == STATUS_SUCCESS;
    shard_key(&c->format, s->shard_i, s->row_i, key);
    ok = ok && text(a, key) && text(a, stats_status_name(s->status)) &&
         text(a, s->error[0] != '\0' ? s->error : NULL) && side(a, s, s->width) &&
         side(a, s, s->height) && side(a, s, s->original_width) && side(a, s, s->original_height);
    if (c->format.exif) {
        ok = ok && text(a, won ? s->exif : NULL);
    }
    if (shard_hash_name(c->format.hash) != NULL) {
        ok = ok && text(a, won ? s->hash : NULL);
    }
    if (c->images) {
        ok = ok && (won ? duckdb_append_blob(a, s->image, s->image_n) : duckdb_append_null(a)) ==
                       DuckDBSuccess;
    }
    return ok && duckdb_appender_end_row(a) == DuckDBSuccess;
}

static bool fill_table(struct sidecar *c, struct sample *const *samples, size_t n, struct err *err)
{
    duckdb_appender a = NULL;
    if (!duck_query(c->con, c->create, NULL, err)) {
        return false;
    }
    bool ok = duckdb_appender_create(c->con, NULL, "shard", &a) == DuckDBSuccess;
    for (size_t i = 0; ok && i < n; i++) {
        ok = append_row(c, a, samples[i]);
    }
    ok = ok && duckdb_appender_close(a) == DuckDBSuccess;
    if (!ok) {
        (void)duck_fail(err, a != NULL ? duckdb_appender_error(a) : "no appender");
        (void)err_wrap(err, "sidecar");
    }
    (void)duckdb_appender_destroy(&a);
    return ok;
}

bool sidecar_write(struct sidecar *c, struct sample *const *samples, size_t samples_n,
                   struct str *ret, struct err *err)
{
    if (!fill_table(c, samples, samples_n, err)) {
        return false;
    }
    AUTO_FD int fd = memfd_create("drover-sidecar", MFD_CLOEXEC);
    if (fd < 0) {
        return err_set_os(err, ERR_INTERNAL, errno, "memfd");
    }
    AUTO_FREE char *sql =
        xasprintf("COPY (SELECT %s FROM shard) TO '/proc/self/fd/%d' (FORMAT "
                  "parquet, COMPRESSION snappy, ROW_GROUP_SIZE %d, USE_TMP_FILE false)",
                  c->select, fd, ROW_GROUP_ROWS);
    if (!duck_query(c->con, sql, NULL, err) || !duck_query(c->con, "DROP TABLE shard", NULL, err)) {
        return err_wrap(err, "sidecar");
    }
    struct stat st;
    if (fstat(fd, &st) != 0 || st.st_size <= 0) {
        return err_set(err, ERR_INTERNAL, "sidecar: nothing was written");
    }
    size_t n = (size_t)st.st_size;
    if (!restore_names(c, fd, n, err)) {
        return false;
    }
    void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) {
        return err_set_os(err, ERR_INTERNAL, errno, "sidecar: mmap");
    }
    *ret = (struct str){p, n};
    return true;
}
