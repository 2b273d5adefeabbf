/* Decide and intend: the view goes to the scheduler, its plan becomes committed intents. Memory
 * proposes, the transaction disposes: what it refuses goes back to the queue. */
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/hash.h"
#include "common/json.h"
#include "common/log.h"
#include "core/money/cost.h"
#include "core/spec/spec_expand.h"
#include "core/spec/training_request.h"
#include "ctl.h"
#include "metrics.h"
#include <stdio.h>

#define REQUEST_MAX     (1024 * 1024)
#define SEND_AHEAD_S    2                  /* no more is intended than can be sent in this time */
#define PUT_BACK_US     (2 * USEC_PER_SEC) /* a refused intent is proposed again after this */
#define LOWER_FAILED_US (300 * USEC_PER_SEC)

struct batch { /* what one intend transaction works on */
    const struct sched_plan *plan;
    struct leader_view f;
    struct intent *intents; /* [plan->launches_n] */
    struct buf *requests;
    struct task_input *inputs;
    bool *lowered;
};

void intend_identity(const struct controller *c, const struct intent *in, uint8_t ret[static 32])
{
    char text[160];
    int n = snprintf(text, sizeof text, "%s/%lld/%lld/%lld/%d", c->state.install_id,
                     (long long)in->campaign_id, (long long)in->stage_id, (long long)in->task_id,
                     in->n);
    hash_sha256(text, (size_t)n, ret);
}

/* What ours of this type may be, others' use and every limit taken off: -1 unreadable. */
static int64_t slot_limit(const struct batch *b, int slots_i)
{
    const struct quota_ledger *s = &b->f.slots[slots_i];
    if (quota_ledger_limit(s, &b->f.account) < 0) {
        return -1;
    }
    return s->held + s->warm_idle + quota_ledger_free(s, &b->f.account, b->f.view.now_us);
}

static void fill_intent(const struct controller *c, struct batch *b, int i, int64_t attempt_id)
{
    const struct sched_launch *l = &b->plan->launches[i];
    const struct sched_stage *ss = &b->f.stages[l->stage_i];
    const struct task_input *t = &b->inputs[i];
    const struct quota_ledger *s = &b->f.slots[l->slots_i];
    struct intent *in = &b->intents[i];
    *in = (struct intent){.campaign_id = ss->campaign_id,
                          .project_id = b->f.live_campaigns[l->stage_i]->row.project_id,
                          .stage_id = ss->stage_id,
                          .task_id = l->task.task_id,
                          .seq = t->seq,
                          .n = t->names + 1,
                          .instances = ss->stage->instance_count,
                          .volume_gb = l->volume_gb,
                          .max_runtime_s = l->max_runtime_s,
                          .price_musd_per_hour = s->price_musd_per_hour,
                          .reserve_musd = l->reserve_musd,
                          .market = s->market,
                          .keep_alive_s = c->state.keep_alive_max_s >= 0
                                              ? MIN(l->keep_alive_s, c->state.keep_alive_max_s)
                                              : l->keep_alive_s,
                          .instance_type_i = l->instance_type_i,
                          .subnet_i = l->subnet_i,
                          .fingerprint = warm_pool_fingerprint_of(ss->stage, l->instance_type_i,
                                                                  l->volume_gb, l->subnet_i),
                          .pool_id = l->pool_i >= 0 ? b->f.live_pools[l->pool_i]->row.id : 0,
                          .slot_limit = slot_limit(b, l->slots_i),
                          .attempt_id = attempt_id};
    memcpy(in->instance_type, s->instance_type, sizeof in->instance_type);
}

static bool lower_one(struct controller *c, struct batch *b, int i, int64_t attempt_id,
                      struct err *err)
{
    const struct sched_launch *l = &b->plan->launches[i];
    const struct sched_stage *ss = &b->f.stages[l->stage_i];
    struct task_input *t = &b->inputs[i];
    struct intent *in = &b->intents[i];
    AUTO_JSON json_t *vars = NULL;
    uint8_t id[32];
    if (!task_input_get(c->store, ss->campaign_id, l->task.task_id, t, err) ||
        (t->vars_json != NULL && !json_parse(str_of(t->vars_json), REQUEST_MAX, &vars, err))) {
        return false;
    }
    fill_intent(c, b, i, attempt_id);
    intend_identity(c, in, id);
    protocol_job_name(c->cfg.job_prefix, in->campaign_id, ss->stage->name, t->seq, in->n, id,
                      &in->name);
    const struct spec_task st = {.campaign_id = in->campaign_id,
                                 .stage_name = ss->stage->name,
                                 .task_id = in->task_id,
                                 .seq = t->seq,
                                 .uri = t->uri,
                                 .size = t->size,
                                 .attempt_n = in->n,
                                 .vars = vars};
    const struct training_request_input li = {
        .spec = ss->spec,
        .stage = ss->stage,
        .task = &st,
        .name = &in->name,
        .attempt_id = attempt_id,
        .instance_type = in->instance_type,
        .volume_gb = in->volume_gb,
        .max_runtime_s = in->max_runtime_s,
        .keep_alive_s = in->keep_alive_s,
        .subnet = in->subnet_i >= 0 ? ss->stage->subnets[in->subnet_i] : NULL,
        .install_id = c->state.install_id,
        .region = aws_client_region(c->aws)};
    struct err why = ERR_INIT;
    b->lowered[i] = training_request_make(&li, &b->requests[i], in->identity_hash, &why);
    if (!b->lowered[i]) {
        log_event(LOG_ERROR, "task_not_lowered", LF_I("task", in->task_id), LF_ERR(&why));
        return store_alert(c->store, in->campaign_id, why.message, err);
    }
    in->request = buf_str(&b->requests[i]);
    return true;
}

