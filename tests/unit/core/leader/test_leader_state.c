/* Aim: an attempt is found by its id and by its job's name, whatever came and went before; what
 * comes into view is read whole; a setter takes no move that is no edge of its table, and no count
 * that cannot be. Method: hundreds of attempts by hand, half of them removed; every pair of states
 * and a table of counts, each false one in a process of its own, which must end. */
#include "leader_world.h"

#define MANY 300

static void test_leader_state__attempts_by_name(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_attempt *all[MANY];
    leader_world_init(&w);
    assert_null(leader_state_attempt_named(&w.s, "d-7-shards-1-a1-00000000"));
    w.ls->row.counts[TASK_WAITING] = MANY;
    for (int i = 0; i < MANY; i++) {
        all[i] = leader_world_attempt(&w, i + 1, 1);
    }
    for (int i = 0; i < MANY; i += 2) {
        leader_state_remove_attempt(&w.s, all[i]);
    }
    for (int i = 0; i < MANY; i++) {
        char name[64];
        struct live_attempt *want = i % 2 == 0 ? NULL : all[i];
        (void)snprintf(name, sizeof name, "d-7-shards-%d-a1-00000000", i + 1);
        assert_ptr_equal(leader_state_attempt_named(&w.s, name), want);
        assert_ptr_equal(leader_state_attempt(&w.s, i + 1), want);
    }
    assert_null(leader_state_attempt_named(&w.s, ""));
    assert_null(leader_state_attempt_named(&w.s, "d-7-shards-2-a1-00000001"));
    leader_state_clear(&w.s);
    assert_null(leader_state_attempt_named(&w.s, "d-7-shards-2-a1-00000000"));
    leader_state_done(&w.s);
}

/* What passed while somebody else led is no step of the clock. */
static void test_leader_state__clocks_are_not_kept(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    w.s.clock = (struct leader_clock){.known = true, .ahead_us = WALL, .aws_ahead_us = SEC};
    leader_state_clear(&w.s);
    assert_false(w.s.clock.known);
    assert_int_equal(w.s.clock.aws_ahead_us, 0);
    leader_world_done(&w);
}

static void test_leader_state__earlier_tries_of_a_campaign_in_view_are_read(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    assert_false(w.s.tries_unread);
    (void)leader_world_campaign(&w, 8, 3);
    assert_true(w.s.tries_unread);
    leader_world_done(&w);
}

static void test_leader_state__what_changes_a_campaign_wakes_it(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    assert_false(w.lc->rests); /* a new one */
    assert_int_equal(w.s.awake->n, 1);
    campaign_rest(w.lc);
    assert_int_equal(w.s.awake->n, 0);
    campaign_set_state(w.lc, CAMPAIGN_HELD);
    assert_false(w.lc->rests);
    campaign_rest(w.lc);
    stage_set_state(w.lc, w.ls, STAGE_HELD);
    assert_false(w.lc->rests);
    campaign_rest(w.lc);
    task_counts_move(w.lc, w.ls, TASK_WAITING, TASK_CANCELLED, 1);
    assert_false(w.lc->rests);
    campaign_rest(w.lc);
    struct live_pool *p = leader_world_pool(&w, 5, POOL_EXPECTED, NULL);
    assert_false(w.lc->rests);
    assert_int_equal(w.lc->pools_n, 1);
    leader_state_remove_pool(&w.s, p);
    assert_int_equal(w.lc->pools_n, 0);
    leader_state_drop_campaign(&w.s, w.lc);
    assert_int_equal(w.s.awake->n, 0);
    leader_world_done(&w);
}

/* One move of a setter, made in a child when it is false. */
static struct {
    struct leader_world w;
    struct live_attempt attempt;
    struct live_pool pool;
    struct live_endpoint endpoint;
    struct live_filesystem filesystem;
    struct live_slots slots;
    int from, to;
    int64_t n;
} m;

static void move_campaign(void)
{
    m.w.lc->row.state = (enum campaign_state)m.from;
    campaign_set_state(m.w.lc, (enum campaign_state)m.to);
}

