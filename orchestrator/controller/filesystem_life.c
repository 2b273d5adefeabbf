/* See filesystem_life.h. */
#include "filesystem_life.h"
#include "aws/fsx.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/filesystem_life.h"
#include "core/leader/filesystem_time.h"
#include "core/leader/filesystem_use.h"
#include "core/leader/resource_answer.h"
#include "core/leader/resource_pace.h"
#include "core/leader/rows_read.h"
#include "core/lowering/filesystem_request.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "store/leader/campaigns.h"
#include "store/leader/filesystems.h"
#include "store/leader/lease.h"
#include "wall.h"
#include <stdio.h>

struct filesystem_io { /* the one call about a file system that is under way, and its answer */
    struct controller *c;
    int64_t filesystem_id;
    struct fsx_call *call;
    bool answered; /* what follows waits for the tick */
    struct filesystem_heard heard;
    struct job_name token;
    char task_id[sizeof((struct live_filesystem *)NULL)->task_id];
};

static bool calling(const struct filesystem_io *io)
{
    return io->call != NULL || io->answered;
}

void filesystem_attach_io(struct controller *c, struct live_filesystem *f)
{
    f->io = xcalloc(1, sizeof *f->io);
    f->io->c = c;
    f->io->filesystem_id = f->row.id;
    f->io->token = f->row.token;
}

static void detach_io(struct live_filesystem *f)
{
    aws_fsx_cancel(f->io->call);
    free(f->io);
    f->io = NULL;
}

void filesystems_cancel(struct controller *c)
{
    for (size_t i = 0; i < c->state.filesystems_n; i++) {
        if (c->state.filesystems[i]->io != NULL) {
            detach_io(c->state.filesystems[i]);
        }
    }
}

