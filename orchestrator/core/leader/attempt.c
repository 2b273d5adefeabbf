/* See attempt.h. */
#include "attempt.h"

struct live_attempt *leader_add_intended(struct leader_state *s, const struct attempt_row *row,
                                         struct live_campaign *lc)
{
    struct live_attempt *a = leader_state_add_attempt(s, row, lc);
    protocol_intended(&a->p);
    return a;
}

/* The pool that it will leave, and the one it was intended on. */
static void find_pools(struct leader_state *s, struct live_attempt *a)
{
    for (size_t i = 0; i < s->pools_n; i++) {
        struct live_pool *p = s->pools[i];
        if (p->row.attempt_id == a->row.id) {
            a->pool = p;
            p->attempt = a;
        }
        if (p->row.id == a->row.pool_id && p->row.taken_by == a->row.id) {
            a->taken = p;
        }
    }
}

struct live_attempt *leader_take_over_attempt(struct leader_state *s, const struct attempt_row *row,
                                              struct live_campaign *lc,
                                              const struct attempt_takeover *t,
                                              struct protocol_effect *ret_effect)
{
    *ret_effect = (struct protocol_effect){0};
    if (row->epoch == s->epoch) {
        return leader_add_intended(s, row, lc);
    }
    struct live_attempt *a = leader_state_add_attempt(s, row, lc);
    bool goes_on = lc->row.wanted == WANTED_RUN || lc->row.wanted == WANTED_DRAIN;
    a->stopped_by_us = row->unwanted;
    a->created_us = row->created_us;
    a->running_us = row->state == ATTEMPT_RUNNING ? t->now_us : 0;
    find_pools(s, a);
    breaker_started(&a->stage->breaker, row->id);
    protocol_taken_over(row->state, goes_on && !row->unwanted, t->lease_end_us, t->protocol, &a->p,
                        ret_effect);
    return a;
}
