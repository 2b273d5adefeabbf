/* Aim: waiting tasks come out longest first, then oldest, never before their back-off ends, and
 * none is lost or doubled. Method: a plain sorted array is the model beside random pushes and pops;
 * one million tasks are loaded and drained with the time printed. */
#include "common/rng.h"
#include "core/sched/ready_queue.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define MODEL_MAX 400

static bool model_first(const struct ready_queue_task *m, int n, usec_t now, int *ret)
{
    int best = -1;
    for (int i = 0; i < n; i++) {
        if (m[i].not_before_us <= now &&
            (best < 0 || m[i].size_mb > m[best].size_mb ||
             (m[i].size_mb == m[best].size_mb && m[i].task_id < m[best].task_id))) {
            best = i;
        }
    }
    *ret = best;
    return best >= 0;
}

static void test_ready__comes_out_as_the_model_says(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 11);
    for (int round = 0; round < 50; round++) {
        struct ready_queue *r = ready_queue_new();
        struct ready_queue_task model[MODEL_MAX];
        int n = 0;
        int64_t id = 0;
        usec_t now = 1000;
        for (int step = 0; step < 1000; step++) {
            now += (usec_t)rng_below(&rng, 20);
            if (rng_chance(&rng, 0.02)) {
                now -= 50; /* the wall clock may be set back */
            }
            if (n < MODEL_MAX && rng_chance(&rng, 0.55)) {
                id++;
                struct ready_queue_task t = {
                    .task_id = id,
                    .seq = (uint32_t)id,
                    .size_mb = (uint32_t)rng_below(&rng, 8),
                    .not_before_us =
                        rng_chance(&rng, 0.5) ? 0 : now + (usec_t)rng_below(&rng, 300)};
                model[n++] = t;
                ready_queue_push(r, &t);
            } else {
                int want;
                struct ready_queue_task got;
                bool any = model_first(model, n, now, &want);
                assert_int_equal(ready_queue_pop(r, now, &got), any);
                if (any) {
                    assert_int_equal(got.task_id, model[want].task_id);
                    assert_int_equal(got.not_before_us, model[want].not_before_us);
                    model[want] = model[--n];
                }
            }
            assert_int_equal(ready_queue_n(r), n);
        }
        ready_queue_free(r);
    }
}

static void test_ready__peek_takes_nothing(void **state)
{
    (void)state;
    struct ready_queue *r = ready_queue_new();
    struct ready_queue_task got;
    assert_false(ready_queue_peek(r, 0, &got));
    assert_false(ready_queue_pop(r, USEC_NEVER, &got));
    ready_queue_push(r, &(struct ready_queue_task){.task_id = 5, .size_mb = 1});
    assert_true(ready_queue_peek(r, 0, &got));
    assert_true(ready_queue_peek(r, 0, &got));
    assert_int_equal(got.task_id, 5);
    assert_int_equal(ready_queue_n(r), 1);
    ready_queue_free(r);
    ready_queue_free(NULL);
}

static void test_ready__a_task_that_backs_off_keeps_its_place(void **state)
{
    (void)state;
    struct ready_queue *r = ready_queue_new();
    ready_queue_push(r,
                     &(struct ready_queue_task){.task_id = 1, .size_mb = 9, .not_before_us = 100});
    ready_queue_push(r, &(struct ready_queue_task){.task_id = 2, .size_mb = 5});
    ready_queue_push(r, &(struct ready_queue_task){.task_id = 3, .size_mb = 5});
    struct ready_queue_task got;
    assert_true(ready_queue_peek(r, 99, &got));
    assert_int_equal(got.task_id, 2);
    assert_int_equal(ready_queue_backing_off_n(r, 99), 1);
    assert_int_equal(ready_queue_backing_off_n(r, 100), 0);
    assert_int_equal(ready_queue_next_us(r), 100);
    assert_true(ready_queue_peek(r, 100, &got));
    assert_int_equal(got.task_id, 1);
    assert_int_equal(ready_queue_next_us(r), USEC_NEVER);
    ready_queue_clear(r);
    assert_int_equal(ready_queue_n(r), 0);
    assert_false(ready_queue_peek(r, 100, &got));
    ready_queue_free(r);
}

static void test_ready__backing_off_is_counted(void **state)
{
    (void)state;
    struct ready_queue *r = ready_queue_new();
    struct ready_queue_task t[100];
    for (int i = 0; i < 100; i++) {
        t[i] = (struct ready_queue_task){.task_id = i + 1, .not_before_us = (i * 37) % 100};
    }
    ready_queue_push_many(r, t, 50);
    ready_queue_push_many(r, t + 50, 50);
    ready_queue_push_many(r, NULL, 0);
    assert_int_equal(ready_queue_n(r), 100);
    for (usec_t now = 0; now < 100; now++) {
        assert_int_equal(ready_queue_backing_off_n(r, now), 99 - now);
    }
    assert_int_equal(ready_queue_next_us(r), 1);
    ready_queue_free(r);
}

