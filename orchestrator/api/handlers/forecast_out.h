/* A forecast as JSON, with the same names in every answer. */
#pragma once
#include "forecast_input.h"

#define FORECAST_ADVICE_SHOWN 4 /* increases of a quota or limit that an answer lists */

/* Write members of an open object: known, reason, end, ends_at, cost, fits_budget, binding,
 * runs. */
void forecast_out(struct json_out *w, const struct forecast_facts *a, const struct forecast *f);
/* Write array "stages" of the target. */
void forecast_out_stages(struct json_out *w, struct forecast_facts *a, const struct forecast *f);
/* Write array "advice": the effect of more quota or a higher limit. Writes nothing on an error. */
void forecast_out_advice(struct json_out *w, struct forecast_facts *a, const struct forecast *f);
/* Why there is no forecast, like "needs 5 finished parts ...", in the request's arena; NULL when
 * there is one. */
const char *forecast_reason(struct arena *arena, const struct forecast *f);
/* Write a span in seconds; null when it never comes (USEC_NEVER). */
void forecast_out_seconds(struct json_out *w, const char *key, int64_t us);
/* Write object `key` {"p10_seconds", "p50_seconds", "p90_seconds"}. */
void forecast_out_times(struct json_out *w, const char *key, const struct forecast_band *b);
/* Write object "what_if": the forecast of the changed input. ERR_INVALID with faults. */
bool forecast_out_what_if(struct api_req *r, struct json_out *w, struct forecast_facts *a,
                          const char *text, struct err *err) MUST_CHECK;
