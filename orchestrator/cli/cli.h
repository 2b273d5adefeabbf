/* The command line: one struct for the parsed request, one function per verb. Data goes to stdout,
 * messages to stderr. */
#pragma once
#include "common/json.h"
#include "common/str.h"

#define CLI_ARGS_MAX 4

enum cli_output { OUT_TABLE, OUT_JSON, OUT_JSONL, OUT_NAME };
struct cli_options {
#define CLI_TYPE_STR                                       const char *
#define CLI_TYPE_NUM                                       int64_t
#define CLI_TYPE_COUNT                                     int64_t
#define CLI_TYPE_BOOL                                      bool
#define X(name, letter, kind, field, value, choices, help) CLI_TYPE_##kind field;
#include "options.def"
#undef X
};
struct client;
struct cli {
    const struct command *command;
    struct cli_options opt;
    enum cli_output out;
    const char *args[CLI_ARGS_MAX];
    int args_n;
    struct client *client;
    bool out_tty, talk_tty, color, utf8;
    bool draws;         /* lines on standard output can be drawn over */
    bool patient;       /* keep retrying while the server is unreachable */
    bool for_readers;   /* following ends when nobody reads it; else its end is waited for */
    int64_t blocked_us; /* following ends when nothing can run for so long; 0: it waits */
    int width;
    bool begun;           /* the id is printed; progress_follow prints the rest */
    bool csv, wide, yaml; /* -o csv and wide: tables; yaml: what json prints */
};
struct command {
    const char *verb;
    int (*run)(struct cli *cli); /* returns the exit status */
    const char *args, *options, *summary, *examples;
};
#define X(verb, fn, args, options, summary, examples) int fn(struct cli *cli);
#include "commands.def"
#undef X

enum cli_exit {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NOT_FOUND = 3,
    EXIT_AUTH = 4,
    EXIT_CONFLICT = 5,
    EXIT_REFUSED = 6,
    EXIT_UNREACHABLE = 7,
    EXIT_WAIT_TIMEOUT = 8,
    EXIT_PARTS_FAILED = 10,
    EXIT_CANCELLED = 11,
    EXIT_INTERRUPTED = 130,
    EXIT_PIPE = 141, /* nobody reads its output any more, as of programs that SIGPIPE ends */
};
