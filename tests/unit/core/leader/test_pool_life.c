/* Aim: what a Describe says of a pool, its end and the entries that close its account, pools that
 * SageMaker swaps, and when the next call is due. Method: a state by hand, one rule a test. */
#include "core/leader/budget_state.h"
#include "core/leader/pool_life.h"
#include "core/leader/wall_clock.h"
#include "leader_world.h"

static struct live_slots *slots_of(struct leader_world *w)
{
    return leader_state_slots(&w->s, "ml.a.large", MARKET_ON_DEMAND);
}

/* Pool 5 stands alone, with 1 USD kept for its idle time. */
static struct live_pool *standing(struct leader_world *w)
{
    leader_world_init(w);
    struct live_pool *p = leader_world_pool(w, 5, POOL_AVAILABLE, NULL);
    p->account = (struct ledger_account_of_attempt){
        .reserved_musd = USD, .spent_musd = 3 * USD, .reserved = true, .job_settled = true};
    budget_state_move(&w->s, w->lc, w->ls, USD, 3 * USD, 0);
    p->look_now = false;
    return p;
}

static struct pool_writes seen(struct leader_world *w, struct live_pool *p,
                               enum warm_pool_status status, int64_t retained_s, const char *by,
                               int64_t boot_us)
{
    struct pool_writes writes;
    struct warm_pool_report r = {.status = status, .retained_s = retained_s};
    (void)snprintf(r.reused_by, sizeof r.reused_by, "%s", by);
    leader_plan_pool_seen(&w->s, p, &r, true, boot_us, &writes);
    return writes;
}

static void test_pool_life__the_job_that_took_it_may_be_known_before(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *taker = leader_world_attempt(&w, 1, 1);
    struct live_attempt *swapped = leader_world_attempt(&w, 2, 1);
    struct pool_row row = {.id = 9, .state = POOL_AVAILABLE, .stage_id = 70, .instances = 1};
    (void)snprintf(row.instance_type, sizeof row.instance_type, "ml.a.large");
    taker->row.pool_id = 9;
    row.taken_by = 1;
    struct live_pool *p = leader_load_pool(&w.s, &row, w.lc);
    assert_ptr_equal(taker->taken, p);
    row.id = 10;
    row.taken_by = 2; /* whose row names another pool since */
    (void)leader_load_pool(&w.s, &row, w.lc);
    assert_null(swapped->taken);
    row.id = 11;
    row.taken_by = 77; /* of a campaign that is not in memory */
    assert_int_equal(leader_load_pool(&w.s, &row, w.lc)->row.taken_by, 77);
    leader_world_done(&w);
}

/* The rows know of every pool; memory only of those whose campaign could be read. */
static void test_pool_life__one_of_an_absent_campaign_counts(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 2);
    struct live_attempt *b = leader_world_attempt(&w, 2, 1);
    struct live_pool *known = b->taken = leader_world_pool(&w, 5, POOL_AVAILABLE, NULL);
    struct pending_record p = {.r = {.attempt_id = 1}};
    a->row.pool_id = 9;
    leader_record_written(&w.s, &p, &(struct attempt_record){.idle_again = 2});
    leader_pools_stand_alone(&w.s, slots_of(&w), a, &p);
    assert_int_equal(slots_of(&w)->s.warm_idle, 3); /* one was */

    slots_idle_end(slots_of(&w), 1);
    known->row.taken_by = 2;
    p.r.attempt_id = 2;
    leader_record_written(&w.s, &p, &(struct attempt_record){.idle_again = 1});
    leader_pools_stand_alone(&w.s, slots_of(&w), b, &p);
    assert_int_equal(slots_of(&w)->s.warm_idle, 3);
    assert_int_equal(known->row.taken_by, 0);

    slots_idle_end(slots_of(&w), 1); /* meant for who took the own pool */
    known->row.taken_by = 3;
    p.r.frees_pool_id = 5;
    leader_record_written(&w.s, &p, &(struct attempt_record){.idle_again = 1});
    leader_pools_stand_alone(&w.s, slots_of(&w), b, &p);
    assert_int_equal(slots_of(&w)->s.warm_idle, 3);
    assert_int_equal(known->row.taken_by, 0);
    leader_world_done(&w);
}

