/* See operations.h. */
#include "operations.h"
#include "common/json.h"
#include "parking.h"
#include "rows_read.h"
#include "stage_history.h"
#include <stdio.h>

#define CHANGES_BYTES_MAX 65536

static bool read_type(const json_t *changes, struct operation_order *ret, struct err *err)
{
    const char *type;
    if (!json_get_str(changes, "instance_type", NULL, &type, err)) {
        return false;
    }
    if (type != NULL && (type[0] == '\0' || strlen(type) > INSTANCE_TYPE_MAX)) {
        return err_set(err, ERR_INVALID, "instance_type: 1 to %d characters", INSTANCE_TYPE_MAX);
    }
    (void)snprintf(ret->instance_type, sizeof ret->instance_type, "%s", type == NULL ? "" : type);
    return true;
}

static bool read_runtime(const json_t *changes, int64_t *ret, struct err *err)
{
    const json_t *v = json_object_get(changes, "max_runtime");
    if (!json_is_string(v)) {
        return json_get_i64(changes, "max_runtime", 1, SPEC_RUNTIME_S_MAX, 0, ret, err);
    }
    return parse_duration_s(str_of(json_string_value(v)), 1, SPEC_RUNTIME_S_MAX, ret, err) ||
           err_wrap(err, "max_runtime, in seconds or as 90m, 4h");
}

bool operation_changes_read(const json_t *changes, struct operation_order *ret, struct err *err)
{
    static const char *const keys[] = {"volume_gb", "instance_type", "max_runtime", NULL};
    int64_t gb;
    if (!json_only_keys(changes, keys, err) ||
        !json_get_i64(changes, "volume_gb", 1, VOLUME_GB_MAX, 0, &gb, err) ||
        !read_type(changes, ret, err) || !read_runtime(changes, &ret->max_runtime_s, err)) {
        return false;
    }
    ret->volume_gb = (int)gb;
    return true;
}

int operation_rung(const struct spec_stage *stage, const char *instance_type)
{
    for (int i = 0; i < stage->instance_type_n; i++) {
        if (strcmp(stage->instance_type[i], instance_type) == 0) {
            return i;
        }
    }
    return -1;
}

bool operation_read(const struct operation_row *op, struct operation_order *ret, struct err *err)
{
    AUTO_JSON json_t *changes = NULL;
    struct operation_order order = {0};
    enum verb v = verb_parse(op->kind);
    if (!verb_moves_parts(v)) {
        return err_set(err, ERR_INVALID, "'%s' is no operation of this version", op->kind);
    }
    if (op->changes_json != NULL &&
        (!json_parse(str_of(op->changes_json), CHANGES_BYTES_MAX, &changes, err) ||
         !operation_changes_read(changes, &order, err))) {
        return false;
    }
    order.verb = v;
    *ret = order;
    return true;
}

/* Would one of them move parts that the other one moves, or has moved? */
static bool in_turn(enum verb v, enum verb w)
{
    if (!verb_moves_parts(v) || !verb_moves_parts(w)) {
        return false;
    }
    bool both_take = verb_parts_from(v) == TASK_FAILED && verb_parts_from(w) == TASK_FAILED;
    return both_take || verb_parts_from(v) == verb_parts_to(w) ||
           verb_parts_to(v) == verb_parts_from(w);
}

bool operation_waits(const struct leader_state *s, const struct operation_row *rows, int at,
                     int64_t boot_us)
{
    enum verb v = verb_parse(rows[at].kind);
    for (int i = 0; i < at; i++) {
        struct parking_subject who = PARKING_OPERATION(rows[i].campaign_id, rows[i].id);
        if (rows[i].campaign_id == rows[at].campaign_id && !rows[i].undo &&
            in_turn(v, verb_parse(rows[i].kind)) && parking_may(s, &who, boot_us)) {
            return true;
        }
    }
    return false;
}

int64_t operation_page_from(struct operation_cursor *at, int64_t operation_id, enum verb verb)
{
    if (at->of != operation_id || verb_parts_from(verb) == TASK_FAILED) {
        at->after = 0;
    }
    at->of = operation_id;
    return at->after;
}

bool operation_page_again(struct operation_cursor *at, const struct task_row *rows, size_t n)
{
    bool again = n == 0 && at->after > 0;
    at->after = n > 0 ? rows[0].id - 1 : 0;
    return again;
}

