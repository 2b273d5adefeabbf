/* Aim: an AWS answer is put into the right class, above all never into "refused, nothing was done"
 * when that is not certain. Method: the table of codes row by row, then answers in every protocol's
 * form, built by hand, run through the decoder. */
#include "common/aws.h"
#include "common/aws_error.h"
#include "common/cleanup.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const struct {
    int status;
    const char *code;
    const char *message;
    enum aws_outcome want;
} rows[] = {
    {200, "", "", AWS_OK},
    {204, "", "", AWS_OK},
    {400, "ThrottlingException", "Rate exceeded", AWS_THROTTLED},
    {400, "Throttling", "", AWS_THROTTLED},
    {400, "RequestLimitExceeded", "", AWS_THROTTLED},
    {400, "LimitExceededException", "", AWS_THROTTLED},
    {403, "RequestThrottled", "", AWS_THROTTLED},
    {503, "SlowDown", "", AWS_THROTTLED},
    {500, "ThrottlingException", "", AWS_THROTTLED},
    {429, "", "", AWS_THROTTLED},
    {429, "Whatever", "", AWS_THROTTLED},
    {409, "OperationAborted", "", AWS_THROTTLED},
    {409, "ConditionalRequestConflict", "", AWS_THROTTLED},
    {400, "ResourceLimitExceeded", "The account-level service limit", AWS_REFUSED},
    {400, "ResourceInUse", "", AWS_REFUSED},
    {400, "ResourceNotFound", "", AWS_REFUSED},
    {400, "ValidationException", "1 validation error detected", AWS_REFUSED},
    {403, "AccessDenied", "", AWS_REFUSED},
    {400, "AccessDeniedException", "", AWS_REFUSED},
    {404, "NoSuchKey", "", AWS_REFUSED},
    {412, "PreconditionFailed", "", AWS_REFUSED},
    {409, "ConflictException", "", AWS_REFUSED},
    {301, "PermanentRedirect", "", AWS_REFUSED},
    {418, "SomethingNewException", "", AWS_REFUSED},
    {403, "SignatureDoesNotMatch", "The request signature we calculated does not match",
     AWS_REFUSED},
    {403, "IncompleteSignature", "", AWS_REFUSED},
    {403, "MissingAuthenticationToken", "", AWS_REFUSED},
    {403, "SignatureDoesNotMatch", "Signature expired: 2026 is now earlier than", AWS_CREDENTIALS},
    {403, "SignatureDoesNotMatch", "Signature not yet current: 2026", AWS_CREDENTIALS},
    {403, "InvalidSignatureException", "Signature expired: x", AWS_CREDENTIALS},
    {403, "RequestTimeTooSkewed", "", AWS_CREDENTIALS},
    {400, "ExpiredToken", "", AWS_CREDENTIALS},
    {400, "ExpiredTokenException", "", AWS_CREDENTIALS},
    {403, "InvalidClientTokenId", "", AWS_CREDENTIALS},
    {400, "UnrecognizedClientException", "", AWS_CREDENTIALS},
    {403, "InvalidAccessKeyId", "", AWS_CREDENTIALS},
    {400, "RequestExpired", "", AWS_CREDENTIALS},
    {400, "TokenRefreshRequired", "", AWS_CREDENTIALS},
    {500, "InternalFailure", "", AWS_UNKNOWN},
    {500, "", "", AWS_UNKNOWN},
    {502, "", "", AWS_UNKNOWN},
    {503, "ServiceUnavailable", "", AWS_UNKNOWN},
    {599, "ResourceLimitExceeded", "", AWS_UNKNOWN}, /* a refusal's code under a fault's status */
    {500, "ValidationException", "", AWS_UNKNOWN},
    {503, "ExpiredToken", "", AWS_UNKNOWN},
    {400, "InternalFailure", "", AWS_UNKNOWN},
    {400, "RequestTimeout", "", AWS_UNKNOWN},
    {408, "", "", AWS_UNKNOWN},
    {408, "Odd", "", AWS_UNKNOWN},
    {200, "InternalError", "", AWS_UNKNOWN}, /* S3: 200, then an error document */
    {200, "NoSuchUpload", "", AWS_REFUSED},
    {200, "SlowDown", "", AWS_THROTTLED},
    {400, "", "", AWS_UNKNOWN}, /* some proxy's page */
    {403, "", "", AWS_UNKNOWN},
    {404, "", "", AWS_UNKNOWN},
    {302, "", "", AWS_UNKNOWN},
    {0, "", "", AWS_UNKNOWN},
    {100, "", "", AWS_UNKNOWN},
    {-1, "ResourceInUse", "", AWS_UNKNOWN},
    {400, "throttlingexception", "", AWS_REFUSED}, /* codes are case-sensitive */
};

