/* The marker is written before the first shard and removed after the manifest. Runs started by hand
 * have no task: a marker of extend then means an interrupted run, and overwrite always removes. */
#include "incremental_mode.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/log.h"
#include "io/sink_tree.h"
#include "job/manifest.h"
#include "part_record.h"
#include "shard_number.h"
#include "worker_protocol.h"

struct marker {
    bool there;
    bool ours;
    int64_t first;
};

static bool read_marker(struct sink *sink, const char *mode, const char *task, struct marker *ret,
                        struct err *err)
{
    AUTO_BUF struct buf b = BUF_INIT(INCREMENTAL_MODE_MARKER_BYTES_MAX);
    AUTO_JSON json_t *v = NULL;
    struct marker m = {0};
    struct err e = ERR_INIT;
    const char *of_mode;
    const char *of_task;
    if (!sink_get(sink, INCREMENTAL_MODE_MARKER_KEY, &b, &e)) {
        *ret = m;
        if (e.code == ERR_NOT_FOUND) {
            return true;
        }
        *err = e;
        return false;
    }
    m.there = true;
    if (!json_parse(buf_str(&b), INCREMENTAL_MODE_MARKER_BYTES_MAX, &v, &e) ||
        !json_get_str(v, "mode", "", &of_mode, &e) || !json_get_str(v, "task", "", &of_task, &e) ||
        !json_get_i64(v, "first", 0, INT64_MAX / 4, 0, &m.first, &e)) {
        *ret = m; /* another's, to overwrite */
        return strcmp(mode, "overwrite") == 0 ||
               err_set(err, ERR_MALFORMED,
                       "%s: %s; take it away when no other job extends the output",
                       INCREMENTAL_MODE_MARKER_KEY, e.message);
    }
    m.ours = strcmp(of_mode, mode) == 0 && strcmp(of_task, task) == 0;
    *ret = m;
    return true;
}

static bool write_marker(struct sink *sink, const char *mode, const char *task, int64_t first,
                         bool create_only, struct err *err)
{
    AUTO_BUF struct buf b = BUF_INIT(INCREMENTAL_MODE_MARKER_BYTES_MAX);
    struct json_out w;
    json_out_init(&w, &b);
    json_out_object(&w, NULL);
    json_out_str(&w, "mode", mode);
    json_out_str(&w, "task", task);
    json_out_i64(&w, "first", first);
    json_out_end_object(&w);
    return sink_put(sink, INCREMENTAL_MODE_MARKER_KEY, buf_str(&b), "application/json", create_only,
                    err);
}

bool incremental_mode_is_done(struct sink *sink, const struct download_options *o, const char *task,
                              bool *ret_done, struct err *err)
{
    AUTO_JSON json_t *manifest = NULL;
    struct err e = ERR_INIT;
    bool damaged = !manifest_load(sink, &manifest, &e) && e.code == ERR_MALFORMED;
    if (damaged && o->mode != MODE_OVERWRITE) {
        return err_set(err, ERR_MALFORMED,
                       "cannot read '%s': %s; take that object away to have it made again, or "
                       "--incremental_mode overwrite",
                       o->output_folder, e.message);
    }
    if (e.code != ERR_NONE && !damaged) {
        *err = e;
        return err_wrap(err, "cannot read '%s'", o->output_folder);
    }
    bool same = manifest_is_of(manifest, task);
    const char *of = json_string_value(json_object_get(manifest, "task"));
    switch (o->mode) {
    case MODE_INCREMENTAL:
        if (manifest != NULL && !same) {
            return err_set(err, ERR_INVALID,
                           "'%s' holds the finished output of task '%s', not '%s'",
                           o->output_folder, of != NULL ? of : "", task);
        }
        *ret_done = same;
        return true;
    case MODE_OVERWRITE:
    case MODE_EXTEND:
        *ret_done = same && task[0] != '\0';
        return true;
    }
    return true;
}

/* Remove names[n], objects or folders. */
static bool remove_named(struct sink *sink, const char *const *names, size_t n, struct progress *p,
                         struct err *err)
{
    bool folders = n > 0 && str_ends(str_of(names[0]), "/"); /* of one suffix all are or none is */
    return folders ? sink_tree_delete_many(sink, names, n, &p->to_prepare, &p->prepared, err)
                   : sink_delete_many(sink, names, n, &p->prepared, err);
}

/* The shards' files in the listing that end with the k-th suffix; out[l->n]. */
static size_t of_suffix(const struct sink_listing *l, const struct shard_format *f, size_t k,
                        const char **out)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const char *name = l->objects[i].name;
        if (str_ends(str_of(name), shard_suffix(k)) &&
            (shard_number(f, name) >= 0 || shard_is_folder_of(l, name))) {
            out[n++] = name;
        }
    }
    return n;
}

/* Remove the manifest first, then the files that mark shards as finished, so that after a kill in
 * between nothing looks complete. */
