/* The judge of plans: limits of parts and types, pools, canaries and breakers, counted from what
 * the scheduler was shown and from the rows, by arithmetic of its own. */
#include "sim_world.h"

#define TAUGHT_US       (5 * SEC)     /* so long after a refusal nothing it excludes is tried */
#define PARKED_US       (5 * MINUTE)  /* a pool that no task matches is ended within this time */
#define SETTLE_US       (45 * MINUTE) /* of the calm: holds and outages are over */
#define LONG_ALIVE_US   (10 * MINUTE)
#define CLOCKS_APART_US (5 * MINUTE) /* a leader's and AWS's: less than four are not learned */
#define SHARD_US        (5 * MINUTE) /* our worker has made its first shard durable */

static void check_limit(struct world *w, const char *of, int64_t id, int64_t limit, int64_t live,
                        int64_t started)
{
    if (limit >= 0 && started > 0 && live + started > limit) {
        wrong(w, "I4", "%s %lld: %lld parts start, %lld are active, its limit is %lld", of,
              (long long)id, (long long)started, (long long)live, (long long)limit);
    }
    if (limit >= 0 && started > 0 && live + started == limit) {
        SOMETIMES(w, LIMIT_REACHED);
    }
}

static void check_parts(struct world *w, const struct sched_view *v, const struct sched_plan *p)
{
    int64_t stage[STAGES_MAX] = {0}, campaign[CAMPAIGNS_MAX] = {0}, project[PROJECTS_MAX] = {0};
    for (int i = 0; i < p->launches_n; i++) {
        int s = p->launches[i].stage_i;
        stage[s]++;
        campaign[v->stages[s].campaign_i]++;
        project[v->campaigns[v->stages[s].campaign_i].project_i]++;
    }
    for (int i = 0; i < v->stages_n; i++) {
        check_limit(w, "stage", v->stages[i].stage_id, v->stages[i].parts_limit, v->stages[i].live,
                    stage[i]);
    }
    for (int i = 0; i < v->campaigns_n; i++) {
        check_limit(w, "campaign", i, v->campaigns[i].parts_limit, v->campaigns[i].live,
                    campaign[i]);
    }
    for (int i = 0; i < v->projects_n; i++) {
        check_limit(w, "project", i, v->projects[i].parts_limit, v->projects[i].live, project[i]);
    }
    check_limit(w, "the whole", 0, v->parts_limit, v->live, p->launches_n);
}

/* A campaign's own limit of an instance type. */
static void check_types(struct world *w, const struct sched_view *v, const struct sched_plan *p)
{
    for (int c = 0; c < v->campaigns_n; c++) {
        const struct spec *spec = &w->spec[row_of_id(v->campaigns[c].campaign_id)];
        for (int k = 0; k < spec->instances_n; k++) {
            const struct spec_limit *l = &spec->instances[k];
            int64_t taken = 0;
            for (int i = 0; i < p->launches_n; i++) {
                const struct sched_stage *s = &v->stages[p->launches[i].stage_i];
                const char *type = v->slots[p->launches[i].slots_i].instance_type;
                bool counts = s->campaign_i == c && strcmp(type, l->instance_type) == 0;
                taken += counts ? s->stage->instance_count : 0;
            }
            check_limit(w, "a type's limit of campaign", c, l->n, v->campaigns[c].type_held[k],
                        taken);
        }
    }
}

static void check_pools(struct world *w, const struct sched_view *v, const struct sched_plan *p)
{
    int64_t kept[KINDS_MAX] = {0};
    for (int i = 0; i < p->launches_n; i++) {
        const struct sched_launch *l = &p->launches[i];
        const struct spec_stage *s = v->stages[l->stage_i].stage;
        kept[l->slots_i] += l->keep_alive_s > 0 ? s->instance_count : 0;
        if (s->spot && l->keep_alive_s > 0) {
            wrong(w, "I8", "a spot part asks for a pool");
        }
        if (l->pool_i < 0) {
            continue;
        }
        const struct warm_pool *pool = &v->pools[l->pool_i];
        kept[l->slots_i] -= s->instance_count; /* what it holds passes on with it */
        if (pool->state != POOL_AVAILABLE || pool->ending) {
            wrong(w, "I8", "a part is sent to the pool of attempt %lld, which is %s%s",
                  (long long)pool->attempt_id, pool_state_name(pool->state),
                  pool->ending ? " and being ended" : "");
        }
    }
    for (int t = 0; t < v->slots_n; t++) {
        if (kept[t] > 0 && v->slots[t].warm_held + kept[t] > MAX(0, v->slots[t].warm_quota)) {
            wrong(w, "I8",
                  "%lld more instances of %s ask for a pool, %lld have one, the quota is %lld",
                  (long long)kept[t], w->types[t], (long long)v->slots[t].warm_held,
                  (long long)v->slots[t].warm_quota);
        }
    }
}

