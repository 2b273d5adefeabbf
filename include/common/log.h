/* One line per event on stderr: JSON, or logfmt when stderr is a terminal. `event` is a fixed
 * noun_verb; variable parts go into fields. Control bytes are escaped, lines are <= 4 KiB, fields
 * named like secrets are dropped. Levels: error = someone must act; warn = handled, and how; info =
 * state changes; debug = the rest. Thread-safe. */
#pragma once
#include "err.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
struct log_field {
    const char *key;
    char kind; /* 's' string, 'i' integer, 'b' bool */
    const char *s;
    int64_t i;
};
#define LF_S(key, v) ((struct log_field){(key), 's', (v), 0})
#define LF_I(key, v) ((struct log_field){(key), 'i', NULL, (int64_t)(v)})
#define LF_B(key, v) ((struct log_field){(key), 'b', NULL, (v)})
#define LF_ERR(e)    LF_S("error_code", err_code_name((e)->code)), LF_S("error", (e)->message)

void log_set_level(enum log_level level);
bool log_parse_level(const char *s, enum log_level *ret) MUST_CHECK;
void log_set_program(const char *name); /* borrowed, static */
/* Text written before each line when stderr is a terminal, for programs that draw there (progress
 * bar). Borrowed, static. */
void log_set_line_start(const char *text);
#define log_event(level, event, ...)                                                               \
    log_event_at((level), (event), (const struct log_field[]){__VA_ARGS__},                        \
                 sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))
void log_event_at(enum log_level level, const char *event, const struct log_field *fields,
                  size_t n);
/* From now on lines go through a ring to a thread that writes them, so that a pipe nobody reads or
 * a full disk delays nobody who logs. Lines for which there is no room are dropped and counted. */
bool log_start_writer(struct err *err) MUST_CHECK;
/* Waits until all is written, for a second at most; after that lines are written directly again,
 * unless the writer is still stuck. */
void log_stop_writer(void);
/* Lines dropped: no room in the ring, or refused by what stderr is. */
int64_t log_dropped(void);

/* For lines that repeat: true at first, then after pauses that double from one second to ten
 * minutes. A key that was not asked for during twice its pause starts again. What was held back is
 * counted in the next line written. */
bool log_allow(const char *key);
