/* See quota_learning.h. */
#include "quota_learning.h"
#include "common/retry.h"

#define PROBE_MIN_US (5 * USEC_PER_SEC)
#define PROBE_MAX_US (300 * USEC_PER_SEC)

/* Instances of ours that AWS knows of: accepted and not released, idle pools and strays too. */
static void ours(const struct leader_state *s, const struct live_slots *of, int64_t *ret_type,
                 int64_t *ret_total)
{
    *ret_type = *ret_total = 0;
    for (size_t i = 0; i < s->attempts_n; i++) {
        const struct live_attempt *a = s->attempts[i];
        bool exists = a->row.holds && a->p.state >= ATTEMPT_SUBMITTED;
        if (exists && a->row.market == of->s.market) {
            *ret_total += a->row.instances;
            *ret_type +=
                strcmp(a->row.instance_type, of->s.instance_type) == 0 ? a->row.instances : 0;
        }
    }
    for (size_t i = 0; i < s->strays_n; i++) {
        const struct stray_row *st = &s->strays[i].row;
        if (st->market == of->s.market) {
            *ret_total += st->instances;
            *ret_type += strcmp(st->instance_type, of->s.instance_type) == 0 ? st->instances : 0;
        }
    }
    for (size_t i = 0; i < s->pools_n; i++) {
        const struct pool_row *p = &s->pools[i]->row;
        if (p->state == POOL_AVAILABLE && p->taken_by == 0 && of->s.market == MARKET_ON_DEMAND) {
            *ret_total += p->instances;
            *ret_type += strcmp(p->instance_type, of->s.instance_type) == 0 ? p->instances : 0;
        }
    }
}

bool quota_learning_refused(struct leader_state *s, const struct live_attempt *a, const char *text,
                            usec_t now_us, struct quota_learning_refusal *ret)
{
    struct quota_ledger_refusal r;
    struct live_slots *ls = leader_state_slots(s, a->row.instance_type, a->row.market);
    int64_t type_n;
    int64_t total_n;
    if (!quota_ledger_refusal_parse(text, &r)) {
        return false;
    }
    ours(s, ls, &type_n, &total_n);
    enum quota_ledger_quota q =
        quota_ledger_learn(&ls->s, &s->account, &r, type_n, total_n, now_us);
    if (q == QUOTA_LEDGER_QUOTA_TYPE || q == QUOTA_LEDGER_QUOTA_TOTAL) {
        ls->probe_us = now_us + retry_step_us(PROBE_MIN_US, PROBE_MAX_US, ls->refusals++);
    }
    s->decide = true;
    *ret = (struct quota_learning_refusal){
        .said = r, .ours = type_n, .others = quota_ledger_foreign(&ls->s, now_us)};
    return true;
}

void quota_learning_accepted(struct leader_state *s, const struct live_attempt *a, usec_t now_us)
{
    struct live_slots *ls = leader_state_slots(s, a->row.instance_type, a->row.market);
    int64_t type_n;
    int64_t total_n;
    ours(s, ls, &type_n, &total_n);
    quota_ledger_accepted(&ls->s, &s->account, type_n, total_n, now_us);
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

bool quota_learning_plan(const struct live_slots *ls, usec_t now_us,
                         struct quota_learning_write *ret)
{
    *ret = (struct quota_learning_write){.foreign = quota_ledger_foreign(&ls->s, now_us),
                                         .foreign_us = now_us,
                                         .refused_limit = ls->s.refused_limit};
    return ls->kept_foreign != ret->foreign || ls->kept_limit != ret->refused_limit;
}

void quota_learning_apply(struct live_slots *ls, const struct quota_learning_write *w)
{
    ls->kept_foreign = w->foreign;
    ls->kept_limit = w->refused_limit;
}

bool quota_learning_dirty(const struct leader_state *s, usec_t now_us)
{
    struct quota_learning_write ignored;
    bool any = false;
    for (size_t i = 0; i < s->slots_n; i++) {
        any |= quota_learning_plan(&s->slots[i], now_us, &ignored);
    }
    return any;
}
