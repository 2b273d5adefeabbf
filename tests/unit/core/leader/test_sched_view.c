/* Aim: the scheduler sees just what may start, why the rest may not, what is held and when it comes
 * back. Method: a leader's state made by hand; each fact changed alone, the view compared. */
#include "core/leader/budget_state.h"
#include "core/leader/filesystem_life.h"
#include "core/leader/rows_read.h"
#include "core/leader/sched_view.h"
#include "leader_world.h"
#include <setjmp.h>
#include <stdarg.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static struct leader_view make(struct leader_world *w)
{
    struct leader_view v;
    static struct spec none;
    w->lc->spec = &none;
    sched_view_make(&w->s, WALL, 100, &v);
    return v;
}

static void one_waits(struct leader_world *w)
{
    ready_queue_push(w->ls->ready, &(struct ready_queue_task){.task_id = 1, .size_mb = 10});
}

struct why_case {
    enum stage_state stage;
    enum campaign_state campaign;
    enum wanted wanted;
    bool tripped, short_of_money, waits_for_person;
    enum wait_reason why;
};

/* Of a stage whose own cap was short in the last plan: told while its campaign is held for it. */
static void test_sched_view__a_stage_at_its_own_cap_says_so_when_held(void **state)
{
    (void)state;
    static const struct {
        enum campaign_state campaign;
        bool short_of_money, waits_for_person;
        enum wait_reason cap_short, why;
    } cases[] = {
        {CAMPAIGN_HELD, false, false, WAIT_STAGE_BUDGET, WAIT_STAGE_BUDGET},
        {CAMPAIGN_HELD, true, true, WAIT_PART_BUDGET, WAIT_PART_BUDGET},
        {CAMPAIGN_PAUSED, false, false, WAIT_STAGE_BUDGET, WAIT_PAUSED},
        {CAMPAIGN_RUNNING, false, false, WAIT_STAGE_BUDGET, WAIT_NONE}, /* this plan looks again */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct leader_world w;
        leader_world_init(&w);
        one_waits(&w);
        w.lc->row.state = cases[i].campaign;
        w.lc->budget_short = cases[i].short_of_money;
        w.lc->waits_for_person = cases[i].waits_for_person;
        w.ls->cap_short = cases[i].cap_short;
        struct leader_view v = make(&w);
        assert_int_equal(v.view.stages_n, 1);
        assert_int_equal(v.stages[0].why_not, cases[i].why);
        sched_view_done(&v);
        leader_world_done(&w);
    }
}

static void test_sched_view__says_why_a_stage_may_not_start(void **state)
{
    (void)state;
    static const struct why_case cases[] = {
        {STAGE_RUNNING, CAMPAIGN_RUNNING, WANTED_RUN, false, false, false, WAIT_NONE},
        {STAGE_BLOCKED, CAMPAIGN_RUNNING, WANTED_RUN, false, false, false, WAIT_STAGE_BLOCKED},
        {STAGE_HELD, CAMPAIGN_RUNNING, WANTED_RUN, true, false, false, WAIT_BREAKER},
        {STAGE_HELD, CAMPAIGN_RUNNING, WANTED_RUN, false, false, false, WAIT_HELD},
        {STAGE_RUNNING, CAMPAIGN_RUNNING, WANTED_PAUSE, false, false, false, WAIT_PAUSED},
        {STAGE_RUNNING, CAMPAIGN_RUNNING, WANTED_DRAIN, false, false, false, WAIT_PAUSED},
        {STAGE_RUNNING, CAMPAIGN_RUNNING, WANTED_CANCEL, false, false, false, WAIT_PAUSED},
        {STAGE_RUNNING, CAMPAIGN_PAUSED, WANTED_RUN, false, false, false, WAIT_PAUSED},
        {STAGE_RUNNING, CAMPAIGN_DRAINING, WANTED_RUN, false, false, false, WAIT_PAUSED},
        {STAGE_RUNNING, CAMPAIGN_HELD, WANTED_RUN, false, false, false, WAIT_HELD},
        {STAGE_RUNNING, CAMPAIGN_HELD, WANTED_RUN, false, true, false, WAIT_BUDGET},
        {STAGE_RUNNING, CAMPAIGN_HELD, WANTED_RUN, false, false, true, WAIT_BUDGET},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct why_case *k = &cases[i];
        struct leader_world w;
        leader_world_init(&w);
        one_waits(&w);
        w.ls->row.state = k->stage;
        w.lc->row.state = k->campaign;
        w.lc->row.wanted = k->wanted;
        w.ls->breaker.tripped = k->tripped;
        w.lc->budget_short = k->short_of_money;
        w.lc->waits_for_person = k->waits_for_person;
        struct leader_view v = make(&w);
        assert_int_equal(v.view.stages_n, 1);
        if (v.stages[0].why_not != k->why || v.stages[0].may_start != (k->why == WAIT_NONE)) {
            fail_msg("case %zu: %s", i, wait_reason_name(v.stages[0].why_not));
        }
        sched_view_done(&v);
        w.ls->no_start_until_us =
            WALL + SEC; /* its rows refused money: said where all else is well */
        v = make(&w);
        assert_int_equal(v.stages[0].why_not, k->why == WAIT_NONE ? WAIT_BACKOFF : k->why);
        sched_view_done(&v);
        leader_world_done(&w);
    }
}

