/* Aim: what is carried out leaves nothing that cannot go on. Method: every cell of the table of
 * verbs is carried out on a campaign made by hand, and its life goes on until nothing moves. */
#include "core/leader/operations.h"
#include "core/leader/rows_read.h"
#include "life_world.h"

/* `n` failed parts of a stage whose tasks were read, as rows. */
static void failed_rows(struct live_stage *ls, size_t n, struct task_row *rows, int64_t *ids)
{
    ls->loaded = (int64_t)n;
    for (size_t i = 0; i < n; i++) {
        rows[i] = (struct task_row){.id = ls->row.id * 100 + (int64_t)i,
                                    .stage_id = ls->row.id,
                                    .seq = (int32_t)i,
                                    .state = TASK_FAILED,
                                    .size = INT64_C(50) * 1024 * 1024};
        ids[i] = rows[i].id;
    }
}

/* The campaign's life goes on after each cell: no edge is missing, no part is left waiting in a
 * stage that has ended, and a refused verb moves nothing. */
static void carry_out(enum verb v, enum campaign_state c, enum stage_state s)
{
    struct life_world l;
    struct operation_writes w;
    struct task_row rows[3];
    int64_t ids[3];
    life_world_init(&l, 3);
    life_stage_ended(&l.st[0], 0);
    l.st[0].row.state = STAGE_SUCCEEDED;
    life_stage_ended(&l.st[1], 3);
    l.st[1].row.state = s;
    l.st[2].row.state = s == STAGE_FAILED ? STAGE_SKIPPED : STAGE_BLOCKED;
    l.lc->row.state = c;
    failed_rows(&l.st[1], 3, rows, ids);
    operation_plan(l.lc, &l.st[1], &(struct operation_order){.verb = v}, &w);
    if (!verb_refused(w.answer)) {
        assert_true(!w.stage_reopens || stage_edge(s, STAGE_RUNNING));
        assert_true(!w.campaign_reopens || campaign_edge(c, CAMPAIGN_RUNNING));
        operation_apply(&l.w.s, l.lc, &w, rows, 3, ids, 3, WALL);
        assert_int_equal(ready_queue_n(l.st[1].ready), v == VERB_RETRY ? 3 : 0);
        assert_int_equal(l.st[1].row.counts[w.task_to], 3);
        assert_true(stage_state_terminal(s) || l.st[1].row.state == s); /* held stays held */
    }
    assert_true(life_settle(&l) < 50);
    bool waits = l.st[1].row.counts[TASK_WAITING] > 0;
    if (waits && stage_state_terminal(l.st[1].row.state)) {
        fail_msg("%s of a %s stage of a %s campaign: parts wait in a %s stage", verb_name(v),
                 stage_state_name(s), campaign_state_name(c), stage_state_name(l.st[1].row.state));
    }
    assert_false(waits && campaign_state_terminal(l.lc->row.state));
    life_world_done(&l);
}

static void test_operations__what_is_carried_out_can_go_on(void **state)
{
    (void)state;
    for (int v = VERB_RETRY; v <= VERB_SKIP; v++) {
        for (int c = 0; c < CAMPAIGN_STATE_COUNT; c++) {
            for (int s = 0; s < STAGE_STATE_COUNT; s++) {
                carry_out((enum verb)v, (enum campaign_state)c, (enum stage_state)s);
            }
        }
    }
}

