/* Reads the progress objects of live parts now and then, a bounded number at once;
 * core/leader/progress.h says what they mean. */
#include "progress.h"
#include "attempt.h"
#include "calls.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/s3.h"
#include "core/leader/progress.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "parking.h"
#include "shell.h"
#include "store/leader/attempts.h"
#include "worker_protocol.h"
#include <stdio.h>

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
    leader_hung_text(v, h.text, sizeof h.text);
    if (!parking_tx(a->io->c, PARKING_ATTEMPT(a->row.campaign_id, a->row.id), write_hung, &h)) {
        return;
    }
    metric_add(METRIC_PARTS_HUNG, 1);
    log_event(LOG_WARN, "part_hung", LF_S("job", a->row.name.s),
              LF_S("how", hang_detector_verdict_name(v)),
              LF_I("rows_done", a->hang.last.rows_done));
    leader_apply_hung(a);
    attempt_unwant(a);
}

static void on_progress(void *ctx, const struct s3_result *r)
{
    struct progress_look *look = ctx;
    struct live_attempt *a = leader_state_attempt(&look->c->state, look->attempt_id);
    struct hang_detector_seen seen;
    bool waits = a != NULL && a->io->progress == look;
    look->c->progress_n--;
    free(look);
    if (!waits) {
        return;
    }
    int64_t boot_us = clock_boot_us();
    a->io->progress = NULL;
    a->io->c->state.act = true;
    enum progress_answer answer = leader_progress_answer(a, r->outcome, r->status, r->body, &seen);
    if (answer != PROGRESS_UNKNOWN &&
        leader_progress_saw(&a->io->c->state, a, answer == PROGRESS_THERE ? &seen : NULL,
                            boot_us)) {
        attempt_fact(a, &(struct fact){.kind = FACT_HINT, .at_us = boot_us});
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
    a->io->progress->attempt_id = a->row.id;
    a->io->progress->c = a->io->c;
    a->io->c->progress_n++;
    s3_get(a->io->c->aws, &u, 0, -1, PROGRESS_BYTES_MAX, on_progress, a->io->progress);
    return true;
}

void progress_tick(struct controller *c, int64_t *wake_us)
{
    int64_t now_us = clock_boot_us();
    enum hang_detector_verdict v;
    for (size_t i = 0; i < c->state.attempts_n && c->leading; i++) {
        struct live_attempt *a = c->state.attempts[i];
        if (leader_progress_stops(a, &v)) {
            stop_hung(a, v);
        }
        if (a->io->progress != NULL || !leader_progress_watched(a)) {
            continue;
        }
        if (!call_pace_room(c->progress_n)) {
            return; /* the answer causes the next look */
        }
        if (leader_progress_due(a, now_us, c->cfg.progress_interval_us)) {
            (void)look(a);
        }
        *wake_us = MIN(*wake_us, a->progress_us);
    }
}
