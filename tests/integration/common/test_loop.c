/* Aim: the loop runs callbacks in the promised order, whatever they do to the loop meanwhile.
 * Method: real pipes, timers, threads and signals; every wait has a deadline. */
#include "common/clock.h"
#include "common/loop.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct loop *l;
static char trace[256];

static void note(const char *s)
{
    size_t n = strlen(trace);
    (void)snprintf(trace + n, sizeof trace - n, "%s", s);
}

static int start(void **state)
{
    (void)state;
    trace[0] = '\0';
    return loop_new(&l, NULL) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    loop_free(l);
    l = NULL;
    return 0;
}

/* Passes until *flag, at most five seconds. */
static void run_until(const int *n, int want)
{
    int64_t deadline_us = clock_mono_us() + 5 * USEC_PER_SEC;
    while (*n < want) {
        assert_true(clock_mono_us() < deadline_us);
        loop_run_once(l, 100 * USEC_PER_MSEC);
    }
}

struct tick {
    const char *name;
    int n;
    int again; /* re-arm with 0 so many times */
    struct loop_timer *t;
};

static void on_tick(void *ctx)
{
    struct tick *k = ctx;
    k->n++;
    note(k->name);
    if (k->again > 0) {
        k->again--;
        loop_timer_set(k->t, 0);
    }
}

static void test_timer__fire_in_order_of_time_then_of_arming(void **state)
{
    (void)state;
    struct tick k[5] = {{.name = "c"}, {.name = "a"}, {.name = "b"}, {.name = "e"}, {.name = "x"}};
    int64_t after_ms[5] = {30, 5, 10, 60, 20};
    for (size_t i = 0; i < 5; i++) {
        k[i].t = loop_timer_new(l, on_tick, &k[i]);
        loop_timer_set(k[i].t, after_ms[i] * USEC_PER_MSEC);
        assert_true(loop_timer_armed(k[i].t));
    }
    loop_timer_set(k[4].t, -1);
    assert_false(loop_timer_armed(k[4].t));
    int64_t from_us = clock_mono_us();
    run_until(&k[3].n, 1);
    assert_string_equal(trace, "abce");
    assert_true(clock_mono_us() - from_us >= 55 * USEC_PER_MSEC);
    assert_false(loop_timer_armed(k[0].t));
    for (size_t i = 0; i < 5; i++) {
        loop_timer_free(k[i].t);
    }
}

static void test_timer__a_thousand_random_ones_come_sorted(void **state)
{
    (void)state;
    static struct tick k[1000];
    static int64_t earliest[1000], latest[1000]; /* bounds of when it is due */
    unsigned seed = 7;
    for (size_t i = 0; i < 1000; i++) {
        k[i] = (struct tick){.name = ""};
        k[i].t = loop_timer_new(l, on_tick, &k[i]);
        int64_t after_us = (int64_t)(rand_r(&seed) % 40) * USEC_PER_MSEC;
        earliest[i] = clock_mono_us() + after_us;
        loop_timer_set(k[i].t, after_us);
        latest[i] = clock_mono_us() + after_us;
    }
    for (size_t i = 0; i < 1000; i += 3) {
        loop_timer_free(TAKE(k[i].t)); /* out of the middle of the heap */
    }
    int64_t deadline_us = clock_mono_us() + 5 * USEC_PER_SEC;
    size_t left = 0;
    do {
        loop_run_once(l, USEC_PER_MSEC);
        left = 0;
        int64_t left_by = INT64_MAX, fired_from = -1;
        for (size_t i = 0; i < 1000; i++) {
            if (k[i].t != NULL && k[i].n == 0) {
                left++;
                left_by = MIN(left_by, latest[i]);
            } else if (k[i].t != NULL) {
                assert_int_equal(k[i].n, 1);
                fired_from = MAX(fired_from, earliest[i]);
            }
        }
        assert_true(fired_from <= left_by);
    } while (left > 0 && clock_mono_us() < deadline_us);
    assert_int_equal(left, 0);
    for (size_t i = 0; i < 1000; i++) {
        assert_true(k[i].t != NULL || k[i].n == 0);
        loop_timer_free(k[i].t);
    }
}

