/* The view the leader keeps: campaigns with their ready queues, live attempts, slots, changes by
 * retries. Read whole at takeover, then only what changed. */
#include "load.h"
#include "attempt.h"
#include "calls.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "core/leader/pool_life.h"
#include "core/leader/skip_done.h"
#include "core/spec/spec_json.h"
#include "history.h"
#include "lease.h"
#include "orphan_sweep.h"
#include "outcome.h"
#include "output_check.h"
#include "pool_life.h"
#include "shell.h"
#include "skip_done.h"
#include <stdio.h>

#define SPEC_ARENA_MAX (16 * 1024 * 1024)

void view_free(struct controller *c)
{
    sagemaker_cancel(c->listing);
    c->listing = NULL;
    quotas_cancel(c->quota_reading);
    c->quota_reading = NULL;
    skip_done_cancel_all(c);
    orphan_sweep_cancel(c);
    while (c->state.attempts_n > 0) {
        attempt_remove(c, c->state.attempts[c->state.attempts_n - 1]);
    }
    while (c->state.pools_n > 0) {
        pool_remove(c, c->state.pools[c->state.pools_n - 1]);
    }
    leader_state_clear(&c->state);
}

struct task_sink {
    struct live_stage *ls;
    struct ready_queue_task *ready, *unchecked;
    size_t cap;
};

static void on_tasks(void *ctx, const struct task_row *rows, size_t n)
{
    struct task_sink *k = ctx;
    size_t ready_n = 0;
    size_t unchecked_n = 0;
    if (n > k->cap) {
        k->ready = xrealloc(k->ready, n * sizeof *k->ready);
        k->unchecked = xrealloc(k->unchecked, n * sizeof *k->unchecked);
        k->cap = n;
    }
    for (size_t i = 0; i < n; i++) {
        if (rows[i].state != TASK_WAITING) {
            continue;
        }
        int64_t size_mb = rows[i].size / (1024 * 1024);
        bool ask = skip_done_wanted(k->ls, rows[i].names);
        *(ask ? &k->unchecked[unchecked_n++] : &k->ready[ready_n++]) =
            (struct ready_queue_task){.task_id = rows[i].id,
                                      .not_before_us = rows[i].not_before_us,
                                      .seq = (uint32_t)rows[i].seq,
                                      .size_mb = (uint32_t)MIN(size_mb, UINT32_MAX)};
    }
    ready_queue_push_many(k->ls->ready, k->ready, ready_n);
    ready_queue_push_many(k->ls->unchecked, k->unchecked, unchecked_n);
}

static bool load_tasks(struct controller *c, struct live_campaign *lc, struct live_stage *ls,
                       int64_t from_seq, struct err *err)
{
    struct task_sink k = {.ls = ls};
    bool ok =
        view_tasks(c->store, lc->row.id, ls->row.id, from_seq, ls->row.tasks, on_tasks, &k, err);
    free(k.ready);
    free(k.unchecked);
    return ok;
}

/* New parts enter the counters, and the ready queue when what was known is loaded already. */
static bool take_new(struct controller *c, struct live_stage *ls, struct err *err)
{
    int64_t more = ls->row.tasks - ls->row.taken;
    if (more <= 0) {
        return true;
    }
    if (!store_stage_take(c->store, ls->row.id, ls->row.tasks, err)) {
        return false;
    }
    ls->row.taken = ls->row.tasks;
    task_counts_add(ls, more);
    return true;
}

static bool read_spec(struct live_campaign *lc, struct err *err)
{
    AUTO_JSON json_t *v = NULL;
    if (!json_parse(str_of(lc->row.spec_json), SPEC_ARENA_MAX, &v, err) ||
        !spec_from_json(v, &lc->arena, &lc->spec, err)) {
        return err_wrap(err, "spec of campaign %lld", (long long)lc->row.id);
    }
    return true;
}

/* Thresholds of the campaign file, for a cap that says nothing of its own. */
static void default_warn(struct live_campaign *lc)
{
    struct warn_at *w = &lc->row.warn;
    _Static_assert(WARN_AT_MAX == WARNS_MAX, "one bound for thresholds");
    for (int i = 0; w->n == 0 && i < lc->spec->warn_at_n; i++) {
        w->at_ppm[i] = lc->spec->warn_at_ppm[i];
    }
    w->n = w->n == 0 ? lc->spec->warn_at_n : w->n;
}

