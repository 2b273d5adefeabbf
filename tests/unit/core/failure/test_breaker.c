/* Aim: a bug that fails every part pays for no more than max(canary, k) attempts before the stage
 * is held, a stage is never left waiting for nothing, and work that passes is left alone. Method:
 * rows by hand, then a small simulation of a stage over 200 seeds: starts and ends interleaved at
 * random, as many at once as are allowed, some ends that say nothing, the hold noticed late. */
#include "common/rng.h"
#include "core/failure/breaker.h"
#include "tests/unit/unit.h"

#define SEEDS 200

static const struct breaker_rules dflt = {.canary = 3, .k = 3, .n = 10, .quarantine = 3};

static void start(struct breaker *b, int64_t first_id, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        breaker_started(b, first_id + i);
    }
}

static bool fails(struct breaker *b, const struct breaker_rules *r, int64_t id, uint64_t hash)
{
    return breaker_ended(b, r, id, CAUSE_USER_CODE, true, hash);
}

static void test_breaker__a_canary_runs_until_one_has_passed(void **state)
{
    (void)state;
    struct breaker b;
    breaker_init(&b);
    assert_int_equal(breaker_may_start(&b, &dflt), 3);
    start(&b, 1, 2);
    assert_int_equal(breaker_may_start(&b, &dflt), 1);
    start(&b, 3, 1);
    assert_int_equal(breaker_may_start(&b, &dflt), 0);
    breaker_passed(&b);
    assert_true(breaker_may_start(&b, &dflt) == INT64_MAX);
    assert_false(breaker_ended(&b, &dflt, 1, CAUSE_NONE, true, 0));
    assert_true(breaker_may_start(&b, &dflt) == INT64_MAX);
}

static void test_breaker__a_small_canary_goes_one_by_one_up_to_k(void **state)
{
    (void)state;
    struct breaker b;
    breaker_init(&b);
    const struct breaker_rules r = {.canary = 1, .k = 3, .n = 10};
    for (int64_t id = 1; id <= 3; id++) {
        assert_int_equal(breaker_may_start(&b, &r), 1);
        start(&b, id, 1);
        assert_int_equal(breaker_may_start(&b, &r), 0);
        assert_int_equal(fails(&b, &r, id, 7), id == 3);
    }
    assert_int_equal(breaker_may_start(&b, &r), 0);
}

static void test_breaker__a_success_passes_too(void **state)
{
    (void)state;
    struct breaker b;
    breaker_init(&b);
    start(&b, 1, 1);
    assert_false(breaker_ended(&b, &dflt, 1, CAUSE_NONE, true, 0));
    assert_true(breaker_may_start(&b, &dflt) == INT64_MAX);
}

static void test_breaker__the_same_signature_trips_at_the_kth(void **state)
{
    (void)state;
    struct breaker b;
    breaker_init(&b);
    start(&b, 1, 1);
    breaker_passed(&b);
    start(&b, 2, 9);
    assert_false(fails(&b, &dflt, 1, 7));
    assert_false(breaker_ended(&b, &dflt, 2, CAUSE_NONE, true, 0));
    assert_false(fails(&b, &dflt, 3, 8));
    assert_false(fails(&b, &dflt, 4, 7));
    assert_true(fails(&b, &dflt, 5, 7));
    assert_true(b.tripped);
    assert_int_equal(b.signature[b.tripped_i].hash, 7);
    assert_int_equal(b.signature[b.tripped_i].n, 3);
    assert_int_equal(b.signature[b.tripped_i].cause, CAUSE_USER_CODE);
    assert_int_equal(breaker_may_start(&b, &dflt), 0);
    /* Late ends after the hold: counted, told once only, and a late pass does not lift it. */
    assert_false(fails(&b, &dflt, 6, 7));
    breaker_passed(&b);
    assert_false(breaker_ended(&b, &dflt, 7, CAUSE_NONE, true, 0));
    assert_int_equal(breaker_may_start(&b, &dflt), 0);
}

static void test_breaker__after_the_first_n_only_a_row_of_n_trips(void **state)
{
    (void)state;
    struct breaker b;
    breaker_init(&b);
    int64_t id = 1;
    for (int i = 0; i < 10; i++, id++) {
        start(&b, id, 1);
        assert_false(breaker_ended(&b, &dflt, id, CAUSE_NONE, true, 0));
    }
    for (int i = 0; i < 9; i++, id++) {
        start(&b, id, 1);
        assert_false(fails(&b, &dflt, id, 7));
    }
    start(&b, id, 1);
    assert_false(breaker_ended(&b, &dflt, id++, CAUSE_NONE, true, 0));
    for (int i = 0; i < 9; i++, id++) {
        start(&b, id, 1);
        assert_false(fails(&b, &dflt, id, 7));
    }
    start(&b, id, 1);
    assert_true(fails(&b, &dflt, id, 7));
}

