/* Cost of a campaign; see cost.h. */
#include "cost.h"
#include "names.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_cost(struct store *s, int64_t campaign_id, struct buf *ret_total, struct buf *ret_stages,
                struct err *err)
{
    AUTO_PARAMS struct params total = PARAMS_INIT;
    param_i64(&total, campaign_id);
    AUTO_PARAMS struct params stages = PARAMS_INIT;
    param_i64(&stages, campaign_id);
    return store_text(s, QUERY(API_COST_TOTAL), &total, "campaign", ret_total, err) &&
           store_text(s, QUERY(API_COST_BY_STAGE), &stages, "campaign", ret_stages, err);
}

bool apidb_cost_by_cause(struct store *s, int64_t campaign_id, struct buf *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    PARAM_NAMES(&p, names_cause);
    return store_text(s, QUERY(API_COST_BY_CAUSE), &p, "campaign", ret, err);
}

bool apidb_cost_phases(struct store *s, int64_t campaign_id, struct apidb_phases **ret,
                       size_t *ret_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, campaign_id);
    if (!store_exec(s, QUERY(API_COST_PHASES), &p, &r, err)) {
        return false;
    }
    *ret_n = (size_t)row_count(r);
    *ret = xcalloc(*ret_n + 1, sizeof **ret);
    for (int i = 0; i < row_count(r); i++) {
        struct apidb_phases *row = &(*ret)[i];
        row_text_into(r, i, 0, row->stage, sizeof row->stage);
        row->attempts = row_i64(r, i, 1);
        row->measured = row_i64(r, i, 2);
        row->keeps = row_bool(r, i, 3);
        row->one_type = row_bool(r, i, 4);
        row->job_s = row_i64(r, i, 5);
        row->job_musd = row_i64(r, i, 6);
        row->warm_s = row_i64(r, i, 7);
        row->warm_musd = row_i64(r, i, 8);
        row->hosts = row_bool(r, i, 9);
        row->stores = row_bool(r, i, 10);
        row->spent_s = row_i64(r, i, 11);
        row->spent_musd = row_i64(r, i, 12);
        for (int k = 0; k < PHASE_FIGURES_N; k++) {
            row->figures[k] = row_i64(r, i, 13 + k);
        }
    }
    return true;
}
