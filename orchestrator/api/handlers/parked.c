/* What the leader has set aside: the list, and letting a campaign's be tried again. */
#include "store/api/parked.h"
#include "api/server/audit.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "store/api/campaigns.h"
#include "store/pg/tx.h"

bool parked_get(struct api_req *r, struct err *err)
{
    int64_t campaign = MAX(req_number(r, "campaign"), INT64_C(0));
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    if (!req_db(r, err) || !apidb_parked(r->db, campaign, req_number(r, "limit"), &rows, err)) {
        return false;
    }
    buf_addf(&r->out, "{\"parked\":%s}\n", buf_cstr(&rows));
    return reply_out(r, 200);
}

bool campaign_unpark(struct api_req *r, struct err *err)
{
    int64_t id = req_id(r, 0), n = 0;
    struct apidb_wish now;
    if (!req_db(r, err)) {
        return false;
    }
    AUTO_TX struct store *tx = r->db;
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_campaign_lock(tx, id, &now, err) ||
        !apidb_unpark(tx, id, &n, err)) {
        return false;
    }
    const char *subject = arena_printf(&r->arena, "c-%lld", (long long)id);
    const char *detail = arena_printf(&r->arena, "{\"unparked\":%lld}", (long long)n);
    buf_addf(&r->out, "%s\n", detail);
    return (n == 0 || req_audit(r, "campaign.unpark", subject, detail, err)) && reply_out(r, 202) &&
           apidb_notify(tx, err) && tx_commit(tx, err);
}
