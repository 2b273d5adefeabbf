/* Aim: chances of many ends together are right, a promise holds as often as it says, and backfill
 * stops where it would break one. Method: every subset of a few jobs is counted by hand, draws with
 * a fixed seed beside the counted chance, tables at the boundaries. */
#include "common/cleanup.h"
#include "core/capacity/reservation.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define T0  INT64_C(1700000000000000)
#define SEC USEC_PER_SEC

static void assert_near(double got, double want, double by)
{
    if (fabs(got - want) > by) {
        fail_msg("%.6f, not %.6f +- %g", got, want, by);
    }
}

static void test_gang__chances_are_those_of_every_subset(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 5);
    for (int round = 0; round < 200; round++) {
        int n = (int)rng_below(&rng, 10);
        int instances[10];
        double back[10];
        int64_t spare = (int64_t)rng_below(&rng, 14) - 2;
        struct reservation_odds o;
        reservation_odds_init(&o, spare);
        for (int i = 0; i < n; i++) {
            instances[i] = 1 + (int)rng_below(&rng, 4);
            back[i] = rng_chance(&rng, 0.2) ? 1 : rng_unit(&rng);
            reservation_odds_add(&o, instances[i], back[i]);
        }
        double want = 0;
        for (unsigned set = 0; set < 1U << n; set++) { /* bit: late */
            double p = 1;
            int64_t late = 0;
            for (int i = 0; i < n; i++) {
                bool is_late = (set >> i & 1) != 0;
                p *= is_late ? 1 - back[i] : back[i];
                late += is_late ? instances[i] : 0;
            }
            want += late <= spare ? p : 0;
        }
        assert_near(reservation_odds_met(&o), want, 1e-12);
    }
}

/* Beyond RESERVATION_EXACT chances are taken as normal: near what an exact count gives. */
static void test_gang__many_spare_are_near_the_exact_count(void **state)
{
    (void)state;
    for (int64_t spare = RESERVATION_EXACT - 4; spare <= RESERVATION_EXACT + 60; spare += 4) {
        struct reservation_odds o;
        reservation_odds_init(&o, spare);
        double exact[400] = {1};
        for (int i = 0; i < 300; i++) {
            double back = 0.6 + 0.001 * i;
            reservation_odds_add(&o, 1, back);
            for (int k = 399; k >= 0; k--) {
                exact[k] = exact[k] * back + (k > 0 ? exact[k - 1] * (1 - back) : 0);
            }
        }
        double want = 0;
        for (int64_t k = 0; k <= spare; k++) {
            want += exact[k];
        }
        assert_near(reservation_odds_met(&o), want, 0.01);
    }
    struct reservation_odds o;
    reservation_odds_init(&o, 100);
    reservation_odds_add(&o, 100, 0); /* certain, and exactly as many as may be */
    assert_near(reservation_odds_met(&o), 1, 0);
    reservation_odds_add(&o, 1, 0);
    assert_near(reservation_odds_met(&o), 0, 0);
}

static void test_gang__an_end_lies_where_its_quantiles_say(void **state)
{
    (void)state;
    struct reservation_end e;
    reservation_end_spread(3, T0 + 100 * SEC, T0 + 130 * SEC, &e);
    assert_int_equal(e.instances, 3);
    assert_near(reservation_end_by(&e, T0), 0, 0);
    assert_near(reservation_end_by(&e, T0 + 100 * SEC), 0.5, 1e-9);
    assert_near(reservation_end_by(&e, T0 + 130 * SEC), 0.9, 1e-9);
    assert_near(reservation_end_by(&e, T0 + 115 * SEC), 0.75, 0.02);
    assert_near(reservation_end_by(&e, T0 + 400 * SEC), 1, 0);
    assert_int_equal(reservation_end_p90(&e), T0 + 130 * SEC);
    reservation_end_spread(1, T0, T0 - 5, &e); /* nonsense: no spread */
    assert_near(reservation_end_by(&e, T0), 1, 0);
    assert_near(reservation_end_by(&e, T0 - 1), 0, 0);
    reservation_end_spread(1, T0, USEC_NEVER, &e);
    assert_near(reservation_end_by(&e, INT64_MAX - 1), 0, 0);
    reservation_end_at(1, T0 + 7, &e);
    assert_near(reservation_end_by(&e, T0 + 6), 0, 0);
    assert_near(reservation_end_by(&e, T0 + 7), 1, 0);
    for (int i = 0; i < RESERVATION_KNOTS; i++) { /* seen up to its 97th percentile, then never */
        e.at_us[i] = i < 6 ? T0 + i : USEC_NEVER;
    }
    assert_near(reservation_end_by(&e, T0 + 1000), 0.97, 0);
}

