/* Aim: a call goes to the right host and path, for every shape of endpoint. Method: includes aws.c
 * to reach the two static functions that decide it; no network. */
#include "common/aws.c" /* NOLINT(bugprone-suspicious-include): for its static functions */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const struct {
    const char *url;
    bool custom;
    const char *bucket, *path, *query;
    const char *host, *canonical_path, *want;
} rows[] = {
    {"https://api.sagemaker.us-east-1.amazonaws.com", false, NULL, NULL, NULL,
     "api.sagemaker.us-east-1.amazonaws.com", "/",
     "https://api.sagemaker.us-east-1.amazonaws.com/"},
    {"https://s3.us-east-1.amazonaws.com", false, "data", "/a%20b", NULL,
     "data.s3.us-east-1.amazonaws.com", "/a%20b", "https://data.s3.us-east-1.amazonaws.com/a%20b"},
    {"https://s3.us-east-1.amazonaws.com", false, "da.ta", "/k", "uploads",
     "s3.us-east-1.amazonaws.com", "/da.ta/k",
     "https://s3.us-east-1.amazonaws.com/da.ta/k?uploads"},
    {"http://127.0.0.1:4566", true, "data", "/k", "a=b", "127.0.0.1:4566", "/data/k",
     "http://127.0.0.1:4566/data/k?a=b"},
    {"http://localhost:80", true, NULL, "/", "", "localhost", "/", "http://localhost/"},
    {"https://localhost:443", true, NULL, "/", NULL, "localhost", "/", "https://localhost/"},
    {"http://localhost:443", true, NULL, "/", NULL, "localhost:443", "/", "http://localhost:443/"},
    {"https://localhost:80", true, NULL, "/", NULL, "localhost:80", "/", "https://localhost:80/"},
    {"http://[::1]:81", true, NULL, "/", NULL, "[::1]:81", "/", "http://[::1]:81/"},
    {"http://gate/base", true, "data", "/k", NULL, "gate", "/base/data/k",
     "http://gate/base/data/k"},
};

static void test_address__every_shape_of_endpoint(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct endpoint e = {.url = xstrdup(rows[i].url), .custom = rows[i].custom};
        struct err err = ERR_INIT;
        assert_true(endpoint_parse(&e, &err));
        struct aws_call call = {
            .bucket = rows[i].bucket, .path = rows[i].path, .query = rows[i].query};
        CLEANUP(target_done)
        struct target t = {BUF_INIT(512), BUF_INIT(4096), BUF_INIT(4096)};
        assert_true(address(&e, &call, &t, &err));
        assert_string_equal(buf_cstr(&t.host), rows[i].host);
        assert_string_equal(buf_cstr(&t.path), rows[i].canonical_path);
        assert_string_equal(buf_cstr(&t.url), rows[i].want);
        free(e.url);
    }
}

static void test_address__what_is_too_long_is_refused(void **state)
{
    (void)state;
    struct endpoint e = {.url = xstrdup("http://h")};
    assert_true(endpoint_parse(&e, NULL));
    char *query = xmalloc(5000);
    memset(query, 'q', 4999);
    query[4999] = '\0';
    struct aws_call call = {.query = query};
    CLEANUP(target_done)
    struct target t = {BUF_INIT(512), BUF_INIT(4096), BUF_INIT(4096)};
    struct err err = ERR_INIT;
    assert_false(address(&e, &call, &t, &err));
    assert_int_equal(err.code, ERR_TOO_LARGE);
    free(query);
    free(e.url);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_address__every_shape_of_endpoint),
        cmocka_unit_test(test_address__what_is_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
