/* Runs the named queries of sql/queries: parameters in, binary results out. Used by the files of
 * store only. A query is prepared the first time a connection runs it, with the types of its
 * parameters. All results are binary, so SQL casts types without a plain binary form (numeric,
 * jsonb, uuid) to bigint or text.
 *
 *     AUTO_PARAMS struct params p = PARAMS_INIT;
 *     param_i64(&p, campaign_id);
 *     AUTO_RESULT PGresult *res = NULL;
 *     if (!store_exec(s, QUERY(CAMPAIGN_GET), &p, &res, err)) { return false; } */
#pragma once
#include "common/cleanup.h"
#include "connection.h"

typedef struct pg_result PGresult; /* of libpq; opaque outside this folder */

#define QUERY(NAME)  SQL_##NAME##_NAME, SQL_##NAME
#define PARAMS_MAX   56
#define PIPELINE_MAX 64 /* statements sent before the first answer is read */

/* Parameters, $1 first, or by name in any order. Scalars are copied; texts and bytes are borrowed
 * until the query has run. */
struct params {
    int n;           /* the place of the next one */
    int named;       /* how many the statement names; 0: they come in order */
    uint64_t filled; /* of those with names */
    int owned_n;
    unsigned types[PARAMS_MAX];
    const char *values[PARAMS_MAX];
    int lengths[PARAMS_MAX];
    int formats[PARAMS_MAX];
    uint8_t scalars[PARAMS_MAX][8];
    char *owned[PARAMS_MAX];
};
#define PARAMS_INIT                                                                                \
    {                                                                                              \
        .n = 0, .named = 0, .filled = 0, .owned_n = 0                                              \
    }
#define AUTO_PARAMS CLEANUP(params_done)
void params_done(struct params *p); /* frees owned memory and empties it for reuse */
/* The next parameter is the one of this name, in a statement that names them:
 *     param_i64(PARAM(p, INTEND, CAMPAIGN), id);
 * A name that the statement does not have does not compile; one that is not given, or given twice,
 * asserts. */
#define PARAM(p, QUERY, NAME) param_named((p), SQL_##QUERY##_P_##NAME, SQL_##QUERY##_PARAMS)
struct params *param_named(struct params *p, int place, int of);
/* How many there are. */
int params_n(const struct params *p);
void param_i64(struct params *p, int64_t v);
/* SQL NULL when v is null_value */
void param_i64_or_null(struct params *p, int64_t v, int64_t null_value);
void param_i32(struct params *p, int32_t v);
void param_i16(struct params *p, int16_t v);
void param_bool(struct params *p, bool v);
void param_text(struct params *p, const char *v); /* NULL: SQL NULL */
void param_str(struct params *p, struct str v);
/* Text from outside: bytes that are not UTF-8 become '?', at most max_chars are kept. NULL: SQL
 * NULL. */
void param_outside_text(struct params *p, const char *v, size_t max_chars);
void param_json(struct params *p, const char *v); /* jsonb; NULL: SQL NULL */
void param_bytes(struct params *p, const void *v, size_t n);
void param_time(struct params *p, usec_t t);                        /* timestamptz; 0: SQL NULL */
void param_i64_array(struct params *p, const int64_t *v, size_t n); /* bigint[] */
void param_f64_array(struct params *p, const double *v, size_t n);  /* float8[] */
void param_i32_array(struct params *p, const int32_t *v, size_t n); /* integer[] */
void param_i16_array(struct params *p, const int16_t *v, size_t n); /* smallint[] */
/* As above; v NULL: SQL NULL. */
void param_i32_array_or_null(struct params *p, const int32_t *v, size_t n);
void param_i16_array_or_null(struct params *p, const int16_t *v, size_t n);
void param_text_array(struct params *p, const char *const *v,
                      size_t n); /* text[]; NULL: SQL NULL */

