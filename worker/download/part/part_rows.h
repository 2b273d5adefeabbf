/* The rows of a part: of one file, or of several one after the other, in any input format. Shards
 * do not span files: the last shard of each may be short, as img2dataset's are. */
#pragma once
#include "duck.h"
#include "input.h"
#include "options.h"
#include "sample.h"

struct part_rows;
/* Check all files, count their rows and choose the columns, with types that fit all of them.
 * duck and in are borrowed, the caller owns *ret. ERR_INVALID with a text for the user. */
bool part_rows_open(struct duck *duck, const struct input *in, const struct download_options *o,
                    struct part_rows **ret, struct err *err) MUST_CHECK;
void part_rows_free(struct part_rows *p);
/* Rows of each file of the input; borrowed. */
const int64_t *part_rows_of_files(const struct part_rows *p);
const struct columns *part_rows_columns(const struct part_rows *p); /* borrowed */
/* Read the next row into a sample that the caller owns; *ret is NULL at the end. ERR_INVALID when a
 * file has another number of rows than it had. */
bool part_rows_next(struct part_rows *p, struct sample **ret, struct err *err) MUST_CHECK;
/* Skip n rows, all of the current file. */
bool part_rows_skip(struct part_rows *p, int64_t n, struct err *err) MUST_CHECK;
