/* Virtual time: the world's events in order of instant and arrival, the clocks and the loop that
 * droverd's objects are linked against, and each droverd's loop thread as a coroutine, which runs
 * until it waits, is frozen or dies. Nothing here asks the real time. */
#include "common/clock.h"
#include "deep.h"
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#define STACK_BYTES (1024 * 1024)

struct world *deep;

void deep_die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)fprintf(stderr, "deep: ");
    (void)vfprintf(stderr, fmt, ap);
    (void)fputc('\n', stderr);
    va_end(ap);
    exit(3);
}

/* --- the trace --- */

static void mix_bytes(const char *p)
{
    for (; *p != '\0'; p++) {
        deep->hash = (deep->hash ^ (uint8_t)*p) * 1099511628211u;
    }
}

void trace(const char *fmt, ...)
{
    char line[200];
    va_list ap;
    va_start(ap, fmt);
    int at = snprintf(line, sizeof line, "%10.3f %s ", (double)deep->now_us / 1e6,
                      deep->cur == NULL ? "world"
                                        : (const char *[]){"one", "two", "three"}[deep->cur->id]);
    (void)vsnprintf(line + at, sizeof line - (size_t)at, fmt, ap);
    va_end(ap);
    mix_bytes(line);
    deep->steps++;
    if (deep->tell) {
        (void)fprintf(stderr, "%s\n", line);
    }
}

int64_t between(struct rng *r, int64_t from, int64_t to)
{
    return from + (int64_t)rng_below(r, (uint64_t)(to - from + 1));
}

/* --- events --- */

static bool before(const struct event *a, const struct event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->seq < b->seq;
}

