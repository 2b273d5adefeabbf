/* Signature checking: see auth.h. Texts and codes: AWS' answers of the JSON services, S3 and STS.
 */
#include "auth.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/sigv4.h"
#include "local/services/issued_keys.h"
#include "upload.h"
#include <stdio.h>

#define PRESIGNED_BYTES_MAX ((size_t)4096)

enum refusal {
    MISSING,
    INCOMPLETE,
    UNKNOWN_KEY,
    BAD_REGION,
    BAD_SERVICE,
    EXPIRED,
    MISMATCH,
    BAD_HASH,
    EXPIRED_TOKEN
};

/* Error codes and texts of each family of services: JSON 1.x, S3, STS. */
static const struct {
    struct {
        int status;
        const char *code;
    } json, s3, sts;
    const char *text;
} refusals[] = {
    [MISSING] = {{400, "MissingAuthenticationTokenException"},
                 {403, "AccessDenied"},
                 {403, "MissingAuthenticationToken"},
                 "Request is missing Authentication Token"},
    [INCOMPLETE] = {{400, "IncompleteSignatureException"},
                    {400, "AuthorizationHeaderMalformed"},
                    {400, "IncompleteSignature"},
                    "Authorization header requires existence of the "
                    "Credential, SignedHeaders and Signature parameters and of the x-amz-date and "
                    "host headers"},
    [UNKNOWN_KEY] = {{400, "UnrecognizedClientException"},
                     {403, "InvalidAccessKeyId"},
                     {403, "InvalidClientTokenId"},
                     "The security token included in the request is invalid."},
    [BAD_REGION] = {{400, "InvalidSignatureException"},
                    {400, "AuthorizationHeaderMalformed"},
                    {403, "SignatureDoesNotMatch"},
                    "Credential should be scoped to a valid region."},
    [BAD_SERVICE] = {{400, "InvalidSignatureException"},
                     {400, "AuthorizationHeaderMalformed"},
                     {403, "SignatureDoesNotMatch"},
                     "Credential should be scoped to correct service."},
    [EXPIRED] = {{400, "InvalidSignatureException"},
                 {403, "RequestTimeTooSkewed"},
                 {403, "SignatureDoesNotMatch"},
                 "Signature expired or not yet current"},
    [MISMATCH] = {{400, "InvalidSignatureException"},
                  {403, "SignatureDoesNotMatch"},
                  {403, "SignatureDoesNotMatch"},
                  "The request signature we calculated does not match the signature you provided. "
                  "Check your "
                  "AWS Secret Access Key and signing method. Consult the service documentation for "
                  "details."},
    [BAD_HASH] = {{400, "InvalidSignatureException"},
                  {400, "XAmzContentSHA256Mismatch"},
                  {403, "SignatureDoesNotMatch"},
                  "The provided 'x-amz-content-sha256' header does not match what was computed."},
    [EXPIRED_TOKEN] = {{400, "ExpiredTokenException"},
                       {400, "ExpiredToken"},
                       {403, "ExpiredToken"},
                       "The security token included in the request is expired"},
};

static bool refuse(struct request *r, enum refusal why)
{
    if (strcmp(r->service, "s3") == 0) {
        reply_error(r, refusals[why].s3.status, refusals[why].s3.code, "%s", refusals[why].text);
    } else if (request_is_query(r)) {
        reply_error(r, refusals[why].sts.status, refusals[why].sts.code, "%s", refusals[why].text);
    } else {
        reply_error(r, refusals[why].json.status, refusals[why].json.code, "%s",
                    refusals[why].text);
    }
    return false;
}

void auth_refuse_expired_token(struct request *r)
{
    (void)refuse(r, EXPIRED_TOKEN);
}

/* The secret of an access key id, configured or given out; false: unknown. */
static bool secret_of(const struct local_settings *set, struct str key_id, char ret[static 129])
{
    char id[129];
    if (key_id.n >= sizeof id) {
        return false;
    }
    memcpy(id, key_id.p, key_id.n);
    id[key_id.n] = '\0';
    const char *secret = json_string_value(json_object_get(set->credentials, id));
    if (secret == NULL) {
        return issued_secret(set, key_id, ret);
    }
    (void)snprintf(ret, 129, "%s", secret);
    return true;
}

