/* Aim: a job that no row knows is held like any attempt once it is found, its log is read, and its
 * name is not given again. Method: as test_store_scheduler.c. */
#include "store/leader/attempts.h"
#include "store/leader/lease.h"
#include "store/leader/strays.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PARTS 10
#include "led_world.h"

static void record(struct world *w, struct attempt_record *r)
{
    struct err err = ERR_INIT;
    begin(w);
    pg_good(store_record(w->s, r, 1, &err), &err);
    commit(w);
}

static int64_t slots(struct world *w, const char *column)
{
    return pg_i64(w->db, "SELECT %s FROM slots WHERE instance_type = 'ml.m5.large'", column);
}

/* A stray that was found while its campaign could not be read has a name that a part would have. As
 * two rows of one job it was booked twice. */
static void test_store_strays__the_name_of_a_stray_is_not_used_again(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct intent in = pg_intent(w->s, &w->c, 4, 1);
    pg_sql(w->db,
           "INSERT INTO stray (name, why, instance_type, instances, price_musd_per_hour, "
           "reserved_musd) VALUES ('%s', 'lost', '%s', 1, 0, 0)",
           in.name.s, in.instance_type);
    pg_sql(w->db,
           "INSERT INTO slots AS s (instance_type, market, held) VALUES ('%s', 'on_demand', 1) ON "
           "CONFLICT (instance_type, market) DO UPDATE SET held = s.held + 1",
           in.instance_type);
    begin(w);
    pg_good(store_intend(w->s, w->epoch, &in, 1, &err), &err);
    commit(w);
    assert_string_equal(in.refused, "task"); /* it lives */
    assert_int_equal(pg_i64(w->db, "SELECT names FROM task_run WHERE seq = 4"), 0);
    struct stray_row row = {.price_musd_per_hour = 7200}; /* known since */
    (void)snprintf(row.name, sizeof row.name, "%s", in.name.s);
    begin(w);
    pg_good(store_stray_seen(w->s, &row, &err), &err);
    commit(w);
    assert_int_equal(pg_i64(w->db, "SELECT price_musd_per_hour FROM stray"), 7200);
    pg_sql(w->db, "UPDATE stray SET holds = false");
    pg_sql(w->db, "UPDATE slots SET held = held - 1 WHERE instance_type = '%s'", in.instance_type);
    begin(w);
    pg_good(store_intend(w->s, w->epoch, &in, 1, &err), &err);
    commit(w);
    assert_string_equal(in.refused, "task");
    assert_int_equal(pg_i64(w->db, "SELECT names FROM task_run WHERE seq = 4"), 1);
    assert_int_equal(pg_i64(w->db, "SELECT state FROM task_run WHERE seq = 4"), TASK_WAITING);
    struct intent next = pg_intent(w->s, &w->c, 4, 2);
    begin(w);
    pg_good(store_intend(w->s, w->epoch, &next, 1, &err), &err);
    commit(w);
    assert_true(next.taken);
    assert_int_equal(pg_i64(w->db, "SELECT names FROM task_run WHERE seq = 4"), 2);
}

static void assert_money(struct world *w, const char *want)
{
    AUTO_FREE char *money = pg_text(w->db, "SELECT concat_ws(' ', reserved_musd, spent_musd) FROM "
                                           "money WHERE level = 'global'");
    assert_string_equal(money, want);
    pg_check_counters(w->db);
}

static void seen(struct world *w, const struct stray_row *row)
{
    struct err err = ERR_INIT;
    begin(w);
    pg_good(store_stray_seen(w->s, row, &err), &err);
    commit(w);
}

/* Found before its type had a price: what is reserved by it later is reserved once, read back by
 * the next leader, and released once. */
