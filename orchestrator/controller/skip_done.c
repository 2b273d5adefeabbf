/* Skipped when done: tasks of a stage with done_if are looked at in S3 before their first attempt.
 * A bounded number at once, in order; what is there is skipped, the rest becomes ready. An output
 * nobody can look at does not keep a part from running. */
#include "ctl.h"

#define CHECKS_AT_ONCE 32

struct skip_done {
    struct live_campaign *campaign;
    struct live_stage *stage;
    struct task_row task;
    struct precheck_call *call; /* under way */
};
struct precheck_call { /* keeps its place while the array moves */
    struct controller *c;
    int64_t task_id;
    struct output_check *check;
    bool answered, good;
};

static void drop_call(struct skip_done *k)
{
    if (k->call != NULL) {
        output_cancel(k->call->check);
        free(k->call);
        k->call = NULL;
    }
}

void skip_done_cancel_all(struct controller *c)
{
    for (size_t i = 0; i < c->checks_n; i++) {
        drop_call(&c->checks[i]);
    }
    free(c->checks);
    c->checks = NULL;
    c->checks_n = c->checks_cap = 0;
}

void skip_done_add(struct controller *c, struct live_campaign *lc, struct live_stage *ls,
                   const struct task_row *t)
{
    if (c->checks_n == c->checks_cap) {
        c->checks_cap = MAX(64, c->checks_cap * 2);
        c->checks = xrealloc(c->checks, c->checks_cap * sizeof *c->checks);
    }
    c->checks[c->checks_n++] = (struct skip_done){.campaign = lc, .stage = ls, .task = *t};
}

static void on_checked(void *ctx, struct output_verdict *v)
{
    struct precheck_call *call = ctx;
    call->check = NULL;
    call->answered = true;
    call->good = v->checked && v->good;
    free(v->manifest);
    call->c->state.look_at_db = true;
}

static bool skip_tasks(struct controller *c, void *arg, struct err *err)
{
    (void)arg;
    for (size_t i = 0; i < c->checks_n; i++) {
        struct skip_done *k = &c->checks[i];
        size_t moved = 0;
        if (k->call != NULL && k->call->answered && k->call->good &&
            !store_tasks_move(c->store, k->campaign->row.id, k->stage->row.id, TASK_WAITING,
                              TASK_SKIPPED, CAUSE_NONE, &k->task.id, 1, &moved, NULL, err)) {
            return false;
        }
    }
    return true;
}

static void settle_one(struct controller *c, struct skip_done *k)
{
    if (k->call->good) {
        task_counts_move(k->campaign, k->stage, TASK_WAITING, TASK_SKIPPED, 1);
    } else {
        int64_t size_mb = k->task.size / (1024 * 1024);
        ready_queue_push(k->stage->ready,
                         &(struct ready_queue_task){.task_id = k->task.id,
                                                    .not_before_us = k->task.not_before_us,
                                                    .seq = (uint32_t)k->task.seq,
                                                    .size_mb = (uint32_t)size_mb});
    }
    c->state.decide = true;
    drop_call(k);
}

/* Answered ones leave the list; returns how many are still under way. */
static size_t settle_answered(struct controller *c)
{
    size_t kept = 0;
    size_t running = 0;
    for (size_t i = 0; i < c->checks_n; i++) {
        struct skip_done *k = &c->checks[i];
        if (k->call != NULL && k->call->answered) {
            settle_one(c, k);
            continue;
        }
        running += k->call != NULL;
        c->checks[kept++] = *k;
    }
    c->checks_n = kept;
    return running;
}

struct start_arg {
    size_t running;
};

static bool start_some(struct controller *c, void *arg, struct err *err)
{
    struct start_arg *sa = arg;
    for (size_t i = 0; i < c->checks_n && sa->running < CHECKS_AT_ONCE; i++) {
        struct skip_done *k = &c->checks[i];
        struct task_input t = {0};
        if (k->call != NULL) {
            continue;
        }
        if (!task_input_get(c->store, k->campaign->row.id, k->task.id, &t, err)) {
            return false;
        }
        k->call = xcalloc(1, sizeof *k->call);
        k->call->c = c;
        k->call->task_id = k->task.id;
        k->call->check = output_check_done(c, k->campaign, k->stage, &t, on_checked, k->call);
        free(t.uri);
        free(t.vars_json);
        sa->running++;
    }
    return true;
}

bool skip_done_tick(struct controller *c)
{
    bool any_good = false;
    bool any_idle = false;
    if (c->checks_n == 0) {
        return true;
    }
    for (size_t i = 0; i < c->checks_n; i++) {
        const struct precheck_call *call = c->checks[i].call;
        any_good |= call != NULL && call->answered && call->good;
    }
    if (any_good && !leader_tx(c, skip_tasks, NULL)) {
        return false;
    }
    struct start_arg sa = {.running = settle_answered(c)};
    for (size_t i = 0; i < c->checks_n; i++) {
        any_idle |= c->checks[i].call == NULL;
    }
    if (!any_idle || sa.running >= CHECKS_AT_ONCE) {
        return true;
    }
    return leader_tx(c, start_some, &sa);
}
