/* One signed AWS call on the loop: json 1.x, query and S3 requests; errors decoded to code, class
 * and request id. No retries in here: the caller owns them (one retry layer only). */
#pragma once
#include "creds.h"
#include "http.h"

enum aws_outcome {
    AWS_OK,          /* 2xx and a body that can be read */
    AWS_THROTTLED,   /* refused: slow down; nothing was done */
    AWS_REFUSED,     /* a clean 4xx other than the above: nothing was done by this call */
    AWS_CREDENTIALS, /* refused: expired or unknown credentials, clock skew; nothing was done */
    AWS_UNKNOWN,     /* 5xx, timeout, reset, unreadable answer: it may have happened */
    AWS_UNSENT       /* never left this machine (refused connect, cancelled): it did not happen */
};
struct aws_client; /* endpoints, region, credentials, skew offset; one a program */
struct aws_config {
    const char *region;     /* NULL: creds_region */
    const char *user_agent; /* "droverd/1.0" */
};
struct aws_call {
    const char *service; /* "sagemaker", "s3", "sts", "logs", "servicequotas" */
    const char *target;  /* X-Amz-Target for json protocols, else NULL */
    const char *content_type;
    const char *method;                /* NULL: POST */
    const char *path;                  /* encoded, NULL: "/" */
    const char *query;                 /* encoded, without '?', NULL: none */
    const struct http_header *headers; /* more headers, all signed */
    size_t headers_n;
    struct str body;
    const char *bucket;    /* S3 only: goes into host or path, as the endpoint wants; NULL: none */
    bool body_borrow;      /* body is not copied: it stays valid until the callback */
    bool fresh_connection; /* see http.h; for calls that must never be written twice */
    size_t reply_max;      /* 0: 8 MiB */
    int64_t timeout_us;    /* 0: 30 s */
    int64_t stall_timeout_us; /* see http.h; 0: not watched */
    bool unsigned_payload;    /* S3 uploads: UNSIGNED-PAYLOAD */
    /* Called before signing, after it, and again when the connection stands and the first byte
     * would be written; false drops the call with AWS_UNSENT. The leader checks
     * its lease here. Cheap, no side effect. */
    bool (*may_send)(void *ctx);
    void *may_send_ctx;
    bool (*on_data)(void *ctx, struct str data); /* stream the body of a 2xx; ctx is cb's */
};
struct aws_reply {
    enum aws_outcome outcome;
    int status;
    const char *code;    /* cleaned error code, "" when OK */
    const char *message; /* the service's text, "" when none */
    const char *request_id;
    struct str body;               /* lent */
    const struct http_reply *http; /* headers by http_reply_header; lent */
    int64_t retry_after_us;        /* 0 when not said */
};
typedef void (*aws_cb)(void *ctx, const struct aws_reply *reply);

bool aws_client_new(struct loop *l, const struct aws_config *cfg, struct aws_client **ret,
                    struct err *err) MUST_CHECK;
/* Calls still out come back once, from in here, as AWS_UNKNOWN or AWS_UNSENT, so that what waits
 * for them lets go; their callbacks must not send again. */
void aws_client_free(struct aws_client *c);
/* Ask this before signing and before the first byte of every call that has no may_send of its own
 * (S3's too): the leader's lease check. NULL: no gate. */
void aws_client_set_gate(struct aws_client *c, bool (*may_send)(void *ctx), void *ctx);
const char *aws_client_region(const struct aws_client *c);
struct http *aws_client_http(struct aws_client *c);
/* Start a call; cb runs once from the loop (also for AWS_UNSENT, from the next pass). The handle
 * cancels: no callback afterwards. */
struct aws_req;
struct aws_req *aws_send(struct aws_client *c, const struct aws_call *call, aws_cb cb, void *ctx);
void aws_cancel(struct aws_req *r);
bool aws_req_sent(const struct aws_req *r); /* false proves that no byte of it has left so far */
/* Class of an error code and status. Pure. */
enum aws_outcome aws_classify(int status, const char *code, const char *message);
/* Turn a reply that is not OK into an err (code ERR_THROTTLED, ERR_AWS, ERR_NETWORK ...); returns
 * false. */
bool aws_reply_err(const struct aws_reply *r, const char *operation, struct err *err);
/* Count of signed requests handed to curl since start: metrics and the frozen-leader test. */
uint64_t aws_client_signed_n(const struct aws_client *c);
