/* A received AWS request on its way to an answer, and helpers that write answers as AWS does. */
#pragma once
#include "common/buf.h"
#include "common/json.h"
#include "common/units.h"

#define REQUEST_HEADERS_MAX    64
#define REQUEST_BODY_BYTES_MAX (7u << 20) /* an endpoint takes 6 MiB */
#define ERROR_TEXT_BYTES_MAX   9000       /* what is wrong with a request, all of it */
#define REPLY_BODY_BYTES_MAX   (256u << 20)
#define REQUEST_NAME_MAX       1200

struct app;
struct upload;
struct injected_fault;

/* When a fault acts in a request's life. At most one fault per stage and request. */
enum fault_stage {
    STAGE_BEFORE,
    STAGE_CHECK,
    STAGE_JOB,
    STAGE_READ,
    STAGE_EVENT,
    STAGE_AFTER,
    FAULT_STAGE_COUNT
};

struct header {
    struct str name;
    struct str value;
};

enum delivery { DELIVER, DELIVER_DROP, DELIVER_HALF };

struct reply {
    int status; /* HTTP status; 0: not set yet */
    const char *content_type;
    struct buf body;
    struct buf headers; /* "name\0value\0" pairs */
    int fd;             /* >= 0: the body is file bytes [offset, offset+length) instead */
    int64_t offset;
    int64_t length;
    char error[64]; /* AWS error code, "" when none */
    bool sync;      /* the journal must be on disk before this goes out */
    enum delivery delivery;
    int64_t delay_us;
};

struct request {
    struct app *app;
    uint64_t id;    /* of the wire log; grows in order of arrival */
    usec_t arrival; /* the request line was read */
    char *uri;      /* as on the wire */
    struct str path;
    struct str query;
    char method[12];
    struct header headers[REQUEST_HEADERS_MAX]; /* valid while the connection is */
    size_t headers_n;
    bool headers_overflow;
    struct buf body;
    struct upload *upload; /* S3 body streamed to a file; NULL else */
    json_t *input;         /* the body of JSON services, parsed; NULL else */
    char body_sha256[65];
    const char *service;         /* static; "" until known */
    const char *operation;       /* static; "" when unknown */
    char name[REQUEST_NAME_MAX]; /* the resource: job name, bucket/key */
    char session[256];           /* ARN of the assumed role it is signed by, else "" */
    char key_id[33];             /* key id of the valid signature, else "" */
    usec_t signed_at;            /* its x-amz-date */
    bool signed_ok;
    bool accepted;      /* this request created the resource */
    bool detached;      /* carried out after its connection was closed */
    char *forward_to;   /* InvokeEndpoint: the model server's URL; NULL else */
    usec_t wait_until;  /* it is answered at the latest then; 0: at once */
    usec_t wait_due;    /* and tried again then */
    uint64_t wait_seen; /* messages put when it last found none */
    char variant[64];   /* the variant that serves it */
    struct injected_fault *armed[FAULT_STAGE_COUNT];
    struct reply reply;
};

struct request *request_new(struct app *app, const char *uri);
void request_free(struct request *r);
/* Value of a header by case-insensitive name; the empty view when absent (p NULL). */
struct str request_header(const struct request *r, const char *name);
/* Decoded value of a query parameter into *out; false when absent. A parameter without value gives
 * "". */
bool request_query(const struct request *r, const char *name, struct buf *out);
bool request_has_query(const struct request *r, const char *name);
/* Decoded value of a field of a form; false when absent or longer than out takes. */
bool request_form(const struct request *r, const char *name, struct buf *out);
/* Of a service that answers in XML as STS does, and not in JSON: by the Query protocol. */
bool request_is_query(const struct request *r);

void reply_header(struct request *r, const char *name, const char *value);
/* 200 with this object as body; takes the reference. */
void reply_json(struct request *r, json_t *take);
/* 200 with an XML body already in r->reply.body. */
void reply_xml(struct request *r);
/* An error in the form of the request's service: JSON with __type, S3's or STS' XML. */
void reply_error(struct request *r, int status, const char *code, const char *fmt, ...)
    PRINTF(4, 5);
