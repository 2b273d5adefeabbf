/* Many objects of a sink, read or removed. */
#include "common/cleanup.h"
#include "many.h"
#include "sink_internal.h"

struct all_gets {
    const struct sink *sink;
    const struct sink_gets *of;
};

static bool connect_gets(void *ctx, struct s3_blocking **ret, struct err *err)
{
    const struct all_gets *g = ctx;
    return sink_s3_connect(g->sink, ret, err);
}

static bool get_one(void *ctx, struct s3_blocking *s3, size_t i, struct err *err)
{
    const struct all_gets *g = ctx;
    struct sink mine = *g->sink; /* only to read */
    char name[SINK_NAME_BYTES_MAX + 1];
    AUTO_BUF struct buf b = BUF_INIT(g->of->bytes_max);
    mine.s3 = s3;
    g->of->name(g->of->ctx, i, name);
    return sink_get(&mine, name, &b, err) && g->of->take(g->of->ctx, i, buf_str(&b), err);
}

bool sink_get_many(struct sink *s, const struct sink_gets *of, struct err *err)
{
    struct all_gets g = {s, of};
    const struct many m = {
        .n = of->n, .connect = s->s3 != NULL ? connect_gets : NULL, .one = get_one, .ctx = &g};
    return many_run(&m, err);
}

struct all_deletes {
    const struct sink *sink;
    const char *const *names;
    _Atomic int64_t *done;
};

static bool connect_deletes(void *ctx, struct s3_blocking **ret, struct err *err)
{
    const struct all_deletes *d = ctx;
    return sink_s3_connect(d->sink, ret, err);
}

static bool delete_one(void *ctx, struct s3_blocking *s3, size_t i, struct err *err)
{
    const struct all_deletes *d = ctx;
    struct sink mine = *d->sink; /* only to delete */
    mine.s3 = s3;
    bool ok = sink_delete(&mine, d->names[i], err);
    *d->done += ok ? 1 : 0;
    return ok;
}

bool sink_delete_many(struct sink *s, const char *const *names, size_t n, _Atomic int64_t *done,
                      struct err *err)
{
    struct all_deletes d = {s, names, done};
    const struct many m = {
        .n = n, .connect = s->s3 != NULL ? connect_deletes : NULL, .one = delete_one, .ctx = &d};
    return many_run(&m, err);
}
