/* The loop of a droverd, linked in place of common/loop.c: timers in virtual time, events of the
 * world, and the fd of its LISTEN connection. */
#include "common/clock.h"
#include "deep.h"

struct loop_fd {
    struct loop *l;
    int fd;
    bool dead;
    loop_fd_fn fn;
    void *ctx;
    struct loop_fd *next;
};
struct loop_timer {
    struct loop *l;
    int64_t at_us; /* DEEP_NEVER: not armed */
    uint64_t seq;
    loop_timer_fn fn;
    void *ctx;
    struct loop_timer *next;
};
struct work {
    void (*fn)(void *p);
    void *p;
};
struct works {
    struct work *at;
    size_t n, cap;
};
struct loop {
    struct proc *p;
    struct loop_fd *fds;
    struct loop_timer *timers;
    struct works deferred, ready;
    void (*pre_hook)(void *ctx), (*pass_hook)(void *ctx);
    void *pre_ctx, *pass_ctx;
    uint64_t seq;
    int64_t now_us;
};

static void work_add(struct works *w, void (*fn)(void *p), void *p)
{
    if (w->n == w->cap) {
        w->cap = MAX(16, w->cap * 2);
        w->at = xrealloc(w->at, w->cap * sizeof *w->at);
    }
    w->at[w->n++] = (struct work){fn, p};
}

/* Runs what was queued before this pass; what is added meanwhile waits for the next. */
static void works_run(struct works *w)
{
    struct works batch = *w;
    *w = (struct works){0};
    for (size_t i = 0; i < batch.n; i++) {
        batch.at[i].fn(batch.at[i].p);
    }
    free(batch.at);
}

bool loop_new(struct loop **ret, struct err *err)
{
    (void)err;
    *ret = xcalloc(1, sizeof **ret);
    (*ret)->p = deep->cur;
    return true;
}

void loop_free(struct loop *l)
{
    while (l != NULL && l->deferred.n > 0) {
        works_run(&l->deferred);
    }
    free(l);
}

void loop_run(struct loop *l)
{
    (void)l;
    deep_die("nobody runs this loop");
}

void loop_run_once(struct loop *l, int64_t max_wait_us)
{
    (void)l;
    (void)max_wait_us;
    deep_die("nobody runs this loop");
}

void loop_stop(struct loop *l)
{
    (void)l;
}

void loop_wake(struct loop *l)
{
    (void)l;
}

void loop_set_pre_hook(struct loop *l, void (*fn)(void *ctx), void *ctx)
{
    l->pre_hook = fn;
    l->pre_ctx = ctx;
}

void loop_set_pass_hook(struct loop *l, void (*fn)(void *ctx), void *ctx)
{
    l->pass_hook = fn;
    l->pass_ctx = ctx;
}

struct loop_fd *loop_fd_add(struct loop *l, int fd, uint32_t events, loop_fd_fn fn, void *ctx)
{
    (void)events;
    struct loop_fd *f = xcalloc(1, sizeof *f);
    *f = (struct loop_fd){.l = l, .fd = fd, .fn = fn, .ctx = ctx, .next = l->fds};
    l->fds = f;
    return f;
}

void loop_fd_mod(struct loop *l, struct loop_fd *f, uint32_t events)
{
    (void)l;
    (void)f;
    (void)events;
}

void loop_fd_del(struct loop *l, struct loop_fd *f)
{
    if (f == NULL) {
        return;
    }
    for (struct loop_fd **at = &l->fds; *at != NULL; at = &(*at)->next) {
        if (*at == f) {
            *at = f->next;
            break;
        }
    }
    f->dead = true;
    loop_defer(l, free, f);
}

struct loop_timer *loop_timer_new(struct loop *l, loop_timer_fn fn, void *ctx)
{
    struct loop_timer *t = xcalloc(1, sizeof *t);
    *t = (struct loop_timer){.l = l, .at_us = DEEP_NEVER, .fn = fn, .ctx = ctx, .next = l->timers};
    l->timers = t;
    return t;
}

struct ready_fd {
    struct loop *l;
    int fd;
};

