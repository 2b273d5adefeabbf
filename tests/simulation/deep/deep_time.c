/* Virtual time: the events of the world in order of instant and arrival, the clocks that
 * droverd's objects are linked against, and each droverd's loop thread as a coroutine, which
 * runs until it waits, freezes or dies. The real time is never read. */
#include "common/clock.h"
#include "common/heap.h"
#include "deep.h"
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#define STACK_BYTES (1024 * 1024)

struct world *deep;

void (*deep_last_words)(const char *text);

void deep_die(const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    (void)fprintf(stderr, "deep: %s\n", text);
    if (deep_last_words != NULL) {
        deep_last_words(text);
    }
    exit(3);
}

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

static bool before(const struct event *a, const struct event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->seq < b->seq;
}
#define BEFORE(ctx, a, b) before(a, b)
HEAP_DEFINE(event, struct event, void *, BEFORE, HEAP_PUT);

void event_at(int64_t at_us, void (*fn)(void *ctx, int64_t arg), void *ctx, int64_t arg)
{
    struct world *w = deep;
    if (w->heap_n == w->heap_cap) {
        w->heap_cap = MAX(256, w->heap_cap * 2);
        w->heap = xrealloc(w->heap, w->heap_cap * sizeof *w->heap);
    }
    struct event e = {
        .at_us = MAX(at_us, w->now_us), .seq = w->seq++, .fn = fn, .ctx = ctx, .arg = arg};
    w->heap[w->heap_n] = e;
    event_up(NULL, w->heap, w->heap_n++);
}

bool event_next(void)
{
    struct world *w = deep;
    if (w->heap_n == 0) {
        return false;
    }
    struct event top = w->heap[0];
    w->heap[0] = w->heap[--w->heap_n];
    event_down(NULL, w->heap, w->heap_n, 0);
    w->now_us = MAX(w->now_us, top.at_us);
    if (w->days > 0) {
        days_clock_now();
    }
    top.fn(top.ctx, top.arg);
    return true;
}

usec_t wall_now(void)
{
    return DEEP_EPOCH_US + deep->epoch_ahead_us + deep->now_us;
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

void proc_wake(struct proc *p)
{
    if (p->waiting) {
        p->gen++;
        event_at(deep->now_us, proc_resume, p, p->gen);
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
        /* Of some with what no job's name may have. */
        .job_prefix = deep->seed % 3 == 0 ? DEEP_PREFIX "_" : DEEP_PREFIX,
        .observe_interval_us = deep->observe_us,
        .tick_interval_us = deep->tick_us,
        .lease_length_us = p->lease_us,
        .lease_renew_us = p->lease_us / 3,
        .signature_window_us = deep->window_us,
        .quota_interval_us = deep->quota_us,
        .progress_interval_us = 10 * MINUTE,
        .invocation_interval_us = 10 * MINUTE,
        .invocation_delay_us = 5 * MINUTE,
        .archive_after_days = deep->days > 0 ? 2 : 0,
        .create_rate = deep->create_rate,
        .create_burst = deep->create_burst,
        .paid_ppm = 1000000,
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
    p->bridge = NULL;
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
    if (deep->wrong) { /* the process has ended: never resumed */
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
