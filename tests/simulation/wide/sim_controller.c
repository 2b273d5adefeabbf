/* A controller: its clocks, timers and crashes, and its pass after each event: record, look at
 * the store, decide and intend, act. The order is that of controller/tick.c. */
#include "core/leader/attempt.h"
#include "core/leader/wall_clock.h"
#include "sim_world.h"

#define DECIDE_EVERY_US (30 * SEC)   /* at least this often, also without a known change */
#define LEARNED_FROM_US (4 * MINUTE) /* AWS_SKEW_TOLERATED_US */

int64_t ctl_boot(const struct world *w, const struct ctl *c)
{
    return c->boot_ahead_us + w->now_us + w->now_us / 1000 * c->drift_ppm / 1000;
}

usec_t ctl_wall(const struct world *w, struct ctl *c)
{
    usec_t wall_us = SIM_EPOCH_US + w->now_us + c->wall_ahead_us;
    (void)leader_wall_clock(&c->state, wall_us, ctl_boot(w, c), c->aws_told_us, 0);
    return wall_us;
}

void ctl_learns(struct ctl *c)
{
    int64_t off_us = -c->wall_ahead_us - c->aws_told_us;
    if (off_us > LEARNED_FROM_US || off_us < -LEARNED_FROM_US) {
        c->aws_told_us = -c->wall_ahead_us;
    }
}

void ctl_protocol(const struct world *w, struct protocol_config *ret)
{
    leader_protocol_config(w->cfg.window_us, ret);
}

void ctl_timer(struct world *w, struct ctl *c, enum timer t, int64_t after_us)
{
    ev_push(w, w->now_us + after_us, EV_TIMER, c->id, ++c->timer_gen[t], (int)t, 0);
}

bool ctl_may_send(const struct world *w, const struct ctl *c)
{
    return c->leading && protocol_may_sign(c->lease_end_us, ctl_boot(w, c));
}

void ctl_init(struct world *w, int id)
{
    struct ctl *c = &w->ctl[id];
    char name[] = "ctl0";
    struct rng root;
    name[3] = (char)('0' + id);
    rng_seed(&root, w->cfg.seed);
    rng_split(&root, name, &c->rng);
    leader_state_init(&c->state);
    rng_split(&c->rng, "leader", &c->state.rng);
    c->id = id;
    c->boot_ahead_us = between(&c->rng, 0, 1000) * HOUR;
    c->drift_ppm = between(&c->rng, -200, 200);
    c->wall_ahead_us = between(&c->rng, -5, 5) * SEC;
    ev_push(w, between(&c->rng, 0, 3) * SEC, EV_START, id, 0, 0, 0);
}

void ctl_done(struct world *w, int id)
{
    struct ctl *c = &w->ctl[id];
    load_clear(c);
    leader_state_done(&c->state);
}

void ctl_start(struct world *w, struct ctl *c)
{
    if (c->up) {
        return;
    }
    c->up = true;
    c->aws_told_us = 0;
    c->lead++;
    c->seen_at_us = 0;
    ctl_timer(w, c, TIMER_STANDBY, 0);
}

/* The session to the store closes. It releases the advisory lock, unless the server does not
 * notice. */
static void close_session(struct world *w, struct ctl *c)
{
    if (w->db.lock_by == c->id && db_reachable(w, c) && c->session == w->db.instance) {
        w->db.lock_by = -1;
    }
    c->session = -1;
}

static void let_go(struct world *w, struct ctl *c)
{
    c->leading = false;
    c->lead++;
    c->seen_at_us = 0;
    c->lost = true;
    close_session(w, c);
}

void ctl_lose(struct world *w, struct ctl *c, const char *why)
{
    if (!c->leading) {
        return;
    }
    tell(w, -1, "controller %d lets go: %s", c->id, why);
    trace(w, 0x105e, (uint64_t)c->id);
    if (w->db.in_tx) {
        db_abort(w);
    }
    let_go(w, c);
    ctl_timer(w, c, TIMER_STANDBY, 200 * 1000);
}

