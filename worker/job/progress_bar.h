/* A one-line progress bar: progress, speed, failures, remaining time. Redrawn in place at the
 * terminal's current width; what does not fit is left out, least important first. */
#pragma once
#include "common/buf.h"

#define PROGRESS_BAR_WIDTH_MAX 400 /* columns; wider terminals count as this wide */

struct progress_bar_view { /* value */
    const char *unit;      /* "rows" */
    int64_t done, total;   /* total -1: not known */
    int64_t eta_s;         /* -1: not known */
    int64_t failed, transfers, bytes;
    double rate;
};
struct progress_bar_screen { /* a value: properties of standard output */
    bool on;                 /* a terminal that can be drawn on */
    bool utf8, color;
};
/* Detect with isatty, TERM, the locale and NO_COLOR (set and not empty: no colour). */
void progress_bar_screen_of(struct progress_bar_screen *ret);
/* Current columns of the terminal behind fd; 80 when unknown. */
int progress_bar_width(int fd);
#define PROGRESS_BAR_TEXT_BYTES 64
/* 1234567 as "1,234,567". */
void progress_bar_count(int64_t n, char out[static PROGRESS_BAR_TEXT_BYTES]);
/* A time span in its two largest units: "1h02m". */
void progress_bar_span(int64_t seconds, char out[static PROGRESS_BAR_TEXT_BYTES]);
/* A size in the largest fitting unit: "1.2 GB". */
void progress_bar_bytes(int64_t n, char out[static PROGRESS_BAR_TEXT_BYTES]);
/* What a line of the log begins with while the bar is shown: it clears the bar, or without colour,
 * where neither this nor the bar has an escape code, it begins a new line. */
const char *progress_bar_line_start(const struct progress_bar_screen *s);
/* Append the line, at most width - 1 columns, from the beginning of the terminal's line on, and
 * what clears the rest. Pure. */
void progress_bar_line(const struct progress_bar_view *v, const struct progress_bar_screen *s,
                       int width, struct buf *out);
