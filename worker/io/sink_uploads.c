/* A queue and threads that take from it. */
#include "common/cleanup.h"
#include "queue.h"
#include "sink_internal.h"
#include <pthread.h>

struct sink_upload {
    struct queue_item item; /* first member */
    struct sink_uploads_group *group;
    const char *content_type; /* NULL: delete it */
    struct str data;          /* behind the name */
    char name[SINK_NAME_BYTES_MAX + 1];
    char bytes[];
};
struct sink_uploads {
    struct sink *sink;
    struct queue *queue;
    pthread_mutex_t lock; /* guards the groups */
    pthread_cond_t ended;
    pthread_t threads[SINK_UPLOADS_N];
    struct s3_blocking *s3[SINK_UPLOADS_N];
    int threads_n;
};
struct uploads_thread {
    struct sink_uploads *all;
    struct s3_blocking *s3;
};

static struct sink_upload *upload_of(struct queue_item *item)
{
    _Static_assert(offsetof(struct sink_upload, item) == 0, "an item is its upload");
    void *p = item;
    return p;
}

static bool carry_out(const struct uploads_thread *t, const struct sink_upload *x, struct err *err)
{
    struct s3_uri u = sink_uri_of(t->all->sink, x->name);
    return x->content_type != NULL
               ? s3_blocking_put(t->s3, &u, x->data, x->content_type, false, err)
               : s3_blocking_delete(t->s3, &u, err);
}

static void *upload_main(void *arg)
{
    struct uploads_thread *t = arg;
    struct sink_uploads *u = t->all;
    for (struct sink_upload *x = upload_of(queue_pop(u->queue, true)); x != NULL;
         x = upload_of(queue_pop(u->queue, true))) {
        struct err err = ERR_INIT;
        bool skipped = sink_uploads_failed(u, x->group);
        bool ok = skipped || carry_out(t, x, &err);
        (void)pthread_mutex_lock(&u->lock);
        if (ok && !skipped && x->group->done != NULL) {
            ++*x->group->done;
        }
        if (!ok && x->group->err.code == ERR_NONE) {
            x->group->err = err;
        }
        x->group->pending--;
        (void)pthread_cond_broadcast(&u->ended);
        (void)pthread_mutex_unlock(&u->lock);
        free(x);
    }
    free(t);
    return NULL;
}

static void uploads_free(struct sink_uploads *u)
{
    queue_close(u->queue);
    for (int i = 0; i < u->threads_n; i++) {
        (void)pthread_join(u->threads[i], NULL);
    }
    for (int i = 0; i < SINK_UPLOADS_N; i++) {
        if (u->s3[i] != NULL) {
            s3_blocking_free(u->s3[i]);
        }
    }
    (void)pthread_mutex_destroy(&u->lock);
    (void)pthread_cond_destroy(&u->ended);
    queue_free(u->queue);
    free(u);
}

bool sink_uploads_of(struct sink *s, struct sink_uploads **ret, struct err *err)
{
    if (s->uploads != NULL) {
        *ret = s->uploads;
        return true;
    }
    struct sink_uploads *u = xcalloc(1, sizeof *u);
    u->sink = s;
    u->queue = queue_new(SINK_UPLOADS_BYTES_MAX);
    (void)pthread_mutex_init(&u->lock, NULL);
    (void)pthread_cond_init(&u->ended, NULL);
    for (int i = 0; i < SINK_UPLOADS_N; i++) {
        if (!sink_s3_connect(s, &u->s3[i], err)) {
            uploads_free(u);
            return false;
        }
        struct uploads_thread *t = xcalloc(1, sizeof *t);
        *t = (struct uploads_thread){u, u->s3[i]};
        int rc = pthread_create(&u->threads[i], NULL, upload_main, t);
        ASSERT(rc == 0);
        u->threads_n++;
    }
    s->uploads_free = uploads_free;
    *ret = s->uploads = u;
    return true;
}

static void push(struct sink_uploads *u, struct sink_uploads_group *g, const char *name,
                 struct str data, const char *content_type)
{
    if (strlen(name) > SINK_NAME_BYTES_MAX) { /* of another program, in a listing */
        (void)pthread_mutex_lock(&u->lock);
        (void)err_set(&g->err, ERR_INVALID, "'%.250s': no name of ours", name);
        (void)pthread_mutex_unlock(&u->lock);
        return;
    }
    struct sink_upload *x = xmalloc(sizeof *x + data.n);
    *x = (struct sink_upload){.group = g, .content_type = content_type, .data = {x->bytes, data.n}};
    (void)snprintf(x->name, sizeof x->name, "%s", name);
    if (data.n > 0) {
        memcpy(x->bytes, data.p, data.n);
    }
    (void)pthread_mutex_lock(&u->lock);
    g->pending++;
    (void)pthread_mutex_unlock(&u->lock);
    bool pushed = queue_push(u->queue, &x->item, sizeof *x + data.n);
    ASSERT(pushed);
}

void sink_uploads_put(struct sink_uploads *u, struct sink_uploads_group *g, const char *name,
                      struct str data, const char *content_type)
{
    ASSERT(content_type != NULL);
    push(u, g, name, data, content_type);
}

void sink_uploads_delete(struct sink_uploads *u, struct sink_uploads_group *g, const char *name)
{
    push(u, g, name, STR(""), NULL);
}

bool sink_uploads_failed(struct sink_uploads *u, const struct sink_uploads_group *g)
{
    (void)pthread_mutex_lock(&u->lock);
    bool failed = g->err.code != ERR_NONE;
    (void)pthread_mutex_unlock(&u->lock);
    return failed;
}

bool sink_uploads_wait(struct sink_uploads *u, struct sink_uploads_group *g, struct err *err)
{
    (void)pthread_mutex_lock(&u->lock);
    while (g->pending > 0) {
        (void)pthread_cond_wait(&u->ended, &u->lock);
    }
    bool ok = g->err.code == ERR_NONE;
    if (!ok) {
        *err = g->err;
    }
    (void)pthread_mutex_unlock(&u->lock);
    return ok;
}

void sink_uploads_drop(struct sink_uploads *u, struct sink_uploads_group *g)
{
    struct err err = ERR_INIT;
    (void)pthread_mutex_lock(&u->lock);
    if (g->err.code == ERR_NONE) {
        (void)err_set(&g->err, ERR_INTERNAL, "given up");
    }
    (void)pthread_mutex_unlock(&u->lock);
    bool ok = sink_uploads_wait(u, g, &err);
    ASSERT(!ok);
}
