/* Aim: the rules a fetch goes by, each at its edges: manners towards hosts (so many at once, pauses
 * asked for, silence, rows in turn), what an answer means (again, for good, elsewhere, how long to
 * wait), how slow is too slow. Method: hosts and transfers driven by hand with times of our own. */
#include "common/clock.h"
#include "download/fetch/fetch.h"
#include "download/fetch/hosts.h"
#include "download/fetch/transfer.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define S USEC_PER_SEC

struct row {
    struct queue_item item;
    int v;
};

static struct hosts *table(int64_t per_host)
{
    const struct hosts_rules r = {
        .per_host = per_host, .timeout_us = 10 * S, .patience_us = 60 * S, .probes_max = 8};
    return hosts_new(&r);
}

static int freed_n;
static void count_freed(struct queue_item *i UNUSED)
{
    freed_n++;
}

static struct host *go(struct hosts *hs, const char *name, int64_t now)
{
    struct host *h = NULL;
    assert_int_equal(hosts_enter(hs, name, 80, now, NULL, &h), HOST_GO);
    return h;
}

static enum host_turn turn(struct hosts *hs, const char *name, int port, int64_t now)
{
    struct host *h = NULL;
    enum host_turn t = hosts_enter(hs, name, port, now, NULL, &h);
    if (t == HOST_GO) {
        hosts_leave(hs, h, false, NULL, now);
    }
    return t;
}

static void test_worker_fetch__so_many_at_a_host_and_no_more(void **state UNUSED)
{
    struct hosts *hs = table(3);
    struct host *h = NULL;
    for (int i = 0; i < 3; i++) {
        h = go(hs, "a", 1);
    }
    assert_int_equal(turn(hs, "a", 80, 1), HOST_WAIT);
    assert_int_equal(turn(hs, "a", 81, 1), HOST_GO); /* another port is another server */
    assert_int_equal(turn(hs, "b", 80, 1), HOST_GO);
    hosts_leave(hs, h, true, NULL, 2);
    assert_int_equal(turn(hs, "a", 80, 2), HOST_GO);
    h = go(hs, "a", 2);
    assert_int_equal(turn(hs, "a", 80, 2), HOST_WAIT);
    for (int i = 0; i < 3; i++) {
        hosts_leave(hs, h, true, NULL, 3);
    }
    assert_int_equal(turn(hs, "a", 80, 3), HOST_GO);
    hosts_free(hs, count_freed);
}

static void test_worker_fetch__rows_take_turns_by_host_in_their_order(void **state UNUSED)
{
    struct hosts *hs = table(1);
    struct row rows[9];
    struct host *open[3];
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        open[i] = go(hs, names[i], 1);
        for (int k = 0; k < 3; k++) {
            struct host *h = NULL;
            rows[3 * i + k].v = 3 * i + k;
            assert_int_equal(hosts_enter(hs, names[i], 80, 1, &rows[3 * i + k].item, &h),
                             HOST_WAIT);
        }
    }
    assert_int_equal(hosts_parked(hs), 9);
    assert_null(hosts_unpark(hs, 2)); /* all of them are busy */
    for (int i = 0; i < 3; i++) {
        hosts_leave(hs, open[i], true, NULL, 2);
    }
    for (int i = 0; i < 9; i++) {
        struct row *r = (struct row *)(void *)hosts_unpark(hs, 3);
        assert_non_null(r);
        assert_int_equal(r->v, i % 3 * 3 + i / 3); /* one of each host, oldest first */
    }
    assert_null(hosts_unpark(hs, 3));
    struct host *h = go(hs, "a", 4);
    assert_int_equal(hosts_enter(hs, "a", 80, 4, &rows[0].item, &h), HOST_WAIT);
    freed_n = 0;
    hosts_free(hs, count_freed);
    assert_int_equal(freed_n, 1);
}

