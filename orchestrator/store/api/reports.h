/* Curves of money and time, attempts as bars, and the bill of a month, for handlers. Answers that
 * are only passed on are JSON text, appended. */
#pragma once
#include "core/model.h"
#include "store/pg/connection.h"

/* Append {"first_at", "points"}: what was spent and reserved, at most n points. ERR_NOT_FOUND. */
bool apidb_burn(struct store *s, int64_t campaign_id, int64_t n, struct buf *ret_json,
                struct err *err) MUST_CHECK;
/* Append an array of the cost by instance type. Reads all attempts of the campaign. */
bool apidb_cost_by_type(struct store *s, int64_t campaign_id, struct buf *ret_json,
                        struct err *err) MUST_CHECK;
/* Append an array of spans of equal length, at most n, with the parts done and tries failed. */
bool apidb_throughput(struct store *s, int64_t stage_id, int64_t n, struct buf *ret_json,
                      struct err *err) MUST_CHECK;
struct apidb_yield_query {
    int64_t campaign_id, stage_id;
    int64_t parts; /* of the stage */
    int64_t every; /* one of this many parts is read */
    int64_t range; /* parts of a point */
};
/* Append {"points", "lowest"}: the share of rows that were kept, by ranges of parts. */
bool apidb_yield(struct store *s, const struct apidb_yield_query *q, struct buf *ret_json,
                 struct err *err) MUST_CHECK;

struct apidb_bar { /* an attempt on the time axis */
    int64_t part;
    int n;
    enum attempt_state state;
    enum cause cause;
    char instance_type[INSTANCE_TYPE_MAX + 1];
    enum market market;
    bool warm;                                /* on instances that were kept */
    usec_t intended_at, started_at, ended_at; /* 0: not yet */
};
/* The newest attempts of a stage, at most n, in order of type, market and intent. Caller frees
 * *ret. */
bool apidb_timeline(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t n,
                    struct apidb_bar **ret, size_t *ret_n, struct err *err) MUST_CHECK;
struct apidb_bill_query {
    const char *month;    /* "2026-11"; NULL: the present one */
    const char *projects; /* names by commas, "" for all */
    const char *tag;      /* by its values; NULL: by project */
    int64_t campaigns;    /* of each group at most */
};
/* Append what was booked in a month. */
bool apidb_bill(struct store *s, const struct apidb_bill_query *q, struct buf *ret_json,
                struct err *err) MUST_CHECK;
