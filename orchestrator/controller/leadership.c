/* Leadership: stand by, take over, renew, lose.
 *
 * A standby asks for the advisory lock often (the leader's process died: takeover at once) and
 * watches the lease row's renewals by its own CLOCK_BOOTTIME (frozen: waited out, epoch bumped,
 * session terminated). Our own lease ends `length` after the moment *before* the renewal was sent.
 * Safety does not rest on any of these clocks: every transaction is fenced by the epoch and every
 * Create by its name. */
#include "leadership.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "event_intake.h"
#include "lease.h"
#include "load.h"
#include "metrics.h"
#include "outcome.h"
#include "output_check.h"
#include "price_read.h"
#include "store/leader/lease.h"
#include "takeover_load.h"
#include <sys/epoll.h>

#define LOCK_WAIT_US (20 * USEC_PER_MSEC)

static void on_listen(void *ctx, int fd, uint32_t events)
{
    struct controller *c = ctx;
    bool any = false;
    struct err err = ERR_INIT;
    (void)fd;
    (void)events;
    if (!store_notified(c->listen, &any, &err)) {
        loop_fd_del(c->loop, c->listen_watch);
        c->listen_watch = NULL;
        store_close(c->listen);
        c->listen = NULL;
        c->state.look_at_db =
            true; /* the tick timer goes on as the floor; reopened at the next takeover */
        return;
    }
    if (any) {
        c->state.look_at_db = true;
        c->state.decide = true;
    }
}

static bool connect_store(struct controller *c, struct err *err)
{
    if (c->store != NULL && !store_alive(c->store)) {
        store_close(c->store);
        c->store = NULL;
    }
    if (c->store == NULL) {
        metric_add(METRIC_DB_RECONNECTS, 1);
        if (!store_open(c->cfg.conninfo, STORE_LEADER, &c->store, err)) {
            return false;
        }
    }
    if (c->listen == NULL) {
        if (!store_open(c->cfg.conninfo, STORE_LISTEN_WANTED, &c->listen, err)) {
            return false;
        }
        c->listen_watch = loop_fd_add(c->loop, store_fd(c->listen), EPOLLIN, on_listen, c);
    }
    return true;
}

static void lead(struct controller *c, const struct lease_taken *taken, int64_t asked_us)
{
    struct err err = ERR_INIT;
    c->leading = true;
    call_pace_lead(&c->pace, clock_mono_us());
    c->state.epoch = taken->epoch;
    const struct lease_terms terms = lease_terms_of(c);
    c->lease_end_us = lease_end_us(&terms, asked_us);
    c->lease_longest_us = lease_told_us(&terms, taken->longest_us);
    c->lease_alone_us = clock_boot_us() + c->lease_longest_us;
    loop_timer_set(c->renew_timer, c->cfg.lease_renew_us);
    atomic_store(&c->status->lease_epoch, taken->epoch);
    /* A lock that somebody else holds stops the whole loop while we wait for it. */
    if (FP("takeover.after_lease") || !store_lock_wait(c->store, LOCK_WAIT_US, &err) ||
        !view_load(c, &err)) {
        leader_lose(c, "takeover_failed", &err);
        return;
    }
    if (FP("takeover.after_load")) {
        leader_lose(c, "takeover_failed", NULL);
        return;
    }
    atomic_store(&c->status->leading, true);
    metric_add(METRIC_TAKEOVERS, 1);
    metric_set(METRIC_LEADING, 1);
    metric_set(METRIC_LEASE_EPOCH, taken->epoch);
    log_event(LOG_INFO, "leader_elected", LF_I("epoch", taken->epoch),
              LF_I("live_attempts", c->state.attempts_n), LF_I("campaigns", c->state.campaigns_n));
    c->state.look_at_db = c->state.decide = c->state.act = true;
    loop_timer_set(c->tick_timer, 0);
    event_intake_start(c);
    loop_timer_set(c->observe_timer, 0);
    loop_timer_set(c->quota_timer, 0);
    price_read_lead(c);
    loop_timer_set(c->housekeeping_timer, USEC_PER_SEC);
}

/* When the standby tries again after its last try ended so. */
static void pause_standby(struct controller *c, enum lease_try how)
{
    const struct lease_terms terms = lease_terms_of(c);
    loop_timer_set(c->standby_timer, lease_watch_pause_us(&c->watch, how, &terms));
}

