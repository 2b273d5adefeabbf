/* Decodes and classifies AWS errors. The tables follow botocore's retry tables and the service
 * documents. Decoding accepts unknown codes; an error is classified as refused only when the call
 * certainly did nothing. */
#include "aws_error.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/xml.h"
#include <ctype.h>

static const char *const throttling_codes[] = {
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestThrottledException",
    "RequestThrottled",
    "TooManyRequestsException",
    "TooManyRequests",
    "RequestLimitExceeded",
    "BandwidthLimitExceeded",
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "TransactionInProgressException",
    "PriorRequestNotComplete",
    "SlowDown",
    "EC2ThrottledException",
    /* S3: another conditional write is in flight; nothing was done, retry later. */
    "OperationAborted",
    "ConditionalRequestConflict",
};

/* Service or network faults with a 4xx status: the call may have taken effect. */
static const char *const transient_codes[] = {
    "RequestTimeout",
    "RequestTimeoutException",
    "InternalError",
    "InternalFailure",
    "InternalServerException",
    "InternalServerError",
    "ServiceUnavailable",
    "ServiceUnavailableException",
    "BadDigest", /* the bytes were damaged in transit: send them again */
    "XAmzContentSHA256Mismatch",
    "IncompleteBody",
};

static const char *const credential_codes[] = {
    "ExpiredToken",
    "ExpiredTokenException",
    "RequestExpired",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "TokenRefreshRequired",
    "InvalidAccessKeyId", /* S3's spelling */
    "InvalidToken",
    "InvalidSecurity",
    "RequestTimeTooSkewed",
};

static bool is_one_of(const char *code, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(code, list[i]) == 0) {
            return true;
        }
    }
    return false;
}
#define IS_ONE_OF(code, list) is_one_of((code), (list), ARRAY_LEN(list))

bool aws_error_date(const struct http_reply *r, usec_t *ret)
{
    char text[40];
    struct str header = http_reply_header(r, "Date");
    if (header.n == 0 || header.n >= sizeof text) {
        return false;
    }
    memcpy(text, header.p, header.n);
    text[header.n] = '\0';
    return clock_parse_http(text, ret, NULL);
}

bool aws_error_is_skew(const char *code, const char *message)
{
    if (strcmp(code, "RequestTimeTooSkewed") == 0) {
        return true;
    }
    bool signature = strcmp(code, "InvalidSignatureException") == 0 ||
                     strcmp(code, "SignatureDoesNotMatch") == 0;
    return signature && (strstr(message, "Signature expired") != NULL ||
                         strstr(message, "not yet current") != NULL);
}

enum aws_outcome aws_classify(int status, const char *code, const char *message)
{
    code = code != NULL ? code : "";
    message = message != NULL ? message : "";
    if (IS_ONE_OF(code, throttling_codes) || status == 429) {
        return AWS_THROTTLED;
    }
    if (status >= 200 && status < 300 && code[0] == '\0') {
        return AWS_OK;
    }
    if (status < 200 || status >= 500 || status == 408 || IS_ONE_OF(code, transient_codes)) {
        return AWS_UNKNOWN;
    }
    if (code[0] == '\0') {
        return AWS_UNKNOWN; /* the page of some proxy, not an answer of AWS */
    }
    if (IS_ONE_OF(code, credential_codes) || aws_error_is_skew(code, message)) {
        return AWS_CREDENTIALS;
    }
    return AWS_REFUSED;
}

static void copy_cut(char *out, size_t out_n, struct str v)
{
    size_t n = MIN(v.n, out_n - 1);
    while (n > 0 && n < v.n && ((unsigned char)v.p[n] & 0xc0) == 0x80) {
        n--; /* not in the middle of a UTF-8 character */
    }
    memcpy(out, v.p, n);
    out[n] = '\0';
}

