/* Aim: credentials are searched where the AWS SDKs search them, in their order, and mistakes are
 * named without showing a secret. Method: environment and small profile files in a folder of its
 * own; no network. */
#include "common/cleanup.h"
#include "common/creds_answer.h"
#include "common/creds_process.h"
#include "common/keyring.h"
#include "common/profiles.h"
#include "tests/kit/aws_profile.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static void plan_of(struct creds_plan *p)
{
    struct err err = ERR_INIT;
    if (!creds_plan_make(p, &err)) {
        fail_msg("%s", err.message);
    }
}

static void expect_keys(const char *id, const char *secret, const char *token)
{
    struct creds_plan p;
    plan_of(&p);
    assert_int_equal(p.source, CREDS_KEYS);
    assert_int_equal(p.roles_n, 0);
    assert_false(creds_plan_renews(&p));
    assert_string_equal(p.keys.key_id, id);
    assert_string_equal(p.keys.secret, secret);
    assert_string_equal(p.keys.session_token, token);
    assert_int_equal(p.keys.expires, USEC_NEVER);
    creds_plan_done(&p);
}

static void expect_source(enum creds_source source, const char *text)
{
    struct creds_plan p;
    plan_of(&p);
    assert_int_equal(p.source, source);
    assert_true(creds_plan_renews(&p));
    assert_string_equal(p.text, text);
    creds_plan_done(&p);
}

static void expect_none(const char *fragment)
{
    struct creds_plan p;
    struct err err = ERR_INIT;
    assert_false(creds_plan_make(&p, &err));
    if (strstr(err.message, fragment) == NULL) {
        fail_msg("'%s' is not in '%s'", fragment, err.message);
    }
    assert_null(strstr(err.message, "TOPSECRET"));
}