static void on_readable(void *ctx, int fd, uint32_t events)
{
    int *n = ctx;
    char c;
    assert_true(events & (EPOLLIN | EPOLLHUP));
    assert_true(read(fd, &c, 1) >= 0);
    (*n)++;
    note("f");
}

static void test_timer__one_that_rearms_itself_does_not_starve_fds(void **state)
{
    (void)state;
    int p[2], read_n = 0;
    assert_int_equal(pipe(p), 0);
    struct tick k = {.name = "t", .again = 1000000};
    k.t = loop_timer_new(l, on_tick, &k);
    loop_timer_set(k.t, 0);
    struct loop_fd *f = loop_fd_add(l, p[0], EPOLLIN, on_readable, &read_n);
    assert_int_equal(write(p[1], "xy", 2), 2);
    for (int i = 0; i < 3; i++) {
        loop_run_once(l, USEC_PER_SEC);
    }
    assert_int_equal(read_n, 2);
    assert_in_range(k.n, 1, 3);
    loop_fd_del(l, f);
    loop_timer_free(k.t);
    (void)close(p[0]);
    (void)close(p[1]);
}

static void on_suicide(void *ctx)
{
    struct tick *k = ctx;
    k->n++;
    loop_timer_free(TAKE(k->t));
}

static void test_timer__may_free_itself(void **state)
{
    (void)state;
    struct tick k = {.name = ""};
    k.t = loop_timer_new(l, on_suicide, &k);
    loop_timer_set(k.t, 0);
    run_until(&k.n, 1);
    assert_null(k.t);
    loop_timer_free(NULL);
}

struct pair {
    int fds[2];
    struct loop_fd *f;
    struct pair *victim;
    int n;
};

static void on_kill_other(void *ctx, int fd, uint32_t events UNUSED)
{
    struct pair *p = ctx;
    char c;
    assert_int_equal(read(fd, &c, 1), 1);
    p->n++;
    if (p->victim->f != NULL) {
        loop_fd_del(l, TAKE(p->victim->f));
        (void)close(p->victim->fds[0]);
    }
}

static void test_fd__deleted_in_the_same_pass_is_not_called(void **state)
{
    (void)state;
    struct pair a = {.victim = NULL}, b = {.victim = &a};
    a.victim = &b;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, a.fds), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, b.fds), 0);
    a.f = loop_fd_add(l, a.fds[0], EPOLLIN, on_kill_other, &a);
    b.f = loop_fd_add(l, b.fds[0], EPOLLIN, on_kill_other, &b);
    assert_int_equal(write(a.fds[1], "x", 1), 1);
    assert_int_equal(write(b.fds[1], "x", 1), 1);
    loop_run_once(l, USEC_PER_SEC);
    loop_run_once(l, 0);
    assert_int_equal(a.n + b.n, 1);
    struct pair *alive = a.n ? &a : &b;
    loop_fd_del(l, alive->f);
    (void)close(alive->fds[0]);
    (void)close(a.fds[1]);
    (void)close(b.fds[1]);
    loop_fd_del(l, NULL);
}

static void on_writable(void *ctx, int fd UNUSED, uint32_t events)
{
    int *n = ctx;
    assert_true(events & EPOLLOUT);
    (*n)++;
}

static void test_fd__the_events_asked_for_can_be_changed(void **state)
{
    (void)state;
    int s[2], n = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    struct loop_fd *f = loop_fd_add(l, s[0], EPOLLIN, on_writable, &n);
    loop_run_once(l, 0);
    assert_int_equal(n, 0);
    loop_fd_mod(l, f, EPOLLOUT);
    loop_run_once(l, USEC_PER_SEC);
    assert_int_equal(n, 1);
    loop_fd_mod(l, f, EPOLLIN);
    loop_run_once(l, 0);
    assert_int_equal(n, 1);
    loop_fd_del(l, f);
    (void)close(s[0]);
    (void)close(s[1]);
}

static void on_pre(void *ctx UNUSED)
{
    note("<");
}

static void on_pass(void *ctx UNUSED)
{
    note(">");
}

