/* Aim: a campaign counts as short of money, as spent up, or as stuck at its own cap, when it is.
 * Method: a state by hand and the reasons of a plan. */
#include "core/leader/campaign_life.h"
#include "core/leader/intents.h"
#include "core/money/cost.h"
#include "outcome_world.h"

struct one {
    struct leader_world w;
    struct sched_stage stage;
};

static void one_init(struct one *o)
{
    memset(o, 0, sizeof *o);
    leader_world_init(&o->w);
    o->stage = (struct sched_stage){
        .campaign_id = 7, .stage_id = 70, .stage = &o->w.spec, .ready = o->w.ls->ready};
}

static void one_done(struct one *o)
{
    leader_world_done(&o->w);
}

/* Parts that still wait for an answer of done_if may start without money from anybody: those of
 * their stage that are at their own cap do not hold the campaign. */
static void note_short(struct one *o, enum wait_reason reason, enum wait_reason rest)
{
    const struct sched_plan plan = {.reason = &reason, .rest = &rest};
    leader_note_money_short(&o->w.s, &o->stage, &o->w.lc, &o->w.ls, &plan, 1);
}

static void test_intents_money__parts_to_be_asked_about_are_not_short(void **state)
{
    (void)state;
    static const enum wait_reason reasons[] = {WAIT_PART_BUDGET, WAIT_STAGE_BUDGET};
    for (int i = 0; i < 2; i++) {
        for (int waits = 0; waits < 3; waits++) {
            struct one o;
            one_init(&o);
            o.w.ls->unchecked = o.w.ls->unchecked != NULL ? o.w.ls->unchecked : ready_queue_new();
            if (waits == 1) {
                ready_queue_push(o.w.ls->unchecked, &(struct ready_queue_task){.task_id = 7});
            }
            o.w.ls->checks_under_way = waits == 2;
            note_short(&o, reasons[i], reasons[i]);
            assert_int_equal(o.w.ls->cap_short, i == 0 && waits > 0 ? WAIT_NONE : reasons[i]);
            one_done(&o);
        }
    }
}

