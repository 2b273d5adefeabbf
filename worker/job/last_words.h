/* What a command run by hand says at its end: words and figures that download, copy and index
 * share. Pure. */
#pragma once
#include "common/buf.h"

#define LAST_WORDS_BYTES_MAX (1u << 20)
#define LAST_WORDS_COUNT     13 /* columns of a count in a list */
#define LAST_WORDS_GO_ON     "Run the same command again to go on."

/* Append 1,234,567, right-aligned in width columns. */
void last_words_count(struct buf *b, int64_t n, int width);
/* Append a line of a list: the count and what it counts. */
void last_words_line(struct buf *b, int64_t n, const char *what);
/* The same with the share of `of` in percent. */
void last_words_share(struct buf *b, int64_t n, int64_t of, const char *what);
/* Append the text of others, printable and at most `columns` characters, cut with "...". */
void last_words_cut(struct buf *b, const char *text, size_t columns);
/* Append a size as people read it: "1.2 GB". */
void last_words_bytes(struct buf *b, int64_t n);
/* Append "Finished in 1m02s." between two empty lines. */
void last_words_finished(struct buf *b, double seconds);
/* Append what is told after a stop or a failure of a command that goes on where it was: `done` of
 * `all` `what` ("files") are finished and kept in `where`. Nothing when none is, unless stopped. */
void last_words_again(struct buf *b, bool stopped, int64_t done, int64_t all, const char *what,
                      const char *where);
