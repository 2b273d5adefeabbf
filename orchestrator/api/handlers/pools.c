/* Warm pools and their savings. */
#include "store/api/pools.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"

bool pools_get(struct api_req *r, struct err *err)
{
    int64_t campaign = MAX(req_number(r, "campaign"), INT64_C(0));
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    AUTO_BUF struct buf sum = BUF_INIT(API_BODY_MAX);
    if (!req_db(r, err) ||
        !apidb_pools(r->db, campaign, req_number(r, "limit"), &rows, &sum, err)) {
        return false;
    }
    buf_addf(&r->out, "{\"sum\":%s,\"pools\":%s}\n", buf_cstr(&sum), buf_cstr(&rows));
    return reply_out(r, 200);
}
