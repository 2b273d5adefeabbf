/* A campaign file before it is written: parsed, its inputs listed, its worst case computed.
 * Everything is checked before anything is written. */
#pragma once
#include "api/server/request.h"
#include "core/spec/spec.h"
#include "store/api/quotas.h"

struct submit_stage {
    struct bridge_listing listing; /* FAN_OUT_S3 */
    bool unfinished; /* its listing took longer than it is waited for; none of it is kept */
    int64_t parts;   /* -1: not known yet (FAN_OUT_API, or unfinished, but of a dry run so far);
                        0 of an endpoint */
    struct apidb_rate rate[SPEC_LADDER_MAX];
    musd_t worst_musd;     /* of one part on the first rung; -1: price unknown */
    musd_t worst_all_musd; /* of all parts; -1: not known */
};
struct submit {
    bool dry_run; /* set by the caller: a plan of stages that are not carried out yet is shown */
    struct arena arena;
    struct spec *spec;
    struct submit_stage stages[SPEC_STAGES_MAX];
    int64_t list_until_us; /* monotonic: listings are waited for until then */
    int64_t parts;
    musd_t worst_all_musd; /* -1: not known */
};
/* Parse, list, price. Call submit_done in any case. ERR_INVALID with r->faults; ERR_BUDGET for a
 * part whose worst case no cap admits. */
bool submit_prepare(struct api_req *r, struct submit *s, struct err *err) MUST_CHECK;
/* Insert all rows of the campaign inside the caller's transaction. */
bool submit_write(struct api_req *r, struct submit *s, int64_t *ret_id, struct err *err) MUST_CHECK;
/* The plan as JSON: what would be inserted, what it may cost and when it would end. */
bool submit_plan(struct api_req *r, const struct submit *s, struct buf *out,
                 struct err *err) MUST_CHECK;
void submit_done(struct submit *s); /* cleanup function */
