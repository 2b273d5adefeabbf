/* What a CAMPAIGN[/STAGE[/PART[/ATTEMPT]]] names. */
#pragma once
#include "cli.h"

struct ref {
    char campaign[32]; /* "c-7" */
    char stage[80];    /* "" when not said */
    int64_t part;      /* -1 */
    int64_t attempt;   /* 0 */
};
/* text NULL: the newest campaign that has not ended, else the newest. A name is looked up. */
bool ref_read(struct cli *cli, const char *text, struct ref *ret, int *ret_exit) MUST_CHECK;
