/* Typed reading of binary result columns: the only code that decodes PostgreSQL's wire formats. */
#include "pg_types.h"
#include "query.h"
#include <libpq-fe.h>

void result_clearp(PGresult **r)
{
    PQclear(*r);
}

void results_clear(PGresult **r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        PQclear(r[i]);
    }
}

int row_count(const PGresult *r)
{
    return PQntuples(r);
}

bool row_null(const PGresult *r, int row, int col)
{
    ASSERT(row >= 0 && row < PQntuples(r));
    ASSERT(col >= 0 && col < PQnfields(r));
    return PQgetisnull(r, row, col) == 1;
}

static uint64_t big_endian(const char *p, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++) {
        v = v << 8 | (uint8_t)p[i];
    }
    return v;
}

int64_t row_i64(const PGresult *r, int row, int col)
{
    ASSERT(!row_null(r, row, col));
    unsigned type = PQftype(r, col);
    int n = PQgetlength(r, row, col);
    const char *p = PQgetvalue(r, row, col);
    if (type == PG_INT8) {
        ASSERT(n == 8);
        return (int64_t)big_endian(p, 8);
    }
    if (type == PG_INT4) {
        ASSERT(n == 4);
        return (int32_t)(uint32_t)big_endian(p, 4);
    }
    ASSERT(type == PG_INT2 && n == 2);
    return (int16_t)(uint16_t)big_endian(p, 2);
}

int64_t row_i64_or(const PGresult *r, int row, int col, int64_t null_value)
{
    return row_null(r, row, col) ? null_value : row_i64(r, row, col);
}

/* Dimensions, has NULLs, type, length, first index; then each with its length before it. */
#define ARRAY_HEAD_BYTES 20

struct row_array row_array(const PGresult *r, int row, int col)
{
    unsigned type = PQftype(r, col);
    ASSERT(type == PG_INT8_ARRAY || type == PG_INT4_ARRAY || type == PG_INT2_ARRAY);
    struct row_array a = {.width = type == PG_INT8_ARRAY ? 8 : type == PG_INT4_ARRAY ? 4 : 2};
    if (row_null(r, row, col) || PQgetlength(r, row, col) < ARRAY_HEAD_BYTES) {
        return a;
    }
    const char *p = PQgetvalue(r, row, col);
    a.n = (size_t)big_endian(p + 12, 4);
    a.p = p + ARRAY_HEAD_BYTES;
    ASSERT(big_endian(p, 4) == 1 && big_endian(p + 4, 4) == 0);
    ASSERT((size_t)PQgetlength(r, row, col) == ARRAY_HEAD_BYTES + a.n * (4 + (size_t)a.width));
    return a;
}

int64_t row_array_i64(const struct row_array *a, size_t i)
{
    ASSERT(i < a->n);
    const char *p = a->p + i * (4 + (size_t)a->width) + 4;
    switch (a->width) {
    case 8:
        return (int64_t)big_endian(p, 8);
    case 4:
        return (int32_t)(uint32_t)big_endian(p, 4);
    default:
        return (int16_t)(uint16_t)big_endian(p, 2);
    }
}

int row_int(const PGresult *r, int row, int col)
{
    int64_t v = row_i64(r, row, col);
    ASSERT(v >= INT32_MIN && v <= INT32_MAX);
    return (int)v;
}

double row_f64(const PGresult *r, int row, int col)
{
    double v;
    ASSERT(!row_null(r, row, col));
    ASSERT(PQftype(r, col) == PG_FLOAT8 && PQgetlength(r, row, col) == 8);
    uint64_t bits = big_endian(PQgetvalue(r, row, col), 8);
    memcpy(&v, &bits, sizeof v);
    return v;
}

bool row_bool(const PGresult *r, int row, int col)
{
    ASSERT(!row_null(r, row, col));
    ASSERT(PQftype(r, col) == PG_BOOL && PQgetlength(r, row, col) == 1);
    return PQgetvalue(r, row, col)[0] != 0;
}

int64_t row_span_s(const PGresult *r, int row, int col)
{
    return MAX(INT64_C(0), MIN(row_i64(r, row, col), ROW_SPAN_S_MAX));
}

usec_t row_time(const PGresult *r, int row, int col)
{
    if (row_null(r, row, col)) {
        return 0;
    }
    ASSERT(PQftype(r, col) == PG_TIMESTAMPTZ && PQgetlength(r, row, col) == 8);
    int64_t at = (int64_t)big_endian(PQgetvalue(r, row, col), 8);
    return MAX(INT64_C(1), MIN(at, ROW_TIME_MAX - PG_EPOCH_US) + PG_EPOCH_US);
}

static void assert_textual(const PGresult *r, int col)
{
    unsigned type = PQftype(r, col);
    ASSERT(type == PG_TEXT || type == PG_VARCHAR || type == PG_NAME || type == PG_BYTEA);
}

const char *row_text(const PGresult *r, int row, int col)
{
    assert_textual(r, col);
    return row_null(r, row, col) ? "" : PQgetvalue(r, row, col);
}

char *row_text_dup(const PGresult *r, int row, int col)
{
    return row_null(r, row, col) ? NULL : xstrdup(row_text(r, row, col));
}

struct str row_bytes(const PGresult *r, int row, int col)
{
    assert_textual(r, col);
    return (struct str){PQgetvalue(r, row, col), (size_t)PQgetlength(r, row, col)};
}

void row_text_into(const PGresult *r, int row, int col, char *to, size_t size)
{
    const char *s = row_text(r, row, col);
    size_t n = MIN(strlen(s), size - 1);
    memcpy(to, s, n);
    to[n] = '\0';
}
