/* Bulk wishes of people (retry, skip), carried out in batches: a page of tasks a transaction, so
 * that a million parts neither block the tick nor a reader. What an operation moves leaves its
 * selection, so paging needs no cursor. */
#include "common/json.h"
#include "common/log.h"
#include "ctl.h"

#define OPERATION_BATCH 1000

struct op_step {
    struct operation_row *op;
    struct live_campaign *campaign;
    struct live_stage *stage;
    struct task_row rows[OPERATION_BATCH];
    int64_t ids[OPERATION_BATCH], moved_ids[OPERATION_BATCH];
    size_t n, moved;
    enum task_state from;
    int volume_gb;
    bool stage_reopened, campaign_reopened; /* as written */
};

/* A page may hold tasks of several stages; one stage is done at a time. */
static bool read_page(struct controller *c, struct op_step *s, struct err *err)
{
    size_t got = 0;
    if (!operation_page(c->store, s->op, s->from, 0, OPERATION_BATCH, s->rows, &got, err)) {
        return false;
    }
    s->n = 0;
    for (size_t i = 0; i < got; i++) {
        if (s->rows[i].stage_id == s->rows[0].stage_id) {
            s->rows[s->n] = s->rows[i];
            s->ids[s->n++] = s->rows[i].id;
        }
    }
    s->stage = got > 0 ? leader_state_stage(s->campaign, s->rows[0].stage_id) : NULL;
    return true;
}

/* An ended campaign or stage goes on when parts of it wait again. */
static bool reopen(struct controller *c, struct op_step *s, struct err *err)
{
    struct campaign_row *r = &s->campaign->row;
    struct stage_row *st = &s->stage->row;
    s->stage_reopened = stage_state_terminal(st->state);
    s->campaign_reopened = campaign_state_terminal(r->state);
    if (s->stage_reopened &&
        !store_stage_state(c->store, st->id, st->state, STAGE_RUNNING, "", err)) {
        return false;
    }
    return !s->campaign_reopened ||
           store_campaign_state(c->store, r->id, r->state, CAMPAIGN_RUNNING, "", r->version, err);
}

static bool retry_batch(struct controller *c, struct op_step *s, struct err *err)
{
    return reopen(c, s, err) &&
           store_tasks_retry(c->store, s->campaign->row.id, s->stage->row.id, s->ids, s->n,
                             s->volume_gb, &s->moved, s->moved_ids, err);
}

static bool carry_out(struct controller *c, void *arg, struct err *err)
{
    struct op_step *s = arg;
    struct operation_row *op = s->op;
    bool retry = strcmp(op->kind, "retry") == 0;
    bool possible = s->campaign->row.state != CAMPAIGN_CANCELLED;
    if (possible && !read_page(c, s, err)) {
        return false;
    }
    if (s->n == 0 || s->stage == NULL) {
        return store_operation_progress(c->store, op->id, OPERATION_DONE, op->done, err);
    }
    bool ok = retry ? retry_batch(c, s, err)
                    : store_tasks_move(c->store, s->campaign->row.id, s->stage->row.id, s->from,
                                       TASK_SKIPPED, CAUSE_NONE, s->ids, s->n, &s->moved,
                                       s->moved_ids, err);
    return ok && store_operation_progress(c->store, op->id, OPERATION_RUNNING,
                                          op->done + (int64_t)s->moved, err);
}

static void apply(struct controller *c, struct op_step *s)
{
    bool retry = strcmp(s->op->kind, "retry") == 0;
    task_counts_move(s->campaign, s->stage, s->from, retry ? TASK_WAITING : TASK_SKIPPED,
                     (int64_t)s->moved);
    if (s->stage_reopened) {
        stage_set_state(s->stage, STAGE_RUNNING);
    }
    if (s->campaign_reopened) {
        campaign_set_state(s->campaign, CAMPAIGN_RUNNING);
    }
    for (size_t i = 0; retry && i < s->n; i++) {
        const struct task_row *t = &s->rows[i];
        struct task_change_row *ch = leader_state_change(&c->state, t->id, s->volume_gb > 0);
        if (ch != NULL) { /* a person's retry starts the counts anew, as the store does */
            memset(ch->tries, 0, sizeof ch->tries);
            ch->campaign_id = s->campaign->row.id;
            ch->volume_gb = s->volume_gb > 0 ? s->volume_gb : ch->volume_gb;
        }
        int64_t size_mb = t->size / (1024 * 1024);
        ready_queue_push(s->stage->ready, &(struct ready_queue_task){.task_id = t->id,
                                                                     .seq = (uint32_t)t->seq,
                                                                     .size_mb = (uint32_t)size_mb});
    }
    c->state.look_at_db = c->state.decide = true;
}

static bool find_campaign(struct controller *c, void *arg, struct err *err)
{
    struct op_step *s = arg;
    s->campaign = leader_state_campaign(&c->state, s->op->campaign_id);
    return s->campaign != NULL || view_take_campaign(c, s->op->campaign_id, 0, &s->campaign, err);
}

static bool step(struct controller *c, struct operation_row *op)
{
    struct op_step *s = xcalloc(1, sizeof *s);
    AUTO_JSON json_t *changes = NULL;
    int64_t volume_gb = 0;
    struct err err = ERR_INIT;
    s->op = op;
    s->from = TASK_FAILED;
    if (op->changes_json != NULL && json_parse(str_of(op->changes_json), 65536, &changes, &err) &&
        json_get_i64(changes, "volume_gb", 1, VOLUME_GB_MAX, 0, &volume_gb, &err)) {
        s->volume_gb = (int)volume_gb;
    }
    bool ok = leader_tx(c, find_campaign, s) && leader_tx(c, carry_out, s);
    if (ok && s->stage != NULL && s->n > 0) {
        apply(c, s);
        log_event(LOG_INFO, "operation_moved", LF_I("operation", op->id),
                  LF_I("parts", (int64_t)s->moved));
    }
    free(s);
    return ok;
}

struct list_arg {
    struct operation_row *rows;
    size_t n;
};

static bool list(struct controller *c, void *arg, struct err *err)
{
    struct list_arg *l = arg;
    return view_operations(c->store, &l->rows, &l->n, err);
}

bool operations_tick(struct controller *c)
{
    struct list_arg l = {0};
    bool ok = leader_tx(c, list, &l);
    for (size_t i = 0; i < l.n && ok; i++) {
        ok = step(c, &l.rows[i]);
    }
    operation_rows_free(l.rows, l.n);
    return ok;
}
