/* Aim: the bill of a job that was settled by an estimate is asked for at bearable times, booked as
 * a correction once, in every sum that counts it, and given up only after hours in vain. Method:
 * rows and descriptions made by hand, in a state made by hand. */
#include "common/cleanup.h"
#include "core/leader/bills.h"
#include "core/leader/budget_state.h"
#include "core/leader/rows_read.h"
#include "outcome_world.h"

static const char *job_of(int64_t attempt_id)
{
    static char name[64];
    (void)snprintf(name, sizeof name, "d-7-shards-%lld-a1-00000000", (long long)attempt_id);
    return name;
}

/* An hour on two instances, of 3.60 USD an hour, was booked: 7.20 USD. */
static struct bill_row row_of(const struct leader_world *w, int64_t attempt_id)
{
    struct bill_row row = {.attempt_id = attempt_id,
                           .campaign_id = w->lc->row.id,
                           .project_id = 3,
                           .stage_id = w->ls->row.id,
                           .task_id = 1000 + attempt_id,
                           .instances = 2,
                           .price_musd_per_hour = 3600000,
                           .billable_s = 7200,
                           .cost_musd = 7200000};
    (void)snprintf(row.job.s, sizeof row.job.s, "%s", job_of(attempt_id));
    return row;
}

static struct job_description ended(int64_t billable_s)
{
    return (struct job_description){
        .status = "Completed", .started = WALL, .ended = WALL + SEC, .billable_s = billable_s};
}

static struct live_bill *taken(struct leader_world *w, int64_t attempt_id)
{
    struct bill_row row = row_of(w, attempt_id);
    leader_take_bills(&w->s, &row, 1, BOOT);
    return leader_bill_of(&w->s, job_of(attempt_id));
}

/* Seconds after BOOT of each Describe, while its bill does not come. */
static size_t asked(struct leader_world *w, int64_t attempt_id, int64_t *ret, size_t most)
{
    const struct job_description job = ended(0);
    size_t n = 0;
    int64_t at_us = BOOT;
    while (leader_bill_of(&w->s, job_of(attempt_id)) != NULL && n < most) {
        int64_t wake_us = INT64_MAX;
        const struct live_bill *b = leader_bill_next(&w->s, at_us, &wake_us);
        if (b == NULL) {
            assert_in_range(wake_us, at_us + 1, INT64_MAX - 1);
            at_us = wake_us;
            continue;
        }
        assert_int_equal(b->row.attempt_id, attempt_id);
        ret[n++] = (at_us - BOOT) / SEC;
        struct bill_correction c;
        enum bill_fate fate = leader_plan_bill(b, &job, false, at_us, &c);
        leader_apply_bill(&w->s, job_of(attempt_id), fate, &c, at_us);
        at_us += SEC / 10; /* an answer takes its time */
    }
    return n;
}

/* A job that was found before the price of its type was known: 0 is no price. */
static void test_bills__without_a_price_correct_nothing(void **state UNUSED)
{
    struct leader_world w;
    struct bill_correction c;
    const struct job_description job = ended(3600);
    const struct slots_row price = {.instance_type = "ml.a.large", .price_musd_per_hour = 3600000};
    leader_world_init(&w);
    struct bill_row row = row_of(&w, 1);
    row.price_musd_per_hour = row.cost_musd = 0;
    leader_take_bills(&w.s, &row, 1, BOOT);
    const struct live_bill *b = leader_bill_of(&w.s, job_of(1));
    assert_int_equal(leader_plan_bill(b, &job, false, BOOT, &c), BILL_AWAITED);
    assert_int_equal(leader_plan_bill(b, &job, false, BOOT + 21600 * SEC, &c), BILL_NEVER);
    assert_non_null(taken(&w, 2));
    w.s.bills_unread = false;
    rows_prices(&w.s, &price, 1); /* its row is read again with what is known by now */
    assert_true(w.s.bills_unread);
    assert_null(leader_bill_of(&w.s, job_of(1)));
    assert_non_null(leader_bill_of(&w.s, job_of(2)));
    w.s.bills_unread = false;
    rows_prices(&w.s, &price, 1);
    assert_false(w.s.bills_unread);
    leader_world_done(&w);
}

