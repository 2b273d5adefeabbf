/* A shard is finished when it has tar, parquet and _stats.json, which is written last. Pieces of
 * other shards are removed at the start: stats first, then parquet, then tar, so that after a kill
 * in between nothing looks finished. */
#include "resume.h"
#include "common/cleanup.h"
#include "common/log.h"

static const char *const suffixes[] = {".tar", ".parquet", "_stats.json"};
#define WHOLE 7u

/* Which pieces of which shards exist; pieces[shards]. */
static uint8_t *survey(const struct pipeline *run, const struct sink_listing *l)
{
    int64_t shards = pipeline_shards(run);
    uint8_t *pieces = xcalloc((size_t)shards + 1, 1);
    for (size_t i = 0; i < l->n; i++) {
        for (size_t k = 0; k < ARRAY_LEN(suffixes); k++) {
            int64_t shard = shard_parse_name(&run->format, l->objects[i].name, suffixes[k]);
            if (shard >= 0 && shard < shards) {
                pieces[shard] = (uint8_t)(pieces[shard] | 1u << k);
            }
        }
    }
    return pieces;
}

static bool read_stats(struct sink *sink, const struct pipeline *run, int64_t shard,
                       struct stats *total, struct err *err)
{
    char name[SHARD_KEY_BYTES];
    AUTO_BUF struct buf b = BUF_INIT(STATS_FILE_BYTES_MAX);
    struct stats s;
    shard_name(&run->format, shard, "_stats.json", name);
    if (!sink_get(sink, name, &b, err)) {
        return false;
    }
    if (!stats_parse(buf_str(&b), &s, err)) {
        return err_wrap(err, "'%s'", name);
    }
    bool ok = s.count == pipeline_shard_rows(run, shard);
    if (ok) {
        stats_merge(total, &s);
    } else {
        (void)err_set(err, ERR_INVALID,
                      "'%s' counts %lld rows, expected %lld: made of another part or with another "
                      "number_sample_per_shard",
                      name, (long long)s.count, (long long)pipeline_shard_rows(run, shard));
    }
    stats_done(&s);
    return ok;
}

static bool remove_pieces(struct sink *sink, const struct pipeline *run, int64_t shard,
                          uint8_t pieces, struct err *err)
{
    for (size_t k = ARRAY_LEN(suffixes); k-- > 0;) {
        char name[SHARD_KEY_BYTES];
        shard_name(&run->format, shard, suffixes[k], name);
        if ((pieces & 1u << k) != 0 && !sink_delete(sink, name, err)) {
            return false;
        }
    }
    return true;
}

void resume_remove_shard(struct sink *sink, const struct pipeline *run, int64_t shard_i)
{
    struct err err = ERR_INIT;
    if (!remove_pieces(sink, run, shard_i, WHOLE, &err)) {
        log_event(LOG_WARN, "mixed_shard_not_removed", LF_I("shard", shard_i), LF_ERR(&err));
    }
}

bool resume_load(struct sink *sink, const struct pipeline *run, struct resume *ret, struct err *err)
{
    struct sink_listing l = {0};
    if (!sink_sweep(sink, err) || !sink_list(sink, &l, err)) {
        return false;
    }
    struct resume r = {.done = survey(run, &l), .shards = pipeline_shards(run)};
    sink_listing_done(&l);
    bool ok = true;
    int64_t removed = 0;
    for (int64_t i = 0; ok && i < r.shards; i++) {
        uint8_t pieces = r.done[i];
        r.done[i] = pieces == WHOLE;
        if (pieces == WHOLE) {
            ok = read_stats(sink, run, i, &r.total, err);
            r.done_n++;
        } else if (pieces != 0) {
            ok = remove_pieces(sink, run, i, pieces, err);
            removed++;
        }
    }
    if (!ok) {
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
        if (!read_stats(sink, run, shards[i], total, err)) {
            err->code = ERR_CONFLICT;
            return err_wrap(err, "shard %lld belongs to another writer that has not finished it",
                            (long long)shards[i]);
        }
    }
    return true;
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

/* Keep only objects of our shards, in place. */
static void only_ours(struct sink_listing *l, const struct pipeline *run)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        bool ours = false;
        for (size_t k = 0; k < ARRAY_LEN(suffixes); k++) {
            int64_t shard = shard_parse_name(&run->format, l->objects[i].name, suffixes[k]);
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

bool resume_check(struct sink *sink, const struct pipeline *run, const struct shard_sizes *sizes,
                  size_t sizes_n, struct sink_listing *ret, struct err *err)
{
    struct sink_listing l = {0};
    if (!sink_list(sink, &l, err)) {
        return false;
    }
    AUTO_FREE uint8_t *pieces = survey(run, &l);
    bool ok = true;
    for (int64_t i = 0; ok && i < pipeline_shards(run); i++) {
        if (pieces[i] != WHOLE) {
            ok = err_set(err, ERR_CONFLICT, "shard %lld is incomplete at the end", (long long)i);
        }
    }
    for (size_t i = 0; ok && i < sizes_n; i++) {
        ok = check_size(&l, run, sizes[i].shard_i, ".tar", sizes[i].tar_size, err) &&
             check_size(&l, run, sizes[i].shard_i, ".parquet", sizes[i].parquet_size, err);
        if (!ok) {
            resume_remove_shard(sink, run, sizes[i].shard_i);
        }
    }
    if (!ok) {
        sink_listing_done(&l);
        return false;
    }
    only_ours(&l, run);
    *ret = l;
    return true;
}

/* A shard's tar with any number of digits; the other files of a shard are uploaded in one piece. */
static bool is_tar_name(void *ctx UNUSED, const char *name)
{
    size_t digits = strspn(name, "0123456789");
    return digits > 0 && strcmp(name + digits, ".tar") == 0;
}

void resume_abort_uploads(struct sink *sink)
{
    sink_abort_uploads(sink, is_tar_name, NULL);
}
