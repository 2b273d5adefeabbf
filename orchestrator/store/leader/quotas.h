/* Writes of quotas, prices and the rate of Creates, within a transaction of the leader
 * (lease.h). */
#pragma once
#include "core/model.h"
#include "core/rows.h"
#include "store/pg/connection.h"

/* Store a quota. warm: of warm pools, otherwise of on-demand jobs. */
bool store_quota_put(struct store *s, const char *instance_type, enum market market, bool warm,
                     int64_t limit, struct err *err) MUST_CHECK;
/* Store at which rate this leader sends Creates, for forecasts of those that do not lead. */
bool store_create_rate_put(struct store *s, int64_t per_s_u, struct err *err) MUST_CHECK;
bool store_price_put(struct store *s, const char *instance_type, musd_t musd_per_hour,
                     const char *source, struct err *err) MUST_CHECK;
/* Store what AWS Pricing lists: {"ml.m5.large": 115000}, micro-USD. */
bool store_price_list_put(struct store *s, const char *prices_json, struct err *err) MUST_CHECK;
/* What it lists becomes the price, paid_ppm of a million of it, of all types but those of the
 * operator's file: named_json is an array of them, NULL when the file cannot be read. */
bool store_price_list_use(struct store *s, int64_t paid_ppm, const char *file,
                          const char *named_json, struct err *err) MUST_CHECK;
/* How long ago it was read; -1: never. */
bool store_price_list_age(struct store *s, int64_t *ret_us, struct err *err) MUST_CHECK;
