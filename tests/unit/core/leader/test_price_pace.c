/* Aim: list prices are read when the stored ones are too old, and a reading that fails comes again
 * ever less often, yet never more rarely than a good one. Method: tables of ages and failures. */
#include "core/leader/price_pace.h"
#include "leader_world.h"

#define HOUR (3600 * SEC)

static void test_price_pace__a_new_leader_reads_what_is_too_old(void **state)
{
    (void)state;
    assert_int_equal(price_pace_first_us(24 * HOUR, -1), 0); /* there is none */
    assert_int_equal(price_pace_first_us(24 * HOUR, 0), 24 * HOUR);
    assert_int_equal(price_pace_first_us(24 * HOUR, 23 * HOUR), HOUR);
    assert_int_equal(price_pace_first_us(24 * HOUR, 30 * HOUR), 0);
}

static void test_price_pace__failures_wait_ever_longer(void **state)
{
    (void)state;
    static const int64_t pauses_s[] = {5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600};
    int failures = 0;
    for (size_t i = 0; i < ARRAY_LEN(pauses_s); i++) {
        assert_int_equal(price_pace_failed_us(24 * HOUR, &failures), pauses_s[i] * SEC);
    }
    assert_int_equal(price_pace_failed_us(60 * SEC, &failures), 60 * SEC);
    failures = 0; /* a good one came */
    assert_int_equal(price_pace_failed_us(24 * HOUR, &failures), 5 * SEC);
    assert_int_equal(price_pace_unwritten_us(), 5 * SEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_price_pace__a_new_leader_reads_what_is_too_old),
        cmocka_unit_test(test_price_pace__failures_wait_ever_longer),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
