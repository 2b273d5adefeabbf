/* Cache of expensive answers, so that many viewers cost one computation. An answer is kept while a
 * stale one does no harm. While one thread makes an answer, those that ask for it wait for it, or
 * get the last one when it was dear and is younger than half a minute. Usable from any thread. */
#pragma once
#include "common/buf.h"
#include "common/err.h"

#define RESPONSE_CACHE_KEY_MAX 768

struct store;
struct response_cache;
struct response_cache *response_cache_new(void);
void response_cache_free(struct response_cache *c); /* NULL ignored */

struct response_cache_ask { /* value */
    const char *key;        /* shorter than RESPONSE_CACHE_KEY_MAX; borrowed */
    uint64_t version;       /* of the answer's input, read before the answer is asked for */
    int64_t same_us;        /* an answer is valid for so long while the version is unchanged */
    int64_t fresh_us;       /* and for so long whatever the version is now */
    bool strict;            /* false: for ten times its cost as well, when that was over 20 ms; and
                               while it is made again */
    bool in_turn;           /* it is made in the turn to compute */
    struct store *db;       /* that make uses: while it runs a statement may take 20 s; NULL: the
                               usual 5 s */
};
/* Appends the answer; its errors are those of response_cache_answer. */
typedef bool (*response_cache_make)(void *ctx, struct buf *out, struct err *err);
/* The answer: a kept one that is valid, else what another thread makes of the same version or has
 * begun to make since this call, else make's. An answer that could not be made is not kept, and
 * those that waited for it make their own. Caller frees *ret. */
bool response_cache_answer(struct response_cache *c, const struct response_cache_ask *ask,
                           response_cache_make make, void *ctx, char **ret,
                           struct err *err) MUST_CHECK;
/* The same, but an outdated answer is returned at once if it was dear to make and is younger than
 * half a minute. Then *ret_later is what makes the next one: the caller passes it to
 * response_later_make after it has replied; until then others get the outdated answer. Otherwise
 * *ret_later is NULL. `ctx` is copied: it has ctx_size bytes, begins with the struct store * that
 * make uses, and points to nothing else. */
struct response_later;
bool response_cache_answer_or_last(struct response_cache *c, const struct response_cache_ask *ask,
                                   response_cache_make make, void *ctx, size_t ctx_size, char **ret,
                                   struct response_later **ret_later, struct err *err) MUST_CHECK;
/* Never waits: a valid or outdated answer as above, or NULL. *ret_later as above; NULL when the
 * answer is valid or another thread makes the next one. */
char *response_cache_last(struct response_cache *c, const struct response_cache_ask *ask,
                          response_cache_make make, void *ctx, size_t ctx_size,
                          struct response_later **ret_later);
/* Makes it over `db` (NULL: it is not made) and frees it. */
void response_later_make(struct response_later *l, struct store *db);
/* Hash of an input, for use as a version. */
uint64_t response_cache_version(const void *p, size_t n);
/* Wait for the turn to compute: one thread at a time. Only routes that are ROUTE_DEAR call it: they
 * never have all threads. */
void response_cache_turn(struct response_cache *c);
/* Waits for it for at most wait_us; false: others still have it. Any route may call it with a short
 * wait. */
bool response_cache_turn_soon(struct response_cache *c, int64_t wait_us) MUST_CHECK;
void response_cache_turn_end(struct response_cache *c);
