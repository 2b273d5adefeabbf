/* Quotas, prices and use by instance type; see quotas.h. */
#include "quotas.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_quotas(struct store *s, struct buf *ret_json, struct err *err)
{
    return store_text(s, QUERY(API_QUOTAS), NULL, "row", ret_json, err);
}

bool apidb_prices(struct store *s, struct buf *ret_json, struct err *err)
{
    return store_text(s, QUERY(API_PRICES), NULL, "row", ret_json, err);
}

bool apidb_quota_request_put(struct store *s, const char *id, const char *instance_type,
                             const char *market, int64_t value, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, id);
    param_text(&p, instance_type);
    param_text(&p, market);
    param_i64(&p, value);
    return store_run(s, QUERY(API_QUOTA_REQUEST_PUT), &p, NULL, err);
}

bool apidb_rate(struct store *s, const char *instance_type, struct apidb_rate *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, instance_type);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_RATE), &p, &res, err)) {
        return false;
    }
    *ret = (struct apidb_rate){.price_musd_per_hour = row_i64_or(res, 0, 0, -1),
                               .limit = row_i64_or(res, 0, 1, -1),
                               .held = row_i64(res, 0, 2),
                               .foreign = row_i64(res, 0, 3)};
    size_t n = strlen(instance_type);
    memcpy(ret->instance_type, instance_type, MIN(n, INSTANCE_TYPE_MAX));
    return true;
}

bool apidb_slot_limit(struct store *s, const char *instance_type, int64_t n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, instance_type);
    if (n < 0) {
        return store_run(s, QUERY(API_SLOT_LIMIT_DROP), &p, NULL, err);
    }
    param_i64(&p, n);
    return store_run(s, QUERY(API_SLOT_LIMIT_PUT), &p, NULL, err);
}
