/* Aim: a bulk load of parts becomes visible whole, in tables of its campaign, and holds up neither
 * the leader nor another load on its way there. Method: the API's functions and the leader's on a
 * real database, with a reader in the way; SQL reads. */
#include "store/api/part_load.h"
#include "store/leader/lease.h"
#include "store/leader/tasks.h"
#include "store/pg/tx.h"
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

#define PARTS 100
#define MANY  LOAD_PARTITION_MIN
#include "led_world.h"

/* A campaign of no parts, whose stage takes some. */
static struct pg_campaign make(const struct world *w)
{
    struct pg_campaign c = pg_campaign_make(w->db, 0);
    pg_sql(w->db, "UPDATE stage_input SET closed = false WHERE stage_id = %lld",
           (long long)c.stage_id);
    return c;
}

static void rows(struct apidb_load *l, int64_t n)
{
    struct err err = ERR_INIT;
    for (int64_t i = 0; i < n; i++) {
        pg_good(apidb_load_row(l, STR("s3://b/x"), 1, STR(""), &err), &err);
    }
}

static bool load(struct store *s, const struct pg_campaign *c, int64_t stage_id, int64_t n,
                 struct err *err)
{
    CLEANUP(apidb_load_freep)
    struct apidb_load *l = NULL;
    if (!apidb_load_begin(s, c->campaign_id, stage_id, n, &l, err)) {
        return false;
    }
    rows(l, n);
    return apidb_load_end(l, false, err);
}

static bool begin_bulk(struct store *s, struct err *err)
{
    return tx_begin(s, TX_WRITE, err) && apidb_bulk(s, err);
}

static void assert_own(const struct world *w, const struct pg_campaign *c, int64_t want)
{
    long long id = (long long)c->campaign_id;
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task WHERE campaign_id = %lld", id), want);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task_c%lld", id), want);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task_run_c%lld", id), want);
}

struct loading {
    const char *db;
    struct pg_campaign c;
    int64_t n;
    struct err err;
    atomic_bool over;
    bool ok;
};

static void *load_main(void *ctx)
{
    struct loading *l = ctx;
    struct store *s = pg_open(l->db, STORE_API);
    l->ok = begin_bulk(s, &l->err) && load(s, &l->c, l->c.stage_id, l->n, &l->err) &&
            apidb_load_publish(s, l->c.campaign_id, &l->err) && tx_commit(s, &l->err);
    store_close(s);
    atomic_store(&l->over, true);
    return NULL;
}

/* The next try to attach, by the server's clock: somebody waits for one of the default partitions.
 * 0: the load is over. */
static int64_t next_try(PGconn *conn, const struct loading *l, int64_t after_us)
{
    while (!atomic_load(&l->over)) {
        AUTO_RESULT PGresult *r =
            PQexec(conn, "SELECT (extract(epoch FROM waitstart) * 1000000)::bigint FROM pg_locks "
                         "WHERE NOT granted AND mode = 'AccessExclusiveLock' AND waitstart > "
                         "'epoch' AND relation IN ('task_default'::regclass, "
                         "'task_run_default'::regclass)");
        int64_t at_us = PQntuples(r) > 0 ? strtoll(PQgetvalue(r, 0, 0), NULL, 10) : 0;
        if (at_us > after_us) {
            return at_us;
        }
        (void)poll(NULL, 0, 1);
    }
    return 0;
}

static bool move(struct world *w, int part, struct err *err)
{
    int64_t id = w->c.first_task + part;
    size_t n = 0;
    bool ok = leader_begin(w->s, w->epoch, err) &&
              store_tasks_move(w->s, w->c.campaign_id, w->c.stage_id, TASK_WAITING, TASK_HELD,
                               CAUSE_NONE, &id, 1, &n, NULL, err) &&
              leader_commit(w->s, err);
    if (!ok) {
        leader_rollback(w->s);
    }
    return ok && n == 1;
}

