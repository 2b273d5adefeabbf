/* What is parked; see parked.h. */
#include "parked.h"
#include "core/model.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_parked(struct store *s, int64_t campaign_id, int64_t n, struct buf *ret_rows,
                  struct err *err)
{
    const char *kinds[PARKED_KIND_COUNT];
    const char *remedies[PARKED_KIND_COUNT];
    for (int k = 0; k < PARKED_KIND_COUNT; k++) {
        kinds[k] = parked_kind_name((enum parked_kind)k);
        remedies[k] = parked_kind_remedy((enum parked_kind)k);
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, n);
    param_text_array(&p, kinds, ARRAY_LEN(kinds));
    param_text_array(&p, remedies, ARRAY_LEN(remedies));
    return store_text(s, QUERY(API_PARKED), &p, "row", ret_rows, err);
}

bool apidb_unpark(struct store *s, int64_t campaign_id, int64_t *ret_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    return store_run(s, QUERY(API_UNPARK), &p, ret_n, err);
}
