/* Letting a campaign go on after another change; what became of an archive. */
#pragma once
#include "cli.h"

/* Let a campaign go on (POST :resume). Returns an exit status; a failure was printed. */
int resume_after(struct cli *cli, const char *campaign);
/* Of an archived campaign: where its rows are written before they are deleted, and what is in the
 * way. */
void archive_print(const struct cli *cli, const json_t *campaign);