static void test_operations__a_stage_within_allow_failed_is_reopened(void **state)
{
    (void)state;
    struct life_world l;
    struct operation_writes w;
    struct task_row rows[1];
    int64_t ids[1];
    life_world_init(&l, 2);
    l.spec[0].allow_failed_ppm = 100000;
    life_stage_ended(&l.st[0], 1);
    life_stage_ended(&l.st[1], 0);
    (void)life_settle(&l);
    assert_int_equal(l.lc->row.state, CAMPAIGN_SUCCEEDED);
    failed_rows(&l.st[0], 1, rows, ids);
    operation_plan(l.lc, &l.st[0], &(struct operation_order){.verb = VERB_RETRY}, &w);
    assert_true(w.stage_reopens && w.campaign_reopens);
    assert_true(w.stage_from == STAGE_SUCCEEDED && w.campaign_from == CAMPAIGN_SUCCEEDED);
    l.w.s.tries_unread = false;
    operation_apply(&l.w.s, l.lc, &w, rows, 1, ids, 1, WALL);
    assert_int_equal(l.st[0].row.state, STAGE_RUNNING);
    assert_true(l.w.s.tries_unread);
    assert_int_equal(l.st[1].row.state, STAGE_SUCCEEDED); /* it has run already */
    assert_int_equal(l.lc->row.state, CAMPAIGN_RUNNING);
    assert_int_equal(life_settle(&l), 0);
    life_stage_ended(&l.st[0], 0);
    (void)life_settle(&l);
    assert_int_equal(l.lc->row.state, CAMPAIGN_SUCCEEDED);
    life_world_done(&l);
}

static void test_operations__stages_skipped_after_a_failure_run_after_the_retry(void **state)
{
    (void)state;
    struct life_world l;
    struct operation_writes w;
    struct task_row rows[2];
    int64_t ids[2];
    life_world_init(&l, 3);
    life_stage_ended(&l.st[0], 2);
    (void)life_settle(&l);
    assert_int_equal(l.lc->row.state, CAMPAIGN_FAILED);
    assert_int_equal(l.st[2].row.state, STAGE_SKIPPED);
    failed_rows(&l.st[0], 2, rows, ids);
    l.st[0].breaker.tripped = true; /* it does not hold what has not run again */
    operation_plan(l.lc, &l.st[0], &(struct operation_order){.verb = VERB_RETRY}, &w);
    operation_apply(&l.w.s, l.lc, &w, rows, 2, ids, 2, WALL);
    (void)life_settle(&l);
    assert_int_equal(l.st[1].row.state, STAGE_BLOCKED);
    assert_int_equal(l.st[2].row.state, STAGE_BLOCKED);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(l.lc->row.state, CAMPAIGN_RUNNING);
        assert_int_equal(l.st[i].row.state, STAGE_RUNNING);
        life_stage_ended(&l.st[i], 0);
        (void)life_settle(&l);
    }
    assert_int_equal(l.lc->row.state, CAMPAIGN_SUCCEEDED);
    life_world_done(&l);
}

static void test_operations__skipping_what_failed_lets_the_next_stage_run(void **state)
{
    (void)state;
    struct life_world l;
    struct operation_writes w;
    struct task_row rows[2];
    int64_t ids[2];
    life_world_init(&l, 2);
    life_stage_ended(&l.st[0], 2);
    (void)life_settle(&l);
    failed_rows(&l.st[0], 2, rows, ids);
    operation_plan(l.lc, &l.st[0], &(struct operation_order){.verb = VERB_SKIP}, &w);
    operation_apply(&l.w.s, l.lc, &w, rows, 2, ids, 2, WALL);
    assert_int_equal(l.st[0].row.counts[TASK_SKIPPED], 2);
    assert_int_equal(ready_queue_n(l.st[0].ready), 0);
    (void)life_settle(&l);
    assert_int_equal(l.st[0].row.state, STAGE_SUCCEEDED);
    assert_int_equal(l.st[1].row.state, STAGE_RUNNING);
    life_world_done(&l);
}

