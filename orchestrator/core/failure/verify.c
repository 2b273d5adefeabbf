/* Judges an output: first the manifest's own sums, then the manifest against the listing. */
#include "verify.h"
#include "common/hash.h"
#include "common/json.h"
#include "worker_protocol.h"
#include <stdarg.h>
#include <stdio.h>

#define COUNT_MAX INT64_C(1000000000000)
#define BYTES_MAX INT64_C(1000000000000000)

static bool say_short(struct verify_verdict *v, const char *fmt, ...) PRINTF(2, 3);
static bool say_short(struct verify_verdict *v, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(v->text, sizeof v->text, fmt, ap);
    va_end(ap);
    v->good = false;
    v->cause = CAUSE_SHORT_OUTPUT;
    return false;
}

static int object_cmp(const void *a, const void *b)
{
    const struct verify_object *const *x = a;
    const struct verify_object *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

void verify_listing_done(struct verify_listing *l)
{
    free(TAKE(l->at));
    l->n = 0;
}

void verify_listing_init(struct verify_listing *l, const struct verify_object *objects, size_t n)
{
    l->at = xcalloc(n + 1, sizeof *l->at);
    l->n = n;
    for (size_t i = 0; i < n; i++) {
        l->at[i] = &objects[i];
    }
    qsort(l->at, n, sizeof *l->at, object_cmp);
}

const struct verify_object *verify_listing_find(const struct verify_listing *l, const char *key)
{
    const struct verify_object probe = {.key = key};
    const struct verify_object *const probe_p = &probe;
    const struct verify_object **hit = bsearch(&probe_p, l->at, l->n, sizeof *l->at, object_cmp);
    return hit == NULL ? NULL : *hit;
}

static struct str unquoted(const char *etag)
{
    struct str s = str_of(etag);
    if (s.n >= 2 && s.p[0] == '"' && s.p[s.n - 1] == '"') {
        s.p++;
        s.n -= 2;
    }
    return s;
}

static bool etag_differs(const char *a, const char *b)
{
    struct str x = unquoted(a);
    struct str y = unquoted(b);
    return x.n > 0 && y.n > 0 && !str_eq(x, y);
}

static bool is_bad(struct verify_verdict *v, const struct err *err)
{
    return say_short(v, WP_MANIFEST_KEY " cannot be read: %.180s", err->message);
}

static bool read_counts(const json_t *m, struct verify_verdict *v, int64_t *ret_rows_out)
{
    struct err err = ERR_INIT;
    int64_t version;
    if (!json_get_i64(m, "version", WP_VERSION, WP_VERSION, JSON_ABSENT, &version, &err) ||
        !json_get_i64(m, "rows_in", 0, COUNT_MAX, JSON_ABSENT, &v->rows_in, &err) ||
        !json_get_i64(m, "rows_out", 0, COUNT_MAX, JSON_ABSENT, ret_rows_out, &err) ||
        !json_get_i64(m, "successes", 0, COUNT_MAX, JSON_ABSENT, &v->successes, &err) ||
        !json_get_i64(m, "failed_to_download", 0, COUNT_MAX, JSON_ABSENT, &v->failed_to_download,
                      &err) ||
        !json_get_i64(m, "failed_to_resize", 0, COUNT_MAX, JSON_ABSENT, &v->failed_to_resize,
                      &err) ||
        !json_get_i64(m, "bytes", 0, BYTES_MAX, JSON_ABSENT, &v->bytes, &err)) {
        return is_bad(v, &err);
    }
    return true;
}

static bool check_rows(const struct verify_expect *e, struct verify_verdict *v, int64_t rows_out)
{
    if (e->rows_in >= 0 && v->rows_in != e->rows_in) {
        return say_short(v, "%lld rows were read; the part has %lld", (long long)v->rows_in,
                         (long long)e->rows_in);
    }
    if (rows_out != v->rows_in) {
        return say_short(v, "%lld rows went in, %lld came out", (long long)v->rows_in,
                         (long long)rows_out);
    }
    int64_t sum = v->successes + v->failed_to_download + v->failed_to_resize;
    if (sum != v->rows_in) {
        return say_short(v, "%lld rows went in, the outcomes add up to %lld", (long long)v->rows_in,
                         (long long)sum);
    }
    return true;
}

static bool check_task(const json_t *m, const struct verify_expect *e, struct verify_verdict *v)
{
    const char *task;
    struct err err = ERR_INIT;
    if (!json_get_str(m, "task", NULL, &task, &err)) {
        return is_bad(v, &err);
    }
    if (task == NULL) {
        return say_short(v, WP_MANIFEST_KEY " does not say whose it is");
    }
    if (e->task_id != NULL && strcmp(task, e->task_id) != 0) {
        return say_short(v, WP_MANIFEST_KEY " is of task %.40s, not of task %.40s", task,
                         e->task_id);
    }
    return true;
}

/* Check one object of the manifest against the listing and add its line to the checksum. */
static bool check_object(const json_t *o, const struct verify_listing *t, const char **last_key,
                         struct sha256 *sum, struct verify_verdict *v)
{
    const char *key;
    const char *etag;
    int64_t size;
    struct err err = ERR_INIT;
    if (!json_is_object(o) || !json_get_required_str(o, "key", &key, &err) ||
        !json_get_str(o, "etag", "", &etag, &err) ||
        !json_get_i64(o, "size", 0, BYTES_MAX, JSON_ABSENT, &size, &err)) {
        return json_is_object(o)
                   ? is_bad(v, &err)
                   : say_short(v, WP_MANIFEST_KEY " has an entry that is not an object");
    }
    if (*last_key != NULL && strcmp(*last_key, key) >= 0) {
        return say_short(v, WP_MANIFEST_KEY " is not in key order at '%.100s'", key);
    }
    *last_key = key;
    AUTO_BUF struct buf line = BUF_INIT(4096);
    buf_addf(&line, "%s\t%lld\t%s\n", key, (long long)size, etag);
    sha256_add(sum, buf_cstr(&line), line.n);
    const struct verify_object *found = verify_listing_find(t, key);
    if (found == NULL) {
        return say_short(v, "'%.150s' is missing", key);
    }
    if (found->size != size) {
        return say_short(v, "'%.120s' has %lld bytes, not %lld", key, (long long)found->size,
                         (long long)size);
    }
    if (etag_differs(found->etag, etag)) {
        return say_short(v, "'%.120s' was overwritten: ETag %.40s, not %.40s", key, found->etag,
                         etag);
    }
    return true;
}

static bool check_objects(const json_t *m, const struct verify_object *objects, size_t n,
                          struct verify_verdict *v)
{
    json_t *list;
    const char *want;
    struct err err = ERR_INIT;
    if (!json_get_array(m, "objects", &list, &err) ||
        !json_get_required_str(m, "sha256", &want, &err)) {
        return is_bad(v, &err);
    }
    if (list == NULL || json_array_size(list) > WP_OBJECTS_MAX) {
        return say_short(v, WP_MANIFEST_KEY " has no list of objects");
    }
    if (json_array_size(list) == 0 && v->rows_in > 0) {
        return say_short(v, "%lld rows and not one object", (long long)v->rows_in);
    }
    CLEANUP(verify_listing_done)
    struct verify_listing t;
    verify_listing_init(&t, objects, n);
    struct sha256 sum;
    sha256_init(&sum);
    const char *last_key = NULL;
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!check_object(json_array_get(list, i), &t, &last_key, &sum, v)) {
            sha256_done(&sum);
            return false;
        }
    }
    uint8_t digest[32];
    char hex[SHA256_HEX_N];
    sha256_end(&sum, digest);
    str_hex(digest, sizeof digest, hex);
    if (strcmp(hex, want) != 0) {
        return say_short(v, "the checksum of " WP_MANIFEST_KEY " is wrong");
    }
    return true;
}

