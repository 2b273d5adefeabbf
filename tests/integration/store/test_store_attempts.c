/* Aim: an intent is taken only when campaign, money, task and slots all say yes, at the exact
 * boundary, and else leaves nothing; a record moves an attempt once, gives slots and money back
 * once, and the kept sums always equal a recount. Method: a fresh database a test in a real
 * cluster; the world is arranged by SQL, the store functions act, and SQL reads what they left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PARTS 10
#include "led_world.h"
#include "store/leader/attempts.h"
#include "store/leader/lease.h"
#include "store/rows/view.h"

/* The intents in one transaction. */
static void intend(struct world *w, struct intent *in, size_t n)
{
    struct err err = ERR_INIT;
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_intend(w->s, w->epoch, in, n, &err), &err);
    pg_good(leader_commit(w->s, &err), &err);
    pg_check_counters(w->db);
}

static void record(struct world *w, const struct attempt_record *r)
{
    struct err err = ERR_INIT;
    struct attempt_record booked = *r;
    pg_book(&booked);
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_record(w->s, &booked, 1, &err), &err);
    pg_good(leader_commit(w->s, &err), &err);
    pg_check_counters(w->db);
}

static void record_refused(struct world *w, struct attempt_record *r, enum err_code code)
{
    struct err err = ERR_INIT;
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    assert_false(store_record(w->s, r, 1, &err));
    assert_int_equal(err.code, code);
    leader_rollback(w->s);
    pg_check_counters(w->db);
}

static void assert_nothing_written(struct world *w)
{
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM attempt"), 0);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM ledger"), 0);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM event"), 0);
    assert_int_equal(pg_i64(w->db, "SELECT coalesce(sum(reserved_musd), 0) FROM money"), 0);
    assert_int_equal(pg_i64(w->db, "SELECT coalesce(sum(held), 0) FROM slots"), 0);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task_run WHERE state <> 0"), 0);
}

static void refuses(struct world *w, struct intent in, const char *why)
{
    intend(w, &in, 1);
    assert_false(in.taken);
    assert_string_equal(in.refused, why);
    assert_nothing_written(w);
}

static void
test_attempts__an_intent_writes_attempt_task_slots_money_counters_and_events(void **state)
{
    struct world *w = *state;
    struct intent in = pg_intent(w->s, &w->c, 3, 1);
    in.instances = 2;
    intend(w, &in, 1);
    assert_true(in.taken);
    long long id = (long long)in.attempt_id;
    AUTO_FREE char *a =
        pg_text(w->db,
                "SELECT concat_ws(' ', n, state, epoch, name, convert_from(request, 'UTF8'), "
                "encode(request_sha256, 'hex') = encode(sha256(request), 'hex'), instances, holds, "
                "settled, reserved_musd) FROM attempt WHERE id = %lld",
                id);
    AUTO_FREE char *want =
        xasprintf("1 0 %lld t-c%lld-p3-a1 {\"TrainingJobName\":\"x\"} t 2 t f 1000000",
                  (long long)w->epoch, (long long)w->c.campaign_id);
    assert_string_equal(a, want);
    assert_int_equal(pg_i64(w->db,
                            "SELECT count(*) FROM task_run WHERE state = 1 AND names = 1 AND "
                            "seq = 3 AND attempts = 0"),
                     1);
    assert_int_equal(pg_i64(w->db, "SELECT held FROM slots"), 2);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM money WHERE reserved_musd = 1000000"), 4);
    AUTO_FREE char *events =
        pg_text(w->db, "SELECT string_agg(kind || ' ' || (detail->>'from') || '>' "
                       "|| (detail->>'to'), ', ' ORDER BY id) FROM event");
    assert_string_equal(events, "part.state waiting>active, attempt.state >intended");
    AUTO_BUF struct buf request = BUF_INIT(1000);
    struct err err = ERR_INIT;
    pg_good(attempt_request(w->s, in.attempt_id, &request, &err), &err);
    assert_true(str_eq(buf_str(&request), in.request));
}

