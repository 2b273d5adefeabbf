/* See endpoint_extend.h. */
#include "endpoint_extend.h"
#include "core/money/cost.h"

bool leader_plan_endpoint_extension(const struct live_endpoint *e, struct endpoint_row *ret)
{
    const struct endpoint_row *r = &e->row;
    struct err ignored = ERR_INIT;
    musd_t worst_musd;
    *ret = *r;
    ret->extend_seen_us = r->extend_us;
    if (r->state != ENDPOINT_IN_SERVICE || r->extend_us == r->extend_seen_us) {
        return false;
    }
    int64_t ttl_s = (r->extend_us - r->in_service_us + USEC_PER_SEC - 1) / USEC_PER_SEC;
    if (ttl_s > r->ttl_s &&
        cost_worst_case(r->price_musd_per_hour, r->instances, ttl_s, 0, &worst_musd, &ignored)) {
        ret->ttl_s = ttl_s;
        ret->reserved_musd = MAX(worst_musd, r->reserved_musd);
    }
    return true;
}

void leader_apply_endpoint_extension(struct leader_state *s, struct live_endpoint *e,
                                     const struct endpoint_row *row, bool refused)
{
    musd_t more_musd = row->reserved_musd - e->row.reserved_musd;
    ASSERT(more_musd >= 0 && row->ttl_s >= e->row.ttl_s);
    if (refused) {
        e->row.extend_seen_us = row->extend_seen_us;
        return;
    }
    e->row = *row;
    e->account.reserved_musd += more_musd;
    leader_endpoint_money(s, row, more_musd, 0);
    s->act = true;
}
