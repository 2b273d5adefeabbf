/* See listing_thread.h. */
#include "listing_thread.h"
#include "common/clock.h"
#include "common/log.h"
#include "listings.h"
#include "store/pg/connection.h"
#include <pthread.h>
#include <signal.h>

#define PASS_US (250 * USEC_PER_MSEC)

struct listing_thread {
    char *conninfo;
    const struct api_status *status;
    struct listings *listings;
    struct store *store; /* NULL: not open, or this droverd does not lead */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stopping;
    bool stop; /* behind the lock */
};

static void let_go(struct listing_thread *t)
{
    listings_let_go(t->listings);
    store_close(t->store);
    t->store = NULL;
}

static void pass(struct listing_thread *t)
{
    struct err err = ERR_INIT;
    if (!atomic_load(&t->status->leading) || (t->store != NULL && !store_alive(t->store))) {
        let_go(t);
        return;
    }
    bool ok = (t->store != NULL || store_open(t->conninfo, STORE_API, &t->store, &err)) &&
              listings_look(t->listings, t->store, &err);
    if (!ok && log_allow("input_listings_failed")) {
        log_event(LOG_WARN, "input_listings_failed", LF_ERR(&err));
    }
}

/* False: the thread is to stop. */
static bool pause_pass(struct listing_thread *t)
{
    int64_t until = clock_mono_us() + PASS_US;
    const struct timespec ts = {.tv_sec = until / USEC_PER_SEC,
                                .tv_nsec = (long)(until % USEC_PER_SEC) * 1000};
    (void)pthread_mutex_lock(&t->lock);
    while (!t->stop && clock_mono_us() < until) {
        (void)pthread_cond_timedwait(&t->stopping, &t->lock, &ts);
    }
    bool stop = t->stop;
    (void)pthread_mutex_unlock(&t->lock);
    return !stop;
}

static void *listing_main(void *ctx)
{
    struct listing_thread *t = ctx;
    do {
        pass(t);
    } while (pause_pass(t));
    let_go(t);
    return NULL;
}

bool listing_thread_start(const char *conninfo, const struct api_status *status, struct bridge *b,
                          struct listing_thread **ret, struct err *err)
{
    sigset_t all, old;
    pthread_condattr_t attr;
    struct listing_thread *t = xcalloc(1, sizeof *t);
    t->conninfo = xstrdup(conninfo);
    t->status = status;
    t->listings = listings_new(b);
    (void)pthread_mutex_init(&t->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&t->stopping, &attr);
    (void)pthread_condattr_destroy(&attr);
    (void)sigfillset(&all); /* signals are for the thread of the leader's loop */
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    bool ok = pthread_create(&t->thread, NULL, listing_main, t) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!ok) {
        listings_free(t->listings);
        free(t->conninfo);
        free(t);
        return err_set(err, ERR_INTERNAL, "cannot start the listing thread");
    }
    *ret = t;
    return true;
}

void listing_thread_stop(struct listing_thread *t)
{
    if (t == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&t->lock);
    t->stop = true;
    (void)pthread_cond_signal(&t->stopping);
    (void)pthread_mutex_unlock(&t->lock);
    (void)pthread_join(t->thread, NULL);
    (void)pthread_cond_destroy(&t->stopping);
    (void)pthread_mutex_destroy(&t->lock);
    listings_free(t->listings);
    free(t->conninfo);
    free(t);
}
