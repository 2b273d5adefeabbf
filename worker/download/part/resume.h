/* The output of earlier runs: finished shards are kept and counted, the rest of unfinished ones is
 * removed. Also the last check of everything before the manifest. Where several hosts share a
 * part, each looks after the shards of its own share. */
#pragma once
#include "download/shard/writer.h"
#include "pipeline.h"

struct resume {
    uint8_t *done; /* done[shards]: 1 when finished */
    int64_t shards;
    int64_t done_n;
    struct stats total; /* over the finished ones */
};

/* List the output and read the stats of finished shards, many at once, adding them to the progress.
 * ERR_INVALID when one does not fit the part and the settings: nothing is removed then. */
bool resume_load(struct sink *sink, struct pipeline *run, struct resume *ret,
                 struct err *err) MUST_CHECK;
void resume_done(struct resume *r);
bool resume_is_done(const struct resume *r, int64_t shard_i);
/* Add the stats of shards that another writer completed meanwhile. */
bool resume_add_lost(struct sink *sink, const struct pipeline *run, const int64_t *shards, size_t n,
                     struct stats *total, struct err *err) MUST_CHECK;
/* Remove the objects of a shard that mixes the work of two writers. A failure is only logged. */
void resume_remove_shard(struct sink *sink, const struct pipeline *run, int64_t shard_i);
/* Check that every shard has its objects and that those we wrote have the size we wrote. A shard
 * of another size is removed and the call fails. Returns the objects of the manifest. */
bool resume_check(struct sink *sink, const struct pipeline *run, const struct shard_sizes *sizes,
                  size_t sizes_n, struct sink_listing *ret, struct err *err) MUST_CHECK;
/* The same for the shards of our share; objects of others may be missing. */
bool resume_check_share(struct sink *sink, const struct pipeline *run,
                        const struct shard_sizes *sizes, size_t sizes_n,
                        struct err *err) MUST_CHECK;
/* How many shards of a host's share are not finished. */
bool resume_missing(struct sink *sink, const struct pipeline *run, int host, int64_t *ret,
                    struct err *err) MUST_CHECK;
/* At the end: abort abandoned uploads of shards. */
void resume_abort_uploads(struct sink *sink);
