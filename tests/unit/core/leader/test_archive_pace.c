/* Aim: nothing of a campaign that lives is deleted; a step of an archive takes no longer than the
 * loop may wait, and no less than it could. Method: every state of a campaign, and a table of steps
 * and how long they took. */
#include "common/units.h"
#include "core/leader/archive_pace.h"
#include "tests/unit/unit.h"

static void test_archive_pace__as_many_rows_as_fit_into_a_step(void **state)
{
    (void)state;
    static const struct {
        int64_t rows, took_ms, next;
    } steps[] = {
        {0, 0, 200},     /* the first */
        {200, 5, 400},   /* quick */
        {400, 10, 400},  /* right, from here */
        {400, 30, 400},  /* to here */
        {400, 31, 200},  /* too long */
        {200, 500, 200}, /* never fewer */
        {3000, 1, 5000}, /* never more */
    };
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        assert_int_equal(leader_archive_rows(steps[i].rows, steps[i].took_ms * USEC_PER_MSEC),
                         steps[i].next);
    }
}

static void test_archive_pace__what_lives_keeps_its_rows(void **state)
{
    (void)state;
    for (int i = 0; i <= CAMPAIGN_STATE_COUNT; i++) { /* COUNT: of a newer version */
        enum campaign_state s = (enum campaign_state)i;
        bool over = s == CAMPAIGN_SUCCEEDED || s == CAMPAIGN_FAILED || s == CAMPAIGN_CANCELLED;
        assert_int_equal(leader_archive_refusal(s, 0)[0] == '\0', over);
        assert_int_not_equal(leader_archive_refusal(s, 1)[0], '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_archive_pace__what_lives_keeps_its_rows),
        cmocka_unit_test(test_archive_pace__as_many_rows_as_fit_into_a_step),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
