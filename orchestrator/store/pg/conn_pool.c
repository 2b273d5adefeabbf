/* A bounded pool of connections under one mutex; waiting is on CLOCK_MONOTONIC. */
#include "conn_pool.h"
#include "common/clock.h"
#include "connection_private.h"
#include "tx.h"
#include <pthread.h>

struct conn_pool {
    pthread_mutex_t lock;
    pthread_cond_t came_back;
    char *conninfo;
    size_t max;
    size_t lent;
    int64_t refused;
    size_t idle_n;
    /* last in, first out: the most recently used is lent first */
    struct store *idle[CONN_POOL_MAX];
};

struct conn_pool *conn_pool_new(const char *conninfo, size_t max)
{
    ASSERT(max >= 1 && max <= CONN_POOL_MAX);
    struct conn_pool *p = xcalloc(1, sizeof *p);
    pthread_condattr_t attr;
    int rc = pthread_condattr_init(&attr);
    ASSERT(rc == 0);
    rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    ASSERT(rc == 0);
    rc = pthread_cond_init(&p->came_back, &attr);
    ASSERT(rc == 0);
    rc = pthread_mutex_init(&p->lock, NULL);
    ASSERT(rc == 0);
    (void)pthread_condattr_destroy(&attr);
    p->conninfo = xstrdup(conninfo);
    p->max = max;
    return p;
}

void conn_pool_free(struct conn_pool *p)
{
    if (p == NULL) {
        return;
    }
    ASSERT(p->lent == 0);
    for (size_t i = 0; i < p->idle_n; i++) {
        store_close(p->idle[i]);
    }
    (void)pthread_cond_destroy(&p->came_back);
    (void)pthread_mutex_destroy(&p->lock);
    free(p->conninfo);
    free(p);
}

static void lock(struct conn_pool *p)
{
    int rc = pthread_mutex_lock(&p->lock);
    ASSERT(rc == 0);
}

static void unlock(struct conn_pool *p)
{
    int rc = pthread_mutex_unlock(&p->lock);
    ASSERT(rc == 0);
}

/* Count one connection as lent. False when the wait timed out. */
static bool take_place(struct conn_pool *p, int64_t wait_us)
{
    int64_t until = clock_mono_us() + wait_us;
    struct timespec ts = {.tv_sec = until / USEC_PER_SEC, .tv_nsec = until % USEC_PER_SEC * 1000};
    while (p->lent == p->max) {
        if (pthread_cond_timedwait(&p->came_back, &p->lock, &ts) != 0 && p->lent == p->max) {
            p->refused++;
            return false;
        }
    }
    p->lent++;
    return true;
}

static void give_place(struct conn_pool *p)
{
    lock(p);
    ASSERT(p->lent > 0);
    p->lent--;
    (void)pthread_cond_signal(&p->came_back);
    unlock(p);
}

bool conn_pool_borrow(struct conn_pool *p, int64_t wait_us, struct store **ret, struct err *err)
{
    lock(p);
    if (!take_place(p, wait_us)) {
        unlock(p);
        return err_set(err, ERR_UNAVAILABLE, "every database connection is in use");
    }
    struct store *s = p->idle_n > 0 ? p->idle[--p->idle_n] : NULL;
    unlock(p);
    while (s != NULL && !store_read_idle(s)) {
        store_close(s);
        lock(p);
        s = p->idle_n > 0 ? p->idle[--p->idle_n] : NULL;
        unlock(p);
    }
    if (s == NULL && !store_open(p->conninfo, STORE_API, &s, err)) {
        give_place(p);
        return false;
    }
    *ret = s;
    return true;
}

void conn_pool_return(struct conn_pool *p, struct store *s)
{
    tx_rollback(s);
    if (!store_alive(s)) {
        store_close(s);
        give_place(p);
        return;
    }
    lock(p);
    ASSERT(p->idle_n < p->max && p->lent > 0);
    p->idle[p->idle_n++] = s;
    p->lent--;
    (void)pthread_cond_signal(&p->came_back);
    unlock(p);
}

void conn_pool_stats(struct conn_pool *p, size_t *ret_lent, int64_t *ret_refused)
{
    lock(p);
    *ret_lent = p->lent;
    *ret_refused = p->refused;
    unlock(p);
}
