/* Instances allowed, held and free by type, and what they cost. */
#include "store/api/quotas.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"

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
