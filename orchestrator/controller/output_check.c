/* Asks S3 what core/leader/output_plan.h names, and has it judged. The same check serves an
 * attempt's VERIFYING and a stage's done_if. */
#include "output_check.h"
#include "common/log.h"
#include "common/s3.h"
#include "core/failure/parquet_rows.h"
#include "core/leader/output_plan.h"
#include "lease.h"
#include "shell.h"
#include "worker_protocol.h"
#include <stdio.h>

#define FOOTER_HEAD_MAX (64 * 1024) /* version and schema; num_rows comes right behind */

struct output_check {
    struct controller *c;
    output_cb cb; /* NULL: cancelled, nobody waits */
    void *ctx;
    struct output_plan plan;
    enum output_step step; /* under way */
    struct s3_uri place, input;
    int64_t footer_n; /* of the part, bytes */
    char *manifest;
    struct output_seen seen;
    struct verify_object *objects; /* keys owned */
    size_t next_stats;
    const char *stats_key; /* asked for */
    char *token;           /* of the next page to be counted; NULL: the first */
    int tries;             /* of the same question */
    struct loop_timer *again;
};

static void check_free(struct output_check *k)
{
    for (size_t i = 0; i < k->seen.objects_n; i++) {
        char *key;
        memcpy(&key, &k->objects[i].key, sizeof key);
        free(key);
        memcpy(&key, &k->objects[i].etag, sizeof key);
        free(key);
    }
    free(k->objects);
    free(k->manifest);
    free(k->token);
    loop_timer_free(k->again);
    free(k);
}

void output_cancel(struct output_check *k)
{
    if (k != NULL && k->again != NULL && loop_timer_armed(k->again)) {
        check_free(k);
    } else if (k != NULL) {
        k->cb = NULL; /* freed when its call comes back */
    }
}

static void finish(struct output_check *k, struct output_verdict *v)
{
    output_cb cb = k->cb;
    v->manifest = cb != NULL && v->good ? TAKE(k->manifest) : NULL;
    if (cb != NULL) {
        cb(k->ctx, v);
    }
    check_free(k);
}

static void tell_unchecked(const struct output_check *k, const struct err *err,
                           struct output_verdict *ret)
{
    (void)snprintf(ret->text, sizeof ret->text, "%.250s", err->message);
    if (log_allow("output_unreadable")) {
        log_event(LOG_WARN, "output_unreadable", LF_S("bucket", k->place.bucket),
                  LF_S("key", k->place.key), LF_ERR(err));
    }
}

static void keep_listing(struct output_check *k, const struct s3_listing *l)
{
    size_t skip = strlen(k->place.key);
    k->objects = xcalloc(l->n + 1, sizeof *k->objects);
    k->seen.objects = k->objects;
    for (size_t i = 0; i < l->n; i++) {
        if (strlen(l->objects[i].key) < skip) {
            continue;
        }
        k->objects[k->seen.objects_n++] =
            (struct verify_object){.key = xstrdup(l->objects[i].key + skip),
                                   .size = l->objects[i].size,
                                   .etag = xstrdup(l->objects[i].etag)};
    }
}

static void keep_page(struct output_check *k, const struct s3_result *r)
{
    free(k->token);
    k->token = r->next_token != NULL ? xstrdup(r->next_token) : NULL;
    k->seen.counted += (int64_t)r->listing->n;
    k->seen.counted_all = r->next_token == NULL;
}