static void test_attempts__intend_refuses_a_campaign_that_is_not_wanted_to_run(void **state)
{
    struct world *w = *state;
    const char *wanted[] = {"drain", "pause", "cancel"};
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        pg_sql(w->db, "UPDATE campaign SET wanted = '%s'", wanted[i]);
        refuses(w, pg_intent(w->s, &w->c, 0, 1), "campaign");
    }
    pg_sql(w->db, "UPDATE campaign SET wanted = 'run'");
    const char *states[] = {"planned",   "draining", "paused",   "held",
                            "succeeded", "failed",   "cancelled"};
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        pg_sql(w->db, "UPDATE campaign_run SET state = '%s'", states[i]);
        refuses(w, pg_intent(w->s, &w->c, 0, 1), "campaign");
    }
}

static void test_attempts__intend_holds_to_each_cap_at_the_exact_boundary(void **state)
{
    struct world *w = *state;
    const struct {
        const char *level;
        int64_t ref;
    } caps[] = {{"global", 0},
                {"project", w->c.project_id},
                {"campaign", w->c.campaign_id},
                {"stage", w->c.stage_id}};
    for (size_t i = 0; i < ARRAY_LEN(caps); i++) {
        pg_sql(w->db,
               "DELETE FROM cap; INSERT INTO cap (level, ref_id, limit_musd) VALUES ('%s', %lld, "
               "999999)",
               caps[i].level, (long long)caps[i].ref);
        refuses(w, pg_intent(w->s, &w->c, 0, 1), "money");
    }
    /* One micro-USD more at all levels: exactly enough for one, not for a second. */
    pg_sql(w->db,
           "DELETE FROM cap; INSERT INTO cap (level, ref_id, limit_musd) VALUES "
           "('global', 0, 1000000), ('project', 1, 1000000), ('campaign', %lld, 1000000), "
           "('stage', %lld, 1000000)",
           (long long)w->c.campaign_id, (long long)w->c.stage_id);
    struct intent in[2] = {pg_intent(w->s, &w->c, 0, 1), pg_intent(w->s, &w->c, 1, 1)};
    intend(w, in, 2);
    assert_true(in[0].taken);
    assert_false(in[1].taken);
    assert_string_equal(in[1].refused, "money");
}

static void test_attempts__money_spent_counts_against_a_cap_as_money_reserved_does(void **state)
{
    struct world *w = *state;
    struct intent in = pg_intent(w->s, &w->c, 0, 1);
    intend(w, &in, 1);
    struct attempt_record r = pg_record(&in, ATTEMPT_INTENDED, ATTEMPT_FAILED);
    r.release = r.settle = true;
    r.cost_musd = 400000;
    r.billable_s = 10;
    r.cause = CAUSE_INTERNAL;
    r.task_moves = true;
    r.task_to = TASK_WAITING;
    record(w, &r);
    pg_sql(w->db, "INSERT INTO cap (level, ref_id, limit_musd) VALUES ('campaign', %lld, 1399999)",
           (long long)w->c.campaign_id);
    struct intent again = pg_intent(w->s, &w->c, 0, 2);
    intend(w, &again, 1);
    assert_string_equal(again.refused, "money");
    pg_sql(w->db, "UPDATE cap SET limit_musd = 1400000");
    intend(w, &again, 1);
    assert_true(again.taken);
    /* The cap of one task counts what its earlier attempts cost. */
    struct intent other = pg_intent(w->s, &w->c, 1, 1);
    pg_sql(w->db,
           "DELETE FROM cap; INSERT INTO cap (level, ref_id, per_task_musd) VALUES "
           "('stage', %lld, 999999)",
           (long long)w->c.stage_id);
    intend(w, &other, 1);
    assert_string_equal(other.refused, "part_money");
    assert_int_equal(other.part_spent_musd, 0);
    pg_sql(w->db, "UPDATE cap SET per_task_musd = 1999999");
    struct intent third = pg_intent(w->s, &w->c, 0, 3);
    intend(w, &third, 1);
    assert_string_equal(third.refused, "part_money");
    assert_int_equal(third.part_spent_musd,
                     pg_i64(w->db, "SELECT sum(cost_musd + warm_musd + open_musd) FROM attempt"));
    pg_sql(w->db, "UPDATE cap SET per_task_musd = 1000000");
    intend(w, &other, 1);
    assert_true(other.taken);
}

