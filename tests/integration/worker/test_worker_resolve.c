/* Aim: a name is asked for once as long as its answer may be believed, no longer and no shorter
 * than the bounds; however many names are wanted, so many questions are open and no more; what
 * nobody wants any more is not asked. Method: a name server on the resolver's own loop that answers
 * when the test says so, with the time to live it says, and truncated when it says so, over UDP and
 * TCP; the clock is moved on by hand. */
#include "common/clock.h"
#include "download/fetch/resolve.h"
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#define QUESTION_MAX 512
#define HELD_MAX     1024
#define A            1
#define AAAA         28

static int64_t ahead_us; /* of the clock */
int64_t __real_clock_mono_us(void);
int64_t __wrap_clock_mono_us(void);
int64_t __wrap_clock_mono_us(void)
{
    return __real_clock_mono_us() + ahead_us;
}

struct question {
    uint8_t bytes[QUESTION_MAX];
    size_t n;
    struct sockaddr_in from;
};
struct world {
    struct loop *loop;
    struct resolver *r;
    struct loop_fd *watched;
    int fd, tcp; /* one port; tcp does not listen at first */
    bool silent; /* keep questions instead */
    uint32_t ttl_s;
    int rcode;
    bool only6;
    bool cut_empty, cut; /* truncated answers: without an address, with one */
    int asked4, asked6;
    struct question held[HELD_MAX];
    int held_n;
    int answers_n; /* that came to us */
    int others_n, others_ok;
    int stream, streamed; /* the connection over TCP, its answers */
    struct loop_fd *stream_watched;
    struct resolve_answer last;
};

static void answer(struct world *w, struct question *q)
{
    uint8_t *b = q->bytes;
    uint16_t type = (uint16_t)(b[q->n - 4] << 8 | b[q->n - 3]);
    bool has = w->rcode == 0 && !w->cut_empty && (type == AAAA || (type == A && !w->only6));
    uint8_t addr_n = type == A ? 4 : 16;
    b[2] = w->cut || w->cut_empty ? 0x83 : 0x81;
    b[3] = (uint8_t)(0x80 | w->rcode);
    b[7] = has ? 1 : 0;
    b[11] = 0; /* nothing additional */
    if (has) {
        uint8_t rr[28] = {0xc0,
                          12,
                          0,
                          (uint8_t)type,
                          0,
                          1,
                          (uint8_t)(w->ttl_s >> 24),
                          (uint8_t)(w->ttl_s >> 16),
                          (uint8_t)(w->ttl_s >> 8),
                          (uint8_t)w->ttl_s,
                          0,
                          addr_n,
                          1,
                          2,
                          3,
                          4};
        memcpy(b + q->n, rr, 12u + addr_n);
        q->n += 12u + addr_n;
    }
    ssize_t sent =
        sendto(w->fd, b, q->n, 0, (const struct sockaddr *)(const void *)&q->from, sizeof q->from);
    assert_int_equal(sent, q->n);
}

static void on_question(void *ctx, int fd, uint32_t events UNUSED)
{
    struct world *w = ctx;
    struct question q;
    socklen_t n = sizeof q.from;
    ssize_t got =
        recvfrom(fd, q.bytes, QUESTION_MAX - 40, 0, (struct sockaddr *)(void *)&q.from, &n);
    if (got < 17) {
        return;
    }
    size_t end = 12; /* cut what follows the question (EDNS) */
    while (q.bytes[end] != 0) {
        end += (size_t)q.bytes[end] + 1;
    }
    q.n = end + 5;
    assert_true(q.n <= (size_t)got);
    w->asked4 += q.bytes[q.n - 3] == A ? 1 : 0;
    w->asked6 += q.bytes[q.n - 3] == AAAA ? 1 : 0;
    if (w->silent) {
        assert_true(w->held_n < HELD_MAX);
        w->held[w->held_n++] = q;
    } else {
        answer(w, &q);
    }
}

