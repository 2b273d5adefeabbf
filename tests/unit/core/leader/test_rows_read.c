/* Aim: what is read from rows enters memory once and in the right place, and what only the leader
 * writes is never taken back from them. Method: a campaign by hand, rows by hand. */
#include "core/failure/retry_policy.h"
#include "core/leader/parking.h"
#include "core/leader/rows_read.h"
#include "life_world.h"

static void test_rows_read__stages_whose_tasks_are_read(void **state)
{
    (void)state;
    struct life_world l;
    life_world_init(&l, 1);
    for (int s = 0; s < STAGE_STATE_COUNT; s++) {
        l.st[0].row.state = (enum stage_state)s;
        bool reads = s != STAGE_SUCCEEDED && s != STAGE_FAILED && s != STAGE_CANCELLED;
        assert_int_equal(rows_stage_is_read(&l.st[0]), reads);
        l.st[0].loaded = 9; /* of ten */
        assert_int_equal(rows_unloaded(&l.st[0]), reads);
        l.st[0].loaded = 10;
        assert_false(rows_unloaded(&l.st[0]));
    }
    life_world_done(&l);
}

static void test_rows_read__a_stage_and_its_campaign_enter_memory(void **state)
{
    (void)state;
    struct life_world l;
    struct spec_stage stage = {.name = "s1"};
    struct spec spec = {.stages = {&stage}, .stages_n = 1, .warn_at_n = 2, .warn_at_ppm = {5, 9}};
    life_world_init(&l, 0);
    l.lc->spec = &spec;
    struct live_stage *ls = &l.st[0];
    struct stage_row row = {
        .id = 90, .campaign_id = 9, .name = "s1", .counts = {[TASK_ACTIVE] = 3}};
    rows_new_stage(l.lc, ls, &row);
    l.lc->stages_n = 1;
    assert_ptr_equal(ls->spec, &stage);
    assert_int_equal(l.lc->live, 3);
    assert_int_equal(ls->reason, WAIT_NEW);
    rows_new_campaign(l.lc);
    assert_false(l.lc->spec_unreadable);
    assert_int_equal(l.lc->row.warn.n, 2);
    assert_int_equal(l.lc->row.warn.at_ppm[1], 9);
    rows_set_spec(l.lc, NULL);
    assert_true(l.lc->spec_unreadable);
    assert_null(ls->spec);
    rows_new_campaign(l.lc);
    assert_true(l.lc->spec_unreadable);
    rows_set_spec(l.lc, &spec);
    assert_false(l.lc->spec_unreadable);
    assert_ptr_equal(ls->spec, &stage);
    life_world_done(&l);
}

static void test_rows_read__who_waits_for_a_person_at_takeover(void **state)
{
    (void)state;
    struct life_world l;
    static const struct row {
        enum campaign_state state;
        enum at_limit at_limit;
        int64_t version, taken;
        bool money, waits;
    } rows[] = {
        {CAMPAIGN_HELD, AT_LIMIT_HOLD, 5, 5, true, true},
        {CAMPAIGN_HELD, AT_LIMIT_STOP, 5, 5, true, true},
        {CAMPAIGN_HELD, AT_LIMIT_HOLD, 5, 5, false, false}, /* a breaker or a gate held it */
        {CAMPAIGN_HELD, AT_LIMIT_HOLD, 6, 5, true, false},  /* it was edited since */
        {CAMPAIGN_HELD, AT_LIMIT_DRAIN, 5, 5, true, false},
        {CAMPAIGN_RUNNING, AT_LIMIT_HOLD, 5, 5, true, false},
    };
    life_world_init(&l, 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        l.lc->row.state = rows[i].state;
        l.lc->row.at_limit = rows[i].at_limit;
        l.lc->row.version = rows[i].version;
        l.lc->row.taken_version = rows[i].taken;
        l.lc->row.held_for_money = rows[i].money;
        rows_new_campaign(l.lc);
        assert_int_equal(l.lc->waits_for_person, rows[i].waits);
        assert_int_equal(l.lc->tried_version, rows[i].version);
    }
    life_world_done(&l);
}

