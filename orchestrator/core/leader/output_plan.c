/* See output_plan.h. */
#include "output_plan.h"
#include "common/json.h"
#include "core/failure/parquet_rows.h"
#include "core/spec/source_uri.h"
#include "input_listing.h"
#include "worker_protocol.h"
#include <stdio.h>
#include <strings.h>

#define VARS_BYTES_MAX (1024 * 1024)
#define STATS_END      "_stats.json"

/* A folder's URI ends in '/' unless it is the whole bucket. */
static bool put_place(struct str uri, bool folder, char ret[static OUTPUT_URI_MAX], struct err *err)
{
    struct str rest = str_starts(uri, S3_SCHEME) ? (struct str){uri.p + 5, uri.n - 5} : STR("");
    const char *slash = rest.n > 0 ? memchr(rest.p, '/', rest.n) : NULL;
    bool key = slash != NULL && slash + 1 < rest.p + rest.n;
    bool add = folder && key && uri.p[uri.n - 1] != '/';
    if (rest.n == 0 || uri.n + 2 > OUTPUT_URI_MAX) {
        return err_set(err, ERR_INVALID, "'%.*s' is no place in S3", (int)MIN(uri.n, 100u), uri.p);
    }
    (void)snprintf(ret, OUTPUT_URI_MAX, "%.*s%s", (int)uri.n, uri.p, add ? "/" : "");
    return true;
}

