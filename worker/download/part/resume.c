/* A shard is finished when it has the pieces of its output_format, of which _stats.json is written
 * last. Pieces of other shards are removed at the start in the opposite order, so that after a
 * kill in between nothing looks finished.
 *
 * In S3 the folder of a shard without a success does not exist, and the files of an unfinished
 * shard stay: the next attempt overwrites them and removes what it has not written. */
#include "resume.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "io/sink_tree.h"
#include "shard_number.h"

static const struct output_pieces *pieces_of(const struct pipeline *run)
{
    return output_pieces(run->format.output);
}

static unsigned whole(const struct pipeline *run)
{
    return (1u << pieces_of(run)->n) - 1;
}

static bool is_folder(const char *suffix)
{
    return strcmp(suffix, "/") == 0;
}

/* Bit of the folder of samples; 0: the format has none. */
static unsigned folder_bit(const struct pipeline *run)
{
    return is_folder(pieces_of(run)->suffix[0]) ? 1u : 0u;
}

static bool is_complete(const struct pipeline *run, unsigned pieces)
{
    return (pieces | folder_bit(run)) == whole(run);
}

/* Which pieces of which shards exist; pieces[shards]. */
static uint8_t *survey(const struct pipeline *run, const struct sink_listing *l)
{
    int64_t shards = pipeline_shards(run);
    const struct output_pieces *p = pieces_of(run);
    uint8_t *pieces = xcalloc((size_t)shards + 1, 1);
    for (size_t i = 0; i < l->n; i++) {
        for (size_t k = 0; k < p->n; k++) {
            int64_t shard = shard_parse_name(&run->format, l->objects[i].name, p->suffix[k]);
            if (shard >= 0 && shard < shards) {
                pieces[shard] = (uint8_t)(pieces[shard] | 1u << k);
            }
        }
    }
    return pieces;
}

static bool adds_up(const struct stats *s)
{
    int64_t left = s->count; /* each is at least 0 */
    const int64_t of[] = {s->successes, s->failed_to_download, s->failed_to_resize};
    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        if (of[i] > left) {
            return false;
        }
        left -= of[i];
    }
    return left == 0;
}

/* The stats of a finished shard, the caller's. ERR_MALFORMED: they are none. */
static bool parse_stats(const struct pipeline *run, int64_t shard, struct str text,
                        struct stats *ret, struct err *err)
{
    char name[SHARD_KEY_BYTES];
    struct stats s;
    shard_name(&run->format, shard, "_stats.json", name);
    if (!stats_parse(text, &s, err)) {
        err->code = ERR_MALFORMED;
        return err_wrap(err, "'%s'", name);
    }
    if (!adds_up(&s)) {
        stats_done(&s);
        return err_set(err, ERR_MALFORMED, "'%s' does not add up", name);
    }
    if (s.count != pipeline_shard_rows(run, shard)) {
        (void)err_set(
            err, ERR_INVALID,
            "'%s' counts %lld rows, expected %lld: made of another part or with another "
            "number_sample_per_shard; take that shard's files away to have it made again, "
            "or --incremental_mode overwrite",
            name, (long long)s.count, (long long)pipeline_shard_rows(run, shard));
        stats_done(&s);
        return false;
    }
    *ret = s;
    return true;
}

static bool remove_pieces(struct sink *sink, const struct pipeline *run, int64_t shard,
                          unsigned pieces, struct err *err)
{
    const struct output_pieces *p = pieces_of(run);
    for (size_t k = p->n; k-- > 0;) {
        char name[SHARD_KEY_BYTES];
        shard_name(&run->format, shard, p->suffix[k], name);
        if ((pieces & 1u << k) != 0 && !shard_object_delete(sink, name, err)) {
            return false;
        }
    }
    return true;
}

void resume_remove_shard(struct sink *sink, const struct pipeline *run, int64_t shard_i)
{
    struct err err = ERR_INIT;
    if (!remove_pieces(sink, run, shard_i, whole(run), &err)) {
        log_event(LOG_WARN, "mixed_shard_not_removed", LF_I("shard", shard_i), LF_ERR(&err));
    }
}

struct load { /* of the stats of all shards that look finished */
    struct pipeline *run;
    const uint8_t *pieces;
    int64_t *shards; /* shards[n] */
    size_t n;
    pthread_mutex_t lock; /* guards the resume */
    struct resume *r;
};

static void stats_name(void *ctx, size_t i, char out[static SINK_NAME_BYTES_MAX + 1])
{
    const struct load *l = ctx;
    shard_name(&l->run->format, l->shards[i], "_stats.json", out);
}

/* Count a finished shard. Without its folder of samples it is finished when it has none. The record
 * of the part has proved that the output is ours: a shard whose stats are damaged is made again. */
