/* One epoll loop: file descriptors, timers, signals, deferred work. One thread owns it; only
 * loop_wake and loop_stop may be called from other threads. One pass: wait -> ready fds -> due
 * timers -> pass hook -> deferred frees. */
#pragma once
#include "err.h"
#include "units.h"

struct loop;
struct loop_fd;
struct loop_timer;
typedef void (*loop_fd_fn)(void *ctx, int fd, uint32_t epoll_events);
typedef void (*loop_timer_fn)(void *ctx);
typedef void (*loop_signal_fn)(void *ctx, int signo);

bool loop_new(struct loop **ret, struct err *err) MUST_CHECK;
void loop_free(struct loop *l);
/* Run until loop_stop; loop_run_once does one pass, waiting at most max_wait_us (-1: no bound). */
void loop_run(struct loop *l);
void loop_run_once(struct loop *l, int64_t max_wait_us);
void loop_stop(struct loop *l);
void loop_wake(struct loop *l);
/* Called once per pass, before any ready fd is handled: the leader checks its lease here. */
void loop_set_pre_hook(struct loop *l, void (*fn)(void *ctx), void *ctx);
/* Called once per pass, after fds and timers. */
void loop_set_pass_hook(struct loop *l, void (*fn)(void *ctx), void *ctx);

/* Watch an fd (level-triggered EPOLLIN etc.). The caller keeps the fd and calls loop_fd_del before
 * closing it. */
struct loop_fd *loop_fd_add(struct loop *l, int fd, uint32_t events, loop_fd_fn fn, void *ctx);
void loop_fd_mod(struct loop *l, struct loop_fd *f, uint32_t events);
void loop_fd_del(struct loop *l, struct loop_fd *f); /* safe from inside callbacks; NULL ignored */

struct loop_timer *loop_timer_new(struct loop *l, loop_timer_fn fn, void *ctx);
void loop_timer_set(struct loop_timer *t, int64_t after_us); /* arm once, or re-arm; < 0 disarms */
bool loop_timer_armed(const struct loop_timer *t);
void loop_timer_free(struct loop_timer *t); /* NULL ignored */
/* Block the signal for the process and deliver it here. Call before any thread starts. */
bool loop_signal(struct loop *l, int signo, loop_signal_fn fn, void *ctx,
                 struct err *err) MUST_CHECK;
/* Run fn(p) after the current pass. */
void loop_defer(struct loop *l, void (*fn)(void *p), void *p);
int64_t loop_now_mono_us(const struct loop *l); /* cached at the start of the pass */
