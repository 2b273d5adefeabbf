/* Archiving an ended campaign, for handlers: asked for here, carried out by the leader. Inside a
 * transaction that holds the lock of the campaign's row. Errors: those of query.h. */
#pragma once
#include "store/pg/connection.h"

/* Appends to ret_why why it cannot be archived now; nothing when it can. */
bool apidb_archive_hindrance(struct store *s, int64_t campaign_id, struct buf *ret_why,
                             struct err *err) MUST_CHECK;
/* folder: in S3, ends with '/', what is deleted is written there first; "": nowhere, or where it is
 * being written already. *ret_asked false: it is archived or being archived already. Appended to
 * ret_folder: where it is written, which is not `folder` when it was too late for that one. */
bool apidb_archive_ask(struct store *s, int64_t campaign_id, const char *by, const char *folder,
                       bool *ret_asked, struct buf *ret_folder, struct err *err) MUST_CHECK;
