/* How far the log of a job was read: which stream, which page of it, how many of its lines. A line
 * is taken once, whatever a page returns and whichever droverd goes on reading. Pure.
 *
 * A page begins at `token` and `token_lines` lines into the stream; lines up to `lines` were taken.
 * A token that has expired is dropped: the stream is read from its head and the lines that were
 * taken are left out. */
#pragma once
#include "common/units.h"

#define METRIC_STREAM_MAX 513
#define METRIC_TOKEN_MAX  1025

struct metric_place {
    char stream[METRIC_STREAM_MAX]; /* "": none was found yet */
    char token[METRIC_TOKEN_MAX];   /* "": the head of the stream */
    int64_t token_lines, lines;
};
/* Goes on to the next stream of the job. */
void metric_place_stream(struct metric_place *p, const char *stream);
/* The first line of a page of n that was not taken yet: n when all were. */
int64_t metric_place_first(const struct metric_place *p, int64_t n);
/* Lines of the page up to, not including, `upto` are taken; next_token is what the page came with.
 * Gives true when the stream has no more lines for now. */
bool metric_place_took(struct metric_place *p, int64_t n, int64_t upto, const char *next_token);
/* The token was refused. False: it was the head already, so that the refusal has another cause. */
bool metric_place_expired(struct metric_place *p);