static void test_rows_read__new_parts_are_counted_once(void **state)
{
    (void)state;
    struct life_world l;
    life_world_init(&l, 1);
    struct live_stage *ls = &l.st[0]; /* ten parts, all waiting */
    assert_false(rows_new_parts(ls, 10));
    assert_true(rows_new_parts(ls, 14));
    for (int i = 0; i < 2; i++) {
        rows_take_parts(ls, 14);
        assert_int_equal(ls->row.taken, 14);
        assert_int_equal(ls->row.counts[TASK_WAITING], 14);
    }
    rows_take_parts(ls, 12); /* an older row: never fewer */
    assert_int_equal(ls->row.taken, 14);
    assert_int_equal(ls->row.counts[TASK_WAITING], 14);
    life_world_done(&l);
}

/* A row says when a part may start by the clock of him who wrote it. One that has been set back
 * since would make it wait for hours. */
static void test_rows_read__a_back_off_of_a_row_is_bounded(void **state)
{
    (void)state;
    struct life_world l;
    life_world_init(&l, 1);
    int64_t longest_us = retry_wait_longest_s(&l.spec[0]) * SEC;
    struct ready_queue_task t;
    struct task_row row = {.not_before_us = WALL, .state = TASK_WAITING};
    assert_int_equal(rows_task(&l.st[0], &row, WALL - longest_us, &t), ROWS_READY);
    assert_int_equal(t.not_before_us, WALL);
    (void)rows_task(&l.st[0], &row, WALL - longest_us - 1, &t);
    assert_int_equal(t.not_before_us, WALL - 1);
    (void)rows_task(&l.st[0], &row, WALL - 24 * 3600 * SEC, &t);
    assert_int_equal(t.not_before_us, WALL - 24 * 3600 * SEC + longest_us);
    (void)rows_task(&l.st[0], &row, WALL + SEC, &t);
    assert_int_equal(t.not_before_us, WALL);
    l.st[0].spec = NULL; /* nothing of it starts */
    (void)rows_task(&l.st[0], &row, WALL - 24 * 3600 * SEC, &t);
    assert_int_equal(t.not_before_us, WALL);
    life_world_done(&l);
}

static void test_rows_read__where_a_task_waits(void **state)
{
    (void)state;
    struct life_world l;
    life_world_init(&l, 1);
    struct ready_queue_task t;
    struct task_row row = {.id = 5,
                           .seq = 3,
                           .not_before_us = WALL,
                           .size = (INT64_C(300) << 20) + 1,
                           .state = TASK_WAITING};
    assert_int_equal(rows_task(&l.st[0], &row, WALL, &t), ROWS_READY);
    assert_int_equal(t.task_id, 5);
    assert_int_equal(t.seq, 3);
    assert_int_equal(t.not_before_us, WALL);
    assert_int_equal(t.size_mb, 300);
    row.size = INT64_MAX;
    assert_int_equal(rows_task(&l.st[0], &row, WALL, &t), ROWS_READY);
    assert_int_equal(t.size_mb, UINT32_MAX);
    row.size = -(INT64_C(2) << 20);
    assert_int_equal(rows_task(&l.st[0], &row, WALL, &t), ROWS_READY);
    assert_int_equal(t.size_mb, 0);
    l.spec[0].done_if = "s3://b/{part}";
    assert_int_equal(rows_task(&l.st[0], &row, WALL, &t), ROWS_UNCHECKED);
    row.names = 1;
    assert_int_equal(rows_task(&l.st[0], &row, WALL, &t), ROWS_READY);
    for (int s = 0; s < TASK_STATE_COUNT; s++) {
        row.state = (enum task_state)s;
        assert_int_equal(rows_task(&l.st[0], &row, WALL, &t), s == TASK_WAITING ? ROWS_READY
                                                              : s == TASK_HELD  ? ROWS_HELD
                                                                                : ROWS_NO_QUEUE);
    }
    life_world_done(&l);
}

static void test_rows_read__a_part_waits_in_one_place(void **state)
{
    (void)state;
    struct life_world l;
    life_world_init(&l, 1);
    const struct ready_queue_task t = {.task_id = 1, .seq = 9};
    l.lc->seen_tasks = 10;
    l.st[0].loaded = 9; /* its row is still to be read */
    rows_part_waits(l.lc, &l.st[0], &t);
    assert_int_equal(ready_queue_n(l.st[0].ready), 0);
    assert_false(rows_fresh(l.lc));
    l.st[0].loaded = l.lc->seen_tasks = 10;
    campaign_rest(l.lc);
    rows_part_waits(l.lc, &l.st[0], &t);
    assert_false(l.lc->rests);
    assert_int_equal(ready_queue_n(l.st[0].ready), 1);
    assert_true(rows_fresh(l.lc));
    life_world_done(&l);
}

