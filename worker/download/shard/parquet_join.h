/* Joins Parquet files of one writer and one schema into a file with the row groups of all of them:
 * their data one after the other, and one footer whose offsets are corrected. The files are
 * DuckDB's, made in this process; anything unexpected in a footer is an error. Pure. */
#pragma once
#include "common/buf.h"
#include "common/err.h"

#define PARQUET_JOIN_FOOTER_BYTES_MAX ((size_t)256 << 20)

struct parquet_join { /* use parquet_join_done */
    struct buf head;  /* footer up to the number of rows: version and schema */
    struct buf groups;
    struct buf tail; /* footer behind the row groups */
    int64_t rows, groups_n;
    int64_t size; /* bytes of the joined file so far */
};

void parquet_join_init(struct parquet_join *j);
void parquet_join_done(struct parquet_join *j);
/* *ret_data, a part of file: append it to the joined file. */
bool parquet_join_add(struct parquet_join *j, struct str file, struct str *ret_data,
                      struct err *err) MUST_CHECK;
/* After at least one file: append the end of the joined file to out. */
bool parquet_join_end(const struct parquet_join *j, struct buf *out, struct err *err) MUST_CHECK;