/* Results. A column is read in the type the query returns; another type is our bug and asserts. */
void result_clearp(PGresult **r);
/* clear the results of a pipeline; NULL ones are skipped */
void results_clear(PGresult **r, size_t n);
#define AUTO_RESULT CLEANUP(result_clearp)
int row_count(const PGresult *r);
bool row_null(const PGresult *r, int row, int col);
int64_t row_i64(const PGresult *r, int row, int col); /* smallint, integer or bigint, not NULL */
int64_t row_i64_or(const PGresult *r, int row, int col, int64_t null_value);
int row_int(const PGresult *r, int row, int col);
double row_f64(const PGresult *r, int row, int col); /* double precision, not NULL */
bool row_bool(const PGresult *r, int row, int col);
/* Seconds that something lasts, between 0 and a century: whatever a row says, it can be added to an
 * instant in microseconds. */
#define ROW_SPAN_S_MAX INT64_C(3155760000)
int64_t row_span_s(const PGresult *r, int row, int col);
/* NULL: 0. Else between 1 and the end of the year 9999, for infinity and -infinity, too. */
#define ROW_TIME_MAX INT64_C(253402300799999999)
usec_t row_time(const PGresult *r, int row, int col);
const char *row_text(const PGresult *r, int row, int col); /* borrowed from r; NULL: "" */
char *row_text_dup(const PGresult *r, int row, int col);   /* caller frees; NULL: NULL */
struct str row_bytes(const PGresult *r, int row, int col); /* borrowed from r */
void row_text_into(const PGresult *r, int row, int col, char *to, size_t size); /* cut to size */
/* A smallint[], integer[] or bigint[] of one dimension without NULLs, borrowed from r; n 0: NULL or
 * empty. i < n. */
struct row_array {
    const char *p;
    size_t n;
    int width;
};
struct row_array row_array(const PGresult *r, int row, int col);
int64_t row_array_i64(const struct row_array *a, size_t i);

/* Run a query; AUTO_RESULT clears *ret. Errors: ERR_UNAVAILABLE (connection lost or refused, then
 * store_alive is false; or the server is shutting down, full or read-only), ERR_TIMEOUT (statement
 * or lock), ERR_CONFLICT (unique), ERR_NOT_LEADER (40001 on a leader's connection), else
 * ERR_DATABASE; err.sqlstate has the code. Waits are bounded by the role's statement time-out and a
 * margin. */
bool store_exec(struct store *s, const char *name, const char *sql, struct params *p,
                PGresult **ret, struct err *err) MUST_CHECK;
/* store_exec; work(ctx) runs once between the question and its answer, while the server is busy,
 * unless the question could not be asked. It must not use s. */
bool store_exec_while(struct store *s, const char *name, const char *sql, struct params *p,
                      void (*work)(void *ctx), void *ctx, PGresult **ret,
                      struct err *err) MUST_CHECK;
/* For statements without needed rows: *ret_n (may be NULL) is the number of rows affected. */
bool store_run(struct store *s, const char *name, const char *sql, struct params *p, int64_t *ret_n,
               struct err *err) MUST_CHECK;
/* For a query of one text, appended to *ret. ERR_NOT_FOUND "no such WHAT": no row. */
bool store_text(struct store *s, const char *name, const char *sql, struct params *p,
                const char *what, struct buf *ret, struct err *err) MUST_CHECK;
/* Run an unprepared statement without parameters (BEGIN, COMMIT, ROLLBACK, LISTEN, a migration). */
bool store_plain(struct store *s, const char *sql, struct err *err) MUST_CHECK;
/* Run n <= PIPELINE_MAX statements in one round trip, in order; after a failure the rest is not
 * run. The caller clears ret[n]. name NULL: sql is run unprepared and params must be NULL. */
struct statement {
    const char *name;
    const char *sql;
    struct params *params;
};
bool store_pipeline(struct store *s, const struct statement *st, size_t n, PGresult **ret,
                    struct err *err) MUST_CHECK;
/* Fill *err from a failed result (NULL: from the connection). Returns false. */
bool store_fail(struct store *s, const PGresult *res, const char *what, struct err *err);
