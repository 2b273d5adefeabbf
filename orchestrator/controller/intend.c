/* Decide and intend: the view goes to the scheduler, its plan becomes committed intents. Memory
 * proposes, the transaction disposes: what it refuses goes back to the queue. */
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/hash.h"
#include "common/json.h"
#include "common/log.h"
#include "core/lower.h"
#include "ctl.h"
#include "metrics.h"
#include <stdio.h>

#define REQUEST_MAX     (1024 * 1024)
#define SEND_AHEAD_S    2                  /* no more is intended than can be sent in this time */
#define PUT_BACK_US     (2 * USEC_PER_SEC) /* a refused intent is proposed again after this */
#define LOWER_FAILED_US (300 * USEC_PER_SEC)
#define WEIGHT_DEFAULT  100

struct batch { /* what one intend transaction works on */
    const struct sched_plan *plan;
    struct sched_stage *stages;
    struct live_stage **live_stages; /* beside stages */
    struct live_campaign **live_campaigns;
    struct sched_campaign *campaigns;
    struct sched_project *projects;
    struct slots *slots;
    struct slots_account account;
    struct intent *intents; /* [plan->launches_n] */
    struct buf *requests;
    struct task_input *inputs;
    bool *lowered;
};

static musd_t left_of(musd_t cap, musd_t used)
{
    return cap < 0 ? INT64_MAX : MAX(0, cap - used);
}

static int64_t tokens(const struct controller *c)
{
    int64_t now_us = clock_mono_us();
    int64_t unsent = 0;
    if (c->create_unlimited) {
        return SCHED_LAUNCHES_MAX;
    }
    for (size_t i = 0; i < c->attempts_n; i++) {
        const struct protocol_attempt *p = &c->attempts[i]->p;
        unsent += p->state == ATTEMPT_INTENDED && !p->create_in_flight;
    }
    int64_t ahead = SEND_AHEAD_S * c->create_bucket.rate_per_s_u / 1000000;
    return MAX(0, bucket_available(&c->create_bucket, now_us) + ahead - unsent);
}

static bool change_of(void *ctx, int64_t task_id, int *ret_type_i, int *ret_volume_gb,
                      int64_t *ret_max_runtime_s)
{
    const struct task_change_row *ch = view_change(ctx, task_id, false);
    if (ch == NULL) {
        return false;
    }
    *ret_type_i = ch->instance_type_i;
    *ret_volume_gb = ch->volume_gb;
    *ret_max_runtime_s = ch->max_runtime_s;
    return true;
}

static enum wait_reason why_not(const struct live_campaign *lc, const struct live_stage *ls)
{
    if (ls->row.state == STAGE_BLOCKED) {
        return WAIT_STAGE_BLOCKED;
    }
    if (ls->row.state != STAGE_RUNNING) {
        return WAIT_HELD;
    }
    if (lc->row.wanted != WANTED_RUN || lc->row.state == CAMPAIGN_PAUSED ||
        lc->row.state == CAMPAIGN_DRAINING) {
        return WAIT_PAUSED;
    }
    if (lc->row.state == CAMPAIGN_RUNNING) {
        return WAIT_NONE;
    }
    return lc->budget_held ? WAIT_BUDGET : WAIT_HELD;
}

/* The project's place in the view, a new one when it is not there. */
static int fill_project(const struct campaign_row *r, struct sched_project *projects, int *n)
{
    for (int i = 0; i < *n; i++) {
        if (projects[i].project_id == r->project_id) {
            return i;
        }
    }
    projects[*n] =
        (struct sched_project){.project_id = r->project_id,
                               .weight = WEIGHT_DEFAULT,
                               .parts_limit = -1,
                               .left_musd = left_of(r->project_cap_musd, r->project_used_musd)};
    return (*n)++;
}

static void fill_campaign(struct controller *c, const struct live_campaign *lc, int project_i,
                          struct sched_campaign *ret, struct sched_project *project)
{
    const struct campaign_row *r = &lc->row;
    *ret = (struct sched_campaign){.campaign_id = r->id,
                                   .project_i = project_i,
                                   .weight = WEIGHT_DEFAULT,
                                   .live = lc->live,
                                   .last_start_us = lc->last_start_us,
                                   .parts_limit = r->parts_limit,
                                   .left_musd =
                                       left_of(r->cap_musd, r->reserved_musd + r->spent_musd)};
    for (size_t i = 0; i < c->attempts_n; i++) {
        const struct live_attempt *a = c->attempts[i];
        if (a->campaign != lc || !a->row.holds) {
            continue;
        }
        ret->held += a->row.instances;
        ret->last_start_us = MAX(ret->last_start_us, a->row.intended_us);
        for (int k = 0; k < lc->spec->instances_n; k++) {
            if (strcmp(lc->spec->instances[k].instance_type, a->row.instance_type) == 0) {
                ret->type_held[k] += a->row.instances;
            }
        }
    }
    project->live += ret->live;
    project->held += ret->held;
    project->last_start_us = MAX(project->last_start_us, ret->last_start_us);
}

