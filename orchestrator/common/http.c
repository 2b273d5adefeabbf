/* The HTTP client: one curl multi handle driven by the loop (multi_socket interface).
 *
 * Guarantees:
 * 1. curl's pre-request callback reports that the connection is established and the first byte is
 *    about to be written. Only this sets `sent`, so !ok && !sent proves that nothing was sent.
 * 2. curl writes a request a second time when a reused connection turns out dead. The second
 *    pre-request call is refused for everything but GET and HEAD.
 * 3. curl forbids calls into a multi handle from its own callbacks. http_send and http_cancel made
 *    there (for example by on_data) are deferred to `kick`, a timer due at once. */
#include "common/http.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "endpoint.h"
#include "http_mail.h"
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define HTTP_HEADERS_BYTES_MAX  ((size_t)64 * 1024)
#define HTTP_CONNECT_TIMEOUT_US (5 * USEC_PER_SEC)
#define HTTP_TIMEOUT_US         (60 * USEC_PER_SEC)
#define HTTP_STALL_BYTES_PER_S  1024L
#define HTTP_CACHED_CONNECTIONS 32L
#define HTTP_RECEIVE_BYTES      (64L * 1024)

enum req_state {
    REQ_QUEUED,  /* not with curl yet: kick will hand it over */
    REQ_ACTIVE,  /* with curl */
    REQ_DROPPED, /* cancelled from inside curl: kick will free it */
};

enum stop_reason {
    STOP_NONE,
    STOP_TOO_LARGE,
    STOP_READER,
    STOP_MAY_SEND,
    STOP_RESEND,
    STOP_ADDRESS
};

struct http_req {
    struct http *h;
    struct http_req *prev, *next;
    enum req_state state;
    enum stop_reason stopped;
    CURL *easy; /* NULL: could not be set up, see reply.err */
    struct curl_slist *headers;
    char *url;
    char *body; /* NULL when borrowed */
    struct http_mail_state mail;
    bool repeatable;
    int written_n; /* number of times curl was about to write the request */
    bool (*may_send)(void *ctx);
    bool (*may_connect)(void *ctx, const struct sockaddr *address);
    bool (*on_data)(void *ctx, struct str data);
    http_cb cb;
    void *ctx;
    int64_t started_us;
    struct http_reply reply;
    char error[CURL_ERROR_SIZE];
};

struct http {
    struct loop *l;
    CURLM *multi;
    struct loop_timer *timer; /* curl's own timeout */
    struct loop_timer *kick;
    struct http_req *first;
    size_t n;
    int in_curl;
    char *ca_file; /* NULL: the system's */
};

static void global_init(void)
{
    /* OpenSSL writes with write(2): a peer that closes would end the process. */
    struct sigaction old;
    if (sigaction(SIGPIPE, NULL, &old) == 0 && old.sa_handler == SIG_DFL) {
        (void)signal(SIGPIPE, SIG_IGN);
    }
    CURLcode rc = curl_global_init(CURL_GLOBAL_DEFAULT);
    ASSERT(rc == CURLE_OK);
}

static void req_unlink(struct http_req *r)
{
    struct http *h = r->h;
    if (r->prev != NULL) {
        r->prev->next = r->next;
    } else {
        h->first = r->next;
    }
    if (r->next != NULL) {
        r->next->prev = r->prev;
    }
    h->n--;
}

static void req_free(struct http_req *r)
{
    req_unlink(r);
    if (r->easy != NULL) {
        if (r->state != REQ_QUEUED) {
            r->h->in_curl++; /* closing may call back into us */
            (void)curl_multi_remove_handle(r->h->multi, r->easy);
            r->h->in_curl--;
        }
        curl_easy_cleanup(r->easy);
    }
    curl_slist_free_all(r->headers);
    curl_slist_free_all(r->mail.to);
    free(r->url);
    free(r->body);
    buf_done(&r->reply.headers);
    buf_done(&r->reply.body);
    free(r);
}

