/* Prints values for people, and JSON as the API returned it. Functions with `buf` return buf. */
#pragma once
#include "cli.h"

const char *jstr(const json_t *o, const char *key);               /* "" when absent or null */
int64_t jint(const json_t *o, const char *key);                   /* 0 when absent */
json_t *jget(const json_t *o, const char *key, const char *key2); /* o.key.key2 */
/* True when o.key is absent or null. */
bool jnull(const json_t *o, const char *key);
#define TEXT_N 32
/* Plain digits. */
const char *number(int64_t n, char buf[static TEXT_N]);
const char *money(int64_t musd, char buf[static TEXT_N]);       /* "12.34" */
const char *when(const char *rfc3339, char buf[static TEXT_N]); /* "2026-01-02 03:04:05" */
const char *span(int64_t seconds, char buf[static TEXT_N]);     /* "8 h 12 m" */
/* "12.3 s" below a minute, "0.123 s" below a second. */
const char *duration(double seconds, char buf[static TEXT_N]);
/* o.elapsed_seconds as a span; "0.4 s" below a minute. */
const char *elapsed(const json_t *o, char buf[static TEXT_N]);
/* span of o.key; "never" when absent or null. */
const char *span_or_never(const json_t *o, const char *key, char buf[static TEXT_N]);
/* " retried" for "retry", and so for each verb that moves parts. */
const char *verb_past(const char *verb);
const char *glyph(const struct cli *cli, const char *state);
/* Indented JSON, or YAML with -o yaml. */
void print_json(const struct cli *cli, const json_t *v);
void print_lines(const json_t *list); /* one JSON object per line */
/* v.key of each v of the list, one per line. */
void print_names(const json_t *list, const char *key);
/* Print v (json) or the list (jsonl). False, nothing printed, for table and name. */
bool print_machine(const struct cli *cli, const json_t *v, const json_t *list);
/* Columns of the terminal at this moment, or of COLUMNS; 80 when neither is known. */
int terminal_width(void);
void say(const char *fmt, ...) PRINTF(1, 2); /* a message on stderr */
int fail(enum cli_exit status, const char *next, const char *fmt, ...) PRINTF(3, 4);
/* True with --yes, or after a y on the terminal; without a terminal false. What cannot be taken
 * back asks this, whatever the output. */
bool confirm(const struct cli *cli, const char *question);
/* Says that nothing was done, since confirm was false; who could not be asked is told of -y, with
 * which it does `verb`. Returns the exit status. */
int declined(const struct cli *cli, const char *verb, const char *text);
