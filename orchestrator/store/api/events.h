/* The events of campaigns, in order of their ids. */
#pragma once
#include "store/pg/connection.h"

struct apidb_event {
    int64_t id, campaign_id;
    const char *kind, *json; /* borrowed; valid during the call, as is project */
    const char *project;     /* of the campaign; "": it is not there */
};
/* Pass events after after_id to cb in order of id, at most n. campaign_id 0: all. *ret_last: id of
 * the last one, after_id when there was none. */
bool apidb_events(struct store *s, int64_t after_id, int64_t campaign_id, int64_t n,
                  void (*cb)(void *ctx, const struct apidb_event *e), void *ctx, int64_t *ret_n,
                  int64_t *ret_last, struct err *err) MUST_CHECK;
/* Ids of the first and last event in the table; 0 when empty. */
bool apidb_events_ends(struct store *s, int64_t *ret_first, int64_t *ret_last,
                       struct err *err) MUST_CHECK;