bool filesystems_read(struct controller *c, struct err *err)
{
    AUTO_FREE struct filesystem_row *rows = NULL;
    size_t n = 0;
    if (!view_filesystems(c->store, &rows, &n, err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        rows_filesystem_times(&rows[i], leader_aws_now(c));
    }
    int64_t lease_end_us = lease_others_end_us(c);
    if (leader_take_filesystems(&c->state, rows, n, lease_end_us)) {
        log_event(LOG_INFO, "filesystem_wish", LF_I("filesystems", n));
    }
    for (size_t i = 0; i < c->state.filesystems_n; i++) {
        struct live_filesystem *f = c->state.filesystems[i];
        if (f->io == NULL && !filesystem_state_terminal(f->row.state)) {
            filesystem_attach_io(c, f);
        }
    }
    return true;
}

static void on_answer(void *ctx, enum fsx_answer answer, const union fsx_row *rows, size_t n,
                      const struct aws_failure *f)
{
    struct filesystem_io *io = ctx;
    const struct filesystem_asked asked = {
        .install_id = io->c->state.install_id, .token = io->token.s, .task_id = io->task_id};
    io->call = NULL;
    io->answered = true;
    io->c->state.act = true;
    metric_add(METRIC_AWS_ERRORS, f != NULL);
    resource_answer_filesystem(&io->heard, &asked, answer, rows, n, f);
}

struct filesystem_write {
    const struct filesystem_writes *w;
    enum filesystem_state from;
};

static bool tell(struct controller *c, const struct filesystem_row *r, struct err *err)
{
    char text[sizeof r->reason + sizeof r->token.s + 16];
    (void)snprintf(text, sizeof text, "file system %s: %s", r->token.s, r->reason);
    return store_alert(c->store, r->campaign_id, text, err);
}

static bool write_row(struct controller *c, void *arg, struct err *err)
{
    const struct filesystem_write *a = arg;
    if (a->w->tell && !tell(c, &a->w->row, err)) {
        return false;
    }
    if (a->w->news == FILESYSTEM_OVER) {
        return store_filesystem_end(c->store, &a->w->row, &a->w->end, err);
    }
    return store_filesystem_move(c->store, &a->w->row, a->from, leader_filesystem_until(&a->w->row),
                                 err);
}

static void log_move(const struct filesystem_writes *w, enum filesystem_state from)
{
    const struct filesystem_row *r = &w->row;
    if (w->news == FILESYSTEM_OVER) {
        metric_add(METRIC_COST_MUSD, w->end.cost_musd);
        log_event(LOG_INFO, "filesystem_ended", LF_S("filesystem", r->token.s),
                  LF_S("to", filesystem_state_name(r->state)), LF_S("reason", r->reason),
                  LF_I("cost_micro_usd", w->end.cost_musd));
    } else if (r->state != from) {
        log_event(LOG_INFO, "filesystem_moved", LF_S("filesystem", r->token.s),
                  LF_S("to", filesystem_state_name(r->state)), LF_S("reason", r->reason));
    }
}

static void carry(struct controller *c, struct live_filesystem *f,
                  const struct filesystem_writes *w)
{
    struct filesystem_write a = {.w = w, .from = f->row.state};
    if (w->news == FILESYSTEM_AS_BEFORE) {
        return;
    }
    if (leader_tx(c, write_row, &a)) {
        log_move(w, a.from);
        leader_apply_filesystem(&c->state, f, w);
    } else if (c->leading) {
        leader_filesystem_not_written(f, clock_boot_us());
    }
}

static void take_answer(struct controller *c, struct live_filesystem *f)
{
    struct filesystem_writes w;
    const struct filesystem_description *seen = f->io->heard.fact.seen;
    f->io->answered = false;
    leader_filesystem_created(f, seen != NULL ? seen->created : 0, leader_aws_now(c));
    leader_plan_filesystem_fact(f, &f->io->heard.fact, leader_aws_now(c), clock_boot_us(), &w);
    if (w.error.code != ERR_NONE && log_allow("filesystem_not_booked")) {
        log_event(LOG_ERROR, "filesystem_not_booked", LF_S("filesystem", f->row.token.s),
                  LF_ERR(&w.error));
    }
    carry(c, f, &w);
    if (filesystem_state_terminal(f->row.state)) {
        detach_io(f);
    }
}

void filesystems_record(struct controller *c)
{
    for (size_t i = 0; i < c->state.filesystems_n && c->leading; i++) {
        struct live_filesystem *f = c->state.filesystems[i];
        if (f->io != NULL && f->io->answered) {
            take_answer(c, f);
        }
    }
}

struct filesystem_request_arg {
    int64_t id;
    struct buf *bytes;
};

static bool read_request(struct controller *c, void *arg, struct err *err)
{
    const struct filesystem_request_arg *a = arg;
    return store_filesystem_request(c->store, a->id, a->bytes, err);
}

static void create(struct controller *c, struct live_filesystem *f)
{
    AUTO_BUF struct buf bytes = BUF_INIT(FILESYSTEM_REQUEST_BYTES_MAX);
    struct filesystem_request_arg a = {.id = f->row.id, .bytes = &bytes};
    if (!leader_tx(c, read_request, &a)) {
        leader_filesystem_not_written(f, clock_boot_us());
        return;
    }
    log_event(LOG_INFO, "filesystem_create", LF_S("filesystem", f->row.token.s));
    f->io->call =
        aws_fsx_create(c->aws, lease_gate(c), FSX_FILESYSTEM, buf_str(&bytes), on_answer, f->io);
}

/* What belongs to a file system that is there. */
static void create_of(struct controller *c, struct live_filesystem *f, bool link)
{
    AUTO_BUF struct buf bytes = BUF_INIT(FILESYSTEM_REQUEST_BYTES_MAX);
    const struct filesystem_request_of of = {f->row.token.s, f->row.aws_id};
    if (link) {
        filesystem_request_link(&of, f->row.import_from, &bytes);
        f->io->call = aws_fsx_create(c->aws, lease_gate(c), FSX_ASSOCIATION, buf_str(&bytes),
                                     on_answer, f->io);
    } else {
        filesystem_request_export(&of, f->tasks_failed + 1, &bytes);
        f->io->call =
            aws_fsx_create(c->aws, lease_gate(c), FSX_TASK, buf_str(&bytes), on_answer, f->io);
    }
}

static void call(struct controller *c, struct live_filesystem *f, enum filesystem_act act)
{
    struct filesystem_io *io = f->io;
    const char *id = f->row.aws_id;
    io->heard.fact = (struct filesystem_fact){
        .act = act, .window_us = c->cfg.signature_window_us, .asked_us = clock_boot_us()};
    metric_add(METRIC_AWS_REQUESTS, 1);
    switch (act) {
    case FILESYSTEM_ACT_NONE:
        break;
    case FILESYSTEM_ACT_FIND:
        io->call = aws_fsx_list(c->aws, lease_gate(c), FSX_FILESYSTEM, NULL, on_answer, io);
        break;
    case FILESYSTEM_ACT_CREATE:
        create(c, f);
        break;
    case FILESYSTEM_ACT_DESCRIBE:
        io->call = aws_fsx_describe(c->aws, lease_gate(c), FSX_FILESYSTEM, id, on_answer, io);
        break;
    case FILESYSTEM_ACT_FIND_LINK:
        io->call = aws_fsx_list(c->aws, lease_gate(c), FSX_ASSOCIATION, id, on_answer, io);
        break;
    case FILESYSTEM_ACT_LINK:
    case FILESYSTEM_ACT_EXPORT:
        create_of(c, f, act == FILESYSTEM_ACT_LINK);
        break;
    case FILESYSTEM_ACT_TASKS:
        (void)snprintf(io->task_id, sizeof io->task_id, "%s", f->task_id);
        io->call = aws_fsx_list(c->aws, lease_gate(c), FSX_TASK, id, on_answer, io);
        break;
    case FILESYSTEM_ACT_DELETE:
        io->call = aws_fsx_end(c->aws, lease_gate(c), FSX_FILESYSTEM, id, on_answer, io);
        break;
    }
}

static void act(struct controller *c, struct live_filesystem *f, int64_t *wake_us)
{
    struct filesystem_writes w;
    int64_t poll_us = resource_pace_poll_us(c->cfg.observe_interval_us);
    if (leader_filesystem_end_due(f, clock_boot_us())) {
        leader_plan_filesystem_end(&c->state, f, leader_aws_now(c), &w);
        carry(c, f, &w);
    }
    if (!c->leading) {
        return;
    }
    enum filesystem_act what =
        leader_filesystem_next(&c->state, f, leader_aws_now(c), clock_boot_us(), poll_us, wake_us);
    if (what != FILESYSTEM_ACT_NONE) {
        call(c, f, what);
    }
}

void filesystems_tick(struct controller *c, int64_t *wake_us)
{
    size_t calls = 0;
    for (size_t i = 0; i < c->state.filesystems_n; i++) {
        const struct filesystem_io *io = c->state.filesystems[i]->io;
        calls += io != NULL && calling(io);
    }
    for (size_t i = 0; i < c->state.filesystems_n && c->leading && call_pace_room(calls); i++) {
        struct live_filesystem *f = c->state.filesystems[i];
        if (f->io == NULL || calling(f->io)) {
            continue;
        }
        act(c, f, wake_us);
        calls += calling(f->io);
    }
}
