/* The options of all commands, from options.def. */
#pragma once
#include "cli.h"

/* A number is 1 or more, and 0 where it is not given; a count is 0 or more, and -1 there. */
enum option_kind { OPTION_STR, OPTION_NUM, OPTION_COUNT, OPTION_BOOL };
struct option {
    const char *name;
    char letter; /* 0: none */
    enum option_kind kind;
    size_t offset; /* in struct cli_options */
    const char *value, *choices, *help;
};
const struct option *options_all(size_t *ret_n);
const struct option *option_named(struct str name); /* NULL: there is none */
const struct option *option_lettered(char letter);  /* NULL: there is none */
bool option_of(const struct command *c, const struct option *o);
/* The option whose value is the word behind this one; NULL when it is a switch or has its value. */
const struct option *option_pending(const char *word);
