/* Bodies that are one growing object: webdataset's tar and tfrecord's file. */
#include "body.h"
#include "common/clock.h"
#include "common/tar.h"
#include "tfrecord.h"

struct body_stream {
    struct body b;
    struct sink_stream *stream;
    struct tfrecord_crc crc; /* of tfrecord */
};

static struct body_stream *stream_of(struct body *b)
{
    _Static_assert(offsetof(struct body_stream, b) == 0, "a body is its stream");
    void *p = b;
    return p;
}

static bool begin(const struct body_io *io, int64_t shard_i, const char *suffix,
                  const char *content_type, struct body **ret, struct err *err)
{
    char name[SHARD_KEY_BYTES];
    struct body_stream *t = xcalloc(1, sizeof *t);
    t->b = (struct body){.io = io, .shard_i = shard_i};
    shard_name(io->format, shard_i, suffix, name);
    if (!sink_stream_begin(io->sink, name, content_type, &t->stream, err)) {
        free(t);
        return false;
    }
    *ret = &t->b;
    return true;
}

static bool tar_begin(const struct body_io *io, int64_t shard_i, struct body **ret, struct err *err)
{
    return begin(io, shard_i, ".tar", "application/x-tar", ret, err);
}

static bool tfrecord_begin(const struct body_io *io, int64_t shard_i, struct body **ret,
                           struct err *err)
{
    if (!begin(io, shard_i, ".tfrecord", "application/octet-stream", ret, err)) {
        return false;
    }
    tfrecord_crc_init(&stream_of(*ret)->crc);
    return true;
}

/* Append what was put into the scratch buffer. */
static bool flush(struct body *b, struct err *err)
{
    const struct buf *data = b->io->scratch;
    if (data->overflow) {
        return err_set(err, ERR_LIMIT, "a sample is larger than %zu bytes", data->max);
    }
    b->size.bytes += (int64_t)data->n;
    return sink_stream_add(stream_of(b)->stream, buf_str(data), err);
}

static bool tar_sample(struct body *b, struct sample *s, struct err *err)
{
    bool ok = true;
    if (s->status == STATUS_SUCCESS) {
        buf_reset(b->io->scratch);
        shard_add_sample(b->io->format, b->io->columns, s, clock_wall_us() / USEC_PER_SEC,
                         b->io->scratch);
        ok = flush(b, err);
    }
    sample_drop_image(s);
    return ok;
}

static bool tfrecord_sample(struct body *b, struct sample *s, struct err *err)
{
    bool ok = true;
    if (s->status == STATUS_SUCCESS) {
        buf_reset(b->io->scratch);
        tfrecord_add_sample(&stream_of(b)->crc, b->io->format, b->io->columns, s, b->io->scratch);
        ok = flush(b, err);
    }
    sample_drop_image(s);
    return ok;
}

static void stream_abort(struct body *b)
{
    sink_stream_abort(stream_of(b)->stream);
    free(b);
}

static bool finish(struct body *b, struct body_size *ret, struct err *err)
{
    bool ok = sink_stream_finish(TAKE(stream_of(b)->stream), true, err);
    *ret = b->size;
    free(b);
    return ok;
}

static bool tar_finish(struct body *b, struct body_size *ret, struct err *err)
{
    buf_reset(b->io->scratch);
    tar_end(b->io->scratch);
    if (!flush(b, err)) {
        stream_abort(b);
        return false;
    }
    return finish(b, ret, err);
}

const struct body_ops body_webdataset = {tar_begin, tar_sample, tar_finish, stream_abort};
const struct body_ops body_tfrecord = {tfrecord_begin, tfrecord_sample, finish, stream_abort};
