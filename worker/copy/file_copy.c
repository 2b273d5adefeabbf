/* One file: see file_copy.h. */
#include "file_copy.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "common/retry.h"
#include "sum.h"
#include <inttypes.h>
#include <poll.h>

#define STATS_VERSION   1
#define RANGE_BYTES_MIN ((size_t)64 << 10)
#define BEGUN_AGAIN_MAX 3 /* times a file is begun again because its source changed */
#define STATE_BYTES_MAX                                                                            \
    (s3_multipart_part_bytes(SINK_PART_BYTES, S3_UPLOAD_PARTS_MAX) + ((size_t)2 << 20))
#define TYPE           "application/octet-stream"
#define PAUSE_SLICE_MS 50

struct run {
    const struct file_copy_config *c;
    const struct copy_file *f;
    char state_name[40];
    struct sink *sink;          /* of the target */
    struct sink_stream *stream; /* NULL: not begun */
    struct sum sum;
    int64_t offset;
    int64_t total; /* -1: not known */
    char version[REMOTE_VALIDATOR_MAX];
    char md5[33]; /* that the source says it has; "": none */
    bool in_s3;   /* the source */
    bool no_range;
    bool whole;
    bool state_saved;
    int failed_n, anew_n;
    size_t range;
    int64_t saved_us;
    struct rng rng;
    struct err data_err; /* of on_data */
};

enum copy_step { STEP_ON, STEP_AGAIN, STEP_ANEW, STEP_FAILED };

static bool begin(struct run *r, struct err *err)
{
    r->c->progress->bytes -= r->offset;
    r->offset = 0;
    r->total = -1;
    r->version[0] = r->md5[0] = '\0';
    r->whole = false;
    sum_init(&r->sum);
    sink_stream_abort(TAKE(r->stream));
    return sink_stream_begin(r->sink, r->f->name, TYPE, &r->stream, err);
}

/* Bytes that were taken before it failed are in the stream, and count: it may be saved. */
static bool add(struct run *r, struct str data, struct err *err)
{
    bool ok = sink_stream_add(r->stream, data, err);
    int64_t took = ok ? (int64_t)data.n : sink_stream_size(r->stream) - r->offset;
    data.n = (size_t)MAX(MIN(took, (int64_t)data.n), (int64_t)0);
    sum_add(&r->sum, data.p, data.n);
    if (r->in_s3) {
        s3_sums_add(&r->sum.crc, data);
    }
    r->offset += (int64_t)data.n;
    r->c->progress->bytes += (int64_t)data.n;
    r->c->progress->fetched += (int64_t)data.n;
    return ok;
}

/* The stream has what was summed, and nothing else. */
static bool in_step(const struct run *r, struct err *err)
{
    int64_t size = sink_stream_size(r->stream);
    return size == r->offset ||
           err_set(err, ERR_CONFLICT, "%" PRIi64 " bytes of %" PRIi64 " are written", size,
                   r->offset);
}

static bool save(struct run *r, struct err *err)
{
    AUTO_BUF struct buf out = BUF_INIT(STATE_BYTES_MAX);
    AUTO_BUF struct buf tail = BUF_INIT(STATE_BYTES_MAX);
    char sum[SUM_SAVED_N];
    struct json_out w;
    sum_save(&r->sum, sum);
    json_out_init(&w, &out);
    json_out_object(&w, NULL);
    json_out_i64(&w, "version", STATS_VERSION);
    json_out_str(&w, "from", r->f->from);
    json_out_str(&w, "folder", r->f->folder);
    json_out_str(&w, "name", r->f->name);
    json_out_i64(&w, "offset", r->offset);
    json_out_i64(&w, "total", r->total);
    json_out_str(&w, "source", r->version);
    json_out_str(&w, "md5", r->md5);
    json_out_str(&w, "sum", sum);
    json_out_object(&w, "stream");
    if (!sink_stream_save(r->stream, &w, &tail, err)) {
        return false;
    }
    json_out_end_object(&w);
    json_out_end_object(&w);
    buf_add_char(&out, '\n');
    buf_add_str(&out, buf_str(&tail));
    r->saved_us = clock_mono_us();
    if (out.overflow || tail.overflow) {
        return err_set(err, ERR_INTERNAL, "the state of '%.200s' does not fit", r->f->name);
    }
    r->state_saved = true;
    return sink_put(r->c->state, r->state_name, buf_str(&out), TYPE, false, err);
}

