/* Aim: metric values are stored once each in their order, the buckets of a chart hold what their
 * points hold, and a series of many points is read in little work. Method: batches of random
 * sizes through the leader's functions, counted again by SQL; a large series made by SQL, whose
 * pages and charts may touch few blocks. */
#include "common/clock.h"
#include "common/json.h"
#include "common/rng.h"
#include "store/api/campaigns.h"
#include "store/api/metrics.h"
#include "store/leader/attempts.h"
#include "store/leader/lease.h"
#include "store/leader/metrics.h"
#include "tests/kit/pg_fixture.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static int64_t many = 200000; /* METRIC_POINTS=1000000 measures what the README says */

struct world {
    char db[600];
    struct store *s;
    int64_t epoch, attempt_id, campaign_id;
};

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    struct err err = ERR_INIT;
    pg_fixture_database(w->db, sizeof w->db);
    struct pg_campaign c = pg_campaign_make(w->db, 1);
    w->s = pg_leader(w->db, &w->epoch);
    struct intent in = pg_intent(w->s, &c, 0, 1);
    in.collects = true;
    w->attempt_id = in.attempt_id;
    w->campaign_id = c.campaign_id;
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_intend(w->s, w->epoch, &in, 1, &err), &err);
    assert_true(in.taken);
    pg_good(leader_commit(w->s, &err), &err);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    store_close(w->s);
    free(w);
    return 0;
}

/* n values from the from-th on: metric i % 2, step i, value i % 1000, of a leader's transaction. */
static void put(struct world *w, int64_t from, int64_t n, bool commits)
{
    static const char *const names[] = {"loss", "speed"};
    struct err err = ERR_INIT;
    AUTO_FREE int64_t *v = xcalloc((size_t)(3 * n) + 1, sizeof *v);
    AUTO_FREE double *values = xcalloc((size_t)n + 1, sizeof *values);
    for (int64_t i = 0; i < n; i++) {
        v[i] = (from + i) % 2;
        v[n + i] = (from + i) * 1000;
        v[2 * n + i] = (from + i) % 10 == 3 ? -1 : from + i;
        values[i] = (double)((from + i) * 7919 % 1000);
    }
    const struct metric_points p = {names, 2, v, v + n, v + 2 * n, values, (size_t)n};
    struct metric_place place = {.lines = from + n};
    (void)snprintf(place.stream, sizeof place.stream, "job/algo-1-1");
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_metric_points(w->s, w->attempt_id, &p, &err) &&
                store_metric_source(w->s, w->attempt_id, &place, from + n, "", &err),
            &err);
    if (commits) {
        pg_good(leader_commit(w->s, &err), &err);
    } else {
        leader_rollback(w->s);
    }
}

/* What is read of all campaigns is still read when the spec of one is none. */
static void test_metrics__a_spec_that_is_none_keeps_no_log_from_being_read(void **state)
{
    static const char *const specs[] = {"{\"stages\": 7}", "{\"stages\": [7, null]}",
                                        "{\"stages\": {\"name\": 1}}", "7"};
    struct world *w = *state;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
        struct metric_source_row *rows = NULL;
        size_t n = 0;
        pg_sql(w->db, "UPDATE campaign SET spec = '%s'", specs[i]);
        pg_good(view_metric_sources(w->s, &rows, &n, &err), &err);
        assert_int_equal(n, 1);
        assert_int_equal(rows[0].attempt_id, w->attempt_id);
        free(rows[0].metrics_json);
        free(rows);
    }
}