/* A port for UDP whose TCP half is ours too, so that nobody else listens there. */
static void bind_both(struct world *w, struct sockaddr_in *at)
{
    socklen_t n = sizeof *at;
    for (int i = 0; i < 100; i++) {
        at->sin_port = 0;
        w->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_int_equal(bind(w->tcp, (const struct sockaddr *)(const void *)at, n), 0);
        assert_int_equal(getsockname(w->tcp, (struct sockaddr *)(void *)at, &n), 0);
        if (bind(w->fd, (const struct sockaddr *)(const void *)at, n) == 0) {
            return;
        }
        (void)close(w->tcp);
    }
    fail_msg("no port is free for UDP and TCP");
}

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    char server[40];
    int room = 4 << 20;
    ahead_us = 0;
    w->ttl_s = 60;
    w->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(w->fd >= 0);
    (void)setsockopt(w->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    bind_both(w, &at);
    (void)snprintf(server, sizeof server, "127.0.0.1:%d", ntohs(at.sin_port));
    assert_true(loop_new(&w->loop, NULL));
    assert_true(resolver_new(w->loop, server, &w->r, NULL));
    w->watched = loop_fd_add(w->loop, w->fd, EPOLLIN, on_question, w);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    resolver_free(w->r);
    loop_fd_del(w->loop, w->watched);
    loop_fd_del(w->loop, w->stream_watched);
    loop_free(w->loop);
    if (w->stream > 0) {
        (void)close(w->stream);
    }
    (void)close(w->fd);
    (void)close(w->tcp);
    free(w);
    return 0;
}

static void on_answer(void *ctx, const struct resolve_answer *got)
{
    struct world *w = ctx;
    w->answers_n++;
    w->last = *got;
}

static void pass(struct world *w)
{
    resolver_arm(w->r);
    loop_run_once(w->loop, 10 * USEC_PER_MSEC);
}

static void pass_until(struct world *w, const int *n, int wanted)
{
    int64_t end = __real_clock_mono_us() + 10 * USEC_PER_SEC;
    while (*n < wanted && __real_clock_mono_us() < end) {
        pass(w);
    }
    assert_int_equal(*n, wanted);
}

static void look_up(struct world *w, const char *name)
{
    int before = w->answers_n;
    resolver_lookup(w->r, name, on_answer, w);
    pass_until(w, &w->answers_n, before + 1);
}

/* So long is an answer with that time to live believed. */
static void believed_for(struct world *w, uint32_t ttl_s, int rcode, int64_t s)
{
    static int serial;
    char name[40];
    (void)snprintf(name, sizeof name, "n%d.test", serial++);
    w->ttl_s = ttl_s;
    w->rcode = rcode;
    look_up(w, name);
    int asked = w->asked4;
    ahead_us += (s - 1) * USEC_PER_SEC;
    look_up(w, name);
    assert_int_equal(w->asked4, asked);
    ahead_us += USEC_PER_SEC + 1;
    look_up(w, name);
    assert_int_equal(w->asked4, asked + 1);
}

static void test_worker_resolve__answers_are_believed_for_their_time(void **state)
{
    struct world *w = *state;
    believed_for(w, 100, 0, 100);
    believed_for(w, 31, 0, 31);
    believed_for(w, 0, 0, 30);      /* at least: it would be asked for at each URL */
    believed_for(w, 86400, 0, 300); /* at most */
    believed_for(w, 100, 3, 20);    /* no such name */
    assert_int_equal(w->last.status, RESOLVE_NO_NAME);
}

static void test_worker_resolve__so_many_questions_are_open_and_no_more(void **state)
{
    struct world *w = *state;
    char name[40];
    w->silent = true;
    for (int i = 0; i < 600; i++) {
        (void)snprintf(name, sizeof name, "m%d.test", i);
        resolver_lookup(w->r, name, on_answer, w);
    }
    pass_until(w, &w->asked4, RESOLVE_LOOKUPS_MAX);
    for (int i = 0; i < 5; i++) {
        pass(w);
    }
    assert_int_equal(w->asked4, RESOLVE_LOOKUPS_MAX);
    assert_false(resolver_is_queued(w->r, "m0.test"));
    assert_false(resolver_is_queued(w->r, "m255.test"));
    assert_true(resolver_is_queued(w->r, "m256.test"));
    assert_true(resolver_is_queued(w->r, "m599.test"));
    for (int i = 0; i < 10; i++) {
        answer(w, &w->held[i]); /* each that ends lets the next go */
    }
    pass_until(w, &w->asked4, RESOLVE_LOOKUPS_MAX + 10);
    w->silent = false;
    for (int i = 10; i < w->held_n; i++) {
        answer(w, &w->held[i]);
    }
    pass_until(w, &w->answers_n, 600);
    assert_int_equal(w->asked4, 600);
}

