/* Aim: random numbers, back-off and token buckets do what their formulas say: same seed, same
 * numbers. Method: published outputs of xoshiro256++, exact counts under a clock of our own, bounds
 * over many draws. */
#include "common/retry.h"
#include "common/token_bucket.h"
#include "tests/unit/unit.h"
#include <math.h>

#define S USEC_PER_SEC

static void test_rng__is_xoshiro256plusplus(void **state)
{
    (void)state;
    /* First outputs for the state 1, 2, 3, 4, as other implementations test themselves. */
    struct rng r = {{1, 2, 3, 4}};
    assert_true(rng_u64(&r) == UINT64_C(41943041));
    assert_true(rng_u64(&r) == UINT64_C(58720359));
    assert_true(rng_u64(&r) == UINT64_C(3588806011781223));
    assert_true(rng_u64(&r) == UINT64_C(3591011842654386));
    /* splitmix64's first outputs for the seed 0. */
    rng_seed(&r, 0);
    assert_true(r.s[0] == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(r.s[1] == UINT64_C(0x6e789e6aa1b965f4));
}

static void test_rng__streams_are_independent_and_repeat(void **state)
{
    (void)state;
    struct rng root, a, a2, b, other_root, c;
    rng_seed(&root, 5);
    rng_seed(&other_root, 6);
    struct rng before = root;
    rng_split(&root, "arrivals", &a);
    rng_split(&root, "arrivals", &a2);
    rng_split(&root, "faults", &b);
    rng_split(&other_root, "arrivals", &c);
    assert_memory_equal(&before, &root, sizeof root);
    assert_memory_equal(&a, &a2, sizeof a);
    uint64_t x = rng_u64(&a);
    assert_true(x != rng_u64(&b));
    assert_true(x != rng_u64(&c));
}

static void test_rng__below_is_even(void **state)
{
    (void)state;
    struct rng r;
    int count[7] = {0};
    rng_seed(&r, 1);
    for (int i = 0; i < 70000; i++) {
        uint64_t v = rng_below(&r, 7);
        assert_true(v < 7);
        count[v]++;
    }
    for (size_t i = 0; i < 7; i++) {
        assert_in_range(count[i], 9600, 10400);
    }
    for (int i = 0; i < 100; i++) {
        assert_int_equal(rng_below(&r, 1), 0);
        (void)rng_below(&r, UINT64_MAX);
    }
    /* With n three quarters of 2^64, plain modulo would give the lowest third twice as often. */
    int low = 0;
    uint64_t n = UINT64_C(3) << 62;
    for (int i = 0; i < 10000; i++) {
        low += rng_below(&r, n) < n / 3 ? 1 : 0;
    }
    assert_in_range(low, 3100, 3560);
}

static void test_rng__unit_chance_and_normal(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 2);
    double sum = 0;
    double squares = 0;
    int hits = 0;
    for (int i = 0; i < 100000; i++) {
        double u = rng_unit(&r);
        assert_true(u >= 0 && u < 1);
        double z = rng_normal(&r);
        assert_true(isfinite(z));
        sum += z;
        squares += z * z;
        hits += rng_chance(&r, 0.25) ? 1 : 0;
        assert_false(rng_chance(&r, 0));
        assert_true(rng_chance(&r, 1));
    }
    assert_true(fabs(sum / 100000) < 0.02);
    assert_true(fabs(squares / 100000 - 1) < 0.03);
    assert_in_range(hits, 24500, 25500);
}

static void test_rng__secrets_differ(void **state)
{
    (void)state;
    uint8_t a[600] = {0};
    uint8_t b[600] = {0};
    rng_secret(a, sizeof a);
    rng_secret(b, sizeof b);
    rng_secret(NULL, 0);
    assert_memory_not_equal(a, b, sizeof a);
    assert_memory_not_equal(a + 300, b + 300, 300);
}

static void test_retry__grows_to_the_cap_and_keeps_the_floor(void **state)
{
    (void)state;
    struct retry_policy p = {.base_us = S, .cap_us = 60 * S, .floor_us = S / 10};
    struct rng r;
    rng_seed(&r, 3);
    for (int failures = 0; failures < 100; failures++) {
        int64_t most = failures < 6 ? S << failures : 60 * S;
        int64_t seen = 0;
        for (int i = 0; i < 2000; i++) {
            int64_t d = retry_delay_us(&p, failures, &r);
            assert_true(d >= S / 10 && d <= most);
            seen = MAX(seen, d);
        }
        assert_true(seen > most / 10 * 9); /* full jitter uses the whole range */
    }
}

static void test_retry__extremes(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 4);
    struct retry_policy none = {0};
    assert_int_equal(retry_delay_us(&none, 0, &r), 0);
    assert_int_equal(retry_delay_us(&none, INT32_MAX, &r), 0);
    struct retry_policy huge = {.base_us = INT64_MAX / 2 + 1, .cap_us = INT64_MAX};
    for (int i = 0; i < 100; i++) {
        assert_true(retry_delay_us(&huge, i, &r) >= 0);
    }
    struct retry_policy floor_wins = {.base_us = 1, .cap_us = 1, .floor_us = 7 * S};
    assert_int_equal(retry_delay_us(&floor_wins, 9, &r), 7 * S);
}

