/* Aim: one row that somebody has changed or deleted spoils neither what is read of all campaigns
 * nor the process that reads it, and a job whose part is lost is still looked after. Method: a
 * fresh database a test in a real cluster; SQL damages a row that the schema lets through, and the
 * leader's views are read. */
#include "store/leader/attempts.h"
#include "store/leader/bills.h"
#include "store/leader/endpoints.h"
#include "store/leader/metrics.h"
#include "store/leader/operations.h"
#include "store/leader/quotas.h"
#include "store/leader/scheduler.h"
#include "store/rows/view.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PARTS 10
#include "led_world.h"

static int64_t starts(struct world *w, int part)
{
    struct err err = ERR_INIT;
    struct intent in = pg_intent(w->s, &w->c, part, 1);
    begin(w);
    pg_good(store_intend(w->s, w->epoch, &in, 1, &err), &err);
    assert_true(in.taken);
    commit(w);
    return in.attempt_id;
}

static void test_damage__endless_inputs_stop_no_operation(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct operation_row *rows = NULL;
    size_t n = 0;
    pg_sql(w->db,
           "INSERT INTO operation (campaign_id, kind, selector) VALUES (%lld, 'retry', '{}'); "
           "INSERT INTO stage (campaign_id, seq, name) VALUES (%lld, 1, 'more'); INSERT INTO "
           "stage_input (stage_id, campaign_id, tasks) SELECT id, campaign_id, 9223372036854775807 "
           "FROM stage WHERE name = 'more'",
           (long long)w->c.campaign_id, (long long)w->c.campaign_id);
    pg_good(view_operations(w->s, &rows, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_true(rows[0].posted == INT64_MAX);
    operation_rows_free(rows, n);
}

static void test_damage__endless_costs_stop_no_takeover(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct task_change_row *rows = NULL;
    size_t n = 0;
    int64_t after = 0;
    int64_t id = starts(w, 2);
    pg_sql(w->db,
           "INSERT INTO cap (level, ref_id, per_task_musd) VALUES ('stage', %lld, 5); INSERT INTO "
           "task_change (task_id, campaign_id) SELECT task_id, campaign_id FROM attempt; UPDATE "
           "attempt SET state = 8, cost_musd = 9223372036854775807, warm_musd = 7 WHERE id = %lld",
           (long long)w->c.stage_id, (long long)id);
    pg_good(view_task_changes(w->s, &after, &rows, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_true(rows[0].spent_musd == INT64_MAX);
    free(rows);
}

static void test_damage__phases_that_no_droverd_writes_are_not_known(void **state)
{
    static const char *const bad[] = {"array_fill(NULL::bigint, ARRAY[18])", "'{}'",
                                      "array_fill(1, ARRAY[18, 2])", "NULL"};
    struct world *w = *state;
    struct err err = ERR_INIT;
    int64_t id = starts(w, 2);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct bill_row *rows = NULL;
        size_t n = 0;
        pg_sql(w->db,
               "UPDATE attempt SET settled = true, estimated = true, phases = %s WHERE id = %lld",
               bad[i], (long long)id);
        pg_good(view_bills(w->s, &rows, &n, &err), &err);
        assert_int_equal(n, 1);
        assert_false(rows[0].has_phases);
        free(rows);
    }
}

static void test_damage__a_stage_without_its_rows_is_missed(void **state)
{
    static const char *const tables[][2] = {{"stage_run", "counters"}, {"stage_input", "input"}};
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        struct err err = ERR_INIT;
        struct stage_row *rows = NULL;
        size_t n = 0;
        pg_sql(w->db, "CREATE TABLE kept AS SELECT * FROM %s; DELETE FROM %s", tables[i][0],
               tables[i][0]);
        assert_false(view_stages(w->s, w->c.campaign_id, &rows, &n, &err));
        assert_non_null(strstr(err.message, tables[i][1]));
        pg_sql(w->db, "INSERT INTO %s SELECT * FROM kept; DROP TABLE kept", tables[i][0]);
        err = (struct err)ERR_INIT;
        pg_good(view_stages(w->s, w->c.campaign_id, &rows, &n, &err), &err);
        assert_int_equal(n, 1);
        free(rows);
    }
}

static void test_damage__a_job_of_a_lost_part_is_read(void **state)
{
    static const char *const tables[] = {"task_run", "task"};
    struct world *w = *state;
    struct err err = ERR_INIT;
    int64_t id = starts(w, 4);
    for (size_t i = 0; i <= ARRAY_LEN(tables); i++) {
        struct attempt_row *rows = NULL;
        size_t n = 0;
        pg_good(view_attempts(w->s, 0, 0, &rows, &n, &err), &err);
        assert_int_equal(n, 1);
        assert_int_equal(rows[0].id, id);
        assert_int_equal(rows[0].part_lost, i > 0);
        assert_int_equal(rows[0].seq, i < 2 ? 4 : 0); /* as its input says, too */
        assert_int_equal(rows[0].uri == NULL, i == 2);
        attempt_rows_free(rows, n);
        if (i < ARRAY_LEN(tables)) {
            pg_sql(w->db, "DELETE FROM %s WHERE campaign_id = %lld", tables[i],
                   (long long)w->c.campaign_id);
        }
    }
}

/* Else a gate opens without the run that does not pass it. */
static void test_damage__a_run_whose_rows_are_gone_counts_for_its_gate(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct gate_run runs[4];
    size_t n = 0;
    bool complete = false;
    int64_t id = starts(w, 3);
    pg_sql(w->db,
           "UPDATE attempt SET state = 8; INSERT INTO metric_series (campaign_id, stage_id, "
           "task_id, attempt_id, name, last_value) SELECT campaign_id, stage_id, task_id, id, "
           "'loss', 0.5 FROM attempt; DELETE FROM task");
    pg_good(view_gate_values(w->s, w->c.stage_id, "loss", runs, 4, &n, &complete, &err), &err);
    assert_true(n == 1 && complete && id > 0);
    assert_int_equal(runs[0].seq, 3);
    assert_true(runs[0].known && runs[0].value == 0.5);
}

/* Else it would be taken for one that belongs to no campaign. */
static void test_damage__an_endpoint_of_a_stage_without_counters_is_known(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct endpoint_row *rows = NULL;
    size_t n = 0;
    pg_sql(w->db,
           "INSERT INTO endpoint (stage_id, campaign_id, n, state, name, instance_type, instances, "
           "ttl_s, price_musd_per_hour, reserved_musd, intended_at, delete_after) SELECT stage_id, "
           "campaign_id, 1, 'in_service', 'e', 'ml.m5.large', 1, 60, 1, 1, now(), now() FROM "
           "stage_run; DELETE FROM stage_run");
    pg_good(view_endpoints(w->s, &rows, &n, &err), &err);
    assert_int_equal(n, 1);
    free(rows);
}

/* Prices are read again when those that are there come from a clock that was wrong, or are no
 * instant at all: a leader that cannot tell their age would not lead. */
static void test_damage__prices_of_no_time_are_read_again(void **state)
{
    static const struct {
        const char *read_at;
        int64_t least_us, most_us;
    } rows[] = {{"'infinity'", -1, -1},
                {"now() + interval '3 years'", -1, -1},
                {"'-infinity'", -1, -1},
                {"now() + interval '1 minute'", 0, 0},
                {"now() - interval '1 hour'", 3600 * USEC_PER_SEC, 7200 * USEC_PER_SEC}};
    struct world *w = *state;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t age_us = 77;
        pg_sql(w->db,
               "DELETE FROM price_list; INSERT INTO price_list (instance_type, musd, read_at) "
               "VALUES ('ml.m5.large', 115000, %s)",
               rows[i].read_at);
        begin(w);
        pg_good(store_price_list_age(w->s, &age_us, &err), &err);
        commit(w);
        assert_in_range(age_us + 1, rows[i].least_us + 1, rows[i].most_us + 1);
    }
}

/* Slots that a row forgets would be given away twice, and could not be given back. */
static void test_damage__slots_say_at_least_what_jobs_hold(void **state)
{
    static const char *const damage[] = {"DELETE FROM slots", "UPDATE slots SET held = 0",
                                         "UPDATE slots SET held = 7"};
    static const int64_t raised[] = {1, 1, 0};
    struct world *w = *state;
    struct err err = ERR_INIT;
    (void)starts(w, 1);
    for (size_t i = 0; i < ARRAY_LEN(damage); i++) {
        int64_t n = -1;
        pg_sql(w->db, "%s", damage[i]);
        begin(w);
        pg_good(store_slots_correct(w->s, &n, &err), &err);
        assert_int_equal(n, raised[i]);
        if (n == 0) { /* more may be held by what cannot be read: people say so */
            pg_sql(w->db, "UPDATE slots SET held = 1");
        }
        commit(w); /* which compares all sums */
    }
}

int main(void)
{
    pg_fixture_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_damage__slots_say_at_least_what_jobs_hold, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_damage__prices_of_no_time_are_read_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_damage__endless_inputs_stop_no_operation, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_damage__endless_costs_stop_no_takeover, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_damage__phases_that_no_droverd_writes_are_not_known,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damage__a_stage_without_its_rows_is_missed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_damage__a_job_of_a_lost_part_is_read, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_damage__a_run_whose_rows_are_gone_counts_for_its_gate,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_damage__an_endpoint_of_a_stage_without_counters_is_known, set_up, tear_down),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
