/* Signed AWS calls on the loop: JSON 1.x, query and S3 requests. Errors are decoded to code,
 * outcome and request id. Nothing is retried here: the caller owns retries, so there is one retry
 * layer. Only what is refused for its date while AWS' clock is not known yet is signed once more,
 * but never with fresh_connection. */
#pragma once
#include "aws_outcome.h"
#include "http.h"

struct aws_client; /* endpoints, region, credentials, clock skew */
struct aws_config {
    const char *region;     /* NULL: endpoint_region */
    const char *user_agent; /* "droverd/1.0" */
    /* a client of the same loop and region whose credentials and clock this one shares; NULL: own
     */
    struct aws_client *sibling;
    /* Calls are not signed and no credentials are looked for: objects of public buckets. */
    bool anonymous;
};
struct aws_call {
    const char *service;   /* "sagemaker", "s3", "sts", "logs", "servicequotas" */
    const char *target;    /* X-Amz-Target for json protocols, else NULL */
    const char *operation; /* for the pace; lives as long as the call; NULL: not paced */
    const char *content_type;
    const char *method;                /* NULL: POST */
    const char *path;                  /* encoded, NULL: "/" */
    const char *query;                 /* encoded, without '?', NULL: none */
    const struct http_header *headers; /* extra headers, all signed */
    size_t headers_n;
    struct str body;
    /* S3 only: goes into the host or the path, as the endpoint requires; NULL: none */
    const char *bucket;
    bool body_borrow;           /* the body is not copied; it must stay valid until the callback */
    bool fresh_connection;      /* see http.h; for calls that must never be sent twice */
    size_t reply_max;           /* 0: 8 MiB */
    int64_t timeout_us;         /* 0: 30 s */
    int64_t stall_timeout_us;   /* see http.h; 0: not watched */
    const char *payload_sha256; /* of the body, in hex, when it is known; NULL: computed */
    /* Called before signing, after signing, and before the first byte is written; false drops the
     * call with AWS_UNSENT. The leader checks its lease here. Must be cheap and free of side
     * effects. */
    bool (*may_send)(void *ctx);
    void *may_send_ctx;
    /* receives the body of a 2xx as it arrives; ctx is the callback's */
    bool (*on_data)(void *ctx, struct str data);
};
struct aws_reply {
    enum aws_outcome outcome;
    int status;
    const char *code;    /* cleaned error code, "" when OK */
    const char *message; /* the service's text, "" when none */
    const char *request_id;
    struct str body; /* valid during the callback */
    /* headers, read with http_reply_header; valid during the callback */
    const struct http_reply *http;
    int64_t retry_after_us; /* 0 when the answer names none */
};
typedef void (*aws_cb)(void *ctx, const struct aws_reply *reply);

/* Finds the credentials and fetches the first set, which blocks for some seconds at most; from then
 * on they are renewed on the loop. ERR_UNAUTHENTICATED, ERR_NETWORK, ERR_UNAVAILABLE, ERR_INVALID
 * (region). */
bool aws_client_new(struct loop *l, const struct aws_config *cfg, struct aws_client **ret,
                    struct err *err) MUST_CHECK;
/* Calls in flight end here: each callback runs once with AWS_UNKNOWN or AWS_UNSENT and must not
 * send again. */
void aws_client_free(struct aws_client *c);
/* The may_send of every call that has none of its own, S3 calls included: the leader's lease check.
 * NULL removes it. */
void aws_client_set_gate(struct aws_client *c, bool (*may_send)(void *ctx), void *ctx);
/* Says when a call may leave. Without one nothing waits. */
struct aws_pace {
    /* How long the call has to wait; its place is taken if that is at most most_us. */
    int64_t (*take)(void *ctx, const char *operation, int64_t most_us);
    /* It was answered: AWS_OK, AWS_REFUSED, AWS_CREDENTIALS or AWS_THROTTLED. sent_us:
     * CLOCK_MONOTONIC. */
    void (*answered)(void *ctx, const char *operation, int64_t sent_us, const struct aws_reply *r);
    void *ctx;
};
/* Calls with an operation ask `pace` first. One that has to wait is signed and sent when its time
 * has come. What would wait for more than ten seconds, or must never be sent twice
 * (fresh_connection: its caller counts from the signature), is AWS_UNSENT instead, with how long to
 * wait as retry_after_us. pace is copied. */
void aws_client_set_pace(struct aws_client *c, const struct aws_pace *pace);
const char *aws_client_region(const struct aws_client *c);
/* The region that a client without one takes. ERR_INVALID when there is none. */
bool aws_region(char *out, size_t out_n, struct err *err) MUST_CHECK;
/* "aws", "aws-cn", "aws-us-gov", ...: the partition of a region, as ARNs name it. */
const char *aws_partition(const char *region);
struct http *aws_client_http(struct aws_client *c);
/* Start a call. cb runs exactly once, from the loop, never before aws_send returns. The returned
 * handle is valid until then; aws_cancel frees it without a callback. */
struct aws_req;
struct aws_req *aws_send(struct aws_client *c, const struct aws_call *call, aws_cb cb, void *ctx);
void aws_cancel(struct aws_req *r);
/* false proves that no byte has left this machine so far */
bool aws_req_sent(const struct aws_req *r);
/* Class of an error code and status. Pure. */
enum aws_outcome aws_classify(int status, const char *code, const char *message);
/* Turn a reply that is not AWS_OK into an error (ERR_THROTTLED, ERR_AWS, ERR_NETWORK, ...). Returns
 * false. */
bool aws_reply_err(const struct aws_reply *r, const char *operation, struct err *err);
/* Credentials that come from a service or a process and are renewed, not fixed keys. */
bool aws_client_renews_creds(const struct aws_client *c);
/* For threads with a loop of their own: when the keys have expired or were refused, run the loop
 * until their renewal has ended, well or not. */
void aws_client_await_creds(struct aws_client *c);
/* What uploads to S3 do about x-amz-checksum-*. */
enum aws_checksums {
    AWS_CHECKSUMS_OFF,  /* AWS_REQUEST_CHECKSUM_CALCULATION or the profile says when_required */
    AWS_CHECKSUMS_SENT, /* the endpoint is not AWS' own: an answer without one is accepted */
    AWS_CHECKSUMS_REQUIRED
};
enum aws_checksums aws_client_checksums(struct aws_client *c);
/* True when objects read from S3 are compared with their checksums. False:
 * AWS_RESPONSE_CHECKSUM_VALIDATION or the profile says when_required. */
bool aws_client_compares(const struct aws_client *c);
/* AWS' clock minus ours, as measured from the Date of its answers; 0 while they agree to 4 minutes
 * or nothing has been answered yet. */
int64_t aws_client_skew_us(const struct aws_client *c);
/* How many answers have come: each has told AWS' clock. */
uint64_t aws_client_answers(const struct aws_client *c);
/* Signed requests handed to curl since start; for metrics and tests. */
uint64_t aws_client_signed_n(const struct aws_client *c);