/* ret->epoch > 0 when the lease is ours now. */
static bool try_take(struct controller *c, struct lease_taken *ret, struct err *err)
{
    bool taken = false;
    struct lease_info seen = {.renewals = 0};
    struct lease_look look = {.asked_us = clock_boot_us()};
    const struct lease_terms terms = lease_terms_of(c);
    *ret = (struct lease_taken){.epoch = 0};
    if (!lease_try_lock(c->store, &look.locked, err) ||
        (!look.locked && !lease_read(c->store, &seen, err))) {
        return false;
    }
    look.renewals = seen.renewals;
    look.length_us = seen.length_us;
    look.answered_us = clock_boot_us();
    switch (lease_watch_step(&c->watch, &look, &terms)) {
    case LEASE_STEP_TAKE:
        return FP("takeover.before")
                   ? err_set(err, ERR_UNAVAILABLE, "failpoint")
                   : lease_take(c->store, c->cfg.holder, terms.length_us, ret, err);
    case LEASE_STEP_WAIT:
        return true;
    case LEASE_STEP_TAKE_FROM_FROZEN:
        break;
    }
    log_event(LOG_WARN, "leader_frozen", LF_S("holder", seen.holder), LF_I("epoch", seen.epoch));
    if (!lease_take_from_frozen(c->store, &seen, c->cfg.holder, terms.length_us, ret, &taken,
                                err)) {
        return false;
    }
    if (!taken) {
        ret->epoch = 0;
    }
    return true;
}

static enum lease_try stand_by(struct controller *c)
{
    struct err err = ERR_INIT;
    struct lease_taken taken = {.epoch = 0};
    int64_t asked_us = clock_boot_us();
    if (!connect_store(c, &err)) {
        atomic_store(&c->status->db_ok, false);
        if (log_allow("standby_no_database")) {
            log_event(LOG_WARN, "database_unreachable", LF_ERR(&err));
        }
        return LEASE_TRY_NO_DATABASE;
    }
    atomic_store(&c->status->db_ok, true);
    if (!lease_check_durability(c->store, &err)) {
        if (log_allow("leading_refused")) {
            log_event(LOG_ERROR, "leading_refused", LF_ERR(&err));
        }
        return LEASE_TRY_NOT_DURABLE;
    }
    if (!try_take(c, &taken, &err)) {
        if (log_allow("takeover_failed")) {
            log_event(LOG_WARN, "takeover_failed", LF_ERR(&err));
        }
        store_close(c->store);
        c->store = NULL;
        return LEASE_TRY_FAILED;
    }
    if (taken.epoch == 0) {
        return LEASE_TRY_HELD;
    }
    c->in_tick = true;
    lead(c, &taken, asked_us);
    c->in_tick = false;
    return c->leading ? LEASE_TRY_LEADS : LEASE_TRY_LOST;
}

static void on_standby(void *ctx)
{
    struct controller *c = ctx;
    if (!c->leading) {
        pause_standby(c, stand_by(c));
    }
}

static void on_renew(void *ctx)
{
    struct controller *c = ctx;
    struct err err = ERR_INIT;
    if (!c->leading) {
        return;
    }
    const struct lease_terms terms = lease_terms_of(c);
    loop_timer_set(c->renew_timer, lease_renew_again_us(&terms));
    if (!leader_renew_if_due(c, &err)) {
        leader_lose(c, "renewal_failed", &err);
    }
}

bool leader_start(struct controller *c, struct err *err)
{
    (void)err;
    c->standby_timer = loop_timer_new(c->loop, on_standby, c);
    c->renew_timer = loop_timer_new(c->loop, on_renew, c);
    loop_timer_set(c->standby_timer, 0);
    return true;
}

void leader_end_pass(struct controller *c)
{
    if (!c->lost) {
        return;
    }
    c->lost = false;
    view_free(c);
    store_close(c->store); /* with it the advisory lock and any open transaction */
    c->store = NULL;
    pause_standby(c, LEASE_TRY_LOST);
}

void leader_stop(struct controller *c, bool clean)
{
    struct err err = ERR_INIT;
    leader_end_pass(c);
    if (c->leading) {
        c->in_tick = true;
        bool flushed = record_flush(c);
        c->in_tick = false;
        lease_stop_leading(c);
        view_free(c);
        if (clean && flushed && !lease_release(c->store, c->state.epoch, &err)) {
            log_event(LOG_WARN, "lease_release_failed", LF_ERR(&err));
        }
    }
    if (c->listen_watch != NULL) {
        loop_fd_del(c->loop, c->listen_watch);
        c->listen_watch = NULL;
    }
    store_close(c->listen);
    store_close(c->store);
    c->listen = c->store = NULL;
    loop_timer_free(c->standby_timer);
    loop_timer_free(c->renew_timer);
    c->standby_timer = c->renew_timer = NULL;
}
