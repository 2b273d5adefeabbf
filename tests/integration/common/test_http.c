/* Aim: the HTTP client tells exactly what happened: a complete answer, none, and above all whether
 * a byte of the request can have reached the other side; and nothing a server does costs unbounded
 * memory or time. Method: the hostile server, sockets that do not answer, and counts kept by the
 * server of what really arrived. */
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/http.h"
#include "tests/kit/hostile.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

#include <cmocka.h>

static struct hostile server;
static struct loop *l;
static struct http *h;

struct got {
    int n;
    bool ok, sent;
    int status;
    enum err_code code;
    struct buf body, headers;
    size_t body_cap;
    int64_t duration_us;
};

static void on_reply(void *ctx, const struct http_reply *r)
{
    struct got *g = ctx;
    g->n++;
    g->ok = r->ok;
    g->sent = r->sent;
    g->status = r->status;
    g->code = r->err.code;
    g->duration_us = r->duration_us;
    g->body_cap = r->body.cap;
    assert_int_equal(r->ok, r->err.code == ERR_NONE);
    buf_add_str(&g->body, buf_str(&r->body));
    buf_add_str(&g->headers, buf_str(&r->headers));
}

static void got_init(struct got *g)
{
    *g = (struct got){.n = 0};
    buf_init(&g->body, 64 << 20);
    buf_init(&g->headers, 1 << 20);
}

static void got_done(struct got *g)
{
    buf_done(&g->body);
    buf_done(&g->headers);
}
#define AUTO_GOT                                                                                   \
    CLEANUP(got_done)                                                                              \
    struct got

static void run_until(const int *n, int want)
{
    int64_t deadline_us = clock_mono_us() + 20 * USEC_PER_SEC;
    while (*n < want) {
        assert_true(clock_mono_us() < deadline_us);
        loop_run_once(l, 200 * USEC_PER_MSEC);
    }
}

/* One request to the end. */
static void ask(const char *method, const char *path, struct http_request q, struct got *g)
{
    AUTO_FREE char *url = hostile_url(&server, path);
    q.method = method;
    q.url = q.url != NULL ? q.url : url;
    q.reply_max = q.reply_max > 0 ? q.reply_max : (size_t)1 << 20;
    q.timeout_us = q.timeout_us > 0 ? q.timeout_us : 10 * USEC_PER_SEC;
    got_init(g);
    struct http_req *r = http_send(h, &q, on_reply, g);
    assert_non_null(r);
    assert_int_equal(g->n, 0);
    run_until(&g->n, 1);
    loop_run_once(l, 0);
    assert_int_equal(g->n, 1);
    assert_int_equal(http_in_flight(h), 0);
}

static int start(void **state)
{
    (void)state;
    return loop_new(&l, NULL) && http_new(l, &h, NULL) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    http_free(h);
    loop_free(l);
    return 0;
}

static void test_http__a_good_answer_is_whole(void **state)
{
    (void)state;
    AUTO_GOT g;
    ask("GET", "/ok", (struct http_request){0}, &g);
    assert_true(g.ok && g.sent);
    assert_int_equal(g.status, 200);
    assert_string_equal(buf_cstr(&g.body), "hello");
    assert_true(g.duration_us > 0);
    struct http_reply r = {.headers = g.headers};
    assert_true(str_eq_cstr(http_reply_header(&r, "x-TEST"), "padded"));
    assert_int_equal(http_reply_header(&r, "absent").n, 0);
    assert_int_equal(http_reply_header(&r, "x-tes").n, 0);
}

