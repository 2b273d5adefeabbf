/* See lease.h. */
#include "lease.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_lease(struct store *s, struct apidb_lease *ret, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(API_LEASE), NULL, &r, err)) {
        return false;
    }
    if (row_count(r) != 1) {
        return err_set(err, ERR_DATABASE, "the lease table is empty: run droverd migrate");
    }
    *ret = (struct apidb_lease){.length_us = row_i64(r, 0, 1), .age_us = row_i64(r, 0, 2)};
    row_text_into(r, 0, 0, ret->holder, sizeof ret->holder);
    return true;
}
