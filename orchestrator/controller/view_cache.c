/* The view the leader keeps: campaigns with their ready queues, live attempts, slots, changes by
 * retries. Read whole at takeover, then only what changed. */
#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "ctl.h"
#include <stdio.h>

#define SPEC_ARENA_MAX (16 * 1024 * 1024)

struct live_campaign *view_find(struct controller *c, int64_t campaign_id)
{
    for (size_t i = 0; i < c->campaigns_n; i++) {
        if (c->campaigns[i]->row.id == campaign_id) {
            return c->campaigns[i];
        }
    }
    return NULL;
}

struct live_stage *view_stage(struct live_campaign *lc, int64_t stage_id)
{
    for (int i = 0; i < lc->stages_n; i++) {
        if (lc->stages[i].row.id == stage_id) {
            return &lc->stages[i];
        }
    }
    return NULL;
}

struct live_slots *view_slots_of(struct controller *c, const char *instance_type)
{
    for (size_t i = 0; i < c->slots_n; i++) {
        if (strcmp(c->slots[i].row.instance_type, instance_type) == 0) {
            return &c->slots[i];
        }
    }
    c->slots = xrealloc(c->slots, (c->slots_n + 1) * sizeof *c->slots);
    struct live_slots *s = &c->slots[c->slots_n++];
    memset(s, 0, sizeof *s);
    (void)snprintf(s->row.instance_type, sizeof s->row.instance_type, "%s", instance_type);
    s->row.limit = -1;
    s->row.price_musd_per_hour = -1;
    s->quota = -1;
    return s;
}

/* Few tasks ever change, so a sorted array does. */
struct task_change_row *view_change(struct controller *c, int64_t task_id, bool create)
{
    size_t lo = 0;
    size_t hi = c->changes_n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (c->changes[mid].task_id < task_id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    if (lo < c->changes_n && c->changes[lo].task_id == task_id) {
        return &c->changes[lo];
    }
    if (!create) {
        return NULL;
    }
    c->changes = xrealloc(c->changes, (c->changes_n + 1) * sizeof *c->changes);
    memmove(&c->changes[lo + 1], &c->changes[lo], (c->changes_n - lo) * sizeof *c->changes);
    c->changes_n++;
    memset(&c->changes[lo], 0, sizeof *c->changes);
    c->changes[lo].task_id = task_id;
    return &c->changes[lo];
}

static void campaign_free(struct live_campaign *lc)
{
    for (int i = 0; i < lc->stages_n; i++) {
        ready_free(lc->stages[i].ready);
    }
    free(lc->stages);
    free(lc->row.spec_json);
    arena_done(&lc->arena);
    free(lc);
}

static void forget_changes(struct controller *c, int64_t campaign_id)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->changes_n; i++) {
        if (c->changes[i].campaign_id != campaign_id) {
            c->changes[kept++] = c->changes[i];
        }
    }
    c->changes_n = kept;
}

void view_drop_campaign(struct controller *c, struct live_campaign *lc)
{
    for (size_t i = 0; i < c->campaigns_n; i++) {
        if (c->campaigns[i] == lc) {
            memmove(&c->campaigns[i], &c->campaigns[i + 1],
                    (c->campaigns_n - i - 1) * sizeof *c->campaigns);
            c->campaigns_n--;
            forget_changes(c, lc->row.id);
            campaign_free(lc);
            return;
        }
    }
}

void view_free(struct controller *c)
{
    sagemaker_cancel(c->listing);
    c->listing = NULL;
    quotas_cancel(c->quota_reading);
    c->quota_reading = NULL;
    precheck_cancel_all(c);
    while (c->attempts_n > 0) {
        attempt_remove(c, c->attempts[c->attempts_n - 1]);
    }
    for (size_t i = 0; i < c->records_n; i++) {
        free(c->records[i].manifest);
    }
    c->records_n = 0;
    while (c->campaigns_n > 0) {
        view_drop_campaign(c, c->campaigns[c->campaigns_n - 1]);
    }
    free(c->slots);
    c->slots = NULL;
    c->slots_n = 0;
    free(c->changes);
    c->changes = NULL;
    c->changes_n = 0;
}

struct task_sink {
    struct controller *c;
    struct live_campaign *lc;
    struct live_stage *ls;
    struct ready_task *many;
    size_t cap;
};

static void on_tasks(void *ctx, const struct task_row *rows, size_t n)
{
    struct task_sink *k = ctx;
    size_t m = 0;
    if (n > k->cap) {
        k->many = xrealloc(k->many, n * sizeof *k->many);
        k->cap = n;
    }
    for (size_t i = 0; i < n; i++) {
        if (rows[i].state != TASK_WAITING) {
            continue;
        }
        if (k->ls->spec != NULL && k->ls->spec->done_if != NULL && rows[i].names == 0) {
            precheck_add(k->c, k->lc, k->ls, &rows[i]);
            continue;
        }
        int64_t size_mb = rows[i].size / (1024 * 1024);
        k->many[m++] = (struct ready_task){.task_id = rows[i].id,
                                           .not_before_us = rows[i].not_before_us,
                                           .seq = (uint32_t)rows[i].seq,
                                           .size_mb = (uint32_t)MIN(size_mb, UINT32_MAX)};
    }
    ready_push_many(k->ls->ready, k->many, m);
}

