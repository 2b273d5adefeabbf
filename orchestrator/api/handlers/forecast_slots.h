/* Quotas, slots in use and prices of every instance type that is known, for a forecast. */
#pragma once
#include "core/forecast/forecast.h"
#include "store/pg/connection.h"

struct forecast_slots {
    struct quota_ledger *at; /* the owner calls free */
    int n;
    struct quota_ledger_account account;
};
/* Its index; -1: nothing is known of it. */
int forecast_slots_find(const struct forecast_slots *s, const char *instance_type,
                        enum market market);
/* A type of which nothing is known; those added before may move. */
struct quota_ledger *forecast_slots_add(struct forecast_slots *s, const char *instance_type,
                                        enum market market);
/* The account's quotas over all types, without what is in use. */
bool forecast_slots_account(struct store *db, struct quota_ledger_account *ret,
                            struct err *err) MUST_CHECK;
bool forecast_slots_load(struct forecast_slots *s, struct store *db, struct err *err) MUST_CHECK;