static void test_pool_life__what_a_describe_means(void **state)
{
    (void)state;
    static const struct {
        enum warm_pool_status status;
        int64_t retained_s, after_s; /* after the first look and its time; before: negative */
        enum pool_fate fate;
        enum pool_state to;
        int64_t warm_s;
        musd_t warm_musd;
    } cases[] = {
        {WARM_POOL_REUSED, 200, -600, POOL_FATE_OVER, POOL_REUSED, 200, 200000},
        {WARM_POOL_REUSED, -1, -600, POOL_FATE_UNTOLD, 0, 0, 0}, /* test_pool_price.c */
        {WARM_POOL_TERMINATED, -1, -600, POOL_FATE_OVER, POOL_TERMINATED, 0, 0}, /* never seen */
        {WARM_POOL_TERMINATED, 600, 5, POOL_FATE_OVER, POOL_TERMINATED, 600, 600000},
        {WARM_POOL_AVAILABLE, 30, -600, POOL_FATE_THERE, 0, 0, 0},
        {WARM_POOL_AVAILABLE, 30, 500, POOL_FATE_THERE, 0, 0, 0},
        {WARM_POOL_NONE, -1, -600, POOL_FATE_STAYS, 0, 0, 0},
        {WARM_POOL_NONE, -1, 120, POOL_FATE_STAYS, 0, 0, 0},
        {WARM_POOL_NONE, 9, 121, POOL_FATE_OVER, POOL_TERMINATED, 0, 0},
        {WARM_POOL_IN_USE, -1, 500, POOL_FATE_STAYS, 0, 0, 0},
        {WARM_POOL_UNKNOWN, 9, 500, POOL_FATE_STAYS, 0, 0, 0},
        {WARM_POOL_TERMINATED, INT64_MAX, 5, POOL_FATE_NOT_BOOKED, POOL_TERMINATED, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct leader_world w;
        struct live_pool *p = standing(&w);
        int64_t boot_us = BOOT + (p->row.keep_alive_s + cases[i].after_s) * SEC;
        p->first_look_us = BOOT;
        struct pool_writes writes = seen(&w, p, cases[i].status, cases[i].retained_s, "", boot_us);
        if (writes.fate != cases[i].fate) {
            fail_msg("case %zu: fate %d", i, (int)writes.fate);
        }
        if (writes.fate == POOL_FATE_OVER) {
            assert_int_equal(writes.end.pool_id, 5);
            assert_int_equal(writes.end.to, cases[i].to);
            assert_int_equal(writes.end.warm_s, cases[i].warm_s);
            assert_int_equal(writes.end.warm_musd, cases[i].warm_musd);
            assert_int_equal(writes.end.open_musd, USD);
            assert_int_equal(writes.swap_with, 0);
            assert_true(writes.account.closed);
        }
        leader_world_done(&w);
    }
}

static void test_pool_life__all_instances_pay(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_pool *p = standing(&w);
    p->row.instances = 3;
    struct pool_writes writes = seen(&w, p, WARM_POOL_TERMINATED, 100, "", BOOT);
    assert_int_equal(writes.end.retained_s, 100);
    assert_int_equal(writes.end.warm_s, 300);
    assert_int_equal(writes.end.warm_musd, 300000);
    p->row.instances = 1;
    leader_world_done(&w);
}

/* A pool of which nothing is told is given up by the boot clock alone: not at the first look of a
 * leader whose wall clock has jumped, nor when it has been seen, since AWS tells its end then. */
static void test_pool_life__a_clock_that_jumps_ends_no_pool(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_pool *p = standing(&w);
    int64_t late_us = BOOT + 24 * 3600 * SEC;
    p->row.expires_us = WALL - 24 * 3600 * SEC;
    assert_int_equal(seen(&w, p, WARM_POOL_NONE, -1, "", BOOT).fate, POOL_FATE_STAYS);
    leader_apply_pool_seen(&w.s, p, POOL_FATE_STAYS, WALL, BOOT);
    assert_int_equal(p->first_look_us, BOOT);
    leader_apply_pool_seen(&w.s, p, POOL_FATE_STAYS, WALL, BOOT + SEC);
    assert_int_equal(p->first_look_us, BOOT);
    assert_int_equal(seen(&w, p, WARM_POOL_NONE, -1, "", BOOT + SEC).fate, POOL_FATE_STAYS);
    assert_int_equal(seen(&w, p, WARM_POOL_NONE, -1, "", late_us).fate, POOL_FATE_OVER);
    const struct warm_pool_report old = {.status = WARM_POOL_NONE};
    struct pool_writes writes; /* of an old Describe, of a time when the job still ran */
    leader_plan_pool_seen(&w.s, p, &old, false, late_us, &writes);
    assert_int_equal(writes.fate, POOL_FATE_STAYS);
    p->seen = true;
    assert_int_equal(seen(&w, p, WARM_POOL_NONE, -1, "", late_us).fate, POOL_FATE_STAYS);
    leader_world_done(&w);
}

/* A leader whose clock is hours off, or steps, before it first looks at a pool of an older one:
 * AWS told when its job ended, and tells how late it is there. */
static void test_pool_life__a_pool_of_the_rows_ends_by_the_clock_of_aws(void **state)
{
    (void)state;
    static const int64_t steps[] = {2 * 3600 * SEC, -2 * 3600 * SEC, 24 * 3600 * SEC};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct leader_world w;
        leader_world_init(&w);
        struct live_pool *p = leader_world_pool(&w, 1, POOL_AVAILABLE, NULL);
        p->row.price_musd_per_hour = 0;
        p->row.available_us = WALL - 24 * (3600 * SEC); /* of another clock */
        usec_t now_us = WALL + 60 * SEC + steps[i];
        (void)leader_wall_clock(&w.s, WALL, BOOT, 0, 1);
        (void)leader_wall_clock(&w.s, now_us, BOOT + 60 * SEC, 0, 1);
        assert_int_equal(w.s.clock.aws_ahead_us, -steps[i]); /* before AWS tells so */
        leader_apply_pool_seen(&w.s, p, POOL_FATE_THERE, now_us, BOOT + 60 * SEC);
        assert_int_equal(p->row.expires_us, now_us + 540 * SEC);
        assert_int_equal(p->row.available_us, now_us - 60 * SEC);
        leader_apply_pool_seen(&w.s, p, POOL_FATE_THERE, now_us, BOOT + 60 * SEC); /* once */
        assert_int_equal(p->row.expires_us, now_us + 540 * SEC);
        (void)leader_wall_clock(&w.s, now_us, BOOT + 60 * SEC, -steps[i], 1);
        assert_int_equal(w.s.clock.aws_ahead_us, -steps[i]);
        leader_world_done(&w);
    }
}

