/* See runs.h. */
#include "runs.h"
#include "queries.h"
#include "store/pg/query.h"

static void read_run(const PGresult *r, int i, struct apidb_run *ret)
{
    *ret = (struct apidb_run){.tasks = row_i64(r, i, 1), .seq = row_i64(r, i, 2)};
    row_text_into(r, i, 0, ret->stage, sizeof ret->stage);
    ret->attempt_id = row_i64(r, i, 3);
    ret->n = row_i64(r, i, 4);
    ret->instances = row_i64(r, i, 5);
    row_text_into(r, i, 6, ret->instance_type, sizeof ret->instance_type);
    ret->volume_gb = row_i64(r, i, 7);
    ret->price_musd_per_hour = row_i64(r, i, 8);
    ret->cost_musd = row_i64(r, i, 9);
    ret->billable_s = row_i64(r, i, 10);
    ret->good = row_bool(r, i, 15);
    usec_t started = row_i64(r, i, 11), ended = row_i64(r, i, 12);
    int64_t before_ms = row_i64(r, i, 13), training_ms = row_i64(r, i, 14);
    if (started > 0 && training_ms > 0) { /* without the download of image and data */
        ret->began_us = started + before_ms * USEC_PER_MSEC;
        ret->seconds = (double)training_ms / 1000;
    } else if (started > 0) {
        ret->began_us = started;
        ret->seconds = ended > started ? (double)(ended - started) / USEC_PER_SEC : 0;
    }
}

bool apidb_runs(struct store *s, int64_t campaign_id, struct apidb_run ret[static APIDB_RUNS_MAX],
                int *ret_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, campaign_id);
    if (!store_exec(s, QUERY(API_RUNS), &p, &r, err)) {
        return false;
    }
    *ret_n = MIN(row_count(r), APIDB_RUNS_MAX);
    for (int i = 0; i < *ret_n; i++) {
        read_run(r, i, &ret[i]);
    }
    return true;
}

bool apidb_run(struct store *s, int64_t task_id, int64_t n, struct apidb_run *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, task_id);
    param_i32(&p, (int32_t)n);
    if (!store_exec(s, QUERY(API_RUN), &p, &r, err)) {
        return false;
    }
    if (row_count(r) == 0) {
        return err_set(err, ERR_NOT_FOUND, n == 0 ? "it was not started yet" : "no such attempt");
    }
    read_run(r, 0, ret);
    return true;
}

bool apidb_run_series(struct store *s, int64_t attempt_id,
                      struct apidb_series ret[static APIDB_RUN_SERIES_MAX], int *ret_n,
                      struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, attempt_id);
    param_text(&p, NULL);
    if (!store_exec(s, QUERY(API_METRIC_OF_ATTEMPT), &p, &r, err)) {
        return false;
    }
    *ret_n = 0;
    for (int i = 0; i < row_count(r) && *ret_n < APIDB_RUN_SERIES_MAX; i++) {
        if (row_i64(r, i, 2) > 0 && strcmp(row_text(r, i, 1), "step") != 0) {
            struct apidb_series *one = &ret[(*ret_n)++];
            *one = (struct apidb_series){.id = row_i64(r, i, 0), .points = row_i64(r, i, 2)};
            row_text_into(r, i, 1, one->name, sizeof one->name);
            one->last = row_null(r, i, 6) ? 0 : row_f64(r, i, 6);
        }
    }
    return true;
}

/* The widest row that is not wider than a value has to be. */
static int64_t width_for(int64_t points)
{
    int64_t width = 1;
    while (width < 32768 && points / width > APIDB_RUN_VALUES_MAX * 8) {
        width *= 8;
    }
    return width;
}

bool apidb_run_values(struct store *s, const struct apidb_series *series, struct apidb_point **ret,
                      size_t *ret_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    int64_t width = width_for(series->points);
    int64_t rows = (series->points + width - 1) / width;
    param_i64(&p, series->id);
    param_i64(&p, MAX((rows + APIDB_RUN_VALUES_MAX - 1) / APIDB_RUN_VALUES_MAX, 1));
    if (width > 1) {
        param_i64(&p, width);
    }
    if (width > 1 ? !store_exec(s, QUERY(API_RUN_BUCKETS), &p, &r, err)
                  : !store_exec(s, QUERY(API_RUN_POINTS), &p, &r, err)) {
        return false;
    }
    *ret_n = (size_t)row_count(r);
    *ret = xcalloc(*ret_n + 1, sizeof **ret);
    for (int i = 0; i < row_count(r); i++) {
        (*ret)[i] = (struct apidb_point){row_i64(r, i, 0), row_i64(r, i, 1), row_f64(r, i, 2)};
    }
    return true;
}
