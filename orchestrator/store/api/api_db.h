/* What API handlers read and write, one query a function. Answers that are only passed on come as
 * JSON text built by the query. Handlers write what people want (campaigns, stages, new parts,
 * operations, audit, idempotency keys, tokens) and nothing the leader owns. Names of states and
 * causes come from core's tables. Every "get" gives ERR_NOT_FOUND when there is no such row. */
#pragma once
#include "core/model.h"
#include "store/pg/connection.h"
#include "store/pg/tx.h"

/* A page of rows: their JSON texts joined by commas, and the key of the last one. */
struct apidb_page {
    struct buf rows; /* caller: buf_done */
    int64_t n;
    int64_t last_id;
    usec_t last_us;
};

/* --- campaigns (api_campaigns.c) --- */
struct apidb_campaign {
    const char *project, *name;
    struct str spec_text; /* as sent */
    const char *spec_json;
    int priority;
    int64_t weight;
    int64_t parts_limit; /* -1: none */
    musd_t cap_musd;     /* -1: none */
    const char *at_limit;
    const int64_t *warn_at_ppm; /* of the cap, rising */
    int warn_at_n;
    const char *created_by;
};
bool apidb_campaign_insert(struct store *s, const struct apidb_campaign *c, int64_t *ret_id,
                           struct err *err) MUST_CHECK;
struct apidb_stage {
    int64_t campaign_id;
    int seq;
    const char *name;
    bool closed;
    int64_t parts_limit;            /* -1: none */
    musd_t cap_musd, per_task_musd; /* -1: none */
    const char *at_limit;
    const int64_t *warn_at_ppm; /* of the cap, rising */
    int warn_at_n;
};
bool apidb_stage_insert(struct store *s, const struct apidb_stage *st, int64_t *ret_id,
                        struct err *err) MUST_CHECK;
bool apidb_campaign_get(struct store *s, int64_t id, int64_t *ret_version, struct buf *ret_json,
                        struct err *err) MUST_CHECK;
/* Newest first, behind (before_us, before_id). state NULL: all. */
bool apidb_campaign_list(struct store *s, usec_t before_us, int64_t before_id, const char *state,
                         int64_t n, struct apidb_page *ret, struct err *err) MUST_CHECK;
bool apidb_campaign_spec(struct store *s, int64_t id, struct buf *ret_json, struct buf *ret_text,
                         struct err *err) MUST_CHECK;
struct apidb_wish {
    int64_t version;
    enum wanted wanted;
    enum campaign_state state;
};
/* Inside a transaction: locks the campaign's row. */
bool apidb_campaign_lock(struct store *s, int64_t id, struct apidb_wish *ret,
                         struct err *err) MUST_CHECK;
bool apidb_campaign_want(struct store *s, int64_t id, enum wanted wanted,
                         struct err *err) MUST_CHECK;
struct apidb_patch {
    int priority;   /* -1: as it is */
    int64_t weight; /* fair share; -1: as it is */
    bool set_parts;
    int64_t parts_limit; /* -1: none */
    bool set_budget;
    musd_t budget_musd;   /* -1: none */
    const char *at_limit; /* NULL: as it is */
};
bool apidb_campaign_patch(struct store *s, int64_t id, const struct apidb_patch *p,
                          struct err *err) MUST_CHECK;
/* The loop of the leader looks now; call before commit. */
bool apidb_notify(struct store *s, struct err *err) MUST_CHECK;

/* --- keys, audit, tokens, prices (api_house.c) --- */
struct apidb_answer {
    uint8_t body_hash[32];
    int status;
    struct buf answer; /* caller: buf_done */
    char location[128];
};
bool apidb_key_get(struct store *s, const char *token_id, const char *key, bool *ret_found,
                   struct apidb_answer *ret, struct err *err) MUST_CHECK;
bool apidb_key_put(struct store *s, const char *token_id, const char *key,
                   const struct apidb_answer *a, struct err *err) MUST_CHECK;
