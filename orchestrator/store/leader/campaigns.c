/* States of campaigns and stages, and alerts. */
#include "campaigns.h"
#include "queries.h"
#include "reason.h"
#include "store/pg/connection_private.h"
#include "store/pg/tx.h"

#define ALERT_CHARS_MAX 1024

bool store_campaign_state(struct store *s, int64_t id, enum campaign_state from,
                          enum campaign_state to, const char *reason, int64_t taken_version,
                          struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    if (from != to && !campaign_edge(from, to)) {
        return err_set(err, ERR_INTERNAL, "campaign: no edge from %s to %s",
                       campaign_state_name(from), campaign_state_name(to));
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    param_text(&p, campaign_state_name(from));
    param_text(&p, campaign_state_name(to));
    param_outside_text(&p, reason, REASON_CHARS_MAX);
    param_i64(&p, taken_version);
    param_bool(&p, campaign_state_terminal(to));
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(CAMPAIGN_STATE), &p, &r, err)) {
        return false;
    }
    if (row_count(r) != 1) {
        return err_set(err, ERR_CONFLICT, "campaign %lld is no longer %s", (long long)id,
                       campaign_state_name(from));
    }
    s->events |= from != to;
    return true;
}

bool store_stage_state(struct store *s, int64_t stage_id, enum stage_state from,
                       enum stage_state to, const char *reason, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    if (from != to && !stage_edge(from, to)) {
        return err_set(err, ERR_INTERNAL, "stage: no edge from %s to %s", stage_state_name(from),
                       stage_state_name(to));
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, stage_id);
    param_text(&p, stage_state_name(from));
    param_text(&p, stage_state_name(to));
    param_outside_text(&p, reason, REASON_CHARS_MAX);
    param_bool(&p, stage_state_terminal(to));
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(STAGE_STATE), &p, &r, err)) {
        return false;
    }
    if (row_count(r) != 1) {
        return err_set(err, ERR_CONFLICT, "stage %lld is no longer %s", (long long)stage_id,
                       stage_state_name(from));
    }
    s->events |= from != to;
    return true;
}

bool store_stage_wait_reason(struct store *s, int64_t stage_id, enum wait_reason r, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, stage_id);
    param_text(&p, wait_reason_name(r));
    return store_run(s, QUERY(STAGE_WAIT_REASON), &p, NULL, err);
}

bool store_stage_unchecked(struct store *s, int64_t stage_id, enum wait_reason r,
                           const char *detail, usec_t again_us, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(PARAM(&p, STAGE_UNCHECKED, REASON), wait_reason_name(r));
    param_outside_text(PARAM(&p, STAGE_UNCHECKED, DETAIL), detail, REASON_CHARS_MAX);
    param_time(PARAM(&p, STAGE_UNCHECKED, AGAIN), again_us);
    param_i64(PARAM(&p, STAGE_UNCHECKED, STAGE), stage_id);
    return store_run(s, QUERY(STAGE_UNCHECKED), &p, NULL, err);
}

bool store_alert(struct store *s, int64_t campaign_id, const char *text, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_outside_text(&p, text, ALERT_CHARS_MAX);
    s->events = true;
    return store_run(s, QUERY(ALERT), &p, NULL, err);
}
