/* Aim: migrations go forward only and refuse what was edited; every named query prepares against a
 * fresh schema and has an index for the big tables; the constraints repeat the state lists of core;
 * no row of the ledger, audit, money or lease goes; check_counters() sees damage. Method: fresh
 * databases in a real cluster, the catalogue and EXPLAIN as witnesses. */
#include "queries.h"
#include "store/leader/attempts.h"
#include "store/leader/campaigns.h"
#include "store/leader/lease.h"
#include "store/leader/maintenance.h"
#include "store/leader/operations.h"
#include "store/pg/migrate.h"
#include "store/rows/view.h"
#include "tests/kit/pg_fixture.h"
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define MIGRATION(name, sql)                                                                       \
    {                                                                                              \
        (name), (sql), (sql) + sizeof(sql) - 1                                                     \
    }
#define MIGRATIONS_END                                                                             \
    {                                                                                              \
        NULL, NULL, NULL                                                                           \
    }
static const char one[] = "CREATE TABLE one (a int);";
static const char one_edited[] = "CREATE TABLE one (a int) ;";
static const char two[] = "CREATE TABLE two (a int); INSERT INTO two VALUES (1);";
static const char broken[] = "CREATE TABLE three (a int); SELECT 1/0;";

static int migrate(const char *db, const struct migration *table, enum err_code want)
{
    struct err err = ERR_INIT;
    int applied = -1;
    if (migrate_run_table(db, table, &applied, &err)) {
        assert_int_equal(want, ERR_NONE);
        return applied;
    }
    assert_string_equal(err_code_name(err.code), err_code_name(want));
    return -1;
}

static void test_schema__migrations_apply_once_and_in_order(void **state)
{
    (void)state;
    char db[600];
    pg_fixture_empty_database(db, sizeof db);
    const struct migration first[] = {MIGRATION("0001_a", one), MIGRATIONS_END};
    const struct migration both[] = {MIGRATION("0001_a", one), MIGRATION("0002_b", two),
                                     MIGRATIONS_END};
    assert_int_equal(migrate(db, first, ERR_NONE), 1);
    assert_int_equal(migrate(db, first, ERR_NONE), 0);
    assert_int_equal(migrate(db, both, ERR_NONE), 1);
    assert_int_equal(migrate(db, both, ERR_NONE), 0);
    assert_int_equal(pg_i64(db, "SELECT count(*) FROM two"), 1);
}

static void test_schema__an_edited_or_unknown_migration_is_refused(void **state)
{
    (void)state;
    char db[600];
    pg_fixture_empty_database(db, sizeof db);
    const struct migration both[] = {MIGRATION("0001_a", one), MIGRATION("0002_b", two),
                                     MIGRATIONS_END};
    const struct migration edited[] = {MIGRATION("0001_a", one_edited), MIGRATION("0002_b", two),
                                       MIGRATIONS_END};
    const struct migration older[] = {MIGRATION("0001_a", one), MIGRATIONS_END};
    assert_int_equal(migrate(db, both, ERR_NONE), 2);
    assert_int_equal(migrate(db, edited, ERR_PRECONDITION), -1);
    assert_int_equal(migrate(db, older, ERR_PRECONDITION), -1); /* the database is ahead */
    assert_int_equal(migrate(db, both, ERR_NONE), 0);
}

static const char widened[] = "CREATE TABLE patience AS SELECT current_setting('lock_timeout') t;"
                              "ALTER TABLE one ADD b int;";
#define TRIES    3
#define WAIT_MS  200 /* so long a migration waits for a lock */
#define PAUSE_MS 400 /* and so long the others go on before its next try */
struct migrating {
    const char *db;
    bool ok;
    atomic_bool over;
};

static void *migrate_main(void *ctx)
{
    struct migrating *m = ctx;
    const struct migration both[] = {MIGRATION("0001_a", one), MIGRATION("0002_wide", widened),
                                     MIGRATIONS_END};
    struct err err = ERR_INIT;
    m->ok = migrate_run_table(m->db, both, NULL, &err);
    atomic_store(&m->over, true);
    return NULL;
}

