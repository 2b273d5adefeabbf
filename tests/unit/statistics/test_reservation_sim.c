/* Aim: over many seeds promises hold, lie near, cost little idle time, and neither runs nor parts
 * starve. Method: gang_sim.h, the real sched_decide on a virtual clock; backfill is checked start
 * by start with sums of the simulation's own. (Figures: bench_gang.c.) */
#include "gang_sim.h"
#include <setjmp.h>
#include <stdarg.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define SEEDS_MAX 200

static int seeds = SEEDS_MAX; /* SEEDS=n: fewer */

static void check_arrivals(const char *name, enum gs_noise noise, uint64_t first)
{
    struct gs_result r = gs_arrivals(first, seeds, noise, GS_QUEUE);
    (void)printf(
        "# %s: %d of %d by the promise; promise over wait %.3f of means, %.3f median; idle "
        "%.3f of draining; %lld backfilled\n",
        name, r.kept, r.seeds, r.promise_s / r.wait_s, r.ratio_median, r.idle_s / r.idle_drain_s,
        (long long)r.check.backfilled);
    assert_int_equal(r.promised, seeds);
    assert_true(r.kept * 100 >= 93 * seeds);
    assert_true(r.promise_s <= 1.25 * r.wait_s);
    assert_true(r.ratio_median <= 1.25);
    assert_true(r.check.backfilled > 10 * seeds);
    assert_int_equal(r.check.broken, 0);
    assert_true(r.idle_s <= 0.25 * r.idle_drain_s);
}

static void test_gang_sim__log_normal_noise_keeps_promises(void **state)
{
    (void)state;
    check_arrivals("noise log-normal, 0.1", GS_LOG_NORMAL, 1);
}

static void test_gang_sim__uniform_noise_keeps_promises(void **state)
{
    (void)state;
    check_arrivals("noise within 20 %", GS_UNIFORM, 100001);
}

/* Parts never wait longer without a start of theirs than the longest job may run (6 h), runs little
 * longer: each side has its turn. */
static void check_streams(const char *name, enum gs_load load)
{
    struct gs_streams r = gs_streams_worst(1, seeds, load);
    (void)printf("# %s: %d of %d ended; longest without a start: parts %.0f s, runs of 24 %.0f s, "
                 "runs of 8 %.0f s\n",
                 name, r.ended, r.tasks, r.hunger_s[0], r.hunger_s[1], r.hunger_s[2]);
    assert_int_equal(r.ended, r.tasks);
    assert_true(r.hunger_s[0] <= 6 * 3600);
    assert_true(r.hunger_s[1] <= 8 * 3600);
    assert_true(r.hunger_s[2] <= 8 * 3600);
}

static void test_gang_sim__no_side_starves_when_both_arrive(void **state)
{
    (void)state;
    check_streams("fleet at 0.7", GS_ARRIVING);
}

static void test_gang_sim__no_side_starves_when_both_are_more_than_fits(void **state)
{
    (void)state;
    check_streams("all at once", GS_FULL);
}

static void test_gang_sim__no_side_starves_when_only_one_fits(void **state)
{
    (void)state;
    check_streams("runs that take the whole fleet", GS_LARGE);
}

static void test_gang_sim__same_seed_same_story(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct gs_arrival a = gs_arrival_run(seed, GS_LOG_NORMAL, GS_QUEUE, false);
        struct gs_arrival b = gs_arrival_run(seed, GS_LOG_NORMAL, GS_QUEUE, false);
        assert_int_equal(a.wait_us, b.wait_us);
        assert_int_equal(a.promised_us, b.promised_us);
        assert_int_equal(a.idle_us, b.idle_us);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gang_sim__log_normal_noise_keeps_promises),
        cmocka_unit_test(test_gang_sim__uniform_noise_keeps_promises),
        cmocka_unit_test(test_gang_sim__no_side_starves_when_both_arrive),
        cmocka_unit_test(test_gang_sim__no_side_starves_when_both_are_more_than_fits),
        cmocka_unit_test(test_gang_sim__no_side_starves_when_only_one_fits),
        cmocka_unit_test(test_gang_sim__same_seed_same_story),
    };
    const char *fewer = getenv("SEEDS");
    seeds = fewer != NULL ? MAX(20, MIN((int)strtol(fewer, NULL, 10), SEEDS_MAX)) : SEEDS_MAX;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
