/* Aim: what a host's silence means, at the edges of every rule: quiet, silent, asked one by one,
 * given up, back; a host that drips; and when silence of most is our network. Method: hosts driven
 * by hand with times of our own. */
#include "download/fetch/hosts.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define S USEC_PER_SEC

static const struct silence_rules rules = {5 * S, 60 * S};

/* Asked at from, looked at a tenth of a second later again and again: when it is silent. */
static int64_t silent_at(struct silence *s, int64_t open_n, int64_t from)
{
    for (int64_t now = from; now < from + 100 * S; now += S / 10) {
        silence_look(s, &rules, open_n, now);
        if (silence_is_silent(s)) {
            return now;
        }
    }
    return 0;
}

static void test_worker_silence__quiet_goes_by_what_it_is_used_to(void **state UNUSED)
{
    struct silence s = {0};
    silence_begin(&s, 0, S);
    assert_int_equal(silent_at(&s, 1, S), S + SILENCE_QUIET_MIN_US);
    s = (struct silence){0};
    silence_begin(&s, 0, 10 * S);
    silence_begin(&s, 1, 11 * S); /* those that come later do not put it off */
    assert_int_equal(silent_at(&s, 2, 10 * S), 10 * S + SILENCE_QUIET_MIN_US);
    silence_hear(&s, 10 * S, 12 * S + 1);
    assert_false(silence_is_silent(&s));
    s = (struct silence){0};
    silence_begin(&s, 0, S);
    silence_hear(&s, S, S + 2 * S); /* it takes two seconds to answer */
    silence_begin(&s, 0, 4 * S);
    assert_int_equal(silent_at(&s, 1, 4 * S), 8 * S);
    s = (struct silence){0};
    silence_begin(&s, 0, S);
    silence_hear(&s, S, 9 * S);
    silence_begin(&s, 0, 9 * S);
    assert_int_equal(silent_at(&s, 1, 9 * S), 14 * S); /* no host is waited for longer than that */
    assert_int_equal(silent_at(&s, 0, 20 * S), 20 * S);
    s = (struct silence){0};
    assert_int_equal(silent_at(&s, 0, S), 0); /* of whom nothing is asked */
}

static void test_worker_silence__one_question_at_a_time_then_given_up(void **state UNUSED)
{
    struct silence s = {0};
    silence_begin(&s, 0, S);
    silence_hear(&s, S, S);
    silence_begin(&s, 0, 2 * S);
    assert_true(silence_may_ask(&s, 31, 3 * S));
    int64_t at = silent_at(&s, 2, 2 * S);
    assert_int_equal(s.since_us, 2 * S);
    assert_false(silence_may_ask(&s, 1, at));
    assert_true(silence_may_ask(&s, 0, at));
    int asked = 0;
    for (int64_t now = at; !silence_is_given_up(&s); now += S / 10) {
        assert_true(now <= 2 * S + rules.patience_us);
        if (silence_may_ask(&s, 0, now)) {
            silence_begin(&s, 0, now);
            assert_true(silence_fail(&s, now, now)); /* refused, say */
            asked++;
        }
        silence_look(&s, &rules, 0, now);
        assert_true(!silence_is_given_up(&s) || now == 2 * S + rules.patience_us);
    }
    assert_in_range(asked, 10, 16);
    silence_hear(&s, 70 * S, 71 * S);
    assert_false(silence_is_silent(&s) || silence_is_given_up(&s));
    assert_true(silence_may_ask(&s, 5, 71 * S));
}

/* Two failures far apart are no minute of silence. */
static void test_worker_silence__must_be_asked_to_be_given_up(void **state UNUSED)
{
    struct silence s = {0};
    silence_begin(&s, 0, S);
    assert_true(silence_fail(&s, S, 11 * S));
    silence_look(&s, &rules, 0, 200 * S);
    assert_false(silence_is_given_up(&s));
    silence_begin(&s, 0, 200 * S);
    assert_false(silence_is_silent(&s)); /* it starts again */
    assert_true(silence_fail(&s, 200 * S, 210 * S));
    silence_look(&s, &rules, 0, 210 * S);
    assert_false(silence_is_given_up(&s));
}

