/* Saving and restoring a checkpoint. */
#include "checkpoint.h"
#include "common/cleanup.h"
#include "common/hash.h"
#include "common/json.h"
#include "common/log.h"

#define CHECKPOINT_VERSION 1
#define CONTENT_TYPE       "application/x-ndjson"

void checkpoint_fingerprint(const struct scan_config *c, const char *prefix,
                            const struct shards *shards, char out[static 65])
{
    struct sha256 h CLEANUP(sha256_done);
    AUTO_BUF struct buf b = BUF_INIT(1u << 20);
    uint8_t sum[32];
    sha256_init(&h);
    buf_addf(&b, "%d %u %d %d %d %llu %lld %zu %s\n", CHECKPOINT_VERSION, c->fields, c->need_txt,
             c->need_json, c->sample, (unsigned long long)c->sample_below, (long long)c->rows,
             shards->n, prefix);
    sha256_add(&h, b.p, b.n);
    for (size_t i = 0; i < shards->n; i++) {
        const struct shard_entry *e = &shards->at[i];
        buf_reset(&b);
        buf_addf(&b, "%s\t%lld\t%s\n", shards_path(shards, i), (long long)e->size,
                 shards->text_.p + e->etag);
        if (e->mtime_ns != 0) {
            buf_addf(&b, "%lld\n", (long long)e->mtime_ns);
        }
        sha256_add(&h, b.p, b.n);
    }
    sha256_end(&h, sum);
    str_hex(sum, sizeof sum, out);
}

struct number { /* a counter and its name */
    const char *name;
    int64_t *at;
};
enum { NUMBER_COUNT = 6 };

static void numbers_of(struct checkpoint *c, struct number out[static NUMBER_COUNT])
{
    struct checkpoint_sums *s = &c->sums;
    const struct number all[NUMBER_COUNT] = {
        {"shards_done", &c->shards_done},      {"members", &s->counts.members},
        {"sampled", &s->counts.sampled},       {"other_members", &s->counts.others},
        {"bad_archives", &s->counts.bad_tars}, {"bytes_read", &s->read_bytes},
    };
    memcpy(out, all, sizeof all);
}

static bool read_numbers(const json_t *o, struct checkpoint *c, struct err *err)
{
    struct number numbers[NUMBER_COUNT];
    json_t *outcomes;
    const char *bad;
    numbers_of(c, numbers);
    for (size_t i = 0; i < NUMBER_COUNT; i++) {
        if (!json_get_i64(o, numbers[i].name, 0, INT64_MAX / 2, JSON_ABSENT, numbers[i].at, err)) {
            return false;
        }
    }
    if (!json_get_i64(o, "streamed", 0, INT64_MAX / 2, JSON_ABSENT, &c->sums.streamed, err) ||
        !json_get_object(o, "outcomes", &outcomes, err) ||
        !json_get_str(o, "first_bad", "", &bad, err)) {
        return false;
    }
    (void)snprintf(c->sums.first_bad, sizeof c->sums.first_bad, "%s", bad);
    for (size_t i = 0; i < PAIR_FAULT_COUNT; i++) {
        if (!json_get_i64(outcomes, pair_fault_text((enum pair_fault)i), 0, INT64_MAX / 2,
                          JSON_ABSENT, &c->sums.counts.pairs[i], err)) {
            return false;
        }
    }
    return true;
}

bool checkpoint_save(struct sink *s, const struct checkpoint *c, struct sink_stream *const *files,
                     struct err *err)
{
    AUTO_BUF struct buf out = BUF_INIT(CHECKPOINT_BYTES_MAX);
    AUTO_BUF struct buf tail = BUF_INIT(CHECKPOINT_BYTES_MAX);
    struct checkpoint copy = *c;
    struct number numbers[NUMBER_COUNT];
    struct json_out w;
    json_out_init(&w, &out);
    json_out_object(&w, NULL);
    json_out_i64(&w, "version", CHECKPOINT_VERSION);
    json_out_str(&w, "fingerprint", c->fingerprint);
    numbers_of(&copy, numbers);
    for (size_t i = 0; i < NUMBER_COUNT; i++) {
        json_out_i64(&w, numbers[i].name, *numbers[i].at);
    }
    json_out_i64(&w, "streamed", c->sums.streamed);
    json_out_str(&w, "first_bad", c->sums.first_bad);
    json_out_object(&w, "outcomes");
    for (size_t i = 0; i < PAIR_FAULT_COUNT; i++) {
        json_out_i64(&w, pair_fault_text((enum pair_fault)i), c->sums.counts.pairs[i]);
    }
    json_out_end_object(&w);
    json_out_array(&w, "files");
    for (size_t i = 0; i < CHECKPOINT_FILES; i++) {
        json_out_object(&w, NULL);
        if (files[i] != NULL && !sink_stream_save(files[i], &w, &tail, err)) {
            return false;
        }
        json_out_end_object(&w);
    }
    json_out_end_array(&w);
    json_out_end_object(&w);
    buf_add_char(&out, '\n');
    buf_add_str(&out, buf_str(&tail));
    if (out.overflow || tail.overflow) {
        return err_set(err, ERR_INTERNAL, "the checkpoint does not fit");
    }
    return sink_put(s, CHECKPOINT_KEY, buf_str(&out), "application/octet-stream", false, err);
}

