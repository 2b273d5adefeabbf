/* Start, stop, and a request's way through libmicrohttpd's threads. No response is queued in the
 * first callback of a request unless the connection is to be closed, which the library then
 * does. */
#include "server.h"
#include "assets.h"
#include "auth.h"
#include "body.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "compress.h"
#include "handler_threads.h"
#include "head_timeout.h"
#include "list_view.h"
#include "listen.h"
#include "metrics.h"
#include "openapi.h"
#include "proxies.h"
#include "reply.h"
#include "request.h"
#include "request_check.h"
#include "response_cache.h"
#include "router.h"
#include "schemas.h"
#include "server_state.h"
#include "sign_in.h"
#include "stream.h"
#include "trace.h"
#include <unistd.h>

#define REQ_MAGIC         0x64724071u
#define IO_THREADS        2
#define IDLE_TIMEOUT_S    30
#define ARENA_MAX         (8 * 1024 * 1024)
#define CONNECTION_MEMORY (64 * 1024)
#define PROXY_CONNECTIONS 512

static void req_free(struct api_req *r)
{
    ASSERT(r->magic == REQ_MAGIC);
    if (r->stream != NULL) { /* the client went away before the answer was queued */
        MHD_destroy_response(r->stream);
    }
    body_done(r);
    buf_done(&r->out);
    json_decref(r->json);
    arena_done(&r->arena);
    free(r->path);
    r->magic = 0;
    free(r);
}

static enum MHD_Result forwarded_add(void *ctx, enum MHD_ValueKind kind, const char *key,
                                     const char *value)
{
    struct buf *b = ctx;
    (void)kind;
    if (value != NULL && strcasecmp(key, "X-Forwarded-For") == 0) {
        buf_addf(b, "%s%s", b->n > 0 ? "," : "", value);
    }
    return MHD_YES;
}

static struct head_timeout *conns_of(const struct api *a, const struct api_req *r)
{
    return r->by_proxy ? a->proxy_conns : a->conns;
}

static void req_peer(struct api_req *r)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info == NULL || info->client_addr == NULL) {
        return;
    }
    r->by_proxy = info->client_addr->sa_family == AF_UNIX;
    AUTO_BUF struct buf forwarded = BUF_INIT(API_HEADERS_BYTES);
    if (proxies_has(r->api->proxies, info->client_addr)) {
        (void)MHD_get_connection_values(r->conn, MHD_HEADER_KIND, forwarded_add, &forwarded);
    }
    proxies_client(r->api->proxies, info->client_addr, buf_cstr(&forwarded), r->peer, &r->loopback);
}

static struct api_req *req_new(struct api *a, struct MHD_Connection *conn, const char *url,
                               const char *method)
{
    struct api_req *r = xcalloc(1, sizeof *r);
    r->magic = REQ_MAGIC;
    r->api = a;
    r->conn = conn;
    r->spool_fd = -1;
    r->begun_us = clock_mono_us();
    r->path = xstrdup(url);
    for (size_t i = 0; i + 1 < sizeof r->method && method[i] != '\0'; i++) {
        r->method[i] = method[i];
    }
    buf_init(&r->body, API_BODY_MAX);
    buf_init(&r->out, API_ANSWER_MAX);
    arena_init(&r->arena, ARENA_MAX);
    trace_request(r);
    req_peer(r);
    return r;
}

struct head_sums {
    int n, lengths, encodings;
    size_t bytes;
};

