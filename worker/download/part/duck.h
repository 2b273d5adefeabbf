/* DuckDB for reading and writing Parquet: one thread, bounded memory, no network access.
 * Connections may be used by different threads, each by one. */
#pragma once
#include "common/buf.h"
#include <duckdb.h>

#define DUCK_MEMORY "512MB"

struct duck {
    duckdb_database db;
};
/* Open an in-memory database. ERR_INTERNAL. */
bool duck_open(struct duck *ret, struct err *err) MUST_CHECK;
void duck_close(struct duck *d);
/* A connection, to be closed with duckdb_disconnect. */
bool duck_connect(struct duck *d, duckdb_connection *ret, struct err *err) MUST_CHECK;
/* Run a statement; *ret (may be NULL) is to be destroyed by the caller on success. */
bool duck_query(duckdb_connection c, const char *sql, duckdb_result *ret,
                struct err *err) MUST_CHECK;
/* An error from DuckDB's text; its out-of-memory error carries ENOMEM. Returns false. */
bool duck_fail(struct err *err, const char *text);
void duck_quote_text(struct buf *out, const char *s);       /* 'it''s' */
void duck_quote_identifier(struct buf *out, const char *s); /* "a""b" */
