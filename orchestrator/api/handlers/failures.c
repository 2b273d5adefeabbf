/* Failed parts of a campaign by cause. */
#include "store/api/failures.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "store/api/parts.h"

bool failures_get(struct api_req *r, struct err *err)
{
    int64_t id, parts, final;
    struct apidb_stage_row stage;
    const char *name = req_query(r, "stage");
    AUTO_BUF struct buf groups = BUF_INIT(API_ANSWER_MAX);
    if (!req_id(r, 0, "c-", &id, err) || !req_db(r, err) ||
        !apidb_stage_find(r->db, id, name, &stage, err) ||
        !apidb_failures(r->db, id, name != NULL ? stage.id : 0, &groups, &parts, &final, err)) {
        return false;
    }
    buf_addf(&r->out, "{\"parts\":%lld,\"final\":%lld,\"groups\":%s}\n", (long long)parts,
             (long long) final, buf_cstr(&groups));
    reply_etag_of_body(r, "");
    return reply_out(r, 200);
}
