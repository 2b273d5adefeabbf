/* Aim: the look-ahead gives each free slot a task of its own, and following it ends as early as the
 * best there is, nearly. Method: seeded small layouts against every possible one; boundaries. */
#include "common/rng.h"
#include "core/sched/tail_packing.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static int longer_first(const void *a, const void *b)
{
    int64_t x = 0;
    int64_t y = 0;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x < y) - (x > y);
}

/* The earliest last end of all ways to place tasks i.. on slots that end at `end`. */
static int64_t best_end(const int64_t *run, size_t i, size_t n, int64_t *end, size_t m)
{
    int64_t best = INT64_MAX;
    if (i == n) {
        best = 0;
        for (size_t s = 0; s < m; s++) {
            best = MAX(best, end[s]);
        }
        return best;
    }
    for (size_t s = 0; s < m; s++) {
        end[s] += run[i];
        best = MIN(best, best_end(run, i + 1, n, end, m));
        end[s] -= run[i];
    }
    return best;
}

/* As best_end, but the chosen tasks are on the free slots already. */
static int64_t best_after(const int64_t *run, size_t n, const int64_t *wait, size_t m,
                          const int *chosen, size_t chosen_n)
{
    int64_t end[8];
    int64_t rest[8];
    size_t rest_n = 0;
    memcpy(end, wait, m * sizeof *end);
    for (size_t c = 0; c < chosen_n; c++) {
        end[c] += run[chosen[c]];
    }
    for (size_t i = 0; i < n; i++) {
        bool taken = false;
        for (size_t c = 0; c < chosen_n; c++) {
            taken = taken || chosen[c] == (int)i;
        }
        if (!taken) {
            rest[rest_n++] = run[i];
        }
    }
    return best_end(rest, 0, rest_n, end, m);
}

static void test_tail__following_it_ends_nearly_as_early_as_possible(void **state)
{
    (void)state;
    double sum = 0;
    double worst = 0;
    const int rounds = 2000;
    for (uint64_t seed = 1; seed <= (uint64_t)rounds; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        int64_t run[8];
        int64_t wait[3] = {0};
        size_t n = 2 + rng_below(&rng, 6);
        size_t m = 2 + rng_below(&rng, 2);
        size_t free_n = 1 + rng_below(&rng, m);
        for (size_t i = 0; i < n; i++) {
            run[i] = 1 + (int64_t)rng_below(&rng, 1000);
        }
        for (size_t s = free_n; s < m; s++) {
            wait[s] = wait[s - 1] + 1 + (int64_t)rng_below(&rng, 500);
        }
        qsort(run, n, sizeof *run, longer_first);
        int chosen[8];
        size_t k = tail_packing_choose(run, n, wait, m, chosen);
        assert_true(k >= 1);
        assert_true(k <= free_n);
        for (size_t c = 0; c < k; c++) {
            assert_in_range(chosen[c], 0, n - 1);
            assert_true(c == 0 || chosen[c] > chosen[c - 1]); /* longest first, none twice */
        }
        int64_t end[3];
        memcpy(end, wait, sizeof end);
        double ratio =
            (double)best_after(run, n, wait, m, chosen, k) / (double)best_end(run, 0, n, end, m);
        sum += ratio;
        worst = MAX(worst, ratio);
    }
    (void)printf("# %.4f of the best end on average, %.3f at worst\n", sum / rounds, worst);
    assert_true(sum / rounds < 1.005);
    assert_true(worst < 1.25);
}

static void test_tail__boundaries(void **state)
{
    (void)state;
    int chosen[TAIL_PACKING_SLOTS_MAX] = {-1};
    const int64_t one[] = {5};
    const int64_t busy[] = {3, 4};
    const int64_t now[] = {0, 0};
    assert_int_equal(tail_packing_choose(one, 1, busy, 2, chosen), 0); /* nothing is free */
    assert_int_equal(tail_packing_choose(one, 1, now, 2, chosen), 1);  /* fewer tasks than slots */
    assert_int_equal(chosen[0], 0);
    /* 9 8 7 6 5 on two slots: 18 and 17 */
    const int64_t five[] = {9, 8, 7, 6, 5};
    assert_int_equal(tail_packing_choose(five, 5, now, 2, chosen), 2);
    assert_int_equal(chosen[0], 0);
    /* 7 6 5 4 beside a slot that is free in 4: longest first is right here, and 7 is it */
    const int64_t four[] = {7, 6, 5, 4};
    const int64_t soon[] = {0, 4};
    assert_int_equal(tail_packing_choose(four, 4, soon, 2, chosen), 1);
    int64_t run[TAIL_PACKING_TASKS_MAX];
    int64_t wait[TAIL_PACKING_SLOTS_MAX] = {0};
    for (size_t i = 0; i < TAIL_PACKING_TASKS_MAX; i++) {
        run[i] = INT64_MAX / TAIL_PACKING_TASKS_MAX / 2;
    }
    assert_int_equal(
        tail_packing_choose(run, TAIL_PACKING_TASKS_MAX, wait, TAIL_PACKING_SLOTS_MAX, chosen),
        TAIL_PACKING_SLOTS_MAX);
    wait[TAIL_PACKING_SLOTS_MAX - 1] =
        INT64_MAX / 4; /* a slot that never comes free gets nothing */
    assert_int_equal(
        tail_packing_choose(run, TAIL_PACKING_TASKS_MAX, wait, TAIL_PACKING_SLOTS_MAX, chosen),
        TAIL_PACKING_SLOTS_MAX - 1);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tail__following_it_ends_nearly_as_early_as_possible),
        cmocka_unit_test(test_tail__boundaries),
    };
    return cmocka_run_group_tests_name("tail", tests, NULL, NULL);
}