static void test_worker_resolve__one_question_for_all_who_ask(void **state)
{
    struct world *w = *state;
    w->silent = true;
    for (int i = 0; i < 50; i++) {
        resolver_lookup(w->r, "same.test", on_answer, w);
    }
    pass_until(w, &w->held_n, 1);
    answer(w, &w->held[0]);
    pass_until(w, &w->answers_n, 50);
    assert_int_equal(w->asked4, 1);
    assert_int_equal(w->asked6, 0); /* it has an address */
    assert_int_equal(w->last.status, RESOLVE_OK);
    assert_int_equal(w->last.n, 1);
    assert_int_equal(w->last.addrs[0].family, AF_INET);
    assert_memory_equal(w->last.addrs[0].b, "\1\2\3\4", 4);
}

static void test_worker_resolve__ipv6_is_asked_for_where_there_is_no_ipv4(void **state)
{
    struct world *w = *state;
    w->only6 = true;
    look_up(w, "six.test");
    assert_int_equal(w->asked4, 2); /* the second: was the empty answer truncated? */
    assert_int_equal(w->asked6, 1);
    assert_int_equal(w->last.n, 1);
    assert_int_equal(w->last.addrs[0].family, AF_INET6);
}

static void test_worker_resolve__what_nobody_wants_is_not_asked(void **state)
{
    struct world *w = *state;
    char name[40];
    w->silent = true;
    for (int i = 0; i < RESOLVE_LOOKUPS_MAX + 50; i++) {
        (void)snprintf(name, sizeof name, "c%d.test", i);
        resolver_lookup(w->r, name, on_answer, w);
    }
    pass_until(w, &w->asked4, RESOLVE_LOOKUPS_MAX);
    for (int i = RESOLVE_LOOKUPS_MAX; i < RESOLVE_LOOKUPS_MAX + 49; i++) {
        (void)snprintf(name, sizeof name, "c%d.test", i);
        resolver_cancel(w->r, name, w);
    }
    resolver_cancel(w->r, "c0.test", w);
    resolver_cancel(w->r, "unheard-of.test", w);
    w->silent = false;
    for (int i = 0; i < w->held_n; i++) {
        answer(w, &w->held[i]);
    }
    pass_until(w, &w->answers_n, RESOLVE_LOOKUPS_MAX); /* all but c0, and the last one */
    assert_int_equal(w->asked4, RESOLVE_LOOKUPS_MAX + 1);
    look_up(w, "c256.test"); /* who comes later is answered */
    assert_int_equal(w->last.status, RESOLVE_OK);
}

/* Opens the name server's TCP port and answers each question there. */
static void on_stream(void *ctx, int fd, uint32_t events UNUSED)
{
    struct world *w = ctx;
    uint8_t b[2 + QUESTION_MAX];
    ssize_t got = recv(fd, b, sizeof b - 40, 0);
    if (got < 2 + 17) {
        return; /* closed: the end of the test closes ours */
    }
    size_t end = 2 + 12;
    while (b[end] != 0) {
        end += (size_t)b[end] + 1;
    }
    static const uint8_t rr[16] = {0xc0, 12, 0, A, 0, 1, 0, 0, 1, 0, 0, 4, 9, 8, 7, 6};
    end += 5;
    memcpy(b + end, rr, sizeof rr);
    end += sizeof rr;
    b[0] = (uint8_t)((end - 2) >> 8);
    b[1] = (uint8_t)(end - 2);
    b[4] = 0x81;
    b[5] = 0x80;
    b[9] = 1;
    b[13] = 0;
    assert_int_equal(send(fd, b, end, 0), end);
    w->streamed++;
}

static void on_connect(void *ctx, int fd, uint32_t events UNUSED)
{
    struct world *w = ctx;
    assert_int_equal(w->stream, 0);
    w->stream = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(w->stream > 0);
    w->stream_watched = loop_fd_add(w->loop, w->stream, EPOLLIN, on_stream, w);
}

static void passes(struct world *w, int n)
{
    for (int i = 0; i < n; i++) {
        pass(w);
    }
}

static void on_other(void *ctx, const struct resolve_answer *got)
{
    struct world *w = ctx;
    w->others_ok += got->status == RESOLVE_OK ? 1 : 0;
    w->others_n++;
}