static void test_rows_read__which_campaigns_are_read_again(void **state)
{
    (void)state;
    struct life_world l;
    life_world_init(&l, 1);
    l.lc->row.version = l.lc->tried_version = 5;
    l.lc->seen_tasks = 10;
    struct campaign_version v = {.id = 9, .version = 5, .tasks = 10};
    assert_true(rows_moved(NULL, &v));
    assert_false(rows_moved(l.lc, &v));
    v.tasks = 11;
    assert_true(rows_moved(l.lc, &v));
    assert_false(rows_new_wish(l.lc, &v));
    v = (struct campaign_version){.id = 9, .version = 6, .tasks = 10};
    assert_true(rows_moved(l.lc, &v));
    assert_true(rows_new_wish(l.lc, &v));
    assert_false(rows_new_wish(l.lc, &v)); /* heard */
    v.version = 4;                         /* commits do not come in version order */
    assert_true(rows_moved(l.lc, &v));
    life_world_done(&l);
}

static void test_rows_read__a_refresh_takes_what_people_write(void **state)
{
    (void)state;
    struct life_world l;
    life_world_init(&l, 1);
    struct live_campaign *lc = l.lc;
    lc->row.spent_musd = 7;
    lc->budget_short = lc->budget_spent = lc->waits_for_person = true;
    struct campaign_row now = {.wanted = WANTED_PAUSE,
                               .priority = 3,
                               .parts_limit = 4,
                               .cap_musd = 5,
                               .at_limit = AT_LIMIT_DRAIN,
                               .weight = 6,
                               .version = 8,
                               .state = CAMPAIGN_FAILED,
                               .warn = {.n = 1}};
    lc->stages[0].no_start_until_us = 9;
    campaign_rest(lc);
    rows_refresh_campaign(lc, &now);
    assert_false(lc->rests);
    assert_int_equal(lc->stages[0].no_start_until_us, 0);
    assert_false(lc->budget_short || lc->budget_spent || lc->waits_for_person);
    lc->stages[0].no_start_until_us = 9;
    lc->budget_short = lc->budget_spent = lc->waits_for_person = true;
    rows_refresh_campaign(lc, &now); /* new parts alone */
    assert_int_equal(lc->stages[0].no_start_until_us, 9);
    assert_true(lc->budget_short && lc->budget_spent && lc->waits_for_person);
    assert_int_equal(lc->row.wanted, WANTED_PAUSE);
    assert_int_equal(lc->row.priority, 3);
    assert_int_equal(lc->row.parts_limit, 4);
    assert_int_equal(lc->row.cap_musd, 5);
    assert_int_equal(lc->row.at_limit, AT_LIMIT_DRAIN);
    assert_int_equal(lc->row.weight, 6);
    assert_int_equal(lc->row.version, 8);
    assert_int_equal(lc->row.warn.n, 1);
    assert_int_equal(lc->row.state, CAMPAIGN_RUNNING); /* the leader's own */
    assert_int_equal(lc->row.spent_musd, 7);
    struct live_stage *ls = &l.st[0];
    const struct stage_row stage = {.tasks = 12,
                                    .closed = true,
                                    .input = INPUT_REFUSED,
                                    .input_problem = "AccessDenied",
                                    .cap_musd = 2,
                                    .per_task_musd = 3,
                                    .parts_limit = 4,
                                    .resumes = 5,
                                    .resumes_taken = 9,
                                    .warn = {.n = 2},
                                    .state = STAGE_FAILED};
    ls->row.closed = false;
    ls->cap_short = WAIT_STAGE_BUDGET;
    rows_refresh_stage(ls, &stage);
    assert_true(ls->row.closed);
    assert_int_equal(ls->row.input, INPUT_REFUSED);
    assert_string_equal(ls->row.input_problem, "AccessDenied");
    assert_int_equal(ls->row.taken, 12);
    assert_int_equal(ls->cap_short, WAIT_NONE); /* it may have been raised */
    assert_int_equal(ls->row.cap_musd, 2);
    assert_int_equal(ls->row.per_task_musd, 3);
    assert_int_equal(ls->row.parts_limit, 4);
    assert_int_equal(ls->row.resumes, 5);
    assert_int_equal(ls->row.resumes_taken, 0);
    assert_int_equal(ls->row.warn.n, 2);
    assert_int_equal(ls->row.state, STAGE_RUNNING);
    life_world_done(&l);
}

