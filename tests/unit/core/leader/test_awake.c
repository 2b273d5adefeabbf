/* Aim: a plan made from campaigns that do not rest is the plan made from all of them, and paused
 * ones are not looked at. Method: random changes by the leader's own functions, with plans between
 * them whose reasons are mostly written; each plan is made twice, and the second time everything
 * is looked at. */
#include "core/leader/awake.h"
#include "core/leader/budget_state.h"
#include "core/leader/campaign_life.h"
#include "core/leader/intents.h"
#include "core/leader/parking.h"
#include "core/leader/rows_read.h"
#include "core/leader/stage_history.h"
#include "leader_world.h"

#define CAMPAIGNS 12
#define SEEDS     20
#define STEPS     2000

struct two_plans {
    struct leader_world w;
    struct rng rng;
    struct sched_plan lean, full;
    int64_t task_id; /* the next one */
    usec_t now_us;
    int rested, launched;
};

static struct spec no_spec;

static struct live_campaign *campaign_new(struct two_plans *p, int64_t id)
{
    struct live_campaign *lc = leader_world_campaign(&p->w, id, 3);
    lc->spec = &no_spec;
    lc->stages[0].rules.canary = 0;
    lc->stages[0].row.counts[TASK_WAITING] = 0;
    lc->stages[0].unchecked = ready_queue_new();
    lc->stages[0].held = ready_queue_new();
    return lc;
}

static void begin(struct two_plans *p, uint64_t seed)
{
    memset(p, 0, sizeof *p);
    leader_world_init(&p->w);
    rng_seed(&p->rng, seed);
    p->now_us = WALL;
    p->w.spec.instance_type_n = 1;
    leader_state_slots(&p->w.s, "ml.a.large", MARKET_ON_DEMAND)->s.quota = 40;
    p->w.s.projects[1].weight = p->w.s.projects[2].weight = 100;
    leader_state_drop_campaign(&p->w.s, p->w.lc);
    for (int i = 0; i < CAMPAIGNS; i++) {
        (void)campaign_new(p, 100 + i);
    }
}

static void end(struct two_plans *p)
{
    sched_plan_done(&p->lean);
    sched_plan_done(&p->full);
    leader_world_done(&p->w);
}

static void to_campaign(struct live_campaign *lc, enum campaign_state to)
{
    if (campaign_edge(lc->row.state, to)) {
        campaign_set_state(lc, to);
    }
}

static void to_stage(struct live_campaign *lc, enum stage_state to)
{
    if (stage_edge(lc->stages[0].row.state, to)) {
        stage_set_state(lc, &lc->stages[0], to);
    }
}

static void part_comes(struct two_plans *p, struct live_campaign *lc)
{
    task_counts_add(&lc->stages[0], 1);
    rows_part_waits(lc, &lc->stages[0], &(struct ready_queue_task){.task_id = ++p->task_id});
}

static void part_goes(struct live_campaign *lc)
{
    struct ready_queue_task t;
    if (ready_queue_pop(lc->stages[0].ready, USEC_NEVER - 1, &t)) {
        task_counts_move(lc, &lc->stages[0], TASK_WAITING, TASK_SKIPPED, 1);
    }
}

static void people_edit(struct two_plans *p, struct live_campaign *lc)
{
    struct campaign_row now = lc->row;
    now.wanted = rng_chance(&p->rng, 0.5) ? WANTED_RUN : WANTED_PAUSE;
    now.priority = (int)rng_below(&p->rng, 3);
    now.version++;
    rows_refresh_campaign(lc, &now);
}

static void lock_or_park(struct two_plans *p, struct live_campaign *lc)
{
    struct parking_subject who = PARKING_CAMPAIGN(lc->row.id);
    if (rng_chance(&p->rng, 0.5)) {
        (void)parking_failed(&p->w.s, &who, rng_chance(&p->rng, 0.5) ? TX_BUSY : TX_REFUSED, BOOT);
    } else {
        parking_drop(&p->w.s, lc->row.id);
    }
    parking_mark(&p->w.s, BOOT + (int64_t)rng_below(&p->rng, 3) * SEC);
}

