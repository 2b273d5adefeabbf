/* Aim: what the leader writes for a verb that moves parts is what the table of verbs says, cell by
 * cell. Method: one database in a real cluster with a campaign for every cell of verb, state and
 * wish of the campaign, state of the stage; each is carried out as the controller does, a page a
 * transaction; SQL reads all rows, which are compared with operation_table.def itself. */
#include "core/leader/operations.h"
#include "store/leader/campaigns.h"
#include "store/leader/lease.h"
#include "store/leader/operations.h"
#include "store/leader/tasks.h"
#include "tests/kit/pg_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PARTS 1
#include "led_world.h"

#define MOVING   3 /* parts of each campaign that the verb finds; one more is done */
#define FIRST_ID 1000
#define TEXT_MAX (4 * 1024 * 1024)
#define WISHES   2 /* to run, to be cancelled */
#define VERBS    4
#define EACH_CELL(v, c, cancel, s)                                                                 \
    for (int v = 0; v < VERBS; v++)                                                                \
        for (int c = 0; c < CAMPAIGN_STATE_COUNT; c++)                                             \
            for (int cancel = 0; cancel < WISHES; cancel++)                                        \
                for (int s = 0; s < STAGE_STATE_COUNT; s++)

/* The verbs that move parts, in words of this test. */
static const struct {
    enum verb verb;
    const char *name;
    enum task_state from, to;
    bool tries_anew; /* its parts have a fresh count of attempts */
} verbs[VERBS] = {
    {VERB_RETRY, "retry", TASK_FAILED, TASK_WAITING, true},
    {VERB_SKIP, "skip", TASK_FAILED, TASK_SKIPPED, false},
    {VERB_HOLD, "hold", TASK_WAITING, TASK_HELD, false},
    {VERB_RELEASE, "release", TASK_HELD, TASK_WAITING, false},
};