static void test_attempts__intend_refuses_when_slots_are_full_or_used_by_others(void **state)
{
    struct world *w = *state;
    struct intent in = pg_intent(w->s, &w->c, 0, 1);
    in.slot_limit = 0;
    refuses(w, in, "slots");
    in = pg_intent(w->s, &w->c, 0, 1);
    in.slot_limit = -1; /* the quota cannot be read */
    refuses(w, in, "slots");
    in = pg_intent(w->s, &w->c, 0, 1);
    in.instances = 2;
    in.slot_limit = 1; /* 4 less the 3 of others */
    refuses(w, in, "slots");
    in.instances = 1;
    intend(w, &in, 1);
    assert_true(in.taken);
}

static void test_attempts__of_two_intents_for_the_last_slot_in_one_batch_one_is_taken(void **state)
{
    struct world *w = *state;
    struct intent in[2] = {pg_intent(w->s, &w->c, 0, 1), pg_intent(w->s, &w->c, 1, 1)};
    in[0].slot_limit = in[1].slot_limit = 1;
    intend(w, in, 2);
    assert_true(in[0].taken);
    assert_false(in[1].taken);
    assert_string_equal(in[1].refused, "slots");
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM attempt"), 1);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM ledger"), 1);
}

static void test_attempts__intend_refuses_a_task_that_is_not_waiting_or_another_n(void **state)
{
    struct world *w = *state;
    refuses(w, pg_intent(w->s, &w->c, 0, 2), "task");
    struct intent in = pg_intent(w->s, &w->c, 0, 1);
    in.task_id += 1000; /* no such task */
    refuses(w, in, "task");
    in = pg_intent(w->s, &w->c, 0, 1);
    in.stage_id++; /* nor of that stage: its money row would be another's */
    refuses(w, in, "task");
    /* The same task twice in a batch: the second finds it active. */
    struct intent twice[2] = {pg_intent(w->s, &w->c, 0, 1), pg_intent(w->s, &w->c, 0, 2)};
    intend(w, twice, 2);
    assert_true(twice[0].taken);
    assert_string_equal(twice[1].refused, "task");
}

static void test_attempts__a_batch_larger_than_a_pipeline_is_taken_whole(void **state)
{
    struct world *w = *state;
    struct pg_campaign big = pg_campaign_make(w->db, 150);
    struct intent in[150];
    for (int i = 0; i < 150; i++) {
        in[i] = pg_intent(w->s, &big, i, 1);
        in[i].slot_limit = 149;
    }
    intend(w, in, 150);
    for (int i = 0; i < 150; i++) {
        assert_int_equal(in[i].taken, i < 149);
    }
    assert_int_equal(pg_i64(w->db, "SELECT held FROM slots"), 149);
}

static void test_attempts__a_cancel_acknowledged_first_wins_over_an_open_intent(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct intent in = pg_intent(w->s, &w->c, 0, 1);
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_sql(w->db, "UPDATE campaign SET wanted = 'cancel', version = version + 1");
    pg_good(store_intend(w->s, w->epoch, &in, 1, &err), &err);
    assert_string_equal(in.refused, "campaign");
    pg_good(leader_commit(w->s, &err), &err);
    /* The other way round: an intent not yet committed holds the cancel back till it is. */
    pg_sql(w->db, "UPDATE campaign SET wanted = 'run'");
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_intend(w->s, w->epoch, &in, 1, &err), &err);
    assert_true(in.taken);
    struct store *api = pg_open(w->db, STORE_API);
    struct err late = ERR_INIT;
    assert_true(store_plain(api, "SET lock_timeout = '50ms'", &late));
    assert_false(store_plain(api, "UPDATE campaign SET wanted = 'cancel'", &late));
    assert_int_equal(late.code, ERR_TIMEOUT);
    pg_good(leader_commit(w->s, &err), &err);
    assert_true(store_plain(api, "UPDATE campaign SET wanted = 'cancel'", &late));
    store_close(api);
}

