/* Aim: what the scheduler keeps survives as it was: a warm pool's slots and money move once from
 * the attempt that leaves it to the pool to the attempt that takes it, limits and weights are read
 * as people set them. Method: a fresh database a test in a real cluster; the store functions act,
 * SQL reads what they left, and after every step all kept sums equal a recount. */
#include "store/api/quotas.h"
#include "store/leader/attempts.h"
#include "store/leader/lease.h"
#include "store/leader/quotas.h"
#include "store/leader/strays.h"
#include "store/rows/view.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PARTS 10
#include "led_world.h"

/* Part `part`, kept alive for 600 s afterwards, on the instances of `pool` (0: new ones). */
static struct intent intend(struct world *w, int part, int64_t pool)
{
    struct err err = ERR_INIT;
    struct intent in = pg_intent(w->s, &w->c, part, 1);
    in.instances = 2;
    in.keep_alive_s = 600;
    in.fingerprint = 0xfedcba9876543210;
    in.instance_type_i = 1;
    in.subnet_i = 2;
    in.pool_id = pool;
    begin(w);
    pg_good(store_intend(w->s, w->epoch, &in, 1, &err), &err);
    commit(w);
    return in;
}

static void record(struct world *w, struct attempt_record *r)
{
    struct err err = ERR_INIT;
    begin(w);
    pg_good(store_record(w->s, r, 1, &err), &err);
    commit(w);
}

/* The attempt's job ended and cost 300,000; 200,000 stay reserved for its pool. */
static struct attempt_record ends(const struct intent *in)
{
    struct attempt_record r = pg_record(in, ATTEMPT_INTENDED, ATTEMPT_FAILED);
    r.release = r.settle = true;
    r.cost_musd = 300000;
    r.billable_s = 9391;
    r.cause = CAUSE_INTERNAL;
    r.task_moves = true;
    r.task_to = TASK_WAITING;
    r.pool_moves = true;
    r.pool_to = POOL_AVAILABLE;
    r.pool_expires_us = 2000000000 * USEC_PER_SEC;
    r.open_musd = 200000;
    r.entries[0] = (struct ledger_entry){.kind = LEDGER_SETTLE,
                                         .from = LEDGER_RESERVED,
                                         .to = LEDGER_SPENT,
                                         .amount_musd = 300000,
                                         .seconds = 9391};
    r.entries[1] = (struct ledger_entry){.kind = LEDGER_RELEASE,
                                         .from = LEDGER_RESERVED,
                                         .to = LEDGER_BUDGET,
                                         .amount_musd = 500000};
    r.entries_n = 2;
    return r;
}

/* It idled for 60 s on each of 2 instances. */
static struct pool_end pool_over(int64_t pool, enum pool_state to)
{
    return (struct pool_end){.pool_id = pool,
                             .to = to,
                             .retained_s = 60,
                             .warm_s = 120,
                             .warm_musd = 3833,
                             .open_musd = 200000,
                             .entries = {{.kind = LEDGER_WARM,
                                          .from = LEDGER_RESERVED,
                                          .to = LEDGER_SPENT,
                                          .amount_musd = 3833,
                                          .seconds = 120},
                                         {.kind = LEDGER_WARM_RELEASE,
                                          .from = LEDGER_RESERVED,
                                          .to = LEDGER_BUDGET,
                                          .amount_musd = 196167}},
                             .entries_n = 2};
}

static void end_pool(struct world *w, const struct pool_end *e)
{
    struct err err = ERR_INIT;
    begin(w);
    pg_good(store_pool_end(w->s, e, &err), &err);
    commit(w);
}

static int64_t slots(struct world *w, const char *column)
{
    return pg_i64(w->db, "SELECT %s FROM slots WHERE instance_type = 'ml.m5.large'", column);
}

static int64_t pool_of(struct world *w, const struct intent *in)
{
    assert_true(in->taken);
    assert_true(in->own_pool_id > 0);
    return pg_i64(w->db, "SELECT id FROM pool WHERE attempt_id = %lld", (long long)in->attempt_id);
}