static void test_store_strays__a_price_that_comes_late_reserves_once(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    bool is_new = false;
    struct stray_row row = {
        .name = "d-9-s-0-a1-late", .why = "lost", .instance_type = "ml.m5.large", .instances = 2};
    begin(w);
    pg_good(store_stray_put(w->s, &row, &is_new, &err), &err);
    commit(w);
    assert_money(w, "0 0");
    (void)snprintf(row.status, sizeof row.status, "InProgress");
    seen(w, &row); /* none is known yet */
    assert_money(w, "0 0");
    row.price_musd_per_hour = 7200;
    row.reserved_musd = 5000;
    seen(w, &row);
    assert_money(w, "5000 0");
    (void)snprintf(row.status, sizeof row.status, "Stopping");
    row.reserved_musd = 6000;
    seen(w, &row); /* its price was known */
    assert_money(w, "5000 0");
    AUTO_FREE struct stray_row *rows = NULL;
    size_t n = 0;
    pg_good(view_strays(w->s, &rows, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_true(rows[0].price_musd_per_hour == 7200 && rows[0].reserved_musd == 5000);
    struct ledger_account_of_attempt a = {.reserved_musd = rows[0].reserved_musd, .reserved = true};
    struct stray_end e = {
        .name = row.name, .status = "Stopped", .billable_s = 100, .cost_musd = 200};
    pg_good(ledger_settle_job(&a, 0, 200, 100, false, 0, e.entries, &e.entries_n, &err), &err);
    begin(w);
    pg_good(store_stray_end(w->s, &e, &err), &err);
    commit(w);
    assert_money(w, "0 200");
    assert_int_equal(slots(w, "held"), 0);
}

static void test_store_strays__a_job_without_a_row_is_held_like_any_attempt(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    int64_t task = 0;
    struct adoption a = {.intent = pg_intent(w->s, &w->c, 4, 2), .created_us = 7 * USEC_PER_SEC};
    a.intent.keep_alive_s = 300;
    begin(w);
    pg_good(store_adopt(w->s, w->epoch, &a, &task, &err), &err);
    commit(w);
    assert_int_equal(task, w->c.first_task + 4);
    assert_int_equal(pg_i64(w->db, "SELECT collects::int FROM attempt"), 0); /* prints nothing */
    assert_int_equal(slots(w, "held"), 1);
    assert_int_equal(pg_i64(w->db, "SELECT state FROM attempt WHERE n = 2"), ATTEMPT_UNKNOWN);
    assert_int_equal(pg_i64(w->db, "SELECT names FROM task_run WHERE seq = 4"), 2);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM money WHERE reserved_musd = 1000000"), 4);
    struct adoption twice = a; /* its task is active now; a person decides */
    twice.intent.attempt_id += 1000;
    (void)snprintf(twice.intent.name.s, sizeof twice.intent.name.s, "another");
    begin(w);
    pg_good(store_adopt(w->s, w->epoch, &twice, &task, &err), &err);
    commit(w);
    assert_int_equal(task, 0);
    struct adoption none = {.intent = pg_intent(w->s, &w->c, 99, 1)}; /* no such part */
    begin(w);
    pg_good(store_adopt(w->s, w->epoch, &none, &task, &err), &err);
    commit(w);
    assert_int_equal(task, 0);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM attempt"), 1);
}

/* The same of an attempt: on every level, and no more once it has a price or has ended. */
static void test_store_strays__an_attempt_gets_its_price_once(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    int64_t task = 0;
    struct adoption a = {.intent = pg_intent(w->s, &w->c, 4, 1), .created_us = 7 * USEC_PER_SEC};
    a.intent.price_musd_per_hour = a.intent.reserve_musd = 0;
    begin(w);
    pg_good(store_adopt(w->s, w->epoch, &a, &task, &err), &err);
    commit(w);
    const struct late_price p = {
        .attempt_id = a.intent.attempt_id, .price_musd_per_hour = 7200, .more_musd = 5000};
    begin(w);
    pg_good(store_attempt_priced(w->s, &p, &err), &err);
    commit(w);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM money WHERE reserved_musd = 5000"), 4);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM attempt WHERE price_musd_per_hour = 7200 "
                                   "AND reserved_musd = 5000 AND open_musd = 5000"),
                     1);
    begin(w);
    assert_false(store_attempt_priced(w->s, &p, &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    leader_rollback(w->s);
    a.intent.price_musd_per_hour = 0; /* recast to a type without a price, which then has one */
    const struct late_price next = {
        .attempt_id = a.intent.attempt_id, .price_musd_per_hour = 9000, .more_musd = 700};
    begin(w);
    pg_good(store_attempt_recast(w->s, a.intent.attempt_id, &a.intent, &err), &err);
    commit(w);
    begin(w);
    pg_good(store_attempt_priced(w->s, &next, &err), &err);
    commit(w);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM money WHERE reserved_musd = 5700"), 4);
    a.intent.reserve_musd = 5700;
    struct attempt_record r = pg_record(&a.intent, ATTEMPT_UNKNOWN, ATTEMPT_VOID);
    r.task_id = task;
    r.task_moves = true;
    r.task_to = TASK_WAITING;
    pg_book(&r);
    record(w, &r);
    assert_int_equal(pg_i64(w->db, "SELECT max(reserved_musd) FROM money"), 0);
}

/* Else its stage's gate would hold for ever: nobody reads what it opens by. */
static void test_store_strays__the_log_of_a_job_that_is_found_again_is_read(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    int64_t task = 0;
    bool revived = false;
    struct adoption a = {.intent = pg_intent(w->s, &w->c, 4, 1), .created_us = 7 * USEC_PER_SEC};
    pg_sql(w->db, "UPDATE campaign SET spec = jsonb_build_object('stages', jsonb_build_array("
                  "jsonb_build_object('name', (SELECT name FROM stage LIMIT 1), 'training', "
                  "'{\"metrics\": [{\"name\": \"loss\"}]}'::jsonb)))");
    begin(w);
    pg_good(store_adopt(w->s, w->epoch, &a, &task, &err), &err);
    commit(w);
    assert_int_equal(pg_i64(w->db, "SELECT collects::int FROM attempt"), 1);
    struct attempt_record r = pg_record(&a.intent, ATTEMPT_UNKNOWN, ATTEMPT_VOID);
    r.task_id = task;
    r.task_moves = true;
    r.task_to = TASK_WAITING;
    pg_book(&r);
    record(w, &r);
    pg_sql(w->db, "UPDATE attempt SET collects = false");
    pg_sql(w->db, "UPDATE stage_run SET state = 'running'");
    begin(w);
    pg_good(store_attempt_revive(w->s, w->epoch, a.intent.name.s, "", 1000000, &revived, &err),
            &err);
    commit(w);
    assert_true(revived);
    assert_int_equal(pg_i64(w->db, "SELECT collects::int FROM attempt"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_store_strays__the_name_of_a_stray_is_not_used_again),
        T(test_store_strays__a_price_that_comes_late_reserves_once),
        T(test_store_strays__a_job_without_a_row_is_held_like_any_attempt),
        T(test_store_strays__an_attempt_gets_its_price_once),
        T(test_store_strays__the_log_of_a_job_that_is_found_again_is_read),
#undef T
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store strays", tests, NULL, NULL);
}
