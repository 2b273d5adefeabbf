/* What a program that people run by hand writes to stderr: sentences on a terminal, where log.h
 * writes logfmt by default. Where stderr is no terminal nothing here changes anything. */
#pragma once
#include "buf.h"
#include "log.h"

enum log_style {
    LOG_STYLE_LOGFMT,
    /* "program: warning: event in words: error (key value, ...)"; no info, nothing for programs */
    LOG_STYLE_SENTENCE,
    LOG_STYLE_JSON, /* as where stderr is no terminal */
};
/* What a terminal gets from now on. */
void log_set_terminal_style(enum log_style style);
enum log_style log_terminal_style(void);
/* True when stderr is a terminal that gets sentences. */
bool log_for_people(void);
/* Write a line for people, after the line start of log_set_line_start; nothing unless
 * log_for_people. */
void log_people(const char *fmt, ...) PRINTF(1, 2);
/* Append an event as a sentence, without a newline. */
void log_add_sentence(struct buf *b, const char *program, enum log_level level, const char *event,
                      const struct log_field *fields, size_t n);
/* Append text of others: '?' for each control character (C0, DEL, C1) and each byte that is not
 * UTF-8, so that nothing in it can move a terminal's cursor. */
void log_add_printable(struct buf *b, struct str s);
