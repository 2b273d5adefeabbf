/* Warm pools in a plan: a launch takes an available matching pool or waits for one that is about to
 * come; the keep-alive of each launch; and which pools no task will take.
 *
 * Every pool is used once in a plan. A matching pool is found by fingerprint only, regardless of
 * the job that left it, as SageMaker does. Its slots are moved from idle to held, so a full quota
 * does not block it, and the sum stays the same when SageMaker gives it to another Create of
 * ours. */
#include "sched_work.h"
#include <stdlib.h>

#define DRAIN_AFTER_US WARM_POOL_HAND_OVER_US /* over the limit this long: the limit was lowered */
/* up to this many waiting tasks are examined one by one */
#define FEW_TASKS 64
enum pool_use { USE_NONE, USE_TAKEN, USE_AWAITED, USE_CLAIMED };

struct sched_warm_pool {
    enum pool_use *use; /* [pools_n] */
    int *available;     /* [available_n], into pools: those that may take a job */
    int available_n;
    struct warm_pool_prints **prints; /* [stages_n], of stages that keep none */
    musd_t *idle_musd; /* [campaigns_n]: what pools of the plan's launches may cost */
    bool any;          /* there is a pool or a warm quota; otherwise this file does nothing */
    uint64_t kept[SCHED_LAUNCHES_MAX]; /* [launches_n] fingerprints; 0: no keep-alive */
};

void sched_warm_pool_init(struct sched_work *w)
{
    const struct sched_view *v = w->view;
    struct sched_warm_pool *warm = xmalloc(sizeof *warm);
    memset(warm, 0, offsetof(struct sched_warm_pool, kept));
    warm->use = xcalloc((size_t)v->pools_n + 1, sizeof *warm->use);
    warm->available = xcalloc((size_t)v->pools_n + 1, sizeof *warm->available);
    warm->prints = xcalloc((size_t)v->stages_n + 1, sizeof(struct warm_pool_prints *));
    warm->idle_musd = xcalloc((size_t)v->campaigns_n + 1, sizeof *warm->idle_musd);
    warm->any = v->pools_n > 0;
    for (int i = 0; i < v->slots_n; i++) {
        warm->any = warm->any || v->slots[i].warm_quota > 0;
    }
    for (int i = 0; i < v->pools_n; i++) {
        ASSERT(v->pools[i].slots_i >= 0 && v->pools[i].slots_i < v->slots_n);
        if (v->pools[i].state == POOL_AVAILABLE && !v->pools[i].ending) {
            warm->available[warm->available_n++] = i;
        }
    }
    w->warm = warm;
}

void sched_warm_pool_done(struct sched_work *w)
{
    for (int i = 0; i < w->view->stages_n; i++) {
        free(w->warm->prints[i]);
    }
    free(w->warm->prints);
    free(w->warm->use);
    free(w->warm->available);
    free(w->warm->idle_musd);
    free(w->warm);
}

static uint64_t stage_print(const struct sched_work *w, int stage_i, int rung, int subnet_i)
{
    const struct spec_stage *stage = w->view->stages[stage_i].stage;
    struct warm_pool_prints **at = &w->warm->prints[stage_i];
    struct warm_pool_prints *kept = w->view->stages[stage_i].prints;
    if (kept == NULL && *at == NULL) {
        *at = xcalloc(1, sizeof **at);
    }
    return warm_pool_print(kept != NULL ? kept : *at, stage, rung, subnet_i);
}

static uint64_t try_print(const struct sched_work *w, const struct sched_try *t, int rung,
                          int subnet_i)
{
    const struct spec_stage *stage = w->view->stages[t->stage_i].stage;
    return t->volume_gb == stage->volume_gb
               ? stage_print(w, t->stage_i, rung, subnet_i)
               : warm_pool_fingerprint_of(stage, rung, t->volume_gb, subnet_i);
}

