/* Aim: a job without an attempt holds slots and money until its end is seen, is asked about at a
 * bearable rate, stopped when asked for, and booked once with its idle pool. Method: strays made of
 * descriptions, in a state made by hand. */
#include "core/leader/strays.h"
#include "leader_world.h"

#define TYPE "ml.a.large" /* 3.60 USD an hour: 1,000 micro-USD a second */

static struct job_description job_of(const char *name)
{
    struct job_description job = {.instances = 2,
                                  .instance_type = TYPE,
                                  .status = "InProgress",
                                  .max_runtime_s = 600,
                                  .pool = {.retained_s = -1},
                                  .created = WALL,
                                  .started = WALL};
    (void)snprintf(job.name, sizeof job.name, "%s", name);
    return job;
}

static const struct quota_ledger *slots(struct leader_world *w)
{
    return &leader_state_slots(&w->s, TYPE, MARKET_ON_DEMAND)->s;
}

static struct live_stray *found(struct leader_world *w, const struct job_description *job,
                                const char *why)
{
    struct stray_row row;
    assert_true(leader_plan_stray(&w->s, job, "arn", why, &row));
    leader_apply_stray(&w->s, &row);
    leader_apply_stray(&w->s, &row); /* counted once */
    return leader_stray_named(&w->s, job->name);
}

static void test_strays__hold_slots_and_money_until_they_end(void **state)
{
    (void)state;
    struct leader_world w;
    struct stray_end e;
    leader_world_init(&w);
    struct job_description job = job_of("d-9-s-0-a1-0a1b2c3d");
    struct live_stray *st = found(&w, &job, "lost");
    assert_int_equal(slots(&w)->held, 2);
    assert_int_equal(w.s.projects[0].reserved_musd, 2 * (600 + 120 + 900) * 1000);
    assert_int_equal(w.s.projects[1].reserved_musd, 0);
    assert_int_not_equal(leader_plan_stray_seen(st, &job, BOOT, &e), STRAY_OVER);
    job.ended = WALL + 50 * SEC;
    job.billable_s = 50;
    (void)snprintf(job.status, sizeof job.status, "Stopped");
    assert_int_equal(leader_plan_stray_seen(st, &job, BOOT, &e), STRAY_OVER);
    assert_int_equal(e.billable_s, 100);
    assert_int_equal(e.cost_musd, 100000);
    assert_string_equal(e.status, "Stopped");
    assert_int_equal(slots(&w)->held, 2); /* not before it is written */
    w.s.projects[0].cap_musd = USD;
    w.lc->budget_short = true;
    leader_apply_stray_end(&w.s, &e);
    assert_false(w.lc->budget_short); /* what it held is there for campaigns */
    assert_int_equal(slots(&w)->held, 0);
    assert_int_equal(w.s.projects[0].reserved_musd, 0);
    assert_int_equal(w.s.projects[0].spent_musd, 100000);
    assert_null(leader_stray_named(&w.s, job.name));
    assert_true(w.s.decide);
    job.instances = 0; /* nobody can say what it holds */
    assert_false(leader_plan_stray(&w.s, &job, "arn", "lost", &(struct stray_row){.n = 0}));
    leader_world_done(&w);
}