static void move_stage(void)
{
    m.w.ls->row.state = (enum stage_state)m.from;
    stage_set_state(m.w.lc, m.w.ls, (enum stage_state)m.to);
}

static void move_attempt(void)
{
    m.attempt.row.state = (enum attempt_state)m.from;
    attempt_set_state(&m.attempt, (enum attempt_state)m.to);
}

static void move_pool(void)
{
    m.pool.row.state = (enum pool_state)m.from;
    pool_set_state(&m.pool, (enum pool_state)m.to);
}

static void move_endpoint(void)
{
    m.endpoint.row.state = (enum endpoint_state)m.from;
    endpoint_set_state(&m.endpoint, (enum endpoint_state)m.to);
}

static void move_filesystem(void)
{
    m.filesystem.row.state = (enum filesystem_state)m.from;
    filesystem_set_state(&m.filesystem, (enum filesystem_state)m.to);
}

/* Ten tasks are in `from`. */
static void move_tasks(void)
{
    memset(m.w.ls->row.counts, 0, sizeof m.w.ls->row.counts);
    m.w.ls->row.counts[m.from] = 10;
    m.w.lc->live = m.from == TASK_ACTIVE ? 10 : 0;
    task_counts_move(m.w.lc, m.w.ls, (enum task_state)m.from, (enum task_state)m.to, m.n);
}

#define EDGE_OF(what)                                                                              \
    static bool what##_may(int from, int to)                                                       \
    {                                                                                              \
        return what##_edge((enum what##_state)from, (enum what##_state)to);                        \
    }
EDGE_OF(campaign)
EDGE_OF(stage)
EDGE_OF(attempt)
EDGE_OF(pool)
EDGE_OF(endpoint)
EDGE_OF(filesystem)
EDGE_OF(task)

static void test_leader_state__setters_refuse_what_is_no_edge(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int n;
        bool (*may)(int from, int to);
        void (*move)(void);
        bool stays; /* a state may be set once more */
    } setters[] = {
        {"campaign", CAMPAIGN_STATE_COUNT, campaign_may, move_campaign, false},
        {"stage", STAGE_STATE_COUNT, stage_may, move_stage, false},
        {"attempt", ATTEMPT_STATE_COUNT, attempt_may, move_attempt, true},
        {"pool", POOL_STATE_COUNT, pool_may, move_pool, false},
        {"endpoint", ENDPOINT_STATE_COUNT, endpoint_may, move_endpoint, true},
        {"file system", FILESYSTEM_STATE_COUNT, filesystem_may, move_filesystem, true},
        {"tasks", TASK_STATE_COUNT, task_may, move_tasks, true},
    };
    leader_world_init(&m.w);
    m.n = 3;
    for (size_t i = 0; i < ARRAY_LEN(setters); i++) {
        for (m.from = 0; m.from < setters[i].n; m.from++) {
            for (m.to = 0; m.to < setters[i].n; m.to++) {
                char what[64];
                bool may = setters[i].may(m.from, m.to) || (setters[i].stays && m.from == m.to);
                if (may) {
                    setters[i].move();
                } else {
                    (void)snprintf(what, sizeof what, "%s: %d to %d", setters[i].name, m.from,
                                   m.to);
                    unit_assert_aborts(setters[i].move, what, __FILE__, __LINE__);
                }
            }
        }
    }
    leader_world_done(&m.w);
}

/* Four instances are held, four are idle. */
static struct live_slots *some_slots(void)
{
    m.slots.s.held = m.slots.s.warm_idle = 4;
    return &m.slots;
}

static void hold(void)
{
    slots_hold(some_slots(), m.n);
}

static void release(void)
{
    slots_release(some_slots(), m.n);
}

static void idle(void)
{
    slots_idle(some_slots(), m.n);
}

static void idle_end(void)
{
    slots_idle_end(some_slots(), m.n);
}

static void add_tasks(void)
{
    task_counts_add(m.w.ls, m.n);
}

/* The campaign counts fewer that run than its stage does. */
static void end_uncounted(void)
{
    m.w.ls->row.counts[TASK_ACTIVE] = 10;
    m.w.lc->live = 2;
    task_counts_move(m.w.lc, m.w.ls, TASK_ACTIVE, TASK_DONE, m.n);
}

