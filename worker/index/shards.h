/* The shards of an input, in the order of the index: every .tar below a folder or an S3 prefix,
 * sorted bytewise by its path below it, so that a folder and a bucket with the same content give
 * the same index. Names that begin with a dot are ignored. */
#pragma once
#include "common/s3.h"
#include "source.h"

#define SHARDS_MAX            4000000
#define SHARDS_TEXT_BYTES_MAX ((size_t)512 << 20)
#define SHARDS_DEPTH_MAX      16 /* of folders */

struct shard_entry { /* value */
    uint32_t path;   /* offset of its text, below the input */
    uint32_t etag;   /* S3 only, else the offset of "" */
    int64_t size;
    int64_t mtime_ns; /* of a file; S3: 0 */
};
struct shards { /* shards_done frees */
    struct shard_entry *at;
    size_t n;
    size_t cap_;
    struct buf text_;
    char *folder; /* with '/' at the end; NULL: S3 */
    struct s3_uri base;
};
/* input: s3://..., else a folder or one .tar file. ERR_INVALID when there is no shard, except in
 * the finished output of a part without a success. */
bool shards_list(const char *input, struct shards *ret, struct err *err) MUST_CHECK;
/* Each attempt of a job gets its own copies of a channel's files: their times tell nothing. */
void shards_forget_times(struct shards *s);
void shards_done(struct shards *s);
const char *shards_path(const struct shards *s, size_t i); /* below the input; borrowed */
/* Open shard i in src; src->s3 must be set for S3. */
bool shards_open(const struct shards *s, size_t i, struct source *src, struct err *err) MUST_CHECK;
