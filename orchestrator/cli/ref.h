/* Parses CAMPAIGN[/STAGE[/PART[/ATTEMPT]]]. */
#pragma once
#include "cli.h"

struct ref {
    char campaign[32]; /* "c-7" */
    char stage[80];    /* "" when absent */
    int64_t part;      /* -1 when absent */
    int64_t attempt;   /* 0 when absent */
};
/* Parse text. NULL: the newest campaign that has not ended, else the newest; an empty word, also
 * behind a slash, is an error, as a variable that is not set. A campaign's name is looked up: the
 * newest of that name. So a question and what follows it must be of one call. False after an error
 * message, with the exit status. */
bool ref_read(struct cli *cli, const char *text, struct ref *ret, int *ret_exit) MUST_CHECK;
/* The same for the first argument of `verb`, which changes a campaign as a whole: a stage or a part
 * is an error, since it would change more than was named. */
bool ref_read_whole(struct cli *cli, const char *verb, struct ref *ret, int *ret_exit) MUST_CHECK;
/* The stage, in ref->stage, of a part that is named by its number alone: each stage counts its own
 * from 0. Where several have it, only a person knows which one is meant: false after an error
 * message, with the exit status. */
bool ref_stage_find(struct cli *cli, struct ref *ref, int *ret_exit) MUST_CHECK;
/* ref_read() of the first argument of a command about one part, `verb`, with the part's stage:
 * without a part it is an error. */
bool ref_read_part(struct cli *cli, const char *verb, struct ref *ret, int *ret_exit) MUST_CHECK;
/* The stage of --stage, else of the reference; "" when neither names one. */
const char *ref_stage(const struct cli *cli, const struct ref *ref);
