/* Page tokens: opaque to clients, numbers inside. */
#pragma once
#include "request.h"

char *page_token_make(struct api_req *r, const int64_t *v, int n);
bool page_token_read(struct api_req *r, int64_t *v, int n, bool *ret_given,
                     struct err *err) MUST_CHECK;
