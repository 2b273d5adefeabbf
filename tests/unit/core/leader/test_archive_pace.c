/* Aim: nothing of a campaign that lives is deleted; a step of an archive takes no longer than the
 * loop may wait, and no less than it could; people are told now and then, and an object that S3
 * does not take comes again. Method: every state of a campaign, and tables of steps. */
#include "common/units.h"
#include "core/leader/archive_pace.h"
#include "leader_world.h"

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

static void test_archive_pace__twenty_times_it_tells(void **state)
{
    (void)state;
    static const struct {
        enum operation_state state;
        int64_t done, attempts;
        bool over, tells;
        int64_t told;
    } rows[] = {
        {OPERATION_ACCEPTED, 0, 1, false, true, 1}, /* that it has begun */
        {OPERATION_RUNNING, 1, 50, false, false, 50},
        {OPERATION_RUNNING, 1, 51, false, true, 51},
        {OPERATION_RUNNING, 990, 1200, false, false, 1000}, /* retries: more than parts */
        {OPERATION_RUNNING, 990, 995, true, true, 1000},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct operation_row op = {
            .state = rows[i].state, .done = rows[i].done, .total = 1000};
        const struct archive_told t = leader_archive_told(&op, rows[i].over, rows[i].attempts);
        assert_int_equal(t.tells, rows[i].tells);
        assert_int_equal(t.done, rows[i].told);
        assert_int_equal(t.state, rows[i].over ? OPERATION_DONE : OPERATION_RUNNING);
    }
    const struct operation_row few = {.state = OPERATION_RUNNING, .done = 3, .total = 5};
    assert_false(leader_archive_told(&few, false, 3).tells); /* nothing new */
    assert_true(leader_archive_told(&few, false, 4).tells);
}

static void test_archive_pace__an_object_that_is_not_written_comes_again(void **state)
{
    (void)state;
    static const int64_t pauses_s[] = {1, 2, 4, 8, 16, 32, 60, 60};
    struct archive_put_pace p = {.failures = 0};
    assert_true(leader_archive_put_due(&p, BOOT));
    for (size_t i = 0; i < ARRAY_LEN(pauses_s); i++) {
        leader_archive_put_answered(&p, false, BOOT);
        assert_false(leader_archive_put_due(&p, BOOT + pauses_s[i] * SEC - 1));
        assert_true(leader_archive_put_due(&p, BOOT + pauses_s[i] * SEC));
    }
    leader_archive_put_answered(&p, true, BOOT);
    assert_true(leader_archive_put_due(&p, BOOT));
    leader_archive_put_answered(&p, false, BOOT);
    assert_true(leader_archive_put_due(&p, BOOT + SEC));
    leader_archive_put_nowhere(&p, BOOT);
    assert_false(leader_archive_put_due(&p, BOOT + 60 * SEC - 1));
}

static void test_archive_pace__exports_when_a_folder_is_named(void **state)
{
    (void)state;
    struct operation_row op = {.selector_json = NULL};
    char folder[] = "{\"to\":\"s3://b/f/\"}", none[] = "{}";
    assert_false(leader_archive_exports(&op));
    op.selector_json = none;
    assert_false(leader_archive_exports(&op));
    op.selector_json = folder;
    assert_true(leader_archive_exports(&op));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_archive_pace__what_lives_keeps_its_rows),
        cmocka_unit_test(test_archive_pace__as_many_rows_as_fit_into_a_step),
        cmocka_unit_test(test_archive_pace__twenty_times_it_tells),
        cmocka_unit_test(test_archive_pace__an_object_that_is_not_written_comes_again),
        cmocka_unit_test(test_archive_pace__exports_when_a_folder_is_named),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