static void test_attempts__a_whole_life_settles_to_the_cost_and_frees_everything(void **state)
{
    struct world *w = *state;
    struct intent in = pg_intent(w->s, &w->c, 2, 1);
    intend(w, &in, 1);
    struct attempt_record r = pg_record(&in, ATTEMPT_INTENDED, ATTEMPT_SUBMITTED);
    r.arn = "arn:aws:sagemaker:x";
    record(w, &r);
    r = pg_record(&in, ATTEMPT_SUBMITTED, ATTEMPT_RUNNING);
    r.started_us = 1700000000 * USEC_PER_SEC + 5;
    record(w, &r);
    r = pg_record(&in, ATTEMPT_RUNNING, ATTEMPT_VERIFYING);
    r.release = r.settle = true;
    r.billable_s = 100;
    r.cost_musd = 3195;
    r.ended_us = 1700000100 * USEC_PER_SEC;
    r.has_phases = true;
    for (int k = 0; k < PHASE_FIGURES_N; k++) {
        r.phases[k] = k;
    }
    r.evidence_json = "{\"rules\": [1]}";
    record(w, &r);
    assert_int_equal(pg_i64(w->db, "SELECT held FROM slots"), 0);
    assert_int_equal(pg_i64(w->db,
                            "SELECT count(*) FROM money WHERE reserved_musd = 0 AND spent_musd = "
                            "3195 AND seconds = 100"),
                     4);
    r = pg_record(&in, ATTEMPT_VERIFYING, ATTEMPT_SUCCEEDED);
    r.task_moves = true;
    r.task_to = TASK_DONE;
    r.task_counts = true;
    r.rows_in = 500;
    r.successes = 480;
    r.bytes = 12345;
    r.run_seconds = 100;
    r.manifest_json = "{\"rows_in\": 500}";
    r.evidence_json = "{\"host\": \"a\"}";
    record(w, &r);
    AUTO_FREE char *a =
        pg_text(w->db, "SELECT concat_ws(' ', state, holds, settled, cost_musd, billable_s, "
                       "arn, request IS NULL, manifest, extract(epoch FROM started_at), "
                       "phases, evidence) FROM attempt");
    assert_string_equal(a,
                        "8 f t 3195 100 arn:aws:sagemaker:x t {\"rows_in\": 500} 1700000000.000005 "
                        "{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17} {\"host\": \"a\", "
                        "\"rules\": [1]}");
    AUTO_FREE char *t =
        pg_text(w->db, "SELECT concat_ws(' ', done, active, rows_in, successes, bytes, "
                       "run_seconds) FROM stage_run");
    assert_string_equal(t, "1 0 500 480 12345 100");
    AUTO_FREE char *l =
        pg_text(w->db, "SELECT string_agg(concat_ws(' ', entry, from_account, to_account, "
                       "amount_musd, seconds), ', ' ORDER BY id) FROM ledger");
    assert_string_equal(l, "reserve budget reserved 1000000 0, settle reserved spent 3195 100, "
                           "release reserved budget 996805 0");
    AUTO_FREE char *e =
        pg_text(w->db, "SELECT string_agg(kind || ' ' || (detail->>'to'), ', ' ORDER BY id) "
                       "FROM event WHERE id > 2");
    assert_string_equal(e,
                        "attempt.state submitted, attempt.state running, attempt.state verifying, "
                        "attempt.state succeeded, part.state done");
}

static void test_attempts__slots_and_money_come_back_once_however_often_asked(void **state)
{
    struct world *w = *state;
    struct intent in = pg_intent(w->s, &w->c, 0, 1);
    intend(w, &in, 1);
    struct attempt_record r = pg_record(&in, ATTEMPT_INTENDED, ATTEMPT_SUBMITTED);
    r.release = r.settle = true;
    r.cost_musd = 500;
    r.billable_s = 7;
    record(w, &r);
    r.from = r.to = ATTEMPT_SUBMITTED;
    r.cost_musd = 900;
    record(w, &r);
    record(w, &r);
    r.to = ATTEMPT_FAILED;
    r.task_moves = true;
    r.task_to = TASK_FAILED;
    r.cause = CAUSE_USER_CODE;
    r.signature = "exit 1";
    record(w, &r);
    assert_int_equal(pg_i64(w->db, "SELECT held FROM slots"), 0);
    assert_int_equal(pg_i64(w->db, "SELECT spent_musd FROM money WHERE level = 'global'"), 500);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM ledger"), 3);
}

