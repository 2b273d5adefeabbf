/* What a forecast needs, read from the database at one instant: every live campaign (they share the
 * slots), its waiting parts, live attempts, what finished ones took, quotas and prices. */
#pragma once
#include "core/forecast/forecast.h"
#include "submit.h"

struct ahead;
/* campaign_id: the one asked about; 0: none yet (ahead_add_plan follows). Runs a read transaction
 * of its own. ERR_NOT_FOUND: no such campaign; *ret_ended instead when it has ended. */
bool ahead_load(struct store *db, int64_t campaign_id, struct ahead **ret, bool *ret_ended,
                struct err *err) MUST_CHECK;
/* The campaign of a dry run joins the live ones and becomes the one asked about. `s` must live as
 * long as `a`. */
void ahead_add_plan(struct ahead *a, const struct submit *s);
/* To be handed to forecast_run; belongs to a. Callers may set runs and why_task_id. */
struct forecast_input *ahead_input(struct ahead *a);
/* Read what_if out of the request's query. ERR_INVALID with faults; a type nothing is known of is
 * one. */
bool ahead_what_if(struct api_req *r, const struct ahead *a, struct what_if *ret,
                   struct err *err) MUST_CHECK;
/* Name of slots[i]. */
const char *ahead_type(const struct ahead *a, int slots_i);
/* The stage of the target by name; NULL name: the first with parts left, else the first. -1 none.
 */
int ahead_stage(const struct ahead *a, const char *name);
void ahead_free(struct ahead *a); /* NULL ignored */
void ahead_freep(struct ahead **a);
#define AUTO_AHEAD CLEANUP(ahead_freep)
