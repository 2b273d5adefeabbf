/* Aim: what is kept for a time only goes in bounded steps, and what is kept for good stays true at
 * each of them: idempotency keys, archived campaigns. Method: the leader's functions on a real
 * database; check_counters() and the cost page after every step, and a reader in the way of a
 * campaign's tables. */
#include "store/api/notices.h"
#include "store/leader/maintenance.h"
#include "store/leader/strays.h"
#include <libpq-fe.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define PARTS 12
#include "retention_world.h"

static void test_retention__expired_keys_go_in_batches(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct store *s = pg_open(w->db, STORE_MAINTENANCE);
    pg_sql(w->db, "INSERT INTO idempotency_key (token_id, key, body_hash, status, answer, "
                  "created_at) SELECT 't', g::text, sha256(''), 201, repeat('x', 5000), "
                  "now() - interval '1 hour' * g * 24 FROM generate_series(1, 30) g");
    int64_t n = -1, seen[4];
    for (size_t i = 0; i < ARRAY_LEN(seen); i++) {
        pg_good(store_keys_expire(s, 10, &n, &err), &err);
        seen[i] = n;
        if (i == 0) { /* the oldest first */
            assert_int_equal(pg_i64(w->db, "SELECT max(key::int) FROM idempotency_key"), 20);
        }
    }
    const int64_t want[] = {10, 10, 4, 0};
    assert_memory_equal(seen, want, sizeof want);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM idempotency_key"), 6);
    store_close(s);
}

/* PostgreSQL's clock was a year ahead and was set right: what was to be told soon is told soon. */
static void test_retention__a_clock_that_was_ahead_silences_no_webhook(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    pg_sql(w->db,
           "INSERT INTO webhook (name, url, format, kinds, secret, busy_until) SELECT 'w' || y, "
           "'https://h/', 'json', '{done}', sha256(''), now() + interval '1 s' + y * interval "
           "'1 year' FROM generate_series(0, 1) y;"
           "INSERT INTO notice (kind, due_at) SELECT 'done', now() + interval '1 hour' + y * "
           "interval '1 year' FROM generate_series(0, 1) y;"
           "INSERT INTO webhook_delivery (webhook_id, notice_id, next_at) SELECT w.id, n.id, "
           "n.due_at FROM webhook w, notice n");
    pg_good(store_notice_forget(w->s, &err), &err);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM notice WHERE due_at <= clock_timestamp()"),
                     1);
    assert_int_equal(
        pg_i64(w->db, "SELECT count(*) FROM webhook_delivery WHERE next_at <= clock_timestamp()"),
        2);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM webhook WHERE busy_until IS NULL"), 1);
    pg_sql(w->db, "DELETE FROM webhook; DELETE FROM notice");
}

#define OLD_EVENTS 400000

/* Days without a table (a leader that could not make them) leave more events than one statement
 * deletes; tables of days and the rest of the maintenance come all the same. */
static void test_retention__many_old_events_go_in_batches(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct store *s = pg_open(w->db, STORE_MAINTENANCE);
    pg_sql(w->db,
           "INSERT INTO event (at, campaign_id, kind, detail) SELECT now() - interval '20 days' + "
           "interval '1 ms' * g, 1, 'x', '{}' FROM generate_series(1, %d) g;"
           "INSERT INTO event (campaign_id, kind, detail) VALUES (1, 'x', '{}')",
           OLD_EVENTS);
    pg_good(store_plain(s, "SET statement_timeout = '100ms'", &err), &err);
    bool over = false;
    int64_t n = 0, all = 0;
    for (int i = 0; i < 1000 && !over; i++) { /* what fails is tried again */
        bool ok = store_events_expire(s, 5000, &n, &err);
        all += ok ? n : 0;
        over = ok && n < 5000 && store_events_maintain(s, &err);
    }
    pg_good(over, &err);
    assert_int_equal(all, OLD_EVENTS);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM event WHERE campaign_id = 1"), 1);
    assert_int_equal(/* today's first event lies in the default partition */
                     pg_i64(w->db,
                            "SELECT count(*) FROM pg_inherits WHERE inhparent = 'event'::regclass"),
                     3);
    store_close(s);
}

static void test_retention__an_archived_campaign_keeps_its_ledger_and_its_costs(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    static const char *const gone[] = {"attempt",      "task", "task_run",      "task_change",
                                       "task_failure", "pool", "metric_series", "parked"};
    live_and_end(w);
    struct pg_campaign other = pg_campaign_make(w->db, 3);
    int64_t ledger = count(w, "ledger");
    AUTO_FREE char *counters = pg_text(w->db, "SELECT string_agg(s::text, ' ') FROM stage_run s");
    assert_true(ask(w));
    assert_false(ask(w)); /* twice is once */
    pg_sql(w->db, "DELETE FROM task WHERE campaign_id = %lld AND seq IN (1, 11)",
           (long long)w->c.campaign_id);
    for (size_t i = 0; i < ARRAY_LEN(gone); i++) {
        assert_true(count(w, gone[i]) > 0);
    }
    assert_in_range(archive(w), 15, 40);
    for (size_t i = 0; i < ARRAY_LEN(gone); i++) {
        assert_int_equal(count(w, gone[i]), 0);
    }
    assert_int_equal(pg_i64(w->db, "SELECT (SELECT count(*) FROM metric_point) + (SELECT count(*) "
                                   "FROM metric_bucket) + (SELECT count(*) FROM metric_source)"),
                     0);
    assert_int_equal(count(w, "ledger"), ledger);
    assert_true(ledger >= 9 * 3);
    AUTO_FREE char *now = pg_text(w->db, "SELECT string_agg(s::text, ' ') FROM stage_run s");
    assert_string_equal(now, counters);
    assert_int_equal(pg_i64(w->db, "SELECT attempts FROM archive WHERE archived_at > asked_at"),
                     10);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task_run WHERE campaign_id = %lld",
                            (long long)other.campaign_id),
                     3);
    assert_false(ask(w));
    struct archive_progress p = {.over = false}; /* a second leader's step */
    pg_good(step(w, &p, &err), &err);
    assert_true(p.over);
}