static void test_breaker__what_says_nothing_of_the_work_never_trips(void **state)
{
    (void)state;
    struct breaker b;
    breaker_init(&b);
    for (int64_t id = 1; id <= 1000; id++) {
        assert_int_equal(breaker_may_start(&b, &dflt), 3);
        start(&b, id, 1);
        assert_false(breaker_ended(&b, &dflt, id, CAUSE_CAPACITY, false, 5));
    }
    assert_int_equal(b.paid_unpassed, 0);
    assert_int_equal(b.failed, 0);
}

static void test_breaker__off_is_off(void **state)
{
    (void)state;
    struct breaker b;
    breaker_init(&b);
    const struct breaker_rules none = {0};
    start(&b, 1, 100);
    for (int64_t id = 1; id <= 100; id++) {
        assert_true(breaker_may_start(&b, &none) == INT64_MAX);
        assert_false(fails(&b, &none, id, 7));
        assert_false(breaker_quarantines(&b, &none, 100));
    }
    /* Without a canary the breaker still trips at the k-th. */
    breaker_init(&b);
    const struct breaker_rules no_canary = {.k = 3, .n = 10};
    start(&b, 1, 100);
    assert_false(fails(&b, &no_canary, 1, 7));
    assert_false(fails(&b, &no_canary, 2, 7));
    assert_true(fails(&b, &no_canary, 3, 7));
    assert_int_equal(breaker_may_start(&b, &no_canary), 0);
}

static void test_breaker__a_resumed_stage_starts_with_a_canary_again(void **state)
{
    (void)state;
    struct breaker b;
    breaker_init(&b);
    start(&b, 1, 1);
    breaker_passed(&b);
    start(&b, 2, 17);
    for (int64_t id = 1; id <= 3; id++) {
        assert_int_equal(fails(&b, &dflt, id, 7), id == 3);
    }
    breaker_reset(&b, 18);
    assert_int_equal(breaker_may_start(&b, &dflt), 3);
    start(&b, 19, 3);
    /* What was started before the resume ends as it was bound to: no news. */
    for (int64_t id = 4; id <= 17; id++) {
        assert_false(fails(&b, &dflt, id, 7));
    }
    assert_int_equal(b.failed, 0);
    assert_int_equal(b.live, 3);
    assert_int_equal(breaker_may_start(&b, &dflt), 0);
    for (int64_t id = 19; id <= 21; id++) {
        assert_int_equal(fails(&b, &dflt, id, 7), id == 21);
    }
    /* One of the old ones that succeeds after all does show that it can be done. */
    breaker_reset(&b, 21);
    assert_false(breaker_ended(&b, &dflt, 18, CAUSE_NONE, true, 0));
    assert_true(breaker_may_start(&b, &dflt) == INT64_MAX);
    assert_int_equal(b.live, 0);
}

static void test_breaker__a_takeover_rebuilds_the_same(void **state)
{
    (void)state;
    struct breaker was;
    breaker_init(&was);
    breaker_reset(&was, 5);
    start(&was, 6, 3);
    assert_false(fails(&was, &dflt, 6, 7));
    struct breaker now;
    breaker_init(&now);
    breaker_reset(&now, 5);
    start(&now, 1, 8); /* the stage's whole history, old ones too */
    for (int64_t id = 1; id <= 5; id++) {
        assert_false(fails(&now, &dflt, id, 7));
    }
    assert_false(fails(&now, &dflt, 6, 7));
    assert_memory_equal(&was, &now, sizeof was);
}

static void test_breaker__a_part_is_set_aside_only_while_others_pass(void **state)
{
    (void)state;
    struct breaker b;
    breaker_init(&b);
    assert_false(breaker_quarantines(&b, &dflt, 3));
    start(&b, 1, 2);
    assert_false(fails(&b, &dflt, 1, 7));
    assert_false(breaker_quarantines(&b, &dflt, 3));
    assert_false(breaker_ended(&b, &dflt, 2, CAUSE_NONE, true, 0));
    assert_false(breaker_quarantines(&b, &dflt, 2));
    assert_true(breaker_quarantines(&b, &dflt, 3));
    assert_true(breaker_quarantines(&b, &dflt, INT32_MAX));
}

static void test_breaker__more_signatures_than_it_holds_are_no_harm(void **state)
{
    (void)state;
    struct breaker b;
    breaker_init(&b);
    struct breaker_rules r = dflt;
    r.k = 2;
    r.n = 1000;
    start(&b, 1, 1);
    assert_false(breaker_ended(&b, &r, 1, CAUSE_NONE, true, 0));
    for (int64_t id = 2; id < 300; id++) {
        start(&b, id, 1);
        assert_false(fails(&b, &r, id, (uint64_t)id));
    }
    assert_int_equal(b.signatures_n, BREAKER_OF_MAX);
    start(&b, 300, 1);
    assert_true(fails(&b, &r, 300, 5));
}

struct stage_run {
    struct rng rng;
    struct breaker b;
    struct breaker_rules r;
    int slots;
    int64_t next_id;
    int64_t live[64]; /* ids */
    int live_n;
    int64_t counted; /* attempts paid for whose end said something of the work, and live ones */
    bool held;
};