/* The clock goes on between an answer and what is made of it: the last time is not skipped. */
static void test_bills__the_last_time_may_pass_meanwhile(void **state UNUSED)
{
    struct leader_world w;
    struct bill_correction c;
    const struct job_description job = ended(0);
    int64_t last_us = BOOT + 21600 * SEC, wake_us = INT64_MAX;
    leader_world_init(&w);
    struct live_bill *b = taken(&w, 1);
    assert_int_equal(leader_plan_bill(b, &job, false, last_us - 1, &c), BILL_AWAITED);
    leader_apply_bill(&w.s, job_of(1), BILL_AWAITED, &c, last_us);
    assert_ptr_equal(leader_bill_next(&w.s, last_us, &wake_us), b);
    assert_int_equal(leader_plan_bill(b, &job, false, last_us, &c), BILL_NEVER);
    leader_world_done(&w);
}

static void test_bills__are_asked_for_seldomer_and_given_up(void **state)
{
    (void)state;
    static const int64_t times_s[] = {10, 60, 180, 600, 1800, 7200, 21600};
    struct leader_world w;
    int64_t at_s[20];
    leader_world_init(&w);
    assert_non_null(taken(&w, 1));
    assert_int_equal(asked(&w, 1, at_s, ARRAY_LEN(at_s)), ARRAY_LEN(times_s));
    assert_memory_equal(at_s, times_s, sizeof times_s);
    assert_int_equal(w.lc->row.spent_musd, 0); /* nothing is booked for that */
    assert_false(w.s.bills_unread);
    leader_world_done(&w);
}

static void test_bills__what_a_describe_says(void **state)
{
    (void)state;
    const int64_t late_us = BOOT + 21600 * SEC;
    struct leader_world w;
    struct bill_correction c;
    leader_world_init(&w);
    const struct live_bill *b = taken(&w, 1);
    struct job_description job = ended(0);
    assert_int_equal(leader_plan_bill(b, &job, false, BOOT, &c), BILL_AWAITED);
    assert_int_equal(leader_plan_bill(b, &job, false, late_us - 1, &c), BILL_AWAITED);
    assert_int_equal(leader_plan_bill(b, &job, false, late_us, &c), BILL_NEVER);
    assert_int_equal(leader_plan_bill(b, NULL, true, BOOT, &c), BILL_AWAITED); /* not found */
    assert_int_equal(leader_plan_bill(b, NULL, true, late_us, &c), BILL_NEVER);
    assert_int_equal(leader_plan_bill(b, NULL, false, late_us, &c), BILL_UNANSWERED);
    (void)snprintf(job.status, sizeof job.status, "InProgress"); /* an old answer */
    assert_int_equal(leader_plan_bill(b, &job, false, late_us, &c), BILL_UNANSWERED);
    job = ended(1200);
    assert_int_equal(leader_plan_bill(b, &job, false, late_us, &c), BILL_CAME);
    assert_int_equal(c.attempt_id, 1);
    assert_string_equal(c.job.s, job_of(1));
    assert_true(c.was_billable_s == 7200 && c.was_musd == 7200000);
    assert_true(c.billable_s == 2400 && c.cost_musd == 2400000); /* of both instances */
    assert_true(c.entry.from == LEDGER_SPENT && c.entry.to == LEDGER_BUDGET);
    assert_true(c.entry.amount_musd == 4800000 && c.entry.seconds == 4800);
    assert_false(c.has_phases);
    struct live_bill absurd = *b;
    absurd.row.price_musd_per_hour = INT64_MAX;
    assert_int_equal(leader_plan_bill(&absurd, &job, false, BOOT, &c), BILL_NEVER);
    leader_world_done(&w);
}

static void test_bills__phases_share_what_is_billed(void **state)
{
    (void)state;
    struct leader_world w;
    struct bill_correction c;
    leader_world_init(&w);
    struct bill_row row = row_of(&w, 1);
    row.has_phases = true;
    row.phases[3 * COST_PHASE_WAIT] = 9000;
    row.phases[3 * COST_PHASE_DATA + 1] = 1800;
    row.phases[3 * COST_PHASE_DATA + 2] = 1800000;
    row.phases[3 * COST_PHASE_TRAINING + 1] = 5400;
    row.phases[3 * COST_PHASE_TRAINING + 2] = 5400000;
    leader_take_bills(&w.s, &row, 1, BOOT);
    const struct job_description job = ended(400);
    assert_int_equal(leader_plan_bill(leader_bill_of(&w.s, job_of(1)), &job, false, BOOT, &c),
                     BILL_CAME);
    assert_true(c.has_phases);
    assert_int_equal(c.phases[3 * COST_PHASE_WAIT], 9000); /* time is as it was */
    assert_int_equal(c.phases[3 * COST_PHASE_DATA + 1], 200);
    assert_int_equal(c.phases[3 * COST_PHASE_DATA + 2], 200000);
    assert_int_equal(c.phases[3 * COST_PHASE_TRAINING + 1], 600);
    assert_int_equal(c.phases[3 * COST_PHASE_TRAINING + 2], 600000);
    leader_world_done(&w);
}

