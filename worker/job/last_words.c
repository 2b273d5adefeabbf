/* Texts of others may hold control characters: they are made printable. */
#include "last_words.h"
#include "common/cleanup.h"
#include "common/log_people.h"
#include "progress_bar.h"
#include <math.h>

void last_words_count(struct buf *b, int64_t n, int width)
{
    char text[PROGRESS_BAR_TEXT_BYTES];
    progress_bar_count(n, text);
    buf_addf(b, "%*s", width, text);
}

void last_words_line(struct buf *b, int64_t n, const char *what)
{
    last_words_count(b, n, LAST_WORDS_COUNT);
    buf_addf(b, "  %s\n", what);
}

void last_words_share(struct buf *b, int64_t n, int64_t of, const char *what)
{
    last_words_count(b, n, LAST_WORDS_COUNT);
    buf_addf(b, "  %s (%.1f %%)\n", what, of > 0 ? 100.0 * (double)n / (double)of : 0);
}

/* Bytes of the first `columns` characters. */
static size_t bytes_of(struct str s, size_t columns)
{
    size_t at = 0;
    for (size_t n = 0; at < s.n && n < columns; n++) {
        at++;
        while (at < s.n && ((uint8_t)s.p[at] & 0xc0) == 0x80) {
            at++;
        }
    }
    return at;
}

void last_words_cut(struct buf *b, const char *text, size_t columns)
{
    AUTO_BUF struct buf clean = BUF_INIT(LAST_WORDS_BYTES_MAX);
    log_add_printable(&clean, str_of(text));
    bool cut = bytes_of(buf_str(&clean), columns) < clean.n;
    size_t n = bytes_of(buf_str(&clean), cut ? columns - 3 : columns);
    buf_addf(b, "%.*s%s", (int)n, buf_cstr(&clean), cut ? "..." : "");
}

void last_words_bytes(struct buf *b, int64_t n)
{
    char text[PROGRESS_BAR_TEXT_BYTES];
    progress_bar_bytes(n, text);
    buf_add_cstr(b, text);
}

void last_words_finished(struct buf *b, double seconds)
{
    char span[PROGRESS_BAR_TEXT_BYTES];
    progress_bar_span((int64_t)ceil(seconds), span);
    buf_addf(b, "\nFinished in %s.\n\n", span);
}

void last_words_again(struct buf *b, bool stopped, int64_t done, int64_t all, const char *what,
                      const char *where)
{
    if (done == 0 && !stopped) {
        return;
    }
    buf_add_cstr(b, stopped ? "Stopped: " : "");
    last_words_count(b, done, 0);
    if (all >= done) {
        buf_add_cstr(b, " of ");
        last_words_count(b, all, 0);
    }
    buf_addf(b, " %s are finished and kept in '%s'.\n", what, where);
}
