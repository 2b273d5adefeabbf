/* Aim: over whole campaigns of 128 parts on 18 slots, seen one tick late, jobs start warm, idle
 * instances cost little, no pool outlives its last match, and no Create goes beyond a quota,
 * however SageMaker hands its pools out. Method: sched_decide against a small SageMaker on a
 * virtual clock (tests/bench/warm_world.h), beside 3600 s of keep-alive on every job on the same
 * seeds. */
#pragma GCC optimize("O2") /* the tests are compiled without; this one computes for seconds */
#include "tests/bench/warm_world.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define SEEDS 30

struct sums {
    int64_t idle_s, start_s, makespan_s, outlived_s;
    int after_first, reused, at_full, refused, awaited, ended, expired;
};

static const struct ww_case base = {
    .stages = 1, .slots = WW_SLOTS, .warm_quota = WW_SLOTS, .knows = true};

static struct sums run(const struct ww_case *c)
{
    struct ww *w = xcalloc(1, sizeof *w);
    struct sums s = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        if (!ww_run(w, c, seed)) {
            (void)printf("# seed %llu did not come to an end\n", (unsigned long long)seed);
            fail();
        }
        s.idle_s += w->r.idle_s;
        s.start_s += w->r.start_s;
        s.makespan_s += w->r.makespan_s;
        s.after_first += w->r.after_first;
        s.reused += w->r.reused;
        s.at_full += w->r.at_full;
        s.refused += w->r.refused;
        s.awaited += w->r.awaited;
        s.ended += w->r.ended;
        s.expired += w->r.expired;
        s.outlived_s = MAX(s.outlived_s, w->r.outlived_s);
    }
    free(w);
    return s;
}

static void show(const char *what, const struct sums *s)
{
    (void)printf("# %s: %.3f reused, %.3f of these at a full quota, %lld idle s a campaign, "
                 "outlived %lld s, %d ended, %d expired, %d refused\n",
                 what, (double)s->reused / s->after_first,
                 s->reused > 0 ? (double)s->at_full / s->reused : 0, (long long)(s->idle_s / SEEDS),
                 (long long)s->outlived_s, s->ended, s->expired, s->refused);
}

/* What holds whatever happens. */
static void assert_sound(const struct sums *s)
{
    assert_int_equal(s->refused, 0);
    assert_true(s->outlived_s <= WW_TICK_S);
}

static void test_warm_sim__jobs_start_warm_and_idle_costs_little(void **state)
{
    (void)state;
    for (int knows = 0; knows < 2; knows++) {
        struct ww_case c = base;
        c.knows = knows != 0;
        struct sums sched = run(&c);
        c.policy = WW_ALWAYS;
        struct sums always = run(&c);
        c.policy = WW_NONE;
        struct sums none = run(&c);
        show(knows ? "durations known" : "nothing known", &sched);
        show("3600 s on every job", &always);
        assert_sound(&sched);
        assert_true(sched.reused >= sched.after_first * 0.95);
        assert_true(sched.at_full >= sched.reused * 0.9); /* hand-over at 18 of 18 */
        assert_true(sched.awaited > 0);
        assert_true(sched.idle_s * 10 <= always.idle_s);
        assert_true(always.idle_s >= INT64_C(3600) * WW_SLOTS * SEEDS);
        assert_int_equal(none.reused + none.idle_s, 0);
        assert_true(sched.start_s + sched.idle_s < none.start_s / 2);
        assert_true(sched.makespan_s < none.makespan_s);
    }
}

static void test_warm_sim__campaigns_pass_pools_on_to_each_other(void **state)
{
    (void)state;
    struct ww_case c = base;
    c.stages = WW_STAGES;
    c.alike = true;
    struct sums alike = run(&c);
    show("three campaigns alike", &alike);
    assert_sound(&alike);
    assert_true(alike.reused >= alike.after_first * 0.95);
    c.alike = false; /* and never when they differ: a volume apart, and fair shares to keep */
    struct sums apart = run(&c);
    show("three campaigns apart", &apart);
    assert_sound(&apart);
    assert_true(apart.reused >= apart.after_first * 0.8);
}

static void test_warm_sim__failures_leave_no_pool_behind(void **state)
{
    (void)state;
    struct ww_case c = base;
    c.fails = 0.1;
    c.disk_full = 0.05; /* the next try has another volume, which matches no pool */
    struct sums s = run(&c);
    show("15 % of tries fail", &s);
    assert_sound(&s);
    assert_true(s.reused >= s.after_first * 0.8);
}

static void test_warm_sim__a_small_warm_quota_is_kept(void **state)
{
    (void)state;
    static const int rows[] = {0, 1, 9};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ww_case c = base;
        c.warm_quota = rows[i];
        struct sums s = run(&c);
        show("small warm quota", &s);
        assert_sound(&s);
        assert_int_equal(rows[i] == 0, s.reused == 0);
        assert_int_equal(rows[i] == 0, s.idle_s == 0);
    }
}

static void test_warm_sim__same_seed_same_campaign(void **state)
{
    (void)state;
    struct ww_case c = base;
    c.stages = WW_STAGES;
    c.fails = 0.1;
    struct ww *a = xcalloc(1, sizeof *a);
    struct ww *b = xcalloc(1, sizeof *b);
    assert_true(ww_run(a, &c, 7) && ww_run(b, &c, 7));
    assert_memory_equal(&a->r, &b->r, sizeof a->r);
    assert_memory_equal(a->jobs, b->jobs, sizeof a->jobs);
    assert_true(ww_run(b, &c, 8));
    assert_memory_not_equal(&a->r, &b->r, sizeof a->r);
    free(a);
    free(b);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warm_sim__jobs_start_warm_and_idle_costs_little),
        cmocka_unit_test(test_warm_sim__campaigns_pass_pools_on_to_each_other),
        cmocka_unit_test(test_warm_sim__failures_leave_no_pool_behind),
        cmocka_unit_test(test_warm_sim__a_small_warm_quota_is_kept),
        cmocka_unit_test(test_warm_sim__same_seed_same_campaign),
    };
    return cmocka_run_group_tests_name("warm_sim", tests, NULL, NULL);
}
