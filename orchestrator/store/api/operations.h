/* Bulk operations: requested by people, carried out by the leader. */
#pragma once
#include "core/model.h"
#include "page.h"
#include "store/pg/connection.h"

struct apidb_selector {
    int64_t campaign_id, stage_id; /* stage 0: all stages */
    const int16_t *causes;         /* n 0: any cause */
    size_t causes_n;
    const int32_t *parts; /* n 0: any part */
    size_t parts_n;
};
struct apidb_match {
    int64_t parts;
    struct buf sample; /* JSON array of up to 20 part numbers; the caller calls buf_done */
    musd_t lost_musd;
};
/* Count the failed parts that match and are in no open operation. Inside a transaction that holds
 * the lock of the campaign's row. */
bool apidb_retry_count(struct store *s, const struct apidb_selector *sel, struct apidb_match *ret,
                       struct err *err) MUST_CHECK;
struct apidb_retry_stage {
    int64_t stage_id, parts, size; /* the mean size of some of them, bytes */
    int64_t pools_lost;            /* idle warm pools that another type or volume does not match */
};
/* The failed parts that match, by stage. instance_type "", volume_gb 0: as before. The caller frees
 * *ret. */
bool apidb_retry_stages(struct store *s, const struct apidb_selector *sel,
                        const char *instance_type, int volume_gb, struct apidb_retry_stage **ret,
                        size_t *ret_n, struct err *err) MUST_CHECK;
/* Count the parts of this state, TASK_WAITING or TASK_HELD, that match; causes are not asked for.
 * The sample is of named parts only. */
bool apidb_hold_count(struct store *s, const struct apidb_selector *sel, enum task_state state,
                      struct apidb_match *ret, struct err *err) MUST_CHECK;
/* Insert an operation over `total` parts inside the caller's transaction. */
bool apidb_operation_insert(struct store *s, int64_t campaign_id, const char *kind,
                            const char *selector_json, const char *changes_json, int64_t total,
                            const char *by, int64_t *ret_id, struct err *err) MUST_CHECK;
/* A person wants the operation undone. ERR_NOT_FOUND; ERR_CONFLICT says why it cannot be, and what
 * can be done instead. */
bool apidb_operation_undo(struct store *s, int64_t id, const char *by, struct err *err) MUST_CHECK;
/* Append the operation as JSON. ERR_NOT_FOUND. */
bool apidb_operation_get(struct store *s, int64_t id, struct buf *ret_json,
                         struct err *err) MUST_CHECK;
struct apidb_operation_query {
    int64_t id, campaign_id; /* 0: all */
    int64_t after_id, n;
    bool down; /* newest first */
};
/* A page of operations in order of ids, behind after_id. */
bool apidb_operation_list(struct store *s, const struct apidb_operation_query *q,
                          struct apidb_page *ret, struct err *err) MUST_CHECK;
