/* Bounded queue between handler threads and the loop thread; see bridge.h. */
#include "bridge.h"
#include "common/clock.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum slot_state { SLOT_FREE, SLOT_ASKED, SLOT_TAKEN, SLOT_ANSWERED, SLOT_LEFT };

struct bridge_slot {
    enum slot_state state;
    struct bridge_question q; /* its body is the slot's, until it is answered */
    struct bridge_reply reply;
    struct bridge_progress progress;
    bool ok;
    struct err why;
    pthread_cond_t answered;
};
struct bridge {
    pthread_mutex_t lock;
    int fd;
    bool closed;
    int64_t next_id;
    struct bridge_slot slots[BRIDGE_PENDING_MAX];
};

void bridge_listing_done(struct bridge_listing *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->at[i].uri);
    }
    free(l->at);
    *l = (struct bridge_listing){0};
}

bool bridge_listing_add(struct bridge_listing *l, struct str uri, int64_t size)
{
    if (l->n >= BRIDGE_OBJECTS_MAX || l->bytes + uri.n > BRIDGE_OBJECT_BYTES) {
        return false;
    }
    ARRAY_ROOM(l->at, l->n, l->cap);
    l->at[l->n++] = (struct bridge_object){.uri = str_dup(uri), .size = size};
    l->bytes += uri.n;
    return true;
}

bool bridge_listing_move(struct bridge_listing *l, struct bridge_listing *from)
{
    size_t n = l->n + from->n;
    if (n > BRIDGE_OBJECTS_MAX || l->bytes + from->bytes > BRIDGE_OBJECT_BYTES) {
        return false;
    }
    if (n > l->cap) {
        l->cap = MAX(n, 2 * l->cap);
        l->at = xrealloc(l->at, l->cap * sizeof *l->at);
    }
    if (from->n > 0) {
        memcpy(&l->at[l->n], from->at, from->n * sizeof *from->at);
    }
    l->n = n;
    l->bytes += from->bytes;
    free(from->at);
    *from = (struct bridge_listing){0};
    return true;
}

void bridge_reply_done(struct bridge_reply *r)
{
    bridge_listing_done(&r->listing);
    buf_done(&r->json);
}

/* What the slot holds of its question. */
static void question_done(struct bridge_question *q)
{
    free((char *)(uintptr_t)q->body.p);
    q->body = (struct str){NULL, 0};
    if (q->kind == BRIDGE_S3_PUT && q->fd >= 0) {
        (void)close(q->fd);
    }
    q->fd = -1;
}

bool bridge_new(struct bridge **ret, struct err *err)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0) {
        return err_set_os(err, ERR_IO, errno, "cannot make the bridge's eventfd");
    }
    struct bridge *b = xcalloc(1, sizeof *b);
    b->fd = fd;
    b->next_id = 1;
    (void)pthread_mutex_init(&b->lock, NULL);
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    for (size_t i = 0; i < ARRAY_LEN(b->slots); i++) {
        (void)pthread_cond_init(&b->slots[i].answered, &attr);
        b->slots[i].q.fd = -1;
    }
    (void)pthread_condattr_destroy(&attr);
    *ret = b;
    return true;
}

void bridge_free(struct bridge *b)
{
    if (b == NULL) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(b->slots); i++) {
        bridge_reply_done(&b->slots[i].reply);
        question_done(&b->slots[i].q);
        (void)pthread_cond_destroy(&b->slots[i].answered);
    }
    (void)pthread_mutex_destroy(&b->lock);
    (void)close(b->fd);
    free(b);
}

void bridge_close(struct bridge *b)
{
    (void)pthread_mutex_lock(&b->lock);
    b->closed = true;
    for (size_t i = 0; i < ARRAY_LEN(b->slots); i++) {
        struct bridge_slot *s = &b->slots[i];
        if (s->state == SLOT_ASKED || s->state == SLOT_TAKEN) {
            s->ok = false;
            (void)err_set(&s->why, ERR_UNAVAILABLE, "the server is stopping");
            s->state = SLOT_ANSWERED;
            (void)pthread_cond_signal(&s->answered);
        }
    }
    (void)pthread_mutex_unlock(&b->lock);
}

