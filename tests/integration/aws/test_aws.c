/* Aim: one AWS call is signed so that others agree, is never sent against the caller's will, and
 * its outcome is never called refused, unsent or good when it may be something else. Method: the
 * hostile server, which checks signatures by code of its own and counts what reaches it. */
#include "common/aws.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/kit/hostile.h"
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static struct hostile server;
static struct loop *l;
static struct aws_client *c;

struct got {
    int n;
    enum aws_outcome outcome;
    int status;
    char code[64], message[1024], request_id[64], body[4096];
    int64_t retry_after_us;
    struct err err;
};

static void copy(char *out, size_t n, const char *p, size_t p_n)
{
    p_n = MIN(p_n, n - 1);
    memcpy(out, p, p_n);
    out[p_n] = '\0';
}

static void on_reply(void *ctx, const struct aws_reply *r)
{
    struct got *g = ctx;
    g->n++;
    g->outcome = r->outcome;
    g->status = r->status;
    g->retry_after_us = r->retry_after_us;
    copy(g->code, sizeof g->code, r->code, strlen(r->code));
    copy(g->message, sizeof g->message, r->message, strlen(r->message));
    copy(g->request_id, sizeof g->request_id, r->request_id, strlen(r->request_id));
    copy(g->body, sizeof g->body, r->body.p != NULL ? r->body.p : "", r->body.n);
    assert_false(aws_reply_err(r, "Op", &g->err));
}

static void run_until(const int *n, int want)
{
    int64_t deadline_us = clock_mono_us() + 60 * USEC_PER_SEC;
    while (*n < want) {
        assert_true(clock_mono_us() < deadline_us);
        loop_run_once(l, 200 * USEC_PER_MSEC);
    }
}

static void call(struct aws_call q, struct got *g)
{
    *g = (struct got){.n = 0};
    q.service = q.service != NULL ? q.service : "sagemaker";
    (void)aws_send(c, &q, on_reply, g);
    assert_int_equal(g->n, 0);
    run_until(&g->n, 1);
    loop_run_once(l, 0);
    assert_int_equal(g->n, 1);
    assert_int_equal(http_in_flight(aws_client_http(c)), 0);
}

/* A json 1.1 call to a path that names the behaviour. */
static void json_call(const char *path, struct got *g)
{
    call((struct aws_call){.target = "SageMaker.DescribeTrainingJob",
                           .content_type = "application/x-amz-json-1.1",
                           .path = path,
                           .body = STR("{\"TrainingJobName\":\"laion-part-00000\"}")},
         g);
}

static void use_keys(const char *id, const char *secret, const char *token)
{
    (void)setenv("AWS_ACCESS_KEY_ID", id, 1);
    (void)setenv("AWS_SECRET_ACCESS_KEY", secret, 1);
    (void)setenv("AWS_SESSION_TOKEN", token, 1);
}

static int start(void **state)
{
    (void)state;
    AUTO_FREE char *url = hostile_url(&server, "");
    (void)setenv("AWS_ENDPOINT_URL", url, 1);
    (void)setenv("AWS_REGION", "us-east-1", 1);
    use_keys("AKIDTEST", "secret-of-the-test", "");
    struct aws_config cfg = {.user_agent = "drover-test/1"};
    return loop_new(&l, NULL) && aws_client_new(l, &cfg, &c, NULL) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    aws_client_free(c);
    c = NULL;
    loop_free(l);
    return 0;
}

static void restart(void)
{
    (void)end(NULL);
    assert_int_equal(start(NULL), 0);
}

