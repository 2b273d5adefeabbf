/* Carries core/leader/resource_sweep.h. Answers are noted in the callbacks and taken in the next
 * tick. */
#include "core/leader/resource_sweep.h"
#include "aws/fsx.h"
#include "aws/hosting.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/resource_answer.h"
#include "core/leader/resource_strays.h"
#include "lease.h"
#include "metrics.h"
#include "output_check.h"
#include "resource_sweep.h"
#include "store/leader/lease.h"
#include "store/leader/resource_strays.h"
#include <stdio.h>

enum asked { ASKED_NOTHING, ASKED_LIST, ASKED_TAG, ASKED_DESCRIBE, ASKED_CONFIG };

struct resource_sweeper {
    struct resource_sweep s;
    struct hosting_call *hosting;
    struct fsx_call *fsx;
    struct sagemaker_call *tag_call;
    size_t at; /* of the question */
    /* The answer; it waits for the tick. */
    enum asked asked;
    bool answered, failed, there;
    struct aws_failure failure;
    char tag[64];
    struct endpoint_description endpoint;
    struct filesystem_description filesystem;
    struct hosting_summary *rows; /* listed */
    struct filesystem_description *fs_rows;
    size_t rows_n;
};

static void forget_rows(struct resource_sweeper *o)
{
    free(o->rows);
    free(o->fs_rows);
    o->rows = NULL;
    o->fs_rows = NULL;
    o->rows_n = 0;
}

void resource_sweep_cancel(struct controller *c)
{
    struct resource_sweeper *o = c->resource_sweep;
    if (o == NULL) {
        return;
    }
    hosting_cancel(o->hosting);
    aws_fsx_cancel(o->fsx);
    sagemaker_cancel(o->tag_call);
    resource_sweep_clear(&o->s);
    forget_rows(o);
    free(o);
    c->resource_sweep = NULL;
}

static struct resource_sweeper *note(struct controller *c, const struct aws_failure *f)
{
    struct resource_sweeper *o = c->resource_sweep;
    o->hosting = NULL;
    o->fsx = NULL;
    o->tag_call = NULL;
    o->answered = true;
    o->there = false;
    o->failed = f != NULL;
    o->failure = f != NULL ? *f : (struct aws_failure){.outcome = AWS_OK};
    c->state.act = true;
    metric_add(METRIC_AWS_ERRORS, f != NULL);
    return o;
}

static void on_list(void *ctx, const struct hosting_summary *rows, size_t n,
                    const struct aws_failure *f)
{
    struct resource_sweeper *o = note(ctx, f);
    if (f == NULL && n > 0) {
        o->rows = xcalloc(n, sizeof *o->rows);
        memcpy(o->rows, rows, n * sizeof *rows);
        o->rows_n = n;
    }
}

static void on_fsx(void *ctx, enum fsx_answer answer, const union fsx_row *rows, size_t n,
                   const struct aws_failure *f)
{
    struct resource_sweeper *o = note(ctx, resource_answer_untold(answer, f));
    if (answer != FSX_DONE || n == 0) {
        return;
    }
    o->there = true;
    o->filesystem = rows[0].filesystem;
    if (o->asked == ASKED_LIST) {
        o->fs_rows = xcalloc(n, sizeof *o->fs_rows);
        for (size_t i = 0; i < n; i++) {
            o->fs_rows[i] = rows[i].filesystem;
        }
        o->rows_n = n;
    }
}

static void on_tag(void *ctx, const char *value, const struct aws_failure *f)
{
    struct resource_sweeper *o = note(ctx, f);
    (void)snprintf(o->tag, sizeof o->tag, "%s", f == NULL ? value : "");
}

static void on_describe(void *ctx, const struct endpoint_description *d, bool not_found UNUSED,
                        const struct aws_failure *f)
{
    struct resource_sweeper *o = note(ctx, f);
    if (d != NULL) {
        o->there = true;
        o->endpoint = *d;
    }
}

struct stray_write {
    struct resource_stray_row row;
    bool new;
};

static bool write_stray(struct controller *c, void *arg, struct err *err)
{
    struct stray_write *v = arg;
    return store_resource_stray_put(c->store, &v->row, &v->new, err);
}

static enum resource_then hold(struct controller *c, const struct resource_found *u)
{
    struct err err;
    struct stray_write v = {.new = false};
    if (!resource_sweep_row(&c->state, u, &v.row)) {
        return RESOURCE_DECIDED;
    }
    enum tx_meaning meaning = leader_try(c, write_stray, &v, &err);
    if (meaning == TX_REFUSED) {
        if (log_allow("stray_not_written")) {
            log_event(LOG_ERROR, "stray_not_written", LF_S("name", v.row.name), LF_ERR(&err));
        }
    } else if (meaning == TX_DONE && v.new) {
        leader_apply_resource_stray(&c->state, &v.row);
        log_event(LOG_WARN, "stray_found", LF_S("name", v.row.name),
                  LF_S("kind", resource_kind_name(v.row.kind)),
                  LF_S("remedy", "drover strays shows it"));
    } else if (meaning == TX_DONE && log_allow("stray_not_held")) {
        log_event(LOG_ERROR, "stray_not_held", LF_S("name", v.row.name),
                  LF_S("kind", resource_kind_name(v.row.kind)),
                  LF_S("reason", "its name is known otherwise: it is billed and booked nowhere"),
                  LF_S("remedy", "delete it at AWS"));
    }
    return resource_sweep_held(meaning);
}

