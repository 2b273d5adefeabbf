/* See remembered_answer.h. */
#include "remembered_answer.h"
#include "store/api/campaigns.h"

#define SAME_ROWS_US (600 * USEC_PER_SEC) /* the versions of rows repeat only after years */

#define CURVE_FRESH_US (2 * USEC_PER_SEC)
#define MANY_PARTS     100000 /* as many as get tables of their own */

static bool version_read(struct api_req *r, int64_t campaign_id, struct response_cache_ask *ask,
                         struct err *err)
{
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    int64_t parts = 0, active = 0;
    if (!req_db(r, err) || !apidb_campaign_rows(r->db, campaign_id, &rows, &parts, &active, err)) {
        return false;
    }
    ask->db = r->db;
    ask->strict = ask->strict && parts < MANY_PARTS;
    ask->version = response_cache_version(rows.p, rows.n);
    /* Curves show how far attempts are, which no row of these tells until they end. */
    ask->same_us = ask->fresh_us > 0 && active > 0 ? ask->fresh_us : SAME_ROWS_US;
    return true;
}

bool remembered_answer(struct api_req *r, int64_t campaign_id, const char *key,
                       response_cache_make make, void *ctx, char **ret, struct err *err)
{
    struct response_cache_ask ask = {.key = key, .strict = true};
    return version_read(r, campaign_id, &ask, err) &&
           response_cache_answer(req_answers(r), &ask, make, ctx, ret, err);
}

bool remembered_answer_or_last(struct api_req *r, int64_t campaign_id, const char *key,
                               response_cache_make make, void *ctx, size_t ctx_size, char **ret,
                               struct err *err)
{
    struct response_cache_ask ask = {.key = key, .strict = true};
    ASSERT(r->later == NULL);
    return version_read(r, campaign_id, &ask, err) &&
           response_cache_answer_or_last(req_answers(r), &ask, make, ctx, ctx_size, ret, &r->later,
                                         err);
}

bool remembered_last(struct api_req *r, int64_t campaign_id, const char *key,
                     response_cache_make make, void *ctx, size_t ctx_size, char **ret,
                     struct err *err)
{
    struct response_cache_ask ask = {.key = key, .strict = true};
    ASSERT(r->later == NULL);
    if (!version_read(r, campaign_id, &ask, err)) {
        return false;
    }
    *ret = response_cache_last(req_answers(r), &ask, make, ctx, ctx_size, &r->later);
    return true;
}

bool remembered_curve(struct api_req *r, int64_t campaign_id, const char *key,
                      response_cache_make make, void *ctx, char **ret, struct err *err)
{
    struct response_cache_ask ask = {.key = key, .fresh_us = CURVE_FRESH_US};
    return version_read(r, campaign_id, &ask, err) &&
           response_cache_answer(req_answers(r), &ask, make, ctx, ret, err);
}