static bool same(const json_t *o, const char *key, const char *value)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL && strcmp(s, value) == 0;
}

static bool take_state(struct run *r, const json_t *o, struct str tail, struct err *err)
{
    const char *version;
    const char *md5;
    const char *sum;
    json_t *stream;
    int64_t v;
    if (!json_get_i64(o, "version", STATS_VERSION, STATS_VERSION, JSON_ABSENT, &v, err) ||
        !json_get_i64(o, "offset", 0, INT64_MAX / 2, JSON_ABSENT, &r->offset, err) ||
        !json_get_i64(o, "total", r->offset, INT64_MAX / 2, JSON_ABSENT, &r->total, err) ||
        !json_get_required_str(o, "source", &version, err) ||
        !json_get_str(o, "md5", "", &md5, err) || !json_get_required_str(o, "sum", &sum, err) ||
        !json_get_object(o, "stream", &stream, err)) {
        return false;
    }
    if (!same(o, "from", r->f->from) || !same(o, "folder", r->f->folder) ||
        !same(o, "name", r->f->name) || version[0] == '\0' || !sum_restore(sum, &r->sum)) {
        return err_set(err, ERR_CONFLICT, "it is of another file");
    }
    (void)snprintf(r->version, sizeof r->version, "%s", version);
    (void)snprintf(r->md5, sizeof r->md5, "%s", md5);
    return sink_stream_restore(r->sink, r->f->name, TYPE, stream, &tail, &r->stream, err) &&
           in_step(r, err); /* an earlier release may have saved more than it had summed */
}

/* Continue from the saved state, or begin. */
static bool load(struct run *r, struct err *err)
{
    AUTO_BUF struct buf b = BUF_INIT(STATE_BYTES_MAX);
    AUTO_JSON json_t *o = NULL;
    struct err why = ERR_INIT;
    if (!sink_get(r->c->state, r->state_name, &b, &why)) {
        if (why.code != ERR_NOT_FOUND) {
            *err = why;
            return false;
        }
        return begin(r, err);
    }
    r->state_saved = true;
    struct str tail = buf_str(&b);
    struct str line = str_split(&tail, '\n');
    if (!json_parse(line, STATE_BYTES_MAX, &o, &why) || !take_state(r, o, tail, &why)) {
        log_event(LOG_WARN, "file_begun_anew", LF_S("file", r->f->name), LF_ERR(&why));
        r->offset = 0;
        return begin(r, err);
    }
    r->c->progress->bytes += r->offset;
    log_event(LOG_INFO, "file_resumed", LF_S("file", r->f->name), LF_I("offset", r->offset));
    return true;
}

static enum copy_step changed(const struct run *r, struct err *err)
{
    (void)err_set(err, ERR_INVALID, "'%.200s' changed while it was copied", r->f->from);
    return STEP_ANEW;
}

/* What a status that brings no bytes means. */
static enum copy_step refused(const struct run *r, const struct remote_answer *a, struct err *err)
{
    const char *from = r->f->from;
    if (a->err.code == ERR_UNAUTHENTICATED || a->status == 408 || a->status == 425 ||
        a->status == 429 || a->status >= 500) {
        (void)err_set(err, a->status == 429 ? ERR_THROTTLED : ERR_UNAVAILABLE,
                      "'%.200s' answers %d", from, a->status);
        return STEP_AGAIN;
    }
    if (a->status == 412 || (a->status == 416 && r->offset > 0)) {
        return changed(r, err);
    }
    enum err_code code = a->status == 404 || a->status == 410   ? ERR_NOT_FOUND
                         : a->status == 401 || a->status == 403 ? ERR_FORBIDDEN
                                                                : ERR_INVALID;
    (void)err_set(err, code, "'%.200s' answers %d%s%.200s", from, a->status,
                  a->err.code != ERR_NONE ? ": " : "",
                  a->err.code != ERR_NONE ? a->err.message : "");
    return STEP_FAILED;
}