static void test_bucket__starts_full_and_refills_at_its_rate(void **state)
{
    (void)state;
    struct token_bucket b;
    int64_t now = 1000 * S;
    token_bucket_init(&b, 2, 3, now);
    assert_int_equal(token_bucket_available(&b, now), 3);
    assert_true(token_bucket_take(&b, now));
    assert_true(token_bucket_take(&b, now));
    assert_true(token_bucket_take(&b, now));
    assert_false(token_bucket_take(&b, now));
    assert_int_equal(token_bucket_wait_us(&b, now), S / 2);
    assert_false(token_bucket_take(&b, now + S / 2 - 1));
    assert_true(token_bucket_take(&b, now + S / 2));
    assert_int_equal(token_bucket_available(&b, now + 100 * S), 3); /* never over the burst */
}

/* However often it is asked, it gives rate x time tokens, no more and no less. */
static void count_tokens(double rate, int64_t step_us, int64_t span_us, int64_t want)
{
    struct token_bucket b;
    int64_t got = 0;
    token_bucket_init(&b, rate, 2, 0); /* with room for what arrives between two looks */
    for (int64_t t = 0; t <= span_us; t += step_us) {
        while (token_bucket_take(&b, t)) {
            got++;
        }
    }
    assert_in_range(got, want + 2, want + 3); /* two from the start */
}

static void test_bucket__odd_rates_are_exact(void **state)
{
    (void)state;
    count_tokens(1, 7, 10 * S, 9);
    count_tokens(1.0 / 3600, 1000000, 7200 * S, 1);
    count_tokens(0.3, 12345, 100 * S, 29);
    count_tokens(333.333333, 100, 30 * S, 9999);
    count_tokens(100000, 1, S / 2, 49999);
    /* One micro-token a second: the 0.9 s beyond the first token count towards the second. */
    struct token_bucket b;
    token_bucket_init(&b, 0.000001, 2, 0);
    assert_true(token_bucket_take(&b, 0));
    assert_true(token_bucket_take(&b, 0));
    assert_true(token_bucket_take(&b, INT64_C(1000000) * S + 900000));
    assert_false(token_bucket_take(&b, INT64_C(2000000) * S - 1));
    assert_true(token_bucket_take(&b, INT64_C(2000000) * S));
}

static void test_bucket__waits_exactly_until_the_token(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 9);
    for (int i = 0; i < 2000; i++) {
        struct token_bucket b;
        token_bucket_init(&b, rng_unit(&r) * 100 + 0.001, 1 + rng_unit(&r) * 3, 0);
        int64_t now = 0;
        for (int j = 0; j < 20; j++) {
            now += (int64_t)rng_below(&r, 100000);
            while (token_bucket_take(&b, now)) {
            }
            int64_t wait = token_bucket_wait_us(&b, now);
            assert_true(wait > 0);
            assert_int_equal(token_bucket_available(&b, now + wait - 1), 0);
            assert_int_equal(token_bucket_available(&b, now + wait), 1);
            now += wait;
            assert_true(token_bucket_take(&b, now));
        }
    }
}

static void test_bucket__nought_backwards_and_small_bursts(void **state)
{
    (void)state;
    struct token_bucket b;
    token_bucket_init(&b, 0, 1, 0);
    assert_true(token_bucket_take(&b, 0));
    assert_false(token_bucket_take(&b, INT64_MAX));
    assert_int_equal(token_bucket_wait_us(&b, 5), INT64_MAX);
    token_bucket_init(&b, 1, 0.25, 0); /* a burst under one token counts as one */
    assert_true(token_bucket_take(&b, 0));
    assert_true(token_bucket_take(&b, S));
    token_bucket_init(&b, 1, 1, 100 * S);
    assert_true(token_bucket_take(&b, 100 * S));
    assert_false(token_bucket_take(&b, 50 * S)); /* the clock went back: no tokens, no crash */
    assert_true(token_bucket_take(&b, 101 * S));
    token_bucket_init(&b, 1e18, 1e18, 0); /* bounded inside */
    assert_true(token_bucket_take(&b, INT64_MAX));
}

static void test_bucket__a_new_rate_counts_from_now(void **state)
{
    (void)state;
    struct token_bucket b;
    token_bucket_init(&b, 1, 1, 0);
    assert_true(token_bucket_take(&b, 0));
    token_bucket_set_rate(&b, 0.5, S / 2); /* half a token is there already */
    assert_int_equal(token_bucket_wait_us(&b, S / 2), S);
    token_bucket_set_rate(&b, 0, S);
    assert_int_equal(token_bucket_wait_us(&b, S), INT64_MAX);
    token_bucket_set_rate(&b, 1, 10 * S);
    assert_false(token_bucket_take(&b, 10 * S));
    assert_true(token_bucket_take(&b, 11 * S));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rng__is_xoshiro256plusplus),
        cmocka_unit_test(test_rng__streams_are_independent_and_repeat),
        cmocka_unit_test(test_rng__below_is_even),
        cmocka_unit_test(test_rng__unit_chance_and_normal),
        cmocka_unit_test(test_rng__secrets_differ),
        cmocka_unit_test(test_retry__grows_to_the_cap_and_keeps_the_floor),
        cmocka_unit_test(test_retry__extremes),
        cmocka_unit_test(test_bucket__starts_full_and_refills_at_its_rate),
        cmocka_unit_test(test_bucket__odd_rates_are_exact),
        cmocka_unit_test(test_bucket__waits_exactly_until_the_token),
        cmocka_unit_test(test_bucket__nought_backwards_and_small_bursts),
        cmocka_unit_test(test_bucket__a_new_rate_counts_from_now),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