static int on_prereq(void *ctx, char *ip UNUSED, char *local UNUSED, int port UNUSED,
                     int local_port UNUSED)
{
    struct http_req *r = ctx;
    if (r->state == REQ_DROPPED) {
        return CURL_PREREQFUNC_ABORT;
    }
    if (r->written_n > 0 && !r->repeatable) {
        r->stopped = STOP_RESEND;
        return CURL_PREREQFUNC_ABORT;
    }
    if (r->may_send != NULL && !r->may_send(r->ctx)) {
        r->stopped = STOP_MAY_SEND;
        return CURL_PREREQFUNC_ABORT;
    }
    http_mail_begin(&r->mail, r->reply.headers.n);
    r->stopped = STOP_NONE; /* of another of its addresses */
    r->written_n++;
    return CURL_PREREQFUNC_OK;
}

/* A name may have addresses of both kinds: curl goes on to the next one. */
static curl_socket_t on_open(void *ctx, curlsocktype purpose UNUSED, struct curl_sockaddr *a)
{
    struct http_req *r = ctx;
    if (!r->may_connect(r->ctx, &a->addr)) {
        r->stopped = STOP_ADDRESS;
        return CURL_SOCKET_BAD;
    }
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is curl's */
static size_t on_header(char *p, size_t size, size_t n, void *ctx)
{
    struct http_req *r = ctx;
    struct str line = {p, size * n};
    /* keep the final answer's headers only, not those of 100 Continue */
    if (str_starts(line, "HTTP/")) {
        buf_reset(&r->reply.headers);
        return line.n;
    }
    http_mail_line(r->easy, &r->mail, line);
    buf_add_str(&r->reply.headers, line);
    if (r->reply.headers.overflow) {
        r->stopped = STOP_TOO_LARGE;
        return 0;
    }
    return line.n;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is curl's */
static size_t on_body(char *p, size_t size, size_t n, void *ctx)
{
    struct http_req *r = ctx;
    struct str data = {p, size * n};
    if (r->state == REQ_DROPPED) {
        return 0;
    }
    long status = 0;
    (void)curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
    if (r->on_data != NULL && status >= 200 && status < 300) {
        if (!r->on_data(r->ctx, data)) {
            r->stopped = STOP_READER;
            return 0;
        }
        return data.n;
    }
    buf_add_str(&r->reply.body, data);
    if (r->reply.body.overflow) {
        r->stopped = STOP_TOO_LARGE;
        return 0;
    }
    return data.n;
}

static void drive(struct http *h, curl_socket_t fd, int events);

static void on_fd(void *ctx, int fd, uint32_t events)
{
    int ev = ((events & EPOLLIN) ? CURL_CSELECT_IN : 0) |
             ((events & EPOLLOUT) ? CURL_CSELECT_OUT : 0) |
             ((events & (EPOLLERR | EPOLLHUP)) ? CURL_CSELECT_ERR : 0);
    drive(ctx, fd, ev);
}

static int on_socket(CURL *easy UNUSED, curl_socket_t fd, int what, void *ctx, void *sock)
{
    struct http *h = ctx;
    if (what == CURL_POLL_REMOVE) {
        loop_fd_del(h->l, sock);
        (void)curl_multi_assign(h->multi, fd, NULL);
        return 0;
    }
    uint32_t events = ((what & CURL_POLL_IN) ? (uint32_t)EPOLLIN : 0) |
                      ((what & CURL_POLL_OUT) ? (uint32_t)EPOLLOUT : 0);
    if (sock == NULL) {
        (void)curl_multi_assign(h->multi, fd, loop_fd_add(h->l, fd, events, on_fd, h));
    } else {
        loop_fd_mod(h->l, sock, events);
    }
    return 0;
}

static int on_timeout(CURLM *multi UNUSED, long timeout_ms, void *ctx)
{
    struct http *h = ctx;
    loop_timer_set(h->timer, timeout_ms < 0 ? -1 : (int64_t)timeout_ms * USEC_PER_MSEC);
    return 0;
}

static void reply_error(struct http_req *r, CURLcode rc)
{
    static const struct {
        enum err_code code;
        const char *text;
    } stops[] = {[STOP_READER] = {ERR_IO, "the reader of the answer gave up"},
                 [STOP_MAY_SEND] = {ERR_NETWORK, "dropped before the first byte"},
                 [STOP_RESEND] = {ERR_NETWORK, "the connection died under the request"},
                 [STOP_ADDRESS] = {ERR_FORBIDDEN, "its address is refused"}};
    struct err *e = &r->reply.err;
    const char *why = r->error[0] != '\0' ? r->error : curl_easy_strerror(rc);
    if (r->stopped == STOP_TOO_LARGE) {
        (void)err_set(e, ERR_TOO_LARGE, "the answer is larger than %zu bytes",
                      r->reply.headers.overflow ? r->reply.headers.max : r->reply.body.max);
    } else if (http_mail_error(&r->mail, r->reply.status, buf_str(&r->reply.headers), e)) {
        return;
    } else if (r->stopped != STOP_NONE) {
        (void)err_set(e, stops[r->stopped].code, "%s", stops[r->stopped].text);
    } else {
        (void)err_set(e, rc == CURLE_OPERATION_TIMEDOUT ? ERR_TIMEOUT : ERR_NETWORK, "%s", why);
    }
}

static void finish(struct http_req *r, CURLcode rc)
{
    struct http_reply *p = &r->reply;
    p->duration_us = clock_mono_us() - r->started_us;
    p->sent = r->written_n > 0;
    p->mail_at = r->mail.said_at;
    if (r->easy != NULL) {
        long status = 0;
        (void)curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
        p->status = (int)status;
        p->ok = rc == CURLE_OK && status >= 200;
        if (!p->ok) {
            reply_error(r, rc);
        }
    }
    r->cb(r->ctx, p);
    req_free(r);
}

static void drain(struct http *h)
{
    int left = 0;
    CURLMsg *m;
    while ((m = curl_multi_info_read(h->multi, &left)) != NULL) {
        ASSERT(m->msg == CURLMSG_DONE);
        char *private = NULL;
        (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &private);
        struct http_req *r = (void *)private;
        if (r->state == REQ_DROPPED) {
            req_free(r);
        } else {
            finish(r, m->data.result);
        }
    }
}

static void drive(struct http *h, curl_socket_t fd, int events)
{
    int running = 0;
    h->in_curl++;
    (void)curl_multi_socket_action(h->multi, fd, events, &running);
    h->in_curl--;
    drain(h);
}

static void on_timer(void *ctx)
{
    drive(ctx, CURL_SOCKET_TIMEOUT, 0);
}

static void req_start(struct http_req *r)
{
    r->h->in_curl++;
    CURLMcode rc = curl_multi_add_handle(r->h->multi, r->easy);
    r->h->in_curl--;
    ASSERT(rc == CURLM_OK);
    r->state = REQ_ACTIVE;
}

/* Does what could not be done from inside curl or before http_send returned. Restarts after each
 * callback, because a callback may change the list. */
static void on_kick(void *ctx)
{
    struct http *h = ctx;
    for (struct http_req *r = h->first; r != NULL;) {
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): freed ones have left the list before */
        struct http_req *next = r->next;
        if (r->state == REQ_DROPPED) {
            req_free(r);
        } else if (r->state == REQ_QUEUED && r->easy == NULL) {
            finish(r, CURLE_FAILED_INIT);
            next = h->first;
        } else if (r->state == REQ_QUEUED) {
            req_start(r);
        }
        r = next;
    }
}

static bool header_is_clean(const char *s)
{
    for (; *s != '\0'; s++) {
        if ((unsigned char)*s < 0x20 && *s != '\t') {
            return false;
        }
    }
    return true;
}

static bool set_headers(struct http_req *r, const struct http_request *q)
{
    bool has_type = false;
    /* Expect: 100-continue costs a round trip and is not signed. */
    r->headers = curl_slist_append(NULL, "Expect:");
    for (size_t i = 0; i < q->headers_n; i++) {
        const struct http_header *hd = &q->headers[i];
        if (!header_is_clean(hd->name) || !header_is_clean(hd->value)) {
            return err_set(&r->reply.err, ERR_INVALID, "header '%.40s' has a control byte",
                           hd->name);
        }
        has_type |= str_ieq_cstr(str_of(hd->name), "content-type");
        AUTO_FREE char *line = hd->value[0] == '\0' ? xasprintf("%s;", hd->name)
                                                    : xasprintf("%s: %s", hd->name, hd->value);
        r->headers = curl_slist_append(r->headers, line);
    }
    if (!has_type) { /* otherwise curl labels every body as a form */
        r->headers = curl_slist_append(r->headers, "Content-Type:");
    }
    ASSERT(r->headers != NULL);
    (void)curl_easy_setopt(r->easy, CURLOPT_HTTPHEADER, r->headers);
    return true;
}

static void set_body(struct http_req *r, const struct http_request *q)
{
    const char *p = q->body.p;
    if (q->body_take != NULL) {
        ASSERT(q->body.p == NULL);
        p = r->body = q->body_take;
    } else if (q->body.n > 0 && !q->body_borrow) {
        r->body = xmalloc(q->body.n);
        memcpy(r->body, q->body.p, q->body.n);
        p = r->body;
    }
    bool get = strcmp(q->method, "GET") == 0;
    bool head = strcmp(q->method, "HEAD") == 0;
    bool bodyless = q->body.n == 0 && (get || head || strcmp(q->method, "DELETE") == 0);
    r->repeatable = get || head;
    if (q->mail != NULL) {
        http_mail_body(r->easy, &r->mail, p, q->body.n);
        return;
    }
    if (!bodyless) {
        (void)curl_easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.n);
        (void)curl_easy_setopt(r->easy, CURLOPT_POSTFIELDS, p != NULL ? p : "");
    }
    if (head) {
        (void)curl_easy_setopt(r->easy, CURLOPT_NOBODY, 1L);
    } else if (!get || !bodyless) {
        (void)curl_easy_setopt(r->easy, CURLOPT_CUSTOMREQUEST, q->method);
    }
}

