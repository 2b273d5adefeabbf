/* See endpoint_intent.h. */
#include "endpoint_intent.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/budget_state.h"
#include "core/leader/endpoint_intent.h"
#include "core/leader/resource_pace.h"
#include "endpoint_life.h"
#include "endpoint_model.h"
#include "lease.h"
#include "parking.h"
#include "store/leader/campaigns.h"
#include "store/leader/endpoints.h"
#include "wall.h"
#include <stdio.h>

struct intend_arg {
    struct live_campaign *campaign;
    struct live_stage *stage;
    int n;
    const char *model_data;
    struct endpoint_row row;
    struct endpoint_requests *requests;
    enum wait_reason why;
    bool made;          /* the requests */
    struct err refused; /* why not */
};

static bool write_reason(struct controller *c, void *arg, struct err *err)
{
    const struct intend_arg *a = arg;
    return a->stage->reason == a->why ||
           store_stage_wait_reason(c->store, a->stage->row.id, a->why, err);
}

static bool write_intent(struct controller *c, void *arg, struct err *err)
{
    struct intend_arg *a = arg;
    char refused[12] = "";
    struct endpoint_intent_facts f = {.n = a->n,
                                      .job_prefix = c->cfg.job_prefix,
                                      .region = aws_client_region(c->aws),
                                      .model_data = a->model_data,
                                      .now_us = leader_now(c)};
    a->refused = (struct err)ERR_INIT;
    if (!store_endpoint_id(c->store, &f.endpoint_id, err)) {
        return false;
    }
    a->made = leader_plan_endpoint_intent(&c->state, a->campaign, a->stage, &f, &a->row,
                                          a->requests, &a->why, &a->refused);
    if (!a->made) {
        return resource_pace_never(&a->refused) || /* its stage says it */
               store_alert(c->store, a->campaign->row.id, a->refused.message, err);
    }
    const struct endpoint_texts texts = {.model = buf_str(&a->requests->model),
                                         .config = buf_str(&a->requests->config),
                                         .endpoint = buf_str(&a->requests->endpoint)};
    if (a->why == WAIT_NONE &&
        !store_endpoint_intend(c->store, &a->row, leader_endpoint_until(&a->row), &texts, refused,
                               err)) {
        return false;
    }
    a->made = budget_state_takes(a->stage, refused, a->row.reserved_musd, &a->why);
    return write_reason(c, a, err);
}

/* It waits for an answer about its model, perhaps for long: that is told. */
static void wait_for_model(struct controller *c, struct intend_arg *a)
{
    a->why = WAIT_MODEL;
    if (a->stage->reason != a->why && c->leading && leader_tx(c, write_reason, a)) {
        a->stage->reason = a->why;
    }
}

/* Nothing was written but why. */
static void tell_waits(struct live_stage *ls, const struct intend_arg *a)
{
    if (a->refused.code != ERR_NONE) {
        resource_pace_not_built(ls, &a->refused, clock_boot_us());
        if (log_allow("request_not_built")) {
            log_event(LOG_ERROR, "request_not_built", LF_I("stage", ls->row.id),
                      LF_ERR(&a->refused));
        }
    } else if (ls->reason != a->why) {
        log_event(LOG_INFO, "endpoint_waits", LF_I("stage", ls->row.id),
                  LF_S("why", wait_reason_name(a->why)));
        ls->reason = a->why;
    }
}

static void intend(struct controller *c, struct live_campaign *lc, struct live_stage *ls, int n)
{
    CLEANUP(endpoint_requests_done)
    struct endpoint_requests requests;
    struct intend_arg a = {.campaign = lc, .stage = ls, .n = n, .requests = &requests};
    endpoint_requests_init(&requests);
    if (!endpoint_model_known(c, lc, ls, &a.model_data)) {
        wait_for_model(c, &a);
        return;
    }
    resource_pace_tried(ls, clock_boot_us());
    if (!parking_tx(c, PARKING_CAMPAIGN(lc->row.id), write_intent, &a)) {
        return;
    }
    if (!a.made) {
        tell_waits(ls, &a);
        c->state.look_at_db |= ls->endpoint_unmade; /* its stage fails */
        return;
    }
    ls->reason = WAIT_NONE;
    log_event(LOG_INFO, "endpoint_intended", LF_S("endpoint", a.row.name.s));
    endpoint_attach_io(c, leader_apply_endpoint_intent(&c->state, &a.row));
}

static void intend_all(struct controller *c)
{
    for (size_t i = 0; i < c->state.campaigns_n; i++) {
        struct live_campaign *lc = c->state.campaigns[i];
        for (int k = 0; k < lc->stages_n && c->leading; k++) {
            int n;
            struct live_stage *ls = &lc->stages[k];
            if (leader_endpoint_due(&c->state, lc, ls, leader_now(c), &n) &&
                resource_pace_due(ls, clock_boot_us()) &&
                parking_due(c, PARKING_CAMPAIGN(lc->row.id))) {
                intend(c, lc, ls, n);
            }
        }
    }
}

bool endpoint_intents_tick(struct controller *c)
{
    intend_all(c);
    endpoint_models_forget(c);
    leader_endpoints_forget(&c->state);
    leader_endpoints_mark(&c->state);
    return c->leading;
}
