/* The audit table; see audit.h. */
#include "audit.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_audit(struct store *s, const char *token_id, const char *role, const char *action,
                 const char *subject, const char *detail_json, const char *request_id,
                 struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, token_id);
    param_text(&p, role);
    param_text(&p, action);
    param_text(&p, subject);
    param_json(&p, detail_json);
    param_text(&p, request_id);
    return store_run(s, QUERY(API_AUDIT_ADD), &p, NULL, err);
}