static void test_operations__a_held_stage_stays_held(void **state)
{
    (void)state;
    struct life_world l;
    struct operation_writes w;
    struct task_row rows[3];
    int64_t ids[3];
    life_world_init(&l, 1);
    l.st[0].row.state = STAGE_HELD;
    l.lc->row.state = CAMPAIGN_HELD;
    l.st[0].row.counts[TASK_FAILED] = 3;
    (void)snprintf(l.st[0].row.reason, sizeof l.st[0].row.reason, "breaker");
    failed_rows(&l.st[0], 3, rows, ids);
    operation_plan(l.lc, &l.st[0], &(struct operation_order){.verb = VERB_RETRY}, &w);
    assert_false(w.stage_reopens || w.campaign_reopens);
    operation_apply(&l.w.s, l.lc, &w, rows, 3, ids, 3, WALL);
    assert_int_equal(l.st[0].row.state, STAGE_HELD);
    assert_int_equal(l.lc->row.state, CAMPAIGN_HELD);
    assert_string_equal(l.st[0].row.reason, "breaker");
    assert_int_equal(ready_queue_n(l.st[0].ready), 3);
    life_world_done(&l);
}

/* Of an ended stage no task was read: the next look reads those that wait: queued once. */
static void test_operations__what_was_not_read_is_queued_by_the_next_look(void **state)
{
    (void)state;
    struct life_world l;
    struct operation_writes w;
    struct task_row rows[3];
    int64_t ids[3];
    struct ready_queue_task t;
    life_world_init(&l, 1);
    life_stage_ended(&l.st[0], 3);
    failed_rows(&l.st[0], 3, rows, ids);
    l.st[0].loaded = 1;
    l.st[0].row.taken = 3;
    l.lc->seen_tasks = 3;
    operation_plan(l.lc, &l.st[0], &(struct operation_order){.verb = VERB_RETRY}, &w);
    operation_apply(&l.w.s, l.lc, &w, rows, 3, ids, 3, WALL);
    assert_int_equal(l.st[0].row.counts[TASK_WAITING], 3);
    assert_true(ready_queue_pop(l.st[0].ready, WALL, &t));
    assert_int_equal(t.task_id, ids[0]);
    assert_false(ready_queue_pop(l.st[0].ready, WALL, &t));
    assert_true(rows_unloaded(&l.st[0]));
    assert_false(rows_fresh(l.lc)); /* the look reads them, though no row of the campaign changed */
    life_world_done(&l);
}

static void test_operations__memory_takes_over_only_what_was_written(void **state)
{
    (void)state;
    struct life_world l;
    struct operation_writes w;
    struct task_row rows[5];
    int64_t ids[5];
    struct ready_queue_task t;
    life_world_init(&l, 1);
    life_stage_ended(&l.st[0], 5);
    failed_rows(&l.st[0], 5, rows, ids);
    struct task_change_row *ch = leader_state_change(&l.w.s, ids[1], true);
    ch->tries[CAUSE_OOM] = 2;
    ch->same = 3;
    ch->volume_gb = 70;
    ch = leader_state_change(&l.w.s, ids[0], true);
    ch->tries[CAUSE_OOM] = 2;
    operation_plan(l.lc, &l.st[0], &(struct operation_order){.verb = VERB_RETRY}, &w);
    const int64_t moved[] = {ids[3], ids[1]}; /* the others had moved on */
    rows[1].size = INT64_C(1) << 52;
    operation_apply(&l.w.s, l.lc, &w, rows, 5, moved, 2, WALL);
    assert_int_equal(l.st[0].row.counts[TASK_FAILED], 3);
    assert_int_equal(l.st[0].row.counts[TASK_WAITING], 2);
    assert_true(ready_queue_pop(l.st[0].ready, WALL, &t));
    assert_int_equal(t.task_id, ids[1]);
    assert_true(t.size_mb == UINT32_MAX && t.seq == 1);
    assert_true(ready_queue_pop(l.st[0].ready, WALL, &t));
    assert_int_equal(t.task_id, ids[3]);
    assert_false(ready_queue_pop(l.st[0].ready, WALL, &t));
    ch = leader_state_change(&l.w.s, ids[1], false); /* counts start anew, the volume stays */
    assert_int_equal(ch->tries[CAUSE_OOM], 0);
    assert_int_equal(ch->same, 0);
    assert_int_equal(ch->volume_gb, 70);
    assert_int_equal(leader_state_change(&l.w.s, ids[0], false)->tries[CAUSE_OOM], 2);
    assert_null(leader_state_change(&l.w.s, ids[3], false));
    assert_true(l.w.s.look_at_db && l.w.s.decide);
    life_world_done(&l);
}

