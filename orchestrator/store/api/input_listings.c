/* Listings of inputs; see input_listings.h. */
#include "input_listings.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_input_listing_insert(struct store *s, int64_t stage_id, int64_t campaign_id,
                                const char *uri, int per_part, const char *by, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, stage_id);
    param_i64(&p, campaign_id);
    param_text(&p, uri);
    param_i32(&p, per_part);
    param_text(&p, by);
    return store_run(s, QUERY(API_INPUT_LISTING_INSERT), &p, NULL, err);
}

bool apidb_input_listings(struct store *s, struct apidb_input_listing *ret, size_t max,
                          size_t *ret_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, (int64_t)max);
    *ret_n = 0;
    if (!store_exec(s, QUERY(API_INPUT_LISTINGS), &p, &r, err)) {
        return false;
    }
    for (int i = 0; i < row_count(r) && *ret_n < max; i++) {
        ret[(*ret_n)++] = (struct apidb_input_listing){.stage_id = row_i64(r, i, 0),
                                                       .campaign_id = row_i64(r, i, 1),
                                                       .uri = row_text_dup(r, i, 2),
                                                       .per_part = row_int(r, i, 3),
                                                       .wanted = row_bool(r, i, 4)};
    }
    return true;
}

bool apidb_input_listing_lock(struct store *s, int64_t stage_id, bool *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, stage_id);
    if (!store_exec(s, QUERY(API_INPUT_LISTING_LOCK), &p, &r, err)) {
        return false;
    }
    *ret = row_count(r) > 0;
    return true;
}

bool apidb_input_listing_progress(struct store *s, int64_t stage_id, int64_t pages, int64_t objects,
                                  int64_t refused, const char *problem, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, stage_id);
    param_i64(&p, pages);
    param_i64(&p, objects);
    param_i64(&p, refused);
    param_text(&p, problem);
    return store_run(s, QUERY(API_INPUT_LISTING_PROGRESS), &p, NULL, err);
}

bool apidb_input_listing_end(struct store *s, int64_t stage_id, const char *state,
                             const char *problem, int64_t objects, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, stage_id);
    param_text(&p, state);
    param_text(&p, problem);
    param_i64_or_null(&p, objects, -1);
    return store_run(s, QUERY(API_INPUT_LISTING_END), &p, NULL, err);
}

bool apidb_input_listing_campaign(struct store *s, int64_t id, int64_t *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, id);
    if (!store_exec(s, QUERY(API_INPUT_LISTING_CAMPAIGN), &p, &r, err)) {
        return false;
    }
    *ret = row_count(r) > 0 ? row_i64(r, 0, 0) : 0;
    return true;
}
