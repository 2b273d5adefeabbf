/* Prints a forecast. */
#pragma once
#include "cli.h"

/* Before a change: end, cost and what binds of an answer of /forecast, now and (with its what_if)
 * then, and whether it ends by this deadline (RFC 3339; "": none). */
void forecast_preview_print(const struct cli *cli, const json_t *answer, const char *deadline);
/* Print the forecast of an API answer, and the what-if forecast next to it unless NULL. */
void forecast_print(const struct cli *cli, const json_t *forecast, const json_t *what_if);