/* Carries out a retry of the first stage's only failed part; what it changed. */
static struct task_change_row *changed_by(struct life_world *l, const struct operation_order *order)
{
    struct operation_writes w;
    struct task_row rows[1];
    int64_t ids[1];
    life_stage_ended(&l->st[0], 1);
    failed_rows(&l->st[0], 1, rows, ids);
    operation_plan(l->lc, &l->st[0], order, &w);
    assert_false(verb_refused(w.answer));
    operation_apply(&l->w.s, l->lc, &w, rows, 1, ids, 1, WALL);
    return leader_state_change(&l->w.s, ids[0], false);
}

static void want_change(const struct task_change_row *ch, int rung, int volume_gb,
                        int64_t runtime_s)
{
    assert_non_null(ch);
    assert_int_equal(ch->campaign_id, 9);
    assert_int_equal(ch->instance_type_i, rung);
    assert_int_equal(ch->volume_gb, volume_gb);
    assert_int_equal(ch->max_runtime_s, runtime_s);
}

static void test_operations__a_retry_changes_what_it_names_and_keeps_the_rest(void **state)
{
    (void)state;
    struct life_world l;
    life_world_init(&l, 1);
    l.spec[0].instance_type[0] = "ml.c5.xlarge";
    l.spec[0].instance_type[1] = "ml.c5.18xlarge";
    l.spec[0].instance_type_n = 2;
    struct operation_order o = {.verb = VERB_RETRY};
    assert_null(changed_by(&l, &o));
    o.max_runtime_s = 14400;
    want_change(changed_by(&l, &o), 0, 0, 14400);
    o = (struct operation_order){.verb = VERB_RETRY, .volume_gb = 450};
    want_change(changed_by(&l, &o), 0, 450, 14400);
    o = (struct operation_order){.verb = VERB_RETRY, .instance_type = "ml.c5.18xlarge"};
    want_change(changed_by(&l, &o), 1, 450, 14400);
    o = (struct operation_order){.verb = VERB_RETRY};
    want_change(changed_by(&l, &o), 1, 450, 14400);
    o = (struct operation_order){.verb = VERB_RETRY, .instance_type = "ml.c5.xlarge"};
    want_change(changed_by(&l, &o), 0, 450, 14400); /* back to the first */
    life_world_done(&l);
}

static void test_operations__a_type_that_the_stage_does_not_list_is_refused(void **state)
{
    (void)state;
    struct life_world l;
    struct operation_writes w;
    const struct operation_order o = {.verb = VERB_RETRY, .instance_type = "ml.c5.1"};
    life_world_init(&l, 1);
    l.spec[0].instance_type[0] = "ml.c5.18xlarge";
    l.spec[0].instance_type_n = 1;
    l.st[0].row.state = STAGE_FAILED;
    assert_int_equal(operation_next(true, &o, l.lc, &l.st[0], &w), OPERATION_IS_REFUSED);
    assert_int_equal(w.answer, VERB_NO_SUCH_TYPE);
    assert_true(!w.stage_reopens && !w.campaign_reopens && verb_refusal(w.answer)[0] != '\0');
    assert_int_equal(operation_rung(&l.spec[0], "ml.c5.18xlarge"), 0);
    l.st[0].spec = NULL; /* the campaign's file cannot be read */
    assert_int_equal(operation_next(true, &o, l.lc, &l.st[0], &w), OPERATION_IS_REFUSED);
    life_world_done(&l);
}

