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
    int64_t n, campaign = 0;
    const char *of = req_query(r, "campaign");
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    if (of != NULL && (!str_starts(str_of(of), "c-") ||
                       !parse_i64(str_of(of + 2), 1, INT64_MAX, &campaign, err))) {
        return err_set(err, ERR_MALFORMED, "campaign: an id such as c-7");
    }
    if (!req_query_i64(r, "limit", 1, 1000, 200, &n, err) || !req_db(r, err) ||
        !apidb_parked(r->db, campaign, n, &rows, err)) {
        return false;
    }
    buf_addf(&r->out, "{\"parked\":%s}\n", buf_cstr(&rows));
    return reply_out(r, 200);
}

bool campaign_unpark(struct api_req *r, struct err *err)
{
    int64_t id, n = 0;
    struct apidb_wish now;
    if (!req_id(r, 0, "c-", &id, err) || !req_no_body(r, err) || !req_db(r, err)) {
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