static long to_ms(int64_t us, int64_t dflt_us)
{
    return (long)MAX((us > 0 ? us : dflt_us) / USEC_PER_MSEC, 1);
}

/* A proxy is never used for this machine and its metadata services, even when http_proxy is set. */
static bool is_local(const char *url)
{
    static const char *const starts[] = {"http://127.",  "http://localhost:", "http://localhost/",
                                         "http://[::1]", "http://169.254.",   "http://[fd00:ec2::"};
    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        if (str_starts(str_of(url), starts[i])) {
            return true;
        }
    }
    return false;
}

static bool set_options(struct http_req *r, const struct http_request *q)
{
    CURL *e = r->easy;
#define SET(opt, v) ok = ok && curl_easy_setopt(e, CURLOPT_##opt, (v)) == CURLE_OK
    bool ok = true;
    SET(URL, r->url);
    SET(PRIVATE, r);
    SET(ERRORBUFFER, r->error);
    SET(PROTOCOLS_STR, q->mail != NULL ? "smtp,smtps" : "http,https");
    SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(FOLLOWLOCATION, 0L);
    SET(PATH_AS_IS, 1L);
    SET(NOSIGNAL, 1L);
    SET(QUICK_EXIT, 1L); /* do not wait for the resolver's thread: the loop renews a lease */
    SET(TCP_KEEPALIVE, 1L);
    SET(CAPATH, NULL); /* otherwise the CA bundle is parsed again for every connection (16 ms) */
    if (r->h->ca_file != NULL && q->mail == NULL) { /* it vouches for AWS */
        SET(CAINFO, r->h->ca_file);
    }
    if (is_local(r->url) || r->may_connect != NULL || q->mail != NULL) {
        SET(PROXY, "");
    }
    SET(OPENSOCKETFUNCTION, r->may_connect != NULL ? on_open : NULL);
    SET(OPENSOCKETDATA, r);
    SET(BUFFERSIZE, HTTP_RECEIVE_BYTES);
    SET(CONNECTTIMEOUT_MS, to_ms(q->connect_timeout_us, HTTP_CONNECT_TIMEOUT_US));
    SET(TIMEOUT_MS, to_ms(q->timeout_us, HTTP_TIMEOUT_US));
    if (q->stall_timeout_us > 0) {
        SET(LOW_SPEED_LIMIT, HTTP_STALL_BYTES_PER_S);
        SET(LOW_SPEED_TIME, (long)MAX(q->stall_timeout_us / USEC_PER_SEC, 1));
    }
    SET(FRESH_CONNECT, q->fresh_connection ? 1L : 0L);
    SET(PREREQFUNCTION, on_prereq);
    SET(PREREQDATA, r);
    SET(HEADERFUNCTION, on_header);
    SET(HEADERDATA, r);
    SET(WRITEFUNCTION, on_body);
    SET(WRITEDATA, r);
#undef SET
    ok = ok && (q->mail == NULL || http_mail_options(e, &r->mail, q->mail));
    return ok || err_set(&r->reply.err, ERR_INVALID, "curl takes no request for '%s'", r->url);
}