/* True when a task of this stage, as specified, can have this fingerprint. */
static bool stage_matches(const struct sched_work *w, int stage_i, int slots_i, int instances,
                          uint64_t print)
{
    const struct spec_stage *stage = w->view->stages[stage_i].stage;
    if (stage->instance_count != instances || stage->spot) {
        return false;
    }
    for (int rung = 0; rung < stage->instance_type_n; rung++) {
        if (w->stages[stage_i].slots_i[rung] != slots_i) {
            continue;
        }
        for (int i = -1; i < stage->subnets_n; i++) {
            if (stage_print(w, stage_i, rung, i) == print) {
                return true;
            }
        }
    }
    return false;
}

/* Matching tasks of all running stages. Tasks passed over by this plan are not in their queues now
 * and do not count. */
static int64_t matching_waiting(const struct sched_work *w, int slots_i, int instances,
                                uint64_t print, bool due_only)
{
    int64_t n = 0;
    for (int i = 0; i < w->view->stages_n; i++) {
        const struct sched_stage *s = &w->view->stages[i];
        size_t waiting = ready_queue_n(s->ready);
        if (!s->may_start || waiting == 0 || !stage_matches(w, i, slots_i, instances, print)) {
            continue;
        }
        size_t later = due_only ? ready_queue_backing_off_n(s->ready, w->view->now_us) : 0;
        n += (int64_t)(waiting - MIN(later, waiting));
    }
    return n;
}

/* True when b is the better of two matching pools: the one that expires first, then the older
 * one. */
static bool better(const struct warm_pool *a, const struct warm_pool *b)
{
    return a->expires_us != b->expires_us ? b->expires_us < a->expires_us
                                          : b->attempt_id < a->attempt_id;
}

static int pool_for(const struct sched_work *w, int slots_i, uint64_t print)
{
    int best = -1;
    for (int k = 0; k < w->warm->available_n; k++) {
        int i = w->warm->available[k];
        const struct warm_pool *p = &w->view->pools[i];
        if (w->warm->use[i] == USE_NONE && p->slots_i == slots_i &&
            warm_pool_takes(p, print, w->view->now_us) &&
            (best < 0 || better(&w->view->pools[best], p))) {
            best = i;
        }
    }
    return best;
}

/* True when more runs or idles than the limit allows: the limit was lowered, or one pool briefly
 * counts twice until it is known which of two SageMaker has handed over. Then no pool is passed
 * on. */
static bool draining(const struct sched_work *w, int slots_i)
{
    const struct quota_ledger *s = &w->slots[slots_i];
    int64_t limit = quota_ledger_limit(s, &w->account);
    return limit >= 0 && s->held + s->warm_idle > limit;
}

bool sched_warm_pool_match(const struct sched_work *w, struct sched_try *t)
{
    const struct spec_stage *stage = w->view->stages[t->stage_i].stage;
    if (w->warm->available_n == 0 || stage->spot) {
        return false;
    }
    for (int rung = t->rung; rung < stage->instance_type_n; rung++) {
        int slots_i = w->stages[t->stage_i].slots_i[rung];
        if (slots_i < 0 || draining(w, slots_i) ||
            quota_ledger_can_ever(&w->slots[slots_i], &w->account, stage->instance_count,
                                  t->max_runtime_s, t->volume_gb) != WAIT_NONE) {
            continue;
        }
        for (int subnet_i = -1; subnet_i < stage->subnets_n; subnet_i++) {
            int pool_i = pool_for(w, slots_i, try_print(w, t, rung, subnet_i));
            if (pool_i >= 0) {
                t->rung = rung;
                t->subnet_i = subnet_i;
                t->slots_i = slots_i;
                t->pool_i = pool_i;
                return true;
            }
        }
    }
    return false;
}

int64_t sched_warm_pools(const struct sched_work *w, const struct sched_try *t)
{
    int64_t n = 0;
    for (int k = 0; t->pool_i >= 0 && k < w->warm->available_n; k++) {
        int i = w->warm->available[k];
        n += w->warm->use[i] == USE_NONE && w->view->pools[i].slots_i == t->slots_i &&
             warm_pool_takes(&w->view->pools[i], w->view->pools[t->pool_i].fingerprint,
                             w->view->now_us);
    }
    return n;
}

