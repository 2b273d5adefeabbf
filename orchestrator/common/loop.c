/* The epoll loop: fds, a binary heap of timers, one signalfd, one eventfd for wakes from other
 * threads.
 *
 * Rules that let callbacks do anything:
 * 1. loop_fd_del takes the fd out of epoll at once and marks the record dead; its memory lives to
 * the end of the pass, so events already fetched for it are skipped.
 * 2. A timer is taken out of the heap before its callback runs; the callback may re-arm or free it.
 *    One pass runs at most as many timers as were armed when it began, so a timer that re-arms
 *    itself with 0 cannot starve the fds.
 * 3. Work deferred during the deferred phase runs after the next pass. */
#include "common/loop.h"
#include "common/clock.h"
#include "common/heap.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define LOOP_EVENTS_MAX  64
#define LOOP_SIGNALS_MAX 8
#define LOOP_TIMER_IDLE  SIZE_MAX

struct loop_fd {
    int fd;
    bool dead;
    loop_fd_fn fn;
    void *ctx;
};

struct loop_timer {
    struct loop *l;
    int64_t at_us;
    uint64_t seq; /* order of arming breaks ties */
    size_t heap_i;
    loop_timer_fn fn;
    void *ctx;
};

struct loop_signal_slot {
    int signo;
    loop_signal_fn fn;
    void *ctx;
};

struct loop_deferred {
    void (*fn)(void *p);
    void *p;
};

struct loop {
    int epoll_fd;
    int wake_fd;
    int signal_fd;
    sigset_t signal_set;
    struct loop_signal_slot signals[LOOP_SIGNALS_MAX];
    size_t signals_n;
    struct loop_timer **heap; /* heap[heap_n], earliest first */
    size_t heap_n, heap_cap;
    uint64_t seq;
    struct loop_deferred *deferred;
    size_t deferred_n, deferred_cap;
    struct loop_fd *wake, *signal;
    void (*pre_hook)(void *ctx);
    void *pre_ctx;
    void (*pass_hook)(void *ctx);
    void *pass_ctx;
    int64_t now_us;
    atomic_bool stop;
};

static void drain_wake(void *ctx UNUSED, int fd, uint32_t events UNUSED)
{
    uint64_t n;
    (void)!read(fd, &n, sizeof n);
}

static void read_signals(void *ctx, int fd, uint32_t events UNUSED)
{
    struct loop *l = ctx;
    struct signalfd_siginfo si;
    while (read(fd, &si, sizeof si) == (ssize_t)sizeof si) {
        for (size_t i = 0; i < l->signals_n; i++) {
            if (l->signals[i].signo == (int)si.ssi_signo) {
                l->signals[i].fn(l->signals[i].ctx, (int)si.ssi_signo);
            }
        }
    }
}

bool loop_new(struct loop **ret, struct err *err)
{
    struct loop *l = xcalloc(1, sizeof *l);
    l->wake_fd = l->signal_fd = -1;
    sigemptyset(&l->signal_set);
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll_fd < 0) {
        (void)err_set_os(err, ERR_IO, errno, "cannot make an epoll set");
        goto fail;
    }
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->wake_fd < 0) {
        (void)err_set_os(err, ERR_IO, errno, "cannot make an eventfd");
        goto fail;
    }
    l->wake = loop_fd_add(l, l->wake_fd, EPOLLIN, drain_wake, l);
    l->now_us = clock_mono_us();
    *ret = l;
    return true;
fail:
    loop_free(l);
    return false;
}

static void run_deferred(struct loop *l)
{
    struct loop_deferred *batch = TAKE(l->deferred);
    size_t n = l->deferred_n;
    l->deferred_n = l->deferred_cap = 0;
    for (size_t i = 0; i < n; i++) {
        batch[i].fn(batch[i].p);
    }
    free(batch);
}

