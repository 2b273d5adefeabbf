/* Aim: what is kept for a time only goes in bounded steps, and what is kept for good stays true at
 * each of them: idempotency keys, archived campaigns, the policy by age. Method: the leader's
 * functions on a real database; check_counters() and the cost page after every step, and a reader
 * in the way of a campaign's tables. */
#include "core/model.h"
#include "store/api/archive.h"
#include "store/api/cost.h"
#include "store/leader/archive.h"
#include "store/leader/archive_export.h"
#include "store/leader/maintenance.h"
#include "store/leader/strays.h"
#include "tests/kit/pg_fixture.h"
#include <libpq-fe.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define PARTS 12

struct world {
    char db[600];
    struct store *s, *api;
    int64_t epoch;
    struct pg_campaign c;
};

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    pg_fixture_database(w->db, sizeof w->db);
    w->c = pg_campaign_make(w->db, PARTS);
    w->s = pg_leader(w->db, &w->epoch);
    w->api = pg_open(w->db, STORE_API);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    store_close(w->s);
    store_close(w->api);
    free(w);
    return 0;
}

static int64_t count(const struct world *w, const char *table)
{
    return pg_i64(w->db, "SELECT count(*) FROM %s WHERE campaign_id = %lld", table,
                  (long long)w->c.campaign_id);
}

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

static void record(struct world *w, struct attempt_record r)
{
    struct err err = ERR_INIT;
    pg_book(&r);
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_record(w->s, &r, 1, &err), &err);
    pg_good(leader_commit(w->s, &err), &err);
}

/* The first attempt of a part, from its intent to its end. */
static void attempt_ends(struct world *w, int part, enum attempt_state to, musd_t cost)
{
    struct err err = ERR_INIT;
    struct intent in = pg_intent(w->s, &w->c, part, 1);
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_intend(w->s, w->epoch, &in, 1, &err), &err);
    assert_true(in.taken);
    pg_good(leader_commit(w->s, &err), &err);
    enum attempt_state from = ATTEMPT_INTENDED;
    if (to == ATTEMPT_SUCCEEDED) {
        record(w, pg_record(&in, from, ATTEMPT_SUBMITTED));
        record(w, pg_record(&in, ATTEMPT_SUBMITTED, ATTEMPT_RUNNING));
        from = ATTEMPT_RUNNING;
    }
    struct attempt_record r =
        pg_record(&in, from, to == ATTEMPT_SUCCEEDED ? ATTEMPT_VERIFYING : to);
    r.release = true;
    r.settle = cost > 0;
    r.cost_musd = cost;
    r.billable_s = cost / 100;
    r.estimated = part == 1;
    r.task_moves = to != ATTEMPT_SUCCEEDED;
    r.task_to = to == ATTEMPT_FAILED ? TASK_FAILED : TASK_WAITING;
    r.cause = to == ATTEMPT_FAILED ? CAUSE_OOM : CAUSE_NONE;
    r.signature = to == ATTEMPT_FAILED ? "out of memory" : NULL;
    record(w, r);
    if (to == ATTEMPT_SUCCEEDED) {
        r = pg_record(&in, ATTEMPT_VERIFYING, to);
        r.task_moves = true;
        r.task_to = TASK_DONE;
        record(w, r);
    }
}

/* Six parts done, three failed, one void and two never tried; a pool, a metric of 20 points and
 * what a retry changed. */
static void live_and_end(struct world *w)
{
    long long id = (long long)w->c.campaign_id, task = (long long)w->c.first_task;
    for (int i = 0; i < 9; i++) {
        attempt_ends(w, i, i < 6 ? ATTEMPT_SUCCEEDED : ATTEMPT_FAILED, 1000 * (i + 1));
    }
    attempt_ends(w, 9, ATTEMPT_VOID, 0);
    pg_sql(w->db,
           "UPDATE task_run SET state = 6 WHERE campaign_id = %lld AND state = 0;"
           "UPDATE stage_run SET cancelled = waiting, waiting = 0, state = 'failed' WHERE "
           "campaign_id = %lld;"
           "UPDATE campaign_run SET state = 'failed', ended_at = now() - interval '40 days' WHERE "
           "campaign_id = %lld;"
           "INSERT INTO pool (attempt_id, campaign_id, stage_id, state, fingerprint, "
           "instance_type, instances, keep_alive_s, ended_at) SELECT min(id), %lld, 1, "
           "'terminated', 1, 't', 1, 60, now() FROM attempt;"
           "INSERT INTO metric_series (campaign_id, stage_id, task_id, attempt_id, name, points) "
           "SELECT %lld, 1, task_id, id, 'loss', 20 FROM attempt ORDER BY id LIMIT 1;"
           "INSERT INTO metric_point SELECT s.id, g, g, g, 1.0 FROM metric_series s, "
           "generate_series(0, 19) g;"
           "INSERT INTO metric_bucket SELECT id, 8, 0, 8, 0, 7, 0, 7, 1, 1, 8 FROM metric_series;"
           "INSERT INTO metric_source (attempt_id) SELECT attempt_id FROM metric_series;"
           "INSERT INTO task_change (task_id, campaign_id) VALUES (%lld, %lld), (%lld, %lld);"
           "INSERT INTO parked (kind, ref_id, campaign_id, reason) VALUES ('part', 1, %lld, 'x');"
           "UPDATE attempt SET bill_given_up = estimated;"
           "UPDATE attempt SET phases = ARRAY(SELECT i * 1000 + id FROM generate_series(1, 18) i), "
           "keep_alive_s = id - 1 WHERE id < 4",
           id, id, id, id, id, task, id, task + 11, id, id);
}

