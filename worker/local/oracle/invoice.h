/* What really happened, under /_local/ outside of AWS' API: wire log, jobs, invoice; also faults
 * and reset. Unsigned and not in the wire log. The invoice is computed here from the jobs alone, so
 * it checks drover's own accounting. */
#pragma once
#include "local/http/request.h"

#define INVOICE_PREFIX "/_local/"

bool invoice_is(const struct request *r);
/* Answer a request under /_local/. Takes app->mu itself. */
void invoice_handle(struct request *r);
/* USD per hour as decimal text to micro-USD, rounded half up beyond six digits; false for any other
 * text. */
bool invoice_price(const char *text, int64_t *ret_musd);
/* price x instances x seconds / 3600, rounded half up once; all >= 0. */
int64_t invoice_cost(int64_t price_musd, int64_t instances, int64_t seconds);
