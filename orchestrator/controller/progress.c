/* How live parts get on: the progress object that our worker keeps beside its output is read now
 * and then, a bounded number at once. It proves the stage's work (a first durable shard), tells
 * when the part will end, and shows one that hangs: such a job is stopped and its part tried again,
 * from its last durable shard. */
#include "progress.h"
#include "attempt.h"
#include "calls.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "common/s3.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "shell.h"
#include "worker_protocol.h"
#include <stdio.h>

#define LOOKS_AT_ONCE 8
#define PROGRESS_MAX  65536
#define FIGURE_MAX    (INT64_MAX / 4)

/* Is it this attempt's, and what does it say? An object of an earlier attempt says nothing yet. */
static bool read_progress(const struct live_attempt *a, struct str text,
                          struct hang_detector_seen *ret)
{
    AUTO_JSON json_t *o = NULL;
    char id[24];
    int64_t figures[4] = {0};
    static const char *const keys[4] = {"rows_done", "rows_in", "bytes", "shards_done"};
    if (!json_parse(text, PROGRESS_MAX, &o, NULL) || !json_is_object(o)) {
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
    for (int i = 0; i < 4; i++) {
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
                                       .shards_done = figures[3]};
    return true;
}

static struct hang_detector_rules rules_of(const struct live_attempt *a)
{
    const struct spec_guard *g = &a->stage->spec->guard;
    return (struct hang_detector_rules){.silent_us = g->hang_silent_s * USEC_PER_SEC,
                                        .standstill_us = g->hang_standstill_s * USEC_PER_SEC,
                                        .start_us = g->hang_start_s * USEC_PER_SEC};
}

struct hung_arg {
    const struct live_attempt *attempt;
    char text[160];
};

static bool write_hung(struct controller *c, void *arg, struct err *err)
{
    const struct hung_arg *h = arg;
    return store_attempt_hung(c->store, h->attempt->row.id, CAUSE_TIMEOUT, h->text, err);
}

/* Written first: a leader that takes over must know why it finds the job stopped. */
static void stop_hung(struct live_attempt *a, enum hang_detector_verdict v)
{
    struct hung_arg h = {.attempt = a};
    (void)snprintf(h.text, sizeof h.text, "hangs (%s): stopped by drover, to be tried again",
                   hang_detector_verdict_name(v));
    if (!leader_tx(a->io->c, write_hung, &h)) {
        return;
    }
    metric_add(METRIC_PARTS_HUNG, 1);
    log_event(LOG_WARN, "part_hung", LF_S("job", a->row.name.s),
              LF_S("how", hang_detector_verdict_name(v)),
              LF_I("rows_done", a->hang.last.rows_done));
    a->row.unwanted = true;
    a->row.stop_cause = CAUSE_TIMEOUT;
    attempt_unwant(a);
}

/* A job that ended while SageMaker could not be asked has no progress either: it is hung only when
 * SageMaker says that it runs, asked after it began to look so. */
static bool runs_still(struct live_attempt *a)
{
    if (a->suspect_us == 0) {
        a->suspect_us = clock_boot_us();
        attempt_fact(a, &(struct fact){.kind = FACT_HINT, .at_us = a->suspect_us});
        return false;
    }
    return a->p.described_us > a->suspect_us;
}

/* Now, by the clock of those who write the objects: the newest one's time and what has passed here
 * since it was found to be new. Our own wall clock may jump, and would make every job look hung. */
static usec_t now_of(struct live_attempt *a, const struct hang_detector_seen *seen)
{
    int64_t boot_us = clock_boot_us();
    bool newer = seen != NULL && seen->at_us > a->hang.last.at_us;
    if (newer || a->fresh_us == 0) {
        a->fresh_us = boot_us;
    }
    usec_t since_us = newer                    ? seen->at_us
                      : a->hang.last.at_us > 0 ? a->hang.last.at_us
                                               : a->running_us;
    return MAX(since_us, a->running_us) + (boot_us - a->fresh_us);
}

static void judge(struct live_attempt *a, const struct hang_detector_seen *seen)
{
    usec_t now_us = now_of(a, seen);
    const struct hang_detector_rules rules = rules_of(a);
    hang_detector_saw(&a->hang, seen, now_us);
    int64_t before = a->row.n > 1 ? a->hang.first.shards_done : 0; /* what it found there */
    if (seen != NULL && seen->shards_done > before) {
        stage_history_passed(&a->io->c->state, a);
    }
    enum hang_detector_verdict v = hang_detector_check(&a->hang, &rules, a->running_us, now_us);
    if (v == HANG_DETECTOR_NONE) {
        a->suspect_us = 0;
    } else if (a->p.wanted && a->row.state == ATTEMPT_RUNNING && !a->recording && runs_still(a)) {
        stop_hung(a, v);
    }
}

static void on_progress(void *ctx, const struct s3_result *r)
{
    struct progress_look *look = ctx;
    struct live_attempt *a = look->attempt;
    struct hang_detector_seen seen;
    look->c->progress_n--;
    free(look);
    if (a == NULL) {
        return;
    }
    a->io->progress = NULL;
    a->io->c->state.act = true;
    bool there = r->outcome == AWS_OK && read_progress(a, r->body, &seen);
    bool absent = r->outcome == AWS_REFUSED && r->status == 404;
    if (there || absent || r->outcome == AWS_OK) { /* else nothing is known of it now */
        judge(a, there ? &seen : NULL);
    }
}

static bool look(struct live_attempt *a)
{
    struct s3_uri u;
    if (!output_folder(a, &u) || strlen(u.key) + sizeof WP_PROGRESS_KEY > sizeof u.key) {
        return false;
    }
    (void)snprintf(u.key + strlen(u.key), sizeof u.key - strlen(u.key), "%s", WP_PROGRESS_KEY);
    a->io->progress = xcalloc(1, sizeof *a->io->progress);
    a->io->progress->attempt = a;
    a->io->progress->c = a->io->c;
    a->io->c->progress_n++;
    s3_get(a->io->c->aws, &u, 0, -1, PROGRESS_MAX, on_progress, a->io->progress);
    return true;
}

void progress_tick(struct controller *c, int64_t *wake_us)
{
    int64_t now_us = clock_boot_us();
    for (size_t i = 0; i < c->state.attempts_n; i++) {
        struct live_attempt *a = c->state.attempts[i];
        bool ours = a->stage->spec != NULL && a->stage->spec->worker == WORKER_DOWNLOAD;
        if (!ours || a->row.state != ATTEMPT_RUNNING || a->io->progress != NULL || !a->p.wanted) {
            continue;
        }
        if (now_us >= a->progress_us) {
            if (c->progress_n >= LOOKS_AT_ONCE) {
                return; /* an answer brings us back */
            }
            a->progress_us = now_us + c->cfg.progress_interval_us;
            (void)look(a);
        }
        *wake_us = MIN(*wake_us, a->progress_us);
    }
}
