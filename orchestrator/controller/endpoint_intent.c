/* See endpoint_intent.h. */
#include "endpoint_intent.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/retry.h"
#include "core/leader/endpoint_intent.h"
#include "endpoint_life.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "parking.h"
#include "store/leader/endpoints.h"
#include <stdio.h>

#define AGAIN_US     (2 * USEC_PER_SEC) /* after a refusal */
#define AGAIN_MAX_US (60 * USEC_PER_SEC)
#define NOT_BUILT_US (300 * USEC_PER_SEC) /* no request can be made of the stage */

struct model_look { /* which model a training stage has made; one at a time */
    struct controller *c;
    int64_t stage_id; /* that serves it */
    struct sagemaker_call *call;
    struct job_name job;
    int failures;
    int64_t next_us;  /* boot */
    char place[1025]; /* "": not known yet */
};

void endpoint_intents_cancel(struct controller *c)
{
    if (c->model_look != NULL) {
        sagemaker_cancel(c->model_look->call);
        free(c->model_look);
        c->model_look = NULL;
    }
}

static void look_again(struct model_look *look, const char *why)
{
    log_event(LOG_WARN, "model_unknown", LF_I("stage", look->stage_id), LF_S("job", look->job.s),
              LF_S("why", why));
    look->next_us = clock_boot_us() + retry_step_us(AGAIN_US, AGAIN_MAX_US, look->failures++);
}

static void on_describe(void *ctx, const struct job_description *job, bool not_found,
                        const struct aws_failure *f)
{
    struct model_look *look = ctx;
    look->call = NULL;
    look->c->state.look_at_db = true;
    metric_add(METRIC_AWS_ERRORS, f != NULL);
    if (f != NULL || not_found || job->artifacts[0] == '\0') {
        look_again(look, f != NULL ? f->message : not_found ? "no such job" : "no artifacts");
    } else {
        (void)snprintf(look->place, sizeof look->place, "%s", job->artifacts);
    }
}

struct intend_arg {
    struct live_campaign *campaign;
    struct live_stage *stage;
    int n;
    const char *model_data;
    int64_t model_stage_id;
    struct job_name job;
    struct endpoint_row row;
    struct endpoint_requests *requests;
    enum wait_reason why;
    bool made;          /* the requests */
    struct err refused; /* why not */
};

static bool read_job(struct controller *c, void *arg, struct err *err)
{
    struct intend_arg *a = arg;
    return view_endpoint_model_job(c->store, a->model_stage_id, &a->job, err);
}

static int64_t stage_named(const struct live_campaign *lc, const char *name)
{
    for (int i = 0; i < lc->stages_n; i++) {
        if (strcmp(lc->stages[i].row.name, name) == 0) {
            return lc->stages[i].row.id;
        }
    }
    return 0;
}

/* Asks for the place of the model that the stage serves. True: it is known, or the file says it. */
static bool know_model(struct controller *c, struct intend_arg *a)
{
    const struct spec_endpoint *sp = a->stage->spec->endpoint;
    struct model_look *look = c->model_look;
    if (sp->model_stage == NULL) {
        return true;
    }
    if (look == NULL) {
        c->model_look = look = xcalloc(1, sizeof *look);
        *look = (struct model_look){.c = c, .stage_id = a->stage->row.id};
    }
    if (look->stage_id != a->stage->row.id || look->call != NULL ||
        clock_boot_us() < look->next_us) {
        return false;
    }
    if (look->place[0] != '\0') {
        a->model_data = look->place;
        return true;
    }
    a->model_stage_id = stage_named(a->campaign, sp->model_stage);
    if (!leader_tx(c, read_job, a) || a->job.s[0] == '\0') {
        look_again(look, "no job of the stage has ended well");
        return false;
    }
    look->job = a->job;
    metric_add(METRIC_AWS_REQUESTS, 1);
    look->call = sagemaker_describe(c->aws, lease_gate(c), a->job.s, on_describe, look);
    return false;
}

static bool write_reason(struct controller *c, struct intend_arg *a, struct err *err)
{
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
                                      .now_us = clock_wall_us()};
    a->refused = (struct err)ERR_INIT;
    if (!store_endpoint_id(c->store, &f.endpoint_id, err)) {
        return false;
    }
    a->made = leader_plan_endpoint_intent(&c->state, a->campaign, a->stage, &f, &a->row,
                                          a->requests, &a->why, &a->refused);
    if (!a->made) {
        return store_alert(c->store, a->campaign->row.id, a->refused.message, err);
    }
    const struct endpoint_texts texts = {.model = buf_str(&a->requests->model),
                                         .config = buf_str(&a->requests->config),
                                         .endpoint = buf_str(&a->requests->endpoint)};
    if (a->why == WAIT_NONE &&
        !store_endpoint_intend(c->store, &a->row, leader_endpoint_until(&a->row), &texts, refused,
                               err)) {
        return false;
    }
    a->made = refused[0] == '\0' && a->why == WAIT_NONE;
    a->why = strcmp(refused, "money") == 0 ? WAIT_BUDGET : a->why;
    return write_reason(c, a, err);
}

/* Nothing was written but why. */
static void tell_waits(struct live_stage *ls, const struct intend_arg *a)
{
    if (a->refused.code != ERR_NONE) {
        ls->endpoint_next_us = clock_boot_us() + NOT_BUILT_US;
        log_event(LOG_ERROR, "request_not_built", LF_I("stage", ls->row.id), LF_ERR(&a->refused));
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
    if (!know_model(c, &a) || !c->leading) {
        return;
    }
    ls->endpoint_next_us = clock_boot_us() + AGAIN_US;
    if (!parking_tx(c, PARKING_CAMPAIGN(lc->row.id), write_intent, &a)) {
        return;
    }
    if (!a.made) {
        tell_waits(ls, &a);
        return;
    }
    ls->reason = WAIT_NONE;
    log_event(LOG_INFO, "endpoint_intended", LF_S("endpoint", a.row.name.s));
    endpoint_attach_io(c, leader_apply_endpoint_intent(&c->state, &a.row));
    if (a.model_data != NULL) {
        endpoint_intents_cancel(c);
    }
}

static void intend_all(struct controller *c)
{
    for (size_t i = 0; i < c->state.campaigns_n; i++) {
        struct live_campaign *lc = c->state.campaigns[i];
        for (int k = 0; k < lc->stages_n && c->leading; k++) {
            int n;
            struct live_stage *ls = &lc->stages[k];
            if (leader_endpoint_due(&c->state, lc, ls, clock_wall_us(), &n) &&
                clock_boot_us() >= ls->endpoint_next_us &&
                parking_due(c, PARKING_CAMPAIGN(lc->row.id))) {
                intend(c, lc, ls, n);
            }
        }
    }
}

bool endpoint_intents_tick(struct controller *c)
{
    intend_all(c);
    leader_endpoints_forget(&c->state);
    leader_endpoints_mark(&c->state);
    return c->leading;
}
