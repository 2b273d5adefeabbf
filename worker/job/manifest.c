/* Writing and recognising the manifest. */
#include "manifest.h"
#include "common/cleanup.h"
#include "common/hash.h"
#include "common/json.h"
#include "worker_protocol.h"

#define ENTRY_BYTES_LEAST 62 /* {"key":"","size":1,"etag":"<32 hex digits>"}, without the name */

static void objects(const struct manifest *m, struct json_out *w)
{
    AUTO_BUF struct buf line = BUF_INIT(1024);
    struct sha256 h CLEANUP(sha256_done);
    sha256_init(&h);
    json_out_array(w, "objects");
    for (size_t i = 0; i < m->objects_n; i++) {
        const struct sink_object *o = &m->objects[i];
        json_out_object(w, NULL);
        json_out_str(w, "key", o->name);
        json_out_i64(w, "size", o->size);
        json_out_str(w, "etag", o->etag);
        json_out_end_object(w);
        buf_reset(&line);
        buf_addf(&line, "%s\t%lld\t%s\n", o->name, (long long)o->size, o->etag);
        sha256_add(&h, line.p, line.n);
    }
    json_out_end_array(w);
    uint8_t sum[32];
    char hex[SHA256_HEX_N];
    sha256_end(&h, sum);
    str_hex(sum, sizeof sum, hex);
    json_out_str(w, "sha256", hex);
}

static void statuses(const struct manifest *m, struct json_out *w)
{
    json_out_object(w, "statuses");
    int64_t others = 0;
    for (size_t i = 0; i < m->total.texts_n; i++) {
        if (i < MANIFEST_STATUSES_MAX) {
            json_out_i64(w, m->total.texts[i].text, m->total.texts[i].n);
        } else {
            others += m->total.texts[i].n;
        }
    }
    if (others > 0) {
        json_out_i64(w, "(others)", others);
    }
    json_out_end_object(w);
}

void manifest_json(const struct manifest *m, struct buf *out)
{
    int64_t bytes = -m->earlier_bytes;
    for (size_t i = 0; i < m->objects_n; i++) {
        bytes += m->objects[i].size;
    }
    struct json_out w;
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_i64(&w, "version", WP_VERSION);
    json_out_str(&w, "task", m->task);
    json_out_str(&w, "attempt", m->attempt);
    json_out_i64(&w, "rows_in", m->rows_in);
    json_out_i64(&w, "rows_out", m->rows_out);
    json_out_i64(&w, "successes", m->total.successes);
    json_out_i64(&w, "failed_to_download", m->total.failed_to_download);
    json_out_i64(&w, "failed_to_resize", m->total.failed_to_resize);
    json_out_i64(&w, "bytes", bytes);
    json_out_time(&w, "started", m->started_us);
    json_out_time(&w, "ended", m->ended_us);
    statuses(m, &w);
    if (m->earlier != NULL) {
        json_out_i64(&w, "first_shard", m->first_shard);
        AUTO_FREE char *earlier = json_dumps(m->earlier, JSON_COMPACT);
        ASSERT(earlier != NULL);
        json_out_raw(&w, "earlier", str_of(earlier));
    }
    objects(m, &w);
    json_out_end_object(&w);
}

bool manifest_can_be_checked(const char *attempt, int64_t objects, int64_t name_bytes,
                             struct err *err)
{
    return attempt[0] == '\0' ||
           (objects <= WP_OBJECTS_MAX &&
            objects * ENTRY_BYTES_LEAST + name_bytes <= WP_MANIFEST_BYTES_MAX) ||
           err_set(err, ERR_LIMIT,
                   "an output of %lld objects is too large to be checked by drover (at most %d, "
                   "and %d MiB of manifest): make smaller parts, or fewer and larger objects",
                   (long long)objects, WP_OBJECTS_MAX, WP_MANIFEST_BYTES_MAX >> 20);
}

bool manifest_put(struct sink *s, const struct manifest *m, bool create_only, struct err *err)
{
    AUTO_BUF struct buf b = BUF_INIT(MANIFEST_BYTES_MAX);
    manifest_json(m, &b);
    if (b.overflow) {
        return err_set(err, ERR_LIMIT, "the manifest of %zu objects is longer than %u bytes",
                       m->objects_n, MANIFEST_BYTES_MAX);
    }
    return sink_put(s, WP_MANIFEST_KEY, buf_str(&b), "application/json", create_only, err);
}

bool manifest_load(struct sink *s, json_t **ret, struct err *err)
{
    AUTO_BUF struct buf b = BUF_INIT(MANIFEST_BYTES_MAX);
    struct err e = ERR_INIT;
    if (!sink_get(s, WP_MANIFEST_KEY, &b, &e)) {
        if (e.code == ERR_NOT_FOUND && strcmp(e.aws_code, "NoSuchBucket") != 0) {
            *ret = NULL;
            return true;
        }
        *err = e;
        return false;
    }
    AUTO_JSON json_t *v = NULL;
    if (!json_parse(buf_str(&b), MANIFEST_BYTES_MAX, &v, err) ||
        (!json_is_object(v) && !err_set(err, ERR_MALFORMED, "not an object"))) {
        return err_wrap(err, "%s", WP_MANIFEST_KEY);
    }
    *ret = TAKE(v);
    return true;
}

bool manifest_task(struct sink *s, char **ret_task, struct err *err)
{
    AUTO_JSON json_t *v = NULL;
    const char *task = NULL;
    if (!manifest_load(s, &v, err) || (v != NULL && !json_get_str(v, "task", "", &task, err))) {
        return err_wrap(err, "%s", WP_MANIFEST_KEY);
    }
    *ret_task = task != NULL ? xstrdup(task) : NULL;
    return true;
}

static bool says_task(const json_t *o, const char *task)
{
    const char *of = json_string_value(json_object_get(o, "task"));
    return strcmp(of != NULL ? of : "", task) == 0;
}

bool manifest_is_of(const json_t *manifest, const char *task)
{
    bool is = manifest != NULL && says_task(manifest, task);
    const json_t *earlier = json_object_get(manifest, "earlier");
    for (size_t i = 0; task[0] != '\0' && i < json_array_size(earlier); i++) {
        is = is || says_task(json_array_get(earlier, i), task);
    }
    return is;
}