static void learn(struct duration *d, double spread)
{
    duration_init(d, 0);
    struct rng rng;
    rng_seed(&rng, 9);
    for (int i = 0; i < 400; i++) {
        uint32_t mb = 200 + (uint32_t)rng_below(&rng, 1800);
        double s = mb * (1 + spread * (2 * rng_unit(&rng) - 1));
        duration_learn(d, mb, (int64_t)(s * 1e6));
    }
    duration_fit(d);
}

static void test_gang__an_end_follows_the_model_and_what_has_run(void **state)
{
    (void)state;
    AUTO_FREE struct duration *d = xcalloc(1, sizeof *d);
    learn(d, 0.2);
    struct reservation_end e;
    usec_t far = T0 + 100000 * SEC;
    reservation_end_model(d, 1000, 2, T0, far, T0, &e);
    assert_near((double)(reservation_end_p90(&e) - T0) / 1e6, 1170, 15);
    assert_near(reservation_end_by(&e, T0 + 1000 * SEC), 0.5, 0.05);
    assert_near(reservation_end_by(&e, T0 + 1300 * SEC), 1, 0.002);
    reservation_end_model(d, 1000, 2, T0 + 180 * SEC, far, T0, &e); /* will begin in 3 min */
    assert_near((double)(reservation_end_p90(&e) - T0) / 1e6, 1380, 15);
    reservation_end_model(d, 1000, 2, T0 - 1150 * SEC, far, T0, &e); /* nearly done */
    assert_in_range(reservation_end_p90(&e) - T0, 1, 60 * SEC);
    reservation_end_model(d, 1000, 2, T0 - 5000 * SEC, far, T0, &e); /* hangs, perhaps */
    assert_in_range(reservation_end_p90(&e) - T0, 100 * SEC, 2000 * SEC);
    reservation_end_model(d, 1000, 2, T0, T0 + 1100 * SEC, T0, &e); /* its run time is limited */
    assert_int_equal(reservation_end_p90(&e), T0 + 1100 * SEC);
    assert_near(reservation_end_by(&e, T0 + 1000 * SEC), 0.5, 0.05);
    reservation_end_model(d, 1000, 2, T0 - 9000 * SEC, T0 - 10 * SEC, T0, &e); /* beyond it */
    assert_near(reservation_end_by(&e, T0), 1, 0);
    struct duration none;
    duration_init(&none, 0);
    reservation_end_model(&none, 1000, 2, T0, T0 + 50 * SEC, T0, &e);
    assert_near(reservation_end_by(&e, T0 + 50 * SEC - 1), 0, 0);
    assert_near(reservation_end_by(&e, T0 + 50 * SEC), 1, 0);
    /* a size far from those the line was fitted to: its end is less sure than their spread */
    duration_init(d, 0);
    for (uint32_t i = 0; i < 40; i++) {
        duration_learn(d, 2000 + 10 * i, (2000 + 10 * i) * (90 + i % 21) * (USEC_PER_SEC / 100));
    }
    duration_fit(d);
    reservation_end_model(d, 300, 1, T0, far, T0, &e);
    int64_t spread_us = duration_quantile_us(d, 300, 90) - duration_quantile_us(d, 300, 50);
    assert_true(reservation_end_p90(&e) - e.at_us[2] > 3 * spread_us);
    reservation_end_model(NULL, 1000, 2, T0, USEC_NEVER, T0, &e);
    assert_near(reservation_end_by(&e, INT64_MAX - 1), 0, 0);
}

/* Draws from the knots: how often have enough come back by then? */
static double drawn(int64_t spare, const struct reservation_end *ends, size_t n, usec_t t)
{
    struct rng rng;
    rng_seed(&rng, 77);
    int met = 0;
    for (int round = 0; round < 20000; round++) {
        int64_t late = 0;
        for (size_t i = 0; i < n; i++) {
            late += rng_unit(&rng) < reservation_end_by(&ends[i], t) ? 0 : ends[i].instances;
        }
        met += late <= spare;
    }
    return met / 20000.0;
}

