/* The audit table; see audit.h. */
#include "audit.h"
#include "queries.h"
#include "store/pg/query.h"

#define SCAN_ROWS 20000 /* that a page looks at, at most */

bool apidb_audit(struct store *s, const struct apidb_audit_row *row, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, row->token_id);
    param_text(&p, row->role);
    param_text(&p, row->action);
    param_text(&p, row->subject);
    param_json(&p, row->detail_json);
    param_text(&p, row->request_id);
    param_json(&p, row->before_json);
    return store_run(s, QUERY(API_AUDIT_ADD), &p, NULL, err);
}

bool apidb_audit_page(struct store *s, const struct apidb_audit_query *q, struct buf *ret_rows,
                      int64_t *ret_next, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, q->after_id);
    param_i64(&p, q->n);
    param_i64(&p, q->campaign_id);
    param_text(&p, q->who);
    param_text(&p, q->action);
    param_text(&p, q->projects);
    param_bool(&p, q->admin);
    param_i64(&p, SCAN_ROWS);
    param_bool(&p, q->down);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_AUDIT_PAGE), &p, &res, err)) {
        return false;
    }
    *ret_next = row_i64(res, 0, 0);
    buf_add_cstr(ret_rows, row_text(res, 0, 1));
    return true;
}
