/* Letting a campaign go on after another change. */
#pragma once
#include "cli.h"

/* Let a campaign go on (POST :resume). Returns an exit status; a failure was printed. */
int resume_after(struct cli *cli, const char *campaign);
