/* When a stage of kind endpoint deploys, what it asks for, and what has come of it. A stage has one
 * try at a time: the next one begins only when the one before is proven absent. Pure. */
#pragma once
#include "core/lowering/endpoint_request.h"
#include "endpoint_life.h"

/* What the tries of every stage have come to, kept in live_stage: for campaign_life.h. */
void leader_endpoints_mark(struct leader_state *s);

/* True: the stage is to deploy now, by its try *ret_n. */
bool leader_endpoint_due(const struct leader_state *s, const struct live_campaign *lc,
                         const struct live_stage *ls, usec_t now_us, int *ret_n);
/* The price of an hour of hosting by the operator's file: of "hosting:<type>", else that of the
 * type. -1: none is known. */
musd_t leader_hosting_price(const struct leader_state *s, const char *instance_type);

struct endpoint_intent_facts {
    int64_t endpoint_id;
    int n;
    const char *job_prefix, *region;
    const char *model_data; /* s3:// place of the model of a stage; NULL: the file names its own */
    usec_t now_us;
};
/* No job of the training stage that it serves has ended well: as it has ended, none ever will. */
void leader_endpoint_no_model(struct live_stage *ls);

/* The row and the exact bytes of the three requests. WAIT_NONE: to be written; else why not. False:
 * no request can be made of the stage. */
bool leader_plan_endpoint_intent(const struct leader_state *s, const struct live_campaign *lc,
                                 const struct live_stage *ls, const struct endpoint_intent_facts *f,
                                 struct endpoint_row *ret, struct endpoint_requests *ret_requests,
                                 enum wait_reason *ret_why, struct err *err) MUST_CHECK;
