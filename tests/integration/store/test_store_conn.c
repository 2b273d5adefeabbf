/* Aim: a connection says what went wrong and never waits for ever; what was committed survives any
 * death of the server; the pool is bounded and mends itself; parameters arrive as they were given.
 * Method: a real cluster that is stopped, killed and started again. */
#include "api/server/response_cache.h"
#include "common/clock.h"
#include "store/api/idempotency_keys.h"
#include "store/leader/campaigns.h"
#include "store/leader/lease.h"
#include "store/pg/copy.h"
#include "store/pg/private_cluster.h"
#include "store/pg/tx.h"
#include "tests/kit/pg_fixture.h"
#include <dlfcn.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct world {
    char db[600];
};

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    pg_fixture_database(w->db, sizeof w->db);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    pg_fixture_restart();
    return 0;
}

static void test_conn__errors_say_what_they_are(void **state)
{
    struct world *w = *state;
    const struct {
        const char *sql;
        enum err_code code;
        const char *sqlstate;
    } cases[] = {
        {"SELECT nonsense", ERR_DATABASE, "42703"},
        {"SELECT 1/0", ERR_DATABASE, "22012"},
        {"INSERT INTO project (name) VALUES ('default')", ERR_CONFLICT, "23505"},
        {"INSERT INTO project (name) VALUES ('')", ERR_DATABASE, "23514"},
        {"BEGIN READ ONLY; INSERT INTO project (name) VALUES ('x'); COMMIT", ERR_UNAVAILABLE,
         "25006"},
        {"SELECT pg_sleep(30)", ERR_TIMEOUT, "57014"},
    };
    struct store *s = pg_open(w->db, STORE_LEADER);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = ERR_INIT;
        assert_false(store_plain(s, cases[i].sql, &err));
        assert_string_equal(err_code_name(err.code), err_code_name(cases[i].code));
        assert_string_equal(err.sqlstate, cases[i].sqlstate);
        assert_true(store_alive(s));
        tx_rollback(s);
    }
    struct err err = ERR_INIT;
    pg_good(store_plain(s, "SELECT 1", &err), &err);
    store_close(s);
    assert_false(store_open("host=/nowhere dbname=x", STORE_API, &s, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
}

static void test_conn__a_statement_may_be_given_another_limit(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct store *s = pg_open(w->db, STORE_API);
    pg_good(store_statement_limit(s, 50 * USEC_PER_MSEC, &err), &err);
    assert_false(store_plain(s, "SELECT pg_sleep(30)", &err));
    assert_int_equal(err.code, ERR_TIMEOUT);
    pg_good(store_statement_limit(s, 0, &err), &err);
    pg_good(store_plain(s, "SELECT pg_sleep(0.2)", &err), &err);
    store_close(s);
}

struct limit_wanted {
    struct store *db;
    bool fails;
};

/* What a statement that makes an answer may take. */
static bool limit_make(void *ctx, struct buf *out, struct err *err)
{
    const struct limit_wanted *of = ctx;
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(of->db, "limit", "SELECT current_setting('statement_timeout')", NULL, &r,
                    err)) {
        return false;
    }
    buf_add_cstr(out, PQgetvalue(r, 0, 0));
    return !of->fails || err_set(err, ERR_TIMEOUT, "no answer");
}

/* A slow database is given time for what all who ask then get; other requests are not. */
static void test_conn__what_is_made_once_for_all_may_take_longer(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct store *s = pg_open(w->db, STORE_API);
    struct response_cache *c = response_cache_new();
    for (int i = 0; i < 4; i++) { /* made at once, in vain, later; then nothing is left of it */
        struct response_cache_ask ask = {.key = i == 2 ? "later" : "now", .db = s};
        struct limit_wanted of = {.db = s, .fails = i == 1};
        struct response_later *later = NULL;
        AUTO_FREE char *json = NULL;
        AUTO_BUF struct buf usual = BUF_INIT(100);
        if (i == 2) {
            struct store *another = pg_open(w->db, STORE_API);
            ask.db = of.db = another;
            assert_null(response_cache_last(c, &ask, limit_make, &of, sizeof of, &later));
            store_close(another);
            response_later_make(later, s);
            ask.db = s;
            ask.same_us = USEC_PER_SEC;
        }
        assert_int_equal(response_cache_answer(c, &ask, limit_make, &of, &json, &err), i != 1);
        assert_string_equal(json != NULL ? json : "20s", "20s");
        of = (struct limit_wanted){.db = s};
        pg_good(limit_make(&of, &usual, &err), &err);
        assert_string_equal(buf_cstr(&usual), "5s");
    }
    response_cache_free(c);
    store_close(s);
}

