/* Aim: money moves at every level at once, and each threshold of a cap is told once. Method: a
 * state by hand, one rule a test. */
#include "core/leader/budget_state.h"
#include "leader_world.h"

static void test_budget_state__money_moves_at_every_level(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    budget_state_move(&w.s, w.lc, w.ls, 5, 7, 3);
    budget_state_move(&w.s, w.lc, w.ls, -2, 1, 0);
    assert_int_equal(w.lc->row.reserved_musd, 3);
    assert_int_equal(w.lc->row.spent_musd, 8);
    assert_int_equal(w.lc->row.warm_musd, 3);
    assert_int_equal(w.ls->row.reserved_musd, 3);
    assert_int_equal(w.ls->row.spent_musd, 8);
    for (int i = 0; i < 2; i++) { /* everything together, and project 3 */
        assert_int_equal(w.s.projects[i].reserved_musd, 3);
        assert_int_equal(w.s.projects[i].spent_musd, 8);
    }
    assert_int_equal(w.s.projects[2].reserved_musd, 0);
    assert_int_equal(w.s.projects[2].spent_musd, 0);
    leader_world_done(&w);
}

/* Who may start again when campaign 7 of project 3 gives money back. */
static void test_budget_state__freed_money_reaches_those_below_a_shared_cap(void **state)
{
    (void)state;
    static const struct {
        musd_t all_cap, project_cap;
        bool same_project, other_project;
    } cases[] = {{-1, -1, false, false},
                 {-1, 9 * USD, true, false},
                 {9 * USD, -1, true, true},
                 {0, 0, true, true}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct leader_world w;
        leader_world_init(&w);
        struct live_campaign *same = leader_world_campaign(&w, 8, 3);
        struct live_campaign *other = leader_world_campaign(&w, 9, 4);
        w.lc->budget_short = same->budget_short = other->budget_short = true;
        w.ls->cap_short = WAIT_STAGE_BUDGET;
        w.s.projects[0].cap_musd = cases[i].all_cap;
        w.s.projects[1].cap_musd = cases[i].project_cap;
        campaign_rest(same);
        campaign_rest(other);
        budget_state_freed(&w.s, w.lc->row.project_id, w.lc);
        assert_int_equal(!same->rests, cases[i].same_project); /* a plan looks at it again */
        assert_int_equal(!other->rests, cases[i].other_project);
        assert_false(w.lc->budget_short);
        assert_int_equal(w.ls->cap_short, WAIT_NONE);
        assert_int_equal(!same->budget_short, cases[i].same_project);
        assert_int_equal(!other->budget_short, cases[i].other_project);
        leader_world_done(&w);
    }
}