static void test_sign__others_agree_in_every_protocol(void **state)
{
    (void)state;
    struct got g;
    json_call("/signed", &g);
    assert_int_equal(g.outcome, AWS_OK);
    call((struct aws_call){.service = "sts",
                           .content_type = "application/x-www-form-urlencoded; charset=utf-8",
                           .path = "/xml-signed",
                           .body = STR("Action=GetCallerIdentity&Version=2011-06-15")},
         &g);
    assert_int_equal(g.outcome, AWS_OK);
    call((struct aws_call){.service = "sagemaker-runtime",
                           .path = "/signed/my%20ep/invocations",
                           .content_type = "application/json",
                           .body = STR("[1]")},
         &g);
    assert_int_equal(g.outcome, AWS_OK);
    struct http_header range[] = {{"Range", "bytes=0-9"}, {"If-Match", "\"a  b\""}};
    call((struct aws_call){.service = "s3",
                           .method = "GET",
                           .path = "/signed/a%20b/../%C3%A9//x",
                           .query = "uploads&prefix=a%2Fb%20c&list-type=2",
                           .headers = range,
                           .headers_n = 2},
         &g);
    assert_int_equal(g.outcome, AWS_OK);
    call((struct aws_call){.service = "s3",
                           .method = "PUT",
                           .path = "/signed/k",
                           .body = STR("bytes"),
                           .content_type = "application/octet-stream"},
         &g);
    assert_int_equal(g.outcome, AWS_OK);
    assert_int_equal(aws_client_signed_n(c), 5);
    use_keys("AKIDTEST", "secret-of-the-test", "token+/=");
    restart();
    (void)setenv("AWS_SESSION_TOKEN", "", 1);
    json_call("/signed", &g);
    assert_int_equal(g.outcome, AWS_OK);
}

static void test_sign__a_wrong_secret_is_refused(void **state)
{
    (void)state;
    struct got g;
    aws_client_free(TAKE(c));
    use_keys("AKIDTEST", "wrong", "");
    struct aws_config cfg = {.region = "us-east-1"};
    assert_true(aws_client_new(l, &cfg, &c, NULL));
    json_call("/signed", &g);
    assert_int_equal(g.outcome, AWS_REFUSED);
    assert_string_equal(g.code, "SignatureDoesNotMatch");
    assert_int_equal(g.err.code, ERR_UNAUTHENTICATED);
}

static void test_sign__session_token_region_and_agent_are_on_the_wire(void **state)
{
    (void)state;
    use_keys("AKIDTEST", "secret-of-the-test", "the-token");
    aws_client_free(TAKE(c));
    struct aws_config cfg = {.region = "eu-west-1", .user_agent = "drover-test/1"};
    assert_true(aws_client_new(l, &cfg, &c, NULL));
    assert_string_equal(aws_client_region(c), "eu-west-1");
    struct got g;
    call((struct aws_call){.service = "sagemaker-runtime", .path = "/echo"}, &g);
    assert_non_null(strstr(g.body, "x-amz-security-token: the-token\n"));
    assert_non_null(strstr(g.body, "/eu-west-1/sagemaker/aws4_request"));
    assert_non_null(strstr(g.body, "SignedHeaders=host;x-amz-date;x-amz-security-token"));
    assert_non_null(strstr(g.body, "user-agent: drover-test/1\n"));
    assert_null(strstr(g.body, "x-amz-content-sha256"));
    assert_null(strstr(g.body, "secret-of-the-test"));
    AUTO_FREE char *host = xasprintf("\nhost: 127.0.0.1:%d\n", server.port);
    assert_non_null(strstr(g.body, host));
}

static void test_sign__buckets_go_into_the_path_of_a_custom_endpoint(void **state)
{
    (void)state;
    struct got g;
    call((struct aws_call){.service = "s3", .method = "GET", .bucket = "signed", .path = "/a%2Bb"},
         &g);
    assert_int_equal(g.outcome, AWS_OK);
    assert_int_equal(hostile_count(&server, "GET /signed/a%2Bb"), 1);
}

