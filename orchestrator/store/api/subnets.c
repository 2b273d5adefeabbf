/* See subnets.h. */
#include "subnets.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_subnets(struct store *s, struct buf *ret, struct err *err)
{
    return store_text(s, QUERY(API_SUBNETS), NULL, "row", ret, err);
}