void ctl_crash(struct world *w, struct ctl *c)
{
    if (!c->up) {
        return;
    }
    tell(w, -1, "controller %d crashes", c->id);
    trace(w, 0xc4a54, (uint64_t)c->id);
    if (c->leading) {
        let_go(w, c);
    }
    c->up = c->frozen = false;
    for (int t = 0; t < TIMERS; t++) {
        c->timer_gen[t]++;
    }
    ev_push(w, w->now_us + between(&c->rng, 1, 20) * SEC, EV_START, c->id, 0, 0, 0);
}

void ctl_freeze(struct world *w, struct ctl *c, int64_t for_us)
{
    if (!c->up || c->frozen) {
        return;
    }
    tell(w, -1, "controller %d freezes for %lld ms", c->id, (long long)(for_us / 1000));
    c->frozen = true;
    c->frozen_until_us = w->now_us + for_us;
    ev_push(w, c->frozen_until_us, EV_THAW, c->id, 0, 0, 0);
}

static bool look(struct world *w, struct ctl *c)
{
    if (!c->state.look_at_db || fault(w, FAULT_VIEW_STALE)) {
        return true;
    }
    c->state.look_at_db = false;
    return load_changes(w, c) && carry_life(w, c);
}

void ctl_pass(struct world *w, struct ctl *c)
{
    if (!c->leading || !carry_records(w, c) || !look(w, c)) {
        return;
    }
    if (c->state.decide && !c->hold) {
        c->state.decide = false;
        carry_intents(w, c);
    }
    if (c->leading && !c->frozen && (c->state.act || ctl_boot(w, c) >= c->acted_until_us)) {
        execute_tick(w, c);
        (void)(c->leading && carry_records(w, c));
    }
}

static void on_timer(struct world *w, struct ctl *c, enum timer t)
{
    switch (t) {
    case TIMER_TICK:
        c->state.look_at_db = c->state.act = true;
        c->state.decide |= c->rate_waits || ctl_boot(w, c) >= c->decide_at_us ||
                           ctl_boot(w, c) - c->decided_us >= DECIDE_EVERY_US;
        ctl_timer(w, c, TIMER_TICK, w->cfg.tick_us);
        return;
    case TIMER_ACT:
        c->state.act = true;
        return;
    case TIMER_OBSERVE:
        if (c->leading) {
            execute_observe(w, c);
            ctl_timer(w, c, TIMER_OBSERVE, w->cfg.observe_us);
        }
        return;
    case TIMER_QUOTA:
        if (c->leading) {
            execute_quota(w, c);
            ctl_timer(w, c, TIMER_QUOTA, w->cfg.quota_us);
        }
        return;
    case TIMER_STANDBY:
        lead_standby(w, c);
        return;
    case TIMER_RENEW:
        lead_renew(w, c);
        return;
    case TIMERS:
        return;
    }
}

/* Comes first: a leader whose lease has lapsed discards all its state. */
static void before_pass(struct world *w, struct ctl *c)
{
    if (c->leading && !protocol_may_sign(c->lease_end_us, ctl_boot(w, c))) {
        SOMETIMES(w, LEASE_LAPSED);
        ctl_lose(w, c, "its lease has lapsed");
    }
}

void ctl_event(struct world *w, struct ctl *c, const struct event *e)
{
    if (e->kind == EV_START) {
        ctl_start(w, c);
        return;
    }
    if (e->kind == EV_THAW) {
        c->frozen = c->frozen && w->now_us < c->frozen_until_us;
        return;
    }
    if (c->frozen && w->now_us < c->frozen_until_us) { /* it will see this when it wakes */
        ev_push(w, c->frozen_until_us, (enum event_kind)e->kind, e->who, e->gen, e->a, e->b);
        return;
    }
    if (c->up) {
        before_pass(w, c);
    }
    if (e->kind == EV_REPLY) {
        call_reply(w, e->a);
    } else if (c->up && e->gen == c->timer_gen[e->a]) {
        on_timer(w, c, (enum timer)e->a);
    }
    ctl_pass(w, c);
    if (c->lost) {
        load_clear(c);
    }
}
