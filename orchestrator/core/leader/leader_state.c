/* See leader_state.h. */
#include "leader_state.h"
#include "awake.h"
#include "core/sched/ready_queue.h"
#include <stdio.h>
#include <stdlib.h>

#define NAMES_LEAST 64 /* buckets */

void leader_state_init(struct leader_state *s)
{
    memset(s, 0, sizeof *s);
    s->account = (struct quota_ledger_account)QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    s->keep_alive_max_s = -1;
    s->awake = xcalloc(1, sizeof *s->awake);
}

void leader_state_clear(struct leader_state *s)
{
    while (s->attempts_n > 0) {
        leader_state_remove_attempt(s, s->attempts[s->attempts_n - 1]);
    }
    while (s->pools_n > 0) {
        leader_state_remove_pool(s, s->pools[s->pools_n - 1]);
    }
    for (size_t i = 0; i < s->records_n; i++) {
        free(s->records[i].manifest);
        free(s->records[i].evidence);
    }
    s->records_n = 0;
    for (size_t i = 0; i < s->endpoints_n; i++) {
        ASSERT(s->endpoints[i]->io == NULL);
        free(s->endpoints[i]);
    }
    free(s->endpoints);
    s->endpoints = NULL;
    s->endpoints_n = 0;
    for (size_t i = 0; i < s->filesystems_n; i++) {
        ASSERT(s->filesystems[i]->io == NULL);
        free(s->filesystems[i]);
    }
    free(s->filesystems);
    s->filesystems = NULL;
    s->filesystems_n = 0;
    free(s->strays);
    s->strays = NULL;
    s->strays_n = 0;
    free(s->resource_strays);
    s->resource_strays = NULL;
    s->resource_strays_n = 0;
    free(s->bills);
    s->bills = NULL;
    s->bills_n = 0;
    s->bills_unread = s->bills_more = false;
    s->watch_until_us = 0;
    s->clock = (struct leader_clock){.known = false};
    while (s->campaigns_n > 0) {
        leader_state_drop_campaign(s, s->campaigns[s->campaigns_n - 1]);
    }
    free(s->slots);
    free(s->projects);
    free(s->changes);
    free(s->parked);
    s->parked = NULL;
    s->parked_n = 0;
    s->slots = NULL;
    s->projects = NULL;
    s->changes = NULL;
    s->slots_n = s->projects_n = s->changes_n = 0;
}

void leader_state_done(struct leader_state *s)
{
    leader_state_clear(s);
    free(s->attempts);
    free(s->by_name);
    free(s->records);
    free(s->pools);
    free(s->campaigns);
    s->attempts = s->by_name = NULL;
    s->names_cap = 0;
    s->records = NULL;
    s->pools = NULL;
    s->campaigns = NULL;
    free(s->awake->campaigns);
    free(s->awake);
    s->awake = NULL;
    s->attempts_cap = s->records_cap = 0;
}

struct live_campaign *leader_state_campaign(const struct leader_state *s, int64_t campaign_id)
{
    for (size_t i = 0; i < s->campaigns_n; i++) {
        if (s->campaigns[i]->row.id == campaign_id) {
            return s->campaigns[i];
        }
    }
    return NULL;
}

size_t live_stage_unchecked_n(const struct live_stage *ls)
{
    return ls->unchecked == NULL ? 0 : ready_queue_n(ls->unchecked) + (size_t)ls->checks_under_way;
}

struct live_stage *leader_state_stage(struct live_campaign *lc, int64_t stage_id)
{
    for (int i = 0; i < lc->stages_n; i++) {
        if (lc->stages[i].row.id == stage_id) {
            return &lc->stages[i];
        }
    }
    return NULL;
}

