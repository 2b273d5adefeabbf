/* Follows a campaign to its end. */
#pragma once
#include "cli.h"

/* A bar of `width` columns; caller frees. */
char *progress_bar(const struct cli *cli, int64_t done, int64_t total, int width);
/* One line about a campaign; caller frees. */
char *progress_line(const struct cli *cli, const json_t *campaign);
/* Print the id of the campaign at once, before it is followed. JSON and YAML stay one document:
 * progress_follow prints the rest of it. */
void progress_begin(struct cli *cli, const json_t *campaign);
/* Follow the campaign until it is in an end state. Returns the exit status. */
int progress_follow(struct cli *cli, const char *campaign);