/* A cap of the campaign or the stage; what is spent; is it short, and is it spent for good? */
static void test_intents_money__money_that_is_short(void **state)
{
    (void)state;
    musd_t least = 0;
    struct err err = ERR_INIT;
    assert_true(cost_worst_case(3600000, 1, 600, 0, &least, &err));
    const struct {
        musd_t cap, stage_cap, spent, reserved;
        bool may_start;
        enum wait_reason reason;
        bool is_short, spent_up;
    } cases[] = {
        {-1, -1, 9 * USD, 0, true, WAIT_NONE, false, false},
        {10 * USD, -1, 10 * USD - least, 9 * USD, true, WAIT_BUDGET, true, false},
        {10 * USD, -1, 10 * USD - least + 1, 0, true, WAIT_NONE, false, true},
        {10 * USD, -1, 10 * USD, 0, false, WAIT_BUDGET, true, true},
        {10 * USD, -1, 10 * USD, 0, false, WAIT_NONE, false, false},
        /* a stage's own cap closes that stage only: it neither holds nor stops its campaign */
        {-1, 10 * USD, 10 * USD, 0, true, WAIT_STAGE_BUDGET, false, false},
        {-1, 10 * USD, 10 * USD, 0, true, WAIT_PART_BUDGET, false, false},
        {10 * USD, 10 * USD, 10 * USD, 0, true, WAIT_STAGE_BUDGET, false, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct one o;
        one_init(&o);
        o.w.lc->row.cap_musd = cases[i].cap;
        o.w.ls->row.cap_musd = cases[i].stage_cap;
        o.w.lc->row.spent_musd = o.w.ls->row.spent_musd = cases[i].spent;
        o.w.lc->row.reserved_musd = o.w.ls->row.reserved_musd = cases[i].reserved;
        o.stage.may_start = cases[i].may_start;
        o.w.lc->budget_short = o.w.lc->budget_spent = true; /* of an older plan */
        o.w.ls->cap_short = WAIT_STAGE_BUDGET;
        note_short(&o, cases[i].reason, cases[i].reason);
        bool own = cases[i].reason == WAIT_STAGE_BUDGET || cases[i].reason == WAIT_PART_BUDGET;
        if (o.w.lc->budget_short != cases[i].is_short ||
            o.w.ls->cap_short != (own ? cases[i].reason : WAIT_NONE) ||
            o.w.lc->budget_spent != cases[i].spent_up) {
            fail_msg("case %zu: short %d, spent up %d", i, o.w.lc->budget_short,
                     o.w.lc->budget_spent);
        }
        one_done(&o);
    }
}

/* The first rung is ten times as dear as the second: what pays for the second is not spent. */
static void test_intents_money__a_cheaper_rung_is_not_spent_up(void **state)
{
    (void)state;
    struct one o;
    musd_t least = 0;
    struct err err = ERR_INIT;
    one_init(&o);
    assert_true(cost_worst_case(3600000, 1, 600, 0, &least, &err));
    o.w.spec.instance_type[0] = "ml.b.large";
    o.w.spec.instance_type[1] = "ml.a.large";
    o.stage.may_start = true;
    o.w.lc->row.cap_musd = 10 * USD;
    o.w.lc->row.spent_musd = 10 * USD - least;
    note_short(&o, WAIT_NONE, WAIT_NONE);
    assert_false(o.w.lc->budget_spent);
    leader_state_slots(&o.w.s, "ml.a.large", MARKET_ON_DEMAND)->s.quota =
        0; /* it never holds one */
    note_short(&o, WAIT_NONE, WAIT_NONE);
    assert_true(o.w.lc->budget_spent);
    leader_state_slots(&o.w.s, "ml.b.large", MARKET_ON_DEMAND)->s.quota =
        0; /* nor this: no matter */
    note_short(&o, WAIT_NONE, WAIT_NONE);
    assert_false(o.w.lc->budget_spent);
    one_done(&o);
}

/* Its parts wait for money of its own cap and for nothing else. */
static void test_intents_money__stuck_at_its_own_cap(void **state)
{
    (void)state;
    struct one o;
    one_init(&o);
    o.stage.may_start = true;
    o.w.lc->row.cap_musd = 10 * USD;
    o.w.lc->row.spent_musd = 8 * USD;
    note_short(&o, WAIT_BUDGET, WAIT_BUDGET);
    assert_true(o.w.lc->budget_stuck && !o.w.lc->budget_spent);
    note_short(&o, WAIT_BUDGET, WAIT_SLOTS); /* those that moved to a dearer rung are not all */
    assert_false(o.w.lc->budget_stuck);
    struct project_row *project = leader_state_project(&o.w.s, 3);
    project->cap_musd = 20 * USD;
    project->spent_musd = 20 * USD - 1; /* others of the project may give back */
    note_short(&o, WAIT_BUDGET, WAIT_BUDGET);
    assert_false(o.w.lc->budget_stuck);
    one_done(&o);
}

/* The first of its parts asks for more than the stage's own cap leaves. With nothing running its
 * campaign is held, but not while others of it ask for less, or have been launched just now. */
static void test_intents_money__a_dear_part_closes_no_stage(void **state)
{
    (void)state;
    static const struct {
        enum wait_reason rest;
        bool launched, held;
    } rows[] = {
        {WAIT_STAGE_BUDGET, false, true}, {WAIT_PART_BUDGET, false, true},
        {WAIT_SLOTS, false, false},       {WAIT_BACKOFF, false, false},
        {WAIT_PART_BUDGET, true, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct one o;
        struct campaign_life_writes w;
        enum wait_reason reason = WAIT_STAGE_BUDGET, rest = rows[i].rest;
        const struct sched_plan plan = {
            .reason = &reason, .rest = &rest, .launches_n = rows[i].launched};
        one_init(&o);
        leader_note_money_short(&o.w.s, &o.stage, &o.w.lc, &o.w.ls, &plan, 1);
        campaign_life_plan(o.w.lc, &w);
        if (w.n != rows[i].held) {
            fail_msg("row %zu: %d moves", i, w.n);
        }
        one_done(&o);
    }
}

static void test_intents_money__a_price_that_is_not_known_holds_nobody(void **state)
{
    (void)state;
    struct one o;
    enum wait_reason reason = WAIT_NONE;
    one_init(&o);
    leader_state_slots(&o.w.s, "ml.a.large", MARKET_ON_DEMAND)->s.price_musd_per_hour = -1;
    o.w.lc->row.cap_musd = o.w.lc->row.spent_musd = USD;
    o.stage.may_start = true;
    note_short(&o, reason, reason);
    assert_false(o.w.lc->budget_spent);
    one_done(&o);
}

/* With nothing running such a campaign is held and waits for a person: it said it was running. */
static void test_intents_money__one_that_is_stuck_waits_for_a_person(void **state)
{
    (void)state;
    static const struct {
        enum at_limit at_limit;
        int64_t live;
        musd_t reserved; /* of a pool, an endpoint: it may come back */
        bool is_short, held;
    } rows[] = {
        {AT_LIMIT_HOLD, 0, 0, true, true},   {AT_LIMIT_STOP, 0, 0, true, true},
        {AT_LIMIT_HOLD, 1, 0, true, false},  {AT_LIMIT_STOP, 0, 1, true, false},
        {AT_LIMIT_HOLD, 0, 0, false, false}, /* money was freed since */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct one o;
        struct campaign_life_writes w;
        one_init(&o);
        o.w.lc->row.at_limit = rows[i].at_limit;
        o.w.lc->row.reserved_musd = rows[i].reserved;
        o.w.lc->live = rows[i].live;
        o.w.lc->budget_short = rows[i].is_short;
        o.w.lc->budget_stuck = true;
        campaign_life_plan(o.w.lc, &w);
        assert_int_equal(w.n, rows[i].held);
        assert_true(w.n == 0 || w.moves[0].to == CAMPAIGN_HELD);
        assert_int_equal(w.waits_for_person, rows[i].held);
        one_done(&o);
    }
}

/* The first stage is short of money. The second one keeps the campaign from being held, which would
 * hold that too: for good, since nothing runs that could give money back. */
static void test_intents_money__a_stage_that_can_start_is_not_held(void **state)
{
    (void)state;
    static const struct {
        enum wait_reason second, rest;
        enum stage_state second_is;
        bool launched, held;
    } rows[] = {
        {WAIT_BACKOFF, WAIT_BACKOFF, STAGE_RUNNING, false, false},
        {WAIT_SLOTS, WAIT_SLOTS, STAGE_RUNNING, false, false},
        {WAIT_BUDGET, WAIT_BACKOFF, STAGE_RUNNING, false, false}, /* its others are cheaper */
        {WAIT_NONE, WAIT_NONE, STAGE_RUNNING, true, false},       /* and could not be written */
        {WAIT_NONE, WAIT_NONE, STAGE_RUNNING, false, true},       /* it has no parts */
        {WAIT_BUDGET, WAIT_BUDGET, STAGE_RUNNING, false, true},
        {WAIT_STAGE_BUDGET, WAIT_STAGE_BUDGET, STAGE_RUNNING, false, true},
        {WAIT_STAGE_BLOCKED, WAIT_STAGE_BLOCKED, STAGE_BLOCKED, false, true}, /* it needs it */
        {WAIT_BREAKER, WAIT_BREAKER, STAGE_HELD, false, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct campaign_life_writes w;
        struct one o;
        one_init(&o);
        struct live_stage second = {.row = {.state = rows[i].second_is}, .spec = &o.w.spec};
        struct sched_stage stages[] = {o.stage, o.stage};
        struct live_campaign *campaigns[] = {o.w.lc, o.w.lc};
        struct live_stage *live_stages[] = {o.w.ls, &second};
        enum wait_reason reason[] = {WAIT_BUDGET, rows[i].second};
        enum wait_reason rest[] = {WAIT_BUDGET, rows[i].rest};
        struct sched_plan plan = {.launches = {{.stage_i = 1}},
                                  .launches_n = rows[i].launched,
                                  .reason = reason,
                                  .rest = rest};
        o.w.lc->row.at_limit = AT_LIMIT_DRAIN;
        o.w.lc->budget_goes_on = rows[i].held; /* of an older plan */
        leader_note_money_short(&o.w.s, stages, campaigns, live_stages, &plan, 2);
        campaign_life_plan(o.w.lc, &w);
        if (w.n != rows[i].held || (w.n > 0 && w.moves[0].to != CAMPAIGN_HELD)) {
            fail_msg("row %zu: %d moves", i, w.n);
        }
        one_done(&o);
    }
}

/* The plan has the first stage alone: of the second one no part is ready, or why is written. */
static void test_intents_money__a_stage_that_is_not_in_the_plan_keeps_it_too(void **state)
{
    (void)state;
    static const struct {
        enum spec_kind kind;
        bool asks, left_out;
        enum wait_reason why;
        enum endpoint_verdict endpoint;
        enum stage_state is;
        bool held;
    } rows[] = {
        {SPEC_KIND_JOBS, true, false, WAIT_BUDGET, 0, STAGE_RUNNING, false}, /* an old reason */
        {SPEC_KIND_JOBS, false, true, WAIT_BACKOFF, 0, STAGE_RUNNING, false},
        {SPEC_KIND_ENDPOINT, false, false, WAIT_NONE, ENDPOINT_NOT_YET, STAGE_RUNNING, false},
        {SPEC_KIND_LUSTRE, false, false, WAIT_SLOTS, ENDPOINT_NOT_YET, STAGE_RUNNING, false},
        {SPEC_KIND_ENDPOINT, false, false, WAIT_NONE, ENDPOINT_SERVES, STAGE_RUNNING, true},
        {SPEC_KIND_ENDPOINT, false, false, WAIT_BUDGET, ENDPOINT_NOT_YET, STAGE_RUNNING, true},
        {SPEC_KIND_JOBS, false, false, WAIT_BACKOFF, 0, STAGE_RUNNING, true}, /* all of it runs */
        {SPEC_KIND_JOBS, true, false, WAIT_NONE, 0, STAGE_BLOCKED, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct one o;
        one_init(&o);
        struct spec_stage spec = {.kind = rows[i].kind};
        struct live_stage two[2] = {*o.w.ls, {.spec = &spec}};
        two[1].row.state = rows[i].is;
        two[1].ready = ready_queue_new();
        two[1].unchecked = ready_queue_new();
        two[1].checks_under_way = rows[i].asks;
        two[1].left_out = rows[i].left_out;
        two[1].reason = rows[i].why;
        two[1].endpoint = rows[i].endpoint;
        struct live_stage *own = o.w.lc->stages;
        o.w.lc->stages = two;
        o.w.lc->stages_n = 2;
        note_short(&o, WAIT_BUDGET, WAIT_BUDGET);
        if (o.w.lc->budget_goes_on == rows[i].held) {
            fail_msg("row %zu", i);
        }
        ready_queue_free(two[1].ready);
        ready_queue_free(two[1].unchecked);
        o.w.lc->stages = own;
        o.w.lc->stages_n = 1;
        one_done(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intents_money__parts_to_be_asked_about_are_not_short),
        cmocka_unit_test(test_intents_money__money_that_is_short),
        cmocka_unit_test(test_intents_money__a_cheaper_rung_is_not_spent_up),
        cmocka_unit_test(test_intents_money__stuck_at_its_own_cap),
        cmocka_unit_test(test_intents_money__one_that_is_stuck_waits_for_a_person),
        cmocka_unit_test(test_intents_money__a_price_that_is_not_known_holds_nobody),
        cmocka_unit_test(test_intents_money__a_stage_that_can_start_is_not_held),
        cmocka_unit_test(test_intents_money__a_stage_that_is_not_in_the_plan_keeps_it_too),
        cmocka_unit_test(test_intents_money__a_dear_part_closes_no_stage),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
