/* Failed parts of a campaign by stage, cause and signature. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

/* Append a JSON array of the groups. stage_id 0: all stages. */
bool apidb_failures(struct store *s, int64_t campaign_id, int64_t stage_id, struct buf *ret_json,
                    int64_t *ret_parts, int64_t *ret_final, struct err *err) MUST_CHECK;