static void test_http__methods_and_bodies_go_out_as_given(void **state)
{
    (void)state;
    static const struct {
        const char *method, *body;
        const char *want; /* in the echoed request */
    } rows[] = {
        {"GET", NULL, "GET /echo?q=%2F\n"},
        {"DELETE", NULL, "DELETE /echo?q=%2F\n"},
        {"PUT", "body bytes", "content-length: 10\n"},
        {"PUT", NULL, "content-length: 0\n"},
        {"POST", NULL, "content-length: 0\n"},
        {"POST", "{}", "content-length: 2\n"},
        {"PATCH", "x", "PATCH /echo?q=%2F\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_GOT g;
        ask(rows[i].method, "/echo?q=%2F", (struct http_request){.body = str_of(rows[i].body)}, &g);
        assert_true(g.ok);
        const char *b = buf_cstr(&g.body);
        assert_non_null(strstr(b, rows[i].want));
        assert_true(str_ends(buf_str(&g.body), rows[i].body != NULL ? rows[i].body : "\n"));
        assert_null(strstr(b, "expect:"));
        assert_null(strstr(b, "content-type:"));
        assert_null(strstr(b, "accept-encoding:"));
    }
    AUTO_GOT g;
    ask("HEAD", "/echo", (struct http_request){0}, &g);
    assert_true(g.ok);
    assert_int_equal(g.body.n, 0);
}

static void test_http__headers_are_sent_even_empty_ones(void **state)
{
    (void)state;
    struct http_header hd[] = {{"X-One", "a: b"},
                               {"X-Empty", ""},
                               {"Content-Type", "text/x"},
                               {"Host", "other.example:81"}};
    AUTO_GOT g;
    ask("POST", "/echo", (struct http_request){.headers = hd, .headers_n = 4, .body = STR("z")},
        &g);
    assert_non_null(strstr(buf_cstr(&g.body), "\nx-one: a: b\n"));
    assert_non_null(strstr(buf_cstr(&g.body), "\nx-empty: \n"));
    assert_non_null(strstr(buf_cstr(&g.body), "content-type: text/x\n"));
    assert_non_null(strstr(buf_cstr(&g.body), "\nhost: other.example:81\n"));
}

static void test_http__dot_segments_are_not_touched(void **state)
{
    (void)state;
    AUTO_GOT g;
    ask("GET", "/echo/a/../b/./c//d", (struct http_request){0}, &g);
    assert_true(str_starts(buf_str(&g.body), "GET /echo/a/../b/./c//d\n"));
}

static void test_http__a_taken_body_is_freed_by_the_client(void **state)
{
    (void)state;
    AUTO_GOT g;
    struct http_request q = {.body_take = xstrdup("taken"), .body = {NULL, 5}};
    ask("PUT", "/echo", q, &g);
    assert_true(str_ends(buf_str(&g.body), "\ntaken"));
}

static void test_http__an_answer_of_any_status_is_an_answer(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int status;
        const char *body;
    } rows[] = {
        {"/html/502", 502, "<html>"}, {"/html/403", 403, "<html>"}, {"/redirect", 302, ""},
        {"/err200", 200, "<Error>"},  {"/empty", 200, ""},          {"/continue", 200, "{}"},
        {"/gzip", 200, "\x1f\x8b"},   {"/chunk-tiny", 200, "{}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_GOT g;
        ask("GET", rows[i].path, (struct http_request){0}, &g);
        assert_true(g.ok && g.sent);
        assert_int_equal(g.status, rows[i].status);
        assert_true(str_starts(buf_str(&g.body), rows[i].body));
        assert_null(strstr(buf_cstr(&g.headers), "X-Early")); /* of the final answer only */
    }
}

static void test_http__two_hundred_at_once(void **state)
{
    (void)state;
    AUTO_GOT g;
    got_init(&g);
    AUTO_FREE char *url = hostile_url(&server, "/ok");
    struct http_request q = {.method = "GET", .url = url, .reply_max = 100};
    for (int i = 0; i < 200; i++) {
        (void)http_send(h, &q, on_reply, &g);
    }
    assert_int_equal(http_in_flight(h), 200);
    run_until(&g.n, 200);
    assert_int_equal(g.body.n, 200 * 5);
}

static void test_http__a_proxy_is_not_for_this_machine(void **state)
{
    (void)state;
    AUTO_FREE char *closed = xasprintf("http://127.0.0.1:%d", hostile_closed_port());
    assert_int_equal(setenv("http_proxy", closed, 1), 0);
    AUTO_GOT g;
    ask("GET", "/ok", (struct http_request){0}, &g);
    AUTO_GOT g2;
    ask("GET", "/", (struct http_request){.url = "http://far.invalid/"}, &g2);
    assert_int_equal(unsetenv("http_proxy"), 0);
    assert_true(g.ok);
    assert_true(!g2.ok && !g2.sent); /* others go to the proxy, which is not there */
}

static void test_unsent__refused_connection(void **state)
{
    (void)state;
    AUTO_FREE char *url = xasprintf("http://127.0.0.1:%d/", hostile_closed_port());
    AUTO_GOT g;
    ask("POST", "/", (struct http_request){.url = url, .body = STR("x")}, &g);
    assert_true(!g.ok && !g.sent);
    assert_int_equal(g.code, ERR_NETWORK);
}

static void test_unsent__unknown_host(void **state)
{
    (void)state;
    AUTO_GOT g;
    struct http_request q = {.url = "http://nobody.invalid/",
                             .connect_timeout_us = 3 * USEC_PER_SEC};
    ask("POST", "/", q, &g);
    assert_true(!g.ok && !g.sent);
}

/* A listener whose queue is full: connecting hangs. */
static void test_unsent__connect_times_out(void **state)
{
    (void)state;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    AUTO_FD int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, n), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    int fill[4];
    for (size_t i = 0; i < ARRAY_LEN(fill); i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(fill[i], (struct sockaddr *)&a, n);
    }
    AUTO_FREE char *url = xasprintf("http://127.0.0.1:%d/", ntohs(a.sin_port));
    AUTO_GOT g;
    ask("POST", "/", (struct http_request){.url = url, .connect_timeout_us = 300000}, &g);
    assert_true(!g.ok && !g.sent && g.code == ERR_TIMEOUT);
    for (size_t i = 0; i < ARRAY_LEN(fill); i++) {
        (void)close(fill[i]);
    }
}

