/* See metric_collect.h. */
#include "metric_collect.h"
#include "common/base.h"
#include "common/retry.h"
#include <stdio.h>
#include <string.h>

#define PAUSE_MAX_US (60 * USEC_PER_SEC)
#define LONGER_MAX   64 /* intervals */

void metric_collect_ended(struct metric_collect *m, int64_t boot_us)
{
    if (!m->ended) {
        m->ended = true;
        m->ended_us = boot_us;
        m->at_end = m->last_stream = false; /* what came since is asked for once more */
        m->due_us = m->blind ? m->due_us : MIN(m->due_us, boot_us);
    }
}

void metric_collect_blind(struct metric_collect *m, int64_t boot_us)
{
    m->blind = true;
    m->due_us = boot_us + METRIC_BLIND_US;
}

/* All that was written by the job has been seen. */
static bool whole(const struct metric_collect *m)
{
    return m->ended && m->last_stream && m->asked_us >= m->ended_us + m->settle_us;
}

enum metric_act metric_collect_next(struct metric_collect *m, int64_t boot_us)
{
    bool given_up = m->note[0] != '\0';
    if (m->blind) {
        return boot_us < m->due_us ? METRIC_WAIT : METRIC_READ_SPEC;
    }
    if ((given_up && !m->ended) || (m->final_known && (given_up || whole(m)))) {
        return METRIC_CLOSE;
    }
    if (boot_us < m->due_us) {
        return METRIC_WAIT;
    }
    if (given_up || whole(m)) {
        return METRIC_ASK_FINAL;
    }
    if (m->last_stream) { /* as far as was known then */
        m->at_end = m->last_stream = false;
    }
    m->asked_us = boot_us;
    return m->place.stream[0] == '\0' || m->at_end ? METRIC_ASK_STREAM : METRIC_ASK_PAGE;
}

static void answered(struct metric_collect *m)
{
    m->failures = 0;
    m->refusals = 0;
}

void metric_collect_stream(struct metric_collect *m, const char *name, int64_t boot_us)
{
    answered(m);
    if (name[0] != '\0') {
        m->at_end = false;
        m->due_us = boot_us;
        if (m->place.stream[0] == '\0') {
            metric_place_stream(&m->place, name);
        } else { /* lines may have come to this one since its last page */
            (void)snprintf(m->next_stream, sizeof m->next_stream, "%s", name);
        }
        return;
    }
    m->last_stream = true;
    m->due_us = whole(m) ? boot_us : boot_us + m->interval_us;
}

void metric_collect_page(struct metric_collect *m, int64_t n, int64_t upto, const char *next_token,
                         int64_t boot_us)
{
    answered(m);
    m->at_end = metric_place_took(&m->place, n, upto, next_token);
    m->due_us = boot_us; /* the next page, or whether there is another stream */
    if (m->at_end && m->next_stream[0] != '\0') {
        metric_place_stream(&m->place, m->next_stream);
        m->next_stream[0] = '\0';
        m->at_end = false;
    }
    if (m->place.lines >= METRIC_LOG_LINES_MAX) {
        (void)snprintf(m->note, sizeof m->note, "only the first %d lines of the log were read",
                       METRIC_LOG_LINES_MAX);
    }
}

void metric_collect_final(struct metric_collect *m)
{
    answered(m);
    m->final_known = true;
}

static void give_up(struct metric_collect *m, enum metric_act act, const struct aws_failure *f)
{
    if (act == METRIC_ASK_FINAL) {
        m->final_known = true; /* the log has its values */
        return;
    }
    m->refusals = 0; /* SageMaker's own figures may be had all the same */
    (void)snprintf(m->note, sizeof m->note, "the log cannot be read: %.60s %.200s", f->code,
                   f->message);
}

void metric_collect_failed(struct metric_collect *m, enum metric_act act,
                           const struct aws_failure *f, int64_t boot_us)
{
    bool refused = f->outcome == AWS_REFUSED;
    m->at_end = m->last_stream = act == METRIC_ASK_FINAL && m->last_stream;
    if (refused && act == METRIC_ASK_PAGE && metric_place_expired(&m->place)) {
        m->due_us = boot_us;
        return;
    }
    int64_t most_us = MIN(LONGER_MAX * m->interval_us, PAUSE_MAX_US);
    m->due_us = boot_us + retry_step_us(m->interval_us, most_us, m->failures);
    m->failures = MIN(m->failures + 1, 1000);
    m->refusals += refused && m->ended;
    if (m->refusals >= METRIC_REFUSALS_MAX ||
        (m->ended && boot_us >= m->ended_us + METRIC_GIVE_UP_US)) {
        give_up(m, act, f);
    }
}
