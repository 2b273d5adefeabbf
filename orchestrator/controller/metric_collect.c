/* See metric_collect.h. */
#include "metric_collect.h"
#include "aws/log_pages.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/metric_logs.h"
#include "core/metrics/metric_collect.h"
#include "core/metrics/metric_line.h"
#include "lease.h"
#include "metrics.h"
#include "store/leader/metrics.h"

#define VALUES_MAX     4096 /* of one transaction */
#define METRICS_JSON_N (256 * 1024)

/* The log of one attempt. */
struct metric_log {
    struct controller *c;
    int64_t attempt_id, campaign_id;
    struct job_name job;
    struct metric_collect m;
    struct metric_lines *lines;
    enum metric_act asked; /* the call under way */
    struct log_pages_call *call;
    struct sagemaker_call *final_call;
    /* an answer that waits for the tick */
    bool answered;
    int64_t page_n, upto;
    int64_t step_before; /* of the page */
    char next[METRIC_TOKEN_MAX];
    struct metric_value *values; /* [values_n] */
    size_t values_n;
    struct job_metric *final; /* [final_n] */
    size_t final_n;
    int write_refusals; /* in a row */
    bool over;          /* closed */
};

static void log_forget_answer(struct metric_log *l)
{
    free(l->values);
    free(l->final);
    l->values = NULL;
    l->final = NULL;
    l->values_n = l->final_n = 0;
    l->answered = false;
}

static void log_free(struct metric_log *l)
{
    log_pages_cancel(l->call);
    sagemaker_cancel(l->final_call);
    log_forget_answer(l);
    metric_lines_free(l->lines);
    free(l);
}

void metric_collect_cancel(struct controller *c)
{
    for (size_t i = 0; i < c->metric_logs_n; i++) {
        log_free(c->metric_logs[i]);
    }
    free(c->metric_logs);
    c->metric_logs = NULL;
    c->metric_logs_n = 0;
}

static struct metric_log *log_add(struct controller *c, int64_t attempt_id, int64_t campaign_id,
                                  const struct job_name *job, const struct spec_metric *metrics,
                                  int metrics_n)
{
    struct metric_log *l = xcalloc(1, sizeof *l);
    *l = (struct metric_log){.c = c,
                             .attempt_id = attempt_id,
                             .campaign_id = campaign_id,
                             .job = *job,
                             .lines = metric_lines_new(metrics, metrics_n)};
    metric_logs_begin(&l->m, c->cfg.observe_interval_us);
    c->metric_logs = xrealloc(c->metric_logs, (c->metric_logs_n + 1) * sizeof(struct metric_log *));
    c->metric_logs[c->metric_logs_n++] = l;
    return l;
}

/* [[name, regex], ...] as spec_to_json writes it; what is not a pair is left out. */
static int metrics_of(const json_t *list, struct spec_metric *ret)
{
    size_t i;
    int n = 0;
    json_t *pair;
    json_array_foreach((json_t *)(uintptr_t)list, i, pair)
    {
        const char *name = json_string_value(json_array_get(pair, 0));
        const char *regex = json_string_value(json_array_get(pair, 1));
        if (name != NULL && regex != NULL && n < SPEC_METRICS_MAX) {
            ret[n++] = (struct spec_metric){name, regex};
        }
    }
    return n;
}

static void take_row(struct controller *c, const struct metric_source_row *row)
{
    AUTO_JSON json_t *list = NULL;
    struct spec_metric metrics[SPEC_METRICS_MAX];
    struct err ignored = ERR_INIT;
    int n = row->metrics_json != NULL &&
                    json_parse(str_of(row->metrics_json), METRICS_JSON_N, &list, &ignored)
                ? metrics_of(list, metrics)
                : 0;
    struct metric_log *l = log_add(c, row->attempt_id, row->campaign_id, &row->job, metrics, n);
    l->m.place = row->place;
    if (n == 0) { /* an attempt whose log is read has metrics: its spec cannot be read now */
        metric_collect_blind(&l->m, clock_boot_us());
    }
    metric_lines_set_step(l->lines, row->step);
}

bool metric_collect_load(struct controller *c, void *arg, struct err *err)
{
    struct metric_source_row *rows = NULL;
    size_t n = 0;
    (void)arg;
    if (!view_metric_sources(c->store, &rows, &n, err)) {
        return false;
    }
    metric_collect_cancel(c);
    c->metrics_known = false;
    for (size_t i = 0; i < n; i++) {
        take_row(c, &rows[i]);
        free(rows[i].metrics_json);
    }
    free(rows);
    return true;
}

void metric_collect_spec_read(struct controller *c, int64_t campaign_id)
{
    for (size_t i = 0; i < c->metric_logs_n; i++) {
        const struct metric_log *l = c->metric_logs[i];
        c->metrics_known |= l->m.blind && l->campaign_id == campaign_id;
    }
}

