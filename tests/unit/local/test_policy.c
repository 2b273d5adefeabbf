/* Policies of IAM. Aim: a statement speaks of exactly the requests that its action, resource and
 * conditions match; a Deny wins; what is not played is refused when it is read, not ignored.
 * Method: tables. */
#include "tests/unit/unit.h"

#include "local/iam/policy.h"

static json_t *parsed(const char *text)
{
    json_t *v = json_loads(text, 0, NULL);
    assert_non_null(v);
    return v;
}

static void test_policy__answers(void **state UNUSED)
{
    static const char documents[] =
        "[{\"Version\":\"2012-10-17\",\"Statement\":["
        "{\"Sid\":\"A\",\"Effect\":\"Allow\",\"Action\":[\"s3:Get*\",\"s3:PutObject\"],"
        "\"Resource\":[\"arn:aws:s3:::b/*\",\"arn:aws:s3:::c/x?z\"]},"
        "{\"Effect\":\"Allow\",\"Action\":\"iam:PassRole\",\"Resource\":\"*\","
        "\"Condition\":{\"StringEquals\":{\"iam:PassedToService\":[\"x\",\"y\"]}}},"
        "{\"Effect\":\"Allow\",\"Action\":\"fsx:*\",\"Resource\":\"*\","
        "\"Condition\":{\"StringLike\":{\"aws:ResourceTag/own\":\"?*\"},"
        "\"StringEquals\":{\"aws:RequestTag/a\":\"1\"}}}]},"
        "{\"Statement\":[{\"Effect\":\"Deny\",\"Action\":\"s3:PutObject\","
        "\"Resource\":\"arn:aws:s3:::b/locked/*\"}]}]";
    static const struct {
        const char *action;
        const char *resource;
        const char *context;
        enum policy_answer want;
    } rows[] = {
        {"s3:GetObject", "arn:aws:s3:::b/a/b", NULL, POLICY_ALLOWED},
        {"S3:getobject", "arn:aws:s3:::b/", NULL, POLICY_ALLOWED},
        {"s3:GetObject", "arn:aws:s3:::b", NULL, POLICY_NOT_ALLOWED},
        {"s3:GetObject", "arn:aws:s3:::B/a", NULL, POLICY_NOT_ALLOWED},
        {"s3:GetObject", "arn:aws:s3:::c/xyz", NULL, POLICY_ALLOWED},
        {"s3:GetObject", "arn:aws:s3:::c/xz", NULL, POLICY_NOT_ALLOWED},
        {"s3:GetObject", "arn:aws:s3:::c/xyzz", NULL, POLICY_NOT_ALLOWED},
        {"s3:PutObjectAcl", "arn:aws:s3:::b/a", NULL, POLICY_NOT_ALLOWED},
        {"s3:PutObject", "arn:aws:s3:::b/a", NULL, POLICY_ALLOWED},
        {"s3:PutObject", "arn:aws:s3:::b/locked/a", NULL, POLICY_DENIED},
        {"s3:GetObject", "arn:aws:s3:::b/locked/a", NULL, POLICY_ALLOWED},
        {"iam:PassRole", "r", "{\"iam:PassedToService\":\"y\"}", POLICY_ALLOWED},
        {"iam:PassRole", "r", "{\"IAM:passedtoservice\":\"y\"}", POLICY_ALLOWED},
        {"iam:PassRole", "r", "{\"iam:PassedToService\":\"Y\"}", POLICY_NOT_ALLOWED},
        {"iam:PassRole", "r", "{}", POLICY_NOT_ALLOWED},
        {"iam:PassRole", "r", NULL, POLICY_NOT_ALLOWED},
        {"fsx:X", "r", "{\"aws:ResourceTag/own\":\"o\",\"aws:RequestTag/a\":\"1\"}",
         POLICY_ALLOWED},
        {"fsx:X", "r", "{\"aws:ResourceTag/own\":\"\",\"aws:RequestTag/a\":\"1\"}",
         POLICY_NOT_ALLOWED},
        {"fsx:X", "r", "{\"aws:ResourceTag/own\":\"o\"}", POLICY_NOT_ALLOWED},
        {"fsx:X", "r", "{\"aws:ResourceTag/own\":\"o\",\"aws:RequestTag/a\":\"*\"}",
         POLICY_NOT_ALLOWED},
    };
    AUTO_JSON json_t *all = parsed(documents);
    struct err err = ERR_INIT;
    assert_true(policy_check(json_array_get(all, 0), &err));
    assert_true(policy_check(json_array_get(all, 1), &err));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_JSON json_t *context = rows[i].context == NULL ? NULL : parsed(rows[i].context);
        struct policy_question q = {rows[i].action, rows[i].resource, context};
        if (policy_ask(all, &q) != rows[i].want) {
            fail_msg("row %zu: %s on %s", i, q.action, q.resource);
        }
    }
    struct policy_question q = {"s3:GetObject", "arn:aws:s3:::b/a", NULL};
    assert_int_equal(policy_ask(NULL, &q), POLICY_NOT_ALLOWED);
}

