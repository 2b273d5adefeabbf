/* Warm pools and their savings. */
#include "store/api/pools.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"

bool pools_get(struct api_req *r, struct err *err)
{
    int64_t n, campaign = 0;
    const char *of = req_query(r, "campaign");
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    AUTO_BUF struct buf sum = BUF_INIT(API_BODY_MAX);
    if (of != NULL && (!str_starts(str_of(of), "c-") ||
                       !parse_i64(str_of(of + 2), 1, INT64_MAX, &campaign, err))) {
        return err_set(err, ERR_MALFORMED, "campaign: an id such as c-7");
    }
    if (!req_query_i64(r, "limit", 1, 1000, 200, &n, err) || !req_db(r, err) ||
        !apidb_pools(r->db, campaign, n, &rows, &sum, err)) {
        return false;
    }
    buf_addf(&r->out, "{\"sum\":%s,\"pools\":%s}\n", buf_cstr(&sum), buf_cstr(&rows));
    return reply_out(r, 200);
}
