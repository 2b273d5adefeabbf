/* See mail.h. */
#include "mail.h"
#include "common/cleanup.h"
#include "common/time_text.h"

#define LINE_MAX_CHARS 76 /* of quoted-printable, RFC 2045 */
#define WORD_BYTES     39 /* of an encoded word: 52 characters of base64, 12 around them */
#define SUBJECT_PLAIN  60 /* characters of a subject that is written as it is */
#define SUBJECT_MAX    2048

static bool all_of(struct str s, const char *more)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && (c == '\0' || strchr(more, c) == NULL)) {
            return false;
        }
    }
    return s.n > 0;
}

bool mail_address_ok(struct str address)
{
    struct str host = address;
    struct str name = str_split(&host, '@');
    return address.n <= MAIL_ADDRESS_MAX && name.n <= 64 && all_of(name, "._+=~-") &&
           all_of(host, "._-");
}

bool mail_addresses_read(const char *url, struct mail_addresses *ret, struct err *err)
{
    struct str rest = str_of(url);
    ret->n = 0;
    if (!str_eq_cstr(str_split(&rest, ':'), "mailto")) {
        return err_set(err, ERR_INVALID, "'%.80s' is not mailto:", url);
    }
    for (bool more = true; more;) {
        more = rest.n > 0 && memchr(rest.p, ',', rest.n) != NULL;
        struct str one = str_split(&rest, ',');
        if (ret->n == MAIL_ADDRESSES_MAX) {
            return err_set(err, ERR_INVALID, "more than %d addresses", MAIL_ADDRESSES_MAX);
        }
        if (!mail_address_ok(one)) {
            return err_set(err, ERR_INVALID, "'%.*s' is not an address of mail",
                           (int)MIN(one.n, 80), one.p);
        }
        memcpy(ret->text[ret->n], one.p, one.n);
        ret->text[ret->n++][one.n] = '\0';
    }
    return true;
}

/* One word of RFC 2047 for each WORD_BYTES, cut between characters, each on its line. */
static void add_words(struct buf *b, const char *s, size_t n)
{
    while (n > 0) {
        size_t take = MIN(n, WORD_BYTES);
        while (take < n && take > 1 && ((unsigned char)s[take] & 0xc0) == 0x80) {
            take--;
        }
        buf_add_cstr(b, "=?utf-8?B?");
        str_base64(b, s, take);
        buf_add_cstr(b, n > take ? "?=\r\n " : "?=");
        s += take;
        n -= take;
    }
}

/* A text like an encoded word is encoded, too, or it would be read as what it encodes. */
static void add_subject(struct buf *b, const char *subject)
{
    AUTO_BUF struct buf line = BUF_INIT(SUBJECT_MAX);
    bool plain = strlen(subject) <= SUBJECT_PLAIN && strstr(subject, "=?") == NULL;
    for (const char *p = subject; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        plain = plain && c < 0x80;
        buf_add_char(&line, c < 0x20 || c == 0x7f ? ' ' : *p);
    }
    if (plain) {
        buf_add_str(b, buf_str(&line));
    } else {
        add_words(b, line.p, line.n);
    }
}

/* Quoted-printable of UTF-8: what no server changes, and people can read in a log. */
static void add_text(struct buf *b, const char *text)
{
    size_t at = 0;
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        bool last = p[1] == '\0' || p[1] == '\n';
        bool as_it_is = (c > 0x20 && c < 0x7f && c != '=') || (c == ' ' && !last);
        if (c == '\n') {
            buf_add_cstr(b, "\r\n");
            at = 0;
            continue;
        }
        if (at + (as_it_is ? 1 : 3) > LINE_MAX_CHARS - 1) {
            buf_add_cstr(b, "=\r\n");
            at = 0;
        }
        if (as_it_is && !(c == '.' && at == 0)) {
            buf_add_char(b, *p);
            at++;
        } else {
            buf_addf(b, "=%02X", c);
            at += 3;
        }
    }
}

void mail_write(const struct mail *m, struct buf *ret)
{
    char date[30];
    clock_format_http(m->at_us, date); /* its "GMT" is not to be written in mail */
    buf_addf(ret, "From: drover <%s>\r\nTo: ", m->from);
    for (size_t i = 0; i < m->to->n; i++) {
        buf_addf(ret, "%s%s", i > 0 ? ",\r\n " : "", m->to->text[i]);
    }
    buf_add_cstr(ret, "\r\nSubject: ");
    add_subject(ret, m->subject);
    buf_addf(ret, "\r\nDate: %.25s +0000\r\nMessage-ID: <%s%s>\r\n", date, m->id,
             strchr(m->from, '@'));
    buf_add_cstr(ret, "Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
                      "Content-Type: text/plain; charset=utf-8\r\n"
                      "Content-Transfer-Encoding: quoted-printable\r\n\r\n");
    add_text(ret, m->text);
}
