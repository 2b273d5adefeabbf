/* The waiting and held tasks of a stage, for a leader's queues: millions of them at a takeover.
 * Pages come as arrays side by side, since a row of its own for each task costs PostgreSQL more
 * than finding it. Three pages are on their way at once: the tasks of one are asked for, the sizes
 * of the one before it, and the one before that is given. With a second connection PostgreSQL looks
 * for tasks and sizes on two cores. */
#include "queries.h"
#include "store/pg/query.h"
#include "view.h"

#define TASKS_PAGE   20000
#define TASKS_WINDOW 200000
#define DENSE_FACTOR 4 /* average id range per task above which a page reads its sizes by id */

struct task_page {
    size_t n; /* tasks; 0: nothing was found, or there is no page */
    int64_t first, last;
    PGresult *tasks, *sizes;
};

struct task_reading {
    struct store *s, *inputs; /* inputs NULL: s is asked for both, in turns */
    int64_t campaign_id, stage_id, after_id, last_id;
    struct task_page asked, sized, given;
    struct task_row *rows;
    void (*cb)(void *ctx, const struct task_row *rows, size_t n);
    void *ctx;
    int64_t without; /* a task that has no input; 0: each has */
    struct err *err;
    bool sizes_ok;
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

enum { COL_N, COL_FIRST, COL_LAST, COL_SHIFT, COL_IDS, COL_SEQS, COL_MOVED }; /* four follow */

/* The ids of a page, in order: an array, or all from the first one on. */
static int64_t page_id(const struct task_page *page, const struct row_array *ids, size_t i)
{
    return ids->n > 0 ? row_array_i64(ids, i) : page->first + (int64_t)i;
}

/* Tasks that were tried, held or back off are few, or all: what is not 0 of them comes with the
 * rest, in the same order. */
static void read_tasks(struct task_reading *k, const struct task_page *page)
{
    int64_t shift = row_i64(page->tasks, 0, COL_SHIFT);
    struct row_array ids = row_array(page->tasks, 0, COL_IDS);
    struct row_array seqs = row_array(page->tasks, 0, COL_SEQS);
    struct row_array moved = row_array(page->tasks, 0, COL_MOVED);
    struct row_array attempts = row_array(page->tasks, 0, COL_MOVED + 1);
    struct row_array names = row_array(page->tasks, 0, COL_MOVED + 2);
    struct row_array states = row_array(page->tasks, 0, COL_MOVED + 3);
    struct row_array not_before = row_array(page->tasks, 0, COL_MOVED + 4);
    size_t m = 0;
    for (size_t i = 0; i < page->n; i++) {
        struct task_row *t = &k->rows[i];
        int64_t id = page_id(page, &ids, i);
        int64_t seq = seqs.n > 0 ? row_array_i64(&seqs, i) : id - shift;
        *t = (struct task_row){.id = id, .stage_id = k->stage_id, .seq = (int32_t)seq};
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
static void read_sizes(struct task_reading *k, const struct task_page *page)
{
    struct row_array ids = row_array(page->sizes, 0, 0);
    struct row_array sizes = row_array(page->sizes, 0, 1);
    size_t done = 0;
    for (size_t i = 0; i < sizes.n && done < page->n; i++) {
        if (page_id(page, &ids, i) == k->rows[done].id) {
            k->rows[done++].size = row_array_i64(&sizes, i);
        }
    }
    if (done < page->n) {
        k->without = k->rows[done].id;
    }
}

static void give(void *ctx)
{
    struct task_reading *k = ctx;
    if (k->given.n > 0 && k->without == 0) {
        read_tasks(k, &k->given);
        read_sizes(k, &k->given);
        if (k->without == 0) {
            k->cb(k->ctx, k->rows, k->given.n);
        }
    }
}

/* Asks for the sizes of a page whose tasks are known, and meanwhile gives the one before it. */
static void ask_sizes(void *ctx)
{
    struct task_reading *k = ctx;
    struct task_page *page = &k->sized;
    if (page->n == 0) {
        give(k);
        return;
    }
    struct store *s = k->inputs != NULL ? k->inputs : k->s;
    struct row_array scattered = row_array(page->tasks, 0, COL_IDS);
    bool dense = (page->last - page->first) / DENSE_FACTOR < (int64_t)page->n;
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_FREE int64_t *ids = NULL;
    param_i64(&p, k->campaign_id);
    if (dense) {
        param_i64(&p, k->stage_id);
        param_i64(&p, page->first);
        param_i64(&p, page->last);
    } else {
        ids = xmalloc(page->n * sizeof *ids);
        for (size_t i = 0; i < page->n; i++) {
            ids[i] = page_id(page, &scattered, i);
        }
        param_i64_array(&p, ids, page->n);
    }
    k->sizes_ok =
        dense ? store_exec_while(s, QUERY(VIEW_SIZES), &p, give, k, &page->sizes, k->err)
              : store_exec_while(s, QUERY(VIEW_SIZES_OF), &p, give, k, &page->sizes, k->err);
}

static void nothing(void *ctx)
{
    (void)ctx;
}

/* Asks for the page behind the last one, and meanwhile, on the other connection, for the sizes of
 * that. A window of ids bounds the work of one statement when most tasks are done. */
static bool ask_tasks(struct task_reading *k)
{
    int64_t until = MIN(k->last_id, k->after_id + TASKS_WINDOW);
    struct task_page *page = &k->asked;
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, k->campaign_id);
    param_i64(&p, k->stage_id);
    param_i64(&p, k->after_id);
    param_i64(&p, until);
    param_i32(&p, TASKS_PAGE);
    if (!store_exec_while(k->s, QUERY(VIEW_TASKS), &p, k->inputs != NULL ? ask_sizes : nothing, k,
                          &page->tasks, k->err)) {
        return false;
    }
    page->n = (size_t)row_i64(page->tasks, 0, COL_N);
    page->first = row_i64_or(page->tasks, 0, COL_FIRST, 0);
    page->last = row_i64_or(page->tasks, 0, COL_LAST, 0);
    k->after_id = page->n < TASKS_PAGE ? until : page->last;
    return true;
}

static void page_clear(struct task_page *page)
{
    result_clearp(&page->tasks);
    result_clearp(&page->sizes);
    page->n = 0;
}

static bool all_pages(struct task_reading *k)
{
    while (k->after_id < k->last_id || k->sized.n > 0 || k->given.n > 0) {
        bool more = k->after_id < k->last_id;
        if (more && !ask_tasks(k)) {
            return false;
        }
        if (!more || k->inputs == NULL) {
            ask_sizes(k);
        }
        if (!k->sizes_ok) {
            return false;
        }
        page_clear(&k->given);
        k->given = k->sized;
        k->sized = k->asked;
        k->asked = (struct task_page){.n = 0};
    }
    return k->without == 0 ||
           err_set(k->err, ERR_DATABASE, "task %lld has no input", (long long)k->without);
}

bool view_tasks(struct store *s, struct store *inputs, int64_t campaign_id, int64_t stage_id,
                int64_t from_seq, int64_t to_seq,
                void (*cb)(void *ctx, const struct task_row *rows, size_t n), void *ctx,
                struct err *err)
{
    ASSERT(from_seq >= 0 && from_seq <= INT32_MAX && inputs != s);
    struct task_reading k = {.s = s,
                             .inputs = inputs,
                             .campaign_id = campaign_id,
                             .stage_id = stage_id,
                             .cb = cb,
                             .ctx = ctx,
                             .err = err,
                             .sizes_ok = true};
    if (!task_range(s, campaign_id, stage_id, from_seq, to_seq, &k.after_id, &k.last_id, err)) {
        return false;
    }
    k.after_id--;
    k.rows = xcalloc(TASKS_PAGE, sizeof *k.rows);
    bool ok = all_pages(&k);
    page_clear(&k.asked);
    page_clear(&k.sized);
    page_clear(&k.given);
    free(k.rows);
    return ok;
}
