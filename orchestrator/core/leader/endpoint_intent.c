/* See endpoint_intent.h. */
#include "endpoint_intent.h"
#include "common/retry.h"
#include "core/failure/retry_policy.h"
#include "core/money/cost.h"
#include "held_back.h"
#include "intents.h"
#include <stdio.h>

#define HOSTING_PREFIX "hosting:" /* before a type in the file of prices */

/* The newest try of a stage; NULL: none. */
static const struct live_endpoint *newest_of(const struct leader_state *s, int64_t stage_id)
{
    const struct live_endpoint *newest = NULL;
    for (size_t i = 0; i < s->endpoints_n; i++) {
        const struct live_endpoint *e = s->endpoints[i];
        if (e->row.stage_id == stage_id && (newest == NULL || e->row.n > newest->row.n)) {
            newest = e;
        }
    }
    return newest;
}

static bool is_endpoint(const struct live_stage *ls)
{
    return ls->spec != NULL && ls->spec->kind == SPEC_KIND_ENDPOINT;
}

/* Another try after this one has failed and is gone? */
static bool again(const struct live_stage *ls, const struct endpoint_row *r, usec_t *ret_from_us)
{
    const struct spec_retry *row = retry_row(ls->spec, r->cause);
    int64_t wait_us =
        retry_step_us(row->wait_from_s * USEC_PER_SEC, row->wait_to_s * USEC_PER_SEC, r->n - 1);
    *ret_from_us = r->ended_us + wait_us;
    return r->failed && r->n < ATTEMPTS_MAX && (row->times < 0 || r->n <= row->times);
}

static void mark(const struct leader_state *s, struct live_stage *ls)
{
    const struct live_endpoint *e = newest_of(s, ls->row.id);
    usec_t from_us;
    if (ls->spec != NULL && ls->spec->kind == SPEC_KIND_LUSTRE) {
        return; /* filesystem_intent.c */
    }
    ls->endpoint = ENDPOINT_NOT_YET;
    ls->endpoint_there = e != NULL && !endpoint_state_terminal(e->row.state);
    ls->endpoint_no_model = ls->endpoint_no_model && ls->row.state == STAGE_RUNNING;
    if (!is_endpoint(ls)) {
        return;
    }
    ls->endpoint_unmade = ls->endpoint_unmade && ls->row.state == STAGE_RUNNING;
    if (e != NULL && e->row.passed) {
        ls->endpoint = ENDPOINT_SERVES;
    } else if (!ls->endpoint_there && ls->endpoint_no_model) {
        ls->endpoint = ENDPOINT_GAVE_UP;
        (void)snprintf(ls->endpoint_why, sizeof ls->endpoint_why,
                       "no job of stage %.64s has ended well: there is no model to serve",
                       ls->spec->endpoint->model_stage);
    } else if (!ls->endpoint_there && ls->endpoint_unmade) {
        ls->endpoint = ENDPOINT_GAVE_UP; /* and says why: resource_pace.h */
    } else if (e != NULL && !ls->endpoint_there && !again(ls, &e->row, &from_us)) {
        ls->endpoint = ENDPOINT_GAVE_UP;
        (void)snprintf(ls->endpoint_why, sizeof ls->endpoint_why, "%.280s",
                       e->row.reason[0] != '\0' ? e->row.reason : "the endpoint was deleted");
    }
}

void leader_endpoints_mark(struct leader_state *s)
{
    for (size_t i = 0; i < s->campaigns_n; i++) {
        for (int k = 0; k < s->campaigns[i]->stages_n; k++) {
            mark(s, &s->campaigns[i]->stages[k]);
        }
    }
}

void leader_endpoint_no_model(struct live_stage *ls)
{
    ASSERT(ls->spec->endpoint->model_stage != NULL);
    ls->endpoint_no_model = true;
}

bool leader_endpoint_due(const struct leader_state *s, const struct live_campaign *lc,
                         const struct live_stage *ls, usec_t now_us, int *ret_n)
{
    if (s->tries_unread) {
        return false;
    }
    const struct live_endpoint *e = newest_of(s, ls->row.id);
    usec_t from_us = 0;
    if (!is_endpoint(ls) || ls->row.state != STAGE_RUNNING || held_back(lc) ||
        lc->set_aside != WAIT_NONE || ls->endpoint_no_model || ls->endpoint_unmade) {
        return false;
    }
    *ret_n = e != NULL ? e->row.n + 1 : 1;
    if (e == NULL) {
        return true;
    }
    return endpoint_state_terminal(e->row.state) && !e->row.passed &&
           again(ls, &e->row, &from_us) && now_us >= from_us;
}

static musd_t price_of(const struct leader_state *s, const char *name)
{
    for (size_t i = 0; i < s->slots_n; i++) {
        const struct quota_ledger *q = &s->slots[i].s;
        if (q->market == MARKET_ON_DEMAND && strcmp(q->instance_type, name) == 0) {
            return q->price_musd_per_hour;
        }
    }
    return -1;
}

musd_t leader_hosting_price(const struct leader_state *s, const char *instance_type)
{
    char name[sizeof HOSTING_PREFIX + INSTANCE_TYPE_MAX];
    (void)snprintf(name, sizeof name, HOSTING_PREFIX "%s", instance_type);
    musd_t own = price_of(s, name);
    return own >= 0 ? own : price_of(s, instance_type);
}

bool leader_plan_endpoint_intent(const struct leader_state *s, const struct live_campaign *lc,
                                 const struct live_stage *ls, const struct endpoint_intent_facts *f,
                                 struct endpoint_row *ret, struct endpoint_requests *ret_requests,
                                 enum wait_reason *ret_why, struct err *err)
{
    const struct spec_stage *sp = ls->spec;
    uint8_t id[32];
    *ret =
        (struct endpoint_row){.id = f->endpoint_id,
                              .project_id = lc->row.project_id,
                              .campaign_id = lc->row.id,
                              .stage_id = ls->row.id,
                              .n = f->n,
                              .state = ENDPOINT_INTENDED,
                              .instances = sp->instance_count,
                              .ttl_s = sp->endpoint->ttl_s,
                              .idle_s = sp->endpoint->idle_s,
                              .price_musd_per_hour = leader_hosting_price(s, sp->instance_type[0]),
                              .intended_us = f->now_us};
    *ret_why = WAIT_PRICE_UNKNOWN;
    if (ret->price_musd_per_hour < 0) {
        return true;
    }
    (void)snprintf(ret->instance_type, sizeof ret->instance_type, "%s", sp->instance_type[0]);
    const struct intent identity = {
        .campaign_id = lc->row.id, .stage_id = ls->row.id, .n = f->n}; /* of no task */
    leader_intent_identity(s, lc->row.nonce, &identity, id);
    protocol_job_name(f->job_prefix, lc->row.id, sp->name, 0, f->n, id, &ret->name);
    const struct endpoint_request_input in = {.spec = lc->spec,
                                              .stage = sp,
                                              .campaign_id = lc->row.id,
                                              .name = &ret->name,
                                              .attempt_id = f->endpoint_id,
                                              .model_data = f->model_data,
                                              .install_id = s->install_id,
                                              .region = f->region};
    *ret_why = WAIT_NONE;
    return cost_worst_case(ret->price_musd_per_hour, ret->instances, ret->ttl_s, 0,
                           &ret->reserved_musd, err) &&
           endpoint_request_make(&in, ret_requests, err);
}