static void test_gang__a_start_has_the_chance_it_was_asked_with(void **state)
{
    (void)state;
    AUTO_FREE struct duration *d = xcalloc(1, sizeof *d);
    learn(d, 0.2);
    struct reservation_end ends[32];
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        reservation_end_model(d, 300 + 40 * (uint32_t)i, i % 5 == 0 ? 2 : 1,
                              T0 - 100 * SEC * (int)(i % 7), USEC_NEVER - 1, T0, &ends[i]);
    }
    usec_t before = 0;
    static const double chances[] = {0.5, 0.9, 0.95, 0.98};
    for (size_t c = 0; c < ARRAY_LEN(chances); c++) {
        usec_t t;
        assert_true(reservation_start(3, ends, ARRAY_LEN(ends), chances[c], T0, &t));
        assert_near(drawn(3, ends, ARRAY_LEN(ends), t), chances[c], 0.012);
        assert_true(t > before);
        before = t;
    }
    /* one late job of many is enough: later than each job's own P95 */
    usec_t all;
    assert_true(reservation_start(0, ends, 24, 0.95, T0, &all));
    for (size_t i = 0; i < 24; i++) {
        assert_true(reservation_end_by(&ends[i], all) > 0.95);
    }
    /* more spare, sooner */
    usec_t sooner;
    assert_true(reservation_start(8, ends, 24, 0.95, T0, &sooner));
    assert_true(sooner < all);
}

static void test_gang__at_once_never_and_exactly_then(void **state)
{
    (void)state;
    struct reservation_end e[3];
    usec_t t = 42;
    assert_true(reservation_start(0, NULL, 0, 0.95, T0, &t));
    assert_int_equal(t, T0);
    assert_false(reservation_start(-1, NULL, 0, 0.95, T0, &t)); /* could never */
    reservation_end_at(2, T0 + 60 * SEC, &e[0]);
    reservation_end_at(3, T0 + 90 * SEC, &e[1]);
    reservation_end_at(4, USEC_NEVER, &e[2]);
    assert_true(reservation_start(9, e, 3, 0.95, T0, &t));
    assert_int_equal(t, T0);
    assert_true(reservation_start(7, e, 3, 0.95, T0, &t));
    assert_in_range(t, T0 + 60 * SEC, T0 + 61 * SEC);
    assert_true(reservation_start(4, e, 3, 0.95, T0, &t));
    assert_int_equal(t, T0 + 90 * SEC);
    t = 42;
    assert_false(reservation_start(3, e, 3, 0.95, T0, &t));
    assert_int_equal(t, 42);
}

static void test_gang__backfill_ends_before_the_promise_or_uses_what_is_spare(void **state)
{
    (void)state;
    struct reservation g = {.target_us = T0};
    static const struct {
        usec_t end;
        int64_t want, spare;
        bool may;
    } row[] = {{T0, 1, 0, true},      {T0 + 1, 1, 0, false}, {T0 + 1, 1, 1, true},
               {T0 + 1, 2, 1, false}, {T0 - 1, 9, 0, true},  {USEC_NEVER, 1, 0, false},
               {T0 - 1, 1, -5, true}, {T0 + 1, 1, -5, false}};
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        assert_int_equal(reservation_may_backfill(&g, row[i].end, row[i].want, row[i].spare),
                         row[i].may);
    }
    g.target_us = USEC_NEVER; /* nothing could be promised: nothing may rely on it */
    assert_false(reservation_may_backfill(&g, T0, 1, 0));
    assert_false(reservation_may_backfill(&g, USEC_NEVER, 1, 0));
    assert_true(reservation_may_backfill(&g, USEC_NEVER, 1, 1));
}

