/* HTTP client: curl multi on a loop. One request struct, one callback, bounded bodies, no
 * redirects, HTTP/1.1, connections reused, proxies by http_proxy except to this machine. Debian's
 * curl re-parses the CA bundle a connection unless CAPATH is NULL: it is. http_new makes the
 * process ignore SIGPIPE (OpenSSL would die of it) unless it is handled. */
#pragma once
#include "buf.h"
#include "loop.h"

struct http;     /* the client: one multi handle */
struct http_req; /* a transfer in flight */

struct http_header {
    const char *name;
    const char *value;
};
struct http_request {
    const char *method; /* "GET", "PUT", ... */
    const char *url;
    const struct http_header *headers; /* headers[headers_n]; copied */
    size_t headers_n;
    struct str body; /* copied unless body_take */
    char *
        body_take; /* malloc'd, freed by the client; then body.p must be NULL and body.n its size */
    size_t reply_max; /* bytes of body accepted; more ends the transfer with ERR_TOO_LARGE */
    int64_t connect_timeout_us; /* 0: 5 s */
    int64_t timeout_us;         /* whole transfer; 0: 60 s */
    int64_t stall_timeout_us; /* less than 1 KiB/s on average for so long ends the transfer; 0: not
                                 watched */
    bool body_borrow;         /* body is not copied: it stays valid until the callback */
    bool fresh_connection;    /* never reuse a connection (nor hit one the peer has just closed) */
    /* Asked (with cb's ctx) when the connection stands and the first byte would be written; false
     * ends the transfer with !ok and !sent. NULL: yes. */
    bool (*may_send)(void *ctx);
    /* When set, the body of a 2xx goes here instead of into the reply (unbounded; reply_max is for
     * the bodies of other answers); returning false ends the transfer. */
    bool (*on_data)(void *ctx, struct str data);
};
struct http_reply {
    bool ok;   /* a complete HTTP answer came, whatever its status */
    bool sent; /* the request may have reached the other side: some of it was written. !ok && !sent
                  proves it did not */
    int status;
    struct buf headers; /* raw lines "Name: value\r\n" */
    struct buf body;
    struct err err; /* why !ok: ERR_NETWORK, ERR_TIMEOUT, ERR_TOO_LARGE */
    int64_t duration_us;
};
/* Called once, from the loop; the reply is lent for the call. */
typedef void (*http_cb)(void *ctx, const struct http_reply *reply);

bool http_new(struct loop *l, struct http **ret, struct err *err) MUST_CHECK;
void http_free(struct http *h); /* cancels what is in flight, without callbacks */
/* Never calls back before it returns. Only GET and HEAD may be written twice by curl (when a reused
 * connection turns out dead); for every other method a second writing is refused: !ok, sent. */
struct http_req *http_send(struct http *h, const struct http_request *req, http_cb cb, void *ctx);
bool http_req_sent(const struct http_req *r); /* as http_reply.sent, while in flight */
void http_cancel(struct http_req *r);         /* no callback afterwards */
size_t http_in_flight(const struct http *h);
/* First header with this name, trimmed; empty view when absent. */
struct str http_reply_header(const struct http_reply *r, const char *name);
/* Blocking convenience for programs without a loop (CLI, tests): runs its own. reply->headers/body
 * are the caller's (http_reply_done). */
bool http_fetch(const struct http_request *req, struct http_reply *ret, struct err *err) MUST_CHECK;
void http_reply_done(struct http_reply *r);