/* Keeps what was read. Returns the answer as the next step shall take it. */
static enum output_answer keep(struct output_check *k, const struct s3_result *r)
{
    enum output_answer answer = output_answer(r->outcome, r->status, r->err.code);
    int64_t rows = 0;
    if (answer != OUTPUT_READ) {
        return answer;
    }
    switch (k->step) {
    case OUTPUT_GET_MANIFEST:
        k->manifest = str_dup(r->body);
        k->seen.manifest = str_of(k->manifest);
        break;
    case OUTPUT_COUNT:
        keep_page(k, r);
        break;
    case OUTPUT_LIST:
        keep_listing(k, r->listing);
        break;
    case OUTPUT_GET_TAIL:
        return parquet_footer_n(r->body, k->plan.input_size, &k->footer_n) ? answer : OUTPUT_ABSENT;
    case OUTPUT_GET_FOOTER:
        k->seen.rows_in = parquet_rows(r->body, &rows) ? rows : -1;
        break;
    case OUTPUT_GET_STATS:
        verify_sums_add(&k->seen.stats, r->body);
        break;
    case OUTPUT_HEAD:
    case OUTPUT_JUDGE:
    case OUTPUT_END_KEY:
    case OUTPUT_END_NO_MANIFEST:
    case OUTPUT_END_DENIED:
    case OUTPUT_END_REFUSED:
    case OUTPUT_END_TOO_LARGE:
    case OUTPUT_END_UNCHECKED:
        break;
    }
    return answer;
}

static void take(struct output_check *k, enum output_answer answer, const struct err *err);

static void on_answer(void *ctx, const struct s3_result *r)
{
    struct output_check *k = ctx;
    if (k->cb == NULL) {
        check_free(k);
    } else {
        take(k, keep(k, r), &r->err);
    }
}

static void get_below(struct output_check *k, const char *key, int64_t most)
{
    struct s3_uri u = k->place;
    (void)snprintf(u.key + strlen(u.key), sizeof u.key - strlen(u.key), "%s", key);
    s3_get(k->c->aws, &u, 0, -1, (size_t)most, on_answer, k);
}

/* The rows stand behind the schema, near the beginning of the footer. */
static void get_footer(struct output_check *k)
{
    int64_t from = k->plan.input_size - PARQUET_TAIL - k->footer_n;
    int64_t to = from + MIN(k->footer_n, (int64_t)FOOTER_HEAD_MAX) - 1;
    s3_get(k->c->aws, &k->input, from, to, FOOTER_HEAD_MAX, on_answer, k);
}

static void get_tail(struct output_check *k)
{
    int64_t size = k->plan.input_size;
    s3_get(k->c->aws, &k->input, size - PARQUET_TAIL, size - 1, 4096, on_answer, k);
}

static void get_page(struct output_check *k)
{
    s3_list_page(k->c->aws, &k->place, "", k->token, on_answer, k);
}

static void list(struct output_check *k)
{
    if (k->plan.kind == VERIFY_MANIFEST) { /* which has folders of many files as one entry */
        s3_list_level(k->c->aws, &k->place, WP_OBJECTS_MAX, on_answer, k);
    } else {
        s3_list(k->c->aws, &k->place, WP_OBJECTS_MAX, on_answer, k);
    }
}

/* Makes the call of k->step. False: there is nothing to ask any more. */
static bool ask(struct output_check *k)
{
    switch (k->step) {
    case OUTPUT_GET_MANIFEST:
        get_below(k, WP_MANIFEST_KEY, WP_MANIFEST_BYTES_MAX);
        return true;
    case OUTPUT_COUNT:
        if (!output_next_page(&k->plan, &k->seen)) {
            return false;
        }
        get_page(k);
        return true;
    case OUTPUT_LIST:
        list(k);
        return true;
    case OUTPUT_GET_TAIL:
        get_tail(k);
        return true;
    case OUTPUT_GET_FOOTER:
        get_footer(k);
        return true;
    case OUTPUT_GET_STATS:
        if (!output_next_stats(&k->seen, &k->next_stats, &k->stats_key)) {
            return false;
        }
        get_below(k, k->stats_key, WP_STATS_BYTES_MAX);
        return true;
    case OUTPUT_HEAD:
        s3_head(k->c->aws, &k->place, on_answer, k);
        return true;
    case OUTPUT_JUDGE:
    case OUTPUT_END_KEY:
    case OUTPUT_END_NO_MANIFEST:
    case OUTPUT_END_DENIED:
    case OUTPUT_END_REFUSED:
    case OUTPUT_END_TOO_LARGE:
    case OUTPUT_END_UNCHECKED:
        break;
    }
    return false;
}