/* Nothing is told, and the clock was set back while nobody led: no more than a whole keep-alive. */
static void test_pool_life__no_pool_lasts_longer_than_its_keep_alive(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_pool *p = leader_world_pool(&w, 1, POOL_AVAILABLE, NULL);
    (void)leader_wall_clock(&w.s, WALL - 2 * (3600 * SEC), BOOT, 0, 1);
    leader_apply_pool_seen(&w.s, p, POOL_FATE_THERE, WALL - 2 * (3600 * SEC), BOOT);
    assert_int_equal(p->row.expires_us, WALL - 2 * (3600 * SEC) + 600 * SEC);
    struct live_pool *untold = leader_world_pool(&w, 2, POOL_AVAILABLE, NULL);
    untold->row.expires_us = 0;
    leader_pool_timed(&w.s, untold, WALL);
    assert_int_equal(untold->row.expires_us, 0);
    leader_world_done(&w);
}

static void test_pool_life__an_end_gives_slots_and_money_back(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_pool *p = standing(&w);
    struct pool_writes writes = seen(&w, p, WARM_POOL_TERMINATED, 200, "", BOOT);
    w.lc->budget_short = true;
    p->row.task_id = 1001;
    leader_state_change(&w.s, 1001, true)->spent_musd = 4 * USD; /* what it keeps reserved, too */
    w.s.decide = w.s.look_at_db = false;
    leader_apply_pool_seen(&w.s, p, writes.fate, WALL, BOOT);
    assert_int_equal(slots_of(&w)->s.warm_idle, 1); /* nothing moves before the commit */
    leader_apply_pool_end(&w.s, p, &writes);
    leader_state_remove_pool(&w.s, p);
    assert_int_equal(slots_of(&w)->s.warm_idle, 0);
    assert_int_equal(w.lc->row.reserved_musd, 0);
    assert_int_equal(w.lc->row.spent_musd, 3200000);
    assert_int_equal(w.lc->row.warm_musd, 200000);
    assert_int_equal(leader_state_change(&w.s, 1001, false)->spent_musd, 3200000);
    assert_false(w.lc->budget_short);
    assert_true(w.s.decide && w.s.look_at_db);
    leader_world_done(&w);
}

