/* See filesystem_intent.h. */
#include "filesystem_intent.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/budget_state.h"
#include "core/leader/filesystem_intent.h"
#include "core/leader/filesystem_time.h"
#include "core/leader/resource_pace.h"
#include "filesystem_life.h"
#include "lease.h"
#include "parking.h"
#include "store/leader/campaigns.h"
#include "store/leader/filesystems.h"
#include "wall.h"
#include <stdio.h>

struct filesystem_intend_arg {
    struct live_campaign *campaign;
    struct live_stage *stage;
    int n;
    struct filesystem_row row;
    struct buf *request;
    enum wait_reason why;
    bool exact;         /* the price is of its throughput */
    bool made;          /* the request */
    struct err refused; /* why not */
};

static bool write_reason(struct controller *c, const struct filesystem_intend_arg *a,
                         struct err *err)
{
    return a->stage->reason == a->why ||
           store_stage_wait_reason(c->store, a->stage->row.id, a->why, err);
}

static bool write_intent(struct controller *c, void *arg, struct err *err)
{
    struct filesystem_intend_arg *a = arg;
    char refused[12] = "";
    struct filesystem_intent_facts f = {
        .n = a->n, .job_prefix = c->cfg.job_prefix, .now_us = leader_now(c)};
    a->refused = (struct err)ERR_INIT;
    buf_reset(a->request);
    if (!store_filesystem_id(c->store, &f.filesystem_id, err)) {
        return false;
    }
    a->made = leader_plan_filesystem_intent(&c->state, a->campaign, a->stage, &f, &a->row,
                                            a->request, &a->why, &a->exact, &a->refused);
    if (!a->made) {
        return resource_pace_never(&a->refused) || /* its stage says it */
               store_alert(c->store, a->campaign->row.id, a->refused.message, err);
    }
    if (a->why == WAIT_NONE &&
        !store_filesystem_intend(c->store, &a->row, leader_filesystem_until(&a->row),
                                 buf_str(a->request), refused, err)) {
        return false;
    }
    a->made = budget_state_takes(a->stage, refused, a->row.reserved_musd, &a->why);
    return write_reason(c, a, err);
}

/* Nothing was written but why. */
static void tell_waits(struct live_stage *ls, const struct filesystem_intend_arg *a)
{
    if (a->refused.code != ERR_NONE) {
        resource_pace_not_built(ls, &a->refused, clock_boot_us());
        if (log_allow("request_not_built")) {
            log_event(LOG_ERROR, "request_not_built", LF_I("stage", ls->row.id),
                      LF_ERR(&a->refused));
        }
    } else if (ls->reason != a->why) {
        log_event(LOG_INFO, "filesystem_waits", LF_I("stage", ls->row.id),
                  LF_S("why", wait_reason_name(a->why)));
        ls->reason = a->why;
    }
}

static void intend(struct controller *c, struct live_campaign *lc, struct live_stage *ls, int n)
{
    AUTO_BUF struct buf request = BUF_INIT(FILESYSTEM_REQUEST_BYTES_MAX);
    struct filesystem_intend_arg a = {.campaign = lc, .stage = ls, .n = n, .request = &request};
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
    log_event(LOG_INFO, "filesystem_intended", LF_S("filesystem", a.row.token.s),
              LF_S("priced_by", a.exact ? "its throughput" : "the dearest of its deployment"));
    filesystem_attach_io(c, leader_apply_filesystem_intent(&c->state, &a.row));
}

bool filesystem_intents_tick(struct controller *c)
{
    for (size_t i = 0; i < c->state.campaigns_n; i++) {
        struct live_campaign *lc = c->state.campaigns[i];
        for (int k = 0; k < lc->stages_n && c->leading; k++) {
            int n;
            struct live_stage *ls = &lc->stages[k];
            if (leader_filesystem_due(&c->state, lc, ls, leader_now(c), &n) &&
                resource_pace_due(ls, clock_boot_us()) &&
                parking_due(c, PARKING_CAMPAIGN(lc->row.id))) {
                intend(c, lc, ls, n);
            }
        }
    }
    leader_filesystems_forget(&c->state);
    leader_filesystems_mark(&c->state, leader_aws_now(c));
    return c->leading;
}
