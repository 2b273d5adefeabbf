/* A fixed pool of threads that run handlers. The number of connections bounds its queue: each has
 * at most one request. */
#include "handler_threads.h"
#include "common/log.h"
#include "request.h"
#include "response_cache.h"
#include "server_state.h"
#include <poll.h>
#include <pthread.h>

struct request_list {
    struct api_req *head, *tail;
};
struct handler_thread {
    pthread_t id;
    struct handler_threads *of;
    const struct route *dear; /* of the dear request that it runs; NULL: it runs none */
};
struct handler_threads {
    struct api *api;
    void (*run)(struct api_req *r);
    pthread_mutex_t lock;
    pthread_cond_t some;
    struct request_list plain, dear;
    int dear_max;
    bool stop;
    struct handler_thread *threads;
    int n;
};

/* The one behind `after`, or the first. */
static struct api_req *list_pop(struct request_list *q, struct api_req *after)
{
    struct api_req **at = after != NULL ? &after->next : &q->head;
    struct api_req *r = *at;
    if (r != NULL) {
        *at = r->next;
        q->tail = q->tail == r ? after : q->tail;
    }
    return r;
}

static void list_push(struct request_list *q, struct api_req *r)
{
    r->next = NULL;
    if (q->tail != NULL) {
        q->tail->next = r;
    } else {
        q->head = r;
    }
    q->tail = r;
}

static int dear_running(const struct handler_threads *w, const struct route *route)
{
    int n = 0;
    for (int i = 0; i < w->n; i++) {
        n += w->threads[i].dear != NULL && (route == NULL || w->threads[i].dear == route);
    }
    return n;
}

/* The first dear request that may run now: the requests of one route leave a thread to those of the
 * others. */
static struct api_req *dear_pop(struct handler_threads *w)
{
    struct api_req *before = NULL;
    int one_route_max = MAX(1, w->dear_max - 1);
    if (dear_running(w, NULL) >= w->dear_max) {
        return NULL;
    }
    for (struct api_req *r = w->dear.head; r != NULL; r = r->next) {
        if (dear_running(w, r->route) < one_route_max) {
            return list_pop(&w->dear, before);
        }
        before = r;
    }
    return NULL;
}

/* The next request; NULL: there is none and there will be none. */
static struct api_req *workers_pop(struct handler_thread *t)
{
    struct handler_threads *w = t->of;
    struct api_req *r = NULL;
    (void)pthread_mutex_lock(&w->lock);
    t->dear = NULL;
    for (;;) {
        r = dear_pop(w);
        t->dear = r != NULL ? r->route : NULL;
        r = r != NULL ? r : list_pop(&w->plain, NULL);
        if (r != NULL || (w->stop && w->dear.head == NULL)) {
            break;
        }
        (void)pthread_cond_wait(&w->some, &w->lock);
    }
    if (w->stop) {
        (void)pthread_cond_broadcast(&w->some);
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
    struct handler_thread *t = ctx;
    struct store *db = NULL;
    struct api_req *r;
    while ((r = workers_pop(t)) != NULL) {
        if (db != NULL && (!store_alive(db) || db_hung_up(db))) {
            store_close(db);
            db = NULL;
        }
        r->db = db;
        t->of->run(r);
        db = r->db;
        r->db = NULL;
        struct response_later *later = TAKE(r->later);
        (void)MHD_resume_connection(r->conn);
        if (later != NULL) {
            response_later_make(later, db != NULL && store_alive(db) ? db : NULL);
        }
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
    w->dear_max = MAX(1, n / 2);
    w->threads = xcalloc((size_t)n, sizeof *w->threads);
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_cond_init(&w->some, NULL);
    for (int i = 0; i < n; i++) {
        w->threads[i].of = w;
        int rc = pthread_create(&w->threads[i].id, NULL, worker_main, &w->threads[i]);
        if (rc != 0) {
            handler_threads_free(w);
            return err_set_os(err, ERR_INTERNAL, rc, "cannot start a handler thread");
        }
        (void)pthread_mutex_lock(&w->lock);
        w->n++;
        (void)pthread_mutex_unlock(&w->lock);
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
        (void)pthread_join(w->threads[i].id, NULL);
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

bool handler_threads_push(struct handler_threads *w, struct api_req *r, bool dear)
{
    (void)pthread_mutex_lock(&w->lock);
    bool open = !w->stop;
    if (open) {
        list_push(dear ? &w->dear : &w->plain, r);
        (void)pthread_cond_signal(&w->some);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return open;
}
