/* Connections of role STORE_API for threads: at most n, opened on first use, each lent to one
 * thread at a time. */
#pragma once
#include "connection.h"

#define CONN_POOL_MAX 256

struct conn_pool;
/* max: 1..CONN_POOL_MAX. Opens no connection yet. */
struct conn_pool *conn_pool_new(const char *conninfo, size_t max);
/* All connections must have been returned. */
void conn_pool_free(struct conn_pool *p);
/* Borrow a working connection; waits up to wait_us for one to be returned. ERR_UNAVAILABLE when
 * none was, or when the database cannot be reached. Thread-safe. */
bool conn_pool_borrow(struct conn_pool *p, int64_t wait_us, struct store **ret,
                      struct err *err) MUST_CHECK;
/* Return a connection in any state: an open transaction is rolled back, a lost connection
 * closed. */
void conn_pool_return(struct conn_pool *p, struct store *s);
/* The number lent now, and how many borrowers got none (for metrics). */
void conn_pool_stats(struct conn_pool *p, size_t *ret_lent, int64_t *ret_refused);