/* Where the attempt is in the list, which is in order of id, or would be. */
static size_t attempt_at(const struct leader_state *s, int64_t attempt_id)
{
    size_t lo = 0;
    size_t hi = s->attempts_n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (s->attempts[mid]->row.id < attempt_id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

struct live_attempt *leader_state_attempt(const struct leader_state *s, int64_t attempt_id)
{
    size_t i = attempt_at(s, attempt_id);
    return i < s->attempts_n && s->attempts[i]->row.id == attempt_id ? s->attempts[i] : NULL;
}

static size_t bucket_of(const struct leader_state *s, const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *name != '\0'; name++) {
        h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    }
    return (size_t)(h ^ h >> 32) & (s->names_cap - 1);
}

static void name_put(struct leader_state *s, struct live_attempt *a)
{
    struct live_attempt **head = &s->by_name[bucket_of(s, a->row.name.s)];
    a->next_named = *head;
    *head = a;
}

/* a is not in s->attempts yet. */
static void name_add(struct leader_state *s, struct live_attempt *a)
{
    if (s->attempts_n >= s->names_cap) {
        s->names_cap = MAX((size_t)NAMES_LEAST, s->names_cap * 2);
        free(s->by_name);
        s->by_name = xcalloc(s->names_cap, sizeof(struct live_attempt *));
        for (size_t i = 0; i < s->attempts_n; i++) {
            name_put(s, s->attempts[i]);
        }
    }
    name_put(s, a);
}

static void name_drop(struct leader_state *s, const struct live_attempt *a)
{
    struct live_attempt **at = &s->by_name[bucket_of(s, a->row.name.s)];
    while (*at != a) {
        ASSERT(*at != NULL);
        at = &(*at)->next_named;
    }
    *at = a->next_named;
}

struct live_attempt *leader_state_attempt_named(const struct leader_state *s, const char *name)
{
    struct live_attempt *a = s->names_cap > 0 ? s->by_name[bucket_of(s, name)] : NULL;
    while (a != NULL && strcmp(a->row.name.s, name) != 0) {
        a = a->next_named;
    }
    return a;
}

struct live_pool *leader_state_pool(const struct leader_state *s, int64_t pool_id)
{
    for (size_t i = 0; i < s->pools_n; i++) {
        if (s->pools[i]->row.id == pool_id) {
            return s->pools[i];
        }
    }
    return NULL;
}

struct live_slots *leader_state_slots(struct leader_state *s, const char *instance_type,
                                      enum market market)
{
    for (size_t i = 0; i < s->slots_n; i++) {
        if (s->slots[i].s.market == market &&
            strcmp(s->slots[i].s.instance_type, instance_type) == 0) {
            return &s->slots[i];
        }
    }
    s->slots = xrealloc(s->slots, (s->slots_n + 1) * sizeof *s->slots);
    struct live_slots *ls = &s->slots[s->slots_n++];
    *ls = (struct live_slots){.s = {.market = market,
                                    .quota = -1,
                                    .warm_quota = -1,
                                    .operator_limit = -1,
                                    .refused_limit = -1,
                                    .price_musd_per_hour = -1},
                              .kept_limit = -1};
    (void)snprintf(ls->s.instance_type, sizeof ls->s.instance_type, "%s", instance_type);
    for (size_t i = 0; i + 1 < s->slots_n; i++) { /* spot costs no more than the list price */
        if (strcmp(s->slots[i].s.instance_type, instance_type) == 0) {
            ls->s.price_musd_per_hour = s->slots[i].s.price_musd_per_hour;
        }
    }
    return ls;
}

struct project_row *leader_state_project(struct leader_state *s, int64_t project_id)
{
    for (size_t i = 0; i < s->projects_n; i++) {
        if (s->projects[i].id == project_id) {
            return &s->projects[i];
        }
    }
    BUG("every campaign's project was read before the campaign");
}

/* Few tasks ever change, so a sorted array does. */
struct task_change_row *leader_state_change(struct leader_state *s, int64_t task_id, bool create)
{
    size_t lo = 0;
    size_t hi = s->changes_n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (s->changes[mid].task_id < task_id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    if (lo < s->changes_n && s->changes[lo].task_id == task_id) {
        return &s->changes[lo];
    }
    if (!create) {
        return NULL;
    }
    s->changes = xrealloc(s->changes, (s->changes_n + 1) * sizeof *s->changes);
    memmove(&s->changes[lo + 1], &s->changes[lo], (s->changes_n - lo) * sizeof *s->changes);
    s->changes_n++;
    memset(&s->changes[lo], 0, sizeof *s->changes);
    s->changes[lo].task_id = task_id;
    return &s->changes[lo];
}

void live_campaign_free(struct live_campaign *lc)
{
    for (int i = 0; i < lc->stages_n; i++) {
        ready_queue_free(lc->stages[i].ready);
        ready_queue_free(lc->stages[i].unchecked);
        ready_queue_free(lc->stages[i].held);
        for (int k = 0; k < BREAKER_OF_MAX; k++) {
            free(lc->stages[i].trip_words[k]);
        }
    }
    free(lc->stages);
    free(lc->row.spec_json);
    arena_done(&lc->arena);
    free(lc);
}

struct live_stage *leader_state_new_stages(size_t n)
{
    struct live_stage *ls = xmalloc((n + 1) * sizeof *ls);
    for (size_t i = 0; i < n; i++) { /* a takeover makes thousands */
        memset(&ls[i], 0, offsetof(struct live_stage, duration));
        duration_init(&ls[i].duration, 0);
    }
    return ls;
}

void leader_state_add_campaign(struct leader_state *s, struct live_campaign *lc)
{
    s->tries_unread = true;
    size_t at = s->campaigns_n;
    lc->generation = ++s->generations;
    s->campaigns = xrealloc(s->campaigns, (s->campaigns_n + 1) * sizeof(struct live_campaign *));
    while (at > 0 && s->campaigns[at - 1]->row.id > lc->row.id) {
        s->campaigns[at] = s->campaigns[at - 1];
        at--;
    }
    s->campaigns[at] = lc;
    s->campaigns_n++;
    lc->awake = s->awake;
    lc->rests = true;
    campaign_wake(lc);
}

static void forget_changes(struct leader_state *s, int64_t campaign_id)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->changes_n; i++) {
        if (s->changes[i].campaign_id != campaign_id) {
            s->changes[kept++] = s->changes[i];
        }
    }
    s->changes_n = kept;
}

