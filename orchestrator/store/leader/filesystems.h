/* File systems as rows: tries of stages of kind lustre. For the leader. */
#pragma once
#include "core/rows.h"
#include "store/pg/connection.h"

/* Those that are open, and all tries of stages that are. Malloc'd. */
bool view_filesystems(struct store *s, struct filesystem_row **ret, size_t *ret_n,
                      struct err *err) MUST_CHECK;
/* The id of the next one; its request contains it. */
bool store_filesystem_id(struct store *s, int64_t *ret, struct err *err) MUST_CHECK;
/* Inserts the intent, with its money reserved. until_us: its delete_after. ret_refused: "" or what
 * said no (campaign, money); nothing is written then. */
bool store_filesystem_intend(struct store *s, const struct filesystem_row *row, usec_t until_us,
                             struct str request, char ret_refused[static 12],
                             struct err *err) MUST_CHECK;
/* Its row as it is now, but for what people write of it. ERR_CONFLICT: it is not in `from`. */
bool store_filesystem_move(struct store *s, const struct filesystem_row *row,
                           enum filesystem_state from, usec_t until_us, struct err *err) MUST_CHECK;
/* Its end and what it cost. ERR_CONFLICT: it is not being deleted. */
bool store_filesystem_end(struct store *s, const struct filesystem_row *row,
                          const struct filesystem_end *e, struct err *err) MUST_CHECK;
/* The exact bytes of its create, appended to ret. */
bool store_filesystem_request(struct store *s, int64_t id, struct buf *ret,
                              struct err *err) MUST_CHECK;
