/* One part on a few lines. */
#pragma once
#include "cli.h"

void part_print(const struct cli *cli, const json_t *part);