static void test_outcome__every_answer_has_its_class(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum aws_outcome want;
        const char *code;
        enum err_code err;
    } rows[] = {
        {"/empty", AWS_OK, "", ERR_AWS},
        {"/chunk-tiny", AWS_OK, "", ERR_AWS},
        {"/json/400/ResourceInUse/x", AWS_REFUSED, "ResourceInUse", ERR_CONFLICT},
        {"/json/400/ResourceLimitExceeded/x", AWS_REFUSED, "ResourceLimitExceeded", ERR_QUOTA},
        {"/json/400/ResourceNotFound/x", AWS_REFUSED, "ResourceNotFound", ERR_NOT_FOUND},
        {"/json/400/ThrottlingException/Rate", AWS_THROTTLED, "ThrottlingException", ERR_THROTTLED},
        {"/json/500/InternalFailure/x", AWS_UNKNOWN, "InternalFailure", ERR_UNAVAILABLE},
        {"/json/503/ResourceInUse/x", AWS_UNKNOWN, "ResourceInUse", ERR_UNAVAILABLE},
        {"/json/400/InvalidClientTokenId/x", AWS_CREDENTIALS, "InvalidClientTokenId",
         ERR_UNAUTHENTICATED},
        {"/half-json", AWS_UNKNOWN, "", ERR_NETWORK},
        {"/array-json", AWS_UNKNOWN, "", ERR_NETWORK},
        {"/unframed", AWS_UNKNOWN, "", ERR_NETWORK},
        {"/ok", AWS_UNKNOWN, "", ERR_NETWORK}, /* 200 "hello" */
        {"/gzip", AWS_UNKNOWN, "", ERR_NETWORK},
        {"/html/200", AWS_UNKNOWN, "", ERR_NETWORK},
        {"/html/502", AWS_UNKNOWN, "", ERR_UNAVAILABLE},
        {"/html/403", AWS_UNKNOWN, "", ERR_NETWORK},
        {"/html/404", AWS_UNKNOWN, "", ERR_NETWORK},
        {"/redirect", AWS_UNKNOWN, "", ERR_NETWORK},
        {"/reset-before", AWS_UNKNOWN, "", ERR_NETWORK},
        {"/reset-mid", AWS_UNKNOWN, "", ERR_NETWORK},
        {"/close-mid", AWS_UNKNOWN, "", ERR_NETWORK},
        {"/close-empty", AWS_UNKNOWN, "", ERR_NETWORK},
        {"/chunk-bad", AWS_UNKNOWN, "", ERR_NETWORK},
        {"/chunk-cut", AWS_UNKNOWN, "", ERR_NETWORK},
        {"/not-http", AWS_UNKNOWN, "", ERR_NETWORK},
        {"/endless", AWS_UNKNOWN, "", ERR_TOO_LARGE},
        {"/big", AWS_UNKNOWN, "", ERR_TOO_LARGE},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct got g;
        json_call(rows[i].path, &g);
        if (g.outcome != rows[i].want || strcmp(g.code, rows[i].code) != 0 ||
            g.err.code != rows[i].err) {
            fail_msg("%s: outcome %d code '%s' err %s (%s)", rows[i].path, (int)g.outcome, g.code,
                     err_code_name(g.err.code), g.err.message);
        }
    }
}

static void test_outcome__error_details_are_handed_on(void **state)
{
    (void)state;
    struct got g;
    json_call("/json/400/ValidationException/1%20error%3A%20bad", &g);
    assert_int_equal(g.status, 400);
    assert_string_equal(g.message, "1 error: bad");
    assert_string_equal(g.request_id, "rid-1");
    assert_int_equal(g.retry_after_us, 2 * USEC_PER_SEC);
    assert_string_equal(g.err.message, "Op: ValidationException: 1 error: bad");
    assert_string_equal(g.err.aws_code, "ValidationException");
    assert_string_equal(g.err.request_id, "rid-1");
    json_call("/empty", &g);
    assert_string_equal(g.body, "{}"); /* an operation without output */
}

static void test_outcome__query_answers_must_be_documents(void **state)
{
    (void)state;
    struct got g;
    static const char *const paths[] = {"/ok", "/empty", "/half-json", "/unframed"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        call((struct aws_call){.service = "sts", .path = paths[i]}, &g);
        assert_int_equal(g.outcome, AWS_UNKNOWN);
    }
}

