/* People hold parts that wait, some or all of a campaign, and release them: through store/api, as
 * api/handlers do. Only some worlds have such people. In the calm they release what is held. What
 * must hold: no job of a held part begins, and no part is held of a campaign that was cancelled. */
#include "core/leader/operations.h"
#include "deep_verbs.h"
#include "store/api/campaigns.h"
#include "store/api/operations.h"
#include "store/pg/tx.h"
#include <stdio.h>

#define PARTS_MAX 6

struct chosen_parts {
    int32_t parts[PARTS_MAX];
    size_t n; /* 0: all */
    char json[128];
};

static void choose(struct chosen_parts *ret)
{
    struct rng *r = &deep->rng_holds;
    ret->n = rng_chance(r, 0.25) ? 0 : (size_t)between(r, 1, PARTS_MAX);
    int at = snprintf(ret->json, sizeof ret->json, "{");
    for (size_t i = 0; i < ret->n; i++) {
        ret->parts[i] = (int32_t)between(r, 0, 30);
        at += snprintf(ret->json + at, sizeof ret->json - (size_t)at, "%s%d",
                       i == 0 ? "\"parts\": [" : ", ", ret->parts[i]);
    }
    (void)snprintf(ret->json + at, sizeof ret->json - (size_t)at, "%s}", ret->n > 0 ? "]" : "");
}

static bool ask(struct campaign *c, enum verb verb, const struct chosen_parts *which,
                struct err *err)
{
    struct apidb_selector sel = {.campaign_id = c->id, .parts = which->parts, .parts_n = which->n};
    struct apidb_match m = {.sample = BUF_INIT(4096)};
    AUTO_TX struct store *tx = deep->api;
    struct apidb_wish now;
    int64_t id;
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_campaign_lock(tx, c->id, &now, err)) {
        return false;
    }
    verbs_met(c, verb, &now, 0);
    if (!verbs_allow(verb, &now, err)) {
        return false;
    }
    bool ok = apidb_hold_count(tx, &sel, verb_parts_from(verb), &m, err) &&
              apidb_operation_insert(tx, c->id, verb_name(verb), which->json, "{}", m.parts,
                                     "people", &id, err) &&
              apidb_notify(tx, err) && tx_commit(tx, err);
    buf_done(&m.sample);
    return ok;
}

static void verb_on(struct campaign *c, enum verb verb, const struct chosen_parts *which)
{
    struct err err = ERR_INIT;
    bool ok = ask(c, verb, which, &err);
    trace("people: %s %s of c-%lld%s%s", verb_name(verb), which->json, (long long)c->id,
          ok ? "" : ": ", ok ? "" : err.message);
}

bool holds_verb(void)
{
    struct rng *r = &deep->rng_holds;
    if (!deep->holds || deep->calm || !rng_chance(r, 0.4)) {
        return false;
    }
    struct campaign *c = &deep->campaigns[rng_below(r, (uint64_t)deep->campaigns_n)];
    if (c->id > 0 && deep->now_us >= deep->db_down_until_us) {
        struct chosen_parts which;
        choose(&which);
        verb_on(c, rng_chance(r, 0.6) ? VERB_HOLD : VERB_RELEASE, &which);
    }
    return true;
}

void holds_care(struct campaign *c)
{
    static const struct chosen_parts all = {.json = "{}"};
    if (deep->holds) {
        verb_on(c, VERB_RELEASE, &all);
    }
}
