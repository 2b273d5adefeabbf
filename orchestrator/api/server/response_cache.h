/* Cache of expensive answers, so that many viewers cost one computation. An answer is kept while a
 * stale one does no harm. Usable from any thread. */
#pragma once
#include "common/base.h"

#define RESPONSE_CACHE_KEY_MAX 768

struct response_cache;
struct response_cache *response_cache_new(void);
void response_cache_free(struct response_cache *c); /* NULL ignored */
/* A copy of the cached answer; caller frees; NULL when there is no valid one. An answer is valid
 * for fresh_us, or for ten times its cost when that was over 20 ms, and for same_us as long as
 * `version` (of its input) is unchanged. */
char *response_cache_get(struct response_cache *c, const char *key, uint64_t version,
                         int64_t fresh_us, int64_t same_us);
/* Store a copy of an answer that took cost_us to compute. */
void response_cache_put(struct response_cache *c, const char *key, uint64_t version,
                        int64_t cost_us, const char *json);
/* Hash of an input, for use as a version. */
uint64_t response_cache_version(const void *p, size_t n);
/* Wait for the turn to compute: one thread at a time. Only routes that are ROUTE_DEAR call it: they
 * never have all threads. */
void response_cache_turn(struct response_cache *c);
void response_cache_turn_end(struct response_cache *c);