/* Merged from the end: those of a large campaign may all come before a million others. */
void leader_state_take_changes(struct leader_state *s, const struct task_change_row *rows, size_t n)
{
    if (n == 0) {
        return;
    }
    forget_changes(s, rows[0].campaign_id); /* read by a takeover that could not read the rest */
    size_t old = s->changes_n, at = old + n;
    s->changes = xrealloc(s->changes, at * sizeof *s->changes);
    s->changes_n = at;
    while (n > 0) {
        bool ours = old == 0 || s->changes[old - 1].task_id < rows[n - 1].task_id;
        s->changes[--at] = ours ? rows[--n] : s->changes[--old];
    }
}

void leader_state_drop_campaign(struct leader_state *s, struct live_campaign *lc)
{
    for (size_t i = 0; i < s->campaigns_n; i++) {
        if (s->campaigns[i] == lc) {
            memmove(&s->campaigns[i], &s->campaigns[i + 1],
                    (s->campaigns_n - i - 1) * sizeof *s->campaigns);
            s->campaigns_n--;
            campaign_rest(lc);
            forget_changes(s, lc->row.id);
            live_campaign_free(lc);
            return;
        }
    }
}

struct live_attempt *leader_state_add_attempt(struct leader_state *s, const struct attempt_row *row,
                                              struct live_campaign *lc)
{
    struct live_attempt *a = xmalloc(sizeof *a);
    memset(a, 0, offsetof(struct live_attempt, facts));
    a->arn[0] = a->reason[0] = a->artifacts[0] = '\0';
    a->row = *row;
    a->campaign = lc;
    a->stage = leader_state_stage(lc, row->stage_id);
    a->account = (struct ledger_account_of_attempt){.reserved_musd = row->open_musd,
                                                    .spent_musd = row->cost_musd,
                                                    .reserved = true,
                                                    .job_settled = row->settled,
                                                    .closed = row->settled && row->open_musd == 0};
    buf_init(&a->request, REQUEST_BYTES_MAX);
    name_add(s, a);
    ARRAY_ROOM(s->attempts, s->attempts_n, s->attempts_cap);
    size_t at = attempt_at(s, row->id);
    memmove(&s->attempts[at + 1], &s->attempts[at],
            (s->attempts_n - at) * sizeof(struct live_attempt *));
    s->attempts[at] = a;
    s->attempts_n++;
    return a;
}

