/* A person overrides the gate that holds a stage. */
#include "api/server/audit.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "campaigns.h"
#include "store/api/campaigns.h"
#include "store/pg/tx.h"

/* The gate's own words, with the stage, are kept with who overrode it. */
static bool audit(struct api_req *r, int64_t id, const char *stage, const char *reason,
                  struct err *err)
{
    AUTO_JSON json_t *detail = json_pack("{s:s, s:s}", "stage", stage, "held", reason);
    AUTO_FREE char *text = json_text(detail);
    return req_audit(r, "campaign.override", arena_printf(&r->arena, "c-%lld", (long long)id), text,
                     err);
}

bool campaign_override(struct api_req *r, struct err *err)
{
    int64_t id = req_id(r, 0);
    const char *stage = json_string_value(json_object_get(req_json(r), "stage"));
    struct apidb_wish now;
    struct apidb_gate gate;
    if (!req_db(r, err)) {
        return false;
    }
    AUTO_TX struct store *tx = r->db;
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_campaign_lock(tx, id, &now, err) ||
        !apidb_stage_gate(tx, id, stage, &gate, err)) {
        return false;
    }
    if (!gate.held && !gate.overridden) {
        return err_set(err, ERR_CONFLICT, "stage %.80s is not held by a gate", stage);
    }
    if (!gate.overridden && (!apidb_stage_gate_override(tx, id, stage, err) ||
                             !audit(r, id, stage, gate.reason, err))) {
        return false;
    }
    return campaign_answer(r, id, 202, err) && apidb_notify(tx, err) && tx_commit(tx, err);
}