/* A rule that still ran when its job had ended has its verdict by now. */
static void test_bills__what_its_rules_have_found_comes_with_it(void **state)
{
    (void)state;
    struct leader_world w;
    struct bill_correction c;
    leader_world_init(&w);
    const struct live_bill *b = taken(&w, 1);
    struct job_description job = ended(400);
    assert_int_equal(leader_plan_bill(b, &job, false, BOOT, &c), BILL_CAME);
    assert_null(c.rules);
    (void)snprintf(job.rules, sizeof job.rules, "[1]");
    assert_int_equal(leader_plan_bill(b, &job, false, BOOT, &c), BILL_CAME);
    assert_non_null(c.rules);
    assert_string_equal(c.rules, "[1]");
    leader_world_done(&w);
}

/* Books `billable_s` for attempt 1. */
static void come(struct leader_world *w, int64_t billable_s)
{
    struct bill_correction c;
    struct job_description job = ended(billable_s);
    (void)snprintf(job.rules, sizeof job.rules, "[1]");
    assert_int_equal(leader_plan_bill(leader_bill_of(&w->s, job_of(1)), &job, false, BOOT, &c),
                     BILL_CAME);
    leader_apply_bill(&w->s, job_of(1), BILL_CAME, &c, BOOT);
    assert_null(leader_bill_of(&w->s, job_of(1)));
}

/* Phases that nobody writes would overflow: the bill is booked, and they stay as they are. */
static void test_bills__phases_that_cannot_be(void **state)
{
    (void)state;
    static const int64_t bad[] = {-1, INT64_MAX};
    const struct job_description job = ended(400);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct leader_world w;
        struct bill_correction c;
        leader_world_init(&w);
        struct bill_row row = row_of(&w, 5);
        row.has_phases = true;
        row.phases[3 * COST_PHASE_DATA + 1] = row.phases[3 * COST_PHASE_TRAINING + 1] = bad[i];
        leader_take_bills(&w.s, &row, 1, BOOT);
        const struct live_bill *b = leader_bill_of(&w.s, job_of(5));
        assert_int_equal(leader_plan_bill(b, &job, false, BOOT, &c), BILL_CAME);
        assert_false(c.has_phases);
        leader_world_done(&w);
    }
}

static void test_bills__every_sum_follows(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    budget_state_move(&w.s, w.lc, w.ls, 0, 9 * USD, 0);
    leader_state_change(&w.s, 1001, true)->spent_musd = 8 * USD;
    struct live_pool *pool = leader_world_pool(&w, 5, POOL_AVAILABLE, NULL);
    pool->row.attempt_id = 1;
    pool->account.spent_musd = 7200000;
    w.lc->budget_short = true;
    (void)taken(&w, 1);
    come(&w, 1200);
    assert_int_equal(w.ls->row.spent_musd, 4200000);
    assert_int_equal(w.lc->row.spent_musd, 4200000);
    assert_int_equal(w.s.projects[0].spent_musd, 4200000);
    assert_int_equal(w.s.projects[1].spent_musd, 4200000);
    assert_int_equal(w.s.projects[2].spent_musd, 0);
    assert_int_equal(leader_state_change(&w.s, 1001, false)->spent_musd, 3200000);
    assert_int_equal(pool->account.spent_musd, 2400000);
    assert_false(w.lc->budget_short);
    assert_true(w.s.decide && w.s.look_at_db);
    (void)taken(&w, 1); /* more than was estimated: that is booked as well */
    come(&w, 3700);
    assert_int_equal(w.lc->row.spent_musd, 4400000);
    leader_world_done(&w);
}