static void
test_scheduler__a_pool_begins_with_its_attempt_and_keeps_its_slots_and_money(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct intent in = intend(w, 0, 0);
    assert_int_equal(pool_of(w, &in), in.own_pool_id);
    assert_int_equal(slots(w, "held"), 2);
    struct attempt_record r = ends(&in);
    record(w, &r);
    assert_int_equal(slots(w, "held"), 0);
    assert_int_equal(slots(w, "warm_idle"), 2);
    struct pool_row *rows = NULL;
    size_t n = 0;
    pg_good(view_pools(w->s, 0, &rows, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].state, POOL_AVAILABLE);
    assert_true(rows[0].fingerprint == in.fingerprint);
    assert_int_equal(rows[0].open_musd, 200000);
    assert_int_equal(rows[0].cost_musd, 300000);
    assert_int_equal(rows[0].expires_us, 2000000000 * USEC_PER_SEC);
    assert_string_equal(rows[0].job.s, in.name.s);
    free(rows);
    /* Whatever somebody has written into its row, it is its attempt's, with its instances. */
    pg_sql(w->db, "UPDATE pool SET campaign_id = 999, stage_id = 999, instances = 2147483647, "
                  "instance_type = 'none', keep_alive_s = 9223372036854775807");
    pg_good(view_pools(w->s, w->c.campaign_id, &rows, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].campaign_id, w->c.campaign_id);
    assert_int_equal(rows[0].stage_id, w->c.stage_id);
    assert_int_equal(rows[0].instances, 2);
    assert_string_equal(rows[0].instance_type, "ml.m5.large");
    assert_int_equal(rows[0].keep_alive_s, ROW_SPAN_S_MAX);
    free(rows);
    pg_sql(w->db,
           "UPDATE pool SET campaign_id = %lld, stage_id = %lld, instances = 2, "
           "instance_type = 'ml.m5.large', keep_alive_s = 600",
           (long long)w->c.campaign_id, (long long)w->c.stage_id);
    /* Idle instances count against the quota: 4 - 2 leaves room for 2, not for 3. */
    struct intent more = pg_intent(w->s, &w->c, 1, 1);
    more.instances = 3;
    begin(w);
    pg_good(store_intend(w->s, w->epoch, &more, 1, &err), &err);
    commit(w);
    assert_string_equal(more.refused, "slots");
    struct pool_end e = pool_over(in.own_pool_id, POOL_TERMINATED);
    end_pool(w, &e);
    assert_int_equal(slots(w, "warm_idle"), 0);
    assert_int_equal(pg_i64(w->db, "SELECT sum(reserved_musd) FROM money"), 0);
    assert_int_equal(pg_i64(w->db, "SELECT spent_musd FROM money WHERE level = 'campaign'"),
                     303833);
    assert_int_equal(pg_i64(w->db, "SELECT seconds FROM money WHERE level = 'campaign'"), 9511);
    assert_int_equal(pg_i64(w->db, "SELECT warm_s FROM attempt"), 120);
    begin(w); /* once and never again */
    assert_false(store_pool_end(w->s, &e, &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    leader_rollback(w->s);
    pg_check_counters(w->db);
}

static void test_scheduler__slots_of_a_pool_move_to_the_attempt_that_takes_it(void **state)
{
    struct world *w = *state;
    struct intent a = intend(w, 0, 0);
    struct attempt_record r = ends(&a);
    record(w, &r);
    struct intent held = intend(w, 1, 0); /* 2 idle + 2 held: all 4 */
    assert_true(held.taken);
    struct intent b = intend(w, 2, a.own_pool_id);
    assert_true(b.taken);
    assert_int_equal(slots(w, "held"), 4);
    assert_int_equal(slots(w, "warm_idle"), 0);
    struct intent again = intend(w, 3, a.own_pool_id); /* nobody else takes it */
    assert_string_equal(again.refused, "pool");
    struct pool_end e = pool_over(a.own_pool_id, POOL_REUSED);
    end_pool(w, &e);
    assert_int_equal(slots(w, "held"), 4);
    assert_int_equal(slots(w, "warm_idle"), 0);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM pool WHERE state = 'reused'"), 1);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM pool WHERE state = 'expected'"), 2);
}