static enum MHD_Result head_count(void *ctx, enum MHD_ValueKind kind, const char *key,
                                  const char *value)
{
    struct head_sums *h = ctx;
    (void)kind;
    h->n++;
    h->bytes += strlen(key) + (value == NULL ? 0 : strlen(value)) + 4;
    h->lengths += strcasecmp(key, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    h->encodings += strcasecmp(key, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0;
    return MHD_YES;
}

/* Faults of the head after which the connection is closed. */
static bool head_refused(struct api_req *r)
{
    struct head_sums h = {0};
    if (!str_is_utf8(str_of(r->path))) {
        reply_problem_status(r, 400, "malformed", "the path has a NUL, or bytes that are no UTF-8");
        return true;
    }
    (void)MHD_get_connection_values(r->conn, MHD_HEADER_KIND, head_count, &h);
    if (h.n > API_HEADERS_MAX || h.bytes > API_HEADERS_BYTES || strlen(r->path) > API_URL_MAX) {
        reply_problem_status(r, 431, "too_large", "the request's head is too large");
        return true;
    }
    if (h.lengths > 1 || h.encodings > 1 || (h.lengths > 0 && h.encodings > 0)) {
        reply_problem_status(r, 400, "malformed", "the body's length is given twice");
        return true;
    }
    const char *length = req_header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);
    int64_t max = body_max(r);
    int64_t n;
    /* A body slightly over the limit is read to its end, so that the client receives the answer. */
    if (length != NULL && !parse_i64(str_of(length), 0, max + BODY_THROWN_AWAY_MAX, &n, NULL)) {
        struct err err = ERR_INIT;
        (void)err_set(&err, ERR_TOO_LARGE, "the body may have at most %lld bytes", (long long)max);
        reply_problem(r, &err);
        return true;
    }
    return false;
}

static struct MHD_Response *req_response(struct api_req *r)
{
    if (r->stream != NULL) {
        return TAKE(r->stream);
    }
    if (r->fixed != NULL) {
        void *p;
        memcpy(&p, &r->fixed, sizeof p);
        return MHD_create_response_from_buffer(r->fixed_n, p, MHD_RESPMEM_PERSISTENT);
    }
    size_t n = r->out.n;
    if (n == 0) {
        static char nothing[1];
        return MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);
    }
    return MHD_create_response_from_buffer(n, buf_take(&r->out), MHD_RESPMEM_MUST_FREE);
}

static const char *const security_headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

/* The access log. Probes and the dashboard's files are asked for all the time: debug. The query is
 * left out, it may hold what people typed. */
static void req_log(const struct api_req *r)
{
    bool quiet = r->route == NULL ? r->fixed != NULL : (r->route->flags & ROUTE_PROBE) != 0;
    char trace[33] = "";
    if (r->traceparent[0] != '\0') {
        memcpy(trace, r->traceparent + 3, 32);
    }
    log_event(quiet ? LOG_DEBUG : LOG_INFO, "request_answered", LF_S("request_id", r->request_id),
              LF_S("trace_id", trace), LF_S("who", r->who.token_id), LF_S("method", r->method),
              LF_S("route", r->route != NULL ? r->route->pattern : ""), LF_I("status", r->status),
              LF_I("took_us", clock_mono_us() - r->begun_us));
}

static enum MHD_Result req_queue(struct api_req *r)
{
    struct MHD_Response *resp = req_response(r);
    if (resp == NULL) {
        return MHD_NO;
    }
    for (size_t i = 0; i < ARRAY_LEN(security_headers); i++) {
        (void)MHD_add_response_header(resp, security_headers[i][0], security_headers[i][1]);
    }
    (void)MHD_add_response_header(resp, "X-Request-Id", r->request_id);
    if (r->traceparent[0] != '\0') {
        (void)MHD_add_response_header(resp, "traceparent", r->traceparent);
    }
    if (r->content_type != NULL) {
        (void)MHD_add_response_header(resp, MHD_HTTP_HEADER_CONTENT_TYPE, r->content_type);
    }
    bool cache = false;
    for (int i = 0; i < r->headers_n; i++) {
        cache |= strcmp(r->headers[i].name, MHD_HTTP_HEADER_CACHE_CONTROL) == 0;
        (void)MHD_add_response_header(resp, r->headers[i].name, r->headers[i].value);
    }
    if (!cache) {
        (void)MHD_add_response_header(resp, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    }
    enum MHD_Result ok = MHD_queue_response(r->conn, (unsigned)r->status, resp);
    MHD_destroy_response(resp);
    metric_add(METRIC_HTTP_REQUESTS, 1);
    metric_add(METRIC_HTTP_4XX, r->status >= 400 && r->status < 500);
    metric_add(METRIC_HTTP_5XX, r->status >= 500);
    req_log(r);
    return ok;
}

/* Bodies are read as they are; RFC 7694 says how to tell. */
static bool req_check_encoding(struct api_req *r, struct err *err)
{
    const char *encoding = req_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING);
    if (encoding == NULL || body_is_empty(r) || strcasecmp(encoding, "identity") == 0) {
        return true;
    }
    reply_header(r, MHD_HTTP_HEADER_ACCEPT_ENCODING, "identity");
    return err_set(err, ERR_MEDIA_TYPE,
                   "Content-Encoding '%.32s' is not read here; send the body uncompressed",
                   encoding);
}

