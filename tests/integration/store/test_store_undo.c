/* Aim: an undone retry leaves its parts as they had failed before, to the last column; what has
 * started since is left alone. Method: a fresh database a test in a real cluster; the store
 * functions act, SQL reads and compares all rows. */
#include "store/leader/attempts.h"
#include "store/leader/operations.h"
#include "store/leader/strays.h"
#include "store/leader/tasks.h"
#include "tests/kit/pg_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PARTS 100
#include "led_world.h"

static void fail_some(struct world *w)
{
    pg_sql(
        w->db,
        "UPDATE task_run SET state = 4, attempts = 3, names = 3, not_before_us = 9, cause = CASE "
        "WHEN seq < 10 THEN 7 WHEN seq < 20 THEN 8 ELSE 12 END WHERE seq < 30;"
        "UPDATE stage_run SET waiting = 70, failed = 30;"
        "INSERT INTO task_failure (task_id, campaign_id, stage_id, seq, cause, final, signature, "
        "message) SELECT id, campaign_id, stage_id, seq, cause, true, 's', 'm' FROM task_run "
        "WHERE state = 4");
}

#define HOW_IT_FAILED                                                                              \
    "SELECT ('x' || left(md5((SELECT string_agg(concat_ws(',', id, state, cause, attempts, "       \
    "names), ';' ORDER BY id) FROM task_run) || (SELECT string_agg(f::text, ';' ORDER BY "         \
    "task_id) FROM task_failure f) || (SELECT string_agg(h::text, ';' ORDER BY task_id) FROM "     \
    "task_change h)), 15))::bit(60)::bigint"

static size_t undo_from(struct world *w, int64_t operation_id, enum task_state from,
                        const int64_t *ids, size_t n)
{
    struct err err = ERR_INIT;
    int64_t moved_ids[30];
    size_t moved = 99;
    begin(w);
    pg_good(store_tasks_undo(w->s, w->c.campaign_id, w->c.stage_id, operation_id, from, ids, n,
                             &moved, moved_ids, &err),
            &err);
    commit(w);
    return moved;
}

static size_t undo(struct world *w, int64_t operation_id, const int64_t *ids, size_t n)
{
    return undo_from(w, operation_id, TASK_WAITING, ids, n);
}

static void test_undo__an_undone_retry_leaves_what_was(void **state)
{
    const struct task_changes to = {.instance_type_i = 1, .volume_gb = 450, .operation_id = 5};
    struct world *w = *state;
    struct err err = ERR_INIT;
    int64_t ids[30];
    size_t moved = 0, n = 0;
    struct retried_row rows[40];
    const struct operation_row op = {.id = 5}, other = {.id = 6};
    fail_some(w);
    pg_sql(w->db,
           "INSERT INTO task_change (task_id, campaign_id, volume_gb, cause_tries, "
           "signature_hash, same) SELECT id, campaign_id, 60, '{\"disk_full\":2}', 3, 4 FROM "
           "task_run WHERE seq < 7; UPDATE task_run SET not_before_us = 0");
    int64_t before = pg_i64(w->db, HOW_IT_FAILED);
    for (int i = 0; i < 30; i++) {
        ids[i] = w->c.first_task + i;
    }
    begin(w);
    pg_good(
        store_tasks_retry(w->s, w->c.campaign_id, w->c.stage_id, ids, 30, &to, &moved, NULL, &err),
        &err);
    pg_good(undo_page(w->s, &op, 40, rows, &n, &err), &err);
    assert_int_equal(n, 30);
    assert_true(rows[6].task_id == ids[6] && rows[6].volume_gb == 60 && rows[7].volume_gb == 0);
    pg_good(undo_page(w->s, &other, 40, rows, &n, &err), &err);
    assert_int_equal(n, 0);
    commit(w);
    assert_int_equal(undo(w, 6, ids, 30), 0); /* another's */
    assert_int_equal(undo(w, 5, ids, 20), 20);
    assert_int_equal(undo(w, 5, ids, 30), 10);
    assert_int_equal(undo(w, 5, ids, 30), 0);
    assert_true(pg_i64(w->db, HOW_IT_FAILED) == before);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM event WHERE detail->>'undone' = 'true' "
                                   "AND detail->>'to' = 'failed'"),
                     2);
}

/* One was tried since, one has ended, one was never tried: these are left as they are. */
static void test_undo__what_has_started_is_left_alone(void **state)
{
    const struct task_changes to = {.instance_type_i = -1, .operation_id = 5};
    struct world *w = *state;
    struct err err = ERR_INIT;
    int64_t ids[30];
    size_t moved = 0;
    fail_some(w);
    for (int i = 0; i < 30; i++) {
        ids[i] = w->c.first_task + i;
    }
    begin(w);
    pg_good(
        store_tasks_retry(w->s, w->c.campaign_id, w->c.stage_id, ids, 4, &to, &moved, NULL, &err),
        &err);
    commit(w);
    pg_sql(w->db,
           "UPDATE task_run SET names = names + 1 WHERE seq = 0;"
           "UPDATE task_run SET names = 0 WHERE seq = 2;"
           "UPDATE task_retried SET names = 0 WHERE task_id = %lld",
           (long long)ids[2]);
    begin(w);
    pg_good(store_tasks_move(w->s, w->c.campaign_id, w->c.stage_id, TASK_WAITING, TASK_CANCELLED,
                             CAUSE_NONE, ids + 1, 1, &moved, NULL, &err),
            &err);
    commit(w);
    assert_int_equal(moved, 1);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task_retried"), 3);
    assert_int_equal(undo(w, 5, ids, 30), 1);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task_retried"), 0);
    assert_int_equal(pg_i64(w->db, "SELECT sum(state) FROM task_run WHERE seq < 4"), 6 + 4);
}

