/* See attempt.h. */
#include "attempt.h"
#include "calls.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/attempt.h"
#include "lease.h"
#include "outcome.h"
#include "output_check.h"

void attempt_protocol_config(const struct controller *c, struct protocol_config *ret)
{
    *ret = (struct protocol_config){.signature_window_us = c->cfg.signature_window_us,
                                    .describe_stale_us = 600 * USEC_PER_SEC,
                                    .resend_base_us = 500 * USEC_PER_MSEC,
                                    .resend_cap_us = 60 * USEC_PER_SEC};
}

void attempt_take_over(struct controller *c, const struct attempt_row *row,
                       struct live_campaign *lc)
{
    struct protocol_config pc;
    struct protocol_effect e;
    attempt_protocol_config(c, &pc);
    const struct attempt_takeover t = {.protocol = &pc,
                                       .now_us = clock_wall_us(),
                                       .lease_end_us = clock_boot_us() + c->cfg.lease_length_us};
    struct live_attempt *a = leader_take_over_attempt(&c->state, row, lc, &t, &e);
    attempt_attach_io(c, a);
    if (leader_attempt_records(&e)) {
        record_push(a, &e);
    }
}

void attempt_fact(struct live_attempt *a, const struct fact *f)
{
    struct protocol_config pc;
    struct protocol_effect e;
    attempt_protocol_config(a->io->c, &pc);
    leader_attempt_fact(&a->io->c->state, a, f, &pc, &e);
    if (e.alert) {
        log_event(LOG_ERROR, "attempt_needs_attention", LF_S("job", a->row.name.s),
                  LF_S("state", attempt_state_name(a->p.state)), LF_S("reason", a->reason));
    }
    if (e.changed || e.task_ends || e.release_slot) {
        log_event(LOG_INFO, "attempt_moved", LF_S("job", a->row.name.s),
                  LF_S("from", attempt_state_name(e.from)),
                  LF_S("to", attempt_state_name(a->p.state)), LF_S("cause", cause_name(e.cause)));
    }
    if (leader_attempt_records(&e)) {
        record_push(a, &e);
    }
}

bool attempts_go_on(struct controller *c)
{
    bool any = false;
    struct fact f;
    for (size_t i = 0; i < c->state.attempts_n; i++) {
        while (leader_attempt_kept_fact(c->state.attempts[i], &f)) {
            attempt_fact(c->state.attempts[i], &f);
            any = true;
        }
    }
    return any;
}

void attempt_unwant(struct live_attempt *a)
{
    if (a->p.wanted) {
        attempt_fact(a, &(struct fact){.kind = FACT_UNWANTED, .at_us = clock_boot_us()});
    }
}
