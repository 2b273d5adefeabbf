/* See operations.h: a batch of tasks a transaction and a few batches a tick, so that a million
 * parts neither block the tick nor a reader. What an operation moves leaves its selection, so
 * paging needs no cursor. */
#include "store/leader/operations.h"
#include "archive.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/operation_turns.h"
#include "core/leader/operations.h"
#include "history.h"
#include "lease.h"
#include "load.h"
#include "operations.h"
#include "output_check.h"
#include "parking.h"
#include "shell.h"
#include "skip_done.h"
#include "store/leader/campaigns.h"
#include "store/leader/tasks.h"
#include "wall.h"

#define PAGE_TASKS 2000
#define BATCHES    3 /* a tick */

struct op_step {
    struct operation_row *op;
    bool readable;
    struct operation_order order;
    struct err why; /* it is not */
    struct live_campaign *campaign;
    struct task_row rows[PAGE_TASKS];
    int64_t ids[PAGE_TASKS], moved_ids[PAGE_TASKS];
    size_t n, moved;
    enum operation_then then;
    struct operation_writes w; /* as written */
};

static bool read_rows(struct controller *c, struct op_step *s, size_t *ret_n, struct err *err)
{
    enum task_state from = verb_parts_from(s->order.verb);
    do {
        int64_t after = operation_page_from(&c->page, s->op->id, s->order.verb);
        if (!operation_page(c->store, s->op, from, after, PAGE_TASKS, s->rows, ret_n, err)) {
            return false;
        }
    } while (operation_page_again(&c->page, s->rows, *ret_n));
    return true;
}

/* *ret NULL: no task is left. */
static bool read_page(struct controller *c, struct op_step *s, struct live_stage **ret,
                      struct err *err)
{
    int64_t busy[SKIP_DONE_AT_ONCE];
    size_t got = 0;
    *ret = NULL;
    if (!read_rows(c, s, &got, err)) {
        return false;
    }
    s->n = operation_pick(s->rows, got, busy, skip_done_busy(c, busy), s->ids);
    *ret = got > 0 ? leader_state_stage(s->campaign, s->rows[0].stage_id) : NULL;
    return true;
}

static bool write_states(struct controller *c, struct op_step *s, struct err *err)
{
    const struct campaign_row *r = &s->campaign->row;
    struct operation_writes *w = &s->w;
    if (w->resumes && !history_resume(c, leader_state_stage(s->campaign, w->stage_id),
                                      &w->last_attempt_id, err)) {
        return false;
    }
    if (w->stage_reopens &&
        !store_stage_state(c->store, w->stage_id, w->stage_from, STAGE_RUNNING, "", err)) {
        return false;
    }
    return !w->campaign_reopens || store_campaign_state(c->store, r->id, w->campaign_from,
                                                        CAMPAIGN_RUNNING, "", r->version, err);
}

static bool write_tasks(struct controller *c, struct op_step *s, struct err *err)
{
    int64_t campaign = s->campaign->row.id;
    return s->w.verb == VERB_RETRY
               ? store_tasks_retry(c->store, campaign, s->w.stage_id, s->ids, s->n, &s->w.changes,
                                   &s->moved, s->moved_ids, err)
               : store_tasks_move(c->store, campaign, s->w.stage_id, s->w.task_from, s->w.task_to,
                                  CAUSE_NONE, s->ids, s->n, &s->moved, s->moved_ids, err);
}

static bool carry_out(struct controller *c, void *arg, struct err *err)
{
    struct op_step *s = arg;
    struct operation_row *op = s->op;
    struct live_stage *ls = NULL;
    s->n = s->moved = 0;
    if (s->readable && !read_page(c, s, &ls, err)) {
        return false;
    }
    s->then = operation_next(s->readable, &s->order, s->campaign, ls, &s->w);
    s->w.changes.operation_id = op->id;
    if (s->then == OPERATION_UNREADABLE &&
        !store_alert(c->store, op->campaign_id, s->why.message, err)) {
        return false;
    }
    if (s->then == OPERATION_MOVES && (!write_states(c, s, err) || !write_tasks(c, s, err))) {
        return false;
    }
    return store_operation_progress(c->store, op->id, operation_ends_as(s->then),
                                    op->done + (int64_t)s->moved, err);
}

static bool find_campaign(struct controller *c, struct op_step *s)
{
    s->campaign = view_find_campaign(c, s->op->campaign_id);
    return s->campaign != NULL && view_refresh_ended(c, s->campaign) && c->leading;
}

static void carried_out(struct controller *c, const struct op_step *s)
{
    switch (s->then) {
    case OPERATION_MOVES:
        operation_apply(&c->state, s->campaign, &s->w, s->rows, s->n, s->moved_ids, s->moved,
                        leader_now(c));
        log_event(LOG_INFO, "operation_moved", LF_I("operation", s->op->id),
                  LF_I("parts", (int64_t)s->moved));
        break;
    case OPERATION_IS_DONE:
        break;
    case OPERATION_IS_REFUSED:
        log_event(LOG_WARN, "operation_refused", LF_I("operation", s->op->id),
                  LF_S("reason", verb_refusal(s->w.answer)));
        break;
    case OPERATION_UNREADABLE:
        if (log_allow("operation_unreadable")) {
            log_event(LOG_WARN, "operation_unreadable", LF_I("operation", s->op->id),
                      LF_ERR(&s->why));
        }
        break;
    }
}

