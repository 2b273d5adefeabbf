/* Prints a forecast. */
#pragma once
#include "cli.h"

/* Print the forecast of an API answer, and the what-if forecast next to it unless NULL. */
void forecast_print(const struct cli *cli, const json_t *forecast, const json_t *what_if);
