/* The cost of a campaign, by stage and by cause. */
#include "store/api/cost.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"

bool cost_get(struct api_req *r, struct err *err)
{
    int64_t id;
    const char *by = req_query(r, "by");
    if (by != NULL && strcmp(by, "stage") != 0 && strcmp(by, "cause") != 0) {
        return err_set(err, ERR_MALFORMED, "query parameter 'by': stage or cause");
    }
    AUTO_BUF struct buf total = BUF_INIT(API_BODY_MAX);
    AUTO_BUF struct buf stages = BUF_INIT(API_BODY_MAX);
    AUTO_BUF struct buf causes = BUF_INIT(API_BODY_MAX);
    if (!req_id(r, 0, "c-", &id, err) || !req_db(r, err) ||
        !apidb_cost(r->db, id, &total, &stages, &causes, err)) {
        return false;
    }
    ASSERT(total.n > 2); /* "{...}" */
    buf_add(&r->out, total.p, total.n - 1);
    if (by == NULL || strcmp(by, "stage") == 0) {
        buf_addf(&r->out, ",\"by_stage\":%s", buf_cstr(&stages));
    }
    if (by == NULL || strcmp(by, "cause") == 0) {
        buf_addf(&r->out, ",\"by_cause\":%s", buf_cstr(&causes));
    }
    buf_add_cstr(&r->out, "}\n");
    reply_etag_of_body(r, "");
    return reply_out(r, 200);
}
