/* Aim: retries stay within a tenth of first tries, the burst and the trickle, whatever fails for
 * however long, and yet an outage's end is found. Method: counts by hand, then an hour in which
 * every call is throttled, over 200 seeds, beside the bound counted apart. */
#include "core/failure/retry_budget.h"
#include "tests/unit/unit.h"

#define SEC USEC_PER_SEC

static void test_retry_budget__ten_first_tries_earn_one_retry(void **state)
{
    (void)state;
    struct retry_budget b;
    retry_budget_init(&b, 3, 0, 0);
    for (int i = 0; i < 3; i++) {
        assert_true(retry_budget_take(&b, 0));
    }
    assert_false(retry_budget_take(&b, INT64_MAX)); /* no trickle: time alone gives nothing */
    assert_true(retry_budget_wait_us(&b, 5) == INT64_MAX);
    for (int i = 0; i < 9; i++) {
        retry_budget_first(&b);
        assert_false(retry_budget_take(&b, 0));
    }
    retry_budget_first(&b);
    assert_int_equal(retry_budget_wait_us(&b, 0), 0);
    assert_true(retry_budget_take(&b, 0));
    assert_false(retry_budget_take(&b, 0));
    for (int i = 0; i < 100000; i++) {
        retry_budget_first(&b);
    }
    for (int i = 0; i < 3; i++) { /* no more is saved than the burst */
        assert_true(retry_budget_take(&b, 0));
    }
    assert_false(retry_budget_take(&b, 0));
}

static void test_retry_budget__the_trickle_gives_one_in_its_time(void **state)
{
    (void)state;
    struct retry_budget b;
    retry_budget_init(&b, 1, 60 * SEC, 1000 * SEC);
    assert_true(retry_budget_take(&b, 1000 * SEC));
    assert_int_equal(retry_budget_wait_us(&b, 1000 * SEC), 60 * SEC);
    assert_int_equal(retry_budget_wait_us(&b, 1059 * SEC), SEC);
    for (int i = 1000; i < 1060; i++) { /* asking often loses nothing */
        assert_false(retry_budget_take(&b, i * SEC));
    }
    assert_int_equal(retry_budget_wait_us(&b, 1060 * SEC), 0);
    assert_true(retry_budget_take(&b, 1060 * SEC));
    assert_false(retry_budget_take(&b, 1119 * SEC));
    assert_false(retry_budget_take(&b, 0)); /* a clock that went back gives nothing */
    for (int i = 0; i < 10; i++) {
        retry_budget_first(&b);
    }
    assert_true(retry_budget_take(&b, 0)); /* and takes nothing */
    assert_true(retry_budget_take(&b, 1120 * SEC));
    assert_true(retry_budget_take(&b, INT64_MAX)); /* a day asleep: the burst, no more */
    assert_false(retry_budget_take(&b, INT64_MAX));
}

/* Calls that come at random, each retried till it passes; everything is throttled for an hour. */
static void hour_of_throttle(uint64_t seed)
{
    const struct retry_policy p = {.base_us = SEC, .cap_us = 60 * SEC, .floor_us = 0};
    struct rng rng;
    rng_seed(&rng, seed);
    struct retry_budget b;
    retry_budget_init(&b, RETRY_BUDGET_BURST, RETRY_BUDGET_TRICKLE_US, 0);
    double rate = rng_unit(&rng) * 2; /* first tries a second */
    struct call {
        int64_t next_us;
        int failures;
    } call[64] = {{0}};
    int n = 0;
    int64_t first = 0;
    int64_t retries = 0;
    int64_t passed_us = 0;
    for (int64_t now = 0; now < 7200 * SEC; now += SEC) {
        bool outage = now < 3600 * SEC;
        /* New work stops coming when too much hangs, as free slots run out. */
        if (n < (int)ARRAY_LEN(call) && rng_chance(&rng, rate / 2)) {
            first++;
            retry_budget_first(&b);
            if (outage) {
                call[n++] = (struct call){now + retry_delay_us(&p, 0, &rng), 1};
            }
        }
        for (int i = 0; i < n; i++) {
            if (call[i].next_us > now || !retry_budget_take(&b, now)) {
                continue;
            }
            retries++;
            if (outage) {
                call[i].next_us = now + retry_delay_us(&p, call[i].failures++, &rng);
            } else {
                passed_us = passed_us == 0 ? now : passed_us;
                call[i--] = call[--n];
            }
        }
        assert_true(retries * 100 <= first * RETRY_BUDGET_SHARE + RETRY_BUDGET_BURST * 100 +
                                         now / RETRY_BUDGET_TRICKLE_US * 100);
    }
    if (first > 0 && n > 0) {
        assert_true(passed_us > 0);
    }
    /* The end was found within two trickles and the longest back-off. */
    assert_true(passed_us <= 3600 * SEC + 180 * SEC);
}

static void test_retry_budget__an_hour_of_throttle_stays_within_the_bound(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        hour_of_throttle(seed);
    }
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_retry_budget__ten_first_tries_earn_one_retry),
        cmocka_unit_test(test_retry_budget__the_trickle_gives_one_in_its_time),
        cmocka_unit_test(test_retry_budget__an_hour_of_throttle_stays_within_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
