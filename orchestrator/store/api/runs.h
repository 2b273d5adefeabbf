/* Training runs and the values of their metrics, for scaling tables and comparisons. The work of
 * each call is bounded. ERR_NOT_FOUND: no such row. Other errors: those of query.h. */
#pragma once
#include "core/model.h"
#include "store/pg/connection.h"

#define APIDB_RUNS_MAX       32   /* stages of a campaign */
#define APIDB_RUN_SERIES_MAX 40   /* metrics of an attempt */
#define APIDB_RUN_VALUES_MAX 2000 /* of one series; more are put together, several in one */

struct apidb_run {
    char stage[64];
    int64_t tasks, seq;
    int64_t attempt_id, n; /* 0: none succeeded, and nothing below */
    bool good;             /* it succeeded */
    int64_t instances, volume_gb;
    char instance_type[INSTANCE_TYPE_MAX + 1];
    musd_t price_musd_per_hour; /* of one instance */
    musd_t cost_musd;
    int64_t billable_s;
    usec_t began_us; /* its program; 0 not known */
    double seconds;  /* that its program ran; 0 not known */
};
/* The stages of a campaign, each with its newest good attempt. */
bool apidb_runs(struct store *s, int64_t campaign_id, struct apidb_run ret[static APIDB_RUNS_MAX],
                int *ret_n, struct err *err) MUST_CHECK;
/* Attempt n of a part; 0: the newest good one, else the newest. */
bool apidb_run(struct store *s, int64_t task_id, int64_t n, struct apidb_run *ret,
               struct err *err) MUST_CHECK;

struct apidb_series {
    int64_t id, points;
    char name[256];
    double last;
};
/* The series of an attempt by name, without `step`. */
bool apidb_run_series(struct store *s, int64_t attempt_id,
                      struct apidb_series ret[static APIDB_RUN_SERIES_MAX], int *ret_n,
                      struct err *err) MUST_CHECK;
struct apidb_point {
    int64_t step;
    usec_t at_us;
    double value; /* the mean, when points were put together */
};
/* The caller frees *ret. */
bool apidb_run_values(struct store *s, const struct apidb_series *series, struct apidb_point **ret,
                      size_t *ret_n, struct err *err) MUST_CHECK;