void leader_state_remove_attempt(struct leader_state *s, struct live_attempt *a)
{
    ASSERT(a->io == NULL);
    size_t at = attempt_at(s, a->row.id);
    ASSERT(at < s->attempts_n && s->attempts[at] == a);
    name_drop(s, a);
    s->attempts_n--;
    memmove(&s->attempts[at], &s->attempts[at + 1],
            (s->attempts_n - at) * sizeof(struct live_attempt *));
    if (a->pool != NULL) {
        a->pool->attempt = NULL;
    }
    buf_done(&a->request);
    free(a->manifest);
    free(a->evidence);
    free(a->rules);
    free(a->row.uri);
    free(a->row.vars_json);
    free(a->row.artifacts);
    free(a->row.reason);
    free(a);
}

struct live_pool *leader_state_add_pool(struct leader_state *s, const struct pool_row *row,
                                        struct live_campaign *lc)
{
    struct live_pool *p = xcalloc(1, sizeof *p);
    p->row = *row;
    p->campaign = lc;
    p->wants_end = row->end_reason[0] != '\0';
    p->look_now = true;
    s->pools = xrealloc(s->pools, (s->pools_n + 1) * sizeof(struct live_pool *));
    s->pools[s->pools_n++] = p;
    lc->pools_n++;
    campaign_wake(lc);
    (void)leader_state_slots(s, row->instance_type, MARKET_ON_DEMAND);
    return p;
}

void leader_state_remove_pool(struct leader_state *s, struct live_pool *p)
{
    ASSERT(p->io == NULL);
    for (size_t i = 0; i < s->pools_n; i++) {
        if (s->pools[i] == p) {
            s->pools[i] = s->pools[--s->pools_n];
            p->campaign->pools_n--;
            break;
        }
    }
    for (size_t i = 0; i < s->attempts_n; i++) {
        struct live_attempt *a = s->attempts[i];
        a->pool = a->pool == p ? NULL : a->pool;
        a->taken = a->taken == p ? NULL : a->taken;
    }
    free(p);
}

void campaign_set_state(struct live_campaign *lc, enum campaign_state to)
{
    ASSERT(campaign_edge(lc->row.state, to));
    lc->row.state = to;
    campaign_wake(lc);
}

void stage_set_state(struct live_campaign *lc, struct live_stage *ls, enum stage_state to)
{
    ASSERT(stage_edge(ls->row.state, to));
    ls->row.state = to;
    campaign_wake(lc);
}

void attempt_set_state(struct live_attempt *a, enum attempt_state to)
{
    ASSERT(a->row.state == to || attempt_edge(a->row.state, to));
    a->row.state = to;
}

void pool_set_state(struct live_pool *p, enum pool_state to)
{
    ASSERT(pool_edge(p->row.state, to));
    p->row.state = to;
}

void endpoint_set_state(struct live_endpoint *e, enum endpoint_state to)
{
    ASSERT(e->row.state == to || endpoint_edge(e->row.state, to));
    e->row.state = to;
}

void filesystem_set_state(struct live_filesystem *f, enum filesystem_state to)
{
    ASSERT(f->row.state == to || filesystem_edge(f->row.state, to));
    f->row.state = to;
}

void task_counts_move(struct live_campaign *lc, struct live_stage *ls, enum task_state from,
                      enum task_state to, int64_t n)
{
    ASSERT(n >= 0 && ls->row.counts[from] >= n);
    if (from == to) {
        return;
    }
    ASSERT(n == 0 || task_edge(from, to));
    campaign_wake(lc);
    ls->row.counts[from] -= n;
    ls->row.counts[to] += n;
    lc->live += to == TASK_ACTIVE ? n : 0;
    lc->live -= from == TASK_ACTIVE ? n : 0;
    ASSERT(lc->live >= 0);
}

void task_counts_add(struct live_stage *ls, int64_t n)
{
    ASSERT(n >= 0);
    ls->row.counts[TASK_WAITING] += n;
}

void slots_hold(struct live_slots *s, int64_t instances)
{
    ASSERT(instances > 0);
    s->s.held += instances;
}

void slots_release(struct live_slots *s, int64_t instances)
{
    ASSERT(instances > 0 && s->s.held >= instances);
    s->s.held -= instances;
}

void slots_idle(struct live_slots *s, int64_t instances)
{
    ASSERT(instances > 0);
    s->s.warm_idle += instances;
}

void slots_idle_end(struct live_slots *s, int64_t instances)
{
    ASSERT(instances > 0 && s->s.warm_idle >= instances);
    s->s.warm_idle -= instances;
}