/* Whether another batch is left. */
static bool batch(struct controller *c, struct op_step *s)
{
    struct parking_subject who = PARKING_OPERATION(s->op->campaign_id, s->op->id);
    if (!c->leading || !find_campaign(c, s) || !parking_tx(c, who, carry_out, s)) {
        return false;
    }
    carried_out(c, s);
    s->op->done += (int64_t)s->moved;
    return s->then == OPERATION_MOVES && s->moved > 0;
}

static bool step(struct controller *c, struct operation_row *op)
{
    struct op_step *s = xcalloc(1, sizeof *s);
    s->op = op;
    s->readable = operation_read(op, &s->order, &s->why);
    if (!s->readable) {
        (void)err_wrap(&s->why, "operation %lld is not carried out", (long long)op->id);
    }
    for (int i = 0; i < BATCHES && batch(c, s); i++) {
    }
    free(s);
    return c->leading;
}

struct undo_step {
    struct operation_row *op;
    struct live_campaign *campaign; /* NULL: it is not known now, or no more */
    struct retried_row rows[PAGE_TASKS];
    int64_t ids[PAGE_TASKS], moved_ids[PAGE_TASKS];
    size_t n, moved;
    bool over;
};

/* What has not started goes back; parts that start meanwhile are left to run. */
static bool take_back(struct controller *c, void *arg, struct err *err)
{
    struct undo_step *s = arg;
    s->moved = 0;
    if (!undo_page(c->store, s->op, PAGE_TASKS, s->rows, &s->n, err)) {
        return false;
    }
    s->over = s->n == 0;
    if (!s->over && s->campaign == NULL) { /* parts of it wait: it will be known again */
        s->n = 0;
        return true;
    }
    s->n = operation_undo_pick(s->rows, s->n, s->ids);
    return (s->over ||
            store_tasks_undo(c->store, s->op->campaign_id, s->rows[0].stage_id, s->op->id,
                             s->rows[0].state, s->ids, s->n, &s->moved, s->moved_ids, err)) &&
           store_operation_undo(c->store, s->op->id, s->op->undone + (int64_t)s->moved, s->over,
                                err);
}

static bool undo_batch(struct controller *c, struct undo_step *s)
{
    struct parking_subject who = PARKING_OPERATION(s->op->campaign_id, s->op->id);
    s->campaign = view_find_campaign(c, s->op->campaign_id);
    if (!c->leading || !parking_tx(c, who, take_back, s)) {
        return false;
    }
    operation_undo_apply(&c->state, s->campaign, s->rows, s->n, s->moved_ids, s->moved);
    s->op->undone += (int64_t)s->moved;
    if (s->over) {
        log_event(LOG_INFO, "operation_undone", LF_I("operation", s->op->id),
                  LF_I("parts", s->op->undone));
    }
    return s->n > 0;
}

/* More than one batch a tick: what is not undone in time starts. */
static bool undo_step(struct controller *c, struct operation_row *op)
{
    struct undo_step *s = xcalloc(1, sizeof *s);
    s->op = op;
    if (parking_due(c, PARKING_OPERATION(op->campaign_id, op->id))) {
        for (int i = 0; i < BATCHES && undo_batch(c, s); i++) {
        }
    }
    free(s);
    return c->leading;
}

static bool list(struct controller *c, void *arg, struct err *err)
{
    struct operations *l = arg;
    return view_operations(c->store, &l->rows, &l->n, err);
}

bool operations_list(struct controller *c, struct operations *ret)
{
    *ret = (struct operations){.n = 0};
    (void)leader_tx(c, list, ret);
    return c->leading;
}

/* Its campaign could not be read just now, which is done again by itself. */
static bool unread(struct controller *c, const struct operation_row *op)
{
    const struct live_campaign *lc = view_find_campaign(c, op->campaign_id);
    return lc == NULL || operation_parts_unread(lc, op);
}

/* *archived: one step of one archive a tick, since there may be a hundred of them. */
static void turn(struct controller *c, struct operations *l, size_t i, bool *archived)
{
    struct operation_row *op = &l->rows[i];
    if (op->undo) {
        (void)undo_step(c, op);
    } else if (operation_waits(&c->state, l->rows, (int)i, clock_boot_us())) {
        c->state.look_at_db = true;
    } else if (verb_parse(op->kind) == VERB_ARCHIVE) {
        *archived = *archived || archive_step(c, op);
    } else if (parking_due(c, PARKING_OPERATION(op->campaign_id, op->id)) && !unread(c, op)) {
        (void)step(c, op);
    }
}

bool operations_tick(struct controller *c, struct operations *l)
{
    AUTO_FREE size_t *order = xcalloc(l->n + 1, sizeof *order);
    bool archived = false;
    int64_t began = clock_boot_us();
    operation_turns(l->rows, l->n, c->operations_after, order);
    c->operations_after = 0;
    for (size_t i = 0; i < l->n && c->leading; i++) {
        turn(c, l, order[i], &archived);
        if (operation_turns_over(l->rows, l->n, order, i, clock_boot_us() - began,
                                 &c->operations_after)) {
            c->state.look_at_db = true;
            break;
        }
    }
    return c->leading;
}