static bool load_tasks(struct controller *c, struct live_campaign *lc, struct live_stage *ls,
                       int64_t from_seq, struct err *err)
{
    struct task_sink k = {.c = c, .lc = lc, .ls = ls};
    bool ok =
        view_tasks(c->store, lc->row.id, ls->row.id, from_seq, ls->row.tasks, on_tasks, &k, err);
    free(k.many);
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
    ls->row.counts[TASK_WAITING] += more;
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

bool view_take_campaign(struct controller *c, int64_t campaign_id, int64_t seen_tasks,
                        struct live_campaign **ret, struct err *err)
{
    struct stage_row *rows = NULL;
    size_t n = 0;
    struct live_campaign *lc = xcalloc(1, sizeof *lc);
    arena_init(&lc->arena, SPEC_ARENA_MAX);
    lc->seen_tasks = seen_tasks;
    if (!view_campaign(c->store, campaign_id, &lc->row, err) || !read_spec(lc, err) ||
        !view_stages(c->store, campaign_id, &rows, &n, err)) {
        campaign_free(lc);
        return false;
    }
    lc->stages = xcalloc(n + 1, sizeof *lc->stages);
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        struct live_stage *ls = &lc->stages[lc->stages_n++];
        int spec_i = spec_stage_find(lc->spec, rows[i].name);
        ls->row = rows[i];
        ls->spec = spec_i >= 0 ? lc->spec->stages[spec_i] : NULL;
        ls->ready = ready_new();
        ls->reason = WAIT_NEW;
        lc->live += rows[i].counts[TASK_ACTIVE];
        ok = stage_state_terminal(ls->row.state) ||
             (take_new(c, ls, err) && load_tasks(c, lc, ls, 0, err));
    }
    free(rows);
    if (!ok) {
        campaign_free(lc);
        return false;
    }
    c->campaigns = xrealloc(c->campaigns, (c->campaigns_n + 1) * sizeof(struct live_campaign *));
    c->campaigns[c->campaigns_n++] = lc;
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
        struct live_stage *ls = view_stage(lc, rows[i].id);
        if (ls == NULL) {
            continue;
        }
        int64_t from_seq = ls->row.taken;
        ls->row.tasks = rows[i].tasks;
        ls->row.closed = rows[i].closed;
        ls->row.cap_musd = rows[i].cap_musd;
        ls->row.per_task_musd = rows[i].per_task_musd;
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
    lc->row.project_cap_musd = now.project_cap_musd;
    lc->row.global_cap_musd = now.global_cap_musd;
    lc->row.at_limit = now.at_limit;
    lc->row.version = now.version;
    lc->budget_held = false;
    return refresh_stages(c, lc, err);
}

bool view_refresh(struct controller *c, struct err *err)
{
    struct campaign_version *v = NULL;
    size_t n = 0;
    if (!leader_begin(c->store, c->epoch, err)) {
        return false;
    }
    bool ok = view_versions(c->store, &v, &n, err);
    for (size_t i = 0; i < n && ok; i++) {
        struct live_campaign *lc = view_find(c, v[i].id);
        if (lc == NULL) {
            ok = view_take_campaign(c, v[i].id, v[i].tasks, &lc, err);
        } else if (lc->row.version != v[i].version || lc->seen_tasks != v[i].tasks) {
            ok = refresh_campaign(c, lc, err);
            lc->seen_tasks = v[i].tasks;
        } else {
            continue;
        }
        c->decide = true;
    }
    free(v);
    if (!ok) {
        leader_rollback(c->store);
        return false;
    }
    return leader_commit(c->store, err);
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
        struct live_campaign *lc = view_find(c, rows[i].campaign_id);
        if (lc == NULL && !view_take_campaign(c, rows[i].campaign_id, 0, &lc, err)) {
            ok = false; /* a live attempt keeps even an ended campaign in view */
        } else {
            (void)attempt_add(c, &rows[i], lc);
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
        if (rows[i].market != MARKET_ON_DEMAND) {
            continue;
        }
        struct live_slots *s = view_slots_of(c, rows[i].instance_type);
        s->row = rows[i];
        s->row.foreign = 0; /* learned anew */
        s->quota = -1;      /* read anew before anything is intended */
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
    if (!install_id(c->store, c->install_id, err) || !load_prices(c, err) || !load_slots(c, err) ||
        !view_task_changes(c->store, &c->changes, &c->changes_n, err) ||
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
    if (!leader_begin(c->store, c->epoch, err) || !load_step(c, load_base(c, &v, &n, err), err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        struct live_campaign *lc;
        if (!leader_begin(c->store, c->epoch, err) ||
            !load_step(c, view_take_campaign(c, v[i].id, v[i].tasks, &lc, err), err)) {
            return false;
        }
    }
    return leader_begin(c->store, c->epoch, err) && load_step(c, load_attempts(c, err), err) &&
           record_flush(c); /* intended became unknown */
}
