/* A table of text. Columns are as wide as their content; lines are cut at the terminal's width. */
#pragma once
#include "cli.h"

#define TABLE_COLUMNS_MAX 20
struct text_table {
    const char *head[TABLE_COLUMNS_MAX];
    bool right[TABLE_COLUMNS_MAX];
    int columns;
    char ***rows; /* rows[n][columns] */
    size_t n, cap;
};
/* Add a column before the first row; `right` aligns its cells to the right. */
void table_column(struct text_table *t, const char *head, bool right);
/* Add a row. Strings are copied; control characters become '?'. */
void table_row(struct text_table *t, const char *const *cells);
void table_print(const struct cli *cli, struct text_table *t); /* and free it */
size_t text_width(const char *s);                              /* terminal columns */
/* A copy without control characters; caller frees. */
char *text_clean(const char *s);
/* For a table cell on a narrow terminal: the last component of an s3:// path; in a pipe the whole
 * text. Caller frees. */
char *text_short(const struct cli *cli, const char *s);
/* Print head and text, both without control characters, wrapped at the terminal's width. */
void text_print(const struct cli *cli, const char *head, const char *text);
