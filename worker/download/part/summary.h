/* The last words of a download: for people on a terminal, for programs as one object. */
#pragma once
#include "job/progress_report.h"
#include "job/stats.h"
#include "options.h"

#define SUMMARY_BYTES_MAX   (1u << 20)
#define SUMMARY_TEXTS_MAX   10 /* failures named, the most frequent first */
#define SUMMARY_WIDTH_LEAST 40

struct summary { /* value; all borrowed */
    const struct download_options *o;
    const struct stats *total; /* of all rows, sorted */
    int64_t rows_before;       /* of these, finished by earlier runs */
    int64_t shards;
    double seconds;
    const char *second_pass; /* command; NULL: no second pass is possible */
};

/* Append the line of progress, in img2dataset's words, without a newline. Pure. */
void summary_line(const struct progress *p, double seconds, double rate, struct buf *out);
/* Append the text, lines of at most width - 1 columns except paths and the command. Pure. */
void summary_text(const struct summary *s, int width, struct buf *out);
/* Append {"event":"summary",...} and a newline. Pure. */
void summary_json(const struct summary *s, struct buf *out);
/* Append {"event":"already_finished",...} and a newline: nothing was left to do. Pure. */
void summary_json_already(const struct download_options *o, struct buf *out);
/* Tell it as the report is told. */
void summary_tell_already(const struct download_options *o);
/* Append what is told after a stop or a failure, of `rows` rows of which `done` are durable;
 * nothing when none is. Pure. */
void summary_again(const struct download_options *o, bool stopped, int64_t done, int64_t rows,
                   struct buf *out);
/* How to go on after a stop. */
const char *summary_how_to_go_on(const struct download_options *o);
