/* Instances allowed, held and free by type, and what they cost. */
#include "store/api/quotas.h"
#include "api/server/audit.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "common/cleanup.h"
#include "store/api/campaigns.h"
#include "store/pg/tx.h"
#include <stdio.h>

#define ASK_US (25 * USEC_PER_SEC)

bool quotas_get(struct api_req *r, struct err *err)
{
    AUTO_BUF struct buf rows = BUF_INIT(API_BODY_MAX);
    if (!req_db(r, err) || !apidb_quotas(r->db, &rows, err)) {
        return false;
    }
    buf_addf(&r->out, "{\"quotas\":%s}\n", buf_cstr(&rows));
    return reply_out(r, 200);
}

bool prices_get(struct api_req *r, struct err *err)
{
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    if (!req_db(r, err) || !apidb_prices(r->db, &rows, err)) {
        return false;
    }
    buf_addf(&r->out, "{\"prices\":%s}\n", buf_cstr(&rows));
    return reply_out(r, 200);
}

/* What AWS calls the quota of a type; market: a word of the request's schema. */
static const char *quota_name(struct api_req *r, const char *type, const char *market)
{
    bool warm = strcmp(market, quota_market_name(MARKET_ON_DEMAND, true)) == 0;
    const char *what = warm                                  ? "training warm pool usage"
                       : market_parse(market) == MARKET_SPOT ? "spot training job usage"
                                                             : "training job usage";
    return arena_printf(&r->arena, "%s for %s", type, what);
}

/* Ask AWS; its {"id", "status"} to the caller. */
static bool ask(struct api_req *r, const char *name, int64_t value, json_t **ret, struct err *err)
{
    struct bridge_question q = {.kind = BRIDGE_QUOTA, .max = value};
    CLEANUP(bridge_reply_done)
    struct bridge_reply reply = {0};
    (void)snprintf(q.uri, sizeof q.uri, "%s", name);
    return req_bridge(r, &q, ASK_US, &reply, err) &&
           json_parse(buf_str(&reply.json), reply.json.n, ret, err);
}

bool quota_ask(struct api_req *r, struct err *err)
{
    const char *type = arena_strndup(&r->arena, r->params[0].p, r->params[0].n);
    const char *market = json_string_value(json_object_get(req_json(r), "market"));
    int64_t value = json_integer_value(json_object_get(req_json(r), "value"));
    AUTO_JSON json_t *asked = NULL;
    market = market != NULL ? market : market_name(MARKET_ON_DEMAND);
    const char *name = quota_name(r, type, market);
    if (!ask(r, name, value, &asked, err) || !req_db(r, err)) {
        return false;
    }
    const char *id = json_string_value(json_object_get(asked, "id"));
    AUTO_JSON json_t *answer = json_pack(
        "{s:s, s:s, s:s, s:I, s:s, s:O}", "instance_type", type, "market", market, "quota", name,
        "value", (json_int_t)value, "id", id, "status", json_object_get(asked, "status"));
    AUTO_FREE char *text = json_text(answer);
    AUTO_TX struct store *tx = r->db;
    buf_addf(&r->out, "%s\n", text);
    return tx_begin(tx, TX_WRITE, err) &&
           apidb_quota_request_put(tx, id, type, market, value, err) &&
           req_audit(r, "quota.request", type, text, err) && reply_out(r, 202) &&
           tx_commit(tx, err);
}
