/* Parses the command line. */
#pragma once
#include "cli.h"

struct commands {
    const struct command *at; /* [n] */
    size_t n;
};
/* Fill cli from argv. False after an error message. */
bool args_parse(const struct commands *all, struct cli *cli, int argc, char **argv) MUST_CHECK;
/* NULL: there is no such verb. */
const struct command *command_find(const struct commands *all, const char *verb);
void args_help(const struct command *c);
/* Print the list of verbs, the environment and the exit statuses. */
void args_help_all(const struct commands *all);
