/* Aim: credentials, region and endpoints are found where the AWS SDKs find them, in their order,
 * and mistakes are named without showing a secret. Method: environment and small profile files in a
 * folder of its own; the developer's own environment is cleared first. */
#include "common/creds.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];
static char credentials_path[96];
static char config_path[96];

static void put_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void put_env(const char *name, const char *value)
{
    assert_int_equal(setenv(name, value, 1), 0);
}

static int fresh(void **state)
{
    (void)state;
    static const char *const names[] = {
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_SECURITY_TOKEN",
        "AWS_PROFILE",
        "AWS_DEFAULT_PROFILE",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
        "AWS_ENDPOINT_URL_SAGEMAKER",
        "AWS_ENDPOINT_URL_CLOUDWATCH_LOGS",
        "AWS_ENDPOINT_URL_LOGS",
        "AWS_ENDPOINT_URL_SERVICE_QUOTAS",
        "AWS_ENDPOINT_URL_STS",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        unsetenv(names[i]);
    }
    put_env("AWS_SHARED_CREDENTIALS_FILE", credentials_path);
    put_env("AWS_CONFIG_FILE", config_path);
    (void)unlink(credentials_path);
    (void)unlink(config_path);
    return 0;
}

static void expect_creds(const char *id, const char *secret, const char *token)
{
    struct aws_creds c;
    struct err err = ERR_INIT;
    if (!creds_load(&c, &err)) {
        fail_msg("%s", err.message);
    }
    assert_string_equal(c.key_id, id);
    assert_string_equal(c.secret, secret);
    assert_string_equal(c.session_token, token);
    assert_int_equal(c.expires, USEC_NEVER);
}

static void expect_no_creds(const char *fragment)
{
    struct aws_creds c = {.key_id = "keep"};
    struct err err = ERR_INIT;
    assert_false(creds_load(&c, &err));
    assert_int_equal(err.code, ERR_UNAUTHENTICATED);
    assert_non_null(strstr(err.message, fragment));
    assert_null(strstr(err.message, "TOPSECRET"));
    assert_string_equal(c.key_id, "keep");
}

static void test_creds__environment_wins_over_files(void **state)
{
    (void)state;
    put_file(credentials_path, "[default]\naws_access_key_id=F\naws_secret_access_key=FS\n");
    expect_creds("F", "FS", "");
    put_env("AWS_ACCESS_KEY_ID", "E");
    put_env("AWS_SECRET_ACCESS_KEY", "ES");
    put_env("AWS_SESSION_TOKEN", "ET");
    expect_creds("E", "ES", "ET");
}

static void test_creds__half_a_pair_is_an_error_not_a_miss(void **state)
{
    (void)state;
    put_file(credentials_path, "[default]\naws_access_key_id=F\naws_secret_access_key=FS\n");
    put_env("AWS_SECRET_ACCESS_KEY", "TOPSECRET");
    expect_no_creds("without its id");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    put_env("AWS_ACCESS_KEY_ID", "E");
    expect_no_creds("without its secret");
    unsetenv("AWS_ACCESS_KEY_ID");
    put_file(credentials_path, "[default]\naws_access_key_id=F\n");
    expect_no_creds("profile 'default'");
}

static void test_creds__profiles_are_chosen_by_name(void **state)
{
    (void)state;
    put_file(credentials_path, "# first\n"
                               "[default]\n"
                               "aws_access_key_id = D\n"
                               "aws_secret_access_key = DS\n"
                               "[ other ]\r\n"
                               "aws_access_key_id =  O  \r\n"
                               "; a comment\r\n"
                               "AWS_SECRET_ACCESS_KEY = a/b+c=d# \r\n"
                               "aws_session_token = T # said inline\r\n"
                               "  indented = aws_access_key_id\n"
                               "[third]\naws_access_key_id=X\naws_secret_access_key=XS\n");
    expect_creds("D", "DS", "");
    put_env("AWS_PROFILE", "other");
    expect_creds("O", "a/b+c=d#", "T");
    put_env("AWS_PROFILE", "nobody");
    expect_no_creds("profile 'nobody'");
    expect_no_creds("AWS_SHARED_CREDENTIALS_FILE");
}

