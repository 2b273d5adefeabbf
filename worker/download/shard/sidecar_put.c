/* A sidecar at once, or when its texts are too large for that in groups of rows that are joined. */
#include "common/cleanup.h"
#include "parquet_join.h"
#include "sidecar.h"
#include <sys/mman.h>

#define CONTENT_TYPE   "application/vnd.apache.parquet"
#define GROUP_ROWS_MAX 2048

size_t sidecar_row_bytes(const struct sample *s)
{
    return s->text_n + (s->exif != NULL ? strlen(s->exif) : 0);
}

/* How many of the rows make one group, at least one. */
static size_t group_of(struct sample *const *samples, size_t n, size_t rows_max)
{
    size_t bytes = 0;
    size_t rows = 0;
    while (rows < n && rows < rows_max) {
        bytes += sidecar_row_bytes(samples[rows]);
        if (rows > 0 && bytes > SIDECAR_GROUP_BYTES) {
            break;
        }
        rows++;
    }
    return rows;
}

static bool put_at_once(struct sidecar *c, struct sink *sink, const char *name,
                        struct sample *const *samples, size_t n, int64_t *ret_size, struct err *err)
{
    struct str file;
    if (!sidecar_write(c, samples, n, &file, err)) {
        return false;
    }
    *ret_size = (int64_t)file.n;
    bool ok = sink_put(sink, name, file, CONTENT_TYPE, true, err);
    (void)munmap((void *)(uintptr_t)file.p, file.n);
    return ok;
}

static bool add_group(struct sidecar *c, struct sink_stream *to, struct parquet_join *join,
                      struct sample *const *samples, size_t n, struct err *err)
{
    struct str file;
    struct str data;
    if (!sidecar_write(c, samples, n, &file, err)) {
        return false;
    }
    bool ok = parquet_join_add(join, file, &data, err) && sink_stream_add(to, data, err);
    (void)munmap((void *)(uintptr_t)file.p, file.n);
    return ok;
}

static bool put_groups(struct sidecar *c, struct sink_stream **to, struct sample *const *samples,
                       size_t n, int64_t *ret_size, struct err *err)
{
    AUTO_BUF struct buf footer = BUF_INIT(PARQUET_JOIN_FOOTER_BYTES_MAX);
    CLEANUP(parquet_join_done)
    struct parquet_join join;
    parquet_join_init(&join);
    for (size_t at = 0; at < n;) {
        size_t rows = group_of(samples + at, n - at, GROUP_ROWS_MAX);
        if (!add_group(c, *to, &join, samples + at, rows, err)) {
            return false;
        }
        at += rows;
    }
    *ret_size = join.size;
    if (!parquet_join_end(&join, &footer, err) || !sink_stream_add(*to, buf_str(&footer), err)) {
        return false;
    }
    *ret_size += (int64_t)footer.n;
    return sink_stream_finish(TAKE(*to), true, err);
}

bool sidecar_put(struct sidecar *c, struct sink *sink, const char *name,
                 struct sample *const *samples, size_t samples_n, int64_t *ret_size,
                 struct err *err)
{
    struct sink_stream *to;
    if (group_of(samples, samples_n, samples_n) == samples_n) {
        return put_at_once(c, sink, name, samples, samples_n, ret_size, err);
    }
    if (!sink_stream_begin(sink, name, CONTENT_TYPE, &to, err)) {
        return false;
    }
    bool ok = put_groups(c, &to, samples, samples_n, ret_size, err);
    sink_stream_abort(to);
    return ok;
}
