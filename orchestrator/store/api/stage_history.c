/* See stage_history.h. */
#include "stage_history.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_history(struct store *s, int64_t campaign_id, int64_t stage_id, const int16_t *causes,
                   size_t causes_n, struct apidb_history *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, stage_id);
    param_i16(&p, ATTEMPT_SUCCEEDED);
    param_i16_array(&p, causes, causes_n);
    param_i64(&p, HISTORY_MAX);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_STAGE_HISTORY), &p, &res, err)) {
        return false;
    }
    ret->n = (size_t)row_count(res);
    ASSERT(ret->n <= HISTORY_MAX);
    for (size_t i = 0; i < ret->n; i++) {
        int64_t cause = row_i64(res, (int)i, 4);
        ret->at[i] = (struct apidb_past){
            .end = (enum apidb_end)row_i64(res, (int)i, 0),
            .size = row_i64(res, (int)i, 1),
            .run_us = row_i64_or(res, (int)i, 2, -1),
            .start_us = row_i64_or(res, (int)i, 3, -1),
            .cause = cause >= 0 && cause < CAUSE_COUNT ? (enum cause)cause : CAUSE_UNKNOWN};
    }
    return true;
}

bool apidb_part_sizes(struct store *s, int64_t campaign_id, int64_t stage_id, const int32_t *seqs,
                      size_t n, struct apidb_part_size *ret, size_t *ret_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, stage_id);
    param_i32_array(&p, seqs, n);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_PART_SIZES), &p, &res, err)) {
        return false;
    }
    *ret_n = MIN((size_t)row_count(res), n);
    for (size_t i = 0; i < *ret_n; i++) {
        ret[i] = (struct apidb_part_size){row_i64(res, (int)i, 0), row_i64(res, (int)i, 1)};
    }
    return true;
}

bool apidb_others_running(struct store *s, int64_t campaign_id, int64_t most, int64_t **ret,
                          size_t *ret_n, int64_t *ret_left_out, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, most);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_OTHERS_RUNNING), &p, &res, err)) {
        return false;
    }
    size_t n = (size_t)row_count(res);
    *ret = xcalloc(n + 1, sizeof **ret);
    for (size_t i = 0; i < n; i++) {
        (*ret)[i] = row_i64(res, (int)i, 0);
    }
    *ret_n = n;
    *ret_left_out = n > 0 ? row_i64(res, 0, 1) - (int64_t)n : 0;
    return true;
}

bool apidb_create_rate(struct store *s, int64_t *ret_per_s_u, struct err *err)
{
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_CREATE_RATE), NULL, &res, err)) {
        return false;
    }
    *ret_per_s_u = row_count(res) > 0 ? row_i64(res, 0, 0) : 0;
    return true;
}

bool apidb_part_waiting(struct store *s, int64_t campaign_id, int64_t task_id,
                        struct apidb_part_waiting *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, task_id);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_PART_WAITING), &p, &res, err)) {
        return false;
    }
    *ret = (struct apidb_part_waiting){.stage_id = 0};
    if (row_count(res) > 0) {
        ret->stage_id = row_i64(res, 0, 0);
        ret->part = (struct apidb_part_size){row_i64(res, 0, 2), row_i64(res, 0, 1)};
        ret->not_before_us = row_i64(res, 0, 3);
    }
    return true;
}
