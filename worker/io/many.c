/* Threads that take one number after the other. Each has a connection of its own. */
#include "many.h"
#include <pthread.h>
#include <stdatomic.h>

struct many_state {
    const struct many *of;
    _Atomic size_t next;
    _Atomic bool failed;
    pthread_mutex_t lock; /* guards err */
    struct err err;       /* the first failure */
};

static void *many_main(void *arg)
{
    struct many_state *r = arg;
    struct s3_blocking *s3 = NULL;
    struct err err = ERR_INIT;
    bool ok = r->of->connect == NULL || r->of->connect(r->of->ctx, &s3, &err);
    size_t i = ok ? r->next++ : r->of->n;
    while (ok && i < r->of->n && !r->failed) {
        ok = r->of->one(r->of->ctx, s3, i, &err);
        i = r->next++;
    }
    s3_blocking_free(s3);
    (void)pthread_mutex_lock(&r->lock);
    if (!ok && !r->failed) {
        r->err = err;
        r->failed = true;
    }
    (void)pthread_mutex_unlock(&r->lock);
    return NULL;
}

bool many_run(const struct many *of, struct err *err)
{
    struct many_state r = {.of = of, .err = ERR_INIT};
    pthread_t threads[MANY_N];
    size_t n = MIN(of->n, MANY_N);
    (void)pthread_mutex_init(&r.lock, NULL);
    for (size_t i = 0; i < n; i++) {
        int rc = pthread_create(&threads[i], NULL, many_main, &r);
        ASSERT(rc == 0);
    }
    for (size_t i = 0; i < n; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    (void)pthread_mutex_destroy(&r.lock);
    if (r.failed) {
        *err = r.err;
    }
    return !r.failed;
}
