/* Input of a forecast, read from the database in one snapshot: every live campaign (they share the
 * slots), its waiting parts (of large stages by classes of size), live attempts, durations of
 * finished ones, quotas and prices. */
#pragma once
#include "core/forecast/forecast.h"
#include "submit.h"

struct forecast_facts;
/* Creates a second: the rate that the leader sends at; one that has not said it is taken to have
 * this process's, and SageMaker's default of one when that is not known, either. */
bool forecast_creates_per_s(struct api_req *r, double *ret, struct err *err) MUST_CHECK;
/* Load everything in a read transaction of its own. campaign_id: the target; 0: none yet (call
 * forecast_facts_add_plan). why_task_id: the part whose start is asked for; 0: none. The caller
 * owns *ret. ERR_NOT_FOUND: no such campaign. An ended campaign sets *ret_ended instead. */
bool forecast_facts_load(struct api_req *r, int64_t campaign_id, int64_t why_task_id,
                         struct forecast_facts **ret, bool *ret_ended, struct err *err) MUST_CHECK;
/* The same for a campaign of which people may retry parts: one that has ended is the target, too,
 * with its ended stages. *ret_live: it has not ended. */
bool forecast_facts_load_retry(struct api_req *r, int64_t campaign_id, struct forecast_facts **ret,
                               bool *ret_live, struct err *err) MUST_CHECK;
/* n parts of this size of a stage of the target wait again. Nothing for another stage. */
void forecast_facts_add_parts(struct forecast_facts *a, int64_t stage_id, int64_t n, int64_t size);
/* Add the campaign of a dry run and make it the target. `s` must live as long as `a`. */
void forecast_facts_add_plan(struct forecast_facts *a, const struct submit *s);
/* Input for forecast_run, owned by a. Callers may set runs. */
struct forecast_input *forecast_facts_input(struct forecast_facts *a);
/* Read what_if from the request's query. ERR_INVALID with faults, also for an instance type without
 * a known quota or price. */
bool forecast_facts_what_if(struct api_req *r, const struct forecast_facts *a, struct what_if *ret,
                            struct err *err) MUST_CHECK;
/* Other running campaigns that the forecast knows nothing of: those of the lowest priority when
 * there are too many, and those whose file this droverd cannot read. */
int64_t forecast_facts_left_out(const struct forecast_facts *a);
/* Instance type of slots[i]. */
const char *forecast_facts_type(const struct forecast_facts *a, int slots_i);
/* Index of the target's stage of this name; NULL name: the first with parts left, else the first.
 * -1: not found. */
int forecast_facts_stage(const struct forecast_facts *a, const char *name);
void forecast_facts_free(struct forecast_facts *a); /* NULL ignored */
void forecast_facts_freep(struct forecast_facts **a);
#define AUTO_FORECAST_FACTS CLEANUP(forecast_facts_freep)