static void slot_clear(struct bridge_slot *s)
{
    bridge_reply_done(&s->reply);
    s->reply = (struct bridge_reply){0};
    s->progress = (struct bridge_progress){0};
    question_done(&s->q);
    s->state = SLOT_FREE;
}

/* Wait until answered or the deadline; the lock is held. */
static void slot_wait(struct bridge *b, struct bridge_slot *s, int64_t timeout_us)
{
    int64_t until = clock_mono_us() + timeout_us;
    struct timespec ts = {.tv_sec = until / USEC_PER_SEC,
                          .tv_nsec = (long)(until % USEC_PER_SEC) * 1000};
    while (s->state != SLOT_ANSWERED) {
        if (pthread_cond_timedwait(&s->answered, &b->lock, &ts) == ETIMEDOUT) {
            return;
        }
    }
}

static struct bridge_slot *slot_find_free(struct bridge *b)
{
    for (size_t i = 0; i < ARRAY_LEN(b->slots); i++) {
        if (b->slots[i].state == SLOT_FREE) {
            return &b->slots[i];
        }
    }
    return NULL;
}

static bool begin_locked(struct bridge *b, const struct bridge_question *q, int64_t *ret_id,
                         struct err *err)
{
    if (b->closed) {
        return err_set(err, ERR_UNAVAILABLE, "the server is stopping");
    }
    struct bridge_slot *s = slot_find_free(b);
    if (s == NULL) {
        return err_set(err, ERR_UNAVAILABLE, "too many requests wait for AWS; try again");
    }
    s->q = *q;
    s->q.id = b->next_id++;
    s->q.body = (struct str){str_dup(q->body), q->body.n};
    s->q.fd = q->kind == BRIDGE_S3_PUT ? fcntl(q->fd, F_DUPFD_CLOEXEC, 0) : -1;
    s->state = SLOT_ASKED;
    *ret_id = s->q.id;
    uint64_t one = 1;
    (void)!write(b->fd, &one, sizeof one);
    return true;
}

bool bridge_begin(struct bridge *b, const struct bridge_question *q, int64_t *ret_id,
                  struct err *err)
{
    (void)pthread_mutex_lock(&b->lock);
    bool ok = begin_locked(b, q, ret_id, err);
    (void)pthread_mutex_unlock(&b->lock);
    return ok;
}

/* The slot of a question that was begun and is not over. */
static struct bridge_slot *slot_of(struct bridge *b, int64_t id)
{
    for (size_t i = 0; i < ARRAY_LEN(b->slots); i++) {
        if (b->slots[i].state != SLOT_FREE && b->slots[i].q.id == id) {
            return &b->slots[i];
        }
    }
    return NULL;
}

enum bridge_turn bridge_look(struct bridge *b, int64_t id, int64_t timeout_us,
                             struct bridge_reply *ret, struct bridge_progress *ret_progress,
                             struct err *err)
{
    enum bridge_turn turn = BRIDGE_WAITS;
    ASSERT(timeout_us >= 0 && timeout_us <= BRIDGE_WAIT_US_MAX);
    (void)pthread_mutex_lock(&b->lock);
    struct bridge_slot *s = slot_of(b, id);
    ASSERT(s != NULL);
    if (timeout_us > 0) {
        slot_wait(b, s, timeout_us);
    }
    if (s->state != SLOT_ANSWERED) {
        *ret_progress = s->progress;
    } else {
        turn = s->ok ? BRIDGE_ANSWERED : BRIDGE_REFUSED;
        if (s->ok) {
            *ret = s->reply;
            s->reply = (struct bridge_reply){0};
        } else if (err != NULL) {
            *err = s->why;
        }
        slot_clear(s);
    }
    (void)pthread_mutex_unlock(&b->lock);
    return turn;
}

