/* See http_mail.h. A connection is used for one mail: curl waits for the answer to QUIT, so it has
 * to end with the transfer, whose options say how long. */
#include "http_mail.h"
#include "common/base.h"
#include "common/cleanup.h"

#define QUIT_S 1L
#define ASK_S  5L /* for each answer when nothing is sent */

/* The type is curl's. */
static size_t on_read(char *p, size_t size, size_t n, void *ctx)
{
    struct http_mail_state *s = ctx;
    size_t take = MIN(size * n, s->body_n);
    memcpy(p, s->body, take);
    s->body += take;
    s->body_n -= take;
    return take;
}

bool http_mail_options(CURL *e, struct http_mail_state *s, const struct http_mail *mail)
{
    const struct mail_server *server = mail->server;
    struct str password = str_of(server->credentials);
    AUTO_FREE char *user = str_dup(str_split(&password, ':'));
    AUTO_FREE char *ask = xasprintf("MAIL FROM:<%s>", server->from);
    bool ok = true;
#define SET(opt, v) ok = ok && curl_easy_setopt(e, CURLOPT_##opt, (v)) == CURLE_OK
    for (size_t i = 0; i < mail->to_n; i++) {
        s->to = curl_slist_append(s->to, mail->to[i]);
    }
    s->on = true;
    s->to_n = mail->to_n;
    SET(USE_SSL, (long)CURLUSESSL_ALL);
    SET(FRESH_CONNECT, 1L);
    SET(FORBID_REUSE, 1L);
    if (s->to != NULL) {
        SET(MAIL_FROM, server->from);
        SET(MAIL_RCPT, s->to);
        SET(MAIL_RCPT_ALLLOWFAILS, 1L);
        SET(UPLOAD, 1L);
    } else {
        SET(CUSTOMREQUEST, ask);
        SET(SERVER_RESPONSE_TIMEOUT, ASK_S);
    }
    if (server->credentials != NULL) {
        SET(USERNAME, user);
        SET(PASSWORD, password.p);
    }
    if (server->ca_file[0] != '\0') {
        SET(CAINFO, server->ca_file);
    }
#undef SET
    return ok;
}

void http_mail_body(CURL *e, struct http_mail_state *s, const char *body, size_t n)
{
    s->body = body;
    s->body_n = n;
    (void)curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
    (void)curl_easy_setopt(e, CURLOPT_READDATA, s);
    (void)curl_easy_setopt(e, CURLOPT_INFILESIZE_LARGE, (curl_off_t)n);
}

void http_mail_begin(struct http_mail_state *s, size_t said_at)
{
    s->begun = true;
    s->said_at = said_at;
}

/* Whether QUIT follows: an address that is refused ends nothing while there are others. */
static bool is_over(struct http_mail_state *s, struct str line)
{
    bool bad = str_starts(line, "4") || str_starts(line, "5");
    s->said = s->said || str_starts(line, "354");
    if (s->begun && (line.n < 4 || line.p[3] != '-')) {
        s->answers++;
        s->taken += s->answers > 1 && !bad;
    }
    bool last = s->answers == s->to_n + 1 && s->taken == 0;
    bool of_address = s->answers > 1 && s->answers <= s->to_n + 1;
    return s->said || (bad && (!of_address || last));
}

/* curl waits for the answer to QUIT inside a call: a server that has said yes or no gets little
 * time for that. */
void http_mail_line(CURL *e, struct http_mail_state *s, struct str line)
{
    if (s->on && is_over(s, line)) {
        (void)curl_easy_setopt(e, CURLOPT_SERVER_RESPONSE_TIMEOUT, QUIT_S);
    }
}

bool http_mail_error(const struct http_mail_state *s, int status, struct str lines, struct err *ret)
{
    char code[16];
    struct str reason = STR("");
    if (!s->on || status < 400) {
        return false;
    }
    (void)snprintf(code, sizeof code, "%d", status);
    while (lines.n > 0) { /* an answer to QUIT may follow */
        struct str line = str_trim(str_split(&lines, '\n'));
        reason = str_starts(line, code) ? line : reason;
    }
    bool said = reason.n > 4;
    (void)err_set(ret, ERR_NETWORK, "answered %s%s%.*s", code, said ? ": " : "",
                  said ? (int)MIN(reason.n - 4, HTTP_MAIL_LINE_MAX) : 0, said ? reason.p + 4 : "");
    return true;
}
