/* Page tokens: numbers inside, opaque to clients. A token is good for the order it was made in. */
#pragma once
#include "request.h"

/* Whether order_by asks for an order that ends with desc; `dflt` when it is absent. */
bool page_is_down(const struct api_req *r, bool dflt);
/* The token of v[n], in the request's arena. */
char *page_token_make(struct api_req *r, const int64_t *v, int n);
/* Read query parameter page_token into v[n]; *ret_given is false when absent. ERR_MALFORMED, also
 * for one of another order. */
bool page_token_read(struct api_req *r, int64_t *v, int n, bool *ret_given,
                     struct err *err) MUST_CHECK;
/* A token of another system, up to 1,000 bytes, made ours: the check covers the route, the
 * scope (what it is a place in) and the text. */
char *page_text_make(struct api_req *r, const char *scope, const char *text);
/* The text of query parameter `name`; "" when absent. ERR_MALFORMED: not one of this scope. */
bool page_text_read(struct api_req *r, const char *name, const char *scope, const char **ret_text,
                    struct err *err) MUST_CHECK;