static bool remove_all(struct sink *sink, const struct shard_format *f, struct progress *p,
                       struct err *err)
{
    struct sink_listing l = {0};
    if (!sink_delete(sink, WP_MANIFEST_KEY, err) || !sink_delete(sink, PART_RECORD_KEY, err) ||
        !sink_list(sink, &l, err)) {
        return false;
    }
    bool ok = true;
    int64_t n = 0;
    AUTO_FREE const char **names = xcalloc(l.n + 1, sizeof *names);
    for (size_t k = 0; shard_suffix(k) != NULL; k++) {
        n += (int64_t)of_suffix(&l, f, k, names);
    }
    progress_prepare(p, "removed", n);
    for (size_t k = 0; ok && shard_suffix(k) != NULL; k++) {
        size_t these = of_suffix(&l, f, k, names);
        ok = remove_named(sink, names, these, p, err);
    }
    sink_listing_done(&l);
    log_event(LOG_INFO, "output_overwritten", LF_I("objects_removed", p->prepared));
    return ok;
}

static bool find_first(struct sink *sink, const struct shard_format *f, int64_t *ret,
                       struct err *err)
{
    struct sink_listing l = {0};
    if (!sink_list(sink, &l, err)) {
        return false;
    }
    int64_t largest = -1;
    for (size_t i = 0; i < l.n; i++) {
        largest = MAX(largest, shard_number(f, l.objects[i].name));
    }
    sink_listing_done(&l);
    *ret = largest + 1;
    return true;
}

bool incremental_mode_resumes(struct sink *sink, const struct download_options *o, const char *task,
                              int64_t *ret_first, struct err *err)
{
    struct marker m = {0};
    *ret_first = -1;
    if (o->mode != MODE_INCREMENTAL && !read_marker(sink, o->incremental_mode, task, &m, err)) {
        return false;
    }
    if (m.ours && (o->mode == MODE_EXTEND || task[0] != '\0')) {
        *ret_first = m.first;
    }
    return true;
}

static bool refuse_other(const struct download_options *o, struct err *err)
{
    return err_set(err, ERR_CONFLICT,
                   "another job writes '%s' (%s): end it first, or remove that "
                   "file",
                   o->output_folder, INCREMENTAL_MODE_MARKER_KEY);
}

static bool may_extend(struct sink *sink, const struct download_options *o, const struct marker *m,
                       const struct shard_format *f, struct err *err)
{
    if (m->there && !m->ours) {
        return refuse_other(o, err);
    }
    return m->ours || part_record_ended(sink, f, err);
}

bool incremental_mode_claims(struct sink *sink, const struct download_options *o, const char *task,
                             const char *part, bool *ret, struct err *err)
{
    const struct shard_format f = {.digits = (int)o->oom_shard_count, .output = o->output};
    struct marker m;
    *ret = true;
    switch (o->mode) {
    case MODE_INCREMENTAL:
        *ret = part_record_may_be_of(sink, part);
        return true;
    case MODE_OVERWRITE:
        return true;
    case MODE_EXTEND:
        return read_marker(sink, o->incremental_mode, task, &m, err) &&
               may_extend(sink, o, &m, &f, err);
    }
    return true;
}

/* Two may begin at once: one of them writes the marker. It may also be written when the other has
 * ended and taken its own away: then the first shard is not the first any more. */
static bool mark_extension(struct sink *sink, const struct download_options *o, const char *task,
                           const struct shard_format *f, struct err *err)
{
    int64_t first = f->first_shard;
    struct err e = ERR_INIT;
    if (!write_marker(sink, o->incremental_mode, task, first, true, &e)) {
        *err = e;
        return e.code == ERR_PRECONDITION && refuse_other(o, err);
    }
    int64_t now = first;
    bool same = find_first(sink, f, &now, &e) && now == first && part_record_ended(sink, f, &e);
    if (same) {
        return true;
    }
    *err = e;
    if (now != first) {
        (void)err_set(err, ERR_CONFLICT, "another job has extended '%s' meanwhile: begin again",
                      o->output_folder);
    }
    (void)!sink_delete(sink, INCREMENTAL_MODE_MARKER_KEY, &e);
    return false;
}

bool incremental_mode_begin(struct sink *sink, const struct download_options *o, const char *task,
                            struct progress *p, struct shard_format *f, struct manifest_extend *ret,
                            struct err *err)
{
    struct marker m;
    if (o->mode == MODE_INCREMENTAL) {
        return true;
    }
    if (!read_marker(sink, o->incremental_mode, task, &m, err)) {
        return false;
    }
    if (o->mode == MODE_OVERWRITE) {
        return (m.ours && task[0] != '\0') ||
               (remove_all(sink, f, p, err) &&
                write_marker(sink, o->incremental_mode, task, 0, false, err));
    }
    if (!may_extend(sink, o, &m, f, err) || (!m.ours && !find_first(sink, f, &m.first, err))) {
        return false;
    }
    f->first_shard = m.first;
    return manifest_extend_load(sink, f, ret, err) &&
           (m.ours || mark_extension(sink, o, task, f, err));
}

bool incremental_mode_end(struct sink *sink, const struct download_options *o, const char *task,
                          struct err *err)
{
    struct marker m;
    return o->mode == MODE_INCREMENTAL ||
           (read_marker(sink, o->incremental_mode, task, &m, err) &&
            (!m.ours || sink_delete(sink, INCREMENTAL_MODE_MARKER_KEY, err)));
}
