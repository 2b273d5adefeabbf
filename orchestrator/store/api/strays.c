/* Strays; see strays.h. */
#include "strays.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_strays(struct store *s, int64_t n, struct buf *ret_rows, struct buf *ret_sum,
                  struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, n);
    return store_text(s, QUERY(API_STRAYS), &p, "row", ret_rows, err) &&
           store_text(s, QUERY(API_STRAYS_SUM), NULL, "row", ret_sum, err);
}

bool apidb_stray_stop(struct store *s, const char *name, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, name);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(API_STRAY_STOP), &p, &r, err)) {
        return false;
    }
    return row_count(r) == 1 || err_set(err, ERR_NOT_FOUND, "no stray '%.63s' is there", name);
}