static void test_classify__every_row_has_its_class(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum aws_outcome got = aws_classify(rows[i].status, rows[i].code, rows[i].message);
        if (got != rows[i].want) {
            fail_msg("%d %s '%s': class %d, want %d", rows[i].status, rows[i].code, rows[i].message,
                     (int)got, (int)rows[i].want);
        }
    }
}

static void test_classify__null_texts_are_empty(void **state)
{
    (void)state;
    assert_int_equal(aws_classify(200, NULL, NULL), AWS_OK);
    assert_int_equal(aws_classify(404, NULL, NULL), AWS_UNKNOWN);
}

static void test_classify__a_fault_status_never_proves_a_refusal(void **state)
{
    (void)state;
    for (int status = 500; status < 600; status++) {
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            enum aws_outcome got = aws_classify(status, rows[i].code, rows[i].message);
            assert_true(got == AWS_UNKNOWN || got == AWS_THROTTLED);
        }
    }
}

static const struct {
    const char *headers;
    const char *body;
    int status;
    bool head;
    const char *code, *message, *request_id;
} answers[] = {
    {"x-amzn-RequestId: r-1\r\n", "{\"__type\":\"ResourceNotFound\",\"Message\":\"no such job\"}",
     400, false, "ResourceNotFound", "no such job", "r-1"},
    {"", "{\"__type\":\"com.amazonaws.sqs#QueueDoesNotExist\",\"message\":\"m\"}", 400, false,
     "QueueDoesNotExist", "m", ""},
    {"", "{\"__type\":\"com.x#Foo:http://internal/\"}", 400, false, "Foo", "", ""},
    {"", "{\"__type\":\"Foo:http://a#b\"}", 400, false, "b", "", ""},
    {"X-AMZN-ERRORTYPE: ModelError:http://x/\r\n", "{\"Message\":\"m\"}", 424, false, "ModelError",
     "m", ""},
    {"x-amzn-ErrorType: ThrottlingException\r\n", "", 400, false, "ThrottlingException", "", ""},
    {"", "{\"code\":\"AccessDeniedException\",\"message\":\"x\"}", 403, false,
     "AccessDeniedException", "x", ""},
    {"",
     "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>a &amp; b</Message>"
     "<RequestId>q</RequestId></Error>",
     404, false, "NoSuchKey", "a & b", "q"},
    {"",
     "<ErrorResponse><Error><Type>Sender</Type><Code>ExpiredToken</Code><Message>m</Message>"
     "</Error><RequestId>rr</RequestId></ErrorResponse>",
     403, false, "ExpiredToken", "m", "rr"},
    {"",
     "<Response><Errors><Error><Code>X.Y</Code><Message>m</Message></Error></Errors>"
     "<RequestID>id</RequestID></Response>",
     400, false, "X.Y", "m", "id"},
    {"x-amz-request-id: s3id\r\n", "", 404, true, "NotFound", "", "s3id"},
    {"", "", 403, true, "Forbidden", "", ""},
    {"", "", 412, true, "PreconditionFailed", "", ""},
    {"", "", 503, true, "", "", ""},
    /* What is no AWS error has no code. */
    {"", "<html><head><title>502</title></head><body><Code>NoSuchKey</Code></body></html>", 502,
     false, "", "", ""},
    {"", "{\"__type\":\"Cut", 400, false, "", "", ""},
    {"", "{\"__type\":17,\"message\":[]}", 400, false, "", "", ""},
    {"", "[\"__type\"]", 400, false, "", "", ""},
    {"", "{\"__type\":\"two words\"}", 400, false, "", "", ""},
    {"", "{\"__type\":\"\"}", 400, false, "", "", ""},
    {"", "", 400, false, "", "", ""},
    {"", "\x01\x02\xff", 400, false, "", "", ""},
};

static void make_reply(struct http_reply *r, int status, const char *headers, const char *body)
{
    *r = (struct http_reply){.ok = true, .sent = true, .status = status};
    buf_init(&r->headers, 4096);
    buf_init(&r->body, 65536);
    buf_add_cstr(&r->headers, headers);
    buf_add_cstr(&r->body, body);
}

static void test_decode__every_form_gives_code_message_and_id(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct http_reply r;
        struct aws_error e;
        make_reply(&r, answers[i].status, answers[i].headers, answers[i].body);
        aws_error_decode(&r, answers[i].head, &e);
        assert_string_equal(e.code, answers[i].code);
        assert_string_equal(e.message, answers[i].message);
        assert_string_equal(e.request_id, answers[i].request_id);
        http_reply_done(&r);
    }
}

