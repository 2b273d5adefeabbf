/* See resource_strays.h. */
#include "resource_strays.h"
#include "budget_state.h"
#include "call_again.h"
#include "common/retry.h"
#include "core/money/cost.h"
#include <stdio.h>
#include <stdlib.h>

#define UNASKED_LOOK_US (600 * USEC_PER_SEC) /* at one that nobody asks to end */
#define POLL_US         (2 * USEC_PER_SEC)   /* while it is being deleted */
#define YOUNG_US        (60 * USEC_PER_SEC)  /* what was just made may not be readable yet */

static bool is(const char *status, const char *word)
{
    return strcmp(status, word) == 0;
}

bool leader_has_resource(const struct leader_state *s, const char *name, const char *token)
{
    for (size_t i = 0; i < s->endpoints_n; i++) {
        const struct endpoint_row *e = &s->endpoints[i]->row;
        if (!endpoint_state_terminal(e->state) && strcmp(e->name.s, name) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < s->filesystems_n; i++) {
        const struct filesystem_row *f = &s->filesystems[i]->row;
        if (!filesystem_state_terminal(f->state) &&
            (strcmp(f->aws_id, name) == 0 || strcmp(f->token.s, token) == 0)) {
            return true;
        }
    }
    return false;
}

struct live_resource_stray *leader_resource_stray(struct leader_state *s, const char *name)
{
    for (size_t i = 0; i < s->resource_strays_n; i++) {
        if (strcmp(s->resource_strays[i].row.name, name) == 0) {
            return &s->resource_strays[i];
        }
    }
    return NULL;
}

void leader_apply_resource_stray(struct leader_state *s, const struct resource_stray_row *row)
{
    struct live_resource_stray *known = leader_resource_stray(s, row->name);
    s->act = true;
    if (known != NULL) { /* more of it is there than was thought */
        *known = (struct live_resource_stray){.row = *row};
        return;
    }
    s->resource_strays =
        xrealloc(s->resource_strays, (s->resource_strays_n + 1) * sizeof *s->resource_strays);
    s->resource_strays[s->resource_strays_n++] = (struct live_resource_stray){.row = *row};
}

bool leader_take_resource_strays(struct leader_state *s, const struct resource_stray_row *rows,
                                 size_t n)
{
    bool asked = false;
    for (size_t i = 0; i < n; i++) {
        struct live_resource_stray *r = leader_resource_stray(s, rows[i].name);
        if (r == NULL) {
            leader_apply_resource_stray(s, &rows[i]);
        } else if (rows[i].stop_asked && !r->row.stop_asked) {
            r->row.stop_asked = asked = s->act = true;
            r->next_us = 0;
        }
    }
    return asked;
}

enum resource_act leader_resource_stray_next(const struct live_resource_stray *r, int64_t boot_us,
                                             int64_t *wake_us)
{
    if (r->config[0] != '\0') {
        return RESOURCE_ACT_CONFIG;
    }
    if (boot_us < r->next_us) {
        *wake_us = MIN(*wake_us, r->next_us);
        return RESOURCE_ACT_NONE;
    }
    return r->row.stop_asked && r->there && !r->delete_taken ? RESOURCE_ACT_DELETE
                                                             : RESOURCE_ACT_DESCRIBE;
}

void leader_plan_resource_stray_owner(const struct leader_state *s,
                                      const struct live_resource_stray *r,
                                      struct resource_writes *ret)
{
    *ret = (struct resource_writes){.row = r->row, .error = ERR_INIT};
    ret->news =
        leader_has_resource(s, r->row.name, r->row.token) ? RESOURCE_ADOPTED : RESOURCE_AS_BEFORE;
}

/* Hosting is billed while it is in service, storage since it was made; no earlier than the end of
 * the last of its name (sql: resource_stray_put), whatever AWS says. */
static void see(struct live_resource_stray *r, const struct resource_fact *fact, usec_t now_us,
                struct resource_stray_row *row)
{
    usec_t since = fact->since_us > 0 ? MIN(fact->since_us, now_us) : now_us;
    bool ends = is(fact->status, "Deleting") || is(fact->status, "DELETING");
    (void)snprintf(row->status, sizeof row->status, "%s", fact->status);
    r->there = !is(fact->status, "Creating"); /* a Delete would be refused */
    r->delete_taken = ends;
    if (row->kind == RESOURCE_ENDPOINT && row->instance_type[0] == '\0' && fact->config != NULL) {
        (void)snprintf(r->config, sizeof r->config, "%s", fact->config);
    }
    if (row->started_us == 0 && is(fact->status, "InService")) {
        row->started_us = MAX(since, row->created_us);
    } else if (row->started_us == 0 && is(fact->status, "AVAILABLE")) {
        row->started_us = row->created_us;
    }
    if (ends && row->ended_us == 0) {
        row->ended_us = since;
        row->estimated = row->started_us > 0 && fact->since_us == 0;
    }
}

/* What is left of a name once `kind` is absent; COUNT: nothing. */
static enum resource_kind after(enum resource_kind kind)
{
    switch (kind) {
    case RESOURCE_ENDPOINT:
        return RESOURCE_ENDPOINT_CONFIG;
    case RESOURCE_ENDPOINT_CONFIG:
        return RESOURCE_MODEL;
    case RESOURCE_MODEL:
    case RESOURCE_FILE_SYSTEM:
    case RESOURCE_KIND_COUNT:
        break;
    }
    return RESOURCE_KIND_COUNT;
}

static bool cost(const struct resource_stray_row *row, struct resource_stray_end *ret,
                 struct err *err)
{
    if (row->kind == RESOURCE_FILE_SYSTEM) { /* hours of storage are no instance-seconds */
        return cost_of_storage(row->price_musd_per_hour, row->size_gib,
                               cost_storage_hours(row->started_us, row->ended_us), &ret->cost_musd,
                               err);
    }
    ret->billable_s =
        cost_billable_s(0, row->started_us, row->ended_us, row->instances, &(bool){false});
    return cost_of_seconds(row->price_musd_per_hour, ret->billable_s, &ret->cost_musd, err);
}

/* What it has cost. False: it cannot be booked. */
static bool book(struct resource_writes *w)
{
    struct ledger_account_of_attempt account = {.reserved = true};
    struct resource_stray_end *end = &w->end;
    int n = 0;
    *end = (struct resource_stray_end){
        .name = w->row.name,
        .status = w->row.status,
        .started_us = w->row.started_us,
        .ended_us = w->row.ended_us,
        .estimated =
            w->row.estimated || (w->row.started_us > 0 && w->row.price_musd_per_hour == 0)};
    if (w->row.started_us == 0) {
        return true;
    }
    if (!cost(&w->row, end, &w->error) ||
        !ledger_settle_job(&account, 0, end->cost_musd, end->billable_s, end->estimated, 0,
                           end->entries, &end->entries_n, &w->error) ||
        !ledger_close(&account, 0, 0, 0, end->entries + end->entries_n, &n, &w->error)) {
        return false;
    }
    end->entries_n += n;
    return true;
}

static void absent(struct live_resource_stray *r, usec_t now_us, struct resource_writes *w)
{
    struct resource_stray_row *row = &w->row;
    enum resource_kind next = after(row->kind);
    if (row->started_us > 0 && row->ended_us == 0) {
        row->ended_us = now_us;
        row->estimated = true;
    }
    r->there = r->delete_taken = false;
    if (next < RESOURCE_KIND_COUNT) {
        row->kind = next;
        row->status[0] = '\0';
        w->news = RESOURCE_MOVED;
        return;
    }
    w->news = book(w) ? RESOURCE_OVER : RESOURCE_AS_BEFORE;
}

static bool differs(const struct resource_stray_row *a, const struct resource_stray_row *b)
{
    return a->started_us != b->started_us || a->ended_us != b->ended_us ||
           a->price_musd_per_hour != b->price_musd_per_hour || strcmp(a->status, b->status) != 0 ||
           strcmp(a->instance_type, b->instance_type) != 0;
}

static void back_off(struct live_resource_stray *r, int64_t boot_us)
{
    r->failures = MIN(r->failures + 1, 1000);
    r->next_us = boot_us + retry_step_us(AGAIN_US, AGAIN_MAX_US, r->failures - 1);
}

/* A config that cannot be read is asked for again when the endpoint is looked at next. */
static void typed(struct live_resource_stray *r, const struct resource_fact *fact,
                  struct resource_writes *w)
{
    r->config[0] = '\0';
    if (fact->said == RESOURCE_SAID_YES) {
        (void)snprintf(w->row.instance_type, sizeof w->row.instance_type, "%s",
                       fact->instance_type);
    }
    w->news = differs(&w->row, &r->row) ? RESOURCE_MOVED : RESOURCE_AS_BEFORE;
}

void leader_plan_resource_stray_fact(struct live_resource_stray *r,
                                     const struct resource_fact *fact, usec_t now_us,
                                     int64_t boot_us, struct resource_writes *ret)
{
    *ret = (struct resource_writes){.row = r->row, .error = ERR_INIT};
    ret->row.price_musd_per_hour = MAX(r->row.price_musd_per_hour, fact->price_musd_per_hour);
    if (fact->act == RESOURCE_ACT_CONFIG) {
        typed(r, fact, ret);
        return;
    }
    bool blind = fact->said == RESOURCE_SAID_ABSENT && !r->row.stop_asked &&
                 now_us < r->row.created_us + YOUNG_US;
    if (fact->said == RESOURCE_SAID_NOTHING || blind) {
        r->there = false; /* seen once more before the next try */
        back_off(r, boot_us);
        return;
    }
    r->failures = 0;
    r->next_us = 0;
    if (fact->act == RESOURCE_ACT_DELETE) { /* absence is told by a Describe */
        bool taken = fact->said == RESOURCE_SAID_YES;
        r->delete_taken = taken;
        r->there = false;
        if (taken && r->row.kind == RESOURCE_FILE_SYSTEM && ret->row.ended_us == 0) {
            ret->row.ended_us = now_us; /* billed until its deletion was taken */
        }
    } else if (fact->said == RESOURCE_SAID_YES) {
        see(r, fact, now_us, &ret->row);
        bool waits = r->row.stop_asked && (r->delete_taken || !r->there);
        r->next_us = boot_us + (waits ? POLL_US : r->row.stop_asked ? 0 : UNASKED_LOOK_US);
    } else {
        absent(r, now_us, ret);
    }
    if (ret->news == RESOURCE_AS_BEFORE && differs(&ret->row, &r->row)) {
        ret->news = RESOURCE_MOVED;
    }
    if (ret->error.code != ERR_NONE) {
        back_off(r, boot_us);
    }
}

void leader_apply_resource_stray_writes(struct leader_state *s, struct live_resource_stray *r,
                                        const struct resource_writes *w)
{
    if (w->news == RESOURCE_MOVED) {
        r->row = w->row;
        return;
    }
    if (w->news == RESOURCE_OVER) {
        struct project_row *all = leader_state_project(s, 0);
        all->spent_musd += budget_state_spent_by(w->end.entries, w->end.entries_n);
        s->decide = true;
    }
    *r = s->resource_strays[--s->resource_strays_n];
}

void leader_resource_stray_not_written(struct live_resource_stray *r, int64_t boot_us)
{
    r->there = false;
    back_off(r, boot_us);
}