void metric_collect_watch(struct controller *c, const struct live_attempt *a)
{
    const struct spec_training *t = a->stage->spec != NULL ? a->stage->spec->training : NULL;
    if (t != NULL && t->metrics_n > 0) {
        (void)log_add(c, a->row.id, a->row.campaign_id, &a->row.name, t->metrics, t->metrics_n);
    }
}

static void answer_failed(struct metric_log *l, const struct aws_failure *f)
{
    metric_add(METRIC_AWS_ERRORS, 1);
    metric_add(METRIC_AWS_THROTTLED, f->outcome == AWS_THROTTLED);
    if (log_allow("metrics_unreadable")) {
        log_event(LOG_WARN, "metrics_unreadable", LF_S("job", l->job.s), LF_S("code", f->code),
                  LF_I("status", f->status), LF_S("text", f->message));
    }
    metric_collect_failed(&l->m, l->asked, f, clock_boot_us());
}

static void on_stream(void *ctx, const char *name, const struct aws_failure *f)
{
    struct metric_log *l = ctx;
    l->call = NULL;
    l->c->state.act = true;
    if (f != NULL) {
        answer_failed(l, f);
    } else {
        metric_collect_stream(&l->m, name, clock_boot_us());
    }
}

/* The values of the lines that were not taken yet, as many as one transaction holds. */
static void on_page(void *ctx, const struct log_line *lines, size_t n, const char *next,
                    const struct aws_failure *f)
{
    struct metric_log *l = ctx;
    l->call = NULL;
    l->c->state.act = true;
    if (f != NULL) {
        answer_failed(l, f);
        return;
    }
    int64_t i = metric_place_first(&l->m.place, (int64_t)n);
    l->step_before = metric_lines_step(l->lines);
    l->values = xcalloc(VALUES_MAX, sizeof *l->values);
    for (; i < (int64_t)n && l->values_n + SPEC_METRICS_MAX <= VALUES_MAX; i++) {
        l->values_n += (size_t)metric_lines_read(l->lines, lines[i].time, lines[i].text,
                                                 l->values + l->values_n);
    }
    l->page_n = (int64_t)n;
    l->upto = i;
    (void)snprintf(l->next, sizeof l->next, "%s", strlen(next) < sizeof l->next ? next : "");
    l->answered = true;
}

static void on_final(void *ctx, const struct job_metric *metrics, size_t n,
                     const struct aws_failure *f)
{
    struct metric_log *l = ctx;
    l->final_call = NULL;
    l->c->state.act = true;
    if (f != NULL) {
        answer_failed(l, f);
        return;
    }
    l->final = xcalloc(n + 1, sizeof *l->final);
    for (size_t i = 0; i < n; i++) {
        if (metric_logs_keeps(metrics[i].name)) {
            l->final[l->final_n++] = metrics[i];
        }
    }
    metric_collect_final(&l->m);
}

static bool write_values(struct controller *c, const struct metric_log *l, struct err *err)
{
    const char *names[SPEC_METRICS_MAX] = {NULL};
    AUTO_FREE int64_t *numbers = xcalloc(3 * l->values_n + 1, sizeof *numbers);
    AUTO_FREE double *values = xcalloc(l->values_n + 1, sizeof *values);
    int64_t *at_us = numbers + l->values_n, *step = at_us + l->values_n;
    for (int i = 0; i < metric_lines_n(l->lines); i++) {
        names[i] = metric_lines_name(l->lines, i);
    }
    for (size_t i = 0; i < l->values_n; i++) {
        numbers[i] = l->values[i].metric_i;
        at_us[i] = l->values[i].at_us;
        step[i] = l->values[i].step;
        values[i] = l->values[i].value;
    }
    const struct metric_points p = {.names = names,
                                    .names_n = (size_t)metric_lines_n(l->lines),
                                    .name_i = numbers,
                                    .at_us = at_us,
                                    .step = step,
                                    .value = values,
                                    .n = l->values_n};
    return store_metric_points(c->store, l->attempt_id, &p, err);
}

struct page_arg {
    const struct metric_log *log;
    struct metric_collect after;
};

static bool write_page(struct controller *c, void *arg, struct err *err)
{
    const struct page_arg *a = arg;
    return (a->log->values_n == 0 || write_values(c, a->log, err)) &&
           store_metric_source(c->store, a->log->attempt_id, &a->after.place,
                               metric_lines_step(a->log->lines), a->after.note, err);
}

/* One transaction. */
static bool written(struct metric_log *l, leader_fn *fn, void *arg)
{
    struct err err;
    enum tx_meaning meaning = leader_try(l->c, fn, arg, &err);
    if (meaning == TX_DONE) {
        l->write_refusals = 0;
        return true;
    }
    metric_logs_not_written(&l->m, &l->write_refusals, meaning == TX_REFUSED, clock_boot_us());
    if (meaning == TX_REFUSED && log_allow("metrics_refused")) {
        log_event(LOG_WARN, "metrics_refused", LF_S("job", l->job.s), LF_ERR(&err));
    }
    return false;
}

