/* Surrogate pairs of JSON texts: "\ud83d\ude00" becomes the one character it stands for. */
#include "yaml_pairs.h"

#define PAIR_CHARS 12 /* of two escapes; one is left of them */

/* The four digits of an escape \uXXXX at p, or -1. */
static int32_t escape_at(const char *p)
{
    uint8_t bytes[2];
    if (p[0] != '\\' || p[1] != 'u' || !str_unhex((struct str){p + 2, 4}, bytes, 2)) {
        return -1;
    }
    return bytes[0] << 8 | bytes[1];
}

/* The character of a pair at the start of s, 0 when there is none. */
static uint32_t pair_at(struct str s)
{
    if (s.n < PAIR_CHARS) {
        return 0;
    }
    int32_t high = escape_at(s.p);
    int32_t low = escape_at(s.p + PAIR_CHARS / 2);
    if (high < 0xd800 || high > 0xdbff || low < 0xdc00 || low > 0xdfff) {
        return 0;
    }
    return 0x10000 + (((uint32_t)high - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
}

static void add_utf8(struct buf *out, uint32_t c)
{
    char bytes[4] = {(char)(0xf0 | c >> 18), (char)(0x80 | (c >> 12 & 63)),
                     (char)(0x80 | (c >> 6 & 63)), (char)(0x80 | (c & 63))};
    buf_add(out, bytes, sizeof bytes);
}

static struct position next_pos(struct position pos, char c)
{
    if (c == '\n') {
        return (struct position){pos.line + 1, 1};
    }
    pos.column += ((uint8_t)c & 0xc0) != 0x80 ? 1 : 0;
    return pos;
}

bool yaml_pairs_join(struct str in, struct yaml_pairs *ret)
{
    struct str start = str_trim(in);
    if (start.n == 0 || (start.p[0] != '{' && start.p[0] != '[')) {
        return false;
    }
    struct yaml_pairs p = {.text = BUF_INIT(in.n)};
    struct position pos = {1, 1};
    bool in_string = false;
    for (size_t i = 0; i < in.n;) {
        struct str rest = {in.p + i, in.n - i};
        uint32_t c = in_string ? pair_at(rest) : 0;
        if (c != 0) {
            if ((p.n & (p.n - 1)) == 0) { /* full at each power of two */
                p.at = xrealloc(p.at, MAX(1, 2 * p.n) * sizeof *p.at);
            }
            p.at[p.n++] = pos;
            add_utf8(&p.text, c);
            pos.column++;
            i += PAIR_CHARS;
            continue;
        }
        size_t n = in_string && rest.p[0] == '\\' && rest.n > 1 ? 2 : 1;
        in_string = in_string != (rest.p[0] == '"');
        for (size_t j = 0; j < n; j++) {
            pos = next_pos(pos, rest.p[j]);
        }
        buf_add(&p.text, rest.p, n);
        i += n;
    }
    if (p.n == 0) {
        yaml_pairs_done(&p);
        return false;
    }
    *ret = p;
    return true;
}

void yaml_pairs_done(struct yaml_pairs *p)
{
    buf_done(&p->text);
    free(p->at);
    *p = (struct yaml_pairs){0};
}

/* How many pairs stand before pos, by bisection: it is asked for every value of a text, and all may
 * be in one line. */
static size_t pairs_before(const struct yaml_pairs *p, struct position pos)
{
    size_t low = 0;
    size_t high = p->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct position *at = &p->at[middle];
        if (at->line < pos.line || (at->line == pos.line && at->column < pos.column)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct position yaml_pairs_origin(const struct yaml_pairs *p, struct position pos)
{
    size_t in_line = pairs_before(p, pos) - pairs_before(p, (struct position){pos.line, 0});
    return (struct position){pos.line, pos.column + (int)in_line * (PAIR_CHARS - 1)};
}
