/* Aim: a cap leaves what is neither reserved nor spent, at any amount; thresholds are told once.
 * Method: rows by hand at the ends of int64. What reserves and settles is SQL: tests of the store,
 * the deep simulation. */
#include "core/money/budget.h"
#include "tests/unit/unit.h"

static void test_budget__left_is_never_below_nothing(void **state)
{
    (void)state;
    static const struct {
        struct budget b;
        musd_t left;
    } rows[] = {
        {{.cap_musd = -1}, INT64_MAX},
        {{.cap_musd = -1, .reserved_musd = INT64_MAX, .spent_musd = INT64_MAX}, INT64_MAX},
        {{.cap_musd = 0}, 0},
        {{.cap_musd = 10, .reserved_musd = 3, .spent_musd = 4}, 3},
        {{.cap_musd = 10, .reserved_musd = 6, .spent_musd = 4}, 0},
        {{.cap_musd = 5, .reserved_musd = 6, .spent_musd = 4}, 0}, /* lowered below use */
        {{.cap_musd = 0, .reserved_musd = INT64_MAX, .spent_musd = INT64_MAX}, 0},
        {{.cap_musd = INT64_MAX}, INT64_MAX},
        {{.cap_musd = INT64_MAX, .reserved_musd = INT64_MAX, .spent_musd = 1}, 0},
        {{.cap_musd = INT64_MIN, .reserved_musd = 1}, INT64_MAX}, /* below 0: no cap */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_true(budget_left(&rows[i].b) == rows[i].left);
    }
}

static void test_budget__thresholds_are_told_once(void **state)
{
    (void)state;
    static const int64_t at[] = {500000, 800000, 1000000};
    struct budget before = {.cap_musd = 100, .spent_musd = 49};
    struct budget after = before;
    after.spent_musd = 50;
    assert_int_equal(budget_warns(&before, &after, at, 3), 0);
    assert_int_equal(budget_warns(&after, &after, at, 3), -1);
    after.spent_musd = 79;
    assert_int_equal(budget_warns(&before, &after, at, 3), 0);
    after.spent_musd = 100;
    assert_int_equal(budget_warns(&before, &after, at, 3), 2); /* the highest one's is enough */
    after.spent_musd = 101;
    assert_int_equal(budget_warns(&before, &after, at, 2), 1);
    /* What is reserved is not spent: it comes back. */
    after = before;
    after.reserved_musd = 51;
    assert_int_equal(budget_warns(&before, &after, at, 3), -1);
    /* A cap lowered, and one set where there was none. */
    after.cap_musd = 60;
    assert_int_equal(budget_warns(&before, &after, at, 3), 1);
    before.cap_musd = -1;
    assert_int_equal(budget_warns(&before, &after, at, 3), 1);
    assert_int_equal(budget_warns(&after, &before, at, 3), -1);
    assert_int_equal(budget_warns(&before, &after, at, 0), -1);
    const struct budget top = {.cap_musd = INT64_MAX, .spent_musd = INT64_MAX};
    const struct budget below = {.cap_musd = INT64_MAX, .spent_musd = INT64_MAX - 1};
    assert_int_equal(budget_warns(&below, &top, at, 3), 2);
}

static void test_budget__at_limit_says_what_becomes_of_what_runs(void **state)
{
    (void)state;
    for (int a = AT_LIMIT_DRAIN; a <= AT_LIMIT_HOLD; a++) {
        assert_int_equal(budget_at_limit((enum at_limit)a, false, 0), BUDGET_GO_ON);
        assert_int_equal(budget_at_limit((enum at_limit)a, false, 9), BUDGET_GO_ON);
    }
    assert_int_equal(budget_at_limit(AT_LIMIT_DRAIN, true, 1), BUDGET_GO_ON);
    assert_int_equal(budget_at_limit(AT_LIMIT_DRAIN, true, 0), BUDGET_HOLD);
    assert_int_equal(budget_at_limit(AT_LIMIT_HOLD, true, 1), BUDGET_HOLD);
    assert_int_equal(budget_at_limit(AT_LIMIT_STOP, true, 1), BUDGET_STOP_AND_HOLD);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget__left_is_never_below_nothing),
        cmocka_unit_test(test_budget__thresholds_are_told_once),
        cmocka_unit_test(test_budget__at_limit_says_what_becomes_of_what_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
