/* Warm pools; see pools.h. */
#include "pools.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_pools(struct store *s, int64_t campaign_id, int64_t n, struct buf *ret_rows,
                 struct buf *ret_sum, struct err *err)
{
    AUTO_PARAMS struct params rows = PARAMS_INIT;
    param_i64(&rows, campaign_id);
    param_i64(&rows, n);
    AUTO_PARAMS struct params sum = PARAMS_INIT;
    param_i64(&sum, campaign_id);
    return store_text(s, QUERY(API_POOLS), &rows, "row", ret_rows, err) &&
           store_text(s, QUERY(API_POOLS_SUM), &sum, "row", ret_sum, err);
}
