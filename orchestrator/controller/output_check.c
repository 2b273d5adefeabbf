/* Is a task's output there and whole? Asks S3, judges with core/failure/verify.h. The same check
 * serves an attempt's VERIFYING and a stage's done_if. */
#include "output_check.h"
#include "common/json.h"
#include "common/log.h"
#include "common/s3.h"
#include "core/failure/parquet_rows.h"
#include "core/failure/verify.h"
#include "core/spec/spec_expand.h"
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
    enum spec_verify kind;
    int64_t count;        /* VERIFY_COUNT */
    char task_id[24];     /* "" any task */
    struct s3_uri folder; /* with a trailing '/' unless it names one key */
    char *manifest;
    struct s3_uri input; /* the part itself, when its rows can be counted; else empty */
    int64_t input_size;
    int64_t rows_in;               /* of the part, read from its own footer; -1 not known */
    struct verify_object *objects; /* keys owned */
    size_t objects_n;
    struct str *stats; /* img2dataset: texts, owned */
    size_t stats_n, next_stats;
};

static void check_free(struct output_check *k)
{
    for (size_t i = 0; i < k->objects_n; i++) {
        char *key;
        memcpy(&key, &k->objects[i].key, sizeof key);
        free(key);
        memcpy(&key, &k->objects[i].etag, sizeof key);
        free(key);
    }
    for (size_t i = 0; i < k->stats_n; i++) {
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
    if (k->cb != NULL && log_allow("output_unreadable", 1)) {
        log_event(LOG_WARN, "output_unreadable", LF_S("bucket", k->folder.bucket),
                  LF_S("key", k->folder.key), LF_ERR(err));
    }
    finish(k, &v);
}

static void finish_judged(struct output_check *k, const struct verify_verdict *j)
{
    struct output_verdict v = {.checked = true,
                               .good = j->good,
                               .cause = j->good ? CAUSE_NONE : j->cause,
                               .rows_in = j->rows_in,
                               .successes = j->successes,
                               .failed_to_download = j->failed_to_download,
                               .failed_to_resize = j->failed_to_resize,
                               .bytes = j->bytes};
    (void)snprintf(v.text, sizeof v.text, "%s", j->text);
    finish(k, &v);
}

static void finish_short(struct output_check *k, bool good, const char *text)
{
    struct verify_verdict j = {.good = good, .cause = CAUSE_SHORT_OUTPUT};
    (void)snprintf(j.text, sizeof j.text, "%s", text);
    finish_judged(k, &j);
}

/* A refusal that waiting will not mend ends the check with its own cause; anything else is asked
 * again. */
static bool refused(struct output_check *k, const struct s3_result *r)
{
    if (r->outcome == AWS_REFUSED && (r->status == 403 || r->status == 400)) {
        struct verify_verdict j = {.cause = CAUSE_ACCESS_DENIED};
        (void)snprintf(j.text, sizeof j.text, "output cannot be read: %.200s", r->err.message);
        finish_judged(k, &j);
        return true;
    }
    return false;
}

static void keep_listing(struct output_check *k, const struct s3_listing *l)
{
    size_t skip = strlen(k->folder.key);
    k->objects = xcalloc(l->n + 1, sizeof *k->objects);
    for (size_t i = 0; i < l->n; i++) {
        if (strlen(l->objects[i].key) < skip) {
            continue;
        }
        k->objects[k->objects_n++] =
            (struct verify_object){.key = xstrdup(l->objects[i].key + skip),
                                   .size = l->objects[i].size,
                                   .etag = xstrdup(l->objects[i].etag)};
    }
}

static void stats_next(struct output_check *k);

static void on_stats(void *ctx, const struct s3_result *r)
{
    struct output_check *k = ctx;
    if (k->cb == NULL || r->outcome != AWS_OK) {
        finish_unchecked(k, &r->err);
        return;
    }
    k->stats[k->stats_n++] = (struct str){str_dup(r->body), r->body.n};
    stats_next(k);
}

static bool listed(const struct output_check *k, struct str stem, const char *end)
{
    for (size_t i = 0; i < k->objects_n; i++) {
        struct str key = str_of(k->objects[i].key);
        if (key.n == stem.n + strlen(end) && memcmp(key.p, stem.p, stem.n) == 0 &&
            str_ends(key, end) && k->objects[i].size > 0) {
            return true;
        }
    }
    return false;
}

/* Where shards are tar files, each that is counted must be there. */
static bool tar_missing(const struct output_check *k, struct str *ret_stem)
{
    bool tars = false;
    for (size_t i = 0; i < k->objects_n && !tars; i++) {
        tars = str_ends(str_of(k->objects[i].key), ".tar");
    }
    for (size_t i = 0; i < k->objects_n && tars; i++) {
        struct str stem = str_of(k->objects[i].key);
        if (str_ends(stem, "_stats.json")) {
            stem.n -= strlen("_stats.json");
            *ret_stem = stem;
            if (!listed(k, stem, ".tar")) {
                return true;
            }
        }
    }
    return false;
}

static void stats_next(struct output_check *k)
{
    struct str stem;

    while (k->next_stats < k->objects_n) {
        const struct verify_object *o = &k->objects[k->next_stats++];
        if (str_ends(str_of(o->key), "_stats.json") && k->stats_n < STATS_OBJECTS_MAX) {
            struct s3_uri u = k->folder;
            (void)snprintf(u.key + strlen(u.key), sizeof u.key - strlen(u.key), "%s", o->key);
            s3_get(k->c->aws, &u, 0, -1, STATS_MAX, on_stats, k);
            return;
        }
    }
    if (tar_missing(k, &stem)) {
        char text[160];
        (void)snprintf(text, sizeof text, "'%.*s.tar' is missing", (int)MIN(stem.n, 100u), stem.p);
        finish_short(k, false, text);
        return;
    }
    struct verify_verdict j;
    verify_img2dataset(k->stats, k->stats_n, k->rows_in, 0, &j);
    finish_judged(k, &j);
}

static void judge_listing(struct output_check *k)
{
    if (k->kind == VERIFY_COUNT) {
        char text[128];
        (void)snprintf(text, sizeof text, "%zu objects, %lld expected", k->objects_n,
                       (long long)k->count);
        finish_short(k, (int64_t)k->objects_n >= k->count, text);
    } else if (k->kind == VERIFY_IMG2DATASET) {
        k->stats = xcalloc(MIN(k->objects_n, (size_t)STATS_OBJECTS_MAX) + 1, sizeof *k->stats);
        stats_next(k);
    } else {
        struct verify_verdict j;
        const struct verify_expect expect = {.task_id = k->task_id[0] != '\0' ? k->task_id : NULL,
                                             .rows_in = k->rows_in};
        verify_manifest(str_of(k->manifest), &expect, k->objects, k->objects_n, &j);
        finish_judged(k, &j);
    }
}

static void count_rows(struct output_check *k);

static void on_listing(void *ctx, const struct s3_result *r)
{
    struct output_check *k = ctx;
    if (k->cb == NULL || r->outcome != AWS_OK) {
        if (k->cb == NULL || !refused(k, r)) {
            finish_unchecked(k, &r->err);
        }
        return;
    }
    keep_listing(k, r->listing);
    count_rows(k);
}

static void list_folder(struct output_check *k)
{
    s3_list(k->c->aws, &k->folder, OUTPUT_KEYS_MAX, on_listing, k);
}

static void on_manifest(void *ctx, const struct s3_result *r)
{
    struct output_check *k = ctx;
    if (k->cb != NULL && r->status == 404) {
        finish_short(k, false, "no " WP_MANIFEST_KEY " was written");
        return;
    }
    if (k->cb == NULL || r->outcome != AWS_OK) {
        if (k->cb == NULL || !refused(k, r)) {
            finish_unchecked(k, &r->err);
        }
        return;
    }
    k->manifest = str_dup(r->body);
    list_folder(k);
}

/* --- how many rows the part has, by its own footer: a worker's word is held against it --- */

static void judge_rows(struct output_check *k, bool known, int64_t rows)
{
    k->rows_in = known ? rows : -1;
    judge_listing(k);
}

static void on_footer(void *ctx, const struct s3_result *r)
{
    struct output_check *k = ctx;
    int64_t rows = 0;
    if (k->cb == NULL || (r->outcome != AWS_OK && r->outcome != AWS_REFUSED)) {
        finish_unchecked(k, &r->err);
        return;
    }
    bool known = r->outcome == AWS_OK && parquet_rows(r->body, &rows);
    judge_rows(k, known, rows);
}

static void on_tail(void *ctx, const struct s3_result *r)
{
    struct output_check *k = ctx;
    int64_t n = 0;
    if (k->cb == NULL || (r->outcome != AWS_OK && r->outcome != AWS_REFUSED)) {
        finish_unchecked(k, &r->err);
        return;
    }
    if (r->outcome != AWS_OK || !parquet_footer_n(r->body, k->input_size, &n)) {
        judge_rows(k, false, 0); /* no Parquet, or it is gone: the manifest is all there is */
        return;
    }
    int64_t from = k->input_size - PARQUET_TAIL - n;
    int64_t to = from + MIN(n, (int64_t)FOOTER_HEAD_MAX) - 1;
    s3_get(k->c->aws, &k->input, from, to, FOOTER_HEAD_MAX, on_footer, k);
}

static void count_rows(struct output_check *k)
{
    bool counts = k->kind == VERIFY_MANIFEST || k->kind == VERIFY_IMG2DATASET;
    if (!counts || k->input.bucket[0] == '\0' || k->input_size <= PARQUET_TAIL) {
        judge_listing(k);
        return;
    }
    s3_get(k->c->aws, &k->input, k->input_size - PARQUET_TAIL, k->input_size - 1, 4096, on_tail, k);
}

static void on_head(void *ctx, const struct s3_result *r)
{
    struct output_check *k = ctx;
    if (k->cb != NULL && (r->outcome == AWS_OK || r->status == 404)) {
        finish_short(k, r->outcome == AWS_OK, r->outcome == AWS_OK ? "" : "the key is not there");
    } else if (k->cb == NULL || !refused(k, r)) {
        finish_unchecked(k, &r->err);
    }
}

static void start(struct output_check *k)
{
    switch (k->kind) {
    case VERIFY_MANIFEST: {
        struct s3_uri u = k->folder;
        (void)snprintf(u.key + strlen(u.key), sizeof u.key - strlen(u.key), "%s", WP_MANIFEST_KEY);
        s3_get(k->c->aws, &u, 0, -1, MANIFEST_MAX, on_manifest, k);
        break;
    }
    case VERIFY_EXISTS:
    case VERIFY_ARTIFACTS:
        s3_head(k->c->aws, &k->folder, on_head, k);
        break;
    case VERIFY_COUNT:
    case VERIFY_IMG2DATASET:
        list_folder(k);
        break;
    case VERIFY_NONE:
        break;
    }
}

/* A template of the stage for this task, as an S3 place; folders get their '/'. */
static bool place_of(const struct live_campaign *lc, const struct live_stage *ls,
                     const struct task_input *t, int attempt_n, const char *template, bool folder,
                     struct s3_uri *ret)
{
    AUTO_BUF struct buf text = BUF_INIT(4096);
    AUTO_JSON json_t *vars = NULL;
    struct err err = ERR_INIT;
    if (t->vars_json != NULL && !json_parse(str_of(t->vars_json), STATS_MAX, &vars, &err)) {
        return false;
    }
    const struct spec_task st = {.campaign_id = lc->row.id,
                                 .stage_name = ls->spec->name,
                                 .task_id = t->id,
                                 .seq = t->seq,
                                 .uri = t->uri != NULL ? t->uri : "",
                                 .size = t->size,
                                 .attempt_n = attempt_n,
                                 .vars = vars};
    bool ok = template != NULL && spec_expand(template, &st, &text, &err) &&
              s3_parse_uri(buf_str(&text), ret, &err);
    size_t n = ok ? strlen(ret->key) : 0;
    if (ok && folder && n > 0 && ret->key[n - 1] != '/' && n + 1 < sizeof ret->key) {
        ret->key[n] = '/';
        ret->key[n + 1] = '\0';
    }
    if (!ok) {
        log_event(LOG_ERROR, "output_place_unknown", LF_I("campaign", lc->row.id), LF_ERR(&err));
    }
    return ok;
}

struct later { /* an answer that needs no call, given from the loop */
    struct output_check *k;
    bool good;
};

static void answer_later(void *p)
{
    struct later *l = p;
    finish_short(l->k, l->good, l->good ? "" : "the output's place cannot be told");
    free(l);
}

static void defer(struct output_check *k, bool good)
{
    struct later *l = xcalloc(1, sizeof *l);
    l->k = k;
    l->good = good;
    loop_defer(k->c->loop, answer_later, l);
}

static struct output_check *check_new(struct controller *c, enum spec_verify kind,
                                      const struct task_input *t, output_cb cb, void *ctx)
{
    struct output_check *k = xcalloc(1, sizeof *k);
    k->c = c;
    k->cb = cb;
    k->ctx = ctx;
    k->kind = kind;
    k->rows_in = -1;
    k->input_size = t->size;
    if (t->uri == NULL || !str_ends(str_of(t->uri), ".parquet") ||
        !s3_parse_uri(str_of(t->uri), &k->input, NULL)) {
        k->input.bucket[0] = '\0';
    }
    return k;
}

bool output_folder(const struct live_attempt *a, struct s3_uri *ret)
{
    const struct spec_stage *s = a->stage->spec;
    const struct task_input t = {.id = a->row.task_id,
                                 .seq = a->row.seq,
                                 .size = a->row.size,
                                 .uri = a->row.uri,
                                 .vars_json = a->row.vars_json};
    return s->output != NULL && place_of(a->campaign, a->stage, &t, a->row.n, s->output, true, ret);
}

struct output_check *output_verify(struct live_attempt *a, output_cb cb, void *ctx)
{
    const struct spec_stage *s = a->stage->spec;
    const struct task_input t = {.id = a->row.task_id,
                                 .seq = a->row.seq,
                                 .size = a->row.size,
                                 .uri = a->row.uri,
                                 .vars_json = a->row.vars_json};
    struct output_check *k = check_new(a->io->c, s->verify, &t, cb, ctx);
    bool folder = s->verify == VERIFY_MANIFEST || s->verify == VERIFY_IMG2DATASET;
    k->count = s->verify_count;
    (void)snprintf(k->task_id, sizeof k->task_id, "%lld", (long long)a->row.task_id);
    if (s->verify == VERIFY_NONE) {
        defer(k, true);
    } else if (s->verify == VERIFY_ARTIFACTS) {
        if (s3_parse_uri(str_of(a->artifacts), &k->folder, NULL)) {
            start(k);
        } else {
            defer(k, false);
        }
    } else if (place_of(a->campaign, a->stage, &t, a->row.n, folder ? s->output : s->verify_target,
                        folder, &k->folder)) {
        start(k);
    } else {
        defer(k, false);
    }
    return k;
}

struct output_check *output_check_done(struct controller *c, const struct live_campaign *lc,
                                       const struct live_stage *ls, const struct task_input *t,
                                       output_cb cb, void *ctx)
{
    struct output_check *k = check_new(c, ls->spec->done_if_kind, t, cb, ctx);
    bool folder = ls->spec->done_if_kind != VERIFY_EXISTS;
    if (place_of(lc, ls, t, 1, ls->spec->done_if, folder, &k->folder)) {
        start(k);
    } else {
        defer(k, false);
    }
    return k;
}
