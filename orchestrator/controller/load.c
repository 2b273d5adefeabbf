/* The view the leader keeps: campaigns with their ready queues, live attempts, slots, changes by
 * retries. What changed since it was read; takeover_load.c reads it whole. */
#include "load.h"
#include "archive_export.h"
#include "attempt.h"
#include "bills.h"
#include "calls.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "core/leader/pool_life.h"
#include "core/leader/rows_read.h"
#include "core/leader/stage_history.h"
#include "core/spec/spec_json.h"
#include "endpoint_life.h"
#include "endpoint_model.h"
#include "event_intake.h"
#include "filesystem_life.h"
#include "history.h"
#include "lease.h"
#include "metric_collect.h"
#include "observe.h"
#include "orphan_sweep.h"
#include "outcome.h"
#include "output_check.h"
#include "parking.h"
#include "pool_life.h"
#include "price_read.h"
#include "prices.h"
#include "resource_strays.h"
#include "resource_sweep.h"
#include "shell.h"
#include "skip_done.h"
#include "store/leader/lease.h"
#include "store/leader/scheduler.h"
#include "store/leader/tasks.h"
#include "store/rows/view.h"
#include "strays.h"
#include "task_load.h"
#include "wall.h"
#include <stdio.h>

#define SPEC_ARENA_MAX (16 * 1024 * 1024)

void view_free(struct controller *c)
{
    observe_cancel(c);
    price_read_cancel(c);
    event_intake_cancel(c);
    skip_done_cancel_all(c);
    orphan_sweep_cancel(c);
    strays_cancel(c);
    bills_cancel(c);
    resource_sweep_cancel(c);
    resource_strays_cancel(c);
    endpoints_cancel(c);
    filesystems_cancel(c);
    endpoint_models_cancel(c);
    archive_export_cancel(c);
    metric_collect_cancel(c);
    while (c->state.attempts_n > 0) {
        attempt_remove(c, c->state.attempts[c->state.attempts_n - 1]);
    }
    while (c->state.pools_n > 0) {
        pool_remove(c, c->state.pools[c->state.pools_n - 1]);
    }
    leader_state_clear(&c->state);
}

/* New parts enter the counters: `tasks` as the row says now. */
static bool write_taken(struct controller *c, const struct live_stage *ls, int64_t tasks,
                        struct err *err)
{
    return !rows_new_parts(ls, tasks) || store_stage_take(c->store, ls->row.id, tasks, err);
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

bool view_refresh_projects(struct controller *c, struct err *err)
{
    AUTO_FREE struct project_row *rows = NULL;
    size_t n = 0;
    if (!view_projects(c->store, &rows, &n, err)) {
        return false;
    }
    rows_refresh_projects(&c->state, rows, n);
    return true;
}

/* It may have been made after the projects were read last. */
static bool know_project(struct controller *c, int64_t project_id, struct err *err)
{
    return rows_project_known(&c->state, project_id) || view_refresh_projects(c, err);
}

struct take {
    int64_t id, seen_tasks;
    bool bare;                /* its parts and what its stages have learned are read later */
    struct live_campaign *lc; /* the caller's from success on */
    struct err spec_error;    /* why the spec cannot be read; none when it can */
    struct attempt_row *attempts;
    struct pool_row *pools;
    struct task_change_row *changes;
    size_t attempts_n, pools_n, changes_n;
};

static bool read_stages(struct controller *c, struct take *t, struct live_campaign *lc,
                        struct err *err)
{
    AUTO_FREE struct stage_row *rows = NULL;
    size_t n = 0;
    if (!view_stages(c->store, lc->row.id, &rows, &n, err)) {
        return false;
    }
    if (lc->spec != NULL && !rows_fit_spec(lc->spec, rows, n, &t->spec_error)) {
        lc->spec = NULL;
    }
    lc->stages = leader_state_new_stages(n);
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        struct live_stage *ls = &lc->stages[lc->stages_n++];
        rows_new_stage(lc, ls, &rows[i]);
        stage_history_init(ls);
        if (t->bare) {
            continue;
        }
        ok = history_load(c, ls, err);
        if (ok && rows_stage_is_read(ls)) {
            ok = write_taken(c, ls, rows[i].tasks, err);
            rows_take_parts(ls, rows[i].tasks);
            ok = ok && task_load(c, ls, err);
        }
    }
    return ok;
}