/* Makes the call of k->step, or ends the check. */
static void go(struct output_check *k, bool there, const struct err *err)
{
    struct output_verdict v = {.checked = false};
    if (ask(k)) {
        return;
    }
    switch (k->step) {
    case OUTPUT_END_KEY:
        output_judge_key(there, &v);
        break;
    case OUTPUT_END_NO_MANIFEST:
        output_judge_no_manifest(&v);
        break;
    case OUTPUT_END_DENIED:
    case OUTPUT_END_REFUSED:
    case OUTPUT_END_TOO_LARGE:
        output_judge_refused(k->step, err->message, &v);
        break;
    case OUTPUT_END_UNCHECKED:
        tell_unchecked(k, err, &v);
        break;
    case OUTPUT_GET_MANIFEST:
    case OUTPUT_COUNT:
    case OUTPUT_LIST:
    case OUTPUT_GET_TAIL:
    case OUTPUT_GET_FOOTER:
    case OUTPUT_GET_STATS:
    case OUTPUT_HEAD:
    case OUTPUT_JUDGE:
        output_judge(&k->plan, &k->seen, &v);
        break;
    }
    finish(k, &v);
}

static void on_again(void *ctx)
{
    struct output_check *k = ctx;
    if (k->step == OUTPUT_COUNT) {
        get_page(k);
    } else {
        get_below(k, k->stats_key, WP_STATS_BYTES_MAX);
    }
}

static void take(struct output_check *k, enum output_answer answer, const struct err *err)
{
    int64_t pause_us = 0;
    if (output_again(k->step, answer, ++k->tries, &k->c->state.rng, &pause_us)) {
        k->again = k->again != NULL ? k->again : loop_timer_new(k->c->loop, on_again, k);
        loop_timer_set(k->again, pause_us);
        return;
    }
    k->tries = 0;
    k->step = output_next(&k->plan, k->step, answer);
    go(k, answer == OUTPUT_READ, err);
}

/* An answer without a call to S3, given in the next turn of the loop: the caller of start() knows k
 * by then. */
static void answer_later(void *p)
{
    struct output_check *k = p;
    struct output_verdict v;
    struct err none = ERR_INIT;
    if (output_judge_unseen(&k->plan, &v)) {
        finish(k, &v);
    } else {
        go(k, false, &none);
    }
}

static struct output_check *start(struct controller *c, const struct output_plan *plan,
                                  const struct err *why, output_cb cb, void *ctx)
{
    struct output_check *k = xcalloc(1, sizeof *k);
    struct output_verdict v;
    struct err err = *why;
    *k =
        (struct output_check){.c = c, .cb = cb, .ctx = ctx, .plan = *plan, .seen = {.rows_in = -1}};
    if (plan->told && !s3_parse_uri(str_of(plan->place), &k->place, &err)) {
        k->plan.told = false;
    }
    if (plan->input[0] != '\0' && !s3_parse_uri(str_of(plan->input), &k->input, NULL)) {
        k->plan.input[0] = '\0';
    }
    if (!output_judge_unseen(&k->plan, &v)) {
        k->step = output_first(&k->plan);
        if (ask(k)) {
            return k;
        }
    } else if (!v.good) {
        log_event(LOG_ERROR, "output_place_unknown", LF_S("task", k->plan.task_id), LF_ERR(&err));
    }
    loop_defer(c->loop, answer_later, k);
    return k;
}

bool output_folder(const struct live_attempt *a, struct s3_uri *ret)
{
    char uri[OUTPUT_URI_MAX];
    struct err err = ERR_INIT;
    return output_plan_folder(a, uri, &err) && s3_parse_uri(str_of(uri), ret, &err);
}

struct output_check *output_verify(struct live_attempt *a, output_cb cb, void *ctx)
{
    struct output_plan plan;
    struct err err = ERR_INIT;
    output_plan_attempt(a, &plan, &err);
    return start(a->io->c, &plan, &err, cb, ctx);
}

struct output_check *output_check_done(struct controller *c, const struct live_campaign *lc,
                                       const struct live_stage *ls, const struct task_input *t,
                                       output_cb cb, void *ctx)
{
    struct output_plan plan;
    struct err err = ERR_INIT;
    output_plan_done_if(lc, ls, t, &plan, &err);
    return start(c, &plan, &err, cb, ctx);
}
