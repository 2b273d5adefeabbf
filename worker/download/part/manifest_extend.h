/* What lies before the shards of incremental_mode extend, so that the manifest written last still
 * proves all of the folder: the objects the manifest before it was of, held against what is there,
 * and the counts of the parts they came from. */
#pragma once
#include "download/shard/shard.h"
#include "job/manifest.h"

struct manifest_extend { /* zeroed: nothing is extended */
    json_t *earlier;     /* array: an entry a part, as in the manifest; NULL: not extending */
    struct sink_listing objects;
    int64_t bytes;
};
/* From the manifest that is there, for shards that begin with number f->first_shard: what it says
 * of later ones is our own interrupted run's. Without a manifest (another program's output) nothing
 * is vouched for. ERR_CONFLICT when an object is not as its manifest says. */
bool manifest_extend_load(struct sink *sink, const struct shard_format *f,
                          struct manifest_extend *ret, struct err *err) MUST_CHECK;
/* Put the earlier objects among ours, in key order; they are moved. */
void manifest_extend_merge(struct manifest_extend *x, struct sink_listing *ours);
void manifest_extend_done(struct manifest_extend *x);