static bool write_reasons(struct controller *c, struct batch *b, struct err *err)
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

static bool intend_all(struct controller *c, void *arg, struct err *err)
{
    struct batch *b = arg;
    int n = b->plan->launches_n;
    int64_t ids[SCHED_LAUNCHES_MAX];
    struct intent packed[SCHED_LAUNCHES_MAX];
    size_t m = 0;
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

/* The pool it will leave, if any, from now on. */
static void expect_pool(struct controller *c, struct live_attempt *a, const struct intent *in,
                        struct live_campaign *lc)
{
    if (in->own_pool_id == 0) {
        return;
    }
    struct pool_row row = {.id = in->own_pool_id,
                           .attempt_id = in->attempt_id,
                           .campaign_id = in->campaign_id,
                           .stage_id = in->stage_id,
                           .task_id = in->task_id,
                           .state = POOL_EXPECTED,
                           .fingerprint = in->fingerprint,
                           .instances = in->instances,
                           .keep_alive_s = in->keep_alive_s,
                           .job = in->name,
                           .price_musd_per_hour = in->price_musd_per_hour,
                           .intended_us = a->row.intended_us};
    memcpy(row.instance_type, in->instance_type, sizeof row.instance_type);
    a->pool = pool_add(c, &row, lc);
    a->pool->attempt = a;
}

static void count_slots(struct controller *c, struct live_attempt *a)
{
    struct live_slots *s = leader_state_slots(&c->state, a->row.instance_type, a->row.market);
    slots_hold(s, a->row.instances);
    if (a->row.pool_id != 0) {
        slots_idle_end(s, a->row.instances);
        a->taken = leader_state_pool(&c->state, a->row.pool_id);
        ASSERT(a->taken != NULL);
        a->taken->row.taken_by = a->row.id;
    }
}

static struct attempt_row row_of(const struct controller *c, struct batch *b, int i)
{
    const struct intent *in = &b->intents[i];
    struct attempt_row row = {.id = in->attempt_id,
                              .project_id = in->project_id,
                              .campaign_id = in->campaign_id,
                              .stage_id = in->stage_id,
                              .task_id = in->task_id,
                              .seq = in->seq,
                              .n = in->n,
                              .state = ATTEMPT_INTENDED,
                              .epoch = c->state.epoch,
                              .name = in->name,
                              .instances = in->instances,
                              .volume_gb = in->volume_gb,
                              .max_runtime_s = in->max_runtime_s,
                              .price_musd_per_hour = in->price_musd_per_hour,
                              .reserved_musd = in->reserve_musd,
                              .open_musd = in->reserve_musd,
                              .market = in->market,
                              .keep_alive_s = in->keep_alive_s,
                              .instance_type_i = in->instance_type_i,
                              .subnet_i = in->subnet_i,
                              .pool_id = in->pool_id,
                              .holds = true,
                              .intended_us = clock_wall_us(),
                              .task_attempts = b->inputs[i].attempts,
                              .uri = TAKE(b->inputs[i].uri),
                              .size = b->inputs[i].size,
                              .vars_json = TAKE(b->inputs[i].vars_json)};
    memcpy(row.identity_hash, in->identity_hash, sizeof row.identity_hash);
    memcpy(row.instance_type, in->instance_type, sizeof row.instance_type);
    return row;
}

static void intended(struct controller *c, struct batch *b, int i)
{
    const struct sched_launch *l = &b->plan->launches[i];
    const struct intent *in = &b->intents[i];
    struct live_stage *ls = b->f.live_stages[l->stage_i];
    struct live_campaign *lc = b->f.live_campaigns[l->stage_i];
    struct attempt_row row = row_of(c, b, i);
    struct live_attempt *a = attempt_add(c, &row, lc);
    buf_add_str(&a->request, in->request);
    count_slots(c, a);
    expect_pool(c, a, in, lc);
    stage_history_started(a, clock_wall_us());
    budget_state_move(c, lc, ls, in->reserve_musd, 0, 0);
    lc->last_start_us = row.intended_us;
    task_counts_move(lc, ls, TASK_WAITING, TASK_ACTIVE, 1);
    c->state.act = true;
}

static void put_back(struct controller *c, struct batch *b, int i, int64_t after_us)
{
    const struct sched_launch *l = &b->plan->launches[i];
    struct ready_queue_task t = l->task;
    if (after_us > 0) {
        t.not_before_us = clock_wall_us() + after_us;
    }
    ready_queue_push(b->f.live_stages[l->stage_i]->ready, &t);
    c->state.look_at_db = true;
}

static void after_commit(struct controller *c, struct batch *b)
{
    for (int i = 0; i < b->plan->launches_n; i++) {
        if (!b->lowered[i]) {
            put_back(c, b, i, LOWER_FAILED_US);
        } else if (b->intents[i].taken) {
            intended(c, b, i);
        } else {
            put_back(c, b, i, PUT_BACK_US);
        }
    }
}

/* Is what a campaign has spent so much that one more attempt of this stage would not fit its caps,
 * even if everything that runs gave all its money back? */
static bool spent_up(struct controller *c, const struct live_campaign *lc,
                     const struct live_stage *ls)
{
    const struct spec_stage *st = ls->spec;
    const struct live_slots *s = leader_state_slots(&c->state, st->instance_type[0],
                                                    st->spot ? MARKET_SPOT : MARKET_ON_DEMAND);
    musd_t left = MIN(budget_state_left(lc->row.cap_musd, 0, lc->row.spent_musd),
                      budget_state_left(ls->row.cap_musd, 0, ls->row.spent_musd));
    return s->s.price_musd_per_hour >= 0 &&
           cost_runtime_that_fits(s->s.price_musd_per_hour, st->instance_count, 0, left) <
               st->min_runtime_s;
}

/* Does money keep a campaign from starting, now or for good? Its at_limit says what follows. */
static void budget_short(struct controller *c, const struct batch *b)
{
    for (size_t i = 0; i < c->state.campaigns_n; i++) {
        c->state.campaigns[i]->budget_short = c->state.campaigns[i]->budget_spent = false;
    }
    for (int i = 0; i < b->f.view.stages_n; i++) {
        struct live_campaign *lc = b->f.live_campaigns[i];
        lc->budget_short |= b->plan->reason[i] == WAIT_BUDGET;
        if (b->f.stages[i].may_start || b->plan->reason[i] == WAIT_BUDGET) {
            lc->budget_spent |= spent_up(c, lc, b->f.live_stages[i]);
        }
    }
}

static void run_plan(struct controller *c, struct batch *b)
{
    bool writes = b->plan->launches_n > 0 || quota_learning_dirty(&c->state, clock_wall_us()) ||
                  stage_history_dirty(&c->state);
    for (int i = 0; i < b->f.view.stages_n; i++) {
        writes |= b->f.live_stages[i]->reason != b->plan->reason[i];
    }
    if (!writes) {
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

static void end_pools(struct batch *b)
{
    for (int i = 0; i < b->plan->pool_ends_n; i++) {
        const struct sched_pool_end *e = &b->plan->pool_ends[i];
        pool_ask_end(b->f.live_pools[e->pool_i], e->why);
    }
}

/* How many may be intended: no more than can be sent soon. */
static int64_t tokens(const struct controller *c)
{
    if (c->create_unlimited) {
        return SCHED_LAUNCHES_MAX;
    }
    int64_t ahead = SEND_AHEAD_S * c->create_bucket.rate_per_s_u / 1000000;
    return MAX(0, token_bucket_available(&c->create_bucket, clock_mono_us()) + ahead -
                      sched_view_unsent(&c->state));
}

void intend_tick(struct controller *c)
{
    struct sched_plan *plan = xcalloc(1, sizeof *plan);
    struct batch b = {.plan = plan};
    sched_view_make(&c->state, clock_wall_us(), tokens(c), &b.f);
    sched_decide(&b.f.view, plan);
    size_t n = (size_t)plan->launches_n;
    b.intents = xcalloc(n + 1, sizeof *b.intents);
    b.requests = xcalloc(n + 1, sizeof *b.requests);
    b.inputs = xcalloc(n + 1, sizeof *b.inputs);
    b.lowered = xcalloc(n + 1, sizeof *b.lowered);
    for (size_t i = 0; i < n; i++) {
        buf_init(&b.requests[i], REQUEST_MAX);
    }
    budget_short(c, &b);
    end_pools(&b);
    run_plan(c, &b);
    for (size_t i = 0; i < n; i++) {
        buf_done(&b.requests[i]);
        free(b.inputs[i].uri);
        free(b.inputs[i].vars_json);
    }
    free(b.intents);
    free(b.requests);
    free(b.inputs);
    free(b.lowered);
    sched_view_done(&b.f);
    free(plan);
}
