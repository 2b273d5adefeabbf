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

#define MANIFEST_MAX      (16 * 1024 * 1024)
#define STATS_MAX         (1024 * 1024)
#define FOOTER_HEAD_MAX   (64 * 1024) /* version and schema; num_rows comes right behind */
#define OUTPUT_KEYS_MAX   200000
#define STATS_OBJECTS_MAX 20000

struct output_check {
    struct controller *c;
    output_cb cb; /* NULL: cancelled, nobody waits */
    void *ctx;
    struct output_plan plan;
    struct s3_uri place, input;
    char *manifest;
    struct output_seen seen;
    struct verify_object *objects; /* keys owned */
    struct str *stats;             /* img2dataset: texts, owned */
    size_t next_stats;
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
    for (size_t i = 0; i < k->seen.stats_n; i++) {
        char *text;
        memcpy(&text, &k->stats[i].p, sizeof text);
        free(text);
    }
    free(k->objects);
    free(k->stats);
    free(k->manifest);
    free(k);
}

void output_cancel(struct output_check *k)
{
    if (k != NULL) {
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

static void finish_unchecked(struct output_check *k, const struct err *err)
{
    struct output_verdict v = {.checked = false};
    if (k->cb != NULL && log_allow("output_unreadable")) {
        log_event(LOG_WARN, "output_unreadable", LF_S("bucket", k->place.bucket),
                  LF_S("key", k->place.key), LF_ERR(err));
    }
    finish(k, &v);
}

/* Another answer than OUTPUT_READ: a refusal that waiting will not mend ends the check with its own
 * cause; anything else is asked again. */
static void not_read(struct output_check *k, enum output_answer answer, const struct err *err)
{
    struct output_verdict v;
    if (k->cb == NULL || answer != OUTPUT_DENIED) {
        finish_unchecked(k, err);
        return;
    }
    output_judge_denied(err->message, &v);
    finish(k, &v);
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

static void judge(struct output_check *k)
{
    struct output_verdict v;
    k->seen.manifest = k->manifest != NULL ? str_of(k->manifest) : STR("");
    k->seen.stats = k->stats;
    output_judge(&k->plan, &k->seen, &v);
    finish(k, &v);
}

static void stats_next(struct output_check *k);

static void on_stats(void *ctx, const struct s3_result *r)
{
    struct output_check *k = ctx;
    if (k->cb == NULL || r->outcome != AWS_OK) {
        finish_unchecked(k, &r->err);
        return;
    }
    k->stats[k->seen.stats_n++] = (struct str){str_dup(r->body), r->body.n};
    stats_next(k);
}

static void stats_next(struct output_check *k)
{
    while (k->next_stats < k->seen.objects_n) {
        const struct verify_object *o = &k->objects[k->next_stats++];
        if (output_is_stats(o->key) && k->seen.stats_n < STATS_OBJECTS_MAX) {
            struct s3_uri u = k->place;
            (void)snprintf(u.key + strlen(u.key), sizeof u.key - strlen(u.key), "%s", o->key);
            s3_get(k->c->aws, &u, 0, -1, STATS_MAX, on_stats, k);
            return;
        }
    }
    judge(k);
}

static void judge_rows(struct output_check *k, bool known, int64_t rows)
{
    k->seen.rows_in = known ? rows : -1;
    if (k->plan.kind == VERIFY_IMG2DATASET) {
        size_t most = MIN(k->seen.objects_n, (size_t)STATS_OBJECTS_MAX);
        k->stats = xcalloc(most + 1, sizeof *k->stats);
        stats_next(k);
    } else {
        judge(k);
    }
}

static void count_rows(struct output_check *k);

static void on_listing(void *ctx, const struct s3_result *r)
{
    struct output_check *k = ctx;
    enum output_answer answer = output_answer(r->outcome, r->status);
    if (k->cb == NULL || answer != OUTPUT_READ) {
        not_read(k, answer, &r->err);
        return;
    }
    keep_listing(k, r->listing);
    count_rows(k);
}

static void list_folder(struct output_check *k)
{
    s3_list(k->c->aws, &k->place, OUTPUT_KEYS_MAX, on_listing, k);
}

static void on_manifest(void *ctx, const struct s3_result *r)
{
    struct output_check *k = ctx;
    struct output_verdict v;
    enum output_answer answer = output_answer(r->outcome, r->status);
    if (k->cb != NULL && answer == OUTPUT_ABSENT) {
        output_judge_no_manifest(&v);
        finish(k, &v);
    } else if (k->cb == NULL || answer != OUTPUT_READ) {
        not_read(k, answer, &r->err);
    } else {
        k->manifest = str_dup(r->body);
        list_folder(k);
    }
}

static void on_footer(void *ctx, const struct s3_result *r)
{
    struct output_check *k = ctx;
    int64_t rows = 0;
    enum output_answer answer = output_answer(r->outcome, r->status);
    if (k->cb == NULL || answer == OUTPUT_AGAIN) {
        finish_unchecked(k, &r->err);
        return;
    }
    bool known = answer == OUTPUT_READ && parquet_rows(r->body, &rows);
    judge_rows(k, known, rows);
}

static void on_tail(void *ctx, const struct s3_result *r)
{
    struct output_check *k = ctx;
    int64_t n = 0;
    enum output_answer answer = output_answer(r->outcome, r->status);
    if (k->cb == NULL || answer == OUTPUT_AGAIN) {
        finish_unchecked(k, &r->err);
        return;
    }
    if (answer != OUTPUT_READ || !parquet_footer_n(r->body, k->plan.input_size, &n)) {
        judge_rows(k, false, 0); /* no Parquet file, or it is gone: only the manifest is checked */
        return;
    }
    int64_t from = k->plan.input_size - PARQUET_TAIL - n;
    int64_t to = from + MIN(n, (int64_t)FOOTER_HEAD_MAX) - 1;
    s3_get(k->c->aws, &k->input, from, to, FOOTER_HEAD_MAX, on_footer, k);
}

static void count_rows(struct output_check *k)
{
    int64_t size = k->plan.input_size;
    if (k->plan.input[0] == '\0' || size <= PARQUET_TAIL ||
        !s3_parse_uri(str_of(k->plan.input), &k->input, NULL)) {
        judge_rows(k, false, 0);
        return;
    }
    s3_get(k->c->aws, &k->input, size - PARQUET_TAIL, size - 1, 4096, on_tail, k);
}

static void on_head(void *ctx, const struct s3_result *r)
{
    struct output_check *k = ctx;
    struct output_verdict v;
    enum output_answer answer = output_answer(r->outcome, r->status);
    if (k->cb == NULL || (answer != OUTPUT_READ && answer != OUTPUT_ABSENT)) {
        not_read(k, answer, &r->err);
        return;
    }
    output_judge_key(answer == OUTPUT_READ, &v);
    finish(k, &v);
}

static void look(struct output_check *k)
{
    switch (k->plan.kind) {
    case VERIFY_MANIFEST: {
        struct s3_uri u = k->place;
        (void)snprintf(u.key + strlen(u.key), sizeof u.key - strlen(u.key), "%s", WP_MANIFEST_KEY);
        s3_get(k->c->aws, &u, 0, -1, MANIFEST_MAX, on_manifest, k);
        break;
    }
    case VERIFY_EXISTS:
    case VERIFY_ARTIFACTS:
        s3_head(k->c->aws, &k->place, on_head, k);
        break;
    case VERIFY_COUNT:
    case VERIFY_IMG2DATASET:
        list_folder(k);
        break;
    case VERIFY_NONE:
        break;
    }
}

/* An answer without a call to S3, given in the next turn of the loop. */
static void answer_later(void *p)
{
    struct output_check *k = p;
    struct output_verdict v;
    bool unseen = output_judge_unseen(&k->plan, &v);
    ASSERT(unseen);
    finish(k, &v);
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
    if (!output_judge_unseen(&k->plan, &v)) {
        look(k);
        return k;
    }
    if (!v.good) {
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
