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

/* The values of metric `name` of a run; n 0 when it printed none. The caller frees *ret. */
static bool values_read(struct api_req *r, const struct apidb_run *run, const char *name,
                        struct apidb_point **ret, size_t *ret_n, struct err *err)
{
    struct apidb_series series[APIDB_RUN_SERIES_MAX];
    int n;
    *ret = NULL;
    *ret_n = 0;
    if (!apidb_run_series(r->db, run->attempt_id, series, &n, err)) {
        return false;
    }
    for (int i = 0; i < n; i++) { /* names are unique */
        if (strcmp(series[i].name, name) == 0) {
            return apidb_run_values(r->db, &series[i], ret, ret_n, err);
        }
    }
    return true;
}

bool run_metric(struct api_req *r, const struct apidb_run *run, const char *name, int64_t warm_up,
                struct metric_sample *ret, struct err *err)
{
    AUTO_FREE struct apidb_point *points = NULL;
    size_t n = 0;
    *ret = (struct metric_sample){0};
    if (!values_read(r, run, name, &points, &n, err)) {
        return false;
    }
    size_t from = run_warm_n(points, n, warm_up);
    AUTO_FREE double *values = xcalloc(n + 1, sizeof *values);
    for (size_t i = from; i < n; i++) {
        values[i - from] = points[i].value;
    }
    sample_of(values, n - from, ret);
    return true;
}

/* One point of a curve from n points of a run. */
static void curve_point_out(struct json_out *w, const struct apidb_run *run,
                            const struct apidb_point *p, size_t n)
{
    double sum = 0; /* a log's clock may be a little behind */
    double seconds = (double)MAX(p[n - 1].at_us - run->began_us, 0) / USEC_PER_SEC;
    double hourly = (double)run->price_musd_per_hour * (double)run->instances;
    for (size_t i = 0; i < n; i++) {
        sum += p[i].value / (double)n;
    }
    json_out_object(w, NULL);
    json_out_i64(w, "step", p[n - 1].step);
    json_out_double(w, "seconds", seconds);
    json_out_i64(w, "micro_usd", llround(hourly * seconds / 3600));
    json_out_double(w, "value", sum);
    json_out_end_object(w);
}

bool run_curve_out(struct api_req *r, struct json_out *w, const char *key,
                   const struct apidb_run *run, const char *name, int64_t most, struct err *err)
{
    AUTO_FREE struct apidb_point *points = NULL;
    size_t n = 0;
    ASSERT(most >= 1 && most <= RUN_CURVE_MAX);
    if (!values_read(r, run, name, &points, &n, err)) {
        return false;
    }
    if (run->began_us == 0) {
        json_out_null(w, key);
        return true;
    }
    size_t each = (n + (size_t)most - 1) / (size_t)most;
    json_out_array(w, key);
    for (size_t i = 0; i < n; i += each) {
        curve_point_out(w, run, &points[i], MIN(each, n - i));
    }
    json_out_end_array(w);
    return true;
}

int64_t run_warm_up(const struct api_req *r)
{
    int64_t steps = req_number(r, "warm_up");
    return steps < 0 ? RUN_WARM_UP_AUTO : steps;
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
