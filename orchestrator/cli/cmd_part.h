/* Prints one part. */
#pragma once
#include "cli.h"

/* "c-7/download/17", what every verb takes for this part; the caller frees it. */
char *part_name(const json_t *part);
/* Print a part (the API's JSON) with its attempts. */
void part_print(const struct cli *cli, const json_t *part);
