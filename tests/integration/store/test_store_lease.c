/* Aim: a transaction of an older epoch commits nothing, whenever the takeover comes; a frozen
 * leader cannot hold the lease; a server that may lose commits is refused. Method: two real leader
 * connections, the takeover placed between the steps of the older one; a leader that stops talking
 * in mid-transaction stands for one under SIGSTOP, and one really is. */
#include "common/clock.h"
#include "store/leader/lease.h"
#include "store/leader/tasks.h"
#include "store/pg/private_cluster.h"
#include "tests/kit/pg_fixture.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

struct world {
    char db[600];
    struct pg_campaign c;
};

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    pg_fixture_database(w->db, sizeof w->db);
    w->c = pg_campaign_make(w->db, 10);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

static struct lease_info lease_of(struct store *s)
{
    struct err err = ERR_INIT;
    struct lease_info l;
    pg_good(lease_read(s, &l, &err), &err);
    return l;
}

/* A standby takes over from a leader that it believes frozen. */
static int64_t take_over(struct store *standby)
{
    struct err err = ERR_INIT;
    struct lease_info seen = lease_of(standby);
    struct lease_taken got = {.epoch = 0};
    bool taken = false;
    pg_good(lease_take_from_frozen(standby, &seen, "standby", USEC_PER_SEC, &got, &taken, &err),
            &err);
    assert_true(taken);
    assert_int_equal(got.epoch, seen.epoch + 1);
    assert_int_equal(got.longest_us, MAX(seen.length_us, USEC_PER_SEC));
    return got.epoch;
}

static bool hold_all(struct world *w, struct store *s, struct err *err)
{
    int64_t ids[10];
    size_t moved = 0;
    for (int i = 0; i < 10; i++) {
        ids[i] = w->c.first_task + i;
    }
    return store_tasks_move(s, w->c.campaign_id, w->c.stage_id, TASK_WAITING, TASK_HELD, CAUSE_NONE,
                            ids, 10, &moved, NULL, err);
}

static void assert_untouched(struct world *w)
{
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task_run WHERE state <> 0"), 0);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM event"), 0);
    pg_check_counters(w->db);
}

static void test_lease__one_holds_the_lock_and_each_take_is_a_new_epoch(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    int64_t first = 0;
    struct store *a = pg_leader(w->db, &first);
    struct store *b = pg_open(w->db, STORE_LEADER);
    bool locked = true;
    pg_good(lease_try_lock(b, &locked, &err), &err);
    assert_false(locked);
    struct lease_info l = lease_of(b);
    assert_int_equal(l.epoch, first);
    assert_string_equal(l.holder, "test");
    assert_true(l.backend_pid > 0);
    pg_good(lease_renew(a, first, 10 * USEC_PER_SEC, &err), &err);
    assert_int_equal(lease_of(b).renewals, l.renewals + 1);
    pg_good(lease_release(a, first, &err), &err);
    pg_good(lease_try_lock(b, &locked, &err), &err);
    assert_true(locked);
    struct lease_taken second = {.epoch = 0};
    pg_good(lease_take(b, "b", USEC_PER_SEC, &second, &err), &err);
    assert_int_equal(second.epoch, first + 1);
    /* Whoever led before was told 10 s, and may send until then; a renewal shortens it. */
    assert_int_equal(second.longest_us, 10 * USEC_PER_SEC);
    assert_int_equal(lease_of(b).length_us, 10 * USEC_PER_SEC);
    pg_good(lease_renew(b, second.epoch, USEC_PER_SEC, &err), &err);
    assert_int_equal(lease_of(b).length_us, USEC_PER_SEC);
    assert_false(lease_renew(a, first, 10 * USEC_PER_SEC, &err));
    assert_int_equal(err.code, ERR_NOT_LEADER);
    store_close(a);
    store_close(b);
}

