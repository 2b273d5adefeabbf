/* Aim: bulk moves touch exactly the tasks that are in `from`, keep the counters, write one event a
 * batch and stay HOT; retries happen once; pages of an operation name what its selector says.
 * Method: a fresh database a test in a real cluster; the store functions act, SQL reads. */
#include "store/leader/campaigns.h"
#include "store/leader/lease.h"
#include "store/leader/operations.h"
#include "store/leader/quotas.h"
#include "store/leader/tasks.h"
#include "store/rows/view.h"
#include "tests/kit/pg_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PARTS 100
#include "led_world.h"

static size_t move(struct world *w, enum task_state from, enum task_state to, const int64_t *ids,
                   size_t n, int64_t *ret_ids)
{
    struct err err = ERR_INIT;
    size_t moved = 999;
    begin(w);
    pg_good(store_tasks_move(w->s, w->c.campaign_id, w->c.stage_id, from, to, CAUSE_NONE, ids, n,
                             &moved, ret_ids, &err),
            &err);
    commit(w);
    return moved;
}

static void fill(struct world *w, int64_t *ids, int from, int n, int step)
{
    for (int i = 0; i < n; i++) {
        ids[i] = w->c.first_task + from + i * step;
    }
}

static void test_tasks__neighbours_move_with_counters_and_one_event(void **state)
{
    struct world *w = *state;
    int64_t ids[20];
    fill(w, ids, 10, 20, 1);
    assert_int_equal(move(w, TASK_WAITING, TASK_HELD, ids, 20, NULL), 20);
    assert_int_equal(pg_i64(w->db,
                            "SELECT count(*) FROM task_run WHERE state = 2 AND seq BETWEEN 10 "
                            "AND 29 AND updated_us > 0"),
                     20);
    AUTO_FREE char *c = pg_text(w->db, "SELECT concat_ws(' ', waiting, held) FROM stage_run");
    assert_string_equal(c, "80 20");
    AUTO_FREE char *e =
        pg_text(w->db, "SELECT string_agg(concat_ws(' ', kind, detail->>'campaign', "
                       "detail->>'stage', detail->>'from', detail->>'to', "
                       "detail->>'first_part', detail->>'last_part', detail->>'n'), ';') "
                       "FROM event");
    AUTO_FREE char *want = xasprintf("part.state %lld %lld waiting held 10 29 20",
                                     (long long)w->c.campaign_id, (long long)w->c.stage_id);
    assert_string_equal(e, want);
}

static void test_tasks__only_what_is_in_from_moves(void **state)
{
    struct world *w = *state;
    int64_t ids[PARTS];
    int64_t moved[PARTS];
    fill(w, ids, 0, 10, 1);
    assert_int_equal(move(w, TASK_WAITING, TASK_HELD, ids, 10, NULL), 10);
    assert_int_equal(move(w, TASK_WAITING, TASK_HELD, ids, 10, NULL), 0); /* the same again */
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM event"), 1);
    fill(w, ids, 5, 10, 1); /* five of ten */
    assert_int_equal(move(w, TASK_WAITING, TASK_HELD, ids, 10, NULL), 5);
    assert_int_equal(
        pg_i64(w->db, "SELECT (detail->>'n')::int FROM event ORDER BY id DESC LIMIT 1"), 5);
    fill(w, ids, 0, 20, 1);
    assert_int_equal(move(w, TASK_HELD, TASK_WAITING, ids, 20, moved), 15);
    assert_int_equal(moved[0], w->c.first_task);
    assert_int_equal(moved[14], w->c.first_task + 14);
    assert_int_equal(move(w, TASK_WAITING, TASK_HELD, ids, 0, NULL), 0); /* none asked for */
    ids[0] = w->c.first_task + PARTS + 7; /* and one that is not there */
    assert_int_equal(move(w, TASK_WAITING, TASK_HELD, ids, 1, NULL), 0);
}

static void test_tasks__ids_may_be_scattered_unsorted_and_double(void **state)
{
    struct world *w = *state;
    int64_t ids[PARTS];
    int64_t moved[PARTS];
    fill(w, ids, 0, 50, 2); /* 50 runs of one */
    ids[0] = w->c.first_task + 98;
    ids[49] = w->c.first_task;
    ids[48] = w->c.first_task + 98; /* twice */
    assert_int_equal(move(w, TASK_WAITING, TASK_CANCELLED, ids, 50, moved), 49);
    AUTO_FREE char *e = pg_text(w->db, "SELECT concat_ws(' ', detail->>'first_part', "
                                       "detail->>'last_part', detail->>'n') FROM event");
    assert_string_equal(e, "0 98 49");
    int64_t few[] = {w->c.first_task + 41, w->c.first_task + 3, w->c.first_task + 5,
                     w->c.first_task + 41};
    assert_int_equal(move(w, TASK_WAITING, TASK_SKIPPED, few, 4, NULL), 3); /* three runs */
    assert_int_equal(pg_i64(w->db, "SELECT skipped FROM stage_run"), 3);
}