/* Whose time had come before the clock was set back waits again, wherever in the heap it stands. */
static void test_ready__due_leaves_out_what_a_clock_set_back_makes_early(void **state)
{
    (void)state;
    struct ready_queue *r = ready_queue_new();
    struct ready_queue_task all[60];
    for (int i = 0; i < 60; i++) {
        ready_queue_push(r, &(struct ready_queue_task){.task_id = i + 1,
                                                       .not_before_us = i % 3 == 0 ? 0 : 1000,
                                                       .size_mb = (uint32_t)(i * 7 % 11)});
    }
    assert_int_equal(ready_queue_due(r, 1000, all, 60), 60);
    assert_int_equal(ready_queue_due(r, 999, all, 60), 20);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(all[i].not_before_us, 0);
        assert_true(ready_queue_take(r, all[i].task_id));
    }
    assert_int_equal(ready_queue_due(r, 1000, all, 60), 40);
    ready_queue_free(r);
}

static void test_ready__any_that_may_start_can_be_taken(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 9);
    struct ready_queue *r = ready_queue_new();
    struct ready_queue_task all[60];
    assert_int_equal(ready_queue_due(r, 0, all, 60), 0);
    assert_false(ready_queue_take(r, 1));
    for (int i = 0; i < 60; i++) {
        struct ready_queue_task t = {.task_id = i + 1, .size_mb = (uint32_t)rng_below(&rng, 9)};
        t.not_before_us = i < 40 ? 0 : 1000;
        ready_queue_push(r, &t);
    }
    assert_int_equal(ready_queue_due(r, 999, all, 39), 40); /* too many: only counted */
    assert_int_equal(ready_queue_due(r, 999, all, 40), 40);
    assert_false(ready_queue_take(r, 41)); /* it backs off */
    assert_int_equal(ready_queue_due(r, 1000, all, 60), 60);
    for (int left = 60; left > 30; left--) {
        int64_t id = all[rng_below(&rng, (uint64_t)left)].task_id;
        assert_true(ready_queue_take(r, id));
        assert_false(ready_queue_take(r, id));
        assert_int_equal(ready_queue_due(r, 1000, all, 60), left - 1);
    }
    struct ready_queue_task last = {.size_mb = UINT32_MAX};
    struct ready_queue_task got;
    for (int i = 0; i < 30; i++) { /* what is left is still in order */
        assert_true(ready_queue_pop(r, 1000, &got));
        assert_true(got.size_mb < last.size_mb ||
                    (got.size_mb == last.size_mb && got.task_id > last.task_id));
        last = got;
    }
    assert_int_equal(ready_queue_n(r), 0);
    ready_queue_free(r);
}

static double now_s(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void test_ready__a_million_tasks_load_and_drain_in_order(void **state)
{
    (void)state;
    const size_t n = 1000000;
    struct ready_queue_task *t = xmalloc(n * sizeof *t);
    struct rng rng;
    rng_seed(&rng, 3);
    for (size_t i = 0; i < n; i++) {
        t[i] = (struct ready_queue_task){.task_id = (int64_t)i + 1,
                                         .size_mb = (uint32_t)rng_below(&rng, 500)};
    }
    struct ready_queue *r = ready_queue_new();
    double start = now_s();
    ready_queue_push_many(r, t, n);
    double loaded = now_s();
    struct ready_queue_task last = {.size_mb = UINT32_MAX};
    struct ready_queue_task got;
    size_t out = 0;
    while (ready_queue_pop(r, 1, &got)) {
        assert_true(got.size_mb < last.size_mb ||
                    (got.size_mb == last.size_mb && got.task_id > last.task_id));
        last = got;
        out++;
    }
    (void)printf("# 1 M tasks: %.0f ms to load, %.0f ns a pop\n", (loaded - start) * 1e3,
                 (now_s() - loaded) * 1e9 / (double)n);
    assert_int_equal(out, n);
    ready_queue_free(r);
    free(t);
}

/* The best of at most a size, beside a walk over all; taking it leaves the order whole. */
static void test_ready__the_largest_of_at_most_a_size(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 23);
    for (int round = 0; round < 200; round++) {
        struct ready_queue *r = ready_queue_new();
        uint32_t size[300];
        int n = (int)rng_below(&rng, ARRAY_LEN(size));
        for (int i = 0; i < n; i++) {
            size[i] = (uint32_t)rng_below(&rng, 50);
            ready_queue_push(r, &(struct ready_queue_task){.task_id = i + 1, .size_mb = size[i]});
        }
        while (n > 0) {
            uint32_t most = (uint32_t)rng_below(&rng, 60);
            int best = -1;
            for (int i = 0; i < n; i++) {
                if (size[i] <= most && (best < 0 || size[i] > size[best])) {
                    best = i; /* of equals the first has the lowest id */
                }
            }
            struct ready_queue_task got;
            assert_int_equal(ready_queue_at_most(r, 0, 0, most, &got), best >= 0);
            if (best < 0) {
                break;
            }
            assert_int_equal(got.task_id, best + 1);
            assert_true(ready_queue_take(r, got.task_id));
            assert_false(ready_queue_take(r, got.task_id));
            size[best] = UINT32_MAX; /* gone */
        }
        struct ready_queue_task last = {.size_mb = UINT32_MAX}, t;
        while (ready_queue_pop(r, 0, &t)) {
            assert_true(t.size_mb <= last.size_mb);
            last = t;
        }
        assert_int_equal(ready_queue_n(r), 0);
        ready_queue_free(r);
    }
}

