/* The audit trail of requests; see audit.h. */
#include "audit.h"
#include "auth.h"
#include "store/api/audit.h"

bool req_audit(struct api_req *r, const char *action, const char *subject, const char *detail_json,
               struct err *err)
{
    return apidb_audit(r->db, r->who.token_id, role_name(r->who.role), action, subject, detail_json,
                       r->request_id, err);
}