static void fill_stage(const struct live_campaign *lc, const struct live_stage *ls, int campaign_i,
                       struct sched_stage *ret)
{
    enum wait_reason why = why_not(lc, ls);
    *ret = (struct sched_stage){
        .campaign_id = lc->row.id,
        .stage_id = ls->row.id,
        .spec = lc->spec,
        .stage = ls->spec,
        .ready = ls->ready,
        .may_start = why == WAIT_NONE,
        .why_not = why,
        .priority = lc->row.priority,
        .campaign_i = campaign_i,
        .live = ls->row.counts[TASK_ACTIVE],
        .parts_limit = -1,
        .stage_left_musd = left_of(ls->row.cap_musd, ls->row.reserved_musd + ls->row.spent_musd)};
}

static void fill_slots(struct controller *c, struct sched_view *view, struct batch *b)
{
    b->slots = xcalloc(c->slots_n + 1, sizeof *b->slots);
    b->account = (struct slots_account)SLOTS_ACCOUNT_UNLIMITED;
    b->account.total[MARKET_ON_DEMAND].limit = c->total_quota;
    for (size_t i = 0; i < c->slots_n; i++) {
        const struct live_slots *s = &c->slots[i];
        struct slots *out = &b->slots[i];
        *out = (struct slots){.held = s->row.held,
                              .quota = s->quota,
                              .warm_quota = -1,
                              .operator_limit = -1,
                              .foreign = s->row.foreign,
                              .foreign_us = view->now_us, /* the controller forgets it itself */
                              .refused_limit = -1,
                              .price_musd_per_hour = s->row.price_musd_per_hour};
        memcpy(out->instance_type, s->row.instance_type, sizeof out->instance_type);
        b->account.total[MARKET_ON_DEMAND].held += s->row.held;
    }
    view->slots = b->slots;
    view->slots_n = (int)c->slots_n;
    view->account = &b->account;
}

static void propose(struct controller *c, struct sched_view *view, struct batch *b)
{
    view->now_us = clock_wall_us();
    view->tokens = tokens(c);
    view->parts_limit = -1;
    view->left_musd = INT64_MAX;
    view->change_of = change_of;
    view->ctx = c;
    view->projects = b->projects;
    for (size_t i = 0; i < c->campaigns_n; i++) {
        struct live_campaign *lc = c->campaigns[i];
        int project_i = fill_project(&lc->row, b->projects, &view->projects_n);
        fill_campaign(c, lc, project_i, &b->campaigns[view->campaigns_n], &b->projects[project_i]);
        view->live += lc->live;
        view->left_musd = left_of(lc->row.global_cap_musd, lc->row.global_used_musd);
        for (int k = 0; k < lc->stages_n && view->stages_n < SCHED_STAGES_MAX; k++) {
            struct live_stage *ls = &lc->stages[k];
            if (ls->spec == NULL || ready_n(ls->ready) == 0) {
                continue;
            }
            for (int t = 0; t < ls->spec->instance_type_n; t++) {
                (void)view_slots_of(c, ls->spec->instance_type[t]);
            }
            b->live_stages[view->stages_n] = ls;
            b->live_campaigns[view->stages_n] = lc;
            fill_stage(lc, ls, view->campaigns_n, &view->stages[view->stages_n++]);
        }
        view->campaigns_n++;
    }
    fill_slots(c, view, b);
}

static void identity(const struct controller *c, const struct intent *in, uint8_t ret[static 32])
{
    char text[160];
    int n = snprintf(text, sizeof text, "%s/%lld/%lld/%lld/%d", c->install_id,
                     (long long)in->campaign_id, (long long)in->stage_id, (long long)in->task_id,
                     in->n);
    hash_sha256(text, (size_t)n, ret);
}

