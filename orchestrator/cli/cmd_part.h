/* Prints one part. */
#pragma once
#include "cli.h"

/* Print a part (the API's JSON) with its attempts. */
void part_print(const struct cli *cli, const json_t *part);