static void projects(struct leader_state *s, musd_t cap_of_4)
{
    const struct project_row rows[] = {{.id = 0, .cap_musd = -1},
                                       {.id = 3, .cap_musd = -1},
                                       {.id = 4, .cap_musd = cap_of_4},
                                       {.id = 6, .cap_musd = -1}};
    rows_refresh_projects(s, rows, 4);
}

static void test_rows_read__a_cap_that_moved_lets_campaigns_go_on(void **state)
{
    (void)state;
    struct life_world l;
    life_world_init(&l, 1);
    struct leader_state *s = &l.w.s;
    assert_true(rows_project_known(s, 4));
    assert_false(rows_project_known(s, 5));
    l.lc->budget_short = true;
    projects(s, -1);
    assert_true(l.lc->budget_short); /* nothing moved */
    campaign_rest(l.lc);
    projects(s, 9);
    assert_false(l.lc->budget_short || l.lc->rests);
    assert_int_equal(leader_state_project(s, 4)->cap_musd, 9);
    assert_true(rows_project_known(s, 6));
    life_world_done(&l);
}

static void test_rows_read__slots(void **state)
{
    (void)state;
    struct life_world l;
    life_world_init(&l, 1);
    struct leader_state *s = &l.w.s;
    struct slots_row row = {.instance_type = "ml.a.large",
                            .market = MARKET_ON_DEMAND,
                            .held = 4,
                            .warm_idle = 2,
                            .foreign = 3,
                            .foreign_us = 77,
                            .refused_limit = 20,
                            .operator_limit = 8,
                            .price_musd_per_hour = 5};
    rows_slots(s, &row, 1, WALL);
    const struct live_slots *a = leader_state_slots(s, "ml.a.large", MARKET_ON_DEMAND);
    assert_int_equal(a->s.held, 4);
    assert_int_equal(a->s.warm_idle, 2);
    assert_int_equal(a->s.foreign, 3);
    assert_int_equal(a->s.foreign_us, 77);
    assert_int_equal(a->s.refused_limit, 20);
    assert_int_equal(a->s.operator_limit, 8);
    assert_int_equal(a->s.price_musd_per_hour, 5);
    assert_int_equal(a->kept_foreign, 3); /* as in its row: not written again */
    assert_int_equal(a->kept_limit, 20);
    assert_int_equal(a->probe_us, WALL);
    row.price_musd_per_hour = 6;
    row.held = 9;
    rows_prices(s, &row, 1);
    a = leader_state_slots(s, "ml.a.large", MARKET_ON_DEMAND);
    assert_int_equal(a->s.price_musd_per_hour, 6);
    assert_int_equal(a->s.held, 4); /* held is ours */
    const struct slot_limit_row limit = {.instance_type = "ml.b.large", .limit = 1};
    rows_slot_limits(s, &limit, 1);
    assert_int_equal(leader_state_slots(s, "ml.b.large", limit.market)->s.operator_limit, 1);
    a = leader_state_slots(s, "ml.a.large", MARKET_ON_DEMAND);
    assert_int_equal(a->s.operator_limit, -1);
    life_world_done(&l);
}