static void test_attempts__a_cost_above_the_reservation_is_booked_in_full(void **state)
{
    struct world *w = *state;
    struct intent in = pg_intent(w->s, &w->c, 0, 1);
    intend(w, &in, 1);
    struct attempt_record r = pg_record(&in, ATTEMPT_INTENDED, ATTEMPT_FAILED);
    r.release = r.settle = true;
    r.cost_musd = 1000007;
    r.billable_s = 1;
    r.task_moves = true;
    r.task_to = TASK_FAILED;
    r.cause = CAUSE_TIMEOUT;
    r.signature = "timed out";
    record(w, &r);
    AUTO_FREE char *l =
        pg_text(w->db, "SELECT string_agg(concat_ws(' ', entry, amount_musd), ', ' ORDER "
                       "BY id) FROM ledger");
    assert_string_equal(l, "reserve 1000000, overrun 7, settle 1000007, release 0");
    assert_int_equal(pg_i64(w->db, "SELECT lost_musd FROM task_failure"), 1000007);
}

static void test_attempts__an_end_without_release_releases_all_the_same(void **state)
{
    struct world *w = *state;
    struct intent in = pg_intent(w->s, &w->c, 0, 1);
    intend(w, &in, 1);
    struct attempt_record r = pg_record(&in, ATTEMPT_INTENDED, ATTEMPT_VOID);
    r.task_moves = true;
    r.task_to = TASK_WAITING;
    record(w, &r);
    assert_int_equal(pg_i64(w->db,
                            "SELECT count(*) FROM task_run WHERE state = 0 AND attempts = 0 AND "
                            "names = 1 AND seq = 0"),
                     1);
    assert_int_equal(pg_i64(w->db, "SELECT sum(reserved_musd + spent_musd) FROM money"), 0);
    struct intent next = pg_intent(w->s, &w->c, 0, 2);
    intend(w, &next, 1);
    assert_true(next.taken);
}