static char *costs(struct world *w)
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf total = BUF_INIT(10000);
    AUTO_BUF struct buf stages = BUF_INIT(10000);
    AUTO_BUF struct buf causes = BUF_INIT(10000);
    AUTO_FREE struct apidb_phases *phases = NULL;
    size_t n = 0;
    pg_good(apidb_cost(w->api, w->c.campaign_id, &total, &stages, &err), &err);
    pg_good(apidb_cost_by_cause(w->api, w->c.campaign_id, &causes, &err), &err);
    pg_good(apidb_cost_phases(w->api, w->c.campaign_id, &phases, &n, &err), &err);
    assert_int_equal(n, 1);
    const struct apidb_phases *p = &phases[0];
    buf_addf(&causes, " %lld %lld %d %lld %lld %lld %lld", (long long)p->attempts,
             (long long)p->measured, p->keeps, (long long)p->job_s, (long long)p->job_musd,
             (long long)p->warm_s, (long long)p->warm_musd);
    for (int i = 0; i < PHASE_FIGURES_N; i++) {
        buf_addf(&causes, " %lld", (long long)p->figures[i]);
    }
    return xasprintf("%s %s %s", buf_cstr(&total), buf_cstr(&stages), buf_cstr(&causes));
}

static bool ask_to(struct world *w, const char *folder)
{
    struct err err = ERR_INIT;
    bool asked = false;
    pg_good(apidb_archive_ask(w->api, w->c.campaign_id, "me", folder, &asked, &err), &err);
    return asked;
}

static bool ask(struct world *w)
{
    return ask_to(w, "");
}

static bool step(struct world *w, struct archive_progress *p, struct err *err)
{
    pg_good(leader_begin(w->s, w->epoch, err), err);
    if (!store_archive_step(w->s, w->c.campaign_id, 4, p, err)) {
        leader_rollback(w->s);
        return false;
    }
    pg_good(leader_commit(w->s, err), err);
    return true;
}

/* Step by step; whatever is kept is as it was after each. Returns how many steps there were. */
static int archive(struct world *w)
{
    struct err err = ERR_INIT;
    struct archive_progress p = {.over = false};
    AUTO_FREE char *before = costs(w);
    int steps = 0;
    while (!p.over) {
        assert_true(++steps < 100);
        pg_good(step(w, &p, &err), &err);
        AUTO_FREE char *now = costs(w);
        assert_string_equal(now, before);
        pg_check_counters(w->db);
    }
    return steps;
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

/* The next object, and that it is in S3; *ret_lines of it. Its name behind the folder, "" when
 * there is none; the caller frees it. */
static char *object(struct world *w, bool arrives, int *ret_lines)
{
    struct err err = ERR_INIT;
    struct archive_object o = {.text = BUF_INIT(1000000)};
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_archive_object(w->s, w->c.campaign_id, 7, &o, &err), &err);
    pg_good(!o.due || !arrives || store_archive_exported(w->s, w->c.campaign_id, &o, &err), &err);
    pg_good(leader_commit(w->s, &err), &err);
    *ret_lines = 0;
    for (size_t i = 0; i < o.text.n; i++) {
        *ret_lines += o.text.p[i] == '\n';
    }
    char *name = xstrdup(o.due ? o.uri + strlen(o.folder) : "");
    assert_true(!o.due || strncmp(o.uri, o.folder, strlen(o.folder)) == 0);
    buf_done(&o.text);
    return name;
}