static void test_worker_silence__a_url_that_hangs_is_no_silent_host(void **state UNUSED)
{
    struct silence s = {0};
    silence_begin(&s, 0, S);
    silence_begin(&s, 1, 2 * S);
    silence_hear(&s, 2 * S, 3 * S);
    assert_false(silence_fail(&s, S, 11 * S)); /* others were answered since */
    assert_false(silence_is_silent(&s));
    assert_true(silence_fail(&s, 4 * S, 14 * S));
    assert_true(silence_is_silent(&s));
}

static void test_worker_silence__drips_until_a_whole_answer(void **state UNUSED)
{
    struct silence s = {0};
    silence_begin(&s, 0, S);
    silence_hear(&s, S, S);
    silence_begin(&s, 1, S);
    silence_answer(&s, 2 * S);
    assert_false(silence_drip(&s, S, 4 * S)); /* it served another */
    assert_true(silence_drip(&s, 3 * S, 6 * S));
    silence_hear(&s, 6 * S, 7 * S); /* headers are no proof */
    assert_true(silence_is_silent(&s));
    assert_false(silence_may_ask(&s, 1, 60 * S));
    silence_answer(&s, 8 * S);
    assert_false(silence_is_silent(&s));
}

static bool is_away(int64_t known, int64_t unknown, int64_t heard, bool rows_left)
{
    struct network_watch w = {0};
    const struct network_census c = {known, unknown, heard, 0};
    return network_look(&w, &c, rows_left, S);
}

static void test_worker_silence__most_hosts_at_once_are_the_network(void **state UNUSED)
{
    assert_false(is_away(NETWORK_HOSTS_MIN - 1, 0, 0, true));
    assert_true(is_away(NETWORK_HOSTS_MIN, 0, 0, true));
    assert_true(is_away(NETWORK_HOSTS_MIN, 0, 1, false));
    assert_false(is_away(NETWORK_HOSTS_MIN, 0, 2, true));
    assert_false(is_away(10, 0, 40, true));
    assert_true(is_away(0, NETWORK_UNKNOWN_MIN, 0, true));
    assert_false(is_away(0, 1000, 0, false)); /* what is left at the end may be the dead ones */
    assert_false(is_away(0, 1000, 1, true));
    struct network_watch w = {0};
    const struct network_census refused = {0, 1000, 0, 1};
    assert_false(network_look(&w, &refused, true, S));
    const struct network_census stopped = {NETWORK_HOSTS_MIN, 0, 0, NETWORK_HOSTS_MIN};
    assert_true(network_look(&w, &stopped, true, S));
}

static void test_worker_silence__away_until_a_silent_one_answers(void **state UNUSED)
{
    struct network_watch w = {0};
    const struct network_census c = {NETWORK_HOSTS_MIN, 0, 0, 0};
    assert_true(network_may_ask(&w, 0) && network_may_ask(&w, 0));
    assert_true(network_look(&w, &c, true, S));
    assert_false(network_look(&w, &c, true, S));
    assert_true(network_may_ask(&w, S));
    assert_false(network_may_ask(&w, 2 * S - 1));
    assert_true(network_may_ask(&w, 2 * S));
    assert_false(network_hear(&w, false)); /* one that answered all the while */
    assert_true(network_hear(&w, true));
    assert_false(network_hear(&w, true));
    assert_true(network_may_ask(&w, 2 * S));
}

static struct hosts *table(int64_t per_host, int probes_max)
{
    const struct hosts_rules r = {.per_host = per_host,
                                  .timeout_us = 10 * S,
                                  .patience_us = 60 * S,
                                  .probes_max = probes_max};
    return hosts_new(&r);
}

