/* One request from its head to its answer. The I/O thread fills the upper half, a worker runs the
 * handler, which fills the lower half; they never touch it at the same time (the connection is
 * suspended while a worker has it). */
#pragma once
#include "common/arena.h"
#include "common/json.h"
#include "common/position.h"
#include "server.h"
#include "store/pg/connection.h"
#include <microhttpd.h>

#define API_BODY_MAX      (1024 * 1024)
#define API_BULK_MAX      (INT64_C(512) * 1024 * 1024)
#define API_HEADERS_MAX   64
#define API_HEADERS_BYTES (16 * 1024)
#define API_URL_MAX       8192
#define API_ANSWER_MAX    (64 * 1024 * 1024)
#define API_PARAMS_MAX    3
#define API_TOKEN_ID_MAX  32

enum api_role { API_PUBLIC, API_VIEWER, API_OPERATOR, API_ADMIN };
struct api_principal {
    char token_id[API_TOKEN_ID_MAX + 1];
    enum api_role role;
};
struct api_header {
    const char *name; /* static */
    char *value;      /* in the request's arena */
};
struct route;

struct api_req {
    uint32_t magic;
    struct api *api;
    struct MHD_Connection *conn;
    struct api_req *next; /* in the workers' queue */
    enum { REQ_HEAD, REQ_CHECKING, REQ_CHECKED, REQ_BODY, REQ_RUNNING, REQ_DONE } phase;
    char method[16];
    char *path;                /* as sent, without the query */
    const struct route *route; /* NULL: an asset, or nothing */
    struct str params[API_PARAMS_MAX];
    char request_id[33];
    char peer[64];
    bool loopback;
    int64_t begun_us; /* monotonic */
    struct buf body;
    int spool_fd; /* -1: body is in memory */
    int64_t body_n;
    bool too_large;
    bool refused; /* answered before its body came: the rest is thrown away */
    struct api_principal who;
    bool by_cookie;
    struct store *db; /* the worker's connection; handlers that need it call req_db first */
    struct arena arena;

    int status; /* of the answer; 0: none yet */
    const char *content_type;
    struct buf out;
    const void *fixed; /* bytes of an asset instead of out */
    size_t fixed_n;
    struct api_header headers[12];
    int headers_n;
    struct MHD_Response *stream; /* instead of both */
    struct faults *faults;       /* in the arena; non-NULL when a body was looked at */
};

typedef bool (*api_handler)(struct api_req *r, struct err *err);
enum {
    ROUTE_INLINE = 1, /* answered on the I/O thread: touches nothing that can wait */
    ROUTE_BULK = 2,   /* body up to API_BULK_MAX, spooled; the token is checked before it is read */
    ROUTE_STREAM = 4,
};
struct route {
    const char *method;
    const char *pattern;
    enum api_role role;
    unsigned flags;
    api_handler handler;
    const char *query; /* names of parameters it takes, by blanks */
    const char *summary;
};
extern const struct route route_table[];
extern const size_t route_table_n;
/* The route for method and path; *ret_allow names what the path takes when only the method is
 * wrong. */
const struct route *route_find(const char *method, const char *path,
                               struct str params[API_PARAMS_MAX], const char **ret_allow);

/* What handlers read. Strings are borrowed for the request's life. */
const char *req_header(const struct api_req *r, const char *name); /* NULL when absent */
const char *req_query(const struct api_req *r, const char *name);  /* NULL when absent */
bool req_query_i64(const struct api_req *r, const char *name, int64_t min, int64_t max,
                   int64_t dflt, int64_t *ret, struct err *err) MUST_CHECK;
bool req_query_bool(const struct api_req *r, const char *name, bool *ret,
                    struct err *err) MUST_CHECK;
/* Parameter i as a number behind prefix ("c-"). ERR_NOT_FOUND when it is none. */
bool req_id(const struct api_req *r, int i, const char *prefix, int64_t *ret,
            struct err *err) MUST_CHECK;
/* JSON object in the body; an empty body is an empty object. Lives until json_decref. */
bool req_json(const struct api_req *r, json_t **ret, struct err *err) MUST_CHECK;
bool req_db(struct api_req *r, struct err *err) MUST_CHECK;
/* bridge_ask, but never by so many workers that too few are left for the database's readers. */
bool req_bridge(struct api_req *r, const struct bridge_question *q, int64_t timeout_us,
                struct bridge_reply *ret, struct err *err) MUST_CHECK;

/* What handlers answer. */
void reply_header(struct api_req *r, const char *name, const char *fmt, ...) PRINTF(3, 4);
bool reply_json(struct api_req *r, int status, struct str json); /* copies; true */
/* Set ETag; true when If-None-Match has it: the answer is 304 then. */
bool reply_etag(struct api_req *r, const char *etag);
/* Strong ETag of r->out. */
void reply_etag_of_body(struct api_req *r, const char *prefix);
/* problem+json from err (and r->faults). */
void reply_problem(struct api_req *r, const struct err *err);
void reply_problem_status(struct api_req *r, int status, const char *code, const char *detail);

/* auth.c */
struct auth;
bool auth_new(const struct api_config *cfg, struct store *db, struct auth **ret,
              struct err *err) MUST_CHECK;
void auth_free(struct auth *a);
/* Who asks? Fills r->who; ERR_UNAUTHENTICATED, ERR_FORBIDDEN, ERR_THROTTLED. */
bool auth_check(struct auth *a, struct api_req *r, struct err *err) MUST_CHECK;
bool auth_login(struct api_req *r, struct err *err);
bool auth_logout(struct api_req *r, struct err *err);
bool auth_session(struct api_req *r, struct err *err);

/* assets.c */
bool asset_serve(struct api_req *r);

/* What the parts of the server share. */
struct stream_hub;
struct response_cache;
struct handler_threads;
struct head_timeout;
struct api {
    struct api_config cfg;
    struct handler_threads *workers;
    struct bridge *bridge;
    struct MHD_Daemon *daemon;
    struct auth *auth;
    struct stream_hub *streams;
    struct response_cache *answers;
    struct head_timeout *conns;
    uint16_t port;
    int64_t started_us;
    int threads;
    atomic_int asking; /* workers that wait for the bridge */
};
/* workers.c: run handlers. */
bool handler_threads_new(struct api *a, int n, struct handler_threads **ret,
                         struct err *err) MUST_CHECK;
/* Run what is queued, end the threads; later pushes are refused. */
void handler_threads_stop(struct handler_threads *w);
void handler_threads_free(struct handler_threads *w);
/* The connection is suspended by the caller, resumed when r is answered. False: stopping. */
bool handler_threads_push(struct handler_threads *w, struct api_req *r) MUST_CHECK;
/* server.c: run r's handler (or only its check) and answer; called by workers and for inline
 * routes. */
void req_run(struct api_req *r);
