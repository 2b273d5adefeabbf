/* HTTP: see server.h. A response is never queued in the first callback of a request: libmicrohttpd
 * 0.9.75 then closes the connection. */
#include "server.h"
#include "auth.h"
#include "common/clock.h"
#include "common/rng.h"
#include "dispatch.h"
#include "local/app.h"
#include "local/oracle/invoice.h"
#include "local/sagemaker/job_clock.h"
#include "upload.h"
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#define SERVER_THREADS       4
#define CONNECTIONS_MAX      4096
#define CONNECTION_BYTES_MAX (64u << 10)
#define CONNECTION_IDLE_S    120
#define ANY_PORT_FIRST       20000
#define ANY_PORT_COUNT       12000
#define ANY_PORT_TRIES       500
#define PORT_TRIES           100
#define PORT_PAUSE_MS        20
#define LISTEN_BACKLOG       1024
#define FORWARDS_MAX         256

struct server {
    struct app *app;
    struct MHD_Daemon *daemon;
    int fd;
};

/* A request on its connection. */
struct exchange {
    struct request *r;
    bool begun;
    bool answered;
    bool waiting;   /* suspended until its answer may go out */
    bool forwarded; /* asked of a model server */
    struct MHD_Connection *conn;
};

static void *uri_seen(void *cls, const char *uri, struct MHD_Connection *conn UNUSED)
{
    struct exchange *x = xcalloc(1, sizeof *x);
    x->r = request_new(cls, uri);
    return x;
}

static void request_over(void *cls UNUSED, struct MHD_Connection *conn UNUSED, void **con_cls,
                         enum MHD_RequestTerminationCode why UNUSED)
{
    struct exchange *x = *con_cls;
    if (x != NULL) {
        request_free(x->r);
        free(x);
    }
    *con_cls = NULL;
}

static enum MHD_Result header_seen(void *cls, enum MHD_ValueKind kind UNUSED, const char *key,
                                   size_t key_n, const char *value, size_t value_n)
{
    struct request *r = cls;
    if (r->headers_n == REQUEST_HEADERS_MAX) {
        r->headers_overflow = true;
        return MHD_NO;
    }
    r->headers[r->headers_n++] =
        (struct header){{key, key_n}, {value == NULL ? "" : value, value_n}};
    return MHD_YES;
}

static void exchange_begin(struct exchange *x, struct MHD_Connection *conn, const char *method)
{
    struct request *r = x->r;
    x->begun = true;
    (void)snprintf(r->method, sizeof r->method, "%s", method);
    (void)MHD_get_connection_values_n(conn, MHD_HEADER_KIND, header_seen, r);
    if (!invoice_is(r) && dispatch_wants_upload(r)) {
        struct upload *u =
            upload_new(r->app->root, r->arrival, request_header(r, "x-amz-content-sha256"));
        if (u != NULL && u->chunks_signed && !auth_prepare_chunks(r, &r->app->set, u)) {
            u->frame_failed = true;
        }
        r->upload = u;
    }
}

static void body_add(struct request *r, const char *p, size_t n)
{
    if (r->upload != NULL) {
        upload_add(r->upload, p, n);
    } else {
        buf_add(&r->body, p, n);
    }
}

struct half { /* half of a body in memory or in a file */
    char *p;
    int fd;
    int64_t offset;
    size_t n;
};

