/* Carries warm pools whose jobs have ended, as controller/pool_life.c does. */
#include "core/leader/pool_life.h"
#include "sim_world.h"
#include <stdio.h>

#define CALLS_AT_ONCE 8

void pool_report_of(const struct world *w, const struct job_view *v, struct warm_pool_report *ret)
{
    static const enum warm_pool_status status[] = {[POOL_EXPECTED] = WARM_POOL_NONE,
                                                   [POOL_AVAILABLE] = WARM_POOL_AVAILABLE,
                                                   [POOL_IN_USE] = WARM_POOL_IN_USE,
                                                   [POOL_REUSED] = WARM_POOL_REUSED,
                                                   [POOL_TERMINATED] = WARM_POOL_TERMINATED};
    *ret = (struct warm_pool_report){.status = v->has_pool ? status[v->pool] : WARM_POOL_NONE,
                                     .retained_s = v->retained_s};
    int by = v->has_pool && v->pool == POOL_REUSED ? aws_find(w, v->reused_by) : -1;
    if (by >= 0) {
        (void)snprintf(ret->reused_by, sizeof ret->reused_by, "%s", w->aws.jobs[by].name.s);
    }
}

static bool write_note(struct world *w, struct ctl *c, const struct live_pool *p)
{
    if (!db_begin(w, c)) {
        return false;
    }
    ((struct db_attempt *)db_touch(w, T_ATTEMPT, (size_t)row_of_id(p->row.id)))->end_reason =
        rows_text(w, p->row.end_reason);
    return db_commit(w, c);
}

static void ask(struct world *w, struct ctl *c, struct live_pool *p, enum call_kind kind)
{
    int k = call_new(w, c, kind, -1);
    w->calls[k].attempt = row_of_id(p->row.id);
    w->calls[k].name_hash = name_hash_of(p->row.job.s);
    w->calls[k].request = ATTEMPT(w, row_of_id(p->row.id))->request;
    p->io = (void *)w; /* anything: a call is under way */
    call_send(w, k);
}

void carry_pools(struct world *w, struct ctl *c)
{
    int64_t boot_us = ctl_boot(w, c);
    int calls = 0;
    for (size_t i = 0; i < c->state.pools_n; i++) {
        calls += c->state.pools[i]->io != NULL;
    }
    for (size_t i = 0; i < c->state.pools_n && c->leading && calls < CALLS_AT_ONCE; i++) {
        struct live_pool *p = c->state.pools[i];
        if (p->row.state != POOL_AVAILABLE || p->io != NULL) {
            continue;
        }
        enum pool_action next = leader_pool_next(p, ctl_wall(w, c), boot_us, &c->acted_until_us);
        if (next != POOL_ACT_NONE &&
            call_pace_holds_pool(&c->pace, p, w->cfg.observe_us, boot_us, boot_us)) {
            c->acted_until_us = MIN(c->acted_until_us, p->next_us);
            continue;
        }
        if (next == POOL_ACT_END && !write_note(w, c, p)) {
            return;
        }
        if (next != POOL_ACT_NONE) {
            ask(w, c, p, next == POOL_ACT_END ? CALL_UPDATE : CALL_POOL);
            calls++;
        }
    }
}

static void end_pool(struct world *w, struct ctl *c, struct live_pool *p,
                     const struct pool_writes *pw)
{
    if (!db_begin(w, c)) {
        return;
    }
    if ((pw->swap_with != 0 && !rows_pool_swap(w, pw->end.pool_id, pw->swap_with)) ||
        !rows_pool_end(w, &pw->end)) {
        wrong(w, "I9", "the pool of %s is not as remembered", p->row.job.s);
        ctl_lose(w, c, "a pool could not be closed");
        return;
    }
    if (db_commit(w, c)) {
        leader_apply_pool_end(&c->state, p, pw);
        leader_state_remove_pool(&c->state, p);
    }
}

void carry_pool_reply(struct world *w, struct ctl *c, const struct call *k)
{
    struct live_pool *p = leader_state_pool(&c->state, id_of(k->attempt));
    struct warm_pool_report seen;
    struct pool_writes pw;
    if (p == NULL || p->io == NULL) {
        return;
    }
    p->io = NULL;
    c->state.act = true;
    if (k->kind == CALL_UPDATE) {
        leader_pool_end_answered(p, k->answer != ANSWER_OK, false, ctl_boot(w, c));
        return;
    }
    pool_report_of(w, &k->seen, &seen);
    if (leader_pool_described(p, k->answer != ANSWER_OK, false, ctl_wall(w, c), ctl_boot(w, c),
                              &seen)) {
        leader_plan_pool_seen(&c->state, p, &seen, k->seen.ended != 0, ctl_boot(w, c), &pw);
        leader_apply_pool_seen(&c->state, p, pw.fate, ctl_wall(w, c), ctl_boot(w, c));
        if (pw.fate == POOL_FATE_NOT_BOOKED) {
            wrong(w, "I6", "the pool of %s is not booked: %s", p->row.job.s, pw.error.message);
        } else if (pw.fate == POOL_FATE_OVER) {
            end_pool(w, c, p, &pw);
        }
    }
}
