/* Reads a csv, tsv, txt, json or jsonl file: a first pass checks all of it, counts its rows and
 * finds the types of its columns; a second gives the rows one by one. */
#pragma once
#include "column_choice.h"
#include "download/text/records.h"

struct text_rows;
/* Scan `path`; name: the file's name in messages. Faults of the file are ERR_INVALID with their
 * line. The caller frees *ret. */
bool text_rows_open(const char *path, const char *name, enum records_format format, bool gzip,
                    const struct download_options *o, struct text_rows **ret,
                    struct err *err) MUST_CHECK;
void text_rows_free(struct text_rows *t);
int64_t text_rows_count(const struct text_rows *t);
const struct columns *text_rows_columns(const struct text_rows *t); /* borrowed */
/* Begin with the first row; cells get the types of `as`, which are those of the file or wider. */
bool text_rows_start(struct text_rows *t, const struct columns *as, struct err *err) MUST_CHECK;
/* Read the next row into a sample that the caller owns; *ret is NULL at the end. */
bool text_rows_next(struct text_rows *t, struct sample **ret, struct err *err) MUST_CHECK;
/* Skip n rows. */
bool text_rows_skip(struct text_rows *t, int64_t n, struct err *err) MUST_CHECK;