/* `n` parts of a stage wait, in their queue. */
static void waiting_rows(struct life_world *l, size_t n, struct task_row *rows, int64_t *ids)
{
    struct live_stage *ls = &l->st[0];
    failed_rows(ls, n, rows, ids);
    memset(ls->row.counts, 0, sizeof ls->row.counts);
    ls->row.counts[TASK_WAITING] = (int64_t)n;
    ls->row.taken = ls->row.tasks = (int64_t)n;
    for (size_t i = 0; i < n; i++) {
        rows[i].state = TASK_WAITING;
        ready_queue_push(ls->ready, &(struct ready_queue_task){
                                        .task_id = ids[i], .seq = (uint32_t)i, .size_mb = 50});
    }
}

static void change(struct life_world *l, enum verb v, const struct task_row *rows, size_t n,
                   const int64_t *moved, size_t moved_n)
{
    struct operation_writes w;
    operation_plan(l->lc, &l->st[0], &(struct operation_order){.verb = v}, &w);
    assert_false(verb_refused(w.answer) || w.stage_reopens || w.campaign_reopens);
    assert_int_equal(w.task_from, verb_parts_from(v));
    operation_apply(&l->w.s, l->lc, &w, rows, n, moved, moved_n, WALL);
}

static void test_operations__held_parts_start_when_they_are_released(void **state)
{
    (void)state;
    struct life_world l;
    struct task_row rows[5];
    int64_t ids[5];
    struct ready_queue_task t;
    life_world_init(&l, 1);
    waiting_rows(&l, 5, rows, ids);
    struct live_stage *ls = &l.st[0];
    const int64_t held[] = {ids[1], ids[3]}; /* another one had started */
    change(&l, VERB_HOLD, rows + 1, 3, held, 2);
    assert_int_equal(ls->row.counts[TASK_HELD], 2);
    assert_int_equal(ready_queue_n(ls->held), 2);
    assert_int_equal(ready_queue_n(ls->ready), 3);
    while (ready_queue_pop(ls->ready, WALL, &t)) {
        assert_true(t.task_id != ids[1] && t.task_id != ids[3]);
    }
    task_counts_move(l.lc, ls, TASK_WAITING, TASK_SKIPPED, 3);
    assert_int_equal(life_settle(&l), 0); /* the stage does not end without them */
    change(&l, VERB_RELEASE, rows + 1, 3, held, 2);
    assert_int_equal(ready_queue_n(ls->held), 0);
    assert_int_equal(ls->row.counts[TASK_WAITING], 2);
    for (int i = 1; i <= 3; i += 2) {
        assert_true(ready_queue_pop(ls->ready, WALL, &t));
        assert_int_equal(t.task_id, ids[i]);
        assert_int_equal(t.size_mb, 50);
    }
    life_world_done(&l);
}

static void test_operations__a_released_part_is_asked_about_as_before(void **state)
{
    (void)state;
    struct life_world l;
    struct task_row rows[3];
    int64_t ids[3], picked[3];
    life_world_init(&l, 1);
    l.spec[0].done_if = "s3://b/{part}";
    waiting_rows(&l, 3, rows, ids);
    struct live_stage *ls = &l.st[0];
    ready_queue_clear(ls->ready);
    ready_queue_push(ls->unchecked, &(struct ready_queue_task){.task_id = ids[1], .seq = 1});
    ready_queue_push(ls->unchecked, &(struct ready_queue_task){.task_id = ids[2], .seq = 2});
    /* The first one is asked about: it does not move before its answer has come. */
    assert_int_equal(operation_pick(rows, 3, ids, 1, picked), 2);
    assert_int_equal(picked[0], ids[1]);
    change(&l, VERB_HOLD, rows, 2, picked, 2);
    assert_int_equal(ready_queue_n(ls->unchecked), 0);
    change(&l, VERB_RELEASE, rows, 2, picked, 2);
    assert_int_equal(ready_queue_n(ls->unchecked), 2);
    assert_int_equal(ready_queue_n(ls->ready) + ready_queue_n(ls->held), 0);
    /* A part that was not read yet is read by the next look, in the state of its row. */
    ls->loaded = 0;
    l.lc->seen_tasks = 3;
    change(&l, VERB_HOLD, rows, 2, picked, 2);
    assert_int_equal(ready_queue_n(ls->unchecked) + ready_queue_n(ls->held), 0);
    assert_false(rows_fresh(l.lc));
    life_world_done(&l);
}

