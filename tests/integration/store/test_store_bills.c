/* Aim: a bill that comes late is booked once, as the difference to the estimate, in every sum that
 * counts it, also when its campaign has ended; when its row has moved on or is gone nothing is
 * written; a stray counts in the sum of everything alone. Method: a fresh database a test in a real
 * cluster; attempts settled by the store's own records, strays by its ends, SQL reads what the
 * correction left, check_counters() counts again. */
#include "store/leader/attempts.h"
#include "store/leader/bills.h"
#include "store/leader/lease.h"
#include "store/leader/strays.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PARTS 10
#include "led_world.h"

static void record(struct world *w, struct attempt_record r)
{
    struct err err = ERR_INIT;
    pg_book(&r);
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_record(w->s, &r, 1, &err), &err);
    pg_good(leader_commit(w->s, &err), &err);
}

/* Try n of a part failed; estimated: its bill has not come. Returns the attempt. */
static int64_t fails(struct world *w, int part, int n, musd_t cost, bool estimated, bool again)
{
    struct err err = ERR_INIT;
    struct intent in = pg_intent(w->s, &w->c, part, n);
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_intend(w->s, w->epoch, &in, 1, &err), &err);
    assert_true(in.taken);
    pg_good(leader_commit(w->s, &err), &err);
    record(w, pg_record(&in, ATTEMPT_INTENDED, ATTEMPT_SUBMITTED));
    struct attempt_record r = pg_record(&in, ATTEMPT_SUBMITTED, ATTEMPT_FAILED);
    r.release = r.settle = r.task_moves = true;
    r.cost_musd = cost;
    r.billable_s = cost / 100;
    r.estimated = estimated;
    r.task_to = again ? TASK_WAITING : TASK_FAILED;
    r.cause = CAUSE_OOM;
    r.signature = "out of memory";
    r.has_phases = true;
    for (int i = 0; i < PHASE_FIGURES_N; i++) {
        r.phases[i] = i;
    }
    record(w, r);
    pg_check_counters(w->db);
    return in.attempt_id;
}

static struct bill_row *bills(struct world *w, size_t *ret_n)
{
    struct bill_row *rows = NULL;
    struct err err = ERR_INIT;
    pg_good(view_bills(w->s, &rows, ret_n, &err), &err);
    return rows;
}

/* The bill of the only row, of an instance. False: it is not written. */
static bool come(struct world *w, const struct bill_row *row, int64_t seconds)
{
    struct err err = ERR_INIT;
    struct bill_correction c = {.attempt_id = row->attempt_id,
                                .job = row->job,
                                .was_billable_s = row->billable_s,
                                .was_musd = row->cost_musd,
                                .billable_s = seconds,
                                .cost_musd = 100 * seconds,
                                .has_phases = true,
                                .phases = {[5] = 55},
                                .rules = "[3]"};
    bool done = false;
    pg_good(ledger_correct(row->attempt_id, row->cost_musd, row->billable_s, c.cost_musd, seconds,
                           &c.entry, &err),
            &err);
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_bill_correct(w->s, &c, &done, &err), &err);
    pg_good(leader_commit(w->s, &err), &err);
    pg_check_counters(w->db);
    return done;
}

static void assert_booked(struct world *w, musd_t musd, int64_t seconds)
{
    assert_int_equal(pg_i64(w->db,
                            "SELECT count(*) FROM money WHERE spent_musd = %lld AND seconds = %lld "
                            "AND reserved_musd = 0",
                            (long long)musd, (long long)seconds),
                     4);
}

static void test_bills__a_correction_is_booked_once_at_every_level(void **state)
{
    struct world *w = *state;
    size_t n;
    int64_t id = fails(w, 3, 1, 5000, true, false);
    pg_sql(w->db, "UPDATE attempt SET evidence = '{\"host\": 1, \"rules\": [2]}'");
    (void)fails(w, 4, 1, 700, false, false);
    pg_sql(w->db, "UPDATE campaign_run SET state = 'failed', ended_at = now()");
    AUTO_FREE struct bill_row *rows = bills(w, &n);
    assert_int_equal(n, 1);
    assert_true(rows[0].attempt_id == id && rows[0].campaign_id == w->c.campaign_id);
    assert_true(rows[0].project_id == w->c.project_id && rows[0].stage_id == w->c.stage_id);
    assert_true(rows[0].task_id == w->c.first_task + 3 && rows[0].instances == 1);
    assert_true(rows[0].billable_s == 50 && rows[0].cost_musd == 5000);
    assert_true(rows[0].has_phases && rows[0].phases[17] == 17);
    AUTO_FREE char *job = pg_text(w->db, "SELECT name FROM attempt WHERE id = %lld", (long long)id);
    assert_string_equal(rows[0].job.s, job);
    assert_booked(w, 5700, 57);
    assert_true(come(w, &rows[0], 20));
    assert_booked(w, 2700, 27);
    AUTO_FREE char *a = pg_text(
        w->db,
        "SELECT concat_ws(' ', billable_s, cost_musd, estimated, phases[6], evidence) FROM attempt "
        "WHERE id = %lld",
        (long long)id);
    assert_string_equal(a, "20 2000 f 55 {\"host\": 1, \"rules\": [3]}");
    AUTO_FREE char *e =
        pg_text(w->db,
                "SELECT concat_ws(' ', from_account, to_account, amount_musd, seconds, estimated) "
                "FROM ledger WHERE entry = 'correct' AND attempt_id = %lld",
                (long long)id);
    assert_string_equal(e, "spent budget 3000 30 f");
    assert_int_equal(
        pg_i64(w->db, "SELECT lost_musd FROM task_failure WHERE attempt_id = %lld", (long long)id),
        2000);
    assert_false(come(w, &rows[0], 20)); /* once */
    assert_booked(w, 2700, 27);
    AUTO_FREE struct bill_row *left = bills(w, &n);
    assert_int_equal(n, 0);
}

