/* Aim: the properties of every wait reason, written down a second time as the rules that the
 * scheduler had before they were columns. Method: all reasons against each rule. */
#include "core/sched/wait_reason.h"
#include "tests/unit/unit.h"

static bool in(enum wait_reason r, const enum wait_reason *set, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (set[i] == r) {
            return true;
        }
    }
    return false;
}
#define IN(r, ...)                                                                                 \
    in((r), (const enum wait_reason[]){__VA_ARGS__},                                               \
       sizeof(enum wait_reason[]){__VA_ARGS__} / sizeof(enum wait_reason))

static void test_wait_reason__whom_it_holds(void **state)
{
    (void)state;
    for (int i = 0; i < WAIT_REASON_COUNT; i++) {
        enum wait_reason r = (enum wait_reason)i;
        bool stage = IN(r, WAIT_CONCURRENCY, WAIT_STAGE_LIMIT, WAIT_PROJECT_LIMIT,
                        WAIT_GLOBAL_LIMIT, WAIT_RATE, WAIT_CANARY, WAIT_BREAKER);
        assert_int_equal(wait_reason_row(r)->holds, stage ? WAIT_HOLDS_STAGE : WAIT_HOLDS_KIND);
    }
}

static void test_wait_reason__what_a_gang_does(void **state)
{
    (void)state;
    for (int i = 0; i < WAIT_REASON_COUNT; i++) {
        enum wait_reason r = (enum wait_reason)i;
        bool gathers = IN(r, WAIT_SLOTS, WAIT_RESERVED, WAIT_TYPE_LIMIT);
        bool keeps = IN(r, WAIT_RATE, WAIT_HAND_OVER);
        assert_int_equal(wait_reason_row(r)->turn,
                         IN(r, WAIT_SLOTS, WAIT_RESERVED, WAIT_RATE, WAIT_ORDER, WAIT_HAND_OVER));
        assert_int_equal(wait_reason_row(r)->gang, gathers ? WAIT_GANG_GATHERS
                                                   : keeps ? WAIT_GANG_KEEPS
                                                           : WAIT_GANG_ALONE);
    }
}

static void test_wait_reason__what_a_warm_pool_waits_for(void **state)
{
    (void)state;
    for (int i = 0; i < WAIT_REASON_COUNT; i++) {
        enum wait_reason r = (enum wait_reason)i;
        bool soon = IN(r, WAIT_RATE, WAIT_ORDER, WAIT_HAND_OVER, WAIT_CANARY, WAIT_CONCURRENCY,
                       WAIT_TYPE_LIMIT, WAIT_STAGE_LIMIT, WAIT_PROJECT_LIMIT, WAIT_GLOBAL_LIMIT,
                       WAIT_BACKOFF, WAIT_QUOTA_UNREADABLE);
        assert_int_equal(wait_reason_row(r)->ends, r == WAIT_SLOTS ? WAIT_ENDS_DRAINED
                                                   : soon          ? WAIT_ENDS_SOON
                                                                   : WAIT_ENDS_LATER);
    }
}

static void test_wait_reason__what_binds_a_forecast(void **state)
{
    (void)state;
    for (int i = 0; i < WAIT_REASON_COUNT; i++) {
        enum wait_reason r = (enum wait_reason)i;
        bool limits = IN(r, WAIT_CONCURRENCY, WAIT_STAGE_LIMIT, WAIT_PROJECT_LIMIT,
                         WAIT_GLOBAL_LIMIT, WAIT_TYPE_LIMIT);
        bool slots = IN(r, WAIT_SLOTS, WAIT_ORDER, WAIT_RESERVED, WAIT_GANG, WAIT_QUOTA_TOO_SMALL,
                        WAIT_QUOTA_UNREADABLE);
        bool money = IN(r, WAIT_BUDGET, WAIT_STAGE_BUDGET, WAIT_PART_BUDGET);
        assert_int_equal(wait_reason_row(r)->binds, limits           ? WAIT_BINDS_CONCURRENCY
                                                    : slots          ? WAIT_BINDS_SLOTS
                                                    : r == WAIT_RATE ? WAIT_BINDS_RATE
                                                    : money          ? WAIT_BINDS_MONEY
                                                                     : WAIT_BINDS_NONE);
    }
}

static void test_wait_reason__what_people_are_told(void **state)
{
    (void)state;
    for (int i = 0; i < WAIT_REASON_COUNT; i++) {
        enum wait_reason r = (enum wait_reason)i;
        bool passes = IN(r, WAIT_NONE, WAIT_NEW, WAIT_BACKOFF, WAIT_ORDER, WAIT_RATE,
                         WAIT_STAGE_BLOCKED, WAIT_PAUSED, WAIT_HELD);
        bool blocks = IN(r, WAIT_QUOTA_UNREADABLE, WAIT_QUOTA_TOO_SMALL, WAIT_PRICE_UNKNOWN);
        bool quota = IN(r, WAIT_SLOTS, WAIT_QUOTA_TOO_SMALL, WAIT_GANG);
        bool cap = IN(r, WAIT_STAGE_BUDGET, WAIT_PART_BUDGET);
        assert_int_equal(wait_reason_row(r)->told, passes   ? WAIT_TOLD_PASSES
                                                   : blocks ? WAIT_TOLD_BLOCKS
                                                            : WAIT_TOLD_WAITS);
        assert_int_equal(wait_reason_row(r)->figures, quota ? WAIT_FIGURES_QUOTA
                                                      : cap ? WAIT_FIGURES_OWN_CAP
                                                            : WAIT_FIGURES_NONE);
        assert_int_equal(wait_reason_row(r)->woken, !IN(r, WAIT_BACKOFF, WAIT_FILESYSTEM));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait_reason__whom_it_holds),
        cmocka_unit_test(test_wait_reason__what_a_gang_does),
        cmocka_unit_test(test_wait_reason__what_a_warm_pool_waits_for),
        cmocka_unit_test(test_wait_reason__what_binds_a_forecast),
        cmocka_unit_test(test_wait_reason__what_people_are_told),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