static void test_operations__what_cannot_be_read_is_not_carried_out(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *changes;
        bool ok;
        int volume_gb;
        int64_t max_runtime_s;
        const char *type;
    } cases[] = {
        {"retry", NULL, true, 0, 0, ""},
        {"skip", "{}", true, 0, 0, ""},
        {"hold", "{}", true, 0, 0, ""},
        {"release", NULL, true, 0, 0, ""},
        {"retry", "{\"volume_gb\":2400}", true, 2400, 0, ""},
        {"retry", "{\"max_runtime\":14400}", true, 0, 14400, ""},
        {"retry", "{\"max_runtime\":\"4h\",\"volume_gb\":9}", true, 9, 14400, ""},
        {"retry", "{\"max_runtime\":2419200}", true, 0, 2419200, ""},
        {"retry", "{\"instance_type\":\"ml.x\"}", true, 0, 0, "ml.x"},
        {.kind = "retry", .changes = "{\"volume_gb\":0}"},
        {.kind = "retry", .changes = "{\"volume_gb\":16385}"},
        {.kind = "retry", .changes = "{\"volume_gb\":\"10\"}"},
        {.kind = "retry", .changes = "{\"max_runtime\":0}"},
        {.kind = "retry", .changes = "{\"max_runtime\":2419201}"},
        {.kind = "retry", .changes = "{\"max_runtime\":\"29d\"}"},
        {.kind = "retry", .changes = "{\"max_runtime\":\"\"}"},
        {.kind = "retry", .changes = "{\"max_runtime\":\"soon\"}"},
        {.kind = "retry", .changes = "{\"max_runtime\":1.5}"},
        {.kind = "retry", .changes = "{\"instance_type\":\"\"}"},
        {.kind = "retry", .changes = "{\"instance_type\":5}"},
        {.kind = "retry", .changes = "{\"instance_type\":\"ml.0123456789.0123456789.0123456789\"}"},
        {.kind = "retry", .changes = "{\"hosts\":8}"}, /* a newer version's */
        {.kind = "retry", .changes = "{"},
        {.kind = "retry", .changes = "[]"},
        {.kind = "pause", .changes = "{}"},
        {.kind = "explode", .changes = "{}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct operation_order o;
        struct err err = ERR_INIT;
        struct operation_row row = {.id = 5};
        (void)snprintf(row.kind, sizeof row.kind, "%s", cases[i].kind);
        row.changes_json = cases[i].changes != NULL ? xstrdup(cases[i].changes) : NULL;
        assert_int_equal(operation_read(&row, &o, &err), cases[i].ok);
        if (cases[i].ok) {
            assert_int_equal(o.volume_gb, cases[i].volume_gb);
            assert_int_equal(o.max_runtime_s, cases[i].max_runtime_s);
            assert_string_equal(o.instance_type, cases[i].type);
            assert_int_equal(o.verb, verb_parse(cases[i].kind));
        }
        free(row.changes_json);
    }
}