/* Somebody reads for long; a migration wants the table for itself; others read on meanwhile. */
static void test_schema__a_migration_holds_up_nobody(void **state)
{
    (void)state;
    char db[600];
    pg_fixture_empty_database(db, sizeof db);
    const struct migration first[] = {MIGRATION("0001_a", one), MIGRATIONS_END};
    assert_int_equal(migrate(db, first, ERR_NONE), 1);
    PGconn *reader = PQconnectdb(db);
    PQclear(PQexec(reader, "BEGIN; SELECT count(*) FROM one"));
    struct migrating m = {.db = db};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, migrate_main, &m), 0);
    PGconn *other = PQconnectdb(db);
    PQclear(PQexec(other, "SET lock_timeout = '2s'"));
    int64_t began_us[TRIES] = {0}; /* of each try, by the server's clock */
    int waits = 0, reads = 0;
    for (int i = 0; i < 20000 && waits < TRIES; i++) {
        AUTO_RESULT PGresult *seen =
            PQexec(other, "SELECT (extract(epoch FROM waitstart) * 1000000)::bigint FROM pg_locks "
                          "WHERE NOT granted AND relation = 'one'::regclass AND waitstart > "
                          "'epoch'");
        int64_t at_us = PQntuples(seen) > 0 ? strtoll(PQgetvalue(seen, 0, 0), NULL, 10) : 0;
        if (at_us != 0 && (waits == 0 || began_us[waits - 1] != at_us)) {
            AUTO_RESULT PGresult *read = PQexec(other, "SELECT count(*) FROM one");
            began_us[waits++] = at_us;
            reads += PQresultStatus(read) == PGRES_TUPLES_OK;
        }
        (void)poll(NULL, 0, 1);
    }
    assert_false(atomic_load(&m.over));
    PQclear(PQexec(reader, "COMMIT"));
    (void)pthread_join(thread, NULL);
    PQfinish(reader);
    PQfinish(other);
    assert_int_equal(waits, TRIES);
    assert_int_equal(reads, TRIES);
    for (int i = 1; i < TRIES; i++) { /* it waits, gives way, and lets the others go on */
        assert_true(began_us[i] - began_us[i - 1] >= (WAIT_MS + PAUSE_MS) * USEC_PER_MSEC);
    }
    assert_true(m.ok);
    AUTO_FREE char *patience = pg_text(db, "SELECT t FROM patience");
    assert_string_equal(patience, "200ms");
    assert_int_equal(pg_i64(db, "SELECT count(*) FROM schema_migration"), 2);
}

static void test_schema__a_broken_migration_leaves_nothing(void **state)
{
    (void)state;
    char db[600];
    pg_fixture_empty_database(db, sizeof db);
    const struct migration bad[] = {MIGRATION("0001_a", one), MIGRATION("0002_c", broken),
                                    MIGRATIONS_END};
    assert_int_equal(migrate(db, bad, ERR_DATABASE), -1);
    assert_int_equal(pg_i64(db, "SELECT count(*) FROM schema_migration"), 1);
    assert_int_equal(pg_i64(db, "SELECT count(*) FROM pg_class WHERE relname IN ('one', 'three')"),
                     1);
}

struct migrator {
    pthread_t thread;
    const char *db;
    int applied; /* -1: failed */
};

static void *migrate_thread(void *arg)
{
    struct migrator *m = arg;
    struct err err = ERR_INIT;
    if (!migrate_run(m->db, &m->applied, &err)) {
        m->applied = -1;
    }
    return NULL;
}

