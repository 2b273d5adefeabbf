/* Some events of the table, as text of a stream. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

#define EVENT_BATCH_N 500

struct event_batch {
    struct buf text;
    struct {
        int64_t id, campaign_id;
        char project[128];
        size_t begin, end;
    } at[EVENT_BATCH_N];
    int64_t n, last;
};
void event_batch_init(struct event_batch *b);
void event_batch_done(struct event_batch *b);
/* Read up to EVENT_BATCH_N events after `after`, of that campaign (0: of all). *ret_whole: there
 * are no more. */
bool event_batch_read(struct store *db, int64_t after, int64_t campaign_id, struct event_batch *b,
                      bool *ret_whole, struct err *err) MUST_CHECK;