static void test_decode__long_texts_are_cut_at_a_character(void **state)
{
    (void)state;
    AUTO_BUF struct buf body = BUF_INIT(65536);
    buf_add_cstr(&body, "{\"__type\":\"Foo\",\"message\":\"x");
    for (int i = 0; i < 2000; i++) {
        buf_add_cstr(&body, "\xc3\xa9");
    }
    buf_add_cstr(&body, "\"}");
    struct http_reply r;
    struct aws_error e;
    make_reply(&r, 400, "", buf_cstr(&body));
    aws_error_decode(&r, false, &e);
    assert_true(strlen(e.message) < sizeof e.message);
    assert_true(strlen(e.message) > sizeof e.message - 4);
    assert_true(str_is_utf8(str_of(e.message)));
    http_reply_done(&r);
}

static void test_decode__a_code_too_long_is_none(void **state)
{
    (void)state;
    char body[256];
    char word[80];
    memset(word, 'A', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    (void)snprintf(body, sizeof body, "{\"__type\":\"%s\"}", word);
    struct http_reply r;
    struct aws_error e;
    make_reply(&r, 400, "", body);
    aws_error_decode(&r, false, &e);
    assert_string_equal(e.code, "");
    http_reply_done(&r);
}

static int64_t retry_after(const char *headers)
{
    struct http_reply r;
    make_reply(&r, 503, headers, "");
    int64_t us = aws_error_retry_after_us(&r);
    http_reply_done(&r);
    return us;
}

static void test_retry_after__is_read_bounded_and_never_negative(void **state)
{
    (void)state;
    assert_int_equal(retry_after(""), 0);
    assert_int_equal(retry_after("Retry-After: 3\r\n"), 3000000);
    assert_int_equal(retry_after("x-amz-retry-after: 1500\r\nRetry-After: 9\r\n"), 1500000);
    assert_int_equal(retry_after("Retry-After: 0\r\n"), 0);
    assert_int_equal(retry_after("Retry-After: -5\r\n"), 0);
    assert_int_equal(retry_after("Retry-After: soon\r\n"), 0);
    assert_int_equal(retry_after("Retry-After: 99999999999999999999\r\n"), 0);
    assert_int_equal(retry_after("Retry-After: 2000000000\r\n"), AWS_RETRY_AFTER_MAX_US);
}

static void test_reply_err__carries_code_status_and_class(void **state)
{
    (void)state;
    static const struct {
        enum aws_outcome outcome;
        int status;
        const char *code;
        enum err_code want;
    } cases[] = {
        {AWS_THROTTLED, 400, "ThrottlingException", ERR_THROTTLED},
        {AWS_REFUSED, 400, "ResourceNotFound", ERR_NOT_FOUND},
        {AWS_REFUSED, 404, "NoSuchKey", ERR_NOT_FOUND},
        {AWS_REFUSED, 403, "AccessDeniedException", ERR_FORBIDDEN},
        {AWS_REFUSED, 412, "PreconditionFailed", ERR_PRECONDITION},
        {AWS_REFUSED, 400, "ResourceInUse", ERR_CONFLICT},
        {AWS_REFUSED, 400, "ResourceLimitExceeded", ERR_QUOTA},
        {AWS_REFUSED, 403, "SignatureDoesNotMatch", ERR_UNAUTHENTICATED},
        {AWS_REFUSED, 400, "ValidationException", ERR_AWS},
        {AWS_CREDENTIALS, 400, "ExpiredToken", ERR_UNAUTHENTICATED},
        {AWS_UNKNOWN, 500, "InternalFailure", ERR_UNAVAILABLE},
        {AWS_UNKNOWN, 0, "", ERR_NETWORK},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct aws_reply r = {.outcome = cases[i].outcome,
                              .status = cases[i].status,
                              .code = cases[i].code,
                              .message = "text",
                              .request_id = "id"};
        struct err err = ERR_INIT;
        assert_false(aws_reply_err(&r, "Op", &err));
        assert_int_equal(err.code, cases[i].want);
        assert_int_equal(err.http_status, cases[i].status);
        assert_string_equal(err.aws_code, cases[i].code);
        assert_string_equal(err.request_id, "id");
    }
    struct aws_reply r = {.outcome = AWS_REFUSED, .code = "C", .message = "m", .request_id = ""};
    assert_false(aws_reply_err(&r, "Op", NULL));
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classify__every_row_has_its_class),
        cmocka_unit_test(test_classify__null_texts_are_empty),
        cmocka_unit_test(test_classify__a_fault_status_never_proves_a_refusal),
        cmocka_unit_test(test_decode__every_form_gives_code_message_and_id),
        cmocka_unit_test(test_decode__long_texts_are_cut_at_a_character),
        cmocka_unit_test(test_decode__a_code_too_long_is_none),
        cmocka_unit_test(test_retry_after__is_read_bounded_and_never_negative),
        cmocka_unit_test(test_reply_err__carries_code_status_and_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
