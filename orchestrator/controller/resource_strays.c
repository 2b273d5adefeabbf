/* See resource_strays.h. */
#include "resource_strays.h"
#include "aws/fsx.h"
#include "aws/hosting.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/resource_answer.h"
#include "core/leader/resource_sweep.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "store/leader/resource_strays.h"
#include "wall.h"
#include <stdio.h>

struct resource_io { /* the one call that is under way, and its answer */
    struct hosting_call *hosting;
    struct fsx_call *fsx;
    char name[64];
    bool answered; /* what follows waits for the tick */
    struct resource_fact fact;
    char status[32], config[64], type[33];
};

static const enum hosting_kind hosting_kinds[] = {
    [RESOURCE_ENDPOINT] = HOSTING_ENDPOINT,
    [RESOURCE_ENDPOINT_CONFIG] = HOSTING_CONFIG,
    [RESOURCE_MODEL] = HOSTING_MODEL,
};

bool resource_strays_read(struct controller *c, struct err *err)
{
    AUTO_FREE struct resource_stray_row *rows = NULL;
    size_t n = 0;
    if (!view_resource_strays(c->store, &rows, &n, err)) {
        return false;
    }
    if (leader_take_resource_strays(&c->state, rows, n)) {
        log_event(LOG_INFO, "stray_stop_asked", LF_I("strays", n));
    }
    return true;
}

void resource_strays_cancel(struct controller *c)
{
    struct resource_io *io = c->resource_io;
    if (io != NULL) {
        hosting_cancel(io->hosting);
        aws_fsx_cancel(io->fsx);
        free(io);
        c->resource_io = NULL;
    }
}

static void note(struct controller *c, enum resource_word said, const struct aws_failure *f)
{
    struct resource_io *io = c->resource_io;
    io->hosting = NULL;
    io->fsx = NULL;
    io->answered = true;
    io->fact.said = said;
    c->state.act = true;
    metric_add(METRIC_AWS_ERRORS, f != NULL);
}

static void note_status(struct resource_io *io, const char *status, usec_t since_us)
{
    (void)snprintf(io->status, sizeof io->status, "%s", status);
    io->fact.status = io->status;
    io->fact.since_us = since_us;
}

static void on_describe(void *ctx, const struct endpoint_description *d, bool not_found,
                        const struct aws_failure *f)
{
    struct controller *c = ctx;
    note(c, resource_answer_stray(not_found, false, f), f);
    if (d != NULL) {
        struct resource_io *io = c->resource_io;
        note_status(io, d->status, MAX(d->modified, d->created));
        (void)snprintf(io->config, sizeof io->config, "%s", d->config);
        (void)snprintf(io->type, sizeof io->type, "%s", d->instance_type);
        io->fact.config = io->config;
        io->fact.instance_type = io->type;
    }
}

static void on_delete(void *ctx, bool not_found, bool busy, const struct aws_failure *f)
{
    note(ctx, resource_answer_stray(not_found, busy, f), f);
}

static void on_fsx(void *ctx, enum fsx_answer answer, const union fsx_row *rows, size_t n,
                   const struct aws_failure *f)
{
    struct controller *c = ctx;
    note(c, resource_answer_stray_filesystem(answer), f);
    if (answer == FSX_DONE && n == 1) {
        note_status(c->resource_io, rows[0].filesystem.lifecycle, 0);
    }
}

static bool write_news(struct controller *c, void *arg, struct err *err)
{
    const struct resource_writes *w = arg;
    switch (w->news) {
    case RESOURCE_AS_BEFORE:
        break;
    case RESOURCE_MOVED:
        return store_resource_stray_seen(c->store, &w->row, err);
    case RESOURCE_ADOPTED:
        return store_resource_stray_drop(c->store, w->row.name, err);
    case RESOURCE_OVER:
        return store_resource_stray_end(c->store, &w->end, err);
    }
    return true;
}

