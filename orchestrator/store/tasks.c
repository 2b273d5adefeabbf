/* Tasks in bulk: sorted ids, one guarded UPDATE, counters and one event by the batch. */
#include "common/banned.h"
#include "common/clock.h"
#include "leader.h"
#include "queries.h"
#include "store_private.h"
#include "tx.h"

#define TASKS_MOVE_MAX 100000

static int compare_ids(const void *a, const void *b)
{
    int64_t x;
    int64_t y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* ids in ascending order without doubles into `to`; how many. In order already is the usual case.
 */
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

struct moved { /* what an UPDATE ... RETURNING id, seq touched */
    size_t n;
    int32_t first_seq, last_seq;
};

static struct moved read_moved(const PGresult *r, int64_t *ret_ids)
{
    struct moved m = {.n = (size_t)row_count(r), .first_seq = INT32_MAX, .last_seq = -1};
    for (size_t i = 0; i < m.n; i++) {
        int32_t seq = row_int(r, (int)i, 1);
        m.first_seq = MIN(m.first_seq, seq);
        m.last_seq = MAX(m.last_seq, seq);
        if (ret_ids != NULL) {
            ret_ids[i] = row_i64(r, (int)i, 0);
        }
    }
    return m;
}

static bool count_moved(struct store *s, int64_t stage_id, enum task_state from, enum task_state to,
                        enum cause cause, const struct moved *m, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, stage_id);
    param_i16(&p, (int16_t)from);
    param_i16(&p, (int16_t)to);
    param_i64(&p, (int64_t)m->n);
    param_text(&p, task_state_name(from));
    param_text(&p, task_state_name(to));
    param_i32(&p, m->first_seq);
    param_i32(&p, m->last_seq);
    param_text(&p, cause == CAUSE_NONE ? "" : cause_name(cause));
    int64_t events = 0;
    if (!store_run(s, QUERY(TASKS_MOVED), &p, &events, err)) {
        return false;
    }
    s->events = true;
    return events == 1
               ? true
               : err_set(err, ERR_DATABASE, "stage %lld has no counters", (long long)stage_id);
}

static bool drop_failures(struct store *s, const int64_t *ids, size_t n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64_array(&p, ids, n);
    return store_run(s, QUERY(TASKS_FAILURES_DROP), &p, NULL, err);
}

bool store_tasks_move(struct store *s, int64_t campaign_id, int64_t stage_id, enum task_state from,
                      enum task_state to, enum cause cause, const int64_t *ids, size_t n,
                      size_t *ret_moved, int64_t *ret_ids, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    ASSERT(n <= TASKS_MOVE_MAX);
    if (!task_edge(from, to)) {
        return err_set(err, ERR_INTERNAL, "tasks: no edge from %s to %s", task_state_name(from),
                       task_state_name(to));
    }
    AUTO_FREE int64_t *sorted = xmalloc((n + 1) * sizeof *sorted);
    size_t sorted_n = sort_ids(ids, n, sorted);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, stage_id);
    param_i64_array(&p, sorted, sorted_n);
    param_i16(&p, (int16_t)from);
    param_i16(&p, (int16_t)to);
    param_i16(&p, (int16_t)cause);
    param_i64(&p, clock_wall_us());
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(TASKS_MOVE), &p, &r, err)) {
        return false;
    }
    struct moved m = read_moved(r, ret_ids);
    if (m.n > 0 && (!count_moved(s, stage_id, from, to, cause, &m, err) ||
                    (from == TASK_FAILED && !drop_failures(s, sorted, sorted_n, err)))) {
        return false;
    }
    *ret_moved = m.n;
    return true;
}

static bool retry_rest(struct store *s, int64_t campaign_id, int64_t stage_id,
                       const struct moved *m, const int64_t *ids, int volume_gb, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64_array(&p, ids, m->n);
    param_i32(&p, volume_gb);
    return drop_failures(s, ids, m->n, err) &&
           store_run(s, QUERY(TASKS_RETRY_CHANGE), &p, NULL, err) &&
           count_moved(s, stage_id, TASK_FAILED, TASK_WAITING, CAUSE_NONE, m, err);
}

bool store_tasks_retry(struct store *s, int64_t campaign_id, int64_t stage_id, const int64_t *ids,
                       size_t n, int volume_gb, size_t *ret_moved, int64_t *ret_ids,
                       struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    ASSERT(n <= TASKS_MOVE_MAX && volume_gb >= 0);
    AUTO_FREE int64_t *sorted = xmalloc((n + 1) * sizeof *sorted);
    AUTO_FREE int64_t *moved_ids = xmalloc((n + 1) * sizeof *moved_ids);
    size_t sorted_n = sort_ids(ids, n, sorted);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, stage_id);
    param_i64_array(&p, sorted, sorted_n);
    param_i64(&p, clock_wall_us());
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(TASKS_RETRY), &p, &r, err)) {
        return false;
    }
    struct moved m = read_moved(r, moved_ids);
    if (m.n > 0 && !retry_rest(s, campaign_id, stage_id, &m, moved_ids, volume_gb, err)) {
        return false;
    }
    if (ret_ids != NULL) {
        memcpy(ret_ids, moved_ids, m.n * sizeof *ret_ids);
    }
    *ret_moved = m.n;
    return true;
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
        return err_set(err, ERR_CONFLICT, "stage %lld has no tasks up to %lld to take in",
                       (long long)stage_id, (long long)upto);
    }
    s->events = true;
    return true;
}
