/* Quotas and others' use: read from Service Quotas, learned from refusals, believed less with time,
 * and tried again. What was learned is kept in the rows, so that the next leader knows it too.
 *
 * Others' use fades slowly (slots.h), but others may give it back at once: so while it is what
 * keeps something from starting, one instance more than it allows is tried now and then, first
 * after PROBE_MIN_US, twice as long after each refusal. A refusal costs nothing. */
#include "common/clock.h"
#include "common/log.h"
#include "ctl.h"

#define PROBE_MIN_US (5 * USEC_PER_SEC)
#define PROBE_MAX_US (300 * USEC_PER_SEC)

/* Instances of ours that AWS knows of: accepted and not released, idle pools included. */
static void ours(const struct controller *c, const struct live_slots *of, int64_t *ret_type,
                 int64_t *ret_total)
{
    *ret_type = *ret_total = 0;
    for (size_t i = 0; i < c->state.attempts_n; i++) {
        const struct live_attempt *a = c->state.attempts[i];
        bool exists = a->row.holds && a->p.state >= ATTEMPT_SUBMITTED;
        if (exists && a->row.market == of->s.market) {
            *ret_total += a->row.instances;
            *ret_type +=
                strcmp(a->row.instance_type, of->s.instance_type) == 0 ? a->row.instances : 0;
        }
    }
    for (size_t i = 0; i < c->state.pools_n; i++) {
        const struct pool_row *p = &c->state.pools[i]->row;
        if (p->state == POOL_AVAILABLE && p->taken_by == 0 && of->s.market == MARKET_ON_DEMAND) {
            *ret_total += p->instances;
            *ret_type += strcmp(p->instance_type, of->s.instance_type) == 0 ? p->instances : 0;
        }
    }
}

void quota_learning_refused(struct live_attempt *a, const char *text)
{
    struct controller *c = a->io->c;
    struct quota_ledger_refusal r;
    struct live_slots *ls = leader_state_slots(&c->state, a->row.instance_type, a->row.market);
    usec_t now_us = clock_wall_us();
    int64_t type_n;
    int64_t total_n;
    if (!quota_ledger_refusal_parse(text, &r)) {
        return;
    }
    ours(c, ls, &type_n, &total_n);
    enum quota_ledger_quota q =
        quota_ledger_learn(&ls->s, &c->state.account, &r, type_n, total_n, now_us);
    if (q == QUOTA_LEDGER_QUOTA_TYPE || q == QUOTA_LEDGER_QUOTA_TOTAL) {
        int64_t wait_us = PROBE_MIN_US << MIN(ls->refusals, 10);
        ls->refusals++;
        ls->probe_us = now_us + MIN(wait_us, PROBE_MAX_US);
    }
    log_event(LOG_INFO, "quota_refused", LF_S("instance_type", a->row.instance_type),
              LF_S("quota", r.quota), LF_I("limit", r.limit), LF_I("used", r.used),
              LF_I("ours", type_n), LF_I("others", quota_ledger_foreign(&ls->s, now_us)));
    c->state.decide = true;
}

void quota_learning_accepted(struct live_attempt *a)
{
    struct live_slots *ls =
        leader_state_slots(&a->io->c->state, a->row.instance_type, a->row.market);
    usec_t now_us = clock_wall_us();
    int64_t type_n;
    int64_t total_n;
    ours(a->io->c, ls, &type_n, &total_n);
    quota_ledger_accepted(&ls->s, &a->io->c->state.account, type_n, total_n, now_us);
    ls->refusals = 0;
    ls->probe_us = quota_ledger_foreign(&ls->s, now_us) > 0 ? now_us + PROBE_MIN_US : 0;
}

bool quota_learning_slots(const struct live_slots *ls, usec_t now_us, struct quota_ledger *ret)
{
    *ret = ls->s;
    if (ls->probe_us > 0 && now_us >= ls->probe_us) {
        int64_t believed = quota_ledger_foreign(&ls->s, now_us);
        int64_t rest = MAX(0, ls->s.quota - ls->s.held - ls->s.warm_idle); /* others have no more */
        ret->foreign = MAX(0, MIN(believed, rest) - 1);
        ret->foreign_us = now_us;
        return true;
    }
    return false;
}

static bool differs(const struct live_slots *ls, int64_t foreign)
{
    return ls->kept_foreign != foreign || ls->kept_limit != ls->s.refused_limit;
}

bool quota_learning_dirty(struct controller *c)
{
    usec_t now_us = clock_wall_us();
    bool any = false;
    for (size_t i = 0; i < c->state.slots_n; i++) {
        any |= differs(&c->state.slots[i], quota_ledger_foreign(&c->state.slots[i].s, now_us));
    }
    return any;
}

bool quota_learning_write(struct controller *c, struct err *err)
{
    usec_t now_us = clock_wall_us();
    for (size_t i = 0; i < c->state.slots_n; i++) {
        struct live_slots *ls = &c->state.slots[i];
        int64_t foreign = quota_ledger_foreign(&ls->s, now_us);
        if (!differs(ls, foreign)) {
            continue;
        }
        if (!store_slots_learned(c->store, ls->s.instance_type, ls->s.market, foreign, now_us,
                                 ls->s.refused_limit, err)) {
            return false;
        }
        ls->kept_foreign = foreign;
        ls->kept_limit = ls->s.refused_limit;
    }
    return true;
}