static void test_ready__a_small_one_is_found_below_a_million_large_ones(void **state)
{
    (void)state;
    struct ready_queue *r = ready_queue_new();
    for (int i = 1; i <= 1000000; i++) {
        ready_queue_push(
            r, &(struct ready_queue_task){.task_id = i, .size_mb = 1 + (uint32_t)i * 7919 % 9973});
    }
    struct ready_queue_task t;
    for (uint32_t most = 5000; most > 200; most -= 100) {
        assert_true(ready_queue_at_most(r, 0, 0, most, &t));
        assert_in_range(t.size_mb, most * 8 / 10, most); /* near the best after a bounded walk */
    }
    assert_false(ready_queue_at_most(r, 0, 0, 0, &t));
    ready_queue_free(r);
}

static void test_ready__what_is_dropped_never_comes_out(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 17);
    for (int round = 0; round < 50; round++) {
        struct ready_queue *r = ready_queue_new();
        struct ready_queue_task t;
        int64_t drop[100];
        size_t n = 0;
        int group;
        for (int i = 1; i <= 200; i++) {
            t = (struct ready_queue_task){.task_id = i,
                                          .size_mb = (uint32_t)rng_below(&rng, 9),
                                          .not_before_us = i % 5 == 0 ? 50 : 0};
            ready_queue_push(r, &t);
            if (i == 100) {
                ready_queue_sort(r, 10, NULL, NULL);
                assert_true(ready_queue_first(r, 10, &t, &group));
                ready_queue_set_apart(r, group, 7);
            }
            if (n < ARRAY_LEN(drop) && rng_chance(&rng, 0.5)) {
                drop[n++] = i;
            }
        }
        assert_int_equal(ready_queue_drop(r, drop, n), n);
        assert_int_equal(ready_queue_drop(r, drop, n), 0);
        assert_int_equal(ready_queue_drop(r, drop, 0), 0);
        assert_int_equal(ready_queue_n(r), 200 - n);
        struct ready_queue_task last = {.size_mb = 99};
        for (size_t left = 200 - n; left > 0; left--) {
            assert_true(ready_queue_pop(r, 100, &t));
            for (size_t i = 0; i < n; i++) {
                assert_int_not_equal(t.task_id, drop[i]);
            }
            bool apart = left == 1; /* what was set apart comes last */
            assert_true(apart || t.size_mb < last.size_mb ||
                        (t.size_mb == last.size_mb && t.task_id > last.task_id));
            last = t;
        }
        ready_queue_free(r);
    }
}

/* The clock is set forward, then back. */
static void test_ready__a_clock_that_moves_takes_back_offs_along(void **state)
{
    (void)state;
    struct ready_queue *r = ready_queue_new();
    struct ready_queue_task t;
    for (int i = 0; i < 5; i++) {
        ready_queue_push(r, &(struct ready_queue_task){i + 1, i * 100, 0, 1});
    }
    assert_int_equal(ready_queue_backing_off_n(r, 150), 3);
    assert_true(ready_queue_peek(r, 150, &t)); /* the second may start as well */
    ready_queue_move(r, 1000);
    assert_int_equal(ready_queue_backing_off_n(r, 1150), 3);
    assert_int_equal(ready_queue_next_us(r), 1200);
    ready_queue_move(r, -100000);
    for (int i = 0; i < 5; i++) {
        assert_true(ready_queue_pop(r, 1, &t)); /* no time is before 1; nor does one become "now" */
        assert_int_equal(t.task_id, i + 1);
        assert_true(i == 0 || t.not_before_us == 1);
    }
    ready_queue_free(r);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ready__comes_out_as_the_model_says),
        cmocka_unit_test(test_ready__peek_takes_nothing),
        cmocka_unit_test(test_ready__a_task_that_backs_off_keeps_its_place),
        cmocka_unit_test(test_ready__backing_off_is_counted),
        cmocka_unit_test(test_ready__any_that_may_start_can_be_taken),
        cmocka_unit_test(test_ready__what_is_dropped_never_comes_out),
        cmocka_unit_test(test_ready__due_leaves_out_what_a_clock_set_back_makes_early),
        cmocka_unit_test(test_ready__a_million_tasks_load_and_drain_in_order),
        cmocka_unit_test(test_ready__a_clock_that_moves_takes_back_offs_along),
        cmocka_unit_test(test_ready__the_largest_of_at_most_a_size),
        cmocka_unit_test(test_ready__a_small_one_is_found_below_a_million_large_ones),
    };
    return cmocka_run_group_tests_name("ready", tests, NULL, NULL);
}