static enum copy_step take_range(struct run *r, const struct remote_answer *a, struct err *err)
{
    bool length = a->from == r->offset && a->to - a->from == (int64_t)a->body.n && a->body.n > 0 &&
                  a->total >= a->to;
    if (r->version[0] != '\0' && strcmp(r->version, a->validator) != 0) {
        return changed(r, err);
    }
    if (!length) {
        (void)err_set(err, ERR_NETWORK,
                      "'%.150s' sent %zu bytes for the range %" PRIi64 " to %" PRIi64
                      " of %" PRIi64,
                      r->f->from, a->body.n, a->from, a->to, a->total);
        return STEP_AGAIN;
    }
    if (r->total >= 0 && r->total != a->total) {
        return changed(r, err);
    }
    if (a->validator[0] == '\0' && a->to < a->total) { /* the next might be of another version */
        r->no_range = true;
        return STEP_ON;
    }
    r->total = a->total;
    (void)snprintf(r->version, sizeof r->version, "%s", a->validator);
    (void)snprintf(r->md5, sizeof r->md5, "%s", a->md5);
    r->whole = a->to == a->total;
    return add(r, buf_str(&a->body), err) ? STEP_ON : STEP_FAILED;
}

/* The whole in one answer: it is small, or the range was ignored. */
static enum copy_step take_whole(struct run *r, const struct remote_answer *a, struct err *err)
{
    if (r->offset > 0) {
        return changed(r, err);
    }
    (void)snprintf(r->version, sizeof r->version, "%s", a->validator);
    (void)snprintf(r->md5, sizeof r->md5, "%s", a->md5);
    r->total = (int64_t)a->body.n;
    r->whole = true;
    return a->body.n == 0 || add(r, buf_str(&a->body), err) ? STEP_ON : STEP_FAILED;
}

static enum copy_step ask_range(struct run *r, struct err *err)
{
    size_t n = r->range;
    if (r->total >= 0) {
        n = (size_t)MIN((int64_t)n, r->total - r->offset);
    }
    const struct remote_ask ask = {
        .uri = r->f->from, .from = r->offset, .n = n, .validator = r->version};
    CLEANUP(remote_answer_done)
    struct remote_answer a;
    remote_get(r->c->remote, &ask, &a);
    if (a.err.code == ERR_TOO_LARGE && r->offset == 0) {
        r->no_range = true;
        return STEP_ON;
    }
    if (a.err.code == ERR_TOO_LARGE) {
        return changed(r, err);
    }
    if (a.status == 0) {
        *err = a.err;
        return a.err.code == ERR_INVALID || a.err.code == ERR_MALFORMED ? STEP_FAILED : STEP_AGAIN;
    }
    if (a.status == 206) {
        return take_range(r, &a, err);
    }
    if (a.status == 200) {
        return take_whole(r, &a, err);
    }
    if (a.status == 416 && r->offset == 0 && a.total == 0) { /* an empty file has no range */
        r->total = 0;
        r->whole = true;
        return STEP_ON;
    }
    return refused(r, &a, err);
}

static bool on_data(void *ctx, struct str data)
{
    struct run *r = ctx;
    return add(r, data, &r->data_err);
}

/* A source without ranges, or that tells no version, is read in one piece, from its beginning each
 * time. */