static void test_retention__an_archive_is_written_in_objects_first(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *name;
        int lines;
    } want[] = {{"attempts-000001.jsonl", 7}, {"attempts-000002.jsonl", 3},
                {"parts-000003.jsonl", 7},    {"parts-000004.jsonl", 5},
                {"metrics-000005.jsonl", 1},  {"summary.json", 1}};
    live_and_end(w);
    assert_true(ask_to(w, "s3://wrong/c-1/"));
    int lines;
    AUTO_FREE char *first = object(w, true, &lines);
    assert_string_equal(first, want[0].name);
    assert_false(ask_to(w, "s3://wrong/c-1/"));
    assert_false(ask(w));                  /* no folder names none: what is exported still is */
    assert_true(ask_to(w, "s3://b/c-1/")); /* another folder: from its first object on */
    assert_false(ask(w));
    pg_sql(w->db, "UPDATE operation SET state = 'cancelled'"); /* by one that knows no archive */
    assert_true(ask(w));
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM operation WHERE state = 'accepted' AND "
                                   "selector->>'to' = 's3://b/c-1/'"),
                     1);
    struct err err = ERR_INIT; /* what was still on its way to the other one does not count */
    const struct archive_object late = {.folder = "s3://wrong/c-1/", .after = 7, .rows = 7};
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_archive_exported(w->s, w->c.campaign_id, &late, &err), &err);
    pg_good(leader_commit(w->s, &err), &err);
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        AUTO_FREE char *again = object(w, false, &lines); /* written, and the reply was lost */
        AUTO_FREE char *name = object(w, true, &lines);
        assert_string_equal(name, want[i].name);
        assert_string_equal(again, name);
        assert_int_equal(lines, want[i].lines);
    }
    AUTO_FREE char *none = object(w, true, &lines);
    assert_string_equal(none, "");
    assert_int_equal(pg_i64(w->db, "SELECT exported_rows FROM archive WHERE exported = 6 AND "
                                   "exported_at IS NOT NULL"),
                     23);
    assert_int_equal(count(w, "attempt"), 10);
    assert_false(ask_to(w, "s3://late/c-1/"));
    (void)archive(w);
}

/* A manifest may be large, and so may what a part is given: an object ends with the row that makes
 * it large. With a thousand such rows it would be too large, and the archive would never end. */
static void test_retention__large_rows_make_objects_of_fewer(void **state)
{
    struct world *w = *state;
    static const int want[] = {1, 1, 2, 2, 2, 2, 4, 7, 1, 1, 1, 0}; /* lines of each object */
    live_and_end(w);
    pg_sql(w->db, "UPDATE attempt SET manifest = jsonb_build_object('x', repeat('y', CASE WHEN id "
                  "<= 2 THEN 700000 ELSE 200000 END));"
                  "UPDATE task SET vars = jsonb_build_object('x', repeat('y', 64000)) WHERE seq "
                  "NOT BETWEEN 4 AND 10;"
                  "DELETE FROM task_run WHERE seq = 3;" /* rows that are damaged end no object */
                  "UPDATE task SET stage_id = 99 WHERE seq = 6;"
                  "UPDATE attempt SET stage_id = 99 WHERE id = 4");
    assert_true(ask_to(w, "s3://b/c-1/"));
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        int lines;
        AUTO_FREE char *name = object(w, true, &lines);
        assert_int_equal(lines, want[i]);
    }
    assert_int_equal(pg_i64(w->db, "SELECT exported_rows FROM archive WHERE exported = 11 AND "
                                   "exported_at IS NOT NULL"),
                     23);
}

static void hindered(struct world *w, const char *set, const char *unset, const char *want)
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf why = BUF_INIT(1000);
    pg_sql(w->db, "%s", set);
    pg_good(apidb_archive_hindrance(w->api, w->c.campaign_id, &why, &err), &err);
    if (strstr(buf_cstr(&why), want) == NULL || (want[0] == '\0' && why.n > 0)) {
        fail_msg("after %s: '%s', not '%s'", set, buf_cstr(&why), want);
    }
    pg_sql(w->db, "%s", unset);
}