void verify_manifest(struct str manifest, const struct verify_expect *expect,
                     const struct verify_object *objects, size_t n, struct verify_verdict *ret)
{
    AUTO_JSON json_t *m = NULL;
    struct err err = ERR_INIT;
    int64_t rows_out = 0;
    *ret = (struct verify_verdict){.cause = CAUSE_SHORT_OUTPUT};
    if (!json_parse(manifest, WP_MANIFEST_BYTES_MAX, &m, &err)) {
        (void)is_bad(ret, &err);
        return;
    }
    if (!json_is_object(m)) {
        (void)say_short(ret, WP_MANIFEST_KEY " is no JSON object");
        return;
    }
    if (!check_task(m, expect, ret) || !read_counts(m, ret, &rows_out) ||
        !check_rows(expect, ret, rows_out) || !check_objects(m, objects, n, ret)) {
        return;
    }
    ret->good = true;
    ret->cause = CAUSE_NONE;
}

void verify_sums_add(struct verify_sums *s, struct str text)
{
    AUTO_JSON json_t *o = NULL;
    struct err err = ERR_INIT;
    int64_t n;
    int64_t good;
    int64_t no_download;
    int64_t no_resize;
    int64_t bytes;
    ASSERT(s->n < 1000000); /* so that the sums fit */
    s->n++;
    if (!json_parse(text, WP_STATS_BYTES_MAX, &o, &err) ||
        !json_get_i64(o, "count", 0, COUNT_MAX, JSON_ABSENT, &n, &err) ||
        !json_get_i64(o, "successes", 0, COUNT_MAX, JSON_ABSENT, &good, &err) ||
        !json_get_i64(o, "failed_to_download", 0, COUNT_MAX, 0, &no_download, &err) ||
        !json_get_i64(o, "failed_to_resize", 0, COUNT_MAX, 0, &no_resize, &err) ||
        !json_get_i64(o, "bytes_downloaded", 0, BYTES_MAX, 0, &bytes, &err)) {
        (void)snprintf(s->bad, sizeof s->bad, "stats file %lld cannot be read: %.150s",
                       (long long)s->n, err.message);
        return;
    }
    s->count += n;
    s->successes += good;
    s->failed_to_download += no_download;
    s->failed_to_resize += no_resize;
    s->bytes += bytes;
}

