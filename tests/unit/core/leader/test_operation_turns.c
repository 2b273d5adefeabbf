/* Aim: however many operations are open, a tick ends, each has its turn, those of one campaign keep
 * their order, one waits where it would meet another, and no part is passed over. Method: six of
 * three campaigns, with and without time; all pairs of verbs; pages that are read in turn. */
#include "core/leader/operation_turns.h"
#include "core/leader/operations.h"
#include "core/leader/parking.h"
#include "leader_world.h"

static const struct operation_row rows[] = {
    {.id = 3, .campaign_id = 7}, {.id = 4, .campaign_id = 2}, {.id = 6, .campaign_id = 7},
    {.id = 7, .campaign_id = 5}, {.id = 9, .campaign_id = 2}, {.id = 10, .campaign_id = 5}};
#define N ARRAY_LEN(rows)

static void test_operation_turns__each_campaign_has_its_turn(void **state)
{
    (void)state;
    static const struct {
        int64_t after;
        int64_t ids[N];
    } cases[] = {{0, {3, 6, 4, 9, 7, 10}}, {3, {4, 9, 7, 10, 3, 6}}, {4, {7, 10, 3, 6, 4, 9}},
                 {5, {7, 10, 3, 6, 4, 9}}, {7, {3, 6, 4, 9, 7, 10}}, {99, {3, 6, 4, 9, 7, 10}}};
    size_t order[N];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        operation_turns(rows, N, cases[i].after, order);
        for (size_t k = 0; k < N; k++) {
            assert_int_equal(rows[order[k]].id, cases[i].ids[k]);
        }
    }
    operation_turns(rows, 0, 3, order);
}

static void test_operation_turns__a_tick_ends_and_the_next_one_goes_on(void **state)
{
    (void)state;
    static const int64_t wants[] = {3, 3, 4, 4, 7, 0}; /* the last one is followed by none */
    size_t order[N];
    int64_t after = 77;
    operation_turns(rows, N, 0, order);
    for (size_t k = 0; k < N; k++) {
        bool over = operation_turns_over(rows, N, order, k, OPERATION_TURNS_US, &after);
        assert_int_equal(after, wants[k]);
        assert_int_equal(over, wants[k] != 0);
        assert_false(operation_turns_over(rows, N, order, k, OPERATION_TURNS_US - 1, &after));
        assert_int_equal(after, 0);
    }
}

static void test_operation_turns__an_operation_waits_for_the_one_before_it(void **state)
{
    (void)state;
    static const enum verb verbs[] = {VERB_RETRY, VERB_SKIP, VERB_HOLD, VERB_RELEASE};
    static const bool waits[4][4] = {{1, 1, 1, 0}, {1, 1, 0, 0}, {1, 0, 0, 1}, {0, 0, 1, 0}};
    for (int k = 0; k < 16; k++) {
        struct leader_world w;
        struct operation_row all[] = {
            {.id = 11, .campaign_id = 2}, {.id = 12, .campaign_id = 1}, {.campaign_id = 1}};
        for (int i = 0; i < 3; i++) {
            (void)snprintf(all[i].kind, sizeof all[i].kind, "%s",
                           verb_name(verbs[i < 2 ? k / 4 : k % 4]));
        }
        leader_world_init(&w);
        assert_false(operation_waits(&w.s, all, 1, BOOT));
        assert_int_equal(operation_waits(&w.s, all, 2, BOOT), waits[k / 4][k % 4]);
        assert_true(parking_failed(&w.s, &PARKING_OPERATION(1, 11), TX_REFUSED, BOOT));
        all[0].campaign_id = 1; /* set aside: the next one is waited for all the same */
        assert_int_equal(operation_waits(&w.s, all, 2, BOOT), waits[k / 4][k % 4]);
        assert_true(parking_failed(&w.s, &PARKING_OPERATION(1, 12), TX_REFUSED, BOOT));
        assert_false(operation_waits(&w.s, all, 2, BOOT));
        assert_int_equal(operation_waits(&w.s, all, 2, BOOT + 86400 * SEC), waits[k / 4][k % 4]);
        all[0].undo = all[1].undo = true;
        assert_false(operation_waits(&w.s, all, 2, BOOT + 86400 * SEC));
        leader_world_done(&w);
    }
}

/* Parts 5, 6, 7, ... in pages of two: what moved is found no more, what did not is read again. */
static void test_operation_turns__no_part_is_passed_over(void **state)
{
    (void)state;
    struct operation_cursor at = {0};
    const struct task_row first[] = {{.id = 5}, {.id = 6}};
    const struct task_row second[] = {{.id = 6}, {.id = 8}}; /* 6 was busy */
    assert_int_equal(operation_page_from(&at, 3, VERB_HOLD), 0);
    assert_false(operation_page_again(&at, first, 2));
    assert_int_equal(operation_page_from(&at, 3, VERB_HOLD), 4);
    assert_false(operation_page_again(&at, second, 2));
    assert_int_equal(operation_page_from(&at, 3, VERB_HOLD), 5);
    assert_true(operation_page_again(&at, NULL, 0)); /* one before it may wait by now */
    assert_int_equal(operation_page_from(&at, 3, VERB_HOLD), 0);
    assert_false(operation_page_again(&at, NULL, 0)); /* none is left */

    assert_false(operation_page_again(&at, second, 2));
    assert_int_equal(operation_page_from(&at, 4, VERB_HOLD), 0); /* another operation */
    assert_false(operation_page_again(&at, second, 2));
    assert_int_equal(operation_page_from(&at, 4, VERB_RETRY), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operation_turns__each_campaign_has_its_turn),
        cmocka_unit_test(test_operation_turns__a_tick_ends_and_the_next_one_goes_on),
        cmocka_unit_test(test_operation_turns__an_operation_waits_for_the_one_before_it),
        cmocka_unit_test(test_operation_turns__no_part_is_passed_over),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("operation turns", tests, NULL, NULL);
}
