/* What the server says of a campaign that is held, stuck or cannot run. */
#pragma once
#include "cli.h"

/* The most urgent element of the campaign's guidance; NULL when there is none. */
const json_t *guidance_first(const json_t *campaign);
/* True when it is said to run but no part of it runs or can start. */
bool guidance_blocked(const json_t *campaign);
/* State of a campaign; "waiting" instead of "running" while nothing of it runs and it waits for
 * something. */
const char *state_shown(const json_t *campaign);
/* ", archived" or ", archiving" behind it, else "". */
const char *archive_shown(const json_t *campaign);
/* How far the listing of an input is, "running: 123000 objects in 124 pages, 12 s; PROBLEM"; the
 * caller frees it. */
char *listing_text(const json_t *listing);
/* "TITLE: COMMAND" of the most urgent element, without control characters; NULL: none. The caller
 * frees it. */
char *guidance_line(const json_t *campaign);
/* Print every element with its evidence, since when, and its steps. */
void guidance_print(const struct cli *cli, const json_t *campaign);