static void test_sched_view__an_empty_stage_is_not_seen_and_promises_nothing(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    w.ls->reservation = (struct reservation){.task_id = 5, .owed = 3};
    struct leader_view v = make(&w);
    assert_int_equal(v.view.stages_n, 0);
    assert_int_equal(w.ls->reservation.task_id, 0);
    assert_int_equal(w.ls->reservation.owed, 3);
    sched_view_done(&v);
    leader_world_done(&w);
}

static void test_sched_view__money_left_is_what_neither_spent_nor_reserved_took(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    one_waits(&w);
    w.lc->row.cap_musd = 100 * USD;
    w.lc->row.reserved_musd = 30 * USD;
    w.lc->row.spent_musd = 20 * USD;
    w.s.projects[1].cap_musd = 60 * USD;
    w.s.projects[1].spent_musd = 55 * USD;
    struct leader_view v = make(&w);
    assert_int_equal(v.campaigns[0].left_musd, 50 * USD);
    assert_int_equal(v.projects[0].left_musd, 5 * USD);
    assert_int_equal(v.view.left_musd, INT64_MAX); /* no cap over all */
    assert_int_equal(v.stages[0].stage_left_musd, INT64_MAX);
    sched_view_done(&v);
    leader_world_done(&w);
}

static void test_sched_view__what_is_held_counts_and_what_is_released_does_not(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    one_waits(&w);
    (void)leader_world_attempt(&w, 1, 4);
    struct live_attempt *gone = leader_world_attempt(&w, 2, 2);
    gone->row.holds = false; /* verifying */
    struct live_pool *idle = leader_world_pool(&w, 5, POOL_AVAILABLE, NULL);
    struct live_pool *taken = leader_world_pool(&w, 6, POOL_AVAILABLE, NULL);
    taken->row.taken_by = 1;
    idle->seen = true;
    struct leader_view v = make(&w);
    assert_int_equal(v.view.jobs_n, 1);
    assert_int_equal(v.campaigns[0].held, 4);
    assert_int_equal(v.view.live, 2);
    assert_int_equal(v.view.pools_n, 1); /* the taken one is its attempt's */
    assert_true(v.live_pools[0] == idle);
    assert_int_equal(v.pools[0].state, POOL_AVAILABLE);
    assert_int_equal(v.slots[v.pools[0].slots_i].warm_held, 1);
    assert_int_equal(v.account.total[MARKET_ON_DEMAND].held, 6 + 2);
    sched_view_done(&v);
    idle->seen = false; /* a pool SageMaker has not shown takes no job yet */
    v = make(&w);
    assert_int_equal(v.pools[0].state, POOL_EXPECTED);
    sched_view_done(&v);
    leader_world_done(&w);
}