static void test_conn__a_lost_connection_is_unavailable_and_stays_so(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct store *s = pg_open(w->db, STORE_API);
    pg_sql(w->db, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> "
                  "pg_backend_pid() AND datname = current_database()");
    for (int i = 0; i < 2; i++) {
        assert_false(tx_begin(s, TX_WRITE, &err));
        assert_int_equal(err.code, ERR_UNAVAILABLE);
        assert_false(store_alive(s));
        assert_false(tx_open(s));
    }
    store_close(s);
}

static void test_conn__a_server_that_stops_talking_costs_a_connection_not_a_thread(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct store *s = pg_open(w->db, STORE_API);
    AUTO_RESULT PGresult *r = NULL;
    assert_true(store_exec(s, "pid", "SELECT pg_backend_pid()", NULL, &r, &err));
    int pid = row_int(r, 0, 0);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    int64_t start = clock_mono_us();
    assert_false(store_plain(s, "SELECT 1", &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_true(clock_mono_us() - start < 15 * USEC_PER_SEC);
    assert_false(store_alive(s));
    assert_int_equal(kill(pid, SIGCONT), 0);
    store_close(s);
}

static void *freeze_ends(void *ctx)
{
    (void)poll(NULL, 0, 20000); /* one that waits without a bound goes on then, too late */
    (void)kill(*(int *)ctx, SIGCONT);
    return NULL;
}

/* While rows are sent, when all are sent, and when they are given up. */
static void test_conn__a_copy_into_a_frozen_server_ends(void **state)
{
    struct world *w = *state;
    static char piece[256 * 1024];
    memset(piece, 'x', sizeof piece);
    for (int how = 0; how < 3; how++) {
        struct err err = ERR_INIT;
        struct store *s = pg_open(w->db, STORE_API);
        AUTO_RESULT PGresult *r = NULL;
        assert_true(store_exec(s, "pid", "SELECT pg_backend_pid()", NULL, &r, &err));
        int pid = row_int(r, 0, 0);
        pg_good(store_plain(s, "CREATE TEMP TABLE t (x text)", &err) &&
                    store_plain(s, "COPY t FROM STDIN", &err) && store_copy_put(s, "a\n", 2, &err),
                &err);
        store_set_wait(s, 300 * USEC_PER_MSEC);
        assert_int_equal(kill(pid, SIGSTOP), 0);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, freeze_ends, &pid), 0);
        int64_t began_us = clock_mono_us();
        bool ok = true;
        for (int i = 0; i < 256 && how == 0 && ok; i++) { /* more than sockets hold */
            ok = store_copy_put(s, piece, sizeof piece, &err);
        }
        if (how == 1) {
            ok = store_copy_end(s, &err);
        } else if (how == 2) {
            store_copy_cancel(s);
        }
        bool early = clock_mono_us() - began_us < 15 * USEC_PER_SEC;
        (void)pthread_cancel(thread);
        (void)pthread_join(thread, NULL);
        assert_int_equal(kill(pid, SIGCONT), 0);
        assert_true(early);
        assert_true(how == 2 || (!ok && err.code == ERR_UNAVAILABLE));
        assert_false(store_alive(s));
        store_close(s);
    }
}