/* Nobody listens on TCP: only the name whose answer was cut has no address. */
static void test_worker_resolve__a_cut_answer_fails_its_own_name(void **state)
{
    struct world *w = *state;
    char name[40];
    w->silent = true;
    for (int i = 0; i < 200; i++) {
        (void)snprintf(name, sizeof name, "t%d.test", i);
        resolver_lookup(w->r, name, on_other, w);
    }
    pass_until(w, &w->asked4, 200);
    w->silent = false;
    w->cut_empty = true;
    for (int i = 0; i < 4; i++) {
        (void)snprintf(name, sizeof name, "cut%d.test", i);
        resolver_lookup(w->r, name, on_answer, w);
    }
    for (int i = 0; i < 12 && w->answers_n < 4; i++) {
        passes(w, 5);
        ahead_us += USEC_PER_SEC; /* a refused connection is tried again after a while */
    }
    assert_int_equal(w->answers_n, 4);
    assert_int_equal(w->last.status, RESOLVE_TEMPORARY);
    assert_int_equal(w->others_n, 0);
    w->cut_empty = false;
    for (int i = 0; i < w->held_n; i++) {
        answer(w, &w->held[i]);
    }
    pass_until(w, &w->others_n, 200);
    assert_int_equal(w->others_ok, 200);
}

static void test_worker_resolve__a_cut_answer_is_asked_for_over_tcp(void **state)
{
    struct world *w = *state;
    assert_int_equal(listen(w->tcp, 8), 0);
    struct loop_fd *watched = loop_fd_add(w->loop, w->tcp, EPOLLIN, on_connect, w);
    w->cut_empty = true;
    look_up(w, "cut.test");
    for (int i = 0; i < 5 && w->last.status != RESOLVE_OK; i++) {
        ahead_us += 60 * USEC_PER_SEC; /* a busy machine answered too late */
        look_up(w, "cut.test");
    }
    assert_int_equal(w->last.status, RESOLVE_OK);
    assert_memory_equal(w->last.addrs[0].b, "\x9\x8\x7\x6", 4);
    int streamed = w->streamed;
    assert_true(streamed >= 1);
    w->cut_empty = false;
    w->cut = true;
    look_up(w, "part.test"); /* with an address: that will do */
    assert_int_equal(w->last.status, RESOLVE_OK);
    assert_memory_equal(w->last.addrs[0].b, "\1\2\3\4", 4);
    assert_int_equal(w->streamed, streamed);
    loop_fd_del(w->loop, watched);
}

/* The server's port is closed for a moment while many questions are open. */
static void test_worker_resolve__names_of_a_broken_socket_are_asked_again(void **state)
{
    struct world *w = *state;
    struct sockaddr_in at;
    socklen_t n = sizeof at;
    char name[40];
    assert_int_equal(getsockname(w->fd, (struct sockaddr *)(void *)&at, &n), 0);
    w->silent = true;
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof name, "b%d.test", i);
        resolver_lookup(w->r, name, on_other, w);
    }
    pass_until(w, &w->asked4, 100);
    loop_fd_del(w->loop, w->watched);
    (void)close(w->fd);
    for (int i = 100; i < 120; i++) { /* each of these breaks the socket of all */
        (void)snprintf(name, sizeof name, "b%d.test", i);
        resolver_lookup(w->r, name, on_other, w);
        passes(w, 2);
    }
    assert_int_equal(w->others_n, 0);
    w->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(w->fd, (const struct sockaddr *)(const void *)&at, sizeof at), 0);
    w->watched = loop_fd_add(w->loop, w->fd, EPOLLIN, on_question, w);
    w->silent = false;
    ahead_us += 2 * USEC_PER_SEC;
    for (int i = 0; i < 2000 && w->others_n < 120; i++) {
        pass(w); /* one question each */
    }
    assert_int_equal(w->others_n, 120);
    assert_int_equal(w->others_ok, 120);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_worker_resolve__answers_are_believed_for_their_time,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_worker_resolve__so_many_questions_are_open_and_no_more,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_worker_resolve__one_question_for_all_who_ask, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            test_worker_resolve__ipv6_is_asked_for_where_there_is_no_ipv4, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_worker_resolve__what_nobody_wants_is_not_asked, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_worker_resolve__a_cut_answer_fails_its_own_name,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_worker_resolve__a_cut_answer_is_asked_for_over_tcp,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_worker_resolve__names_of_a_broken_socket_are_asked_again, set_up, tear_down),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