void bridge_leave(struct bridge *b, int64_t id)
{
    (void)pthread_mutex_lock(&b->lock);
    struct bridge_slot *s = slot_of(b, id);
    if (s != NULL && s->state == SLOT_TAKEN) {
        /* It stays until the loop answers, so that its id is never another's. */
        s->state = SLOT_LEFT;
    } else if (s != NULL) {
        slot_clear(s);
    }
    (void)pthread_mutex_unlock(&b->lock);
}

bool bridge_ask(struct bridge *b, const struct bridge_question *q, int64_t timeout_us,
                struct bridge_reply *ret, struct err *err)
{
    int64_t id;
    struct bridge_progress ignored;
    ASSERT(timeout_us > 0);
    if (!bridge_begin(b, q, &id, err)) {
        return false;
    }
    switch (bridge_look(b, id, timeout_us, ret, &ignored, err)) {
    case BRIDGE_ANSWERED:
        return true;
    case BRIDGE_REFUSED:
        return false;
    case BRIDGE_WAITS:
        break;
    }
    bridge_leave(b, id);
    return err_set(err, ERR_TIMEOUT, "AWS did not answer in time");
}

int bridge_fd(const struct bridge *b)
{
    return b->fd;
}

bool bridge_take(struct bridge *b, struct bridge_question *ret)
{
    (void)pthread_mutex_lock(&b->lock);
    struct bridge_slot *first = NULL;
    for (size_t i = 0; i < ARRAY_LEN(b->slots); i++) {
        struct bridge_slot *s = &b->slots[i];
        if (s->state == SLOT_ASKED && (first == NULL || s->q.id < first->q.id)) {
            first = s;
        }
    }
    if (first != NULL) {
        first->state = SLOT_TAKEN;
        *ret = first->q;
    } else {
        uint64_t n;
        (void)!read(b->fd, &n, sizeof n); /* nothing left: not readable until the next question */
    }
    (void)pthread_mutex_unlock(&b->lock);
    return first != NULL;
}

bool bridge_is_wanted(struct bridge *b, int64_t id)
{
    bool wanted = false;
    (void)pthread_mutex_lock(&b->lock);
    for (size_t i = 0; i < ARRAY_LEN(b->slots); i++) {
        wanted |= b->slots[i].q.id == id && b->slots[i].state == SLOT_TAKEN;
    }
    (void)pthread_mutex_unlock(&b->lock);
    return wanted;
}

void bridge_tell(struct bridge *b, int64_t id, const struct bridge_progress *p)
{
    (void)pthread_mutex_lock(&b->lock);
    struct bridge_slot *s = slot_of(b, id);
    if (s != NULL && s->state == SLOT_TAKEN) {
        s->progress = *p;
    }
    (void)pthread_mutex_unlock(&b->lock);
}

static void bridge_end(struct bridge *b, int64_t id, struct bridge_reply *r, const struct err *why)
{
    (void)pthread_mutex_lock(&b->lock);
    for (size_t i = 0; i < ARRAY_LEN(b->slots); i++) {
        struct bridge_slot *s = &b->slots[i];
        if (s->q.id != id) {
            continue;
        }
        if (s->state == SLOT_LEFT) {
            slot_clear(s);
        } else if (s->state == SLOT_TAKEN) {
            s->ok = why == NULL;
            if (why != NULL) {
                s->why = *why;
            } else {
                ASSERT(r != NULL);
                s->reply = *r;
                *r = (struct bridge_reply){0};
            }
            s->state = SLOT_ANSWERED;
            (void)pthread_cond_signal(&s->answered);
        }
        break;
    }
    (void)pthread_mutex_unlock(&b->lock);
    if (r != NULL) {
        bridge_reply_done(r);
    }
}

void bridge_answer(struct bridge *b, int64_t id, struct bridge_reply *r)
{
    bridge_end(b, id, r, NULL);
}

void bridge_refuse(struct bridge *b, int64_t id, const struct err *why)
{
    bridge_end(b, id, NULL, why);
}