static void test_conn__a_failed_statement_takes_its_pipeline_and_transaction_down(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct store *s = pg_open(w->db, STORE_API);
    const struct statement st[] = {{.sql = "BEGIN"},
                                   {.sql = "INSERT INTO project (name) VALUES ('a')"},
                                   {.sql = "SELECT 1/0"},
                                   {.sql = "INSERT INTO project (name) VALUES ('b')"}};
    PGresult *r[ARRAY_LEN(st)];
    assert_false(store_pipeline(s, st, ARRAY_LEN(st), r, &err));
    assert_string_equal(err.sqlstate, "22012");
    for (size_t i = 0; i < ARRAY_LEN(st); i++) {
        assert_null(r[i]);
    }
    assert_true(store_alive(s));
    /* COMMIT of it would be answered by a quiet ROLLBACK: that is an error here. */
    assert_false(tx_commit(s, &err));
    assert_int_equal(err.code, ERR_DATABASE);
    assert_false(tx_open(s));
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM project"), 1);
    store_close(s);
}

static bool notified(struct store *listener, int64_t wait_us)
{
    struct err err = ERR_INIT;
    struct pollfd p = {.fd = store_fd(listener), .events = POLLIN};
    bool any = false;
    if (poll(&p, 1, (int)(wait_us / USEC_PER_MSEC)) > 0) {
        pg_good(store_notified(listener, &any, &err), &err);
    }
    return any;
}

static void test_conn__events_wake_the_listener_at_commit_and_only_then(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    int64_t epoch = 0;
    struct store *listener = pg_open(w->db, STORE_LISTEN);
    struct store *wanted = pg_open(w->db, STORE_LISTEN_WANTED);
    struct store *s = pg_leader(w->db, &epoch);
    pg_good(leader_begin(s, epoch, &err), &err);
    pg_good(store_alert(s, 0, "x", &err), &err);
    assert_false(notified(listener, 50000));
    pg_good(leader_commit(s, &err), &err);
    assert_true(notified(listener, 5 * USEC_PER_SEC));
    pg_good(leader_begin(s, epoch, &err), &err);
    pg_good(store_alert(s, 0, "x", &err), &err);
    leader_rollback(s);
    pg_good(leader_begin(s, epoch, &err), &err); /* nothing written */
    pg_good(leader_commit(s, &err), &err);
    assert_false(notified(listener, 50000));
    assert_false(notified(wanted, 50000)); /* a leader does not hear its own events */
    pg_sql(w->db, "NOTIFY " STORE_CHANNEL_WANTED);
    assert_true(notified(listener, 5 * USEC_PER_SEC));
    assert_true(notified(wanted, 5 * USEC_PER_SEC));
    bool any = false;
    pg_fixture_stop_immediate();
    assert_false(store_notified(listener, &any, &err));
    assert_false(store_alive(listener));
    store_close(s);
    store_close(wanted);
    store_close(listener);
}

static void test_conn__a_committed_row_survives_every_death_of_the_server(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    for (int i = 0; i < 4; i++) {
        struct store *s = pg_open(w->db, STORE_API);
        AUTO_FREE char *sql = xasprintf("INSERT INTO project (name) VALUES ('kept %d')", i);
        AUTO_FREE char *lost = xasprintf("INSERT INTO project (name) VALUES ('open %d')", i);
        pg_good(store_plain(s, sql, &err), &err);
        pg_good(tx_begin(s, TX_WRITE, &err), &err);
        pg_good(store_plain(s, lost, &err), &err);
        if (i % 2 == 0) {
            pg_fixture_kill();
        } else {
            pg_fixture_stop_immediate();
        }
        assert_false(tx_commit(s, &err));
        assert_int_equal(err.code, ERR_UNAVAILABLE);
        store_close(s);
        pg_fixture_restart();
    }
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM project WHERE name LIKE 'kept %%'"), 4);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM project WHERE name LIKE 'open %%'"), 0);
}

static const char *params_text(struct store *s, const char *sql, struct params *p, PGresult **ret)
{
    struct err err = ERR_INIT;
    static int made;
    AUTO_FREE char *name = xasprintf("test_%d", made++);
    pg_good(store_exec(s, name, sql, p, ret, &err), &err);
    params_done(p);
    return row_text(*ret, 0, 0);
}