/* A template of the stage for this task, as a place in S3. */
static bool expand(const struct live_campaign *lc, const struct live_stage *ls,
                   const struct task_input *t, int attempt_n, const char *template, bool folder,
                   char ret[static OUTPUT_URI_MAX], struct err *err)
{
    AUTO_BUF struct buf text = BUF_INIT(4096);
    AUTO_JSON json_t *vars = NULL;
    if (template == NULL) {
        return err_set(err, ERR_INVALID, "the stage names no output");
    }
    if (t->vars_json != NULL && !json_parse(str_of(t->vars_json), VARS_BYTES_MAX, &vars, err)) {
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
    return spec_expand(template, &st, &text, err) && put_place(buf_str(&text), folder, ret, err);
}

static struct task_input input_of(const struct live_attempt *a)
{
    return (struct task_input){.id = a->row.task_id,
                               .seq = a->row.seq,
                               .size = a->row.size,
                               .uri = a->row.uri,
                               .vars_json = a->row.vars_json};
}

/* A hyperparameter of the stage; `otherwise` when its file does not say. */
static const char *setting(const struct spec_stage *s, const char *name, const char *otherwise)
{
    for (int i = 0; i < s->hyperparameters_n; i++) {
        if (strcmp(s->hyperparameters[i].key, name) == 0) {
            return s->hyperparameters[i].value;
        }
    }
    return otherwise;
}

static bool is_off(const char *flag)
{
    return strcasecmp(flag, "false") == 0 || strcmp(flag, "0") == 0;
}

/* What a download reads is the part's own file, and each row of it. What else url_list names has
 * rows that nobody knows here, and a retry reads those alone that have failed. */
static bool reads_part(const struct spec_stage *s)
{
    return s->worker == WORKER_NONE ||
           (s->worker == WORKER_DOWNLOAD && strcmp(setting(s, "url_list", ""), "{uri}") == 0 &&
            strcmp(setting(s, "input_format", "parquet"), "parquet") == 0 &&
            is_off(setting(s, "retry_failed", "false")));
}

/* Index counts pairs, so a Parquet file among its input says nothing about its rows. */
static void plan_input(const struct spec_stage *s, const struct task_input *t,
                       struct output_plan *ret)
{
    bool counts =
        (ret->kind == VERIFY_MANIFEST || ret->kind == VERIFY_IMG2DATASET) && reads_part(s);
    ret->input_size = t->size;
    if (counts && t->uri != NULL && str_ends(str_of(t->uri), ".parquet")) {
        (void)put_place(str_of(t->uri), false, ret->input, NULL);
    }
}

/* Without compression SageMaker writes no archive: the files lie below the place that it tells,
 * which ends in '/' or does not. */
static bool is_loose(const struct spec_stage *s)
{
    return s->verify == VERIFY_ARTIFACTS && s->training != NULL && s->training->uncompressed;
}

void output_plan_attempt(const struct live_attempt *a, struct output_plan *ret, struct err *err)
{
    const struct spec_stage *s = a->stage->spec;
    const struct task_input t = input_of(a);
    bool folder = s->verify == VERIFY_MANIFEST || s->verify == VERIFY_IMG2DATASET;
    *ret = (struct output_plan){.kind = s->verify, .count = s->verify_count};
    (void)snprintf(ret->task_id, sizeof ret->task_id, "%lld", (long long)a->row.task_id);
    plan_input(s, &t, ret);
    if (is_loose(s)) {
        ret->kind = VERIFY_COUNT;
        ret->count = 1;
    }
    if (s->verify == VERIFY_ARTIFACTS) {
        ret->told = put_place(str_of(a->artifacts), is_loose(s), ret->place, err);
    } else if (s->verify != VERIFY_NONE) {
        ret->told = expand(a->campaign, a->stage, &t, a->row.n,
                           folder ? s->output : s->verify_target, folder, ret->place, err);
    }
}

void output_plan_done_if(const struct live_campaign *lc, const struct live_stage *ls,
                         const struct task_input *t, struct output_plan *ret, struct err *err)
{
    const struct spec_stage *s = ls->spec;
    *ret = (struct output_plan){.kind = s->done_if_kind};
    plan_input(s, t, ret);
    ret->told = expand(lc, ls, t, 1, s->done_if, s->done_if_kind != VERIFY_EXISTS, ret->place, err);
}

bool output_plan_folder(const struct live_attempt *a, char ret[static OUTPUT_URI_MAX],
                        struct err *err)
{
    const struct task_input t = input_of(a);
    return expand(a->campaign, a->stage, &t, a->row.n, a->stage->spec->output, true, ret, err);
}

enum output_answer output_answer(enum aws_outcome outcome, int status, enum err_code why)
{
    if (outcome == AWS_OK) {
        return OUTPUT_READ;
    }
    if (why == ERR_LIMIT || (why == ERR_TOO_LARGE && status < 300)) {
        return OUTPUT_TOO_LARGE;
    }
    if (status >= 300 && status < 400) { /* the bucket is in another region; HEAD has no words */
        return OUTPUT_REFUSED;
    }
    if (outcome != AWS_REFUSED) {
        return OUTPUT_AGAIN;
    }
    return status == 404                    ? OUTPUT_ABSENT
           : status == 403 || status == 400 ? OUTPUT_DENIED
                                            : OUTPUT_REFUSED;
}

enum output_step output_first(const struct output_plan *p)
{
    switch (p->kind) {
    case VERIFY_MANIFEST:
        return OUTPUT_GET_MANIFEST;
    case VERIFY_EXISTS:
    case VERIFY_ARTIFACTS:
        return OUTPUT_HEAD;
    case VERIFY_COUNT:
        return OUTPUT_COUNT;
    case VERIFY_IMG2DATASET:
        return OUTPUT_LIST;
    case VERIFY_NONE:
        break;
    }
    return OUTPUT_JUDGE;
}

static enum output_step rows_counted(const struct output_plan *p)
{
    return p->kind == VERIFY_IMG2DATASET ? OUTPUT_GET_STATS : OUTPUT_JUDGE;
}

/* A refusal that waiting will not mend ends the check with its own cause. */
static enum output_step not_read(enum output_answer answer)
{
    return answer == OUTPUT_DENIED      ? OUTPUT_END_DENIED
           : answer == OUTPUT_REFUSED   ? OUTPUT_END_REFUSED
           : answer == OUTPUT_TOO_LARGE ? OUTPUT_END_TOO_LARGE
                                        : OUTPUT_END_UNCHECKED;
}

/* What is not there is the bucket. */
static enum output_step not_listed(enum output_answer answer)
{
    return not_read(answer == OUTPUT_ABSENT ? OUTPUT_REFUSED : answer);
}

enum output_step output_next(const struct output_plan *p, enum output_step done,
                             enum output_answer answer)
{
    bool read = answer == OUTPUT_READ;
    bool again = answer == OUTPUT_AGAIN;
    bool absent = answer == OUTPUT_ABSENT;
    switch (done) {
    case OUTPUT_GET_MANIFEST:
        return read ? OUTPUT_LIST : absent ? OUTPUT_END_NO_MANIFEST : not_read(answer);
    case OUTPUT_COUNT:
        return read ? OUTPUT_COUNT : not_listed(answer);
    case OUTPUT_LIST:
        if (!read) {
            return not_listed(answer);
        }
        return p->input[0] != '\0' && p->input_size > PARQUET_TAIL ? OUTPUT_GET_TAIL
                                                                   : rows_counted(p);
    case OUTPUT_GET_TAIL: /* without its rows only the output itself is checked */
        return again ? OUTPUT_END_UNCHECKED : read ? OUTPUT_GET_FOOTER : rows_counted(p);
    case OUTPUT_GET_FOOTER:
        return again ? OUTPUT_END_UNCHECKED : rows_counted(p);
    case OUTPUT_GET_STATS: /* one that is gone since: the next listing tells */
        return read ? OUTPUT_GET_STATS : not_read(answer);
    case OUTPUT_HEAD:
        return read || absent ? OUTPUT_END_KEY : not_read(answer);
    case OUTPUT_JUDGE:
    case OUTPUT_END_KEY:
    case OUTPUT_END_NO_MANIFEST:
    case OUTPUT_END_DENIED:
    case OUTPUT_END_REFUSED:
    case OUTPUT_END_TOO_LARGE:
    case OUTPUT_END_UNCHECKED:
        break;
    }
    return done;
}

bool output_again(enum output_step done, enum output_answer answer, int tries, struct rng *rng,
                  int64_t *ret_pause_us)
{
    const struct input_page_facts facts = {.outcome = AWS_UNKNOWN, .tries = tries};
    bool one_of_many = done == OUTPUT_COUNT || done == OUTPUT_GET_STATS;
    return one_of_many && answer == OUTPUT_AGAIN && input_page_again(&facts, rng, ret_pause_us);
}

bool output_next_page(const struct output_plan *p, const struct output_seen *seen)
{
    return !seen->counted_all && seen->counted < p->count;
}

bool output_is_stats(const char *key)
{
    return str_ends(str_of(key), STATS_END);
}

bool output_next_stats(const struct output_seen *seen, size_t *cursor, const char **ret_key)
{
    while (*cursor < seen->objects_n && seen->stats.bad[0] == '\0') {
        *ret_key = seen->objects[(*cursor)++].key;
        if (output_is_stats(*ret_key)) {
            return true;
        }
    }
    return false;
}

static void say(struct output_verdict *ret, bool good, enum cause cause)
{
    *ret =
        (struct output_verdict){.checked = true, .good = good, .cause = good ? CAUSE_NONE : cause};
}

static bool listed(const struct verify_listing *l, struct str stem, const char *end)
{
    AUTO_BUF struct buf key = BUF_INIT(OUTPUT_URI_MAX);
    buf_addf(&key, STR_FMT "%s", STR_ARG(stem), end);
    const struct verify_object *o = verify_listing_find(l, buf_cstr(&key));
    return o != NULL && o->size > 0;
}

/* Where shards are tar files, each that is counted must be there. */
static bool tar_missing(const struct output_seen *seen, struct str *ret_stem)
{
    CLEANUP(verify_listing_done)
    struct verify_listing l;
    verify_listing_init(&l, seen->objects, seen->objects_n);
    bool tars = false;
    for (size_t i = 0; i < seen->objects_n && !tars; i++) {
        tars = str_ends(str_of(seen->objects[i].key), ".tar");
    }
    for (size_t i = 0; i < seen->objects_n && tars; i++) {
        struct str stem = str_of(seen->objects[i].key);
        if (output_is_stats(stem.p)) {
            stem.n -= strlen(STATS_END);
            *ret_stem = stem;
            if (!listed(&l, stem, ".tar")) {
                return true;
            }
        }
    }
    return false;
}

void output_judge(const struct output_plan *p, const struct output_seen *seen,
                  struct output_verdict *ret)
{
    struct verify_verdict j;
    struct str stem;
    if (p->kind == VERIFY_COUNT) {
        say(ret, seen->counted >= p->count, CAUSE_SHORT_OUTPUT);
        (void)snprintf(ret->text, sizeof ret->text, "%lld objects, %lld expected",
                       (long long)seen->counted, (long long)p->count);
        return;
    }
    if (p->kind == VERIFY_IMG2DATASET && tar_missing(seen, &stem)) {
        say(ret, false, CAUSE_SHORT_OUTPUT);
        (void)snprintf(ret->text, sizeof ret->text, "'%.*s.tar' is missing", (int)MIN(stem.n, 100u),
                       stem.p);
        return;
    }
    if (p->kind == VERIFY_IMG2DATASET) {
        verify_img2dataset(&seen->stats, seen->rows_in, 0, &j);
    } else {
        const struct verify_expect expect = {.task_id = p->task_id[0] != '\0' ? p->task_id : NULL,
                                             .rows_in = seen->rows_in};
        verify_manifest(seen->manifest, &expect, seen->objects, seen->objects_n, &j);
    }
    say(ret, j.good, j.cause);
    ret->rows_in = j.rows_in;
    ret->successes = j.successes;
    ret->failed_to_download = j.failed_to_download;
    ret->failed_to_resize = j.failed_to_resize;
    ret->bytes = j.bytes;
    (void)snprintf(ret->text, sizeof ret->text, "%s", j.text);
}

void output_judge_refused(enum output_step end, const char *message, struct output_verdict *ret)
{
    bool large = end == OUTPUT_END_TOO_LARGE;
    say(ret, false,
        end == OUTPUT_END_DENIED ? CAUSE_ACCESS_DENIED
        : large                  ? CAUSE_BAD_INPUT
                                 : CAUSE_BAD_REQUEST);
    (void)snprintf(ret->text, sizeof ret->text, "output %s: %.200s",
                   large ? "is too large to be checked" : "cannot be read", message);
}

void output_judge_no_manifest(struct output_verdict *ret)
{
    say(ret, false, CAUSE_SHORT_OUTPUT);
    (void)snprintf(ret->text, sizeof ret->text, "no " WP_MANIFEST_KEY " was written");
}

void output_judge_key(bool there, struct output_verdict *ret)
{
    say(ret, there, CAUSE_SHORT_OUTPUT);
    (void)snprintf(ret->text, sizeof ret->text, "%s", there ? "" : "the key is not there");
}

bool output_judge_unseen(const struct output_plan *p, struct output_verdict *ret)
{
    if (p->told) {
        return false;
    }
    say(ret, p->kind == VERIFY_NONE, CAUSE_SHORT_OUTPUT);
    (void)snprintf(ret->text, sizeof ret->text, "%s",
                   ret->good ? "" : "the output's place cannot be told");
    return true;
}