static void test_outcome__time_out_is_unknown(void **state)
{
    (void)state;
    struct got g;
    call((struct aws_call){.target = "T.O", .path = "/silent", .timeout_us = 300 * USEC_PER_MSEC},
         &g);
    assert_int_equal(g.outcome, AWS_UNKNOWN);
    assert_int_equal(g.err.code, ERR_TIMEOUT);
}

static void test_outcome__a_dead_connection_is_unknown_and_written_once(void **state)
{
    (void)state;
    struct got g;
    json_call("/signed", &g);
    json_call("/dead-on-reuse", &g);
    assert_int_equal(g.outcome, AWS_UNKNOWN);
    assert_int_equal(hostile_count(&server, "POST /dead-on-reuse"), 1);
    json_call("/signed", &g);
    call((struct aws_call){.target = "T.O", .path = "/dead-on-reuse", .fresh_connection = true},
         &g);
    assert_int_equal(hostile_count(&server, "POST /dead-on-reuse"), 2);
    assert_true(g.status == 200);
}

struct gate {
    int asked_n;
    int yes_n; /* so many times yes, then no */
};

static bool gate(void *ctx)
{
    struct gate *t = ctx;
    return t->asked_n++ < t->yes_n;
}

static void test_unsent__the_callers_no_is_final_before_and_after_connecting(void **state)
{
    (void)state;
    struct got g;
    /* Asked before signing, after it, and when the first byte would be written. */
    for (int yes_n = 0; yes_n < 3; yes_n++) {
        struct gate t = {.yes_n = yes_n};
        call(
            (struct aws_call){
                .target = "T.O", .path = "/gated", .may_send = gate, .may_send_ctx = &t},
            &g);
        assert_int_equal(g.outcome, AWS_UNSENT);
        assert_int_equal(t.asked_n, yes_n + 1);
        assert_int_equal(aws_client_signed_n(c), yes_n == 2);
    }
    assert_int_equal(hostile_count(&server, "POST /gated"), 0);
    struct gate t = {.yes_n = 3};
    call((struct aws_call){.target = "T.O", .path = "/gated", .may_send = gate, .may_send_ctx = &t},
         &g);
    assert_int_equal(hostile_count(&server, "POST /gated"), 1);
    assert_int_equal(t.asked_n, 3);
}

static void test_unsent__the_clients_gate_holds_for_calls_without_their_own(void **state)
{
    (void)state;
    struct got g;
    struct gate shut = {.yes_n = 0}, open = {.yes_n = 100};
    aws_client_set_gate(c, gate, &shut);
    json_call("/shut", &g);
    assert_int_equal(g.outcome, AWS_UNSENT);
    call((struct aws_call){.service = "s3", .method = "GET", .path = "/shut"}, &g);
    assert_int_equal(g.outcome, AWS_UNSENT);
    assert_int_equal(aws_client_signed_n(c), 0);
    call((struct aws_call){.path = "/own", .may_send = gate, .may_send_ctx = &open}, &g);
    assert_int_equal(hostile_count(&server, "POST /own"), 1);
    aws_client_set_gate(c, NULL, NULL);
    json_call("/signed", &g);
    assert_int_equal(g.outcome, AWS_OK);
    assert_int_equal(hostile_count(&server, "POST /shut") + hostile_count(&server, "GET /shut"), 0);
}

static void test_unsent__no_listener_and_no_endpoint(void **state)
{
    (void)state;
    static const char *const bad[] = {"ftp://127.0.0.1", "127.0.0.1:80", "http://",
                                      "http://a b/",     "http://u@h/",  "http://h%2f/"};
    struct got g;
    AUTO_FREE char *closed = xasprintf("http://127.0.0.1:%d", hostile_closed_port());
    (void)setenv("AWS_ENDPOINT_URL_SAGEMAKER", closed, 1);
    json_call("/", &g);
    assert_int_equal(g.outcome, AWS_UNSENT);
    assert_int_equal(g.err.code, ERR_NETWORK);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        (void)setenv("AWS_ENDPOINT_URL_SAGEMAKER", bad[i], 1);
        restart();
        json_call("/", &g);
        assert_int_equal(g.outcome, AWS_UNSENT);
        assert_int_equal(g.err.code, ERR_INVALID);
        assert_int_equal(aws_client_signed_n(c), 0);
    }
    (void)unsetenv("AWS_ENDPOINT_URL_SAGEMAKER");
}

