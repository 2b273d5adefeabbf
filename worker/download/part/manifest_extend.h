/* The objects before the shards of incremental_mode extend, so that the final manifest covers the
 * whole folder: the objects of the earlier manifest, checked against the listing, and the counts of
 * their parts. */
#pragma once
#include "download/shard/shard.h"
#include "job/manifest.h"

struct manifest_extend { /* zeroed: not extending */
    json_t *earlier;     /* array with an entry per part, as in the manifest; NULL: not extending */
    struct sink_listing objects;
    int64_t bytes;
    bool there; /* the manifest, when it was read */
};
/* Load the existing manifest, for shards from f->first_shard on (later ones belong to our own
 * interrupted run). Without a manifest (another program's output) no earlier object is covered.
 * ERR_CONFLICT when an object differs from its manifest. */
bool manifest_extend_load(struct sink *sink, const struct shard_format *f,
                          struct manifest_extend *ret, struct err *err) MUST_CHECK;
/* Move the earlier objects into ours, in key order. */
void manifest_extend_merge(struct manifest_extend *x, struct sink_listing *ours);
void manifest_extend_done(struct manifest_extend *x);
