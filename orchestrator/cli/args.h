/* Parses the command line. */
#pragma once
#include "cli.h"

/* Fill cli from argv. False after an error message. */
bool args_parse(struct cli *cli, int argc, char **argv) MUST_CHECK;
void args_help(const struct command *c);
/* Print the list of verbs, the environment and the exit statuses. */
void args_help_all(void);
