/* Live attempts: the protocol's value of each, what is known of its job, facts in. */
#include "common/clock.h"
#include "common/log.h"
#include "ctl.h"
#include <stdio.h>

void attempt_protocol_config(const struct controller *c, struct protocol_config *ret)
{
    *ret = (struct protocol_config){.signature_window_us = c->cfg.signature_window_us,
                                    .describe_stale_us = 600 * USEC_PER_SEC,
                                    .resend_base_us = 500 * USEC_PER_MSEC,
                                    .resend_cap_us = 60 * USEC_PER_SEC};
}

/* The pools an attempt found at takeover will leave and was intended on. */
static void find_pools(struct controller *c, struct live_attempt *a)
{
    for (size_t i = 0; i < c->state.pools_n; i++) {
        struct live_pool *p = c->state.pools[i];
        if (p->row.attempt_id == a->row.id) {
            a->pool = p;
            p->attempt = a;
        }
        if (p->row.id == a->row.pool_id && p->row.taken_by == a->row.id) {
            a->taken = p;
        }
    }
}

struct live_attempt *attempt_add(struct controller *c, const struct attempt_row *row,
                                 struct live_campaign *lc)
{
    struct protocol_config pc;
    struct protocol_effect e = {0};
    struct live_attempt *a = leader_state_add_attempt(&c->state, row, lc);
    attempt_protocol_config(c, &pc);
    a->io = xcalloc(1, sizeof *a->io);
    *a->io = (struct attempt_io){.c = c, .attempt_id = row->id};
    if (row->epoch == c->state.epoch) {
        protocol_intended(&a->p);
    } else {
        bool wanted =
            !row->unwanted && (lc->row.wanted == WANTED_RUN || lc->row.wanted == WANTED_DRAIN);
        a->stopped_by_us = row->unwanted;
        a->created_us = row->created_us;
        a->running_us =
            row->state == ATTEMPT_RUNNING ? clock_wall_us() : 0; /* with patience anew */
        find_pools(c, a);
        breaker_started(&a->stage->breaker, row->id);
        protocol_taken_over(row->state, wanted, clock_boot_us() + c->cfg.lease_length_us, &pc,
                            &a->p, &e);
        if (e.changed) {
            record_push(a, &e);
        }
    }
    return a;
}

void attempt_remove(struct controller *c, struct live_attempt *a)
{
    sagemaker_cancel(a->io->create);
    sagemaker_cancel(a->io->describe);
    sagemaker_cancel(a->io->stop);
    output_cancel(a->io->check);
    progress_cancel(a);
    free(a->io);
    a->io = NULL;
    leader_state_remove_attempt(&c->state, a);
}

void attempt_fact(struct live_attempt *a, const struct fact *f)
{
    struct protocol_config pc;
    struct protocol_effect e = {0};
    attempt_protocol_config(a->io->c, &pc);
    protocol_step(&a->p, f, &pc, &e);
    a->wake_us = 0;
    a->io->c->state.act = true;
    if (e.alert) {
        log_event(LOG_ERROR, "attempt_needs_a_person", LF_S("job", a->row.name.s),
                  LF_S("state", attempt_state_name(a->p.state)), LF_S("reason", a->reason));
    }
    bool moved = e.changed || e.task_ends || e.release_slot;
    if (moved) {
        log_event(LOG_INFO, "attempt_moved", LF_S("job", a->row.name.s),
                  LF_S("from", attempt_state_name(e.from)),
                  LF_S("to", attempt_state_name(a->p.state)), LF_S("cause", cause_name(e.cause)));
    }
    if (moved || e.alert) {
        record_push(a, &e); /* may lose the leadership, and the attempt with it: last */
    }
}

void attempt_unwant(struct live_attempt *a)
{
    if (a->p.wanted) {
        attempt_fact(a, &(struct fact){.kind = FACT_UNWANTED, .at_us = clock_boot_us()});
    }
}