/* Through the table: ten hosts that have answered fall silent; one answers; all are forgiven. */
static void test_worker_silence__a_table_of_hosts_loses_its_network(void **state UNUSED)
{
    struct hosts *hs = table(4, 8);
    struct host *h[10];
    char name[16];
    for (int i = 0; i < 10; i++) {
        (void)snprintf(name, sizeof name, "h%d", i);
        assert_int_equal(hosts_enter(hs, name, 80, S, NULL, &h[i]), HOST_GO);
        hosts_heard(hs, h[i], S, 2 * S);
        assert_int_equal(hosts_enter(hs, name, 80, 2 * S, NULL, &h[i]), HOST_GO);
    }
    int64_t now = 2 * S;
    for (; hosts_look(hs, true, now) == 0; now += S / 10) {
        assert_true(now < 6 * S);
    }
    assert_true(hosts_network_is_away(hs));
    assert_int_equal(hosts_failed(hs, h[1], false, 2 * S, 12 * S), HOST_FAULT_NETWORK);
    (void)hosts_look(hs, true, 200 * S); /* nobody is given up meanwhile */
    assert_int_equal(hosts_enter(hs, "h1", 80, 200 * S, NULL, &h[1]), HOST_REST);
    hosts_heard(hs, h[3], 199 * S, 200 * S);
    assert_false(hosts_network_is_away(hs));
    /* What was asked while it was away may still be without an answer. */
    assert_int_equal(hosts_failed(hs, h[3], false, 199 * S, 209 * S), HOST_FAULT_NETWORK);
    assert_int_equal(hosts_failed(hs, h[3], false, 199 * S + 1, 209 * S), HOST_FAULT_NETWORK);
    assert_int_equal(hosts_enter(hs, "h1", 80, 200 * S, NULL, &h[1]), HOST_GO);
    hosts_free(hs, NULL);
}

/* `n` hosts answer until 2 s; from then on only the last `steady_n` do, and the network is judged
 * down. Host `idle`, if any, is asked for nothing after its answer. Returns that time. */
static int64_t lose_network(struct hosts *hs, struct host **h, int n, int steady_n, int idle)
{
    char name[16];
    for (int i = 0; i < n; i++) {
        (void)snprintf(name, sizeof name, "h%d", i);
        assert_int_equal(hosts_enter(hs, name, 80, S, NULL, &h[i]), HOST_GO);
        hosts_heard(hs, h[i], S, 2 * S);
        hosts_leave(hs, h[i], true, NULL, 2 * S);
        if (i != idle) {
            assert_int_equal(hosts_enter(hs, name, 80, 2 * S, NULL, &h[i]), HOST_GO);
        }
    }
    int64_t now = 2 * S;
    for (; hosts_look(hs, true, now) == 0; now += S / 10) {
        assert_true(now < 10 * S);
        for (int i = n - steady_n; i < n; i++) {
            hosts_heard(hs, h[i], 2 * S, now);
        }
    }
    return now;
}

/* One row a second asks, so with many hosts each is asked so seldom that its silence is forgiven
 * before its answer; the answer ends the outage none the less. */
static void test_worker_silence__a_forgiven_host_brings_the_network_back(void **state UNUSED)
{
    struct hosts *hs = table(1, 8);
    struct host *h[60];
    int64_t now = lose_network(hs, h, 60, 2, -1);
    char name[16];
    for (int i = 0; i < 60; i++) {
        (void)hosts_failed(hs, h[i], false, 2 * S, now);
        hosts_leave(hs, h[i], false, NULL, now);
    }
    for (int i = 0; i < 58; i++) {
        (void)snprintf(name, sizeof name, "h%d", i);
        now += S;
        (void)hosts_look(hs, true, now);
        assert_int_equal(hosts_enter(hs, name, 80, now, NULL, &h[i]), HOST_GO);
    }
    hosts_heard(hs, h[59], now, now); /* it answered all the while */
    assert_true(hosts_network_is_away(hs));
    hosts_heard(hs, h[57], now, now);
    assert_false(hosts_network_is_away(hs));
    hosts_free(hs, NULL);
}

/* A host that nothing was asked of when the network went down is never silent; it counts. */
static void test_worker_silence__an_idle_host_brings_the_network_back(void **state UNUSED)
{
    struct hosts *hs = table(1, 8);
    struct host *h[30];
    int64_t now = lose_network(hs, h, 30, 5, 0);
    assert_true(now - 2 * S >= 2 * S);
    assert_int_equal(hosts_enter(hs, "h0", 80, now + 5 * S, NULL, &h[0]), HOST_GO);
    hosts_heard(hs, h[0], now + 5 * S, now + 6 * S);
    assert_false(hosts_network_is_away(hs));
    hosts_free(hs, NULL);
}