static void test_worker_fetch__a_pause_is_kept_and_bounded(void **state UNUSED)
{
    struct hosts *hs = table(4);
    struct host *h = go(hs, "a", 0);
    hosts_pause(hs, h, 0, 5 * S);
    hosts_pause(hs, h, 0, 2 * S); /* the longer one holds */
    hosts_leave(hs, h, true, NULL, 0);
    assert_int_equal(turn(hs, "a", 80, 5 * S - 1), HOST_REST);
    assert_int_equal(turn(hs, "b", 80, 0), HOST_GO);
    assert_int_equal(turn(hs, "a", 80, 5 * S), HOST_GO);
    h = go(hs, "a", 6 * S);
    hosts_pause(hs, h, 6 * S, INT64_MAX / 4);
    hosts_leave(hs, h, true, NULL, 6 * S);
    assert_int_equal(turn(hs, "a", 80, 6 * S + HOST_PAUSE_MAX_US - 1), HOST_REST);
    static struct row rows[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hosts_enter(hs, "a", 80, 7 * S, &rows[i].item, &h), HOST_REST);
    }
    assert_null(hosts_unpark(hs, 7 * S));
    int64_t over = 6 * S + HOST_PAUSE_MAX_US;
    assert_ptr_equal(hosts_unpark(hs, over), &rows[0].item);
    h = go(hs, "a", over);
    assert_null(hosts_unpark(hs, over)); /* asked one by one */
    hosts_leave(hs, h, true, NULL, over);
    assert_ptr_equal(hosts_unpark(hs, over), &rows[1].item);
    hosts_free(hs, count_freed);
}

/* Four pauses and nothing served between: its rows wait no longer, those parked neither. */
static void test_worker_fetch__a_host_that_only_pauses_is_left(void **state UNUSED)
{
    static struct row rows[2];
    struct hosts *hs = table(4);
    int64_t now = 0;
    struct host *h;
    for (int i = 1; i <= HOST_PAUSES_MAX; i++, now += S) {
        h = go(hs, "a", now);
        hosts_pause(hs, h, now, S);
        hosts_pause(hs, h, now, S); /* those that were under way count once */
        hosts_leave(hs, h, true, NULL, now);
        if (i < HOST_PAUSES_MAX) {
            assert_int_equal(turn(hs, "a", 80, now + S - 1), HOST_REST);
        }
        if (i == HOST_PAUSES_MAX - 1) {
            assert_int_equal(hosts_enter(hs, "a", 80, now, &rows[0].item, &h), HOST_REST);
            assert_null(hosts_unpark(hs, now));
        }
    }
    assert_int_equal(turn(hs, "a", 80, now - 1), HOST_AWAY);
    assert_ptr_equal(hosts_unpark(hs, now - 1), &rows[0].item);
    /* After the pause it is asked once more; what it serves counts. */
    h = go(hs, "a", now);
    hosts_leave(hs, h, true, NULL, now);
    h = go(hs, "a", now);
    hosts_pause(hs, h, now, S);
    hosts_leave(hs, h, true, NULL, now);
    assert_int_equal(turn(hs, "a", 80, now), HOST_REST);
    hosts_free(hs, count_freed);
}

static void test_worker_fetch__hosts_are_forgotten_not_hoarded(void **state UNUSED)
{
    struct hosts *hs = table(1);
    struct host *open = go(hs, "open", 0);
    struct host *silent = go(hs, "silent", 1);
    assert_int_equal(hosts_failed(hs, silent, false, 1, 1), HOST_FAULT_HOST);
    hosts_leave(hs, silent, false, NULL, 1);
    assert_int_equal(turn(hs, "silent", 80, 1), HOST_REST);
    for (int i = 0; i < HOSTS_MAX + 10; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "h%d", i);
        struct host *h = go(hs, name, 1);
        (void)hosts_failed(hs, h, false, 1, 1);
        hosts_leave(hs, h, false, NULL, 1);
    }
    assert_int_equal(turn(hs, "silent", 80, 1), HOST_GO);
    assert_int_equal(turn(hs, "open", 80, 1), HOST_WAIT); /* what is open is kept */
    hosts_leave(hs, open, true, NULL, 1);
    hosts_free(hs, count_freed);
}

static const struct robots robots = {.directives = {STR("noai")}, .n = 1};

static void hear(struct transfer *t, const char *const *lines)
{
    transfer_reset_hop(t);
    for (; *lines != NULL; lines++) {
        transfer_header(t, str_of(*lines), &robots);
    }
}

static int64_t asked_to_wait(const char *status, const char *value)
{
    struct transfer t = {0};
    char line[200];
    (void)snprintf(line, sizeof line, "%s\r\n", value);
    const char *const lines[] = {status, "Date: x\r\n", line, "\r\n", NULL};
    hear(&t, lines);
    return t.retry_after_us;
}

