/* Metric series of training runs, for handlers. The work of each call is bounded, whatever a series
 * holds. ERR_NOT_FOUND: no such row. Other errors: those of query.h. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

#define APIDB_METRIC_CHART_MAX 2000

/* Append a JSON array of n series behind *after, of a stage or (0) of all; *after is then the last
 * one, *ret_more whether others follow. */
bool apidb_metric_series(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t n,
                         int64_t *after, bool *ret_more, struct buf *ret_json,
                         struct err *err) MUST_CHECK;
struct apidb_metric_attempt {
    int64_t id, n;
    bool collects; /* its log is still read */
    bool defined;  /* its stage defines metrics */
    char note[320];
};
/* Attempt n of a part; 0: the newest. */
bool apidb_metric_attempt(struct store *s, int64_t task_id, int64_t n,
                          struct apidb_metric_attempt *ret, struct err *err) MUST_CHECK;
/* Append a JSON array of the series of an attempt, each put together into at most `most` points.
 * name NULL: all of them. */
bool apidb_metric_charts(struct store *s, int64_t attempt_id, const char *name, int64_t most,
                         struct buf *ret_json, struct err *err) MUST_CHECK;
/* Append a JSON array of n points behind *after of one series. */
bool apidb_metric_points(struct store *s, int64_t attempt_id, const char *name, int64_t n,
                         int64_t *after, bool *ret_more, struct buf *ret_json,
                         struct err *err) MUST_CHECK;