bool checkpoint_remove(struct sink *s, struct err *err)
{
    return sink_delete(s, CHECKPOINT_KEY, err);
}

static void abort_all(struct sink_stream **files)
{
    for (size_t i = 0; i < CHECKPOINT_FILES; i++) {
        sink_stream_abort(TAKE(files[i]));
    }
}

/* Restore the streams. True when all were restored. */
static bool restore(struct sink *s, const json_t *o, const char *const *names, struct str tail,
                    struct sink_stream **files, struct err *err)
{
    json_t *saved;
    if (!json_get_array(o, "files", &saved, err) || json_array_size(saved) != CHECKPOINT_FILES) {
        return err_set(err, ERR_MALFORMED, "no files");
    }
    if (json_object_size(json_array_get(saved, 0)) == 0) { /* each run has begun it */
        return err_set(err, ERR_MALFORMED, "'%s' was not saved", names[0]);
    }
    for (size_t i = 0; i < CHECKPOINT_FILES; i++) {
        const json_t *f = json_array_get(saved, i);
        if (json_object_size(f) > 0 &&
            !sink_stream_restore(s, names[i], CONTENT_TYPE, f, &tail, &files[i], err)) {
            return false;
        }
    }
    return true;
}

static bool sweep(struct sink *s, const json_t *o, struct err *err)
{
    const char *keep[CHECKPOINT_FILES];
    const json_t *saved = json_object_get(o, "files");
    for (size_t i = 0; i < CHECKPOINT_FILES; i++) {
        keep[i] = sink_stream_kept(json_array_get(saved, i));
    }
    return sink_sweep_but(s, keep, CHECKPOINT_FILES, err);
}

bool checkpoint_load(struct sink *s, const char *fingerprint, const char *const *names,
                     struct checkpoint *ret, struct sink_stream **ret_files, bool *ret_found,
                     struct err *err)
{
    AUTO_BUF struct buf b = BUF_INIT(CHECKPOINT_BYTES_MAX);
    AUTO_JSON json_t *o = NULL;
    struct sink_stream *files[CHECKPOINT_FILES] = {NULL};
    struct checkpoint c = {.shards_done = 0};
    struct err why = ERR_INIT;
    const char *theirs = "";
    *ret_found = false;
    if (!sink_get(s, CHECKPOINT_KEY, &b, &why)) {
        if (why.code == ERR_NOT_FOUND) {
            return sink_sweep(s, err);
        }
        *err = why;
        return false;
    }
    struct str tail = buf_str(&b);
    struct str line = str_split(&tail, '\n');
    bool usable = json_parse(line, CHECKPOINT_BYTES_MAX, &o, &why) &&
                  json_get_str(o, "fingerprint", "", &theirs, &why) && read_numbers(o, &c, &why) &&
                  restore(s, o, names, tail, files, &why);
    if (usable && strcmp(theirs, fingerprint) != 0) {
        usable = err_set(&why, ERR_CONFLICT, "it is of another input or other settings");
    }
    if (!usable) {
        log_event(LOG_WARN, "restarted_from_beginning", LF_ERR(&why));
        abort_all(files);
        return checkpoint_remove(s, err) && sink_sweep(s, err);
    }
    if (!sweep(s, o, err)) {
        abort_all(files);
        return false;
    }
    (void)snprintf(c.fingerprint, sizeof c.fingerprint, "%s", fingerprint);
    memcpy(ret_files, files, sizeof files);
    *ret = c;
    *ret_found = true;
    return true;
}
