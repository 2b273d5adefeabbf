/* Answers that cost something, remembered for as long as they are cheap to have been wrong about,
 * so that many viewers cost one computation. Any thread. */
#pragma once
#include "common/base.h"

#define RESPONSE_CACHE_KEY_MAX 768

struct response_cache;
struct response_cache *response_cache_new(void);
void response_cache_free(struct response_cache *c); /* NULL ignored */
/* A copy of the answer under this key; caller frees; NULL: none that still stands. It stands for
 * fresh_us, or ten times what it took to make when that was over 20 ms, and for same_us as long
 * as `version` (of what it was made from) is the same. */
char *response_cache_get(struct response_cache *c, const char *key, uint64_t version,
                         int64_t fresh_us, int64_t same_us);
void response_cache_put(struct response_cache *c, const char *key, uint64_t version,
                        int64_t cost_us, const char *json);
/* A version out of bytes. */
uint64_t response_cache_version(const void *p, size_t n);
/* One at a time: false when another thread computes and two wait already. */
bool response_cache_turn(struct response_cache *c) MUST_CHECK;
void response_cache_turn_end(struct response_cache *c);
