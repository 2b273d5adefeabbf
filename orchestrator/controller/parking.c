/* See parking.h. */
#include "parking.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "metrics.h"
#include "store/leader/campaigns.h"
#include "store/leader/parked.h"
#include <stdio.h>

struct park_arg {
    struct parking_subject who;
    const char *reason;
};

static bool write_parked(struct controller *c, void *arg, struct err *err)
{
    const struct park_arg *a = arg;
    const struct parked_row row = {a->who.kind, a->who.ref_id, a->who.campaign_id};
    char alert[1024];
    (void)snprintf(alert, sizeof alert, "%s %lld is parked: %.900s", parked_kind_name(row.kind),
                   (long long)row.ref_id, a->reason);
    return store_park(c->store, &row, a->reason, alert, err);
}

static bool write_unparked(struct controller *c, void *arg, struct err *err)
{
    const struct parking_subject *who = arg;
    return store_unpark(c->store, who->kind, who->ref_id, err);
}

/* Why its parts wait, where the row that says so is not locked too. */
static bool write_locked(struct controller *c, void *arg, struct err *err)
{
    struct live_campaign *lc = arg;
    for (int k = 0; k < lc->stages_n; k++) {
        const struct live_stage *ls = &lc->stages[k];
        if (parking_tells_stage(ls) &&
            !store_stage_wait_reason(c->store, ls->row.id, WAIT_LOCKED, err)) {
            return false;
        }
    }
    return true;
}

static void tell_locked(struct controller *c, const struct parking_subject *who,
                        const struct err *err)
{
    struct err ignored;
    struct live_campaign *lc = leader_state_campaign(&c->state, who->campaign_id);
    log_event(LOG_WARN, "campaign_locked", LF_I("campaign", who->campaign_id),
              LF_S("sqlstate", err->sqlstate), LF_ERR(err));
    if (lc == NULL || leader_try(c, write_locked, lc, &ignored) != TX_DONE) {
        return;
    }
    parking_told_stages(lc);
}

static void tell_parked(struct controller *c, const struct parking_subject *who,
                        const struct err *err)
{
    struct err why;
    struct park_arg a = {.who = *who, .reason = err->message};
    log_event(LOG_ERROR, "parked", LF_S("kind", parked_kind_name(who->kind)),
              LF_I("id", who->ref_id), LF_I("campaign", who->campaign_id),
              LF_S("sqlstate", err->sqlstate), LF_ERR(err));
    enum tx_meaning meaning = leader_try(c, write_parked, &a, &why);
    if (meaning == TX_DONE) {
        parking_kept(&c->state, who);
    } else if (meaning != TX_LOST) {
        if (log_allow("parked_not_written")) {
            log_event(LOG_ERROR, "parked_not_written", LF_I("id", who->ref_id), LF_ERR(&why));
        }
    }
}

void parking_refuse(struct controller *c, struct parking_subject who, enum tx_meaning why,
                    const struct err *err)
{
    ASSERT(why == TX_BUSY || why == TX_REFUSED);
    bool news = parking_failed(&c->state, &who, why, clock_boot_us());
    switch (parking_tells(why, news)) {
    case PARKING_TELL_NOBODY:
        break;
    case PARKING_TELL_PARKED:
        tell_parked(c, &who, err);
        break;
    case PARKING_TELL_LOCKED:
        tell_locked(c, &who, err);
        break;
    }
}

bool parking_due(const struct controller *c, struct parking_subject who)
{
    return c->state.parked_n == 0 || parking_may(&c->state, &who, clock_boot_us());
}

/* Not written: parking_tick tries again. */
static void unpark(struct controller *c, struct parking_subject who)
{
    if (leader_tx(c, write_unparked, &who)) {
        parking_gone(&c->state, &who);
    }
}

void parking_done(struct controller *c, struct parking_subject who)
{
    if (parking_over(&c->state, &who, clock_boot_us())) {
        log_event(LOG_INFO, "parking_over", LF_S("kind", parked_kind_name(who.kind)),
                  LF_I("id", who.ref_id));
        unpark(c, who);
    }
}

bool parking_tx(struct controller *c, struct parking_subject who, leader_fn *fn, void *arg)
{
    struct err err;
    enum tx_meaning meaning = leader_try(c, fn, arg, &err);
    if (meaning == TX_DONE) {
        parking_done(c, who);
        return true;
    }
    if (meaning != TX_LOST) {
        parking_refuse(c, who, meaning, &err);
    }
    return false;
}

bool parking_read(struct controller *c, struct err *err)
{
    AUTO_FREE struct parked_row *rows = NULL;
    size_t n = 0;
    if (!view_parked(c->store, &rows, &n, err)) {
        return false;
    }
    if (parking_take(&c->state, rows, n)) {
        log_event(LOG_INFO, "unparked", LF_I("left", parking_n(&c->state)));
        c->state.act = c->state.decide = true;
    }
    return true;
}

void parking_tick(struct controller *c)
{
    struct parking_subject who;
    int64_t locked = 0;
    while (c->leading && parking_row_due(&c->state, clock_boot_us(), &who)) {
        unpark(c, who);
    }
    parking_mark(&c->state, clock_boot_us());
    for (size_t i = 0; i < c->state.campaigns_n; i++) {
        locked += c->state.campaigns[i]->set_aside == WAIT_LOCKED;
    }
    metric_set(METRIC_PARKED, parking_n(&c->state));
    metric_set(METRIC_LOCKED, locked);
}
