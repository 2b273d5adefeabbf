/* See endpoint_use.h. */
#include "endpoint_use.h"
#include "aws/invocations.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/endpoint_idle.h"
#include "core/lowering/endpoint_request.h"
#include "lease.h"
#include "metrics.h"
#include "wall.h"

struct endpoint_use {
    struct controller *c;
    struct invocations_call *call;
    struct invocation_question question;
    bool answered; /* what follows waits for the tick */
    bool known;
    struct invocation_report *report;
};

struct endpoint_use *endpoint_use_new(struct controller *c)
{
    struct endpoint_use *u = xcalloc(1, sizeof *u);
    u->c = c;
    return u;
}

void endpoint_use_free(struct endpoint_use *u)
{
    if (u != NULL) {
        invocations_cancel(u->call);
        free(u->report);
        free(u);
    }
}

static struct endpoint_idle_terms terms_of(const struct endpoint_use *u)
{
    return (struct endpoint_idle_terms){.interval_us = u->c->cfg.invocation_interval_us,
                                        .delay_us = u->c->cfg.invocation_delay_us};
}

static void on_report(void *ctx, const struct invocation_report *report,
                      const struct aws_failure *f)
{
    struct endpoint_use *u = ctx;
    u->call = NULL;
    u->answered = true;
    u->known = report != NULL;
    u->c->state.act = true;
    metric_add(METRIC_AWS_ERRORS, f != NULL);
    if (report != NULL) {
        u->report = xrealloc(u->report, sizeof *u->report);
        *u->report = *report;
    } else if (log_allow("invocations_unknown")) {
        log_event(LOG_WARN, "invocations_unknown", LF_S("code", f->code), LF_S("why", f->message));
    }
}

void endpoint_use_ask(struct endpoint_use *u, struct live_endpoint *e, int64_t *wake_us)
{
    struct controller *c = u->c;
    const struct endpoint_idle_terms t = terms_of(u);
    usec_t aws_us = leader_aws_now(c);
    if (u->call != NULL || u->answered ||
        !leader_endpoint_idle_due(&c->state, e, aws_us, clock_boot_us(), &t, &u->question,
                                  wake_us)) {
        return;
    }
    leader_endpoint_idle_asked(e, clock_boot_us(), &t);
    metric_add(METRIC_AWS_REQUESTS, 1);
    u->call = invocations_read(c->aws, lease_gate(c), e->row.name.s, ENDPOINT_VARIANT, &u->question,
                               on_report, u);
}

bool endpoint_use_take(struct endpoint_use *u, const struct live_endpoint *e,
                       struct endpoint_writes *ret)
{
    const struct endpoint_idle_terms t = terms_of(u);
    if (!u->answered) {
        return false;
    }
    u->answered = false;
    leader_plan_endpoint_idle(e, &u->question, u->known ? u->report : NULL, &t,
                              leader_aws_now(u->c), ret);
    return true;
}