#define CAMPAIGN_CANCELLING CAMPAIGN_STATE_COUNT
#define CAMPAIGN_GATED      (CAMPAIGN_STATE_COUNT + 1) /* this and the next: of the API alone */
#define CAMPAIGN_ARCHIVED   (CAMPAIGN_STATE_COUNT + 2)
#define X(verb, campaign, blocked, running, held, succeeded, failed, skipped, cancelled)           \
    [VERB_##verb][CAMPAIGN_##campaign] = {VERB_##blocked,   VERB_##running, VERB_##held,           \
                                          VERB_##succeeded, VERB_##failed,  VERB_##skipped,        \
                                          VERB_##cancelled},
static const enum verb_answer answers[VERB_COUNT][CAMPAIGN_STATE_COUNT + 3][STAGE_STATE_COUNT] = {
#include "core/leader/operation_table.def"
};
#undef X

static long long id_of(int v, int c, int cancel, int s)
{
    return FIRST_ID + ((v * CAMPAIGN_STATE_COUNT + c) * WISHES + cancel) * STAGE_STATE_COUNT + s;
}

static void make_cells(const char *db)
{
    struct buf b;
    buf_init(&b, TEXT_MAX);
    EACH_CELL(v, c, cancel, s)
    {
        buf_addf(&b, "%s(%lld, '%s', %d, '%s', '%s', '%s')",
                 id_of(v, c, cancel, s) > FIRST_ID ? "," : "", id_of(v, c, cancel, s),
                 verbs[v].name, (int)verbs[v].from, campaign_state_name((enum campaign_state)c),
                 cancel ? "cancel" : "run", stage_state_name((enum stage_state)s));
    }
    pg_sql(db,
           "CREATE TABLE cell (id bigint, verb text, part int, campaign text, wish text, stage "
           "text);"
           "INSERT INTO cell VALUES %s;"
           "INSERT INTO campaign (id, project_id, name, spec_text, spec, wanted) OVERRIDING SYSTEM "
           "VALUE SELECT id, 1, 'c', '', '{}', wish FROM cell;"
           "INSERT INTO stage (id, campaign_id, seq, name) OVERRIDING SYSTEM VALUE "
           "SELECT id, id, 0, 's' FROM cell;"
           "INSERT INTO campaign_run (campaign_id, state, taken_version, ended_at) SELECT id, "
           "campaign, 1, CASE WHEN campaign IN ('succeeded', 'failed', 'cancelled') THEN now() END "
           "FROM cell;"
           "INSERT INTO stage_input (stage_id, campaign_id, tasks, closed) "
           "SELECT id, id, 4, true FROM cell;"
           "INSERT INTO stage_run (stage_id, campaign_id, state, taken, waiting, held, failed, "
           "done, ended_at) SELECT id, id, stage, 4, 3 * (part = 0)::int, 3 * (part = 2)::int, "
           "3 * (part = 4)::int, 1, CASE WHEN stage IN ('succeeded', 'failed', 'skipped', "
           "'cancelled') THEN now() END FROM cell;"
           "INSERT INTO task (campaign_id, id, stage_id, seq, size, uri) "
           "SELECT id, id * 10 + g, id, g, 1, '' FROM cell, generate_series(0, 3) g;"
           "INSERT INTO task_run (campaign_id, id, stage_id, seq, state, attempts, names) SELECT "
           "id, id * 10 + g, id, g, CASE WHEN g = 3 THEN 3 ELSE part END, 2, 2 "
           "FROM cell, generate_series(0, 3) g;"
           "INSERT INTO task_failure (task_id, campaign_id, stage_id, seq, cause, final, "
           "signature, message) SELECT id, campaign_id, stage_id, seq, 7, true, 's', 'm' "
           "FROM task_run WHERE state = 4;"
           "INSERT INTO operation (id, campaign_id, kind, selector, total) OVERRIDING SYSTEM VALUE "
           "SELECT id, id, verb, '{}', 3 FROM cell",
           buf_cstr(&b));
    buf_done(&b);
}

struct verb_cell {
    struct live_campaign lc;
    struct live_stage ls;
    struct operation_row op;
    struct operation_order order;
};

static bool write_states(struct store *s, struct verb_cell *cell, const struct operation_writes *w,
                         struct err *err)
{
    return (!w->stage_reopens ||
            store_stage_state(s, w->stage_id, w->stage_from, STAGE_RUNNING, "", err)) &&
           (!w->campaign_reopens ||
            store_campaign_state(s, cell->lc.row.id, w->campaign_from, CAMPAIGN_RUNNING, "",
                                 cell->lc.row.version, err));
}

static bool write_tasks(struct store *s, struct verb_cell *cell, const struct operation_writes *w,
                        const int64_t *ids, size_t n, size_t *ret_moved, struct err *err)
{
    int64_t campaign = cell->lc.row.id;
    int64_t moved_ids[MOVING + 1];
    return w->verb == VERB_RETRY
               ? store_tasks_retry(s, campaign, w->stage_id, ids, n, &w->changes, ret_moved,
                                   moved_ids, err)
               : store_tasks_move(s, campaign, w->stage_id, w->task_from, w->task_to, CAUSE_NONE,
                                  ids, n, ret_moved, moved_ids, err);
}

/* One page, one transaction. */
static enum operation_then page(struct world *w, struct verb_cell *cell)
{
    struct err err = ERR_INIT;
    struct operation_writes wr;
    struct task_row rows[MOVING + 1];
    int64_t ids[MOVING + 1];
    size_t got = 0, moved = 0;
    begin(w);
    pg_good(operation_page(w->s, &cell->op, verb_parts_from(cell->order.verb), 0, MOVING + 1, rows,
                           &got, &err),
            &err);
    size_t n = operation_pick(rows, got, NULL, 0, ids);
    enum operation_then then =
        operation_next(true, &cell->order, &cell->lc, got > 0 ? &cell->ls : NULL, &wr);
    wr.changes.operation_id = cell->op.id;
    if (then == OPERATION_MOVES) {
        pg_good(write_states(w->s, cell, &wr, &err), &err);
        pg_good(write_tasks(w->s, cell, &wr, ids, n, &moved, &err), &err);
    }
    cell->op.done += (int64_t)moved;
    pg_good(
        store_operation_progress(w->s, cell->op.id, operation_ends_as(then), cell->op.done, &err),
        &err);
    pg_good(leader_commit(w->s, &err), &err);
    return then;
}

static void carry_out(struct world *w, int v, int c, int cancel, int s)
{
    int64_t id = id_of(v, c, cancel, s);
    char selector[] = "{}";
    struct verb_cell cell = {.op = {.id = id, .campaign_id = id, .selector_json = selector},
                             .order = {.verb = verbs[v].verb}};
    cell.lc.row = (struct campaign_row){.id = id,
                                        .version = 1,
                                        .state = (enum campaign_state)c,
                                        .wanted = cancel ? WANTED_CANCEL : WANTED_RUN};
    cell.ls.row = (struct stage_row){
        .id = id, .campaign_id = id, .state = (enum stage_state)s, .taken = MOVING + 1};
    int pages = 0;
    while (page(w, &cell) == OPERATION_MOVES) {
        assert_true(++pages < 3);
    }
}

/* What the rows of a cell are by the table, as READ_CELLS tells them. */
static void want_row(int v, int c, int cancel, int s, struct buf *b)
{
    bool cancelling = cancel && !campaign_state_terminal((enum campaign_state)c);
    enum verb_answer a = answers[verbs[v].verb][cancelling ? CAMPAIGN_CANCELLING : c][s];
    bool refused = a != VERB_CARRIED_OUT && a != VERB_REOPENS;
    /* A skipped stage waits for what it needs, so its own step of life reopens it. */
    bool stage = a == VERB_REOPENS && (s == STAGE_SUCCEEDED || s == STAGE_FAILED);
    bool campaign = a == VERB_REOPENS && (c == CAMPAIGN_SUCCEEDED || c == CAMPAIGN_FAILED);
    int n[TASK_STATE_COUNT] = {[TASK_DONE] = 1};
    n[refused ? verbs[v].from : verbs[v].to] = MOVING;
    int after_c = campaign ? CAMPAIGN_RUNNING : c;
    int after_s = stage ? STAGE_RUNNING : s;
    buf_addf(b, "%lld %s of a %s stage of a %s campaign%s: %s %s, ended %s %s, parts %d %d %d %d ",
             id_of(v, c, cancel, s), verbs[v].name, stage_state_name((enum stage_state)s),
             campaign_state_name((enum campaign_state)c), cancel ? " to cancel" : "",
             stage_state_name((enum stage_state)after_s),
             campaign_state_name((enum campaign_state)after_c),
             stage_state_terminal((enum stage_state)after_s) ? "t" : "f",
             campaign_state_terminal((enum campaign_state)after_c) ? "t" : "f", n[TASK_WAITING],
             n[TASK_HELD], n[TASK_FAILED], n[TASK_SKIPPED]);
    buf_addf(b, "%d, attempts %d, failures %d, %s %d, events %d %d %d\n", n[TASK_DONE],
             !refused && verbs[v].tries_anew ? 2 : 2 * (MOVING + 1), n[TASK_FAILED],
             refused ? "cancelled" : "done", refused ? 0 : MOVING, refused ? 0 : 1, stage,
             campaign);
}

#define READ_CELLS                                                                                 \
    "SELECT string_agg(format('%s %s of a %s stage of a %s campaign%s: %s %s, ended %s %s, parts " \
    "%s %s %s %s %s, attempts %s, failures %s, %s %s, events %s %s %s', l.id, l.verb, l.stage, "   \
    "l.campaign, CASE wish WHEN 'cancel' THEN ' to cancel' END, s.state, c.state, s.ended_at IS "  \
    "NOT NULL, c.ended_at IS NOT NULL, t.waiting, t.held, t.failed, t.skipped, t.done, t.tries, "  \
    "f.n, o.state, o.done, e.parts, e.stages, e.campaigns), E'\\n' ORDER BY l.id) || E'\\n' FROM " \
    "cell l JOIN stage_run s ON s.stage_id = l.id JOIN campaign_run c ON c.campaign_id = l.id "    \
    "JOIN operation o ON o.id = l.id CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE state = 0)" \
    " AS waiting, count(*) FILTER (WHERE state = 2) AS held, count(*) FILTER (WHERE state = 4) AS" \
    " failed, count(*) FILTER (WHERE state = 5) AS skipped, count(*) FILTER (WHERE state = 3) AS " \
    "done, sum(attempts) AS tries FROM task_run r WHERE r.campaign_id = l.id) t "                  \
    "LEFT JOIN LATERAL (SELECT count(*) AS n FROM task_failure x WHERE x.campaign_id = l.id) f ON" \
    " true LEFT JOIN LATERAL (SELECT count(*) FILTER (WHERE kind = 'part.state') AS parts, "       \
    "count(*) FILTER (WHERE kind = 'stage.state') AS stages, count(*) FILTER (WHERE kind = "       \
    "'campaign.state') AS campaigns FROM event y WHERE y.campaign_id = l.id) e ON true"

static void test_verbs__every_cell_of_the_table_is_what_is_written(void **state)
{
    struct world *w = *state;
    struct buf want;
    int cells = 0;
    make_cells(w->db);
    pg_check_counters(w->db);
    buf_init(&want, TEXT_MAX);
    EACH_CELL(v, c, cancel, s)
    {
        carry_out(w, v, c, cancel, s);
        want_row(v, c, cancel, s, &want);
        cells++;
    }
    AUTO_FREE char *got = pg_text(w->db, "%s", READ_CELLS);
    const char *a = got, *b = buf_cstr(&want);
    for (; *a != '\0' && *b != '\0'; a = strchr(a, '\n') + 1, b = strchr(b, '\n') + 1) {
        int a_n = (int)strcspn(a, "\n"), b_n = (int)strcspn(b, "\n");
        if (a_n != b_n || memcmp(a, b, (size_t)a_n) != 0) {
            fail_msg("written: %.*s\nwanted: %.*s", a_n, a, b_n, b);
        }
    }
    assert_true(*a == *b);
    assert_int_equal(cells, VERBS * CAMPAIGN_STATE_COUNT * WISHES * STAGE_STATE_COUNT);
    buf_done(&want);
    pg_check_counters(w->db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_verbs__every_cell_of_the_table_is_what_is_written,
                                        set_up, tear_down),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store verbs", tests, NULL, NULL);
}