static int64_t or_default(int64_t learned_s, int64_t default_s)
{
    return learned_s > 0 ? learned_s : default_s;
}

bool sched_warm_pool_wait(const struct sched_work *w, const struct sched_try *t,
                          bool quota_ledger_free)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    if (w->view->pools_n == 0 || s->stage->spot) {
        return false;
    }
    uint64_t print = try_print(w, t, t->rung, t->subnet_i);
    int64_t cold_s = or_default(s->cold_start_s, WARM_POOL_COLD_START_S);
    int64_t warm_s = or_default(s->warm_start_s, WARM_POOL_WARM_START_S);
    int64_t coming = 0;
    int first = -1;
    usec_t first_until_us = USEC_NEVER;
    for (int i = 0; i < w->view->pools_n; i++) {
        usec_t until_us;
        if (w->warm->use[i] == USE_NONE && w->view->pools[i].slots_i == t->slots_i &&
            warm_pool_worth_waiting(&w->view->pools[i], print, cold_s, warm_s, w->view->now_us,
                                    &until_us)) {
            coming++;
            if (until_us < first_until_us) {
                first = i;
                first_until_us = until_us;
            }
        }
    }
    /* With more tasks than coming pools, free slots are not kept empty for pools. */
    if (coming == 0 ||
        (quota_ledger_free &&
         matching_waiting(w, t->slots_i, s->stage->instance_count, print, true) > coming)) {
        return false;
    }
    w->warm->use[first] = USE_AWAITED;
    w->plan->wake_us = MIN(w->plan->wake_us, first_until_us);
    return true;
}

/* Pools that come before this attempt's, and attempts of this plan that leave one. */
static int64_t pools_before(const struct sched_work *w, const struct sched_try *t, uint64_t print)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    int64_t run_us = s->duration != NULL && duration_known(s->duration)
                         ? duration_quantile_us(s->duration, t->task.size_mb, 50)
                         : 0;
    usec_t end_us = run_us > 0 ? w->view->now_us + run_us : USEC_NEVER;
    int64_t n = 0;
    for (int i = 0; i < w->view->pools_n; i++) {
        const struct warm_pool *p = &w->view->pools[i];
        bool there = p->state == POOL_AVAILABLE && w->warm->use[i] == USE_NONE && i != t->pool_i;
        bool comes = p->state == POOL_EXPECTED &&
                     (p->available_us == USEC_NEVER || p->available_us <= end_us);
        n += p->fingerprint == print && !p->ending && (there || comes);
    }
    for (int i = 0; i < w->plan->launches_n; i++) {
        n += w->warm->kept[i] == print;
    }
    return n;
}

/* What the campaign's idle pools have cost and may still cost. */
static musd_t idle_of(const struct sched_work *w, int campaign_i)
{
    const struct sched_campaign *c = &w->campaigns[campaign_i];
    musd_t sum;
    if (!add_i64(c->idle_spent_musd, w->warm->idle_musd[campaign_i], &sum)) {
        return INT64_MAX;
    }
    for (int i = 0; i < w->view->pools_n; i++) {
        const struct warm_pool *p = &w->view->pools[i];
        if (p->campaign_id == c->campaign_id && !add_i64(sum, warm_pool_idle_worst(p), &sum)) {
            return INT64_MAX;
        }
    }
    return sum;
}

