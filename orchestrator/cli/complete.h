/* Completion for the shells: one program answers, the scripts only ask it. */
#pragma once
#include "args.h"

/* Print what the last of the words (those behind "drover", up to the cursor) may become, one a
 * line: the word, a tab and what it is. A line ":files" stands for names of files. */
void complete_words(const struct commands *all, struct cli *cli, int n, char **words);
