/* List prices as AWS Pricing tells them. Values; the reader owns the array. Source:
 * Price List Query API reference, GetProducts. */
#pragma once
#include "common/units.h"

struct price_value {
    /* as in the operator's file: an instance type for training, "hosting:" and one for endpoints,
     * "storage:" and a deployment of FSx for Lustre, of PERSISTENT "/" and its throughput */
    char key[33];
    musd_t musd; /* an hour; of storage a GB and month */
};
struct price_reading {
    struct price_value *list; /* [n] each key once, its dearest price */
    size_t n;
    size_t products;   /* that were listed */
    size_t unreadable; /* of these */
};