/* Limits, weights and caps above a campaign; what is reserved and spent is as we hold it. A cap
 * that moved may let a campaign go on. */
static bool refresh_projects(struct controller *c, struct err *err)
{
    struct project_row *rows = NULL;
    size_t n = 0;
    if (!view_projects(c->store, &rows, &n, err)) {
        return false;
    }
    for (size_t i = 0; i < c->state.projects_n; i++) {
        const struct project_row *old = &c->state.projects[i];
        for (size_t k = 0; k < n; k++) {
            bool moved = rows[k].id == old->id && rows[k].cap_musd != old->cap_musd;
            for (size_t m = 0; moved && m < c->state.campaigns_n; m++) {
                c->state.campaigns[m]->budget_short = false;
            }
        }
    }
    free(c->state.projects);
    c->state.projects = rows;
    c->state.projects_n = n;
    return true;
}

/* A project made after the projects were read last. */
static bool know_project(struct controller *c, int64_t project_id, struct err *err)
{
    for (size_t i = 0; i < c->state.projects_n; i++) {
        if (c->state.projects[i].id == project_id) {
            return true;
        }
    }
    return refresh_projects(c, err);
}

/* Its waiting tasks are not read: none can start. A skipped stage may be reopened by a retry. */
static bool never_again(enum stage_state s)
{
    return stage_state_terminal(s) && s != STAGE_SKIPPED;
}

bool view_take_campaign(struct controller *c, int64_t campaign_id, int64_t seen_tasks,
                        struct live_campaign **ret, struct err *err)
{
    struct stage_row *rows = NULL;
    size_t n = 0;
    struct live_campaign *lc = xcalloc(1, sizeof *lc);
    arena_init(&lc->arena, SPEC_ARENA_MAX);
    lc->seen_tasks = seen_tasks;
    if (!view_campaign(c->store, campaign_id, &lc->row, err) ||
        !know_project(c, lc->row.project_id, err) || !read_spec(lc, err) ||
        !view_stages(c->store, campaign_id, &rows, &n, err)) {
        live_campaign_free(lc);
        return false;
    }
    lc->stages = xcalloc(n + 1, sizeof *lc->stages);
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        struct live_stage *ls = &lc->stages[lc->stages_n++];
        int spec_i = spec_stage_find(lc->spec, rows[i].name);
        ls->row = rows[i];
        ls->spec = spec_i >= 0 ? lc->spec->stages[spec_i] : NULL;
        ls->ready = ready_queue_new();
        ls->unchecked = ready_queue_new();
        ls->reason = WAIT_NEW;
        lc->live += rows[i].counts[TASK_ACTIVE];
        ok = history_load(c, ls, err) && (never_again(ls->row.state) ||
                                          (take_new(c, ls, err) && load_tasks(c, lc, ls, 0, err)));
    }
    free(rows);
    if (!ok) {
        live_campaign_free(lc);
        return false;
    }
    lc->waits_for_person = lc->row.state == CAMPAIGN_HELD && lc->row.at_limit != AT_LIMIT_DRAIN &&
                           lc->row.version == lc->row.taken_version;
    default_warn(lc);
    leader_state_add_campaign(&c->state, lc);
    *ret = lc;
    return true;
}

static bool refresh_stages(struct controller *c, struct live_campaign *lc, struct err *err)
{
    struct stage_row *rows = NULL;
    size_t n = 0;
    if (!view_stages(c->store, lc->row.id, &rows, &n, err)) {
        return false;
    }
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        struct live_stage *ls = leader_state_stage(lc, rows[i].id);
        if (ls == NULL) {
            continue;
        }
        int64_t from_seq = ls->row.taken;
        ls->row.tasks = rows[i].tasks;
        ls->row.closed = rows[i].closed;
        ls->row.cap_musd = rows[i].cap_musd;
        ls->row.per_task_musd = rows[i].per_task_musd;
        ls->row.parts_limit = rows[i].parts_limit;
        ls->row.resumes = rows[i].resumes;
        ls->row.warn = rows[i].warn;
        ok = from_seq == ls->row.tasks ||
             (take_new(c, ls, err) && load_tasks(c, lc, ls, from_seq, err));
    }
    free(rows);
    return ok;
}