static enum copy_step ask_stream(struct run *r, struct err *err)
{
    if (r->offset > 0 && !begin(r, err)) {
        return STEP_FAILED;
    }
    const struct remote_ask ask = {
        .uri = r->f->from, .validator = "", .on_data = on_data, .ctx = r};
    CLEANUP(remote_answer_done)
    struct remote_answer a;
    r->data_err = (struct err)ERR_INIT;
    remote_get(r->c->remote, &ask, &a);
    if (r->data_err.code != ERR_NONE) {
        *err = r->data_err;
        return STEP_FAILED;
    }
    if (a.status == 0) {
        *err = a.err;
        return STEP_AGAIN;
    }
    if (a.status != 200) {
        return refused(r, &a, err);
    }
    if (a.total >= 0 && a.total != r->offset) {
        (void)err_set(err, ERR_NETWORK, "'%.150s' sent %" PRIi64 " bytes of %" PRIi64, r->f->from,
                      r->offset, a.total);
        return STEP_AGAIN;
    }
    (void)snprintf(r->version, sizeof r->version, "%s", a.validator);
    (void)snprintf(r->md5, sizeof r->md5, "%s", a.md5);
    r->total = r->offset;
    r->whole = true;
    return STEP_ON;
}

static void pause_a_while(struct run *r)
{
    static const struct retry_policy policy = {.base_us = 200 * USEC_PER_MSEC,
                                               .cap_us = 15 * USEC_PER_SEC,
                                               .floor_us = 10 * USEC_PER_MSEC};
    int64_t until_us = clock_mono_us() + retry_delay_us(&policy, r->failed_n - 1, &r->rng);
    while (*r->c->stop == 0 && clock_mono_us() < until_us) {
        (void)poll(NULL, 0, PAUSE_SLICE_MS);
    }
}

/* True: the file goes on. Smaller ranges after failures let a source that cuts connections bring
 * some bytes each time. */
static bool again(struct run *r, enum copy_step step, struct err *err)
{
    if (*r->c->stop != 0) {
        return true;
    }
    if (step == STEP_ANEW && ++r->anew_n <= BEGUN_AGAIN_MAX) {
        log_event(LOG_WARN, "file_begun_anew", LF_S("file", r->f->name), LF_ERR(err));
        return begin(r, err);
    }
    if (step == STEP_AGAIN && ++r->failed_n < r->c->o->tries) {
        log_event(LOG_DEBUG, "range_failed", LF_S("file", r->f->name), LF_ERR(err));
        r->range = MAX(r->range / 4, MIN(RANGE_BYTES_MIN, r->range));
        pause_a_while(r);
        return true;
    }
    return false;
}

static bool sums_right(const struct run *r, struct file_copied *ret, struct err *err)
{
    char md5[33];
    sum_tell(&r->sum, ret->sha256, md5);
    const char *want = r->f->want_sum;
    const char *have = strlen(want) == 32 ? md5 : ret->sha256;
    if (want[0] != '\0' && strcmp(want, have) != 0) {
        return err_set(err, ERR_MALFORMED, "the checksum of '%.150s' is %s, not %s", r->f->from,
                       have, want);
    }
    if (r->md5[0] != '\0' && strcmp(r->md5, md5) != 0) {
        return err_set(err, ERR_MALFORMED, "the MD5 of '%.150s' is %s, not its ETag's %s",
                       r->f->from, md5, r->md5);
    }
    return true;
}

/* An object in S3 of which neither the ETag nor a person tells a sum: by the one that S3 keeps. */
static bool kept_sum_right(struct run *r, struct err *err)
{
    struct s3_result told;
    if (!r->in_s3 || r->md5[0] != '\0' || r->f->want_sum[0] != '\0' || r->offset == 0 ||
        !remote_told(r->c->remote, r->f->from, r->version, &told) || sum_fits(&r->sum, &told)) {
        return true;
    }
    return err_set(err, ERR_MALFORMED, "the bytes of '%.150s' are not those of its checksum %s%s%s",
                   r->f->from, told.checksum, told.crc64nvme, told.crc32);
}

