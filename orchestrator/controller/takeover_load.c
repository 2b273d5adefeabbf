/* See takeover_load.h. */
#include "takeover_load.h"
#include "attempt.h"
#include "bills.h"
#include "calls.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/pool_life.h"
#include "core/leader/rows_read.h"
#include "endpoint_life.h"
#include "filesystem_life.h"
#include "lease.h"
#include "load.h"
#include "metric_collect.h"
#include "observe.h"
#include "outcome.h"
#include "parking.h"
#include "pool_life.h"
#include "prices.h"
#include "resource_strays.h"
#include "store/leader/lease.h"
#include "store/leader/scheduler.h"
#include "store/rows/view.h"
#include "strays.h"
#include "wall.h"

struct taken_versions {
    struct campaign_version *v;
    size_t n;
};

struct live_rows {
    struct attempt_row *attempts;
    struct pool_row *pools;
    size_t attempts_n, pools_n;
};

static bool read_all_live(struct controller *c, void *arg, struct err *err)
{
    struct live_rows *r = arg;
    return view_pools(c->store, 0, &r->pools, &r->pools_n, err) &&
           view_attempts(c->store, 0, 0, &r->attempts, &r->attempts_n, err);
}

/* Campaigns that have ended, and those whose rows were locked a moment ago. */
static void take_campaigns_of(struct controller *c, const struct live_rows *r)
{
    for (size_t i = 0; i < r->pools_n && c->leading; i++) {
        (void)view_find_campaign(c, r->pools[i].campaign_id);
    }
    for (size_t i = 0; i < r->attempts_n && c->leading; i++) {
        (void)view_find_campaign(c, r->attempts[i].campaign_id);
    }
}

/* Of a campaign that cannot be read now all are read with it, later: it must not come into memory
 * between two of its rows. Their slots and money count already, by rows of their own. */
static void add_all_live(struct controller *c, const struct live_rows *r)
{
    take_campaigns_of(c, r);
    for (size_t i = 0; i < r->pools_n && c->leading; i++) {
        struct live_campaign *lc = leader_state_campaign(&c->state, r->pools[i].campaign_id);
        if (lc != NULL) {
            pool_attach_io(c, leader_load_pool(&c->state, &r->pools[i], lc));
        }
    }
    for (size_t i = 0; i < r->attempts_n && c->leading; i++) {
        struct live_campaign *lc = leader_state_campaign(&c->state, r->attempts[i].campaign_id);
        if (lc != NULL) {
            attempt_take_over(c, &r->attempts[i], lc);
        }
    }
}

static bool load_slots(struct controller *c, struct err *err)
{
    AUTO_FREE struct slots_row *rows = NULL;
    size_t n = 0;
    int64_t raised = 0;
    if (!store_slots_correct(c->store, &raised, err) || !view_slots(c->store, &rows, &n, err)) {
        return false;
    }
    if (raised > 0) {
        log_event(LOG_WARN, "slots_corrected", LF_I("types", raised));
    }
    rows_slots(&c->state, rows, n, leader_now(c));
    return true;
}

static bool load_base(struct controller *c, void *arg, struct err *err)
{
    struct taken_versions *v = arg;
    return install_id(c->store, c->state.install_id, err) && load_slots(c, err) &&
           quota_kept_read(c, err) && view_refresh_projects(c, err) && parking_read(c, err) &&
           strays_read(c, err) && bills_read(c, err) && resource_strays_read(c, err) &&
           endpoints_read(c, err) && filesystems_read(c, err) &&
           view_versions(c->store, &v->v, &v->n, err);
}

/* A page a transaction: a million parts may have been tried again. */
static bool load_changes(struct controller *c, void *arg, struct err *err)
{
    return view_task_changes(c->store, arg, &c->state.changes, &c->state.changes_n, err);
}

/* A transaction a step, and the lease renewed between them: a million parts take longer to read
 * than a short lease lasts. Nobody else writes what is read here, so the steps fit together. What
 * belongs to one campaign and cannot be read keeps nobody from leading. */
static bool load_step(struct controller *c, leader_fn *fn, void *arg, struct err *err)
{
    return leader_try(c, fn, arg, err) == TX_DONE && leader_renew_if_due(c, err);
}

static bool load_campaigns(struct controller *c, const struct taken_versions *v, struct err *err)
{
    for (size_t i = 0; i < v->n; i++) {
        (void)view_take(c, v->v[i].id, v->v[i].tasks);
        if (!c->leading || !leader_renew_if_due(c, err)) {
            return false;
        }
    }
    return true;
}

static bool load_all(struct controller *c, struct taken_versions *v, struct live_rows *rows,
                     struct err *err)
{
    prices_take_over(c);
    if (!load_step(c, load_base, v, err)) {
        return false;
    }
    for (int64_t after = 0; after != INT64_MAX;) {
        if (!load_step(c, load_changes, &after, err)) {
            return false;
        }
    }
    if (!load_campaigns(c, v, err) || !load_step(c, read_all_live, rows, err)) {
        return false;
    }
    add_all_live(c, rows);
    if (!c->leading || !load_step(c, metric_collect_load, NULL, err)) {
        return false;
    }
    return c->leading && record_flush(c); /* intended became unknown */
}

bool view_load(struct controller *c, struct err *err)
{
    struct taken_versions v = {.n = 0};
    struct live_rows rows = {.attempts_n = 0};
    c->loading = true;
    bool ok = load_all(c, &v, &rows, err);
    c->loading = false;
    attempt_rows_free(rows.attempts, rows.attempts_n);
    free(rows.pools);
    free(v.v);
    return ok;
}
