/* Leadership: stand by, take over at once when the lock is free, wait for a silent leader's
 * lease to end, renew. */
#include "sim_world.h"

static void lead(struct world *w, struct ctl *c, int64_t asked_us)
{
    const struct db_lease *l = db_row(w, T_LEASE, 0);
    load_clear(c);
    c->leading = true;
    c->lead++;
    c->epoch = l->epoch;
    c->lease_end_us = asked_us + w->cfg.lease_us;
    c->listing = c->quota_reading = c->progress_reading = false;
    call_pace_init(&c->pace, w->cfg.create_rate, w->cfg.create_burst, asked_us);
    w->judge.led_us = w->now_us;
    memset(&c->tally, 0, sizeof c->tally);
    c->tally.since_us = w->now_us;
    trace(w, 0x1ead, (uint64_t)c->epoch);
    SOMETIMES(w, TAKEOVER);
    tell(w, -1, "controller %d leads, epoch %lld", c->id, (long long)c->epoch);
    c->hold = l->timeline != w->db.timeline;
    c->hold_until_us = asked_us + w->cfg.window_us;
    if (c->hold) {
        SOMETIMES(w, HOLD);
    }
    if (!load_all(w, c)) {
        return;
    }
    c->state.look_at_db = c->state.decide = c->state.act = true;
    ctl_timer(w, c, TIMER_TICK, 0);
    ctl_timer(w, c, TIMER_OBSERVE, 0);
    ctl_timer(w, c, TIMER_QUOTA, 0);
    ctl_timer(w, c, TIMER_RENEW, w->cfg.renew_us);
}

/* A transaction of the standby: epoch + 1. The hold after a failover ends with a write of the
 * timeline (adopt_listed); when its leader dies, the next one continues it. */
void lead_take(struct world *w, struct ctl *c)
{
    int64_t asked_us = ctl_boot(w, c);
    w->db.lock_by = c->id;
    db_begin_api(w);
    struct db_lease *l = db_touch(w, T_LEASE, 0);
    l->epoch++;
    l->renewals++;
    l->holder = c->id;
    db_commit_api(w, false);
    lead(w, c, asked_us);
}

void lead_standby(struct world *w, struct ctl *c)
{
    if (c->leading) {
        return;
    }
    ctl_timer(w, c, TIMER_STANDBY, w->cfg.poll_us);
    if (!db_reachable(w, c)) {
        c->session = -1;
        return;
    }
    if (c->session != w->db.instance) {
        c->session = w->db.instance;
        c->seen_at_us = 0;
    }
    if (w->db.lock_by < 0) {
        lead_take(w, c);
        return;
    }
    const struct db_lease *l = db_row(w, T_LEASE, 0);
    int64_t now_us = ctl_boot(w, c);
    if (l->renewals != c->seen_renewals || c->seen_at_us == 0) {
        c->seen_renewals = l->renewals;
        c->seen_at_us = now_us;
        return;
    }
    if (now_us - c->seen_at_us > w->cfg.lease_us) {
        SOMETIMES(w, TAKEOVER_FROZEN);
        tell(w, -1, "controller %d finds the leader silent", c->id);
        lead_take(w, c);
    }
}

void lead_renew(struct world *w, struct ctl *c)
{
    int64_t asked_us = ctl_boot(w, c);
    if (!c->leading || !db_begin(w, c)) {
        return;
    }
    ((struct db_lease *)db_touch(w, T_LEASE, 0))->renewals++;
    if (!db_commit(w, c)) {
        return;
    }
    c->lease_end_us = asked_us + w->cfg.lease_us;
    ctl_timer(w, c, TIMER_RENEW, w->cfg.renew_us);
}
