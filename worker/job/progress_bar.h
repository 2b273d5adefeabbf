/* A progress bar of one line: how far, how fast, what failed, how long still. Redrawn in place, as
 * wide as the terminal is at that moment; what does not fit is left out, the least needed first. */
#pragma once
#include "common/buf.h"

#define PROGRESS_BAR_WIDTH_MAX 400 /* columns; wider terminals are taken for so wide */

struct progress_bar_view { /* value */
    const char *unit;      /* "rows" */
    int64_t done, total;   /* total -1: not known */
    int64_t eta_s;         /* -1: not known */
    int64_t failed, transfers, bytes;
    double rate;
};
struct progress_bar_screen { /* value: what standard output is */
    bool on;                 /* a terminal that can be drawn on */
    bool utf8, color;
};
/* Asks isatty, TERM, the locale and NO_COLOR (set and not empty: no colour). */
void progress_bar_screen_of(struct progress_bar_screen *ret);
/* Columns of the terminal now; 80 when it does not say. */
int progress_bar_width(void);
#define PROGRESS_BAR_CLEAR "\r\033[K" /* the line is empty and the cursor at its beginning */
/* The line, at most width - 1 columns, with what moves the cursor to its beginning and clears the
 * rest. Pure. */
void progress_bar_line(const struct progress_bar_view *v, const struct progress_bar_screen *s,
                       int width, struct buf *out);