static void test_cancel__is_silent_and_tells_what_was_sent(void **state)
{
    (void)state;
    struct got g = {.n = 0};
    struct aws_call q = {.service = "sagemaker", .target = "T.O", .path = "/cancelled"};
    struct aws_req *r = aws_send(c, &q, on_reply, &g);
    assert_false(aws_req_sent(r));
    aws_cancel(r);
    q.path = "/silent";
    r = aws_send(c, &q, on_reply, &g);
    int64_t deadline_us = clock_mono_us() + 5 * USEC_PER_SEC;
    while (!aws_req_sent(r) && clock_mono_us() < deadline_us) {
        loop_run_once(l, 10 * USEC_PER_MSEC);
    }
    assert_true(aws_req_sent(r));
    aws_cancel(r);
    struct gate no = {.yes_n = 0};
    q.may_send = gate;
    q.may_send_ctx = &no;
    aws_cancel(aws_send(c, &q, on_reply, &g)); /* one that would have reported AWS_UNSENT */
    loop_run_once(l, 0);
    assert_int_equal(g.n, 0);
    assert_int_equal(hostile_count(&server, "POST /cancelled"), 0);
}

static void test_free__gives_every_call_back_once(void **state)
{
    (void)state;
    struct got sent = {.n = 0};
    struct got waiting = {.n = 0};
    struct got gated = {.n = 0};
    struct aws_call q = {.service = "sagemaker", .target = "T.O", .path = "/silent"};
    struct aws_req *r = aws_send(c, &q, on_reply, &sent);
    int64_t deadline_us = clock_mono_us() + 5 * USEC_PER_SEC;
    while (!aws_req_sent(r) && clock_mono_us() < deadline_us) {
        loop_run_once(l, 10 * USEC_PER_MSEC);
    }
    (void)aws_send(c, &q, on_reply, &waiting);
    struct gate no = {.yes_n = 0};
    q.may_send = gate;
    q.may_send_ctx = &no;
    (void)aws_send(c, &q, on_reply, &gated);
    aws_client_free(TAKE(c));
    loop_run_once(l, 0);
    assert_int_equal(sent.n, 1);
    assert_int_equal(sent.outcome, AWS_UNKNOWN);
    assert_int_equal(waiting.n, 1);
    assert_int_equal(waiting.outcome, AWS_UNSENT);
    assert_int_equal(gated.n, 1);
    assert_int_equal(gated.outcome, AWS_UNSENT);
}

/* Until AWS' clock is known, what is refused for its date is signed once more, but for calls whose
 * every signature counts. */
static void test_skew__the_first_refused_call_is_signed_again(void **state)
{
    (void)state;
    struct got g;
    uint64_t before = aws_client_signed_n(c);
    json_call("/skew", &g);
    assert_int_equal(g.n, 1);
    assert_int_equal(g.outcome, AWS_OK);
    assert_int_equal(aws_client_signed_n(c), before + 2);
    assert_true(aws_client_skew_us(c) > 7000 * USEC_PER_SEC);
}

static void test_skew__a_counted_signature_is_not_made_again(void **state)
{
    (void)state;
    struct got g;
    call((struct aws_call){.target = "SageMaker.CreateTrainingJob",
                           .content_type = "application/x-amz-json-1.1",
                           .path = "/skew",
                           .fresh_connection = true,
                           .body = STR("{}")},
         &g);
    assert_int_equal(g.outcome, AWS_CREDENTIALS);
    assert_int_equal(aws_client_signed_n(c), 1);
}

