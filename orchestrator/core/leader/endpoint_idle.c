/* See endpoint_idle.h. */
#include "endpoint_idle.h"
#include <stdio.h>

#define MINUTE_US   (60 * USEC_PER_SEC)
#define PERIODS_MAX 1400 /* a few less than an answer may have */
#define FINE_SPAN_US                                                                               \
    (15 * USEC_PER_DAY) /* CloudWatch keeps minutes so long, then 5 of them together */
#define IDLE_PARTS 5
#define WATCH_EACH 10 /* without `idle` the last invocation is only shown: every tenth time */

static bool serves(const struct endpoint_row *r)
{
    return r->state == ENDPOINT_IN_SERVICE && r->passed && r->in_service_us > 0;
}

static usec_t quiet_since(const struct endpoint_row *r)
{
    return MAX(r->in_service_us, r->invoked_us);
}

/* The shortest period of which an answer has room for the span. */
static int64_t period_of(int64_t span_us)
{
    int64_t minutes = span_us / MINUTE_US / PERIODS_MAX + 1;
    if (span_us > FINE_SPAN_US) {
        minutes = (minutes + 4) / 5 * 5;
    }
    return minutes * 60;
}

bool leader_endpoint_idle_due(const struct leader_state *s, const struct live_endpoint *e,
                              usec_t aws_us, int64_t boot_us, const struct endpoint_idle_terms *t,
                              struct invocation_question *ret, int64_t *wake_us)
{
    const struct endpoint_row *r = &e->row;
    if (!serves(r)) {
        return false;
    }
    if (s->clock.unsure) { /* a future that CloudWatch has no figures of would be quiet */
        *wake_us = MIN(*wake_us, boot_us + USEC_PER_SEC);
        return false;
    }
    if (boot_us < e->idle_due_us) {
        *wake_us = MIN(*wake_us, e->idle_due_us);
        return false;
    }
    int64_t reach_us = r->idle_s > 0 ? r->idle_s * USEC_PER_SEC + t->delay_us : USEC_PER_DAY;
    usec_t from = MAX(quiet_since(r), aws_us - reach_us);
    from -= from % MINUTE_US;
    if (from >= aws_us) { /* AWS' clock is behind ours */
        *wake_us = MIN(*wake_us, boot_us + t->interval_us);
        return false;
    }
    *ret = (struct invocation_question){
        .from = from, .to = aws_us, .period_s = period_of(aws_us - from)};
    return true;
}

void leader_endpoint_idle_asked(struct live_endpoint *e, int64_t boot_us,
                                const struct endpoint_idle_terms *t)
{
    int64_t part_us = e->row.idle_s * USEC_PER_SEC / IDLE_PARTS;
    e->idle_due_us =
        boot_us + (e->row.idle_s > 0 ? MAX(t->interval_us, part_us) : t->interval_us * WATCH_EACH);
}

/* The end of the last period in which somebody else than its smoke test asked it; 0: none. A period
 * in which the test still went on counts when there were more than the test's invocations. */
static usec_t last_invocation(const struct endpoint_row *r, const struct invocation_question *q,
                              const struct invocation_report *report)
{
    usec_t last = 0;
    usec_t tested = 0;
    int64_t of_test = 0;
    for (size_t i = 0; i < report->n; i++) {
        const struct invocation_count *c = &report->counts[i];
        usec_t end = MIN(c->from + q->period_s * USEC_PER_SEC, q->to);
        if (c->from <= r->tested_us) {
            of_test += c->n;
            tested = MAX(tested, end);
        } else if (c->n > 0) {
            last = MAX(last, end);
        }
    }
    return of_test > r->tested_n ? MAX(last, tested) : last;
}

static void say_idle(struct endpoint_row *r)
{
    bool hours = r->idle_s % 3600 == 0;
    bool minutes = r->idle_s % 60 == 0;
    (void)snprintf(r->reason, sizeof r->reason, "idle for %lld %s",
                   (long long)(r->idle_s / (hours     ? 3600
                                            : minutes ? 60
                                                      : 1)),
                   hours     ? "h"
                   : minutes ? "m"
                             : "s");
}

void leader_plan_endpoint_idle(const struct live_endpoint *e, const struct invocation_question *q,
                               const struct invocation_report *report,
                               const struct endpoint_idle_terms *t, usec_t now_us,
                               struct endpoint_writes *ret)
{
    *ret = (struct endpoint_writes){.news = ENDPOINT_AS_BEFORE, .row = e->row, .error = ERR_INIT};
    struct endpoint_row *r = &ret->row;
    if (report == NULL || !serves(r) || q->to > now_us) { /* of a time that was not yet */
        return;
    }
    usec_t last = last_invocation(r, q, report);
    if (last > r->invoked_us) {
        r->invoked_us = last;
        ret->news = ENDPOINT_MOVED;
    }
    int64_t idle_us = r->idle_s * USEC_PER_SEC;
    if (idle_us > 0 && q->to - t->delay_us - idle_us >= quiet_since(r)) {
        r->state = ENDPOINT_DELETING;
        r->deleting_us = now_us;
        say_idle(r);
        ret->news = ENDPOINT_MOVED;
    }
}
