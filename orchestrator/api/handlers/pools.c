/* Warm pools and their savings; ending one. */
#include "store/api/pools.h"
#include "api/server/audit.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "store/api/campaigns.h"
#include "store/pg/tx.h"

bool pools_get(struct api_req *r, struct err *err)
{
    int64_t campaign = MAX(req_number(r, "campaign"), INT64_C(0));
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    AUTO_BUF struct buf sum = BUF_INIT(API_BODY_MAX);
    if (!req_db(r, err) ||
        !apidb_pools(r->db, campaign, r->who.projects, req_number(r, "limit"), &rows, &sum, err)) {
        return false;
    }
    buf_addf(&r->out, "{\"sum\":%s,\"pools\":%s}\n", buf_cstr(&sum), buf_cstr(&rows));
    return reply_out(r, 200);
}

bool pool_end(struct api_req *r, struct err *err)
{
    const char *job = arena_strndup(&r->arena, r->params[0].p, r->params[0].n);
    if (!req_db(r, err)) {
        return false;
    }
    AUTO_TX struct store *tx = r->db;
    buf_addf(&r->out, "{\"job_name\":\"%s\",\"end_asked\":true}\n", job);
    return tx_begin(tx, TX_WRITE, err) && apidb_pool_end(tx, job, err) &&
           req_audit(r, "pool.end", job, "{}", err) && reply_out(r, 202) && apidb_notify(tx, err) &&
           tx_commit(tx, err);
}