static bool lower_one(struct controller *c, struct batch *b, int i, int64_t attempt_id,
                      struct err *err)
{
    const struct sched_launch *l = &b->plan->launches[i];
    const struct sched_stage *ss = &b->stages[l->stage_i];
    struct task_input *t = &b->inputs[i];
    struct intent *in = &b->intents[i];
    AUTO_JSON json_t *vars = NULL;
    uint8_t id[32];
    if (!task_input_get(c->store, ss->campaign_id, l->task.task_id, t, err) ||
        (t->vars_json != NULL && !json_parse(str_of(t->vars_json), REQUEST_MAX, &vars, err))) {
        return false;
    }
    *in = (struct intent){.campaign_id = ss->campaign_id,
                          .project_id = b->live_campaigns[l->stage_i]->row.project_id,
                          .stage_id = ss->stage_id,
                          .task_id = l->task.task_id,
                          .seq = t->seq,
                          .n = t->names + 1,
                          .instances = ss->stage->instance_count,
                          .volume_gb = l->volume_gb,
                          .max_runtime_s = l->max_runtime_s,
                          .price_musd_per_hour = b->slots[l->slots_i].price_musd_per_hour,
                          .reserve_musd = l->reserve_musd,
                          .instance_type_i = l->instance_type_i,
                          .subnet_i = l->subnet_i,
                          .market = ss->stage->spot ? MARKET_SPOT : MARKET_ON_DEMAND,
                          .slot_limit = slots_limit(&b->slots[l->slots_i], &b->account),
                          .attempt_id = attempt_id};
    memcpy(in->instance_type, b->slots[l->slots_i].instance_type, sizeof in->instance_type);
    identity(c, in, id);
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
    const struct lower_input li = {.spec = ss->spec,
                                   .stage = ss->stage,
                                   .task = &st,
                                   .name = &in->name,
                                   .attempt_id = attempt_id,
                                   .instance_type = in->instance_type,
                                   .volume_gb = in->volume_gb,
                                   .max_runtime_s = in->max_runtime_s,
                                   .install_id = c->install_id,
                                   .region = aws_client_region(c->aws)};
    struct err why = ERR_INIT;
    b->lowered[i] = lower_attempt(&li, &b->requests[i], in->identity_hash, &why);
    if (!b->lowered[i]) {
        log_event(LOG_ERROR, "task_not_lowered", LF_I("task", in->task_id), LF_ERR(&why));
        return store_alert(c->store, in->campaign_id, why.message, err);
    }
    in->request = buf_str(&b->requests[i]);
    return true;
}

static bool write_reasons(struct controller *c, struct batch *b, int stages_n, struct err *err)
{
    for (int i = 0; i < stages_n; i++) {
        struct live_stage *ls = b->live_stages[i];
        if (ls->reason != b->plan->reason[i]) {
            if (!store_stage_wait_reason(c->store, ls->row.id, b->plan->reason[i], err)) {
                return false;
            }
            ls->reason = b->plan->reason[i];
        }
    }
    return true;
}

struct intend_arg {
    struct batch *b;
    int stages_n;
};