static void test_tasks__another_stage_or_campaign_is_left_alone(void **state)
{
    struct world *w = *state;
    struct pg_campaign other = pg_campaign_make(w->db, 5);
    int64_t ids[] = {other.first_task, other.first_task + 1, w->c.first_task};
    assert_int_equal(move(w, TASK_WAITING, TASK_HELD, ids, 3, NULL), 1);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task_run WHERE state <> 0"), 1);
}

static void test_tasks__an_edge_that_is_not_in_the_table_is_refused(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    int64_t id = w->c.first_task;
    size_t moved;
    begin(w);
    assert_false(store_tasks_move(w->s, w->c.campaign_id, w->c.stage_id, TASK_DONE, TASK_WAITING,
                                  CAUSE_NONE, &id, 1, &moved, NULL, &err));
    assert_int_equal(err.code, ERR_INTERNAL);
    leader_rollback(w->s);
}

static void test_tasks__every_transition_is_a_hot_update(void **state)
{
    struct world *w = *state;
    int64_t ids[PARTS];
    fill(w, ids, 0, PARTS, 1);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(move(w, TASK_WAITING, TASK_HELD, ids, PARTS, NULL), PARTS);
        assert_int_equal(move(w, TASK_HELD, TASK_WAITING, ids, PARTS, ids), PARTS);
    }
    store_close(w->s); /* a session reports its counts at its end */
    w->s = pg_open(w->db, STORE_LEADER);
    const char *tables[] = {"task_run_default", "stage_run", "lease"};
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        AUTO_FREE char *r = NULL;
        for (int k = 0; k < 100 && r == NULL; k++) { /* the session ends by itself */
            r = pg_text(w->db,
                        "SELECT n_tup_upd || ' ' || n_tup_hot_upd FROM pg_stat_user_tables "
                        "WHERE relname = '%s' AND n_tup_upd >= %d",
                        tables[i],
                        i == 0   ? 40 * PARTS
                        : i == 1 ? 40
                                 : 1);
        }
        assert_non_null(r);
        struct str hot = str_of(r);
        struct str all = str_split(&hot, ' ');
        assert_true(str_eq(all, hot));
    }
}

static void test_tasks__new_tasks_enter_the_counters_once(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    long long c = (long long)w->c.campaign_id;
    long long stage = (long long)w->c.stage_id;
    pg_sql(w->db,
           "UPDATE stage_input SET tasks = 105; WITH new AS (INSERT INTO task_run (campaign_id, "
           "id, stage_id, seq) SELECT %lld, %lld + g, %lld, g FROM generate_series(100, 104) g "
           "RETURNING *) INSERT INTO task (campaign_id, id, stage_id, seq) SELECT campaign_id, id, "
           "stage_id, seq FROM new",
           c, (long long)w->c.first_task, stage);
    begin(w);
    pg_good(store_stage_take(w->s, stage, 105, &err), &err);
    commit(w);
    AUTO_FREE char *t = pg_text(w->db, "SELECT concat_ws(' ', taken, waiting) FROM stage_run");
    assert_string_equal(t, "105 105");
    AUTO_FREE char *e =
        pg_text(w->db, "SELECT concat_ws(' ', detail->>'first_part', "
                       "detail->>'last_part', detail->>'n', detail->>'to') FROM event");
    assert_string_equal(e, "100 104 5 waiting");
    /* Again, and more than there are. */
    const int64_t wrong[] = {105, 106, 0};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        begin(w);
        assert_false(store_stage_take(w->s, stage, wrong[i], &err));
        assert_int_equal(err.code, ERR_CONFLICT);
        leader_rollback(w->s);
    }
    pg_check_counters(w->db);
}