static void test_retention__what_lives_hinders_an_archive(void **state)
{
    struct world *w = *state;
    live_and_end(w);
    hindered(w, "SELECT 1", "SELECT 1", "");
    hindered(w, "UPDATE campaign_run SET state = 'paused'",
             "UPDATE campaign_run SET state = 'failed'", "it has not ended");
    hindered(w, "UPDATE attempt SET state = 7 WHERE state = 12",
             "UPDATE attempt SET state = 12 WHERE state = 7", "jobs of it");
    hindered(w, "UPDATE pool SET state = 'available', ended_at = NULL",
             "UPDATE pool SET state = 'terminated', ended_at = now()", "a warm pool");
    hindered(w, "UPDATE money SET reserved_musd = 1 WHERE level = 'campaign'",
             "UPDATE money SET reserved_musd = 0", "money is still reserved");
    hindered(
        w,
        "INSERT INTO endpoint (stage_id, campaign_id, n, state, name, instance_type, instances, "
        "ttl_s, price_musd_per_hour, reserved_musd, intended_at, delete_after) SELECT id, "
        "campaign_id, 1, 'in_service', 'e', 't', 1, 1, 0, 0, now(), now() FROM stage",
        "UPDATE endpoint SET state = 'deleted'", "an endpoint");
    hindered(w,
             "INSERT INTO filesystem (stage_id, campaign_id, n, state, token, size_gib, "
             "deployment, ttl_s, keep, exports, import_from, price_musd_per_gb_month, "
             "reserved_musd, intended_at, delete_after) SELECT id, campaign_id, 1, 'available', "
             "'f', 1200, 'SCRATCH_2', 1, false, false, '', 0, 0, now(), now() FROM stage",
             "UPDATE filesystem SET state = 'deleted'", "a file system");
    hindered(w,
             "INSERT INTO stray (name, campaign_id, why, instance_type, instances, "
             "price_musd_per_hour, reserved_musd) SELECT 'x', id, 'lost', 't', 1, 1, 1 FROM "
             "campaign",
             "UPDATE stray SET holds = false", "drover strays");
    hindered(w,
             "INSERT INTO operation (campaign_id, kind, selector) SELECT id, 'retry', '{}' FROM "
             "campaign",
             "UPDATE operation SET state = 'done'", "drover ops");
    hindered(w, "UPDATE attempt SET collects = true, ended_at = now() WHERE state = 9",
             "UPDATE attempt SET collects = false", "metrics");
    hindered(w, "UPDATE attempt SET bill_given_up = false",
             "UPDATE attempt SET bill_given_up = true", "the bill of a job");
}

static void test_retention__old_campaigns_are_archived_by_policy(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct store *s = pg_open(w->db, STORE_MAINTENANCE);
    int64_t n = -1;
    usec_t at = (usec_t)pg_i64(
        w->db, "SELECT (extract(epoch FROM now() - interval '30 days') * 1000000)::bigint");
    live_and_end(w); /* 40 days ago */
    (void)pg_campaign_make(w->db, 1);
    struct pg_campaign fresh = pg_campaign_make(w->db, 1);
    pg_sql(w->db,
           "UPDATE campaign_run SET state = 'succeeded', ended_at = now() - interval '1 day' "
           "WHERE campaign_id = %lld",
           (long long)fresh.campaign_id);
    pg_sql(w->db, "UPDATE money SET reserved_musd = 1 WHERE level = 'campaign'");
    pg_good(store_archive_due(s, at, 10, &n, &err), &err);
    assert_int_equal(n, 0); /* hindered */
    pg_sql(w->db, "UPDATE money SET reserved_musd = 0 WHERE level = 'campaign'");
    pg_good(store_archive_due(s, at, 10, &n, &err), &err);
    assert_int_equal(n, 1);
    pg_good(store_archive_due(s, at, 10, &n, &err), &err);
    assert_int_equal(n, 0); /* once */
    assert_int_equal(pg_i64(w->db, "SELECT campaign_id FROM archive WHERE asked_by = 'policy'"),
                     w->c.campaign_id);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM audit WHERE action = 'campaign.archive' "
                                   "AND token_id = 'policy'"),
                     1);
    assert_int_equal(pg_i64(w->db, "SELECT total FROM operation WHERE kind = 'archive'"), PARTS);
    (void)archive(w);
    store_close(s);
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
        TEST(an_archived_campaign_keeps_its_ledger_and_its_costs),
        TEST(a_void_attempt_is_looked_for_an_hour),
        TEST(jobs_of_an_archived_campaign_are_no_strays),
        TEST(an_archive_is_written_in_objects_first),
        TEST(large_rows_make_objects_of_fewer),
        TEST(what_lives_hinders_an_archive),
        TEST(old_campaigns_are_archived_by_policy),
        TEST(tables_of_its_own_are_dropped_whole),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store retention", tests, NULL, NULL);
}