bool auth_prepare_chunks(const struct request *r, const struct local_settings *set,
                         struct upload *u)
{
    struct sigv4_auth auth;
    struct err err = ERR_INIT;
    struct str header = request_header(r, "authorization");
    struct str date = request_header(r, "x-amz-date");
    if (!sigv4_parse_authorization(header, &auth, &err) || date.n >= sizeof u->date ||
        auth.signature.n != 64) {
        return false;
    }
    char secret[129];
    if (!secret_of(set, auth.key_id, secret)) {
        return false;
    }
    AUTO_FREE char *start = xasprintf("AWS4%s", secret);
    uint8_t k[32];
    hash_hmac_sha256(start, strlen(start), auth.date.p, auth.date.n, k);
    hash_hmac_sha256(k, sizeof k, auth.region.p, auth.region.n, k);
    hash_hmac_sha256(k, sizeof k, auth.service.p, auth.service.n, k);
    hash_hmac_sha256(k, sizeof k, "aws4_request", 12, u->key);
    (void)snprintf(u->date, sizeof u->date, STR_FMT, STR_ARG(date));
    (void)snprintf(u->scope, sizeof u->scope, STR_FMT "/" STR_FMT "/" STR_FMT "/aws4_request",
                   STR_ARG(auth.date), STR_ARG(auth.region), STR_ARG(auth.service));
    (void)snprintf(u->previous, sizeof u->previous, STR_FMT, STR_ARG(auth.signature));
    return true;
}

/* Keys that were given out come with their token and end; the configured ones have neither. */
static bool token_check(struct request *r, const struct local_settings *set, struct str key_id,
                        struct str token)
{
    char secret[65];
    struct str session;
    usec_t expires;
    if (!issued_secret(set, key_id, secret)) {
        return token.p == NULL || refuse(r, UNKNOWN_KEY);
    }
    if (!issued_token_check(set, key_id, token, &session, &expires)) {
        return refuse(r, UNKNOWN_KEY);
    }
    (void)snprintf(r->session, sizeof r->session, STR_FMT, STR_ARG(session));
    return expires > clock_wall_us() || refuse(r, EXPIRED_TOKEN);
}

static bool refuse_expired(struct request *r, usec_t then, usec_t now, int64_t window_us)
{
    char sent[17];
    char limit[17];
    char here[17];
    if (strcmp(r->service, "s3") == 0) {
        return refuse(r, EXPIRED);
    }
    clock_format_amz(then, sent);
    clock_format_amz(now, here);
    clock_format_amz(then < now ? now - window_us : now + window_us, limit);
    const char *code = request_is_query(r) ? "SignatureDoesNotMatch" : "InvalidSignatureException";
    long long minutes = window_us / USEC_PER_SEC / 60;
    reply_error(r, request_is_query(r) ? 403 : 400, code,
                then < now
                    ? "Signature expired: %s is now earlier than %s (%s - %lld min.)"
                    : "Signature not yet current: %s is still later than %s (%s + %lld min.)",
                sent, limit, here, minutes);
    return false;
}

/* The hash the signature was made over. S3 names it in a header; the others sign the body's. */
static bool payload_hash(struct request *r, struct str *ret, bool *ret_ok)
{
    struct str said = request_header(r, "x-amz-content-sha256");
    const char *real = r->upload != NULL ? r->upload->sha256_hex : r->body_sha256;
    *ret_ok = true;
    if (said.p == NULL) {
        *ret = str_of(real);
        return strcmp(r->service, "s3") != 0;
    }
    *ret = said;
    bool free_form = str_eq_cstr(said, SIGV4_UNSIGNED_PAYLOAD) || str_starts(said, "STREAMING-");
    if (strcmp(r->service, "s3") != 0 || !free_form) {
        *ret_ok = str_eq_cstr(said, real);
    } else if (r->upload != NULL && r->upload->signature_failed) {
        *ret_ok = false;
    }
    return true;
}

/* The headers named in SignedHeaders except x-amz-date; false when one of them is missing. */
static bool signed_headers(const struct request *r, struct str names, struct sigv4_header *out,
                           size_t *ret_n, bool *ret_host)
{
    size_t n = 0;
    *ret_host = false;
    while (names.n > 0) {
        struct str name = str_split(&names, ';');
        char text[128];
        if (name.n >= sizeof text || n == REQUEST_HEADERS_MAX) {
            return false;
        }
        memcpy(text, name.p, name.n);
        text[name.n] = '\0';
        struct str value = request_header(r, text);
        if (value.p == NULL) {
            return false;
        }
        *ret_host = *ret_host || strcmp(text, "host") == 0;
        if (strcmp(text, "x-amz-date") != 0) {
            out[n++] = (struct sigv4_header){name, value};
        }
    }
    *ret_n = n;
    return true;
}

