/* See lease.h. */
#include "lease.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "metrics.h"
#include "output_check.h"

static bool gate_open(void *ctx)
{
    const struct controller *c = ctx;
    return c->leading && protocol_may_sign(c->lease_end_us, clock_boot_us());
}

struct aws_gate lease_gate(struct controller *c)
{
    return (struct aws_gate){.may_send = gate_open, .ctx = c};
}

bool leader_renew_if_due(struct controller *c, struct err *err)
{
    int64_t asked_us = clock_boot_us();
    if (asked_us < c->lease_end_us - c->cfg.lease_length_us + c->cfg.lease_renew_us) {
        return true;
    }
    if (FP("renew.before") || !lease_renew(c->store, c->state.epoch, err) || FP("renew.after")) {
        return false;
    }
    c->lease_end_us = asked_us + c->cfg.lease_length_us;
    loop_timer_set(c->renew_timer, c->cfg.lease_renew_us);
    return true;
}

/* From here on nothing is signed or committed. What is known stays readable until the pass ends. */
void lease_stop_leading(struct controller *c)
{
    c->leading = false;
    c->seen_renewals_at_us = 0;
    atomic_store(&c->status->leading, false);
    metric_set(METRIC_LEADING, 0);
    metric_set(METRIC_LEASE_EPOCH, 0);
    metric_set(METRIC_PARTS_WAITING, 0);
    metric_set(METRIC_PARTS_ACTIVE, 0);
    metric_set(METRIC_SLOTS_HELD, 0);
    loop_timer_set(c->renew_timer, -1);
    loop_timer_set(c->tick_timer, -1);
    loop_timer_set(c->act_timer, -1);
    loop_timer_set(c->observe_timer, -1);
    loop_timer_set(c->quota_timer, -1);
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

bool leader_tx(struct controller *c, bool (*fn)(struct controller *c, void *arg, struct err *err),
               void *arg)
{
    struct err err = ERR_INIT;
    if (!c->leading) {
        return false;
    }
    if (!leader_begin(c->store, c->state.epoch, &err)) {
        leader_lose(c, "begin_failed", &err);
        return false;
    }
    if (!fn(c, arg, &err)) {
        leader_rollback(c->store);
        leader_lose(c, "transaction_failed", &err);
        return false;
    }
    if (!leader_commit(c->store, &err)) {
        leader_lose(c, "commit_unknown", &err); /* the next takeover reads what came of it */
        return false;
    }
    return true;
}
