/* The file: {"version":1,"parts":[{"first_shard":0,"task":"12","source":{"uri","size","checksum",
 * "rows"},"settings":{"image_size":"256",...},"settings_sha256":"hex"}]}, one entry per part of an
 * extended output. A source of several files also has "files":[{"name","size","rows"}]. The uri is
 * only informative: the same part may be mounted elsewhere. */
#include "part_record.h"
#include "common/cleanup.h"
#include "common/hash.h"
#include "common/json.h"
#include "incremental_mode.h"
#include "shard_number.h"
#include "worker_protocol.h"
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>

#define REFUSE_HINT "take an output folder of its own, or --incremental_mode overwrite"
#define END_BYTES   ((size_t)512 << 10) /* of a source, read at its start and its end */

struct part_record {
    const struct download_options *o; /* borrowed */
    char *task;
    json_t *source;
    json_t *settings;
    char settings_sha256[SHA256_HEX_N];
};

static bool add_ends(struct sha256 *h, const char *path, int64_t *size, struct err *err)
{
    AUTO_FREE char *chunk = xmalloc(END_BYTES);
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot read '%s'", path);
    }
    off_t last = MAX(st.st_size - (off_t)END_BYTES, (off_t)0);
    ssize_t n = pread(fd, chunk, END_BYTES, 0);
    if (n > 0) {
        sha256_add(h, chunk, (size_t)n);
        n = pread(fd, chunk, END_BYTES, last);
    }
    if (n < 0) {
        return err_set_os(err, ERR_IO, errno, "cannot read '%s'", path);
    }
    sha256_add(h, chunk, (size_t)n);
    *size += st.st_size;
    return true;
}

static const char *base_name(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash != NULL ? slash + 1 : name;
}

/* The files of a part of several, by their names without folders. */
static json_t *file_entry(const struct input_file *f, int64_t size, int64_t rows)
{
    return json_pack("{s:s, s:I, s:I}", "name", base_name(f->name), "size", (json_int_t)size,
                     "rows", (json_int_t)rows);
}

/* Add a file, or the files of an earlier output's pattern. */
static bool add_file(struct sha256 *h, const char *path, int64_t *size, struct err *err)
{
    glob_t found = {0};
    bool ok = true;
    struct stat st;
    bool many =
        stat(path, &st) != 0 && strchr(path, '*') != NULL && glob(path, 0, NULL, &found) == 0;
    for (size_t i = 0; ok && i < (many ? found.gl_pathc : 1); i++) {
        ok = add_ends(h, many ? found.gl_pathv[i] : path, size, err);
    }
    globfree(&found);
    return ok;
}

static bool read_source(struct part_record *p, const struct input *in, const int64_t *file_rows,
                        struct err *err)
{
    struct sha256 h CLEANUP(sha256_done);
    uint8_t sum[32];
    char hex[SHA256_HEX_N];
    int64_t size = 0;
    int64_t rows = 0;
    bool ok = true;
    AUTO_JSON json_t *files = json_array();
    sha256_init(&h);
    for (size_t i = 0; ok && i < in->files_n; i++) {
        int64_t before = size;
        ok = add_file(&h, in->files[i].path, &size, err);
        rows += file_rows[i];
        (void)json_array_append_new(files, file_entry(&in->files[i], size - before, file_rows[i]));
    }
    sha256_end(&h, sum);
    str_hex(sum, sizeof sum, hex);
    p->source = json_pack("{s:s, s:I, s:s, s:I}", "uri", in->name, "size", (json_int_t)size,
                          "checksum", hex, "rows", (json_int_t)rows);
    ASSERT(!ok || p->source != NULL);
    if (in->files_n > 1) {
        (void)json_object_set(p->source, "files", files);
    }
    return ok;
}

static void digest(const json_t *settings, char hex[static SHA256_HEX_N])
{
    AUTO_FREE char *text = json_dumps(settings, JSON_COMPACT | JSON_SORT_KEYS);
    ASSERT(text != NULL);
    struct sha256 h CLEANUP(sha256_done);
    uint8_t sum[32];
    sha256_init(&h);
    sha256_add(&h, text, strlen(text));
    sha256_end(&h, sum);
    str_hex(sum, sizeof sum, hex);
}

