/* Live attempts: the protocol's value of each, what is known of its job, facts in. */
#include "common/clock.h"
#include "common/log.h"
#include "ctl.h"
#include <stdio.h>

#define REQUEST_MAX (1024 * 1024)

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
    for (size_t i = 0; i < c->pools_n; i++) {
        struct live_pool *p = c->pools[i];
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
    struct live_attempt *a = xcalloc(1, sizeof *a);
    attempt_protocol_config(c, &pc);
    a->c = c;
    a->row = *row;
    a->campaign = lc;
    a->stage = view_stage(lc, row->stage_id);
    a->account = (struct ledger_account_of_attempt){.reserved_musd = row->open_musd,
                                                    .spent_musd = row->cost_musd,
                                                    .reserved = true,
                                                    .job_settled = row->settled,
                                                    .closed = row->settled && row->open_musd == 0};
    buf_init(&a->request, REQUEST_MAX);
    if (c->attempts_n == c->attempts_cap) {
        c->attempts_cap = MAX(64, c->attempts_cap * 2);
        c->attempts = xrealloc(c->attempts, c->attempts_cap * sizeof(struct live_attempt *));
    }
    c->attempts[c->attempts_n++] = a;
    if (row->epoch == c->epoch) {
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
    for (size_t i = 0; i < c->attempts_n; i++) {
        if (c->attempts[i] == a) {
            c->attempts[i] = c->attempts[--c->attempts_n];
            break;
        }
    }
    sagemaker_cancel(a->create);
    sagemaker_cancel(a->describe);
    sagemaker_cancel(a->stop);
    output_cancel(a->check);
    progress_cancel(a);
    if (a->pool != NULL) {
        a->pool->attempt = NULL;
    }
    buf_done(&a->request);
    free(a->manifest);
    free(a->row.uri);
    free(a->row.vars_json);
    free(a);
}

struct live_attempt *attempt_by_name(struct controller *c, const char *name)
{
    for (size_t i = 0; i < c->attempts_n; i++) {
        if (strcmp(c->attempts[i]->row.name.s, name) == 0) {
            return c->attempts[i];
        }
    }
    return NULL;
}

void attempt_fact(struct live_attempt *a, const struct fact *f)
{
    struct protocol_config pc;
    struct protocol_effect e = {0};
    attempt_protocol_config(a->c, &pc);
    protocol_step(&a->p, f, &pc, &e);
    a->wake_us = 0;
    a->c->act = true;
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
