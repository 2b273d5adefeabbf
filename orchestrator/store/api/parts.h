/* Parts of a stage, for handlers: pages by key with bounded work. ERR_NOT_FOUND: no such row. Other
 * errors: those of query.h. */
#pragma once
#include "core/model.h"
#include "store/pg/connection.h"

struct apidb_stage_row {
    int64_t id;
    char name[64];
    int64_t tasks;
    bool closed;
    int64_t taken, counts[TASK_STATE_COUNT];
    enum wait_reason wait_reason; /* of its waiting parts; WAIT_NONE also when of a newer version */
    enum stage_state state;       /* STAGE_STATE_COUNT: unknown to this version */
};
/* The stage of this name. name NULL: the first stage with parts, else the first stage.
 * ERR_ARCHIVED: its campaign has no parts any more. */
bool apidb_stage_find(struct store *s, int64_t campaign_id, const char *name,
                      struct apidb_stage_row *ret, struct err *err) MUST_CHECK;
/* A page of parts in order of id, those that failed in order of cause. The work of a call is
 * bounded: a page may have fewer than n parts and not be the last. */
struct apidb_parts_query {
    int64_t campaign_id, stage_id; /* stage 0: all stages */
    int state;                     /* -1: all states */
    int64_t attempts_min;
    int64_t cost_min_musd;                     /* of all attempts; 0: any */
    usec_t updated_from_us, updated_before_us; /* 0: any time */
    const char *text;                          /* in address or reason, any case; NULL: any */
    int16_t causes[CAUSE_COUNT];               /* any of these; n 0: all causes */
    size_t causes_n;
    int64_t n; /* page size */
    bool down; /* the last ones first */
    /* cursor, updated by each call */
    int64_t after_id, after_cause, after_seq;
};
struct apidb_ids {
    int64_t *at; /* caller frees */
    size_t n;
    bool more;
};
/* Whether each part is looked at for its text, cost or time, which no index has. A page then looks
 * at this many ids. */
#define APIDB_EACH_IDS_MAX 1000
bool apidb_parts_looks_at_each(const struct apidb_parts_query *q);
/* Whether its pages are in order of cause. */
bool apidb_parts_by_cause(const struct apidb_parts_query *q);
/* The ids of the next page. */
bool apidb_parts_ids(struct store *s, struct apidb_parts_query *q, struct apidb_ids *ret,
                     struct err *err) MUST_CHECK;
/* Goes on with a page that has fewer than n and looks at the next `look_at` ids, or fewer. */
bool apidb_parts_ids_within(struct store *s, struct apidb_parts_query *q, int64_t look_at,
                            struct apidb_ids *ret, struct err *err) MUST_CHECK;
/* Goes on with a page that has fewer than n at the next part that fits, however far it is. */
bool apidb_parts_ids_seek(struct store *s, struct apidb_parts_query *q, struct apidb_ids *ret,
                          struct err *err) MUST_CHECK;
/* The least and the greatest id of a campaign's parts; 0 and -1: it has none. */
bool apidb_parts_range(struct store *s, int64_t campaign_id, int64_t *ret_first, int64_t *ret_last,
                       struct err *err) MUST_CHECK;
/* What is in each range of per_range ids from first_id on; n ranges, all zeros before. */
struct apidb_map_query {
    int64_t campaign_id, stage_id, first_id, per_range; /* stage 0: all stages */
};
struct apidb_map_range {
    unsigned states; /* 1 << state of each that occurs; 0: no part */
    int attempts;    /* the most of a part */
};
bool apidb_parts_map(struct store *s, const struct apidb_map_query *q, struct apidb_map_range *ret,
                     int64_t n, struct err *err) MUST_CHECK;
/* Append a JSON array of the parts' rows, in the order of ids. */
bool apidb_parts_rows(struct store *s, int64_t campaign_id, const struct apidb_ids *ids,
                      usec_t now_us, struct buf *ret_json, struct err *err) MUST_CHECK;
/* The task id of a part number. */
bool apidb_part_id(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t seq,
                   int64_t *ret_id, struct err *err) MUST_CHECK;
/* Of a part that is skipped, by whom and when, as JSON; "null" of any other. */
bool apidb_part_skipped(struct store *s, int64_t campaign_id, int64_t task_id, struct buf *ret_json,
                        struct err *err) MUST_CHECK;
/* Append a JSON array of the newest 200 attempts of a part, oldest first. */
bool apidb_part_attempts(struct store *s, int64_t task_id, struct buf *ret_json,
                         struct err *err) MUST_CHECK;
/* The job name of attempt n; n 0: the newest. */
bool apidb_attempt_name(struct store *s, int64_t task_id, int64_t n, struct job_name *ret,
                        struct err *err) MUST_CHECK;
/* A part's input with one attempt of it. Texts are the caller's to free, NULL when absent. */
struct apidb_request {
    int64_t seq, size;
    char *uri, *vars_json, *stage;
    int64_t n; /* 0: there is no attempt, and nothing below */
    int64_t attempt_id, max_runtime_s;
    int volume_gb;
    struct job_name name;
    char *instance_type;
    char *request; /* the bytes sent, kept until the attempt's end */
};
void apidb_request_done(struct apidb_request *q);
/* Attempt n; n 0: the newest, if any. ERR_NOT_FOUND when the part has no attempt n. */
bool apidb_attempt_request(struct store *s, int64_t campaign_id, int64_t task_id, int64_t n,
                           struct apidb_request *ret, struct err *err) MUST_CHECK;
/* Count parts first..last by tile and state into counts[tiles_n][TASK_STATE_COUNT]. */
struct apidb_tiles_query {
    int64_t campaign_id, stage_id, first, last, per_tile;
};
bool apidb_tiles(struct store *s, const struct apidb_tiles_query *q,
                 int64_t (*counts)[TASK_STATE_COUNT], int64_t tiles_n, struct err *err) MUST_CHECK;
