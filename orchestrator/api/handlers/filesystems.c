/* File systems of stages of kind lustre: the list, and deleting one before its time. */
#include "store/api/filesystems.h"
#include "api/server/audit.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "store/api/campaigns.h"
#include "store/pg/tx.h"

bool filesystems_get(struct api_req *r, struct err *err)
{
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    if (!req_db(r, err) ||
        !apidb_filesystems(r->db, req_number(r, "limit"), r->who.projects, &rows, err)) {
        return false;
    }
    buf_addf(&r->out, "{\"filesystems\":%s}\n", buf_cstr(&rows));
    return reply_out(r, 200);
}

bool filesystem_delete(struct api_req *r, struct err *err)
{
    const char *name = arena_strndup(&r->arena, r->params[0].p, r->params[0].n);
    if (!req_db(r, err)) {
        return false;
    }
    AUTO_TX struct store *tx = r->db;
    buf_addf(&r->out, "{\"name\":\"%s\",\"delete_asked\":true}\n", name);
    return tx_begin(tx, TX_WRITE, err) && apidb_filesystem_delete(tx, name, err) &&
           req_audit(r, "filesystem.delete", name, "{}", err) && reply_out(r, 202) &&
           apidb_notify(tx, err) && tx_commit(tx, err);
}
