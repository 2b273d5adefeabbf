/* File systems of stages of kind lustre, for handlers. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

/* Append n file systems of these projects (by commas, "": every project), those that are there
 * first. */
bool apidb_filesystems(struct store *s, int64_t n, const char *projects, struct buf *ret,
                       struct err *err) MUST_CHECK;
/* ERR_CONFLICT: a stage with failed parts, this one or with 0 any, mounts a file system that is
 * gone or on its way out, so that no retry of it can run. */
bool apidb_filesystem_there(struct store *s, int64_t campaign_id, int64_t stage_id,
                            struct err *err) MUST_CHECK;
/* Ask for the deletion of one that is there. ERR_NOT_FOUND. */
bool apidb_filesystem_delete(struct store *s, const char *name, struct err *err) MUST_CHECK;