bool http_new(struct loop *l, struct http **ret, struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, global_init);
    CURLM *multi = curl_multi_init();
    if (multi == NULL) {
        return err_set(err, ERR_INTERNAL, "cannot start the http client");
    }
    struct http *h = xcalloc(1, sizeof *h);
    *h = (struct http){.l = l, .multi = multi, .ca_file = endpoint_ca_bundle()};
    h->timer = loop_timer_new(l, on_timer, h);
    h->kick = loop_timer_new(l, on_kick, h);
    (void)curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    (void)curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, h);
    (void)curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timeout);
    (void)curl_multi_setopt(multi, CURLMOPT_TIMERDATA, h);
    (void)curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    (void)curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, HTTP_CACHED_CONNECTIONS);
    *ret = h;
    return true;
}

void http_free(struct http *h)
{
    if (h == NULL) {
        return;
    }
    ASSERT(h->in_curl == 0);
    while (h->first != NULL) {
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the one freed has left the list */
        req_free(h->first);
    }
    (void)curl_multi_cleanup(h->multi); /* closes cached connections, by on_socket and on_timeout */
    loop_timer_free(h->timer);
    loop_timer_free(h->kick);
    free(h->ca_file);
    free(h);
}

struct http_req *http_send(struct http *h, const struct http_request *q, http_cb cb, void *ctx)
{
    ASSERT(h != NULL && q->method != NULL && q->url != NULL);
    ASSERT(cb != NULL);
    struct http_req *r = xcalloc(1, sizeof *r);
    *r = (struct http_req){.h = h,
                           .next = h->first,
                           .url = xstrdup(q->url),
                           .may_send = q->may_send,
                           .may_connect = q->may_connect,
                           .on_data = q->on_data,
                           .cb = cb,
                           .ctx = ctx,
                           .started_us = clock_mono_us(),
                           .easy = curl_easy_init()};
    if (h->first != NULL) {
        h->first->prev = r;
    }
    h->first = r;
    h->n++;
    buf_init(&r->reply.headers, HTTP_HEADERS_BYTES_MAX);
    buf_init(&r->reply.body, q->reply_max);
    ASSERT(r->easy != NULL); /* out of memory */
    set_body(r, q);
    if (!set_options(r, q) || (q->mail == NULL && !set_headers(r, q))) {
        curl_easy_cleanup(TAKE(r->easy));
    }
    if (r->easy == NULL || h->in_curl > 0) {
        loop_timer_set(h->kick, 0);
    } else {
        req_start(r);
    }
    return r;
}

void http_cancel(struct http_req *r)
{
    if (r->h->in_curl > 0 && r->state == REQ_ACTIVE) {
        r->state = REQ_DROPPED;
        loop_timer_set(r->h->kick, 0);
    } else {
        req_free(r);
    }
}

bool http_req_sent(const struct http_req *r)
{
    return r->written_n > 0;
}

size_t http_in_flight(const struct http *h)
{
    return h->n;
}