void sched_warm_pool_keep(const struct sched_work *w, struct sched_try *t)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    const struct quota_ledger *slots = &w->slots[t->slots_i];
    int n = s->stage->instance_count;
    struct quota_ledger without = *slots; /* the pool it takes: its warm quota moves with it */
    without.warm_held -= t->pool_i >= 0 ? n : 0;
    int64_t warm_free = quota_ledger_warm_free(&without);
    t->keep_alive_s = 0;
    t->print = 0;
    if (!w->warm->any || s->stage->spot || s->warm.keep_alive_s == 0 || warm_free < n) {
        return;
    }
    uint64_t print = try_print(w, t, t->rung, t->subnet_i);
    bool itself = stage_matches(w, t->stage_i, t->slots_i, n, print);
    int64_t waiting = matching_waiting(w, t->slots_i, n, print, false);
    const struct warm_pool_gap g = {
        .matching_waiting = waiting - (itself ? 1 : 0),
        .matching_live = pools_before(w, t, print),
        .expected_gap_s = WARM_POOL_GAP_S,
        .start_saved_s = or_default(s->cold_start_s, WARM_POOL_COLD_START_S) -
                         or_default(s->warm_start_s, WARM_POOL_WARM_START_S),
        .price_musd_per_hour = slots->price_musd_per_hour,
        .idle_spent_musd = s->warm.max_idle_cost_musd < 0 ? 0 : idle_of(w, s->campaign_i),
        .warm_free = warm_free,
        .instances = n,
    };
    t->keep_alive_s = warm_pool_keep_alive(&s->warm, &g);
    t->print = t->keep_alive_s > 0 ? print : 0;
}

void sched_warm_pool_take(struct sched_work *w, const struct sched_try *t)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    struct quota_ledger *slots = &w->slots[t->slots_i];
    int64_t n = s->stage->instance_count;
    w->warm->kept[w->plan->launches_n - 1] = t->print;
    if (t->pool_i >= 0) {
        w->warm->use[t->pool_i] = USE_TAKEN;
        slots->warm_idle -= n;
        slots->warm_held -= n;
        w->account.total[slots->market].held -= n;
    }
    if (t->keep_alive_s > 0) {
        slots->warm_held += n;
        const struct warm_pool left = {.state = POOL_EXPECTED,
                                       .instances = (int)n,
                                       .keep_alive_s = t->keep_alive_s,
                                       .price_musd_per_hour = slots->price_musd_per_hour};
        musd_t *sum = &w->warm->idle_musd[s->campaign_i];
        if (!add_i64(*sum, warm_pool_idle_worst(&left), sum)) {
            *sum = INT64_MAX;
        }
    }
}

/* Free instances: what the type leaves, and what the quota over all types of its market leaves. */
struct blocked_room {
    int64_t type, total;
};

/* Idle pools of the type return both, those of another type of the market only the total. */
static void room_add(const struct sched_work *w, int slots_i, const struct warm_pool *p,
                     struct blocked_room *room)
{
    room->type += p->slots_i == slots_i ? p->instances : 0;
    room->total += w->slots[p->slots_i].market == w->slots[slots_i].market ? p->instances : 0;
}

static bool room_for(const struct blocked_room *room, int64_t n)
{
    return MIN(room->type, room->total) >= n;
}

static struct blocked_room blocked_room(const struct sched_work *w, int slots_i)
{
    const struct quota_ledger *s = &w->slots[slots_i];
    struct blocked_room room = {quota_ledger_type_free(s, w->view->now_us),
                                quota_ledger_total_free(&w->account, s->market, w->view->now_us)};
    room.total = MIN(room.total, INT64_MAX / 2);
    for (int i = 0; i < w->view->pools_n; i++) {
        const struct warm_pool *p = &w->view->pools[i];
        if (p->state == POOL_AVAILABLE && (p->ending || w->warm->use[i] == USE_CLAIMED)) {
            room_add(w, slots_i, p, &room);
        }
    }
    return room;
}

static bool idle_unused(const struct sched_work *w, int pool_i)
{
    const struct warm_pool *p = &w->view->pools[pool_i];
    return p->state == POOL_AVAILABLE && !p->ending && w->warm->use[pool_i] == USE_NONE;
}