/* What people want may have changed; our own columns are as we hold them. */
static bool refresh_campaign(struct controller *c, struct live_campaign *lc, struct err *err)
{
    struct campaign_row now;
    memset(&now, 0, sizeof now);
    if (!view_campaign(c->store, lc->row.id, &now, err)) {
        return false;
    }
    free(now.spec_json);
    lc->row.wanted = now.wanted;
    lc->row.priority = now.priority;
    lc->row.parts_limit = now.parts_limit;
    lc->row.cap_musd = now.cap_musd;
    lc->row.at_limit = now.at_limit;
    lc->row.weight = now.weight;
    lc->row.warn = now.warn;
    default_warn(lc);
    lc->row.version = now.version;
    lc->budget_short = lc->budget_spent = lc->waits_for_person = false;
    return refresh_stages(c, lc, err);
}

static bool refresh_slot_limits(struct controller *c, struct err *err)
{
    AUTO_FREE struct slot_limit_row *rows = NULL;
    size_t n = 0;
    if (!view_slot_limits(c->store, &rows, &n, err)) {
        return false;
    }
    for (size_t i = 0; i < c->state.slots_n; i++) {
        c->state.slots[i].s.operator_limit = -1;
    }
    for (size_t i = 0; i < n; i++) {
        leader_state_slots(&c->state, rows[i].instance_type, rows[i].market)->s.operator_limit =
            rows[i].limit;
    }
    return true;
}

bool view_refresh(struct controller *c, struct err *err)
{
    struct campaign_version *v = NULL;
    size_t n = 0;
    if (!leader_begin(c->store, c->state.epoch, err)) {
        return false;
    }
    bool ok = refresh_projects(c, err) && refresh_slot_limits(c, err) &&
              view_versions(c->store, &v, &n, err);
    for (size_t i = 0; i < n && ok; i++) {
        struct live_campaign *lc = leader_state_campaign(&c->state, v[i].id);
        if (lc == NULL) {
            ok = view_take_campaign(c, v[i].id, v[i].tasks, &lc, err);
        } else if (lc->row.version != v[i].version || lc->seen_tasks != v[i].tasks) {
            ok = refresh_campaign(c, lc, err);
            lc->seen_tasks = v[i].tasks;
        } else {
            continue;
        }
        c->state.decide = true;
    }
    free(v);
    if (!ok) {
        leader_rollback(c->store);
        return false;
    }
    return leader_commit(c->store, err);
}

static bool load_pools(struct controller *c, struct err *err)
{
    AUTO_FREE struct pool_row *rows = NULL;
    size_t n = 0;
    if (!view_pools(c->store, &rows, &n, err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        struct live_campaign *lc = leader_state_campaign(&c->state, rows[i].campaign_id);
        if (lc == NULL && !view_take_campaign(c, rows[i].campaign_id, 0, &lc, err)) {
            return false; /* an open pool keeps even an ended campaign in view */
        }
        pool_attach_io(c, leader_load_pool(&c->state, &rows[i], lc));
    }
    return true;
}

static bool load_attempts(struct controller *c, struct err *err)
{
    struct attempt_row *rows = NULL;
    size_t n = 0;
    if (!view_attempts(c->store, &rows, &n, err)) {
        return false;
    }
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        struct live_campaign *lc = leader_state_campaign(&c->state, rows[i].campaign_id);
        if (lc == NULL && !view_take_campaign(c, rows[i].campaign_id, 0, &lc, err)) {
            ok = false; /* a live attempt keeps even an ended campaign in view */
        } else {
            attempt_take_over(c, &rows[i], lc);
            rows[i].uri = rows[i].vars_json = NULL; /* the live attempt's now */
        }
    }
    attempt_rows_free(rows, n);
    return ok;
}