static void test_plan__the_order_is_the_sdks(void **state)
{
    (void)state;
    expect_none("no AWS credentials for profile 'default'");
    unsetenv("AWS_EC2_METADATA_DISABLED");
    expect_source(CREDS_INSTANCE, "http://169.254.169.254");
    put_file(config_path, "[default]\nec2_metadata_service_endpoint_mode = IPv6\n");
    expect_source(CREDS_INSTANCE, "http://[fd00:ec2::254]");
    put_env("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv4"); /* the variable comes first */
    expect_source(CREDS_INSTANCE, "http://169.254.169.254");
    put_file(config_path, "");
    put_env("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "ipv6");
    expect_source(CREDS_INSTANCE, "http://[fd00:ec2::254]");
    put_env("AWS_EC2_METADATA_SERVICE_ENDPOINT",
            "http://127.0.0.1:1"); /* and an address first of all */
    expect_source(CREDS_INSTANCE, "http://127.0.0.1:1");
    unsetenv("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    unsetenv("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
    put_env("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/x");
    expect_source(CREDS_CONTAINER, "http://127.0.0.1:1/x");
    put_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x");
    expect_source(CREDS_CONTAINER, "http://169.254.170.2/v2/x");
    put_file(config_path, "[default]\naws_access_key_id=C\naws_secret_access_key=CS\n");
    expect_keys("C", "CS", "");
    put_file(config_path, "[default]\naws_access_key_id=C\naws_secret_access_key=CS\n"
                          "credential_process = /bin/p 'a b'\n");
    expect_source(CREDS_PROCESS, "/bin/p 'a b'");
    put_file(credentials_path, "[default]\naws_access_key_id=F\naws_secret_access_key=FS\n");
    expect_keys("F", "FS", "");
    put_env("AWS_WEB_IDENTITY_TOKEN_FILE", "/token");
    expect_none("names a token file but no role");
    put_env("AWS_ROLE_ARN", "arn:aws:iam::1:role/web");
    expect_source(CREDS_WEB_IDENTITY, "/token");
    put_file(config_path, "[default]\nrole_arn = arn:r\nsource_profile = default\n");
    struct creds_plan p;
    plan_of(&p);
    assert_int_equal(p.source, CREDS_KEYS);
    assert_int_equal(p.roles_n, 1);
    assert_string_equal(p.roles[0].arn, "arn:r");
    assert_string_equal(p.keys.key_id, "F");
    creds_plan_done(&p);
    put_env("AWS_ACCESS_KEY_ID", "E");
    put_env("AWS_SECRET_ACCESS_KEY", "ES");
    put_env("AWS_SESSION_TOKEN", "ET");
    expect_keys("E", "ES", "ET");
    put_env("AWS_SECURITY_TOKEN", "OLD");
    expect_keys("E", "ES", "OLD");
    put_env("AWS_CREDENTIAL_EXPIRATION", "2030-01-01T00:00:00+00:00");
    plan_of(&p);
    assert_int_equal(p.keys.expires, INT64_C(1893456000) * USEC_PER_SEC);
    creds_plan_done(&p);
}

static void test_plan__half_a_pair_is_an_error(void **state)
{
    (void)state;
    put_env("AWS_ACCESS_KEY_ID", "E");
    expect_none("without its secret");
    unsetenv("AWS_ACCESS_KEY_ID");
    put_env("AWS_SECRET_ACCESS_KEY", "TOPSECRET");
    put_file(credentials_path, "[default]\naws_access_key_id=F\n");
    expect_none("profile 'default'");
}

static void test_plan__profiles_are_chosen_by_name(void **state)
{
    (void)state;
    put_file(credentials_path, "[default]\naws_access_key_id = D\naws_secret_access_key = DS\n"
                               "[other]\r\naws_access_key_id =  O  \r\n; a comment\r\n"
                               "AWS_SECRET_ACCESS_KEY = a/b+c=d# \r\n"
                               "aws_session_token = T # said inline\r\n");
    expect_keys("D", "DS", "");
    put_env("AWS_PROFILE", "other");
    expect_keys("O", "a/b+c=d#", "T");
    put_env("AWS_PROFILE", "nobody");
    expect_none("profile 'nobody' is neither in");
    put_env("AWS_DEFAULT_PROFILE", "other");
    expect_keys("O", "a/b+c=d#", "T");
}

static void test_plan__the_config_file_wants_the_word_profile(void **state)
{
    (void)state;
    put_file(config_path, "[default]\naws_access_key_id=D\naws_secret_access_key=DS\n"
                          "[dev]\naws_access_key_id=W\naws_secret_access_key=WS\n"
                          "[profiledev]\naws_access_key_id=W\naws_secret_access_key=WS\n"
                          "[profile  \"d e v\"]\naws_access_key_id=Q\naws_secret_access_key=QS\n"
                          "[profile   dev]\naws_access_key_id=P\naws_secret_access_key=PS\n"
                          "[profile default]\naws_access_key_id=D2\naws_secret_access_key=D2S\n");
    expect_keys("D2", "D2S", ""); /* the later section counts */
    put_env("AWS_PROFILE", "dev");
    expect_keys("P", "PS", "");
    put_env("AWS_PROFILE", "d e v");
    expect_keys("Q", "QS", "");
}

static void test_plan__roles_are_followed_to_their_source(void **state)
{
    (void)state;
    put_env("AWS_PROFILE", "c");
    put_file(config_path, "[profile a]\naws_access_key_id=A\naws_secret_access_key=AS\n"
                          "[profile b]\nrole_arn=arn:b\nsource_profile=a\nexternal_id=x1\n"
                          "[profile c]\nrole_arn=arn:c\nsource_profile=b\nrole_session_name=me\n"
                          "duration_seconds=1800\n");
    struct creds_plan p;
    plan_of(&p);
    assert_int_equal(p.roles_n, 2);
    assert_string_equal(p.keys.key_id, "A");
    assert_string_equal(p.roles[0].arn, "arn:b");
    assert_string_equal(p.roles[0].external_id, "x1");
    assert_int_equal(p.roles[0].duration_s, 3600);
    assert_string_equal(p.roles[1].arn, "arn:c");
    assert_string_equal(p.roles[1].session, "me");
    assert_int_equal(p.roles[1].duration_s, 1800);
    creds_plan_done(&p);
    put_file(config_path, "[profile c]\nrole_arn=arn:c\ncredential_source=Ec2InstanceMetadata\n");
    unsetenv("AWS_EC2_METADATA_DISABLED");
    put_env("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1/");
    expect_source(CREDS_INSTANCE, "http://127.0.0.1:1");
}

static void test_plan__what_cannot_work_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *config, *fragment;
    } rows[] = {
        {"role_arn=r\n", "neither source_profile nor"},
        {"role_arn=r\nsource_profile=a\ncredential_source=Environment\n",
         "both source_profile and"},
        {"role_arn=r\nsource_profile=nobody\n", "its source_profile 'nobody' does not exist"},
        {"role_arn=r\nsource_profile=default\n", "leads back to itself"},
        {"role_arn=r\nsource_profile=x\n[profile x]\nrole_arn=s\nsource_profile=default\n",
         "leads back to itself"},
        {"role_arn=r\ncredential_source=Magic\n", "credential_source 'Magic' is not"},
        {"role_arn=r\ncredential_source=Environment\n", "has no credentials"},
        {"role_arn=r\ncredential_source=EcsContainer\n", "has no credentials"},
        {"role_arn=r\nsource_profile=x\n[profile x]\nregion=y\n", "'x' has no credentials"},
        {"role_arn=r\nmfa_serial=m\ncredential_source=Environment\n", "mfa_serial"},
        {"sso_account_id=1\nsso_role_name=r\n", "SSO"},
        {"aws_access_key_id=A\n", "without its secret"},
        {"aws_access_key_id=A\naws_secret_access_key=TOPSECRET X\n", "byte that cannot be in it"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *text = xasprintf("[default]\n%s", rows[i].config);
        put_file(config_path, text);
        expect_none(rows[i].fragment);
    }
}

static void test_plan__malformed_and_huge_files_are_named(void **state)
{
    (void)state;
    put_file(credentials_path, "[default]\naws_access_key_id=A\naws_secret_access_key=TOPSECRET\n"
                               "what is this\n");
    expect_none("line 4: write 'key = value'");
    expect_none(credentials_path);
    FILE *f = fopen(credentials_path, "we");
    assert_non_null(f);
    for (int i = 0; i < 20000; i++) {
        (void)fprintf(f, "# %070d\n", i);
    }
    assert_int_equal(fclose(f), 0);
    expect_none("larger than");
}

static void test_container__plain_http_goes_to_this_machine_only(void **state)
{
    (void)state;
    static const char *const good[] = {
        "http://localhost/x",       "http://127.0.0.1:80/x",     "http://127.9.8.7",
        "http://[::1]:8080/x",      "http://169.254.170.2/v2",   "http://169.254.170.23/v1",
        "http://[fd00:ec2::23]/v1", "https://anything.example/", "http://LOCALHOST?x"};
    static const char *const bad[] = {"http://127.0.0.1.evil.com/",
                                      "http://evil.com/",
                                      "http://127.0.0.1@evil.com/",
                                      "http://evil.com/127.0.0.1",
                                      "http://169.254.169.254/",
                                      "ftp://127.0.0.1/",
                                      "http://",
                                      "https:///x",
                                      "http://128.0.0.1/",
                                      "http://127.0.0.1 /",
                                      "http://[::2]/",
                                      "http://localhost\\@evil.com/",
                                      "http://127.0.0.1\r\nX: 1",
                                      "//127.0.0.1/"};
    char *uri;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        if (!creds_container_uri(NULL, good[i], &uri, &err)) {
            fail_msg("%s: %s", good[i], err.message);
        }
        assert_string_equal(uri, good[i]);
        free(uri);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (creds_container_uri(NULL, bad[i], &uri, &err)) {
            fail_msg("%s was taken", bad[i]);
        }
    }
    assert_false(creds_container_uri(".evil.com/", NULL, &uri, &err));
    assert_false(creds_container_uri("@evil.com/", NULL, &uri, &err));
}

