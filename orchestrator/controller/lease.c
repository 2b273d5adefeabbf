/* See lease.h. */
#include "store/leader/lease.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"

static bool gate_open(void *ctx)
{
    const struct controller *c = ctx;
    return c->leading && !lease_lapsed(c->lease_end_us, clock_boot_us());
}

struct aws_gate lease_gate(struct controller *c)
{
    return (struct aws_gate){.may_send = gate_open, .ctx = c};
}

struct lease_terms lease_terms_of(const struct controller *c)
{
    return (struct lease_terms){.length_us = c->cfg.lease_length_us,
                                .renew_us = c->cfg.lease_renew_us};
}

int64_t lease_others_end_us(const struct controller *c)
{
    return clock_boot_us() + c->lease_longest_us;
}

void leader_lapse(struct controller *c)
{
    if (c->leading && lease_lapsed(c->lease_end_us, clock_boot_us())) {
        leader_lose(c, "lease_lapsed", NULL);
    }
}

bool leader_renew_if_due(struct controller *c, struct err *err)
{
    int64_t asked_us = clock_boot_us();
    const struct lease_terms terms = lease_terms_of(c);
    if (!lease_renewal_due(&terms, c->lease_end_us, asked_us)) {
        return true;
    }
    if (FP("renew.before")) {
        return err_set(err, ERR_UNAVAILABLE, "failpoint");
    }
    c->lease_longest_us =
        lease_longest_us(&terms, c->lease_longest_us, c->lease_alone_us, asked_us);
    if (!lease_renew(c->store, c->state.epoch, c->lease_longest_us, err)) {
        return lease_outlives_renewal(tx_error_meaning(err, store_alive(c->store)));
    }
    if (FP("renew.after")) {
        return err_set(err, ERR_UNAVAILABLE, "failpoint");
    }
    c->lease_end_us = lease_end_us(&terms, asked_us);
    loop_timer_set(c->renew_timer, c->cfg.lease_renew_us);
    return true;
}

/* From here on nothing is signed or committed. What is known stays readable until the pass ends. */
void lease_stop_leading(struct controller *c)
{
    c->leading = false;
    atomic_store(&c->status->leading, false);
    metric_set(METRIC_LEADING, 0);
    metric_set(METRIC_LEASE_EPOCH, 0);
    metric_set(METRIC_PARTS_WAITING, 0);
    metric_set(METRIC_PARTS_ACTIVE, 0);
    metric_set(METRIC_SLOTS_HELD, 0);
    loop_timer_set(c->renew_timer, -1);
    loop_timer_set(c->tick_timer, -1);
    loop_timer_set(c->plan_timer, -1);
    loop_timer_set(c->act_timer, -1);
    loop_timer_set(c->observe_timer, -1);
    loop_timer_set(c->quota_timer, -1);
    loop_timer_set(c->price_timer, -1);
}

void leader_lose(struct controller *c, const char *why, const struct err *err)
{
    static const struct err none = ERR_INIT;
    if (!c->leading) {
        return;
    }
    err = err != NULL ? err : &none;
    log_event(LOG_WARN, "leadership_lost", LF_S("why", why), LF_I("epoch", c->state.epoch),
              LF_ERR(err));
    lease_stop_leading(c);
    c->lost = true;
}

static enum tx_meaning failed(struct controller *c, const char *step, const struct err *err)
{
    enum tx_meaning meaning = tx_error_meaning(err, store_alive(c->store));
    if (meaning == TX_LOST) {
        leader_lose(c, step, err);
    } else {
        metric_add(METRIC_TX_FAILED, 1);
    }
    return meaning;
}

static enum tx_meaning commit_failed(struct controller *c, const struct err *err)
{
    leader_rollback(c->store);
    enum tx_meaning meaning = tx_commit_meaning(err, store_alive(c->store));
    if (meaning == TX_LOST) {
        leader_lose(c, "commit_unknown", err);
    } else {
        metric_add(METRIC_TX_FAILED, 1);
    }
    return meaning;
}

enum tx_meaning leader_try(struct controller *c, leader_fn *fn, void *arg, struct err *ret_err)
{
    *ret_err = (struct err)ERR_INIT;
    ASSERT(c->in_tick); /* a callback notes what it was told, the tick writes it */
    if (!c->leading) {
        return TX_LOST;
    }
    if (!leader_begin(c->store, c->state.epoch, ret_err)) {
        return failed(c, "begin_failed", ret_err);
    }
    if (!fn(c, arg, ret_err)) {
        leader_rollback(c->store);
        return failed(c, "transaction_failed", ret_err);
    }
    if (!leader_commit(c->store, ret_err)) {
        return commit_failed(c, ret_err);
    }
    return TX_DONE;
}

bool leader_tx(struct controller *c, leader_fn *fn, void *arg)
{
    struct err err;
    enum tx_meaning meaning = leader_try(c, fn, arg, &err);
    if (meaning != TX_DONE && meaning != TX_LOST && log_allow("transaction_failed")) {
        log_event(LOG_WARN, "transaction_failed", LF_S("sqlstate", err.sqlstate), LF_ERR(&err));
    }
    return meaning == TX_DONE;
}