static bool say_no(void *ctx UNUSED)
{
    return false;
}

static void test_unsent__may_send_has_the_last_word(void **state)
{
    (void)state;
    AUTO_GOT g;
    ask("POST", "/guarded", (struct http_request){.may_send = say_no, .body = STR("x")}, &g);
    assert_true(!g.ok && !g.sent);
    assert_int_equal(hostile_count(&server, "POST /guarded"), 0);
    AUTO_GOT g2;
    ask("POST", "/guarded", (struct http_request){.body = STR("x")}, &g2);
    assert_true(g2.ok);
    assert_int_equal(hostile_count(&server, "POST /guarded"), 1);
}

static void test_unsent__what_curl_will_not_take(void **state)
{
    (void)state;
    struct http_header split[] = {{"X-A", "b\r\nX-Evil: 1"}};
    struct http_header split_name[] = {{"X-A: 1\nX", "b"}};
    struct http_request rows[] = {
        {.headers = split, .headers_n = 1},
        {.headers = split_name, .headers_n = 1},
        {.url = "file:///etc/passwd"},
        {.url = "gopher://127.0.0.1:1/"},
        {.url = "http://"},
        {.url = "not an address"},
        {.url = ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_GOT g;
        ask("GET", "/never", rows[i], &g);
        assert_true(!g.ok && !g.sent);
    }
    assert_int_equal(hostile_count(&server, "GET /never"), 0);
}

static void test_sent__every_broken_answer_is_no_answer(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "/reset-before", "/reset-mid", "/close-mid",  "/close-empty",
        "/chunk-bad",    "/chunk-cut", "/chunk-huge", "/not-http",
    };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        AUTO_GOT g;
        ask("POST", paths[i], (struct http_request){.body = STR("x")}, &g);
        if (g.ok || !g.sent || g.code != ERR_NETWORK) {
            fail_msg("%s: ok %d sent %d code %s", paths[i], g.ok, g.sent, err_code_name(g.code));
        }
        AUTO_FREE char *key = xasprintf("POST %s", paths[i]);
        assert_int_equal(hostile_count(&server, key), 1);
    }
}

static void test_sent__silence_and_trickles_end_by_time(void **state)
{
    (void)state;
    AUTO_GOT g;
    ask("POST", "/silent", (struct http_request){.timeout_us = 300 * USEC_PER_MSEC}, &g);
    assert_true(!g.ok && g.sent);
    assert_int_equal(g.code, ERR_TIMEOUT);
    assert_in_range(g.duration_us, 290 * USEC_PER_MSEC, 5 * USEC_PER_SEC);
    AUTO_GOT g2;
    ask("GET", "/slow", (struct http_request){.stall_timeout_us = USEC_PER_SEC}, &g2);
    assert_true(!g2.ok && g2.sent);
    assert_int_equal(g2.code, ERR_TIMEOUT);
    assert_in_range(g2.duration_us, USEC_PER_SEC / 2, 6 * USEC_PER_SEC);
}

