/* Aim: a name server that does not answer holds up neither the loop nor the end of the client.
 * Method: this program's own getaddrinfo, which curl's resolver thread finds first, hangs until it
 * is let go; the passes of the loop are timed. */
#include "common/clock.h"
#include "common/http.h"
#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int asked_n, answered_n;
static bool may_answer;

int getaddrinfo(const char *name UNUSED, const char *service UNUSED,
                const struct addrinfo *hints UNUSED, struct addrinfo **ret UNUSED)
{
    pthread_mutex_lock(&mu);
    asked_n++;
    pthread_cond_broadcast(&changed);
    while (!may_answer) {
        pthread_cond_wait(&changed, &mu);
    }
    answered_n++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mu);
    return EAI_AGAIN;
}

/* Let all go and wait till they went: their threads must not meet a program that has ended. */
static void answer_all(void)
{
    pthread_mutex_lock(&mu);
    may_answer = true;
    pthread_cond_broadcast(&changed);
    while (answered_n < asked_n) {
        pthread_cond_wait(&changed, &mu);
    }
    pthread_mutex_unlock(&mu);
}

/* Should the loop wait for the resolver after all, this ends the wait, and the test fails by time.
 */
static void *watchdog(void *arg UNUSED)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5;
    pthread_mutex_lock(&mu);
    while (!may_answer && pthread_cond_timedwait(&changed, &mu, &until) == 0) {
    }
    may_answer = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mu);
    return NULL;
}

struct got {
    int n;
    bool ok, sent;
    enum err_code code;
};

static void on_reply(void *ctx, const struct http_reply *r)
{
    struct got *g = ctx;
    *g = (struct got){g->n + 1, r->ok, r->sent, r->err.code};
}

static void test_dns__a_silent_name_server_does_not_hold_the_loop(void **state)
{
    (void)state;
    pthread_t dog;
    assert_int_equal(pthread_create(&dog, NULL, watchdog, NULL), 0);
    struct loop *l = NULL;
    struct http *h = NULL;
    assert_true(loop_new(&l, NULL));
    assert_true(http_new(l, &h, NULL));
    struct http_request q = {.method = "POST",
                             .url = "http://silent.example/",
                             .reply_max = 100,
                             .connect_timeout_us = 300 * USEC_PER_MSEC};
    struct got g = {.n = 0}, cancelled = {.n = 0};
    (void)http_send(h, &q, on_reply, &g);
    q.connect_timeout_us = 60 * USEC_PER_SEC;
    struct http_req *r = http_send(h, &q, on_reply, &cancelled);
    (void)http_send(h, &q, on_reply, &cancelled); /* left for http_free */
    int64_t from_us = clock_mono_us();
    int64_t longest_us = 0;
    while (g.n == 0 && clock_mono_us() - from_us < 60 * USEC_PER_SEC) {
        int64_t pass_us = clock_mono_us();
        loop_run_once(l, 10 * USEC_PER_MSEC);
        longest_us = MAX(longest_us, clock_mono_us() - pass_us);
    }
    http_cancel(r);
    http_free(h);
    loop_free(l);
    int64_t took_us = clock_mono_us() - from_us;
    assert_int_equal(g.n, 1);
    assert_true(!g.ok && !g.sent);
    assert_int_equal(g.code, ERR_TIMEOUT);
    assert_int_equal(cancelled.n, 0);
    assert_true(asked_n >= 1);
    assert_true(longest_us < 4 * USEC_PER_SEC);
    assert_true(took_us < 30 * USEC_PER_SEC);
    answer_all();
    assert_int_equal(pthread_join(dog, NULL), 0);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dns__a_silent_name_server_does_not_hold_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