/* Live attempts and open pools of a campaign that was not in memory when all others were read. */
static bool read_live(struct controller *c, struct take *t, struct err *err)
{
    return c->loading || (view_attempts(c->store, t->id, 0, &t->attempts, &t->attempts_n, err) &&
                          view_pools(c->store, t->id, &t->pools, &t->pools_n, err));
}

/* What retries changed for its parts: of one that has ended nobody has read it, and a person may
 * try its parts again. */
static bool read_changes(struct controller *c, struct take *t, const struct live_campaign *lc,
                         struct err *err)
{
    bool known = c->loading && !campaign_state_terminal(lc->row.state);
    return t->bare || known ||
           view_task_changes_of(c->store, t->id, &t->changes, &t->changes_n, err);
}

static void take_done(struct take *t)
{
    attempt_rows_free(t->attempts, t->attempts_n);
    free(t->pools);
    free(t->changes);
}

static bool take_campaign(struct controller *c, void *arg, struct err *err)
{
    struct take *t = arg;
    struct live_campaign *lc = xcalloc(1, sizeof *lc);
    arena_init(&lc->arena, SPEC_ARENA_MAX);
    lc->seen_tasks = t->seen_tasks;
    if (!view_campaign(c->store, t->id, &lc->row, err) ||
        !know_project(c, lc->row.project_id, err)) {
        live_campaign_free(lc);
        return false;
    }
    if (t->bare || !read_spec(lc, &t->spec_error)) {
        lc->spec = NULL;
    }
    if (!read_stages(c, t, lc, err) || !read_live(c, t, err) || !read_changes(c, t, lc, err)) {
        live_campaign_free(lc);
        return false;
    }
    rows_new_campaign(lc);
    t->lc = lc;
    return true;
}

static void add_live(struct controller *c, struct take *t)
{
    for (size_t i = 0; i < t->pools_n; i++) {
        pool_attach_io(c, leader_load_pool(&c->state, &t->pools[i], t->lc));
    }
    for (size_t i = 0; i < t->attempts_n; i++) {
        attempt_take_over(c, &t->attempts[i], t->lc);
    }
}

struct live_campaign *view_take(struct controller *c, int64_t campaign_id, int64_t seen_tasks)
{
    struct err err;
    struct take t = {.id = campaign_id, .seen_tasks = seen_tasks, .spec_error = ERR_INIT};
    struct parking_subject who = PARKING_CAMPAIGN(campaign_id);
    enum tx_meaning meaning = leader_try(c, take_campaign, &t, &err);
    if (meaning == TX_REFUSED) { /* its jobs are looked after all the same */
        take_done(&t);
        t = (struct take){.id = campaign_id, .seen_tasks = -1, .bare = true, .spec_error = err};
        meaning = leader_try(c, take_campaign, &t, &err);
    }
    if (meaning == TX_DONE) {
        leader_state_add_campaign(&c->state, t.lc);
        leader_state_take_changes(&c->state, t.changes, t.changes_n);
        add_live(c, &t);
        if (t.lc->spec_unreadable) {
            parking_refuse(c, who, TX_REFUSED, &t.spec_error);
        } else {
            parking_done(c, who);
            metric_collect_spec_read(c, campaign_id);
        }
    } else {
        if (t.lc != NULL) {
            live_campaign_free(t.lc);
        }
        if (meaning != TX_LOST) {
            parking_refuse(c, who, meaning, &err);
        }
    }
    take_done(&t);
    return meaning == TX_DONE ? t.lc : NULL;
}

struct live_campaign *view_find_campaign(struct controller *c, int64_t campaign_id)
{
    struct live_campaign *lc = leader_state_campaign(&c->state, campaign_id);
    if (lc != NULL || !parking_due(c, PARKING_CAMPAIGN(campaign_id))) {
        return lc;
    }
    return view_take(c, campaign_id, 0);
}

