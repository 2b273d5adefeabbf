/* What the tests of the submit protocol share: give a fact and hold its effect against the rules
 * for slots, money and ends; reach a state the way an attempt does. */
#pragma once
#include "core/protocol/protocol.h"

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define S USEC_PER_SEC
static const struct protocol_config cfg = {.signature_window_us = 900 * S,
                                           .describe_stale_us = 600 * S,
                                           .resend_base_us = 1 * S,
                                           .resend_cap_us = 60 * S};

static UNUSED struct protocol_effect give(struct protocol_attempt *a, struct fact f)
{
    struct protocol_effect e;
    enum attempt_state before = a->state;
    protocol_step(a, &f, &cfg, &e);
    assert_int_equal(e.from, before);
    assert_int_equal(e.changed, a->state != before);
    assert_true(!e.changed || attempt_edge(before, a->state));
    bool released = attempt_holds_slot(before) && !attempt_holds_slot(a->state);
    assert_int_equal(e.release_slot, released);
    assert_int_equal(e.settle,
                     released && a->state != ATTEMPT_VOID && a->state != ATTEMPT_CONFLICT);
    assert_int_equal(e.task_ends, e.changed && attempt_state_terminal(a->state));
    return e;
}

static UNUSED struct protocol_effect give_at(struct protocol_attempt *a, enum fact_kind kind,
                                             int64_t at)
{
    return give(a, (struct fact){.kind = kind, .at_us = at});
}

static UNUSED struct protocol_effect refuse(struct protocol_attempt *a, enum cause cause,
                                            int64_t at)
{
    return give(a, (struct fact){.kind = FACT_CREATE_REFUSED, .at_us = at, .cause = cause});
}

static UNUSED struct protocol_effect describe(struct protocol_attempt *a, enum job_status status,
                                              enum job_phase phase, usec_t modified)
{
    return give(a, (struct fact){.kind = FACT_DESCRIBED,
                                 .at_us = 50 * S,
                                 .job = {status, phase, true, modified}});
}

static UNUSED enum protocol_action next(struct protocol_attempt *a, int64_t now)
{
    int64_t wake;
    enum protocol_action action = protocol_next(a, now, &cfg, &wake);
    assert_true(wake == INT64_MAX || wake > now);
    return action;
}

/* Reach a state the way an attempt does. */
static UNUSED struct protocol_attempt in_state(enum attempt_state s)
{
    struct protocol_attempt a;
    protocol_intended(&a);
    if (s == ATTEMPT_INTENDED) {
        return a;
    }
    if (s == ATTEMPT_VOID) {
        (void)refuse(&a, CAUSE_QUOTA, 1 * S);
        return a;
    }
    (void)give_at(&a, FACT_CREATE_SIGNED, 1 * S);
    if (s == ATTEMPT_UNKNOWN || s == ATTEMPT_CONFLICT) {
        (void)give_at(&a, FACT_CREATE_UNKNOWN, 2 * S);
        if (s == ATTEMPT_CONFLICT) {
            (void)give(&a, (struct fact){.kind = FACT_DESCRIBED});
        }
        return a;
    }
    (void)give_at(&a, FACT_CREATE_OK, 2 * S);
    static const struct job_seen job[ATTEMPT_STATE_COUNT] = {
        [ATTEMPT_STARTING] = {JOB_IN_PROGRESS, PHASE_STARTING, true, 10},
        [ATTEMPT_RUNNING] = {JOB_IN_PROGRESS, PHASE_RUNNING, true, 11},
        [ATTEMPT_UPLOADING] = {JOB_IN_PROGRESS, PHASE_UPLOADING, true, 12},
        [ATTEMPT_STOPPING] = {JOB_STOPPING, PHASE_STOPPING, true, 13},
        [ATTEMPT_VERIFYING] = {JOB_COMPLETED, PHASE_ENDED, true, 14},
        [ATTEMPT_SUCCEEDED] = {JOB_COMPLETED, PHASE_ENDED, true, 14},
        [ATTEMPT_FAILED] = {JOB_FAILED, PHASE_ENDED, true, 14},
        [ATTEMPT_STOPPED] = {JOB_STOPPED, PHASE_ENDED, true, 14},
    };
    if (s != ATTEMPT_SUBMITTED) {
        (void)describe(&a, job[s].status, job[s].phase, job[s].modified);
    }
    if (s == ATTEMPT_SUCCEEDED) {
        (void)give_at(&a, FACT_VERIFIED, 60 * S);
    }
    return a;
}