static bool take_stats(void *ctx, size_t i, struct str text, struct err *err)
{
    struct load *l = ctx;
    struct progress *p = &l->run->progress;
    int64_t shard = l->shards[i];
    struct stats s;
    struct err why = ERR_INIT;
    if (!parse_stats(l->run, shard, text, &s, &why)) {
        if (why.code == ERR_MALFORMED) {
            log_event(LOG_WARN, "shard_made_again", LF_I("shard", shard), LF_ERR(&why));
            return true;
        }
        *err = why;
        return false;
    }
    if (l->pieces[shard] == whole(l->run) || s.successes == 0) {
        (void)pthread_mutex_lock(&l->lock);
        stats_merge(&l->r->total, &s);
        l->r->done[shard] = 1;
        l->r->done_n++;
        (void)pthread_mutex_unlock(&l->lock);
        p->rows_kept += s.count;
        p->successes += s.successes;
        p->failed_to_download += s.failed_to_download;
        p->failed_to_resize += s.failed_to_resize;
        p->shards_done++;
    }
    stats_done(&s);
    return true;
}

static bool load_finished(struct sink *sink, struct pipeline *run, const uint8_t *pieces,
                          struct resume *r, struct err *err)
{
    struct load l = {.run = run, .pieces = pieces, .r = r};
    l.shards = xcalloc((size_t)r->shards + 1, sizeof *l.shards);
    for (int64_t i = 0; i < r->shards; i++) {
        if (pipeline_is_ours(run, i) && is_complete(run, pieces[i])) {
            l.shards[l.n++] = i;
        }
    }
    const struct sink_gets of = {.n = l.n,
                                 .bytes_max = STATS_FILE_BYTES_MAX,
                                 .name = stats_name,
                                 .take = take_stats,
                                 .ctx = &l};
    (void)pthread_mutex_init(&l.lock, NULL);
    bool ok = sink_get_many(sink, &of, err);
    (void)pthread_mutex_destroy(&l.lock);
    free(l.shards);
    return ok;
}

/* Remove what there is of shards that are not finished. */
static bool remove_unfinished(struct sink *sink, const struct pipeline *run, const uint8_t *pieces,
                              const struct resume *r, int64_t *ret_removed, struct err *err)
{
    unsigned stay = sink_is_s3(run->o->output_folder) ? folder_bit(run) : 0;
    bool ok = true;
    *ret_removed = 0;
    for (int64_t i = 0; ok && i < r->shards; i++) {
        if (pipeline_is_ours(run, i) && r->done[i] == 0 && pieces[i] != 0) {
            ok = remove_pieces(sink, run, i, pieces[i] & ~stay, err);
            ++*ret_removed;
        }
    }
    return ok;
}

bool resume_load(struct sink *sink, struct pipeline *run, struct resume *ret, struct err *err)
{
    struct sink_listing l = {0};
    /* Not every shared file system knows the locks of other hosts: the last of them sweeps. */
    if ((run->hosts == 1 && !sink_sweep(sink, err)) || !sink_list(sink, &l, err)) {
        return false;
    }
    AUTO_FREE uint8_t *pieces = survey(run, &l);
    int64_t shards = pipeline_shards(run);
    struct resume r = {.done = xcalloc((size_t)shards + 1, 1), .shards = shards};
    int64_t removed;
    sink_listing_done(&l);
    if (!load_finished(sink, run, pieces, &r, err) ||
        !remove_unfinished(sink, run, pieces, &r, &removed, err)) {
        resume_done(&r);
        return false;
    }
    if (r.done_n > 0 || removed > 0) {
        log_event(LOG_INFO, "resumed", LF_I("shards_kept", r.done_n),
                  LF_I("shards_removed", removed), LF_I("shards", r.shards));
    }
    *ret = r;
    return true;
}

void resume_done(struct resume *r)
{
    free(r->done);
    stats_done(&r->total);
    *r = (struct resume){0};
}

bool resume_is_done(const struct resume *r, int64_t shard_i)
{
    ASSERT(shard_i >= 0 && shard_i < r->shards);
    return r->done[shard_i] != 0;
}

bool resume_add_lost(struct sink *sink, const struct pipeline *run, const int64_t *shards, size_t n,
                     struct stats *total, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        char name[SHARD_KEY_BYTES];
        AUTO_BUF struct buf b = BUF_INIT(STATS_FILE_BYTES_MAX);
        struct stats s;
        shard_name(&run->format, shards[i], "_stats.json", name);
        if (!sink_get(sink, name, &b, err) || !parse_stats(run, shards[i], buf_str(&b), &s, err)) {
            err->code = ERR_CONFLICT;
            return err_wrap(err, "shard %lld belongs to another writer that has not finished it",
                            (long long)shards[i]);
        }
        stats_merge(total, &s);
        stats_done(&s);
    }
    return true;
}

static bool check_folder(struct sink *sink, const struct pipeline *run, int64_t shard,
                         const struct body_size *size, struct err *err)
{
    char name[SHARD_KEY_BYTES];
    struct sink_tree_size there;
    shard_name(&run->format, shard, "", name);
    if (!sink_tree_size(sink, name, &there, err)) {
        return false;
    }
    return (there.files == size->files && there.bytes == size->bytes) ||
           err_set(err, ERR_CONFLICT,
                   "folder '%s' has %lld files of %lld bytes, %lld of %lld were written: another "
                   "writer is at work in the same output folder",
                   name, (long long)there.files, (long long)there.bytes, (long long)size->files,
                   (long long)size->bytes);
}

