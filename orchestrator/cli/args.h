/* The words of the command line. */
#pragma once
#include "cli.h"

/* Fill cli from argv; false after having said what is wrong. */
bool args_parse(struct cli *cli, int argc, char **argv) MUST_CHECK;
void args_help(const struct command *c);
void args_help_all(void);