void loop_free(struct loop *l)
{
    if (l == NULL) {
        return;
    }
    loop_fd_del(l, l->wake);
    loop_fd_del(l, l->signal);
    while (l->deferred_n > 0) {
        run_deferred(l);
    }
    for (size_t i = 0; i < l->heap_n; i++) {
        l->heap[i]->heap_i = LOOP_TIMER_IDLE;
        l->heap[i]->l = NULL;
    }
    int fds[] = {l->epoll_fd, l->wake_fd, l->signal_fd};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
    free(l->heap);
    free(l->deferred);
    free(l);
}

struct loop_fd *loop_fd_add(struct loop *l, int fd, uint32_t events, loop_fd_fn fn, void *ctx)
{
    ASSERT(fd >= 0);
    ASSERT(fn != NULL);
    struct loop_fd *f = xcalloc(1, sizeof *f);
    *f = (struct loop_fd){.fd = fd, .fn = fn, .ctx = ctx};
    struct epoll_event ev = {.events = events, .data.ptr = f};
    int rc = epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
    ASSERT(rc == 0); /* EEXIST, EBADF, EPERM are our own bugs */
    return f;
}

void loop_fd_mod(struct loop *l, struct loop_fd *f, uint32_t events)
{
    ASSERT(!f->dead);
    struct epoll_event ev = {.events = events, .data.ptr = f};
    int rc = epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, f->fd, &ev);
    ASSERT(rc == 0);
}

void loop_fd_del(struct loop *l, struct loop_fd *f)
{
    if (f == NULL) {
        return;
    }
    ASSERT(!f->dead);
    f->dead = true;
    (void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, f->fd, NULL); /* a closed fd is gone already */
    loop_defer(l, free, f);
}

static bool timer_before(const struct loop_timer *a, const struct loop_timer *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->seq < b->seq;
}

static void timer_put(struct loop_timer **at, size_t i, struct loop_timer *t)
{
    at[i] = t;
    t->heap_i = i;
}
#define TIMER_BEFORE(ctx, a, b)  timer_before(*(a), *(b))
#define TIMER_PUT(ctx, at, i, t) timer_put(at, i, t)
HEAP_DEFINE(timer, struct loop_timer *, void *, TIMER_BEFORE, TIMER_PUT);

static void timer_disarm(struct loop_timer *t)
{
    size_t i = t->heap_i;
    if (i == LOOP_TIMER_IDLE) {
        return;
    }
    struct loop *l = t->l;
    ASSERT(i < l->heap_n);
    ASSERT(l->heap[i] == t);
    t->heap_i = LOOP_TIMER_IDLE;
    struct loop_timer *last = l->heap[--l->heap_n];
    if (last != t) {
        timer_put(l->heap, i, last);
        timer_up(NULL, l->heap, i);
        timer_down(NULL, l->heap, l->heap_n, last->heap_i);
    }
}

struct loop_timer *loop_timer_new(struct loop *l, loop_timer_fn fn, void *ctx)
{
    ASSERT(fn != NULL);
    struct loop_timer *t = xcalloc(1, sizeof *t);
    *t = (struct loop_timer){.l = l, .heap_i = LOOP_TIMER_IDLE, .fn = fn, .ctx = ctx};
    return t;
}

void loop_timer_set(struct loop_timer *t, int64_t after_us)
{
    struct loop *l = t->l;
    timer_disarm(t);
    if (after_us < 0 || l == NULL) {
        return;
    }
    ARRAY_ROOM(l->heap, l->heap_n, l->heap_cap);
    /* The current time, not the pass's: after a long callback the timer must not fire early. */
    if (!add_i64(clock_mono_us(), after_us, &t->at_us)) {
        t->at_us = INT64_MAX;
    }
    t->seq = l->seq++;
    l->heap[l->heap_n] = t;
    timer_up(NULL, l->heap, l->heap_n++);
}

bool loop_timer_armed(const struct loop_timer *t)
{
    return t->heap_i != LOOP_TIMER_IDLE;
}

