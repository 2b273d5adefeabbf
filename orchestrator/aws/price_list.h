/* One product of AWS Pricing, a JSON document in a string, as a price. Pure. */
#pragma once
#include "common/err.h"
#include "common/str.h"
#include "core/money/price_reading.h"

#define PRICE_PRODUCT_MAX (64 * 1024) /* bytes of one product */
#define PRICE_VALUES_MAX  4096

enum price_product {
    PRICE_PRODUCT_READ,
    PRICE_PRODUCT_OTHER, /* sold by AWS, but nothing that drover rents, or not on demand */
    PRICE_PRODUCT_BROKEN /* err says why */
};
/* The price of a product in its region. A product with several on-demand prices has the dearest;
 * one of 0 USD is no price: free tiers are such. */
enum price_product price_product_read(struct str text, const char *region, struct price_value *ret,
                                      struct err *err);
/* Add a value; of two with one key the dearer stays. One of a throughput counts for its deployment
 * alone, too. False: PRICE_VALUES_MAX is reached. */
bool price_reading_add(struct price_reading *r, const struct price_value *v) MUST_CHECK;
