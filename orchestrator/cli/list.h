/* Lists of the API's objects as rows of columns. One description of the columns makes the table,
 * the wide table, CSV and the names, so no verb prints rows of its own. */
#pragma once
#include "cli.h"

enum column_kind {
    COLUMN_TEXT,   /* a string, empty when null */
    COLUMN_STATE,  /* the word of a state; in tables with its glyph */
    COLUMN_TIME,   /* RFC 3339; in tables "2026-01-02 03:04:05" */
    COLUMN_NUMBER, /* an integer; null is "-" in tables and empty in CSV, as of all figures */
    COLUMN_REAL,   /* six digits; in CSV all of them */
    COLUMN_RATIO,  /* in tables in percent */
    COLUMN_SPAN,   /* seconds; in tables "8 h 12 m" */
    COLUMN_USD,    /* micro-USD; in CSV with six decimals */
};
struct list_column {
    const char *head;
    enum column_kind kind;
    const char *path; /* of the value in a row, like "budget.spent_micro_usd" */
    /* Instead of the value at `path` in tables, and without a path in CSV, too, where cli->csv is
     * set. The caller frees it. */
    char *(*text)(const struct cli *cli, const json_t *row);
    bool wide; /* in tables only with -o wide or when --columns names it; always in CSV */
    int spare; /* above 0: left out of a terminal too narrow for the table, the highest first */
    const char *csv_with; /* of a figure: CSV adds this one, as it did before that had a column */
    bool csv_last; /* newer than other columns, which keep their place: in CSV behind all of them */
};
struct api_list {
    const struct list_column *columns;
    size_t columns_n;
    const char *name;                                             /* path of what -o name prints */
    char *(*name_text)(const struct cli *cli, const json_t *row); /* instead, where it is set */
};
#define LIST(columns, name)                                                                        \
    {                                                                                              \
        columns, ARRAY_LEN(columns), name, NULL                                                    \
    }
/* True for an output that programs read, or when --columns is wrong: everything is printed (answer
 * as JSON or YAML, or the rows as lines, names or CSV) and *ret_exit is set. */
bool list_machine(const struct cli *cli, const struct api_list *l, const json_t *answer,
                  const json_t *rows, int *ret_exit) MUST_CHECK;
#define LIST_ROWS_MAX 1000 /* of one answer of a list that has no pages */
/* False after an error message: --limit is more than an answer has. */
bool list_limit_check(const struct cli *cli, int64_t max, int *ret_exit) MUST_CHECK;
/* How many rows to ask for: those of --limit; without it `screen` of them for a table, else all
 * that an answer has. False as above. */
bool list_rows(const struct cli *cli, int64_t screen, int64_t *ret, int *ret_exit) MUST_CHECK;
/* Says that the list may go on, when as many rows came as were asked for. */
void list_more(const struct cli *cli, const json_t *rows, int64_t asked);
/* For a column: "4 x ml.c5.xlarge" of the row's instances and instance_type. */
char *list_instances(const struct cli *cli, const json_t *row);
/* The rows as a table for people. */
void list_table(const struct cli *cli, const struct api_list *l, const json_t *answer);
/* True when --columns and --sort name columns of the list. Otherwise prints why not and sets
 * *ret_exit. */
bool list_columns_check(const struct cli *cli, const struct api_list *l, int *ret_exit) MUST_CHECK;
/* The member of rows that a column shows; the name itself when it shows none. */
const char *list_column_member(const struct api_list *l, const char *column);
/* The rows as -o name. */
void list_names(const struct cli *cli, const struct api_list *l, const json_t *rows);
/* For a list of several pages: the rows as CSV, with the line of heads when `first`. */
void list_csv(const struct cli *cli, const struct api_list *l, const json_t *rows, bool first);