static void test_sent__bodies_and_headers_are_bounded(void **state)
{
    (void)state;
    static const char *const paths[] = {"/big", "/endless", "/endless-headers"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        AUTO_GOT g;
        ask("GET", paths[i], (struct http_request){.reply_max = 100000}, &g);
        assert_true(!g.ok && g.sent);
        assert_int_equal(g.code, ERR_TOO_LARGE);
        assert_true(g.body_cap <= 2 * 100000 + 64);
        assert_true(g.headers.n <= 64 * 1024);
    }
    AUTO_GOT g;
    ask("GET", "/big", (struct http_request){.reply_max = 10000000}, &g);
    assert_true(g.ok); /* exactly as much as allowed */
    AUTO_GOT g2;
    ask("GET", "/big", (struct http_request){.reply_max = 9999999}, &g2);
    assert_int_equal(g2.code, ERR_TOO_LARGE);
}

static int ask_on_used_connection(const char *method, bool fresh, struct got *g, const char *key)
{
    AUTO_GOT first;
    ask("GET", "/ok", (struct http_request){0}, &first);
    assert_true(first.ok);
    int before = hostile_count(&server, key);
    ask(method, "/dead-on-reuse", (struct http_request){.fresh_connection = fresh}, g);
    return hostile_count(&server, key) - before;
}

static void test_reuse__get_is_repeated_post_never(void **state)
{
    (void)state;
    AUTO_GOT get;
    assert_int_equal(ask_on_used_connection("GET", false, &get, "GET /dead-on-reuse"), 2);
    assert_true(get.ok);
    AUTO_GOT post;
    assert_int_equal(ask_on_used_connection("POST", false, &post, "POST /dead-on-reuse"), 1);
    assert_true(!post.ok && post.sent);
    assert_int_equal(post.code, ERR_NETWORK);
    AUTO_GOT put;
    assert_int_equal(ask_on_used_connection("PUT", false, &put, "PUT /dead-on-reuse"), 1);
    assert_true(!put.ok && put.sent);
}

static void test_reuse__a_fresh_connection_is_asked_for(void **state)
{
    (void)state;
    AUTO_GOT post;
    assert_int_equal(ask_on_used_connection("POST", true, &post, "POST /dead-on-reuse"), 1);
    assert_true(post.ok);
}

struct body_sink {
    struct got g; /* first: on_reply's context too */
    size_t bytes_n;
    size_t stop_after;
    struct http_req *cancel; /* cancelled from inside */
    bool send_more;
    struct got more;
    char *url;
};

static bool on_data(void *ctx, struct str data)
{
    struct body_sink *s = ctx;
    s->bytes_n += data.n;
    if (s->send_more) { /* a new request from inside curl's callback */
        s->send_more = false;
        struct http_request q = {.method = "GET", .url = s->url, .reply_max = 100};
        (void)http_send(h, &q, on_reply, &s->more);
    }
    if (s->cancel != NULL) {
        http_cancel(TAKE(s->cancel));
    }
    return s->stop_after == 0 || s->bytes_n < s->stop_after;
}

static void sink_init(struct body_sink *s)
{
    *s = (struct body_sink){.bytes_n = 0};
    got_init(&s->g);
    got_init(&s->more);
}

static void sink_done(struct body_sink *s)
{
    got_done(&s->g);
    got_done(&s->more);
    free(s->url);
}
#define AUTO_SINK                                                                                  \
    CLEANUP(sink_done)                                                                             \
    struct body_sink

static struct http_req *stream(struct body_sink *s, const char *path)
{
    AUTO_FREE char *url = hostile_url(&server, path);
    struct http_request q = {.method = "GET", .url = url, .reply_max = 1000, .on_data = on_data};
    return http_send(h, &q, on_reply, s);
}

static void test_stream__bytes_pass_by_and_errors_are_kept(void **state)
{
    (void)state;
    AUTO_SINK s;
    sink_init(&s);
    (void)stream(&s, "/big");
    run_until(&s.g.n, 1);
    assert_true(s.g.ok);
    assert_int_equal(s.bytes_n, 10000000);
    assert_int_equal(s.g.body.n, 0);
    AUTO_SINK e;
    sink_init(&e);
    (void)stream(&e, "/html/502");
    run_until(&e.g.n, 1);
    assert_true(e.g.ok);
    assert_int_equal(e.bytes_n, 0);
    assert_true(str_starts(buf_str(&e.g.body), "<html>"));
}

static void test_stream__the_reader_may_give_up(void **state)
{
    (void)state;
    AUTO_SINK s;
    sink_init(&s);
    s.stop_after = 1000000;
    (void)stream(&s, "/endless");
    run_until(&s.g.n, 1);
    assert_true(!s.g.ok && s.g.sent);
    assert_int_equal(s.g.code, ERR_IO);
    assert_true(s.bytes_n < 2000000);
}

