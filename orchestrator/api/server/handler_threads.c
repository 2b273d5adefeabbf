/* A fixed pool of threads that run handlers. The number of connections bounds its queue: each has
 * at most one request. */
#include "handler_threads.h"
#include "common/log.h"
#include "request.h"
#include "server_state.h"
#include <poll.h>
#include <pthread.h>

struct handler_threads {
    struct api *api;
    void (*run)(struct api_req *r);
    pthread_mutex_t lock;
    pthread_cond_t some;
    struct api_req *head, *tail;
    bool stop;
    pthread_t *threads;
    int n;
};

static struct api_req *workers_pop(struct handler_threads *w)
{
    (void)pthread_mutex_lock(&w->lock);
    while (w->head == NULL && !w->stop) {
        (void)pthread_cond_wait(&w->some, &w->lock);
    }
    struct api_req *r = w->head;
    if (r != NULL) {
        w->head = r->next;
        if (w->head == NULL) {
            w->tail = NULL;
        }
    }
    (void)pthread_mutex_unlock(&w->lock);
    return r;
}

/* An idle connection becomes readable only when the server has closed it. */
static bool db_hung_up(const struct store *db)
{
    struct pollfd p = {.fd = store_fd(db), .events = POLLIN};
    return poll(&p, 1, 0) != 0;
}

static void *worker_main(void *ctx)
{
    struct handler_threads *w = ctx;
    struct store *db = NULL;
    struct api_req *r;
    while ((r = workers_pop(w)) != NULL) {
        if (db != NULL && (!store_alive(db) || db_hung_up(db))) {
            store_close(db);
            db = NULL;
        }
        r->db = db;
        w->run(r);
        db = r->db;
        r->db = NULL;
        (void)MHD_resume_connection(r->conn);
    }
    store_close(db);
    return NULL;
}

bool handler_threads_new(struct api *a, int n, void (*run)(struct api_req *r),
                         struct handler_threads **ret, struct err *err)
{
    struct handler_threads *w = xcalloc(1, sizeof *w);
    w->api = a;
    w->run = run;
    w->threads = xcalloc((size_t)n, sizeof *w->threads);
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_cond_init(&w->some, NULL);
    for (int i = 0; i < n; i++) {
        int rc = pthread_create(&w->threads[i], NULL, worker_main, w);
        if (rc != 0) {
            handler_threads_free(w);
            return err_set_os(err, ERR_INTERNAL, rc, "cannot start a handler thread");
        }
        w->n++;
    }
    *ret = w;
    return true;
}

void handler_threads_stop(struct handler_threads *w)
{
    (void)pthread_mutex_lock(&w->lock);
    w->stop = true;
    (void)pthread_cond_broadcast(&w->some);
    (void)pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->n; i++) {
        (void)pthread_join(w->threads[i], NULL);
    }
    w->n = 0;
}

void handler_threads_free(struct handler_threads *w)
{
    if (w == NULL) {
        return;
    }
    handler_threads_stop(w);
    (void)pthread_cond_destroy(&w->some);
    (void)pthread_mutex_destroy(&w->lock);
    free(w->threads);
    free(w);
}

bool handler_threads_push(struct handler_threads *w, struct api_req *r)
{
    r->next = NULL;
    (void)pthread_mutex_lock(&w->lock);
    bool open = !w->stop;
    if (!open) {
        (void)pthread_mutex_unlock(&w->lock);
        return false;
    }
    if (w->tail != NULL) {
        w->tail->next = r;
    } else {
        w->head = r;
    }
    w->tail = r;
    (void)pthread_cond_signal(&w->some);
    (void)pthread_mutex_unlock(&w->lock);
    return true;
}
