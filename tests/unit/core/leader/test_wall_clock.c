/* Aim: a step of the wall clock neither ends an idle pool nor makes a part start early or late:
 * what a leader waits for lasts as long as CLOCK_BOOTTIME says. Method: a leader's state by hand;
 * the wall clock jumps by hours either way while the boot clock runs on, and plans are looked
 * at. */
#include "core/capacity/warm_pool.h"
#include "core/leader/pool_life.h"
#include "core/leader/sched_view.h"
#include "core/leader/wall_clock.h"
#include "leader_world.h"

#define HOUR (3600 * SEC)

static const int64_t steps[] = {2 * HOUR, -2 * HOUR, 24 * HOUR, -7 * SEC};

/* The clocks at second `s` of the world, the wall clock `ahead_us` off. */
static usec_t at(struct leader_world *w, int64_t s, int64_t ahead_us)
{
    usec_t now_us = WALL + s * SEC + ahead_us;
    (void)leader_wall_clock(&w->s, now_us, BOOT + s * SEC, w->s.clock.told_us, 1);
    return now_us;
}

static bool due(struct ready_queue *r, usec_t now_us)
{
    struct ready_queue_task t;
    return ready_queue_peek(r, now_us, &t);
}

static void test_wall_clock__back_offs_last_as_long(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct leader_world w;
        leader_world_init(&w);
        struct live_stage *ls = w.ls;
        ls->unchecked = ready_queue_new();
        (void)at(&w, 0, 0);
        ready_queue_push(ls->ready, &(struct ready_queue_task){5, WALL + 300 * SEC, 0, 1});
        ready_queue_push(ls->unchecked, &(struct ready_queue_task){6, WALL + 30 * SEC, 1, 1});
        ls->no_start_until_us = WALL + 100 * SEC;
        ls->ladder.rung[1].shut_until_us = WALL + 200 * SEC;
        ls->check_again_us = WALL + 30 * SEC;
        usec_t now_us = at(&w, 20, steps[i]);
        assert_int_equal(ls->check_again_us, now_us + 10 * SEC);
        assert_int_equal(ls->no_start_until_us, now_us + 80 * SEC);
        assert_int_equal(ls->ladder.rung[1].shut_until_us, now_us + 180 * SEC);
        assert_int_equal(ls->ladder.rung[0].shut_until_us, 0);
        assert_false(due(ls->unchecked, now_us));
        assert_true(due(ls->unchecked, at(&w, 30, steps[i])));
        assert_false(due(ls->ready, at(&w, 299, steps[i])));
        assert_false(due(ls->ready, at(&w, 299, 0))); /* it is set right again */
        assert_true(due(ls->ready, at(&w, 300, 0)));
        leader_world_done(&w);
    }
}

/* Why the only pool is ended by a plan made now; WARM_POOL_KEEP: it is not. */
static enum warm_pool_end ends(struct leader_world *w, usec_t now_us)
{
    struct leader_view f;
    sched_view_make(&w->s, now_us, 10, &f);
    assert_int_equal(f.view.pools_n, 1);
    assert_int_equal(f.view.pools[0].state, POOL_AVAILABLE);
    musd_t cost = warm_pool_idle_cost(&f.view.pools[0], now_us);
    const struct warm_pool_use use = {.wanted = true, .left_musd = 400000 - cost};
    enum warm_pool_end why = warm_pool_ends_now(&f.view.pools[0], &use, now_us);
    sched_view_done(&f);
    return why;
}

/* 600 s at 3.60 USD an hour, of which 0.40 USD may be spent: 400 s. */
static void test_wall_clock__an_idle_pool_ends_in_its_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct leader_world w;
        leader_world_init(&w);
        (void)at(&w, 0, 0);
        struct live_pool *p = leader_world_pool(&w, 1, POOL_AVAILABLE, NULL);
        leader_apply_pool_seen(&w.s, p, POOL_FATE_THERE, WALL, BOOT);
        assert_int_equal(ends(&w, at(&w, 10, steps[i])), WARM_POOL_KEEP);
        assert_int_equal(ends(&w, at(&w, 399, steps[i])), WARM_POOL_KEEP);
        assert_int_equal(ends(&w, at(&w, 401, steps[i])), WARM_POOL_END_COST);
        p->row.price_musd_per_hour = 0;
        assert_int_equal(ends(&w, at(&w, 629, 0)), WARM_POOL_KEEP);
        assert_int_equal(ends(&w, at(&w, 631, 0)), WARM_POOL_END_EXPIRED);
        leader_world_done(&w);
    }
}

static void test_wall_clock__what_is_no_wait_stays(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    (void)at(&w, 0, 0);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    leader_world_ran(a, ATTEMPT_RUNNING);
    struct live_pool *p = leader_world_pool(&w, 1, POOL_AVAILABLE, NULL); /* not looked at yet */
    w.ls->reservation =
        (struct reservation){.task_id = 9, .since_us = WALL, .promised_us = USEC_NEVER};
    leader_state_slots(&w.s, "ml.a.large", MARKET_ON_DEMAND)->s.foreign_us = WALL;
    ready_queue_push(w.ls->ready, &(struct ready_queue_task){5, 0, 0, 1});
    usec_t now_us = at(&w, 0, -2 * HOUR);
    assert_int_equal(a->row.started_us, WALL - 3700 * SEC); /* as AWS told */
    assert_int_equal(a->row.intended_us, now_us - 1000 * SEC);
    assert_int_equal(p->row.expires_us, WALL + 600 * SEC);
    assert_int_equal(w.ls->reservation.since_us, now_us);
    assert_int_equal(w.ls->reservation.promised_us, USEC_NEVER);
    assert_int_equal(w.ls->reservation.expected_us, 0);
    assert_int_equal(leader_state_slots(&w.s, "ml.a.large", MARKET_ON_DEMAND)->s.foreign_us,
                     now_us);
    assert_true(due(w.ls->ready, WALL - 24 * HOUR)); /* it waits for no time */
    leader_world_done(&w);
}