static void test_lease__a_lock_dies_with_its_holders_connection(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct store *a = pg_leader(w->db, NULL);
    struct store *b = pg_open(w->db, STORE_LEADER);
    pg_sql(w->db, "SELECT pg_terminate_backend(%d)", lease_of(b).backend_pid);
    bool locked = false;
    int64_t deadline = clock_mono_us() + 5 * USEC_PER_SEC;
    while (!locked && clock_mono_us() < deadline) {
        pg_good(lease_try_lock(b, &locked, &err), &err);
    }
    assert_true(locked);
    assert_false(lease_renew(a, 1, 10 * USEC_PER_SEC, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_false(store_alive(a));
    store_close(a);
    store_close(b);
}

static void test_lease__an_old_epoch_cannot_begin(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    int64_t epoch = 0;
    struct store *a = pg_leader(w->db, &epoch);
    assert_false(leader_begin(a, epoch - 1, &err));
    assert_int_equal(err.code, ERR_NOT_LEADER);
    assert_false(leader_begin(a, epoch + 1, &err));
    assert_int_equal(err.code, ERR_NOT_LEADER);
    pg_good(leader_begin(a, epoch, &err), &err); /* the connection is still good */
    leader_rollback(a);
    store_close(a);
}

/* Without its session ended: as through a pooler that keeps the old one alive. */
/* Somebody has changed the row: nobody could lead any more. */
static void test_lease__renewals_begin_anew_at_the_end_of_their_range(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct store *s = pg_open(w->db, STORE_LEADER);
    bool locked = false;
    struct lease_taken got;
    pg_good(lease_try_lock(s, &locked, &err), &err);
    assert_true(locked);
    pg_sql(w->db, "UPDATE lease SET renewals = 9223372036854775807");
    pg_good(lease_take(s, "one", USEC_PER_SEC, &got, &err), &err);
    assert_int_equal(lease_of(s).renewals, 0);
    pg_sql(w->db, "UPDATE lease SET renewals = 9223372036854775807");
    pg_good(lease_renew(s, got.epoch, USEC_PER_SEC, &err), &err);
    assert_int_equal(lease_of(s).renewals, 0);
    pg_good(lease_renew(s, got.epoch, USEC_PER_SEC, &err), &err);
    assert_int_equal(lease_of(s).renewals, 1);
    store_close(s);
}

static void test_lease__a_takeover_waits_for_an_open_transaction_of_the_leader(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    int64_t epoch = 0;
    struct store *a = pg_leader(w->db, &epoch);
    struct store *b = pg_open(w->db, STORE_ADMIN);
    assert_true(store_plain(b, "SET lock_timeout = '100ms'", &err));
    pg_good(leader_begin(a, epoch, &err), &err);
    assert_false(store_plain(b, "UPDATE lease SET epoch = epoch + 1", &err));
    assert_int_equal(err.code, ERR_TIMEOUT);
    pg_good(hold_all(w, a, &err), &err);
    pg_good(leader_commit(a, &err), &err);
    assert_true(store_plain(b, "UPDATE lease SET epoch = epoch + 1", &err));
    assert_false(leader_begin(a, epoch, &err));
    assert_int_equal(err.code, ERR_NOT_LEADER);
    assert_int_equal(pg_i64(w->db, "SELECT held FROM stage_run"), 10);
    store_close(a);
    store_close(b);
}

static void test_lease__begin_behind_an_uncommitted_takeover_finds_no_row(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    int64_t epoch = 0;
    struct store *a = pg_leader(w->db, &epoch);
    struct store *b = pg_open(w->db, STORE_ADMIN);
    assert_true(store_plain(b, "BEGIN", &err) &&
                store_plain(b, "UPDATE lease SET epoch = epoch + 1", &err));
    assert_false(leader_begin(a, epoch, &err)); /* waits for the row, not longer than a second */
    assert_int_equal(err.code, ERR_TIMEOUT);
    assert_true(store_plain(b, "COMMIT", &err));
    assert_false(leader_begin(a, epoch, &err));
    assert_int_equal(err.code, ERR_NOT_LEADER);
    assert_untouched(w);
    store_close(a);
    store_close(b);
}

static void test_lease__a_leader_frozen_between_any_two_steps_commits_nothing(void **state)
{
    struct world *w = *state;
    for (int step = 0; step < 3; step++) {
        struct err err = ERR_INIT;
        int64_t epoch = 0;
        struct store *a = pg_leader(w->db, &epoch);
        struct store *b = pg_open(w->db, STORE_LEADER);
        /* 0: before begin; 1: after begin, holding the row; 2: with writes done, before commit */
        if (step >= 1) {
            pg_good(leader_begin(a, epoch, &err), &err);
        }
        if (step >= 2) {
            pg_good(hold_all(w, a, &err), &err);
        }
        int64_t now = clock_mono_us();
        int64_t newer = take_over(b);
        assert_true(clock_mono_us() - now < 4 * USEC_PER_SEC);
        bool committed = step == 0   ? leader_begin(a, epoch, &err)
                         : step == 1 ? hold_all(w, a, &err) && leader_commit(a, &err)
                                     : leader_commit(a, &err);
        assert_false(committed);
        assert_true(err.code == ERR_NOT_LEADER || err.code == ERR_UNAVAILABLE);
        assert_untouched(w);
        pg_good(leader_begin(b, newer, &err), &err);
        leader_rollback(b);
        store_close(a);
        store_close(b);
    }
}

static void test_lease__idle_in_a_transaction_the_server_ends_it(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    int64_t epoch = 0;
    struct store *a = pg_leader(w->db, &epoch);
    pg_good(leader_begin(a, epoch, &err), &err);
    pg_good(hold_all(w, a, &err), &err);
    int64_t gone = -1;
    int64_t start = clock_mono_us();
    while (gone != 0 && clock_mono_us() < start + 10 * USEC_PER_SEC) {
        gone = pg_i64(w->db,
                      "SELECT count(*) FROM pg_stat_activity WHERE pid = (SELECT backend_pid FROM "
                      "lease)");
    }
    assert_int_equal(gone, 0);
    assert_true(clock_mono_us() - start > USEC_PER_SEC);
    assert_false(leader_commit(a, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_untouched(w);
    store_close(a);
}

/* A process that begins, writes, and is stopped before its commit; later it goes on. Its exit
 * status says how the commit ended. */
static pid_t frozen_leader(struct world *w)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid != 0) {
        return pid;
    }
    struct err err = ERR_INIT;
    int64_t epoch = 0;
    struct store *a = pg_leader(w->db, &epoch);
    if (!leader_begin(a, epoch, &err) || !hold_all(w, a, &err)) {
        _exit(9);
    }
    (void)raise(SIGSTOP);
    _exit(leader_commit(a, &err) ? 1 : 0);
}

static void test_lease__a_stopped_process_wakes_up_to_nothing(void **state)
{
    struct world *w = *state;
    pid_t pid = frozen_leader(w);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    struct store *b = pg_open(w->db, STORE_LEADER);
    int64_t start = clock_mono_us();
    int64_t epoch = take_over(b);
    assert_true(clock_mono_us() - start < 4 * USEC_PER_SEC);
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_untouched(w);
    struct err err = ERR_INIT;
    pg_good(leader_begin(b, epoch, &err), &err);
    leader_rollback(b);
    store_close(b);
}

static void test_lease__a_lease_renewed_since_it_was_read_is_not_taken(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    int64_t epoch = 0;
    struct store *a = pg_leader(w->db, &epoch);
    struct store *b = pg_open(w->db, STORE_LEADER);
    struct lease_info seen = lease_of(b);
    pg_good(lease_renew(a, epoch, 10 * USEC_PER_SEC, &err), &err);
    struct lease_taken newer = {.epoch = 0};
    bool taken = true;
    pg_good(lease_take_from_frozen(b, &seen, "b", USEC_PER_SEC, &newer, &taken, &err), &err);
    assert_false(taken);
    pg_good(leader_begin(a, epoch, &err), &err); /* and its session lives */
    leader_rollback(a);
    store_close(a);
    store_close(b);
}

static void test_lease__serialization_failures_of_a_leader_mean_not_leader(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    int64_t epoch = 0;
    struct store *a = pg_leader(w->db, &epoch);
    assert_true(store_plain(a, "BEGIN ISOLATION LEVEL REPEATABLE READ", &err));
    assert_true(store_plain(a, "SELECT count(*) FROM task_run", &err)); /* the snapshot */
    pg_sql(w->db, "UPDATE lease SET epoch = epoch + 1");
    assert_false(store_plain(a, "SELECT 1 FROM lease WHERE epoch > 0 FOR SHARE", &err));
    assert_string_equal(err.sqlstate, "40001");
    assert_int_equal(err.code, ERR_NOT_LEADER);
    leader_rollback(a);
    store_close(a);
}

static void test_lease__a_fresh_server_is_durable_enough_and_a_read_only_one_is_not(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct store *s = pg_open(w->db, STORE_LEADER);
    pg_good(lease_check_durability(s, &err), &err);
    store_close(s);
    pg_sql(w->db, "DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET "
                  "default_transaction_read_only = on'; END $$");
    s = pg_open(w->db, STORE_LEADER);
    assert_false(lease_check_durability(s, &err));
    assert_non_null(strstr(err.message, "read-only"));
    store_close(s);
}

/* A server of its own, thrown away: these settings are never touched anywhere else. */
static void test_lease__a_server_that_may_lose_commits_is_refused(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    char dir[] = "build/tests/throwaway.XXXXXX";
    char db[PRIVATE_CLUSTER_CONNINFO_MAX];
    assert_non_null(mkdtemp(dir));
    const char *settings[] = {"fsync", "full_page_writes", "synchronous_commit"};
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        pg_good(private_cluster_start(dir, db, sizeof db, &err), &err);
        struct store *s = pg_open(db, STORE_LEADER);
        pg_good(lease_check_durability(s, &err), &err);
        store_close(s);
        pg_sql(db, "ALTER SYSTEM SET %s = off", settings[i]);
        pg_sql(db, "SELECT pg_reload_conf()");
        bool off = false;
        int64_t deadline = clock_mono_us() + 10 * USEC_PER_SEC;
        while (!off && clock_mono_us() < deadline) {
            AUTO_FREE char *now = pg_text(db, "SHOW %s", settings[i]);
            off = strcmp(now, "off") == 0;
        }
        assert_true(off);
        s = pg_open(db, STORE_LEADER);
        assert_false(lease_check_durability(s, &err));
        assert_int_equal(err.code, ERR_PRECONDITION);
        assert_non_null(strstr(err.message, settings[i]));
        store_close(s);
        pg_sql(db, "ALTER SYSTEM RESET %s", settings[i]);
        pg_sql(db,
               "ALTER DATABASE postgres SET synchronous_commit = off"); /* one database's word */
        s = pg_open(db, STORE_LEADER);
        assert_false(lease_check_durability(s, &err));
        store_close(s);
        pg_sql(db, "ALTER DATABASE postgres RESET synchronous_commit");
        pg_good(private_cluster_stop(dir, PRIVATE_CLUSTER_FAST, &err), &err);
    }
    AUTO_FREE char *rm = xasprintf("rm -rf '%s'", dir);
    assert_int_equal(system(rm), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_lease__one_holds_the_lock_and_each_take_is_a_new_epoch),
        T(test_lease__a_lock_dies_with_its_holders_connection),
        T(test_lease__an_old_epoch_cannot_begin),
        T(test_lease__renewals_begin_anew_at_the_end_of_their_range),
        T(test_lease__a_takeover_waits_for_an_open_transaction_of_the_leader),
        T(test_lease__begin_behind_an_uncommitted_takeover_finds_no_row),
        T(test_lease__a_leader_frozen_between_any_two_steps_commits_nothing),
        T(test_lease__idle_in_a_transaction_the_server_ends_it),
        T(test_lease__a_stopped_process_wakes_up_to_nothing),
        T(test_lease__a_lease_renewed_since_it_was_read_is_not_taken),
        T(test_lease__serialization_failures_of_a_leader_mean_not_leader),
        T(test_lease__a_fresh_server_is_durable_enough_and_a_read_only_one_is_not),
        cmocka_unit_test(test_lease__a_server_that_may_lose_commits_is_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store lease", tests, NULL, NULL);
}
