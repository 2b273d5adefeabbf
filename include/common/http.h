/* HTTP client, which also sends mail: a curl multi handle on a loop. One request struct, one
 * callback, bounded bodies, HTTP/1.1, no redirects, reused connections. http_proxy is honoured
 * except for this machine. http_new makes the process ignore SIGPIPE unless a handler is set,
 * because OpenSSL writes with write(2). */
#pragma once
#include "buf.h"
#include "loop.h"

struct sockaddr;
struct http;     /* the client: one multi handle */
struct http_req; /* a transfer in flight */

struct http_header {
    const char *name;
    const char *value;
};
/* A server that takes mail, by SMTP over TLS. */
struct mail_server {
    const char
        *url; /* smtps://HOST[:PORT] or smtp://HOST[:PORT], with STARTTLS; "": there is none */
    const char *from;        /* address of the sender */
    const char *credentials; /* "USER:PASSWORD", said under TLS only; NULL: none */
    const char *ca_file;     /* certificates that may vouch for it; "": the system's */
};
#define HTTP_MAIL_LINE_MAX 200 /* bytes of what a mail server said that an error repeats */
/* Everything is copied. */
struct http_mail {
    const struct mail_server *server;
    const char *const *to; /* to[to_n]; one that is refused keeps it from no other */
    size_t to_n;           /* 0: nothing is sent; it is asked whether a mail would be taken */
};
struct http_request {
    const char *method; /* "GET", "PUT", ... */
    const char *url;
    /* Not NULL: the body is a message of RFC 5322 for this server, whose address is also `url`. No
     * headers and no proxy. The reply's status is that of the server's last answer, its headers are
     * the server's lines, and its error has what the server said. */
    const struct http_mail *mail;
    const struct http_header *headers; /* headers[headers_n]; copied */
    size_t headers_n;
    struct str body; /* copied unless body_take or body_borrow is set */
    char *
        body_take; /* malloc'd, freed by the client; then body.p must be NULL and body.n the size */
    size_t reply_max; /* maximum bytes of the body; more ends the transfer with ERR_TOO_LARGE */
    int64_t connect_timeout_us; /* 0: 5 s */
    int64_t timeout_us;         /* whole transfer; 0: 60 s */
    /* an average below 1 KiB/s for this long ends the transfer; 0: no check */
    int64_t stall_timeout_us;
    bool body_borrow;      /* the body is not copied; it must stay valid until the callback */
    bool fresh_connection; /* use a new connection; avoids one that the peer has just closed */
    /* Called with cb's ctx once the connection is established and before the first byte is written;
     * false ends the transfer with !ok and !sent. NULL: always send. */
    bool (*may_send)(void *ctx);
    /* Called with cb's ctx for each address before a connection to it is opened, after the name was
     * resolved: false refuses it. No proxy is used then, so it is the address of the server. NULL:
     * every address. */
    bool (*may_connect)(void *ctx, const struct sockaddr *address);
    /* When set, receives the body of a 2xx instead of the reply (unbounded; reply_max then bounds
     * the bodies of other answers). Returning false ends the transfer. */
    bool (*on_data)(void *ctx, struct str data);
};
struct http_reply {
    bool ok; /* a complete HTTP answer arrived, with any status */
    /* some of the request was written, so it may have reached the other side; !ok && !sent proves
     * that it did not */
    bool sent;
    int status;
    struct buf headers; /* raw lines "Name: value\r\n" */
    size_t mail_at;     /* in `headers`: what the server said of the mail itself begins here */
    struct buf body;
    struct err err; /* why !ok: ERR_NETWORK, ERR_TIMEOUT, ERR_TOO_LARGE */
    int64_t duration_us;
};
/* Called once, from the loop. The reply is valid during the call. */
typedef void (*http_cb)(void *ctx, const struct http_reply *reply);

bool http_new(struct loop *l, struct http **ret, struct err *err) MUST_CHECK;
void http_free(struct http *h); /* cancels transfers in flight, without callbacks */
/* Start a transfer; cb never runs before this returns. curl may write GET and HEAD twice (when a
 * reused connection turns out dead). For every other method a second write is refused: !ok,
 * sent. */
struct http_req *http_send(struct http *h, const struct http_request *req, http_cb cb, void *ctx);
bool http_req_sent(const struct http_req *r); /* as http_reply.sent, while in flight */
void http_cancel(struct http_req *r);         /* no callback afterwards */
size_t http_in_flight(const struct http *h);
/* First header with this name, trimmed; empty view when absent. */
struct str http_reply_header(const struct http_reply *r, const char *name);
/* Blocking, for programs without a loop (CLI, tests). Release ret with http_reply_done. */
bool http_fetch(const struct http_request *req, struct http_reply *ret, struct err *err) MUST_CHECK;
void http_reply_done(struct http_reply *r);
