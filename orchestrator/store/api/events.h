/* The events of campaigns, in the order of their ids. */
#pragma once
#include "store/pg/connection.h"

struct apidb_event {
    int64_t id, campaign_id;
    const char *kind, *json; /* lent for the call */
};
/* Events behind after_id in id order, at most n; *ret_last: id of the last (after_id when none). */
bool apidb_events(struct store *s, int64_t after_id, int64_t campaign_id, int64_t n,
                  void (*cb)(void *ctx, const struct apidb_event *e), void *ctx, int64_t *ret_n,
                  int64_t *ret_last, struct err *err) MUST_CHECK;
/* First and last event kept; 0 when none. */
bool apidb_events_ends(struct store *s, int64_t *ret_first, int64_t *ret_last,
                       struct err *err) MUST_CHECK;