/* One host answers early, forty others never do. Nothing tells that from a network that broke,
 * until one of them refuses: then those that stay dumb are given up one by one. */
static void test_worker_silence__a_refusal_tells_the_dead_from_the_network(void **state UNUSED)
{
    struct hosts *hs = table(1, 8);
    struct host *h[41];
    char name[16];
    for (int i = 0; i < 41; i++) {
        (void)snprintf(name, sizeof name, "h%d", i);
        assert_int_equal(hosts_enter(hs, name, 80, S, NULL, &h[i]), HOST_GO);
    }
    hosts_heard(hs, h[0], S, S);
    hosts_leave(hs, h[0], true, NULL, S);
    int64_t now = S;
    for (; hosts_look(hs, true, now) == 0; now += S / 10) {
        assert_true(now < 10 * S);
    }
    hosts_refused(hs, h[1], now);
    assert_int_equal(hosts_failed(hs, h[1], false, S, now), HOST_FAULT_NETWORK);
    int64_t from = now;
    for (; now < from + 80 * S; now += S / 10) {
        if ((now - from) % (5 * S) == 0) { /* it is asked again */
            hosts_refused(hs, h[1], now);
        }
        for (int i = 2; i < 41 && (now - from) % (10 * S) == 0; i++) {
            (void)hosts_failed(hs, h[i], false, MAX(now - 10 * S, from), now);
        }
        assert_int_equal(hosts_look(hs, true, now), 0);
    }
    assert_int_equal(hosts_stalled(hs, h[40], from), HOST_STALL_OVER);
    hosts_free(hs, NULL);
}

/* A firewall may refuse everything: of hosts that have answered, a refusal says nothing. */
static void test_worker_silence__refusals_of_hosts_that_answered_say_nothing(void **state UNUSED)
{
    struct hosts *hs = table(1, 8);
    struct host *h[10];
    int64_t now = lose_network(hs, h, 10, 0, -1);
    for (int i = 0; i < 10; i++) {
        hosts_refused(hs, h[i], now);
        assert_true(hosts_look(hs, true, now) > 0);
        assert_int_equal(hosts_failed(hs, h[i], false, 2 * S, now), HOST_FAULT_NETWORK);
    }
    hosts_free(hs, NULL);
}

/* A host that drips is useless but heard. */
static void test_worker_silence__hosts_that_drip_are_no_network_failure(void **state UNUSED)
{
    struct hosts *hs = table(1, 8);
    struct host *h;
    char name[16];
    for (int i = 0; i < 2 * NETWORK_HOSTS_MIN; i++) {
        (void)snprintf(name, sizeof name, "h%d", i);
        assert_int_equal(hosts_enter(hs, name, 80, S, NULL, &h), HOST_GO);
        hosts_heard(hs, h, S, S);
        if (i % 2 == 0) { /* given up; the others are not yet */
            assert_int_equal(hosts_failed(hs, h, true, S, 4 * S), HOST_FAULT_HOST);
            hosts_leave(hs, h, false, NULL, 4 * S);
        }
        hosts_dripped(hs, h, 3 * S);
    }
    assert_int_equal(hosts_look(hs, true, 4 * S), 0);
    assert_int_equal(hosts_look(hs, true, 5 * S - 1), 0);
    assert_true(hosts_look(hs, true, 5 * S + S / 10) > 0); /* five have stopped dripping too */
    hosts_free(hs, NULL);
}

struct row {
    struct queue_item item;
    int v;
};
static void nothing(struct queue_item *i UNUSED)
{
}

/* Rows that come back stand behind the others, so that one URL that hangs is not asked for ever;
 * a park has a size in bytes. */