/* Before a body and after it. */
static bool req_may(struct api_req *r, struct err *err)
{
    if (r->route->role == API_PUBLIC) {
        return true;
    }
    return r->checked ? auth_check_again(r->api->auth, r, err) : auth_check(r->api->auth, r, err);
}

/* Called by handler threads and for inline routes. In phase CHECKING only the token is checked. */
static void req_run(struct api_req *r)
{
    struct err err = ERR_INIT;
    bool ok = req_may(r, &err);
    ok = ok && (r->checked || req_check_encoding(r, &err));
    if (ok && r->phase == REQ_CHECKING) {
        r->checked = true;
        r->phase = REQ_CHECKED;
        return;
    }
    if (ok && r->busy) {
        ok = err_set(&err, ERR_UNAVAILABLE, "too many request bodies at once; try again");
    }
    if (ok && r->too_large) {
        ok = err_set(&err, ERR_TOO_LARGE, "the body is larger than this resource accepts");
    }
    ok = ok && request_check(r, &err) && list_view_check(r, &err) && r->route->handler(r, &err);
    if (ok) {
        list_view_apply(r);
    }
    if (!ok) {
        reply_problem(r, &err);
        if (r->status >= 500 && log_allow("request_failed")) {
            log_event(LOG_WARN, "request_failed", LF_S("path", r->path),
                      LF_S("request_id", r->request_id), LF_ERR(&err));
        }
    }
    ASSERT(r->status != 0);
    reply_etag_default(r);
    compress_answer(r);
    r->refused = r->phase == REQ_CHECKING;
    r->phase = r->refused ? REQ_CHECKED : REQ_DONE;
    body_done(r);
    metric_add(METRIC_HTTP_MICROSECONDS, clock_mono_us() - r->begun_us);
}

/* Of campaign_post only the dry run is dear. A look at the token is not. */
static bool req_dear(const struct api_req *r)
{
    const char *dry = req_query(r, "dry_run");
    bool dry_run = dry != NULL && strcmp(dry, "true") == 0;
    return (r->route->flags & ROUTE_DEAR) != 0 && r->phase != REQ_CHECKING &&
           ((r->route->flags & ROUTE_DRY_RUN) == 0 || dry_run);
}

static enum MHD_Result req_dispatch(struct api_req *r)
{
    if ((r->route->flags & ROUTE_INLINE) != 0) {
        req_run(r);
        return req_queue(r);
    }
    MHD_suspend_connection(r->conn);
    struct api *a = r->api;
    bool probe = (r->route->flags & ROUTE_PROBE) != 0;
    if (!handler_threads_push(probe ? a->probe_workers : a->workers, r, req_dear(r))) {
        reply_problem_status(r, 503, "unavailable", "the server is stopping");
        r->phase = REQ_DONE;
        MHD_resume_connection(r->conn);
    }
    return MHD_YES;
}

static enum MHD_Result req_first(struct api *a, struct MHD_Connection *conn, const char *url,
                                 const char *method, void **con_cls)
{
    struct api_req *r = req_new(a, conn, url, method);
    *con_cls = r;
    head_timeout_head_read(conns_of(a, r), conn);
    r->route = route_find(r->method, r->path, r->params);
    if (head_refused(r)) {
        r->phase = REQ_DONE;
        return req_queue(r);
    }
    if (head_timeout_in_reserve(conns_of(a, r), conn)) {
        reply_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
        if (r->route == NULL || (r->route->flags & ROUTE_PROBE) == 0) {
            reply_problem_status(r, 503, "unavailable", "too many connections; try again");
            r->phase = REQ_DONE;
            return req_queue(r);
        }
    }
    /* No byte of a body is kept before the token is known. */
    if (r->route != NULL && r->route->role != API_PUBLIC && body_max(r) > 0 && !body_is_empty(r)) {
        r->phase = REQ_CHECKING;
        return req_dispatch(r);
    }
    r->phase = REQ_BODY;
    return MHD_YES;
}