static void test_sched_view__ends_are_expected_by_state(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    one_waits(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    struct leader_view v = make(&w);
    assert_int_equal(v.jobs[0].end_p50_us, v.jobs[0].last_us); /* nothing known: at its limit */
    sched_view_done(&v);
    a->p.state = a->row.state = ATTEMPT_STOPPING;
    a->ending_us = WALL - 30 * SEC;
    v = make(&w);
    assert_int_equal(v.jobs[0].end_p50_us, WALL + 30 * SEC);
    assert_int_equal(v.jobs[0].end_p90_us, WALL + 120 * SEC);
    sched_view_done(&v);
    a->p.state = ATTEMPT_UPLOADING;
    v = make(&w);
    assert_int_equal(v.jobs[0].end_p50_us, WALL);
    assert_int_equal(v.jobs[0].end_p90_us, WALL + 270 * SEC);
    sched_view_done(&v);
    leader_world_done(&w);
}

static void test_sched_view__changes_of_retries_reach_the_scheduler(void **state)
{
    (void)state;
    struct leader_world w;
    int type_i = 7;
    int volume_gb = 0;
    int64_t runtime_s = 0;
    leader_world_init(&w);
    struct task_change_row *ch = leader_state_change(&w.s, 42, true);
    ch->instance_type_i = 1;
    ch->volume_gb = 60;
    ch->max_runtime_s = 7200;
    ch->spent_musd = 9 * USD;
    struct leader_view v = make(&w);
    assert_true(v.view.change_of(v.view.ctx, 42, &type_i, &volume_gb, &runtime_s));
    assert_int_equal(type_i, 1);
    assert_int_equal(volume_gb, 60);
    assert_int_equal(runtime_s, 7200);
    assert_int_equal(v.view.spent_of(v.view.ctx, 42), 9 * USD);
    assert_false(v.view.change_of(v.view.ctx, 43, &type_i, &volume_gb, &runtime_s));
    assert_int_equal(v.view.spent_of(v.view.ctx, 43), 0);
    sched_view_done(&v);
    leader_world_done(&w);
}

static void test_sched_view__unsent_intents_use_up_tokens(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    (void)leader_world_attempt(&w, 1, 1);
    leader_world_attempt(&w, 2, 1)->p.create_in_flight = true;
    leader_world_attempt(&w, 3, 1)->p.state = ATTEMPT_RUNNING;
    buf_add_str(&leader_world_attempt(&w, 4, 1)->request, STR(ATTEMPT_NO_REQUEST));
    assert_int_equal(sched_view_unsent(&w.s), 1);
    leader_world_done(&w);
}

/* 65 paused campaigns of 32 stages, and behind them one that may start: nothing is cut. */
static void test_sched_view__any_number_of_stages(void **state)
{
    (void)state;
    enum { PAUSED = 2100 };
    struct leader_world w;
    leader_world_init(&w);
    static struct spec none;
    w.spec.instance_type_n = 1;
    leader_state_slots(&w.s, "ml.a.large", MARKET_ON_DEMAND)->s.quota = 10;
    w.s.projects[1].weight = w.s.projects[2].weight = 100;
    w.s.account = (struct quota_ledger_account)QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    for (int i = 0; i <= PAUSED; i++) {
        struct live_campaign *lc = leader_world_campaign(&w, 100 + i, 3);
        lc->spec = &none;
        lc->row.wanted = i < PAUSED ? WANTED_PAUSE : WANTED_RUN;
        lc->row.priority = i < PAUSED ? 0 : 99;
        lc->stages[0].rules.canary = 0;
        ready_queue_push(lc->stages[0].ready, &(struct ready_queue_task){.task_id = 1 + i});
    }
    struct leader_view v; /* stays where it is: it points into itself */
    sched_view_make(&w.s, WALL, 100, &v);
    assert_int_equal(v.view.stages_n, PAUSED + 1);
    struct sched_plan p = {0};
    sched_decide(&v.view, &p);
    assert_int_equal(p.launches_n, 1);
    assert_int_equal(p.launches[0].task.task_id, 1 + PAUSED);
    assert_int_equal(p.reason[0], WAIT_PAUSED);
    sched_plan_done(&p);
    sched_view_done(&v);
    leader_world_done(&w);
}

/* What the plan says of each stage is written. */
static void all_told(struct leader_view *v, const struct sched_plan *p)
{
    for (int i = 0; i < v->view.stages_n; i++) {
        v->live_stages[i]->reason = p->reason[i];
    }
}

static void plan_and_tell(struct leader_world *w, int want_stages, int want_launches)
{
    struct leader_view v;
    struct sched_plan p = {0};
    sched_view_make(&w->s, WALL, 100, &v);
    sched_decide(&v.view, &p);
    assert_int_equal(v.view.stages_n, want_stages);
    assert_int_equal(p.launches_n, want_launches);
    for (int i = 0; i < p.launches_n; i++) {
        ready_queue_push(v.live_stages[p.launches[i].stage_i]->ready, &p.launches[i].task);
    }
    all_told(&v, &p);
    sched_plan_done(&p);
    sched_view_done(&v);
}

/* Told once why they wait, 10,000 stages that cannot start are not looked at any more. */
static void test_sched_view__paused_and_held_ones_cost_nothing(void **state)
{
    (void)state;
    enum { PAUSED = 10000, RUNNING = 10 };
    struct leader_world w;
    leader_world_init(&w);
    static struct spec none;
    struct live_campaign *lc = NULL;
    w.spec.instance_type_n = 1;
    leader_state_slots(&w.s, "ml.a.large", MARKET_ON_DEMAND)->s.quota = 100;
    w.s.projects[1].weight = w.s.projects[2].weight = 100;
    for (int i = 0; i < PAUSED + RUNNING; i++) {
        lc = leader_world_campaign(&w, 100 + i, 3);
        lc->spec = &none;
        lc->stages[0].rules.canary = 0;
        lc->row.wanted = i < PAUSED / 2 ? WANTED_PAUSE : WANTED_RUN;
        lc->row.state = i >= PAUSED / 2 && i < PAUSED ? CAMPAIGN_HELD : CAMPAIGN_RUNNING;
        lc->budget_short = i % 2 == 0;
        ready_queue_push(lc->stages[0].ready, &(struct ready_queue_task){.task_id = 1 + i});
    }
    plan_and_tell(&w, PAUSED + RUNNING, RUNNING);
    assert_int_equal(w.s.awake->n, PAUSED + RUNNING); /* the empty one rests already */
    for (int i = 0; i < 3; i++) {
        plan_and_tell(&w, RUNNING, RUNNING);
        assert_int_equal(w.s.awake->n, RUNNING);
        assert_null(sched_view_overslept(&w.s, WALL));
    }
    lc = leader_state_campaign(&w.s, 101);
    assert_int_equal(lc->stages[0].reason, WAIT_PAUSED);
    struct campaign_row now = lc->row;
    now.wanted = WANTED_RUN;
    now.version++;
    rows_refresh_campaign(lc, &now); /* resumed: it starts at once */
    plan_and_tell(&w, RUNNING + 1, RUNNING + 1);
    lc = leader_state_campaign(&w.s, 100 + PAUSED - 2);
    assert_int_equal(lc->stages[0].reason, WAIT_BUDGET);
    budget_state_not_short(lc); /* another reason, which is told once */
    plan_and_tell(&w, RUNNING + 2, RUNNING + 1);
    plan_and_tell(&w, RUNNING + 1, RUNNING + 1);
    assert_int_equal(lc->stages[0].reason, WAIT_HELD);
    leader_world_done(&w);
}

static void test_sched_view__a_campaign_whose_pause_ends_by_itself_does_not_rest(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    one_waits(&w);
    w.ls->no_start_until_us = WALL + SEC;
    w.ls->reason = WAIT_BACKOFF;
    struct leader_view v = make(&w);
    assert_int_equal(v.view.stages_n, 0);
    assert_false(w.lc->rests);
    sched_view_done(&v);
    leader_world_done(&w);
}

/* While it is exported or deleted every launch would be put back; nobody wakes the campaign when
 * there is another one. */
static void test_sched_view__a_stage_whose_file_system_goes_does_not_start(void **state UNUSED)
{
    static const struct {
        enum filesystem_state fs;
        enum wait_reason why;
    } cases[] = {{FILESYSTEM_CREATING, WAIT_FILESYSTEM},
                 {FILESYSTEM_EXPORTING, WAIT_FILESYSTEM},
                 {FILESYSTEM_DELETING, WAIT_FILESYSTEM},
                 {FILESYSTEM_AVAILABLE, WAIT_NONE}};
    struct leader_world w;
    leader_world_init(&w);
    struct spec_training training = {.channels_n = 1};
    training.channels[0].lustre_stage = w.ls->row.name; /* the stage makes it, too: one will do */
    w.spec.training = &training;
    const struct filesystem_row row = {.id = 5, .campaign_id = 7, .stage_id = w.ls->row.id, .n = 1};
    (void)leader_take_filesystems(&w.s, &row, 1, BOOT);
    one_waits(&w);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        w.s.filesystems[0]->row.state = cases[i].fs;
        w.ls->reason = WAIT_NEW;
        struct leader_view v = make(&w);
        assert_int_equal(v.view.stages_n, 1);
        assert_int_equal(v.stages[0].why_not, cases[i].why);
        assert_int_equal(v.stages[0].may_start, cases[i].why == WAIT_NONE);
        sched_view_done(&v);
        w.ls->reason = WAIT_FILESYSTEM; /* told: left out, but it does not rest */
        v = make(&w);
        assert_int_equal(v.view.stages_n, cases[i].why == WAIT_NONE);
        assert_false(w.lc->rests);
        sched_view_done(&v);
    }
    leader_world_done(&w);
}

