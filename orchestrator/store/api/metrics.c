/* See metrics.h. */
#include "metrics.h"
#include "common/json.h"
#include "queries.h"
#include "store/pg/query.h"

#define ROWS_A_POINT 8 /* read at most for each point of a chart */

bool apidb_metric_series(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t n,
                         int64_t *after, bool *ret_more, struct buf *ret_json, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, campaign_id);
    param_i64(&p, stage_id);
    param_i64(&p, *after);
    param_i64(&p, n + 1);
    if (!store_exec(s, QUERY(API_METRIC_SERIES), &p, &r, err)) {
        return false;
    }
    int rows = MIN(row_count(r), (int)n);
    buf_add_cstr(ret_json, "[");
    for (int i = 0; i < rows; i++) {
        buf_addf(ret_json, "%s%s", i > 0 ? "," : "", row_text(r, i, 1));
        *after = row_i64(r, i, 0);
    }
    buf_add_cstr(ret_json, "]");
    *ret_more = row_count(r) > n;
    return true;
}

bool apidb_metric_attempt(struct store *s, int64_t task_id, int64_t n,
                          struct apidb_metric_attempt *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, task_id);
    param_i32(&p, (int32_t)n);
    if (!store_exec(s, QUERY(API_METRIC_ATTEMPT), &p, &r, err)) {
        return false;
    }
    if (row_count(r) == 0) {
        return err_set(err, ERR_NOT_FOUND, n == 0 ? "it was not started yet" : "no such attempt");
    }
    ret->id = row_i64(r, 0, 0);
    ret->n = row_i64(r, 0, 1);
    ret->collects = row_bool(r, 0, 2);
    row_text_into(r, 0, 3, ret->note, sizeof ret->note);
    ret->defined = row_bool(r, 0, 4);
    return true;
}

/* The widest row that is not wider than a point of the chart has to be. */
static int64_t width_for(int64_t points, int64_t most)
{
    int64_t width = 1;
    while (width < 32768 && points / width > most * ROWS_A_POINT) {
        width *= 8;
    }
    return width;
}

static bool chart(struct store *s, int64_t series_id, int64_t points, int64_t first_us,
                  int64_t most, struct json_out *w, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_BUF struct buf rows = BUF_INIT(1024 * 1024);
    int64_t width = width_for(points, most);
    int64_t n = (points + width - 1) / width;
    param_i64(&p, series_id);
    param_i64(&p, MAX((n + most - 1) / most, 1));
    param_i64(&p, first_us);
    if (width > 1) {
        param_i64(&p, width);
    }
    if (width > 1 ? !store_text(s, QUERY(API_METRIC_CHART_BUCKETS), &p, "row", &rows, err)
                  : !store_text(s, QUERY(API_METRIC_CHART_POINTS), &p, "row", &rows, err)) {
        return false;
    }
    json_out_raw(w, "chart", buf_str(&rows));
    return true;
}

static void out_f64(struct json_out *w, const char *key, const PGresult *r, int i, int col)
{
    if (row_null(r, i, col)) {
        json_out_null(w, key);
    } else {
        json_out_double(w, key, row_f64(r, i, col));
    }
}

static bool one_series(struct store *s, const PGresult *r, int i, int64_t most, struct json_out *w,
                       struct err *err)
{
    int64_t points = row_i64(r, i, 2), first_us = row_i64(r, i, 3);
    json_out_object(w, NULL);
    json_out_str(w, "name", row_text(r, i, 1));
    json_out_i64(w, "points", points);
    json_out_time(w, "first_at", first_us);
    json_out_time(w, "last_at", row_i64(r, i, 4));
    if (row_null(r, i, 5)) {
        json_out_null(w, "last_step");
    } else {
        json_out_i64(w, "last_step", row_i64(r, i, 5));
    }
    out_f64(w, "last", r, i, 6);
    out_f64(w, "min", r, i, 7);
    out_f64(w, "max", r, i, 8);
    out_f64(w, "mean", r, i, 9);
    out_f64(w, "final", r, i, 10);
    if (!chart(s, row_i64(r, i, 0), points, first_us, most, w, err)) {
        return false;
    }
    json_out_end_object(w);
    return true;
}

static bool of_attempt(struct store *s, int64_t attempt_id, const char *name, PGresult **ret,
                       struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, attempt_id);
    param_text(&p, name);
    if (!store_exec(s, QUERY(API_METRIC_OF_ATTEMPT), &p, ret, err)) {
        return false;
    }
    return name == NULL || row_count(*ret) > 0 ||
           err_set(err, ERR_NOT_FOUND, "it has no metric '%.120s' (yet)", name);
}

bool apidb_metric_charts(struct store *s, int64_t attempt_id, const char *name, int64_t most,
                         struct buf *ret_json, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    struct json_out w;
    ASSERT(most >= 1 && most <= APIDB_METRIC_CHART_MAX);
    if (!of_attempt(s, attempt_id, name, &r, err)) {
        return false;
    }
    json_out_init(&w, ret_json);
    json_out_array(&w, NULL);
    for (int i = 0; i < row_count(r); i++) {
        if (!one_series(s, r, i, most, &w, err)) {
            return false;
        }
    }
    json_out_end_array(&w);
    return true;
}

bool apidb_metric_points(struct store *s, int64_t attempt_id, const char *name, int64_t n,
                         int64_t *after, bool *ret_more, struct buf *ret_json, struct err *err)
{
    AUTO_RESULT PGresult *series = NULL, *r = NULL;
    AUTO_PARAMS struct params p = PARAMS_INIT;
    if (!of_attempt(s, attempt_id, name, &series, err)) {
        return false;
    }
    param_i64(&p, row_i64(series, 0, 0));
    param_i64(&p, *after);
    param_i64(&p, n);
    if (!store_exec(s, QUERY(API_METRIC_POINTS), &p, &r, err)) {
        return false;
    }
    buf_add_cstr(ret_json, row_text(r, 0, 0));
    *ret_more = row_i64(r, 0, 1) == n && row_i64(r, 0, 2) + 1 < row_i64(series, 0, 2);
    *after = row_i64(r, 0, 2);
    return true;
}
