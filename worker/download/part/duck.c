/* The DuckDB calls that the reader and the sidecar share. */
#include "duck.h"
#include <errno.h>

bool duck_fail(struct err *err, const char *text)
{
    const char *t = text != NULL ? text : "no reason given";
    /* an appender's error has no name of the kind before it */
    if (strncmp(t, "Out of Memory", 13) == 0 || strstr(t, "could not allocate") != NULL ||
        strstr(t, "failed to allocate") != NULL) {
        return err_set_os(err, ERR_INTERNAL, ENOMEM, "parquet: %s", t);
    }
    return err_set(err, ERR_INVALID, "parquet: %s", t);
}

bool duck_open(struct duck *ret, struct err *err)
{
    static const char *const settings[][2] = {
        {"threads", "1"},
        {"memory_limit", DUCK_MEMORY},
        {"autoinstall_known_extensions", "false"},
        {"autoload_known_extensions", "false"},
        {"temp_directory", ""},
        {"enable_external_file_cache", "false"}, /* every row is read once */
    };
    duckdb_config cfg;
    if (duckdb_create_config(&cfg) != DuckDBSuccess) {
        return err_set(err, ERR_INTERNAL, "duckdb: no configuration");
    }
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        if (duckdb_set_config(cfg, settings[i][0], settings[i][1]) != DuckDBSuccess) {
            duckdb_destroy_config(&cfg);
            return err_set(err, ERR_INTERNAL, "duckdb: cannot set %s", settings[i][0]);
        }
    }
    char *text = NULL;
    duckdb_state rc = duckdb_open_ext(NULL, &ret->db, cfg, &text);
    duckdb_destroy_config(&cfg);
    if (rc != DuckDBSuccess) {
        (void)err_set(err, ERR_INTERNAL, "duckdb: %s", text != NULL ? text : "cannot open");
        duckdb_free(text);
        return false;
    }
    return true;
}

void duck_close(struct duck *d)
{
    if (d->db != NULL) {
        duckdb_close(&d->db);
    }
}

bool duck_connect(struct duck *d, duckdb_connection *ret, struct err *err)
{
    if (duckdb_connect(d->db, ret) != DuckDBSuccess) {
        return err_set(err, ERR_INTERNAL, "duckdb: cannot connect");
    }
    return true;
}

bool duck_query(duckdb_connection c, const char *sql, duckdb_result *ret, struct err *err)
{
    duckdb_result r;
    if (duckdb_query(c, sql, &r) != DuckDBSuccess) {
        (void)duck_fail(err, duckdb_result_error(&r));
        duckdb_destroy_result(&r);
        return false;
    }
    if (ret != NULL) {
        *ret = r;
    } else {
        duckdb_destroy_result(&r);
    }
    return true;
}

static void quote(struct buf *out, const char *s, char q)
{
    buf_add_char(out, q);
    for (; *s != '\0'; s++) {
        if (*s == q) {
            buf_add_char(out, q);
        }
        buf_add_char(out, *s);
    }
    buf_add_char(out, q);
}

void duck_quote_text(struct buf *out, const char *s)
{
    quote(out, s, '\'');
}

void duck_quote_identifier(struct buf *out, const char *s)
{
    quote(out, s, '"');
}
