/* Aim: what a smoke test sends is what the campaign file says or a good list in S3; a list that is
 * none fails the test, and S3 that does not answer does not. Method: a table of answers. */
#include "common/cleanup.h"
#include "core/leader/smoke_payloads.h"
#include "leader_world.h"

static void test_smoke_payloads__those_of_the_file(void **state)
{
    (void)state;
    const char *texts[] = {"{\"a\":1}", "two"};
    struct spec_endpoint e = {.payloads_n = 2};
    struct payloads p;
    memcpy(e.payloads, texts, sizeof texts);
    payloads_of_file(&e, &p);
    assert_int_equal(p.n, 2);
    assert_string_equal(p.text[0], texts[0]);
    assert_string_equal(p.text[1], texts[1]);
    payloads_done(&p);
    assert_int_equal(p.n, 0);
}

static void test_smoke_payloads__a_list_in_s3(void **state)
{
    (void)state;
    static const char none[] = "smoke test: its payloads in S3 are no JSON list of 1 to 100";
    static const char unread[] = "smoke test: its payloads in S3 cannot be read";
    static const struct {
        enum aws_outcome outcome;
        const char *body, *fault;
        bool again;
        int n;
        const char *first;
    } rows[] = {
        {AWS_OK, "[\"as it is\", {\"a\": [1]}, 3]", NULL, false, 3, "as it is"},
        {AWS_OK, "[{\"a\": [1]}]", NULL, false, 1, "{\"a\":[1]}"},
        {AWS_OK, "[]", none, false, 0, NULL},
        {AWS_OK, "{\"a\": 1}", none, false, 0, NULL},
        {AWS_OK, "[1", none, false, 0, NULL},
        {AWS_REFUSED, "", unread, false, 0, NULL},
        {AWS_THROTTLED, "", NULL, true, 0, NULL},
        {AWS_CREDENTIALS, "", NULL, true, 0, NULL},
        {AWS_UNKNOWN, "", NULL, true, 0, NULL},
        {AWS_UNSENT, "", NULL, true, 0, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct payloads p;
        bool again;
        const char *fault = payloads_of_answer(rows[i].outcome, str_of(rows[i].body), &p, &again);
        assert_string_equal(fault != NULL ? fault : "", rows[i].fault != NULL ? rows[i].fault : "");
        assert_int_equal(again, rows[i].again);
        assert_int_equal(p.n, rows[i].n);
        if (rows[i].first != NULL) {
            assert_string_equal(p.text[0], rows[i].first);
        }
        payloads_done(&p);
    }
}

/* A list of n texts of so many characters. */
static const char *fault_of(int n, int length)
{
    struct payloads p;
    bool again;
    AUTO_BUF struct buf body = BUF_INIT(1024 * 1024);
    for (int i = 0; i < n; i++) {
        buf_addf(&body, "%s\"%0*d\"", i == 0 ? "[" : ",", length, 7);
    }
    buf_addf(&body, "]");
    const char *fault = payloads_of_answer(AWS_OK, buf_str(&body), &p, &again);
    payloads_done(&p);
    return fault;
}

static void test_smoke_payloads__a_list_has_bounds(void **state)
{
    (void)state;
    assert_null(fault_of(100, 1));
    assert_non_null(fault_of(101, 1));
    assert_null(fault_of(1, 4096));
    assert_string_equal(fault_of(1, 4097),
                        "smoke test: a payload in S3 is longer than 4,096 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smoke_payloads__those_of_the_file),
        cmocka_unit_test(test_smoke_payloads__a_list_in_s3),
        cmocka_unit_test(test_smoke_payloads__a_list_has_bounds),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