/* Its Create was refused; should its job live, the next leader looks for it. */
static void test_retention__a_void_attempt_is_looked_for_an_hour(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    usec_t newest = 0, found = 0;
    live_and_end(w);
    pg_good(newest_intent(w->s, &newest, &err), &err);
    for (int minutes = 59; minutes <= 61; minutes += 2) {
        pg_sql(w->db,
               "UPDATE attempt SET intended_at = (SELECT max(intended_at) FROM attempt WHERE state "
               "<> 12) - interval '%d minutes' WHERE state = 12",
               minutes);
        pg_good(void_intent(w->s, INT64_C(3600) * USEC_PER_SEC, &found, &err), &err);
        assert_int_equal(found != 0, minutes == 59);
    }
}

/* In AWS' lists its jobs stay: they must not look like jobs whose rows were lost. */
static void test_retention__jobs_of_an_archived_campaign_are_no_strays(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    live_and_end(w);
    AUTO_FREE char *known = pg_text(w->db, "SELECT name FROM attempt WHERE state = 9 LIMIT 1");
    AUTO_FREE char *hollow = pg_text(w->db, "SELECT name FROM attempt WHERE state = 12");
    const char *names[] = {known, hollow, "t-1-x-0-a1-00000000"};
    struct unknown_name *unknown = NULL;
    size_t n = 0;
    usec_t newest = 0, now_newest = 0;
    pg_good(newest_intent(w->s, &newest, &err), &err);
    (void)ask(w);
    (void)archive(w);
    pg_good(names_unknown(w->s, names, ARRAY_LEN(names), &unknown, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_string_equal(unknown[0].name, hollow); /* should it live, nobody has booked it */
    assert_false(unknown[0].is_void);
    assert_string_equal(unknown[1].name, names[2]);
    free(unknown);
    pg_good(newest_intent(w->s, &now_newest, &err), &err);
    assert_true(newest > 0);
    assert_int_equal(now_newest, newest); /* a sweep looks no further back */
}

/* A campaign of many parts: its tables go whole, and whoever reads them is not kept waiting. */
static void test_retention__tables_of_its_own_are_dropped_whole(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    w->c = pg_campaign_make(w->db, 0);
    long long id = (long long)w->c.campaign_id, stage = (long long)w->c.stage_id;
    pg_sql(w->db,
           "BEGIN; SELECT partition_create(%lld);"
           "INSERT INTO task_c%lld (campaign_id, id, stage_id, seq) SELECT %lld, 900000 + g, %lld, "
           "g FROM generate_series(0, 999) g;"
           "INSERT INTO task_run_c%lld (campaign_id, id, stage_id, seq, state) SELECT %lld, 900000 "
           "+ g, %lld, g, 3 FROM generate_series(0, 999) g;"
           "SELECT partition_attach(%lld);"
           "UPDATE stage_input SET tasks = 1000 WHERE campaign_id = %lld;"
           "UPDATE stage_run SET taken = 1000, done = 1000, state = 'succeeded' WHERE campaign_id "
           "= %lld;"
           "UPDATE campaign_run SET state = 'succeeded', ended_at = now() WHERE campaign_id = "
           "%lld;"
           "INSERT INTO task_change (task_id, campaign_id) VALUES (900007, %lld); COMMIT",
           id, id, id, stage, id, id, stage, id, id, id, id, id);
    (void)ask(w);
    PGconn *reader = PQconnectdb(w->db);
    PQclear(PQexec(reader, "BEGIN; SELECT count(*) FROM task"));
    struct archive_progress p = {.over = false};
    int steps = 0;
    while (step(w, &p, &err)) {
        assert_false(p.over);
        assert_true(++steps < 20);
    }
    assert_int_equal(err.code, ERR_TIMEOUT);
    assert_int_equal(count(w, "task"), 1000);
    assert_int_equal(count(w, "task_change"), 0);
    PQclear(PQexec(reader, "COMMIT"));
    PQfinish(reader);
    assert_int_equal(archive(w), 1);
    assert_int_equal(pg_i64(w->db,
                            "SELECT count(*) FROM pg_class WHERE relname IN ('task_c%lld', "
                            "'task_run_c%lld')",
                            id, id),
                     0);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task"), PARTS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_retention__##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(expired_keys_go_in_batches),
        TEST(a_clock_that_was_ahead_silences_no_webhook),
        TEST(many_old_events_go_in_batches),
        TEST(an_archived_campaign_keeps_its_ledger_and_its_costs),
        TEST(a_void_attempt_is_looked_for_an_hour),
        TEST(jobs_of_an_archived_campaign_are_no_strays),
        TEST(tables_of_its_own_are_dropped_whole),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store retention", tests, NULL, NULL);
}