/* The values of a page and how far it was read, in one transaction. Not written: the page is asked
 * for again. A page without a new line is not written. */
static void take_page(struct metric_log *l)
{
    struct page_arg a = {.log = l, .after = l->m};
    int64_t first = metric_place_first(&l->m.place, l->page_n);
    metric_collect_page(&a.after, l->page_n, l->upto, l->next, clock_boot_us());
    if (l->upto == first || written(l, write_page, &a)) {
        l->m = a.after;
    } else {
        metric_lines_set_step(l->lines, l->step_before);
    }
    log_forget_answer(l);
}

static bool write_close(struct controller *c, void *arg, struct err *err)
{
    const struct metric_log *l = arg;
    const char *names[JOB_METRICS_MAX] = {NULL};
    double values[JOB_METRICS_MAX];
    const char *aside = metric_lines_set_aside(l->lines);
    AUTO_FREE char *note = aside != NULL && l->m.note[0] == '\0'
                               ? xasprintf("the regex of '%s' takes too long", aside)
                               : xstrdup(l->m.note);
    for (size_t i = 0; i < l->final_n; i++) {
        names[i] = l->final[i].name;
        values[i] = l->final[i].value;
    }
    return store_metric_source(c->store, l->attempt_id, &l->m.place, metric_lines_step(l->lines),
                               note, err) &&
           store_metric_close(c->store, l->attempt_id, names, values, l->final_n, err);
}

static void close_log(struct metric_log *l)
{
    if (written(l, write_close, l)) {
        l->over = true;
        l->c->state.look_at_db = true; /* a gate may wait for it */
    }
}

static void ask(struct metric_log *l, enum metric_act act)
{
    struct controller *c = l->c;
    struct aws_gate gate = lease_gate(c);
    l->asked = act;
    metric_add(METRIC_AWS_REQUESTS, 1);
    if (act == METRIC_ASK_STREAM) {
        l->call = log_stream_after(c->aws, gate, l->job.s, l->m.place.stream, on_stream, l);
    } else if (act == METRIC_ASK_PAGE) {
        l->call = log_page_get(c->aws, gate, l->m.place.stream, l->m.place.token, on_page, l);
    } else {
        l->final_call = sagemaker_final_metrics(c->aws, gate, l->job.s, on_final, l);
    }
}

static void go_on(struct metric_log *l, size_t *under_way, int64_t *wake_us)
{
    int64_t now_us = clock_boot_us();
    if (metric_logs_ended(&l->c->state, l->attempt_id, l->campaign_id)) {
        metric_collect_ended(&l->m, now_us);
    }
    if (!metric_logs_room(*under_way) && now_us >= l->m.due_us) {
        return; /* an answer causes the next look */
    }
    enum metric_act act = metric_collect_next(&l->m, now_us);
    switch (act) {
    case METRIC_WAIT:
        *wake_us = MIN(*wake_us, l->m.due_us);
        break;
    case METRIC_READ_SPEC: /* as metric_collect_spec_read, which only live campaigns cause */
        l->c->metrics_known = true;
        *wake_us = MIN(*wake_us, now_us);
        break;
    case METRIC_CLOSE:
        if (metric_logs_closes(&l->m, now_us)) {
            close_log(l);
        }
        *wake_us = l->over ? *wake_us : MIN(*wake_us, l->m.due_us);
        break;
    case METRIC_ASK_STREAM:
    case METRIC_ASK_PAGE:
    case METRIC_ASK_FINAL:
        ask(l, act);
        (*under_way)++;
        break;
    }
}

static bool is_under_way(const struct metric_log *l)
{
    return l->call != NULL || l->final_call != NULL;
}

void metric_collect_tick(struct controller *c, int64_t *wake_us)
{
    size_t under_way = 0, kept = 0;
    if (c->metrics_known) { /* all again, each from where it was written to be */
        (void)leader_tx(c, metric_collect_load, NULL);
    }
    for (size_t i = 0; i < c->metric_logs_n && c->leading; i++) {
        if (c->metric_logs[i]->answered) {
            take_page(c->metric_logs[i]);
        }
        under_way += is_under_way(c->metric_logs[i]);
    }
    for (size_t i = 0; i < c->metric_logs_n && c->leading; i++) {
        if (!is_under_way(c->metric_logs[i])) {
            go_on(c->metric_logs[i], &under_way, wake_us);
        }
    }
    for (size_t i = 0; i < c->metric_logs_n; i++) {
        if (c->metric_logs[i]->over) {
            log_free(c->metric_logs[i]);
        } else {
            c->metric_logs[kept++] = c->metric_logs[i];
        }
    }
    c->metric_logs_n = kept;
}