static void test_gang__backfill_stops_where_the_promise_gets_unlikely(void **state)
{
    (void)state;
    struct reservation g = {.target_us = T0 + 100 * SEC};
    struct reservation_end sure, likely;
    reservation_end_at(1, T0 + 99 * SEC, &sure);
    reservation_end_spread(1, T0 + 50 * SEC, T0 + 90 * SEC, &likely); /* 0.93 by the promise */
    struct reservation_odds o;
    reservation_odds_init(&o, 0);
    reservation_odds_add(&o, 24, 0.999);
    assert_true(reservation_may_pass(&g, &o, &sure, 0));
    assert_false(reservation_may_pass(&g, &o, &likely, 0)); /* its P90 alone would do */
    reservation_odds_init(&o, 1); /* one may be late: several likely ones pass */
    int passed = 0;
    while (passed < 100 && reservation_may_pass(&g, &o, &likely, 1)) {
        reservation_odds_add(&o, 1, reservation_end_by(&likely, g.target_us));
        passed++;
        assert_true(reservation_odds_met(&o) >= RESERVATION_GUARD);
    }
    assert_in_range(passed, 2, 10);
    reservation_odds_init(&o, 0); /* bad luck already: what is surely back harms no one */
    reservation_odds_add(&o, 1, 0.4);
    assert_true(reservation_may_pass(&g, &o, &sure, 0));
    assert_false(reservation_may_pass(&g, &o, &likely, 0));
    g.target_us = USEC_NEVER;
    assert_false(reservation_may_pass(&g, &o, &sure, 0));
    assert_true(reservation_may_pass(&g, &o, &sure, 1));
}

static void assert_in_order(const struct reservation_end *e)
{
    for (int i = 1; i < RESERVATION_KNOTS; i++) {
        assert_true(e->at_us[i] >= e->at_us[i - 1]);
    }
}

/* Times near the end of what fits never come to lie before now, and nothing overflows (UBSan). */
static void test_gang__absurd_times_and_sizes(void **state)
{
    (void)state;
    static const usec_t times[] = {0, T0, INT64_MAX / 25, INT64_MAX / 3, INT64_MAX - 1, USEC_NEVER};
    AUTO_FREE struct duration *d = xcalloc(1, sizeof *d);
    duration_init(d, DURATION_LONGEST_US);
    for (uint32_t mb = 1; mb <= 40; mb++) {
        duration_learn(d, UINT32_MAX - mb, DURATION_LONGEST_US - mb * SEC);
    }
    duration_fit(d);
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        for (size_t k = 0; k < ARRAY_LEN(times); k++) {
            struct reservation_end e[2];
            usec_t at = 0;
            reservation_end_model(d, UINT32_MAX, INT32_MAX, times[i], times[k], T0, &e[0]);
            assert_in_order(&e[0]);
            assert_true(e[0].at_us[0] >= T0);
            assert_true(times[k] < times[i] || e[0].at_us[RESERVATION_KNOTS - 1] >= times[i]);
            reservation_end_spread(INT32_MAX, times[i], MAX(times[i], times[k]), &e[1]);
            assert_in_order(&e[1]);
            assert_true(e[1].at_us[RESERVATION_KNOTS - 1] >= times[i]);
            assert_true(reservation_end_by(&e[1], T0) >= 0 && reservation_end_by(&e[1], T0) <= 1);
            bool starts = reservation_start(INT32_MAX, e, 2, RESERVATION_PROMISE, T0, &at);
            assert_true(!starts || at >= T0);
        }
    }
    struct reservation_odds o;
    reservation_odds_init(&o, INT64_MAX);
    reservation_odds_add(&o, INT32_MAX, 0.5);
    assert_near(reservation_odds_met(&o), 1, 1e-9);
    reservation_odds_init(&o, INT64_MIN);
    reservation_odds_add(&o, INT32_MAX, 0.5);
    assert_near(reservation_odds_met(&o), 0, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gang__absurd_times_and_sizes),
        cmocka_unit_test(test_gang__chances_are_those_of_every_subset),
        cmocka_unit_test(test_gang__many_spare_are_near_the_exact_count),
        cmocka_unit_test(test_gang__an_end_lies_where_its_quantiles_say),
        cmocka_unit_test(test_gang__an_end_follows_the_model_and_what_has_run),
        cmocka_unit_test(test_gang__a_start_has_the_chance_it_was_asked_with),
        cmocka_unit_test(test_gang__at_once_never_and_exactly_then),
        cmocka_unit_test(test_gang__backfill_ends_before_the_promise_or_uses_what_is_spare),
        cmocka_unit_test(test_gang__backfill_stops_where_the_promise_gets_unlikely),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
