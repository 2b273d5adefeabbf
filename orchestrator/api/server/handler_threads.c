/* A fixed pool of threads that run handlers. The number of connections bounds its queue: each has
 * at most one request. */
#include "handler_threads.h"
#include "common/log.h"
#include "request.h"
#include "server_state.h"
#include <poll.h>
#include <pthread.h>

struct request_list {
    struct api_req *head, *tail;
};
struct handler_threads {
    struct api *api;
    void (*run)(struct api_req *r);
    pthread_mutex_t lock;
    pthread_cond_t some;
    struct request_list plain, dear;
    int dear_running, dear_max;
    bool stop;
    pthread_t *threads;
    int n;
};

static struct api_req *list_pop(struct request_list *q)
{
    struct api_req *r = q->head;
    if (r != NULL) {
        q->head = r->next;
        q->tail = q->head == NULL ? NULL : q->tail;
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

/* The next request; NULL: there is none and there will be none. was_dear: what this thread ran. */
static struct api_req *workers_pop(struct handler_threads *w, bool was_dear, bool *ret_dear)
{
    struct api_req *r = NULL;
    (void)pthread_mutex_lock(&w->lock);
    w->dear_running -= was_dear;
    for (;;) {
        *ret_dear = w->dear.head != NULL && w->dear_running < w->dear_max;
        r = list_pop(*ret_dear ? &w->dear : &w->plain);
        if (r != NULL || (w->stop && w->dear.head == NULL)) {
            break;
        }
        (void)pthread_cond_wait(&w->some, &w->lock);
    }
    w->dear_running += *ret_dear && r != NULL;
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
    struct handler_threads *w = ctx;
    struct store *db = NULL;
    struct api_req *r;
    bool dear = false;
    while ((r = workers_pop(w, dear, &dear)) != NULL) {
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
    w->dear_max = MAX(1, n / 2);
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