/* Every received x-amz- header must be signed, or an attacker could add one. */
static bool amz_headers_signed(const struct request *r, const struct sigv4_header *signed_h,
                               size_t n)
{
    for (size_t i = 0; i < r->headers_n; i++) {
        char name[128];
        struct str h = r->headers[i].name;
        if (h.n < 6 || h.n >= sizeof name || strncasecmp(h.p, "x-amz-", 6) != 0 ||
            str_ieq_cstr(h, "x-amz-date") || str_ieq_cstr(h, "x-amz-user-agent")) {
            continue;
        }
        memcpy(name, h.p, h.n);
        name[h.n] = '\0';
        bool found = false;
        for (size_t k = 0; k < n; k++) {
            found = found || str_ieq_cstr(signed_h[k].name, name);
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

enum presigned_field { CREDENTIAL, DATE, EXPIRES, NAMES, SIGNATURE, TOKEN, ALGORITHM, FIELD_COUNT };

static const char *const presigned_names[FIELD_COUNT] = {
    "X-Amz-Credential", "X-Amz-Date",           "X-Amz-Expires",  "X-Amz-SignedHeaders",
    "X-Amz-Signature",  "X-Amz-Security-Token", "X-Amz-Algorithm"};

/* What a presigned URL says in its query. */
struct presigned {
    struct buf is[FIELD_COUNT]; /* decoded */
    struct buf query;           /* the rest of it, as on the wire */
};

/* False: a field is missing. */
static bool presigned_read(const struct request *r, struct presigned *p)
{
    struct str rest = r->query;
    bool all = true;
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        all = (request_query(r, presigned_names[i], &p->is[i]) || i == TOKEN) && all;
    }
    while (rest.n > 0) {
        struct str pair = str_split(&rest, '&');
        struct str value = pair;
        struct str name = str_split(&value, '=');
        bool own = false;
        for (size_t i = 0; i < FIELD_COUNT; i++) {
            own = own || str_eq_cstr(name, presigned_names[i]);
        }
        if (!own) {
            buf_addf(&p->query, "%s" STR_FMT, p->query.n > 0 ? "&" : "", STR_ARG(pair));
        }
    }
    return all && p->is[SIGNATURE].n == 64 && p->is[DATE].n == 16;
}

/* A URL signed in advance: the same signature over its query, without the payload's hash. */
static bool presigned_verify(struct request *r, const struct local_settings *set,
                             struct presigned *p)
{
    struct sigv4_header headers[REQUEST_HEADERS_MAX];
    struct aws_creds creds = {.expires = USEC_NEVER};
    struct err err = ERR_INIT;
    struct str scope = buf_str(&p->is[CREDENTIAL]);
    struct str key_id = str_split(&scope, '/');
    struct str day = str_split(&scope, '/');
    struct str region = str_split(&scope, '/');
    char secret[129];
    size_t n;
    bool host;
    usec_t then;
    int64_t seconds;
    if (!clock_parse_amz(buf_cstr(&p->is[DATE]), &then, &err) || day.n != 8 ||
        memcmp(day.p, p->is[DATE].p, 8) != 0 || !str_eq_cstr(scope, "s3/aws4_request") ||
        !parse_i64(buf_str(&p->is[EXPIRES]), 1, SIGV4_EXPIRES_S_MAX, &seconds, &err) ||
        !signed_headers(r, buf_str(&p->is[NAMES]), headers, &n, &host) || !host) {
        return refuse(r, INCOMPLETE);
    }
    if (!secret_of(set, key_id, secret)) {
        return refuse(r, UNKNOWN_KEY);
    }
    if (!str_eq_cstr(region, set->region)) {
        return refuse(r, BAD_REGION);
    }
    usec_t now = clock_wall_us();
    if (now > then + seconds * USEC_PER_SEC || then > now + set->signature_window_us) {
        reply_error(r, 403, "AccessDenied",
                    now > then ? "Request has expired" : "Request is not yet valid");
        return false;
    }
    (void)snprintf(creds.key_id, sizeof creds.key_id, STR_FMT, STR_ARG(key_id));
    (void)snprintf(creds.secret, sizeof creds.secret, "%s", secret);
    (void)snprintf(creds.session_token, sizeof creds.session_token, "%s", buf_cstr(&p->is[TOKEN]));
    struct sigv4_request q = {.method = str_of(r->method),
                              .path = r->path,
                              .query = buf_str(&p->query),
                              .headers = headers,
                              .headers_n = n,
                              .payload_hash = STR(SIGV4_UNSIGNED_PAYLOAD),
                              .region = region,
                              .service = STR("s3"),
                              .is_s3 = true};
    AUTO_BUF struct buf signed_query = BUF_INIT(8 * PRESIGNED_BYTES_MAX);
    sigv4_presign(&q, &creds, then, seconds, &signed_query);
    if (!amz_headers_signed(r, headers, n) ||
        !hash_equal(signed_query.p + signed_query.n - 64, p->is[SIGNATURE].p, 64)) {
        return refuse(r, MISMATCH);
    }
    r->signed_ok = true;
    r->signed_at = then;
    (void)snprintf(r->key_id, sizeof r->key_id, STR_FMT, STR_ARG(key_id));
    return token_check(r, set, key_id,
                       p->is[TOKEN].n > 0 ? buf_str(&p->is[TOKEN]) : (struct str){0});
}

static bool presigned_check(struct request *r, const struct local_settings *set)
{
    struct presigned p;
    buf_init(&p.query, PRESIGNED_BYTES_MAX);
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        buf_init(&p.is[i], PRESIGNED_BYTES_MAX);
    }
    bool small = !r->headers_overflow && r->path.n + r->query.n < PRESIGNED_BYTES_MAX;
    bool ok = small && presigned_read(r, &p) ? presigned_verify(r, set, &p) : refuse(r, INCOMPLETE);
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        buf_done(&p.is[i]);
    }
    buf_done(&p.query);
    return ok;
}