static void on_later(void *p)
{
    note(p);
}

static char again_text[] = "d";

static void on_again(void *p)
{
    note(p);
    loop_defer(l, on_later, again_text);
}

static void test_pass__hook_fds_timers_hook_deferred(void **state)
{
    (void)state;
    int p[2], n = 0;
    char first[] = "D";
    assert_int_equal(pipe(p), 0);
    assert_int_equal(write(p[1], "x", 1), 1);
    struct tick k = {.name = "t"};
    k.t = loop_timer_new(l, on_tick, &k);
    loop_timer_set(k.t, 0);
    struct loop_fd *f = loop_fd_add(l, p[0], EPOLLIN, on_readable, &n);
    loop_set_pre_hook(l, on_pre, NULL);
    loop_set_pass_hook(l, on_pass, NULL);
    loop_defer(l, on_again, first);
    int64_t from_us = clock_mono_us();
    loop_run_once(l, 10 * USEC_PER_SEC);
    assert_string_equal(trace, "<ft>D");
    loop_run_once(l, 10 * USEC_PER_SEC); /* does not wait: deferred work is there */
    assert_string_equal(trace, "<ft>D<>d");
    assert_true(clock_mono_us() - from_us < 5 * USEC_PER_SEC);
    assert_in_range(loop_now_mono_us(l), clock_mono_us() - USEC_PER_SEC, clock_mono_us());
    loop_fd_del(l, f);
    loop_timer_free(k.t);
    (void)close(p[0]);
    (void)close(p[1]);
}

static void *stop_from_thread(void *arg)
{
    loop_wake(arg);
    loop_stop(arg);
    return NULL;
}

static void test_stop__comes_from_any_thread_and_run_can_be_called_again(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, stop_from_thread, l), 0);
        loop_run(l);
        assert_int_equal(pthread_join(t, NULL), 0);
    }
}

static int signals[65];

static void on_signal(void *ctx, int signo)
{
    signals[signo]++;
    (*(int *)ctx)++;
}

static void test_signal__arrives_in_the_loop(void **state)
{
    (void)state;
    int n = 0;
    assert_true(loop_signal(l, SIGUSR1, on_signal, &n, NULL));
    assert_true(loop_signal(l, SIGUSR2, on_signal, &n, NULL));
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    assert_int_equal(kill(getpid(), SIGUSR2), 0);
    assert_int_equal(n, 0);
    run_until(&n, 2);
    assert_int_equal(signals[SIGUSR1], 1);
    assert_int_equal(signals[SIGUSR2], 1);
    struct err err = ERR_INIT;
    assert_false(loop_signal(l, 9999, on_signal, &n, &err));
    assert_int_equal(err.code, ERR_INVALID);
}

static void test_free__with_timers_and_deferred_work_left(void **state)
{
    (void)state;
    struct loop *other = NULL;
    char text[] = "z";
    assert_true(loop_new(&other, NULL));
    struct tick k = {.name = "never"};
    k.t = loop_timer_new(other, on_tick, &k);
    loop_timer_set(k.t, 0);
    loop_defer(other, on_later, text);
    loop_free(other);
    assert_string_equal(trace, "z"); /* deferred frees are done, timers are not run */
    loop_timer_set(k.t, 0);
    assert_false(loop_timer_armed(k.t));
    loop_timer_free(k.t);
    loop_free(NULL);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)
    const struct CMUnitTest tests[] = {
        TEST(test_timer__fire_in_order_of_time_then_of_arming),
        TEST(test_timer__a_thousand_random_ones_come_sorted),
        TEST(test_timer__one_that_rearms_itself_does_not_starve_fds),
        TEST(test_timer__may_free_itself),
        TEST(test_fd__deleted_in_the_same_pass_is_not_called),
        TEST(test_fd__the_events_asked_for_can_be_changed),
        TEST(test_pass__hook_fds_timers_hook_deferred),
        TEST(test_stop__comes_from_any_thread_and_run_can_be_called_again),
        TEST(test_signal__arrives_in_the_loop),
        TEST(test_free__with_timers_and_deferred_work_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