/* Who holds them has not started them. */
static void test_undo__held_parts_fail_again(void **state)
{
    const struct task_changes to = {.instance_type_i = -1, .operation_id = 5};
    struct world *w = *state;
    struct err err = ERR_INIT;
    int64_t ids[30];
    size_t moved = 0, n = 0;
    struct retried_row rows[40];
    const struct operation_row op = {.id = 5};
    fail_some(w);
    for (int i = 0; i < 30; i++) {
        ids[i] = w->c.first_task + i;
    }
    begin(w);
    pg_good(
        store_tasks_retry(w->s, w->c.campaign_id, w->c.stage_id, ids, 6, &to, &moved, NULL, &err),
        &err);
    pg_good(store_tasks_move(w->s, w->c.campaign_id, w->c.stage_id, TASK_WAITING, TASK_HELD,
                             CAUSE_NONE, ids, 4, &moved, NULL, &err),
            &err);
    commit(w);
    pg_sql(w->db, "INSERT INTO task_retried SELECT (jsonb_populate_record(r, "
                  "'{\"task_id\":9999999}')).* FROM task_retried r ORDER BY task_id LIMIT 1");
    pg_good(undo_page(w->s, &op, 40, rows, &n, &err), &err);
    assert_int_equal(n, 7);
    assert_int_equal(rows[3].state, TASK_HELD);
    assert_int_equal(rows[5].state, TASK_WAITING);
    assert_int_equal(rows[6].state, TASK_CANCELLED); /* its row is lost */
    assert_int_equal(undo_from(w, 5, TASK_CANCELLED, &rows[6].task_id, 1), 0);
    assert_int_equal(undo_from(w, 5, TASK_HELD, ids, 4), 4);
    assert_int_equal(undo_from(w, 5, TASK_WAITING, ids + 4, 2), 2);
    assert_int_equal(pg_i64(w->db, "SELECT failed * 100 + held FROM stage_run"), 3000);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task_failure"), 30);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task_retried"), 0);
}

static void record(struct world *w, struct attempt_record *r)
{
    struct err err = ERR_INIT;
    begin(w);
    pg_good(store_record(w->s, r, 1, &err), &err);
    commit(w);
}

/* It was given up as void, failed, was retried, and its job turns out to live: it has started. So
 * has one whose job is found without a row. */
static void test_undo__one_whose_job_came_back_is_left_alone(void **state)
{
    const struct task_changes to = {.instance_type_i = -1, .operation_id = 5};
    struct world *w = *state;
    struct err err = ERR_INIT;
    size_t moved = 0;
    int64_t task = 0;
    bool revived = false;
    const int64_t ids[] = {w->c.first_task, w->c.first_task + 1, w->c.first_task + 2};
    struct intent in = pg_intent(w->s, &w->c, 0, 1);
    begin(w);
    pg_good(store_intend(w->s, w->epoch, &in, 1, &err), &err);
    commit(w);
    struct attempt_record r = pg_record(&in, ATTEMPT_INTENDED, ATTEMPT_VOID);
    r.release = r.task_moves = true;
    r.task_to = TASK_WAITING;
    pg_book(&r);
    record(w, &r);
    pg_sql(w->db, "UPDATE task_run SET state = 4, names = 1, cause = 7 WHERE seq < 3;"
                  "UPDATE stage_run SET waiting = 97, failed = 3;"
                  "INSERT INTO task_failure (task_id, campaign_id, stage_id, seq, cause, final, "
                  "signature, message) SELECT id, campaign_id, stage_id, seq, 7, true, '', '' "
                  "FROM task_run WHERE state = 4");
    begin(w);
    pg_good(
        store_tasks_retry(w->s, w->c.campaign_id, w->c.stage_id, ids, 3, &to, &moved, NULL, &err),
        &err);
    pg_good(store_attempt_revive(w->s, w->epoch, in.name.s, "", 1000000, &revived, &err), &err);
    struct adoption a = {.intent = pg_intent(w->s, &w->c, 1, 2), .created_us = 7 * USEC_PER_SEC};
    pg_good(store_adopt(w->s, w->epoch, &a, &task, &err), &err);
    commit(w);
    assert_true(moved == 3 && revived && task == ids[1]);
    assert_int_equal(pg_i64(w->db, "SELECT task_id FROM task_retried"), ids[2]);
    r = pg_record(&in, ATTEMPT_UNKNOWN, ATTEMPT_FAILED); /* and fails again: it backs off */
    r.release = r.task_moves = true;
    r.cause = CAUSE_INTERNAL;
    r.task_to = TASK_WAITING;
    pg_book(&r);
    record(w, &r);
    pg_sql(
        w->db,
        "INSERT INTO task_failure (task_id, campaign_id, stage_id, seq, cause, final, signature, "
        "message) SELECT id, campaign_id, stage_id, seq, 7, false, '', '' FROM task_run "
        "WHERE seq = 0 ON CONFLICT DO NOTHING");
    assert_int_equal(undo(w, 5, ids, 3), 1);
    assert_int_equal(pg_i64(w->db, "SELECT state FROM task_run WHERE seq = 0"), TASK_WAITING);
    assert_int_equal(pg_i64(w->db, "SELECT state FROM task_run WHERE seq = 1"), TASK_ACTIVE);
    assert_int_equal(pg_i64(w->db, "SELECT state FROM task_run WHERE seq = 2"), TASK_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_undo__an_undone_retry_leaves_what_was),
        T(test_undo__what_has_started_is_left_alone),
        T(test_undo__held_parts_fail_again),
        T(test_undo__one_whose_job_came_back_is_left_alone),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store undo", tests, NULL, NULL);
}
