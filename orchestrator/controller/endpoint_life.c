/* See endpoint_life.h. */
#include "endpoint_life.h"
#include "aws/hosting.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/endpoint_extend.h"
#include "core/leader/endpoint_life.h"
#include "core/leader/resource_answer.h"
#include "core/leader/resource_pace.h"
#include "core/leader/rows_read.h"
#include "endpoint_payloads.h"
#include "endpoint_use.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "store/leader/campaigns.h"
#include "store/leader/endpoints.h"
#include "wall.h"
#include <stdio.h>

struct endpoint_io { /* the one call about an endpoint that is under way, and its answer */
    struct controller *c;
    int64_t endpoint_id;
    struct hosting_call *call;
    struct payload_read *read;
    struct endpoint_use *use; /* the question whether anybody asks it */
    struct payloads payloads; /* of its smoke test, once they are read */
    bool answered;            /* what follows waits for the tick */
    struct endpoint_fact fact;
    struct endpoint_description seen;
    struct aws_failure failure;
    char text[400];
};

static bool calling(const struct endpoint_io *io)
{
    return io->call != NULL || io->read != NULL || io->answered;
}

void endpoint_attach_io(struct controller *c, struct live_endpoint *e)
{
    e->io = xcalloc(1, sizeof *e->io);
    e->io->c = c;
    e->io->endpoint_id = e->row.id;
    e->io->use = endpoint_use_new(c);
}

static void detach_io(struct live_endpoint *e)
{
    hosting_cancel(e->io->call);
    payload_cancel(e->io->read);
    endpoint_use_free(e->io->use);
    payloads_done(&e->io->payloads);
    free(e->io);
    e->io = NULL;
}

void endpoints_cancel(struct controller *c)
{
    for (size_t i = 0; i < c->state.endpoints_n; i++) {
        if (c->state.endpoints[i]->io != NULL) {
            detach_io(c->state.endpoints[i]);
        }
    }
}

