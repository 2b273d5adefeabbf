/* Bulk changes of tasks: sorted ids, one guarded UPDATE, counters and one event per batch. */
#include "tasks.h"
#include "common/clock.h"
#include "queries.h"
#include "store/pg/connection_private.h"
#include "store/pg/tx.h"

#define TASKS_MOVE_MAX 100000
#define RUNS_MAX       8

static int compare_ids(const void *a, const void *b)
{
    int64_t x;
    int64_t y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Copy the ids to `to` in ascending order without duplicates; returns their number. Usually they
 * are already sorted. */
static size_t sort_ids(const int64_t *ids, size_t n, int64_t *to)
{
    bool sorted = true;
    for (size_t i = 0; i < n; i++) {
        to[i] = ids[i];
        sorted = sorted && (i == 0 || ids[i - 1] < ids[i]);
    }
    if (sorted) {
        return n;
    }
    qsort(to, n, sizeof *to, compare_ids);
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        if (out == 0 || to[out - 1] != to[i]) {
            to[out++] = to[i];
        }
    }
    return out;
}

struct task_move {
    int64_t campaign_id, stage_id;
    enum task_state from, to;
    enum cause cause;
    usec_t now_us;
    const int64_t *ids; /* sorted */
    size_t n;
    bool undone;
};

/* The event's range is the range of the batch. Tasks inside it that were not in `from` are not
 * counted. */
static bool count_moved(struct store *s, const struct task_move *m, size_t moved, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, m->stage_id);
    param_i16(&p, (int16_t)m->from);
    param_i16(&p, (int16_t)m->to);
    param_i64(&p, (int64_t)moved);
    param_text(&p, task_state_name(m->from));
    param_text(&p, task_state_name(m->to));
    param_i64(&p, m->ids[0]);
    param_i64(&p, m->ids[m->n - 1]);
    param_text(&p, m->cause == CAUSE_NONE ? "" : cause_name(m->cause));
    param_bool(&p, m->undone);
    int64_t events = 0;
    if (!store_run(s, QUERY(TASKS_MOVED), &p, &events, err)) {
        return false;
    }
    s->events = true;
    return events == 1
               ? true
               : err_set(err, ERR_DATABASE, "stage %lld has no counters", (long long)m->stage_id);
}

static void move_params(struct params *p, const struct task_move *m)
{
    param_i16(p, (int16_t)m->from);
    param_i16(p, (int16_t)m->to);
    param_i16(p, (int16_t)m->cause);
    param_i64(p, m->now_us);
}

/* Ends (exclusive) of the runs of consecutive ids; 0 when there are more than RUNS_MAX. */
static size_t find_runs(const struct task_move *m, size_t ends[static RUNS_MAX])
{
    size_t runs = 0;
    for (size_t i = 1; i <= m->n; i++) {
        if (i < m->n && m->ids[i] == m->ids[i - 1] + 1) {
            continue;
        }
        if (runs == RUNS_MAX) {
            return 0;
        }
        ends[runs++] = i;
    }
    return runs;
}

/* The same statements write the counters and events. */
static bool move_runs(struct store *s, const struct task_move *m, const size_t *ends, size_t runs,
                      size_t *ret_moved, struct err *err)
{
    struct params p[RUNS_MAX];
    struct statement st[RUNS_MAX];
    PGresult *r[RUNS_MAX];
    ASSERT(runs >= 1 && runs <= RUNS_MAX);
    for (size_t i = 0; i < runs; i++) {
        p[i] = (struct params)PARAMS_INIT;
        param_i64(&p[i], m->campaign_id);
        param_i64(&p[i], m->stage_id);
        param_i64(&p[i], m->ids[i == 0 ? 0 : ends[i - 1]]);
        param_i64(&p[i], m->ids[ends[i] - 1]);
        move_params(&p[i], m);
        param_text(&p[i], task_state_name(m->from));
        param_text(&p[i], task_state_name(m->to));
        param_text(&p[i], m->cause == CAUSE_NONE ? "" : cause_name(m->cause));
        st[i] = (struct statement){QUERY(TASKS_MOVE_RUN), &p[i]};
    }
    if (!store_pipeline(s, st, runs, r, err)) {
        return false;
    }
    int64_t moved = 0;
    for (size_t i = 0; i < runs; i++) {
        moved += row_i64(r[i], 0, 0);
    }
    results_clear(r, runs);
    s->events |= moved > 0;
    *ret_moved = (size_t)moved;
    return true;
}