struct refresh {
    struct live_campaign *lc;
    struct campaign_row now;
    struct stage_row *rows;
    size_t n;
};

static bool read_refresh(struct controller *c, void *arg, struct err *err)
{
    struct refresh *r = arg;
    if (!view_campaign(c->store, r->lc->row.id, &r->now, err) ||
        !view_stages(c->store, r->lc->row.id, &r->rows, &r->n, err)) {
        return false;
    }
    for (size_t i = 0; i < r->n; i++) {
        const struct live_stage *ls = leader_state_stage(r->lc, r->rows[i].id);
        if (ls != NULL && !write_taken(c, ls, r->rows[i].tasks, err)) {
            return false;
        }
    }
    return true;
}

static void apply_refresh(struct refresh *r)
{
    rows_refresh_campaign(r->lc, &r->now);
    for (size_t i = 0; i < r->n; i++) {
        struct live_stage *ls = leader_state_stage(r->lc, r->rows[i].id);
        if (ls != NULL) {
            rows_refresh_stage(ls, &r->rows[i]);
        }
    }
}

static bool load_new_tasks(struct controller *c, void *arg, struct err *err)
{
    struct live_campaign *lc = arg;
    for (int k = 0; k < lc->stages_n; k++) {
        struct live_stage *ls = &lc->stages[k];
        if (rows_unloaded(ls) && !task_load(c, ls, err)) {
            return false;
        }
    }
    return true;
}

/* Its wishes and new parts. A failure is met again at the next look. */
static bool refresh_campaign(struct controller *c, struct live_campaign *lc,
                             const struct campaign_version *v)
{
    struct err err;
    struct refresh r = {.lc = lc};
    struct parking_subject who = PARKING_CAMPAIGN(lc->row.id);
    enum tx_meaning meaning = leader_try(c, read_refresh, &r, &err);
    if (meaning == TX_DONE) {
        apply_refresh(&r);
        meaning = leader_try(c, load_new_tasks, lc, &err);
    }
    rows_refreshed(lc, v, meaning == TX_DONE);
    free(r.now.spec_json);
    free(r.rows);
    if (meaning == TX_BUSY || meaning == TX_REFUSED) {
        parking_refuse(c, who, meaning, &err);
    }
    return meaning == TX_DONE;
}

bool view_refresh_ended(struct controller *c, struct live_campaign *lc)
{
    const struct campaign_version v = {.id = lc->row.id, .tasks = -1}; /* looked at when it runs */
    return !campaign_state_terminal(lc->row.state) ||
           (parking_due(c, PARKING_CAMPAIGN(lc->row.id)) && refresh_campaign(c, lc, &v));
}

struct respec {
    struct live_campaign *lc;
    struct campaign_row now;
    struct err spec_error;
};

/* The stages may have got back the names that the spec knows. */
static bool read_names(struct controller *c, struct live_campaign *lc, struct err *spec_error,
                       struct err *err)
{
    AUTO_FREE struct stage_row *rows = NULL;
    size_t n = 0;
    if (!view_stages(c->store, lc->row.id, &rows, &n, err)) {
        return false;
    }
    rows_name_stages(lc, rows, n);
    lc->spec = rows_fit_spec(lc->spec, rows, n, spec_error) ? lc->spec : NULL;
    return true;
}

/* The spec that could not be read, once more; what its stages have learned is read with it. */
static bool read_respec(struct controller *c, void *arg, struct err *err)
{
    struct respec *r = arg;
    struct live_campaign *lc = r->lc;
    if (!view_campaign(c->store, lc->row.id, &r->now, err)) {
        return false;
    }
    free(lc->row.spec_json);
    lc->row.spec_json = TAKE(r->now.spec_json);
    lc->spec = NULL;
    arena_done(&lc->arena);
    arena_init(&lc->arena, SPEC_ARENA_MAX);
    if (!read_spec(lc, &r->spec_error)) {
        return true;
    }
    if (!read_names(c, lc, &r->spec_error, err)) {
        return false;
    }
    if (lc->spec == NULL) {
        return true;
    }
    rows_set_spec(lc, lc->spec);
    for (int k = 0; k < lc->stages_n; k++) {
        if (!history_load(c, &lc->stages[k], err)) {
            return false;
        }
    }
    return true;
}

