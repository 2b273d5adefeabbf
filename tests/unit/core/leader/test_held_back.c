/* Aim: nothing new is made for a campaign that does not run, and people read why. Method: each wish
 * and state. */
#include "core/leader/held_back.h"
#include "tests/unit/core/leader/leader_world.h"

static void test_held_back__unless_its_campaign_runs(void **state UNUSED)
{
    struct live_campaign lc = {.row = {.id = 7}};
    for (int wanted = WANTED_RUN; wanted <= WANTED_CANCEL; wanted++) {
        for (int s = 0; s < CAMPAIGN_STATE_COUNT; s++) {
            lc.row.wanted = (enum wanted)wanted;
            lc.row.state = (enum campaign_state)s;
            assert_int_equal(held_back(&lc), wanted != WANTED_RUN || s != CAMPAIGN_RUNNING);
        }
    }
    assert_true(held_back(NULL));
}

static void test_held_back__says_so_once_and_takes_it_back(void **state UNUSED)
{
    struct live_campaign lc = {.row = {.id = 7, .state = CAMPAIGN_RUNNING}};
    char reason[512] = "ServiceLimitExceeded";
    assert_false(held_back_say(&lc, reason));
    assert_false(held_back_say(NULL, reason)); /* the campaign is parked, and that is told there */
    assert_string_equal(reason, "ServiceLimitExceeded");
    lc.row.wanted = WANTED_DRAIN;
    assert_true(held_back_say(&lc, reason));
    assert_string_equal(reason, "not made while its campaign does not run: drover resume c-7");
    assert_false(held_back_say(&lc, reason));
    lc.row.wanted = WANTED_RUN;
    assert_true(held_back_say(&lc, reason));
    assert_string_equal(reason, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held_back__unless_its_campaign_runs),
        cmocka_unit_test(test_held_back__says_so_once_and_takes_it_back),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("held back", tests, NULL, NULL);
}
