/* Connections of role STORE_API for handler threads: at most n, opened when first needed, lent to
 * one thread at a time. */
#pragma once
#include "connection.h"

#define CONN_POOL_MAX 256

struct conn_pool;
/* max: 1..CONN_POOL_MAX. Opens nothing yet. */
struct conn_pool *conn_pool_new(const char *conninfo, size_t max);
/* Every connection must have come back. */
void conn_pool_free(struct conn_pool *p);
/* Lend a connection that was alive a moment ago; waits up to wait_us for one to come back.
 * ERR_UNAVAILABLE when none did, or the database cannot be reached. Thread-safe. */
bool conn_pool_borrow(struct conn_pool *p, int64_t wait_us, struct store **ret,
                      struct err *err) MUST_CHECK;
/* Give it back, in whatever state: an open transaction is rolled back, a lost connection closed. */
void conn_pool_return(struct conn_pool *p, struct store *s);
/* How many are lent now, and how many borrowers found none (for metrics). */
void conn_pool_stats(struct conn_pool *p, size_t *ret_lent, int64_t *ret_refused);