static void test_scheduler__a_pool_that_was_not_taken_stands_alone_again(void **state)
{
    struct world *w = *state;
    struct intent a = intend(w, 0, 0);
    struct attempt_record r = ends(&a);
    record(w, &r);
    struct intent b = intend(w, 1, a.own_pool_id);
    assert_int_equal(slots(w, "warm_idle"), 0);
    struct attempt_record v = pg_record(&b, ATTEMPT_INTENDED, ATTEMPT_VOID);
    v.release = true;
    v.task_moves = true;
    v.task_to = TASK_WAITING;
    v.pool_moves = true;
    v.pool_to = POOL_TERMINATED;
    pg_book(&v);
    record(w, &v);
    assert_int_equal(r.idle_again, 0);
    assert_int_equal(v.idle_again, 2);
    assert_int_equal(slots(w, "held"), 0);
    assert_int_equal(slots(w, "warm_idle"), 2);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM pool WHERE taken_by IS NOT NULL"), 0);
    struct intent c = intend(w, 2, a.own_pool_id);
    assert_true(c.taken);
    assert_int_equal(slots(w, "held"), 2);
}

/* Intended on a pool, and the job found under its name is of another type, of a lost intent. */
static void test_scheduler__a_recast_attempt_leaves_its_pool(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct intent a = intend(w, 0, 0);
    struct attempt_record r = ends(&a);
    record(w, &r);
    struct intent b = intend(w, 1, a.own_pool_id);
    assert_int_equal(slots(w, "warm_idle"), 0);
    struct intent as = b;
    (void)snprintf(as.instance_type, sizeof as.instance_type, "ml.m5.xlarge");
    as.instances = 3;
    begin(w);
    pg_good(store_attempt_recast(w->s, b.attempt_id, &as, &err), &err);
    commit(w);
    assert_int_equal(slots(w, "held"), 0);
    assert_int_equal(slots(w, "warm_idle"), 2);
    assert_int_equal(pg_i64(w->db, "SELECT held FROM slots WHERE instance_type = 'ml.m5.xlarge'"),
                     3);
    struct attempt_record v = pg_record(&b, ATTEMPT_INTENDED, ATTEMPT_VOID);
    v.release = v.task_moves = v.pool_moves = true;
    v.task_to = TASK_WAITING;
    v.pool_to = POOL_TERMINATED;
    pg_book(&v);
    record(w, &v);
    assert_int_equal(v.idle_again, 0);
    struct pool_end e = pool_over(a.own_pool_id, POOL_TERMINATED);
    end_pool(w, &e);
    assert_int_equal(slots(w, "warm_idle"), 0);
    assert_int_equal(pg_i64(w->db, "SELECT sum(held + warm_idle)::bigint FROM slots"), 0);
}

static void test_scheduler__a_pool_of_another_kind_or_state_is_refused(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct intent a = intend(w, 0, 0);
    struct intent early = intend(w, 1, a.own_pool_id);
    assert_string_equal(early.refused, "pool"); /* expected, not available */
    struct attempt_record r = ends(&a);
    record(w, &r);
    struct intent one = pg_intent(w->s, &w->c, 2, 1);
    one.pool_id = a.own_pool_id; /* it has 2 instances */
    begin(w);
    pg_good(store_intend(w->s, w->epoch, &one, 1, &err), &err);
    commit(w);
    assert_string_equal(one.refused, "pool");
    struct pool_end e = pool_over(a.own_pool_id, POOL_TERMINATED);
    e.open_musd++; /* memory and rows disagree: nothing is booked */
    begin(w);
    assert_false(store_pool_end(w->s, &e, &err));
    leader_rollback(w->s);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM ledger WHERE entry = 'warm'"), 0);
}

