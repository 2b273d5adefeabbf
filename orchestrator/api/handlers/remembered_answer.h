/* Answers made of all parts or attempts of a campaign, remembered until one of them changes. */
#pragma once
#include "api/server/request.h"
#include "api/server/response_cache.h"

/* response_cache_answer under `key`, whose version are the rows of the campaign's counters and
 * money. Of a campaign of 100,000 parts, which changes all the time, a dear answer may be ten times
 * as old as it took to make. Opens r->db. Caller frees *ret. */
bool remembered_answer(struct api_req *r, int64_t campaign_id, const char *key,
                       response_cache_make make, void *ctx, char **ret, struct err *err) MUST_CHECK;
/* The same, but an outdated answer is returned at once where response_cache_answer_or_last allows
 * it; this request's thread then makes the next one after it has replied. Once a request. */
bool remembered_answer_or_last(struct api_req *r, int64_t campaign_id, const char *key,
                               response_cache_make make, void *ctx, size_t ctx_size, char **ret,
                               struct err *err) MUST_CHECK;
/* Never waits: *ret is NULL when no remembered answer can be used. The thread makes one after it
 * has replied. Once a request. */
bool remembered_last(struct api_req *r, int64_t campaign_id, const char *key,
                     response_cache_make make, void *ctx, size_t ctx_size, char **ret,
                     struct err *err) MUST_CHECK;
/* The same for curves over a whole campaign: one that is a few seconds old will do, the more so the
 * longer it takes to make. */
bool remembered_curve(struct api_req *r, int64_t campaign_id, const char *key,
                      response_cache_make make, void *ctx, char **ret, struct err *err) MUST_CHECK;
