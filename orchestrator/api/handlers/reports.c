/* Money and progress of a campaign as curves, and the bill of a month. */
#include "store/api/reports.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/response_cache.h"
#include "api/server/routes.h"
#include "remembered_answer.h"
#include "store/api/parts.h"

#define BURN_POINTS       400
#define THROUGHPUT_POINTS 100
#define YIELD_POINTS      200
#define YIELD_READS       4000 /* manifests at most */
#define BILL_CAMPAIGNS    50
#define BILL_FRESH_US     (2 * USEC_PER_SEC)

struct curve_wanted {
    struct store *db;
    int64_t campaign_id;
    struct apidb_stage_row stage;
};

static bool burn_make(void *ctx, struct buf *out, struct err *err)
{
    const struct curve_wanted *of = ctx;
    return apidb_burn(of->db, of->campaign_id, BURN_POINTS, out, err);
}

bool burn_get(struct api_req *r, struct err *err)
{
    struct curve_wanted of = {.campaign_id = req_id(r, 0)};
    AUTO_FREE char *json = NULL;
    if (!req_db(r, err)) {
        return false;
    }
    of.db = r->db;
    const char *key = arena_printf(&r->arena, "burn %lld", (long long)of.campaign_id);
    return remembered_curve(r, of.campaign_id, key, burn_make, &of, &json, err) &&
           reply_json(r, 200, str_of(json));
}

/* The curve of the stage that the request names, kept under `what` and the stage's id. */
static bool stage_curve(struct api_req *r, const char *what, response_cache_make make,
                        struct err *err)
{
    struct curve_wanted of = {.campaign_id = req_id(r, 0)};
    AUTO_FREE char *json = NULL;
    if (!req_db(r, err) ||
        !apidb_stage_find(r->db, of.campaign_id, req_query(r, "stage"), &of.stage, err)) {
        return false;
    }
    of.db = r->db;
    const char *key = arena_printf(&r->arena, "%s %lld %lld", what, (long long)of.campaign_id,
                                   (long long)of.stage.id);
    return remembered_curve(r, of.campaign_id, key, make, &of, &json, err) &&
           reply_json(r, 200, str_of(json));
}

static bool throughput_make(void *ctx, struct buf *out, struct err *err)
{
    const struct curve_wanted *of = ctx;
    AUTO_BUF struct buf spans = BUF_INIT(API_BODY_MAX);
    struct json_out w;
    if (!apidb_throughput(of->db, of->stage.id, THROUGHPUT_POINTS, &spans, err)) {
        return false;
    }
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_str(&w, "stage", of->stage.name);
    json_out_raw(&w, "spans", buf_str(&spans));
    json_out_end_object(&w);
    return true;
}

bool throughput_get(struct api_req *r, struct err *err)
{
    return stage_curve(r, "throughput", throughput_make, err);
}

static bool yield_make(void *ctx, struct buf *out, struct err *err)
{
    const struct curve_wanted *of = ctx;
    AUTO_BUF struct buf curve = BUF_INIT(API_BODY_MAX);
    int64_t parts = of->stage.tasks;
    const struct apidb_yield_query q = {
        .campaign_id = of->campaign_id,
        .stage_id = of->stage.id,
        .parts = parts,
        .every = MAX((parts + YIELD_READS - 1) / YIELD_READS, INT64_C(1)),
        .range = MAX((parts + YIELD_POINTS - 1) / YIELD_POINTS, INT64_C(1))};
    struct json_out w;
    if (!apidb_yield(of->db, &q, &curve, err)) {
        return false;
    }
    ASSERT(curve.n > 2); /* "{...}", whose inside goes on the answer */
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_str(&w, "stage", of->stage.name);
    json_out_i64(&w, "every", q.every);
    buf_add_cstr(out, ",");
    buf_add(out, curve.p + 1, curve.n - 1);
    return true;
}

bool yield_get(struct api_req *r, struct err *err)
{
    return stage_curve(r, "yield", yield_make, err);
}

struct bill_wanted {
    struct store *db;
    struct apidb_bill_query q;
};

static bool bill_make(void *ctx, struct buf *out, struct err *err)
{
    const struct bill_wanted *of = ctx;
    return apidb_bill(of->db, &of->q, out, err);
}

bool bill_get(struct api_req *r, struct err *err)
{
    struct bill_wanted of = {.q = {.month = req_query(r, "month"),
                                   .projects = r->who.projects,
                                   .tag = req_query(r, "tag"),
                                   .campaigns = BILL_CAMPAIGNS}};
    AUTO_FREE char *json = NULL;
    if (!req_db(r, err)) {
        return false;
    }
    of.db = r->db;
    const char *tag = of.q.tag != NULL ? of.q.tag : "";
    const char *key =
        arena_printf(/* a hash, since a tag may be longer than a key */
                     &r->arena, "bill %s %016llx %s", of.q.month != NULL ? of.q.month : "now",
                     (unsigned long long)response_cache_version(tag, strlen(tag)), of.q.projects);
    const struct response_cache_ask ask = {.key = key, .fresh_us = BILL_FRESH_US, .db = r->db};
    return response_cache_answer(req_answers(r), &ask, bill_make, &of, &json, err) &&
           reply_json(r, 200, str_of(json));
}
