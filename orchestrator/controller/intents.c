/* See intents.h. */
#include "core/leader/intents.h"
#include "attempt.h"
#include "calls.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "history.h"
#include "intents.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "pool_life.h"

struct intent_batch { /* what one intend transaction works on; arrays of plan->launches_n */
    const struct sched_plan *plan;
    struct leader_view f;
    struct intent *intents;
    struct buf *requests;
    struct task_input *inputs;
    bool *lowered;
};

static struct launch_facts facts_of(const struct intent_batch *b, int i)
{
    const struct sched_launch *l = &b->plan->launches[i];
    return (struct launch_facts){.launch = l,
                                 .stage = &b->f.stages[l->stage_i],
                                 .campaign = b->f.live_campaigns[l->stage_i],
                                 .slots = &b->f.slots[l->slots_i],
                                 .account = &b->f.account,
                                 .pool_id = l->pool_i >= 0 ? b->f.live_pools[l->pool_i]->row.id : 0,
                                 .task = &b->inputs[i]};
}

static bool lower_one(struct controller *c, struct intent_batch *b, int i, int64_t attempt_id,
                      struct err *err)
{
    struct launch_facts f = facts_of(b, i);
    struct intent *in = &b->intents[i];
    AUTO_JSON json_t *vars = NULL;
    struct err why = ERR_INIT;
    if (!task_input_get(c->store, f.stage->campaign_id, f.launch->task.task_id, f.task, err) ||
        (f.task->vars_json != NULL &&
         !json_parse(str_of(f.task->vars_json), INTENT_REQUEST_BYTES_MAX, &vars, err))) {
        return false;
    }
    f.vars = vars;
    leader_plan_intent(&c->state, &f, attempt_id, c->cfg.job_prefix, b->f.view.now_us, in);
    b->lowered[i] =
        leader_plan_request(&c->state, &f, aws_client_region(c->aws), in, &b->requests[i], &why);
    if (!b->lowered[i]) {
        log_event(LOG_ERROR, "request_not_built", LF_I("task", in->task_id), LF_ERR(&why));
        return store_alert(c->store, in->campaign_id, why.message, err);
    }
    return true;
}

static bool write_reasons(struct controller *c, struct intent_batch *b, struct err *err)
{
    for (int i = 0; i < b->f.view.stages_n; i++) {
        struct live_stage *ls = b->f.live_stages[i];
        if (ls->reason != b->plan->reason[i]) {
            if (!store_stage_wait_reason(c->store, ls->row.id, b->plan->reason[i], err)) {
                return false;
            }
            ls->reason = b->plan->reason[i];
        }
    }
    return true;
}

/* Writes the intents that have a request, and takes over what the transaction said of each. */
static bool write_intents(struct controller *c, struct intent_batch *b, struct err *err)
{
    struct intent packed[SCHED_LAUNCHES_MAX];
    int n = b->plan->launches_n;
    size_t m = 0;
    for (int i = 0; i < n; i++) {
        if (b->lowered[i]) {
            packed[m++] = b->intents[i];
        }
    }
    if (FP("intend.in_transaction")) {
        return err_set(err, ERR_DATABASE, "failpoint");
    }
    if (!store_intend(c->store, c->state.epoch, packed, m, err)) {
        return false;
    }
    m = 0;
    for (int i = 0; i < n; i++) {
        if (b->lowered[i]) {
            b->intents[i] = packed[m++];
        }
    }
    return true;
}

static bool intend_all(struct controller *c, void *arg, struct err *err)
{
    struct intent_batch *b = arg;
    int n = b->plan->launches_n;
    int64_t ids[SCHED_LAUNCHES_MAX];
    if (!write_reasons(c, b, err) || !history_write(c, clock_wall_us(), err)) {
        return false;
    }
    if (n == 0) {
        return true;
    }
    if (!attempt_ids(c->store, (size_t)n, ids, err)) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        if (!lower_one(c, b, i, ids[i], err)) {
            return false;
        }
    }
    return write_intents(c, b, err);
}

static void after_commit(struct controller *c, struct intent_batch *b)
{
    for (int i = 0; i < b->plan->launches_n; i++) {
        struct launch_facts f = facts_of(b, i);
        if (b->lowered[i] && b->intents[i].taken) {
            struct live_attempt *a =
                leader_apply_intent(&c->state, &f, &b->intents[i], clock_wall_us());
            attempt_attach_io(c, a);
            if (a->pool != NULL) {
                pool_attach_io(c, a->pool);
            }
            stage_history_started(a, clock_wall_us());
        } else {
            leader_put_back(&c->state, b->f.live_stages[f.launch->stage_i], &f.launch->task,
                            b->lowered[i], clock_wall_us());
        }
    }
}

static bool writes_anything(struct controller *c, const struct intent_batch *b)
{
    bool writes = b->plan->launches_n > 0 || quota_learning_dirty(&c->state, clock_wall_us()) ||
                  stage_history_dirty(&c->state);
    for (int i = 0; i < b->f.view.stages_n; i++) {
        writes |= b->f.live_stages[i]->reason != b->plan->reason[i];
    }
    return writes;
}

static void run_plan(struct controller *c, struct intent_batch *b)
{
    if (!writes_anything(c, b)) {
        return;
    }
    if (FP("intend.before")) {
        leader_lose(c, "failpoint", NULL);
        return;
    }
    if (!leader_tx(c, intend_all, b)) {
        return;
    }
    if (FP("intend.after_commit")) {
        leader_lose(c, "failpoint", NULL);
        return;
    }
    after_commit(c, b);
}

static void end_pools(struct controller *c, struct intent_batch *b)
{
    for (int i = 0; i < b->plan->pool_ends_n; i++) {
        const struct sched_pool_end *e = &b->plan->pool_ends[i];
        pool_ask_end(c, b->f.live_pools[e->pool_i], e->why);
    }
}

static void batch_init(struct intent_batch *b, const struct sched_plan *plan)
{
    size_t n = (size_t)plan->launches_n;
    b->plan = plan;
    b->intents = xcalloc(n + 1, sizeof *b->intents);
    b->requests = xcalloc(n + 1, sizeof *b->requests);
    b->inputs = xcalloc(n + 1, sizeof *b->inputs);
    b->lowered = xcalloc(n + 1, sizeof *b->lowered);
    for (size_t i = 0; i < n; i++) {
        buf_init(&b->requests[i], INTENT_REQUEST_BYTES_MAX);
    }
}

static void batch_done(struct intent_batch *b)
{
    for (int i = 0; i < b->plan->launches_n; i++) {
        buf_done(&b->requests[i]);
        free(b->inputs[i].uri);
        free(b->inputs[i].vars_json);
    }
    free(b->intents);
    free(b->requests);
    free(b->inputs);
    free(b->lowered);
    sched_view_done(&b->f);
}

void intend_tick(struct controller *c)
{
    struct sched_plan *plan = xcalloc(1, sizeof *plan);
    struct intent_batch b = {0};
    int64_t most = call_pace_intents(&c->pace, sched_view_unsent(&c->state), clock_mono_us());
    sched_view_make(&c->state, clock_wall_us(), most, &b.f);
    sched_decide(&b.f.view, plan);
    batch_init(&b, plan);
    leader_note_money_short(&c->state, b.f.stages, b.f.live_campaigns, b.f.live_stages,
                            plan->reason, b.f.view.stages_n);
    end_pools(c, &b);
    run_plan(c, &b);
    batch_done(&b);
    free(plan);
}