/* The key is in flight from lock to unlock, in every droverd. */
bool apidb_key_lock(struct store *s, const char *token_id, const char *key, bool *ret_locked,
                    struct err *err) MUST_CHECK;
void apidb_key_unlock(struct store *s, const char *token_id, const char *key);
bool apidb_audit(struct store *s, const char *token_id, const char *role, const char *action,
                 const char *subject, const char *detail_json, const char *request_id,
                 struct err *err) MUST_CHECK;
bool apidb_token_get(struct store *s, const char *id, uint8_t ret_hash[static 32],
                     char ret_role[static 16], struct err *err) MUST_CHECK;
bool apidb_token_put(struct store *s, const char *id, const uint8_t hash[static 32],
                     const char *name, struct err *err) MUST_CHECK;
bool apidb_quotas(struct store *s, struct buf *ret_json, struct err *err) MUST_CHECK;
struct apidb_rate { /* what the plan needs of an instance type */
    char instance_type[INSTANCE_TYPE_MAX + 1];
    musd_t price_musd_per_hour; /* -1 unknown */
    int64_t limit;              /* -1 unknown */
    int64_t held, foreign;
};
bool apidb_rate(struct store *s, const char *instance_type, struct apidb_rate *ret,
                struct err *err) MUST_CHECK;

/* --- parts (api_parts.c) --- */
struct apidb_stage_row {
    int64_t id;
    char name[64];
    int64_t tasks;
    bool closed;
    int64_t taken, counts[TASK_STATE_COUNT];
};
/* name NULL: the first stage that has parts, else the first. */
bool apidb_stage_find(struct store *s, int64_t campaign_id, const char *name,
                      struct apidb_stage_row *ret, struct err *err) MUST_CHECK;
/* Which parts: ids in order, and where to go on. Bounded work a call; a page may be short and yet
 * not the last. */
struct apidb_parts_query {
    int64_t campaign_id, stage_id; /* stage 0: all */
    int state;                     /* -1: all */
    int64_t attempts_min;
    int16_t causes[CAUSE_COUNT]; /* any of them; n 0: all */
    size_t causes_n;
    int64_t n; /* page size */
    /* the cursor, taken and left */
    int64_t after_id, after_cause, after_seq;
};
struct apidb_ids {
    int64_t *at; /* caller frees */
    size_t n;
    bool more;
};
bool apidb_parts_ids(struct store *s, struct apidb_parts_query *q, struct apidb_ids *ret,
                     struct err *err) MUST_CHECK;
/* JSON array of the parts' rows, in the order of the ids. */
bool apidb_parts_rows(struct store *s, int64_t campaign_id, const struct apidb_ids *ids,
                      usec_t now_us, struct buf *ret_json, struct err *err) MUST_CHECK;
bool apidb_part_id(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t seq,
                   int64_t *ret_id, struct err *err) MUST_CHECK;
bool apidb_part_attempts(struct store *s, int64_t task_id, struct buf *ret_json,
                         struct err *err) MUST_CHECK;
/* n 0: the newest. */
bool apidb_attempt_name(struct store *s, int64_t task_id, int64_t n, struct job_name *ret,
                        struct err *err) MUST_CHECK;
/* Parts first..last by tile and state into counts[tiles_n][TASK_STATE_COUNT]. */
struct apidb_tiles_query {
    int64_t campaign_id, stage_id, first, last, per_tile;
};
bool apidb_tiles(struct store *s, const struct apidb_tiles_query *q,
                 int64_t (*counts)[TASK_STATE_COUNT], int64_t tiles_n, struct err *err) MUST_CHECK;
bool apidb_failures(struct store *s, int64_t campaign_id, int64_t stage_id, struct buf *ret_json,
                    int64_t *ret_parts, int64_t *ret_final, struct err *err) MUST_CHECK;

/* --- loading parts (api_load.c): one stage's batch inside the caller's transaction --- */
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

/* --- cost, operations, events (api_more.c) --- */
bool apidb_cost(struct store *s, int64_t campaign_id, struct buf *ret_total, struct buf *ret_stages,
                struct buf *ret_causes, struct err *err) MUST_CHECK;