/* The host lets one row through at a time and asks it for a pause again and again. */
static void test_worker_fetch__pauses_use_up_no_retry(void **state UNUSED)
{
    struct sample row = {0};
    struct transfer t = {.sample = &row, .retry_after_us = S};
    assert_false(transfer_take_retry(&t, 0)); /* without retries it does not wait */
    for (int i = 0; i < HOST_PAUSES_MAX; i++) {
        assert_true(transfer_take_retry(&t, 2));
        assert_int_equal(row.place.tries, 0);
    }
    assert_true(transfer_take_retry(&t, 2));
    t.retry_after_us = 0;
    assert_true(transfer_take_retry(&t, 2));
    assert_false(transfer_take_retry(&t, 2));
    assert_int_equal(row.place.tries, 2);
    row = (struct sample){0};
    assert_true(transfer_take_retry(&t, 1)); /* a failure that is no request for a pause counts */
    assert_false(transfer_take_retry(&t, 1));
}

static void test_worker_fetch__retry_after_in_seconds_and_dates(void **state UNUSED)
{
    static const struct {
        const char *status, *line;
        int64_t s;
    } cases[] = {{"HTTP/1.1 429 x", "Retry-After: 7", 7},
                 {"HTTP/1.1 503 x", "retry-after:0", 0},
                 {"HTTP/1.0 503", "RETRY-AFTER:  120  ", 120},
                 {"HTTP/1.1 200 OK", "Retry-After: 7", 0},
                 {"HTTP/1.1 301 x", "Retry-After: 7", 0},
                 {"HTTP/1.1 404 x", "Retry-After: 7", 0},
                 {"HTTP/1.1 429 x", "Retry-After: -7", 0},
                 {"HTTP/1.1 429 x", "Retry-After: 7.5", 0},
                 {"HTTP/1.1 429 x", "Retry-After: 7 8", 0},
                 {"HTTP/1.1 429 x", "Retry-After: soon", 0},
                 {"HTTP/1.1 429 x", "Retry-After:", 0},
                 {"HTTP/1.1 429 x", "Retry-After: 99999999999999999999", 0},
                 {"HTTP/1.1 429 x", "X-Retry-After: 7", 0},
                 {"HTTP/1.1 429 x", "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT", 0},
                 {"HTTP/1.1 429 x", "Retry-After: Fri, 99 Foo 2026 00:00:00 GMT", 0}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (asked_to_wait(cases[i].status, cases[i].line) != cases[i].s * S) {
            fail_msg("%s, %s", cases[i].status, cases[i].line);
        }
    }
    int64_t far = asked_to_wait("HTTP/1.1 503 x", "Retry-After: Mon, 01 Jan 2096 00:00:00 GMT");
    assert_true(far > 365 * 24 * 3600 * S);
    struct transfer t = {0};
    const char *const two[] = {"HTTP/1.1 429 x", "Retry-After: 9", "HTTP/1.1 429 x", NULL};
    hear(&t, two); /* what was said before the last status line is not of it */
    assert_int_equal(t.retry_after_us, 0);
}

static enum verdict_kind judged(CURL *easy, const char *status, CURLcode rc, struct verdict *v)
{
    struct transfer t = {.easy = easy};
    const char *const lines[] = {status, NULL};
    hear(&t, lines);
    transfer_judge(&t, rc, v);
    return v->kind;
}