static void test_rows_read__a_look_at_a_campaign(void **state)
{
    (void)state;
    static const struct {
        bool known, wish, tasks, parked;
        enum rows_look look;
    } rows[] = {
        {false, false, false, false, ROWS_TAKE}, {false, false, false, true, ROWS_LEAVE},
        {true, false, false, false, ROWS_LEAVE}, {true, false, true, false, ROWS_REFRESH},
        {true, false, true, true, ROWS_LEAVE},   {true, true, false, false, ROWS_REFRESH},
        {true, true, false, true, ROWS_REFRESH}, /* a wish is tried at once */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct life_world l;
        life_world_init(&l, 1);
        struct campaign_version v = {.id = rows[i].known ? 9 : 99, .version = 5, .tasks = 10};
        const struct parking_subject who = PARKING_CAMPAIGN(v.id);
        l.lc->row.version = l.lc->tried_version = rows[i].wish ? 4 : 5;
        l.lc->seen_tasks = rows[i].tasks ? 9 : 10;
        if (rows[i].parked) {
            (void)parking_failed(&l.w.s, &who, TX_REFUSED, BOOT);
        }
        l.w.s.decide = false;
        assert_int_equal(rows_look(&l.w.s, &v, BOOT), rows[i].look);
        assert_int_equal(l.w.s.decide, rows[i].look != ROWS_LEAVE);
        rows_refreshed(l.lc, &v, false);
        assert_true(rows_moved(l.lc, &v)); /* its parts are read at the next look */
        assert_false(rows_fresh(l.lc));
        campaign_rest(l.lc);
        rows_refreshed(l.lc, &v, true);
        assert_false(l.lc->rests); /* a plan looks at its new parts */
        assert_true(rows_fresh(l.lc));
        assert_int_equal(l.lc->seen_tasks, 10);
        life_world_done(&l);
    }
}

static void test_rows_read__a_spec_is_read_again(void **state)
{
    (void)state;
    struct life_world l;
    static struct spec spec;
    life_world_init(&l, 1);
    struct parking_subject who = PARKING_CAMPAIGN(9);
    assert_false(rows_spec_due(&l.w.s, l.lc, BOOT)); /* it could be read */
    l.lc->spec_unreadable = true;
    assert_true(rows_spec_due(&l.w.s, l.lc, BOOT));
    (void)parking_failed(&l.w.s, &who, TX_REFUSED, BOOT);
    assert_false(rows_spec_due(&l.w.s, l.lc, BOOT));
    parking_drop(&l.w.s, 9);
    l.lc->seen_tasks = -1; /* its parts first */
    assert_false(rows_spec_due(&l.w.s, l.lc, BOOT));
    l.lc->row.state = CAMPAIGN_CANCELLED; /* nobody reads those any more */
    assert_true(rows_spec_due(&l.w.s, l.lc, BOOT));
    l.lc->row.state = CAMPAIGN_RUNNING;
    l.lc->seen_tasks = l.st[0].loaded = 10;
    (void)leader_world_attempt(&l.w, 4, 1); /* of campaign 7 */
    int64_t others = l.w.ls->breaker.live;
    l.w.lc = l.lc;
    l.w.ls = &l.st[0];
    (void)leader_world_attempt(&l.w, 5, 1);
    breaker_init(&l.st[0].breaker); /* read anew */
    l.w.s.decide = false;
    assert_false(rows_spec_read(&l.w.s, l.lc, true)); /* still unreadable */
    assert_true(l.lc->spec_unreadable && !l.w.s.decide);
    assert_int_equal(l.st[0].breaker.live, 0);
    rows_set_spec(l.lc, &spec);
    assert_false(rows_spec_read(&l.w.s, l.lc, false)); /* its stages' histories were not read */
    assert_true(l.lc->spec_unreadable && l.lc->spec == NULL && !l.w.s.decide);
    breaker_init(&l.st[0].breaker);
    campaign_rest(l.lc);
    rows_set_spec(l.lc, &spec);
    assert_false(l.lc->rests);
    campaign_rest(l.lc);
    assert_true(rows_spec_read(&l.w.s, l.lc, true));
    assert_false(l.lc->rests);
    assert_true(!l.lc->spec_unreadable && l.w.s.decide);
    assert_int_equal(l.st[0].breaker.live, 1); /* its own attempt, once */
    assert_int_equal(l.w.s.campaigns[0]->stages[0].breaker.live, others);
    assert_int_equal(l.st[0].loaded, 0); /* its parts are queued anew: by the spec */
    assert_int_equal(ready_queue_n(l.st[0].ready), 0);
    assert_false(rows_fresh(l.lc));
    l.lc->spec = NULL;
    life_world_done(&l);
}