/* Its campaign is over and has left memory, its endpoint served on: others of its project wait. */
static void test_budget_state__freed_by_one_that_is_gone(void **state)
{
    (void)state;
    static const struct {
        int64_t project_id;
        bool same_project;
    } cases[] = {{3, true}, {4, false}, {0, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct leader_world w;
        leader_world_init(&w);
        w.lc->budget_short = true;
        w.ls->cap_short = WAIT_STAGE_BUDGET;
        w.s.projects[1].cap_musd = leader_state_project(&w.s, 4)->cap_musd = USD;
        budget_state_freed(&w.s, cases[i].project_id, NULL);
        assert_int_equal(!w.lc->budget_short, cases[i].same_project);
        assert_int_equal(w.ls->cap_short, WAIT_STAGE_BUDGET); /* its own money is as it was */
        leader_world_done(&w);
    }
}

static void test_budget_state__what_entries_move(void **state)
{
    (void)state;
    const struct ledger_entry e[] = {
        {.from = LEDGER_BUDGET, .to = LEDGER_RESERVED, .amount_musd = 10},
        {.from = LEDGER_RESERVED, .to = LEDGER_SPENT, .amount_musd = 4},
        {.from = LEDGER_RESERVED, .to = LEDGER_BUDGET, .amount_musd = 5}};
    assert_int_equal(budget_state_reserved_by(e, 3), 1);
    assert_int_equal(budget_state_spent_by(e, 3), 4);
    assert_int_equal(budget_state_reserved_by(e, 0), 0);
    const struct ledger_entry back = {.from = LEDGER_SPENT, .to = LEDGER_BUDGET, .amount_musd = 3};
    assert_int_equal(budget_state_spent_by(&back, 1), -3);
    assert_int_equal(budget_state_reserved_by(&back, 1), 0);
    assert_int_equal(budget_state_left(10, 3, 4), 3);
    assert_int_equal(budget_state_left(5, 3, 4), 0);
    assert_int_equal(budget_state_left(-1, 3, 4), INT64_MAX);
}

static void warn_at(struct warn_at *w, int64_t a_ppm, int64_t b_ppm)
{
    *w = (struct warn_at){.at_ppm = {a_ppm, b_ppm}, .n = 2};
}

static void test_budget_state__a_threshold_is_told_once(void **state)
{
    (void)state;
    struct leader_world w;
    struct budget_warning b;
    leader_world_init(&w);
    w.lc->row.cap_musd = 10 * USD;
    warn_at(&w.lc->row.warn, 500000, 800000);
    w.lc->row.spent_musd = 5 * USD - 1;
    assert_false(leader_plan_budget_warning(&w.s, &b));
    w.lc->row.spent_musd = 5 * USD + 120000;
    assert_true(leader_plan_budget_warning(&w.s, &b));
    assert_string_equal(b.text,
                        "50 % of the budget of campaign laion are spent: 5.12 of 10.00 USD");
    assert_string_equal(budget_warning_level_name(b.level), "campaign");
    assert_int_equal(b.ref_id, 7);
    assert_int_equal(b.campaign_id, 7);
    assert_int_equal(b.ppm, 500000);
    assert_true(b.tell);
    leader_apply_budget_warning(&w.s, &b);
    assert_int_equal(w.lc->row.warn.warned_ppm, 500000);
    assert_false(leader_plan_budget_warning(&w.s, &b));
    w.lc->row.spent_musd = 9 * USD; /* the higher one alone is told */
    assert_true(leader_plan_budget_warning(&w.s, &b));
    assert_int_equal(b.ppm, 800000);
    assert_true(b.tell);
    leader_apply_budget_warning(&w.s, &b);
    w.lc->row.cap_musd = 12 * USD; /* raised: 75 %. The row moves, nobody is told */
    assert_true(leader_plan_budget_warning(&w.s, &b));
    assert_int_equal(b.ppm, 500000);
    assert_false(b.tell);
    leader_apply_budget_warning(&w.s, &b);
    w.lc->row.spent_musd = 10 * USD; /* and 80 % of the raised cap is told again */
    assert_true(leader_plan_budget_warning(&w.s, &b));
    assert_true(b.tell);
    leader_world_done(&w);
}

static void test_budget_state__every_level_warns(void **state)
{
    (void)state;
    struct leader_world w;
    struct budget_warning b;
    static const char *const levels[] = {"global", "project", "campaign", "stage"};
    static const int64_t refs[] = {0, 3, 7, 70};
    static const int64_t campaigns[] = {0, 0, 7, 7};
    leader_world_init(&w);
    struct warn_at *warns[] = {&w.s.projects[0].warn, &w.s.projects[1].warn, &w.lc->row.warn,
                               &w.ls->row.warn};
    w.s.projects[0].cap_musd = w.s.projects[1].cap_musd = 10 * USD;
    w.lc->row.cap_musd = w.ls->row.cap_musd = 10 * USD;
    for (size_t i = 0; i < ARRAY_LEN(warns); i++) {
        warn_at(warns[i], 500000, 800000);
    }
    budget_state_move(&w.s, w.lc, w.ls, 0, 6 * USD, 0);
    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        assert_true(leader_plan_budget_warning(&w.s, &b));
        assert_string_equal(budget_warning_level_name(b.level), levels[i]);
        assert_int_equal(b.ref_id, refs[i]);
        assert_int_equal(b.campaign_id, campaigns[i]);
        leader_apply_budget_warning(&w.s, &b);
        assert_int_equal(warns[i]->warned_ppm, 500000);
    }
    assert_false(leader_plan_budget_warning(&w.s, &b));
    leader_world_done(&w);
}

static void test_budget_state__a_cap_that_went_is_not_told(void **state)
{
    (void)state;
    struct leader_world w;
    struct budget_warning b;
    leader_world_init(&w);
    w.ls->row.cap_musd = -1;
    w.ls->row.spent_musd = 9 * USD;
    w.ls->row.warn.warned_ppm = 800000; /* as a cap that was taken away left it */
    assert_true(leader_plan_budget_warning(&w.s, &b));
    assert_int_equal(b.ppm, 0);
    assert_false(b.tell);
    leader_apply_budget_warning(&w.s, &b);
    assert_false(leader_plan_budget_warning(&w.s, &b));
    leader_world_done(&w);
}

static void test_budget_state__what_the_rows_of_money_say_to_an_intent(void **state)
{
    (void)state;
    static const struct {
        const char *refused;
        musd_t cap_musd, musd;
        enum wait_reason before, why;
        bool takes;
    } rows[] = {
        {"", -1, 5, WAIT_NONE, WAIT_NONE, true},
        {"", -1, 5, WAIT_PRICE_UNKNOWN, WAIT_PRICE_UNKNOWN, false}, /* it was not even tried */
        {"money", -1, 5, WAIT_NONE, WAIT_BUDGET, false},
        {"money", 9, 5, WAIT_NONE, WAIT_BUDGET, false}, /* five are left of its own cap */
        {"money", 8, 5, WAIT_NONE, WAIT_STAGE_BUDGET, false},
        {"state", 8, 5, WAIT_NONE, WAIT_NONE, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct live_stage ls = {
            .row = {.cap_musd = rows[i].cap_musd, .reserved_musd = 3, .spent_musd = 1}};
        enum wait_reason why = rows[i].before;
        assert_int_equal(budget_state_takes(&ls, rows[i].refused, rows[i].musd, &why),
                         rows[i].takes);
        assert_int_equal(why, rows[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget_state__money_moves_at_every_level),
        cmocka_unit_test(test_budget_state__freed_money_reaches_those_below_a_shared_cap),
        cmocka_unit_test(test_budget_state__freed_by_one_that_is_gone),
        cmocka_unit_test(test_budget_state__what_entries_move),
        cmocka_unit_test(test_budget_state__a_threshold_is_told_once),
        cmocka_unit_test(test_budget_state__every_level_warns),
        cmocka_unit_test(test_budget_state__a_cap_that_went_is_not_told),
        cmocka_unit_test(test_budget_state__what_the_rows_of_money_say_to_an_intent),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