bool part_record_new(const struct download_options *o, const struct input *in, const char *task,
                     const int64_t *file_rows, struct part_record **ret, struct err *err)
{
    struct part_record *p = xcalloc(1, sizeof *p);
    p->o = o;
    p->task = xstrdup(task);
    p->settings = options_shape(o);
    digest(p->settings, p->settings_sha256);
    if (!read_source(p, in, file_rows, err)) {
        part_record_free(p);
        return false;
    }
    *ret = p;
    return true;
}

void part_record_free(struct part_record *p)
{
    if (p == NULL) {
        return;
    }
    free(p->task);
    json_decref(p->source);
    json_decref(p->settings);
    free(p);
}

/* Load the existing record; *ret NULL: there is none. */
static bool load(struct sink *sink, json_t **ret, struct err *err)
{
    AUTO_BUF struct buf b = BUF_INIT(PART_RECORD_BYTES_MAX);
    AUTO_JSON json_t *v = NULL;
    struct err e = ERR_INIT;
    *ret = NULL;
    if (!sink_get(sink, PART_RECORD_KEY, &b, &e)) {
        if (e.code == ERR_NOT_FOUND) {
            return true;
        }
        *err = e;
        return false;
    }
    if (json_parse(buf_str(&b), PART_RECORD_BYTES_MAX, &v, err) &&
        (json_is_array(json_object_get(v, "parts")) ||
         err_set(err, ERR_MALFORMED, "no list of parts"))) {
        *ret = TAKE(v);
        return true;
    }
    e = *err;
    return err_set(err, ERR_MALFORMED, "%s: %s; it is unknown what the output is of; %s",
                   PART_RECORD_KEY, e.message, REFUSE_HINT);
}

static void text_of(const json_t *v, char *out, size_t out_n)
{
    AUTO_FREE char *dumped = json_dumps(v, JSON_ENCODE_ANY);
    const char *text = json_is_string(v) ? json_string_value(v) : dumped;
    (void)snprintf(out, out_n, "%.150s", text != NULL ? text : "nothing");
}

static bool refuse(const struct part_record *p, const char *what, const json_t *there,
                   const json_t *here, struct err *err)
{
    char a[160];
    char b[160];
    text_of(there, a, sizeof a);
    text_of(here, b, sizeof b);
    return err_set(err, ERR_INVALID, "'%s' is of another %s: '%s' there (%s), '%s' here; %s",
                   p->o->output_folder, what, a, PART_RECORD_KEY, b, REFUSE_HINT);
}

/* True for the value that was the only one before the setting existed. */
static bool was_only(const char *key, const json_t *v)
{
    static const char *const only[][2] = {{"input_format", "parquet"},
                                          {"output_format", "webdataset"}};
    bool is = false;
    for (size_t i = 0; i < ARRAY_LEN(only); i++) {
        const char *text = json_string_value(v);
        is = is || (strcmp(key, only[i][0]) == 0 && text != NULL && strcmp(text, only[i][1]) == 0);
    }
    return is;
}

static bool same_settings(const struct part_record *p, const json_t *entry, struct err *err)
{
    const json_t *theirs = json_object_get(entry, "settings");
    const char *key;
    json_t *v;
    char what[120];
    json_object_foreach(p->settings, key, v)
    {
        const json_t *there = json_object_get(theirs, key);
        if (!json_equal(there, v) && !(there == NULL && was_only(key, v))) {
            (void)snprintf(what, sizeof what, "setting %.80s", key);
            return refuse(p, what, there, v, err);
        }
    }
    return true;
}

static bool same_source(const struct part_record *p, const json_t *entry, struct err *err)
{
    static const char *const keys[] = {"rows", "size", "files", "checksum"};
    static const char *const words[] = {"part, by its rows", "part, by its size",
                                        "part, by the list of its files", "part, by its checksum"};
    const json_t *theirs = json_object_get(entry, "source");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const json_t *there = json_object_get(theirs, keys[i]);
        const json_t *here = json_object_get(p->source, keys[i]);
        bool none = there == NULL && here == NULL;
        if (!none && !json_equal(there, here)) {
            (void)refuse(p, words[i], there, here, err);
            const char *uri = json_string_value(json_object_get(theirs, "uri"));
            return err_wrap(err, "made of '%.200s', asked for '%.200s'", uri != NULL ? uri : "",
                            json_string_value(json_object_get(p->source, "uri")));
        }
    }
    return true;
}

