/* See reports.h. */
#include "reports.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_burn(struct store *s, int64_t campaign_id, int64_t n, struct buf *ret_json,
                struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, n);
    return store_text(s, QUERY(API_BURN), &p, "campaign", ret_json, err);
}

bool apidb_cost_by_type(struct store *s, int64_t campaign_id, struct buf *ret_json, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    return store_text(s, QUERY(API_COST_BY_TYPE), &p, "campaign", ret_json, err);
}

bool apidb_throughput(struct store *s, int64_t stage_id, int64_t n, struct buf *ret_json,
                      struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, stage_id);
    param_i64(&p, n);
    return store_text(s, QUERY(API_THROUGHPUT), &p, "stage", ret_json, err);
}

bool apidb_yield(struct store *s, const struct apidb_yield_query *q, struct buf *ret_json,
                 struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    ASSERT(q->every >= 1 && q->range >= 1);
    param_i64(&p, q->campaign_id);
    param_i64(&p, q->stage_id);
    param_i64(&p, q->every);
    param_i64(&p, q->range);
    param_i64(&p, q->parts);
    return store_text(s, QUERY(API_YIELD), &p, "stage", ret_json, err);
}

bool apidb_timeline(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t n,
                    struct apidb_bar **ret, size_t *ret_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, campaign_id);
    param_i64(&p, stage_id);
    param_i64(&p, n);
    if (!store_exec(s, QUERY(API_TIMELINE), &p, &r, err)) {
        return false;
    }
    *ret_n = (size_t)row_count(r);
    *ret = xcalloc(*ret_n + 1, sizeof **ret);
    for (int i = 0; i < row_count(r); i++) {
        struct apidb_bar *b = &(*ret)[i];
        b->part = row_i64(r, i, 0);
        b->n = row_int(r, i, 1);
        b->state = (enum attempt_state)row_int(r, i, 2);
        b->cause = (enum cause)row_int(r, i, 3);
        row_text_into(r, i, 4, b->instance_type, sizeof b->instance_type);
        b->market = market_parse(row_text(r, i, 5));
        b->warm = row_bool(r, i, 6);
        b->intended_at = row_time(r, i, 7);
        b->started_at = row_time(r, i, 8);
        b->ended_at = row_time(r, i, 9);
    }
    return true;
}

bool apidb_bill(struct store *s, const struct apidb_bill_query *q, struct buf *ret_json,
                struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, q->month != NULL ? q->month : "");
    param_text(&p, q->projects);
    param_i64(&p, q->campaigns);
    param_text(&p, q->tag != NULL ? q->tag : "");
    return store_text(s, QUERY(API_BILL), &p, "month", ret_json, err);
}