static void test_worker_silence__rows_come_back_behind_the_others(void **state UNUSED)
{
    struct hosts *hs = table(4, 8);
    struct host *h;
    struct row rows[3] = {{.v = 0}, {.v = 1}, {.v = 2}};
    assert_int_equal(hosts_enter(hs, "a", 80, S, NULL, &h), HOST_GO);
    assert_int_equal(hosts_stalled(hs, h, S), HOST_STALL_YIELDS); /* alone */
    assert_int_equal(hosts_enter(hs, "a", 80, S, NULL, &h), HOST_GO);
    assert_int_equal(hosts_stalled(hs, h, S), HOST_STALL_COUNTS);
    (void)hosts_look(hs, true, 4 * S);
    assert_int_equal(hosts_stalled(hs, h, S), HOST_STALL_GIVE);
    assert_int_equal(hosts_enter(hs, "a", 80, 4 * S, &rows[1].item, &h), HOST_REST);
    rows[2].item.bytes = HOSTS_PARKED_BYTES_MAX;
    assert_int_equal(hosts_enter(hs, "a", 80, 4 * S, &rows[2].item, &h), HOST_REST);
    assert_true(hosts_is_full(hs));
    hosts_leave(hs, h, false, &rows[0].item, 4 * S);
    assert_null(hosts_unpark(hs, 5 * S)); /* one asks still */
    assert_int_equal(hosts_failed(hs, h, false, S, 11 * S), HOST_FAULT_HOST);
    hosts_leave(hs, h, false, NULL, 11 * S);
    assert_null(hosts_unpark(hs, 11 * S));
    struct row *first = (struct row *)(void *)hosts_unpark(hs, 12 * S);
    assert_int_equal(first->v, 1);
    assert_int_equal(hosts_enter(hs, "a", 80, 12 * S, NULL, &h), HOST_GO);
    struct hosts_parked n;
    hosts_count(hs, &n);
    assert_int_equal(n.silent_n, 2);
    (void)hosts_look(hs, true, 61 * S); /* the question is on its way still */
    assert_int_equal(hosts_stalled(hs, h, 12 * S), HOST_STALL_OVER);
    hosts_free(hs, nothing);
}

/* Another transfer begins for one that waits only where the host never answered, and only while
 * somebody else answers. */
static void test_worker_silence__who_waits_counts_as_open(void **state UNUSED)
{
    struct hosts *hs = table(4, 8);
    struct host *slow;
    struct host *dead;
    struct host *well;
    assert_int_equal(hosts_enter(hs, "slow", 80, S, NULL, &slow), HOST_GO);
    assert_int_equal(hosts_enter(hs, "dead", 80, S, NULL, &dead), HOST_GO);
    assert_int_equal(hosts_enter(hs, "well", 80, S, NULL, &well), HOST_GO);
    hosts_heard(hs, slow, S, 2 * S);
    hosts_leave(hs, slow, true, NULL, 2 * S);
    assert_int_equal(hosts_enter(hs, "slow", 80, 2 * S, NULL, &slow), HOST_GO);
    (void)hosts_look(hs, true, 3 * S);
    hosts_heard(hs, well, S, 3 * S);
    assert_int_equal(hosts_stalled(hs, dead, S), HOST_STALL_YIELDS);     /* it never answered */
    assert_int_equal(hosts_stalled(hs, slow, 2 * S), HOST_STALL_COUNTS); /* it has */
    assert_int_equal(hosts_stalled(hs, well, S), HOST_STALL_YIELDS);     /* no whole answer */
    assert_int_equal(hosts_enter(hs, "late", 80, 2 * S + 1, NULL, &dead), HOST_GO);
    assert_int_equal(hosts_stalled(hs, dead, 2 * S + 1),
                     HOST_STALL_COUNTS); /* nobody heard since */
    (void)hosts_look(hs, true, 6 * S);
    hosts_heard(hs, well, S, 6 * S);
    assert_int_equal(hosts_stalled(hs, slow, 2 * S), HOST_STALL_COUNTS); /* silent by now */
    hosts_free(hs, NULL);
}

/* Five hosts have answered and stop; two may be probed at once, the others' transfers give up their
 * places. Rows of a silent host wait for a free probe; an answer or a failure makes room. */
