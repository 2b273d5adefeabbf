/* Reading a parquet part: columns found by name, row count known first, rows streamed. Faults of
 * the file are ERR_INVALID with words a person can act on. */
#pragma once
#include "duck.h"
#include "options.h"
#include "sample.h"

#define PARQUET_FOOTER_BYTES_MAX (16u << 20)

struct parquet;
/* name: what messages call the file. duck is borrowed. */
bool parquet_open(struct duck *duck, const char *path, const char *name,
                  const struct download_options *o, struct parquet **ret,
                  struct err *err) MUST_CHECK;
void parquet_free(struct parquet *p);
int64_t parquet_rows(const struct parquet *p);
const struct columns *parquet_columns(const struct parquet *p); /* borrowed until parquet_free */
/* The next row as a sample of the caller's; *ret is NULL at the end. */
bool parquet_next(struct parquet *p, struct sample **ret, struct err *err) MUST_CHECK;
/* Pass over n rows. */
bool parquet_skip(struct parquet *p, int64_t n, struct err *err) MUST_CHECK;