/* Whatever somebody has written into the row of the pool, until then. */
static void commit_and_mend(struct world *w)
{
    struct err err = ERR_INIT;
    pg_good(leader_commit(w->s, &err), &err);
    pg_sql(w->db, "UPDATE pool SET instances = 2, instance_type = 'ml.m5.large'");
    pg_check_counters(w->db);
}

static void spoil_pools_and_begin(struct world *w)
{
    pg_sql(w->db, "UPDATE pool SET instances = 2147483647, instance_type = 'none'");
    begin(w);
}

static void test_scheduler__slots_follow_the_job_whatever_the_row_of_its_pool_says(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct intent a = intend(w, 0, 0);
    struct attempt_record r = ends(&a);
    spoil_pools_and_begin(w);
    pg_good(store_record(w->s, &r, 1, &err), &err);
    commit_and_mend(w);
    assert_int_equal(slots(w, "warm_idle"), 2);
    struct intent b = pg_intent(w->s, &w->c, 1, 1);
    b.instances = 2;
    b.pool_id = a.own_pool_id;
    spoil_pools_and_begin(w);
    pg_good(store_intend(w->s, w->epoch, &b, 1, &err), &err);
    commit_and_mend(w);
    assert_true(b.taken);
    assert_int_equal(slots(w, "warm_idle"), 0);
    struct attempt_record v = pg_record(&b, ATTEMPT_INTENDED, ATTEMPT_VOID);
    v.release = v.task_moves = true;
    v.task_to = TASK_WAITING;
    pg_book(&v);
    spoil_pools_and_begin(w);
    pg_good(store_record(w->s, &v, 1, &err), &err);
    commit_and_mend(w);
    assert_int_equal(v.idle_again, 2);
    assert_int_equal(slots(w, "warm_idle"), 2);
    struct pool_end e = pool_over(a.own_pool_id, POOL_TERMINATED);
    spoil_pools_and_begin(w);
    pg_good(store_pool_end(w->s, &e, &err), &err);
    commit_and_mend(w);
    assert_int_equal(slots(w, "warm_idle"), 0);
}

