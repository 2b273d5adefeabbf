/* Draws the progress bar. */
#include "progress_bar.h"
#include "common/cleanup.h"
#include <langinfo.h>
#include <locale.h>
#include <sys/ioctl.h>

#define BAR_CELLS_MIN 8
#define BAR_CELLS_MAX 40
#define BAR_RANK      4 /* pieces from this rank on give way to the bar */
#define PIECE_BYTES   PROGRESS_BAR_TEXT_BYTES

/* As the user's locale says, without setting it: libidn2 needs the one of url_setup. */
static bool shows_utf8(void)
{
    locale_t users = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    bool ret = users != (locale_t)0 && strcmp(nl_langinfo_l(CODESET, users), "UTF-8") == 0;
    if (users != (locale_t)0) {
        freelocale(users);
    }
    return ret;
}

void progress_bar_screen_of(struct progress_bar_screen *ret)
{
    const char *term = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    bool dumb = term == NULL || term[0] == '\0' || strcmp(term, "dumb") == 0;
    *ret = (struct progress_bar_screen){.on = isatty(STDOUT_FILENO) == 1 && !dumb,
                                        .utf8 = shows_utf8(),
                                        .color = no_color == NULL || no_color[0] == '\0'};
}

int progress_bar_width(int fd)
{
    struct winsize w;
    bool known = ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 0;
    return known ? MIN((int)w.ws_col, PROGRESS_BAR_WIDTH_MAX) : 80;
}

void progress_bar_count(int64_t n, char out[static PIECE_BYTES])
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%lld", (long long)n);
    int at = 0;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0 && digits[i - 1] != '-') {
            out[at++] = ',';
        }
        out[at++] = digits[i];
    }
    out[at] = '\0';
}

void progress_bar_span(int64_t s, char out[static PIECE_BYTES])
{
    long long days = s / 86400;
    long long hours = s / 3600 % 24;
    long long minutes = s / 60 % 60;
    if (days > 0) {
        (void)snprintf(out, PIECE_BYTES, "%lldd%02lldh", days, hours);
    } else if (hours > 0) {
        (void)snprintf(out, PIECE_BYTES, "%lldh%02lldm", hours, minutes);
    } else if (minutes > 0) {
        (void)snprintf(out, PIECE_BYTES, "%lldm%02llds", minutes, (long long)(s % 60));
    } else {
        (void)snprintf(out, PIECE_BYTES, "%llds", (long long)s);
    }
}

void progress_bar_bytes(int64_t n, char out[static PIECE_BYTES])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double v = (double)n;
    size_t u = 0;
    while (v >= 999.5 && u + 1 < ARRAY_LEN(units)) {
        v /= 1000;
        u++;
    }
    (void)snprintf(out, PIECE_BYTES, v < 9.95 && u > 0 ? "%.1f %s" : "%.0f %s", v, units[u]);
}

/* Pieces in display order. The highest rank is left out first, rank 0 last. */
struct piece {
    int rank;
    char text[3 * PIECE_BYTES];
};
enum { PIECE_COUNT = 7 };

static void pieces_of(const struct progress_bar_view *v, struct piece p[static PIECE_COUNT])
{
    char a[PIECE_BYTES];
    char b[PIECE_BYTES];
    memset(p, 0, PIECE_COUNT * sizeof *p);
    progress_bar_count(v->done, a);
    if (v->total >= 0) {
        int64_t percent = v->total > 0 ? (int64_t)((__int128)v->done * 100 / v->total) : 100;
        (void)snprintf(p[0].text, sizeof p[0].text, "%3lld %%", (long long)percent);
        progress_bar_count(v->total, b);
        (void)snprintf(p[1].text, sizeof p[1].text, "%s/%s %s", a, b, v->unit);
    } else {
        (void)snprintf(p[1].text, sizeof p[1].text, "%s %s", a, v->unit);
    }
    p[1].rank = 2;
    if (v->rate > 0) {
        (void)snprintf(p[2].text, sizeof p[2].text, v->rate < 9.95 ? "%.1f/s" : "%.0f/s", v->rate);
    }
    p[2].rank = 3;
    if (v->failed > 0) {
        progress_bar_count(v->failed, a);
        (void)snprintf(p[3].text, sizeof p[3].text, "%s failed", a);
    }
    p[3].rank = 4;
    if (v->transfers > 0) {
        (void)snprintf(p[4].text, sizeof p[4].text, "%lld open", (long long)v->transfers);
    }
    p[4].rank = 6;
    if (v->bytes > 0) {
        progress_bar_bytes(v->bytes, p[5].text);
    }
    p[5].rank = 5;
    if (v->eta_s >= 0) {
        progress_bar_span(v->eta_s, a);
        (void)snprintf(p[6].text, sizeof p[6].text, "ETA %s", a);
    }
    p[6].rank = 1;
}

static void cells(int64_t done, int64_t total, int n, const struct progress_bar_screen *s,
                  struct buf *out)
{
    int full = total > 0 ? (int)((__int128)MIN(done, total) * n / total) : 0;
    buf_add_cstr(out, s->color ? "\033[32m" : "");
    for (int i = 0; i < n; i++) {
        if (s->color && i == full) {
            buf_add_cstr(out, "\033[2m");
        }
        buf_add_cstr(out, s->utf8 ? (i < full ? "\u2588" : "\u2591") : (i < full ? "#" : "-"));
    }
    buf_add_cstr(out, s->color ? "\033[0m" : "");
}

void progress_bar_line(const struct progress_bar_view *v, const struct progress_bar_screen *s,
                       int width, struct buf *out)
{
    struct piece p[PIECE_COUNT];
    bool shown[PIECE_COUNT] = {false};
    int room = MAX(width, 1) - 1; /* keep the last column free: some terminals wrap there */
    int used = 0;
    pieces_of(v, p);
    for (int rank = 0; rank < PIECE_COUNT; rank++) {
        for (int i = 0; i < PIECE_COUNT; i++) {
            int n = (int)strlen(p[i].text);
            int with = used + (used > 0 ? 2 : 0) + n;
            int kept = rank >= BAR_RANK && v->total >= 0 ? BAR_CELLS_MIN + 2 : 0;
            if (p[i].rank == rank && n > 0 && with + kept <= room) {
                shown[i] = true;
                used = with;
            }
        }
    }
    int bar = v->total >= 0 ? MIN(room - used - 2, BAR_CELLS_MAX) : 0;
    const char *between = "\r";
    for (int i = 0; i < PIECE_COUNT; i++) {
        if (shown[i]) {
            buf_add_cstr(out, between);
            buf_add_cstr(out, p[i].text);
            between = "  ";
        }
        if (i == 0 && bar >= BAR_CELLS_MIN) {
            buf_add_cstr(out, between);
            cells(v->done, v->total, bar, s, out);
            between = "  ";
        }
    }
    if (s->color) {
        buf_add_cstr(out, "\033[K");
        return;
    }
    for (int i = used + (bar >= BAR_CELLS_MIN ? bar + 2 : 0); i < room; i++) {
        buf_add_char(out, ' '); /* over what stood there; an escape code would style the terminal */
    }
}

const char *progress_bar_line_start(const struct progress_bar_screen *s)
{
    if (!s->on) {
        return "";
    }
    return s->color ? "\r\033[K" : "\n";
}
