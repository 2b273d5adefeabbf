/* Cost and instance-seconds of a campaign, as JSON. */
#pragma once
#include "common/buf.h"
#include "core/model.h"
#include "store/pg/connection.h"

/* Append the total (an object) and the stages (an array), both from counters. */
bool apidb_cost(struct store *s, int64_t campaign_id, struct buf *ret_total, struct buf *ret_stages,
                struct err *err) MUST_CHECK;
/* Append an object: the causes, and what of the bill is of no job. Reads all attempts of the
 * campaign, as apidb_cost_phases does. */
bool apidb_cost_by_cause(struct store *s, int64_t campaign_id, struct buf *ret,
                         struct err *err) MUST_CHECK;

struct apidb_phases { /* of the settled attempts of a stage, and of its endpoints or file systems */
    char stage[64];
    int64_t attempts, measured; /* measured: with phases */
    bool keeps;                 /* it has warm pools, or cannot have any */
    bool one_type;              /* it lists one instance type */
    int64_t job_s, warm_s;
    musd_t job_musd, warm_musd;
    bool hosts, stores; /* it is of kind endpoint, or lustre */
    int64_t spent_s;    /* what the ledger has of the stage, job and warm included */
    musd_t spent_musd;
    int64_t figures[PHASE_FIGURES_N]; /* sums of what core/money/cost_phase.h stores */
};
/* One row for each stage, in order; the caller frees *ret. */
bool apidb_cost_phases(struct store *s, int64_t campaign_id, struct apidb_phases **ret,
                       size_t *ret_n, struct err *err) MUST_CHECK;