static void test_strays__a_pool_is_ended_and_booked_with_its_job(void **state)
{
    (void)state;
    struct leader_world w;
    struct stray_end e;
    int64_t wake_us = INT64_MAX;
    leader_world_init(&w);
    struct job_description job = job_of("d-9-s-0-a1-0a1b2c3d");
    job.keep_alive_s = 900;
    struct live_stray *st = found(&w, &job, "lost");
    job.ended = WALL + 50 * SEC;
    job.billable_s = 50;
    assert_int_not_equal(leader_plan_stray_seen(st, &job, BOOT, &e),
                         STRAY_OVER); /* its pool is not told of yet */
    job.pool.status = WARM_POOL_AVAILABLE;
    assert_int_not_equal(leader_plan_stray_seen(st, &job, BOOT, &e), STRAY_OVER);
    assert_int_equal(leader_stray_next(st, BOOT, &wake_us), STRAY_ACT_END_POOL);
    leader_stray_answered(st, STRAY_ACT_END_POOL, false, false, WALL, BOOT, NULL);
    assert_int_equal(leader_stray_next(st, BOOT + 9 * SEC, &wake_us), STRAY_ACT_DESCRIBE);
    job.pool = (struct warm_pool_report){.status = WARM_POOL_TERMINATED, .retained_s = 7};
    st->row.price_musd_per_hour = 140; /* 3.9 and 0.5 micro-USD: each is rounded */
    assert_int_equal(leader_plan_stray_seen(st, &job, BOOT, &e), STRAY_OVER);
    assert_int_equal(e.billable_s, 2 * (50 + 7));
    assert_int_equal(e.cost_musd, 4 + 1);
    leader_apply_stray_end(&w.s, &e);
    assert_int_equal(w.s.projects[0].reserved_musd, 0);
    st = found(&w, &job, "lost"); /* one of whose pool only the end is told */
    job.pool = (struct warm_pool_report){.status = WARM_POOL_REUSED, .retained_s = -1};
    assert_int_not_equal(leader_plan_stray_seen(st, &job, BOOT, &e), STRAY_OVER);
    assert_int_equal(leader_plan_stray_seen(st, &job, BOOT + 60 * SEC, &e), STRAY_OVER);
    assert_true(e.billable_s == 100 && e.estimated); /* its bill is asked for */
    leader_apply_stray_end(&w.s, &e);
    st = found(&w, &job, "lost"); /* one whose pool is never told of */
    job.pool = (struct warm_pool_report){.retained_s = -1};
    assert_int_not_equal(leader_plan_stray_seen(st, &job, BOOT, &e), STRAY_OVER);
    assert_int_equal(leader_plan_stray_seen(st, &job, BOOT + 60 * SEC, &e), STRAY_OVER);
    assert_int_equal(e.billable_s, 100);
    leader_world_done(&w);
}

static void test_strays__are_looked_at_once_a_minute_and_when_listed_otherwise(void **state)
{
    (void)state;
    struct leader_world w;
    struct stray_end e;
    int64_t wake_us = INT64_MAX;
    leader_world_init(&w);
    struct job_description job = job_of("d-9-s-0-a1-0a1b2c3d");
    struct live_stray *st = found(&w, &job, "lost");
    assert_int_equal(leader_stray_next(st, BOOT, &wake_us), STRAY_ACT_DESCRIBE);
    leader_stray_answered(st, STRAY_ACT_DESCRIBE, false, false, WALL, BOOT, NULL);
    assert_int_not_equal(leader_plan_stray_seen(st, &job, BOOT, &e), STRAY_OVER);
    assert_int_equal(leader_stray_next(st, BOOT + 59 * SEC, &wake_us), STRAY_ACT_NONE);
    assert_int_equal(wake_us, BOOT + 60 * SEC);
    assert_int_equal(leader_stray_next(st, BOOT + 60 * SEC, &wake_us), STRAY_ACT_DESCRIBE);
    leader_stray_listed(&w.s, job.name, "InProgress"); /* as it is known */
    assert_int_equal(leader_stray_next(st, BOOT + 2 * SEC, &wake_us), STRAY_ACT_NONE);
    leader_stray_listed(&w.s, job.name, "Completed");
    leader_stray_listed(&w.s, "another", "Completed");
    assert_int_equal(leader_stray_next(st, BOOT + 2 * SEC, &wake_us), STRAY_ACT_DESCRIBE);
    for (int i = 0; i < 20; i++) {
        leader_stray_answered(st, STRAY_ACT_DESCRIBE, true, false, WALL, BOOT, NULL);
    }
    wake_us = INT64_MAX;
    assert_int_equal(leader_stray_next(st, BOOT, &wake_us), STRAY_ACT_NONE);
    assert_int_equal(wake_us, BOOT + 60 * SEC);
    leader_world_done(&w);
}