static bool check_size(const struct sink_listing *l, const struct pipeline *run, int64_t shard,
                       const char *suffix, int64_t size, struct err *err)
{
    char name[SHARD_KEY_BYTES];
    shard_name(&run->format, shard, suffix, name);
    const struct sink_object *o = sink_listing_find(l, name);
    if (o == NULL || o->size != size) {
        return err_set(err, ERR_CONFLICT,
                       "'%s' has %lld bytes, %lld were written: another writer "
                       "is at work in the same output folder",
                       name, o == NULL ? -1LL : (long long)o->size, (long long)size);
    }
    return true;
}

/* Check the pieces of a shard that this run has written. */
static bool check_sizes(struct sink *sink, const struct sink_listing *l, const struct pipeline *run,
                        const struct shard_sizes *s, struct err *err)
{
    const char *body = pieces_of(run)->suffix[0];
    bool s3 = sink_is_s3(run->o->output_folder);
    bool ok = true;
    if (is_folder(
            body)) { /* compared when it was finished; in S3 that is a request per 1000 files */
        ok = s3 || check_folder(sink, run, s->shard_i, &s->body, err);
    } else if (run->format.output != OUTPUT_DUMMY) {
        ok = check_size(l, run, s->shard_i, body, s->body.bytes, err);
    }
    return ok && (!output_has_sidecar(run->format.output) ||
                  check_size(l, run, s->shard_i, ".parquet", s->parquet_size, err));
}

/* Keep only objects of our shards, in place. */
static void only_ours(struct sink_listing *l, const struct pipeline *run)
{
    const struct output_pieces *p = pieces_of(run);
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        bool ours = false;
        for (size_t k = 0; k < p->n; k++) {
            int64_t shard = shard_parse_name(&run->format, l->objects[i].name, p->suffix[k]);
            ours = ours || (shard >= 0 && shard < pipeline_shards(run));
        }
        if (ours) {
            l->objects[n++] = l->objects[i];
        } else {
            free(l->objects[i].name);
        }
    }
    l->n = n;
}

static bool check(struct sink *sink, const struct pipeline *run, const struct shard_sizes *sizes,
                  size_t sizes_n, bool share, struct sink_listing *l, struct err *err)
{
    if (!sink_list(sink, l, err)) {
        return false;
    }
    AUTO_FREE uint8_t *pieces = survey(run, l);
    bool ok = true;
    for (int64_t i = 0; ok && i < pipeline_shards(run); i++) {
        if (!is_complete(run, pieces[i]) && !(share && !pipeline_is_ours(run, i))) {
            ok = err_set(err, ERR_CONFLICT, "shard %lld is incomplete at the end", (long long)i);
        }
    }
    for (size_t i = 0; ok && i < sizes_n; i++) {
        ok = check_sizes(sink, l, run, &sizes[i], err);
        if (!ok) {
            resume_remove_shard(sink, run, sizes[i].shard_i);
        }
    }
    return ok;
}

bool resume_check(struct sink *sink, const struct pipeline *run, const struct shard_sizes *sizes,
                  size_t sizes_n, struct sink_listing *ret, struct err *err)
{
    struct sink_listing l = {0};
    if (!check(sink, run, sizes, sizes_n, false, &l, err)) {
        sink_listing_done(&l);
        return false;
    }
    only_ours(&l, run);
    *ret = l;
    return true;
}

bool resume_check_share(struct sink *sink, const struct pipeline *run,
                        const struct shard_sizes *sizes, size_t sizes_n, struct err *err)
{
    struct sink_listing l = {0};
    bool ok = check(sink, run, sizes, sizes_n, true, &l, err);
    sink_listing_done(&l);
    return ok;
}

bool resume_missing(struct sink *sink, const struct pipeline *run, int host, int64_t *ret,
                    struct err *err)
{
    struct sink_listing l = {0};
    if (!sink_list(sink, &l, err)) {
        return false;
    }
    AUTO_FREE uint8_t *pieces = survey(run, &l);
    *ret = 0;
    for (int64_t i = host; i < pipeline_shards(run); i += run->hosts) {
        *ret += is_complete(run, pieces[i]) ? 0 : 1;
    }
    sink_listing_done(&l);
    return true;
}

/* A shard's body with any number of digits; its other files are uploaded in one piece. */
static bool is_body_name(void *ctx UNUSED, const char *name)
{
    static const char *const bodies[] = {".tar", ".parquet", ".tfrecord"};
    size_t digits = strspn(name, "0123456789");
    bool is = false;
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        is = is || (digits > 0 && strcmp(name + digits, bodies[i]) == 0);
    }
    return is;
}

void resume_abort_uploads(struct sink *sink)
{
    sink_abort_uploads(sink, is_body_name, NULL);
}
