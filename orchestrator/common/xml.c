/* A pull reader for the XML that AWS sends: elements and text. Comments and processing instructions
 * are skipped, attributes are checked and dropped, <!DOCTYPE and CDATA are errors. */
#include "common/xml.h"

#define XML_NAME_BYTES_MAX ((size_t)128)

void xml_init(struct xml *x, struct str in)
{
    *x = (struct xml){.in = in};
    if (str_starts(in, "\xef\xbb\xbf")) {
        x->at = 3;
    }
}

static struct str rest_of(const struct xml *x)
{
    return (struct str){x->in.p + x->at, x->in.n - x->at};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_blanks(struct xml *x)
{
    while (x->at < x->in.n && is_blank(x->in.p[x->at])) {
        x->at++;
    }
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':' || c == '-' || c == '.' || (uint8_t)c >= 0x80;
}

static bool take_name(struct xml *x, struct str *ret)
{
    size_t start = x->at;
    while (x->at < x->in.n && is_name_char(x->in.p[x->at])) {
        x->at++;
    }
    size_t n = x->at - start;
    if (n == 0 || n > XML_NAME_BYTES_MAX) {
        return false;
    }
    *ret = (struct str){x->in.p + start, n};
    char first = ret->p[0];
    return !(first >= '0' && first <= '9') && first != '-' && first != '.';
}

static bool take_char(struct xml *x, char c)
{
    if (x->at >= x->in.n || x->in.p[x->at] != c) {
        return false;
    }
    x->at++;
    return true;
}

/* Past the next `end`; false when there is none. */
static bool skip_past(struct xml *x, const char *end)
{
    ptrdiff_t at = str_find(rest_of(x), str_of(end));
    if (at < 0) {
        return false;
    }
    x->at += (size_t)at + strlen(end);
    return true;
}

/* name="value" or name='value'; no '<' inside, as XML has it. */
static bool skip_attribute(struct xml *x)
{
    struct str name;
    if (!take_name(x, &name)) {
        return false;
    }
    skip_blanks(x);
    if (!take_char(x, '=')) {
        return false;
    }
    skip_blanks(x);
    char quote = x->at < x->in.n ? x->in.p[x->at] : '\0';
    if (quote != '"' && quote != '\'') {
        return false;
    }
    for (x->at++; x->at < x->in.n && x->in.p[x->at] != quote; x->at++) {
        if (x->in.p[x->at] == '<') {
            return false;
        }
    }
    return take_char(x, quote);
}

static enum xml_event open_element(struct xml *x, struct str *ret)
{
    bool second_root = x->depth == 0 && x->name[0].p != NULL;
    struct str name;
    if (second_root || x->depth == (int)ARRAY_LEN(x->name) || !take_name(x, &name)) {
        return XML_ERROR;
    }
    for (;;) {
        size_t before = x->at;
        skip_blanks(x);
        if (take_char(x, '>')) {
            break;
        }
        if (take_char(x, '/')) {
            if (!take_char(x, '>')) {
                return XML_ERROR;
            }
            x->pending_close = true;
            break;
        }
        if (x->at == before || !skip_attribute(x)) {
            return XML_ERROR;
        }
    }
    x->name[x->depth++] = name;
    *ret = name;
    return XML_OPEN;
}

static enum xml_event close_element(struct xml *x, struct str *ret)
{
    struct str name;
    if (!take_name(x, &name)) {
        return XML_ERROR;
    }
    skip_blanks(x);
    if (!take_char(x, '>') || x->depth == 0 || !str_eq(name, x->name[x->depth - 1])) {
        return XML_ERROR;
    }
    x->depth--;
    *ret = name;
    return XML_CLOSE;
}

/* Text up to the next '<'. Outside of the root only white space may stand. */
static bool take_text(struct xml *x, struct str *ret)
{
    size_t start = x->at;
    while (x->at < x->in.n && x->in.p[x->at] != '<') {
        x->at++;
    }
    *ret = (struct str){x->in.p + start, x->at - start};
    return x->depth > 0 || str_trim(*ret).n == 0;
}

enum xml_event xml_next(struct xml *x, struct str *ret)
{
    if (x->pending_close) {
        x->pending_close = false;
        *ret = x->name[--x->depth];
        return XML_CLOSE;
    }
    while (x->at < x->in.n) {
        struct str rest = rest_of(x);
        if (rest.p[0] != '<') {
            if (!take_text(x, ret)) {
                return XML_ERROR;
            }
            if (x->depth > 0) {
                return XML_TEXT;
            }
        } else if (str_starts(rest, "<?")) {
            if (!skip_past(x, "?>")) {
                return XML_ERROR;
            }
        } else if (str_starts(rest, "<!--")) {
            x->at += strlen("<!--");
            if (!skip_past(x, "-->")) {
                return XML_ERROR;
            }
        } else if (str_starts(rest, "</")) {
            x->at += 2;
            return close_element(x, ret);
        } else {
            x->at++;
            return open_element(x, ret);
        }
    }
    return x->depth == 0 && x->name[0].p != NULL ? XML_END : XML_ERROR;
}

static void add_utf8(struct buf *out, uint32_t c)
{
    if (c < 0x80) {
        buf_add_char(out, (char)c);
    } else if (c < 0x800) {
        buf_add(out, (const char[]){(char)(0xc0 | c >> 6), (char)(0x80 | (c & 63))}, 2);
    } else if (c < 0x10000) {
        char bytes[] = {(char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 63)),
                        (char)(0x80 | (c & 63))};
        buf_add(out, bytes, sizeof bytes);
    } else {
        char bytes[] = {(char)(0xf0 | c >> 18), (char)(0x80 | (c >> 12 & 63)),
                        (char)(0x80 | (c >> 6 & 63)), (char)(0x80 | (c & 63))};
        buf_add(out, bytes, sizeof bytes);
    }
}

