/* Warm pools, for handlers. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

/* Which pools: the campaign's (0: of all campaigns) in these projects (by commas, "": all). */
struct apidb_pools_of {
    int64_t campaign_id;
    const char *projects;
};
struct apidb_pools_now {
    int64_t open;
    int64_t newest_id; /* of all pools, whose they are */
    int64_t idle_seconds, idle_musd;
};
/* Append n of them, open ones first. */
bool apidb_pools(struct store *s, const struct apidb_pools_of *of, int64_t n, struct buf *ret_rows,
                 struct err *err) MUST_CHECK;
/* What is cheap to say of them, however many there are. */
bool apidb_pools_now(struct store *s, const struct apidb_pools_of *of, struct apidb_pools_now *ret,
                     struct err *err) MUST_CHECK;
/* Their number, and that of the reused ones; reads them all. */
bool apidb_pools_count(struct store *s, const struct apidb_pools_of *of, int64_t *ret_all,
                       int64_t *ret_reused, struct err *err) MUST_CHECK;
/* A person wants the end of the idle pool that this job left. ERR_NOT_FOUND: it has none that is
 * open; ERR_CONFLICT: its job runs still, or another one takes it. */
bool apidb_pool_end(struct store *s, const char *job, struct err *err) MUST_CHECK;