/* "com.amazonaws.x#Code:http://..." to "Code". Anything but a plain word is rejected. */
static void copy_code(char *out, size_t out_n, struct str v)
{
    ptrdiff_t hash = str_find(v, STR("#"));
    if (hash >= 0) {
        v = (struct str){v.p + hash + 1, v.n - (size_t)hash - 1};
    }
    v = str_trim(str_split(&v, ':'));
    if (v.n >= out_n) {
        return;
    }
    for (size_t i = 0; i < v.n; i++) {
        if (!isalnum((unsigned char)v.p[i]) && strchr("._-", v.p[i]) == NULL) {
            return;
        }
    }
    copy_cut(out, out_n, v);
}

static void decode_json(struct str body, struct aws_error *ret)
{
    AUTO_JSON json_t *o = NULL;
    if (!json_parse(body, body.n, &o, NULL) || !json_is_object(o)) {
        return;
    }
    static const char *const code_keys[] = {"__type", "code", "Code"};
    static const char *const message_keys[] = {"message", "Message", "errorMessage"};
    for (size_t i = 0; i < ARRAY_LEN(code_keys) && ret->code[0] == '\0'; i++) {
        copy_code(ret->code, sizeof ret->code,
                  str_of(json_string_value(json_object_get(o, code_keys[i]))));
    }
    for (size_t i = 0; i < ARRAY_LEN(message_keys) && ret->message[0] == '\0'; i++) {
        copy_cut(ret->message, sizeof ret->message,
                 str_of(json_string_value(json_object_get(o, message_keys[i]))));
    }
}

static void find_text(struct str body, const char *name, char *out, size_t out_n)
{
    AUTO_BUF struct buf text = BUF_INIT(8192);
    if (out[0] == '\0' && xml_find(body, name, &text)) {
        copy_cut(out, out_n, str_trim(buf_str(&text)));
    }
}

static void decode_xml(struct str body, struct aws_error *ret)
{
    struct xml x;
    struct str root;
    xml_init(&x, body);
    if (xml_next(&x, &root) != XML_OPEN ||
        (!str_eq_cstr(root, "Error") && !str_eq_cstr(root, "ErrorResponse") &&
         !str_eq_cstr(root, "Response"))) {
        return; /* usually HTML */
    }
    char code[sizeof ret->code] = "";
    find_text(body, "Code", code, sizeof code);
    copy_code(ret->code, sizeof ret->code, str_of(code));
    find_text(body, "Message", ret->message, sizeof ret->message);
    find_text(body, "RequestId", ret->request_id, sizeof ret->request_id);
    find_text(body, "RequestID", ret->request_id, sizeof ret->request_id);
}

static const char *head_code(int status)
{
    switch (status) {
    case 301:
        return "PermanentRedirect";
    case 304:
        return "NotModified";
    case 400:
        return "BadRequest";
    case 403:
        return "Forbidden";
    case 404:
        return "NotFound";
    case 405:
        return "MethodNotAllowed";
    case 412:
        return "PreconditionFailed";
    case 416:
        return "InvalidRange";
    default:
        return "";
    }
}

void aws_error_request_id(const struct http_reply *r, struct aws_error *ret)
{
    static const char *const names[] = {"x-amzn-RequestId", "x-amz-request-id", "x-amz-id-2"};
    for (size_t i = 0; i < ARRAY_LEN(names) && ret->request_id[0] == '\0'; i++) {
        copy_cut(ret->request_id, sizeof ret->request_id, http_reply_header(r, names[i]));
    }
}

void aws_error_decode(const struct http_reply *r, bool head, struct aws_error *ret)
{
    *ret = (struct aws_error){0};
    aws_error_request_id(r, ret);
    if (head) {
        copy_cut(ret->code, sizeof ret->code, str_of(head_code(r->status)));
        return;
    }
    struct str body = str_trim(buf_str(&r->body));
    if (str_starts(body, "{")) {
        decode_json(body, ret);
    } else if (str_starts(body, "<")) {
        decode_xml(body, ret);
    }
    if (ret->code[0] == '\0') {
        copy_code(ret->code, sizeof ret->code, http_reply_header(r, "x-amzn-ErrorType"));
    }
    if (ret->code[0] == '\0' && r->status == 304) {
        copy_cut(ret->code, sizeof ret->code, str_of(head_code(r->status)));
    }
}

