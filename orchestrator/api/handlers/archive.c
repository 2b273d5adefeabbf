/* A person archives an ended campaign: its parts and attempts go, its costs stay. */
#include "store/api/archive.h"
#include "api/server/audit.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "campaigns.h"
#include "core/leader/operations.h"
#include "store/api/campaigns.h"
#include "store/pg/tx.h"

/* By the table of verbs, and by what of it still lives. An ended campaign may have been wanted to
 * be cancelled when it ended. */
static bool allowed(struct api_req *r, int64_t id, const struct apidb_wish *now, struct err *err)
{
    enum wanted wanted = campaign_state_terminal(now->state) ? WANTED_RUN : now->wanted;
    enum verb_answer answer = verb_answer_any(VERB_ARCHIVE, now->state, wanted);
    AUTO_BUF struct buf why = BUF_INIT(1024);
    if (!verb_refused(answer) && !apidb_archive_hindrance(r->db, id, &why, err)) {
        return false;
    }
    const char *text = verb_refused(answer) ? verb_refusal(answer) : buf_cstr(&why);
    return text[0] == '\0' ||
           err_set(err, ERR_CONFLICT, "campaign c-%lld is not archived: %s", (long long)id, text);
}

bool campaign_archive(struct api_req *r, struct err *err)
{
    int64_t id;
    struct apidb_wish now;
    bool asked = false;
    if (!req_id(r, 0, "c-", &id, err) || !req_no_body(r, err) || !req_db(r, err)) {
        return false;
    }
    AUTO_TX struct store *tx = r->db;
    const char *subject = arena_printf(&r->arena, "c-%lld", (long long)id);
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_campaign_lock(tx, id, &now, err) ||
        (!now.archived && !allowed(r, id, &now, err)) ||
        !apidb_archive_ask(tx, id, r->who.token_id, &asked, err) ||
        (asked && !req_audit(r, "campaign.archive", subject, "{}", err))) {
        return false;
    }
    return campaign_answer(r, id, 202, err) && apidb_notify(tx, err) && tx_commit(tx, err);
}