static ssize_t half_read(void *cls, uint64_t pos, char *out, size_t max)
{
    const struct half *h = cls;
    if (pos >= h->n) {
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    size_t n = MIN(max, h->n - (size_t)pos);
    if (h->fd >= 0) {
        ssize_t got = pread(h->fd, out, n, h->offset + (off_t)pos);
        return got > 0 ? got : MHD_CONTENT_READER_END_WITH_ERROR;
    }
    memcpy(out, h->p + pos, n);
    return (ssize_t)n;
}

static void half_free(void *cls)
{
    struct half *h = cls;
    fd_closep(&h->fd);
    free(h->p);
    free(h);
}

static size_t body_length(const struct request *r)
{
    return r->reply.fd >= 0 ? (size_t)r->reply.length : r->reply.body.n;
}

/* Announce the whole length, send half of it, then close the connection. */
static struct MHD_Response *response_half(struct request *r)
{
    struct half *h = xcalloc(1, sizeof *h);
    size_t whole = body_length(r);
    h->n = whole / 2;
    h->fd = r->reply.fd;
    h->offset = r->reply.offset;
    r->reply.fd = -1;
    h->p = h->fd < 0 ? buf_take(&r->reply.body) : NULL;
    return MHD_create_response_from_callback(whole, 4096, half_read, h, half_free);
}

static struct MHD_Response *response_make(struct request *r)
{
    struct reply *p = &r->reply;
    if (p->delivery == DELIVER_HALF) {
        return response_half(r);
    }
    if (p->fd >= 0 && p->length > 0) {
        int fd = p->fd;
        p->fd = -1;
        return MHD_create_response_from_fd_at_offset64((uint64_t)p->length, fd,
                                                       (uint64_t)p->offset);
    }
    size_t n = p->body.n;
    return MHD_create_response_from_buffer(n, n > 0 ? buf_take(&p->body) : NULL,
                                           MHD_RESPMEM_MUST_FREE);
}

static void headers_add(struct MHD_Response *resp, struct request *r)
{
    char id[32];
    bool typed = false;
    const struct buf *h = &r->reply.headers;
    for (size_t at = 0; at < h->n;) {
        const char *name = h->p + at;
        const char *value = name + strlen(name) + 1;
        at += strlen(name) + strlen(value) + 2;
        typed = typed || strcasecmp(name, "content-type") == 0;
        (void)MHD_add_response_header(resp, name, value);
    }
    if (!typed && r->reply.content_type != NULL) {
        (void)MHD_add_response_header(resp, "Content-Type", r->reply.content_type);
    }
    (void)snprintf(id, sizeof id, "%016llX", (unsigned long long)r->id);
    if (strcmp(r->service, "s3") == 0) {
        (void)MHD_add_response_header(resp, "x-amz-request-id", id);
        (void)MHD_add_response_header(resp, "x-amz-id-2", "drover-local");
    } else {
        (void)MHD_add_response_header(resp, "x-amzn-RequestId", id);
    }
}

static enum MHD_Result answer_send(struct exchange *x, struct MHD_Connection *conn)
{
    struct request *r = x->r;
    if (r->reply.delivery == DELIVER_DROP ||
        (r->reply.delivery == DELIVER_HALF && body_length(r) < 2)) {
        return MHD_NO;
    }
    struct MHD_Response *resp = response_make(r);
    if (resp == NULL) {
        return MHD_NO;
    }
    headers_add(resp, r);
    enum MHD_Result ok = MHD_queue_response(conn, (unsigned)r->reply.status, resp);
    MHD_destroy_response(resp);
    return ok;
}

static void *forward_main(void *arg)
{
    struct exchange *x = arg;
    struct app *app = x->r->app;
    dispatch_forward(x->r);
    MHD_resume_connection(x->conn); /* x may be gone after this */
    pthread_mutex_lock(&app->mu);
    app->forwards_n--;
    (void)pthread_cond_signal(&app->forwards_over);
    pthread_mutex_unlock(&app->mu);
    return NULL;
}

/* Ask the model server on a thread of its own, or here when there are too many. */
static void forward_start(struct app *app, struct exchange *x, struct MHD_Connection *conn)
{
    pthread_t thread;
    pthread_mutex_lock(&app->mu);
    bool room = app->forwards_n < FORWARDS_MAX;
    app->forwards_n += room ? 1 : 0;
    pthread_mutex_unlock(&app->mu);
    x->conn = conn;
    MHD_suspend_connection(conn);
    if (room && pthread_create(&thread, NULL, forward_main, x) == 0) {
        (void)pthread_detach(thread);
        return;
    }
    dispatch_forward(x->r);
    MHD_resume_connection(conn);
    pthread_mutex_lock(&app->mu);
    app->forwards_n -= room ? 1 : 0;
    pthread_mutex_unlock(&app->mu);
}

/* Nobody reads the answer any more: a message would be lost with it. */
static bool client_gone(struct MHD_Connection *conn)
{
    char c;
    const union MHD_ConnectionInfo *at =
        MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
    return at == NULL || recv(at->connect_fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* A request that waits for a message: again at its time. False: it is answered after all. */
static bool wait_on(struct app *app, const struct exchange *x, struct MHD_Connection *conn)
{
    pthread_mutex_lock(&app->mu);
    bool waits = !job_clock_stops(app);
    if (waits) {
        MHD_suspend_connection(conn);
        job_clock_wait(app, conn, x->r->wait_due, x->r->wait_seen);
    }
    pthread_mutex_unlock(&app->mu);
    if (!waits) {
        dispatch_again(x->r);
    }
    return waits;
}

static enum MHD_Result request_step(void *cls, struct MHD_Connection *conn, const char *url UNUSED,
                                    const char *method, const char *version UNUSED,
                                    const char *data, size_t *data_n, void **con_cls)
{
    struct app *app = cls;
    struct exchange *x = *con_cls;
    if (!x->begun) {
        exchange_begin(x, conn, method);
        return MHD_YES;
    }
    if (*data_n > 0) {
        body_add(x->r, data, *data_n);
        *data_n = 0;
        return MHD_YES;
    }
    if (!x->answered) {
        x->answered = true;
        if (invoice_is(x->r)) {
            invoice_handle(x->r);
        } else {
            dispatch_request(x->r);
        }
    } else if (dispatch_waits(x->r)) {
        if (client_gone(conn)) {
            return MHD_NO;
        }
        dispatch_again(x->r);
    }
    if (dispatch_waits(x->r) && wait_on(app, x, conn)) {
        return MHD_YES;
    }
    if (x->r->forward_to != NULL && !x->forwarded) {
        x->forwarded = true;
        forward_start(app, x, conn);
        return MHD_YES;
    }
    if (x->r->reply.delay_us > 0 && !x->waiting) {
        x->waiting = true;
        pthread_mutex_lock(&app->mu);
        MHD_suspend_connection(conn);
        job_clock_resume_at(app, conn, clock_wall_us() + x->r->reply.delay_us);
        pthread_mutex_unlock(&app->mu);
        return MHD_YES;
    }
    return answer_send(x, conn);
}

static bool address_parse(const char *text, struct sockaddr_in *ret, struct err *err)
{
    char host[64];
    const char *colon = strrchr(text, ':');
    int64_t port;
    if (colon == NULL || (size_t)(colon - text) >= sizeof host) {
        return err_set(err, ERR_INVALID, "'%s' is not ADDR:PORT", text);
    }
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    if (!parse_i64(str_of(colon + 1), 0, 65535, &port, err)) {
        return err_wrap(err, "port of '%s'", text);
    }
    *ret = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &ret->sin_addr) !=
        1) {
        return err_set(err, ERR_INVALID, "'%s' is not an IPv4 address", host);
    }
    return true;
}

/* A socket that listens at addr; -1 with errno set. */
static int socket_listen(const struct sockaddr_in *addr)
{
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0 &&
        bind(fd, (const struct sockaddr *)addr, sizeof *addr) == 0 &&
        listen(fd, LISTEN_BACKLOG) == 0) {
        return fd;
    }
    int why = errno;
    fd_closep(&fd);
    errno = why;
    return -1;
}