static void reread_spec(struct controller *c, struct live_campaign *lc)
{
    struct err err;
    struct respec r = {.lc = lc, .spec_error = ERR_INIT};
    struct parking_subject who = PARKING_CAMPAIGN(lc->row.id);
    enum tx_meaning meaning = leader_try(c, read_respec, &r, &err);
    if (rows_spec_read(&c->state, lc, meaning == TX_DONE)) {
        parking_done(c, who);
        metric_collect_spec_read(c, lc->row.id);
    } else if (meaning == TX_DONE) {
        parking_refuse(c, who, TX_REFUSED, &r.spec_error);
    } else if (meaning != TX_LOST) {
        parking_refuse(c, who, meaning, &err);
    }
}

static bool refresh_slot_limits(struct controller *c, struct err *err)
{
    AUTO_FREE struct slot_limit_row *rows = NULL;
    size_t n = 0;
    if (!view_slot_limits(c->store, &rows, &n, err)) {
        return false;
    }
    rows_slot_limits(&c->state, rows, n);
    return true;
}

struct versions {
    struct campaign_version *v;
    size_t n;
};

static bool read_versions(struct controller *c, void *arg, struct err *err)
{
    struct versions *v = arg;
    return view_refresh_projects(c, err) && refresh_slot_limits(c, err) && parking_read(c, err) &&
           (c->state.strays_n == 0 || strays_read(c, err)) &&
           (c->state.resource_strays_n == 0 || resource_strays_read(c, err)) &&
           (c->state.pools_n == 0 || pool_ends_read(c, err)) &&
           (!c->state.bills_unread || bills_read(c, err)) &&
           (c->state.endpoints_n == 0 || endpoints_read(c, err)) &&
           (c->state.filesystems_n == 0 || filesystems_read(c, err)) &&
           view_versions(c->store, &v->v, &v->n, err);
}

static void look_at(struct controller *c, const struct campaign_version *v)
{
    switch (rows_look(&c->state, v, clock_boot_us())) {
    case ROWS_LEAVE:
        break;
    case ROWS_TAKE:
        (void)view_take(c, v->id, v->tasks);
        break;
    case ROWS_REFRESH:
        (void)refresh_campaign(c, leader_state_campaign(&c->state, v->id), v);
        break;
    }
}

/* Ended campaigns that a live attempt or pool keeps in view, when they could not be read. */
static void look_for_absent(struct controller *c)
{
    for (size_t i = c->state.parked_n; i-- > 0 && c->leading;) {
        const struct parked *p = i < c->state.parked_n ? &c->state.parked[i] : NULL;
        if (p != NULL && p->row.kind == PARKED_CAMPAIGN && !p->mended) {
            (void)view_find_campaign(c, p->row.ref_id);
        }
    }
}

bool view_refresh(struct controller *c)
{
    struct versions v = {.n = 0};
    if (!leader_tx(c, read_versions, &v)) {
        free(v.v);
        return c->leading;
    }
    for (size_t i = 0; i < v.n && c->leading; i++) {
        look_at(c, &v.v[i]);
    }
    free(v.v);
    look_for_absent(c);
    for (size_t i = 0; i < c->state.campaigns_n && c->leading; i++) {
        struct live_campaign *lc = c->state.campaigns[i];
        if (rows_spec_due(&c->state, lc, clock_boot_us())) {
            reread_spec(c, lc);
        }
    }
    return c->leading;
}

static bool read_tries(struct controller *c, void *arg, struct err *err)
{
    (void)arg;
    return endpoints_read(c, err) && filesystems_read(c, err);
}

bool view_tries(struct controller *c)
{
    if (c->state.tries_unread && leader_tx(c, read_tries, NULL)) {
        c->state.tries_unread = false;
    }
    return c->leading;
}
