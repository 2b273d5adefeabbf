/* The waiting and held tasks of a stage, for a leader's queues: millions of them at a takeover.
 * Pages come as arrays side by side, since a row of its own for each task costs PostgreSQL more
 * than finding it; and while the server looks for what comes next, this side reads what it has. */
#include "queries.h"
#include "store/pg/query.h"
#include "view.h"

#define TASKS_PAGE   20000
#define TASKS_WINDOW 200000
#define DENSE_FACTOR 4 /* average id range per task above which a page reads its sizes by id */

struct task_page {
    int64_t campaign_id, stage_id, after_id, last_id;
    PGresult *tasks, *sizes;
    struct task_row *rows;
    size_t n;
    void (*cb)(void *ctx, const struct task_row *rows, size_t n);
    void *ctx;
    int64_t without; /* a task that has no input; 0: each has */
};

/* Ids of the first and the last task of [from_seq, to_seq). One that is missing is damage; those
 * between them are met when their sizes are read. */
static bool task_range(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t from_seq,
                       int64_t to_seq, int64_t *ret_first, int64_t *ret_last, struct err *err)
{
    *ret_first = 0;
    *ret_last = -1;
    if (from_seq >= to_seq) {
        return true;
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, stage_id);
    param_i32(&p, (int32_t)from_seq);
    param_i32(&p, (int32_t)MIN(to_seq, INT32_MAX));
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_TASKS_RANGE), &p, &r, err)) {
        return false;
    }
    if (row_null(r, 0, 0) || row_null(r, 0, 1)) {
        return err_set(err, ERR_DATABASE, "part %lld of stage %lld has no input",
                       (long long)(row_null(r, 0, 0) ? from_seq : to_seq - 1), (long long)stage_id);
    }
    *ret_first = row_i64(r, 0, 0);
    *ret_last = row_i64(r, 0, 1);
    return true;
}

/* Tasks that were tried, held or back off are few, or all: what is not 0 of them comes beside the
 * rest, in the same order. */
static void page_read(void *ctx)
{
    struct task_page *k = ctx;
    struct row_array id = row_array(k->tasks, 0, 0);
    struct row_array seq = row_array(k->tasks, 0, 1);
    struct row_array moved = row_array(k->tasks, 0, 2);
    struct row_array attempts = row_array(k->tasks, 0, 3);
    struct row_array names = row_array(k->tasks, 0, 4);
    struct row_array states = row_array(k->tasks, 0, 5);
    struct row_array not_before = row_array(k->tasks, 0, 6);
    size_t m = 0;
    for (size_t i = 0; i < k->n; i++) {
        struct task_row *t = &k->rows[i];
        *t = (struct task_row){.id = row_array_i64(&id, i),
                               .stage_id = k->stage_id,
                               .seq = (int32_t)row_array_i64(&seq, i)};
        if (m < moved.n && row_array_i64(&moved, m) == t->id) {
            t->attempts = (int16_t)row_array_i64(&attempts, m);
            t->names = (int16_t)row_array_i64(&names, m);
            t->state = (enum task_state)row_array_i64(&states, m);
            t->not_before_us = row_array_i64(&not_before, m);
            m++;
        }
    }
    ASSERT(m == moved.n);
}

/* Sizes are in the wide table. Both sides are in order of id. */
static void page_give(void *ctx)
{
    struct task_page *k = ctx;
    if (k->n == 0) {
        return;
    }
    struct row_array id = row_array(k->sizes, 0, 0);
    struct row_array size = row_array(k->sizes, 0, 1);
    size_t done = 0;
    for (size_t i = 0; i < id.n && done < k->n; i++) {
        if (row_array_i64(&id, i) == k->rows[done].id) {
            k->rows[done++].size = row_array_i64(&size, i);
        }
    }
    if (done < k->n) {
        k->without = k->rows[done].id;
    } else {
        k->cb(k->ctx, k->rows, k->n);
    }
}

/* Asks for the page behind the last one, and gives that. A window of ids bounds the work of one
 * statement when most tasks are done. */
static bool page_next(struct store *s, struct task_page *k, struct err *err)
{
    int64_t until = MIN(k->last_id, k->after_id + TASKS_WINDOW);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    PGresult *r = NULL;
    param_i64(&p, k->campaign_id);
    param_i64(&p, k->stage_id);
    param_i64(&p, k->after_id);
    param_i64(&p, until);
    param_i32(&p, TASKS_PAGE);
    if (!store_exec_while(s, QUERY(VIEW_TASKS), &p, page_give, k, &r, err)) {
        return false;
    }
    result_clearp(&k->tasks);
    k->tasks = r;
    struct row_array id = row_array(r, 0, 0);
    k->n = id.n;
    k->after_id = k->n < TASKS_PAGE ? until : row_array_i64(&id, k->n - 1);
    return true;
}

/* Asks for the sizes of the page, and reads its tasks. */
static bool page_sizes(struct store *s, struct task_page *k, struct err *err)
{
    struct row_array id = row_array(k->tasks, 0, 0);
    int64_t first = row_array_i64(&id, 0);
    int64_t last = row_array_i64(&id, k->n - 1);
    bool dense = (last - first) / DENSE_FACTOR < (int64_t)k->n;
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_FREE int64_t *ids = NULL;
    PGresult *r = NULL;
    param_i64(&p, k->campaign_id);
    if (dense) {
        param_i64(&p, k->stage_id);
        param_i64(&p, first);
        param_i64(&p, last);
    } else {
        ids = xmalloc(k->n * sizeof *ids);
        for (size_t i = 0; i < k->n; i++) {
            ids[i] = row_array_i64(&id, i);
        }
        param_i64_array(&p, ids, k->n);
    }
    if (!(dense ? store_exec_while(s, QUERY(VIEW_SIZES), &p, page_read, k, &r, err)
                : store_exec_while(s, QUERY(VIEW_SIZES_OF), &p, page_read, k, &r, err))) {
        return false;
    }
    result_clearp(&k->sizes);
    k->sizes = r;
    return true;
}

static bool all_pages(struct store *s, struct task_page *k, struct err *err)
{
    while (k->after_id < k->last_id) {
        if (!page_next(s, k, err) || (k->n > 0 && !page_sizes(s, k, err))) {
            return false;
        }
    }
    page_give(k); /* the last one */
    return k->without == 0 ||
           err_set(err, ERR_DATABASE, "task %lld has no input", (long long)k->without);
}

bool view_tasks(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t from_seq,
                int64_t to_seq, void (*cb)(void *ctx, const struct task_row *rows, size_t n),
                void *ctx, struct err *err)
{
    ASSERT(from_seq >= 0 && from_seq <= INT32_MAX);
    struct task_page k = {.campaign_id = campaign_id, .stage_id = stage_id, .cb = cb, .ctx = ctx};
    if (!task_range(s, campaign_id, stage_id, from_seq, to_seq, &k.after_id, &k.last_id, err)) {
        return false;
    }
    k.after_id--;
    k.rows = xcalloc(TASKS_PAGE, sizeof *k.rows);
    bool ok = all_pages(s, &k, err);
    result_clearp(&k.tasks);
    result_clearp(&k.sizes);
    free(k.rows);
    return ok;
}