/* A HEAD is refused without words: one whose answer teaches the clock may be asked again. */
static void test_skew__of_a_head_is_no_denial(void **state)
{
    (void)state;
    struct got g;
    const struct aws_call head = {.service = "s3", .method = "HEAD", .path = "/skew"};
    call(head, &g);
    assert_int_equal(g.status, 403);
    assert_int_equal(g.outcome, AWS_CREDENTIALS);
    assert_true(aws_client_skew_us(c) > 7000 * USEC_PER_SEC);
}

static void test_skew__is_learned_from_the_refusal(void **state)
{
    (void)state;
    struct got g;
    json_call("/signed", &g); /* its Date is right: AWS' clock is known */
    json_call("/skew", &g);
    assert_int_equal(g.outcome, AWS_CREDENTIALS);
    json_call("/skew", &g);
    assert_int_equal(g.outcome, AWS_OK);
    json_call("/signed", &g); /* here the Date is right again: learned back by this very answer */
    json_call("/skew", &g);
    assert_int_equal(g.outcome, AWS_CREDENTIALS);
}

static void test_creds__are_read_again_after_a_refusal(void **state)
{
    (void)state;
    struct got g;
    json_call("/newkey", &g);
    assert_int_equal(g.outcome, AWS_CREDENTIALS);
    use_keys("AKIDNEW", "another-secret", "");
    int64_t deadline_us = clock_mono_us() + 60 * USEC_PER_SEC;
    do { /* at most once a second */
        assert_true(clock_mono_us() < deadline_us);
        (void)poll(NULL, 0, 10);
        json_call("/newkey", &g);
    } while (g.outcome == AWS_CREDENTIALS);
    assert_int_equal(g.outcome, AWS_OK);
}

static void test_client__needs_credentials_and_region(void **state)
{
    (void)state;
    struct aws_client *none = NULL;
    struct err err = ERR_INIT;
    struct aws_config cfg = {.region = NULL};
    (void)setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
    (void)setenv("AWS_CONFIG_FILE", "/dev/null", 1);
    (void)setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    (void)unsetenv("AWS_ACCESS_KEY_ID");
    (void)unsetenv("AWS_SECRET_ACCESS_KEY");
    assert_false(aws_client_new(l, &cfg, &none, &err));
    assert_int_equal(err.code, ERR_UNAUTHENTICATED);
    use_keys("AKIDTEST", "secret-of-the-test", "");
    (void)unsetenv("AWS_REGION");
    (void)unsetenv("AWS_DEFAULT_REGION");
    assert_false(aws_client_new(l, &cfg, &none, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_null(none);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    hostile_start(&server);
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)
    const struct CMUnitTest tests[] = {
        TEST(test_sign__others_agree_in_every_protocol),
        TEST(test_sign__a_wrong_secret_is_refused),
        TEST(test_sign__session_token_region_and_agent_are_on_the_wire),
        TEST(test_sign__buckets_go_into_the_path_of_a_custom_endpoint),
        TEST(test_outcome__every_answer_has_its_class),
        TEST(test_outcome__error_details_are_handed_on),
        TEST(test_outcome__query_answers_must_be_documents),
        TEST(test_outcome__time_out_is_unknown),
        TEST(test_outcome__a_dead_connection_is_unknown_and_written_once),
        TEST(test_unsent__the_callers_no_is_final_before_and_after_connecting),
        TEST(test_unsent__the_clients_gate_holds_for_calls_without_their_own),
        TEST(test_unsent__no_listener_and_no_endpoint),
        TEST(test_cancel__is_silent_and_tells_what_was_sent),
        TEST(test_free__gives_every_call_back_once),
        TEST(test_skew__the_first_refused_call_is_signed_again),
        TEST(test_skew__a_counted_signature_is_not_made_again),
        TEST(test_skew__of_a_head_is_no_denial),
        TEST(test_skew__is_learned_from_the_refusal),
        TEST(test_creds__are_read_again_after_a_refusal),
        TEST(test_client__needs_credentials_and_region),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hostile_stop(&server);
    return failed;
}