static void test_bills__of_an_attempt_that_is_verified_and_of_a_campaign_that_is_gone(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 2);
    leader_world_ran(a, ATTEMPT_VERIFYING);
    a->account.spent_musd = 7200000;
    leader_state_change(&w.s, 1001, true)->spent_musd = USD; /* of the attempts before it */
    a->rules = xstrdup("[]");
    (void)taken(&w, 1);
    come(&w, 1200);
    assert_int_equal(a->account.spent_musd, 2400000);
    assert_null(a->rules); /* the bill brought newer ones */
    assert_int_equal(leader_state_change(&w.s, 1001, false)->spent_musd, USD);
    w.s.projects[0].spent_musd = w.s.projects[1].spent_musd = 9 * USD;
    w.lc->row.spent_musd = 5 * USD;
    struct bill_row row = row_of(&w, 1);
    row.campaign_id = row.task_id = 99;
    w.s.projects[1].cap_musd = 9 * USD;
    w.lc->budget_short = true; /* another of the project, below its cap */
    leader_take_bills(&w.s, &row, 1, BOOT);
    come(&w, 1200);
    assert_int_equal(w.s.projects[0].spent_musd, 4200000);
    assert_int_equal(w.s.projects[1].spent_musd, 4200000);
    assert_int_equal(w.lc->row.spent_musd, 5 * USD);
    assert_false(w.lc->budget_short);
    leader_world_done(&w);
}

/* Found before its price was known: whatever was estimated, its bill is booked. */
static void test_bills__of_one_that_had_no_price_only_adds(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 2);
    leader_world_ran(a, ATTEMPT_FAILED);
    a->billable_s = 0; /* its bill is late */
    a->row.price_musd_per_hour = 0;
    const struct protocol_effect e = ended_as(CAUSE_USER_CODE);
    struct pending_record p = plan(&w, a, &e, NULL);
    assert_true(p.r.estimated && p.r.cost_musd == 0);
    struct bill_row row = row_of(&w, 1); /* as view_bills has it, with the price of now */
    row.billable_s = p.r.billable_s;
    row.cost_musd = 0;
    row.has_phases = false;
    leader_take_bills(&w.s, &row, 1, BOOT);
    come(&w, 20); /* fewer seconds than were estimated */
    assert_int_equal(w.lc->row.spent_musd, 2 * 20 * 1000);
    leader_world_done(&w);
}

static void test_bills__one_call_a_second_the_oldest_first(void **state)
{
    (void)state;
    struct leader_world w;
    int64_t wake_us = INT64_MAX;
    struct bill_row rows[2];
    leader_world_init(&w);
    assert_null(leader_bill_next(&w.s, BOOT, &wake_us));
    assert_int_equal(wake_us, INT64_MAX);
    for (int i = 0; i < 2; i++) {
        rows[i] = row_of(&w, 4 + i);
    }
    leader_take_bills(&w.s, rows, 2, BOOT);
    assert_true(w.s.act);
    leader_bill_of(&w.s, job_of(4))->next_us = BOOT + 11 * SEC;
    assert_null(leader_bill_next(&w.s, BOOT + 10 * SEC - 1, &wake_us));
    assert_int_equal(wake_us, BOOT + 10 * SEC);
    assert_int_equal(leader_bill_next(&w.s, BOOT + 20 * SEC, &wake_us)->row.attempt_id, 5);
    struct bill_correction c;
    leader_apply_bill(&w.s, job_of(5), BILL_AWAITED, &c, BOOT + 20 * SEC);
    wake_us = INT64_MAX;
    assert_null(leader_bill_next(&w.s, BOOT + 21 * SEC - 1, &wake_us));
    assert_int_equal(wake_us, BOOT + 21 * SEC);
    assert_int_equal(leader_bill_next(&w.s, BOOT + 21 * SEC, &wake_us)->row.attempt_id, 4);
    leader_world_done(&w);
}

static void test_bills__a_call_that_fails_backs_off(void **state)
{
    (void)state;
    struct leader_world w;
    struct bill_correction c;
    leader_world_init(&w);
    const struct live_bill *b = taken(&w, 1);
    static const int64_t waits_s[] = {5, 10, 20, 40, 80, 160, 320, 600, 600};
    for (size_t i = 0; i < ARRAY_LEN(waits_s); i++) {
        leader_apply_bill(&w.s, job_of(1), BILL_UNANSWERED, &c, BOOT);
        assert_int_equal(b->next_us, BOOT + waits_s[i] * SEC);
    }
    leader_apply_bill(&w.s, job_of(1), BILL_AWAITED, &c, BOOT + 700 * SEC);
    assert_int_equal(b->next_us, BOOT + 1800 * SEC);
    leader_apply_bill(&w.s, job_of(1), BILL_UNANSWERED, &c, BOOT + 1800 * SEC);
    assert_int_equal(b->next_us, BOOT + 1805 * SEC);
    leader_world_done(&w);
}

