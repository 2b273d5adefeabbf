/* See examine.h. */
#include "examine.h"
#include "attempt.h"
#include "aws/job_log.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/attempt.h"
#include "core/leader/attempt_answer.h"
#include "lease.h"
#include "metrics.h"

static void conclude(struct live_attempt *a, const struct log_tail_evidence *e)
{
    struct fact fact = leader_log_answer(a, e, clock_boot_us());
    if (e != NULL) {
        log_event(LOG_INFO, "log_read", LF_S("job", a->row.name.s), LF_S("host", e->host),
                  LF_S("cause", cause_name(e->cause)), LF_S("text", e->text));
    }
    attempt_fact(a, &fact);
}

static void on_lines(void *ctx, const struct log_line *lines, size_t n, const struct aws_failure *f)
{
    struct attempt_io *io = ctx;
    struct live_attempt *a = leader_state_attempt(&io->c->state, io->attempt_id);
    struct log_tail_evidence e;
    io->log = NULL;
    if (f == NULL) {
        log_tail_read(lines, n, &e);
        conclude(a, &e);
        return;
    }
    metric_add(METRIC_AWS_ERRORS, 1);
    metric_add(METRIC_AWS_THROTTLED, f->outcome == AWS_THROTTLED);
    if (log_allow("log_unreadable")) {
        log_event(LOG_WARN, "log_unreadable", LF_S("job", a->row.name.s), LF_S("code", f->code),
                  LF_I("status", f->status), LF_S("text", f->message));
    }
    struct fact fact = leader_log_unread(a, f, clock_boot_us());
    attempt_fact(a, &fact);
}

void examine(struct live_attempt *a)
{
    struct controller *c = a->io->c;
    if (leader_examined_long_enough(a, clock_boot_us())) {
        job_log_cancel(a->io->log);
        a->io->log = NULL;
        conclude(a, NULL);
        return;
    }
    metric_add(METRIC_AWS_REQUESTS, 1);
    call_pace_first(&c->pace);
    a->io->log = job_log_read(c->aws, lease_gate(c), a->row.name.s, on_lines, a->io);
}
