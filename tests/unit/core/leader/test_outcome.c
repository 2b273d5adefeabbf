/* Aim: what follows from the end of an attempt: retry or fail, cost, pool, ledger, and memory after
 * the commit. Method: a state by hand; one attempt ends in each way. */
#include "core/failure/retry_policy.h"
#include "core/leader/budget_state.h"
#include "core/leader/outcome.h"
#include "core/leader/record_queue.h"
#include "core/leader/stage_history.h"
#include "core/money/cost.h"
#include "outcome_world.h"

static void test_outcome__success_ends_the_task(void **state UNUSED)
{
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 2);
    leader_world_ran(a, ATTEMPT_SUCCEEDED);
    a->row.state = ATTEMPT_VERIFYING;
    a->manifest = xstrdup("{}");
    a->rows_in = 10;
    struct protocol_effect e = ended_as(CAUSE_NONE);
    e.from = ATTEMPT_VERIFYING;
    struct pending_record p = plan(&w, a, &e, NULL);
    assert_true(p.r.task_moves && p.r.task_counts && p.r.task_to == TASK_DONE);
    assert_true(p.r.from == ATTEMPT_VERIFYING && p.r.to == ATTEMPT_SUCCEEDED && p.r.rows_in == 10);
    assert_true(p.r.billable_s == 7200 && p.r.cost_musd == 7200000 && p.r.run_seconds == 3600);
    assert_true(p.r.attempt_id == 1 && p.r.task_id == 1001 && p.r.instances == 2);
    leader_push_record(&w.s, a, &p);
    assert_null(a->manifest);
    struct attempt_record row = leader_record_row(&w.s.records[0]);
    assert_string_equal(row.manifest_json, "{}");
    assert_true(row.change == NULL && row.arn == NULL && row.reason[0] == '\0');
    leader_world_done(&w); /* frees the manifest of what never committed */
}

static void test_outcome__a_retry_keeps_what_was_learned(void **state UNUSED)
{
    struct leader_world w;
    struct outcome_notes n;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    leader_world_ran(a, ATTEMPT_FAILED);
    (void)snprintf(a->reason, sizeof a->reason, "network: connection reset");
    struct protocol_effect e = ended_as(CAUSE_NETWORK);
    struct pending_record p = plan(&w, a, &e, &n);
    assert_true(p.r.task_to == TASK_WAITING && p.r.task_counts);
    assert_in_range(p.r.not_before_us, WALL + 30 * SEC, WALL + 600 * SEC);
    assert_true(p.change.task_id == 1001 && p.change.campaign_id == 7);
    assert_true(p.change.tries[CAUSE_NETWORK] == 1 && p.change.same == 1);
    assert_int_equal(p.change.spent_musd, 3600000);
    assert_int_equal(p.change.signature_hash, stage_history_signature(CAUSE_NETWORK, p.signature));
    assert_true(p.signature[0] != '\0');
    w.ls->rules.k = w.ls->rules.canary = 1;
    assert_true(commit(&w, a, &p)); /* the stage's breaker hears of it */
    assert_int_equal(leader_state_change(&w.s, 1001, false)->tries[CAUSE_NETWORK], 1);
    assert_true(w.ls->row.counts[TASK_WAITING] == 100 && w.lc->live == 0);
    struct ready_queue_task t;
    assert_false(ready_queue_peek(w.ls->ready, WALL, &t)); /* it backs off */
    assert_true(ready_queue_peek(w.ls->ready, WALL + 600 * SEC, &t));
    assert_true(t.task_id == 1001 && t.size_mb == 300 && t.seq == 1);
    a = leader_world_attempt(&w, 2, 1); /* the next one of the same task fails alike */
    a->row.task_id = 1001;
    a->row.task_attempts = 1;
    leader_world_ran(a, ATTEMPT_FAILED);
    (void)snprintf(a->reason, sizeof a->reason, "network: connection reset");
    p = plan(&w, a, &e, &n);
    assert_true(p.change.same == 2 && p.change.tries[CAUSE_NETWORK] == 2);
    assert_int_equal(p.change.spent_musd, 7200000);
    leader_world_done(&w);
}