static void test_creds__config_file_wants_the_word_profile(void **state)
{
    (void)state;
    put_file(config_path, "[default]\naws_access_key_id=D\naws_secret_access_key=DS\n"
                          "[dev]\naws_access_key_id=W\naws_secret_access_key=WS\n"
                          "[profiledev]\naws_access_key_id=W\naws_secret_access_key=WS\n"
                          "[profile   dev]\naws_access_key_id=P\naws_secret_access_key=PS\n");
    expect_creds("D", "DS", "");
    put_env("AWS_PROFILE", "dev");
    expect_creds("P", "PS", "");
    /* The credentials file comes before the config file. */
    put_file(credentials_path, "[dev]\naws_access_key_id=C\naws_secret_access_key=CS\n");
    expect_creds("C", "CS", "");
}

static void test_creds__odd_bytes_and_lengths_are_refused(void **state)
{
    (void)state;
    put_env("AWS_ACCESS_KEY_ID", "E");
    put_env("AWS_SECRET_ACCESS_KEY", "TOPSECRET\r\nX-Evil: 1");
    expect_no_creds("byte");
    char longer[200];
    memset(longer, 'S', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    put_env("AWS_SECRET_ACCESS_KEY", longer);
    expect_no_creds("longer than 128 bytes");
    longer[128] = '\0';
    put_env("AWS_SECRET_ACCESS_KEY", longer);
    expect_creds("E", longer, "");
}

static void test_creds__malformed_files_are_survived(void **state)
{
    (void)state;
    static const char *const rows[] = {"",
                                       "\n",
                                       "[",
                                       "[default",
                                       "=",
                                       "[default]\n=\n=x\nno equals\n",
                                       "[]\naws_access_key_id=A\naws_secret_access_key=B\n",
                                       "aws_access_key_id=A\naws_secret_access_key=B\n"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        put_file(credentials_path, rows[i]);
        put_file(config_path, rows[i]);
        expect_no_creds("no AWS credentials");
    }
    put_file(credentials_path, "[default\naws_access_key_id=A\naws_secret_access_key=B");
    expect_creds("A", "B", "");
}

static void test_creds__a_huge_file_is_refused(void **state)
{
    (void)state;
    FILE *f = fopen(credentials_path, "we");
    assert_non_null(f);
    for (int i = 0; i < 20000; i++) {
        (void)fprintf(f, "# %070d\n", i);
    }
    assert_int_equal(fclose(f), 0);
    struct aws_creds c;
    struct err err = ERR_INIT;
    assert_false(creds_load(&c, &err));
    assert_int_equal(err.code, ERR_TOO_LARGE);
}

static void expect_region(const char *want)
{
    char region[64] = "keep";
    struct err err = ERR_INIT;
    bool ok = creds_region(region, sizeof region, &err);
    assert_int_equal(ok, want != NULL);
    assert_string_equal(region, want != NULL ? want : "keep");
    assert_int_equal(err.code, ok ? ERR_NONE : ERR_INVALID);
}

static void test_region__comes_from_the_environment_then_the_profile(void **state)
{
    (void)state;
    expect_region(NULL);
    put_file(config_path, "[default]\nregion = eu-west-1\n[profile p]\nregion=cn-north-1\n");
    expect_region("eu-west-1");
    put_env("AWS_PROFILE", "p");
    expect_region("cn-north-1");
    put_env("AWS_DEFAULT_REGION", "us-west-2");
    expect_region("us-west-2");
    put_env("AWS_REGION", "us-east-1");
    expect_region("us-east-1");
    put_env("AWS_REGION", "");
    expect_region("us-west-2");
}

static void test_region__what_cannot_be_in_a_host_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"us-east-1.evil.com",
                                      "us/east",
                                      "US-EAST-1",
                                      "-x",
                                      "a b",
                                      "a\n",
                                      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        put_env("AWS_REGION", bad[i]);
        expect_region(NULL);
    }
    put_env("AWS_REGION", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    expect_region("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
}

static void expect_endpoint(const char *service, const char *region, const char *want, bool custom)
{
    bool is_custom = !custom;
    char *url = creds_endpoint(service, region, &is_custom);
    assert_string_equal(url, want);
    assert_int_equal(is_custom, custom);
    free(url);
}

static void test_endpoint__hosts_follow_service_and_partition(void **state)
{
    (void)state;
    expect_endpoint("sagemaker", "us-east-1", "https://api.sagemaker.us-east-1.amazonaws.com",
                    false);
    expect_endpoint("s3", "eu-west-1", "https://s3.eu-west-1.amazonaws.com", false);
    expect_endpoint("s3", "cn-north-1", "https://s3.cn-north-1.amazonaws.com.cn", false);
    expect_endpoint("sts", "us-gov-west-1", "https://sts.us-gov-west-1.amazonaws.com", false);
    expect_endpoint("logs", "us-iso-east-1", "https://logs.us-iso-east-1.c2s.ic.gov", false);
    expect_endpoint("logs", "us-isob-east-1", "https://logs.us-isob-east-1.sc2s.sgov.gov", false);
    expect_endpoint("fsx", "eusc-de-east-1", "https://fsx.eusc-de-east-1.amazonaws.eu", false);
    expect_endpoint("servicequotas", "us-west-2", "https://servicequotas.us-west-2.amazonaws.com",
                    false);
    expect_endpoint("sagemaker-runtime", "us-west-2",
                    "https://runtime.sagemaker.us-west-2.amazonaws.com", false);
}

static void test_endpoint__variables_override_specific_first(void **state)
{
    (void)state;
    put_env("AWS_ENDPOINT_URL", "http://127.0.0.1:4566//");
    expect_endpoint("sagemaker", "us-east-1", "http://127.0.0.1:4566", true);
    put_env("AWS_ENDPOINT_URL_SAGEMAKER", "http://sm:1/base/");
    expect_endpoint("sagemaker", "us-east-1", "http://sm:1/base", true);
    expect_endpoint("s3", "us-east-1", "http://127.0.0.1:4566", true);
    put_env("AWS_ENDPOINT_URL_LOGS", "http://l2");
    expect_endpoint("logs", "us-east-1", "http://l2", true);
    put_env("AWS_ENDPOINT_URL_CLOUDWATCH_LOGS", "http://l1");
    expect_endpoint("logs", "us-east-1", "http://l1", true);
    put_env("AWS_ENDPOINT_URL_SERVICE_QUOTAS", "http://q");
    expect_endpoint("servicequotas", "us-east-1", "http://q", true);
    put_env("AWS_ENDPOINT_URL_SAGEMAKER", "");
    expect_endpoint("sagemaker", "us-east-1", "http://127.0.0.1:4566", true);
    put_env("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true");
    expect_endpoint("sagemaker", "us-east-1", "https://api.sagemaker.us-east-1.amazonaws.com",
                    false);
}

static void test_signing_name__is_the_family_of_the_service(void **state)
{
    (void)state;
    assert_string_equal(creds_signing_name("sagemaker-runtime"), "sagemaker");
    assert_string_equal(creds_signing_name("s3"), "s3");
    assert_string_equal(creds_signing_name("something"), "something");
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    (void)snprintf(folder, sizeof folder, "/tmp/drover-test-creds-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    (void)snprintf(credentials_path, sizeof credentials_path, "%s/credentials", folder);
    (void)snprintf(config_path, sizeof config_path, "%s/config", folder);
#define TEST(f) cmocka_unit_test_setup(f, fresh)
    const struct CMUnitTest tests[] = {
        TEST(test_creds__environment_wins_over_files),
        TEST(test_creds__half_a_pair_is_an_error_not_a_miss),
        TEST(test_creds__profiles_are_chosen_by_name),
        TEST(test_creds__config_file_wants_the_word_profile),
        TEST(test_creds__odd_bytes_and_lengths_are_refused),
        TEST(test_creds__malformed_files_are_survived),
        TEST(test_creds__a_huge_file_is_refused),
        TEST(test_region__comes_from_the_environment_then_the_profile),
        TEST(test_region__what_cannot_be_in_a_host_is_refused),
        TEST(test_endpoint__hosts_follow_service_and_partition),
        TEST(test_endpoint__variables_override_specific_first),
        TEST(test_signing_name__is_the_family_of_the_service),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(credentials_path);
    (void)unlink(config_path);
    (void)rmdir(folder);
    return failed;
}