static size_t read_ids(const PGresult *r, int64_t *ret_ids)
{
    int n = row_count(r);
    for (int i = 0; i < n; i++) {
        ret_ids[i] = row_i64(r, i, 0);
    }
    return (size_t)n;
}

static bool move_ids(struct store *s, const struct task_move *m, size_t *ret_moved,
                     int64_t *ret_ids, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, m->campaign_id);
    param_i64(&p, m->stage_id);
    param_i64_array(&p, m->ids, m->n);
    move_params(&p, m);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(TASKS_MOVE), &p, &r, err)) {
        return false;
    }
    size_t moved = (size_t)row_count(r);
    if (ret_ids != NULL) {
        (void)read_ids(r, ret_ids);
    }
    *ret_moved = moved;
    return moved == 0 || count_moved(s, m, moved, err);
}

static bool drop_failures(struct store *s, const int64_t *ids, size_t n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64_array(&p, ids, n);
    return store_run(s, QUERY(TASKS_FAILURES_DROP), &p, NULL, err);
}

/* They end without having started: no retry of them can be undone. */
static bool drop_retried(struct store *s, const int64_t *ids, size_t n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64_array(&p, ids, n);
    return store_run(s, QUERY(TASKS_RETRIED_DROP), &p, NULL, err);
}

bool store_tasks_move(struct store *s, int64_t campaign_id, int64_t stage_id, enum task_state from,
                      enum task_state to, enum cause cause, const int64_t *ids, size_t n,
                      size_t *ret_moved, int64_t *ret_ids, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    ASSERT(n <= TASKS_MOVE_MAX && to != TASK_FAILED);
    if (!task_edge(from, to)) {
        return err_set(err, ERR_INTERNAL, "tasks: no edge from %s to %s", task_state_name(from),
                       task_state_name(to));
    }
    AUTO_FREE int64_t *sorted = xmalloc((n + 1) * sizeof *sorted);
    struct task_move m = {campaign_id,     stage_id, from, to,   cause,
                          clock_wall_us(), sorted,   0,    false};
    m.n = sort_ids(ids, n, sorted);
    size_t moved = 0;
    if (m.n > 0) {
        /* Most ids are consecutive; a range needs one index descent instead of one per task. */
        size_t ends[RUNS_MAX];
        size_t runs = ret_ids == NULL ? find_runs(&m, ends) : 0;
        if (!(runs > 0 ? move_runs(s, &m, ends, runs, &moved, err)
                       : move_ids(s, &m, &moved, ret_ids, err))) {
            return false;
        }
    }
    if (moved > 0 && from == TASK_FAILED && !drop_failures(s, sorted, m.n, err)) {
        return false;
    }
    if (moved > 0 && from != TASK_FAILED && task_state_terminal(to) &&
        !drop_retried(s, sorted, m.n, err)) {
        return false;
    }
    *ret_moved = moved;
    return true;
}

bool store_tasks_fail(struct store *s, int64_t campaign_id, int64_t stage_id, enum cause cause,
                      const char *message, const int64_t *ids, size_t n, size_t *ret_moved,
                      struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    ASSERT(n <= TASKS_MOVE_MAX && cause != CAUSE_NONE);
    AUTO_FREE int64_t *failed = xmalloc((n + 1) * sizeof *failed);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, stage_id);
    param_i64_array(&p, ids, n);
    param_i16(&p, (int16_t)cause);
    param_text(&p, message);
    param_i64(&p, clock_wall_us());
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(TASKS_FAIL), &p, &r, err)) {
        return false;
    }
    struct task_move m = {.campaign_id = campaign_id,
                          .stage_id = stage_id,
                          .from = TASK_WAITING,
                          .to = TASK_FAILED,
                          .cause = cause,
                          .ids = failed,
                          .n = read_ids(r, failed)};
    *ret_moved = m.n;
    return m.n == 0 || (drop_retried(s, failed, m.n, err) && count_moved(s, &m, m.n, err));
}

