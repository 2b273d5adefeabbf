/* Aim: what CloudWatch answers is read whole or not at all, because an endpoint is deleted when
 * nothing was read of it. Method: answers as texts. */
#include "orchestrator/aws/invocations.c" /* NOLINT(bugprone-suspicious-include): its statics */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static bool reads(const char *text, struct invocation_report *ret)
{
    AUTO_JSON json_t *o = NULL;
    assert_true(json_parse(str_of(text), 1 << 20, &o, NULL));
    return read_report(o, ret);
}

static void test_invocations__whole_answers(void **state)
{
    (void)state;
    struct invocation_report r;
    assert_true(reads("{\"Label\":\"Invocations\",\"Datapoints\":[]}", &r));
    assert_int_equal(r.n, 0);
    assert_true(reads("{\"Datapoints\":[{\"Timestamp\":1795148880,\"Sum\":3.0,\"Unit\":\"None\"},"
                      "{\"Timestamp\":1795148820.0,\"Sum\":0.0},{\"Timestamp\":1795148760,"
                      "\"Sum\":0.5,\"New\":1}]}",
                      &r));
    assert_int_equal(r.n, 2);
    assert_int_equal(r.counts[0].from, INT64_C(1795148880) * USEC_PER_SEC);
    assert_int_equal(r.counts[0].n, 3);
    assert_int_equal(r.counts[1].n, 1); /* any invocation is one */
}

static void test_invocations__answers_that_are_none(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "{\"Datapoints\":null}",
        "{\"Datapoints\":{}}",
        "{\"Datapoints\":[7]}",
        "{\"Datapoints\":[{\"Sum\":1.0}]}",
        "{\"Datapoints\":[{\"Timestamp\":1795148880}]}",
        "{\"Datapoints\":[{\"Timestamp\":1795148880,\"Sum\":\"1\"}]}",
        "{\"Datapoints\":[{\"Timestamp\":1795148880,\"Sum\":-1}]}",
        "{\"Datapoints\":[{\"Timestamp\":1795148880,\"Sum\":1e300}]}",
        "{\"Datapoints\":[{\"Timestamp\":\"2026-01-02T03:04:05Z\",\"Sum\":1}]}",
        "{\"Datapoints\":[{\"Timestamp\":1795148880,\"Sum\":1},{\"Timestamp\":1795148940}]}",
    };
    struct invocation_report r;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (reads(texts[i], &r)) {
            fail_msg("read: %s", texts[i]);
        }
    }
    AUTO_BUF struct buf many = BUF_INIT(1 << 20);
    buf_add_cstr(&many, "{\"Datapoints\":[{\"Timestamp\":1,\"Sum\":1}");
    for (int i = 1; i < INVOCATION_COUNTS_MAX; i++) {
        buf_add_cstr(&many, ",{\"Timestamp\":1,\"Sum\":1}");
    }
    size_t n = many.n;
    buf_add_cstr(&many, "]}");
    assert_true(reads(buf_cstr(&many), &r));
    many.n = n;
    buf_add_cstr(&many, ",{\"Timestamp\":1,\"Sum\":1}]}");
    assert_false(reads(buf_cstr(&many), &r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_invocations__whole_answers),
        cmocka_unit_test(test_invocations__answers_that_are_none),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
