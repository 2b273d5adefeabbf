/* Cleans and splits URLs with libcurl's parser. The same parser fetches them, so both agree on
 * where the host ends. */
#include "url.h"
#include "common/addr.h"
#include "common/cleanup.h"
#include "download/part/sample.h"
#include <curl/curl.h>
#include <locale.h>
#include <stdarg.h>
#include <strings.h>

static void urlp_free(CURLU **u)
{
    curl_url_cleanup(*u);
}
static void curl_textp_free(char **p)
{
    curl_free(*p);
}

void url_setup(void)
{
    (void)setlocale(LC_CTYPE, "C.UTF-8"); /* LC_CTYPE only: numbers keep their decimal point */
}

void url_done(struct url *u)
{
    free(u->text);
    u->text = NULL;
}

static bool refuse(char *why, const char *fmt, ...) PRINTF(2, 3);
static bool refuse(char *why, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(why, URL_WHY_BYTES, fmt, ap);
    va_end(ap);
    return false;
}

/* A text as Python's repr prints it, cut to fit into a reason. */
static const char *repr(struct str s, char out[static URL_WHY_BYTES])
{
    bool single = memchr(s.p, '\'', s.n) != NULL;
    char quote = single && memchr(s.p, '"', s.n) == NULL ? '"' : '\'';
    size_t n = 0;
    out[n++] = quote;
    for (size_t i = 0; i < s.n && n + 6 < URL_WHY_BYTES; i++) {
        unsigned char c = (unsigned char)s.p[i];
        const char *named = c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : NULL;
        if (named != NULL) {
            n += (size_t)snprintf(out + n, 5, "%s", named);
        } else if (c < 0x20 || c == 0x7f) {
            n += (size_t)snprintf(out + n, 5, "\\x%02x", c);
        } else {
            if (c == '\\' || (char)c == quote) {
                out[n++] = '\\';
            }
            out[n++] = (char)c;
        }
    }
    out[n++] = quote;
    out[n] = '\0';
    return out;
}

/* The end of the authority: only the rest may be percent-encoded. */
static size_t authority_end(struct str s)
{
    ptrdiff_t at = str_find(s, STR("://"));
    size_t i = at < 0 ? 0 : (size_t)at + 3;
    while (i < s.n && s.p[i] != '/' && s.p[i] != '?' && s.p[i] != '#') {
        i++;
    }
    return i;
}

static bool is_control(unsigned char c)
{
    return c < 0x20 || c == 0x7f;
}

/* As http.client reports it: the request line and its first invalid byte; spaces are invalid,
 * too. */
static bool refuse_control(struct str s, size_t from, size_t bad, char *why)
{
    ptrdiff_t authority = str_find(s, STR("://")) + 3;
    struct str piece = {s.p + from, s.n - from};
    if (bad < from) {
        piece = (struct str){s.p + authority, from - (size_t)authority};
    }
    const char *tail = memchr(piece.p, '#', piece.n);
    piece.n = tail != NULL ? (size_t)(tail - piece.p) : piece.n;
    size_t i = 0;
    while (!is_control((unsigned char)piece.p[i]) && piece.p[i] != ' ') {
        i++;
    }
    char shown[URL_WHY_BYTES];
    char found[URL_WHY_BYTES];
    return refuse(why, "URL can't contain control characters. %s (found at least %s)",
                  repr(piece, shown), repr((struct str){piece.p + i, 1}, found));
}

/* Without its fragment, which is not sent. */
static bool encode(struct str s, struct buf *out, char *why)
{
    size_t from = authority_end(s);
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '\t' || c == '\n' || c == '\r') {
            continue; /* as browsers do */
        }
        if (i >= from && c == '#') {
            break;
        }
        if (is_control(c)) {
            return refuse_control(s, from, i, why);
        }
        if (i >= from && (c == ' ' || c >= 0x80 || strchr("\"<>\\^`{|}", c) != NULL)) {
            buf_addf(out, "%%%02X", c);
        } else {
            buf_add_char(out, (char)c);
        }
    }
    return out->overflow ? refuse(why, "URL too long") : true;
}