static bool retry_rest(struct store *s, const struct task_move *moved,
                       const struct task_changes *changes, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, moved->campaign_id);
    param_i64_array(&p, moved->ids, moved->n);
    param_i32(&p, changes->volume_gb);
    param_i32(&p, changes->instance_type_i);
    param_i64(&p, changes->max_runtime_s);
    return drop_failures(s, moved->ids, moved->n, err) &&
           store_run(s, QUERY(TASKS_RETRY_CHANGE), &p, NULL, err) &&
           count_moved(s, moved, moved->n, err);
}

static bool retry_keep(struct store *s, const struct task_move *m, int64_t operation_id,
                       struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, m->campaign_id);
    param_i64(&p, m->stage_id);
    param_i64_array(&p, m->ids, m->n);
    param_i64(&p, operation_id);
    return store_run(s, QUERY(TASKS_RETRY_KEEP), &p, NULL, err);
}

bool store_tasks_retry(struct store *s, int64_t campaign_id, int64_t stage_id, const int64_t *ids,
                       size_t n, const struct task_changes *changes, size_t *ret_moved,
                       int64_t *ret_ids, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    ASSERT(n <= TASKS_MOVE_MAX);
    AUTO_FREE int64_t *sorted = xmalloc((n + 1) * sizeof *sorted);
    AUTO_FREE int64_t *told = xmalloc((n + 1) * sizeof *told);
    struct task_move m = {.campaign_id = campaign_id,
                          .stage_id = stage_id,
                          .from = TASK_FAILED,
                          .to = TASK_WAITING,
                          .cause = CAUSE_NONE};
    m.n = sort_ids(ids, n, sorted);
    m.ids = sorted;
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, stage_id);
    param_i64_array(&p, sorted, m.n);
    param_i64(&p, clock_wall_us());
    AUTO_RESULT PGresult *r = NULL;
    if (!retry_keep(s, &m, changes->operation_id, err) ||
        !store_exec(s, QUERY(TASKS_RETRY), &p, &r, err)) {
        return false;
    }
    m.n = sort_ids(told, read_ids(r, told), sorted);
    if (m.n > 0 && !retry_rest(s, &m, changes, err)) {
        return false;
    }
    if (ret_ids != NULL) {
        memcpy(ret_ids, sorted, m.n * sizeof *ret_ids);
    }
    *ret_moved = m.n;
    return true;
}

bool store_tasks_undo(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t operation_id,
                      enum task_state from, const int64_t *ids, size_t n, size_t *ret_moved,
                      int64_t *ret_ids, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    ASSERT(n <= TASKS_MOVE_MAX);
    struct task_move m = {.campaign_id = campaign_id,
                          .stage_id = stage_id,
                          .from = from,
                          .to = TASK_FAILED,
                          .cause = CAUSE_NONE,
                          .ids = ret_ids,
                          .undone = true};
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, stage_id);
    param_i64_array(&p, ids, n);
    param_i64(&p, operation_id);
    param_i64(&p, clock_wall_us());
    param_i16(&p, (int16_t)from);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(TASKS_UNDO), &p, &r, err)) {
        return false;
    }
    m.n = *ret_moved = read_ids(r, ret_ids);
    return m.n == 0 || count_moved(s, &m, m.n, err);
}

bool store_stage_take(struct store *s, int64_t stage_id, int64_t upto, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, stage_id);
    param_i64(&p, upto);
    int64_t n = 0;
    if (!store_run(s, QUERY(STAGE_TAKE), &p, &n, err)) {
        return false;
    }
    if (n != 1) {
        return err_set(err, ERR_CONFLICT, "stage %lld has no new tasks up to %lld",
                       (long long)stage_id, (long long)upto);
    }
    s->events = true;
    return true;
}