/* Somebody reads for long (a backup), of each of the two tables. */
static void load_past_reader(struct world *w, const char *reads, int part)
{
    struct err err = ERR_INIT;
    struct loading l = {.db = w->db, .c = make(w), .n = MANY, .err = ERR_INIT};
    PGconn *reader = PQconnectdb(w->db), *seer = PQconnectdb(w->db);
    PQclear(PQexec(reader, reads));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, load_main, &l), 0);
    int moved = 0;
    int64_t try_us = 0;
    for (int i = 0; i < 3; i++) {
        try_us = next_try(seer, &l, try_us);
        moved += try_us > 0 && move(w, part + i, &err);
    }
    PQclear(PQexec(reader, "COMMIT"));
    (void)pthread_join(thread, NULL);
    PQfinish(reader);
    PQfinish(seer);
    pg_good(moved == 3, &err);
    pg_good(l.ok, &l.err);
    assert_own(w, &l.c, MANY);
}

static void test_load__the_leader_goes_on_while_tables_wait_for_a_reader(void **state)
{
    struct world *w = *state;
    load_past_reader(w, "BEGIN; SELECT count(*) FROM task_default", 0);
    load_past_reader(w, "BEGIN; SELECT count(*) FROM task_run_default", 10);
    assert_int_equal(
        pg_i64(w->db, "SELECT held FROM stage_run WHERE stage_id = %lld", (long long)w->c.stage_id),
        6);
}

/* Each has looked whether its campaign has parts elsewhere, and is not in the other one's way. */
static void test_load__two_at_once_do_not_wait_for_each_other(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct pg_campaign c[2] = {make(w), make(w)};
    struct store *s[2];
    for (int i = 0; i < 2; i++) {
        s[i] = pg_open(w->db, STORE_API);
        pg_good(begin_bulk(s[i], &err) && load(s[i], &c[i], c[i].stage_id, MANY, &err), &err);
    }
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM pg_locks WHERE relation IN "
                                   "('task_default'::regclass, 'task_run_default'::regclass)"),
                     0);
    for (int i = 0; i < 2; i++) {
        pg_good(apidb_load_publish(s[i], c[i].campaign_id, &err) && tx_commit(s[i], &err), &err);
        store_close(s[i]);
        assert_own(w, &c[i], MANY);
    }
}

/* A further stage of the campaign, which takes parts. */
static int64_t stage_more(const struct world *w, int64_t campaign_id)
{
    int64_t id = pg_i64(w->db,
                        "INSERT INTO stage (campaign_id, seq, name) VALUES (%lld, 1, 'b') "
                        "RETURNING id",
                        (long long)campaign_id);
    pg_sql(w->db, "INSERT INTO stage_input (stage_id, campaign_id) VALUES (%lld, %lld)",
           (long long)id, (long long)campaign_id);
    return id;
}

/* Many parts go to one stage of a campaign, and at once some to another: they wait, and all are
 * there in the end. When the first ones take too long, the others are told so in words. */
static void test_load__two_stages_of_one_campaign_at_once(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct pg_campaign c = make(w);
    struct loading second = {.db = w->db, .c = c, .n = 3, .err = ERR_INIT};
    second.c.stage_id = stage_more(w, c.campaign_id);
    struct store *s = pg_open(w->db, STORE_API), *hasty = pg_open(w->db, STORE_API);
    pg_good(begin_bulk(s, &err) && load(s, &c, c.stage_id, MANY, &err), &err);
    assert_true(begin_bulk(hasty, &err) &&
                store_plain(hasty, "SET LOCAL lock_timeout = '50ms'", &err));
    assert_false(load(hasty, &second.c, second.c.stage_id, MANY, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(err.message, "are being loaded"));
    store_close(hasty);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, load_main, &second), 0);
    while (!atomic_load(&second.over) &&
           pg_i64(w->db, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 0) {
        (void)poll(NULL, 0, 1);
    }
    pg_good(apidb_load_publish(s, c.campaign_id, &err) && tx_commit(s, &err), &err);
    (void)pthread_join(thread, NULL);
    pg_good(second.ok, &second.err);
    store_close(s);
    assert_own(w, &c, MANY + 3);
}

