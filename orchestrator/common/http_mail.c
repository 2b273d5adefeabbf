/* See http_mail.h. A connection is used for one mail: curl waits for the answer to QUIT, so it has
 * to end with the transfer, whose options say how long. */
#include "http_mail.h"
#include "common/base.h"

#define QUIT_S 1L

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
    bool ok = true;
#define SET(opt, v) ok = ok && curl_easy_setopt(e, CURLOPT_##opt, (v)) == CURLE_OK
    for (size_t i = 0; i < mail->to_n; i++) {
        s->to = curl_slist_append(s->to, mail->to[i]);
    }
    ASSERT(s->to != NULL);
    SET(USE_SSL, (long)CURLUSESSL_ALL);
    SET(MAIL_FROM, mail->from);
    SET(MAIL_RCPT, s->to);
    SET(FRESH_CONNECT, 1L);
    SET(FORBID_REUSE, 1L);
    if (mail->user != NULL) {
        SET(USERNAME, mail->user);
        SET(PASSWORD, mail->password);
    }
    if (mail->ca_file != NULL) {
        SET(CAINFO, mail->ca_file);
    }
#undef SET
    return ok;
}

void http_mail_body(CURL *e, struct http_mail_state *s, const char *body, size_t n)
{
    s->body = body;
    s->body_n = n;
    (void)curl_easy_setopt(e, CURLOPT_UPLOAD, 1L);
    (void)curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
    (void)curl_easy_setopt(e, CURLOPT_READDATA, s);
    (void)curl_easy_setopt(e, CURLOPT_INFILESIZE_LARGE, (curl_off_t)n);
}

/* curl waits for the answer to QUIT inside a call: a server that has said yes or no gets little
 * time for that. */
void http_mail_line(CURL *e, struct http_mail_state *s, struct str line)
{
    if (s->to != NULL && (s->said || str_starts(line, "4") || str_starts(line, "5"))) {
        (void)curl_easy_setopt(e, CURLOPT_SERVER_RESPONSE_TIMEOUT, QUIT_S);
    }
    s->said = s->said || str_starts(line, "354");
}