static void take_list(struct controller *c, struct resource_sweeper *o)
{
    int64_t boot_us = clock_boot_us();
    if (o->failed) {
        if (log_allow("resource_sweep_failed")) {
            log_event(LOG_WARN, "resource_sweep_failed",
                      LF_S("kind", resource_kind_name(o->s.list)), LF_S("code", o->failure.code));
        }
        resource_sweep_unlisted(&o->s, &o->failure, boot_us);
    } else if (o->s.list == RESOURCE_FILE_SYSTEM) {
        resource_sweep_filesystems(&o->s, &c->state, o->fs_rows, o->rows_n, boot_us);
    } else {
        resource_sweep_hosting(&o->s, &c->state, c->cfg.job_prefix, o->rows, o->rows_n, boot_us);
    }
    forget_rows(o);
}

static enum resource_then decide(struct controller *c, struct resource_sweeper *o)
{
    struct resource_found *u = &o->s.found[o->at];
    const struct aws_failure *f = o->failed ? &o->failure : NULL;
    const struct endpoint_description *d = o->there ? &o->endpoint : NULL;
    if (o->asked == ASKED_TAG) {
        enum resource_then then = resource_sweep_tag(u, o->tag, c->state.install_id, f);
        if (f != NULL && then == RESOURCE_DECIDED && log_allow("tags_unreadable")) {
            log_event(LOG_WARN, "tags_unreadable", LF_S("name", u->name), LF_S("code", f->code),
                      LF_S("remedy", "allow sagemaker:ListTags"));
        }
        return then;
    }
    if (o->asked == ASKED_CONFIG) {
        return resource_sweep_config(u, d, f);
    }
    if (u->kind == RESOURCE_FILE_SYSTEM) {
        return resource_sweep_filesystem(u, o->there ? &o->filesystem : NULL, f);
    }
    return resource_sweep_described(u, d, f);
}

static void take_answer(struct controller *c, struct resource_sweeper *o)
{
    if (!o->answered) {
        return;
    }
    o->answered = false;
    if (o->asked == ASKED_LIST) {
        take_list(c, o);
    } else {
        enum resource_then then = decide(c, o);
        if (then == RESOURCE_HOLD) {
            then = hold(c, &o->s.found[o->at]);
        }
        resource_sweep_apply(&o->s, o->at, then, clock_boot_us());
    }
    o->asked = ASKED_NOTHING;
}

static const enum hosting_kind hosting_kinds[] = {
    [RESOURCE_ENDPOINT] = HOSTING_ENDPOINT,
    [RESOURCE_ENDPOINT_CONFIG] = HOSTING_CONFIG,
    [RESOURCE_MODEL] = HOSTING_MODEL,
};

static void list(struct controller *c, struct resource_sweeper *o, enum resource_kind kind)
{
    char contains[64];
    o->asked = ASKED_LIST;
    metric_add(METRIC_AWS_REQUESTS, 1);
    if (kind == RESOURCE_FILE_SYSTEM) {
        o->fsx = aws_fsx_list(c->aws, lease_gate(c), FSX_FILESYSTEM, NULL, on_fsx, c);
        return;
    }
    leader_list_prefix(c->cfg.job_prefix, contains);
    o->hosting = hosting_list(c->aws, lease_gate(c), hosting_kinds[kind], contains, on_list, c);
}

static void ask(struct controller *c, struct resource_sweeper *o)
{
    const struct resource_found *u = &o->s.found[o->at];
    struct aws_gate gate = lease_gate(c);
    metric_add(METRIC_AWS_REQUESTS, 1);
    switch (resource_sweep_question(u)) {
    case RESOURCE_ASK_TAG:
        o->asked = ASKED_TAG;
        o->tag_call = sagemaker_tag(c->aws, gate, u->arn, "drover-install", on_tag, c);
        break;
    case RESOURCE_ASK_DESCRIBE:
        o->asked = ASKED_DESCRIBE;
        if (u->kind == RESOURCE_FILE_SYSTEM) {
            o->fsx = aws_fsx_describe(c->aws, gate, FSX_FILESYSTEM, u->name, on_fsx, c);
        } else {
            o->hosting =
                hosting_describe(c->aws, gate, hosting_kinds[u->kind], u->name, on_describe, c);
        }
        break;
    case RESOURCE_ASK_CONFIG:
        o->asked = ASKED_CONFIG;
        o->hosting =
            hosting_describe(c->aws, gate, HOSTING_CONFIG, u->shown.config, on_describe, c);
        break;
    }
}

void resource_sweep_tick(struct controller *c, int64_t *wake_us)
{
    if (c->resource_sweep == NULL) {
        c->resource_sweep = xcalloc(1, sizeof *c->resource_sweep);
    }
    struct resource_sweeper *o = c->resource_sweep;
    take_answer(c, o);
    if (!c->leading || o->asked != ASKED_NOTHING) {
        return;
    }
    o->at = resource_sweep_due(&o->s, clock_boot_us(), wake_us);
    if (o->at < o->s.n) {
        ask(c, o);
        return;
    }
    enum resource_kind kind = resource_sweep_list_due(&o->s, clock_boot_us(), wake_us);
    if (kind != RESOURCE_KIND_COUNT) {
        list(c, o, kind);
    }
}