/* One campaign of two stages, of which the first is held. */
static void test_sched_view__a_stage_whose_reason_is_written_is_left_out(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    one_waits(&w);
    w.ls->row.state = STAGE_HELD;
    w.ls->reservation.task_id = 1;
    w.ls->reason = WAIT_HELD;
    struct leader_view v = make(&w);
    assert_int_equal(v.view.stages_n, 1); /* its promise is not taken back yet */
    sched_view_done(&v);
    w.ls->reservation.task_id = 0;
    w.ls->promise.task_id = 1; /* nor is that written */
    v = make(&w);
    assert_int_equal(v.view.stages_n, 0);
    assert_false(w.lc->rests);
    sched_view_done(&v);
    w.ls->promise.task_id = 0;
    struct live_pool *p = leader_world_pool(&w, 5, POOL_AVAILABLE, NULL);
    v = make(&w);
    assert_int_equal(v.view.stages_n, 1); /* max_idle_cost of its pool is looked up there */
    sched_view_done(&v);
    slots_idle_end(leader_state_slots(&w.s, "ml.a.large", MARKET_ON_DEMAND), 1);
    leader_state_remove_pool(&w.s, p);
    struct live_attempt *a = leader_world_attempt(&w, 1, 4);
    v = make(&w);
    assert_int_equal(v.view.stages_n, 0);
    assert_int_equal(v.view.live, 1);
    assert_false(w.lc->rests);
    sched_view_done(&v);
    task_counts_move(w.lc, w.ls, TASK_ACTIVE, TASK_CANCELLED, 1);
    v = make(&w); /* its part has ended, and its job still holds slots */
    assert_true(w.lc->rests);
    assert_int_equal(v.view.campaigns_n, 1);
    assert_int_equal(v.campaigns[v.jobs[0].campaign_i].held, 4);
    sched_view_done(&v);
    slots_release(leader_state_slots(&w.s, "ml.a.large", MARKET_ON_DEMAND), 4);
    leader_state_remove_attempt(&w.s, a);
    leader_world_done(&w);
}