void loop_timer_free(struct loop_timer *t)
{
    if (t == NULL) {
        return;
    }
    timer_disarm(t);
    free(t);
}

static void run_timers(struct loop *l)
{
    int64_t now_us = clock_mono_us();
    size_t most = l->heap_n;
    for (size_t i = 0; i < most && l->heap_n > 0; i++) {
        struct loop_timer *t = l->heap[0];
        if (t->at_us > now_us) {
            break;
        }
        timer_disarm(t);
        t->fn(t->ctx);
    }
}

bool loop_signal(struct loop *l, int signo, loop_signal_fn fn, void *ctx, struct err *err)
{
    ASSERT(l->signals_n < LOOP_SIGNALS_MAX);
    sigset_t one;
    sigemptyset(&one);
    if (sigaddset(&one, signo) != 0) {
        return err_set(err, ERR_INVALID, "no such signal: %d", signo);
    }
    int rc = pthread_sigmask(SIG_BLOCK, &one, NULL);
    if (rc != 0) {
        return err_set_os(err, ERR_IO, rc, "cannot block signal %d", signo);
    }
    sigaddset(&l->signal_set, signo);
    int fd = signalfd(l->signal_fd, &l->signal_set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) {
        return err_set_os(err, ERR_IO, errno, "cannot make a signalfd");
    }
    if (l->signal_fd < 0) {
        l->signal_fd = fd;
        l->signal = loop_fd_add(l, fd, EPOLLIN, read_signals, l);
    }
    l->signals[l->signals_n++] = (struct loop_signal_slot){signo, fn, ctx};
    return true;
}

void loop_defer(struct loop *l, void (*fn)(void *p), void *p)
{
    ARRAY_ROOM(l->deferred, l->deferred_n, l->deferred_cap);
    l->deferred[l->deferred_n++] = (struct loop_deferred){fn, p};
}

void loop_wake(struct loop *l)
{
    uint64_t one = 1;
    (void)!write(l->wake_fd, &one, sizeof one); /* EAGAIN: it is already awake */
}

void loop_stop(struct loop *l)
{
    atomic_store(&l->stop, true);
    loop_wake(l);
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

int64_t loop_now_mono_us(const struct loop *l)
{
    return l->now_us;
}

/* Milliseconds for epoll, rounded up so that a timer never fires early; -1: no bound. */
static int wait_ms(const struct loop *l, int64_t max_wait_us)
{
    int64_t wait_us = max_wait_us < 0 ? INT64_MAX : max_wait_us;
    if (l->deferred_n > 0) {
        wait_us = 0;
    } else if (l->heap_n > 0) {
        int64_t due_us = l->heap[0]->at_us - clock_mono_us();
        wait_us = MIN(wait_us, MAX(due_us, 0));
    }
    if (wait_us == INT64_MAX) {
        return -1;
    }
    int64_t ms = wait_us / USEC_PER_MSEC + (wait_us % USEC_PER_MSEC != 0);
    return (int)MIN(ms, INT64_C(3600000));
}

void loop_run_once(struct loop *l, int64_t max_wait_us)
{
    struct epoll_event events[LOOP_EVENTS_MAX];
    int n = epoll_wait(l->epoll_fd, events, LOOP_EVENTS_MAX, wait_ms(l, max_wait_us));
    ASSERT(n >= 0 || errno == EINTR);
    l->now_us = clock_mono_us();
    if (l->pre_hook != NULL) {
        l->pre_hook(l->pre_ctx);
    }
    for (int i = 0; i < n; i++) {
        struct loop_fd *f = events[i].data.ptr;
        if (!f->dead) {
            f->fn(f->ctx, f->fd, events[i].events);
        }
    }
    run_timers(l);
    if (l->pass_hook != NULL) {
        l->pass_hook(l->pass_ctx);
    }
    run_deferred(l);
}

void loop_run(struct loop *l)
{
    while (!atomic_load(&l->stop)) {
        loop_run_once(l, -1);
    }
    atomic_store(&l->stop, false);
}