/* A pattern of many stars over a long text ends at once. */
static void test_policy__pattern_of_many_stars(void **state UNUSED)
{
    AUTO_JSON json_t *all = parsed("[{\"Statement\":[{\"Effect\":\"Allow\",\"Action\":\"x\","
                                   "\"Resource\":\"*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b\"}]}]");
    char text[2001];
    memset(text, 'a', 2000);
    text[2000] = '\0';
    struct policy_question q = {"x", text, NULL};
    assert_int_equal(policy_ask(all, &q), POLICY_NOT_ALLOWED);
    text[1999] = 'b';
    assert_int_equal(policy_ask(all, &q), POLICY_ALLOWED);
}

static void test_policy__refuses_what_it_cannot_play(void **state UNUSED)
{
#define IN(x) "{\"Statement\":[{\"Effect\":\"Allow\",\"Action\":\"a\",\"Resource\":\"*\"},{" x "}]}"
    static const struct {
        const char *text;
        const char *says;
    } rows[] = {
        {"[]", "a policy must be an object"},
        {"{}", "a list of Statement"},
        {"{\"Statement\":{}}", "a list of Statement"},
        {"{\"Statement\":[],\"Versoin\":\"1\"}", "Versoin"},
        {"{\"Statement\":[1]}", "statement 1: a Statement must be an object"},
        {IN("\"Effect\":\"allow\",\"Action\":\"a\",\"Resource\":\"*\""),
         "Allow or Deny, not 'allow'"},
        {IN("\"Action\":\"a\",\"Resource\":\"*\""), "statement 2"},
        {IN("\"Effect\":\"Deny\",\"Resource\":\"*\""), "Action and Resource"},
        {IN("\"Effect\":\"Deny\",\"Action\":[],\"Resource\":\"*\""), "Action and Resource"},
        {IN("\"Effect\":\"Deny\",\"Action\":[1],\"Resource\":\"*\""), "Action and Resource"},
        {IN("\"Effect\":\"Deny\",\"NotAction\":\"a\",\"Resource\":\"*\""), "NotAction"},
        {IN("\"Effect\":\"Deny\",\"Action\":\"a\",\"Resource\":\"*\",\"Condition\":1"),
         "Condition"},
        {IN("\"Effect\":\"Deny\",\"Action\":\"a\",\"Resource\":\"*\",\"Condition\":{\"Bool\":{}}"),
         "'Bool' is not played"},
        {IN("\"Effect\":\"Deny\",\"Action\":\"a\",\"Resource\":\"*\",\"Condition\":"
            "{\"StringLike\":[]}"),
         "'StringLike' must be an object"},
        {IN("\"Effect\":\"Deny\",\"Action\":\"a\",\"Resource\":\"*\",\"Condition\":"
            "{\"StringLike\":{\"k\":2}}"),
         "'k' of StringLike"},
    };
#undef IN
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_JSON json_t *document = parsed(rows[i].text);
        struct err err = ERR_INIT;
        assert_false(policy_check(document, &err));
        if (strstr(err.message, rows[i].says) == NULL) {
            fail_msg("row %zu: %s", i, err.message);
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy__answers),
        cmocka_unit_test(test_policy__pattern_of_many_stars),
        cmocka_unit_test(test_policy__refuses_what_it_cannot_play),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
