/* Quotas, prices and use by instance type. */
#pragma once
#include "core/model.h"
#include "store/pg/connection.h"

/* Append a JSON array of the rows. */
bool apidb_quotas(struct store *s, struct buf *ret_json, struct err *err) MUST_CHECK;
bool apidb_prices(struct store *s, struct buf *ret_json, struct err *err) MUST_CHECK;
/* A higher quota that AWS was asked for; market: on_demand, spot or warm. */
bool apidb_quota_request_put(struct store *s, const char *id, const char *instance_type,
                             const char *market, int64_t value, struct err *err) MUST_CHECK;
struct apidb_rate { /* price, quota and use of an instance type */
    char instance_type[INSTANCE_TYPE_MAX + 1];
    musd_t price_musd_per_hour; /* -1: unknown */
    int64_t limit;              /* -1: unknown */
    int64_t held, foreign;
};
/* The rate of an instance type; unknown values are -1. */
bool apidb_rate(struct store *s, const char *instance_type, struct apidb_rate *ret,
                struct err *err) MUST_CHECK;
/* Set how many instances of a type drover may use; n < 0: as many as the quota allows. */
bool apidb_slot_limit(struct store *s, const char *instance_type, int64_t n,
                      struct err *err) MUST_CHECK;
