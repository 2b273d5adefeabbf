/* See archive.h. */
#include "archive.h"
#include "archive_export.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/archive_pace.h"
#include "parking.h"
#include "shell.h"
#include "store/leader/archive.h"
#include "store/leader/campaigns.h"
#include "store/leader/operations.h"

struct archive_arg {
    const struct operation_row *op;
    const char *refusal; /* "": none */
    struct archive_progress progress;
};

/* A retry was accepted as if there were no archive: what runs again keeps its rows. */
static bool give_up(struct controller *c, const struct archive_arg *a, struct err *err)
{
    const struct operation_row *op = a->op;
    AUTO_FREE char *text = xasprintf("operation %lld does not archive c-%lld: %s",
                                     (long long)op->id, (long long)op->campaign_id, a->refusal);
    return store_alert(c->store, op->campaign_id, text, err) &&
           store_archive_drop(c->store, op->campaign_id, err) &&
           store_operation_progress(c->store, op->id, OPERATION_CANCELLED, op->done, err);
}

static bool write_step(struct controller *c, void *arg, struct err *err)
{
    struct archive_arg *a = arg;
    const struct operation_row *op = a->op;
    struct archive_subject subject;
    if (!store_archive_subject(c->store, op->campaign_id, &subject, err)) {
        return false;
    }
    a->refusal = leader_archive_refusal(subject.state, subject.active);
    if (a->refusal[0] != '\0') {
        return give_up(c, a, err);
    }
    if (!store_archive_step(c->store, op->campaign_id, c->archive_rows, &a->progress, err)) {
        return false;
    }
    const struct archive_told told =
        leader_archive_told(op, a->progress.over, a->progress.attempts);
    return !told.tells || store_operation_progress(c->store, op->id, told.state, told.done, err);
}

bool archive_step(struct controller *c, const struct operation_row *op)
{
    struct archive_arg a = {.op = op, .refusal = ""};
    struct parking_subject who = PARKING_OPERATION(op->campaign_id, op->id);
    if (!parking_due(c, who) || (leader_archive_exports(op) && archive_export_goes_on(c, op))) {
        return false;
    }
    int64_t began_us = clock_mono_us();
    c->archive_rows = c->archive_rows > 0 ? c->archive_rows : leader_archive_rows(0, 0);
    if (!parking_tx(c, who, write_step, &a)) {
        c->archive_rows = 0;
        return false;
    }
    c->archive_rows = leader_archive_rows(c->archive_rows, clock_mono_us() - began_us);
    if (a.refusal[0] != '\0') {
        log_event(LOG_WARN, "archive_refused", LF_I("campaign", op->campaign_id),
                  LF_I("operation", op->id), LF_S("reason", a.refusal));
    }
    if (a.progress.over) {
        log_event(LOG_INFO, "campaign_archived", LF_I("campaign", op->campaign_id),
                  LF_I("attempts", a.progress.attempts));
    }
    loop_timer_set(c->tick_timer, ARCHIVE_PAUSE_US);
    return true;
}