static void test_bills__one_above_its_estimate_and_one_equal_to_it(void **state)
{
    struct world *w = *state;
    size_t n;
    (void)fails(w, 3, 1, 5000, true, false);
    (void)fails(w, 4, 1, 700, true, false);
    AUTO_FREE struct bill_row *rows = bills(w, &n);
    assert_int_equal(n, 2);
    assert_true(come(w, &rows[0], 60));
    assert_true(come(w, &rows[1], 7));
    assert_booked(w, 6700, 67);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM ledger WHERE entry = 'correct' AND "
                                   "to_account = 'spent'"),
                     2);
}

/* What a failure has cost is the sum of its tries; of those before a retry by people it is not. */
static void test_bills__what_failures_cost_follows(void **state)
{
    struct world *w = *state;
    size_t n;
    (void)fails(w, 3, 1, 5000, true, true);
    (void)fails(w, 3, 2, 700, false, false);
    (void)fails(w, 4, 1, 5000, true, true);
    pg_sql(w->db, "DELETE FROM task_failure WHERE seq = 4");
    (void)fails(w, 4, 2, 700, false, false);
    AUTO_FREE struct bill_row *rows = bills(w, &n);
    assert_int_equal(n, 2);
    assert_true(come(w, &rows[0], 20) && come(w, &rows[1], 20));
    assert_int_equal(pg_i64(w->db, "SELECT lost_musd FROM task_failure WHERE seq = 3"), 2700);
    assert_int_equal(pg_i64(w->db, "SELECT lost_musd FROM task_failure WHERE seq = 4"), 700);
}

static void test_bills__have_the_price_that_came_later(void **state)
{
    struct world *w = *state;
    size_t n = 0;
    (void)fails(w, 0, 1, 0, true, false);
    pg_sql(w->db, "UPDATE attempt SET price_musd_per_hour = 0; DELETE FROM price");
    AUTO_FREE struct bill_row *none = bills(w, &n);
    assert_int_equal(none[0].price_musd_per_hour, 0);
    pg_sql(w->db, "INSERT INTO price (instance_type, musd_per_hour, source) "
                  "SELECT instance_type, 4711, 'a test' FROM attempt");
    AUTO_FREE struct bill_row *rows = bills(w, &n);
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].price_musd_per_hour, 4711);
    pg_sql(w->db, "UPDATE attempt SET price_musd_per_hour = 5");
    AUTO_FREE struct bill_row *own = bills(w, &n);
    assert_int_equal(own[0].price_musd_per_hour, 5);
}

static void test_bills__given_up_it_stays_an_estimate(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    size_t n;
    int64_t id = fails(w, 3, 1, 5000, true, false);
    AUTO_FREE struct bill_row *rows = bills(w, &n);
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    assert_int_equal(rows[0].attempt_id, id);
    pg_good(store_bill_give_up(w->s, &rows[0], &err), &err);
    pg_good(leader_commit(w->s, &err), &err);
    AUTO_FREE struct bill_row *left = bills(w, &n);
    assert_int_equal(n, 0);
    assert_false(come(w, &rows[0], 20));
    assert_booked(w, 5000, 50);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM attempt WHERE estimated"), 1);
}

static void test_bills__of_an_archived_attempt_nothing_is_written(void **state)
{
    struct world *w = *state;
    size_t n;
    (void)fails(w, 3, 1, 5000, true, false);
    AUTO_FREE struct bill_row *rows = bills(w, &n);
    pg_sql(w->db,
           "INSERT INTO archive (campaign_id, asked_by) VALUES (%lld, 'me'); INSERT INTO "
           "archive_cost SELECT %lld, 5, 1, 50, 5000, true; DELETE FROM attempt",
           (long long)w->c.campaign_id, (long long)w->c.campaign_id);
    assert_false(come(w, &rows[0], 20));
    assert_booked(w, 5000, 50);
}

