/* See forecast_slots.h. */
#include "forecast_slots.h"
#include "common/cleanup.h"
#include "store/rows/view.h"
#include <stdio.h>

int forecast_slots_find(const struct forecast_slots *s, const char *instance_type,
                        enum market market)
{
    for (int i = 0; i < s->n; i++) {
        if (s->at[i].market == market && strcmp(s->at[i].instance_type, instance_type) == 0) {
            return i;
        }
    }
    return -1;
}

struct quota_ledger *forecast_slots_add(struct forecast_slots *s, const char *instance_type,
                                        enum market market)
{
    s->at = xrealloc(s->at, (size_t)(s->n + 1) * sizeof *s->at);
    struct quota_ledger *l = &s->at[s->n++];
    *l = (struct quota_ledger){.market = market,
                               .quota = -1,
                               .warm_quota = -1,
                               .operator_limit = -1,
                               .refused_limit = -1,
                               .price_musd_per_hour = -1};
    (void)snprintf(l->instance_type, sizeof l->instance_type, "%s", instance_type);
    return l;
}

bool forecast_slots_account(struct store *db, struct quota_ledger_account *ret, struct err *err)
{
    int64_t quota[ACCOUNT_QUOTA_COUNT];
    if (!view_account_quotas(db, quota, err)) {
        return false;
    }
    *ret = (struct quota_ledger_account){.per_job = quota[ACCOUNT_PER_JOB],
                                         .longest_run_s = quota[ACCOUNT_RUN_S],
                                         .volume_gb = quota[ACCOUNT_VOLUME_GB]};
    ret->total[MARKET_ON_DEMAND].limit = quota[ACCOUNT_INSTANCES];
    ret->total[MARKET_SPOT].limit = quota[ACCOUNT_SPOT_INSTANCES];
    return true;
}

bool forecast_slots_load(struct forecast_slots *s, struct store *db, struct err *err)
{
    AUTO_FREE struct slots_row *rows = NULL;
    size_t n = 0;
    struct quota_ledger_account *all = &s->account;
    if (!view_slots(db, &rows, &n, err) || !forecast_slots_account(db, all, err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        struct quota_ledger *l = forecast_slots_add(s, rows[i].instance_type, rows[i].market);
        l->held = rows[i].held;
        l->warm_idle = rows[i].warm_idle;
        l->foreign = rows[i].foreign;
        l->foreign_us = rows[i].foreign_us;
        l->quota = rows[i].limit;
        l->warm_quota = rows[i].warm_limit;
        l->operator_limit = rows[i].operator_limit;
        l->refused_limit = rows[i].refused_limit;
        l->price_musd_per_hour = rows[i].price_musd_per_hour;
        all->total[rows[i].market].held += rows[i].held + rows[i].warm_idle;
    }
    return true;
}