void event_at(int64_t at_us, void (*fn)(void *ctx, int64_t arg), void *ctx, int64_t arg)
{
    struct world *w = deep;
    if (w->heap_n == w->heap_cap) {
        w->heap_cap = MAX(256, w->heap_cap * 2);
        w->heap = xrealloc(w->heap, w->heap_cap * sizeof *w->heap);
    }
    struct event e = {
        .at_us = MAX(at_us, w->now_us), .seq = w->seq++, .fn = fn, .ctx = ctx, .arg = arg};
    size_t i = w->heap_n++;
    for (; i > 0 && before(&e, &w->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        w->heap[i] = w->heap[(i - 1) / 2];
    }
    w->heap[i] = e;
}

bool event_next(void)
{
    struct world *w = deep;
    if (w->heap_n == 0) {
        return false;
    }
    struct event top = w->heap[0];
    struct event last = w->heap[--w->heap_n];
    size_t i = 0;
    for (size_t c = 1; c < w->heap_n; c = 2 * i + 1) {
        if (c + 1 < w->heap_n && before(&w->heap[c + 1], &w->heap[c])) {
            c++;
        }
        if (!before(&w->heap[c], &last)) {
            break;
        }
        w->heap[i] = w->heap[c];
        i = c;
    }
    w->heap[i] = last;
    w->now_us = MAX(w->now_us, top.at_us);
    top.fn(top.ctx, top.arg);
    return true;
}

/* --- clocks, linked in place of common/clock.c's --- */

usec_t wall_now(void)
{
    return DEEP_EPOCH_US + deep->now_us;
}

usec_t __wrap_clock_wall_us(void);
int64_t __wrap_clock_boot_us(void);
int64_t __wrap_clock_mono_us(void);
int64_t __real_clock_mono_us(void);

usec_t __wrap_clock_wall_us(void)
{
    return deep == NULL ? DEEP_EPOCH_US
                        : wall_now() + (deep->cur != NULL ? deep->cur->wall_ahead_us : 0);
}

int64_t __wrap_clock_boot_us(void)
{
    return DEEP_BOOT_US +
           (deep == NULL ? 0 : deep->now_us + (deep->cur != NULL ? deep->cur->boot_ahead_us : 0));
}

int64_t __wrap_clock_mono_us(void)
{
    return deep == NULL ? __real_clock_mono_us() : __wrap_clock_boot_us();
}

/* --- the loop, linked in place of common/loop.c --- */

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

/* What was there when it began; what is added meanwhile waits for the next pass. */
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

void loop_timer_set(struct loop_timer *t, int64_t after_us)
{
    t->at_us =
        after_us < 0 || after_us > DEEP_NEVER / 2 ? DEEP_NEVER : __wrap_clock_mono_us() + after_us;
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
    int64_t now_us = __wrap_clock_mono_us();
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

/* One pass; the answer: when the next is due, on the world's clock. */
static int64_t loop_pass(struct loop *l)
{
    l->now_us = __wrap_clock_mono_us();
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

/* --- processes --- */

static void proc_resume(void *ctx, int64_t gen)
{
    struct proc *p = ctx;
    if (!p->up || (uint32_t)gen != p->gen) {
        return;
    }
    if (deep->now_us < p->frozen_until_us) {
        event_at(p->frozen_until_us, proc_resume, p, gen);
        return;
    }
    p->waiting = false;
    deep->cur = p;
    if (swapcontext(&deep->main, &p->ctx) != 0) {
        deep_die("swapcontext");
    }
    deep->cur = NULL;
    if (p->dying) {
        p->dying = false;
        store_proc_gone(p);
        calls_proc_gone(p);
    }
}

/* Back to the world until `at_us`. */
static void yield_until(struct proc *p, int64_t at_us, bool waiting)
{
    p->waiting = waiting;
    p->gen++;
    if (at_us < DEEP_NEVER) {
        event_at(at_us, proc_resume, p, p->gen);
    }
    if (swapcontext(&p->ctx, &deep->main) != 0) {
        deep_die("swapcontext");
    }
}

void loop_post(struct loop *l, void (*fn)(void *ctx), void *ctx)
{
    work_add(&l->ready, fn, ctx);
    if (l->p->waiting) {
        l->p->gen++;
        event_at(deep->now_us, proc_resume, l->p, l->p->gen);
    }
}

static void nothing(void *ctx)
{
    (void)ctx;
}

void proc_notify(struct proc *p)
{
    if (p->up && p->listen != NULL && !p->notified) {
        p->notified = true;
        loop_post(p->loop, nothing, NULL);
    }
}

static void proc_main(void)
{
    struct proc *p = deep->cur;
    struct err err = ERR_INIT;
    const struct controller_config cfg = {
        .conninfo = deep->conninfo,
        .holder = p->id == 0   ? "one"
                  : p->id == 1 ? "two"
                               : "three",
        .job_prefix = DEEP_PREFIX,
        .observe_interval_us = deep->observe_us,
        .tick_interval_us = deep->tick_us,
        .lease_length_us = deep->lease_us,
        .lease_renew_us = deep->renew_us,
        .signature_window_us = deep->window_us,
        .quota_interval_us = deep->quota_us,
        .progress_interval_us = 10 * MINUTE,
        .create_rate = 2,
        .create_burst = 10,
    };
    if (!loop_new(&p->loop, &err) || !bridge_new(&p->bridge, &err) ||
        !controller_new(&cfg, p->loop, p->bridge, &p->status, &p->controller, &err)) {
        deep_die("a controller does not start: %s", err.message);
    }
    while (!p->stop) {
        yield_until(p, loop_pass(p->loop), true);
    }
    controller_free(p->controller);
    bridge_free(p->bridge);
    loop_free(p->loop);
    p->up = false;
    p->dying = true;
    trace("stopped in order");
    yield_until(p, DEEP_NEVER, false);
}

void proc_start(struct proc *p)
{
    if (p->stack == NULL) {
        p->stack =
            mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    p->up = true;
    p->stop = p->waiting = p->notified = p->dying = false;
    p->life++;
    p->gen++;
    p->frozen_until_us = 0;
    p->step_crash = 0;
    p->epoch = p->lease_asked_us = p->lease_until_us = 0;
    p->listen = NULL;
    memset(&p->status, 0, sizeof p->status);
    memset(p->stores, 0, sizeof p->stores);
    if (p->stack == MAP_FAILED || getcontext(&p->ctx) != 0) {
        deep_die("no room for a process");
    }
    p->ctx.uc_stack.ss_sp = p->stack;
    p->ctx.uc_stack.ss_size = STACK_BYTES;
    p->ctx.uc_link = &deep->main;
    makecontext(&p->ctx, proc_main, 0);
    trace("droverd %d starts", p->id);
    event_at(deep->now_us, proc_resume, p, p->gen);
}

void procs_free(void)
{
    for (int i = 0; i < deep->procs_n; i++) {
        if (deep->procs[i].stack != NULL) {
            (void)munmap(deep->procs[i].stack, STACK_BYTES);
        }
    }
}

void proc_kill(struct proc *p)
{
    if (!p->up) {
        return;
    }
    ASSERT(deep->cur == NULL);
    p->up = false;
    p->gen++;
    trace("droverd %d is killed", p->id);
    deep->crashes++;
    store_proc_gone(p);
    calls_proc_gone(p);
}

void proc_stop(struct proc *p)
{
    if (p->up && !p->stop) {
        p->stop = true;
        loop_post(p->loop, nothing, NULL);
    }
}

void proc_freeze(struct proc *p, int64_t us)
{
    if (p->up) {
        trace("droverd %d is frozen for %lld s", p->id, (long long)(us / SEC));
        p->frozen_until_us = MAX(p->frozen_until_us, deep->now_us + us);
    }
}

void proc_sleep(int64_t us)
{
    yield_until(deep->cur, deep->now_us + us, false);
}

_Noreturn void proc_die_here(const char *where)
{
    struct proc *p = deep->cur;
    trace("killed at %s", where);
    deep->crashes++;
    p->up = false;
    p->dying = true;
    yield_until(p, DEEP_NEVER, false);
    deep_die("a dead process runs on");
}

/* Up to three leases. */
void proc_freeze_here(const char *where)
{
    struct proc *p = deep->cur;
    int64_t us = between(&deep->rng_time, 1, 3 * deep->lease_us / SEC) * SEC;
    trace("frozen at %s for %lld s", where, (long long)(us / SEC));
    p->frozen_until_us = deep->now_us + us;
    store_frozen(p);
    proc_sleep(us);
    p->frozen_until_us = 0;
    trace("thaws");
}

void proc_step(const char *where)
{
    struct proc *p = deep->cur;
    if (p == NULL) {
        return;
    }
    if (deep->wrong) { /* nothing more is to be seen: back to the world for good */
        yield_until(p, DEEP_NEVER, false);
    }
    deep->now_us += between(&deep->rng_time, 50, 800);
    deep->hash = (deep->hash ^ (uint64_t)deep->now_us) * 1099511628211u;
    if (p->step_crash > 0 && --p->step_crash == 0) {
        proc_die_here(where);
    }
    if (fault(FAULT_FREEZE_STEP)) {
        proc_freeze_here(where);
    }
}
