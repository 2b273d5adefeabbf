/* The audit table; see audit.h. */
#include "audit.h"
#include "queries.h"
#include "store/pg/query.h"

#define LOOK_AT_MIN 500   /* rows that a page looks at first, */
#define LOOK_AT_MAX 10000 /* and at most */

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

/* Looks at the next rows and appends those that fit. *q goes on behind them; *ret_looked less than
 * look_at: there are no more. */
static bool page_some(struct store *s, struct apidb_audit_query *q, int64_t look_at,
                      struct buf *ret_rows, int64_t *ret_looked, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, q->after_id);
    param_i64(&p, q->n);
    param_i64(&p, q->campaign_id);
    param_text(&p, q->who);
    param_text(&p, q->action);
    param_text(&p, q->projects);
    param_bool(&p, q->admin);
    param_i64(&p, look_at);
    param_bool(&p, q->down);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_AUDIT_PAGE), &p, &res, err)) {
        return false;
    }
    int64_t found = row_i64(res, 0, 1);
    buf_add_cstr(ret_rows, ret_rows->n > 0 && found > 0 ? "," : "");
    buf_add_cstr(ret_rows, row_text(res, 0, 0));
    q->n -= found;
    q->after_id = row_i64_or(res, 0, q->n == 0 ? 2 : 3, q->after_id);
    *ret_looked = row_i64(res, 0, 4);
    return true;
}

bool apidb_audit_page(struct store *s, const struct apidb_audit_query *q, struct buf *ret_rows,
                      int64_t *ret_next, struct err *err)
{
    struct apidb_audit_query rest = *q;
    /* an index has the rows of a campaign, and those of one action */
    bool by_action = q->campaign_id == 0 && strchr(q->action, '.') != NULL;
    bool filters = q->who[0] != '\0' || (q->action[0] != '\0' && !by_action) ||
                   q->projects[0] != '\0' || !q->admin;
    int64_t look_at = filters ? MAX(q->n, LOOK_AT_MIN) : q->n, looked;
    *ret_next = 0;
    for (int64_t left = LOOK_AT_MAX; left > 0 && rest.n > 0; left -= looked) {
        look_at = MIN(look_at, left);
        if (!page_some(s, &rest, look_at, ret_rows, &looked, err)) {
            return false;
        }
        bool more = looked == look_at || rest.n == 0;
        *ret_next = more ? rest.after_id : 0;
        if (!more) {
            break;
        }
        look_at *= 4;
    }
    return true;
}