static void money(struct two_plans *p, struct live_campaign *lc)
{
    struct campaign_row now = lc->row;
    if (rng_chance(&p->rng, 0.3)) {
        budget_state_freed(&p->w.s, lc->row.project_id, lc);
    } else {
        now.cap_musd = rng_chance(&p->rng, 0.5) ? -1 : 0;
        rows_refresh_campaign(lc, &now);
    }
}

/* The rows had no money for a part that a plan launched: for a while its stage proposes none. */
static void refused(struct two_plans *p, struct live_campaign *lc)
{
    struct live_stage *ls = &lc->stages[0];
    struct ready_queue_task t;
    if (lc->row.state == CAMPAIGN_RUNNING && ready_queue_pop(ls->ready, p->now_us, &t)) {
        campaign_wake(lc); /* as a plan that launches it has */
        (void)leader_put_back(&p->w.s, ls, &t, &(struct task_input){0}, LAUNCH_NO_MONEY, 0,
                              p->now_us);
    }
}

static void pool(struct two_plans *p, struct live_campaign *lc)
{
    p->w.lc = lc;
    p->w.ls = &lc->stages[0];
    if (p->w.s.pools_n < 3) {
        (void)leader_world_pool(&p->w, ++p->task_id, POOL_EXPECTED, NULL);
    } else {
        leader_state_remove_pool(&p->w.s, p->w.s.pools[0]);
    }
}

static void attempt(struct two_plans *p, struct live_campaign *lc)
{
    struct leader_world *w = &p->w;
    w->lc = lc;
    w->ls = &lc->stages[0];
    if (w->s.attempts_n > 4) {
        struct live_attempt *a = w->s.attempts[rng_below(&p->rng, w->s.attempts_n)];
        (void)stage_history_ended(a, ATTEMPT_FAILED, CAUSE_USER_CODE, true, "alike", WALL);
        slots_release(leader_state_slots(&w->s, "ml.a.large", MARKET_ON_DEMAND), 1);
        task_counts_move(a->campaign, a->stage, TASK_ACTIVE, TASK_FAILED, 1);
        leader_state_remove_attempt(&w->s, a);
    } else if (w->ls->row.counts[TASK_WAITING] > 0) {
        part_goes(lc);
        task_counts_add(w->ls, 1);
        (void)leader_world_attempt(w, ++p->task_id, 1);
    }
}

static void change(struct two_plans *p)
{
    struct live_campaign *lc = p->w.s.campaigns[rng_below(&p->rng, p->w.s.campaigns_n)];
    switch (rng_below(&p->rng, 11)) {
    case 0:
        to_campaign(lc, (enum campaign_state)rng_below(&p->rng, CAMPAIGN_CANCELLED));
        break;
    case 1:
        to_stage(lc, (enum stage_state)rng_below(&p->rng, STAGE_SUCCEEDED));
        break;
    case 2:
        part_comes(p, lc);
        break;
    case 3:
        part_goes(lc);
        break;
    case 4:
        people_edit(p, lc);
        break;
    case 5:
        lock_or_park(p, lc);
        break;
    case 6:
        money(p, lc);
        break;
    case 7:
        pool(p, lc);
        break;
    case 8:
        attempt(p, lc);
        break;
    case 9:
        refused(p, lc);
        break;
    default:
        if (campaign_state_terminal(lc->row.state) && lc->live == 0 && lc->pools_n == 0) {
            leader_state_drop_campaign(&p->w.s, lc);
            (void)campaign_new(p, 200 + ++p->task_id);
        }
        break;
    }
}

/* Launches are put back, so that the next plan finds the same queues. */
static void plan(struct two_plans *p, struct leader_view *v, struct sched_plan *ret)
{
    sched_view_make(&p->w.s, p->now_us, 100, v);
    sched_decide(&v->view, ret);
    for (int i = 0; i < ret->launches_n; i++) {
        ready_queue_push(v->live_stages[ret->launches[i].stage_i]->ready, &ret->launches[i].task);
    }
}

static int in_view(const struct leader_view *v, const struct live_stage *ls)
{
    for (int i = 0; i < v->view.stages_n; i++) {
        if (v->live_stages[i] == ls) {
            return i;
        }
    }
    return -1;
}