static void test_schema__many_may_migrate_at_once(void **state)
{
    (void)state;
    char db[600];
    pg_fixture_empty_database(db, sizeof db);
    struct migrator m[4];
    int some = 0;
    for (size_t i = 0; i < ARRAY_LEN(m); i++) {
        m[i].db = db;
        assert_int_equal(pthread_create(&m[i].thread, NULL, migrate_thread, &m[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(m); i++) {
        assert_int_equal(pthread_join(m[i].thread, NULL), 0);
        assert_true(m[i].applied >= 0);
        some += m[i].applied > 0;
    }
    assert_int_equal(some, 1);
}

static const struct {
    const char *name, *sql;
} queries[] = {
#define X(name, sql) {#name, sql},
    QUERY_LIST(X)
#undef X
};

/* EXPLAIN of the generic plan: text of it, or NULL for what cannot be explained (DDL). */
static char *explain(PGconn *conn, const char *name)
{
    AUTO_RESULT PGresult *d = PQdescribePrepared(conn, name);
    AUTO_BUF struct buf sql = BUF_INIT(10000);
    buf_addf(&sql, "EXPLAIN EXECUTE \"%s\"", name);
    for (int i = 0; i < PQnparams(d); i++) {
        buf_addf(&sql, "%sNULL", i == 0 ? "(" : ", ");
    }
    buf_add_cstr(&sql, PQnparams(d) > 0 ? ")" : "");
    AUTO_RESULT PGresult *r = PQexec(conn, buf_cstr(&sql));
    if (PQresultStatus(r) != PGRES_TUPLES_OK) {
        return NULL;
    }
    AUTO_BUF struct buf text = BUF_INIT(1000000);
    for (int i = 0; i < PQntuples(r); i++) {
        buf_addf(&text, "%s\n", PQgetvalue(r, i, 0));
    }
    return buf_take(&text);
}

static PGconn *connect_and_prepare(const char *db)
{
    PGconn *conn = PQconnectdb(db);
    assert_int_equal(PQstatus(conn), CONNECTION_OK);
    for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
        AUTO_RESULT PGresult *r = PQprepare(conn, queries[i].name, queries[i].sql, 0, NULL);
        if (PQresultStatus(r) != PGRES_COMMAND_OK) {
            fail_msg("%s: %s", queries[i].name, PQerrorMessage(conn));
        }
    }
    PQclear(PQexec(conn, "SET plan_cache_mode = force_generic_plan"));
    return conn;
}

static void test_schema__every_query_prepares_and_none_must_scan_a_big_table(void **state)
{
    (void)state;
    char db[600];
    pg_fixture_database(db, sizeof db);
    PGconn *conn = connect_and_prepare(db);
    PQclear(PQexec(conn, "SET enable_seqscan = off"));
    const char *big[] = {"task_default", "task_run_default", "attempt",       "ledger",
                         "task_failure", "metric_point",     "metric_bucket", "metric_series"};
    size_t explained = 0;
    for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
        AUTO_FREE char *plan = explain(conn, queries[i].name);
        explained += plan != NULL;
        for (size_t k = 0; plan != NULL && k < ARRAY_LEN(big); k++) {
            AUTO_FREE char *scan = xasprintf("Seq Scan on %s ", big[k]);
            if (strstr(plan, scan) != NULL) {
                fail_msg("%s has no index for %s:\n%s", queries[i].name, big[k], plan);
            }
        }
    }
    assert_true(explained + 5 >= ARRAY_LEN(queries));
    const char *open[][2] = {{"view_endpoints", "endpoint"}, {"view_filesystems", "filesystem"}};
    for (size_t i = 0; i < ARRAY_LEN(open); i++) { /* what has ended is not read */
        AUTO_FREE char *plan = explain(conn, open[i][0]);
        AUTO_FREE char *live = xasprintf("%s_open", open[i][1]);
        AUTO_FREE char *ours = xasprintf("%s_campaign", open[i][1]);
        assert_non_null(strstr(plan, live));
        assert_non_null(strstr(plan, ours));
    }
    PQfinish(conn);
}

static void fill_failures_and_strays(const char *db)
{
    pg_sql(
        db,
        "INSERT INTO task_failure (task_id, campaign_id, stage_id, seq, cause, final, signature, "
        "message) SELECT id, campaign_id, stage_id, seq, 12, true, '', '' FROM task_run WHERE seq "
        "< 9000");
    pg_sql(db, "INSERT INTO task_retried SELECT id, campaign_id, stage_id, 1 + seq / 100, names, "
               "1, NULL, 7, '', "
               "'', 0, now(), false, 0, 0, 0, '{}', 0, 0 FROM task_run WHERE seq < 9000");
    pg_sql(db, "INSERT INTO stray (name, why, holds, instance_type, instances, "
               "price_musd_per_hour, reserved_musd) SELECT 's-' || n, 'lost', false, 't', 1, 1, 1 "
               "FROM generate_series(1, 5000) n");
}

static void test_schema__hot_queries_choose_their_index_when_tables_are_full(void **state)
{
    (void)state;
    const struct {
        const char *query, *index;
    } hot[] = {
        {"tasks_move_run", "task_run_default_pkey"},
        {"tasks_move", "task_run_default_pkey"},
        {"tasks_retry", "task_run_default_pkey"},
        {"view_tasks_range", "task_default_campaign_id_stage_id_seq_idx"},
        {"view_tasks", "task_run_default_pkey"},
        {"view_sizes", "task_default_pkey"},
        {"view_sizes_of", "task_default_pkey"},
        {"view_versions", "campaign_run_live"},
        {"view_attempts", "attempt_open"},
        {"view_task_changes_of", "task_run_default_pkey"},
        {"view_operations", "operation_open"},
        {"view_pools", "pool_open"},
        {"view_bills", "attempt_bill"},
        {"view_bills", "stray_bill"},
        {"view_durations", "attempt_stage"},
        {"view_breaker", "attempt_stage"},
        {"stage_last_attempt", "attempt_stage"},
        {"attempt_adopt", "task_default_campaign_id_stage_id_seq_idx"},
        {"task_input", "task_run_default_pkey"},
        {"api_part_id", "task_default_campaign_id_stage_id_seq_idx"},
        {"api_part_sizes", "task_default_campaign_id_stage_id_seq_idx"},
        {"attempt_request", "attempt_pkey"},
        {"intend", "task_run_default_pkey"},
        {"intend", "attempt_task_id_n_key"},
        {"record", "attempt_pkey"},
        {"operation_page", "task_run_default_pkey"},
        {"operation_page_failed", "task_failure_task"},
        {"undo_page", "task_retried_operation"},
        {"tasks_undo", "task_retried_pkey"},
    };
    char db[600];
    pg_fixture_database(db, sizeof db);
    for (int i = 0; i < 3; i++) {
        (void)pg_campaign_make(db, 40000);
    }
    /* Ended attempts, campaigns and operations by the thousand: what partial indexes leave out. */
    pg_sql(
        db,
        "INSERT INTO attempt (campaign_id, stage_id, task_id, n, state, epoch, name, "
        "request_sha256, identity_hash, instance_type, instances, max_runtime_s, "
        "price_musd_per_hour, reserved_musd, holds, settled) SELECT 1, 1 + id %% 100, id, 1, 8, 1, "
        "'j-' || id, "
        "sha256(''), repeat('a', 64), 't', 1, 1, 1, 1, false, true FROM task_run LIMIT 20000;"
        "INSERT INTO operation (campaign_id, kind, selector, state) SELECT 1, 'retry', '{}', "
        "'done' "
        "FROM generate_series(1, 5000);"
        "INSERT INTO pool (attempt_id, campaign_id, stage_id, state, fingerprint, instance_type, "
        "instances, keep_alive_s, ended_at) SELECT id, 1, 1, 'terminated', 1, 't', 1, 60, now() "
        "FROM attempt;"
        "INSERT INTO campaign (project_id, name, spec_text, spec) SELECT 1, 'old', '', '{}' FROM "
        "generate_series(1, 5000);"
        "INSERT INTO campaign_run (campaign_id, state) SELECT id, 'succeeded' FROM campaign WHERE "
        "name = 'old'");
    fill_failures_and_strays(db);
    pg_sql(db, "ANALYZE");
    PGconn *conn = connect_and_prepare(db);
    for (size_t i = 0; i < ARRAY_LEN(hot); i++) {
        AUTO_FREE char *plan = explain(conn, hot[i].query);
        assert_non_null(plan);
        if (strstr(plan, hot[i].index) == NULL) {
            fail_msg("%s does not use %s:\n%s", hot[i].query, hot[i].index, plan);
        }
    }
    PQfinish(conn);
}

static void assert_names(const char *db, const char *table, const char *const *names, size_t n)
{
    AUTO_FREE char *have = pg_text(
        db,
        "SELECT string_agg(w[1], ' ' ORDER BY o) FROM pg_constraint c CROSS JOIN LATERAL "
        "regexp_matches(pg_get_constraintdef(c.oid), '''([a-z_]+)''', 'g') WITH ORDINALITY AS m "
        "(w, o) WHERE conrelid = '%s'::regclass AND conname = '%s_state_check'",
        table, table);
    AUTO_BUF struct buf want = BUF_INIT(1000);
    for (size_t i = 0; i < n; i++) {
        buf_addf(&want, "%s%s", i == 0 ? "" : " ", names[i]);
    }
    assert_non_null(have);
    assert_string_equal(have, buf_cstr(&want));
}

static void assert_numbers(const char *db, const char *table, const char *column, int count)
{
    AUTO_FREE char *have =
        pg_text(db,
                "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = "
                "'%s'::regclass AND conname = '%s_%s_check'",
                table, table, column);
    AUTO_FREE char *want =
        xasprintf("CHECK (((%s >= 0) AND (%s <= %d)))", column, column, count - 1);
    assert_non_null(have);
    assert_string_equal(have, want);
}

static void test_schema__constraints_repeat_the_state_lists(void **state)
{
    (void)state;
    char db[600];
    pg_fixture_database(db, sizeof db);
#define X(s, name, terminal, comment) name,
    static const char *const campaign[] = {
#include "core/states/campaign_state.def"
    };
    static const char *const stage[] = {
#include "core/states/stage_state.def"
    };
    static const char *const operation[] = {
#include "core/states/operation_state.def"
    };
    static const char *const pool[] = {
#include "core/states/pool_state.def"
    };
    static const char *const filesystem[] = {
#include "core/states/filesystem_state.def"
    };
    static const char *const endpoint[] = {
#include "core/states/endpoint_state.def"
    };
#undef X
    assert_names(db, "campaign_run", campaign, ARRAY_LEN(campaign));
    assert_names(db, "stage_run", stage, ARRAY_LEN(stage));
    assert_names(db, "operation", operation, ARRAY_LEN(operation));
    assert_names(db, "pool", pool, ARRAY_LEN(pool));
    assert_names(db, "filesystem", filesystem, ARRAY_LEN(filesystem));
    assert_names(db, "endpoint", endpoint, ARRAY_LEN(endpoint));
    for (int k = 0; k < PARKED_KIND_COUNT; k++) {
        assert_int_equal(
            pg_i64(db,
                   "SELECT count(*) FROM pg_constraint WHERE conname = "
                   "'parked_kind_check' AND pg_get_constraintdef(oid) LIKE '%%''%s''%%'",
                   parked_kind_name((enum parked_kind)k)),
            1);
    }
    assert_numbers(db, "task_run", "state", TASK_STATE_COUNT);
    assert_numbers(db, "task_run", "cause", CAUSE_COUNT);
    assert_numbers(db, "attempt", "state", ATTEMPT_STATE_COUNT);
    assert_numbers(db, "attempt", "cause", CAUSE_COUNT);
    /* "Live" in the partial indexes is "not terminal" in the table. */
    for (int i = 0; i < ATTEMPT_STATE_COUNT; i++) {
        assert_int_equal(attempt_state_terminal((enum attempt_state)i), i >= 8);
    }
}

static bool refused(struct store *s, const char *sql)
{
    struct err err = ERR_INIT;
    return !store_plain(s, sql, &err) && err.code == ERR_DATABASE;
}

static void test_schema__no_row_of_the_books_goes(void **state)
{
    (void)state;
    char db[600];
    pg_fixture_database(db, sizeof db);
    struct pg_campaign c = pg_campaign_make(db, 1);
    int64_t epoch = 0;
    struct store *s = pg_leader(db, &epoch);
    struct err err = ERR_INIT;
    struct intent in = pg_intent(s, &c, 0, 1);
    pg_good(leader_begin(s, epoch, &err), &err);
    pg_good(store_intend(s, epoch, &in, 1, &err), &err);
    pg_good(leader_commit(s, &err), &err);
    pg_sql(db, "INSERT INTO audit (token_id, role, action, subject, request_id) VALUES ('t', "
               "'admin', 'a', "
               "'s', 'r')");
    struct store *admin = pg_open(db, STORE_ADMIN);
    assert_true(refused(admin, "UPDATE ledger SET amount_musd = 0"));
    assert_true(refused(admin, "DELETE FROM ledger"));
    assert_true(refused(admin, "TRUNCATE ledger"));
    assert_true(refused(admin, "UPDATE audit SET role = 'viewer'"));
    assert_true(refused(admin, "DELETE FROM audit"));
    assert_true(refused(admin, "TRUNCATE audit"));
    assert_true(refused(admin, "DELETE FROM money"));
    assert_true(refused(admin, "TRUNCATE money"));
    assert_true(refused(admin, "DELETE FROM lease"));
    assert_true(refused(admin, "TRUNCATE lease"));
    assert_int_equal(
        pg_i64(db, "SELECT (SELECT count(*) FROM ledger) + (SELECT count(*) FROM audit)"), 2);
    store_close(admin);
    store_close(s);
}

static void test_schema__damaged_counters_are_seen(void **state)
{
    (void)state;
    char db[600];
    pg_fixture_database(db, sizeof db);
    (void)pg_campaign_make(db, 10);
    pg_check_counters(db);
    const char *damage[][2] = {
        {"UPDATE task_run SET state = 3 WHERE seq = 4",
         "UPDATE task_run SET state = 0 WHERE seq = 4"},
        {"UPDATE stage_run SET waiting = 9, done = 1",
         "UPDATE stage_run SET waiting = 10, done = 0"},
        {"DELETE FROM task_run WHERE seq = 9", "UPDATE stage_run SET waiting = 9, taken = 9"},
        {"INSERT INTO money (level, ref_id, reserved_musd) VALUES ('stage', 1, 5)",
         "UPDATE money SET reserved_musd = 0"},
        {"INSERT INTO money (level, ref_id, spent_musd) VALUES ('global', 0, 5)",
         "UPDATE money SET spent_musd = 0"},
        {"INSERT INTO slots (instance_type, held) VALUES ('t', 1)", "DELETE FROM slots"},
        {"UPDATE stage_run SET waiting = 8, active = 1",
         "UPDATE stage_run SET waiting = 9, active = 0"},
        {"UPDATE stage_run SET waiting = 8, failed = 1; UPDATE task_run SET state = 4 WHERE seq = "
         "5",
         "INSERT INTO task_failure (task_id, campaign_id, stage_id, seq, cause, final, signature, "
         "message) SELECT id, campaign_id, stage_id, seq, 4, true, '', '' FROM task_run WHERE "
         "state = 4"},
    };
    for (size_t i = 0; i < ARRAY_LEN(damage); i++) {
        pg_sql(db, "%s", damage[i][0]);
        assert_true(pg_i64(db, "SELECT count(*) FROM check_counters()") > 0);
        pg_sql(db, "%s", damage[i][1]);
        pg_check_counters(db);
    }
}

static void test_schema__events_get_days_of_their_own_and_old_ones_go(void **state)
{
    (void)state;
    char db[600];
    pg_fixture_database(db, sizeof db);
    pg_sql(
        db,
        "CREATE TABLE event_20200101 PARTITION OF event FOR VALUES FROM ('2020-01-01 00:00+00') TO "
        "('2020-01-02 00:00+00');"
        "INSERT INTO event (at, campaign_id, kind, detail) VALUES ('2020-01-01 12:00+00', 1, 'x', "
        "'{}'), ('2020-02-01 12:00+00', 1, 'x', '{}'), (now() + interval '1 day', 1, 'x', '{}')");
    int64_t epoch = 0;
    struct store *s = pg_leader(db, &epoch);
    struct err err = ERR_INIT;
    for (int i = 0; i < 2; i++) {
        pg_good(leader_begin(s, epoch, &err), &err);
        pg_good(store_events_maintain(s, &err), &err);
        pg_good(store_alert(s, 0, "x", &err), &err);
        pg_good(leader_commit(s, &err), &err);
    }
    store_close(s);
    assert_int_equal(pg_i64(db, "SELECT count(*) FROM event WHERE at < '2021-01-01'"), 0);
    assert_int_equal(pg_i64(db, "SELECT count(*) FROM pg_class WHERE relname = 'event_20200101'"),
                     0);
    /* Today and the day after tomorrow; tomorrow's first event was there before its partition. */
    assert_int_equal(
        pg_i64(db, "SELECT count(*) FROM pg_inherits WHERE inhparent = 'event'::regclass"), 3);
    assert_int_equal(pg_i64(db, "SELECT count(*) FROM event_default"), 1);
    assert_int_equal(pg_i64(db, "SELECT count(*) FROM event WHERE kind = 'alert'"), 2);
}

static void test_schema__a_big_campaign_has_tables_of_its_own(void **state)
{
    (void)state;
    char db[600];
    pg_fixture_database(db, sizeof db);
    struct pg_campaign small = pg_campaign_make(db, 3);
    pg_sql(db, "BEGIN; SELECT campaign_tables_make(77);"
               "INSERT INTO task_c77 (campaign_id, id, stage_id, seq) SELECT 77, g, 5, g FROM "
               "generate_series(0, 999) g;"
               "INSERT INTO task_run_c77 (campaign_id, id, stage_id, seq) SELECT 77, g, 5, g FROM "
               "generate_series(0, 999) g;"
               "SELECT campaign_tables_attach(77); COMMIT");
    assert_int_equal(pg_i64(db,
                            "SELECT count(*) FROM task JOIN task_run USING (campaign_id, id) WHERE "
                            "campaign_id = 77"),
                     1000);
    assert_int_equal(pg_i64(db, "SELECT count(*) FROM task WHERE campaign_id = %lld",
                            (long long)small.campaign_id),
                     3);
    AUTO_FREE char *own =
        pg_text(db, "SELECT (SELECT array_agg(o ORDER BY o) FROM unnest(reloptions) o)::text "
                    "FROM pg_class WHERE relname = 'task_run_c77'");
    AUTO_FREE char *dflt =
        pg_text(db, "SELECT (SELECT array_agg(o ORDER BY o) FROM unnest(reloptions) "
                    "o)::text FROM pg_class WHERE relname = 'task_run_default'");
    assert_non_null(own);
    assert_string_equal(own, dflt);
    /* The rows of another campaign cannot get in. */
    struct store *admin = pg_open(db, STORE_ADMIN);
    assert_true(refused(
        admin, "INSERT INTO task_run_c77 (campaign_id, id, stage_id, seq) VALUES (78, 1, 1, 1)"));
    store_close(admin);
    pg_sql(db, "DROP TABLE task_c77, task_run_c77");
    assert_int_equal(pg_i64(db, "SELECT count(*) FROM task"), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schema__migrations_apply_once_and_in_order),
        cmocka_unit_test(test_schema__an_edited_or_unknown_migration_is_refused),
        cmocka_unit_test(test_schema__a_migration_holds_up_nobody),
        cmocka_unit_test(test_schema__a_broken_migration_leaves_nothing),
        cmocka_unit_test(test_schema__many_may_migrate_at_once),
        cmocka_unit_test(test_schema__every_query_prepares_and_none_must_scan_a_big_table),
        cmocka_unit_test(test_schema__hot_queries_choose_their_index_when_tables_are_full),
        cmocka_unit_test(test_schema__constraints_repeat_the_state_lists),
        cmocka_unit_test(test_schema__no_row_of_the_books_goes),
        cmocka_unit_test(test_schema__damaged_counters_are_seen),
        cmocka_unit_test(test_schema__events_get_days_of_their_own_and_old_ones_go),
        cmocka_unit_test(test_schema__a_big_campaign_has_tables_of_its_own),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store schema", tests, NULL, NULL);
}