/* Whatever steps the clock of the leader makes, an idle pool is neither older nor nearer to its end
 * than it is. */
static void check_pool_times(struct world *w, const struct sched_view *v)
{
    usec_t now_us = SIM_EPOCH_US + w->now_us;
    for (int i = 0; i < v->pools_n; i++) {
        const struct warm_pool *p = &v->pools[i];
        int attempt = row_of_id(p->attempt_id);
        const struct intent_seen *in = judge_intent(w, ATTEMPT(w, attempt)->name_hash);
        if (p->state != POOL_AVAILABLE || in == NULL || in->job < 0) {
            continue;
        }
        const struct job *j = &w->aws.jobs[in->job];
        int64_t older_us = v->now_us - p->available_us - (now_us - j->pool_since_us);
        int64_t sooner_us = j->pool_until_us - now_us - (p->expires_us - v->now_us);
        if (older_us > CLOCKS_APART_US || sooner_us > CLOCKS_APART_US) {
            wrong(w, "I8", "the pool of %s is believed %lld s older and %lld s nearer to its end",
                  j->name.s, (long long)(older_us / SEC), (long long)(sooner_us / SEC));
        }
    }
}

/* The operator's limit of a type: a plan does not go beyond it. */
static void check_operator_limits(struct world *w, const struct sched_view *v,
                                  const struct sched_plan *p)
{
    int64_t taken[KINDS_MAX] = {0};
    for (int i = 0; i < p->launches_n; i++) {
        const struct sched_launch *l = &p->launches[i];
        taken[l->slots_i] += l->pool_i < 0 ? v->stages[l->stage_i].stage->instance_count : 0;
    }
    for (int t = 0; t < v->slots_n; t++) {
        const struct quota_ledger *s = &v->slots[t];
        if (taken[t] > 0 && s->operator_limit >= 0 &&
            s->held + s->warm_idle + taken[t] > s->operator_limit) {
            wrong(w, "I4", "%lld more instances of %s, %lld are held, people allow %lld",
                  (long long)taken[t], w->types[t], (long long)(s->held + s->warm_idle),
                  (long long)s->operator_limit);
        }
    }
}

/* A pool expired: one that no task could use for long should have been ended earlier. */
void judge_pool_expired(struct world *w, int job)
{
    const struct job *j = &w->aws.jobs[job];
    if (!w->calm || j->intent < 0 || w->judge.intents[j->intent].lost ||
        w->now_us < w->fault_until_us + SETTLE_US) {
        return;
    }
    const struct intent_seen *in = &w->judge.intents[j->intent];
    const struct db_campaign *dc = CAMPAIGN(w, in->campaign);
    bool ends = w->stage[TASK_STAGE(w, in->task)].warm.end_when_queue_empty;
    bool over = campaign_state_terminal(dc->state) && w->now_us - dc->ended_us > PARKED_US;
    if (ends && over && w->now_us - w->judge.waited_us > PARKED_US &&
        SIM_EPOCH_US + w->now_us - j->pool_since_us > PARKED_US) {
        wrong(w, "I8", "the pool of %s was kept to its last second, long after its campaign",
              j->name.s);
    }
}

static int64_t ours_of(const struct ctl *c, int type)
{
    return c->state.slots[type].s.held + c->state.slots[type].s.warm_idle;
}

/* SageMaker told this leader the use and the limit of a type when it refused `instances`. */
void judge_taught(struct world *w, const struct ctl *c, int type, int instances, int64_t limit,
                  int64_t used)
{
    w->judge.taught[type] = (struct taught){.lead = c->lead,
                                            .ctl = c->id,
                                            .at_us = w->now_us,
                                            .free_n = MAX(0, limit - used),
                                            .wall_ahead_us = c->wall_ahead_us,
                                            .ours = ours_of(c, type) - instances};
}

/* An accepted Create, or a new reading of the quota, is newer than a refusal. */
void judge_untaught(struct world *w)
{
    for (int t = 0; t < KINDS_MAX; t++) {
        w->judge.taught[t].at_us = INT64_MIN / 2;
    }
}

static void check_taught(struct world *w, const struct ctl *c, const struct sched_view *v,
                         const struct sched_plan *p)
{
    for (int t = 0; t < v->slots_n; t++) {
        const struct taught *known = &w->judge.taught[t];
        int64_t n = 0;
        for (int i = 0; i < p->launches_n; i++) {
            bool cold = p->launches[i].slots_i == t && p->launches[i].pool_i < 0;
            n += cold ? v->stages[p->launches[i].stage_i].stage->instance_count : 0;
        }
        if (known->lead == c->lead && known->ctl == c->id &&
            known->wall_ahead_us == c->wall_ahead_us && w->now_us - known->at_us < TAUGHT_US &&
            ours_of(c, t) >= known->ours && n > known->free_n) {
            wrong(w, "I4", "%lld of %s start though SageMaker has just said that %lld are free",
                  (long long)n, w->types[t], (long long)known->free_n);
        }
    }
}

