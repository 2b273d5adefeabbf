/* Aim: what EC2 answers of subnets is read whole or not at all, whatever else an item has. Method:
 * answers as texts; the call itself is a test of drover doctor. */
#include "orchestrator/aws/subnets.c" /* NOLINT(bugprone-suspicious-include): its statics */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define HEAD "<DescribeSubnetsResponse><requestId>1</requestId><subnetSet>"
#define TAIL "</subnetSet></DescribeSubnetsResponse>"
#define ITEM(id, free_n)                                                                           \
    "<item><subnetId>" id "</subnetId><ipv6CidrBlockAssociationSet/><tagSet><item><key>subnetId"   \
    "</key><value>other</value></item></tagSet><availabilityZone>us-east-1a</availabilityZone>"    \
    "<availableIpAddressCount>" free_n "</availableIpAddressCount></item>"

static bool reads(const char *text, struct subnets_call *call)
{
    *call = (struct subnets_call){.n = 0};
    return read_answer(str_of(text), call);
}

static void test_subnets__whole_answers(void **state)
{
    (void)state;
    AUTO_FREE struct subnets_call *call = xcalloc(1, sizeof *call);
    assert_true(reads(HEAD TAIL, call));
    assert_int_equal(call->n, 0);
    assert_true(reads(HEAD ITEM("subnet-0a", "12") ITEM("subnet-0b", "0") TAIL, call));
    assert_int_equal(call->n, 2);
    assert_string_equal(call->list[0].id, "subnet-0a");
    assert_string_equal(call->list[0].zone, "us-east-1a");
    assert_int_equal(call->list[0].free_n, 12);
    assert_string_equal(call->list[1].id, "subnet-0b");
    assert_int_equal(call->list[1].free_n, 0);
}

static void test_subnets__answers_that_are_none(void **state)
{
    (void)state;
    AUTO_FREE struct subnets_call *call = xcalloc(1, sizeof *call);
    static const char *const texts[] = {
        HEAD ITEM("subnet-0a", "12"), HEAD ITEM("subnet-0a", "many") TAIL,
        HEAD ITEM("subnet-0a", "-1") TAIL, HEAD "<item><subnetId>subnet-0a</subnetId></item>" TAIL,
        "<html><body>busy</html>"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_false(reads(texts[i], call));
    }
}

static void test_subnets__no_more_than_were_asked_for(void **state)
{
    (void)state;
    AUTO_FREE struct subnets_call *call = xcalloc(1, sizeof *call);
    AUTO_BUF struct buf text = BUF_INIT(1 << 20);
    buf_add_cstr(&text, HEAD);
    for (int i = 0; i <= SUBNETS_MAX; i++) {
        buf_add_cstr(&text, ITEM("subnet-0a", "12"));
    }
    buf_add_cstr(&text, TAIL);
    assert_false(reads(buf_cstr(&text), call));
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_subnets__whole_answers),
        cmocka_unit_test(test_subnets__answers_that_are_none),
        cmocka_unit_test(test_subnets__no_more_than_were_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