/* Only then are the default partitions locked; a later batch goes the ordinary way. */
static void test_load__all_stages_of_a_submit_are_attached_at_once(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct pg_campaign c = make(w);
    int64_t second = stage_more(w, c.campaign_id);
    struct store *s = pg_open(w->db, STORE_API);
    pg_good(begin_bulk(s, &err) && load(s, &c, c.stage_id, MANY, &err) &&
                load(s, &c, second, 3, &err),
            &err);
    assert_true(move(w, 0, &err));
    pg_good(apidb_load_publish(s, c.campaign_id, &err) && tx_commit(s, &err), &err);
    assert_own(w, &c, MANY + 3);
    pg_good(begin_bulk(s, &err) && load(s, &c, second, 4, &err) &&
                apidb_load_publish(s, c.campaign_id, &err) && tx_commit(s, &err),
            &err);
    assert_own(w, &c, MANY + 7);
    store_close(s);
}

/* A campaign ends while parts of it are loaded: none of them is there then, few or many. */
static void test_load__parts_that_come_with_the_end_are_refused(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *sql, *said;
    } ends[] = {{"UPDATE campaign SET wanted = 'cancel' WHERE id = (SELECT max(id) FROM campaign)",
                 "is being cancelled"},
                {"UPDATE campaign_run SET state = 'failed' WHERE campaign_id = (SELECT max(id) "
                 "FROM campaign)",
                 "has ended (failed)"}};
    struct store *s = pg_open(w->db, STORE_API);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        for (int64_t n = 5; n <= MANY; n += MANY - 5) {
            struct err err = ERR_INIT;
            struct pg_campaign c = make(w);
            pg_good(begin_bulk(s, &err) && load(s, &c, c.stage_id, n, &err), &err);
            pg_sql(w->db, "%s", ends[i].sql);
            assert_false(apidb_load_publish(s, c.campaign_id, &err));
            assert_int_equal(err.code, ERR_CONFLICT);
            assert_non_null(strstr(err.message, ends[i].said));
            tx_rollback(s);
        }
    }
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task"), PARTS);
    assert_int_equal(
        pg_i64(w->db, "SELECT count(*) FROM pg_class WHERE relname ~ '^task(_run)?_c[0-9]'"), 0);
    store_close(s);
}

/* What ends it comes after them, so that the leader sees them. */
static void test_load__the_end_waits_for_parts_that_are_published(void **state)
{
    struct world *w = *state;
    static const char *const ends[] = {
        "SET lock_timeout = '50ms'; UPDATE campaign SET wanted = 'cancel' WHERE id = (SELECT "
        "max(id) FROM campaign)",
        "SET lock_timeout = '50ms'; UPDATE campaign_run SET state = 'failed' WHERE campaign_id = "
        "(SELECT max(id) FROM campaign)"};
    struct store *s = pg_open(w->db, STORE_API), *admin = pg_open(w->db, STORE_ADMIN);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        struct err err = ERR_INIT;
        struct pg_campaign c = make(w);
        pg_good(begin_bulk(s, &err) && load(s, &c, c.stage_id, 5, &err) &&
                    apidb_load_publish(s, c.campaign_id, &err),
                &err);
        assert_false(store_plain(admin, ends[i], &err));
        assert_int_equal(err.code, ERR_TIMEOUT);
        pg_good(tx_commit(s, &err) && store_plain(admin, ends[i], &err), &err);
    }
    store_close(admin);
    store_close(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_load__##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_leader_goes_on_while_tables_wait_for_a_reader),
        TEST(two_at_once_do_not_wait_for_each_other),
        TEST(two_stages_of_one_campaign_at_once),
        TEST(all_stages_of_a_submit_are_attached_at_once),
        TEST(parts_that_come_with_the_end_are_refused),
        TEST(the_end_waits_for_parts_that_are_published),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store load", tests, NULL, NULL);
}