static bool same_task(const struct part_record *p, const json_t *entry, struct err *err)
{
    const char *there = json_string_value(json_object_get(entry, "task"));
    AUTO_JSON json_t *here = json_string(p->task);
    return strcmp(there != NULL ? there : "", p->task) == 0 ||
           refuse(p, "task", json_object_get(entry, "task"), here, err);
}

static bool same_all(const struct part_record *p, const json_t *entry, struct err *err)
{
    return same_source(p, entry, err) && same_settings(p, entry, err) && same_task(p, entry, err);
}

/* True for any file of a shard: ours write the record first, so these are another's, and the run
 * would remove them. A folder is judged where it would be removed (sink_tree.h). */
static bool is_of_shard(const char *name)
{
    bool is = false;
    for (size_t k = 0; shard_suffix(k) != NULL; k++) {
        const char *suffix = shard_suffix(k);
        is = is || (strcmp(suffix, "/") != 0 && shard_is_name(name, suffix));
    }
    return is;
}

static bool has_shards(struct sink *sink, bool *ret, struct err *err)
{
    struct sink_listing l = {0};
    if (!sink_list(sink, &l, err)) {
        return false;
    }
    *ret = false;
    for (size_t i = 0; i < l.n; i++) {
        *ret = *ret || is_of_shard(l.objects[i].name);
    }
    sink_listing_done(&l);
    return true;
}

/* The entry of shards from `first` on; NULL: none. first -1: the last entry. */
static const json_t *entry_of(const json_t *record, int64_t first)
{
    const json_t *parts = json_object_get(record, "parts");
    for (size_t i = json_array_size(parts); i-- > 0;) {
        const json_t *e = json_array_get(parts, i);
        if (first < 0 || json_integer_value(json_object_get(e, "first_shard")) == first) {
            return e;
        }
    }
    return NULL;
}

/* True when one of the parts of a finished output is this one. The error is that of the last. */
static bool is_one_of_them(const struct part_record *p, const json_t *record, struct err *err)
{
    const json_t *parts = json_object_get(record, "parts");
    struct err e = ERR_INIT;
    for (size_t i = 0; i < json_array_size(parts); i++) {
        e = (struct err)ERR_INIT;
        if (same_all(p, json_array_get(parts, i), &e)) {
            return true;
        }
    }
    *err = e;
    return false;
}

/* An extending run that was ended between its marker and its entry has none yet. */
static bool may_extend(const struct part_record *p, const json_t *record, int64_t resumed,
                       struct err *err)
{
    const json_t *ours = resumed >= 0 ? entry_of(record, resumed) : NULL;
    return ours != NULL ? same_all(p, ours, err) : same_settings(p, entry_of(record, -1), err);
}

bool part_record_check(const struct part_record *p, struct sink *sink, bool finished,
                       int64_t resumed, struct err *err)
{
    AUTO_JSON json_t *there = NULL;
    AUTO_JSON json_t *later = NULL;
    bool shards = false;
    if (p->o->mode == MODE_OVERWRITE && resumed < 0 && !finished) {
        return true;
    }
    if (!load(sink, &there, err)) {
        return false;
    }
    const json_t *last = entry_of(there, -1);
    if (last != NULL && finished) {
        return is_one_of_them(p, there, err);
    }
    if (last != NULL) {
        return p->o->mode == MODE_EXTEND ? may_extend(p, there, resumed, err)
                                         : same_all(p, last, err);
    }
    if (p->o->mode == MODE_EXTEND || !has_shards(sink, &shards, err)) {
        return p->o->mode == MODE_EXTEND;
    }
    if (shards && (!load(sink, &later, err) || entry_of(later, -1) != NULL)) {
        /* another host of the job has begun meanwhile */
        return later != NULL && same_all(p, entry_of(later, -1), err);
    }
    return (!shards && !finished) ||
           err_set(err, ERR_INVALID,
                   "'%s' has shards and no %s: it is unknown which part and settings they are "
                   "of, here it is '%.200s'; %s",
                   p->o->output_folder, PART_RECORD_KEY,
                   json_string_value(json_object_get(p->source, "uri")), REFUSE_HINT);
}

