/* Who leads, for handlers. */
#pragma once
#include "store/pg/connection.h"

#define LEASE_HOLDER_N 128

struct apidb_lease {
    char holder[LEASE_HOLDER_N]; /* HOST/PID; "": nobody has led yet */
    int64_t length_us;
    int64_t age_us; /* since it was renewed, by the database's clock */
};
bool apidb_lease(struct store *s, struct apidb_lease *ret, struct err *err) MUST_CHECK;