static enum MHD_Result req_whole(struct api_req *r)
{
    if (r->refused) {
        r->phase = REQ_DONE;
        return req_queue(r);
    }
    if (r->route != NULL) {
        r->phase = REQ_RUNNING;
        return req_dispatch(r);
    }
    char allow[ROUTE_METHODS_MAX];
    route_methods(r->path, allow);
    if (allow[0] != '\0') {
        reply_header(r, MHD_HTTP_HEADER_ALLOW, "%s, OPTIONS", allow);
    }
    if (allow[0] != '\0' && strcmp(r->method, "OPTIONS") == 0) {
        r->status = 204;
    } else if (allow[0] != '\0') {
        reply_problem_status(r, 405, "method", "this resource does not support that method");
    } else if (!asset_serve(r)) {
        reply_problem_status(r, 404, "not_found", "there is nothing under this path");
    }
    r->phase = REQ_DONE;
    return req_queue(r);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *conn, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_n, void **con_cls)
{
    struct api *a = cls;
    struct api_req *r = *con_cls;
    (void)version;
    if (r == NULL) {
        return req_first(a, conn, url, method, con_cls);
    }
    ASSERT(r->magic == REQ_MAGIC);
    if (r->phase == REQ_DONE) {
        *data_n = 0;
        return req_queue(r);
    }
    if (r->phase == REQ_CHECKED) { /* the library repeats its first callback after a suspension */
        r->phase = REQ_BODY;
        if (*data_n == 0 && !body_is_empty(r)) {
            return MHD_YES;
        }
    }
    if (*data_n == 0) {
        return req_whole(r);
    }
    bool ok = body_take(r, data, *data_n);
    *data_n = 0;
    return ok ? MHD_YES : MHD_NO;
}

static void on_completed(void *cls, struct MHD_Connection *conn, void **con_cls,
                         enum MHD_RequestTerminationCode why)
{
    const struct api *a = cls;
    (void)why;
    if (*con_cls != NULL) {
        head_timeout_answered(conns_of(a, *con_cls), conn);
        req_free(*con_cls);
        *con_cls = NULL;
    }
}

static void on_mhd_log(void *cls, const char *fmt, va_list args)
{
    (void)cls;
    char line[512];
    (void)vsnprintf(line, sizeof line, fmt, args);
    log_event(LOG_DEBUG, "http_note", LF_S("text", line));
}

static unsigned connections_max(const struct api *a)
{
    return a->cfg.connections > 0 ? (unsigned)a->cfg.connections : 1024;
}

/* As the library's own, but a NUL would cut the text short unseen: it becomes a byte that is no
 * UTF-8, which every reader of paths and parameters refuses. */
static size_t unescape(void *cls, struct MHD_Connection *conn, char *text)
{
    (void)cls;
    (void)conn;
    char *to = text;
    for (const char *p = text; *p != '\0';) {
        uint8_t byte;
        if (p[0] == '%' && p[1] != '\0' && str_unhex((struct str){p + 1, 2}, &byte, 1)) {
            *to++ = (char)(byte != 0 ? byte : 0xff);
            p += 3;
        } else {
            *to++ = *p++;
        }
    }
    *to = '\0';
    return (size_t)(to - text);
}

static struct MHD_Daemon *daemon_on(struct api *a, int fd, bool ipv6, unsigned threads,
                                    unsigned connections, struct head_timeout *conns)
{
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
                     (ipv6 ? MHD_USE_IPv6 : 0);
    struct MHD_Daemon *d = MHD_start_daemon(
        flags, a->port, NULL, NULL, on_request, a, MHD_OPTION_EXTERNAL_LOGGER, on_mhd_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_THREAD_POOL_SIZE, threads,
        MHD_OPTION_CONNECTION_LIMIT, connections + HEAD_TIMEOUT_RESERVE,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK,
        unescape, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed, a, MHD_OPTION_NOTIFY_CONNECTION,
        head_timeout_notify, conns, MHD_OPTION_END);
    if (d == NULL) {
        (void)close(fd);
    }
    return d;
}