/* Somebody has changed a row: what overflows or cannot be is as if it were not known. */
static void test_rows_read__figures_that_nobody_writes(void **state)
{
    (void)state;
    struct life_world l;
    life_world_init(&l, 1);
    struct leader_state *s = &l.w.s;
    struct slots_row row = {.instance_type = "ml.a.large",
                            .market = MARKET_ON_DEMAND,
                            .held = INT64_MAX,
                            .warm_idle = INT64_MAX,
                            .foreign = INT64_MAX,
                            .foreign_us = INT64_MAX,
                            .refused_limit = INT64_MAX,
                            .operator_limit = INT64_MAX,
                            .price_musd_per_hour = INT64_MAX};
    rows_slots(s, &row, 1, WALL);
    const struct live_slots *a = leader_state_slots(s, "ml.a.large", MARKET_ON_DEMAND);
    int64_t most = INT64_MAX / 8; /* so many can be added up */
    assert_true(a->s.held < most && a->s.warm_idle < most && a->s.foreign < most &&
                a->s.refused_limit < most && a->s.operator_limit < most);
    assert_true(a->s.held > 1000000 && a->s.warm_idle > 1000000); /* nothing starts on it */
    assert_int_equal(a->s.foreign_us, WALL);
    assert_int_equal(a->s.price_musd_per_hour, -1);
    row.price_musd_per_hour = 1000000 * MUSD_PER_USD;
    rows_prices(s, &row, 1);
    a = leader_state_slots(s, "ml.a.large", MARKET_ON_DEMAND);
    assert_int_equal(a->s.price_musd_per_hour, 1000000 * MUSD_PER_USD);
    const struct slot_limit_row limit = {.instance_type = "ml.a.large", .limit = INT64_MAX};
    rows_slot_limits(s, &limit, 1);
    assert_true(leader_state_slots(s, "ml.a.large", limit.market)->s.operator_limit < most);
    struct ready_queue_task t;
    const struct task_row task = {.id = 5, .not_before_us = INT64_MIN, .state = TASK_WAITING};
    assert_int_equal(rows_task(&l.st[0], &task, WALL, &t), ROWS_READY);
    assert_int_equal(t.not_before_us, 0);
    life_world_done(&l);
}

static void test_rows_read__a_price_that_moves_is_tried(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct slots_row row = {.price_musd_per_hour = 7 * USD};
    (void)snprintf(row.instance_type, sizeof row.instance_type, "ml.a.large");
    rows_prices(&w.s, &row, 1);
    for (int i = 0; i < 2; i++) {
        w.lc->budget_short = true;
        w.ls->cap_short = i == 0 ? WAIT_STAGE_BUDGET : WAIT_PART_BUDGET;
        campaign_rest(w.lc);
        rows_prices(&w.s, &row, 1); /* as it was */
        assert_true(w.lc->budget_short && w.lc->rests && w.ls->cap_short != WAIT_NONE);
        row.price_musd_per_hour -= USD;
        rows_prices(&w.s, &row, 1);
        assert_false(w.lc->budget_short || w.lc->rests);
        assert_int_equal(w.ls->cap_short, WAIT_NONE);
    }
    leader_world_done(&w);
}

/* Somebody has changed the name of a stage, or rows of it are gone. */
static void test_rows_read__stages_that_the_spec_does_not_have(void **state)
{
    (void)state;
    struct life_world l;
    struct err err = ERR_INIT;
    struct spec_stage stages[] = {{.name = "s0"}, {.name = "s1"}};
    struct spec spec = {.stages = {&stages[0], &stages[1]}, .stages_n = 2};
    life_world_init(&l, 2);
    struct stage_row rows[] = {l.st[0].row, l.st[1].row};
    assert_true(rows_fit_spec(&spec, rows, 2, &err));
    assert_false(rows_fit_spec(&spec, rows, 1, &err));
    assert_non_null(strstr(err.message, "1 stages have rows"));
    (void)snprintf(rows[1].name, sizeof rows[1].name, "cosmic");
    err = (struct err)ERR_INIT;
    assert_false(rows_fit_spec(&spec, rows, 2, &err));
    assert_non_null(strstr(err.message, "stage 91 is named 'cosmic'"));
    rows[1].id = 7; /* not in memory: left alone */
    rows_name_stages(l.lc, rows, 2);
    assert_string_equal(l.st[1].row.name, "s1");
    rows[1].id = 91;
    rows_name_stages(l.lc, rows, 2);
    assert_string_equal(l.st[1].row.name, "cosmic");
    life_world_done(&l);
}

