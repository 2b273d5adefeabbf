/* What the leader has set aside, as the API shows it. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

/* A JSON array, oldest first; campaign_id 0: of all campaigns. */
bool apidb_parked(struct store *s, int64_t campaign_id, int64_t n, struct buf *ret_rows,
                  struct err *err) MUST_CHECK;
/* Everything parked of a campaign may be tried again. */
bool apidb_unpark(struct store *s, int64_t campaign_id, int64_t *ret_n, struct err *err) MUST_CHECK;