static enum file_copy_end publish(struct run *r, struct file_copied *ret, struct err *err)
{
    ret->size = r->offset;
    (void)snprintf(ret->version, sizeof ret->version, "%s", r->version);
    if (!in_step(r, err) || !sums_right(r, ret, err) || !kept_sum_right(r, err) ||
        !sink_stream_finish(TAKE(r->stream), false, err) ||
        (r->state_saved && !sink_delete(r->c->state, r->state_name, err))) {
        return FILE_COPY_FAILED;
    }
    return FILE_COPY_DONE;
}

/* A source without a version cannot be continued: what follows might be of another one. */
static enum file_copy_end leave(struct run *r)
{
    struct err err = ERR_INIT;
    if (r->stream == NULL || r->no_range || r->version[0] == '\0' || r->offset == 0) {
        return FILE_COPY_STOPPED;
    }
    if (in_step(r, &err) && save(r, &err)) {
        bool s3 = sink_is_s3(r->f->folder); /* whose parts are paid until the next run ends */
        sink_stream_leave(TAKE(r->stream));
        log_event(LOG_INFO, s3 ? "upload_kept" : "file_kept", LF_S("file", r->f->name),
                  LF_S("folder", r->f->folder), LF_I("bytes", r->offset));
    } else {
        log_event(LOG_WARN, "state_not_saved", LF_S("file", r->f->name), LF_ERR(&err));
    }
    return FILE_COPY_STOPPED;
}

static enum file_copy_end work(struct run *r, struct file_copied *ret, struct err *err)
{
    if (!load(r, err)) {
        return FILE_COPY_FAILED;
    }
    while (!r->whole && (r->total < 0 || r->offset < r->total)) {
        if (*r->c->stop != 0) {
            return leave(r);
        }
        struct err why = ERR_INIT;
        int64_t before = r->offset;
        enum copy_step step = r->no_range ? ask_stream(r, &why) : ask_range(r, &why);
        if (step != STEP_ON && !again(r, step, &why)) {
            *err = why;
            return FILE_COPY_FAILED;
        }
        if (step != STEP_ON) {
            continue;
        }
        r->failed_n = r->offset > before ? 0 : r->failed_n;
        r->range = MIN(r->range * 2, (size_t)r->c->o->range_kb << 10);
        bool due = clock_mono_us() - r->saved_us >= r->c->o->checkpoint_s * USEC_PER_SEC;
        if (due && !r->whole && r->version[0] != '\0' && !r->no_range && !save(r, err)) {
            return FILE_COPY_FAILED;
        }
    }
    return publish(r, ret, err);
}

/* Keep the state when a retry may succeed, or keys that are given again: what is there of a large
 * file took hours, and what it is a part of is known by its version. */
static void end_failed(struct run *r, const struct err *err)
{
    struct err ignored = ERR_INIT;
    bool keys = err->code == ERR_FORBIDDEN || err->code == ERR_UNAUTHENTICATED;
    if (keys || err_code_retry(err->code) == RETRY_BACKOFF) {
        (void)leave(r);
    } else if (r->state_saved) {
        (void)!sink_delete(r->c->state, r->state_name, &ignored);
    }
}

enum file_copy_end file_copy_run(const struct file_copy_config *c, const struct copy_file *f,
                                 size_t number, struct file_copied *ret, struct err *err)
{
    struct run r = {.c = c,
                    .f = f,
                    .in_s3 = strncmp(f->from, "s3://", 5) == 0,
                    .total = -1,
                    .range = (size_t)c->o->range_kb << 10,
                    .saved_us = clock_mono_us()};
    *ret = (struct file_copied){0};
    (void)snprintf(r.state_name, sizeof r.state_name, FILE_COPY_STATE "%06zu", number);
    rng_seed(&r.rng, (uint64_t)clock_mono_us() + number);
    if (!sink_open(f->folder, &r.sink, err)) {
        return FILE_COPY_FAILED;
    }
    c->progress->transfers++;
    enum file_copy_end end = work(&r, ret, err);
    c->progress->transfers--;
    if (end == FILE_COPY_FAILED) {
        c->progress->bytes -= r.offset;
        end_failed(&r, err);
    }
    sink_stream_abort(r.stream);
    sink_free(r.sink);
    return end;
}