static bool header_check(struct request *r, const struct local_settings *set)
{
    struct sigv4_auth auth;
    struct sigv4_header headers[REQUEST_HEADERS_MAX];
    struct err err = ERR_INIT;
    struct str header = request_header(r, "authorization");
    struct str date = request_header(r, "x-amz-date");
    size_t n = 0;
    char amz_date[17];
    usec_t then;
    bool host;
    bool hash_ok;
    char secret[129];
    struct str hash;
    if (r->headers_overflow || !sigv4_parse_authorization(header, &auth, &err) || date.n != 16 ||
        !signed_headers(r, auth.signed_headers, headers, &n, &host) || !host) {
        return refuse(r, INCOMPLETE);
    }
    if (!secret_of(set, auth.key_id, secret)) {
        return refuse(r, UNKNOWN_KEY);
    }
    /* Pricing answers for all regions in a few. */
    bool elsewhere = strcmp(r->service, "pricing") == 0;
    if (!elsewhere && !str_eq_cstr(auth.region, set->region)) {
        return refuse(r, BAD_REGION);
    }
    if (!str_eq_cstr(auth.service, r->service)) {
        return refuse(r, BAD_SERVICE);
    }
    memcpy(amz_date, date.p, 16);
    amz_date[16] = '\0';
    if (!clock_parse_amz(amz_date, &then, &err) || auth.date.n != 8 ||
        memcmp(auth.date.p, amz_date, 8) != 0) {
        return refuse(r, INCOMPLETE);
    }
    usec_t now = clock_wall_us();
    if (then < now - set->signature_window_us || then > now + set->signature_window_us) {
        return refuse_expired(r, then, now, set->signature_window_us);
    }
    if (!payload_hash(r, &hash, &hash_ok)) {
        return refuse(r, INCOMPLETE);
    }
    struct sigv4_request q = {
        .method = str_of(r->method),
        .path = r->path,
        .query = r->query,
        .headers = headers,
        .headers_n = n,
        .payload_hash = hash,
        .region = auth.region,
        .service = str_of(r->service),
        .is_s3 = strcmp(r->service, "s3") == 0,
    };
    if (!amz_headers_signed(r, headers, n) ||
        !sigv4_verify(&q, &auth, secret, amz_date, now, set->signature_window_us, &err)) {
        return refuse(r, MISMATCH);
    }
    if (!hash_ok) {
        return refuse(r, BAD_HASH);
    }
    r->signed_ok = true;
    r->signed_at = then;
    (void)snprintf(r->key_id, sizeof r->key_id, STR_FMT, STR_ARG(auth.key_id));
    return token_check(r, set, auth.key_id, request_header(r, "x-amz-security-token"));
}

bool auth_check(struct request *r, const struct local_settings *set)
{
    bool has_header = request_header(r, "authorization").p != NULL;
    if (!has_header && strcmp(r->service, "s3") == 0 && request_has_query(r, "X-Amz-Signature")) {
        return presigned_check(r, set);
    }
    return has_header ? header_check(r, set) : refuse(r, MISSING);
}