static void run_init(struct stage_run *s, uint64_t seed)
{
    *s = (struct stage_run){.next_id = 1};
    rng_seed(&s->rng, seed);
    breaker_init(&s->b);
    s->slots = 1 + (int)rng_below(&s->rng, 64);
    s->r = (struct breaker_rules){.canary = 1 + (int)rng_below(&s->rng, 12),
                                  .k = (int)rng_below(&s->rng, 12),
                                  .quarantine = 3};
    s->r.n = s->r.k + (int)rng_below(&s->rng, 20);
}

/* As many starts as are allowed and have a slot, or fewer. */
static void run_starts(struct stage_run *s)
{
    int64_t may = breaker_may_start(&s->b, &s->r);
    assert_true(may >= 0);
    assert_true(may == 0 || !s->held);
    int64_t n = MIN(may, s->slots - s->live_n);
    n = rng_chance(&s->rng, 0.3) ? (int64_t)rng_below(&s->rng, (uint64_t)n + 1) : n;
    for (int64_t i = 0; i < n; i++) {
        breaker_started(&s->b, s->next_id);
        s->live[s->live_n++] = s->next_id++;
    }
    s->counted += n;
    assert_true(s->b.passed || s->b.live <= s->r.canary);
}

static void run_one_end(struct stage_run *s, bool pass, int bugs)
{
    int i = (int)rng_below(&s->rng, (uint64_t)s->live_n);
    int64_t id = s->live[i];
    s->live[i] = s->live[--s->live_n];
    bool told;
    if (rng_chance(&s->rng, 0.15)) {
        told = breaker_ended(&s->b, &s->r, id, CAUSE_SPOT_INTERRUPTED, false, 99);
        s->counted--;
    } else if (pass) {
        told = breaker_ended(&s->b, &s->r, id, CAUSE_NONE, true, 0);
    } else {
        told = fails(&s->b, &s->r, id, rng_below(&s->rng, (uint64_t)bugs));
    }
    assert_false(told && s->held); /* told once */
    s->held = s->held || told;
    assert_int_equal(s->held, s->b.tripped);
}

static void test_breaker__a_bug_that_fails_every_part_is_paid_for_no_more_than_the_bound(void **st)
{
    (void)st;
    int late_ends = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct stage_run s;
        run_init(&s, seed);
        int bugs = seed % 2 == 0 ? 1 : 1 + (int)rng_below(&s.rng, 20);
        int64_t bound = MAX(s.r.canary, s.r.k);
        for (int step = 0; step < 5000 && !(s.held && s.live_n == 0); step++) {
            if (rng_chance(&s.rng, 0.5)) {
                run_starts(&s);
            } else if (s.live_n > 0) {
                late_ends += s.held;
                run_one_end(&s, false, bugs);
            }
            assert_true(s.counted <= bound);
        }
        assert_true(s.held); /* never left waiting for nothing */
        assert_int_equal(s.b.live, 0);
        run_starts(&s);
        assert_int_equal(s.live_n, 0);
        /* Resumed without a fix: the bound once more, and held again. */
        breaker_reset(&s.b, s.next_id - 1);
        s.held = false;
        s.counted = 0;
        for (int step = 0; step < 5000 && !s.held; step++) {
            run_starts(&s);
            if (s.live_n > 0) {
                run_one_end(&s, false, bugs);
            }
            assert_true(s.counted <= bound);
        }
        assert_true(s.held);
    }
    assert_true(late_ends > SEEDS / 2); /* else the late ends were not tried */
}

static void test_breaker__work_that_passes_is_never_held(void **st)
{
    (void)st;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct stage_run s;
        run_init(&s, seed);
        s.r = dflt;
        int ends = 0;
        while (ends < 128) {
            run_starts(&s);
            if (s.live_n > 0 && rng_chance(&s.rng, 0.6)) {
                /* Failures of many kinds, one part in ten: none of them comes k times. */
                run_one_end(&s, ends < 3 || rng_chance(&s.rng, 0.9), 1 << 30);
                ends++;
            }
        }
        assert_false(s.held);
    }
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_breaker__a_canary_runs_until_one_has_passed),
        cmocka_unit_test(test_breaker__a_small_canary_goes_one_by_one_up_to_k),
        cmocka_unit_test(test_breaker__a_success_passes_too),
        cmocka_unit_test(test_breaker__the_same_signature_trips_at_the_kth),
        cmocka_unit_test(test_breaker__after_the_first_n_only_a_row_of_n_trips),
        cmocka_unit_test(test_breaker__what_says_nothing_of_the_work_never_trips),
        cmocka_unit_test(test_breaker__off_is_off),
        cmocka_unit_test(test_breaker__a_resumed_stage_starts_with_a_canary_again),
        cmocka_unit_test(test_breaker__a_takeover_rebuilds_the_same),
        cmocka_unit_test(test_breaker__a_part_is_set_aside_only_while_others_pass),
        cmocka_unit_test(test_breaker__more_signatures_than_it_holds_are_no_harm),
        cmocka_unit_test(
            test_breaker__a_bug_that_fails_every_part_is_paid_for_no_more_than_the_bound),
        cmocka_unit_test(test_breaker__work_that_passes_is_never_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
