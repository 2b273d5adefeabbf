/* The writer collects samples into shards and makes each shard durable by itself: tar, then
 * parquet, then _stats.json, whose presence marks the shard as finished. */
#pragma once
#include "download/part/duck.h"
#include "download/part/pipeline.h"

struct shard_sizes { /* what was written of a shard, to compare with the last listing */
    int64_t shard_i;
    int64_t tar_size;
    int64_t parquet_size;
};
struct writer;
/* The sink is opened here, for the writer's thread alone. on_closed is called after each shard. */
bool writer_new(struct pipeline *run, struct duck *duck, struct writer **ret,
                struct err *err) MUST_CHECK;
void writer_free(struct writer *w);
/* The thread: takes queue_results until it ends. Errors go to pipeline_fail. arg: struct writer. */
void *writer_main(void *arg);
/* After the thread: sums over the shards this run wrote. */
const struct stats *writer_total(const struct writer *w);
/* Shards this run wrote, ret_sizes[n], in order of completion; borrowed. */
size_t writer_written(const struct writer *w, const struct shard_sizes **ret_sizes);
/* Shards whose tar another writer had made first: ret[n], borrowed. */
size_t writer_lost(const struct writer *w, const int64_t **ret);
