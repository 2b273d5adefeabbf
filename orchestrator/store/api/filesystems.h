/* File systems of stages of kind lustre, for handlers. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

/* Append n file systems of these projects (by commas, "": every project), those that are there
 * first. */
bool apidb_filesystems(struct store *s, int64_t n, const char *projects, struct buf *ret,
                       struct err *err) MUST_CHECK;
/* Ask for the deletion of one that is there. ERR_NOT_FOUND. */
bool apidb_filesystem_delete(struct store *s, const char *name, struct err *err) MUST_CHECK;
