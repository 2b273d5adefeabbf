/* Listings of inputs that go on after their submit was answered: rows of input_listing. Errors are
 * those of query.h. */
#pragma once
#include "common/str.h"
#include "store/pg/connection.h"

/* Stage `stage_id` gets its parts later, by a listing. Inside the transaction of the submit. */
bool apidb_input_listing_insert(struct store *s, int64_t stage_id, int64_t campaign_id,
                                const char *uri, int per_part, const char *by,
                                struct err *err) MUST_CHECK;
struct apidb_input_listing {
    int64_t stage_id, campaign_id;
    char *uri; /* the caller frees it */
    int per_part;
    bool wanted; /* its campaign has not ended and is not being cancelled */
};
/* The oldest that go on, at most max, into ret[max]. */
bool apidb_input_listings(struct store *s, struct apidb_input_listing *ret, size_t max,
                          size_t *ret_n, struct err *err) MUST_CHECK;
/* Lock its row inside a transaction. *ret false: it has ended. */
bool apidb_input_listing_lock(struct store *s, int64_t stage_id, bool *ret,
                              struct err *err) MUST_CHECK;
bool apidb_input_listing_progress(struct store *s, int64_t stage_id, int64_t pages, int64_t objects,
                                  int64_t refused, const char *problem, struct err *err) MUST_CHECK;
/* state: done, failed or cancelled; objects < 0: as they are. One that has ended stays as it is. */
bool apidb_input_listing_end(struct store *s, int64_t stage_id, const char *state,
                             const char *problem, int64_t objects, struct err *err) MUST_CHECK;
/* The campaign of the listing that is shown as operation `id`; 0: none is. */
bool apidb_input_listing_campaign(struct store *s, int64_t id, int64_t *ret,
                                  struct err *err) MUST_CHECK;
