/* Whether anybody asks an endpoint. CloudWatch counts its invocations by the minute, some minutes
 * late. One with `idle` is deleted when a whole answer shows that there was none for so long,
 * counted from the later of its coming into service and the end of the last minute with one. What
 * is not known deletes nothing. Its smoke test does not count. Pure: aws_us is the wall clock as
 * AWS has it, CLOCK_BOOTTIME is boot_us. Source: Amazon SageMaker developer guide, "Monitor Amazon
 * SageMaker with Amazon CloudWatch". */
#pragma once
#include "core/capacity/invocation_report.h"
#include "endpoint_life.h"

struct endpoint_idle_terms {
    int64_t interval_us; /* asked at most so often, and a fifth of `idle` */
    int64_t delay_us;    /* an invocation is counted so late at most */
};
/* True: its invocations are to be asked for now. *wake_us is lowered to when to ask again. Not
 * while AWS' clock is not known for sure. */
bool leader_endpoint_idle_due(const struct leader_state *s, const struct live_endpoint *e,
                              usec_t aws_us, int64_t boot_us, const struct endpoint_idle_terms *t,
                              struct invocation_question *ret, int64_t *wake_us);
/* It was asked, whatever comes of it. */
void leader_endpoint_idle_asked(struct live_endpoint *e, int64_t boot_us,
                                const struct endpoint_idle_terms *t);
/* What follows from the answer to q; report NULL: not known. Nothing when q is of later than now:
 * AWS told its clock meanwhile. */
void leader_plan_endpoint_idle(const struct live_endpoint *e, const struct invocation_question *q,
                               const struct invocation_report *report,
                               const struct endpoint_idle_terms *t, usec_t now_us,
                               struct endpoint_writes *ret);
