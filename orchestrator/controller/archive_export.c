/* See archive_export.h. Rows of an ended campaign do not change: an object that is written twice
 * has the same bytes. */
#include "archive_export.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/s3.h"
#include "core/leader/archive_pace.h"
#include "lease.h"
#include "metrics.h"
#include "parking.h"
#include "shell.h"
#include "store/leader/archive_export.h"
#include <stdio.h>

#define ROWS      1000
#define BYTES_MAX ((size_t)64 * 1024 * 1024) /* a manifest of 16 MiB is longer as jsonb's text */

struct archive_put {          /* of the request, which may outlive the leadership */
    struct archive_export *e; /* NULL: nobody waits for the answer */
};
struct archive_export {
    struct controller *c;
    int64_t campaign_id;
    struct archive_object object;
    struct archive_put *put; /* NULL: no request is under way */
    bool answered, ok;
    char problem[500];
    struct archive_put_pace pace;
};

static void drop(struct controller *c, size_t at)
{
    struct archive_export *e = c->archive_exports[at];
    if (e == NULL) {
        return;
    }
    if (e->put != NULL) {
        e->put->e = NULL;
    }
    buf_done(&e->object.text);
    free(e);
    c->archive_exports[at] = NULL;
}

void archive_export_cancel(struct controller *c)
{
    for (size_t i = 0; i < ARCHIVE_EXPORTS; i++) {
        drop(c, i);
    }
}

static void on_put(void *ctx, const struct s3_result *r)
{
    struct archive_put *put = ctx;
    struct archive_export *e = put->e;
    free(put);
    if (e == NULL) {
        return;
    }
    e->put = NULL;
    e->answered = true;
    e->ok = r->outcome == AWS_OK;
    (void)snprintf(e->problem, sizeof e->problem, "%.499s", e->ok ? "" : r->err.message);
    metric_add(METRIC_AWS_ERRORS, !e->ok);
    e->c->state.look_at_db = true;
}

static bool read_object(struct controller *c, void *arg, struct err *err)
{
    struct archive_export *e = arg;
    buf_done(&e->object.text);
    e->object = (struct archive_object){.text = BUF_INIT(BYTES_MAX)};
    return store_archive_object(c->store, e->campaign_id, ROWS, &e->object, err);
}

static bool write_answer(struct controller *c, void *arg, struct err *err)
{
    const struct archive_export *e = arg;
    return e->ok ? store_archive_exported(c->store, e->campaign_id, &e->object, err)
                 : store_archive_export_failed(c->store, e->campaign_id, e->problem, err);
}

/* False: it is not written down, and sent again. */
static bool take_answer(struct controller *c, struct archive_export *e, struct parking_subject who)
{
    e->answered = false;
    leader_archive_put_answered(&e->pace, e->ok, clock_boot_us());
    if (!e->ok && log_allow("archive_not_exported")) {
        log_event(LOG_WARN, "archive_not_exported", LF_I("campaign", e->campaign_id),
                  LF_S("object", e->object.uri), LF_S("reason", e->problem));
    }
    return parking_tx(c, who, write_answer, e);
}

static void put_object(struct controller *c, struct archive_export *e)
{
    struct s3_uri uri;
    struct err err = ERR_INIT;
    if (!s3_parse_uri(str_of(e->object.uri), &uri, &err)) { /* the API has read it */
        leader_archive_put_nowhere(&e->pace, clock_boot_us());
        if (log_allow("archive_not_exported")) {
            log_event(LOG_ERROR, "archive_not_exported", LF_I("campaign", e->campaign_id),
                      LF_ERR(&err));
        }
        return;
    }
    e->put = xcalloc(1, sizeof *e->put);
    e->put->e = e;
    metric_add(METRIC_AWS_REQUESTS, 1);
    s3_put(c->aws, &uri, buf_str(&e->object.text), "application/x-ndjson", NULL,
           c->cfg.bucket_kms_key, on_put, e->put);
}

/* ARCHIVE_EXPORTS: all are busy with others. */
static size_t place_of(struct controller *c, int64_t campaign_id)
{
    size_t free_at = ARCHIVE_EXPORTS;
    for (size_t i = ARCHIVE_EXPORTS; i-- > 0;) {
        const struct archive_export *e = c->archive_exports[i];
        if (e != NULL && e->campaign_id == campaign_id) {
            return i;
        }
        free_at = e == NULL ? i : free_at;
    }
    return free_at;
}

bool archive_export_goes_on(struct controller *c, const struct operation_row *op)
{
    struct parking_subject who = PARKING_OPERATION(op->campaign_id, op->id);
    size_t at = place_of(c, op->campaign_id);
    if (at == ARCHIVE_EXPORTS) {
        return true;
    }
    if (c->archive_exports[at] == NULL) {
        c->archive_exports[at] = xcalloc(1, sizeof *c->archive_exports[at]);
        c->archive_exports[at]->c = c;
        c->archive_exports[at]->campaign_id = op->campaign_id;
    }
    struct archive_export *e = c->archive_exports[at];
    if (e->put != NULL || (e->answered && !take_answer(c, e, who)) ||
        !leader_archive_put_due(&e->pace, clock_boot_us()) || !parking_tx(c, who, read_object, e)) {
        return true;
    }
    if (e->object.due) {
        put_object(c, e);
        return true;
    }
    drop(c, at);
    return false;
}
