/* Reads the manifest of the output being extended. */
#include "manifest_extend.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "shard_number.h"
#include "worker_protocol.h"

#define COUNT_MAX (INT64_MAX / 4)

/* Copy the counts of one part: of the manifest itself or of an entry of its "earlier". */
static bool add_part(struct manifest_extend *x, const json_t *of, int64_t first_shard,
                     struct err *err)
{
    static const char *const counts[] = {
        "rows_in", "rows_out", "successes", "failed_to_download", "failed_to_resize", "bytes"};
    const char *task;
    const char *attempt;
    int64_t first;
    if (!json_get_str(of, "task", "", &task, err) ||
        !json_get_str(of, "attempt", "", &attempt, err) ||
        !json_get_i64(of, "first_shard", 0, COUNT_MAX, 0, &first, err)) {
        return false;
    }
    if (first >= first_shard) {
        return true;
    }
    json_t *part = json_pack("{s:s, s:s, s:I}", "task", task, "attempt", attempt, "first_shard",
                             (json_int_t)first);
    bool ok = true;
    for (size_t i = 0; ok && i < ARRAY_LEN(counts); i++) {
        int64_t n;
        ok = json_get_i64(of, counts[i], 0, COUNT_MAX, JSON_ABSENT, &n, err);
        if (ok) {
            (void)json_object_set_new(part, counts[i], json_integer(n));
        }
    }
    (void)json_array_append_new(x->earlier, part);
    return ok;
}

static bool differs(const char *a, const char *b)
{
    return a[0] != '\0' && b[0] != '\0' && strcmp(a, b) != 0;
}

static bool add_object(struct manifest_extend *x, const json_t *o, const struct shard_format *f,
                       const struct sink_listing *there, struct err *err)
{
    const char *key;
    const char *etag;
    int64_t size;
    if (!json_get_required_str(o, "key", &key, err) || !json_get_str(o, "etag", "", &etag, err) ||
        !json_get_i64(o, "size", 0, COUNT_MAX, JSON_ABSENT, &size, err)) {
        return false;
    }
    if (shard_number(f, key) >= f->first_shard) {
        return true;
    }
    const struct sink_object *found = sink_listing_find(there, key);
    if (found == NULL || found->size != size || differs(found->etag, etag)) {
        return err_set(err, ERR_CONFLICT,
                       "'%.200s' is not what the manifest of the earlier output says: it cannot be "
                       "extended before it is mended",
                       key);
    }
    struct sink_object *mine = &x->objects.objects[x->objects.n++];
    *mine = *found;
    mine->name = xstrdup(key);
    x->bytes += size;
    return true;
}

bool manifest_extend_load(struct sink *sink, const struct shard_format *f,
                          struct manifest_extend *ret, struct err *err)
{
    AUTO_JSON json_t *m = NULL;
    struct sink_listing there = {0};
    json_t *list = NULL;
    json_t *earlier = NULL;
    struct manifest_extend x = {.earlier = json_array()};
    bool ok = manifest_load(sink, &m, err);
    x.there = m != NULL;
    if (ok && m != NULL) {
        ok = sink_list(sink, &there, err) && json_get_array(m, "objects", &list, err) &&
             json_get_array(m, "earlier", &earlier, err);
        x.objects.objects = xcalloc(json_array_size(list) + 1, sizeof *x.objects.objects);
        for (size_t i = 0; ok && i < json_array_size(earlier); i++) {
            ok = add_part(&x, json_array_get(earlier, i), f->first_shard, err);
        }
        ok = ok && add_part(&x, m, f->first_shard, err);
        for (size_t i = 0; ok && i < json_array_size(list); i++) {
            ok = add_object(&x, json_array_get(list, i), f, &there, err);
        }
    }
    sink_listing_done(&there);
    if (!ok) {
        manifest_extend_done(&x);
        return err_wrap(err, "%s", WP_MANIFEST_KEY);
    }
    *ret = x;
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct sink_object *x = a;
    const struct sink_object *y = b;
    return strcmp(x->name, y->name);
}

void manifest_extend_merge(struct manifest_extend *x, struct sink_listing *ours)
{
    if (x->objects.n == 0) {
        return;
    }
    size_t n = ours->n + x->objects.n;
    ours->objects = xrealloc(ours->objects, n * sizeof *ours->objects);
    memcpy(ours->objects + ours->n, x->objects.objects, x->objects.n * sizeof *ours->objects);
    ours->n = n;
    x->objects.n = 0;
    qsort(ours->objects, n, sizeof *ours->objects, by_name);
}

void manifest_extend_done(struct manifest_extend *x)
{
    json_decref(x->earlier);
    sink_listing_done(&x->objects);
    *x = (struct manifest_extend){0};
}