static void test_attempts__a_record_of_another_state_is_a_conflict_and_writes_nothing(void **state)
{
    struct world *w = *state;
    struct intent in = pg_intent(w->s, &w->c, 0, 1);
    intend(w, &in, 1);
    struct attempt_record r = pg_record(&in, ATTEMPT_SUBMITTED, ATTEMPT_RUNNING);
    record_refused(w, &r, ERR_CONFLICT);
    r = pg_record(&in, ATTEMPT_INTENDED, ATTEMPT_SUBMITTED);
    record(w, &r);
    record_refused(w, &r, ERR_CONFLICT); /* the same again */
    r.attempt_id++;
    record_refused(w, &r, ERR_CONFLICT); /* no such attempt */
    /* No edge of the table, said without asking the database. */
    r = pg_record(&in, ATTEMPT_SUBMITTED, ATTEMPT_INTENDED);
    record_refused(w, &r, ERR_INTERNAL);
    r = pg_record(&in, ATTEMPT_SUBMITTED, ATTEMPT_FAILED);
    r.cost_musd = -1;
    record_refused(w, &r, ERR_INTERNAL);
    r.cost_musd = 0;
    r.task_moves = true;
    r.task_to = TASK_FAILED;
    record_refused(w, &r, ERR_INTERNAL); /* nor may an attempt end with its money open */
    /* A task that is not active any more takes its attempt's record down with it. */
    pg_sql(w->db, "UPDATE task_run SET state = 3 WHERE seq = 0");
    pg_book(&r);
    struct err err = ERR_INIT;
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    assert_false(store_record(w->s, &r, 1, &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    leader_rollback(w->s);
    assert_int_equal(pg_i64(w->db, "SELECT state FROM attempt"), ATTEMPT_SUBMITTED);
}

static void test_attempts__failures_stand_until_done_and_changes_are_kept(void **state)
{
    struct world *w = *state;
    struct intent in = pg_intent(w->s, &w->c, 0, 1);
    intend(w, &in, 1);
    struct task_change_row change = {
        .task_id = in.task_id, .campaign_id = in.campaign_id, .volume_gb = 60};
    change.tries[CAUSE_DISK_FULL] = 1;
    struct attempt_record r = pg_record(&in, ATTEMPT_INTENDED, ATTEMPT_FAILED);
    r.cause = CAUSE_DISK_FULL;
    r.reason = "No space left on device \xff!";
    r.signature = "no space left on device";
    r.task_moves = r.task_counts = true;
    r.task_to = TASK_WAITING;
    r.not_before_us = 123;
    r.change = &change;
    record(w, &r);
    AUTO_FREE char *f =
        pg_text(w->db, "SELECT concat_ws('|', cause, final, signature, message) FROM "
                       "task_failure");
    assert_string_equal(f, "7|f|no space left on device|No space left on device ?!");
    AUTO_FREE char *t =
        pg_text(w->db, "SELECT concat_ws(' ', state, cause, attempts, names, not_before_us) "
                       "FROM task_run WHERE seq = 0");
    assert_string_equal(t, "0 7 1 1 123");
    struct task_change_row *changes = NULL;
    size_t n = 0;
    struct err err = ERR_INIT;
    int64_t after = 0;
    pg_good(view_task_changes(w->s, &after, &changes, &n, &err), &err);
    assert_true(after == INT64_MAX);
    assert_int_equal(n, 1);
    assert_int_equal(changes[0].volume_gb, 60);
    assert_int_equal(changes[0].tries[CAUSE_DISK_FULL], 1);
    assert_int_equal(changes[0].spent_musd, 0);
    struct intent again = pg_intent(w->s, &w->c, 0, 2);
    intend(w, &again, 1);
    pg_sql(w->db,
           "UPDATE attempt SET cost_musd = 700, warm_musd = 20, open_musd = 3 WHERE n = 1;"
           "INSERT INTO cap (level, ref_id, per_task_musd) VALUES ('stage', %lld, 5000)",
           (long long)w->c.stage_id);
    after = 0;
    n = 0;
    pg_good(view_task_changes(w->s, &after, &changes, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_int_equal(changes[0].spent_musd, 723); /* the live attempt counts when it ends */
    pg_sql(w->db, "UPDATE campaign_run SET state = 'failed'");
    after = 0;
    n = 0;
    pg_good(view_task_changes(w->s, &after, &changes, &n, &err), &err);
    assert_int_equal(n, 0);
    pg_good(view_task_changes_of(w->s, w->c.campaign_id, &changes, &n, &err), &err);
    assert_true(n == 1 && changes[0].volume_gb == 60 && changes[0].spent_musd == 723);
    pg_good(view_task_changes_of(w->s, w->c.campaign_id + 1, &changes, &n, &err), &err);
    assert_int_equal(n, 1); /* none of another campaign's */
    pg_sql(w->db, "UPDATE campaign_run SET state = 'running';"
                  "UPDATE attempt SET cost_musd = 0, warm_musd = 0, open_musd = 0 WHERE n = 1; "
                  "DELETE FROM cap WHERE per_task_musd = 5000");
    free(changes);
    r = pg_record(&again, ATTEMPT_INTENDED, ATTEMPT_SUBMITTED);
    record(w, &r);
    r = pg_record(&again, ATTEMPT_SUBMITTED, ATTEMPT_VERIFYING);
    record(w, &r);
    r = pg_record(&again, ATTEMPT_VERIFYING, ATTEMPT_SUCCEEDED);
    r.task_moves = r.task_counts = true;
    r.task_to = TASK_DONE;
    record(w, &r);
    assert_int_equal(pg_i64(w->db, "SELECT count(*) FROM task_failure"), 0);
}

static void test_attempts__the_view_gives_back_what_was_written(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct intent in[2] = {pg_intent(w->s, &w->c, 4, 1), pg_intent(w->s, &w->c, 5, 1)};
    intend(w, in, 2);
    struct attempt_record r = pg_record(&in[1], ATTEMPT_INTENDED, ATTEMPT_VOID);
    r.task_moves = true;
    r.task_to = TASK_WAITING;
    record(w, &r);
    pg_sql(w->db, "UPDATE attempt SET cost_musd = 700, warm_musd = 20 WHERE id = %lld",
           (long long)in[0].attempt_id);
    struct attempt_row *rows = NULL;
    size_t n = 0;
    pg_good(view_attempts(w->s, 0, 0, &rows, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].id, in[0].attempt_id);
    assert_int_equal(rows[0].seq, 4);
    assert_int_equal(rows[0].cost_musd, 720); /* its pool's idle time, too */
    assert_int_equal(rows[0].state, ATTEMPT_INTENDED);
    assert_string_equal(rows[0].name.s, in[0].name.s);
    assert_string_equal(rows[0].identity_hash, in[0].identity_hash);
    assert_string_equal(rows[0].uri, "s3://b/4");
    assert_int_equal(rows[0].size, 1004);
    assert_int_equal(rows[0].project_id, w->c.project_id);
    assert_int_equal(rows[0].epoch, w->epoch);
    assert_true(rows[0].holds);
    assert_null(rows[0].vars_json);
    attempt_rows_free(rows, n);
    struct slots_row *slots = NULL;
    pg_good(view_slots(w->s, &slots, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_int_equal(slots[0].held, 1);
    assert_int_equal(slots[0].limit, -1);
    assert_int_equal(slots[0].price_musd_per_hour, -1);
    free(slots);
}

/* For the leader after this one. */
static void test_attempts__what_an_end_told_is_kept_until_it_is_judged(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct intent in[2] = {pg_intent(w->s, &w->c, 4, 1), pg_intent(w->s, &w->c, 5, 1)};
    struct attempt_row *rows = NULL;
    size_t n = 0;
    intend(w, in, 2);
    for (int i = 0; i < 2; i++) {
        struct attempt_record r = pg_record(&in[i], ATTEMPT_INTENDED, ATTEMPT_SUBMITTED);
        record(w, &r);
        r = pg_record(&in[i], ATTEMPT_SUBMITTED, ATTEMPT_VERIFYING);
        r.release = r.settle = true;
        r.artifacts = i == 0 ? "s3://b/model.tar.gz" : NULL;
        r.reason = "ExitCode 1";
        r.failed_as = i == 0 ? CAUSE_NONE : CAUSE_USER_CODE;
        record(w, &r);
    }
    pg_good(view_attempts(w->s, 0, 0, &rows, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_string_equal(rows[0].artifacts, "s3://b/model.tar.gz");
    assert_null(rows[0].reason);
    assert_null(rows[1].artifacts);
    assert_string_equal(rows[1].reason, "ExitCode 1");
    attempt_rows_free(rows, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_attempts__an_intent_writes_attempt_task_slots_money_counters_and_events),
        T(test_attempts__intend_refuses_a_campaign_that_is_not_wanted_to_run),
        T(test_attempts__intend_holds_to_each_cap_at_the_exact_boundary),
        T(test_attempts__money_spent_counts_against_a_cap_as_money_reserved_does),
        T(test_attempts__intend_refuses_when_slots_are_full_or_used_by_others),
        T(test_attempts__of_two_intents_for_the_last_slot_in_one_batch_one_is_taken),
        T(test_attempts__intend_refuses_a_task_that_is_not_waiting_or_another_n),
        T(test_attempts__a_batch_larger_than_a_pipeline_is_taken_whole),
        T(test_attempts__a_cancel_acknowledged_first_wins_over_an_open_intent),
        T(test_attempts__a_whole_life_settles_to_the_cost_and_frees_everything),
        T(test_attempts__slots_and_money_come_back_once_however_often_asked),
        T(test_attempts__a_cost_above_the_reservation_is_booked_in_full),
        T(test_attempts__an_end_without_release_releases_all_the_same),
        T(test_attempts__a_record_of_another_state_is_a_conflict_and_writes_nothing),
        T(test_attempts__failures_stand_until_done_and_changes_are_kept),
        T(test_attempts__what_an_end_told_is_kept_until_it_is_judged),
        T(test_attempts__the_view_gives_back_what_was_written),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store attempts", tests, NULL, NULL);
}