static void carry(struct controller *c, struct live_resource_stray *r, struct resource_writes *w)
{
    if (w->error.code != ERR_NONE && log_allow("stray_not_booked")) {
        log_event(LOG_ERROR, "stray_not_booked", LF_S("name", r->row.name), LF_ERR(&w->error));
    }
    if (w->news == RESOURCE_AS_BEFORE) {
        return;
    }
    if (!leader_tx(c, write_news, w)) {
        leader_resource_stray_not_written(r, clock_boot_us());
        return;
    }
    if (w->news == RESOURCE_OVER) {
        metric_add(METRIC_COST_MUSD, w->end.cost_musd);
        log_event(LOG_WARN, "stray_ended", LF_S("name", r->row.name),
                  LF_I("cost_micro_usd", w->end.cost_musd));
    } else if (w->news == RESOURCE_ADOPTED) {
        log_event(LOG_INFO, "stray_adopted", LF_S("name", r->row.name));
    }
    leader_apply_resource_stray_writes(&c->state, r, w);
}

static void take_answer(struct controller *c)
{
    struct resource_io *io = c->resource_io;
    struct resource_writes w;
    if (io == NULL || !io->answered) {
        return;
    }
    io->answered = false;
    struct live_resource_stray *r = leader_resource_stray(&c->state, io->name);
    if (r != NULL) {
        io->fact.price_musd_per_hour = resource_sweep_price_told(&c->state, &r->row, &io->fact);
        leader_plan_resource_stray_fact(r, &io->fact, leader_aws_now(c), clock_boot_us(), &w);
        carry(c, r, &w);
    }
}

static void call(struct controller *c, const struct live_resource_stray *r, enum resource_act act)
{
    struct resource_io *io = c->resource_io;
    bool delete = act == RESOURCE_ACT_DELETE;
    (void)snprintf(io->name, sizeof io->name, "%s", r->row.name);
    io->type[0] = '\0';
    io->fact = (struct resource_fact){.act = act, .status = "", .instance_type = io->type};
    metric_add(METRIC_AWS_REQUESTS, 1);
    if (delete) {
        log_event(LOG_WARN, "stray_deleted", LF_S("name", io->name),
                  LF_S("kind", resource_kind_name(r->row.kind)));
    }
    if (r->row.kind == RESOURCE_FILE_SYSTEM) {
        io->fsx = (delete ? aws_fsx_end : aws_fsx_describe)(c->aws, lease_gate(c), FSX_FILESYSTEM,
                                                            io->name, on_fsx, c);
        return;
    }
    if (act == RESOURCE_ACT_CONFIG) {
        io->hosting =
            hosting_describe(c->aws, lease_gate(c), HOSTING_CONFIG, r->config, on_describe, c);
        return;
    }
    enum hosting_kind kind = hosting_kinds[r->row.kind];
    io->hosting = delete ? hosting_delete(c->aws, lease_gate(c), kind, io->name, on_delete, c)
                         : hosting_describe(c->aws, lease_gate(c), kind, io->name, on_describe, c);
}

static bool calling(const struct resource_io *io)
{
    return io->hosting != NULL || io->fsx != NULL || io->answered;
}

static void act(struct controller *c, const char *name, int64_t *wake_us)
{
    struct live_resource_stray *r = leader_resource_stray(&c->state, name);
    enum resource_act what = leader_resource_stray_next(r, clock_boot_us(), wake_us);
    struct resource_writes w;
    if (what == RESOURCE_ACT_NONE) {
        return;
    }
    leader_plan_resource_stray_owner(&c->state, r, &w);
    if (w.news == RESOURCE_AS_BEFORE) {
        call(c, r, what);
    } else {
        carry(c, r, &w);
    }
}

void resource_strays_tick(struct controller *c, int64_t *wake_us)
{
    take_answer(c);
    if (c->state.resource_strays_n > 0 && c->resource_io == NULL) {
        c->resource_io = xcalloc(1, sizeof *c->resource_io);
    }
    for (size_t i = c->state.resource_strays_n; i-- > 0;) {
        if (!c->leading || calling(c->resource_io)) {
            return;
        }
        act(c, c->state.resource_strays[i].row.name, wake_us);
    }
}
