/* Bulk operations: one, its undo, and pages of them. */
#include "store/api/operations.h"
#include "api/server/audit.h"
#include "api/server/paging.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "store/api/campaigns.h"
#include "store/api/page.h"
#include "store/pg/tx.h"

bool operation_get(struct api_req *r, struct err *err)
{
    int64_t id = req_id(r, 0);
    AUTO_BUF struct buf json = BUF_INIT(API_ANSWER_MAX);
    return req_db(r, err) && apidb_operation_get(r->db, id, &json, err) &&
           reply_json(r, 200, buf_str(&json));
}

bool operation_cancel(struct api_req *r, struct err *err)
{
    int64_t id = req_id(r, 0);
    AUTO_BUF struct buf json = BUF_INIT(API_ANSWER_MAX);
    if (!req_db(r, err)) {
        return false;
    }
    AUTO_TX struct store *tx = r->db;
    return tx_begin(tx, TX_WRITE, err) && apidb_operation_undo(tx, id, r->who.token_id, err) &&
           apidb_operation_get(tx, id, &json, err) &&
           req_audit(r, "operation.cancel", arena_printf(&r->arena, "op-%lld", (long long)id), "{}",
                     err) &&
           reply_json(r, 202, buf_str(&json)) && apidb_notify(tx, err) && tx_commit(tx, err);
}

bool operation_list(struct api_req *r, struct err *err)
{
    bool given, down = page_is_down(r, true);
    int64_t n = req_number(r, "page_size"), key[1] = {down ? INT64_MAX : 0};
    if (!page_token_read(r, key, 1, &given, err)) {
        return false;
    }
    const struct apidb_operation_query q = {.campaign_id =
                                                MAX(req_number(r, "campaign"), INT64_C(0)),
                                            .after_id = key[0],
                                            .n = n,
                                            .down = down};
    struct apidb_page page = {.rows = BUF_INIT(API_ANSWER_MAX)};
    bool ok = req_db(r, err) && apidb_operation_list(r->db, &q, &page, err);
    if (ok) {
        buf_addf(&r->out, "{\"operations\":[%s],\"next_page_token\":", buf_cstr(&page.rows));
        if (page.n == n) {
            buf_addf(&r->out, "\"%s\"}\n", page_token_make(r, &page.last_id, 1));
        } else {
            buf_add_cstr(&r->out, "null}\n");
        }
        (void)reply_out(r, 200);
    }
    buf_done(&page.rows);
    return ok;
}
