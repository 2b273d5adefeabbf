/* Prints a forecast. */
#pragma once
#include "cli.h"

/* Print the forecast of an API answer, and the what-if forecast next to it unless NULL. */
/* Whether the campaign ends by its deadline (RFC 3339), by the same forecast. */
void deadline_print(const struct cli *cli, const char *deadline, const json_t *forecast);
void forecast_print(const struct cli *cli, const json_t *forecast, const json_t *what_if);