/* A record that waits for its transaction writes and takes the time by the clock as it is then. */
static void test_wall_clock__records_under_way_move(void **state)
{
    (void)state;
    struct leader_world w;
    struct pending_record record = {.r = {.not_before_us = WALL + 60 * SEC}};
    leader_world_init(&w);
    (void)at(&w, 0, 0);
    w.s.records = &record;
    w.s.records_n = 1;
    usec_t now_us = at(&w, 10, -2 * HOUR);
    assert_int_equal(record.r.not_before_us, now_us + 50 * SEC);
    w.s.records = NULL;
    w.s.records_n = 0;
    leader_world_done(&w);
}

static void test_wall_clock__small_ones_add_up(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    assert_int_equal(leader_wall_clock(&w.s, WALL, BOOT, 0, 1), 0);
    w.ls->check_again_us = WALL + 300 * SEC;
    assert_int_equal(leader_wall_clock(&w.s, WALL + 9 * SEC, BOOT + 9 * SEC, 0, 1), 0);
    assert_int_equal(leader_wall_clock(&w.s, WALL + SEC * 6 / 10, BOOT, 0, 1), 0);
    assert_int_equal(w.ls->check_again_us, WALL + 300 * SEC);
    assert_int_equal(leader_wall_clock(&w.s, WALL + SEC * 12 / 10, BOOT, 0, 1), SEC * 12 / 10);
    assert_int_equal(w.ls->check_again_us, WALL + 300 * SEC + SEC * 12 / 10);
    assert_int_equal(leader_wall_clock(&w.s, WALL, BOOT, 0, 1), -SEC * 12 / 10);
    assert_int_equal(w.ls->check_again_us, WALL + 300 * SEC);
    leader_world_done(&w);
}

static void test_wall_clock__what_aws_tells_stands(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    (void)leader_wall_clock(&w.s, WALL, BOOT, 100 * SEC, 1);
    assert_int_equal(leader_wall_of_aws(&w.s, WALL), WALL - 100 * SEC);
    (void)leader_wall_clock(&w.s, WALL + HOUR, BOOT, 100 * SEC, 1); /* told before the step */
    assert_int_equal(w.s.clock.aws_ahead_us, 100 * SEC - HOUR);
    assert_int_equal(leader_wall_of_aws(&w.s, WALL), WALL + HOUR - 100 * SEC);
    (void)leader_wall_clock(&w.s, WALL + 2 * HOUR, BOOT, -7300 * SEC, 1); /* told after it */
    assert_int_equal(leader_wall_of_aws(&w.s, WALL), WALL + 7300 * SEC);
    assert_int_equal(leader_wall_of_aws(&w.s, INT64_MAX), INT64_MAX);
    leader_world_done(&w);
}

/* By AWS's clock no time passes with a step, before AWS has told of it and after. */
static void test_wall_clock__time_at_aws_goes_on_as_it_did(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct leader_world w;
        leader_world_init(&w);
        struct leader_clock *k = &w.s.clock;
        (void)leader_wall_clock(&w.s, WALL, BOOT, 0, 0);
        assert_true(k->unsure); /* nothing was told yet */
        (void)leader_wall_clock(&w.s, WALL, BOOT, 0, 1);
        assert_false(k->unsure);
        usec_t now_us = WALL + steps[i] + 5 * SEC;
        (void)leader_wall_clock(&w.s, now_us, BOOT + 5 * SEC, 0, 2); /* told before the step? */
        assert_true(k->unsure);
        assert_int_equal(leader_wall_to_aws(&w.s, now_us), WALL + 5 * SEC);
        (void)leader_wall_clock(&w.s, now_us, BOOT + 5 * SEC, 0, 2);
        assert_true(k->unsure);
        (void)leader_wall_clock(&w.s, now_us, BOOT + 5 * SEC, -steps[i], 3);
        assert_false(k->unsure);
        assert_int_equal(leader_wall_to_aws(&w.s, now_us), WALL + 5 * SEC);
        leader_world_done(&w);
    }
}

/* It was wrong and nobody had told; set right it is believed again with the next answer. */
static void test_wall_clock__an_answer_confirms_what_was_set_right(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    (void)leader_wall_clock(&w.s, WALL - HOUR, BOOT, 0, 0);
    (void)leader_wall_clock(&w.s, WALL, BOOT, 0, 0);
    assert_int_equal(leader_wall_to_aws(&w.s, WALL), WALL - HOUR);
    (void)leader_wall_clock(&w.s, WALL, BOOT, 0, 1);
    assert_int_equal(leader_wall_to_aws(&w.s, WALL), WALL);
    assert_int_equal(leader_wall_to_aws(&w.s, INT64_MAX), INT64_MAX);
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wall_clock__back_offs_last_as_long),
        cmocka_unit_test(test_wall_clock__an_idle_pool_ends_in_its_time),
        cmocka_unit_test(test_wall_clock__what_is_no_wait_stays),
        cmocka_unit_test(test_wall_clock__records_under_way_move),
        cmocka_unit_test(test_wall_clock__small_ones_add_up),
        cmocka_unit_test(test_wall_clock__what_aws_tells_stands),
        cmocka_unit_test(test_wall_clock__time_at_aws_goes_on_as_it_did),
        cmocka_unit_test(test_wall_clock__an_answer_confirms_what_was_set_right),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
