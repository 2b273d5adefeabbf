/* A list that the API answers in pages. */
#pragma once
#include "list.h"

struct pages {
    const struct api_list *list;
    const char *path;  /* like "/v1/audit" */
    const char *query; /* "", or "&cause=oom" */
    const char *key;   /* of the rows in a page */
    int64_t screen;    /* rows of a table without --limit; every other output has all rows */
    const char *more;  /* the command without its options, for the rows that a table leaves out */
    int64_t most;      /* rows that it proposes, with the options that were given */
    const char *none;  /* NULL, or what is said below a table without rows */
    /* NULL, or what stands above a table */
    void (*above)(const struct cli *cli, const json_t *rows);
    bool sorts_here; /* the server knows no order for --sort: all rows that are shown are sorted */
};
/* Read the pages up to --limit and print them; lines, names and CSV page by page (in an order of
 * drover's own at the end), JSON as one page with all rows. Returns the exit status. */
int pages_print(struct cli *cli, const struct pages *p);
/* "&name=value" for each pair with a value. The caller frees it. */
char *pages_query(const char *const (*pairs)[2], size_t n);
