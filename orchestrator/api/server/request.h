/* One request from its head to its answer. The I/O thread fills the upper half; a handler thread
 * runs the handler, which fills the lower half. They never touch it at the same time: the
 * connection is suspended while a handler thread has the request. */
#pragma once
#include "common/arena.h"
#include "common/json.h"
#include "common/position.h"
#include "server.h"
#include "store/pg/connection.h"
#include <microhttpd.h>

#define API_BODY_MAX        (1024 * 1024)
#define API_PUBLIC_BODY_MAX 4096 /* of who has not shown a token yet */
#define API_BULK_MAX        (INT64_C(512) * 1024 * 1024)
#define API_SOURCE_MAX      (INT64_C(64) * 1024 * 1024)
#define API_HEADERS_MAX     64
#define API_HEADERS_BYTES   (16 * 1024)
#define API_URL_MAX         8192
#define API_ANSWER_MAX      (64 * 1024 * 1024)
#define API_PARAMS_MAX      3
#define API_TOKEN_ID_MAX    32
#define API_REQUEST_ID_MAX  64
#define API_TRACEPARENT_N   55
#define API_PROJECTS_TEXT   640
#define API_NAME_TEXT       260

enum api_role { API_PUBLIC, API_VIEWER, API_OPERATOR, API_ADMIN };
struct api_principal {
    char token_id[API_TOKEN_ID_MAX + 1];
    int64_t session_id; /* 0: asks with the token itself */
    enum api_role role;
    char projects[API_PROJECTS_TEXT]; /* where the role counts, by commas; "" everywhere */
    char name[API_NAME_TEXT];         /* what people call the token */
};
struct api_header {
    const char *name; /* static */
    char *value;      /* in the request's arena */
};
struct route;
struct api_config;
struct response_cache;
struct response_later;

struct api_req {
    uint32_t magic;
    struct api *api;
    struct MHD_Connection *conn;
    struct api_req *next; /* in the queue of the handler threads */
    enum { REQ_HEAD, REQ_CHECKING, REQ_CHECKED, REQ_BODY, REQ_RUNNING, REQ_DONE } phase;
    char method[16];
    char *path;                /* as sent, without the query */
    const struct route *route; /* NULL: an asset, or no such path */
    struct str params[API_PARAMS_MAX];
    char request_id[API_REQUEST_ID_MAX + 1];
    char traceparent[API_TRACEPARENT_N + 1]; /* "": none was sent */
    char peer[64];
    bool loopback;
    bool by_proxy;    /* came by the proxy's socket: its headers say who asks */
    int64_t begun_us; /* monotonic */
    struct buf body;
    json_t *json; /* the same, of a route with a schema for it */
    int spool_fd; /* -1: body is in memory */
    int64_t body_n;
    int64_t body_held;  /* bytes of it in the total of api.bodies */
    int64_t spool_held; /* and of api.spooled */
    bool too_large;
    bool busy;    /* no memory or spool was left for its body */
    bool checked; /* its token was, before its body came */
    bool refused; /* answered before its body came; the body is discarded */
    struct api_principal who;
    bool by_cookie;
    struct store *db; /* the handler thread's connection; handlers that need it call req_db first */
    struct response_later *later; /* what the handler thread makes once this has its answer */
    struct arena arena;

    int status; /* of the answer; 0: not answered */
    const char *content_type;
    struct buf out;
    const void *fixed; /* bytes of an asset, used instead of out */
    size_t fixed_n;
    struct api_header headers[12];
    int headers_n;
    struct MHD_Response *stream; /* used instead of out and fixed */
    struct faults *faults;       /* in the arena; non-NULL once a body was checked */
    int64_t other_campaign;      /* of a problem: the one in the way; 0: none */
};

/* For handlers. Strings are borrowed and live as long as the request. */
const char *req_header(const struct api_req *r, const char *name); /* NULL when absent */
const char *req_query(const struct api_req *r, const char *name);  /* NULL when absent */
/* Parameters by their rows of parameters.def; request_check has checked them. */
int64_t req_number(const struct api_req *r, const char *name); /* NUMBER or ID of the query */
bool req_flag(const struct api_req *r, const char *name);      /* FLAG; false when absent */
int64_t req_id(const struct api_req *r, int i);                /* path parameter i: NUMBER or ID */
/* The JSON object in the body, which fits its schema; borrowed. {} when there was no body. */
const json_t *req_json(const struct api_req *r);
/* Open r->db if it is not open. ERR_UNAVAILABLE, ERR_DATABASE. */
bool req_db(struct api_req *r, struct err *err) MUST_CHECK;
/* The documents /openapi.json and /schemas/campaign.json. */
struct str req_openapi(const struct api_req *r);
struct str req_campaign_schema(const struct api_req *r);
/* What all requests share: the server's settings, its cached answers, when it began (wall). */
const struct api_config *req_config(const struct api_req *r);
struct response_cache *req_answers(const struct api_req *r);
usec_t req_server_started_us(const struct api_req *r);
/* bridge_ask, for at most half of the handler threads at once, so that the rest stays free for
 * requests of the database. ERR_UNAVAILABLE beyond that. */
bool req_bridge(struct api_req *r, const struct bridge_question *q, int64_t timeout_us,
                struct bridge_reply *ret, struct err *err) MUST_CHECK;
/* The same, for an answer that may take longer: WAITS after timeout_us, then it is left. */
enum bridge_turn req_bridge_look(struct api_req *r, const struct bridge_question *q,
                                 int64_t timeout_us, struct bridge_reply *ret,
                                 struct bridge_progress *ret_progress, struct err *err) MUST_CHECK;