static bool check_scheme(struct str s, char *why)
{
    char shown[URL_WHY_BYTES];
    size_t n = 0;
    while (n < s.n && s.p[n] != ':' && s.p[n] != '/') {
        n++;
    }
    if (n == 0 || n == s.n || s.p[n] != ':') {
        return refuse(why, "unknown url type: %s", repr(s, shown));
    }
    if (!((n == 4 || n == 5) && strncasecmp(s.p, "https", n) == 0)) {
        for (size_t i = 0; i < n && i + 1 < sizeof shown; i++) {
            shown[i] = (char)(s.p[i] >= 'A' && s.p[i] <= 'Z' ? s.p[i] - 'A' + 'a' : s.p[i]);
        }
        shown[MIN(n, sizeof shown - 1)] = '\0';
        return refuse(why, "<urlopen error unknown url type: %s>", shown);
    }
    struct str rest = {s.p + n + 1, s.n - n - 1};
    if (!str_starts(rest, "//") || authority_end(s) == n + 3) {
        return refuse(why, "<urlopen error no host given>");
    }
    return true;
}

/* curl decodes percent signs in a host, so none may be left. */
static bool is_plain(const char *host)
{
    for (const char *p = host; *p != '\0'; p++) {
        if (*p <= 0x20 || *p >= 0x7f || (*p == '%' && host[0] != '[')) {
            return false;
        }
    }
    return true;
}

static bool take_host(CURLU *u, struct url *out, char *why)
{
    char *host CLEANUP(curl_textp_free)
    = NULL;
    if (curl_url_get(u, CURLUPART_HOST, &host, CURLU_PUNYCODE) != CURLUE_OK || host[0] == '\0') {
        return refuse(why, "<urlopen error no host given>");
    }
    if (!is_plain(host)) {
        return refuse(why, "<urlopen error bad host>");
    }
    struct net_addr a;
    char text[ADDR_TEXT_BYTES];
    const char *name = host;
    if (addr_parse_host(host, &a)) {
        addr_format(&a, text);
        name = text;
    }
    if (strlen(name) > URL_HOST_BYTES_MAX) {
        return refuse(why, "<urlopen error host name too long>");
    }
    (void)snprintf(out->host, sizeof out->host, "%s", name);
    char bracketed[ADDR_TEXT_BYTES + 2];
    if (strchr(name, ':') != NULL) {
        (void)snprintf(bracketed, sizeof bracketed, "[%.*s]", ADDR_TEXT_BYTES - 1, name);
        name = bracketed;
    }
    if (curl_url_set(u, CURLUPART_HOST, name, 0) != CURLUE_OK) {
        return refuse(why, "<urlopen error bad host>");
    }
    return true;
}

bool url_parse(struct str raw, struct url *ret, char why[static URL_WHY_BYTES])
{
    struct str s = str_trim(raw);
    if (!check_scheme(s, why)) {
        return false;
    }
    AUTO_BUF struct buf b = BUF_INIT(URL_BYTES_MAX);
    if (!encode(s, &b, why)) {
        return false;
    }
    CURLU *u CLEANUP(urlp_free)
    = curl_url();
    if (u == NULL || curl_url_set(u, CURLUPART_URL, buf_cstr(&b), 0) != CURLUE_OK) {
        return refuse(why, "<urlopen error malformed url>");
    }
    char *part CLEANUP(curl_textp_free)
    = NULL;
    if (curl_url_get(u, CURLUPART_USER, &part, 0) == CURLUE_OK ||
        curl_url_get(u, CURLUPART_PASSWORD, &part, 0) == CURLUE_OK) {
        return refuse(why, "<urlopen error user name in url not allowed>");
    }
    struct url out = {0};
    char *port CLEANUP(curl_textp_free)
    = NULL;
    int64_t port_n;
    if (!take_host(u, &out, why)) {
        return false;
    }
    if (curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK ||
        !parse_i64(str_of(port), 1, 65535, &port_n, NULL)) {
        return refuse(why, "<urlopen error bad port>");
    }
    out.port = (int)port_n;
    (void)curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0);
    char *text CLEANUP(curl_textp_free)
    = NULL;
    if (curl_url_get(u, CURLUPART_URL, &text, 0) != CURLUE_OK) {
        return refuse(why, "<urlopen error malformed url>");
    }
    out.text = xstrdup(text);
    *ret = out;
    return true;
}
