/* Aim: region and endpoints are found where the AWS SDKs find them, in their order.
 * Method: environment and small profile files in a folder of its own (kit/aws_profile.h). */
#include "common/endpoint.h"
#include "tests/kit/aws_profile.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

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
    expect_endpoint("s3", "eu-isoe-west-1", "https://s3.eu-isoe-west-1.cloud.adc-e.uk", false);
    expect_endpoint("sts", "us-isof-south-1", "https://sts.us-isof-south-1.csp.hci.ic.gov", false);
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

static void test_checksums__are_wanted_unless_the_sdks_setting_says_otherwise(void **state)
{
    (void)state;
    assert_true(endpoint_wants_checksums());
    put_file(config_path, "[default]\nrequest_checksum_calculation = WHEN_REQUIRED\n");
    assert_false(endpoint_wants_checksums());
    put_env("AWS_REQUEST_CHECKSUM_CALCULATION", "when_supported");
    assert_true(endpoint_wants_checksums());
    put_env("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required");
    assert_false(endpoint_wants_checksums());
    put_env("AWS_REQUEST_CHECKSUM_CALCULATION", "when_require"); /* a slip weakens no check */
    assert_true(endpoint_wants_checksums());
    put_env("AWS_REQUEST_CHECKSUM_CALCULATION", "");
    assert_true(endpoint_wants_compared()); /* a setting of its own */
    put_file(config_path, "[default]\nresponse_checksum_validation = when_required\n");
    assert_false(endpoint_wants_compared());
    assert_true(endpoint_wants_checksums());
    put_env("AWS_RESPONSE_CHECKSUM_VALIDATION", "when_supported");
    assert_true(endpoint_wants_compared());
    put_env("AWS_RESPONSE_CHECKSUM_VALIDATION", "WHEN_REQUIRED");
    assert_false(endpoint_wants_compared());
    put_env("AWS_RESPONSE_CHECKSUM_VALIDATION", "");
}

static void test_aws_host__is_below_one_of_its_domains(void **state)
{
    (void)state;
    static const char *const own[] = {
        "s3.us-east-1.amazonaws.com",          "data.s3.eu-west-1.amazonaws.com:443",
        "s3.cn-north-1.amazonaws.com.cn",      "bucket.vpce-1-2.s3.us-east-1.vpce.amazonaws.com",
        "s3.dualstack.us-east-1.api.aws:8443",
    };
    static const char *const others[] = {
        "127.0.0.1:9000", "amazonaws.com",          "s3.notamazonaws.com",
        "minio",          "s3.amazonaws.com.evil.", "storage.googleapis.com",
    };
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        assert_true(endpoint_is_aws_host(str_of(own[i])));
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        assert_false(endpoint_is_aws_host(str_of(others[i])));
    }
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
    if (!aws_profile_begin()) {
        return 1;
    }
#define TEST(f) cmocka_unit_test_setup(f, aws_profile_fresh)
    const struct CMUnitTest tests[] = {
        TEST(test_region__comes_from_the_environment_then_the_profile),
        TEST(test_region__what_cannot_be_in_a_host_is_refused),
        TEST(test_endpoint__hosts_follow_service_and_partition),
        TEST(test_endpoint__variables_override_specific_first),
        TEST(test_endpoint__profiles_may_name_urls),
        TEST(test_endpoint__fips_and_dual_stack_are_switches),
        TEST(test_checksums__are_wanted_unless_the_sdks_setting_says_otherwise),
        TEST(test_aws_host__is_below_one_of_its_domains),
        TEST(test_signing_name__is_the_family_of_the_service),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    aws_profile_end();
    return failed;
}
