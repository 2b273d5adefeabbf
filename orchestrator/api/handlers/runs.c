/* See runs.h. */
#include "runs.h"
#include "store/api/campaigns.h"
#include <math.h>

bool run_spec(struct api_req *r, int64_t campaign_id, json_t **ret, struct err *err)
{
    AUTO_BUF struct buf json = BUF_INIT(4 * API_BODY_MAX);
    AUTO_BUF struct buf text = BUF_INIT(2 * API_BODY_MAX);
    return apidb_campaign_spec(r->db, campaign_id, &json, &text, err) &&
           json_parse(buf_str(&json), json.n, ret, err);
}

const json_t *run_stage(const json_t *spec, const char *name)
{
    size_t i;
    const json_t *stage;
    json_array_foreach(json_object_get(spec, "stages"), i, stage)
    {
        const char *has = json_string_value(json_object_get(stage, "name"));
        if (has != NULL && strcmp(has, name) == 0) {
            return stage;
        }
    }
    return NULL;
}

struct stage_settings *run_settings(struct api_req *r, const json_t *stage,
                                    const struct apidb_run *run)
{
    struct stage_settings *ret = arena_alloc(&r->arena, sizeof *ret);
    AUTO_JSON json_t *ran = json_copy((json_t *)(uintptr_t)stage);
    (void)json_object_set_new(ran, "instance_type", json_string(run->instance_type));
    (void)json_object_set_new(ran, "instance_count", json_integer(run->instances));
    (void)json_object_set_new(ran, "volume_gb", json_integer(run->volume_gb));
    stage_settings_read(ran, &r->arena, ret);
    for (int i = 0; i < ret->n; i++) { /* texts of `ran` go with it */
        ret->at[i].key = arena_strndup(&r->arena, ret->at[i].key, strlen(ret->at[i].key));
        ret->at[i].value = arena_strndup(&r->arena, ret->at[i].value, strlen(ret->at[i].value));
    }
    return ret;
}

size_t run_warm_n(const struct apidb_point *p, size_t n, int64_t warm_up)
{
    size_t i = 0;
    if (warm_up == RUN_WARM_UP_AUTO) {
        return n / 10;
    }
    while (i < n && p[i].step <= warm_up) {
        i++;
    }
    return i;
}

bool run_metric(struct api_req *r, const struct apidb_run *run, const char *name, int64_t warm_up,
                struct metric_sample *ret, struct err *err)
{
    struct apidb_series series[APIDB_RUN_SERIES_MAX];
    AUTO_FREE struct apidb_point *points = NULL;
    size_t n = 0;
    int series_n;
    *ret = (struct metric_sample){0};
    if (!apidb_run_series(r->db, run->attempt_id, series, &series_n, err)) {
        return false;
    }
    for (int i = 0; i < series_n; i++) {
        if (strcmp(series[i].name, name) == 0 &&
            !apidb_run_values(r->db, &series[i], &points, &n, err)) {
            return false;
        }
    }
    size_t from = run_warm_n(points, n, warm_up);
    AUTO_FREE double *values = xcalloc(n + 1, sizeof *values);
    for (size_t i = from; i < n; i++) {
        values[i - from] = points[i].value;
    }
    sample_of(values, n - from, ret);
    return true;
}

bool run_warm_up_read(const struct api_req *r, int64_t *ret, struct err *err)
{
    return req_query_i64(r, "warm_up", 0, INT64_MAX, RUN_WARM_UP_AUTO, ret, err);
}

void run_sample_out(struct json_out *w, const char *key, const struct metric_sample *s)
{
    if (s->n == 0) {
        json_out_null(w, key);
        return;
    }
    json_out_object(w, key);
    json_out_i64(w, "values", s->n);
    json_out_double(w, "mean", s->mean);
    json_out_double(w, "stddev", sqrt(s->variance));
    json_out_double(w, "min", s->min);
    json_out_double(w, "p25", s->p25);
    json_out_double(w, "median", s->median);
    json_out_double(w, "p75", s->p75);
    json_out_double(w, "max", s->max);
    json_out_end_object(w);
}