bool operation_parts_unread(const struct live_campaign *lc, const struct operation_row *op)
{
    enum verb v = verb_parse(op->kind);
    int64_t known = 0;
    if (!verb_moves_parts(v) || verb_parts_from(v) != TASK_WAITING ||
        campaign_state_terminal(lc->row.state)) {
        return false;
    }
    for (int k = 0; k < lc->stages_n; k++) {
        const struct live_stage *ls = &lc->stages[k];
        known += rows_stage_is_read(ls) ? ls->row.taken : ls->row.tasks;
    }
    return known < op->posted;
}

static bool is_among(int64_t id, const int64_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

size_t operation_pick(struct task_row *rows, size_t n, const int64_t *busy, size_t busy_n,
                      int64_t *ret_ids)
{
    size_t kept = 0;
    int64_t stage_id = n > 0 ? rows[0].stage_id : 0;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].stage_id == stage_id && !is_among(rows[i].id, busy, busy_n)) {
            rows[kept] = rows[i];
            ret_ids[kept++] = rows[i].id;
        }
    }
    return kept;
}

void operation_plan(const struct live_campaign *lc, const struct live_stage *ls,
                    const struct operation_order *order, struct operation_writes *ret)
{
    enum verb v = order->verb;
    ASSERT(verb_moves_parts(v));
    const struct campaign_row *r = &lc->row;
    enum verb_answer a = verb_answer(v, r->state, r->wanted, ls->row.state);
    bool typed = order->instance_type[0] != '\0';
    int rung = -1;
    if (typed && ls->spec != NULL) { /* a file that cannot be read lists no type */
        rung = operation_rung(ls->spec, order->instance_type);
    }
    a = typed && rung < 0 && !verb_refused(a) ? VERB_NO_SUCH_TYPE : a;
    bool reopens = a == VERB_REOPENS;
    *ret = (struct operation_writes){
        .verb = v,
        .answer = a,
        .stage_id = ls->row.id,
        .task_from = verb_parts_from(v),
        .task_to = verb_parts_to(v),
        .stage_from = ls->row.state,
        .campaign_from = r->state,
        /* a skipped stage waits for what it needs: campaign_life reopens it */
        .stage_reopens = reopens && stage_edge(ls->row.state, STAGE_RUNNING) &&
                         stage_state_terminal(ls->row.state),
        .campaign_reopens = reopens && campaign_state_terminal(r->state),
        .changes = {.instance_type_i = rung,
                    .volume_gb = order->volume_gb,
                    .max_runtime_s = order->max_runtime_s},
    };
    /* else a breaker that had tripped before the end would hold it before anything has run */
    ret->resumes = ret->stage_reopens && v == VERB_RETRY;
}

enum operation_then operation_next(bool readable, const struct operation_order *order,
                                   const struct live_campaign *lc, const struct live_stage *ls,
                                   struct operation_writes *ret)
{
    *ret = (struct operation_writes){.answer = VERB_CARRIED_OUT};
    if (!readable) {
        return OPERATION_UNREADABLE;
    }
    if (ls == NULL) {
        return OPERATION_IS_DONE;
    }
    operation_plan(lc, ls, order, ret);
    return verb_refused(ret->answer) ? OPERATION_IS_REFUSED : OPERATION_MOVES;
}

enum operation_state operation_ends_as(enum operation_then then)
{
    switch (then) {
    case OPERATION_MOVES:
        return OPERATION_RUNNING;
    case OPERATION_IS_DONE:
        return OPERATION_DONE;
    case OPERATION_IS_REFUSED:
    case OPERATION_UNREADABLE:
        break;
    }
    return OPERATION_CANCELLED;
}

/* A person's retry starts the counts at zero, as the store does. */
static void retry_one(struct leader_state *s, struct live_campaign *lc, struct live_stage *ls,
                      const struct task_row *t, const struct task_changes *to)
{
    bool any = to->instance_type_i >= 0 || to->volume_gb > 0 || to->max_runtime_s > 0;
    struct task_change_row *ch = leader_state_change(s, t->id, any);
    if (ch != NULL) {
        memset(ch->tries, 0, sizeof ch->tries);
        ch->campaign_id = lc->row.id;
        ch->instance_type_i = to->instance_type_i >= 0 ? to->instance_type_i : ch->instance_type_i;
        ch->volume_gb = to->volume_gb > 0 ? to->volume_gb : ch->volume_gb;
        ch->max_runtime_s = to->max_runtime_s > 0 ? to->max_runtime_s : ch->max_runtime_s;
        ch->same = 0;
    }
    rows_part_waits(lc, ls,
                    &(struct ready_queue_task){
                        .task_id = t->id, .seq = (uint32_t)t->seq, .size_mb = size_mb_of(t->size)});
}

