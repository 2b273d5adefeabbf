/* Aim: each cause is retried as its row of cause.def says, or as the spec's row over it, with the
 * change it asks for, and never without end. Method: rows by hand, then every cause to its end. */
#include "core/failure/retry_policy.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static struct spec_stage stage_of(int rungs)
{
    struct spec_stage s = {.instance_type = {"ml.a.b", "ml.c.d", "ml.e.f"},
                           .instance_type_n = rungs,
                           .volume_gb = 30,
                           .max_runtime_s = 3600};
    return s;
}

/* A spec's row that leaves the change to the cause. */
static struct spec_retry row(int times, int64_t from_s, int64_t to_s, bool counts)
{
    return (struct spec_retry){
        .set = true, .times = times, .wait_from_s = from_s, .wait_to_s = to_s, .counts = counts};
}

static const struct retry_bounds unbounded = RETRY_BOUNDS_NONE;

static struct retry_decision decide(const struct spec_stage *s, enum cause c,
                                    const struct retry_state *now)
{
    struct rng rng;
    rng_seed(&rng, 1);
    struct retry_decision d;
    retry_decide(s, c, now, &unbounded, &rng, &d);
    return d;
}

static void test_retry_policy__causes_that_stop_at_once(void **state)
{
    (void)state;
    struct spec_stage s = stage_of(2);
    struct retry_state now = {.attempts = 1};
    static const enum cause causes[] = {CAUSE_STOPPED,       CAUSE_BAD_INPUT, CAUSE_USER_CODE,
                                        CAUSE_ACCESS_DENIED, CAUSE_BAD_IMAGE, CAUSE_BAD_REQUEST};
    for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
        assert_false(decide(&s, causes[i], &now).retry);
    }
    assert_false(decide(&s, CAUSE_STOPPED, &now).counts);
    assert_true(decide(&s, CAUSE_USER_CODE, &now).counts);
}

static void test_retry_policy__waits_that_are_nobodys_fault_do_not_count(void **state)
{
    (void)state;
    struct spec_stage s = stage_of(1);
    struct retry_state now = {.attempts = 3};
    now.tries[CAUSE_QUOTA] = 1000000;
    struct retry_decision d = decide(&s, CAUSE_QUOTA, &now);
    assert_true(d.retry);
    assert_false(d.counts);
    assert_int_equal(d.next.attempts, 3);
    assert_true(d.wait_us >= 5 * USEC_PER_SEC && d.wait_us <= 300 * USEC_PER_SEC);
    assert_false(decide(&s, CAUSE_CAPACITY, &now).counts);
    assert_false(decide(&s, CAUSE_THROTTLED, &now).counts);
    assert_false(decide(&s, CAUSE_SPOT_INTERRUPTED, &now).counts);
}

static void test_retry_policy__every_cause_comes_to_an_end(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 5);
    for (int c = CAUSE_NONE + 1; c < CAUSE_COUNT; c++) {
        struct spec_stage s = stage_of(3);
        struct retry_state now = {0};
        int retries = 0;
        struct retry_decision d;
        for (; retries < 1000; retries++) {
            retry_decide(&s, (enum cause)c, &now, &unbounded, &rng, &d);
            now.attempts += d.counts;
            if (!d.retry) {
                break;
            }
            assert_int_equal(d.next.tries[c], now.tries[c] + 1);
            assert_true(d.next.instance_type_i >= 0 && d.next.instance_type_i < 3);
            int attempts = now.attempts;
            now = d.next;
            now.attempts = attempts;
        }
        bool for_ever = c == CAUSE_QUOTA || c == CAUSE_THROTTLED || c == CAUSE_CAPACITY;
        assert_int_equal(retries == 1000, for_ever);
        assert_true(for_ever || retries <= 50);
    }
}

static void test_retry_policy__attempts_of_a_task_are_bounded(void **state)
{
    (void)state;
    struct spec_stage s = stage_of(1);
    s.retry[CAUSE_INTERNAL] = row(-1, 1, 2, true);
    struct retry_state now = {.attempts = ATTEMPTS_MAX - 1};
    assert_true(decide(&s, CAUSE_INTERNAL, &now).retry);
    now.attempts = ATTEMPTS_MAX;
    assert_false(decide(&s, CAUSE_INTERNAL, &now).retry);
    assert_false(decide(&s, CAUSE_QUOTA, &now).retry);
}

