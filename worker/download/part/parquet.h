/* Reads a parquet part: columns by name, the row count first, then rows one by one. Faults of the
 * file are ERR_INVALID with a text for the user. */
#pragma once
#include "duck.h"
#include "options.h"
#include "sample.h"

#define PARQUET_FOOTER_BYTES_MAX (16u << 20)

struct parquet;
/* Open `path` and read its schema; name: the file's name in messages. duck is borrowed, the caller
 * owns *ret. */
bool parquet_open(struct duck *duck, const char *path, const char *name,
                  const struct download_options *o, struct parquet **ret,
                  struct err *err) MUST_CHECK;
/* Read all rows to the end, as they will be read: the footer does not tell of a damaged page, or of
 * a text that is not UTF-8. */
bool parquet_check(struct parquet *p, struct err *err) MUST_CHECK;
void parquet_free(struct parquet *p);
/* Number of rows. */
int64_t parquet_rows(const struct parquet *p);
const struct columns *parquet_columns(const struct parquet *p); /* borrowed until parquet_free */
/* Begin with the first row; cells get the types of `as`, which are those of the file or wider. */
bool parquet_start(struct parquet *p, const struct columns *as, struct err *err) MUST_CHECK;
/* Read the next row into a sample that the caller owns; *ret is NULL at the end. */
bool parquet_next(struct parquet *p, struct sample **ret, struct err *err) MUST_CHECK;
/* Skip n rows. */
bool parquet_skip(struct parquet *p, int64_t n, struct err *err) MUST_CHECK;