static void test_strays__a_bill_is_waited_for_ten_minutes(void **state)
{
    (void)state;
    struct leader_world w;
    struct stray_end e;
    int64_t wake_us = INT64_MAX;
    leader_world_init(&w);
    struct job_description job = job_of("d-9-s-0-a1-0a1b2c3d");
    struct live_stray *st = found(&w, &job, "lost");
    job.ended = WALL + 50 * SEC;
    assert_int_not_equal(leader_plan_stray_seen(st, &job, BOOT, &e), STRAY_OVER);
    leader_stray_answered(st, STRAY_ACT_DESCRIBE, false, false, WALL, BOOT, NULL);
    assert_int_equal(leader_stray_next(st, BOOT + 59 * SEC, &wake_us), STRAY_ACT_NONE);
    assert_int_equal(leader_stray_next(st, BOOT + 60 * SEC, &wake_us), STRAY_ACT_DESCRIBE);
    assert_int_not_equal(leader_plan_stray_seen(st, &job, BOOT + 599 * SEC, &e), STRAY_OVER);
    struct live_stray before = *st;
    assert_int_equal(leader_plan_stray_seen(st, &job, BOOT + 600 * SEC, &e), STRAY_OVER);
    assert_true(e.estimated && e.billable_s == 2 * 50);
    assert_false(w.s.bills_unread);
    leader_apply_stray_end(&w.s, &e);
    assert_true(w.s.bills_unread && w.s.look_at_db); /* it is asked for from now on */
    w.s.bills_unread = false;
    st = found(&w, &job, "lost");
    *st = before;
    job.billable_s = 20; /* it comes */
    assert_int_equal(leader_plan_stray_seen(st, &job, BOOT + 599 * SEC, &e), STRAY_OVER);
    assert_true(!e.estimated && e.billable_s == 2 * 20);
    *st = before;
    job.billable_s = job.started = 0; /* nothing ran: nothing is billed */
    assert_int_equal(leader_plan_stray_seen(st, &job, BOOT + SEC, &e), STRAY_OVER);
    assert_true(!e.estimated && e.billable_s == 0 && e.cost_musd == 0);
    leader_apply_stray_end(&w.s, &e);
    assert_false(w.s.bills_unread);
    st = found(&w, &job, "lost");
    *st = before;
    st->row.price_musd_per_hour = 0; /* not known: what is booked is no cost */
    job.billable_s = 20;
    assert_int_equal(leader_plan_stray_seen(st, &job, BOOT + SEC, &e), STRAY_OVER);
    assert_true(e.estimated && e.billable_s == 2 * 20 && e.cost_musd == 0);
    job.billable_s = 0; /* nor are the seconds, which come with the bill */
    job.started = WALL;
    *st = before;
    st->row.price_musd_per_hour = 0;
    assert_int_equal(leader_plan_stray_seen(st, &job, BOOT + 600 * SEC, &e), STRAY_OVER);
    assert_true(e.estimated && e.billable_s == 0 && e.cost_musd == 0);
    leader_world_done(&w);
}

/* A price that nobody writes: others do not wait for its slots, and the bill corrects it. */
static void test_strays__that_cost_more_than_fits_end(void **state)
{
    (void)state;
    struct leader_world w;
    struct stray_end e;
    leader_world_init(&w);
    struct job_description job = job_of("d-9-s-0-a1-0a1b2c3d");
    struct live_stray *st = found(&w, &job, "lost");
    st->row.price_musd_per_hour = INT64_MAX;
    job.ended = WALL + 50 * SEC;
    job.billable_s = 50000;
    assert_int_equal(leader_plan_stray_seen(st, &job, BOOT, &e), STRAY_OVER);
    assert_true(e.cost_musd == 0 && e.billable_s == 0 && e.estimated);
    leader_apply_stray_end(&w.s, &e);
    assert_int_equal(slots(&w)->held, 0);
    leader_world_done(&w);
}

static void test_strays__stop_when_asked_for(void **state)
{
    (void)state;
    struct leader_world w;
    int64_t wake_us = INT64_MAX;
    leader_world_init(&w);
    struct job_description job = job_of("d-9-s-0-a1-0a1b2c3d");
    struct live_stray *st = found(&w, &job, "unplaced");
    struct stray_row rows[2] = {st->row, st->row};
    (void)snprintf(rows[1].name, sizeof rows[1].name, "d-9-s-1-a1-0a1b2c3d");
    assert_false(leader_take_strays(&w.s, rows, 2)); /* the second is of an earlier leader */
    assert_int_equal(w.s.strays_n, 2);
    assert_int_equal(slots(&w)->held, 2); /* its row of slots has it already */
    st = leader_stray_named(&w.s, job.name);
    leader_stray_answered(st, STRAY_ACT_DESCRIBE, true, false, WALL, BOOT, NULL);
    rows[0].stop_asked = true;
    assert_true(leader_take_strays(&w.s, rows, 2));
    assert_false(leader_take_strays(&w.s, rows, 2)); /* known */
    assert_int_equal(leader_stray_next(st, BOOT, &wake_us), STRAY_ACT_STOP);
    leader_stray_answered(st, STRAY_ACT_STOP, false, false, WALL, BOOT, NULL);
    assert_int_equal(leader_stray_next(st, BOOT + SEC, &wake_us), STRAY_ACT_DESCRIBE);
    struct job_description late = job_of("d-9-s-2-a1-0a1b2c3d");
    assert_int_equal(leader_stray_next(found(&w, &late, "void"), BOOT, &wake_us), STRAY_ACT_STOP);
    leader_world_done(&w);
}