/* The account counts against the part's own cap once, when the attempt ends. */
static void test_pool_life__it_may_end_before_its_output_is_verified(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_pool *p = standing(&w);
    struct live_attempt *a = leader_world_attempt(&w, 5, 1);
    p->row.task_id = a->row.task_id;
    p->row.attempt_id = 5;
    a->account = p->account;
    leader_state_change(&w.s, p->row.task_id, true)->spent_musd = 7;
    struct pool_writes writes = seen(&w, p, WARM_POOL_TERMINATED, 200, "", BOOT);
    leader_apply_pool_end(&w.s, p, &writes);
    leader_state_remove_pool(&w.s, p);
    assert_true(a->account.reserved_musd == 0 && a->account.spent_musd == 3200000);
    assert_int_equal(leader_state_change(&w.s, a->row.task_id, false)->spent_musd, 7);
    leader_world_done(&w);
}

/* The instances of a pool that was taken belong to its taker. */
static void test_pool_life__a_taken_pool_gives_no_idle_slots_back(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_pool *p = standing(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    slots_idle_end(slots_of(&w), 1);
    p->row.taken_by = 1;
    a->taken = p;
    a->row.pool_id = 5;
    struct pool_writes writes = seen(&w, p, WARM_POOL_REUSED, 10, a->row.name.s, BOOT);
    assert_int_equal(writes.swap_with, 0); /* as intended */
    leader_apply_pool_end(&w.s, p, &writes);
    leader_state_remove_pool(&w.s, p);
    assert_null(a->taken);
    assert_int_equal(slots_of(&w)->s.warm_idle, 0);
    assert_int_equal(slots_of(&w)->s.held, 1);
    leader_world_done(&w);
}

/* Attempt 1 was intended on pool 6 and attempt 2 on pool 5; SageMaker gave 5 to attempt 1. */
static void test_pool_life__sagemaker_swaps_two_takers(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_pool *p = standing(&w);
    struct live_pool *other = leader_world_pool(&w, 6, POOL_AVAILABLE, NULL);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    struct live_attempt *b = leader_world_attempt(&w, 2, 1);
    slots_idle_end(slots_of(&w), 2);
    a->taken = other;
    b->taken = p;
    a->row.pool_id = other->row.taken_by = 6;
    other->row.taken_by = 1;
    b->row.pool_id = 5;
    p->row.taken_by = 2;
    other->look_now = false;
    struct pool_writes writes = seen(&w, p, WARM_POOL_REUSED, 10, a->row.name.s, BOOT);
    assert_int_equal(writes.swap_with, 6);
    leader_apply_pool_end(&w.s, p, &writes);
    assert_int_equal(p->row.taken_by, 1);
    assert_int_equal(other->row.taken_by, 2);
    assert_ptr_equal(a->taken, p);
    assert_ptr_equal(b->taken, other);
    assert_int_equal(b->row.pool_id, 6);
    assert_true(other->look_now);
    leader_state_remove_pool(&w.s, p);
    assert_int_equal(slots_of(&w)->s.warm_idle, 0); /* both are taken */
    leader_world_done(&w);
}

/* A pool that nobody was intended on is given to attempt 1: the one meant for it is idle again. */
static void test_pool_life__the_pool_meant_for_a_taker_is_free(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_pool *p = standing(&w);
    struct live_pool *meant = leader_world_pool(&w, 6, POOL_AVAILABLE, NULL);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    slots_idle_end(slots_of(&w), 1);
    a->taken = meant;
    a->row.pool_id = 6;
    meant->row.taken_by = 1;
    struct pool_writes writes = seen(&w, p, WARM_POOL_REUSED, 10, "somebody-elses-job", BOOT);
    assert_int_equal(writes.swap_with, 0);
    writes = seen(&w, p, WARM_POOL_TERMINATED, 10, a->row.name.s, BOOT);
    assert_int_equal(writes.swap_with, 0);
    meant->row.state = POOL_REUSED; /* over: nobody can be given it */
    writes = seen(&w, p, WARM_POOL_REUSED, 10, a->row.name.s, BOOT);
    assert_int_equal(writes.swap_with, 0);
    meant->row.state = POOL_AVAILABLE;
    writes = seen(&w, p, WARM_POOL_REUSED, 10, a->row.name.s, BOOT);
    assert_int_equal(writes.swap_with, 6);
    leader_apply_pool_end(&w.s, p, &writes);
    leader_state_remove_pool(&w.s, p);
    assert_int_equal(meant->row.taken_by, 0);
    assert_int_equal(slots_of(&w)->s.warm_idle, 1);
    leader_world_done(&w);
}

static void test_pool_life__seen_for_the_first_time(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_pool *p = standing(&w);
    p->failures = 4;
    p->look_now = true;
    leader_apply_pool_seen(&w.s, p, POOL_FATE_THERE, WALL, BOOT);
    assert_true(p->seen && w.s.decide && !p->look_now);
    assert_int_equal(p->failures, 0);
    assert_int_equal(p->described_us, BOOT);
    assert_int_equal(p->row.available_us, WALL);
    w.s.decide = false;
    leader_apply_pool_seen(&w.s, p, POOL_FATE_THERE, WALL + SEC, BOOT + SEC);
    assert_false(w.s.decide);
    assert_int_equal(p->row.available_us, WALL);
    leader_pool_listed(&w.s, p->row.job.s, WARM_POOL_AVAILABLE);
    assert_false(p->look_now); /* as known */
    leader_pool_listed(&w.s, "another-job", WARM_POOL_REUSED);
    assert_false(p->look_now);
    leader_pool_listed(&w.s, p->row.job.s, WARM_POOL_REUSED);
    assert_true(p->look_now);
    leader_world_done(&w);
}

static void test_pool_life__a_list_says_nothing_of_a_pool_not_yet_left(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_pool *p = leader_world_pool(&w, 5, POOL_EXPECTED, leader_world_attempt(&w, 1, 1));
    p->look_now = false;
    leader_pool_listed(&w.s, p->row.job.s, WARM_POOL_AVAILABLE);
    assert_false(p->look_now);
    leader_world_done(&w);
}

static void test_pool_life__its_end_is_asked_once(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_pool *p = standing(&w);
    int64_t wake_us = INT64_MAX;
    assert_true(leader_pool_want_end(&w.s, p, WARM_POOL_END_NO_MATCH));
    assert_string_equal(p->row.end_reason, warm_pool_end_name(WARM_POOL_END_NO_MATCH));
    assert_true(w.s.act);
    assert_false(leader_pool_want_end(&w.s, p, WARM_POOL_END_COST));
    assert_string_equal(p->row.end_reason, warm_pool_end_name(WARM_POOL_END_NO_MATCH));
    assert_int_equal(leader_pool_next(p, WALL, BOOT, &wake_us), POOL_ACT_END);
    leader_pool_end_answered(p, false, false, BOOT);
    assert_int_equal(p->failures, 0);
    assert_int_equal(leader_pool_next(p, WALL, BOOT, &wake_us), POOL_ACT_DESCRIBE);
    leader_apply_pool_seen(&w.s, p, POOL_FATE_STAYS, WALL, BOOT);
    assert_int_equal(leader_pool_next(p, WALL, BOOT + SEC, &wake_us), POOL_ACT_NONE);
    leader_world_done(&w);
}

/* AWS ends it by its time all the same, and only a look tells. */
static void test_pool_life__one_whose_end_is_refused_is_looked_at_between(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_pool *p = standing(&w);
    int64_t boot_us = BOOT;
    int64_t wake_us = INT64_MAX;
    (void)leader_pool_want_end(&w.s, p, WARM_POOL_END_COST);
    for (int i = 0; i < 20; i++) { /* refused, or of a job that is not found, for ever */
        assert_int_equal(leader_pool_next(p, WALL, boot_us, &wake_us), POOL_ACT_END);
        leader_pool_end_answered(p, i % 2 == 0, i % 2 == 1, boot_us);
        assert_int_equal(leader_pool_next(p, WALL, boot_us, &wake_us), POOL_ACT_NONE);
        boot_us = p->next_us;
        assert_int_equal(leader_pool_next(p, WALL, boot_us, &wake_us), POOL_ACT_DESCRIBE);
        (void)leader_pool_described(p, i == 7, false, WALL, boot_us, NULL);
        if (i != 7) { /* a look that failed keeps no wish back either */
            leader_apply_pool_seen(&w.s, p, POOL_FATE_STAYS, WALL, boot_us);
        }
        boot_us = p->next_us;
    }
    leader_pool_failed(p, BOOT); /* the looks have not shortened the pause between the wishes */
    assert_int_equal(p->next_us, BOOT + 30 * SEC);
    leader_world_done(&w);
}

static void test_pool_life__people_end_idle_ones(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_pool *p = standing(&w); /* 5 */
    int64_t wake_us = INT64_MAX;
    struct live_attempt *a = leader_world_attempt(&w, 6, 1);
    struct live_pool *taken = leader_world_pool(&w, 7, POOL_AVAILABLE, NULL);
    struct live_pool *expected = leader_world_pool(&w, 8, POOL_EXPECTED, a);
    taken->row.taken_by = 6;
    const int64_t ids[] = {5, 7, 8, 99};
    assert_int_equal(leader_take_pool_ends(&w.s, ids, 4), 1);
    assert_string_equal(p->row.end_reason, "asked");
    assert_false(taken->wants_end || expected->wants_end);
    assert_int_equal(leader_pool_next(p, WALL, BOOT, &wake_us), POOL_ACT_END);
    assert_int_equal(leader_take_pool_ends(&w.s, ids, 4), 0); /* the row says so until it is over */
    leader_world_done(&w);
}

static void test_pool_life__when_it_is_looked_at(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_pool *p = standing(&w);
    int64_t wake_us = INT64_MAX;
    p->row.expires_us = WALL + 1000 * SEC;
    leader_apply_pool_seen(&w.s, p, POOL_FATE_THERE, WALL, BOOT);
    assert_int_equal(leader_pool_next(p, WALL, BOOT, &wake_us), POOL_ACT_NONE);
    assert_int_equal(wake_us, BOOT + 60 * SEC); /* once a minute, unasked */
    assert_int_equal(leader_pool_next(p, WALL, BOOT + 60 * SEC, &wake_us), POOL_ACT_DESCRIBE);
    wake_us = BOOT + SEC; /* somebody wakes earlier */
    assert_int_equal(leader_pool_next(p, WALL, BOOT, &wake_us), POOL_ACT_NONE);
    assert_int_equal(wake_us, BOOT + SEC);
    p->row.expires_us = WALL + 10 * SEC; /* its time is over sooner: looked at a second later */
    wake_us = INT64_MAX;
    assert_int_equal(leader_pool_next(p, WALL, BOOT, &wake_us), POOL_ACT_NONE);
    assert_int_equal(wake_us, BOOT + 11 * SEC);
    p->look_now = true;
    assert_int_equal(leader_pool_next(p, WALL, BOOT, &wake_us), POOL_ACT_DESCRIBE);
    leader_world_done(&w);
}

static void test_pool_life__failed_calls_back_off(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_pool *p = standing(&w);
    int64_t wake_us = INT64_MAX;
    p->look_now = true;
    leader_pool_failed(p, BOOT);
    assert_int_equal(leader_pool_next(p, WALL, BOOT, &wake_us), POOL_ACT_NONE);
    assert_int_equal(wake_us, BOOT + SEC / 2);
    leader_pool_failed(p, BOOT);
    assert_int_equal(p->next_us, BOOT + SEC);
    for (int i = 0; i < 100; i++) {
        leader_pool_failed(p, BOOT);
    }
    assert_int_equal(p->next_us, BOOT + 30 * SEC);
    (void)leader_pool_want_end(&w.s, p, WARM_POOL_END_NO_MATCH); /* the wish waits as well */
    assert_int_equal(leader_pool_next(p, WALL, BOOT, &wake_us), POOL_ACT_NONE);
    assert_int_equal(leader_pool_next(p, WALL, BOOT + 30 * SEC, &wake_us), POOL_ACT_END);
    leader_world_done(&w);
}

static void test_pool_life__found_at_takeover(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct pool_row row = {.id = 5,
                           .campaign_id = 7,
                           .stage_id = 70,
                           .state = POOL_AVAILABLE,
                           .instances = 1,
                           .open_musd = 5,
                           .cost_musd = 9,
                           .end_reason = "idle"};
    (void)snprintf(row.instance_type, sizeof row.instance_type, "ml.a.large");
    struct live_pool *p = leader_load_pool(&w.s, &row, w.lc);
    assert_int_equal(p->account.reserved_musd, 5);
    assert_int_equal(p->account.spent_musd, 9);
    assert_true(p->account.reserved && p->account.job_settled && !p->account.closed);
    assert_true(p->wants_end && p->look_now && !p->end_taken);
    leader_world_done(&w);
}

static void test_pool_life__answers_that_say_nothing(void **state)
{
    (void)state;
    static const struct {
        bool failed, not_found, ret;
    } rows[] = {{false, false, true}, {true, false, false}, {false, true, false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct leader_world w;
        struct live_pool *p = standing(&w);
        int64_t wake_us = INT64_MAX;
        struct warm_pool_report report;
        p->look_now = true;
        assert_int_equal(
            leader_pool_described(p, rows[i].failed, rows[i].not_found, WALL, BOOT, &report),
            rows[i].ret);
        assert_int_equal(leader_pool_next(p, WALL, BOOT, &wake_us),
                         rows[i].ret ? POOL_ACT_DESCRIBE : POOL_ACT_NONE);
        leader_apply_pool_seen(&w.s, p, POOL_FATE_NOT_BOOKED, WALL, BOOT); /* asked again later */
        assert_int_equal(p->next_us, BOOT + SEC / 2);
        p->next_us = 0;
        p->look_now = true;
        p->row.state = POOL_EXPECTED; /* its attempt's calls tell of it */
        assert_int_equal(leader_pool_next(p, WALL, BOOT + 9999 * SEC, &wake_us), POOL_ACT_NONE);
        leader_world_done(&w);
    }
}

/* The job that left it was deleted: its account is closed as if it had been kept to the last. */
static void test_pool_life__one_whose_job_is_gone_ends_after_its_time(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_pool *p = standing(&w);
    struct warm_pool_report r;
    struct pool_writes writes;
    int64_t late = BOOT + 900 * SEC;
    p->row.expires_us = WALL;
    p->row.keep_alive_s = 600;
    assert_false(leader_pool_described(p, false, true, WALL + 1, BOOT, &r));
    assert_false(leader_pool_described(p, true, true, WALL + 1, late, &r));
    assert_false(leader_pool_described(p, false, true, WALL, late, &r)); /* it may be there */
    leader_pool_listed(&w.s, p->row.job.s, WARM_POOL_AVAILABLE);
    assert_false(leader_pool_described(p, false, true, WALL + 1, late, &r));
    assert_true(leader_pool_described(p, false, false, WALL + 1, late, &r));
    assert_false(leader_pool_described(p, false, true, WALL + 1, late + 899 * SEC, &r));
    assert_true(leader_pool_described(p, false, true, WALL + 1, late + 1799 * SEC, &r));
    leader_plan_pool_seen(&w.s, p, &r, true, late, &writes);
    assert_int_equal(writes.fate, POOL_FATE_OVER);
    assert_int_equal(writes.end.to, POOL_TERMINATED);
    assert_int_equal(writes.end.retained_s, 600);
    assert_int_equal(writes.end.warm_musd, 600 * 1000);
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool_life__the_job_that_took_it_may_be_known_before),
        cmocka_unit_test(test_pool_life__one_of_an_absent_campaign_counts),
        cmocka_unit_test(test_pool_life__what_a_describe_means),
        cmocka_unit_test(test_pool_life__all_instances_pay),
        cmocka_unit_test(test_pool_life__a_clock_that_jumps_ends_no_pool),
        cmocka_unit_test(test_pool_life__a_pool_of_the_rows_ends_by_the_clock_of_aws),
        cmocka_unit_test(test_pool_life__no_pool_lasts_longer_than_its_keep_alive),
        cmocka_unit_test(test_pool_life__an_end_gives_slots_and_money_back),
        cmocka_unit_test(test_pool_life__it_may_end_before_its_output_is_verified),
        cmocka_unit_test(test_pool_life__a_taken_pool_gives_no_idle_slots_back),
        cmocka_unit_test(test_pool_life__sagemaker_swaps_two_takers),
        cmocka_unit_test(test_pool_life__the_pool_meant_for_a_taker_is_free),
        cmocka_unit_test(test_pool_life__seen_for_the_first_time),
        cmocka_unit_test(test_pool_life__a_list_says_nothing_of_a_pool_not_yet_left),
        cmocka_unit_test(test_pool_life__its_end_is_asked_once),
        cmocka_unit_test(test_pool_life__one_whose_end_is_refused_is_looked_at_between),
        cmocka_unit_test(test_pool_life__people_end_idle_ones),
        cmocka_unit_test(test_pool_life__when_it_is_looked_at),
        cmocka_unit_test(test_pool_life__failed_calls_back_off),
        cmocka_unit_test(test_pool_life__found_at_takeover),
        cmocka_unit_test(test_pool_life__answers_that_say_nothing),
        cmocka_unit_test(test_pool_life__one_whose_job_is_gone_ends_after_its_time),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
