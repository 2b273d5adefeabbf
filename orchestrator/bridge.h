/* The only thing that API threads and the loop thread share apart from the database and counters: a
 * bounded queue by which a handler asks for data that only AWS has. Handler side: bridge_ask,
 * blocking with a deadline, a bounded number at once. Loop side: bridge_fd becomes readable,
 * bridge_take gives one question after the other, bridge_answer or bridge_refuse ends each exactly
 * once. When a handler gives up, the loop's later answer is dropped. A question that may take long
 * is begun, looked at and left instead: bridge_begin, bridge_look, bridge_leave. */
#pragma once
#include "common/buf.h"
#include "common/err.h"
#include "common/units.h"

#define BRIDGE_PENDING_MAX  64
#define BRIDGE_WAIT_US_MAX  (30 * USEC_PER_SEC)
#define BRIDGE_OBJECTS_MAX  1000000
#define BRIDGE_OBJECT_BYTES (256 * 1024 * 1024) /* of URIs in one listing */
#define BRIDGE_TYPE_MAX     129                 /* a media type and its NUL */

enum bridge_kind {
    BRIDGE_S3_LIST,   /* objects that match a glob */
    BRIDGE_LOG_TAIL,  /* a page of a job's log */
    BRIDGE_INVOKE,    /* what the model of an endpoint answers */
    BRIDGE_S3_PUT,    /* a file becomes an object */
    BRIDGE_S3_DELETE, /* an object goes */
    BRIDGE_IDENTITY,  /* whose credentials droverd has */
    BRIDGE_IMAGE,     /* the digest of an image in ECR */
    BRIDGE_SUBNETS,   /* zones and free addresses of subnets */
    BRIDGE_QUOTA,     /* a higher quota */
    BRIDGE_EVENTS,    /* the queue of state changes */
};
struct bridge_object {
    char *uri; /* s3://bucket/key */
    int64_t size;
};
struct bridge_listing { /* owns its strings */
    struct bridge_object *at;
    size_t n;
    size_t cap;
    size_t bytes;
};
void bridge_listing_done(struct bridge_listing *l); /* cleanup function */
/* Append a copy; false when a maximum is reached. */
bool bridge_listing_add(struct bridge_listing *l, struct str uri, int64_t size) MUST_CHECK;
/* Append what `from` has, and leave it empty; false, and nothing is moved, when that is too
 * much. */
bool bridge_listing_move(struct bridge_listing *l, struct bridge_listing *from) MUST_CHECK;

/* The question as the loop sees it; strings are valid until it is answered. */
struct bridge_question {
    int64_t id;
    enum bridge_kind kind;
    /* S3_LIST: s3://bucket/prefix with '*'; S3_PUT, S3_DELETE: object; IMAGE: repository; SUBNETS:
     * ids by commas; QUOTA: its name */
    char uri[1200];
    int64_t max;       /* S3_LIST: objects; LOG_TAIL: lines; QUOTA: its value */
    bool patient;      /* S3_LIST: pages that fail are asked for again as long as it is wanted */
    char job[64];      /* LOG_TAIL: training job; IMAGE: registry */
    char token[1024];  /* LOG_TAIL: the page to read, "" = the newest page; IMAGE: tag or digest */
    char endpoint[64]; /* INVOKE */
    char content_type[BRIDGE_TYPE_MAX]; /* INVOKE: of the body; S3_PUT: "" is gzip */
    struct str body;                    /* INVOKE: copied when it is asked */
    int fd;                             /* S3_PUT: the file; duplicated when it is asked */
    int64_t size;                       /* S3_PUT: its bytes, at least one */
};
/* The answer as the handler receives it. */
struct bridge_reply {
    struct bridge_listing listing; /* S3_LIST, in key order */
    /* LOG_TAIL: {"lines":[{"time","host","text"}],"next":"token"}; INVOKE: the model's bytes;
     * IDENTITY: {"account","arn","skew_seconds"}; IMAGE: "sha256:..." as it is;
     * SUBNETS: [{"id","zone","free"}]; QUOTA: {"id","status"}; EVENTS: {"queue","waiting"}, queue
     * "": none is set */
    struct buf json;
    char content_type[BRIDGE_TYPE_MAX]; /* INVOKE: of these */
};
void bridge_reply_done(struct bridge_reply *r); /* cleanup function */
/* How far the loop is with a question, S3_LIST only. */
struct bridge_progress {
    int64_t pages, objects; /* that match */
    int64_t refused;        /* pages that were asked for again */
    char problem[256];      /* why the last of them was; "": a page has come since */
};

struct bridge;
bool bridge_new(struct bridge **ret, struct err *err) MUST_CHECK;
/* Call after api_stop: no handler may be waiting. */
void bridge_free(struct bridge *b);
/* Refuse every further question with ERR_UNAVAILABLE, and waiting ones immediately. */
void bridge_close(struct bridge *b);

/* Handler side, any thread: */
/* Ask and wait for at most timeout_us (<= BRIDGE_WAIT_US_MAX). *ret is the caller's. ERR_LIMIT when
 * BRIDGE_PENDING_MAX questions wait, ERR_TIMEOUT, or what the loop refused with. */
bool bridge_ask(struct bridge *b, const struct bridge_question *q, int64_t timeout_us,
                struct bridge_reply *ret, struct err *err) MUST_CHECK;
/* The same in steps. begin: ask, without waiting. ERR_UNAVAILABLE as bridge_ask. */
bool bridge_begin(struct bridge *b, const struct bridge_question *q, int64_t *ret_id,
                  struct err *err) MUST_CHECK;
enum bridge_turn { BRIDGE_WAITS, BRIDGE_ANSWERED, BRIDGE_REFUSED };
/* Wait for at most timeout_us, 0: not at all. WAITS: *ret_progress says how far it is, and it has
 * to be looked at again or left. Otherwise it is over: ANSWERED fills *ret, the caller's; REFUSED
 * fills *err. */
enum bridge_turn bridge_look(struct bridge *b, int64_t id, int64_t timeout_us,
                             struct bridge_reply *ret, struct bridge_progress *ret_progress,
                             struct err *err) MUST_CHECK;
/* Its answer is not wanted any more. */
void bridge_leave(struct bridge *b, int64_t id);

/* Loop side, one thread: */
int bridge_fd(const struct bridge *b); /* readable while questions are waiting */
/* Next question into *ret; false when there is none. */
bool bridge_take(struct bridge *b, struct bridge_question *ret) MUST_CHECK;
/* Whether the handler still waits for the answer to question id, which was taken. */
bool bridge_is_wanted(struct bridge *b, int64_t id);
/* How far question id is. */
void bridge_tell(struct bridge *b, int64_t id, const struct bridge_progress *p);
/* Answer question id; takes the listing or json out of *r (left empty). */
void bridge_answer(struct bridge *b, int64_t id, struct bridge_reply *r);
void bridge_refuse(struct bridge *b, int64_t id, const struct err *why);