static void test_leader_state__setters_refuse_what_cannot_be_counted(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*fn)(void);
        int64_t n;
        bool may;
        int64_t held, idle; /* after it */
    } rows[] = {
        {"hold", hold, 1, true, 5, 4},
        {"hold none", hold, 0, false, 0, 0},
        {"hold fewer than none", hold, -1, false, 0, 0},
        {"release all", release, 4, true, 0, 4},
        {"release more than are held", release, 5, false, 0, 0},
        {"release none", release, 0, false, 0, 0},
        {"idle", idle, 2, true, 4, 6},
        {"idle none", idle, 0, false, 0, 0},
        {"no longer idle", idle_end, 4, true, 4, 0},
        {"more than are idle", idle_end, 5, false, 0, 0},
        {"none that is idle", idle_end, 0, false, 0, 0},
        {"all tasks of a state", move_tasks, 10, true, 4, 4},
        {"no task", move_tasks, 0, true, 4, 4},
        {"more tasks than are in a state", move_tasks, 11, false, 0, 0},
        {"fewer tasks than none", move_tasks, -1, false, 0, 0},
        {"more end than run", end_uncounted, 3, false, 0, 0},
        {"as many end as run", end_uncounted, 2, true, 4, 4},
        {"new tasks", add_tasks, 1, true, 4, 4},
        {"fewer new tasks than none", add_tasks, -1, false, 0, 0},
    };
    leader_world_init(&m.w);
    m.from = TASK_WAITING;
    m.to = TASK_ACTIVE;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        m.n = rows[i].n;
        (void)some_slots();
        if (!rows[i].may) {
            unit_assert_aborts(rows[i].fn, rows[i].name, __FILE__, __LINE__);
            continue;
        }
        rows[i].fn();
        assert_int_equal(m.slots.s.held, rows[i].held);
        assert_int_equal(m.slots.s.warm_idle, rows[i].idle);
    }
    leader_world_done(&m.w);
}

static void test_leader_state__a_campaign_brings_what_retries_changed(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    for (int64_t id = 2; id <= 8; id += 3) { /* 2, 5, 8 of another campaign */
        leader_state_change(&w.s, id, true)->campaign_id = 6;
    }
    leader_state_change(&w.s, 4, true)->campaign_id = 7; /* known already, and older */
    const struct task_change_row rows[] = {
        {.task_id = 1, .campaign_id = 7, .volume_gb = 10},
        {.task_id = 4, .campaign_id = 7, .volume_gb = 40},
        {.task_id = 6, .campaign_id = 7, .volume_gb = 60},
        {.task_id = 9, .campaign_id = 7, .volume_gb = 90},
    };
    leader_state_take_changes(&w.s, rows, 0);
    assert_int_equal(w.s.changes_n, 4);
    leader_state_take_changes(&w.s, rows, ARRAY_LEN(rows));
    static const int64_t ids[] = {1, 2, 4, 5, 6, 8, 9};
    assert_int_equal(w.s.changes_n, ARRAY_LEN(ids));
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        const struct task_change_row *c = &w.s.changes[i];
        assert_true(c->task_id == ids[i]);
        assert_true(c->volume_gb == (c->campaign_id == 7 ? 10 * ids[i] : 0));
    }
    leader_state_drop_campaign(&w.s, w.lc);
    assert_int_equal(w.s.changes_n, 3);
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leader_state__attempts_by_name),
        cmocka_unit_test(test_leader_state__clocks_are_not_kept),
        cmocka_unit_test(test_leader_state__earlier_tries_of_a_campaign_in_view_are_read),
        cmocka_unit_test(test_leader_state__what_changes_a_campaign_wakes_it),
        cmocka_unit_test(test_leader_state__a_campaign_brings_what_retries_changed),
        cmocka_unit_test(test_leader_state__setters_refuse_what_is_no_edge),
        cmocka_unit_test(test_leader_state__setters_refuse_what_cannot_be_counted),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
