/* Load parts into a stage: one batch inside the transaction of the caller. */
#pragma once
#include "common/str.h"
#include "store/pg/connection.h"

struct apidb_load;
/* Time-outs of this transaction, and of waiting for its answers, become those of a bulk load. */
bool apidb_bulk(struct store *s, struct err *err) MUST_CHECK;
void apidb_bulk_end(struct store *s);
/* Lock the stage's input and draw `n` ids. From LOAD_PARTITION_MIN parts on the campaign gets
 * partitions of its own. ERR_CONFLICT when the stage is closed or the campaign has ended. */
#define LOAD_PARTITION_MIN 100000
bool apidb_load_begin(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t n,
                      struct apidb_load **ret, struct err *err) MUST_CHECK;
/* vars: JSON text of an object, or empty. */
bool apidb_load_row(struct apidb_load *l, struct str uri, int64_t size, struct str vars,
                    struct err *err) MUST_CHECK;
/* After exactly n rows: first task_run rows, indexes, counters of the stage. */
bool apidb_load_end(struct apidb_load *l, bool close, struct err *err) MUST_CHECK;
/* Also after an error: the caller rolls back. */
void apidb_load_freep(struct apidb_load **l);