static void test_bills__rows_are_taken_once_and_read_again_when_more_wait(void **state)
{
    (void)state;
    struct leader_world w;
    struct bill_correction c;
    AUTO_FREE struct bill_row *rows = xcalloc(BILLS_MAX, sizeof *rows);
    leader_world_init(&w);
    w.s.bills_unread = true;
    (void)taken(&w, 1);
    assert_false(w.s.bills_unread);
    leader_bill_of(&w.s, job_of(1))->failures = 3;
    struct bill_row row = row_of(&w, 1);
    leader_take_bills(&w.s, &row, 1, BOOT + 99 * SEC);
    assert_int_equal(w.s.bills_n, 1);
    assert_true(w.s.bills[0].failures == 3 && w.s.bills[0].since_us == BOOT);
    leader_apply_bill(&w.s, job_of(1), BILL_GONE, &c, BOOT); /* it is not what we thought */
    assert_int_equal(w.s.bills_n, 0);
    assert_true(w.s.bills_unread);
    for (int i = 0; i < BILLS_MAX; i++) {
        rows[i] = row_of(&w, 1 + i);
    }
    leader_take_bills(&w.s, rows, BILLS_MAX, BOOT);
    assert_false(w.s.bills_unread);
    leader_apply_bill(&w.s, job_of(7), BILL_NEVER, &c, BOOT);
    assert_true(w.s.bills_unread); /* there is room for one more */
    leader_world_done(&w);
}

/* The bill of what was booked for it: 50 s and no idle time on two instances. */
static struct bill_row stray_row(void)
{
    struct bill_row row = {
        .instances = 2, .price_musd_per_hour = 3600000, .billable_s = 100, .cost_musd = 100000};
    (void)snprintf(row.job.s, sizeof row.job.s, "d-9-s-0-a1-0a1b2c3d");
    return row;
}

static const struct live_bill *stray_taken(struct leader_world *w, const struct bill_row *row)
{
    leader_take_bills(&w->s, row, 1, BOOT);
    return leader_bill_of(&w->s, row->job.s);
}

static void test_bills__of_a_stray_are_of_its_idle_pool_too(void **state)
{
    (void)state;
    struct leader_world w;
    struct bill_correction c;
    leader_world_init(&w);
    struct bill_row row = stray_row();
    const struct live_bill *b = stray_taken(&w, &row);
    struct job_description job = ended(0);
    job.pool.retained_s = -1;
    assert_int_equal(leader_plan_bill(b, &job, false, BOOT, &c), BILL_AWAITED);
    assert_int_equal(leader_plan_bill(b, &job, false, BOOT + 21600 * SEC, &c), BILL_NEVER);
    job.billable_s = 20;
    assert_int_equal(leader_plan_bill(b, &job, false, BOOT, &c), BILL_CAME);
    assert_int_equal(c.attempt_id, 0);
    assert_string_equal(c.job.s, row.job.s);
    assert_true(c.was_billable_s == 100 && c.was_musd == 100000);
    assert_true(c.billable_s == 40 && c.cost_musd == 40000);
    assert_true(c.entry.from == LEDGER_SPENT && c.entry.to == LEDGER_BUDGET);
    assert_true(c.entry.amount_musd == 60000 && c.entry.seconds == 60);
    static const enum warm_pool_status lives[] = {WARM_POOL_AVAILABLE, WARM_POOL_IN_USE,
                                                  WARM_POOL_UNKNOWN};
    for (size_t i = 0; i < ARRAY_LEN(lives); i++) {
        job.pool = (struct warm_pool_report){.status = lives[i], .retained_s = 3};
        assert_int_equal(leader_plan_bill(b, &job, false, BOOT, &c), BILL_AWAITED);
        assert_int_equal(leader_plan_bill(b, &job, false, BOOT + 21600 * SEC, &c), BILL_NEVER);
    }
    job.pool = (struct warm_pool_report){.status = WARM_POOL_TERMINATED, .retained_s = -1};
    assert_int_equal(leader_plan_bill(b, &job, false, BOOT, &c), BILL_AWAITED);
    assert_int_equal(leader_plan_bill(b, &job, false, BOOT + 21600 * SEC, &c), BILL_CAME);
    assert_int_equal(c.billable_s, 40);
    job.pool.retained_s = 7;
    assert_int_equal(leader_plan_bill(b, &job, false, BOOT, &c), BILL_CAME);
    assert_true(c.billable_s == 54 && c.cost_musd == 54000);
    job.pool.status = WARM_POOL_REUSED;
    row.price_musd_per_hour = 140; /* 1.6 and 0.5 micro-USD: each is rounded */
    row.cost_musd = 4;
    (void)snprintf(row.job.s, sizeof row.job.s, "d-9-s-1-a1-0a1b2c3d");
    assert_int_equal(leader_plan_bill(stray_taken(&w, &row), &job, false, BOOT, &c), BILL_CAME);
    assert_true(c.billable_s == 54 && c.cost_musd == 2 + 1);
    leader_world_done(&w);
}