/* AWS may refuse for good. The job ends by its time, and only a look tells. */
static void test_strays__what_is_refused_is_looked_at_between(void **state)
{
    (void)state;
    struct leader_world w;
    struct stray_end e;
    int64_t wake_us = INT64_MAX;
    int64_t boot_us = BOOT;
    leader_world_init(&w);
    struct job_description job = job_of("d-9-s-0-a1-0a1b2c3d");
    job.keep_alive_s = 900;
    struct live_stray *st = found(&w, &job, "void");
    for (int i = 0; i < 20; i++) {
        enum stray_action asked = i < 10 ? STRAY_ACT_STOP : STRAY_ACT_END_POOL;
        assert_int_equal(leader_stray_next(st, boot_us, &wake_us), asked);
        leader_stray_answered(st, asked, true, false, WALL, boot_us, NULL);
        assert_int_equal(leader_stray_next(st, boot_us, &wake_us), STRAY_ACT_NONE);
        boot_us = st->next_us;
        assert_int_equal(leader_stray_next(st, boot_us, &wake_us), STRAY_ACT_DESCRIBE);
        leader_stray_answered(st, STRAY_ACT_DESCRIBE, i == 3, false, WALL, boot_us, &job);
        if (i == 9) {
            job.ended = WALL + 50 * SEC;
            job.pool.status = WARM_POOL_AVAILABLE;
        }
        if (i != 3) { /* a look that failed keeps no wish back either */
            assert_int_not_equal(leader_plan_stray_seen(st, &job, boot_us, &e), STRAY_OVER);
        }
        boot_us = st->next_us;
    }
    leader_stray_answered(st, STRAY_ACT_END_POOL, true, false, WALL, BOOT, NULL);
    assert_int_equal(st->next_us, BOOT + 60 * SEC); /* the looks have not shortened the pause */
    leader_world_done(&w);
}

static void test_strays__what_a_describe_changes_is_written_once(void **state)
{
    (void)state;
    struct leader_world w;
    struct stray_end e;
    leader_world_init(&w);
    struct job_description job = job_of("d-9-s-0-a1-0a1b2c3d");
    struct live_stray *st = found(&w, &job, "lost");
    assert_int_equal(leader_plan_stray_seen(st, &job, BOOT, &e), STRAY_AS_BEFORE);
    (void)snprintf(job.status, sizeof job.status, "Stopping");
    assert_int_equal(leader_plan_stray_seen(st, &job, BOOT, &e), STRAY_NEWS);
    assert_int_equal(leader_plan_stray_seen(st, &job, BOOT, &e), STRAY_AS_BEFORE);
    job.started += SEC;
    assert_int_equal(leader_plan_stray_seen(st, &job, BOOT, &e), STRAY_NEWS);
    assert_int_equal(st->row.started_us, job.started);
    leader_world_done(&w);
}

