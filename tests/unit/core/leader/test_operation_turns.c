/* Aim: however many operations are open, a tick ends, each has its turn, and those of one campaign
 * keep their order. Method: six of three campaigns, with and without time. */
#include "core/leader/operation_turns.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operation_turns__each_campaign_has_its_turn),
        cmocka_unit_test(test_operation_turns__a_tick_ends_and_the_next_one_goes_on),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("operation turns", tests, NULL, NULL);
}
