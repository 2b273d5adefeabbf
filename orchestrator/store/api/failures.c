/* Failed parts by cause; see failures.h. */
#include "failures.h"
#include "names.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_failures(struct store *s, int64_t campaign_id, int64_t stage_id, struct buf *ret_json,
                    int64_t *ret_parts, int64_t *ret_final, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, stage_id);
    PARAM_NAMES(&p, names_cause);
    PARAM_NAMES(&p, names_remedy);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_FAILURES), &p, &res, err)) {
        return false;
    }
    buf_add_cstr(ret_json, row_text(res, 0, 0));
    *ret_parts = row_i64(res, 0, 1);
    *ret_final = row_i64(res, 0, 2);
    return true;
}
