/* A forecast on a few lines, as every answer that has one gives it. */
#pragma once
#include "cli.h"

void forecast_print(const struct cli *cli, const json_t *forecast, const json_t *what_if);