static void test_conn__parameters_arrive_as_given(void **state)
{
    struct world *w = *state;
    struct store *s = pg_open(w->db, STORE_API);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, INT64_MIN);
    param_i32(&p, INT32_MIN);
    param_i16(&p, INT16_MIN);
    param_bool(&p, true);
    param_text(&p, "häßlich");
    param_bytes(&p, "\0\xff", 2);
    param_json(&p, "{\"a\": 1}");
    param_time(&p, 1700000000123456);
    AUTO_RESULT PGresult *a = NULL;
    assert_string_equal(
        params_text(s, "SELECT concat_ws(' ', $1, $2, $3, $4, $5, $6, $7, $8)", &p, &a),
        "-9223372036854775808 -2147483648 -32768 t häßlich \\x00ff {\"a\": 1} "
        "2023-11-14 22:13:20.123456+00");
    const int64_t big[] = {1, -2, INT64_MAX};
    const int32_t mid[] = {3, INT32_MIN};
    const int16_t small[] = {-4};
    const char *const texts[] = {"", "x,\"y", "ü"};
    param_i64_array(&p, big, 3);
    param_i32_array(&p, mid, 2);
    param_i16_array(&p, small, 1);
    param_text_array(&p, texts, 3);
    param_i64_array(&p, big, 0);
    AUTO_RESULT PGresult *b = NULL;
    assert_string_equal(params_text(s, "SELECT concat_ws(' ', $1, $2, $3, $4, $5)", &p, &b),
                        "{1,-2,9223372036854775807} {3,-2147483648} {-4} {\"\",\"x,\\\"y\",ü} {}");
    param_text(&p, NULL);
    param_time(&p, 0);
    param_json(&p, NULL);
    param_i64_or_null(&p, -1, -1);
    param_i32_array_or_null(&p, NULL, 0);
    param_text_array(&p, NULL, 0);
    param_outside_text(&p, NULL, 5);
    AUTO_RESULT PGresult *c = NULL;
    assert_string_equal(
        params_text(s, "SELECT num_nulls($1, $2, $3, $4, $5, $6, $7)::text", &p, &c), "7");
    store_close(s);
}

/* Somebody has written them by hand: they can be added to and compared with others. */
static void test_conn__instants_and_spans_are_within_bounds(void **state)
{
    struct world *w = *state;
    struct store *s = pg_open(w->db, STORE_API);
    struct err err = ERR_INIT;
    AUTO_RESULT PGresult *r = NULL;
    pg_good(store_exec(s, "bounds",
                       "SELECT 'infinity'::timestamptz, '-infinity'::timestamptz, '294276-01-01 "
                       "00:00:00Z'::timestamptz, '9999-12-31 23:59:59.999999Z'::timestamptz, "
                       "'2023-11-14 22:13:20.123456Z'::timestamptz, NULL::timestamptz, "
                       "9223372036854775807, -9223372036854775807, 86400::bigint",
                       NULL, &r, &err),
            &err);
    assert_int_equal(row_time(r, 0, 0), ROW_TIME_MAX);
    assert_int_equal(row_time(r, 0, 1), 1);
    assert_int_equal(row_time(r, 0, 2), ROW_TIME_MAX);
    assert_int_equal(row_time(r, 0, 3), ROW_TIME_MAX);
    assert_int_equal(row_time(r, 0, 4), 1700000000123456);
    assert_int_equal(row_time(r, 0, 5), 0);
    assert_int_equal(row_span_s(r, 0, 6), ROW_SPAN_S_MAX);
    assert_int_equal(row_span_s(r, 0, 7), 0);
    assert_int_equal(row_span_s(r, 0, 8), 86400);
    store_close(s);
}