void sched_warm_pool_blocked(const struct sched_work *w, const struct sched_try *t)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    int64_t n = s->stage->instance_count;
    int64_t want = n;
    if (draining(w, t->slots_i)) {
        return; /* its own pools may wait with it */
    }
    /* as many as could start at once: the tasks behind it are identical */
    if (n == 1 && !t->changed) {
        int64_t due = (int64_t)ready_queue_n(s->ready) -
                      (int64_t)ready_queue_backing_off_n(s->ready, w->view->now_us);
        want = MAX(INT64_C(1), MIN(due, w->tokens));
    }
    struct blocked_room have = blocked_room(w, t->slots_i);
    struct blocked_room could = have;
    for (int i = 0; i < w->view->pools_n; i++) {
        if (idle_unused(w, i)) {
            room_add(w, t->slots_i, &w->view->pools[i], &could);
        }
    }
    want = MIN(want, MIN(could.type, could.total));
    /* Its own type first: that returns both. */
    for (int own = 1; own >= 0 && room_for(&could, n); own--) {
        for (int i = 0; !room_for(&have, want) && i < w->view->pools_n; i++) {
            const struct warm_pool *p = &w->view->pools[i];
            bool is_own = p->slots_i == t->slots_i;
            bool helps = is_own ? own == 1 : own == 0 && have.total < want;
            if (helps && idle_unused(w, i)) {
                w->warm->use[i] = USE_CLAIMED;
                room_add(w, t->slots_i, p, &have);
            }
        }
    }
}

/* True when a task with this wait reason can start while a pool is still worth keeping. */
static bool soon(enum wait_reason why, bool drains)
{
    enum wait_ends ends = wait_reason_row(why)->ends;
    return ends == WAIT_ENDS_SOON || (ends == WAIT_ENDS_DRAINED && drains);
}

/* Number of the last few due tasks of a stage that an earlier attempt changed so that they do not
 * match. 0 when there are many, where one more or less does not matter. */
static int64_t changed_due(const struct sched_work *w, int stage_i, uint64_t print)
{
    const struct sched_view *v = w->view;
    const struct sched_stage *s = &v->stages[stage_i];
    struct ready_queue_task due[FEW_TASKS];
    size_t due_n = ready_queue_due(s->ready, v->now_us, due, ARRAY_LEN(due));
    int64_t n = 0;
    for (size_t i = 0; v->change_of != NULL && due_n <= ARRAY_LEN(due) && i < due_n; i++) {
        struct sched_try t = {.stage_i = stage_i, .volume_gb = s->stage->volume_gb};
        int volume_gb = 0;
        int64_t runtime_s = 0;
        bool changed = v->change_of(v->ctx, due[i].task_id, &t.rung, &volume_gb, &runtime_s);
        t.volume_gb = changed && volume_gb > 0 ? volume_gb : t.volume_gb;
        bool same = !changed;
        for (int rung = MAX(t.rung, 0); changed && rung < s->stage->instance_type_n; rung++) {
            for (int k = -1; k < s->stage->subnets_n; k++) {
                same = same || try_print(w, &t, rung, k) == print;
            }
        }
        n += same ? 0 : 1;
    }
    return n;
}

/* Tasks that may take a pool like this one before it has cost the start it saves. */
static int64_t takers(const struct sched_work *w, const struct warm_pool *p)
{
    bool drains = draining(w, p->slots_i);
    int64_t n = 0;
    for (int i = 0; i < w->view->stages_n; i++) {
        const struct sched_stage *s = &w->view->stages[i];
        if (ready_queue_n(s->ready) == 0 ||
            !(soon(w->plan->reason[i], drains) || soon(w->plan->rest[i], drains)) ||
            !stage_matches(w, i, p->slots_i, p->instances, p->fingerprint)) {
            continue;
        }
        int64_t saved_s = or_default(s->cold_start_s, WARM_POOL_COLD_START_S) -
                          or_default(s->warm_start_s, WARM_POOL_WARM_START_S);
        usec_t by_us = w->view->now_us + MAX(saved_s, INT64_C(0)) * USEC_PER_SEC;
        n += (int64_t)(ready_queue_n(s->ready) - ready_queue_backing_off_n(s->ready, by_us)) -
             changed_due(w, i, p->fingerprint);
    }
    return n;
}