static struct operation_row operation(struct world *w, const char *kind, const char *selector)
{
    struct err err = ERR_INIT;
    pg_sql(w->db,
           "DELETE FROM operation; INSERT INTO operation (campaign_id, kind, selector) VALUES "
           "(%lld, '%s', '%s')",
           (long long)w->c.campaign_id, kind, selector);
    struct operation_row *rows = NULL;
    size_t n = 0;
    pg_good(view_operations(w->s, &rows, &n, &err), &err);
    assert_int_equal(n, 1);
    struct operation_row op = rows[0];
    free(rows);
    return op;
}

static void operation_done(struct operation_row *op)
{
    free(op->selector_json);
    free(op->changes_json);
}

/* Parts 0..29 failed, thrice ten causes; failure rows as the leader leaves them. */
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

static void test_tasks__an_operations_pages_hold_what_its_selector_names(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    fail_some(w);
    const struct {
        const char *selector;
        size_t n;
    } cases[] = {{"{}", 30},
                 {"{\"stage\":\"download\"}", 30},
                 {"{\"stage\":\"other\"}", 0},
                 {"{\"cause\":[\"disk_full\"]}", 10},
                 {"{\"cause\":[\"disk_full\",\"oom\"],\"state\":\"failed\"}", 20},
                 {"{\"cause\":[]}", 30},
                 {"{\"parts\":[0,9,10,29,30,99,12345]}", 4},
                 {"{\"parts\":[0,9,10],\"cause\":[\"oom\"]}", 1}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct operation_row op = operation(w, "retry", cases[i].selector);
        struct task_row rows[7];
        size_t total = 0;
        size_t n = 1;
        int64_t after = 0;
        while (n > 0) {
            pg_good(operation_page(w->s, &op, TASK_FAILED, after, 7, rows, &n, &err), &err);
            for (size_t k = 0; k < n; k++) {
                assert_true(rows[k].id > after);
                assert_int_equal(rows[k].state, TASK_FAILED);
                after = rows[k].id;
            }
            total += n;
        }
        assert_int_equal(total, cases[i].n);
        operation_done(&op);
    }
    struct operation_row earlier = operation(w, "skip", "{}");
    struct task_row first[1];
    size_t first_n = 0;
    pg_sql(w->db, "UPDATE task_failure SET at = clock_timestamp() WHERE seq = 0");
    pg_good(operation_page(w->s, &earlier, TASK_FAILED, 0, 1, first, &first_n, &err), &err);
    assert_true(first_n == 1 && first[0].seq == 1); /* part 0 has failed since */
    assert_true(first[0].size > 0);                 /* a retry queues it by it */
    operation_done(&earlier);
    struct operation_row waiting = operation(w, "skip", "{\"parts\":[29,30,31,99,100]}");
    struct task_row rest[10];
    size_t rest_n = 0;
    pg_good(operation_page(w->s, &waiting, TASK_WAITING, 0, 3, rest, &rest_n, &err), &err);
    assert_int_equal(rest_n, 3);
    assert_true(rest[0].size > 0); /* they are queued by it again */
    operation_done(&waiting);
    const char *bad[] = {"{\"cause\":[\"nonsense\"]}", "{\"cause\":[1]}", "{\"parts\":[-1]}",
                         "{\"parts\":[\"1\"]}",        "{\"stage\":1}",   "{\"parts\":5}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct operation_row op = operation(w, "retry", bad[i]);
        struct task_row rows[7];
        size_t n = 0;
        err_clear(&err);
        assert_false(operation_page(w->s, &op, TASK_FAILED, 0, 7, rows, &n, &err));
        assert_true(err.code == ERR_INVALID || err.code == ERR_MALFORMED);
        operation_done(&op);
    }
}