/* Which task state, cause and count follow from each kind of end. */
static void test_outcome__where_the_task_goes(void **state UNUSED)
{
    static const struct {
        const char *what;
        enum cause cause, stop_cause;
        bool unwanted;
        enum wanted wanted;
        enum task_state to;
        enum cause ret_cause;
        bool counts;
    } cases[] = {
        {"a mistake of the program", CAUSE_USER_CODE, 0, false, WANTED_RUN, TASK_FAILED,
         CAUSE_USER_CODE, true},
        {"no cause given", CAUSE_NONE, 0, false, WANTED_RUN, TASK_WAITING, CAUSE_UNKNOWN, true},
        {"stopped by somebody", CAUSE_STOPPED, 0, false, WANTED_RUN, TASK_FAILED, CAUSE_STOPPED,
         false},
        {"paused", CAUSE_STOPPED, 0, true, WANTED_PAUSE, TASK_WAITING, CAUSE_NONE, false},
        {"cancelled", CAUSE_STOPPED, 0, true, WANTED_CANCEL, TASK_CANCELLED, CAUSE_NONE, false},
        {"its output may not be read, and paused", CAUSE_ACCESS_DENIED, 0, true, WANTED_PAUSE,
         TASK_FAILED, CAUSE_ACCESS_DENIED, true},
        {"its output is short, and paused", CAUSE_SHORT_OUTPUT, 0, true, WANTED_PAUSE, TASK_WAITING,
         CAUSE_SHORT_OUTPUT, true},
        {"its output may not be read, and cancelled", CAUSE_ACCESS_DENIED, 0, true, WANTED_CANCEL,
         TASK_CANCELLED, CAUSE_NONE, false},
        {"hung", CAUSE_STOPPED, CAUSE_TIMEOUT, true, WANTED_RUN, TASK_WAITING, CAUSE_TIMEOUT, true},
        {"hung, failed as it was stopped", CAUSE_NETWORK, CAUSE_TIMEOUT, true, WANTED_RUN,
         TASK_WAITING, CAUSE_NETWORK, true},
        {"hung, and cancelled", CAUSE_STOPPED, CAUSE_TIMEOUT, true, WANTED_CANCEL, TASK_CANCELLED,
         CAUSE_NONE, false},
        {"its words say throttled", CAUSE_THROTTLED, 0, false, WANTED_RUN, TASK_WAITING,
         CAUSE_THROTTLED, true},
        {"its words say quota", CAUSE_QUOTA, 0, false, WANTED_RUN, TASK_WAITING, CAUSE_QUOTA, true},
        {"its words say capacity", CAUSE_CAPACITY, 0, false, WANTED_RUN, TASK_WAITING,
         CAUSE_CAPACITY, true},
        {"spot", CAUSE_SPOT_INTERRUPTED, 0, false, WANTED_RUN, TASK_WAITING, CAUSE_SPOT_INTERRUPTED,
         true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct leader_world w;
        leader_world_init(&w);
        struct live_attempt *a = leader_world_attempt(&w, 1, 1);
        leader_world_ran(a, cases[i].cause == CAUSE_STOPPED ? ATTEMPT_STOPPED : ATTEMPT_FAILED);
        a->row.stop_cause = cases[i].stop_cause;
        a->p.wanted = !cases[i].unwanted;
        w.lc->row.wanted = cases[i].wanted;
        struct protocol_effect e = ended_as(cases[i].cause);
        e.from = strstr(cases[i].what, "output") != NULL ? ATTEMPT_VERIFYING : e.from;
        struct pending_record p = plan(&w, a, &e, NULL);
        if (p.r.task_to != cases[i].to || p.r.cause != cases[i].ret_cause ||
            p.r.task_counts != cases[i].counts) {
            fail_msg("%s: task %s, cause %s, counts %d", cases[i].what,
                     task_state_name(p.r.task_to), cause_name(p.r.cause), p.r.task_counts);
        }
        leader_world_done(&w);
    }
}

static void test_outcome__the_spec_says_what_counts(void **state UNUSED)
{
    struct leader_world w;
    leader_world_init(&w);
    w.spec.retry[CAUSE_USER_CODE] = (struct spec_retry){
        .set = true, .times = 3, .wait_from_s = 10, .wait_to_s = 10, .counts = false};
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    a->p.state = ATTEMPT_FAILED; /* it never started */
    a->row.task_attempts = 19;   /* an attempt that counted would be the last */
    struct protocol_effect e = ended_as(CAUSE_USER_CODE);
    struct pending_record p = plan(&w, a, &e, NULL);
    assert_true(p.r.task_to == TASK_WAITING && !p.r.task_counts);
    w.spec.retry[CAUSE_USER_CODE].counts = true;
    p = plan(&w, a, &e, NULL);
    assert_true(p.r.task_to == TASK_FAILED && p.r.task_counts);
    leader_world_done(&w);
}

static void test_outcome__a_part_that_fails_alone_is_set_aside(void **state UNUSED)
{
    struct leader_world w;
    struct outcome_notes n;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    leader_world_ran(a, ATTEMPT_FAILED);
    (void)snprintf(a->reason, sizeof a->reason, "network: connection reset");
    struct protocol_effect e = ended_as(CAUSE_NETWORK);
    struct pending_record p = plan(&w, a, &e, &n);
    struct task_change_row *c = leader_state_change(&w.s, 1001, true);
    *c = p.change;
    c->same = 2; /* it has failed twice like this */
    p = plan(&w, a, &e, &n);
    assert_int_equal(p.r.task_to, TASK_WAITING); /* nothing else has passed yet */
    assert_false(n.set_aside);
    w.ls->breaker.ended = 5;
    w.ls->breaker.failed = 2;
    p = plan(&w, a, &e, &n);
    assert_int_equal(p.r.task_to, TASK_FAILED);
    assert_true(n.set_aside);
    assert_int_equal(n.same, 3);
    assert_int_equal(p.change.task_id, 0);
    c->signature_hash++; /* the last one failed in another way */
    p = plan(&w, a, &e, &n);
    assert_int_equal(p.r.task_to, TASK_WAITING);
    assert_int_equal(n.same, 1);
    leader_world_done(&w);
}

/* An uncounted end between two counted ones of one kind does not make them fewer. */
static void test_outcome__an_uncounted_end_keeps_the_last_signature(void **state UNUSED)
{
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    struct task_change_row *c = leader_state_change(&w.s, 1001, true);
    c->signature_hash = 77;
    c->same = 2;
    a->p.state = ATTEMPT_VOID;
    struct protocol_effect e = ended_as(CAUSE_QUOTA);
    e.settle = false;
    struct pending_record p = plan(&w, a, &e, NULL);
    assert_true(!p.r.task_counts && p.change.signature_hash == 77 && p.change.same == 2);
    leader_world_done(&w);
}

/* A row may say a rung that the ladder does not have: the first one is meant. */
static void test_outcome__a_rung_that_the_ladder_does_not_have(void **state UNUSED)
{
    static const int rungs[] = {INT32_MAX, INT32_MIN, 2};
    for (size_t i = 0; i < ARRAY_LEN(rungs); i++) {
        struct leader_world w;
        leader_world_init(&w);
        struct live_attempt *a = leader_world_attempt(&w, 1, 1);
        leader_world_ran(a, ATTEMPT_FAILED);
        struct task_change_row *c = leader_state_change(&w.s, 1001, true);
        c->instance_type_i = rungs[i];
        c->volume_gb = -5;
        struct protocol_effect e = ended_as(CAUSE_NETWORK);
        struct pending_record p = plan(&w, a, &e, NULL);
        assert_int_equal(p.r.task_to, TASK_WAITING);
        assert_true(p.change.instance_type_i == 0 && p.change.volume_gb == 0);
        leader_world_done(&w);
    }
}

static void test_outcome__a_part_ends_at_its_own_cap(void **state UNUSED)
{
    struct leader_world w;
    struct outcome_notes n;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    leader_world_ran(a, ATTEMPT_FAILED); /* 3.60 USD; 600 s with grace and upload cost 1.62 */
    struct protocol_effect e = ended_as(CAUSE_NETWORK);
    musd_t least = 0;
    struct err err = ERR_INIT;
    assert_true(cost_worst_case(3600000, 1, 600, 0, &least, &err));
    w.ls->row.per_task_musd = 3600000 + least;
    struct pending_record p = plan(&w, a, &e, &n);
    assert_int_equal(p.r.task_to, TASK_WAITING);
    w.ls->row.per_task_musd--;
    p = plan(&w, a, &e, &n);
    assert_int_equal(p.r.task_to, TASK_FAILED);
    assert_true(n.at_cap);
    assert_int_equal(n.spent_musd, 3600000);
    w.ls->row.per_task_musd++; /* what earlier attempts cost counts too */
    leader_state_change(&w.s, 1001, true)->spent_musd = 1;
    assert_int_equal(plan(&w, a, &e, &n).r.task_to, TASK_FAILED);
    e = ended_as(CAUSE_OOM); /* the next rung costs ten times as much */
    w.ls->row.per_task_musd = 3600001 + least;
    p = plan(&w, a, &e, &n);
    assert_true(n.at_cap);
    w.ls->row.per_task_musd = 3600001 + 10 * least;
    p = plan(&w, a, &e, &n);
    assert_int_equal(p.r.task_to, TASK_WAITING);
    assert_int_equal(p.change.instance_type_i, 1);
    leader_state_slots(&w.s, w.spec.instance_type[1], MARKET_ON_DEMAND)->s.quota = 0;
    assert_int_equal(plan(&w, a, &e, &n).change.instance_type_i, 0); /* nothing starts there */
    leader_world_done(&w);
}

/* What its ended attempts cost counts against its cap, whatever became of the part. */
static void test_outcome__a_part_keeps_what_it_has_cost(void **state UNUSED)
{
    struct leader_world w;
    leader_world_init(&w);
    struct protocol_effect e = ended_as(CAUSE_STOPPED);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    leader_world_ran(a, ATTEMPT_STOPPED);
    a->p.wanted = false;
    assert_int_equal(plan(&w, a, &e, NULL).change.task_id, 0); /* none has to be known */
    w.ls->row.per_task_musd = 50 * USD;
    struct pending_record p = plan(&w, a, &e, NULL);
    assert_int_equal(p.r.task_to, TASK_WAITING);
    assert_true(p.change.task_id == 1001 && p.change.campaign_id == 7);
    commit(&w, a, &p);
    assert_int_equal(leader_state_change(&w.s, 1001, false)->spent_musd, 3600000);
    a = leader_world_attempt(&w, 2, 1);
    a->row.task_id = 1001;
    leader_world_ran(a, ATTEMPT_FAILED);
    e = ended_as(CAUSE_USER_CODE); /* for good, without a cap of its own meanwhile */
    w.ls->row.per_task_musd = -1;
    p = plan(&w, a, &e, NULL);
    assert_true(p.r.task_to == TASK_FAILED && p.change.task_id == 0);
    commit(&w, a, &p);
    assert_int_equal(leader_state_change(&w.s, 1001, false)->spent_musd, 7200000);
    leader_world_done(&w);
}

/* Its jobs have no more names: it fails with the reason, before a name is refused. */
static void test_outcome__a_part_is_not_tried_again_for_ever(void **state UNUSED)
{
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    struct protocol_effect e = ended_as(CAUSE_CAPACITY);
    leader_world_ran(a, ATTEMPT_VOID);
    (void)snprintf(a->reason, sizeof a->reason, "no capacity");
    a->row.n = ATTEMPT_N_RETRIED - 1;
    assert_int_equal(plan(&w, a, &e, NULL).r.task_to, TASK_WAITING);
    a->row.n++;
    struct pending_record p = plan(&w, a, &e, NULL);
    assert_true(p.r.task_to == TASK_FAILED && p.r.cause == CAUSE_CAPACITY);
    assert_string_equal(p.reason, "given up after 31000 attempts; the last: no capacity");
    leader_world_done(&w);
}

/* After a time-out the next attempt needs its longer time, not the stage's shortest. */
static void test_outcome__a_longer_run_must_be_paid_in_full(void **state UNUSED)
{
    struct leader_world w;
    struct outcome_notes n;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    leader_world_ran(a, ATTEMPT_FAILED);
    struct protocol_effect e = ended_as(CAUSE_TIMEOUT);
    musd_t longer = 0;
    struct err err = ERR_INIT;
    assert_true(cost_worst_case(3600000, 1, 5400, 0, &longer, &err));
    w.ls->row.per_task_musd = 3600000 + longer;
    struct pending_record p = plan(&w, a, &e, &n);
    assert_int_equal(p.r.task_to, TASK_WAITING);
    assert_int_equal(p.change.max_runtime_s, 5400);
    w.ls->row.per_task_musd--;
    p = plan(&w, a, &e, &n);
    assert_true(n.at_cap);
    leader_world_done(&w);
}

static void test_outcome__a_void_gives_everything_back(void **state UNUSED)
{
    struct leader_world w;
    leader_world_init(&w);
    budget_state_move(&w.s, w.lc, w.ls, 2 * USD, 0, 0);
    struct live_attempt *a = leader_world_attempt(&w, 1, 2);
    struct live_slots *slots = leader_state_slots(&w.s, "ml.a.large", MARKET_ON_DEMAND);
    a->p.state = ATTEMPT_VOID;
    struct protocol_effect e = ended_as(CAUSE_QUOTA);
    e.from = ATTEMPT_INTENDED;
    e.settle = false;
    struct pending_record p = plan(&w, a, &e, NULL);
    assert_int_equal(p.r.task_to, TASK_WAITING);
    assert_false(p.r.task_counts || p.r.settle);
    assert_true(p.r.cost_musd == 0 && p.r.open_musd == 0 && p.r.entries_n == 1);
    assert_int_equal(p.r.entries[0].kind, LEDGER_RELEASE);
    assert_int_equal(p.r.entries[0].amount_musd, 2 * USD);
    w.lc->budget_short = true;
    commit(&w, a, &p);
    assert_true(w.lc->row.reserved_musd == 0 && w.lc->row.spent_musd == 0 && slots->s.held == 0);
    assert_true(!w.lc->budget_short && w.s.decide && w.s.act && w.s.look_at_db);
    assert_int_equal(w.s.attempts_n, 0);
    leader_world_done(&w);
}

/* A release may come before the end of the task: slots and money once, the attempt stays. */
static void test_outcome__release_without_the_end(void **state UNUSED)
{
    struct leader_world w;
    leader_world_init(&w);
    budget_state_move(&w.s, w.lc, w.ls, 2 * USD, 0, 0);
    struct live_attempt *a = leader_world_attempt(&w, 1, 2);
    leader_world_ran(a, ATTEMPT_VERIFYING);
    a->row.started_us = WALL - 3600 * SEC;
    a->billable_s = 900; /* 1.80 USD for both */
    struct protocol_effect e = {
        .changed = true, .from = ATTEMPT_RUNNING, .release_slot = true, .settle = true};
    struct pending_record p = plan(&w, a, &e, NULL);
    assert_true(!p.r.task_moves && !p.r.estimated && p.r.cost_musd == 1800000);
    assert_false(commit(&w, a, &p));
    assert_int_equal(w.s.attempts_n, 1);
    assert_true(a->accepted); /* SageMaker had room for it */
    assert_false(a->row.holds || a->recording);
    assert_int_equal(a->row.state, ATTEMPT_VERIFYING);
    assert_true(a->account.closed && a->account.spent_musd == 1800000);
    assert_int_equal(leader_state_slots(&w.s, "ml.a.large", MARKET_ON_DEMAND)->s.held, 0);
    assert_true(w.lc->row.reserved_musd == 0 && w.lc->row.spent_musd == 1800000);
    assert_int_equal(w.ls->row.counts[TASK_ACTIVE], 1);
    assert_false(w.s.look_at_db || w.s.bills_unread);
    a = leader_world_attempt(&w, 2, 2);
    leader_world_ran(a, ATTEMPT_VERIFYING);
    a->billable_s = 0; /* its row is one of those that a bill is asked for */
    p = plan(&w, a, &e, NULL);
    assert_false(commit(&w, a, &p));
    assert_true(w.s.bills_unread);
    leader_world_done(&w);
}

static void test_outcome__what_becomes_of_the_pool(void **state UNUSED)
{
    static const struct {
        const char *what;
        bool started, settle;
        enum warm_pool_status status;
        int64_t retained_s;
        enum pool_state to;
        musd_t warm_musd, open_musd; /* 600 s of two instances are 1.20 USD */
    } cases[] = {
        {"never ran", false, false, WARM_POOL_NONE, -1, POOL_TERMINATED, 0, 0},
        {"a stranger's job has its name", true, false, WARM_POOL_IN_USE, -1, POOL_TERMINATED, 0, 0},
        {"and its pool was seen", true, false, WARM_POOL_REUSED, 9, POOL_TERMINATED, 0, 0},
        {"ended before it started", false, true, WARM_POOL_NONE, -1, POOL_TERMINATED, 0, 0},
        {"nothing said yet", true, true, WARM_POOL_NONE, -1, POOL_AVAILABLE, 0, 1200000},
        {"kept", true, true, WARM_POOL_AVAILABLE, 5, POOL_AVAILABLE, 0, 1200000},
        {"an unknown word", true, true, WARM_POOL_UNKNOWN, -1, POOL_AVAILABLE, 0, 1200000},
        {"taken already", true, true, WARM_POOL_REUSED, 100, POOL_REUSED, 200000, 0},
        {"over already", true, true, WARM_POOL_TERMINATED, 0, POOL_TERMINATED, 0, 0},
        {"over, time not told", true, true, WARM_POOL_TERMINATED, -1, POOL_TERMINATED, 0, 0},
        {"over, too long", true, true, WARM_POOL_TERMINATED, INT64_MAX, POOL_TERMINATED, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct leader_world w;
        struct outcome_notes n;
        leader_world_init(&w);
        struct live_attempt *a = leader_world_attempt(&w, 1, 2);
        struct live_pool *pool = leader_world_pool(&w, 5, POOL_EXPECTED, a);
        struct live_slots *slots = leader_state_slots(&w.s, "ml.a.large", MARKET_ON_DEMAND);
        a->account.reserved_musd = 20 * USD;
        budget_state_move(&w.s, w.lc, w.ls, 20 * USD, 0, 0);
        leader_world_ran(a, ATTEMPT_FAILED);
        a->row.started_us = cases[i].started ? a->row.started_us : 0;
        a->pool_seen =
            (struct warm_pool_report){.status = cases[i].status, .retained_s = cases[i].retained_s};
        struct protocol_effect e = ended_as(CAUSE_USER_CODE);
        e.settle = cases[i].settle;
        struct pending_record p = plan(&w, a, &e, &n);
        if (!p.r.pool_moves || p.r.pool_to != cases[i].to || p.r.warm_musd != cases[i].warm_musd ||
            p.r.open_musd != cases[i].open_musd) {
            fail_msg("%s: pool %s, %lld warm, %lld open", cases[i].what,
                     pool_state_name(p.r.pool_to), (long long)p.r.warm_musd,
                     (long long)p.r.open_musd);
        }
        assert_true(n.cost_overflow == (cases[i].retained_s == INT64_MAX) && !n.not_booked);
        commit(&w, a, &p);
        assert_int_equal(slots->s.held, 0);
        assert_int_equal(slots->s.warm_idle, cases[i].to == POOL_AVAILABLE ? 2 : 0);
        assert_int_equal(w.lc->row.reserved_musd, cases[i].open_musd);
        assert_int_equal(w.lc->row.warm_musd, cases[i].warm_musd);
        if (cases[i].to == POOL_AVAILABLE) {
            assert_true(pool->row.state == POOL_AVAILABLE && pool->attempt == NULL);
            assert_int_equal(pool->row.expires_us, WALL - 100 * SEC + 600 * SEC);
            assert_int_equal(pool->account.reserved_musd, cases[i].open_musd);
            assert_int_equal(pool->seen, cases[i].status == WARM_POOL_AVAILABLE);
            assert_int_equal(pool->look_now, !pool->seen);
            assert_int_equal(pool->described_us, pool->seen ? BOOT : 0);
        } else {
            assert_int_equal(w.s.pools_n, 0);
        }
        leader_world_done(&w);
    }
}

/* A pool that is given to a job intended on another one sets that other one free. */
static void test_outcome__a_pool_given_to_another_frees_the_one_meant(void **state UNUSED)
{
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 2);
    struct live_attempt *taker = leader_world_attempt(&w, 2, 2);
    a->pool = leader_world_pool(&w, 5, POOL_EXPECTED, a);
    struct live_pool *meant = taker->taken = leader_world_pool(&w, 6, POOL_AVAILABLE, NULL);
    meant->row.taken_by = 2;
    a->pool_seen.status = WARM_POOL_REUSED;
    memcpy(a->pool_seen.reused_by, taker->row.name.s, sizeof a->pool_seen.reused_by);
    struct protocol_effect e = ended_as(CAUSE_USER_CODE);
    struct pending_record p = plan(&w, a, &e, NULL);
    meant->look_now = false;
    commit(&w, a, &p);
    assert_true(p.r.frees_pool_id == 6 && meant->row.taken_by == 0);
    assert_true(meant->look_now && taker->taken == NULL);
    assert_int_equal(w.s.slots[0].s.warm_idle, 2); /* it was one */
    leader_world_done(&w);
}

/* A pool that an attempt was intended on and did not take is idle again. */
static void test_outcome__a_pool_not_taken_stands_alone_again(void **state UNUSED)
{
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    struct live_pool *pool = leader_world_pool(&w, 5, POOL_AVAILABLE, NULL);
    struct live_slots *slots = leader_state_slots(&w.s, "ml.a.large", MARKET_ON_DEMAND);
    a->taken = pool;
    pool->row.taken_by = 1;
    pool->look_now = false;
    slots_idle_end(slots, 1);
    a->p.state = ATTEMPT_VOID;
    struct protocol_effect e = ended_as(CAUSE_CAPACITY);
    e.settle = false;
    struct pending_record p = plan(&w, a, &e, NULL);
    commit(&w, a, &p);
    assert_int_equal(pool->row.taken_by, 0);
    assert_true(pool->look_now);
    assert_int_equal(slots->s.warm_idle, 1);
    assert_int_equal(slots->s.held, 0);
    leader_world_done(&w);
}

static void test_outcome__cost_that_nobody_reported_is_estimated(void **state UNUSED)
{
    struct leader_world w;
    struct outcome_notes n;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    leader_world_ran(a, ATTEMPT_FAILED);
    a->billable_s = 0;
    struct protocol_effect e = ended_as(CAUSE_USER_CODE);
    struct pending_record p = plan(&w, a, &e, &n);
    assert_true(p.r.estimated && p.r.billable_s == 3600);
    assert_false(w.s.bills_unread); /* nothing is written yet */
    a->row.price_musd_per_hour = 0; /* adopted before it was known: all comes with the bill */
    assert_int_equal(plan(&w, a, &e, &n).r.billable_s, 0);
    a->billable_s = 7000;
    assert_true(plan(&w, a, &e, &n).r.estimated);
    a->row.instances = 3;
    a->row.price_musd_per_hour = INT64_MAX / 2; /* absurd: booked as nothing, and said */
    assert_true(plan(&w, a, &e, &n).r.cost_musd == 0 && n.cost_overflow);
    a->account.job_settled = true; /* a second settlement is refused, and said */
    p = plan(&w, a, &e, &n);
    assert_true(n.not_booked);
    leader_world_done(&w);
}

static void test_outcome__an_alert_names_the_job(void **state UNUSED)
{
    struct leader_world w;
    char text[1400];
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    a->p.state = ATTEMPT_CONFLICT;
    struct protocol_effect e = {.changed = true, .from = ATTEMPT_INTENDED, .alert = true};
    struct pending_record p = plan(&w, a, &e, NULL);
    assert_true(p.alert);
    leader_alert_text(&w.s, &p, text, sizeof text);
    assert_string_equal(text, "part 1: job d-7-shards-1-a1-00000000 is conflict and needs a "
                              "person: AWS answers nothing that settles it");
    (void)snprintf(a->reason, sizeof a->reason, "taken");
    p = plan(&w, a, &e, NULL);
    leader_alert_text(&w.s, &p, text, sizeof text);
    assert_string_equal(
        text, "part 1: job d-7-shards-1-a1-00000000 is conflict and needs a person: taken");
    assert_string_equal(leader_record_row(&p).reason, "taken");
    leader_world_done(&w);
}

/* What a job that ran says of itself ("ThrottlingException", a hub's 429) chooses the wait, never
 * whether it counts: free is only what never started. */
static void test_outcome__a_jobs_own_words_never_make_it_free(void **state UNUSED)
{
    static const struct {
        const char *what;
        enum attempt_state to;
        bool started;
        int64_t billable_s;
        bool counts;
    } cases[] = {{"it ran", ATTEMPT_FAILED, true, 60, true},
                 {"it ran, and nobody has said what it costs", ATTEMPT_FAILED, true, 0, true},
                 {"it is billed, and no start was seen", ATTEMPT_FAILED, false, 60, true},
                 {"it never started", ATTEMPT_FAILED, false, 0, false},
                 {"it was never created", ATTEMPT_VOID, false, 0, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct leader_world w;
        struct outcome_notes n;
        leader_world_init(&w);
        struct live_attempt *a = leader_world_attempt(&w, 1, 1);
        leader_world_ran(a, cases[i].to);
        a->row.started_us = cases[i].started ? a->row.started_us : 0;
        a->billable_s = cases[i].billable_s;
        (void)snprintf(a->reason, sizeof a->reason, "AlgorithmError: ThrottlingException");
        struct protocol_effect e = ended_as(CAUSE_THROTTLED);
        e.settle = cases[i].to == ATTEMPT_FAILED;
        struct pending_record p = plan(&w, a, &e, &n);
        if (p.r.task_counts != cases[i].counts || p.ran != cases[i].counts ||
            n.same != (cases[i].counts ? 1 : 0) || p.r.task_to != TASK_WAITING) {
            fail_msg("%s: counts %d", cases[i].what, p.r.task_counts);
        }
        assert_true(p.r.not_before_us <= WALL + 60 * SEC); /* the wait is that of throttling */
        a->row.task_attempts = ATTEMPTS_MAX - 1;
        p = plan(&w, a, &e, &n);
        assert_int_equal(p.r.task_to, cases[i].counts ? TASK_FAILED : TASK_WAITING);
        a->row.task_attempts = 0; /* unwanted: the wish is the reason, and does not count */
        a->p.wanted = false;
        p = plan(&w, a, &e, &n);
        assert_false(p.ran || p.r.task_counts);
        leader_world_done(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outcome__success_ends_the_task),
        cmocka_unit_test(test_outcome__a_retry_keeps_what_was_learned),
        cmocka_unit_test(test_outcome__where_the_task_goes),
        cmocka_unit_test(test_outcome__the_spec_says_what_counts),
        cmocka_unit_test(test_outcome__a_part_that_fails_alone_is_set_aside),
        cmocka_unit_test(test_outcome__an_uncounted_end_keeps_the_last_signature),
        cmocka_unit_test(test_outcome__a_rung_that_the_ladder_does_not_have),
        cmocka_unit_test(test_outcome__a_part_ends_at_its_own_cap),
        cmocka_unit_test(test_outcome__a_part_keeps_what_it_has_cost),
        cmocka_unit_test(test_outcome__a_part_is_not_tried_again_for_ever),
        cmocka_unit_test(test_outcome__a_longer_run_must_be_paid_in_full),
        cmocka_unit_test(test_outcome__a_void_gives_everything_back),
        cmocka_unit_test(test_outcome__release_without_the_end),
        cmocka_unit_test(test_outcome__what_becomes_of_the_pool),
        cmocka_unit_test(test_outcome__a_pool_given_to_another_frees_the_one_meant),
        cmocka_unit_test(test_outcome__a_pool_not_taken_stands_alone_again),
        cmocka_unit_test(test_outcome__cost_that_nobody_reported_is_estimated),
        cmocka_unit_test(test_outcome__an_alert_names_the_job),
        cmocka_unit_test(test_outcome__a_jobs_own_words_never_make_it_free),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
