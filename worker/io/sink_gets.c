/* Threads that take one number after the other. Each has a connection of its own. */
#include "common/cleanup.h"
#include "sink_internal.h"
#include <pthread.h>
#include <stdatomic.h>

struct all_gets {
    struct sink *sink;
    const struct sink_gets *of;
    _Atomic size_t next;
    _Atomic bool failed;
    pthread_mutex_t lock; /* guards err */
    struct err err;       /* the first failure */
};

static bool get_one(struct all_gets *g, struct sink *sink, size_t i, struct err *err)
{
    char name[SINK_NAME_BYTES_MAX + 1];
    AUTO_BUF struct buf b = BUF_INIT(g->of->bytes_max);
    g->of->name(g->of->ctx, i, name);
    return sink_get(sink, name, &b, err) && g->of->take(g->of->ctx, i, buf_str(&b), err);
}

static void *gets_main(void *arg)
{
    struct all_gets *g = arg;
    struct sink mine = *g->sink; /* only to read */
    struct err err = ERR_INIT;
    bool ok = mine.s3 == NULL || sink_s3_connect(g->sink, &mine.s3, &err);
    size_t i = ok ? g->next++ : g->of->n;
    while (ok && i < g->of->n && !g->failed) {
        ok = get_one(g, &mine, i, &err);
        i = g->next++;
    }
    if (mine.s3 != g->sink->s3) {
        s3_blocking_free(mine.s3);
    }
    (void)pthread_mutex_lock(&g->lock);
    if (!ok && !g->failed) {
        g->err = err;
        g->failed = true;
    }
    (void)pthread_mutex_unlock(&g->lock);
    return NULL;
}

bool sink_get_many(struct sink *s, const struct sink_gets *of, struct err *err)
{
    struct all_gets g = {.sink = s, .of = of, .err = ERR_INIT};
    pthread_t threads[SINK_GETS_N];
    size_t n = MIN(of->n, SINK_GETS_N);
    (void)pthread_mutex_init(&g.lock, NULL);
    for (size_t i = 0; i < n; i++) {
        int rc = pthread_create(&threads[i], NULL, gets_main, &g);
        ASSERT(rc == 0);
    }
    for (size_t i = 0; i < n; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    (void)pthread_mutex_destroy(&g.lock);
    if (g.failed) {
        *err = g.err;
    }
    return !g.failed;
}