static void test_scheduler__limits_and_weights_are_read_as_they_were_set(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    pg_sql(w->db, "UPDATE project SET weight = 300, parts_limit = 7;"
                  "INSERT INTO setting (name, value) VALUES ('parts_limit', 40);"
                  "INSERT INTO cap (level, ref_id, limit_musd, warn_at_ppm) VALUES "
                  "('project', 1, 5000000, '{500000,800000}'), ('global', 0, 9000000, NULL);"
                  "UPDATE campaign SET weight = 200; UPDATE stage SET parts_limit = 3, resumes = 2;"
                  "INSERT INTO slot_limit (instance_type, limit_n) VALUES ('ml.m5.large', 5)");
    struct project_row *p = NULL;
    size_t n = 0;
    pg_good(view_projects(w->s, &p, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_int_equal(p[0].id, 0);
    assert_int_equal(p[0].parts_limit, 40);
    assert_int_equal(p[0].cap_musd, 9000000);
    assert_int_equal(p[0].warn.n, 0);
    assert_int_equal(p[1].weight, 300);
    assert_int_equal(p[1].parts_limit, 7);
    assert_int_equal(p[1].warn.n, 2);
    assert_int_equal(p[1].warn.at_ppm[1], 800000);
    free(p);
    struct campaign_row c = {0};
    pg_good(view_campaign(w->s, w->c.campaign_id, &c, &err), &err);
    assert_int_equal(c.weight, 200);
    assert_false(c.held_for_money);
    free(c.spec_json);
    struct stage_row *st = NULL;
    pg_good(view_stages(w->s, w->c.campaign_id, &st, &n, &err), &err);
    assert_int_equal(st[0].parts_limit, 3);
    assert_int_equal(st[0].resumes, 2);
    assert_int_equal(st[0].resumes_taken, 0);
    free(st);
    begin(w);
    pg_good(store_slots_learned(w->s, "ml.m5.large", MARKET_SPOT, 1, 2, -1, &err), &err);
    pg_good(store_quota_put(w->s, "ml.m5.large", MARKET_ON_DEMAND, true, 9, &err), &err);
    pg_good(store_quota_put(w->s, "ml.m5.large", MARKET_ON_DEMAND, false, 4, &err), &err);
    pg_good(store_account_quota_put(w->s, ACCOUNT_PER_JOB, 20, &err), &err);
    pg_good(store_account_quota_put(w->s, ACCOUNT_RUN_S, 20, &err), &err);
    pg_good(store_account_quota_put(w->s, ACCOUNT_RUN_S, -1, &err), &err);
    pg_good(store_money_warned(w->s, "project", 1, 500000, &err), &err);
    commit(w);
    struct slots_row *s = NULL;
    pg_good(view_slots(w->s, &s, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_int_equal(s[0].market, MARKET_ON_DEMAND);
    assert_int_equal(s[0].limit, 4);
    assert_int_equal(s[0].warm_limit, 9);
    assert_int_equal(s[0].operator_limit, 5);
    assert_int_equal(s[1].market, MARKET_SPOT);
    assert_int_equal(s[1].refused_limit, -1);
    free(s);
    int64_t quotas[ACCOUNT_QUOTA_COUNT];
    pg_good(view_account_quotas(w->s, quotas, &err), &err);
    assert_int_equal(quotas[ACCOUNT_PER_JOB], 20);
    assert_int_equal(quotas[ACCOUNT_RUN_S], -1);
}

static void test_scheduler__ended_attempts_tell_durations_and_the_breaker(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct intent a = pg_intent(w->s, &w->c, 0, 1);
    struct intent b = pg_intent(w->s, &w->c, 1, 1);
    struct intent in[2] = {a, b};
    begin(w);
    pg_good(store_intend(w->s, w->epoch, in, 2, &err), &err);
    commit(w);
    pg_sql(w->db, "UPDATE attempt SET started_at = '2026-01-01 00:00:00Z', ended_at = "
                  "'2026-01-01 00:01:40.5Z'");
    struct attempt_record r = pg_record(&in[0], ATTEMPT_INTENDED, ATTEMPT_FAILED);
    r.reason = "AlgorithmError: boom";
    r.cause = CAUSE_USER_CODE;
    r.signature = "boom";
    r.task_moves = true;
    r.task_to = TASK_FAILED;
    pg_book(&r);
    record(w, &r);
    pg_sql(w->db, "UPDATE attempt SET state = 7 WHERE id = %lld", (long long)in[1].attempt_id);
    r = pg_record(&in[1], ATTEMPT_VERIFYING, ATTEMPT_SUCCEEDED);
    r.task_moves = true;
    r.task_to = TASK_DONE;
    pg_book(&r);
    record(w, &r);
    struct duration_row *d = NULL;
    size_t n = 0;
    pg_good(view_durations(w->s, w->c.campaign_id, w->c.stage_id, 5, &d, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_int_equal(d[0].size, 1001);
    assert_int_equal(d[0].run_us, 100500000);
    free(d);
    struct breaker_row *e = NULL;
    pg_good(view_breaker(w->s, w->c.stage_id, 0, 10, &e, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_int_equal(e[0].attempt_id, in[0].attempt_id);
    assert_int_equal(e[0].cause, CAUSE_USER_CODE);
    assert_string_equal(e[0].reason, "AlgorithmError: boom");
    assert_true(e[0].ran && !e[1].ran); /* the first ran and failed, the second succeeded */
    assert_int_equal(e[1].state, ATTEMPT_SUCCEEDED);
    free(e);
    pg_good(view_breaker(w->s, w->c.stage_id, in[0].attempt_id, 10, &e, &n, &err), &err);
    assert_int_equal(n, 1);
    free(e);
    int64_t last = 0;
    pg_good(stage_last_attempt(w->s, w->c.stage_id, &last, &err), &err);
    assert_int_equal(last, in[1].attempt_id);
    begin(w);
    pg_good(store_stage_breaker(w->s, w->c.stage_id, last, true, 3, &err), &err);
    commit(w);
    struct stage_row *st = NULL;
    pg_good(view_stages(w->s, w->c.campaign_id, &st, &n, &err), &err);
    assert_int_equal(st[0].breaker_since, last);
    assert_true(st[0].breaker_passed);
    assert_int_equal(st[0].resumes_taken, 3);
    free(st);
}

static void test_scheduler__a_promise_is_kept_until_it_is_dropped(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct promise_row p = {.stage_id = w->c.stage_id,
                            .campaign_id = w->c.campaign_id,
                            .task_id = w->c.first_task,
                            .instances = 24,
                            .since_us = 1000000,
                            .promised_us = 5000000};
    begin(w);
    pg_good(store_promise_put(w->s, &p, &err), &err);
    p.expected_us = 3000000;
    pg_good(store_promise_put(w->s, &p, &err), &err);
    commit(w);
    struct promise_row *rows = NULL;
    size_t n = 0;
    pg_good(view_promises(w->s, w->c.campaign_id, &rows, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_memory_equal(&rows[0], &p, sizeof p);
    free(rows);
    begin(w);
    pg_good(store_promise_drop(w->s, w->c.stage_id, &err), &err);
    commit(w);
    pg_good(view_promises(w->s, w->c.campaign_id, &rows, &n, &err), &err);
    assert_int_equal(n, 0);
    free(rows);
}

static void expect_quota(struct world *w, struct store *api, const char *held_and_free)
{
    struct err err = ERR_INIT;
    struct apidb_rate rate;
    AUTO_BUF struct buf json = BUF_INIT(100000);
    pg_good(apidb_quotas(api, &json, &err), &err);
    char *got = pg_text(w->db,
                        "SELECT (r->>'held') || ' ' || (r->>'free') FROM "
                        "json_array_elements('%.*s'::json) r WHERE r->>'instance_type' = 'ml.q'",
                        (int)json.n, json.p);
    assert_string_equal(got, held_and_free);
    free(got);
    pg_good(apidb_rate(api, "ml.q", &rate, &err), &err);
    assert_int_equal(rate.held, 5);
}

/* People are shown what the scheduler counts. */
static void test_scheduler__people_see_idle_pools_and_every_limit(void **state)
{
    struct world *w = *state;
    struct store *api = pg_open(w->db, STORE_API);
    pg_sql(w->db, "INSERT INTO slots (instance_type, held, warm_idle, foreign_n) "
                  "VALUES ('ml.q', 3, 2, 1)");
    pg_sql(w->db, "INSERT INTO quota (instance_type, limit_n) VALUES ('ml.q', 20)");
    expect_quota(w, api, "5 14");
    pg_sql(w->db, "UPDATE slots SET refused_limit = 10 WHERE instance_type = 'ml.q'");
    expect_quota(w, api, "5 4");
    pg_sql(w->db, "INSERT INTO slot_limit (instance_type, limit_n) VALUES ('ml.q', 6)");
    expect_quota(w, api, "5 1"); /* of ours only: others' use is outside an admin's limit */
    store_close(api);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_scheduler__a_pool_begins_with_its_attempt_and_keeps_its_slots_and_money),
        T(test_scheduler__slots_of_a_pool_move_to_the_attempt_that_takes_it),
        T(test_scheduler__a_pool_that_was_not_taken_stands_alone_again),
        T(test_scheduler__a_recast_attempt_leaves_its_pool),
        T(test_scheduler__a_pool_of_another_kind_or_state_is_refused),
        T(test_scheduler__slots_follow_the_job_whatever_the_row_of_its_pool_says),
        T(test_scheduler__limits_and_weights_are_read_as_they_were_set),
        T(test_scheduler__ended_attempts_tell_durations_and_the_breaker),
        T(test_scheduler__a_promise_is_kept_until_it_is_dropped),
        T(test_scheduler__people_see_idle_pools_and_every_limit),
#undef T
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store scheduler", tests, NULL, NULL);
}
