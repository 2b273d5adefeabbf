/* The part of S3 that a controller reads: manifest, progress and objects below
 * out/<campaign>/<stage>/<part>/, derived from the jobs that wrote them. */
#include "common/clock.h"
#include "common/hash.h"
#include "deep.h"
#include <stdio.h>

#define ROWS  100
#define BYTES 4096

/* Of what was there before. */
static const struct job earlier = {.worker = true, .task_id = 1, .attempt_id = 7};

/* The job that wrote this key; *ret_rest: the key below its folder. */
static const struct job *writer(const char *key, bool progress, const char **ret_rest)
{
    long long campaign, part;
    char stage[64];
    int n = 0;
    bool before = outputs_asked(key);
    if (sscanf(key, before ? "before/%lld/%63[^/]/%lld/%n" : "out/%lld/%63[^/]/%lld/%n", &campaign,
               stage, &part, &n) < 3 ||
        n == 0) {
        return NULL;
    }
    *ret_rest = key + n;
    if (before) {
        return outputs_there(campaign, stage, part) ? &earlier : NULL;
    }
    for (size_t i = deep->jobs_n; i-- > 0;) {
        const struct job *j = &deep->jobs[i];
        bool there = progress ? j->started != 0 : j->written;
        if (there && j->campaign_id == campaign && j->part == part &&
            strcmp(j->stage, stage) == 0) {
            return j;
        }
    }
    return NULL;
}

static const char *etag_of(const struct job *j, char out[static 40])
{
    (void)snprintf(out, 40, "%032llx", (unsigned long long)j->attempt_id);
    return out;
}

/* A short output lists an object that does not exist. */
static void manifest(const struct job *j, struct buf *b)
{
    char etag[40], lines[256], hex[65];
    uint8_t h[32];
    (void)etag_of(j, etag);
    int n = snprintf(lines, sizeof lines, "00000.tar\t%d\t%s\n", BYTES, etag);
    hash_sha256(lines, (size_t)n, h);
    str_hex(h, sizeof h, hex);
    buf_addf(b,
             "{\"version\":1,\"task\":\"%lld\",\"attempt\":\"%lld\",\"rows_in\":%d,\"rows_out\":%d,"
             "\"successes\":%d,\"failed_to_download\":0,\"failed_to_resize\":0,\"bytes\":%d,"
             "\"started\":\"2027-01-15T08:00:00Z\",\"ended\":\"2027-01-15T09:00:00Z\","
             "\"statuses\":{\"success\":%d},\"objects\":[{\"key\":\"00000.tar\",\"size\":%d,"
             "\"etag\":\"%s\"}],\"sha256\":\"%s\"}",
             (long long)j->task_id, (long long)j->attempt_id, ROWS,
             j->short_output ? ROWS - 1 : ROWS, ROWS, BYTES, ROWS, BYTES, etag, hex);
}

/* Rewritten once a minute while the job runs and does not hang. */
static bool progress(const struct job *j, struct buf *b)
{
    char at[32];
    usec_t until = MIN(wall_now(), j->over ? j->ended : wall_now());
    if (j->hangs_at_us < INT64_MAX) {
        until = MIN(until, j->started + j->hangs_at_us);
    }
    int64_t minutes = (until - j->started) / MINUTE;
    if (minutes < 1) {
        return false;
    }
    clock_format_rfc3339(j->started + minutes * MINUTE, false, at);
    buf_addf(b,
             "{\"version\":1,\"task\":\"%lld\",\"attempt\":\"%lld\",\"rows_in\":100000,"
             "\"rows_done\":%lld,\"shards_done\":%lld,\"bytes\":%lld,\"updated\":\"%s\"}",
             (long long)j->task_id, (long long)j->attempt_id, (long long)minutes * 100,
             (long long)minutes / 5, (long long)minutes * 1000, at);
    return true;
}

static void absent(struct s3_result *ret)
{
    *ret = (struct s3_result){.outcome = AWS_REFUSED, .status = 404};
    (void)err_set(&ret->err, ERR_NOT_FOUND, "NoSuchKey");
}

static void found(struct s3_result *ret, const struct buf *b)
{
    char *body = world_alloc(b->n + 1);
    memcpy(body, b->p, b->n);
    *ret = (struct s3_result){
        .outcome = AWS_OK, .status = 200, .body = (struct str){body, b->n}, .size = (int64_t)b->n};
}

static char *copied(const char *text)
{
    size_t n = strlen(text) + 1;
    return memcpy(world_alloc(n), text, n);
}

void s3_answer(const struct s3_uri *u, bool get, struct s3_result *ret)
{
    AUTO_BUF struct buf b = BUF_INIT(65536);
    const char *rest = "";
    bool progress_asked = str_ends(str_of(u->key), "_progress.json");
    const struct job *j = writer(u->key, progress_asked, &rest);
    /* Each question in its order, though two end alike. NOLINTNEXTLINE(bugprone-branch-clone) */
    if (j == NULL) {
        absent(ret);
    } else if (progress_asked) {
        progress(j, &b) ? found(ret, &b) : absent(ret);
    } else if (strcmp(rest, "_manifest.json") == 0 && j->worker && get) {
        manifest(j, &b);
        found(ret, &b);
    } else if (j->short_output || strcmp(rest, "_manifest.json") == 0) {
        absent(ret);
    } else {
        buf_add_cstr(&b, "x");
        found(ret, &b);
    }
}

void s3_answer_list(const struct s3_uri *u, struct s3_result *ret)
{
    const char *rest = "";
    const struct job *j = writer(u->key, false, &rest);
    struct s3_listing *l = world_alloc(sizeof *l);
    l->objects = world_alloc(sizeof *l->objects);
    if (j != NULL && !j->short_output) {
        char etag[40], key[sizeof u->key + 16];
        (void)snprintf(key, sizeof key, "%s00000.tar", u->key);
        l->n = 1;
        l->objects[0] = (struct s3_object){.key = copied(key),
                                           .etag = copied(etag_of(j, etag)),
                                           .size = BYTES,
                                           .modified = j->ended};
    }
    *ret = (struct s3_result){.outcome = AWS_OK, .status = 200, .listing = l};
}

void __wrap_s3_list_level(struct aws_client *c, const struct s3_uri *u, size_t max_keys, s3_cb cb,
                          void *ctx);

/* No output here has folders. */
void __wrap_s3_list_level(struct aws_client *c, const struct s3_uri *u, size_t max_keys, s3_cb cb,
                          void *ctx)
{
    s3_list(c, u, max_keys, cb, ctx);
}