/* What max_idle_cost leaves of the campaign that pays for this pool. */
static musd_t idle_left(const struct sched_work *w, const struct warm_pool *p)
{
    const struct sched_stage *s = NULL;
    for (int i = 0; i < w->view->stages_n && s == NULL; i++) {
        const struct sched_stage *at = &w->view->stages[i];
        s = at->stage_id == p->stage_id && at->campaign_id == p->campaign_id ? at : NULL;
    }
    if (s == NULL || s->warm.max_idle_cost_musd < 0) {
        return INT64_MAX;
    }
    musd_t left = s->warm.max_idle_cost_musd - w->campaigns[s->campaign_i].idle_spent_musd;
    for (int i = 0; i < w->view->pools_n && left > 0; i++) {
        const struct warm_pool *other = &w->view->pools[i];
        musd_t cost = warm_pool_idle_cost(other, w->view->now_us);
        left -= other->campaign_id == p->campaign_id ? MIN(cost, left) : 0;
    }
    return left;
}

struct idle_pool {
    int pool_i;
    const struct warm_pool *pool;
};

/* Sort equal pools together, longest-lasting first: the last ones are ended. */
static int alike_then_longest(const void *a, const void *b)
{
    const struct warm_pool *x = ((const struct idle_pool *)a)->pool;
    const struct warm_pool *y = ((const struct idle_pool *)b)->pool;
    if (x->fingerprint != y->fingerprint) {
        return x->fingerprint < y->fingerprint ? -1 : 1;
    }
    if (x->expires_us != y->expires_us) {
        return x->expires_us > y->expires_us ? -1 : 1;
    }
    return (x->attempt_id > y->attempt_id) - (x->attempt_id < y->attempt_id);
}

void sched_warm_pool_ends(struct sched_work *w)
{
    const struct sched_view *v = w->view;
    struct sched_plan *plan = w->plan;
    struct idle_pool *idle = xcalloc((size_t)v->pools_n + 1, sizeof *idle);
    size_t n = 0;
    for (int i = 0; i < v->pools_n; i++) {
        const struct warm_pool *p = &v->pools[i];
        if (p->state == POOL_AVAILABLE && !p->ending && w->warm->use[i] != USE_TAKEN) {
            idle[n++] = (struct idle_pool){i, p};
        }
    }
    qsort(idle, n, sizeof *idle, alike_then_longest);
    int64_t wanted = 0;
    for (size_t i = 0; i < n && plan->pool_ends_n < SCHED_POOL_ENDS_MAX; i++) {
        const struct warm_pool *p = idle[i].pool;
        bool first = i == 0 || idle[i - 1].pool->fingerprint != p->fingerprint;
        bool claimed = w->warm->use[idle[i].pool_i] == USE_CLAIMED;
        wanted = first ? takers(w, p) : wanted;
        bool drains = draining(w, p->slots_i) && v->now_us - p->available_us >= DRAIN_AFTER_US;
        const struct warm_pool_use use = {
            .wanted = wanted > 0, .blocks = claimed || drains, .left_musd = idle_left(w, p)};
        enum warm_pool_end why = warm_pool_ends_now(p, &use, v->now_us);
        wanted -= why == WARM_POOL_KEEP ? 1 : 0;
        if (why == WARM_POOL_END_BLOCKS_QUOTA) { /* only as much as is over the limit */
            w->slots[p->slots_i].warm_idle -= p->instances;
            w->account.total[w->slots[p->slots_i].market].held -= p->instances;
        }
        if (why != WARM_POOL_KEEP) {
            plan->pool_ends[plan->pool_ends_n++] =
                (struct sched_pool_end){.pool_i = idle[i].pool_i, .why = why};
        }
    }
    free(idle);
}
