/* The table of formats, and the one that writes nothing. */
#include "body.h"
#include "body_parquet.h"

static bool dummy_begin(const struct body_io *io, int64_t shard_i, struct body **ret,
                        struct err *err UNUSED)
{
    *ret = xcalloc(1, sizeof **ret);
    **ret = (struct body){.io = io, .shard_i = shard_i};
    return true;
}

static bool dummy_add(struct body *b UNUSED, struct sample *s, struct err *err UNUSED)
{
    sample_drop_image(s);
    return true;
}

static bool dummy_finish(struct body *b, struct body_size *ret, struct err *err UNUSED)
{
    *ret = b->size;
    free(b);
    return true;
}

static void dummy_abort(struct body *b)
{
    free(b);
}

static const struct body_ops body_dummy = {dummy_begin, dummy_add, dummy_finish, dummy_abort};

const struct body_ops *body_ops(enum output_format f)
{
    static const struct body_ops *const all[OUTPUT_FORMAT_COUNT] = {
        [OUTPUT_WEBDATASET] = &body_webdataset,
        [OUTPUT_FILES] = &body_files,
        [OUTPUT_PARQUET] = &body_parquet,
        [OUTPUT_TFRECORD] = &body_tfrecord,
        [OUTPUT_DUMMY] = &body_dummy};
    ASSERT(f >= 0 && f < OUTPUT_FORMAT_COUNT);
    return all[f];
}

size_t body_held_bytes(enum output_format f, bool s3)
{
    switch (f) {
    case OUTPUT_WEBDATASET:
    case OUTPUT_TFRECORD:
        return s3 ? SINK_PART_BYTES : 0;
    case OUTPUT_PARQUET:
        return BODY_PARQUET_GROUP_BYTES + (s3 ? SINK_PART_BYTES : 0);
    case OUTPUT_FILES: /* what is under way to S3 is bounded over all shards */
    case OUTPUT_DUMMY:
    case OUTPUT_FORMAT_COUNT:
        break;
    }
    return 0;
}
