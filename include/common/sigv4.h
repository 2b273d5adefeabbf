/* AWS Signature Version 4: sign, presign, verify. Pure: the time is a parameter. Source: AWS
 * "Create a signed AWS API request"; test vectors in tests/vectors. */
#pragma once
#include "buf.h"
#include "hash.h"
#include "units.h"

#define SIGV4_UNSIGNED_PAYLOAD "UNSIGNED-PAYLOAD"
#define SIGV4_EXPIRES_S_MAX    INT64_C(604800) /* of a presigned URL: seven days, as S3 */
#define SIGV4_EMPTY_SHA256     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct aws_creds { /* a value without pointers */
    char key_id[129];
    char secret[129];
    char session_token[4097]; /* "" when there is none */
    usec_t expires;           /* USEC_NEVER when they do not expire */
};
struct sigv4_header {
    struct str name; /* any case */
    struct str value;
};
struct sigv4_request {
    struct str method;
    struct str path;  /* as on the wire, encoded, without the query */
    struct str query; /* as on the wire, without '?'; may be empty */
    const struct sigv4_header
        *headers; /* every header to sign, host included, x-amz-date excluded */
    size_t headers_n;
    struct str payload_hash; /* hex, or UNSIGNED-PAYLOAD */
    struct str region;
    struct str service;
    bool is_s3; /* path is used as sent; otherwise it is normalised and encoded again */
};
/* Write the canonical request. x-amz-date is always among its headers, the security token when
 * token is not empty. For tests and error messages. */
void sigv4_canonical(const struct sigv4_request *r, const char amz_date[static 17],
                     struct str token, struct buf *out);
/* Append the value of the Authorization header to out. The caller also sends x-amz-date (ret_date)
 * and x-amz-security-token. */
void sigv4_sign(const struct sigv4_request *r, const struct aws_creds *c, usec_t now,
                char ret_date[static 17], struct buf *out);
/* Append the presigned query string ("X-Amz-Algorithm=...&X-Amz-Signature=..."), valid for
 * expires_s seconds, 1 to SIGV4_EXPIRES_S_MAX. */
void sigv4_presign(const struct sigv4_request *r, const struct aws_creds *c, usec_t now,
                   int64_t expires_s, struct buf *out);

/* The parts of a received Authorization header; views into it. */
struct sigv4_auth {
    struct str key_id, date, region, service, signed_headers, signature;
};
bool sigv4_parse_authorization(struct str header, struct sigv4_auth *ret,
                               struct err *err) MUST_CHECK;
/* Verify a received request. r->headers are exactly the headers named in SignedHeaders, without
 * x-amz-date; amz_date is the x-amz-date header. window_us is the accepted clock difference in
 * either direction. ERR_FORBIDDEN with aws_code SignatureDoesNotMatch, RequestExpired, ... */
bool sigv4_verify(const struct sigv4_request *r, const struct sigv4_auth *auth, const char *secret,
                  const char *amz_date, usec_t now, int64_t window_us, struct err *err) MUST_CHECK;