void verify_img2dataset(const struct verify_sums *s, int64_t rows_in, int64_t min_success_ppm,
                        struct verify_verdict *ret)
{
    int64_t count = s->count;
    *ret = (struct verify_verdict){.cause = CAUSE_SHORT_OUTPUT,
                                   .rows_in = s->count,
                                   .successes = s->successes,
                                   .failed_to_download = s->failed_to_download,
                                   .failed_to_resize = s->failed_to_resize,
                                   .bytes = s->bytes};
    if (s->bad[0] != '\0') {
        (void)say_short(ret, "%s", s->bad);
        return;
    }
    if (s->n == 0 || count == 0) {
        (void)say_short(ret, s->n == 0 ? "no _stats.json was written" : "the stats count no row");
        return;
    }
    if (rows_in >= 0 && count != rows_in) {
        (void)say_short(ret, "the stats count %lld rows; the part has %lld", (long long)count,
                        (long long)rows_in);
        return;
    }
    __extension__ typedef __int128 wide;
    if ((wide)ret->successes * 1000000 < (wide)min_success_ppm * count) {
        (void)say_short(ret, "%lld of %lld rows succeeded; at least %lld.%02lld %% are needed",
                        (long long)ret->successes, (long long)count,
                        (long long)(min_success_ppm / 10000),
                        (long long)(min_success_ppm % 10000 / 100));
        return;
    }
    ret->good = true;
    ret->cause = CAUSE_NONE;
}