/* Held, or released. A part that was not read yet is read in its new state. */
static void hold_one(struct live_campaign *lc, struct live_stage *ls, const struct task_row *t,
                     enum task_state to, usec_t now_us)
{
    struct task_row row = *t;
    struct ready_queue_task entry;
    row.state = to;
    enum rows_queue queue = rows_task(ls, &row, now_us, &entry);
    if (row.seq >= ls->loaded) {
        lc->seen_tasks = -1;
    } else {
        ready_queue_push(queue == ROWS_HELD        ? ls->held
                         : queue == ROWS_UNCHECKED ? ls->unchecked
                                                   : ls->ready,
                         &entry);
    }
}

static void drop_moved(struct live_stage *ls, enum task_state from, const int64_t *ids, size_t n)
{
    if (from == TASK_HELD) {
        (void)ready_queue_drop(ls->held, ids, n);
    } else if (from == TASK_WAITING) {
        (void)ready_queue_drop(ls->ready, ids, n);
        (void)ready_queue_drop(ls->unchecked, ids, n);
    }
}

void operation_apply(struct leader_state *s, struct live_campaign *lc,
                     const struct operation_writes *w, const struct task_row *rows, size_t n,
                     const int64_t *moved_ids, size_t moved, usec_t now_us)
{
    struct live_stage *ls = leader_state_stage(lc, w->stage_id);
    size_t next = 0; /* both lists are in order of id as a rule */
    task_counts_move(lc, ls, w->task_from, w->task_to, (int64_t)moved);
    drop_moved(ls, w->task_from, moved_ids, moved);
    if (w->stage_reopens) {
        stage_set_state(lc, ls, STAGE_RUNNING);
        ls->row.reason[0] = '\0';
        s->tries_unread = true;
    }
    if (w->resumes) {
        stage_history_resumed(ls, w->last_attempt_id);
    }
    if (w->campaign_reopens) {
        campaign_set_state(lc, CAMPAIGN_RUNNING);
        if (lc->row.wanted == WANTED_CANCEL) { /* it came too late, and is taken back */
            lc->row.wanted = WANTED_RUN;
        }
    }
    for (size_t i = 0; i < n && w->verb != VERB_SKIP; i++) {
        bool in_order = next < moved && moved_ids[next] == rows[i].id;
        if (!in_order && !is_among(rows[i].id, moved_ids, moved)) {
            continue;
        }
        if (w->verb == VERB_RETRY) {
            retry_one(s, lc, ls, &rows[i], &w->changes);
        } else {
            hold_one(lc, ls, &rows[i], w->task_to, now_us);
        }
        next += in_order;
    }
    s->look_at_db = s->decide = true;
}

size_t operation_undo_pick(struct retried_row *rows, size_t n, int64_t *ret_ids)
{
    size_t kept = 0;
    int64_t stage_id = n > 0 ? rows[0].stage_id : 0;
    enum task_state state = n > 0 ? rows[0].state : TASK_WAITING;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].stage_id == stage_id && rows[i].state == state) {
            rows[kept] = rows[i];
            ret_ids[kept++] = rows[i].task_id;
        }
    }
    return kept;
}

void operation_undo_apply(struct leader_state *s, struct live_campaign *lc,
                          const struct retried_row *rows, size_t n, const int64_t *moved_ids,
                          size_t moved)
{
    size_t next = 0;
    if (moved == 0) {
        return;
    }
    struct live_stage *ls = leader_state_stage(lc, rows[0].stage_id);
    drop_moved(ls, rows[0].state, moved_ids, moved);
    task_counts_move(lc, ls, rows[0].state, TASK_FAILED, (int64_t)moved);
    for (size_t i = 0; i < n && next < moved; i++) {
        if (rows[i].task_id != moved_ids[next]) {
            continue;
        }
        struct task_change_row *ch = leader_state_change(s, rows[i].task_id, false);
        if (ch != NULL) { /* its tries begin again with the next retry, as in every failed part */
            ch->instance_type_i = rows[i].instance_type_i;
            ch->volume_gb = rows[i].volume_gb;
            ch->max_runtime_s = rows[i].max_runtime_s;
        }
        next++;
    }
    s->look_at_db = s->decide = true;
}
