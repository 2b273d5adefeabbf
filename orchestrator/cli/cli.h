/* The command line: one struct with what was asked, one function a verb. Data goes to stdout, talk
 * to stderr. */
#pragma once
#include "common/json.h"
#include "common/str.h"

#define CLI_ARGS_MAX 4

enum cli_output { OUT_TABLE, OUT_JSON, OUT_JSONL, OUT_NAME };
struct cli_options {
#define CLI_TYPE_STR                              const char *
#define CLI_TYPE_NUM                              int64_t
#define CLI_TYPE_BOOL                             bool
#define X(name, letter, kind, field, value, help) CLI_TYPE_##kind field;
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
    bool patient; /* a server that is away for a while is waited for */
    int width;
};
struct command {
    const char *verb;
    int (*run)(struct cli *cli); /* gives the exit status */
    const char *args, *options, *summary, *examples;
};
extern const struct command command_table[];
extern const size_t command_table_n;
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
};

/* args.c: fill cli from argv; false after having said what is wrong. */
bool args_parse(struct cli *cli, int argc, char **argv) MUST_CHECK;
void args_help(const struct command *c);
void args_help_all(void);

/* client.c: blocking calls of the API. */
struct reply {
    int status;
    json_t *json;    /* NULL when the body is none */
    struct buf text; /* as it came */
    char etag[128];
};
void reply_done(struct reply *r); /* cleanup function */
bool client_new(struct client **ret, struct err *err) MUST_CHECK;
void client_free(struct client *c);
const char *client_url(const struct client *c);
struct call {
    const char *method, *path; /* path with its query, from /v1 or / on */
    struct str body;
    const char *type;     /* NULL: application/json */
    const char *key;      /* Idempotency-Key: the call is repeated when the server is away */
    const char *if_match; /* NULL: none */
    bool no_token;
    bool (*on_data)(void *ctx, struct str data); /* a stream */
    void *ctx;
    int64_t timeout_us; /* 0: 60 s */
};
/* True when a 2xx came. Otherwise says why on stderr (unless `quiet`) and gives the exit status in
 * *ret_exit. */
bool client_call(struct cli *cli, const struct call *call, struct reply *ret,
                 int *ret_exit) MUST_CHECK;
bool client_try(struct cli *cli, const struct call *call, struct reply *ret,
                struct err *err) MUST_CHECK;
int client_explain(const struct cli *cli, const struct reply *r); /* exit status of a refusal */
/* GET path (printf) into *ret. */
bool client_get(struct cli *cli, struct reply *ret, int *ret_exit, const char *fmt, ...) MUST_CHECK
    PRINTF(4, 5);
void key_random(char ret[static 37]);

/* ref.c: what a CAMPAIGN[/STAGE[/PART[/ATTEMPT]]] names. */
struct ref {
    char campaign[32]; /* "c-7" */
    char stage[80];    /* "" when not said */
    int64_t part;      /* -1 */
    int64_t attempt;   /* 0 */
};
/* text NULL: the newest campaign that has not ended, else the newest. A name is looked up. */
bool ref_read(struct cli *cli, const char *text, struct ref *ret, int *ret_exit) MUST_CHECK;

/* table.c: columns as wide as they must be, cut at the terminal's width. */
#define TABLE_COLUMNS_MAX 12
struct table {
    const char *head[TABLE_COLUMNS_MAX];
    bool right[TABLE_COLUMNS_MAX];
    int columns;
    char ***rows; /* rows[n][columns] */
    size_t n, cap;
};
void table_column(struct table *t, const char *head, bool right);
/* Strings are copied; control characters become '?'. */
void table_row(struct table *t, const char *const *cells);
void table_print(const struct cli *cli, struct table *t); /* and free */
size_t text_width(const char *s);                         /* columns on a terminal */
/* A copy safe for a terminal; caller frees. */
char *text_clean(const char *s);
/* For a cell of a narrow terminal: of s3://bucket/a/b only b is kept. In a pipe all of it; caller
 * frees. */
char *text_short(const struct cli *cli, const char *s);
/* A line of words behind `head`, without control characters; on a terminal broken at its width. */
void text_print(const struct cli *cli, const char *head, const char *text);

/* print.c: values as people read them. */
const char *jstr(const json_t *o, const char *key);               /* "" when absent or null */
int64_t jint(const json_t *o, const char *key);                   /* 0 when absent */
json_t *jget(const json_t *o, const char *key, const char *key2); /* o.key.key2 */
bool jnull(const json_t *o, const char *key);
#define TEXT_N 32
const char *money(int64_t musd, char buf[static TEXT_N]);       /* "12.34" */
const char *when(const char *rfc3339, char buf[static TEXT_N]); /* "2026-01-02 03:04:05" */
const char *span(int64_t seconds, char buf[static TEXT_N]);     /* "8 h 12 m" */
const char *glyph(const struct cli *cli, const char *state);
void print_json(const json_t *v);
void print_lines(const json_t *list); /* JSON lines */
/* What json and jsonl print for one object; false for table and name. */
bool print_machine(const struct cli *cli, const json_t *v, const json_t *list);
void say(const char *fmt, ...) PRINTF(1, 2); /* a line of talk */
int fail(enum cli_exit status, const char *next, const char *fmt, ...) PRINTF(3, 4);
/* y/N on the terminal. */
bool confirm(const struct cli *cli, const char *question);

/* cmd_ahead.c: a forecast on a few lines, as every answer that has one gives it. */
void forecast_print(const struct cli *cli, const json_t *forecast, const json_t *what_if);

/* progress.c */
char *progress_bar(const struct cli *cli, int64_t done, int64_t total, int width);
/* One line about a campaign; caller frees. */
char *progress_line(const struct cli *cli, const json_t *campaign);
/* Follow until an end state; the exit status. */
int progress_follow(struct cli *cli, const char *campaign);
bool timeout_read(const struct cli *cli, int64_t *ret_us); /* -1: none; says what is wrong */
bool interrupted(void);
void interrupt_catch(void);
void pause_ms(int ms);