bool endpoints_read(struct controller *c, struct err *err)
{
    AUTO_FREE struct endpoint_row *rows = NULL;
    size_t n = 0;
    if (!view_endpoints(c->store, &rows, &n, err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        rows_endpoint_times(&rows[i], leader_aws_now(c));
    }
    int64_t lease_end_us = lease_others_end_us(c);
    if (leader_take_endpoints(&c->state, rows, n, lease_end_us)) {
        log_event(LOG_INFO, "endpoint_wish", LF_I("endpoints", n));
    }
    for (size_t i = 0; i < c->state.endpoints_n; i++) {
        struct live_endpoint *e = c->state.endpoints[i];
        if (e->io == NULL && !endpoint_state_terminal(e->row.state)) {
            endpoint_attach_io(c, e);
        }
    }
    return true;
}

/* The answer to what is under way, and its failure or NULL; the caller fills in the rest. */
static struct endpoint_fact *note(struct endpoint_io *io, enum endpoint_word said,
                                  const struct aws_failure *f)
{
    io->call = NULL;
    io->answered = true;
    io->c->state.act = true;
    metric_add(METRIC_AWS_ERRORS, f != NULL);
    io->fact.said = said;
    if (f != NULL) {
        io->failure = *f;
        io->fact.failure = &io->failure;
    }
    return &io->fact;
}

static void on_create(void *ctx, const char *arn UNUSED, bool exists UNUSED,
                      const struct aws_failure *f)
{
    (void)note(ctx, resource_answer_endpoint(false, false, f), f);
}

static void on_describe(void *ctx, const struct endpoint_description *d, bool not_found,
                        const struct aws_failure *f)
{
    struct endpoint_io *io = ctx;
    struct endpoint_fact *fact = note(io, resource_answer_endpoint(not_found, false, f), f);
    if (d != NULL) {
        io->seen = *d;
        fact->seen = &io->seen;
    }
}

static void on_delete(void *ctx, bool not_found, bool busy, const struct aws_failure *f)
{
    (void)note(ctx, resource_answer_endpoint(not_found, busy, f), f);
}

static void on_invoke(void *ctx, const struct endpoint_answer *a, const struct aws_failure *f)
{
    struct endpoint_io *io = ctx;
    struct endpoint_fact *fact = note(io, resource_answer_endpoint(false, false, f), f);
    if (a != NULL) {
        (void)snprintf(io->text, sizeof io->text, "%.*s", (int)MIN(a->body.n, sizeof io->text - 1),
                       a->body.p);
        fact->status = a->status;
        fact->took_us = a->took_us;
        fact->text = io->text;
    }
}

static void on_payloads(void *ctx, struct payloads *p, const char *fault, bool unread)
{
    static const struct aws_failure silent = {.outcome = AWS_UNKNOWN};
    struct endpoint_io *io = ctx;
    io->read = NULL;
    struct endpoint_fact *fact =
        note(io, resource_answer_payloads(fault != NULL, unread), unread ? &silent : NULL);
    if (fault != NULL) {
        fact->text = fault;
        return;
    }
    payloads_done(&io->payloads);
    io->payloads = *p;
    fact->payloads_n = p->n;
    p->n = 0;
}

struct write {
    const struct endpoint_writes *w;
    enum endpoint_state from;
};

static bool tell(struct controller *c, const struct endpoint_row *r, struct err *err)
{
    char text[sizeof r->reason + sizeof r->name.s + 16];
    (void)snprintf(text, sizeof text, "endpoint %s: %s", r->name.s, r->reason);
    return store_alert(c->store, r->campaign_id, text, err);
}

static bool write_row(struct controller *c, void *arg, struct err *err)
{
    const struct write *a = arg;
    if (a->w->tell && !tell(c, &a->w->row, err)) {
        return false;
    }
    if (a->w->news == ENDPOINT_OVER) {
        return store_endpoint_end(c->store, &a->w->row, &a->w->end, err);
    }
    return store_endpoint_move(c->store, &a->w->row, a->from, leader_endpoint_until(&a->w->row),
                               err);
}

static void log_move(const struct endpoint_writes *w, enum endpoint_state from)
{
    const struct endpoint_row *r = &w->row;
    if (w->news == ENDPOINT_OVER) {
        metric_add(METRIC_COST_MUSD, w->end.cost_musd);
        log_event(LOG_INFO, "endpoint_ended", LF_S("endpoint", r->name.s),
                  LF_S("to", endpoint_state_name(r->state)), LF_S("reason", r->reason),
                  LF_I("cost_micro_usd", w->end.cost_musd));
    } else if (r->state != from) {
        log_event(LOG_INFO, "endpoint_moved", LF_S("endpoint", r->name.s),
                  LF_S("to", endpoint_state_name(r->state)), LF_S("reason", r->reason));
    }
}

static void carry(struct controller *c, struct live_endpoint *e, const struct endpoint_writes *w)
{
    struct write a = {.w = w, .from = e->row.state};
    if (w->news == ENDPOINT_AS_BEFORE) {
        return;
    }
    if (leader_tx(c, write_row, &a)) {
        log_move(w, a.from);
        leader_apply_endpoint(&c->state, e, w);
    } else if (c->leading) {
        leader_endpoint_not_written(e, clock_boot_us());
    }
}

static void take_answer(struct controller *c, struct live_endpoint *e)
{
    struct endpoint_writes w;
    e->io->answered = false;
    leader_plan_endpoint_fact(e, &e->io->fact, leader_aws_now(c), clock_boot_us(), &w);
    if (w.error.code != ERR_NONE && log_allow("endpoint_not_booked")) {
        log_event(LOG_ERROR, "endpoint_not_booked", LF_S("endpoint", e->row.name.s),
                  LF_ERR(&w.error));
    }
    carry(c, e, &w);
    if (endpoint_state_terminal(e->row.state)) {
        detach_io(e);
    }
}

void endpoints_record(struct controller *c)
{
    for (size_t i = 0; i < c->state.endpoints_n && c->leading; i++) {
        struct live_endpoint *e = c->state.endpoints[i];
        struct endpoint_writes w;
        if (e->io != NULL && endpoint_use_take(e->io->use, e, &w)) {
            carry(c, e, &w);
        }
        if (c->leading && e->io != NULL && e->io->answered) {
            take_answer(c, e);
        }
    }
}

/* Its part of the campaign file; NULL: the campaign is not in memory, or cannot be read. */
static const struct spec_endpoint *spec_of(struct controller *c, const struct live_endpoint *e)
{
    struct live_campaign *lc = leader_state_campaign(&c->state, e->row.campaign_id);
    const struct live_stage *ls = lc != NULL ? leader_state_stage(lc, e->row.stage_id) : NULL;
    return ls != NULL && ls->spec != NULL ? ls->spec->endpoint : NULL;
}

struct request_arg {
    int64_t id;
    int thing;
    struct buf *bytes;
};

static bool read_request(struct controller *c, void *arg, struct err *err)
{
    const struct request_arg *a = arg;
    return store_endpoint_request(c->store, a->id, a->thing, a->bytes, err);
}

static void create(struct controller *c, struct live_endpoint *e, enum hosting_kind kind)
{
    AUTO_BUF struct buf bytes = BUF_INIT(REQUEST_BYTES_MAX);
    struct request_arg a = {.id = e->row.id, .thing = (int)kind, .bytes = &bytes};
    if (!leader_tx(c, read_request, &a)) {
        leader_endpoint_not_written(e, clock_boot_us());
        return;
    }
    log_event(LOG_INFO, "endpoint_create", LF_S("endpoint", e->row.name.s), LF_I("thing", kind));
    e->io->call = hosting_create(c->aws, lease_gate(c), kind, buf_str(&bytes), on_create, e->io);
}

static void read_payloads(struct controller *c, struct live_endpoint *e,
                          const struct spec_endpoint *sp)
{
    struct payloads p = {.n = 0};
    if (sp->payloads_from != NULL) {
        e->io->read = payload_read_start(c->aws, sp->payloads_from, on_payloads, e->io);
        return;
    }
    payloads_of_file(sp, &p);
    on_payloads(e->io, &p, NULL, false);
}

/* The test of a new endpoint, which the campaign file describes: read its payloads, or ask one. */
static void call_test(struct controller *c, struct live_endpoint *e, bool invoke)
{
    struct endpoint_io *io = e->io;
    const struct spec_endpoint *sp = spec_of(c, e);
    if (sp == NULL || (invoke && e->asked >= io->payloads.n)) {
        leader_endpoint_not_written(e, clock_boot_us()); /* later, and from the beginning */
        return;
    }
    metric_add(METRIC_AWS_REQUESTS, 1);
    io->fact.p95_ms = sp->p95_ms;
    if (!invoke) {
        read_payloads(c, e, sp);
        return;
    }
    io->call = endpoint_invoke(c->aws, lease_gate(c), e->row.name.s, sp->content_type,
                               str_of(io->payloads.text[e->asked]), on_invoke, io);
}

static void call(struct controller *c, struct live_endpoint *e, struct endpoint_call what)
{
    struct endpoint_io *io = e->io;
    io->fact = (struct endpoint_fact){
        .call = what, .window_us = c->cfg.signature_window_us, .asked_us = clock_boot_us()};
    if (what.act == ENDPOINT_ACT_PAYLOADS || what.act == ENDPOINT_ACT_INVOKE) {
        call_test(c, e, what.act == ENDPOINT_ACT_INVOKE);
        return;
    }
    metric_add(METRIC_AWS_REQUESTS, 1);
    switch (what.act) {
    case ENDPOINT_ACT_NONE:
    case ENDPOINT_ACT_PAYLOADS:
    case ENDPOINT_ACT_INVOKE:
        break;
    case ENDPOINT_ACT_CREATE:
        create(c, e, what.kind);
        break;
    case ENDPOINT_ACT_DESCRIBE:
        io->call =
            hosting_describe(c->aws, lease_gate(c), what.kind, e->row.name.s, on_describe, io);
        break;
    case ENDPOINT_ACT_DELETE:
        io->call = hosting_delete(c->aws, lease_gate(c), what.kind, e->row.name.s, on_delete, io);
        break;
    }
}

struct extension {
    struct endpoint_row row;
    char refused[12];
};

static bool write_extension(struct controller *c, void *arg, struct err *err)
{
    struct extension *x = arg;
    return store_endpoint_extend(c->store, &x->row, leader_endpoint_until(&x->row), x->refused,
                                 err);
}

/* A later end that people want: before its time is looked at. */
static void extend(struct controller *c, struct live_endpoint *e)
{
    struct extension x = {.refused = ""};
    if (!leader_plan_endpoint_extension(e, &x.row) || !leader_tx(c, write_extension, &x) ||
        strcmp(x.refused, "state") == 0) {
        return;
    }
    leader_apply_endpoint_extension(&c->state, e, &x.row, x.refused[0] != '\0');
    log_event(LOG_INFO, "endpoint_extended", LF_S("endpoint", e->row.name.s),
              LF_I("ttl_s", e->row.ttl_s), LF_S("refused", x.refused));
}

static void act(struct controller *c, struct live_endpoint *e, int64_t *wake_us)
{
    struct endpoint_writes w;
    int64_t poll_us = resource_pace_poll_us(c->cfg.observe_interval_us);
    if (leader_endpoint_end_due(e, clock_boot_us())) {
        extend(c, e);
    }
    if (c->leading && leader_endpoint_end_due(e, clock_boot_us())) {
        leader_plan_endpoint_end(&c->state, e, leader_aws_now(c), &w);
        carry(c, e, &w);
    }
    if (!c->leading) {
        return;
    }
    endpoint_use_ask(e->io->use, e, wake_us);
    struct endpoint_call what =
        leader_endpoint_next(&c->state, e, leader_aws_now(c), clock_boot_us(), poll_us, wake_us);
    if (what.act != ENDPOINT_ACT_NONE) {
        call(c, e, what);
    }
}

void endpoints_tick(struct controller *c, int64_t *wake_us)
{
    size_t calls = 0;
    for (size_t i = 0; i < c->state.endpoints_n; i++) {
        const struct endpoint_io *io = c->state.endpoints[i]->io;
        calls += io != NULL && calling(io);
    }
    for (size_t i = 0; i < c->state.endpoints_n && c->leading && call_pace_room(calls); i++) {
        struct live_endpoint *e = c->state.endpoints[i];
        if (e->io == NULL || calling(e->io)) {
            continue;
        }
        act(c, e, wake_us);
        calls += calling(e->io);
    }
}
