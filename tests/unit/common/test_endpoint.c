/* Aim: region and endpoints are found where the AWS SDKs find them, in their order.
 * Method: environment and small profile files in a
 * folder of its own; the developer's own environment is cleared first. */
#include "common/endpoint.h"
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
        "AWS_USE_FIPS_ENDPOINT",
        "AWS_USE_DUALSTACK_ENDPOINT",
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

static void expect_region(const char *want)
{
    char region[64] = "keep";
    struct err err = ERR_INIT;
    bool ok = endpoint_region(region, sizeof region, &err);
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
    char *url = endpoint_url(service, region, &is_custom);
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

static void test_endpoint__profiles_may_name_urls(void **state)
{
    (void)state;
    put_file(config_path, "[default]\nendpoint_url = http://all:1/\nservices = mine\n"
                          "[services mine]\ns3 =\n  endpoint_url = http://s3:2\n"
                          "cloudwatch_logs =\n  other = 1\n  endpoint_url=http://logs:3/\n");
    expect_endpoint("sagemaker", "us-east-1", "http://all:1", true);
    expect_endpoint("s3", "us-east-1", "http://s3:2", true);
    expect_endpoint("logs", "us-east-1", "http://logs:3", true);
    put_env("AWS_ENDPOINT_URL", "http://env:4");
    expect_endpoint("s3", "us-east-1", "http://env:4", true);
    put_env("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true");
    expect_endpoint("s3", "us-east-1", "https://s3.us-east-1.amazonaws.com", false);
}

static void test_endpoint__fips_and_dual_stack_are_switches(void **state)
{
    (void)state;
    put_file(config_path, "[default]\nuse_fips_endpoint = true\n");
    expect_endpoint("sagemaker", "us-east-1", "https://api-fips.sagemaker.us-east-1.amazonaws.com",
                    false);
    expect_endpoint("sts", "us-gov-west-1", "https://sts.us-gov-west-1.amazonaws.com", false);
    expect_endpoint("fsx", "us-gov-west-1", "https://fsx-fips.us-gov-west-1.amazonaws.com", false);
    put_env("AWS_USE_DUALSTACK_ENDPOINT", "TRUE");
    expect_endpoint("s3", "us-east-1", "https://s3-fips.dualstack.us-east-1.amazonaws.com", false);
    put_env("AWS_USE_FIPS_ENDPOINT", "false");
    expect_endpoint("ecr", "cn-north-1", "https://ecr.cn-north-1.api.amazonwebservices.com.cn",
                    false);
    expect_endpoint("s3", "cn-north-1", "https://s3.dualstack.cn-north-1.amazonaws.com.cn", false);
}

static void test_signing_name__is_the_family_of_the_service(void **state)
{
    (void)state;
    assert_string_equal(endpoint_signing_name("sagemaker-runtime"), "sagemaker");
    assert_string_equal(endpoint_signing_name("s3"), "s3");
    assert_string_equal(endpoint_signing_name("something"), "something");
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    (void)snprintf(folder, sizeof folder, "/tmp/drover-test-endpoint-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    (void)snprintf(credentials_path, sizeof credentials_path, "%s/credentials", folder);
    (void)snprintf(config_path, sizeof config_path, "%s/config", folder);
#define TEST(f) cmocka_unit_test_setup(f, fresh)
    const struct CMUnitTest tests[] = {
        TEST(test_region__comes_from_the_environment_then_the_profile),
        TEST(test_region__what_cannot_be_in_a_host_is_refused),
        TEST(test_endpoint__hosts_follow_service_and_partition),
        TEST(test_endpoint__variables_override_specific_first),
        TEST(test_endpoint__profiles_may_name_urls),
        TEST(test_endpoint__fips_and_dual_stack_are_switches),
        TEST(test_signing_name__is_the_family_of_the_service),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(credentials_path);
    (void)unlink(config_path);
    (void)rmdir(folder);
    return failed;
}
