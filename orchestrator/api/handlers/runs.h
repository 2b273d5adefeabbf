/* What scaling tables and comparisons know of a training run: its settings, and the values of its
 * metrics after the warm-up. */
#pragma once
#include "api/server/request.h"
#include "core/metrics/sample.h"
#include "core/spec/stage_settings.h"
#include "store/api/runs.h"

/* The normalised spec of a campaign; the caller decrefs. */
bool run_spec(struct api_req *r, int64_t campaign_id, json_t **ret, struct err *err) MUST_CHECK;
/* The stage of that name in a spec; NULL: none. */
const json_t *run_stage(const json_t *spec, const char *name);
/* The settings of a run: those of its stage, with the instances and the volume that its attempt
 * had. In the request's arena. */
struct stage_settings *run_settings(struct api_req *r, const json_t *stage,
                                    const struct apidb_run *run);

#define RUN_WARM_UP_AUTO (-1) /* the first tenth of what it printed */
/* How many of the first points belong to the warm-up: those up to step `warm_up`. */
size_t run_warm_n(const struct apidb_point *p, size_t n, int64_t warm_up);
/* Figures of metric `name` of a run after its warm-up; n 0 when it printed none. */
bool run_metric(struct api_req *r, const struct apidb_run *run, const char *name, int64_t warm_up,
                struct metric_sample *ret, struct err *err) MUST_CHECK;
#define RUN_CURVE_MAX 500 /* points */
/* Metric `name` of a run as an array of at most `most` points, its warm-up included: step, seconds
 * and cost of its instances since its program began, value (a mean, when points were put together).
 * null: it is not known when its program began. */
bool run_curve_out(struct api_req *r, struct json_out *w, const char *key,
                   const struct apidb_run *run, const char *name, int64_t most,
                   struct err *err) MUST_CHECK;
/* ?warm_up=STEPS */
int64_t run_warm_up(const struct api_req *r);
void run_sample_out(struct json_out *w, const char *key, const struct metric_sample *s);