static void test_tasks__a_retry_happens_once_and_forgets_what_was_tried(void **state)
{
    /* rung, volume, run time; what is not named stays */
    static const struct task_changes to[] = {{-1, 450, 0, 1}, {-1, 0, 0, 2}, {-1, 0, 14400, 3},
                                             {2, 0, 0, 4},    {-1, 0, 0, 5}, {0, 0, 0, 6}};
    static const char *const then[] = {"0 450 0",     "0 450 0",     "0 450 14400",
                                       "2 450 14400", "2 450 14400", "0 450 14400"};
    struct world *w = *state;
    struct err err = ERR_INIT;
    fail_some(w);
    pg_sql(w->db,
           "INSERT INTO task_change (task_id, campaign_id, volume_gb, cause_tries) VALUES (%lld, "
           "%lld, 60, '{\"disk_full\":2}')",
           (long long)w->c.first_task, (long long)w->c.campaign_id);
    int64_t ids[20];
    int64_t moved_ids[20];
    size_t moved = 0;
    fill(w, ids, 0, 20, 1);
    for (int i = 0; i < 2; i++) {
        begin(w);
        pg_good(store_tasks_retry(w->s, w->c.campaign_id, w->c.stage_id, ids, 20, &to[i], &moved,
                                  moved_ids, &err),
                &err);
        commit(w);
        assert_int_equal(moved, i == 0 ? 20 : 0);
    }
    assert_int_equal(moved_ids[19], w->c.first_task + 19);
    assert_int_equal(pg_i64(w->db,
                            "SELECT count(*) FROM task_run WHERE seq < 20 AND state = 0 AND "
                            "attempts = 0 AND names = 3 AND cause = 0 AND not_before_us = 0"),
                     20);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task_failure"), 10);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task_change WHERE volume_gb = 450 AND "
                                   "cause_tries = '{}'"),
                     20);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM event"), 1);
    /* Without a new volume only what was changed before stays, with its tries forgotten. */
    pg_sql(w->db, "UPDATE task_change SET cause_tries = '{\"oom\":1}'");
    fill(w, ids, 20, 10, 1);
    begin(w);
    pg_good(store_tasks_retry(w->s, w->c.campaign_id, w->c.stage_id, ids, 10, &to[1], &moved, NULL,
                              &err),
            &err);
    commit(w);
    assert_int_equal(moved, 10);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task_change"), 20);
    for (size_t i = 1; i < ARRAY_LEN(to); i++) {
        pg_sql(w->db, "UPDATE task_run SET state = 4 WHERE seq = 0;"
                      "UPDATE stage_run SET waiting = waiting - 1, failed = failed + 1");
        begin(w);
        pg_good(store_tasks_retry(w->s, w->c.campaign_id, w->c.stage_id, &w->c.first_task, 1,
                                  &to[i], &moved, NULL, &err),
                &err);
        commit(w);
        assert_int_equal(
            pg_i64(w->db,
                   "SELECT count(*) FROM task_change WHERE task_id = %lld AND concat_ws("
                   "' ', instance_type_i, volume_gb, max_runtime_s) = '%s'",
                   (long long)w->c.first_task, then[i]),
            1);
    }
}

static void test_tasks__skipping_a_failed_task_drops_its_failure(void **state)
{
    struct world *w = *state;
    int64_t ids[10];
    fail_some(w);
    fill(w, ids, 0, 10, 1);
    assert_int_equal(move(w, TASK_FAILED, TASK_SKIPPED, ids, 10, NULL), 10);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task_failure"), 20);
}

