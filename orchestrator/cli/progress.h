/* Follow a campaign to its end. */
#pragma once
#include "cli.h"

char *progress_bar(const struct cli *cli, int64_t done, int64_t total, int width);
/* One line about a campaign; caller frees. */
char *progress_line(const struct cli *cli, const json_t *campaign);
/* Follow until an end state; the exit status. */
int progress_follow(struct cli *cli, const char *campaign);