static void test_retry_policy__disk_full_doubles_the_volume(void **state)
{
    (void)state;
    struct spec_stage s = stage_of(1);
    struct retry_state now = {.attempts = 1};
    struct retry_decision d = decide(&s, CAUSE_DISK_FULL, &now);
    assert_true(d.retry && d.changed);
    assert_int_equal(d.next.volume_gb, 60);
    d = decide(&s, CAUSE_DISK_FULL, &d.next);
    assert_int_equal(d.next.volume_gb, 120);
    assert_false(decide(&s, CAUSE_DISK_FULL, &d.next).retry); /* twice, no more */
    now.volume_gb = 1500;
    assert_int_equal(decide(&s, CAUSE_DISK_FULL, &now).next.volume_gb, VOLUME_GROWN_GB_MAX);
    now.volume_gb = VOLUME_GROWN_GB_MAX;
    assert_false(decide(&s, CAUSE_DISK_FULL, &now).retry);
}

static void test_retry_policy__oom_takes_the_next_type_capacity_any_other(void **state)
{
    (void)state;
    struct spec_stage s = stage_of(2);
    struct retry_state now = {.attempts = 1};
    struct retry_decision d = decide(&s, CAUSE_OOM, &now);
    assert_true(d.retry && d.changed);
    assert_int_equal(d.next.instance_type_i, 1);
    now.instance_type_i = 1;
    d = decide(&s, CAUSE_OOM, &now);
    assert_true(d.retry && !d.changed);
    assert_int_equal(d.next.instance_type_i, 1);
    d = decide(&s, CAUSE_CAPACITY, &now);
    assert_true(d.retry && d.changed);
    assert_int_equal(d.next.instance_type_i, 0);
    struct spec_stage one = stage_of(1);
    now.instance_type_i = 0;
    assert_false(decide(&one, CAUSE_CAPACITY, &now).changed);
}

static void test_retry_policy__timeout_extends_the_run_time_to_what_aws_allows(void **state)
{
    (void)state;
    struct spec_stage s = stage_of(1);
    struct retry_state now = {.attempts = 1};
    assert_int_equal(decide(&s, CAUSE_TIMEOUT, &now).next.max_runtime_s, 5400);
    now.max_runtime_s = 2400000;
    assert_int_equal(decide(&s, CAUSE_TIMEOUT, &now).next.max_runtime_s, 2419200);
}

static void test_retry_policy__a_specs_row_stands_over_the_default(void **state)
{
    (void)state;
    struct spec_stage s = stage_of(1);
    s.retry[CAUSE_USER_CODE] = row(2, 7, 7, false);
    struct retry_state now = {0};
    struct retry_decision d = decide(&s, CAUSE_USER_CODE, &now);
    assert_true(d.retry);
    assert_false(d.counts);
    assert_int_equal(d.wait_us, 7 * USEC_PER_SEC);
    now.tries[CAUSE_USER_CODE] = 2;
    assert_false(decide(&s, CAUSE_USER_CODE, &now).retry);
    s.retry[CAUSE_INTERNAL] = row(0, 0, 0, true);
    assert_false(decide(&s, CAUSE_INTERNAL, &now).retry);
}

/* A forecast takes the waits of what the stage has seen, by the rows that hold in it. */
static void test_retry_policy__the_wait_to_expect_is_that_of_the_causes_seen(void **state)
{
    (void)state;
    struct spec_stage s = stage_of(1);
    int64_t seen[CAUSE_COUNT] = {0};
    assert_int_equal(retry_wait_expected_s(&s, seen), 60); /* as after an unknown one */
    seen[CAUSE_USER_CODE] = 1000;                          /* not tried again: no wait */
    assert_int_equal(retry_wait_expected_s(&s, seen), 60);
    seen[CAUSE_NETWORK] = 3;
    assert_int_equal(retry_wait_expected_s(&s, seen), 30);
    seen[CAUSE_DISK_FULL] = 2;
    assert_int_equal(retry_wait_expected_s(&s, seen), (3 * 30 + 2 * 5) / 5);
    s.retry[CAUSE_NETWORK] = row(5, 600, 3600, true);
    assert_int_equal(retry_wait_expected_s(&s, seen), (3 * 600 + 2 * 5) / 5);
    s.retry[CAUSE_UNKNOWN] = row(2, 7, 7, true);
    assert_int_equal(retry_wait_expected_s(&s, (int64_t[CAUSE_COUNT]){0}), 7);
}