static void run_ready(void *ctx)
{
    struct ready_fd *ready = ctx;
    for (struct loop_fd *f = ready->l->fds; f != NULL; f = f->next) {
        if (!f->dead && f->fd == ready->fd) {
            f->fn(f->ctx, f->fd, 1);
            break;
        }
    }
    free(ready);
}

void loop_ready(struct loop *l, int fd)
{
    struct ready_fd *ready = xcalloc(1, sizeof *ready);
    *ready = (struct ready_fd){l, fd};
    loop_post(l, run_ready, ready);
}

/* A standby asks for the lock twice a second, which would be most of the work of a small world.
 * So its timers fire late, as on a busy machine. */
static int64_t late(const struct proc *p, int64_t after_us)
{
    bool standby = deep->epoch > 0 && p->epoch != deep->epoch;
    return standby && after_us > 0 && after_us < SEC ? 8 * after_us : after_us;
}

void loop_timer_set(struct loop_timer *t, int64_t after_us)
{
    after_us = late(t->l->p, after_us);
    t->at_us = after_us < 0 || after_us > DEEP_NEVER / 2 ? DEEP_NEVER : clock_mono_us() + after_us;
    t->seq = t->l->seq++;
}

bool loop_timer_armed(const struct loop_timer *t)
{
    return t->at_us != DEEP_NEVER;
}

void loop_timer_free(struct loop_timer *t)
{
    if (t == NULL) {
        return;
    }
    for (struct loop_timer **at = &t->l->timers; *at != NULL; at = &(*at)->next) {
        if (*at == t) {
            *at = t->next;
            break;
        }
    }
    free(t);
}

bool loop_signal(struct loop *l, int signo, loop_signal_fn fn, void *ctx, struct err *err)
{
    (void)l;
    (void)signo;
    (void)fn;
    (void)ctx;
    (void)err;
    return true;
}

void loop_defer(struct loop *l, void (*fn)(void *p), void *p)
{
    work_add(&l->deferred, fn, p);
}

int64_t loop_now_mono_us(const struct loop *l)
{
    return l->now_us;
}

static struct loop_timer *first_timer(const struct loop *l)
{
    struct loop_timer *first = NULL;
    for (struct loop_timer *t = l->timers; t != NULL; t = t->next) {
        if (t->at_us != DEEP_NEVER && (first == NULL || t->at_us < first->at_us ||
                                       (t->at_us == first->at_us && t->seq < first->seq))) {
            first = t;
        }
    }
    return first;
}

static void run_timers(struct loop *l)
{
    int64_t now_us = clock_mono_us();
    for (int most = 64; most > 0; most--) {
        struct loop_timer *t = first_timer(l);
        if (t == NULL || t->at_us > now_us) {
            return;
        }
        t->at_us = DEEP_NEVER;
        t->fn(t->ctx);
    }
}

static void run_fds(struct loop *l)
{
    if (!l->p->notified) {
        return;
    }
    for (struct loop_fd *f = l->fds; f != NULL; f = f->next) {
        if (!f->dead && f->fd >= DEEP_LISTEN_FD) {
            f->fn(f->ctx, f->fd, 1);
            return;
        }
    }
    l->p->notified = false;
}

int64_t loop_pass(struct loop *l)
{
    l->now_us = clock_mono_us();
    l->p->pass_us = deep->now_us;
    if (l->pre_hook != NULL) {
        l->pre_hook(l->pre_ctx);
    }
    run_fds(l);
    works_run(&l->ready);
    run_timers(l);
    if (l->pass_hook != NULL) {
        l->pass_hook(l->pass_ctx);
    }
    works_run(&l->deferred);
    if (deep->wrong) {
        return deep->now_us; /* the world has seen enough */
    }
    if (l->deferred.n > 0 || l->ready.n > 0 || l->p->notified) {
        return deep->now_us;
    }
    const struct loop_timer *t = first_timer(l);
    return t == NULL ? DEEP_NEVER : t->at_us - DEEP_BOOT_US - l->p->boot_ahead_us;
}

void loop_post(struct loop *l, void (*fn)(void *ctx), void *ctx)
{
    work_add(&l->ready, fn, ctx);
    proc_wake(l->p);
}
