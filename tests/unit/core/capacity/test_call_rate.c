/* Aim: nothing is slowed before AWS throttles; throttling lowers the rate, answers raise it, within
 * bounds, and an AWS with a limit of its own is asked little more than it allows. Method: numbers
 * for clocks, and services that allow a rate. */
#include "core/capacity/call_rate.h"
#include "tests/unit/unit.h"

#define SEC USEC_PER_SEC
#define NOW (1000 * SEC)
#define OWN 60 /* a minute */

static struct call_rate fresh(void)
{
    struct call_rate r;
    call_rate_init(&r, OWN);
    return r;
}

static struct call_rate lowered(int times)
{
    struct call_rate r = fresh();
    for (int i = 0; i < times; i++) {
        call_rate_throttled(&r, NOW, 0, NOW);
    }
    return r;
}

static void test_rate__nothing_is_held_before_a_throttle(void **state)
{
    (void)state;
    struct call_rate r = fresh();
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(call_rate_take(&r, 0, NOW), 0);
        call_rate_answered(&r, NOW);
    }
    assert_int_equal(call_rate_wait_us(&r, NOW), 0);
}

static void test_rate__a_throttle_halves_it(void **state)
{
    (void)state;
    struct call_rate r = lowered(1);
    assert_int_equal(call_rate_wait_us(&r, NOW), 2 * SEC);
    assert_int_equal(call_rate_take(&r, 0, NOW), 2 * SEC); /* too long: no place is taken */
    assert_int_equal(call_rate_take(&r, 5 * SEC, NOW), 2 * SEC);
    assert_int_equal(call_rate_take(&r, 5 * SEC, NOW), 4 * SEC);
    assert_int_equal(call_rate_take(&r, 5 * SEC, NOW), 6 * SEC);
    assert_int_equal(call_rate_take(&r, 0, NOW + 6 * SEC), 0);
    assert_int_equal(call_rate_take(&r, 0, NOW + 7 * SEC), 1 * SEC);
    call_rate_throttled(&r, NOW + 6 * SEC, 0, NOW + 7 * SEC);
    assert_int_equal(call_rate_wait_us(&r, NOW + 7 * SEC), 4 * SEC);
}

static void test_rate__what_is_faster_is_halved_from_there(void **state)
{
    (void)state;
    struct call_rate r = fresh();
    for (int64_t t = 0; t < 20 * SEC; t += SEC / 10) {
        assert_int_equal(call_rate_take(&r, 0, NOW + t), 0);
    }
    call_rate_throttled(&r, NOW + 20 * SEC, 0, NOW + 20 * SEC);
    assert_in_range(call_rate_wait_us(&r, NOW + 20 * SEC), SEC / 6, SEC / 4);
    r = fresh();
    for (int64_t t = 0; t < 5 * SEC; t += SEC / 10) {
        assert_int_equal(call_rate_take(&r, 0, NOW + t), 0);
    }
    assert_int_equal(call_rate_take(&r, 0, NOW + 60 * SEC), 0);
    call_rate_throttled(&r, NOW + 60 * SEC, 0, NOW + 60 * SEC); /* what was long ago is forgotten */
    assert_int_equal(call_rate_wait_us(&r, NOW + 60 * SEC), 2 * SEC);
}

static void test_rate__calls_under_way_together_are_one_sign(void **state)
{
    (void)state;
    struct call_rate r = fresh();
    for (int i = 0; i < 50; i++) {
        call_rate_throttled(&r, NOW - SEC + i, 0, NOW + i * SEC / 100);
    }
    assert_int_equal(r.gap_us, 2 * SEC);
    call_rate_answered(&r, NOW - SEC); /* nor do they raise it */
    assert_int_equal(r.gap_us, 2 * SEC);
}

static void test_rate__it_has_a_floor(void **state)
{
    (void)state;
    struct call_rate r = lowered(1000);
    assert_int_equal(r.gap_us, 8 * SEC);
    assert_int_equal(call_rate_take(&r, 8 * SEC, NOW), 8 * SEC);
}

static void test_rate__answers_raise_it(void **state)
{
    (void)state;
    struct call_rate r = lowered(1000);
    int64_t now_us = NOW;
    int n = 0;
    for (; r.gap_us > 0 && n < 1000; n++) {
        int64_t wait_us = call_rate_take(&r, USEC_NEVER / 2, now_us);
        assert_true(wait_us <= 8 * SEC);
        now_us += wait_us;
        call_rate_answered(&r, now_us);
    }
    assert_in_range(n, 20, 50);
    assert_in_range(now_us - NOW, 30 * SEC, 200 * SEC);
    assert_int_equal(call_rate_take(&r, 0, now_us), 0);
    assert_int_equal(call_rate_take(&r, 0, now_us), 0);
}

static void test_rate__aws_may_say_when(void **state)
{
    (void)state;
    struct call_rate r = fresh();
    call_rate_throttled(&r, NOW, 30 * SEC, NOW);
    assert_int_equal(call_rate_wait_us(&r, NOW), 30 * SEC);
    call_rate_throttled(&r, NOW, INT64_MAX, NOW);
    assert_int_equal(call_rate_wait_us(&r, NOW), 60 * SEC);
    r = fresh();
    call_rate_throttled(&r, NOW, -1, NOW);
    assert_int_equal(call_rate_wait_us(&r, NOW), 2 * SEC);
}

/* A caller that wants a hundred calls a second, for ten minutes, and services that allow less. At
 * least half of what they allow, up to the own rate, is had. */
static void test_rate__a_limit_is_found(void **state)
{
    (void)state;
    static const int64_t gaps_us[] = {SEC / 2, SEC, 3 * SEC, 6 * SEC};
    for (size_t k = 0; k < ARRAY_LEN(gaps_us); k++) {
        struct call_rate r = fresh();
        int64_t n = 0, throttled = 0, tokens_us = gaps_us[k];
        int64_t last_us = NOW, step_us = MIN(SEC / 100, gaps_us[k] / 3);
        for (int64_t t = NOW; t < NOW + 600 * SEC; t += step_us) {
            if (call_rate_take(&r, 0, t) > 0) {
                continue;
            }
            n++;
            tokens_us = MIN(tokens_us + t - last_us, 2 * gaps_us[k]);
            last_us = t;
            if (tokens_us < gaps_us[k]) {
                throttled++;
                call_rate_throttled(&r, t, 0, t);
            } else {
                tokens_us -= gaps_us[k];
                call_rate_answered(&r, t);
            }
        }
        int64_t allowed = MIN(600 * SEC / gaps_us[k], 600 * OWN / 60);
        assert_true(throttled * 8 <= n);
        assert_true((n - throttled) * 2 >= allowed);
    }
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate__nothing_is_held_before_a_throttle),
        cmocka_unit_test(test_rate__a_throttle_halves_it),
        cmocka_unit_test(test_rate__what_is_faster_is_halved_from_there),
        cmocka_unit_test(test_rate__calls_under_way_together_are_one_sign),
        cmocka_unit_test(test_rate__it_has_a_floor),
        cmocka_unit_test(test_rate__answers_raise_it),
        cmocka_unit_test(test_rate__aws_may_say_when),
        cmocka_unit_test(test_rate__a_limit_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
