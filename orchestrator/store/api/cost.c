/* Cost of a campaign; see cost.h. */
#include "cost.h"
#include "names.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_cost(struct store *s, int64_t campaign_id, struct buf *ret_total, struct buf *ret_stages,
                struct buf *ret_causes, struct err *err)
{
    AUTO_PARAMS struct params total = PARAMS_INIT;
    param_i64(&total, campaign_id);
    AUTO_PARAMS struct params stages = PARAMS_INIT;
    param_i64(&stages, campaign_id);
    AUTO_PARAMS struct params causes = PARAMS_INIT;
    param_i64(&causes, campaign_id);
    PARAM_NAMES(&causes, names_cause);
    return store_text(s, QUERY(API_COST_TOTAL), &total, "campaign", ret_total, err) &&
           store_text(s, QUERY(API_COST_BY_STAGE), &stages, "campaign", ret_stages, err) &&
           store_text(s, QUERY(API_COST_BY_CAUSE), &causes, "campaign", ret_causes, err);
}
