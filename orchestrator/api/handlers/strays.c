/* Jobs, endpoints and file systems that no row stands for: the list, and ending one. */
#include "store/api/strays.h"
#include "api/server/audit.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "store/api/campaigns.h"
#include "store/pg/tx.h"

bool strays_get(struct api_req *r, struct err *err)
{
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    AUTO_BUF struct buf sum = BUF_INIT(API_BODY_MAX);
    if (!req_db(r, err) || !apidb_strays(r->db, req_number(r, "limit"), &rows, &sum, err)) {
        return false;
    }
    buf_addf(&r->out, "{\"sum\":%s,\"strays\":%s}\n", buf_cstr(&sum), buf_cstr(&rows));
    return reply_out(r, 200);
}

bool stray_stop(struct api_req *r, struct err *err)
{
    const char *name = arena_strndup(&r->arena, r->params[0].p, r->params[0].n);
    if (!req_db(r, err)) {
        return false;
    }
    AUTO_TX struct store *tx = r->db;
    buf_addf(&r->out, "{\"job_name\":\"%s\",\"stop_asked\":true}\n", name);
    return tx_begin(tx, TX_WRITE, err) && apidb_stray_stop(tx, name, err) &&
           req_audit(r, "stray.stop", name, "{}", err) && reply_out(r, 202) &&
           apidb_notify(tx, err) && tx_commit(tx, err);
}
