/* Quotas, use by others and prices, as read from AWS. */
#include "quotas.h"
#include "pg_names.h"
#include "queries.h"
#include "store/pg/connection_private.h"
#include "store/pg/tx.h"

bool store_quota_put(struct store *s, const char *instance_type, enum market market, bool warm,
                     int64_t limit, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, instance_type);
    param_text(&p, quota_market_name(market, warm));
    param_i64(&p, limit);
    return store_run(s, QUERY(QUOTA_PUT), &p, NULL, err);
}

bool store_create_rate_put(struct store *s, int64_t per_s_u, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, per_s_u);
    return store_run(s, QUERY(CREATE_RATE_PUT), &p, NULL, err);
}

bool store_price_put(struct store *s, const char *instance_type, musd_t musd_per_hour,
                     const char *source, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, instance_type);
    param_i64(&p, musd_per_hour);
    param_text(&p, source);
    return store_run(s, QUERY(PRICE_PUT), &p, NULL, err);
}

bool store_price_list_put(struct store *s, const char *prices_json, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_json(&p, prices_json);
    return store_run(s, QUERY(PRICE_LIST_PUT), &p, NULL, err);
}

bool store_price_list_use(struct store *s, int64_t paid_ppm, const char *file,
                          const char *named_json, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, paid_ppm);
    param_text(&p, file);
    param_json(&p, named_json);
    return store_run(s, QUERY(PRICE_LIST_USE), &p, NULL, err);
}

bool store_price_list_age(struct store *s, int64_t *ret_us, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(PRICE_LIST_AGE), NULL, &r, err)) {
        return false;
    }
    *ret_us = row_i64(r, 0, 0);
    return true;
}