static void test_worker_silence__probes_take_a_part_of_the_places(void **state UNUSED)
{
    struct hosts *hs = table(4, 2);
    struct host *well;
    struct host *h[5];
    char name[16];
    assert_int_equal(hosts_enter(hs, "well", 80, S, NULL, &well), HOST_GO);
    for (int i = 0; i < 5; i++) {
        (void)snprintf(name, sizeof name, "h%d", i);
        assert_int_equal(hosts_enter(hs, name, 80, S, NULL, &h[i]), HOST_GO);
        hosts_heard(hs, h[i], S, S);
        hosts_leave(hs, h[i], true, NULL, S);
        assert_int_equal(hosts_enter(hs, name, 80, 2 * S, NULL, &h[i]), HOST_GO);
    }
    for (int i = 0; i < 10; i++) { /* too many others answer for it to be the network */
        struct host *other;
        (void)snprintf(name, sizeof name, "o%d", i);
        assert_int_equal(hosts_enter(hs, name, 80, S, NULL, &other), HOST_GO);
        hosts_heard(hs, other, S, 6 * S);
    }
    assert_int_equal(hosts_look(hs, true, 6 * S), 0);
    static const enum host_stall want[] = {HOST_STALL_COUNTS, HOST_STALL_COUNTS, HOST_STALL_GIVE,
                                           HOST_STALL_GIVE, HOST_STALL_GIVE};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(hosts_stalled(hs, h[i], 2 * S), want[i]);
    }
    for (int i = 2; i < 5; i++) {
        hosts_leave(hs, h[i], false, NULL, 6 * S);
    }
    assert_int_equal(hosts_stalled(hs, h[0], 2 * S), HOST_STALL_COUNTS); /* the same probe */
    assert_int_equal(hosts_enter(hs, "h2", 80, 7 * S, NULL, &h[2]), HOST_REST);
    hosts_heard(hs, h[0], 2 * S, 7 * S);
    assert_int_equal(hosts_enter(hs, "h2", 80, 7 * S, NULL, &h[2]), HOST_GO);
    assert_int_equal(hosts_enter(hs, "h3", 80, 7 * S, NULL, &h[3]), HOST_REST);
    assert_int_equal(hosts_enter(hs, "h0", 80, 7 * S, NULL, &h[0]), HOST_GO); /* well again */
    assert_int_equal(hosts_failed(hs, h[1], false, 2 * S, 12 * S), HOST_FAULT_HOST);
    hosts_leave(hs, h[1], false, NULL, 12 * S);
    assert_int_equal(hosts_enter(hs, "h3", 80, 12 * S, NULL, &h[3]), HOST_GO);
    assert_int_equal(hosts_enter(hs, "h4", 80, 12 * S, NULL, &h[4]), HOST_REST);
    hosts_free(hs, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker_silence__quiet_goes_by_what_it_is_used_to),
        cmocka_unit_test(test_worker_silence__one_question_at_a_time_then_given_up),
        cmocka_unit_test(test_worker_silence__must_be_asked_to_be_given_up),
        cmocka_unit_test(test_worker_silence__a_url_that_hangs_is_no_silent_host),
        cmocka_unit_test(test_worker_silence__drips_until_a_whole_answer),
        cmocka_unit_test(test_worker_silence__most_hosts_at_once_are_the_network),
        cmocka_unit_test(test_worker_silence__away_until_a_silent_one_answers),
        cmocka_unit_test(test_worker_silence__a_table_of_hosts_loses_its_network),
        cmocka_unit_test(test_worker_silence__a_forgiven_host_brings_the_network_back),
        cmocka_unit_test(test_worker_silence__an_idle_host_brings_the_network_back),
        cmocka_unit_test(test_worker_silence__a_refusal_tells_the_dead_from_the_network),
        cmocka_unit_test(test_worker_silence__refusals_of_hosts_that_answered_say_nothing),
        cmocka_unit_test(test_worker_silence__hosts_that_drip_are_no_network_failure),
        cmocka_unit_test(test_worker_silence__rows_come_back_behind_the_others),
        cmocka_unit_test(test_worker_silence__who_waits_counts_as_open),
        cmocka_unit_test(test_worker_silence__probes_take_a_part_of_the_places),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
