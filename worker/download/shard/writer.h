/* Collects samples into shards and makes each shard durable by itself: the samples (body.h), then
 * parquet, then _stats.json, which marks the shard as finished. */
#pragma once
#include "body.h"
#include "download/part/duck.h"
#include "download/part/pipeline.h"

struct shard_sizes { /* sizes written for a shard, to compare with the final listing */
    int64_t shard_i;
    struct body_size body;
    int64_t parquet_size; /* of a parquet beside the body */
};
struct writer;
/* Opens a sink of its own, for the writer's thread alone. on_closed is called after each shard. The
 * caller owns *ret. */
bool writer_new(struct pipeline *run, struct duck *duck, struct writer **ret,
                struct err *err) MUST_CHECK;
void writer_free(struct writer *w);
/* The thread's function, arg: struct writer. Takes queue_results until it ends. Errors go to
 * pipeline_fail. */
void *writer_main(void *arg);
/* After the thread has ended: totals of the shards this run wrote. */
const struct stats *writer_total(const struct writer *w);
/* Shards this run wrote, ret_sizes[n], in order of completion; borrowed. */
size_t writer_written(const struct writer *w, const struct shard_sizes **ret_sizes);
/* Shards whose body another writer had written first: ret[n], borrowed. */
size_t writer_lost(const struct writer *w, const int64_t **ret);
