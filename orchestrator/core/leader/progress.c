/* See progress.h. */
#include "progress.h"
#include "common/json.h"
#include "common/time_text.h"
#include "stage_history.h"
#include <stdio.h>

#define FIGURE_MAX (INT64_MAX / 4)

bool leader_progress_watched(const struct live_attempt *a)
{
    const struct spec_stage *spec = a->stage->spec;
    return spec != NULL && spec->worker != WORKER_NONE && a->row.state == ATTEMPT_RUNNING &&
           a->p.wanted;
}

bool leader_progress_due(struct live_attempt *a, int64_t boot_us, int64_t interval_us)
{
    if (boot_us < a->progress_us) {
        return false;
    }
    a->progress_us = boot_us + interval_us;
    return true;
}

static bool read_progress(const struct live_attempt *a, struct str text,
                          struct hang_detector_seen *ret)
{
    AUTO_JSON json_t *o = NULL;
    char id[24];
    int64_t figures[5] = {0};
    static const char *const keys[] = {"rows_done", "rows_in", "bytes", "shards_done", "prepared"};
    if (!json_parse(text, PROGRESS_BYTES_MAX, &o, NULL) || !json_is_object(o)) {
        return false;
    }
    (void)snprintf(id, sizeof id, "%lld", (long long)a->row.id);
    const char *attempt = json_string_value(json_object_get(o, "attempt"));
    const char *updated = json_string_value(json_object_get(o, "updated"));
    usec_t at_us = 0;
    if (attempt == NULL || strcmp(attempt, id) != 0 || updated == NULL ||
        !clock_parse_rfc3339(updated, &at_us, NULL)) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const json_t *v = json_object_get(o, keys[i]);
        figures[i] = json_is_integer(v) ? json_integer_value(v) : 0;
        if (figures[i] < 0 || figures[i] > FIGURE_MAX) {
            return false;
        }
    }
    *ret = (struct hang_detector_seen){.at_us = at_us,
                                       .rows_done = figures[0],
                                       .rows_total = figures[1],
                                       .bytes = figures[2],
                                       .shards_done = figures[3],
                                       .prepares = json_object_get(o, "prepared") != NULL,
                                       .prepared = figures[4]};
    return true;
}

enum progress_answer leader_progress_answer(const struct live_attempt *a, enum aws_outcome outcome,
                                            int status, struct str text,
                                            struct hang_detector_seen *ret)
{
    if (outcome == AWS_OK) {
        return read_progress(a, text, ret) ? PROGRESS_THERE : PROGRESS_ABSENT;
    }
    return outcome == AWS_REFUSED && status == 404 ? PROGRESS_ABSENT : PROGRESS_UNKNOWN;
}

/* Now, by the clock of those who write the objects: the newest one's time and what has passed here
 * since it was found to be new. Our own wall clock may jump, and would make every job look hung. */
static usec_t now_of(struct live_attempt *a, const struct hang_detector_seen *seen, int64_t boot_us)
{
    bool newer = seen != NULL && seen->at_us > a->hang.last.at_us;
    if (newer || a->fresh_us == 0) {
        a->fresh_us = boot_us;
    }
    usec_t since_us = newer                    ? seen->at_us
                      : a->hang.last.at_us > 0 ? a->hang.last.at_us
                                               : a->running_us;
    return MAX(since_us, a->running_us) + (boot_us - a->fresh_us);
}

static bool could_stop(const struct live_attempt *a)
{
    return a->p.wanted && a->row.state == ATTEMPT_RUNNING && !a->recording;
}

bool leader_progress_saw(struct leader_state *s, struct live_attempt *a,
                         const struct hang_detector_seen *seen, int64_t boot_us)
{
    const struct spec_guard *g = &a->stage->spec->guard;
    const struct hang_detector_rules rules = {.silent_us = g->hang_silent_s * USEC_PER_SEC,
                                              .standstill_us = g->hang_standstill_s * USEC_PER_SEC,
                                              .start_us = g->hang_start_s * USEC_PER_SEC};
    usec_t now_us = now_of(a, seen, boot_us);
    hang_detector_saw(&a->hang, seen, now_us);
    int64_t before = a->row.n > 1 ? a->hang.first.shards_done : 0; /* what it found there */
    if (seen != NULL && seen->shards_done > before) {
        stage_history_passed(s, a);
    }
    enum hang_detector_verdict v = hang_detector_check(&a->hang, &rules, a->running_us, now_us);
    a->hung = HANG_DETECTOR_NONE;
    if (v == HANG_DETECTOR_NONE) {
        a->suspect_us = 0;
    } else if (could_stop(a) && a->suspect_us == 0) {
        a->suspect_us = boot_us;
        return true;
    } else if (could_stop(a) && a->p.described_us > a->suspect_us) {
        /* A job that ended while SageMaker could not be asked has no progress either: it is hung
         * only when SageMaker says that it runs, asked after it began to look so. */
        a->hung = v;
    }
    return false;
}

bool leader_progress_stops(struct live_attempt *a, enum hang_detector_verdict *ret)
{
    *ret = a->hung;
    a->hung = HANG_DETECTOR_NONE;
    return *ret != HANG_DETECTOR_NONE && could_stop(a);
}

void leader_hung_text(enum hang_detector_verdict v, char *ret, size_t size)
{
    (void)snprintf(ret, size, "hangs (%s): stopped by drover, to be tried again",
                   hang_detector_verdict_name(v));
}

void leader_apply_hung(struct live_attempt *a)
{
    a->row.unwanted = true;
    a->row.stop_cause = CAUSE_TIMEOUT;
}
