/* Aim: what is archived is what may be, by people or by the policy, and it is written before it is
 * deleted. Method: the questions of the API and the leader's functions on a real database; a retry
 * in the middle of the policy's statement. */
#include "store/leader/archive_export.h"
#include "store/leader/lease.h"
#include "store/leader/maintenance.h"
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define PARTS 12
#include "retention_world.h"

/* The next object, and that it is in S3; *ret_lines of it. Its name behind the folder, "" when
 * there is none; the caller frees it. */
static char *object_of(struct world *w, size_t bytes_max, bool arrives, int *ret_lines)
{
    struct err err = ERR_INIT;
    struct archive_object o = {.text = BUF_INIT(bytes_max)};
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

static char *object(struct world *w, bool arrives, int *ret_lines)
{
    return object_of(w, 1000000, arrives, ret_lines);
}

static void test_archive__an_archive_is_written_in_objects_first(void **state)
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

/* The policy asks for archives without a folder; a person may name one until rows are deleted. */
static void test_archive__a_folder_may_be_named_until_rows_are_deleted(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct archive_progress p;
    live_and_end(w);
    for (int deleted = 0; deleted < 2; deleted++) {
        AUTO_FREE char *taken = NULL;
        assert_true(ask(w));
        if (deleted > 0) {
            pg_good(step(w, &p, &err), &err);
            assert_int_equal(p.attempts, 4);
        }
        assert_int_equal(ask_taken(w, "s3://b/c-1/", &taken), deleted == 0);
        assert_string_equal(taken, deleted == 0 ? "s3://b/c-1/" : "");
        assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM operation WHERE state = 'accepted' "
                                       "AND selector->>'to' = 's3://b/c-1/'"),
                         deleted == 0);
        if (deleted == 0) { /* by a leader that has not read of the folder yet */
            pg_good(step(w, &p, &err), &err);
            assert_false(p.over);
            assert_int_equal(count(w, "attempt"), 10);
            pg_sql(w->db, "DELETE FROM archive; UPDATE operation SET state = 'cancelled'");
        }
    }
    pg_sql(w->db, "UPDATE archive SET export_uri = 's3://old/c-1/', exported_at = now()");
    AUTO_FREE char *old = NULL;
    assert_false(ask_taken(w, "s3://b/c-1/", &old));
    assert_string_equal(old, "s3://old/c-1/");
}

/* A manifest may be large, and so may what a part is given: an object ends with the row that makes
 * it large. With a thousand such rows it would be too large, and the archive would never end. */
static void test_archive__large_rows_make_objects_of_fewer(void **state)
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

/* However much an object may hold, the leader's loop waits while it is read: two manifests of 776
 * kB are enough for one. */
static void test_archive__an_object_is_read_in_a_moment(void **state)
{
    struct world *w = *state;
    static const int want[] = {2, 2, 2, 2, 2, 7}; /* ten attempts, then parts */
    live_and_end(w);
    pg_sql(w->db, "UPDATE attempt SET manifest = (SELECT jsonb_build_object('objects', "
                  "jsonb_agg(jsonb_build_object('key', lpad(g::text, 9, '0'), 'size', 1000000 + g, "
                  "'etag', md5(g::text)))) FROM generate_series(1, 10000) g)");
    assert_true(ask_to(w, "s3://b/c-1/"));
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        int lines;
        AUTO_FREE char *name = object_of(w, (size_t)64 << 20, true, &lines);
        assert_int_equal(lines, want[i]);
    }
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

static void test_archive__what_lives_hinders_an_archive(void **state)
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

static void test_archive__old_campaigns_are_archived_by_policy(void **state)
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

struct policy {
    struct store *s;
    int64_t n;
    bool ok;
    struct err err;
};

static void *policy_main(void *arg)
{
    struct policy *p = arg;
    p->ok = store_archive_due(p->s, ROW_TIME_MAX, 10, &p->n, &p->err);
    return NULL;
}

/* A retry is accepted while the policy counts: a lock holds its statement up in the middle. */
static void test_archive__a_retry_of_the_same_moment_hinders_the_policy(void **state)
{
    struct world *w = *state;
    struct policy p = {.s = pg_open(w->db, STORE_ADMIN), .n = -1, .err = ERR_INIT};
    pthread_t thread;
    live_and_end(w);
    PGconn *person = PQconnectdb(w->db);
    pg_sql(w->db, "ALTER FUNCTION archive_hindrance(bigint) RENAME TO hindrance; CREATE FUNCTION "
                  "archive_hindrance(c bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$ BEGIN "
                  "PERFORM pg_advisory_xact_lock_shared(7); RETURN hindrance(c); END $$");
    PQclear(PQexec(person, "BEGIN; SELECT pg_advisory_xact_lock(7)"));
    assert_int_equal(pthread_create(&thread, NULL, policy_main, &p), 0);
    while (pg_i64(w->db, "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = "
                         "'advisory'") == 0) {
        (void)poll(NULL, 0, 1);
    }
    PQclear(PQexec(person, "SELECT FROM campaign FOR UPDATE; INSERT INTO operation (campaign_id, "
                           "kind, selector) SELECT id, 'retry', '{}' FROM campaign; COMMIT"));
    PQfinish(person);
    (void)pthread_join(thread, NULL);
    pg_good(p.ok, &p.err);
    assert_int_equal(p.n, 0);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM archive"), 0);
    store_close(p.s);
}

/* What lives is no archive; of what is deleted in part the row stays, which says so. */
static void test_archive__an_archive_of_what_lives_is_taken_back(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct archive_subject subject;
    live_and_end(w);
    for (int deleted = 0; deleted < 2; deleted++) {
        (void)ask(w);
        if (deleted > 0) {
            struct archive_progress p;
            pg_good(step(w, &p, &err), &err);
        }
        pg_sql(w->db, "UPDATE stage_run SET active = %d, taken = taken + %d", deleted, deleted);
        pg_good(leader_begin(w->s, w->epoch, &err), &err);
        pg_good(store_archive_subject(w->s, w->c.campaign_id, &subject, &err), &err);
        pg_good(store_archive_drop(w->s, w->c.campaign_id, &err), &err);
        pg_good(leader_commit(w->s, &err), &err);
        assert_int_equal(subject.state, CAMPAIGN_FAILED);
        assert_int_equal(subject.active, deleted);
        assert_int_equal(count(w, "archive"), deleted);
        pg_sql(w->db, "UPDATE operation SET state = 'cancelled'");
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_archive__##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_archive_is_written_in_objects_first),
        TEST(a_folder_may_be_named_until_rows_are_deleted),
        TEST(large_rows_make_objects_of_fewer),
        TEST(an_object_is_read_in_a_moment),
        TEST(what_lives_hinders_an_archive),
        TEST(old_campaigns_are_archived_by_policy),
        TEST(a_retry_of_the_same_moment_hinders_the_policy),
        TEST(an_archive_of_what_lives_is_taken_back),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store archive", tests, NULL, NULL);
}