/* A stray on two instances has ended; it costs 100 micro-USD a second. */
static void strays(struct world *w, const char *name, int64_t seconds, bool estimated)
{
    struct err err = ERR_INIT;
    struct stray_row row = {.why = "lost",
                            .instance_type = "ml.m5.large",
                            .instances = 2,
                            .price_musd_per_hour = 360000,
                            .reserved_musd = 90000};
    (void)snprintf(row.name, sizeof row.name, "%s", name);
    bool is_new = false;
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_stray_put(w->s, &row, &is_new, &err), &err);
    assert_true(is_new);
    pg_good(leader_commit(w->s, &err), &err);
    struct stray_end e = {.name = name,
                          .status = "Completed",
                          .billable_s = seconds,
                          .cost_musd = 100 * seconds,
                          .estimated = estimated};
    struct ledger_account_of_attempt a = {.reserved_musd = row.reserved_musd, .reserved = true};
    pg_good(
        ledger_settle_job(&a, 0, e.cost_musd, seconds, estimated, 0, e.entries, &e.entries_n, &err),
        &err);
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_stray_end(w->s, &e, &err), &err);
    pg_good(leader_commit(w->s, &err), &err);
    pg_check_counters(w->db);
}

static void assert_stray(struct world *w, const char *name, const char *want)
{
    AUTO_FREE char *row = pg_text(
        w->db,
        "SELECT concat_ws(' ', s.billable_s, s.cost_musd, s.estimated, s.bill_given_up, "
        "(SELECT string_agg(concat_ws(' ', l.from_account, l.to_account, l.amount_musd, l.seconds, "
        "l.campaign_id), ', ') FROM ledger l WHERE l.stray = s.name AND l.entry = 'correct')) "
        "FROM stray s WHERE s.name = '%s'",
        name);
    assert_string_equal(row, want);
}

static void test_bills__of_strays_are_booked_once_in_the_sum_of_everything(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    size_t n;
    int64_t id = fails(w, 3, 1, 5000, true, false);
    strays(w, "d-9-s-0-a1-less", 120, true);
    strays(w, "d-9-s-1-a1-more", 50, true);
    strays(w, "d-9-s-2-a1-told", 7, false);
    strays(w, "d-9-s-3-a1-never", 9, true);
    pg_sql(w->db, "INSERT INTO stray (name, why, kind, holds, estimated, instance_type, instances, "
                  "price_musd_per_hour, reserved_musd) VALUES ('fs-1', 'lost', 'file_system', "
                  "false, true, '', 1, 1, 0)");
    AUTO_FREE struct bill_row *rows = bills(w, &n);
    assert_int_equal(n, 4);
    assert_int_equal(rows[0].attempt_id, id);
    assert_string_equal(rows[1].job.s, "d-9-s-0-a1-less");
    assert_string_equal(rows[2].job.s, "d-9-s-1-a1-more");
    assert_string_equal(rows[3].job.s, "d-9-s-3-a1-never");
    assert_true(rows[1].attempt_id == 0 && rows[1].campaign_id == 0 && rows[1].task_id == 0);
    assert_true(rows[1].instances == 2 && rows[1].price_musd_per_hour == 360000);
    assert_true(rows[1].billable_s == 120 && rows[1].cost_musd == 12000 && !rows[1].has_phases);
    struct bill_row old = rows[1];
    old.billable_s = 119;
    assert_false(come(w, &old, 66));
    assert_true(come(w, &rows[1], 66) && come(w, &rows[2], 60));
    assert_stray(w, "d-9-s-0-a1-less", "66 6600 f f spent budget 5400 54 0");
    assert_stray(w, "d-9-s-1-a1-more", "60 6000 f f budget spent 1000 10 0");
    assert_false(come(w, &rows[1], 66)); /* once */
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_bill_give_up(w->s, &rows[3], &err), &err);
    pg_good(leader_commit(w->s, &err), &err);
    assert_false(come(w, &rows[3], 1));
    assert_stray(w, "d-9-s-3-a1-never", "9 900 t t");
    assert_stray(w, "d-9-s-2-a1-told", "7 700 f f");
    AUTO_FREE char *money = pg_text(w->db, "SELECT concat_ws(' ', spent_musd, seconds) FROM money "
                                           "WHERE level = 'global'");
    assert_string_equal(money, "19200 192");
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM money WHERE spent_musd = 5000"), 3);
    AUTO_FREE struct bill_row *left = bills(w, &n);
    assert_int_equal(n, 1);
    assert_int_equal(left[0].attempt_id, id);
}

int main(void)
{
    pg_fixture_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bills__a_correction_is_booked_once_at_every_level,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bills__one_above_its_estimate_and_one_equal_to_it,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bills__what_failures_cost_follows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bills__have_the_price_that_came_later, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_bills__given_up_it_stays_an_estimate, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_bills__of_an_archived_attempt_nothing_is_written,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_bills__of_strays_are_booked_once_in_the_sum_of_everything, set_up, tear_down),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