static void same_plans(const struct two_plans *p, const struct leader_view *lean,
                       const struct leader_view *full)
{
    assert_int_equal(p->lean.launches_n, p->full.launches_n);
    for (int i = 0; i < p->lean.launches_n; i++) {
        assert_int_equal(p->lean.launches[i].task.task_id, p->full.launches[i].task.task_id);
    }
    assert_int_equal(p->lean.pool_ends_n, p->full.pool_ends_n);
    assert_int_equal(lean->view.live, full->view.live);
    for (int i = 0; i < full->view.stages_n; i++) {
        int k = in_view(lean, full->live_stages[i]);
        enum wait_reason now = k >= 0 ? p->lean.reason[k] : full->live_stages[i]->reason;
        assert_int_equal(now, p->full.reason[i]);
    }
}

/* As if nothing were written yet: every stage where a part waits is in the view. */
static void plan_of_all(struct two_plans *p, const struct leader_view *lean)
{
    enum wait_reason reason[CAMPAIGNS];
    bool rests[CAMPAIGNS];
    struct leader_view v;
    for (size_t i = 0; i < CAMPAIGNS; i++) {
        struct live_campaign *lc = p->w.s.campaigns[i];
        rests[i] = lc->rests;
        reason[i] = lc->stages[0].reason;
        lc->stages[0].reason = WAIT_NEW;
        campaign_wake(lc);
    }
    plan(p, &v, &p->full);
    for (size_t i = 0; i < CAMPAIGNS; i++) {
        struct live_campaign *lc = p->w.s.campaigns[i];
        lc->stages[0].reason = reason[i];
        if (rests[i]) {
            campaign_rest(lc);
        } else {
            campaign_wake(lc);
        }
    }
    same_plans(p, lean, &v);
    sched_view_done(&v);
}

static void plan_twice(struct two_plans *p)
{
    struct leader_view v;
    p->now_us += (int64_t)rng_below(&p->rng, 3) * SEC;
    assert_null(sched_view_overslept(&p->w.s, p->now_us));
    plan(p, &v, &p->lean);
    p->launched += p->lean.launches_n;
    p->rested += (int)(p->w.s.campaigns_n - p->w.s.awake->n);
    plan_of_all(p, &v);
    leader_note_money_short(&p->w.s, v.stages, v.live_campaigns, v.live_stages, &p->lean,
                            v.view.stages_n);
    for (int i = 0; i < v.view.stages_n; i++) {
        if (leader_reason_moves(v.live_campaigns[i], v.live_stages[i], p->lean.reason[i]) &&
            rng_chance(&p->rng, 0.8)) {
            v.live_stages[i]->reason = p->lean.reason[i];
        }
    }
    sched_view_done(&v);
}

static void test_awake__a_plan_of_what_is_awake_is_the_plan_of_all(void **state)
{
    (void)state;
    int rested = 0;
    int launched = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct two_plans p;
        begin(&p, seed);
        for (int i = 0; i < STEPS; i++) {
            change(&p);
            if (rng_chance(&p.rng, 0.3)) {
                plan_twice(&p);
            }
        }
        rested += p.rested;
        launched += p.launched;
        end(&p);
    }
    assert_true(rested > SEEDS * STEPS / 10);
    assert_true(launched > SEEDS * STEPS / 10);
}

static void test_awake__the_list_is_in_order_and_has_each_once(void **state)
{
    (void)state;
    struct two_plans p;
    begin(&p, 1);
    for (int i = 0; i < 1000; i++) {
        struct live_campaign *lc = p.w.s.campaigns[rng_below(&p.rng, CAMPAIGNS)];
        size_t n = p.w.s.awake->n;
        bool rested = lc->rests;
        if (rng_chance(&p.rng, 0.5)) {
            campaign_wake(lc);
            assert_int_equal(p.w.s.awake->n, n + rested);
        } else {
            campaign_rest(lc);
            assert_int_equal(p.w.s.awake->n, n - !rested);
        }
        for (size_t k = 0; k < p.w.s.awake->n; k++) {
            assert_false(p.w.s.awake->campaigns[k]->rests);
            assert_true(k == 0 ||
                        p.w.s.awake->campaigns[k - 1]->row.id < p.w.s.awake->campaigns[k]->row.id);
        }
    }
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_awake__a_plan_of_what_is_awake_is_the_plan_of_all),
        cmocka_unit_test(test_awake__the_list_is_in_order_and_has_each_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