/* AWS tells no end of a job that was stopped, or failed, before it started. */
static void test_strays__one_whose_end_is_not_told_ends(void **state)
{
    (void)state;
    static const struct {
        const char *status;
        usec_t started;
        bool over;
        int64_t billable_s;
    } rows[] = {{"Stopped", 0, true, 0},           {"Failed", 0, true, 0},
                {"Completed", WALL, true, 2 * 50}, {"InProgress", 0, false, 0},
                {"Stopping", 0, false, 0},         {"", 0, false, 0},
                {"InProgress", WALL, false, 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct leader_world w;
        struct stray_end e;
        leader_world_init(&w);
        struct job_description job = job_of("d-9-s-0-a1-0a1b2c3d");
        struct live_stray *st = found(&w, &job, "lost");
        (void)snprintf(job.status, sizeof job.status, "%s", rows[i].status);
        job.started = rows[i].started;
        job.modified = WALL + 50 * SEC;
        (void)leader_plan_stray_seen(st, &job, BOOT, &e);
        enum stray_seen seen = leader_plan_stray_seen(st, &job, BOOT + 600 * SEC, &e);
        assert_int_equal(seen == STRAY_OVER, rows[i].over);
        if (rows[i].over) {
            assert_int_equal(e.ended_us, job.modified);
            assert_int_equal(e.billable_s, rows[i].billable_s);
        }
        leader_world_done(&w);
    }
}

static void test_strays__only_a_description_that_came_is_looked_at(void **state)
{
    (void)state;
    static const struct row {
        enum stray_action action;
        bool failed, not_found, looks;
        int failures;
    } rows[] = {
        {STRAY_ACT_DESCRIBE, false, false, true, 0}, {STRAY_ACT_DESCRIBE, true, false, false, 1},
        {STRAY_ACT_DESCRIBE, false, true, false, 1}, {STRAY_ACT_STOP, false, true, false, 0},
        {STRAY_ACT_END_POOL, false, true, false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct live_stray st = {.failures = 0};
        struct job_description job;
        assert_int_equal(leader_stray_answered(&st, rows[i].action, rows[i].failed,
                                               rows[i].not_found, WALL, BOOT, &job),
                         rows[i].looks);
        assert_int_equal(st.failures, rows[i].failures);
    }
}

/* Deleted at AWS: it and its pool are booked for as long as they could last, what was reserved. */
static void test_strays__one_that_is_gone_is_booked_to_its_bound(void **state)
{
    (void)state;
    struct leader_world w;
    struct stray_end e;
    leader_world_init(&w);
    struct job_description job = job_of("d-9-s-0-a1-0a1b2c3d");
    struct job_description seen;
    job.keep_alive_s = 60;
    struct live_stray *st = found(&w, &job, "lost");
    usec_t end = WALL + (600 + 120 + 900) * SEC;
    const enum stray_action look = STRAY_ACT_DESCRIBE;
    assert_false(leader_stray_answered(st, look, false, true, end + 1, BOOT, &seen));
    leader_stray_listed(&w.s, job.name, "InProgress");
    assert_false(leader_stray_answered(st, look, false, true, end + 1, BOOT + 900 * SEC, &seen));
    assert_false(leader_stray_answered(st, look, false, true, end, BOOT + 1800 * SEC, &seen));
    assert_false(
        leader_stray_answered(st, STRAY_ACT_STOP, false, true, end + 1, BOOT + 1800 * SEC, &seen));
    assert_true(leader_stray_answered(st, look, false, true, end + 1, BOOT + 1800 * SEC, &seen));
    int64_t wake_us = INT64_MAX; /* a failed call: asked again after its back-off */
    assert_int_equal(leader_stray_next(st, BOOT + 1800 * SEC + SEC / 2, &wake_us), STRAY_ACT_NONE);
    assert_int_not_equal(leader_plan_stray_seen(st, &seen, BOOT, &e), STRAY_OVER); /* its bill? */
    assert_int_equal(leader_plan_stray_seen(st, &seen, BOOT + 600 * SEC, &e), STRAY_OVER);
    assert_true(e.estimated);
    assert_string_equal(e.status, "Deleted");
    assert_int_equal(e.cost_musd, w.s.projects[0].reserved_musd);
    assert_int_equal(e.billable_s, 2 * (600 + 120 + 900 + 60));
    st->row.price_musd_per_hour = 0; /* says nothing of how long: SageMaker's default */
    end = WALL + (5 * 86400 + 120 + 900) * SEC;
    assert_false(leader_stray_answered(st, look, false, true, end, BOOT + 1800 * SEC, &seen));
    assert_true(leader_stray_answered(st, look, false, true, end + 1, BOOT + 1800 * SEC, &seen));
    st->row.price_musd_per_hour = 3600;
    st->row.reserved_musd = 0; /* nor does one for which more would be reserved than fits */
    st->unfound_us = 0;
    assert_false(leader_stray_answered(st, look, false, true, end, BOOT + 1800 * SEC, &seen));
    assert_false(leader_stray_answered(st, look, false, true, end, BOOT + 9000 * SEC, &seen));
    leader_world_done(&w);
}

/* Without a price its row does not say how long it may run; a look has told. */
static void test_strays__one_that_is_gone_without_a_price_ran_as_long_as_was_told(void **state)
{
    (void)state;
    struct leader_world w;
    struct stray_end e;
    struct stray_row row;
    leader_world_init(&w);
    musd_t *price = &leader_state_slots(&w.s, TYPE, MARKET_ON_DEMAND)->s.price_musd_per_hour;
    const musd_t known = *price;
    *price = -1;
    struct job_description job = job_of("d-9-s-0-a1-0a1b2c3d");
    struct live_stray *st = found(&w, &job, "lost");
    const usec_t end = WALL + (600 + 120 + 900) * SEC;
    assert_int_not_equal(leader_plan_stray_seen(st, &job, BOOT, &e), STRAY_OVER);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(leader_stray_answered(st, STRAY_ACT_DESCRIBE, false, true, end + 1,
                                               BOOT + i * 900 * SEC, &job),
                         i);
    }
    *price = known; /* it comes just before the end is booked */
    assert_true(leader_plan_stray_price(&w.s, st, &job, &row));
    assert_int_equal(row.reserved_musd, 2 * (600 + 120 + 900) * 1000);
    leader_world_done(&w);
}

/* Found before its type has a price: it reserves what any other does, once, as soon as it has one,
 * and gives that back at its end. */
static void test_strays__a_price_that_comes_late_reserves(void **state)
{
    (void)state;
    struct leader_world w;
    struct stray_row row;
    struct stray_end e;
    leader_world_init(&w);
    musd_t *price = &leader_state_slots(&w.s, TYPE, MARKET_ON_DEMAND)->s.price_musd_per_hour;
    const musd_t known = *price, worst_musd = 2 * (600 + 120 + 900 + 60) * 1000;
    const struct project_row *all = leader_state_project(&w.s, 0);
    *price = -1;
    struct job_description job = job_of("d-9-s-0-a1-0a1b2c3d");
    job.keep_alive_s = 60;
    struct live_stray *st = found(&w, &job, "lost");
    assert_int_equal(st->row.reserved_musd, 0);
    assert_false(leader_plan_stray_price(&w.s, st, &job, &row));
    *price = known;
    assert_true(leader_plan_stray_price(&w.s, st, &job, &row));
    assert_int_equal(row.price_musd_per_hour, known);
    assert_int_equal(row.reserved_musd, worst_musd);
    assert_true(all->reserved_musd == 0 && st->row.price_musd_per_hour == 0); /* not written yet */
    leader_apply_stray_price(&w.s, st, &row);
    assert_int_equal(all->reserved_musd, worst_musd);
    *price = 2 * known;
    assert_false(leader_plan_stray_price(&w.s, st, &job, &row)); /* as of one that had a price */
    job.ended = WALL + 50 * SEC;
    job.billable_s = 50;
    job.pool = (struct warm_pool_report){.status = WARM_POOL_TERMINATED, .retained_s = 0};
    assert_int_equal(leader_plan_stray_seen(st, &job, BOOT, &e), STRAY_OVER);
    assert_int_equal(e.cost_musd, 100000);
    assert_false(e.estimated);
    leader_apply_stray_end(&w.s, &e);
    assert_int_equal(all->reserved_musd, 0);
    job = job_of("d-9-s-1-a1-0a1b2c3d");
    *price = -1;
    st = found(&w, &job, "lost");
    *price = INT64_MAX; /* more than fits: it is held all the same */
    job.max_runtime_s = 86400;
    assert_true(leader_plan_stray_price(&w.s, st, &job, &row));
    assert_int_equal(row.reserved_musd, 0);
    job.max_runtime_s = 0; /* nobody knows how long: SageMaker's default */
    *price = known;
    assert_true(leader_plan_stray_price(&w.s, st, &job, &row));
    assert_int_equal(row.reserved_musd, INT64_C(2) * (5 * 86400 + 120 + 900) * 1000);
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strays__hold_slots_and_money_until_they_end),
        cmocka_unit_test(test_strays__one_that_is_gone_is_booked_to_its_bound),
        cmocka_unit_test(test_strays__one_that_is_gone_without_a_price_ran_as_long_as_was_told),
        cmocka_unit_test(test_strays__a_price_that_comes_late_reserves),
        cmocka_unit_test(test_strays__a_pool_is_ended_and_booked_with_its_job),
        cmocka_unit_test(test_strays__are_looked_at_once_a_minute_and_when_listed_otherwise),
        cmocka_unit_test(test_strays__a_bill_is_waited_for_ten_minutes),
        cmocka_unit_test(test_strays__that_cost_more_than_fits_end),
        cmocka_unit_test(test_strays__stop_when_asked_for),
        cmocka_unit_test(test_strays__what_is_refused_is_looked_at_between),
        cmocka_unit_test(test_strays__what_a_describe_changes_is_written_once),
        cmocka_unit_test(test_strays__one_whose_end_is_not_told_ends),
        cmocka_unit_test(test_strays__only_a_description_that_came_is_looked_at),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