static bool intend_all(struct controller *c, void *arg, struct err *err)
{
    struct intend_arg *ia = arg;
    struct batch *b = ia->b;
    int n = b->plan->launches_n;
    int64_t ids[SCHED_LAUNCHES_MAX];
    struct intent packed[SCHED_LAUNCHES_MAX];
    size_t m = 0;
    if (!write_reasons(c, b, ia->stages_n, err)) {
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
    if (!store_intend(c->store, c->epoch, packed, m, err)) {
        return false;
    }
    m = 0;
    for (int i = 0; i < n; i++) {
        if (b->lowered[i]) {
            b->intents[i].taken = packed[m++].taken;
        }
    }
    return true;
}

static void used_more(struct controller *c, struct live_campaign *lc, struct live_stage *ls,
                      musd_t musd)
{
    lc->row.reserved_musd += musd;
    ls->row.reserved_musd += musd;
    for (size_t i = 0; i < c->campaigns_n; i++) {
        struct campaign_row *r = &c->campaigns[i]->row;
        r->global_used_musd += musd;
        r->project_used_musd += r->project_id == lc->row.project_id ? musd : 0;
    }
}

static void intended(struct controller *c, struct batch *b, int i)
{
    const struct sched_launch *l = &b->plan->launches[i];
    const struct intent *in = &b->intents[i];
    struct live_stage *ls = b->live_stages[l->stage_i];
    struct live_campaign *lc = b->live_campaigns[l->stage_i];
    struct attempt_row row = {.id = in->attempt_id,
                              .campaign_id = in->campaign_id,
                              .stage_id = in->stage_id,
                              .task_id = in->task_id,
                              .seq = in->seq,
                              .n = in->n,
                              .state = ATTEMPT_INTENDED,
                              .epoch = c->epoch,
                              .name = in->name,
                              .instances = in->instances,
                              .volume_gb = in->volume_gb,
                              .max_runtime_s = in->max_runtime_s,
                              .price_musd_per_hour = in->price_musd_per_hour,
                              .reserved_musd = in->reserve_musd,
                              .open_musd = in->reserve_musd,
                              .market = in->market,
                              .instance_type_i = in->instance_type_i,
                              .subnet_i = in->subnet_i,
                              .holds = true,
                              .intended_us = clock_wall_us(),
                              .task_attempts = b->inputs[i].attempts,
                              .uri = TAKE(b->inputs[i].uri),
                              .size = b->inputs[i].size,
                              .vars_json = TAKE(b->inputs[i].vars_json)};
    memcpy(row.identity_hash, in->identity_hash, sizeof row.identity_hash);
    memcpy(row.instance_type, in->instance_type, sizeof row.instance_type);
    struct live_attempt *a = attempt_add(c, &row, lc);
    buf_add_str(&a->request, in->request);
    view_slots_of(c, in->instance_type)->row.held += in->instances;
    used_more(c, lc, ls, in->reserve_musd);
    lc->live++;
    lc->last_start_us = row.intended_us;
    ls->row.counts[TASK_WAITING]--;
    ls->row.counts[TASK_ACTIVE]++;
    c->act = true;
}

static void put_back(struct controller *c, struct batch *b, int i, int64_t after_us)
{
    const struct sched_launch *l = &b->plan->launches[i];
    struct ready_task t = l->task;
    if (after_us > 0) {
        t.not_before_us = clock_wall_us() + after_us;
    }
    ready_push(b->live_stages[l->stage_i]->ready, &t);
    c->look_at_db = true;
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

static void budget_held(struct batch *b, int stages_n)
{
    for (int i = 0; i < stages_n; i++) {
        struct live_campaign *lc = b->live_campaigns[i];
        if (b->plan->reason[i] == WAIT_BUDGET && lc->live == 0) {
            lc->budget_held = true;
        }
    }
}

static void run_plan(struct controller *c, struct batch *b, int stages_n)
{
    struct intend_arg ia = {.b = b, .stages_n = stages_n};
    bool reasons = false;
    for (int i = 0; i < stages_n; i++) {
        reasons |= b->live_stages[i]->reason != b->plan->reason[i];
    }
    if (b->plan->launches_n == 0 && !reasons) {
        return;
    }
    if (FP("intend.before")) {
        leader_lose(c, "failpoint", NULL);
        return;
    }
    if (!leader_tx(c, intend_all, &ia)) {
        return;
    }
    if (FP("intend.after_commit")) {
        leader_lose(c, "failpoint", NULL);
        return;
    }
    after_commit(c, b);
}

void intend_tick(struct controller *c)
{
    size_t stages_cap = 1;
    for (size_t i = 0; i < c->campaigns_n; i++) {
        stages_cap += (size_t)c->campaigns[i]->stages_n;
    }
    struct sched_plan *plan = xcalloc(1, sizeof *plan);
    struct batch b = {.plan = plan,
                      .stages = xcalloc(stages_cap, sizeof(struct sched_stage)),
                      .campaigns = xcalloc(c->campaigns_n + 1, sizeof(struct sched_campaign)),
                      .projects = xcalloc(c->campaigns_n + 1, sizeof(struct sched_project)),
                      .live_stages = xcalloc(stages_cap, sizeof(struct live_stage *)),
                      .live_campaigns = xcalloc(stages_cap, sizeof(struct live_campaign *))};
    struct sched_view view = {.stages = b.stages, .campaigns = b.campaigns};
    propose(c, &view, &b);
    sched_decide(&view, plan);
    size_t n = (size_t)plan->launches_n;
    b.intents = xcalloc(n + 1, sizeof *b.intents);
    b.requests = xcalloc(n + 1, sizeof *b.requests);
    b.inputs = xcalloc(n + 1, sizeof *b.inputs);
    b.lowered = xcalloc(n + 1, sizeof *b.lowered);
    for (size_t i = 0; i < n; i++) {
        buf_init(&b.requests[i], REQUEST_MAX);
    }
    budget_held(&b, view.stages_n);
    run_plan(c, &b, view.stages_n);
    for (size_t i = 0; i < n; i++) {
        buf_done(&b.requests[i]);
        free(b.inputs[i].uri);
        free(b.inputs[i].vars_json);
    }
    free(b.intents);
    free(b.requests);
    free(b.inputs);
    free(b.lowered);
    free(b.live_stages);
    free(b.live_campaigns);
    free(b.slots);
    free(b.stages);
    free(b.campaigns);
    free(b.projects);
    free(plan);
}