/* "#65" or "#x41" to its character; only those XML 1.0 allows, and U+0000 never. */
static bool char_reference(struct str s, uint32_t *ret)
{
    bool hex = s.n > 1 && (s.p[1] == 'x' || s.p[1] == 'X');
    uint32_t v = 0;
    size_t start = hex ? 2 : 1;
    if (s.n <= start || s.n > start + 8) {
        return false;
    }
    for (size_t i = start; i < s.n; i++) {
        char c = s.p[i];
        char folded = (char)(c | 0x20);
        uint32_t d;
        if (c >= '0' && c <= '9') {
            d = (uint32_t)(c - '0');
        } else if (hex && folded >= 'a' && folded <= 'f') {
            d = (uint32_t)(folded - 'a' + 10);
        } else {
            return false;
        }
        v = v * (hex ? 16 : 10) + d;
    }
    bool control = v < 0x20 && v != '\t' && v != '\n' && v != '\r';
    if (control || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff)) {
        return false;
    }
    *ret = v;
    return true;
}

/* The text between '&' and ';'; false when it is not a known entity. */
static bool entity(struct str s, uint32_t *ret)
{
    static const struct {
        const char *name;
        char c;
    } known[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    if (s.n > 0 && s.p[0] == '#') {
        return char_reference(s, ret);
    }
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (str_eq_cstr(s, known[i].name)) {
            *ret = (uint8_t)known[i].c;
            return true;
        }
    }
    return false;
}

/* An unknown reference is kept unchanged: object names must not lose characters. */
void xml_unescape(struct buf *out, struct str s)
{
    while (s.n > 0) {
        const char *amp = memchr(s.p, '&', s.n);
        size_t plain = amp == NULL ? s.n : (size_t)(amp - s.p);
        buf_add(out, s.p, plain);
        s.p += plain;
        s.n -= plain;
        if (s.n == 0) {
            return;
        }
        const char *end = memchr(s.p, ';', MIN(s.n, (size_t)16));
        uint32_t c;
        if (end != NULL && entity((struct str){s.p + 1, (size_t)(end - s.p) - 1}, &c)) {
            add_utf8(out, c);
            s.n -= (size_t)(end - s.p) + 1;
            s.p = end + 1;
        } else {
            buf_add_char(out, '&');
            s.p++;
            s.n--;
        }
    }
}

/* Control characters XML cannot hold are left out, carriage return is kept as a reference. */
void xml_escape(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        switch (c) {
        case '&':
            buf_add_cstr(out, "&amp;");
            break;
        case '<':
            buf_add_cstr(out, "&lt;");
            break;
        case '>':
            buf_add_cstr(out, "&gt;");
            break;
        case '"':
            buf_add_cstr(out, "&quot;");
            break;
        case '\'':
            buf_add_cstr(out, "&#39;");
            break;
        case '\r':
            buf_add_cstr(out, "&#13;");
            break;
        default:
            if ((uint8_t)c >= 0x20 || c == '\t' || c == '\n') {
                buf_add_char(out, c);
            }
        }
    }
}

bool xml_find(struct str doc, const char *name, struct buf *out)
{
    struct xml x;
    struct str s;
    int inside = 0; /* depth of the element found, 0 while looking */
    xml_init(&x, doc);
    for (;;) {
        switch (xml_next(&x, &s)) {
        case XML_OPEN:
            if (inside == 0 && str_eq_cstr(s, name)) {
                inside = x.depth;
            }
            break;
        case XML_TEXT:
            if (inside > 0 && x.depth == inside) {
                xml_unescape(out, s);
            }
            break;
        case XML_CLOSE:
            if (inside > 0 && x.depth < inside) {
                return true;
            }
            break;
        case XML_END:
        case XML_ERROR:
            return false;
        }
    }
}