static void expect_json(const char *text, enum creds_source from, const char *fragment)
{
    struct aws_creds c;
    struct err err = ERR_INIT;
    bool ok = creds_answer_json(str_of(text), from, &c, &err);
    assert_int_equal(ok, fragment == NULL);
    if (fragment != NULL && strstr(err.message, fragment) == NULL) {
        fail_msg("'%s' is not in '%s'", fragment, err.message);
    }
    assert_null(strstr(err.message, "TOPSECRET"));
    if (ok) {
        assert_string_equal(c.key_id, "A");
        assert_string_equal(c.secret, "TOPSECRET");
    }
}

static void test_answer__json(void **state)
{
    (void)state;
    const char *whole = "{\"Code\":\"Success\",\"AccessKeyId\":\"A\",\"SecretAccessKey\":"
                        "\"TOPSECRET\",\"Token\":\"T\",\"Expiration\":\"2030-01-01T00:00:00Z\"}";
    expect_json(whole, CREDS_CONTAINER, NULL);
    expect_json(whole, CREDS_INSTANCE, NULL);
    expect_json("{\"Code\":\"AssumeRoleUnauthorizedAccess\"}", CREDS_INSTANCE, "AssumeRoleUn");
    expect_json("{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"TOPSECRET\"}", CREDS_CONTAINER,
                "lacks Token or Expiration");
    expect_json("{\"Version\":1,\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"TOPSECRET\"}",
                CREDS_PROCESS, NULL);
    expect_json("{\"Version\":2,\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"TOPSECRET\"}",
                CREDS_PROCESS, "Version is not 1");
    expect_json("{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"TOPSECRET\"}", CREDS_PROCESS,
                "Version is not 1");
    expect_json("{\"Version\":1,\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"TOPSECRET\","
                "\"Expiration\":\"soon\"}",
                CREDS_PROCESS, "no time");
    expect_json("{\"Version\":1,\"SecretAccessKey\":\"TOPSECRET\"}", CREDS_PROCESS,
                "without its id");
    expect_json("TOPSECRET", CREDS_CONTAINER, "no JSON object");
    expect_json("", CREDS_CONTAINER, "no JSON object");
}

