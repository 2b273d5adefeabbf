/* Loads a batch of parts into a stage inside the caller's transaction. */
#pragma once
#include "common/str.h"
#include "store/pg/connection.h"

struct apidb_load;
/* Use the time-outs of a bulk load for this transaction. */
bool apidb_bulk(struct store *s, struct err *err) MUST_CHECK;
/* Use the normal time-outs again. */
void apidb_bulk_end(struct store *s);
/* Lock the stage's input and reserve n ids. A batch of at least LOAD_PARTITION_MIN parts gets its
 * own partitions, and so do all after it in the transaction; meanwhile others who load for the
 * campaign wait, or get ERR_UNAVAILABLE. ERR_CONFLICT when the stage is closed or the campaign has
 * ended. The caller owns *ret. */
#define LOAD_PARTITION_MIN 100000
bool apidb_load_begin(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t n,
                      struct apidb_load **ret, struct err *err) MUST_CHECK;
/* How many parts the stage has with these. */
int64_t apidb_load_total(const struct apidb_load *l);
/* Add one part. vars: JSON text of an object, or empty. */
bool apidb_load_row(struct apidb_load *l, struct str uri, int64_t size, struct str vars,
                    struct err *err) MUST_CHECK;
/* Call after exactly n rows: inserts the task_run rows, updates the stage's counters. close: the
 * stage accepts no more parts. */
bool apidb_load_end(struct apidb_load *l, bool close, struct err *err) MUST_CHECK;
/* Call after all loads of a transaction, just before its commit: attaches the partitions that they
 * filled. Its locks hold up the leader, and last until the transaction ends; PostgreSQL reads the
 * default partitions of task and task_run meanwhile, for 0.4 s in all with a million rows in each
 * (in memory, two busy cores). ERR_TIMEOUT: somebody reads parts for minutes. ERR_CONFLICT: the
 * campaign was cancelled or has ended meanwhile. */
bool apidb_load_publish(struct store *s, int64_t campaign_id, struct err *err) MUST_CHECK;
/* Frees *l; call it also after an error, when the caller rolls back. */
void apidb_load_freep(struct apidb_load **l);