static void test_operations__one_stage_at_a_time(void **state)
{
    (void)state;
    struct task_row rows[] = {{.id = 1, .stage_id = 7},
                              {.id = 2, .stage_id = 8},
                              {.id = 3, .stage_id = 7},
                              {.id = 4, .stage_id = 9}};
    struct retried_row back[] = {{.task_id = 1, .stage_id = 7},
                                 {.task_id = 2, .stage_id = 8},
                                 {.task_id = 3, .stage_id = 7, .volume_gb = 5},
                                 {.task_id = 4, .stage_id = 7, .state = TASK_HELD}};
    int64_t ids[4], back_ids[4];
    assert_int_equal(operation_pick(rows, 4, NULL, 0, ids), 2);
    assert_true(rows[0].id == 1 && rows[1].id == 3);
    assert_true(ids[0] == 1 && ids[1] == 3);
    assert_int_equal(operation_pick(rows, 0, NULL, 0, ids), 0);
    assert_int_equal(operation_undo_pick(back, 4, back_ids), 2); /* and of one state */
    assert_true(back_ids[0] == 1 && back_ids[1] == 3 && back[1].volume_gb == 5);
    assert_int_equal(operation_undo_pick(back, 0, back_ids), 0);
}

/* Ten parts of each of two stages are read; more are posted. */
static void test_operations__a_hold_waits_until_its_parts_are_read(void **state)
{
    (void)state;
    struct life_world l;
    life_world_init(&l, 2);
    struct operation_row op = {.kind = "hold", .posted = 21};
    assert_true(operation_parts_unread(l.lc, &op));
    assert_false(
        operation_parts_unread(l.lc, &(struct operation_row){.kind = "retry", .posted = 21}));
    rows_take_parts(&l.st[1], 11);
    assert_false(operation_parts_unread(l.lc, &op));
    l.st[0].row.tasks = 14; /* nobody reads more of a stage that has ended */
    op.posted = 25;
    assert_true(operation_parts_unread(l.lc, &op));
    l.st[0].row.state = STAGE_CANCELLED;
    assert_false(operation_parts_unread(l.lc, &op));
    op.posted = 99;
    l.lc->row.state = CAMPAIGN_CANCELLED;
    assert_false(operation_parts_unread(l.lc, &op));
    life_world_done(&l);
}

static void test_operations__what_becomes_of_an_operation(void **state)
{
    (void)state;
    struct life_world l;
    life_world_init(&l, 1);
    const struct operation_order retry = {.verb = VERB_RETRY, .volume_gb = 40};
    struct operation_writes w;
    struct live_stage *ls = &l.st[0];
    assert_int_equal(operation_next(true, &retry, l.lc, ls, &w), OPERATION_MOVES);
    assert_int_equal(w.changes.volume_gb, 40);
    assert_int_equal(w.changes.instance_type_i, -1);
    assert_int_equal(operation_next(true, &retry, l.lc, NULL, &w), OPERATION_IS_DONE);
    assert_false(verb_refused(w.answer));
    assert_int_equal(operation_next(false, &retry, l.lc, NULL, &w), OPERATION_UNREADABLE);
    l.lc->row.wanted = WANTED_CANCEL;
    assert_int_equal(operation_next(true, &retry, l.lc, ls, &w), OPERATION_IS_REFUSED);
    assert_int_equal(w.answer, VERB_CANCELLING);
    assert_int_equal(operation_next(true, &retry, l.lc, NULL, &w), OPERATION_IS_DONE);
    assert_int_equal(operation_ends_as(OPERATION_MOVES), OPERATION_RUNNING);
    assert_int_equal(operation_ends_as(OPERATION_IS_DONE), OPERATION_DONE);
    assert_int_equal(operation_ends_as(OPERATION_IS_REFUSED), OPERATION_CANCELLED);
    assert_int_equal(operation_ends_as(OPERATION_UNREADABLE), OPERATION_CANCELLED);
    life_world_done(&l);
}

/* Three failed parts are retried and two of them undone: the campaign goes on for the third. When
 * that, which people hold by then, is undone as well, all has ended as before. */