/* A task of several instances that waits for slots within its limit has a reservation. */
static void check_gangs(struct world *w, const struct sched_view *v, const struct sched_plan *p)
{
    for (int i = 0; i < v->stages_n; i++) {
        const struct sched_stage *s = &v->stages[i];
        if (p->reason[i] != WAIT_SLOTS || s->stage->instance_count <= 1 ||
            s->stage->instance_type_n > 1 || s->spec->instances_n > 0 ||
            v->account->total[s->stage->spot ? MARKET_SPOT : MARKET_ON_DEMAND].limit >= 0) {
            continue;
        }
        for (int t = 0; t < v->slots_n; t++) {
            const struct quota_ledger *sl = &v->slots[t];
            bool same = strcmp(sl->instance_type, s->stage->instance_type[0]) == 0 &&
                        (sl->market == MARKET_SPOT) == s->stage->spot;
            if (same && sl->foreign == 0 && sl->refused_limit < 0 && sl->operator_limit < 0 &&
                sl->quota >= s->stage->instance_count) {
                wrong(w, "I18", "stage %lld waits for %d instances without a reservation",
                      (long long)s->stage_id, s->stage->instance_count);
            }
        }
    }
}

void judge_plan_limits(struct world *w, const struct ctl *c, const struct sched_view *v,
                       const struct sched_plan *p)
{
    check_parts(w, v, p);
    check_types(w, v, p);
    check_pools(w, v, p);
    check_pool_times(w, v);
    check_operator_limits(w, v, p);
    check_taught(w, c, v, p);
    check_gangs(w, v, p);
}

struct tries { /* of a stage since its breaker was reset */
    int64_t live, failed;
    bool passed;
};

/* A job has run long enough to prove that the work of its stage can be done. */
bool judge_proves(const struct world *w, int stage, const struct job *j)
{
    int64_t most = w->stage[stage].worker == WORKER_DOWNLOAD ? SHARD_US : LONG_ALIVE_US;
    return j != NULL && j->v.started != 0 && SIM_EPOCH_US + w->now_us - j->v.started >= most;
}

static void count_tries(struct world *w, int stage, struct tries *ret)
{
    *ret = (struct tries){0};
    for (size_t i = 0; i < w->db.t[T_ATTEMPT].n; i++) {
        const struct db_attempt *a = ATTEMPT(w, i);
        if (TASK_STAGE(w, a->task) != stage) {
            continue;
        }
        const struct intent_seen *in = judge_intent(w, a->name_hash);
        const struct job *j = in != NULL && in->job >= 0 ? &w->aws.jobs[in->job] : NULL;
        bool since = (int)i >= STAGE(w, stage)->breaker_since;
        /* A Describe may still show an ended job as running. */
        ret->passed |= a->state == ATTEMPT_SUCCEEDED || judge_proves(w, stage, j);
        ret->live += since && !attempt_state_terminal(a->state);
        ret->failed += since && a->state != ATTEMPT_SUCCEEDED && a->counted &&
                       attempt_state_terminal(a->state);
    }
}

/* Until one part of a stage has passed, at most max(canary, k) attempts of it are paid. */
void judge_canary(struct world *w, int attempt)
{
    int stage = TASK_STAGE(w, ATTEMPT(w, attempt)->task);
    struct tries n;
    if (w->rules.canary <= 0 || w->judge.passed[stage]) {
        return;
    }
    count_tries(w, stage, &n);
    w->judge.passed[stage] = n.passed;
    int64_t bound = MAX(w->rules.canary, w->rules.k);
    if (!n.passed && (n.live > w->rules.canary || n.live + n.failed > bound)) {
        wrong(w, "I13", "stage %d: %lld tries live and %lld have failed before one has passed",
              stage, (long long)n.live, (long long)n.failed);
    }
}

/* A stage is held for its failures: they are as many as its rules say. */
void judge_tripped(struct world *w, int stage)
{
    struct tries n;
    count_tries(w, stage, &n);
    if (n.failed < w->rules.k) {
        wrong(w, "I18", "stage %d is held after %lld failures", stage, (long long)n.failed);
    }
}

/* What an earlier try lacked the next one has. */
void judge_retry(struct world *w, int attempt)
{
    const struct db_attempt *a = ATTEMPT(w, attempt);
    const struct db_task *t = TASK(w, a->task);
    int of_spec = w->stage[t->stage].volume_gb;
    if (t->tries[CAUSE_DISK_FULL] > 0 && a->volume_gb <= of_spec) {
        wrong(w, "I13", "%s has %d GB, and on as many its disk was full", a->name.s, a->volume_gb);
    }
}
