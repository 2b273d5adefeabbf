/* Aim: people are told to mend what they can mend, and to try again what may pass. Method: a table
 * of every outcome. */
#include "core/leader/answer_error.h"
#include "leader_world.h"

static void test_answer_error__a_refusal_is_for_a_person(void **state)
{
    (void)state;
    static const struct {
        enum aws_outcome outcome;
        const char *code;
        enum err_code is, log, next;
    } rows[] = {
        {AWS_REFUSED, "AccessDeniedException", ERR_AWS, ERR_AWS, ERR_AWS},
        {AWS_REFUSED, "InvalidParameterException", ERR_AWS, ERR_AWS, ERR_MALFORMED},
        {AWS_THROTTLED, "ThrottlingException", ERR_UNAVAILABLE, ERR_UNAVAILABLE, ERR_UNAVAILABLE},
        {AWS_CREDENTIALS, "ExpiredToken", ERR_UNAVAILABLE, ERR_UNAVAILABLE, ERR_UNAVAILABLE},
        {AWS_UNKNOWN, "", ERR_UNAVAILABLE, ERR_UNAVAILABLE, ERR_UNAVAILABLE},
        {AWS_UNSENT, "", ERR_UNAVAILABLE, ERR_UNAVAILABLE, ERR_UNAVAILABLE}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct aws_failure f = {.outcome = rows[i].outcome};
        (void)snprintf(f.code, sizeof f.code, "%s", rows[i].code);
        assert_int_equal(answer_error(&f), rows[i].is);
        assert_int_equal(answer_error_log(&f, false), rows[i].log);
        assert_int_equal(answer_error_log(&f, true), rows[i].next);
    }
}

static void test_answer_error__an_answer_of_a_model_and_of_a_deletion(void **state)
{
    (void)state;
    assert_int_equal(answer_error_model(200), ERR_NONE);
    assert_int_equal(answer_error_model(400), ERR_MODEL);
    assert_int_equal(answer_error_model(500), ERR_MODEL);
    assert_true(answer_error_deleted(AWS_OK, 204));
    assert_true(answer_error_deleted(AWS_REFUSED, 404));
    assert_false(answer_error_deleted(AWS_REFUSED, 403));
    assert_false(answer_error_deleted(AWS_UNKNOWN, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer_error__a_refusal_is_for_a_person),
        cmocka_unit_test(test_answer_error__an_answer_of_a_model_and_of_a_deletion),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
