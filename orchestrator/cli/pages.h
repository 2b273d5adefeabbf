/* A list that the API answers in pages. */
#pragma once
#include "list.h"

struct pages {
    const struct api_list *list;
    const char *path;  /* like "/v1/audit" */
    const char *query; /* "", or "&cause=oom" */
    const char *key;   /* of the rows in a page */
    int64_t screen;    /* rows of a table without --limit; every other output has all rows */
    const char *more;  /* what to write for the rows that a table leaves out */
};
/* Read the pages up to --limit and print them; lines, names and CSV page by page, JSON as one page
 * with all rows. Returns the exit status. */
int pages_print(struct cli *cli, const struct pages *p);
/* "&name=value" for each pair with a value. The caller frees it. */
char *pages_query(const char *const (*pairs)[2], size_t n);