static void test_stream__requests_can_be_made_and_cancelled_from_inside(void **state)
{
    (void)state;
    AUTO_SINK s;
    sink_init(&s);
    s.url = hostile_url(&server, "/ok");
    s.send_more = true;
    s.cancel = stream(&s, "/endless");
    run_until(&s.more.n, 1);
    assert_true(s.more.ok);
    loop_run_once(l, 0);
    assert_int_equal(s.g.n, 0); /* cancelled: no callback */
    assert_int_equal(http_in_flight(h), 0);
}

static void test_cancel__at_once_or_under_way_is_silent(void **state)
{
    (void)state;
    AUTO_GOT g;
    got_init(&g);
    AUTO_FREE char *url = hostile_url(&server, "/cancelled");
    AUTO_FREE char *silent = hostile_url(&server, "/silent");
    struct http_request q = {.method = "POST", .url = url, .reply_max = 100};
    struct http_req *r = http_send(h, &q, on_reply, &g);
    assert_false(http_req_sent(r));
    http_cancel(r);
    assert_int_equal(http_in_flight(h), 0);
    q.url = silent;
    r = http_send(h, &q, on_reply, &g);
    int64_t deadline_us = clock_mono_us() + 5 * USEC_PER_SEC;
    while (!http_req_sent(r) && clock_mono_us() < deadline_us) {
        loop_run_once(l, 10 * USEC_PER_MSEC);
    }
    assert_true(http_req_sent(r));
    http_cancel(r);
    loop_run_once(l, 0);
    assert_int_equal(g.n, 0);
    assert_int_equal(hostile_count(&server, "POST /cancelled"), 0);
    (void)http_send(h, &q, on_reply, &g); /* left in flight for http_free */
    loop_run_once(l, 10 * USEC_PER_MSEC);
}

static void test_fetch__blocks_and_hands_over(void **state)
{
    (void)state;
    AUTO_FREE char *url = hostile_url(&server, "/html/404");
    AUTO_FREE char *bad = hostile_url(&server, "/close-mid");
    struct http_request q = {.method = "GET", .url = url, .reply_max = 1000};
    struct http_reply r;
    struct err err = ERR_INIT;
    assert_true(http_fetch(&q, &r, &err));
    assert_int_equal(r.status, 404);
    assert_true(str_starts(buf_str(&r.body), "<html>"));
    assert_true(str_eq_cstr(http_reply_header(&r, "Content-Type"), "text/html"));
    http_reply_done(&r);
    q.url = bad;
    assert_false(http_fetch(&q, &r, &err));
    assert_int_equal(err.code, ERR_NETWORK);
    assert_false(http_fetch(&q, &r, NULL));
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    hostile_start(&server);
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)
    const struct CMUnitTest tests[] = {
        TEST(test_http__a_good_answer_is_whole),
        TEST(test_http__methods_and_bodies_go_out_as_given),
        TEST(test_http__headers_are_sent_even_empty_ones),
        TEST(test_http__dot_segments_are_not_touched),
        TEST(test_http__a_taken_body_is_freed_by_the_client),
        TEST(test_http__an_answer_of_any_status_is_an_answer),
        TEST(test_http__two_hundred_at_once),
        TEST(test_http__a_proxy_is_not_for_this_machine),
        TEST(test_unsent__refused_connection),
        TEST(test_unsent__unknown_host),
        TEST(test_unsent__connect_times_out),
        TEST(test_unsent__may_send_has_the_last_word),
        TEST(test_unsent__what_curl_will_not_take),
        TEST(test_sent__every_broken_answer_is_no_answer),
        TEST(test_sent__silence_and_trickles_end_by_time),
        TEST(test_sent__bodies_and_headers_are_bounded),
        TEST(test_reuse__get_is_repeated_post_never),
        TEST(test_reuse__a_fresh_connection_is_asked_for),
        TEST(test_stream__bytes_pass_by_and_errors_are_kept),
        TEST(test_stream__the_reader_may_give_up),
        TEST(test_stream__requests_can_be_made_and_cancelled_from_inside),
        TEST(test_cancel__at_once_or_under_way_is_silent),
        TEST(test_fetch__blocks_and_hands_over),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hostile_stop(&server);
    return failed;
}