/* The newest ended attempts of a stage. */
#define HISTORY_MAX 1000
enum apidb_end { END_DONE, END_LOST, END_OTHER }; /* LOST: its cause counts as a try */
struct apidb_past {
    enum apidb_end end;
    int64_t size;
    int64_t run_us, start_us; /* intent to start; both -1: it never ran */
};
struct apidb_history {
    struct apidb_past at[HISTORY_MAX];
    size_t n;
};
bool apidb_history(struct store *s, int64_t campaign_id, int64_t stage_id, const int16_t *causes,
                   size_t causes_n, struct apidb_history *ret, struct err *err) MUST_CHECK;
struct apidb_selector {
    int64_t campaign_id, stage_id; /* stage 0: all */
    const int16_t *causes;         /* n 0: all */
    size_t causes_n;
    const int32_t *parts; /* n 0: all */
    size_t parts_n;
};
struct apidb_match {
    int64_t parts;
    struct buf sample; /* JSON array of up to 20 part numbers; caller: buf_done */
    musd_t lost_musd;
};
/* Inside a transaction that holds the campaign's row: failed parts nobody is retrying yet. */
bool apidb_retry_count(struct store *s, const struct apidb_selector *sel, struct apidb_match *ret,
                       struct err *err) MUST_CHECK;
bool apidb_operation_insert(struct store *s, int64_t campaign_id, const char *kind,
                            const char *selector_json, const char *changes_json, int64_t total,
                            const char *by, int64_t *ret_id, struct err *err) MUST_CHECK;
bool apidb_operation_get(struct store *s, int64_t id, struct buf *ret_json,
                         struct err *err) MUST_CHECK;
bool apidb_operation_list(struct store *s, int64_t before_id, int64_t campaign_id, int64_t n,
                          struct apidb_page *ret, struct err *err) MUST_CHECK;
struct apidb_event {
    int64_t id, campaign_id;
    const char *kind, *json; /* lent for the call */
};
/* Events behind after_id in id order, at most n; *ret_last: id of the last (after_id when none). */
bool apidb_events(struct store *s, int64_t after_id, int64_t campaign_id, int64_t n,
                  void (*cb)(void *ctx, const struct apidb_event *e), void *ctx, int64_t *ret_n,
                  int64_t *ret_last, struct err *err) MUST_CHECK;
/* First and last event kept; 0 when none. */
bool apidb_events_ends(struct store *s, int64_t *ret_first, int64_t *ret_last,
                       struct err *err) MUST_CHECK;

/* --- limits of projects and of the installation, warm pools (api_limits.c) --- */
struct apidb_limits_patch {
    int64_t weight; /* of a project; -1 as it is */
    bool set_parts;
    int64_t parts; /* -1: no limit */
    bool set_budget;
    musd_t budget_musd; /* -1: none */
};
bool apidb_projects(struct store *s, struct buf *ret_json, struct err *err) MUST_CHECK;
bool apidb_project_patch(struct store *s, const char *name, const struct apidb_limits_patch *l,
                         struct err *err) MUST_CHECK;
bool apidb_limits(struct store *s, struct buf *ret_json, struct err *err) MUST_CHECK;
bool apidb_limits_patch(struct store *s, const struct apidb_limits_patch *l,
                        struct err *err) MUST_CHECK;
/* How many instances of a type drover may use; n < 0: all the quota gives. */
bool apidb_slot_limit(struct store *s, const char *instance_type, int64_t n,
                      struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND: no such stage. parts < 0: no limit. */
bool apidb_stage_limit(struct store *s, int64_t campaign_id, const char *stage, int64_t parts,
                       struct err *err) MUST_CHECK;
/* Stages held by their breaker go on. */
bool apidb_stages_resume(struct store *s, int64_t campaign_id, struct err *err) MUST_CHECK;
/* Open pools first; sum over all of the campaign's (0: all campaigns'). */
bool apidb_pools(struct store *s, int64_t campaign_id, int64_t n, struct buf *ret_rows,
                 struct buf *ret_sum, struct err *err) MUST_CHECK;
