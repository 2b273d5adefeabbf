/* What costs money at this moment: jobs, warm pools, endpoints, file systems and strays. */
#include "store/api/billable.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"

bool billable_get(struct api_req *r, struct err *err)
{
    if (!req_db(r, err) || !apidb_billable(r->db, req_number(r, "limit"), &r->out, err)) {
        return false;
    }
    buf_add_cstr(&r->out, "\n");
    return reply_out(r, 200);
}
