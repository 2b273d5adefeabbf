/* A table of text: columns as wide as they must be, cut at the terminal's width. */
#pragma once
#include "cli.h"

#define TABLE_COLUMNS_MAX 12
struct text_table {
    const char *head[TABLE_COLUMNS_MAX];
    bool right[TABLE_COLUMNS_MAX];
    int columns;
    char ***rows; /* rows[n][columns] */
    size_t n, cap;
};
void table_column(struct text_table *t, const char *head, bool right);
/* Strings are copied; control characters become '?'. */
void table_row(struct text_table *t, const char *const *cells);
void table_print(const struct cli *cli, struct text_table *t); /* and free */
size_t text_width(const char *s);                              /* columns on a terminal */
/* A copy safe for a terminal; caller frees. */
char *text_clean(const char *s);
/* For a cell of a narrow terminal: of s3://bucket/a/b only b is kept. In a pipe all of it; caller
 * frees. */
char *text_short(const struct cli *cli, const char *s);
/* A line of words behind `head`, without control characters; on a terminal broken at its width. */
void text_print(const struct cli *cli, const char *head, const char *text);