static void test_tasks__an_operation_ends_once(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct operation_row op = operation(w, "skip", "{}");
    assert_string_equal(op.kind, "skip");
    begin(w);
    pg_good(store_operation_progress(w->s, op.id, OPERATION_RUNNING, 7, &err), &err);
    pg_good(store_operation_progress(w->s, op.id, OPERATION_DONE, 9, &err), &err);
    commit(w);
    begin(w);
    assert_false(store_operation_progress(w->s, op.id, OPERATION_DONE, 9, &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    leader_rollback(w->s);
    AUTO_FREE char *o =
        pg_text(w->db, "SELECT concat_ws(' ', state, done, ended_at IS NOT NULL) FROM "
                       "operation");
    assert_string_equal(o, "done 9 t");
    AUTO_FREE char *e =
        pg_text(w->db,
                "SELECT string_agg((detail->>'from') || '>' || (detail->>'to') || "
                "' ' || (detail->>'done'), ', ' ORDER BY id) FROM event WHERE kind = "
                "'operation.state' AND (detail->>'operation')::bigint = %lld",
                (long long)op.id);
    assert_string_equal(e, "accepted>running 7, running>done 9");
    operation_done(&op);
}

static void test_tasks__campaign_and_stage_states_move_along_their_edges_only(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    int64_t c = w->c.campaign_id;
    begin(w);
    pg_good(store_campaign_state(w->s, c, CAMPAIGN_RUNNING, CAMPAIGN_HELD, "budget", 3, &err),
            &err);
    pg_good(store_stage_state(w->s, w->c.stage_id, STAGE_RUNNING, STAGE_HELD, "breaker", &err),
            &err);
    pg_good(store_stage_wait_reason(w->s, w->c.stage_id, WAIT_HELD, &err), &err);
    pg_good(store_alert(w->s, c, "look here", &err), &err);
    commit(w);
    AUTO_FREE char *t =
        pg_text(w->db, "SELECT concat_ws(' ', r.state, r.reason, r.taken_version, s.state, "
                       "s.reason, s.wait_reason) FROM campaign_run r, stage_run s");
    assert_string_equal(t, "held budget 3 held breaker held");
    AUTO_FREE char *k = pg_text(w->db, "SELECT string_agg(kind, ' ' ORDER BY id) FROM event");
    assert_string_equal(k, "campaign.state stage.state alert");
    begin(w);
    assert_false(store_campaign_state(w->s, c, CAMPAIGN_RUNNING, CAMPAIGN_PAUSED, "", 3, &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    leader_rollback(w->s);
    begin(w);
    assert_false(store_campaign_state(w->s, c, CAMPAIGN_CANCELLED, CAMPAIGN_RUNNING, "", 3, &err));
    assert_int_equal(err.code, ERR_INTERNAL);
    assert_false(store_stage_state(w->s, w->c.stage_id, STAGE_SUCCEEDED, STAGE_BLOCKED, "", &err));
    assert_int_equal(err.code, ERR_INTERNAL);
    leader_rollback(w->s);
    pg_sql(w->db, "UPDATE campaign_run SET state = 'succeeded', ended_at = now(); "
                  "UPDATE stage_run SET state = 'skipped', ended_at = now()");
    begin(w); /* a person's retry leads back */
    pg_good(store_campaign_state(w->s, c, CAMPAIGN_SUCCEEDED, CAMPAIGN_RUNNING, "", 3, &err), &err);
    pg_good(store_stage_state(w->s, w->c.stage_id, STAGE_SKIPPED, STAGE_BLOCKED, "", &err), &err);
    commit(w);
    AUTO_FREE char *again =
        pg_text(w->db, "SELECT concat_ws(' ', r.state, r.ended_at IS NULL, s.state, s.ended_at IS "
                       "NULL) FROM campaign_run r, stage_run s");
    assert_string_equal(again, "running t blocked t");
}

static void test_tasks__what_came_instead_of_an_answer_goes_with_its_wait_reason(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    static const char shown[] = "SELECT concat_ws(' ', wait_reason, wait_detail, "
                                "extract(epoch FROM wait_again_at)::bigint) FROM stage_run";
    begin(w);
    pg_good(store_stage_unchecked(w->s, w->c.stage_id, WAIT_UNCHECKED, "503 \xff",
                                  1800000000 * USEC_PER_SEC, &err),
            &err);
    commit(w);
    AUTO_FREE char *told = pg_text(w->db, shown);
    assert_string_equal(told, "unchecked 503 ? 1800000000");
    begin(w);
    pg_good(store_stage_wait_reason(w->s, w->c.stage_id, WAIT_SLOTS, &err), &err);
    commit(w);
    AUTO_FREE char *over = pg_text(w->db, shown);
    assert_string_equal(over, "slots ");
}

static void test_tasks__campaigns_stages_and_limits_read_back(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    pg_sql(
        w->db,
        "INSERT INTO cap (level, ref_id, limit_musd, at_limit) VALUES ('campaign', %lld, 7000000, "
        "'hold'), ('global', 0, 9000000, 'drain'); INSERT INTO cap (level, ref_id, limit_musd, "
        "per_task_musd) VALUES ('stage', %lld, 5000000, 12)",
        (long long)w->c.campaign_id, (long long)w->c.stage_id);
    pg_sql(w->db, "UPDATE campaign_run SET reason = 'budget' WHERE campaign_id = %lld",
           (long long)w->c.campaign_id);
    struct campaign_row c;
    pg_good(view_campaign(w->s, w->c.campaign_id, &c, &err), &err);
    assert_true(c.held_for_money);
    assert_int_equal(c.cap_musd, 7000000);
    assert_int_equal(c.at_limit, AT_LIMIT_HOLD);
    assert_int_equal(c.parts_limit, -1);
    assert_int_equal(c.wanted, WANTED_RUN);
    assert_string_equal(c.spec_json, "{}");
    free(c.spec_json);
    struct stage_row *st = NULL;
    size_t n = 0;
    pg_good(view_stages(w->s, w->c.campaign_id, &st, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_string_equal(st[0].name, "download");
    assert_int_equal(st[0].counts[TASK_WAITING], PARTS);
    assert_int_equal(st[0].cap_musd, 5000000);
    assert_int_equal(st[0].per_task_musd, 12);
    assert_true(st[0].closed);
    free(st);
    struct campaign_version *v = NULL;
    pg_good(view_versions(w->s, &v, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_int_equal(v[0].tasks, PARTS + 1);
    free(v);
    assert_false(view_campaign(w->s, 12345, &c, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    struct task_input in;
    pg_good(task_input_get(w->s, w->c.campaign_id, w->c.first_task + 3, &in, &err), &err);
    assert_string_equal(in.uri, "s3://b/3");
    assert_int_equal(in.size, 1003);
    free(in.uri);
    assert_false(task_input_get(w->s, w->c.campaign_id, 1, &in, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
}

/* Somebody has written a number of parts that there are not: its own campaign cannot take them in,
 * and what is read of all campaigns is still read. */
static void test_tasks__parts_that_do_not_exist_stop_their_campaign_alone(void **state)
{
    static const char *const many[] = {"9223372036854775807", "4000000000", "101"};
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct campaign_version *v = NULL;
    size_t n = 0;
    pg_sql(w->db, "INSERT INTO stage (campaign_id, seq, name) VALUES (%lld, 1, 'more')",
           (long long)w->c.campaign_id);
    pg_sql(w->db, "INSERT INTO stage_input (stage_id, campaign_id, tasks, closed) SELECT id, "
                  "campaign_id, 9, true FROM stage WHERE name = 'more'");
    for (size_t i = 0; i < ARRAY_LEN(many); i++) {
        pg_sql(w->db, "UPDATE stage_input SET tasks = %s WHERE stage_id = %lld", many[i],
               (long long)w->c.stage_id);
        pg_good(view_versions(w->s, &v, &n, &err), &err);
        assert_int_equal(n, 1);
        free(v);
        begin(w);
        assert_false(store_stage_take(w->s, w->c.stage_id, strtoll(many[i], NULL, 10), &err));
        assert_int_equal(err.code, ERR_CONFLICT);
        leader_rollback(w->s);
    }
    pg_check_counters(w->db);
}

static void test_tasks__quotas_prices_and_others_use_are_kept_and_forgotten(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    begin(w);
    for (int i = 1; i <= 2; i++) {
        pg_good(store_quota_put(w->s, "ml.m5.large", MARKET_ON_DEMAND, false, 4 * i, &err), &err);
        pg_good(store_price_put(w->s, "ml.m5.large", 115000 * i, "file", &err), &err);
        pg_good(store_slots_learned(w->s, "ml.m5.large", MARKET_ON_DEMAND, i, 7 * i, 6, &err),
                &err);
    }
    commit(w);
    struct slots_row *s = NULL;
    size_t n = 0;
    pg_good(view_slots(w->s, &s, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_int_equal(s[0].limit, 8);
    assert_int_equal(s[0].price_musd_per_hour, 230000);
    assert_int_equal(s[0].foreign, 2);
    assert_int_equal(s[0].foreign_us, 14);
    assert_int_equal(s[0].refused_limit, 6);
    assert_int_equal(s[0].warm_limit, -1);
    free(s);
    begin(w);
    assert_false(store_quota_put(w->s, "ml.m5.large", MARKET_ON_DEMAND, false, -1, &err));
    assert_int_equal(err.code, ERR_DATABASE);
    assert_string_equal(err.sqlstate, "23514");
    leader_rollback(w->s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_tasks__neighbours_move_with_counters_and_one_event),
        T(test_tasks__only_what_is_in_from_moves),
        T(test_tasks__ids_may_be_scattered_unsorted_and_double),
        T(test_tasks__another_stage_or_campaign_is_left_alone),
        T(test_tasks__an_edge_that_is_not_in_the_table_is_refused),
        T(test_tasks__every_transition_is_a_hot_update),
        T(test_tasks__new_tasks_enter_the_counters_once),
        T(test_tasks__an_operations_pages_hold_what_its_selector_names),
        T(test_tasks__a_retry_happens_once_and_forgets_what_was_tried),
        T(test_tasks__skipping_a_failed_task_drops_its_failure),
        T(test_tasks__an_operation_ends_once),
        T(test_tasks__campaign_and_stage_states_move_along_their_edges_only),
        T(test_tasks__what_came_instead_of_an_answer_goes_with_its_wait_reason),
        T(test_tasks__campaigns_stages_and_limits_read_back),
        T(test_tasks__parts_that_do_not_exist_stop_their_campaign_alone),
        T(test_tasks__quotas_prices_and_others_use_are_kept_and_forgotten),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store tasks", tests, NULL, NULL);
}
