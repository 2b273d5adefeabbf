/* A forecast as JSON, the same words in every answer that has one. */
#pragma once
#include "forecast_input.h"

/* Members of an open object: known, reason, end, ends_at, cost, fits_budget, binding, runs. */
void forecast_out(struct json_out *w, const struct forecast_facts *a, const struct forecast *f);
/* Array "stages" of the target. */
void forecast_out_stages(struct json_out *w, struct forecast_facts *a, const struct forecast *f);
/* Array "advice": what more quota or a higher limit would bring. Nothing on an error. */
void forecast_out_advice(struct json_out *w, struct forecast_facts *a, const struct forecast *f);
/* "Needs 5 finished parts" and the like into the request's arena; NULL when it is known. */
const char *forecast_reason(struct arena *arena, const struct forecast *f);
/* A span in seconds; null when it never comes (USEC_NEVER). */
void forecast_out_seconds(struct json_out *w, const char *key, int64_t us);
/* Object `key` {"p10_seconds", "p50_seconds", "p90_seconds"}. */
void forecast_out_times(struct json_out *w, const char *key, const struct forecast_band *b);
/* Object "what_if": the same of the changed input. ERR_INVALID with faults. */
bool forecast_out_what_if(struct api_req *r, struct json_out *w, struct forecast_facts *a,
                          const char *text, struct err *err) MUST_CHECK;
