/* Which columns of an input are read, as what, by the settings. Pure. */
#pragma once
#include "options.h"
#include "sample.h"

struct file_column { /* borrowed texts */
    const char *name;
    const char *type; /* SQL; "NULL": the file has no value of it */
};
/* The columns of a file: file_i[i] is the index in the file of each cell of a row. */
struct column_choice {
    struct columns columns;
    int file_i[COLUMNS_MAX + 1];
};
/* name: the file's in messages; retry: the file is an earlier output. All missing columns are
 * reported at once: ERR_INVALID. Release with columns_done. */
bool column_choice(const struct file_column *file, size_t file_n, const char *name, bool retry,
                   const struct download_options *o, struct column_choice *ret,
                   struct err *err) MUST_CHECK;
/* True when the settings may choose this column, so that its type is needed. */
bool column_is_asked(const struct download_options *o, const char *name);
/* Cells of a row: the columns and the hash to verify. */
int columns_cells(const struct columns *c);
enum cell_kind columns_kind(const struct columns *c, int cell_i);
/* Widen the types of `to` so that the same columns of another file fit: integers and reals become
 * reals, a column without a value takes the other's type; with texts anything becomes a text.
 * ERR_INVALID names the column and both types. */
bool columns_widen(struct columns *to, const struct columns *other, bool texts,
                   struct err *err) MUST_CHECK;
void columns_copy(struct columns *to, const struct columns *from);
void columns_done(struct columns *c);