/* For port 0 choose one below the range of ephemeral ports. A client that connects to a dead
 * drover-local's port in that range can connect to itself, which keeps the port taken. */
static int socket_any(struct sockaddr_in *addr)
{
    struct rng rng;
    uint64_t seed;
    int fd = -1;
    rng_secret(&seed, sizeof seed);
    rng_seed(&rng, seed);
    for (int tries = 0; tries < ANY_PORT_TRIES && fd < 0; tries++) {
        addr->sin_port = htons((uint16_t)(ANY_PORT_FIRST + rng_below(&rng, ANY_PORT_COUNT)));
        fd = socket_listen(addr);
    }
    return fd;
}

/* Bind a given port, with retries: a drover-local killed a moment ago leaves the port taken until
 * the supervisor it was starting reaches exec. */
static int socket_given(const struct sockaddr_in *addr)
{
    int fd = socket_listen(addr);
    for (int tries = 0; tries < PORT_TRIES && fd < 0 && errno == EADDRINUSE; tries++) {
        (void)poll(NULL, 0, PORT_PAUSE_MS);
        fd = socket_listen(addr);
    }
    return fd;
}

static bool socket_open(const char *listen_at, int *ret_fd, char *url, size_t url_n,
                        struct err *err)
{
    struct sockaddr_in addr;
    char host[INET_ADDRSTRLEN];
    if (!address_parse(listen_at, &addr, err)) {
        return false;
    }
    int fd = addr.sin_port == 0 ? socket_any(&addr) : socket_given(&addr);
    if (fd < 0) {
        return err_set_os(err, ERR_IO, errno, "cannot listen on '%s'", listen_at);
    }
    bool any = addr.sin_addr.s_addr == htonl(INADDR_ANY);
    (void)inet_ntop(AF_INET, &addr.sin_addr, host, sizeof host);
    (void)snprintf(url, url_n, "http://%s:%u", any ? "127.0.0.1" : host,
                   (unsigned)ntohs(addr.sin_port));
    *ret_fd = fd;
    return true;
}

bool server_start(struct app *app, const char *listen, struct server **ret, struct err *err)
{
    struct server *s = xcalloc(1, sizeof *s);
    s->app = app;
    s->fd = -1;
    if (!socket_open(listen, &s->fd, app->url, sizeof app->url, err)) {
        free(s);
        return false;
    }
    s->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, request_step, app,
        MHD_OPTION_LISTEN_SOCKET, s->fd, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)SERVER_THREADS,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CONNECTION_IDLE_S,
        MHD_OPTION_URI_LOG_CALLBACK, uri_seen, app, MHD_OPTION_NOTIFY_COMPLETED, request_over, NULL,
        MHD_OPTION_END);
    if (s->daemon == NULL) {
        fd_closep(&s->fd);
        free(s);
        return err_set(err, ERR_IO, "cannot start the HTTP server");
    }
    *ret = s;
    return true;
}

void server_stop(struct server *s)
{
    if (s != NULL) {
        pthread_mutex_lock(&s->app->mu);
        while (s->app->forwards_n > 0) {
            (void)pthread_cond_wait(&s->app->forwards_over, &s->app->mu);
        }
        pthread_mutex_unlock(&s->app->mu);
        MHD_stop_daemon(s->daemon);
        free(s);
    }
}

void server_resume(struct MHD_Connection *conn)
{
    MHD_resume_connection(conn);
}