/* A second front door, for a proxy on this machine that says who asks. */
static bool proxy_start(struct api *a, struct err *err)
{
    const char *path = a->cfg.sign_in.proxy_socket;
    int fd;
    if (path == NULL) {
        return true;
    }
    if (!head_timeout_new(PROXY_CONNECTIONS + HEAD_TIMEOUT_RESERVE, a->proxies, &a->proxy_conns,
                          err) ||
        !listen_open_path(path, &fd, err)) {
        return false;
    }
    a->proxy_daemon = daemon_on(a, fd, false, IO_THREADS, PROXY_CONNECTIONS, a->proxy_conns);
    return a->proxy_daemon != NULL ||
           err_set(err, ERR_IO, "cannot start the HTTP server at '%s'", path);
}

static bool daemon_start(struct api *a, struct err *err)
{
    struct listen_address addr;
    int fd;
    if (a->cfg.listen != NULL) {
        addr = *a->cfg.listen;
    } else if (!listen_parse("127.0.0.1:0", &addr, err)) {
        return false;
    }
    if (!listen_open(&addr, &fd, &a->port, err)) {
        return false;
    }
    a->daemon = daemon_on(a, fd, addr.ipv6, IO_THREADS, connections_max(a), a->conns);
    return a->daemon != NULL ||
           err_set(err, ERR_IO, "cannot start the HTTP server on port %u", a->port);
}

bool api_start(const struct api_config *cfg, struct bridge *bridge, struct api **ret,
               struct err *err)
{
    struct api *a = xcalloc(1, sizeof *a);
    a->cfg = *cfg;
    a->bridge = bridge;
    a->started_us = clock_wall_us();
    a->schemas = schemas_load();
    list_view_schemas(a->schemas);
    buf_init(&a->openapi, OPENAPI_MAX);
    openapi_build(a->schemas, &a->openapi);
    buf_init(&a->campaign_schema, OPENAPI_MAX);
    schemas_campaign(&a->campaign_schema);
    a->threads = cfg->threads > 0 ? MAX(cfg->threads, 2) : 8;
    struct store *db = NULL;
    bool ok = store_open(cfg->conninfo, STORE_API, &db, err) && auth_new(cfg, db, &a->auth, err);
    store_close(db);
    a->answers = response_cache_new();
    a->sign_in = sign_in_new(&cfg->sign_in);
    ok = ok && proxies_new(cfg->trusted_proxies, &a->proxies, err) &&
         handler_threads_new(a, a->threads, req_run, &a->workers, err) &&
         handler_threads_new(a, 1, req_run, &a->probe_workers, err) &&
         stream_hub_new(cfg, (int)connections_max(a) - STREAMS_SPARED, &a->streams, err) &&
         head_timeout_new(connections_max(a) + HEAD_TIMEOUT_RESERVE, a->proxies, &a->conns, err) &&
         daemon_start(a, err) && proxy_start(a, err);
    if (!ok) {
        api_stop(a);
        return false;
    }
    *ret = a;
    return true;
}

void api_stop(struct api *a)
{
    if (a == NULL) {
        return;
    }
    /* No connection may be suspended when the daemon stops: end the streams first, then the
     * handlers. */
    stream_hub_stop(a->streams);
    if (a->workers != NULL) {
        handler_threads_stop(a->workers);
    }
    if (a->probe_workers != NULL) {
        handler_threads_stop(a->probe_workers);
    }
    if (a->daemon != NULL) {
        MHD_stop_daemon(a->daemon);
    }
    if (a->proxy_daemon != NULL) {
        MHD_stop_daemon(a->proxy_daemon);
        (void)unlink(a->cfg.sign_in.proxy_socket);
    }
    head_timeout_free(a->proxy_conns);
    head_timeout_free(a->conns);
    stream_hub_free(a->streams);
    handler_threads_free(a->workers);
    handler_threads_free(a->probe_workers);
    proxies_free(a->proxies);
    response_cache_free(a->answers);
    auth_free(a->auth);
    sign_in_free(a->sign_in);
    json_decref(a->schemas);
    buf_done(&a->openapi);
    buf_done(&a->campaign_schema);
    free(a);
}

uint16_t api_port(const struct api *a)
{
    return a->port;
}