int64_t aws_error_retry_after_us(const struct http_reply *r)
{
    static const struct {
        const char *name;
        int64_t unit_us;
    } rows[] = {{"x-amz-retry-after", USEC_PER_MSEC}, {"Retry-After", USEC_PER_SEC}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t n;
        if (parse_i64(http_reply_header(r, rows[i].name), 0, INT32_MAX, &n, NULL)) {
            return MIN(n * rows[i].unit_us, AWS_RETRY_AFTER_MAX_US);
        }
    }
    return 0;
}

bool aws_error_is_xml(struct str body)
{
    struct xml x;
    struct str text;
    size_t opened_n = 0;
    xml_init(&x, body);
    for (;;) {
        switch (xml_next(&x, &text)) {
        case XML_OPEN:
            opened_n++;
            break;
        case XML_TEXT:
        case XML_CLOSE:
            break;
        case XML_END:
            return opened_n > 0;
        case XML_ERROR:
            return false;
        }
    }
}

static enum err_code refusal_code(int status, const char *code)
{
    static const struct {
        const char *fragment;
        enum err_code code;
    } rows[] = {
        {"NotFound", ERR_NOT_FOUND},
        {"NoSuch", ERR_NOT_FOUND},
        {"AccessDenied", ERR_FORBIDDEN},
        {"Forbidden", ERR_FORBIDDEN},
        {"PreconditionFailed", ERR_PRECONDITION},
        {"ResourceInUse", ERR_CONFLICT},
        {"ConflictException", ERR_CONFLICT},
        {"ResourceLimitExceeded", ERR_QUOTA},
        {"SignatureDoesNotMatch", ERR_UNAUTHENTICATED},
        {"InvalidSignature", ERR_UNAUTHENTICATED},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strstr(code, rows[i].fragment) != NULL) {
            return rows[i].code;
        }
    }
    return status == 404 ? ERR_NOT_FOUND : status == 412 ? ERR_PRECONDITION : ERR_AWS;
}

static enum err_code reply_code(const struct aws_reply *r)
{
    switch (r->outcome) {
    case AWS_OK:
        return ERR_AWS; /* the caller rejected a 2xx answer */
    case AWS_THROTTLED:
        return ERR_THROTTLED;
    case AWS_REFUSED:
        return refusal_code(r->status, r->code);
    case AWS_CREDENTIALS:
        return ERR_UNAUTHENTICATED;
    case AWS_UNSENT:
    case AWS_UNKNOWN:
        if (r->http != NULL && !r->http->ok && r->http->err.code != ERR_NONE) {
            return r->http->err.code;
        }
        return r->status >= 500 ? ERR_UNAVAILABLE : ERR_NETWORK;
    }
    return ERR_INTERNAL;
}

bool aws_reply_err(const struct aws_reply *r, const char *operation, struct err *err)
{
    if (r->code[0] != '\0') {
        (void)err_set(err, reply_code(r), "%s: %s%s%s", operation, r->code,
                      r->message[0] != '\0' ? ": " : "", r->message);
    } else if (r->message[0] != '\0') {
        (void)err_set(err, reply_code(r), "%s: %s", operation, r->message);
    } else {
        (void)err_set(err, reply_code(r), "%s: http status %d without a readable answer", operation,
                      r->status);
    }
    if (err != NULL) {
        err->http_status = r->status;
        copy_cut(err->aws_code, sizeof err->aws_code, str_of(r->code));
        copy_cut(err->request_id, sizeof err->request_id, str_of(r->request_id));
    }
    return false;
}