static void test_retry_policy__a_specs_change_stands_over_the_causes(void **state)
{
    (void)state;
    struct spec_stage s = stage_of(3);
    struct retry_state now = {.attempts = 1};
    s.retry[CAUSE_DISK_FULL] = row(9, 1, 1, true);
    s.retry[CAUSE_DISK_FULL].set_change = true;
    s.retry[CAUSE_DISK_FULL].change = (struct spec_change){.volume_x100 = 150, .volume_max_gb = 70};
    struct retry_decision d = decide(&s, CAUSE_DISK_FULL, &now);
    assert_int_equal(d.next.volume_gb, 45);
    d = decide(&s, CAUSE_DISK_FULL, &d.next);
    assert_int_equal(d.next.volume_gb, 68); /* rounded up */
    d = decide(&s, CAUSE_DISK_FULL, &d.next);
    assert_int_equal(d.next.volume_gb, 70);
    assert_false(decide(&s, CAUSE_DISK_FULL, &d.next).retry);
    /* Set to nothing: tried again as it is. */
    s.retry[CAUSE_DISK_FULL].change = (struct spec_change){0};
    d = decide(&s, CAUSE_DISK_FULL, &now);
    assert_true(d.retry && !d.changed);
    /* Several at once, on a cause that changes nothing by itself. */
    s.retry[CAUSE_INTERNAL] = row(9, 1, 1, true);
    s.retry[CAUSE_INTERNAL].set_change = true;
    s.retry[CAUSE_INTERNAL].change = (struct spec_change){
        .next = NEXT_UP, .volume_x100 = 200, .runtime_x100 = 125, .runtime_max_s = 4000};
    d = decide(&s, CAUSE_INTERNAL, &now);
    assert_int_equal(d.next.instance_type_i, 1);
    assert_int_equal(d.next.volume_gb, 60);
    assert_int_equal(d.next.max_runtime_s, 4000);
    d = decide(&s, CAUSE_INTERNAL, &d.next);
    d = decide(&s, CAUSE_INTERNAL, &d.next);
    assert_int_equal(d.next.instance_type_i, 2);
    assert_int_equal(d.next.max_runtime_s, 4000);
    /* A run time a person set beyond the change's bound is not taken back. */
    now.max_runtime_s = 9000;
    assert_int_equal(decide(&s, CAUSE_INTERNAL, &now).next.max_runtime_s, 9000);
}

static void test_retry_policy__changes_are_bounded_for_every_cause_and_number(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 31);
    for (int i = 0; i < 20000; i++) {
        struct spec_stage s = stage_of(1 + (int)rng_below(&rng, 3));
        enum cause c = (enum cause)(1 + rng_below(&rng, CAUSE_COUNT - 1));
        s.retry[c] = row(-1, 0, 0, false);
        s.retry[c].set_change = rng_chance(&rng, 0.8);
        s.retry[c].change = (struct spec_change){
            .next = (enum spec_next)rng_below(&rng, 3),
            .volume_x100 = rng_chance(&rng, 0.5) ? SPEC_CHANGE_X100_MAX : 101,
            .volume_max_gb = (int)rng_below(&rng, VOLUME_GB_MAX + 1),
            .runtime_x100 = rng_chance(&rng, 0.5) ? SPEC_CHANGE_X100_MAX : 101,
            .runtime_max_s = (int64_t)rng_below(&rng, (uint64_t)SPEC_RUNTIME_S_MAX + 1)};
        struct retry_state now = {
            .instance_type_i = (int)rng_below(&rng, (uint64_t)s.instance_type_n),
            .volume_gb = (int)rng_below(&rng, VOLUME_GB_MAX + 1),
            .max_runtime_s = (int64_t)rng_below(&rng, (uint64_t)SPEC_RUNTIME_S_MAX + 1)};
        struct retry_decision d;
        retry_decide(&s, c, &now, &unbounded, &rng, &d);
        assert_in_range(d.next.instance_type_i, 0, s.instance_type_n - 1);
        assert_in_range(d.next.volume_gb, now.volume_gb, VOLUME_GB_MAX);
        assert_true(d.next.max_runtime_s >= now.max_runtime_s);
        assert_true(d.next.max_runtime_s <= SPEC_RUNTIME_S_MAX);
    }
}

static void test_retry_policy__what_counts_is_the_causes_not_the_specs(void **state)
{
    (void)state;
    assert_true(retry_counts(CAUSE_USER_CODE));
    assert_true(retry_counts(CAUSE_NETWORK));
    assert_false(retry_counts(CAUSE_QUOTA));
    assert_false(retry_counts(CAUSE_STOPPED));
    assert_false(retry_counts(CAUSE_SPOT_INTERRUPTED));
}

static void test_retry_policy__a_job_that_ran_and_failed_counts(void **state)
{
    (void)state;
    for (int c = CAUSE_NONE + 1; c < CAUSE_COUNT; c++) {
        struct spec_stage s = stage_of(2);
        struct retry_state now = {.attempts = 1, .ran = true};
        assert_true(retry_counts_in(&s, (enum cause)c, true));
        assert_true(decide(&s, (enum cause)c, &now).counts);
        assert_false(decide(&s, (enum cause)c, &now).next.ran);
        assert_int_equal(retry_counts_in(&s, (enum cause)c, false), retry_counts((enum cause)c));
        s.retry[c] = row(-1, 1, 60, false); /* not even the spec makes it free */
        assert_true(retry_counts_in(&s, (enum cause)c, true));
        assert_false(retry_counts_in(&s, (enum cause)c, false));
        now.attempts = ATTEMPTS_MAX;
        assert_false(decide(&s, (enum cause)c, &now).retry);
    }
}

