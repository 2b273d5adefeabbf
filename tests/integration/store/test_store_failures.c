/* Aim: a part that fails has its final failure, by which retry, skip and people find it, though it
 * had no attempt; an upgrade gives the missing ones. Method: a fresh database a test in a real
 * cluster; the store functions and migrations act, SQL reads. */
#include "store/leader/attempts.h"
#include "store/leader/operations.h"
#include "store/leader/tasks.h"
#include "store/pg/migrate.h"
#include "tests/kit/pg_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PARTS 10
#include "led_world.h"

#define GIVES_THEM "0035_failed_unsaid"
#define FAILURES                                                                                   \
    "SELECT string_agg(concat_ws(' ', seq, cause, final, signature, message, lost_musd, "          \
    "attempt_id), ';' ORDER BY seq) FROM task_failure"

extern const struct migration migration_table[];

static void fail_unstarted(struct world *w, const int64_t *ids, size_t n, size_t want)
{
    struct err err = ERR_INIT;
    size_t moved = 99;
    begin(w);
    pg_good(store_tasks_fail(w->s, w->c.campaign_id, w->c.stage_id, CAUSE_BAD_INPUT, "it is gone",
                             ids, n, &moved, &err),
            &err);
    commit(w);
    assert_int_equal(moved, want);
}

/* The parts that retry and skip find are those that people see, before and after. */
static void test_failures__what_fails_without_an_attempt_has_its_failure(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    char selector[] = "{}";
    struct operation_row op = {.campaign_id = w->c.campaign_id, .selector_json = selector};
    struct task_row rows[PARTS];
    int64_t ids[] = {w->c.first_task + 9, w->c.first_task + 4, w->c.first_task + 7};
    size_t n = 0, moved = 0;
    pg_sql(w->db,
           "INSERT INTO task_failure (task_id, campaign_id, stage_id, seq, attempt_id, cause, "
           "final, signature, message, lost_musd) SELECT id, campaign_id, stage_id, seq, 5, 8, "
           "false, 's', 'm', 70 FROM task_run WHERE seq = 4");
    fail_unstarted(w, ids, 3, 3);
    fail_unstarted(w, ids, 3, 0); /* they wait no more */
    AUTO_FREE char *f = pg_text(w->db, FAILURES);
    AUTO_FREE char *want = xasprintf("4 %d t it is gone it is gone 70 5;7 %d t it is gone it is "
                                     "gone 0;9 %d t it is gone it is gone 0",
                                     CAUSE_BAD_INPUT, CAUSE_BAD_INPUT, CAUSE_BAD_INPUT);
    assert_string_equal(f, want);
    AUTO_FREE char *e = pg_text(w->db, "SELECT string_agg(concat_ws(' ', detail->>'first_part', "
                                       "detail->>'last_part', detail->>'n', detail->>'cause'), "
                                       "';') FROM event");
    assert_string_equal(e, "4 9 3 bad_input");
    op.id = pg_i64(w->db,
                   "INSERT INTO operation (campaign_id, kind, selector) VALUES (%lld, 'skip', "
                   "'{}') RETURNING id",
                   (long long)w->c.campaign_id);
    begin(w);
    pg_good(operation_page(w->s, &op, TASK_FAILED, 0, PARTS, rows, &n, &err), &err);
    assert_int_equal(n, 3);
    pg_good(store_tasks_move(w->s, w->c.campaign_id, w->c.stage_id, TASK_FAILED, TASK_SKIPPED,
                             CAUSE_NONE, ids, 3, &moved, NULL, &err),
            &err);
    commit(w);
    assert_int_equal(moved, 3);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task_failure"), 0);
}

/* Also when another leader than the one that knows why ends it. */
static void test_failures__a_part_of_which_no_request_can_be_made_says_why(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct intent in = pg_intent(w->s, &w->c, 3, 1);
    in.request = STR(ATTEMPT_NO_REQUEST);
    in.no_request = "rate: '{lr}' is no known variable \xff";
    begin(w);
    pg_good(store_intend(w->s, w->epoch, &in, 1, &err), &err);
    commit(w);
    assert_true(in.taken);
    struct attempt_record r = pg_record(&in, ATTEMPT_INTENDED, ATTEMPT_VOID);
    r.cause = CAUSE_BAD_REQUEST;
    r.signature = "s";
    r.release = r.task_moves = r.task_counts = true;
    r.task_to = TASK_FAILED;
    pg_book(&r);
    begin(w);
    pg_good(store_record(w->s, &r, 1, &err), &err);
    commit(w);
    AUTO_FREE char *f = pg_text(w->db, FAILURES);
    AUTO_FREE char *want = xasprintf("3 %d t s rate: '{lr}' is no known variable ? 0 %lld",
                                     CAUSE_BAD_REQUEST, (long long)in.attempt_id);
    assert_string_equal(f, want);
    assert_int_equal(pg_i64(w->db, "SELECT sum(held) FROM slots"), 0);
    assert_int_equal(pg_i64(w->db, "SELECT sum(reserved_musd) FROM money"), 0);
    pg_check_counters(w->db);
}

/* As in a database of the release before it. */
static void test_failures__an_upgrade_gives_the_missing_ones(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    int applied = 0;
    pg_sql(w->db, "UPDATE task_run SET state = 4, cause = 4 WHERE seq < 3;"
                  "UPDATE stage_run SET waiting = 7, failed = 3;"
                  "INSERT INTO task_failure (task_id, campaign_id, stage_id, seq, attempt_id, "
                  "cause, final, signature, message, lost_musd) SELECT id, campaign_id, stage_id, "
                  "seq, 5, 8, seq = 1, 's', 'm', 70 FROM task_run WHERE seq IN (1, 2, 6);"
                  "DELETE FROM schema_migration WHERE name = '" GIVES_THEM "'");
    assert_true(pg_i64(w->db, "SELECT count(*) FROM check_counters()") > 0);
    pg_good(migrate_run_table(w->db, migration_table, &applied, &err), &err);
    assert_int_equal(applied, 1);
    pg_check_counters(w->db);
#define GONE "a file system that it mounts is gone: its time was over, or somebody deleted it"
    AUTO_FREE char *f = pg_text(w->db, FAILURES);
    assert_string_equal(f, "0 4 t " GONE " " GONE " 0;1 8 t s m 70 5;2 4 t " GONE " " GONE
                           " 70 5;6 8 f s m 70 5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_failures__what_fails_without_an_attempt_has_its_failure),
        T(test_failures__a_part_of_which_no_request_can_be_made_says_why),
        T(test_failures__an_upgrade_gives_the_missing_ones),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store failures", tests, NULL, NULL);
}
