/* Aim: a leader's queues get each waiting and held task once, with all that its row says, however
 * many there are; damage is said. Method: a stage of 45,000 in a real cluster, its rows changed by
 * SQL, compared as they come. */
#include "store/rows/view.h"
#include "tests/kit/pg_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PARTS 100
#include "led_world.h"

struct seen {
    size_t n;
    size_t calls;
    int32_t first, last;
};
static void on_tasks(void *ctx, const struct task_row *rows, size_t n)
{
    struct seen *k = ctx;
    k->first = k->n == 0 ? rows[0].seq : k->first;
    k->last = rows[n - 1].seq;
    k->n += n;
    k->calls++;
    for (size_t i = 0; i < n; i++) {
        const struct task_row *r = &rows[i];
        bool tried = r->seq % 100 == 7;
        assert_int_equal(r->size, 1000 + r->seq);
        assert_int_equal(r->state, r->seq == 5 ? TASK_HELD : TASK_WAITING);
        assert_true(r->attempts == (tried ? 2 : 0) && r->names == (tried ? 3 : 0));
        assert_int_equal(r->not_before_us, r->seq == 9 ? 77 : 0);
    }
}

/* view_tasks, asked again while a statement takes longer than a leader waits (1 s): it was not
 * refused but late, as on a busy machine behind rows that were all just written. */
static bool viewed(struct store *s, struct store *inputs, const struct pg_campaign *big,
                   int32_t from, int32_t to, struct seen *ret_seen, struct err *err)
{
    for (int i = 0; i < 30; i++) {
        *ret_seen = (struct seen){0};
        if (view_tasks(s, inputs, big->campaign_id, big->stage_id, from, to, on_tasks, ret_seen,
                       err)) {
            return true;
        }
        if (err->code != ERR_TIMEOUT) {
            return false;
        }
    }
    return false;
}

/* With one connection, and with a second one for the sizes. */
static void test_view_tasks__it_pages_through_waiting_and_held_tasks(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct store *inputs = pg_open(w->db, STORE_INPUTS);
    struct store *const second[] = {NULL, inputs};
    struct pg_campaign big = pg_campaign_make(w->db, 45000);
    pg_sql(w->db, "UPDATE task_run SET state = 3 WHERE campaign_id = %lld AND seq >= 44990",
           (long long)big.campaign_id);
    pg_sql(w->db, "UPDATE task_run SET state = 2 WHERE campaign_id = %lld AND seq = 5",
           (long long)big.campaign_id);
    pg_sql(w->db, "UPDATE task_run SET attempts = 2, names = 3 WHERE seq %% 100 = 7");
    pg_sql(w->db, "UPDATE task_run SET not_before_us = 77 WHERE seq = 9");
    const struct {
        int32_t from, to;
        size_t n, calls; /* 20,000 a page */
    } ranges[] = {{0, 45000, 44990, 3}, {10, 20, 10, 1},       {0, 1, 1, 1},
                  {0, 0, 0, 0},         {44980, 45000, 10, 1}, {44990, 45000, 0, 0}};
    for (size_t i = 0; i < 2 * ARRAY_LEN(ranges); i++) {
        struct seen k;
        pg_good(viewed(w->s, second[i % 2], &big, ranges[i / 2].from, ranges[i / 2].to, &k, &err),
                &err);
        assert_int_equal(k.n, ranges[i / 2].n);
        assert_int_equal(k.calls, ranges[i / 2].calls);
        assert_true(i > 1 || (k.first == 0 && k.last == 44989));
    }
    /* Parts that are not in the order of their ids, some of them done, then all but one in nine:
     * of a page of those sizes are read by id. */
    pg_sql(w->db, "UPDATE task_run SET seq = 51 - seq WHERE seq BETWEEN 20 AND 31; "
                  "UPDATE task SET size = 1000 + 51 - seq WHERE seq BETWEEN 20 AND 31");
    static const struct {
        int of, done;
        size_t left;
    } steps[] = {{10, 3, 40491}, {9, -1, 4499}};
    for (size_t i = 0; i < 2 * ARRAY_LEN(steps); i++) {
        struct seen k;
        pg_sql(w->db,
               "UPDATE task_run SET state = 3 WHERE campaign_id = %lld AND (seq %% %d = %d OR "
               "(%d < 0 AND seq %% %d <> 0))",
               (long long)big.campaign_id, steps[i / 2].of, steps[i / 2].done, steps[i / 2].done,
               steps[i / 2].of);
        pg_good(viewed(w->s, second[i % 2], &big, 0, 45000, &k, &err), &err);
        assert_int_equal(k.n, steps[i / 2].left);
    }
    store_close(inputs);
}

/* A task without its input is damage, and said; so are more tasks than there are. */
static void test_view_tasks__damage_is_said(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct store *inputs = pg_open(w->db, STORE_INPUTS);
    struct store *const second[] = {NULL, inputs};
    struct pg_campaign big = pg_campaign_make(w->db, 45000);
    struct seen k;
    pg_sql(w->db, "UPDATE task_run SET state = CASE seq WHEN 5 THEN 2 ELSE 3 END "
                  "WHERE seq = 5 OR seq %% 100 = 7 OR seq = 9");
    static const int gone[] = {44999, 0, 18};
    for (size_t i = 0; i < 2 * ARRAY_LEN(gone); i++) {
        pg_sql(w->db,
               "INSERT INTO task (campaign_id, id, stage_id, seq, size) SELECT campaign_id, id, "
               "stage_id, seq, 1000 + seq FROM task_run WHERE campaign_id = %lld "
               "ON CONFLICT DO NOTHING; DELETE FROM task WHERE campaign_id = %lld AND seq = %d",
               (long long)big.campaign_id, (long long)big.campaign_id, gone[i / 2]);
        assert_false(viewed(w->s, second[i % 2], &big, 0, 45000, &k, &err));
        assert_int_equal(err.code, ERR_DATABASE);
    }
    assert_false(viewed(w->s, NULL, &big, 90000, 99999, &k, &err));
    assert_int_equal(err.code, ERR_DATABASE);
    store_close(inputs);
}

static void test_view_tasks__a_second_connection_that_breaks_is_not_the_first_ones_end(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct store *inputs = pg_open(w->db, STORE_INPUTS);
    struct pg_campaign big = pg_campaign_make(w->db, 100);
    struct seen k = {0};
    pg_sql(w->db, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                  "WHERE application_name = 'drover inputs'");
    assert_false(
        view_tasks(w->s, inputs, big.campaign_id, big.stage_id, 0, 100, on_tasks, &k, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_false(store_alive(inputs));
    assert_true(store_alive(w->s));
    assert_int_equal(k.n, 0);
    store_close(inputs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_view_tasks__it_pages_through_waiting_and_held_tasks,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_view_tasks__damage_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_view_tasks__a_second_connection_that_breaks_is_not_the_first_ones_end, set_up,
            tear_down),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store view tasks", tests, NULL, NULL);
}