static void test_metrics__values_are_stored_once_in_their_order_with_their_buckets(void **state)
{
    struct world *w = *state;
    struct rng rng;
    int64_t n = 0;
    rng_seed(&rng, 7);
    while (n < 3000) {
        int64_t some = 1 + (int64_t)rng_below(&rng, 300);
        put(w, n, some, false); /* a transaction that fails leaves nothing */
        put(w, n, some, true);
        n += some;
    }
    assert_int_equal(pg_i64(w->db, "SELECT sum(points)::bigint FROM metric_series"), n);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM metric_point"), n);
    assert_int_equal(
        pg_i64(w->db, "SELECT count(*) FROM (SELECT seq, row_number() OVER (PARTITION BY "
                      "series_id ORDER BY at_us) - 1 AS at FROM metric_point) p WHERE seq <> at"),
        0);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM metric_point WHERE step <> at_us / 1000 "
                                   "AND step <> seq"),
                     0);
    assert_int_equal(
        pg_i64(w->db,
               "SELECT count(*) FROM metric_bucket b FULL JOIN (SELECT series_id, w, seq / w AS k, "
               "count(*) AS n, min(at_us) AS t0, max(at_us) AS t1, min(step) AS s0, max(step) AS "
               "s1, min(value) AS lo, max(value) AS hi, sum(value) AS total FROM metric_point, "
               "(VALUES (8::bigint), (64), (512), (4096), (32768)) v (w) GROUP BY 1, 2, 3) p ON "
               "(b.series_id, b.width, b.bucket) = (p.series_id, p.w, p.k) WHERE (b.n, "
               "b.first_us, b.last_us, b.first_step, b.last_step, b.min_value, b.max_value, "
               "b.sum_value) IS DISTINCT FROM (p.n, p.t0, p.t1, p.s0, p.s1, p.lo, p.hi, p.total)"),
        0);
    assert_int_equal(
        pg_i64(w->db, "SELECT count(*) FROM metric_series s JOIN (SELECT series_id, "
                      "min(value) AS lo, max(value) AS hi, sum(value) AS total, max(at_us) AS t1 "
                      "FROM metric_point GROUP BY 1) p ON p.series_id = s.id AND (s.min_value, "
                      "s.max_value, s.sum_value, s.last_us) = (p.lo, p.hi, p.total, p.t1)"),
        2);
}

/* The attempt of the world prints these, one after the other, and ends well. */
static struct gate_run prints(struct world *w, const double *values, size_t n)
{
    static const char *const names[] = {"loss"};
    static const int64_t zeros[4] = {0};
    static const int64_t steps[4] = {10, 20, -1, 40};
    struct err err = ERR_INIT;
    struct gate_run run;
    size_t runs_n = 0;
    bool complete = false;
    int64_t stage = pg_i64(w->db, "SELECT stage_id FROM attempt");
    const struct metric_points p = {names, 1, zeros, zeros, steps, values, n};
    assert_true(n <= 4);
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_metric_points(w->s, w->attempt_id, &p, &err), &err);
    pg_good(leader_commit(w->s, &err), &err);
    pg_sql(w->db, "UPDATE attempt SET state = 8, collects = false");
    pg_good(view_gate_values(w->s, stage, "loss", &run, 1, &runs_n, &complete, &err), &err);
    assert_int_equal(runs_n, 1);
    assert_true(complete);
    return run;
}

/* A gate that is open to what was printed last of all that was finite would start a stage after a
 * run that diverged. */
static void test_metrics__a_series_that_ends_with_nan_is_not_good(void **state)
{
    struct world *w = *state;
    struct gate_run run = prints(w, (const double[]){2.5, NAN}, 2);
    assert_true(run.known && isnan(run.value));
    assert_int_equal(run.step, 20);
    run = prints(w, (const double[]){NAN}, 1);
    assert_true(run.known && isnan(run.value));
    assert_int_equal(pg_i64(w->db, "SELECT points FROM metric_series"), 1);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM metric_point"), 1);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM metric_series WHERE sum_value = 2.5 AND "
                                   "min_value = 2.5 AND max_value = 2.5"),
                     1);
    run = prints(w, (const double[]){NAN, NAN, 1.5}, 3); /* it came back */
    assert_true(run.known && run.value == 1.5);
    assert_int_equal(run.step, 1); /* its place: the line had none */
    assert_int_equal(pg_i64(w->db, "SELECT points FROM metric_series"), 2);
    assert_int_equal(pg_i64(w->db, "SELECT sum(n)::bigint FROM metric_bucket WHERE width = 8"), 2);
}