static void test_retry_policy__waits_grow_and_keep_their_bounds(void **state)
{
    (void)state;
    struct spec_stage s = stage_of(1);
    s.retry[CAUSE_INTERNAL] = row(-1, 30, 600, false);
    struct rng rng;
    rng_seed(&rng, 9);
    int64_t longest = 0;
    for (int i = 0; i < 1000; i++) {
        struct retry_state now = {0};
        now.tries[CAUSE_INTERNAL] = i;
        struct retry_decision d;
        retry_decide(&s, CAUSE_INTERNAL, &now, &unbounded, &rng, &d);
        assert_true(d.wait_us >= 30 * USEC_PER_SEC && d.wait_us <= 600 * USEC_PER_SEC);
        longest = MAX(longest, d.wait_us);
    }
    assert_true(longest > 500 * USEC_PER_SEC);
    assert_int_equal(retry_wait_longest_s(&s), retry_default(CAUSE_CAPACITY)->wait_to_s);
    s.retry[CAUSE_OOM] = row(-1, 30, 7200, false);
    assert_int_equal(retry_wait_longest_s(&s), 7200);
}

/* A change that no quota of the account ever allows would wait for ever. */
static void test_retry_policy__changes_stay_within_the_accounts_quotas(void **state)
{
    (void)state;
    struct spec_stage s = stage_of(3);
    struct retry_state now = {.attempts = 1, .ran = true};
    struct rng rng;
    struct retry_decision d;
    rng_seed(&rng, 1);
    struct retry_bounds b = {.run_s = 4000, .volume_gb = 50, .rung_never = {false, true, false}};
    retry_decide(&s, CAUSE_TIMEOUT, &now, &b, &rng, &d);
    assert_true(d.retry && d.next.max_runtime_s == 4000);
    b.run_s = 3600; /* it is as long as any may be: unchanged, as at SageMaker's own maximum */
    retry_decide(&s, CAUSE_TIMEOUT, &now, &b, &rng, &d);
    assert_true(d.retry && !d.changed);
    retry_decide(&s, CAUSE_DISK_FULL, &now, &b, &rng, &d);
    assert_true(d.retry && d.next.volume_gb == 50);
    b.volume_gb = 30; /* nothing larger is allowed: it would fail the same way */
    retry_decide(&s, CAUSE_DISK_FULL, &now, &b, &rng, &d);
    assert_false(d.retry);
    retry_decide(&s, CAUSE_OOM, &now, &b, &rng, &d);
    assert_int_equal(d.next.instance_type_i, 2); /* over the rung without a quota */
    b.rung_never[2] = true;
    retry_decide(&s, CAUSE_OOM, &now, &b, &rng, &d);
    assert_int_equal(d.next.instance_type_i, 0);
    b.rung_never[2] = false;
    now.instance_type_i = 2;
    b.rung_never[0] = true;
    b.rung_never[1] = false;
    retry_decide(&s, CAUSE_CAPACITY, &now, &b, &rng, &d);
    assert_int_equal(d.next.instance_type_i, 1);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_retry_policy__changes_stay_within_the_accounts_quotas),
        cmocka_unit_test(test_retry_policy__causes_that_stop_at_once),
        cmocka_unit_test(test_retry_policy__waits_that_are_nobodys_fault_do_not_count),
        cmocka_unit_test(test_retry_policy__every_cause_comes_to_an_end),
        cmocka_unit_test(test_retry_policy__attempts_of_a_task_are_bounded),
        cmocka_unit_test(test_retry_policy__disk_full_doubles_the_volume),
        cmocka_unit_test(test_retry_policy__oom_takes_the_next_type_capacity_any_other),
        cmocka_unit_test(test_retry_policy__timeout_extends_the_run_time_to_what_aws_allows),
        cmocka_unit_test(test_retry_policy__a_specs_row_stands_over_the_default),
        cmocka_unit_test(test_retry_policy__the_wait_to_expect_is_that_of_the_causes_seen),
        cmocka_unit_test(test_retry_policy__a_specs_change_stands_over_the_causes),
        cmocka_unit_test(test_retry_policy__changes_are_bounded_for_every_cause_and_number),
        cmocka_unit_test(test_retry_policy__what_counts_is_the_causes_not_the_specs),
        cmocka_unit_test(test_retry_policy__a_job_that_ran_and_failed_counts),
        cmocka_unit_test(test_retry_policy__waits_grow_and_keep_their_bounds),
    };
    return cmocka_run_group_tests_name("retry_policy", tests, NULL, NULL);
}
