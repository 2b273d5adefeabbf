/* What holds the samples of a shard, written while their rows end: a table of functions for each
 * output_format. A body is open for one shard and belongs to the writer's thread. */
#pragma once
#include "io/sink.h"
#include "shard.h"
#include "sidecar.h"

struct body_io { /* what all bodies of a writer share; borrowed */
    struct sink *sink;
    const struct shard_format *format;
    const struct columns *columns;
    struct sidecar *sidecar; /* of parquet: with the pictures */
    struct buf *scratch;     /* for one sample */
};
struct body_size {
    int64_t bytes;
    int64_t files; /* of a folder; 0: not a folder */
};
struct body { /* first member of every format's own */
    const struct body_io *io;
    int64_t shard_i;
    struct body_size size; /* so far */
};
struct body_ops {
    bool (*begin)(const struct body_io *io, int64_t shard_i, struct body **ret, struct err *err);
    /* A row that has ended, in order of completion, failed ones included. The sample is borrowed
     * until the body ends; its picture is dropped as soon as it is written. */
    bool (*add)(struct body *b, struct sample *s, struct err *err);
    /* Make it durable, create-only: ERR_PRECONDITION when another writer was first. Frees it. */
    bool (*finish)(struct body *b, struct body_size *ret, struct err *err);
    void (*abort)(struct body *b); /* frees it */
};

const struct body_ops *body_ops(enum output_format f);
/* Bytes that an open body keeps in memory, at most, besides one sample. */
size_t body_held_bytes(enum output_format f, bool s3);

extern const struct body_ops body_webdataset, body_files, body_parquet, body_tfrecord;