static void test_rows_read__parts_and_jobs_that_have_lost_their_place(void **state)
{
    (void)state;
    struct life_world l;
    struct err err = ERR_INIT;
    life_world_init(&l, 1);
    l.st[0].row.counts[TASK_HELD] = 3; /* beside ten that wait */
    assert_true(rows_parts_fit(&l.st[0], 13, &err));
    assert_false(rows_parts_fit(&l.st[0], 14, &err));
    err = (struct err)ERR_INIT;
    assert_false(rows_parts_fit(&l.st[0], 12, &err));
    assert_non_null(strstr(err.message, "13 parts of stage 90 wait by its counters, and 12"));
    l.st[0].loaded = 1; /* the others were read before */
    assert_true(rows_parts_fit(&l.st[0], 12, &err));
    struct attempt_row row = {.stage_id = 90};
    assert_true(rows_attempt_placed(l.lc, &row, &err));
    row.stage_id = 91;
    assert_false(rows_attempt_placed(l.lc, &row, &err));
    life_world_done(&l);
}

static void test_rows_read__instants_that_cannot_be(void **state)
{
    (void)state;
    const usec_t now = INT64_C(1800000000) * USEC_PER_SEC;
    const usec_t hour = 3600 * USEC_PER_SEC, never = INT64_C(253402300799999999);
    struct endpoint_row e = {.intended_us = now - 5 * hour, .created_us = now - 4 * hour};
    struct endpoint_row as_told = e;
    rows_endpoint_times(&e, now);
    assert_memory_equal(&e, &as_told, sizeof e); /* 0 stays: not yet */
    e.created_us = never;
    e.in_service_us = e.deleting_us = e.served_us = 1;
    rows_endpoint_times(&e, now);
    assert_int_equal(e.created_us, e.intended_us);
    assert_int_equal(e.in_service_us, e.intended_us);
    assert_int_equal(e.deleting_us, e.intended_us);
    assert_int_equal(e.served_us, e.intended_us);
    assert_int_equal(e.off_us, 0);
    struct filesystem_row f = {.intended_us = never, .created_us = 1, .available_us = never};
    rows_filesystem_times(&f, now);
    assert_int_equal(f.intended_us, now);
    assert_int_equal(f.created_us, now);
    assert_int_equal(f.available_us, now);
    f = (struct filesystem_row){.intended_us = now - hour,
                                .created_us = now - hour - 60 * USEC_PER_SEC};
    rows_filesystem_times(&f, now); /* clocks differ */
    assert_int_equal(f.created_us, now - hour - 60 * USEC_PER_SEC);
    f.intended_us = 1;
    rows_filesystem_times(&f, now);
    assert_int_equal(f.intended_us, now);
    rows_endpoint_times(&as_told, now - 48 * hour); /* a takeover by a clock that is behind */
    assert_int_equal(as_told.intended_us, now - 5 * hour);
    assert_int_equal(as_told.created_us, now - 4 * hour);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_read__stages_whose_tasks_are_read),
        cmocka_unit_test(test_rows_read__a_stage_and_its_campaign_enter_memory),
        cmocka_unit_test(test_rows_read__who_waits_for_a_person_at_takeover),
        cmocka_unit_test(test_rows_read__new_parts_are_counted_once),
        cmocka_unit_test(test_rows_read__a_back_off_of_a_row_is_bounded),
        cmocka_unit_test(test_rows_read__where_a_task_waits),
        cmocka_unit_test(test_rows_read__a_part_waits_in_one_place),
        cmocka_unit_test(test_rows_read__which_campaigns_are_read_again),
        cmocka_unit_test(test_rows_read__a_refresh_takes_what_people_write),
        cmocka_unit_test(test_rows_read__a_cap_that_moved_lets_campaigns_go_on),
        cmocka_unit_test(test_rows_read__slots),
        cmocka_unit_test(test_rows_read__a_look_at_a_campaign),
        cmocka_unit_test(test_rows_read__a_spec_is_read_again),
        cmocka_unit_test(test_rows_read__figures_that_nobody_writes),
        cmocka_unit_test(test_rows_read__a_price_that_moves_is_tried),
        cmocka_unit_test(test_rows_read__stages_that_the_spec_does_not_have),
        cmocka_unit_test(test_rows_read__parts_and_jobs_that_have_lost_their_place),
        cmocka_unit_test(test_rows_read__instants_that_cannot_be),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("rows read", tests, NULL, NULL);
}
