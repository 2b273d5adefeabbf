/* Warm pools and their savings; ending one. */
#include "store/api/pools.h"
#include "api/server/audit.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/response_cache.h"
#include "api/server/routes.h"
#include "common/cleanup.h"
#include "store/api/campaigns.h"
#include "store/pg/tx.h"

#define SAME_US (10 * USEC_PER_SEC)

struct counted {
    struct store *db;
    struct apidb_pools_of of;
};

static bool counts_make(void *ctx, struct buf *out, struct err *err)
{
    const struct counted *c = ctx;
    int64_t all, reused;
    if (!apidb_pools_count(c->db, &c->of, &all, &reused, err)) {
        return false;
    }
    buf_addf(out, "\"pools\":%lld,\"reused\":%lld", (long long)all, (long long)reused);
    return true;
}

/* To count them all is dear, and pages ask at each event: the counts are kept while no pool has
 * begun or ended. */
static bool sum_out(struct api_req *r, const struct apidb_pools_of *of, struct buf *out,
                    struct err *err)
{
    struct counted c = {r->db, *of};
    struct apidb_pools_now now;
    AUTO_FREE char *counts = NULL;
    if (!apidb_pools_now(r->db, of, &now, err)) {
        return false;
    }
    const int64_t input[] = {now.newest_id, now.open};
    const struct response_cache_ask ask = {
        .key = arena_printf(&r->arena, "pools %lld %s", (long long)of->campaign_id, of->projects),
        .version = response_cache_version(input, sizeof input),
        .same_us = SAME_US,
        .db = r->db};
    if (!response_cache_answer(req_answers(r), &ask, counts_make, &c, &counts, err)) {
        return false;
    }
    buf_addf(out, "{%s,\"open\":%lld,\"idle_seconds\":%lld,\"idle_micro_usd\":%lld}", counts,
             (long long)now.open, (long long)now.idle_seconds, (long long)now.idle_musd);
    return true;
}

bool pools_get(struct api_req *r, struct err *err)
{
    const struct apidb_pools_of of = {MAX(req_number(r, "campaign"), INT64_C(0)), r->who.projects};
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    AUTO_BUF struct buf sum = BUF_INIT(API_BODY_MAX);
    if (!req_db(r, err) || !apidb_pools(r->db, &of, req_number(r, "limit"), &rows, err) ||
        !sum_out(r, &of, &sum, err)) {
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