/* Beside a stage that runs, a stage that waits for money tells that its campaign does. */
static void test_sched_view__one_that_waits_for_money_stays_in_view(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    one_waits(&w);
    w.lc->row.state = CAMPAIGN_HELD;
    w.lc->budget_short = true;
    w.lc->live = 1;
    w.ls->reason = WAIT_BUDGET;
    struct leader_view v = make(&w);
    assert_int_equal(v.view.stages_n, 1);
    sched_view_done(&v);
    w.lc->budget_short = false;
    w.ls->cap_short = w.ls->reason = WAIT_STAGE_BUDGET; /* its own: it keeps telling that */
    v = make(&w);
    assert_int_equal(v.view.stages_n, 1);
    sched_view_done(&v);
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sched_view__a_stage_at_its_own_cap_says_so_when_held),
        cmocka_unit_test(test_sched_view__says_why_a_stage_may_not_start),
        cmocka_unit_test(test_sched_view__any_number_of_stages),
        cmocka_unit_test(test_sched_view__paused_and_held_ones_cost_nothing),
        cmocka_unit_test(test_sched_view__a_campaign_whose_pause_ends_by_itself_does_not_rest),
        cmocka_unit_test(test_sched_view__a_stage_whose_file_system_goes_does_not_start),
        cmocka_unit_test(test_sched_view__a_stage_whose_reason_is_written_is_left_out),
        cmocka_unit_test(test_sched_view__one_that_waits_for_money_stays_in_view),
        cmocka_unit_test(test_sched_view__an_empty_stage_is_not_seen_and_promises_nothing),
        cmocka_unit_test(test_sched_view__money_left_is_what_neither_spent_nor_reserved_took),
        cmocka_unit_test(test_sched_view__what_is_held_counts_and_what_is_released_does_not),
        cmocka_unit_test(test_sched_view__ends_are_expected_by_state),
        cmocka_unit_test(test_sched_view__changes_of_retries_reach_the_scheduler),
        cmocka_unit_test(test_sched_view__unsent_intents_use_up_tokens),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