static void test_conn__text_from_outside_is_made_valid_and_cut_at_characters(void **state)
{
    struct world *w = *state;
    struct store *s = pg_open(w->db, STORE_API);
    const struct {
        const char *in;
        size_t max;
        const char *out;
    } cases[] = {{"plain", 10, "plain"},
                 {"plain", 3, "pla"},
                 {"", 3, ""},
                 {"\xff\xfe", 5, "??"},
                 {"a\xc3", 5, "a?"},
                 {"\xc3\xa4\xc3\xa4", 1, "\xc3\xa4"},
                 {"\xed\xa0\x80x", 9, "???x"},
                 {"\xf0\x9f\x98\x80!", 2, "\xf0\x9f\x98\x80!"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_PARAMS struct params p = PARAMS_INIT;
        AUTO_RESULT PGresult *r = NULL;
        param_outside_text(&p, cases[i].in, cases[i].max);
        assert_string_equal(params_text(s, "SELECT $1::text", &p, &r), cases[i].out);
    }
    store_close(s);
}

static void test_conn__a_private_cluster_lives_in_a_deep_directory_and_starts_twice(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    const char *memory = getenv("DROVER_TEST_CLUSTER"); /* a disk that is slow costs a minute */
    AUTO_FREE char *top = xasprintf("%s/deep.XXXXXX", memory != NULL ? memory : "build/tests");
    assert_non_null(mkdtemp(top));
    assert_int_equal(chmod(top, 0755), 0);
    AUTO_FREE char *dir =
        xasprintf("%s/%s/%s", top, "a-directory-with-a-rather-long-name-of-sixty-four-bytes-or-so",
                  "and-another-one-below-it-so-that-no-socket-fits-in-108-bytes");
    char one[PRIVATE_CLUSTER_CONNINFO_MAX];
    char two[PRIVATE_CLUSTER_CONNINFO_MAX];
    pg_good(private_cluster_start(dir, one, sizeof one, &err), &err);
    int pid = private_cluster_pid(dir);
    assert_true(pid > 0);
    pg_good(private_cluster_start(dir, two, sizeof two, &err), &err);
    assert_int_equal(private_cluster_pid(dir), pid);
    assert_string_equal(one, two);
    assert_int_equal(pg_i64(one, "SELECT 1"), 1);
    AUTO_FREE char *listens = pg_text(one, "SHOW listen_addresses");
    assert_string_equal(listens, "");
    /* A pid file that names a process which is no server is stale. */
    assert_int_equal(kill(pid, SIGKILL), 0);
    AUTO_FREE char *pid_file = xasprintf("%s/pg/data/postmaster.pid", dir);
    int64_t deadline = clock_mono_us() + 10 * USEC_PER_SEC;
    while (private_cluster_pid(dir) == pid && clock_mono_us() < deadline) {
        (void)poll(NULL, 0, 1);
    }
    FILE *f = fopen(pid_file, "r+e");
    assert_non_null(f);
    assert_true(fprintf(f, "%07d\n", getpid()) > 0);
    assert_int_equal(fclose(f), 0);
    pg_good(private_cluster_start(dir, two, sizeof two, &err), &err);
    assert_int_equal(pg_i64(two, "SELECT 1"), 1);
    pg_good(private_cluster_stop(dir, PRIVATE_CLUSTER_FAST, &err), &err);
    pg_good(private_cluster_stop(dir, PRIVATE_CLUSTER_FAST, &err), &err);
    assert_int_equal(private_cluster_pid(dir), 0);
    /* Data of a version that is not installed, whatever else is. */
    AUTO_FREE char *version = xasprintf("echo 12 > '%s/pg/data/PG_VERSION'", dir);
    assert_int_equal(system(version), 0);
    assert_false(private_cluster_start(dir, two, sizeof two, &err));
    assert_int_equal(err.code, ERR_PRECONDITION);
    assert_non_null(strstr(err.message, "postgresql-12"));
    AUTO_FREE char *rm = xasprintf("rm -rf '%s'", top);
    assert_int_equal(system(rm), 0);
}

static void test_conn__a_private_cluster_refuses_directories_it_cannot_use(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    char info[PRIVATE_CLUSTER_CONNINFO_MAX];
    assert_false(private_cluster_start("/proc/nowhere", info, sizeof info, &err));
    assert_int_equal(err.code, ERR_IO);
    assert_non_null(strstr(err.message, "/proc/nowhere"));
    assert_false(private_cluster_start("build/tests/it's", info, sizeof info, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(rmdir("build/tests/it's"), 0);
    assert_int_equal(private_cluster_pid("build/tests/never-made"), 0);
    /* Its own directory open to others: somebody else may have laid it out. */
    char dir[] = "build/tests/open.XXXXXX";
    assert_non_null(mkdtemp(dir));
    AUTO_FREE char *pg = xasprintf("%s/pg", dir);
    assert_int_equal(mkdir(pg, 0755), 0);
    assert_int_equal(chmod(pg, 0755), 0);
    assert_false(private_cluster_start(dir, info, sizeof info, &err));
    assert_int_equal(err.code, ERR_PRECONDITION);
    AUTO_FREE char *rm = xasprintf("rm -rf '%s'", dir);
    assert_int_equal(system(rm), 0);
}

/* The key of a droverd that stands still with its session open (paused, its machine frozen). */
static void test_conn__a_silent_session_gives_its_key_back(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    bool locked;
    struct store *silent = pg_open(w->db, STORE_API);
    struct store *s = pg_open(w->db, STORE_API);
    assert_true(apidb_key_lock(silent, "t", "k", 300 * USEC_PER_MSEC, &locked, &err) && locked);
    assert_true(apidb_key_lock(s, "t", "k", 300 * USEC_PER_MSEC, &locked, &err) && !locked);
    for (int i = 0; i < 3000 && !locked; i++) {
        (void)poll(NULL, 0, 20);
        assert_true(apidb_key_lock(s, "t", "k", 300 * USEC_PER_MSEC, &locked, &err));
    }
    assert_true(locked);
    assert_false(store_plain(silent, "SELECT 1", &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    apidb_key_unlock(s, "t", "k"); /* and may be silent from here on */
    (void)poll(NULL, 0, 500);
    assert_true(store_plain(s, "SELECT 1", &err));
    store_close(silent);
    store_close(s);
}

/* Takes libpq's own when it is called: with no_result there is no memory for one result. */
static _Thread_local int no_result;
PGresult *PQmakeEmptyPGresult(PGconn *conn, ExecStatusType status)
{
    static PGresult *(*own)(PGconn *, ExecStatusType);
    if (own == NULL) {
        *(void **)&own = dlsym(RTLD_NEXT, "PQmakeEmptyPGresult");
    }
    if (no_result > 0) {
        no_result--;
        return NULL;
    }
    return own(conn, status);
}

static void test_conn__a_moment_without_memory_does_not_lose_an_answer(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct store *s = pg_open(w->db, STORE_API);
    pg_good(store_plain(s, "CREATE TEMP TABLE copied (n int)", &err), &err);
    store_set_wait(s, 300 * USEC_PER_SEC);
    no_result = 1;
    usec_t began = clock_mono_us();
    pg_good(store_plain(s, "COPY copied FROM STDIN", &err), &err);
    assert_int_equal(no_result, 0);
    assert_true(clock_mono_us() - began < 100 * USEC_PER_SEC);
    pg_good(store_copy_put(s, "7\n", 2, &err), &err);
    pg_good(store_copy_end(s, &err), &err);
    store_close(s);
}

int main(void)
{
    pg_fixture_alone();
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_conn__errors_say_what_they_are),
        T(test_conn__a_statement_may_be_given_another_limit),
        T(test_conn__what_is_made_once_for_all_may_take_longer),
        T(test_conn__a_lost_connection_is_unavailable_and_stays_so),
        T(test_conn__a_server_that_stops_talking_costs_a_connection_not_a_thread),
        T(test_conn__a_copy_into_a_frozen_server_ends),
        T(test_conn__a_failed_statement_takes_its_pipeline_and_transaction_down),
        T(test_conn__events_wake_the_listener_at_commit_and_only_then),
        T(test_conn__a_committed_row_survives_every_death_of_the_server),
        T(test_conn__parameters_arrive_as_given),
        T(test_conn__instants_and_spans_are_within_bounds),
        T(test_conn__text_from_outside_is_made_valid_and_cut_at_characters),
        T(test_conn__a_silent_session_gives_its_key_back),
        T(test_conn__a_moment_without_memory_does_not_lose_an_answer),
        cmocka_unit_test(test_conn__a_private_cluster_lives_in_a_deep_directory_and_starts_twice),
        cmocka_unit_test(test_conn__a_private_cluster_refuses_directories_it_cannot_use),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store connections", tests, NULL, NULL);
}
