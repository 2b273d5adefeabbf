/* What the leader does now and then on a connection of its own (STORE_MAINTENANCE), outside of
 * its transactions. Errors: those of query.h. */
#pragma once
#include "store/pg/connection.h"

/* Delete at most n events that are older than 14 days and have no partition of their day. *ret_n:
 * how many; fewer than n: none, or some that are younger than others behind them. */
bool store_events_expire(struct store *s, int64_t n, int64_t *ret_n, struct err *err) MUST_CHECK;
/* Delete at most n idempotency keys that have expired, the oldest first. *ret_n: how many. */
bool store_keys_expire(struct store *s, int64_t n, int64_t *ret_n, struct err *err) MUST_CHECK;
/* Ask for the archiving of at most n campaigns that ended before then and that nothing hinders, as
 * a person would. *ret_n: how many. */
bool store_archive_due(struct store *s, usec_t before_us, int64_t n, int64_t *ret_n,
                       struct err *err) MUST_CHECK;
/* Daily partitions of the events: made two days ahead, dropped after 14. Once an hour, on a
 * connection of its own (STORE_MAINTENANCE): it needs locks that a reader of the events denies it,
 * and while it waits for them everybody else waits for it. Reads all of the default partition: call
 * store_events_expire first. */
bool store_events_maintain(struct store *s, struct err *err) MUST_CHECK;