static void test_worker_fetch__what_is_tried_again_and_what_is_not(void **state UNUSED)
{
    static const int again[] = {408, 429, 500, 502, 503, 504};
    static const CURLcode broken[] = {CURLE_OPERATION_TIMEDOUT, CURLE_COULDNT_CONNECT,
                                      CURLE_GOT_NOTHING,        CURLE_PARTIAL_FILE,
                                      CURLE_RECV_ERROR,         CURLE_SEND_ERROR};
    static const CURLcode final[] = {CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CONNECT_ERROR,
                                     CURLE_WEIRD_SERVER_REPLY,       CURLE_UNSUPPORTED_PROTOCOL,
                                     CURLE_FILESIZE_EXCEEDED,        CURLE_TOO_MANY_REDIRECTS};
    CURL *easy = curl_easy_init();
    struct verdict v;
    for (int status = 100; status < 600; status++) {
        char line[40];
        bool expected = false;
        (void)snprintf(line, sizeof line, "HTTP/1.1 %d Words", status);
        for (size_t i = 0; i < ARRAY_LEN(again); i++) {
            expected = expected || again[i] == status;
        }
        enum verdict_kind want = status >= 200 && status < 300 ? VERDICT_OK
                                 : expected                    ? VERDICT_TRANSIENT
                                                               : VERDICT_FAILED;
        if (judged(easy, line, CURLE_OK, &v) != want) {
            fail_msg("status %d: %d", status, v.kind);
        }
        (void)snprintf(line, sizeof line, "HTTP Error %d: Words", status);
        assert_true(want == VERDICT_OK || strcmp(v.text, line) == 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        assert_int_equal(judged(easy, "", broken[i], &v), VERDICT_TRANSIENT);
        assert_true(v.text[0] != '\0');
        assert_int_equal(judged(easy, "HTTP/1.1 200 OK", broken[i], &v), VERDICT_TRANSIENT);
    }
    for (size_t i = 0; i < ARRAY_LEN(final); i++) {
        assert_int_equal(judged(easy, "", final[i], &v), VERDICT_FAILED);
        assert_true(v.text[0] != '\0');
    }
    struct transfer t = {.easy = easy};
    const char *const tagged[] = {"HTTP/1.1 200 OK", "X-Robots-Tag: noai", NULL};
    hear(&t, tagged);
    transfer_judge(&t, CURLE_WRITE_ERROR, &v);
    assert_int_equal(v.kind, VERDICT_FAILED);
    curl_easy_cleanup(easy);
}

static void test_worker_fetch__how_slow_is_too_slow(void **state UNUSED)
{
    struct transfer t = {.state = TRANSFER_RUNNING, .begun_us = S, .first_byte_us = S};
    int64_t asked_at = S + FETCH_SPEED_AFTER_US;
    assert_false(transfer_is_slow(&t, asked_at - 1));
    assert_true(transfer_is_slow(&t, asked_at));
    t.body.n = FETCH_SPEED_MIN * FETCH_SPEED_AFTER_US / S;
    assert_false(transfer_is_slow(&t, asked_at));
    t.body.n -= 1;
    assert_true(transfer_is_slow(&t, asked_at));
    assert_true(transfer_is_stalled(&t, asked_at));
    transfer_excuse(&t, S); /* a second that was ours */
    assert_false(transfer_is_slow(&t, asked_at));
    assert_true(transfer_is_slow(&t, asked_at + S));
    t.paused_us = 1;
    assert_false(transfer_is_slow(&t, asked_at + 9 * S) ||
                 transfer_is_stalled(&t, asked_at + 9 * S));
    t = (struct transfer){.state = TRANSFER_RESOLVING, .begun_us = S};
    assert_false(transfer_is_stalled(&t, S + HOST_STALLED_US - 1));
    assert_true(transfer_is_stalled(&t, S + HOST_STALLED_US));
    transfer_excuse(&t, 5);
    assert_int_equal(t.deadline_us, 0); /* what is not set stays so */
}

static void test_worker_fetch__a_body_in_crumbs(void **state UNUSED)
{
    struct transfer t = {.pieces_n = FETCH_PIECES_MAX};
    assert_false(transfer_is_crumbs(&t));
    t.pieces_n++;
    assert_true(transfer_is_crumbs(&t));
    t.body.n = t.pieces_n * FETCH_PIECE_BYTES_MIN;
    assert_false(transfer_is_crumbs(&t));
    t.body.n--;
    assert_true(transfer_is_crumbs(&t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker_fetch__so_many_at_a_host_and_no_more),
        cmocka_unit_test(test_worker_fetch__rows_take_turns_by_host_in_their_order),
        cmocka_unit_test(test_worker_fetch__a_pause_is_kept_and_bounded),
        cmocka_unit_test(test_worker_fetch__a_host_that_only_pauses_is_left),
        cmocka_unit_test(test_worker_fetch__hosts_are_forgotten_not_hoarded),
        cmocka_unit_test(test_worker_fetch__pauses_use_up_no_retry),
        cmocka_unit_test(test_worker_fetch__retry_after_in_seconds_and_dates),
        cmocka_unit_test(test_worker_fetch__what_is_tried_again_and_what_is_not),
        cmocka_unit_test(test_worker_fetch__how_slow_is_too_slow),
        cmocka_unit_test(test_worker_fetch__a_body_in_crumbs),
    };
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