static void test_metrics__sources_are_read_until_they_are_closed(void **state)
{
    struct world *w = *state;
    struct metric_source_row *rows = NULL;
    size_t n = 0;
    struct err err = ERR_INIT;
    static const char *const names[] = {"loss", "val:acc"};
    const double values[] = {0.5, 0.75};
    put(w, 0, 10, true);
    pg_good(view_metric_sources(w->s, &rows, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_true(rows[0].attempt_id == w->attempt_id && rows[0].place.lines == 10 &&
                rows[0].step == 10);
    assert_string_equal(rows[0].place.stream, "job/algo-1-1");
    free(rows[0].metrics_json);
    free(rows);
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_metric_close(w->s, w->attempt_id, names, values, 2, &err), &err);
    pg_good(leader_commit(w->s, &err), &err);
    pg_good(view_metric_sources(w->s, &rows, &n, &err), &err);
    assert_int_equal(n, 0);
    free(rows);
    AUTO_FREE char *text = pg_text(w->db, "SELECT string_agg(concat_ws(' ', name, points, "
                                          "final_value), ', ' ORDER BY name) FROM metric_series");
    assert_string_equal(text, "loss 5 0.5, speed 5, val:acc 0 0.75");
}

static void make_many(struct world *w)
{
    put(w, 0, 2, true);
    pg_sql(w->db,
           "INSERT INTO metric_point SELECT s.id, i, i * 1000, i, sin(i) FROM metric_series "
           "s, generate_series(1, %d) i WHERE s.name = 'loss'",
           (int)many - 1);
    pg_sql(w->db, "DELETE FROM metric_bucket");
    pg_sql(w->db, "INSERT INTO metric_bucket SELECT series_id, w, seq / w, count(*), min(at_us), "
                  "max(at_us), min(step), max(step), min(value), max(value), sum(value) FROM "
                  "metric_point, (VALUES (64::bigint), (512), (4096), (32768)) v (w) WHERE "
                  "series_id = (SELECT "
                  "id FROM metric_series WHERE name = 'loss') GROUP BY 1, 2, 3");
    pg_sql(w->db,
           "UPDATE metric_series SET points = %d, last_us = %lld, last_step = %d WHERE name = "
           "'loss'; ANALYZE metric_point; ANALYZE metric_bucket",
           (int)many, (long long)((many - 1) * 1000), (int)many - 1);
}

static int by_value(const void *a, const void *b)
{
    int64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

static void pages(struct world *w, struct store *api)
{
    int64_t us[200];
    struct err err = ERR_INIT;
    struct rng rng;
    rng_seed(&rng, 1);
    for (size_t i = 0; i < ARRAY_LEN(us); i++) {
        AUTO_BUF struct buf json = BUF_INIT(4 * 1024 * 1024);
        int64_t from = (int64_t)rng_below(&rng, (uint64_t)many - 2000), after = from;
        bool more = false;
        int64_t began_us = clock_mono_us();
        pg_good(apidb_metric_points(api, w->attempt_id, "loss", 1000, &after, &more, &json, &err),
                &err);
        us[i] = clock_mono_us() - began_us;
        assert_true(more && after == from + 1000);
    }
    qsort(us, ARRAY_LEN(us), sizeof us[0], by_value);
    (void)printf("# a page of 1,000 of %d points: p50 %.1f ms, p99 %.1f ms\n", (int)many,
                 (double)us[100] / 1000, (double)us[197] / 1000);
}

static void charts(struct world *w, struct store *api)
{
    struct err err = ERR_INIT;
    static const int64_t most[] = {1, 3, 200, 2000};
    for (size_t i = 0; i < ARRAY_LEN(most); i++) {
        AUTO_BUF struct buf json = BUF_INIT(4 * 1024 * 1024);
        AUTO_JSON json_t *v = NULL;
        int64_t began_us = clock_mono_us();
        pg_good(apidb_metric_charts(api, w->attempt_id, "loss", most[i], &json, &err) &&
                    json_parse(buf_str(&json), json.n, &v, &err),
                &err);
        (void)printf("# a chart of at most %lld: %.1f ms\n", (long long)most[i],
                     (double)(clock_mono_us() - began_us) / 1000);
        const json_t *chart = json_object_get(json_array_get(v, 0), "chart");
        size_t n = json_array_size(chart);
        assert_true(n <= (size_t)most[i] && n > (size_t)most[i] / 4);
        assert_int_equal(json_integer_value(json_object_get(json_array_get(chart, n - 1), "step")),
                         many - 1);
    }
}

static void test_metrics__many_points_are_paged_and_charted_in_little_work(void **state)
{
    struct world *w = *state;
    make_many(w);
    struct store *api = pg_open(w->db, STORE_API);
    charts(w, api);
    pages(w, api);
    pg_sql(w->db, "TRUNCATE metric_point");
    charts(w, api); /* they do not read the points */
    store_close(api);
}

static bool gate_holds(struct store *api, int64_t campaign_id)
{
    struct err err = ERR_INIT;
    struct apidb_gate gate;
    pg_good(apidb_campaign_gate(api, campaign_id, &gate, &err), &err);
    if (gate.held) {
        assert_string_equal(gate.reason, "gate: loss is 4, not below 3");
        assert_true(gate.stage[0] != '\0');
    }
    return gate.held;
}

/* Each change lets something else than the gate hold the campaign; without it, the gate does. */
static void test_metrics__a_gate_holds_alone(void **state)
{
    static const struct {
        const char *change, *back;
    } other[] = {
        {"stage_run SET state = 'running'", "stage_run SET state = 'held'"},
        {"stage_run SET reason = 'disk_full'",
         "stage_run SET reason = 'gate: loss is 4, not below 3'"},
        {"stage_run SET done = done - 1, waiting = 1",
         "stage_run SET done = done + 1, waiting = 0"},
        {"stage_run SET done = done - 1, active = 1", "stage_run SET done = done + 1, active = 0"},
        {"stage_run SET done = done - 1, held = 1", "stage_run SET done = done + 1, held = 0"},
        {"stage_input SET tasks = tasks + 1", "stage_input SET tasks = tasks - 1"},
        {"stage_input SET closed = false", "stage_input SET closed = true"},
        {"stage SET gate_override = true", "stage SET gate_override = false"},
        {"campaign_run SET state = 'held', reason = 'budget'", "campaign_run SET reason = ''"},
    };
    struct world *w = *state;
    struct store *api = pg_open(w->db, STORE_API);
    assert_false(gate_holds(api, w->campaign_id));
    pg_sql(w->db, "UPDATE stage_input SET closed = true;"
                  "UPDATE stage_run SET state = 'held', reason = 'gate: loss is 4, not below 3', "
                  "waiting = 0, active = 0, held = 0, done = i.tasks, taken = i.tasks "
                  "FROM stage_input i WHERE i.stage_id = stage_run.stage_id");
    for (size_t i = 0; i < ARRAY_LEN(other); i++) {
        assert_true(gate_holds(api, w->campaign_id));
        pg_sql(w->db, "UPDATE %s", other[i].change);
        if (gate_holds(api, w->campaign_id)) {
            fail_msg("%s: the gate holds it alone", other[i].change);
        }
        pg_sql(w->db, "UPDATE %s", other[i].back);
    }
    pg_sql(w->db,
           "INSERT INTO operation (campaign_id, kind, selector) VALUES (%lld, 'retry', '{}')",
           (long long)w->campaign_id);
    assert_false(gate_holds(api, w->campaign_id));
    pg_sql(w->db, "UPDATE operation SET state = 'done'");
    assert_true(gate_holds(api, w->campaign_id));
    assert_false(gate_holds(api, w->campaign_id + 1));
    store_close(api);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const char *points = getenv("METRIC_POINTS");
    if (points != NULL && !parse_i64(str_of(points), 10000, 10000000, &many, NULL)) {
        return 2;
    }
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        T(test_metrics__a_spec_that_is_none_keeps_no_log_from_being_read),
        T(test_metrics__values_are_stored_once_in_their_order_with_their_buckets),
        T(test_metrics__a_series_that_ends_with_nan_is_not_good),
        T(test_metrics__a_gate_holds_alone),
        T(test_metrics__sources_are_read_until_they_are_closed),
        T(test_metrics__many_points_are_paged_and_charted_in_little_work),
    };
    pg_fixture_start();
    return cmocka_run_group_tests_name("store_metrics", tests, NULL, NULL);
}
