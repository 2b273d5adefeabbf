/* Aim: what a create of unknown outcome may still make is waited for as long as AWS honours its
 * signature, and no longer, however often the leader changes; so is what was just made.
 * Method: a table of times in windows. */
#include "core/leader/late_create.h"
#include "leader_world.h"

#define W 900

static void test_late_create__waits_for_the_signature_and_no_longer(void **state)
{
    (void)state;
    static const struct {
        int64_t signed_at, last, now, boot;
        bool possible, made;
    } rows[] = {
        {0, 100, 100, 100, false, false},         /* answered */
        {50, 100, 100, 50, true, false},          /* just signed */
        {50, 100, 100 + W, 49 + W, true, false},  /* to the last moment */
        {50, 100, 100 + W, 50 + W, false, false}, /* and no longer */
        {50, 100, 99 + 2 * W, 60, true, false},   /* a new leader counts from its start */
        {50, 100, 100 + 2 * W, 60, false, false}, /* but not for ever */
        {50, 100, 100 - W, 50 + W, false, false}, /* a wall clock set back does not put it off */
        {0, 100, 99 + LATE_READABLE_US, 50, true, true}, /* just made */
        {0, 100, 100 + LATE_READABLE_US, 50, false, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct late_create l = {rows[i].signed_at, rows[i].last, W, rows[i].made};
        assert_int_equal(late_create_possible(&l, rows[i].now, rows[i].boot), rows[i].possible);
    }
}

static void test_late_create__is_looked_for_at_a_bearable_rate(void **state)
{
    (void)state;
    static const struct {
        int64_t ends, boot, look; /* seconds */
    } rows[] = {{900, 0, 10}, {5, 0, 5}, {5, 5, 6}, {0, 100, 101}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(late_create_look_us(rows[i].ends * SEC, rows[i].boot * SEC),
                         rows[i].look * SEC);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late_create__waits_for_the_signature_and_no_longer),
        cmocka_unit_test(test_late_create__is_looked_for_at_a_bearable_rate),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