static void test_answer__xml(void **state)
{
    (void)state;
    struct aws_creds c;
    struct err err = ERR_INIT;
    assert_true(creds_answer_xml(
        STR("<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>A</AccessKeyId>"
            "<SecretAccessKey>S&amp;</SecretAccessKey><SessionToken>\nT\n</SessionToken>"
            "<Expiration>2030-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult>"
            "</AssumeRoleResponse>"),
        &c, &err));
    assert_string_equal(c.secret, "S&");
    assert_string_equal(c.session_token, "T");
    assert_int_equal(c.expires, INT64_C(1893456000) * USEC_PER_SEC);
    assert_false(creds_answer_xml(STR("<a><AccessKeyId>A</AccessKeyId></a>"), &c, &err));
    assert_false(creds_answer_xml(STR(""), &c, &err));
}

static void expect_words(const char *command, size_t n, const char *last)
{
    char **words = NULL;
    size_t words_n = 0;
    assert_int_equal(creds_process_split(command, &words, &words_n), n > 0);
    assert_int_equal(words_n, n);
    if (n > 0) {
        assert_string_equal(words[n - 1], last);
        assert_null(words[n]);
    }
    free(words);
}

static void test_process__commands_are_split_as_by_a_shell(void **state)
{
    (void)state;
    expect_words("a", 1, "a");
    expect_words("  a  b\tc ", 3, "c");
    expect_words("a 'b c'\"d e\"f", 2, "b cd ef");
    expect_words("a \"b\\\"c\\d\"", 2, "b\"c\\d");
    expect_words("a b\\ c", 2, "b c");
    expect_words("a ''", 2, "");
    expect_words("", 0, NULL);
    expect_words("a 'b", 0, NULL);
    expect_words("a b\\", 0, NULL);
}

static void test_keyring__renews_before_the_end(void **state)
{
    (void)state;
    int64_t min_us = 60 * USEC_PER_SEC;
    assert_int_equal(keyring_renew_after_us(60 * min_us, 0.0), 45 * min_us);
    assert_int_equal(keyring_renew_after_us(30 * min_us, 0.0), 15 * min_us);
    assert_int_equal(keyring_renew_after_us(10 * min_us, 0.0), 5 * min_us);
    assert_int_equal(keyring_renew_after_us(10 * min_us, 0.5), 5 * min_us - 15 * USEC_PER_SEC);
    assert_int_equal(keyring_renew_after_us(1, 0.9), 0);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (!aws_profile_begin()) {
        return 1;
    }
#define TEST(f) cmocka_unit_test_setup(f, aws_profile_fresh)
    const struct CMUnitTest tests[] = {
        TEST(test_plan__the_order_is_the_sdks),
        TEST(test_plan__half_a_pair_is_an_error),
        TEST(test_plan__profiles_are_chosen_by_name),
        TEST(test_plan__the_config_file_wants_the_word_profile),
        TEST(test_plan__roles_are_followed_to_their_source),
        TEST(test_plan__what_cannot_work_is_said),
        TEST(test_plan__malformed_and_huge_files_are_named),
        TEST(test_container__plain_http_goes_to_this_machine_only),
        TEST(test_answer__json),
        TEST(test_answer__xml),
        TEST(test_process__commands_are_split_as_by_a_shell),
        TEST(test_keyring__renews_before_the_end),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    aws_profile_end();
    return failed;
}
