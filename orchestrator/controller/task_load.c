/* See task_load.h. */
#include "task_load.h"
#include "common/log.h"
#include "core/leader/rows_read.h"
#include "core/sched/ready_queue.h"
#include "store/rows/view.h"
#include "wall.h"

#define INPUTS_FROM 100000 /* parts; a connection costs some 5 ms */

/* Tasks read but not yet in their queues: a page that fails must not leave some of them there. */
struct task_sink {
    const struct live_stage *ls;
    usec_t now_us;
    struct ready_queue_task *ready, *unchecked, *held;
    size_t ready_n, unchecked_n, held_n, cap;
};

static void on_tasks(void *ctx, const struct task_row *rows, size_t n)
{
    struct task_sink *k = ctx;
    size_t need = MAX(MAX(k->ready_n, k->unchecked_n), k->held_n) + n;
    if (need > k->cap) {
        k->cap = MAX(need, k->cap * 2);
        k->ready = xrealloc(k->ready, k->cap * sizeof *k->ready);
        k->unchecked = xrealloc(k->unchecked, k->cap * sizeof *k->unchecked);
        k->held = xrealloc(k->held, k->cap * sizeof *k->held);
    }
    for (size_t i = 0; i < n; i++) {
        struct ready_queue_task t;
        switch (rows_task(k->ls, &rows[i], k->now_us, &t)) {
        case ROWS_NO_QUEUE:
            break;
        case ROWS_READY:
            k->ready[k->ready_n++] = t;
            break;
        case ROWS_UNCHECKED:
            k->unchecked[k->unchecked_n++] = t;
            break;
        case ROWS_HELD:
            k->held[k->held_n++] = t;
            break;
        }
    }
}

/* As view_tasks gives them. The second connection is for large stages, and a help only: without it,
 * or when it breaks, one reads all. */
static bool read_all(struct controller *c, struct task_sink *k, struct err *err)
{
    const struct live_stage *ls = k->ls;
    struct store *inputs = NULL;
    struct err why = ERR_INIT;
    if (ls->row.taken - ls->loaded >= INPUTS_FROM &&
        !store_open(c->cfg.conninfo, STORE_INPUTS, &inputs, &why)) {
        log_event(LOG_WARN, "inputs_alone", LF_ERR(&why));
    }
    bool ok = view_tasks(c->store, inputs, ls->row.campaign_id, ls->row.id, ls->loaded,
                         ls->row.taken, on_tasks, k, err);
    if (!ok && inputs != NULL && !store_alive(inputs) && store_alive(c->store)) {
        log_event(LOG_WARN, "inputs_alone", LF_ERR(err));
        k->ready_n = k->unchecked_n = k->held_n = 0;
        ok = view_tasks(c->store, NULL, ls->row.campaign_id, ls->row.id, ls->loaded, ls->row.taken,
                        on_tasks, k, err);
    }
    store_close(inputs);
    return ok;
}

bool task_load(struct controller *c, struct live_stage *ls, struct err *err)
{
    struct task_sink k = {.ls = ls, .now_us = leader_now(c)};
    bool ok = read_all(c, &k, err) && rows_parts_fit(ls, k.ready_n + k.unchecked_n + k.held_n, err);
    if (ok) {
        ready_queue_push_many(ls->ready, k.ready, k.ready_n);
        ready_queue_push_many(ls->unchecked, k.unchecked, k.unchecked_n);
        ready_queue_push_many(ls->held, k.held, k.held_n);
        ls->loaded = ls->row.taken;
    }
    free(k.ready);
    free(k.unchecked);
    free(k.held);
    return ok;
}
