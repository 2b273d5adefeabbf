/* How curl is told to send a mail; see http_mail in common/http.h. */
#pragma once
#include "common/http.h"
#include <curl/curl.h>

struct http_mail_state { /* of one transfer; zeroed at first */
    bool on;             /* the transfer is a mail */
    struct curl_slist *to;
    const char *body; /* borrowed; what is left of it */
    size_t body_n;
    bool said;      /* the server asked for the message */
    bool begun;     /* the session is open: what follows is about the mail itself */
    size_t said_at; /* bytes of lines before */
    size_t to_n;
    size_t answers, taken; /* to MAIL and each RCPT; addresses that are taken */
};
bool http_mail_options(CURL *easy, struct http_mail_state *s,
                       const struct http_mail *mail) MUST_CHECK;
/* Called before the mail begins, with how much the server has said. */
void http_mail_begin(struct http_mail_state *s, size_t said_at);
void http_mail_body(CURL *easy, struct http_mail_state *s, const char *body, size_t n);
/* Called for each line of the server; also for those of HTTP, where it does nothing. */
void http_mail_line(CURL *easy, struct http_mail_state *s, struct str line);
/* "answered 550: 5.1.1 nobody of that name", of the server's lines; false when its last answer was
 * not the reason. */
bool http_mail_error(const struct http_mail_state *s, int status, struct str lines,
                     struct err *ret);
