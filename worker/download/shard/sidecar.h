/* NNNNN.parquet: one row for every input row of the shard, written by DuckDB into memory. */
#pragma once
#include "download/part/duck.h"
#include "shard.h"

struct sidecar;
/* duck and columns are borrowed; of one thread. */
bool sidecar_new(struct duck *duck, const struct columns *columns, const struct shard_format *f,
                 struct sidecar **ret, struct err *err) MUST_CHECK;
void sidecar_free(struct sidecar *s);
/* The file's bytes for rows[rows_n], in a mapping of the caller's: munmap(p, n). */
bool sidecar_write(struct sidecar *s, struct sample *const *samples, size_t samples_n,
                   struct str *ret, struct err *err) MUST_CHECK;