bool part_record_may_be_of(struct sink *sink, const char *task)
{
    AUTO_JSON json_t *there = NULL;
    struct err err = ERR_INIT; /* the check tells it */
    if (!load(sink, &there, &err)) {
        return false;
    }
    const json_t *last = entry_of(there, -1);
    const char *of = json_string_value(json_object_get(last, "task"));
    return last == NULL || strcmp(of != NULL ? of : "", task) == 0;
}

bool part_record_write(const struct part_record *p, struct sink *sink, int64_t first_shard,
                       struct err *err)
{
    AUTO_JSON json_t *there = NULL;
    struct err e = ERR_INIT;
    if (!load(sink, &there, err)) {
        return false;
    }
    const json_t *entry = entry_of(there, first_shard);
    if (entry != NULL) {
        return same_all(p, entry, err);
    }
    bool fresh = there == NULL;
    if (fresh) {
        there = json_pack("{s:i, s:[]}", "version", WP_VERSION, "parts");
    }
    json_t *mine = json_pack("{s:I, s:s, s:O, s:O, s:s}", "first_shard", (json_int_t)first_shard,
                             "task", p->task, "source", p->source, "settings", p->settings,
                             "settings_sha256", p->settings_sha256);
    (void)json_array_append_new(json_object_get(there, "parts"), mine);
    AUTO_FREE char *text = json_dumps(there, JSON_INDENT(1));
    ASSERT(text != NULL);
    if (sink_put(sink, PART_RECORD_KEY, str_of(text), "application/json", fresh, &e)) {
        return true;
    }
    if (e.code != ERR_PRECONDITION) {
        *err = e;
        return false;
    }
    AUTO_JSON json_t *theirs = NULL; /* a second writer was first */
    if (!load(sink, &theirs, err)) {
        return false;
    }
    entry = entry_of(theirs, first_shard);
    return entry != NULL ? same_all(p, entry, err)
                         : err_set(err, ERR_CONFLICT, "%s has gone", PART_RECORD_KEY);
}

/* Shards of an entry: each file of its source has its own. -1: it does not tell. */
static int64_t shards_of(const json_t *entry)
{
    const json_t *source = json_object_get(entry, "source");
    const json_t *files = json_object_get(source, "files");
    const char *text = json_string_value(
        json_object_get(json_object_get(entry, "settings"), "number_sample_per_shard"));
    int64_t per;
    if (text == NULL || !parse_i64(str_of(text), 1, INT64_MAX / 4, &per, NULL)) {
        return -1;
    }
    int64_t n = 0;
    for (size_t i = 0; i < MAX(json_array_size(files), (size_t)1); i++) {
        const json_t *of = files != NULL ? json_array_get(files, i) : source;
        int64_t rows = json_integer_value(json_object_get(of, "rows"));
        n += rows / per + (rows % per > 0 ? 1 : 0);
    }
    return n;
}

bool part_record_ended(struct sink *sink, const struct shard_format *f, struct err *err)
{
    AUTO_JSON json_t *there = NULL;
    struct sink_listing l = {0};
    if (!load(sink, &there, err)) {
        return false;
    }
    const json_t *last = entry_of(there, -1);
    int64_t want = last != NULL ? shards_of(last) : 0;
    int64_t first = json_integer_value(json_object_get(last, "first_shard"));
    int64_t have = 0;
    if (want > 0 && !sink_list(sink, &l, err)) {
        return false;
    }
    for (size_t i = 0; i < l.n; i++) {
        const char *name = l.objects[i].name;
        have += str_ends(str_of(name), "_stats.json") && shard_number(f, name) >= first ? 1 : 0;
    }
    sink_listing_done(&l);
    const char *task = json_string_value(json_object_get(last, "task"));
    const char *uri = json_string_value(json_object_get(json_object_get(last, "source"), "uri"));
    return have >= want ||
           err_set(
               err, ERR_CONFLICT,
               "the part before is not finished: %lld of %lld shards of '%.200s' (task '%.60s') "
               "are there; let its job end, or run it again, and extend then",
               (long long)have, (long long)want, uri != NULL ? uri : "", task != NULL ? task : "");
}