static void test_bills__of_strays_count_in_the_sum_of_everything_alone(void **state)
{
    (void)state;
    struct leader_world w;
    struct bill_correction c;
    leader_world_init(&w);
    struct bill_row rows[2] = {stray_row(), stray_row()};
    (void)snprintf(rows[1].job.s, sizeof rows[1].job.s, "d-9-s-1-a1-0a1b2c3d");
    leader_take_bills(&w.s, rows, 2, BOOT);
    leader_take_bills(&w.s, rows, 2, BOOT);
    assert_int_equal(w.s.bills_n, 2); /* each is known by its name */
    struct live_pool *pool = leader_world_pool(&w, 5, POOL_AVAILABLE, NULL);
    pool->row.attempt_id = 0;
    w.s.projects[0].cap_musd = w.s.projects[0].spent_musd = USD;
    w.lc->budget_short = true;
    w.s.decide = w.s.look_at_db = false;
    const struct job_description job = ended(20);
    for (int i = 0; i < 2; i++) {
        const struct live_bill *b = leader_bill_of(&w.s, rows[i].job.s);
        assert_int_equal(leader_plan_bill(b, &job, false, BOOT, &c), BILL_CAME);
        leader_apply_bill(&w.s, rows[i].job.s, BILL_CAME, &c, BOOT);
        assert_null(leader_bill_of(&w.s, rows[i].job.s));
    }
    assert_int_equal(w.s.projects[0].spent_musd, USD - 2 * 60000);
    assert_int_equal(w.s.projects[1].spent_musd, 0);
    assert_int_equal(w.s.projects[2].spent_musd, 0);
    assert_int_equal(w.lc->row.spent_musd, 0);
    assert_int_equal(pool->account.spent_musd, 0);
    assert_false(w.lc->budget_short); /* below the cap of everything there is room again */
    assert_true(w.s.decide && w.s.look_at_db);
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bills__what_its_rules_have_found_comes_with_it),
        cmocka_unit_test(test_bills__without_a_price_correct_nothing),
        cmocka_unit_test(test_bills__the_last_time_may_pass_meanwhile),
        cmocka_unit_test(test_bills__are_asked_for_seldomer_and_given_up),
        cmocka_unit_test(test_bills__what_a_describe_says),
        cmocka_unit_test(test_bills__phases_share_what_is_billed),
        cmocka_unit_test(test_bills__phases_that_cannot_be),
        cmocka_unit_test(test_bills__every_sum_follows),
        cmocka_unit_test(test_bills__of_an_attempt_that_is_verified_and_of_a_campaign_that_is_gone),
        cmocka_unit_test(test_bills__of_one_that_had_no_price_only_adds),
        cmocka_unit_test(test_bills__one_call_a_second_the_oldest_first),
        cmocka_unit_test(test_bills__a_call_that_fails_backs_off),
        cmocka_unit_test(test_bills__rows_are_taken_once_and_read_again_when_more_wait),
        cmocka_unit_test(test_bills__of_a_stray_are_of_its_idle_pool_too),
        cmocka_unit_test(test_bills__of_strays_count_in_the_sum_of_everything_alone),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