static bool load_slots(struct controller *c, struct err *err)
{
    struct slots_row *rows = NULL;
    size_t n = 0;
    if (!view_slots(c->store, &rows, &n, err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        const struct slots_row *r = &rows[i];
        struct live_slots *ls = leader_state_slots(&c->state, r->instance_type, r->market);
        ls->s.held = r->held; /* its quotas are read anew before anything is intended */
        ls->s.warm_idle = r->warm_idle;
        ls->s.operator_limit = r->operator_limit;
        ls->s.price_musd_per_hour = r->price_musd_per_hour;
        ls->s.foreign = ls->kept_foreign = r->foreign;
        ls->s.foreign_us = r->foreign_us;
        ls->s.refused_limit = ls->kept_limit = r->refused_limit;
        ls->probe_us = r->foreign > 0 ? clock_wall_us() : 0;
    }
    free(rows);
    return true;
}

/* USD per hour from the operator's file, as decimal text; the store keeps what was used. A mistake
 * in it must not keep us from leading: what has no price waits with price_unknown. */
static bool load_prices(struct controller *c, struct err *err)
{
    AUTO_FILE FILE *f = NULL;
    AUTO_JSON json_t *o = NULL;
    AUTO_BUF struct buf text = BUF_INIT(1024 * 1024);
    const char *type;
    json_t *v;
    if (c->cfg.prices_file == NULL || c->cfg.prices_file[0] == '\0') {
        return true;
    }
    f = fopen(c->cfg.prices_file, "re");
    if (f == NULL) {
        log_event(LOG_ERROR, "prices_unreadable", LF_S("file", c->cfg.prices_file));
        return true; /* tasks wait with price_unknown */
    }
    char chunk[4096];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;) {
        buf_add(&text, chunk, n);
    }
    struct err why = ERR_INIT;
    if (!json_parse(buf_str(&text), text.max, &o, &why)) {
        log_event(LOG_ERROR, "prices_unreadable", LF_S("file", c->cfg.prices_file), LF_ERR(&why));
        return true;
    }
    json_object_foreach(o, type, v)
    {
        int64_t musd;
        if (!json_is_string(v) || !parse_usd(str_of(json_string_value(v)), &musd, &why)) {
            log_event(LOG_ERROR, "price_unreadable", LF_S("file", c->cfg.prices_file),
                      LF_S("instance_type", type));
            continue;
        }
        if (!store_price_put(c->store, type, musd, c->cfg.prices_file, err)) {
            return false;
        }
    }
    return true;
}

static bool load_base(struct controller *c, struct campaign_version **ret, size_t *ret_n,
                      struct err *err)
{
    struct campaign_version *v = NULL;
    size_t n = 0;
    if (!install_id(c->store, c->state.install_id, err) || !load_prices(c, err) ||
        !load_slots(c, err) || !refresh_projects(c, err) ||
        !view_task_changes(c->store, &c->state.changes, &c->state.changes_n, err) ||
        !view_versions(c->store, &v, &n, err)) {
        return false;
    }
    *ret = v;
    *ret_n = n;
    return true;
}

/* A transaction a step, and the lease renewed between them: a million parts take longer to read
 * than a short lease lasts. Nobody else writes what is read here, so the steps fit together. */
static bool load_step(struct controller *c, bool ok, struct err *err)
{
    if (!ok) {
        leader_rollback(c->store);
        return false;
    }
    return leader_commit(c->store, err) && leader_renew_if_due(c, err);
}

bool view_load(struct controller *c, struct err *err)
{
    AUTO_FREE struct campaign_version *v = NULL;
    size_t n = 0;
    if (!leader_begin(c->store, c->state.epoch, err) ||
        !load_step(c, load_base(c, &v, &n, err), err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        struct live_campaign *lc;
        if (!leader_begin(c->store, c->state.epoch, err) ||
            !load_step(c, view_take_campaign(c, v[i].id, v[i].tasks, &lc, err), err)) {
            return false;
        }
    }
    return leader_begin(c->store, c->state.epoch, err) &&
           load_step(c, load_pools(c, err) && load_attempts(c, err), err) &&
           record_flush(c); /* intended became unknown */
}
