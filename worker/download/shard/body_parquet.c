/* DuckDB writes each row group as a file of its own, in memory; parquet_join.h makes them one. */
#include "body_parquet.h"
#include "body.h"
#include "common/cleanup.h"
#include "parquet_join.h"
#include <sys/mman.h>

struct body_groups {
    struct body b;
    struct sink_stream *stream;
    struct parquet_join join;
    struct sample *rows[BODY_PARQUET_GROUP_ROWS]; /* borrowed */
    size_t rows_n;
    size_t images_bytes, text_bytes;
};

static struct body_groups *groups_of(struct body *b)
{
    _Static_assert(offsetof(struct body_groups, b) == 0, "a body is its groups");
    void *p = b;
    return p;
}

static bool parquet_begin(const struct body_io *io, int64_t shard_i, struct body **ret,
                          struct err *err)
{
    char name[SHARD_KEY_BYTES];
    struct body_groups *g = xcalloc(1, sizeof *g);
    g->b = (struct body){.io = io, .shard_i = shard_i};
    parquet_join_init(&g->join);
    shard_name(io->format, shard_i, ".parquet", name);
    if (!sink_stream_begin(io->sink, name, "application/vnd.apache.parquet", &g->stream, err)) {
        parquet_join_done(&g->join);
        free(g);
        return false;
    }
    *ret = &g->b;
    return true;
}

static bool put(struct body_groups *g, struct str data, struct err *err)
{
    g->b.size.bytes += (int64_t)data.n;
    return sink_stream_add(g->stream, data, err);
}

/* Write the rows so far as a row group, and drop their pictures. */
static bool flush(struct body_groups *g, struct err *err)
{
    struct str file;
    struct str data;
    if (g->rows_n == 0) {
        return true;
    }
    if (!sidecar_write(g->b.io->sidecar, g->rows, g->rows_n, &file, err)) {
        return false;
    }
    bool ok = parquet_join_add(&g->join, file, &data, err) && put(g, data, err);
    (void)munmap((void *)(uintptr_t)file.p, file.n);
    for (size_t i = 0; i < g->rows_n; i++) {
        sample_drop_image(g->rows[i]);
    }
    g->rows_n = 0;
    g->images_bytes = g->text_bytes = 0;
    return ok;
}

static bool parquet_add(struct body *b, struct sample *s, struct err *err)
{
    struct body_groups *g = groups_of(b);
    g->rows[g->rows_n++] = s;
    g->images_bytes += s->image_n;
    g->text_bytes += sidecar_row_bytes(s);
    bool full = g->rows_n == ARRAY_LEN(g->rows) || g->images_bytes >= BODY_PARQUET_GROUP_BYTES ||
                g->text_bytes >= SIDECAR_GROUP_BYTES;
    return !full || flush(g, err);
}

static void parquet_abort(struct body *b)
{
    struct body_groups *g = groups_of(b);
    sink_stream_abort(g->stream);
    parquet_join_done(&g->join);
    free(g);
}

static bool parquet_finish(struct body *b, struct body_size *ret, struct err *err)
{
    struct body_groups *g = groups_of(b);
    AUTO_BUF struct buf footer = BUF_INIT(PARQUET_JOIN_FOOTER_BYTES_MAX);
    bool ok = flush(g, err) && parquet_join_end(&g->join, &footer, err) &&
              put(g, buf_str(&footer), err) && sink_stream_finish(TAKE(g->stream), true, err);
    *ret = g->b.size;
    parquet_abort(b);
    return ok;
}

const struct body_ops body_parquet = {parquet_begin, parquet_add, parquet_finish, parquet_abort};
