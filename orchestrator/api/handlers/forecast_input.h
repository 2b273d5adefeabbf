/* What a forecast needs, read from the database at one instant: every live campaign (they share the
 * slots), its waiting parts, live attempts, what finished ones took, quotas and prices. */
#pragma once
#include "core/forecast/forecast.h"
#include "submit.h"

struct forecast_facts;
/* campaign_id: the one asked about; 0: none yet (forecast_facts_add_plan follows). Runs a read
 * transaction of its own. ERR_NOT_FOUND: no such campaign; *ret_ended instead when it has ended. */
bool forecast_facts_load(struct store *db, int64_t campaign_id, struct forecast_facts **ret,
                         bool *ret_ended, struct err *err) MUST_CHECK;
/* The campaign of a dry run joins the live ones and becomes the one asked about. `s` must live as
 * long as `a`. */
void forecast_facts_add_plan(struct forecast_facts *a, const struct submit *s);
/* To be handed to forecast_run; belongs to a. Callers may set runs and why_task_id. */
struct forecast_input *forecast_facts_input(struct forecast_facts *a);
/* Read what_if out of the request's query. ERR_INVALID with faults; a type nothing is known of is
 * one. */
bool forecast_facts_what_if(struct api_req *r, const struct forecast_facts *a, struct what_if *ret,
                            struct err *err) MUST_CHECK;
/* Name of slots[i]. */
const char *forecast_facts_type(const struct forecast_facts *a, int slots_i);
/* The stage of the target by name; NULL name: the first with parts left, else the first. -1 none.
 */
int forecast_facts_stage(const struct forecast_facts *a, const char *name);
void forecast_facts_free(struct forecast_facts *a); /* NULL ignored */
void forecast_facts_freep(struct forecast_facts **a);
#define AUTO_FORECAST_FACTS CLEANUP(forecast_facts_freep)
