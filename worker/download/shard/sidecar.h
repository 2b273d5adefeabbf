/* Writes NNNNN.parquet with DuckDB into memory: one row for every input row of the shard. */
#pragma once
#include "download/part/duck.h"
#include "io/sink.h"
#include "shard.h"

struct sidecar;
/* duck and columns are borrowed. images: the last column, "jpg" and the like, is the picture. Use
 * it on one thread. */
bool sidecar_new(struct duck *duck, const struct columns *columns, const struct shard_format *f,
                 bool images, struct sidecar **ret, struct err *err) MUST_CHECK;
void sidecar_free(struct sidecar *s);
/* The file's bytes for rows[rows_n] in a mapping that the caller unmaps: munmap(p, n). */
bool sidecar_write(struct sidecar *s, struct sample *const *samples, size_t samples_n,
                   struct str *ret, struct err *err) MUST_CHECK;
/* Rows whose texts are larger go to DuckDB, which has DUCK_MEMORY, in groups of at most that. */
#define SIDECAR_GROUP_BYTES ((size_t)16 << 20)
/* Of a row's texts. */
size_t sidecar_row_bytes(const struct sample *s);
/* Write the file under its name, create-only. */
bool sidecar_put(struct sidecar *c, struct sink *sink, const char *name,
                 struct sample *const *samples, size_t samples_n, int64_t *ret_size,
                 struct err *err) MUST_CHECK;
