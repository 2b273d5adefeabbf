/* See billable.h. */
#include "billable.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_billable(struct store *s, int64_t n, struct buf *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, n);
    return store_text(s, QUERY(API_BILLABLE), &p, "row", ret, err);
}