static void test_operations__an_undo_ends_what_the_retry_had_opened(void **state)
{
    (void)state;
    struct life_world l;
    struct operation_writes w;
    struct task_row rows[3];
    struct retried_row back[3] = {{.volume_gb = 60}, {.max_runtime_s = 9}, {0}};
    int64_t ids[3];
    life_world_init(&l, 2);
    life_stage_ended(&l.st[0], 3);
    l.st[0].row.state = STAGE_FAILED;
    l.st[1].row.state = STAGE_SKIPPED;
    l.lc->row.state = CAMPAIGN_FAILED;
    l.lc->row.wanted = WANTED_CANCEL; /* too late */
    failed_rows(&l.st[0], 3, rows, ids);
    operation_plan(l.lc, &l.st[0], &(struct operation_order){.verb = VERB_RETRY, .volume_gb = 90},
                   &w);
    operation_apply(&l.w.s, l.lc, &w, rows, 3, ids, 3, WALL);
    assert_true(life_settle(&l) < 50 && l.st[1].row.state == STAGE_BLOCKED);
    for (int i = 0; i < 3; i++) {
        back[i].task_id = ids[i];
        back[i].stage_id = l.st[0].row.id;
    }
    l.w.s.look_at_db = false;
    operation_undo_apply(&l.w.s, l.lc, back, 3, ids, 0);
    assert_false(l.w.s.look_at_db); /* nothing was written */
    operation_undo_apply(&l.w.s, l.lc, back, 3, ids + 1, 2);
    assert_true(l.w.s.look_at_db && l.w.s.decide);
    assert_true(ready_queue_n(l.st[0].ready) == 1 && l.st[0].row.counts[TASK_FAILED] == 2);
    want_change(leader_state_change(&l.w.s, ids[0], false), 0, 90, 0);
    want_change(leader_state_change(&l.w.s, ids[1], false), 0, 0, 9);
    assert_true(life_settle(&l) < 50 && l.lc->row.state == CAMPAIGN_RUNNING);
    operation_plan(l.lc, &l.st[0], &(struct operation_order){.verb = VERB_HOLD}, &w);
    operation_apply(&l.w.s, l.lc, &w, rows, 1, ids, 1, WALL);
    back[0].state = TASK_HELD;
    operation_undo_apply(&l.w.s, l.lc, back, 1, ids, 1);
    want_change(leader_state_change(&l.w.s, ids[0], false), 0, 60, 0);
    assert_int_equal(ready_queue_n(l.st[0].ready) + ready_queue_n(l.st[0].held), 0);
    assert_int_equal(l.st[0].row.counts[TASK_WAITING] + l.st[0].row.counts[TASK_HELD], 0);
    assert_true(life_settle(&l) < 50 && l.st[0].row.state == STAGE_FAILED);
    assert_true(l.st[1].row.state == STAGE_SKIPPED && l.lc->row.state == CAMPAIGN_FAILED);
    life_world_done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations__what_is_carried_out_can_go_on),
        cmocka_unit_test(test_operations__a_stage_within_allow_failed_is_reopened),
        cmocka_unit_test(test_operations__stages_skipped_after_a_failure_run_after_the_retry),
        cmocka_unit_test(test_operations__skipping_what_failed_lets_the_next_stage_run),
        cmocka_unit_test(test_operations__a_held_stage_stays_held),
        cmocka_unit_test(test_operations__what_was_not_read_is_queued_by_the_next_look),
        cmocka_unit_test(test_operations__memory_takes_over_only_what_was_written),
        cmocka_unit_test(test_operations__a_retry_changes_what_it_names_and_keeps_the_rest),
        cmocka_unit_test(test_operations__a_type_that_the_stage_does_not_list_is_refused),
        cmocka_unit_test(test_operations__held_parts_start_when_they_are_released),
        cmocka_unit_test(test_operations__a_released_part_is_asked_about_as_before),
        cmocka_unit_test(test_operations__what_cannot_be_read_is_not_carried_out),
        cmocka_unit_test(test_operations__one_stage_at_a_time),
        cmocka_unit_test(test_operations__a_hold_waits_until_its_parts_are_read),
        cmocka_unit_test(test_operations__what_becomes_of_an_operation),
        cmocka_unit_test(test_operations__an_undo_ends_what_the_retry_had_opened),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("operations", tests, NULL, NULL);
}
