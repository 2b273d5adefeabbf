/* Aim: every line of a log is taken once and none is left out, whatever pages, tokens, restarts and
 * refusals come; the log is closed only when it was read to its end after the job's. Method: a log
 * of numbered lines behind the two calls of CloudWatch Logs, read in many random worlds. */
#include "common/base.h"
#include "common/rng.h"
#include "common/str.h"
#include "core/metrics/metric_collect.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define LINES   200
#define STREAMS 3

static const struct aws_failure refused = {.outcome = AWS_REFUSED, .code = "No", .message = "no"};
static const struct aws_failure down = {.outcome = AWS_UNKNOWN, .code = "", .message = ""};

struct world {
    struct rng rng;
    struct metric_collect m, kept; /* kept: as of the last transaction */
    int64_t now_us, job_ends_us;
    int streams;           /* of the log */
    int lines_of[STREAMS]; /* at its end */
    int taken[STREAMS][LINES];
    int kept_taken[STREAMS][LINES];
    bool closed;
};

/* Lines of a stream that are there by now: all of them when a restart opens the next one, of the
 * last stream a moment after the job's end. */
static int there(const struct world *w, int s)
{
    bool last = s + 1 == w->streams;
    int64_t from_us = s * w->job_ends_us / STREAMS;
    int64_t to_us = last ? w->job_ends_us + 2 * USEC_PER_SEC : (s + 1) * w->job_ends_us / STREAMS;
    int64_t n = (int64_t)w->lines_of[s] * (w->now_us - from_us) / (to_us - from_us);
    return w->now_us >= to_us ? w->lines_of[s] : (int)n;
}

static void answer_stream(struct world *w)
{
    char name[8] = "";
    int next = w->m.place.stream[0] == '\0' ? 0 : w->m.place.stream[1] - '0' + 1;
    if (next < w->streams && w->now_us >= next * w->job_ends_us / STREAMS) {
        (void)snprintf(name, sizeof name, "s%d", next);
    }
    metric_collect_stream(&w->m, name, w->now_us);
}

static void answer_page(struct world *w)
{
    int s = w->m.place.stream[1] - '0';
    int64_t at = 0;
    bool head = w->m.place.token[0] == '\0';
    assert_true(head || parse_i64(str_of(w->m.place.token + 1), 0, LINES, &at, NULL));
    int from = (int)at;
    int most = 1 + (int)rng_below(&w->rng, 40);
    int n = MIN(most, there(w, s) - from);
    char next[16];
    (void)snprintf(next, sizeof next, "t%d", from + n);
    int64_t first = metric_place_first(&w->m.place, n);
    int64_t upto = rng_below(&w->rng, 4) == 0 ? first + (n - first) / 2 : n;
    for (int64_t i = first; i < upto; i++) {
        w->taken[s][from + i]++;
    }
    metric_collect_page(&w->m, n, upto, next, w->now_us);
}

static void fail_some(struct world *w, enum metric_act act)
{
    bool expires =
        act == METRIC_ASK_PAGE && w->m.place.token[0] != '\0' && rng_below(&w->rng, 2) == 0;
    metric_collect_failed(&w->m, act, expires ? &refused : &down, w->now_us);
}

/* A new leader goes on from what was written. */
static void take_over(struct world *w)
{
    struct metric_place place = w->kept.place;
    memset(&w->m, 0, sizeof w->m);
    w->m.place = place;
    w->m.interval_us = USEC_PER_SEC;
    w->m.settle_us = 3 * USEC_PER_SEC;
    memcpy(w->taken, w->kept_taken, sizeof w->taken);
}

static void one_look(struct world *w)
{
    if (w->now_us >= w->job_ends_us) {
        metric_collect_ended(&w->m, w->now_us);
    }
    enum metric_act act = metric_collect_next(&w->m, w->now_us);
    if (act == METRIC_WAIT) {
        w->now_us = MIN(w->m.due_us, w->now_us + USEC_PER_SEC);
        return;
    }
    w->now_us += 1000 * (1 + (int64_t)rng_below(&w->rng, 300));
    if (act == METRIC_CLOSE) {
        w->closed = true;
        return;
    }
    if (rng_below(&w->rng, 8) == 0) {
        fail_some(w, act);
    } else if (act == METRIC_ASK_STREAM) {
        answer_stream(w);
    } else if (act == METRIC_ASK_PAGE) {
        answer_page(w);
    } else {
        metric_collect_final(&w->m);
    }
    if (rng_below(&w->rng, 3) > 0) {
        w->kept = w->m;
        memcpy(w->kept_taken, w->taken, sizeof w->taken);
    } else if (rng_below(&w->rng, 10) == 0) {
        take_over(w);
    }
}

static void live(uint64_t seed)
{
    struct world *w = xcalloc(1, sizeof *w);
    rng_seed(&w->rng, seed);
    w->job_ends_us = (int64_t)(1 + rng_below(&w->rng, 30)) * USEC_PER_SEC;
    w->streams = (int)rng_below(&w->rng, STREAMS + 1);
    for (int s = 0; s < w->streams; s++) {
        w->lines_of[s] = (int)rng_below(&w->rng, LINES);
    }
    take_over(w);
    for (int i = 0; i < 20000 && !w->closed; i++) {
        one_look(w);
    }
    if (!w->closed) {
        fail_msg("seed %llu: it is read for ever", (unsigned long long)seed);
    }
    assert_string_equal(w->m.note, "");
    for (int s = 0; s < w->streams; s++) {
        for (int i = 0; i < w->lines_of[s]; i++) {
            if (w->taken[s][i] != 1) {
                fail_msg("seed %llu: line %d of stream %d was taken %d times",
                         (unsigned long long)seed, i, s, w->taken[s][i]);
            }
        }
    }
    free(w);
}

static void test_metric_collect__every_line_once_in_2000_worlds(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        live(seed);
    }
}

static struct metric_collect fresh(void)
{
    return (struct metric_collect){.interval_us = USEC_PER_SEC, .settle_us = 3 * USEC_PER_SEC};
}

static void test_metric_collect__a_live_job_is_never_closed(void **state)
{
    (void)state;
    struct metric_collect m = fresh();
    for (int64_t now_us = 0; now_us < 1000 * USEC_PER_SEC; now_us += USEC_PER_SEC / 2) {
        enum metric_act act = metric_collect_next(&m, now_us);
        assert_true(act == METRIC_WAIT || act == METRIC_ASK_STREAM);
        if (act == METRIC_ASK_STREAM && now_us % 3 == 0) {
            metric_collect_failed(&m, act, &refused, now_us);
        } else if (act == METRIC_ASK_STREAM) {
            metric_collect_stream(&m, "", now_us);
        }
    }
}

static void test_metric_collect__a_log_that_may_not_be_read_is_given_up_with_a_note(void **state)
{
    (void)state;
    struct metric_collect m = fresh();
    int asked = 0, finals = 0;
    metric_collect_ended(&m, 0);
    for (int64_t now_us = 0; asked < 100; now_us += 70 * USEC_PER_SEC) {
        enum metric_act act = metric_collect_next(&m, now_us);
        if (act == METRIC_CLOSE) {
            break;
        }
        if (act == METRIC_ASK_FINAL) { /* a gate goes by it then */
            assert_int_equal(asked, METRIC_REFUSALS_MAX);
            finals++;
            metric_collect_final(&m);
            continue;
        }
        assert_int_equal(act, METRIC_ASK_STREAM);
        metric_collect_failed(&m, act, &refused, now_us);
        asked++;
    }
    assert_int_equal(asked, METRIC_REFUSALS_MAX);
    assert_int_equal(finals, 1);
    assert_string_equal(m.note, "the log cannot be read: No no");
}

static void test_metric_collect__an_outage_is_waited_out_for_a_while(void **state)
{
    (void)state;
    struct metric_collect m = fresh();
    int64_t now_us = 0;
    metric_collect_ended(&m, 0);
    for (enum metric_act act; (act = metric_collect_next(&m, now_us)) != METRIC_CLOSE;) {
        if (now_us >= m.due_us) {
            metric_collect_failed(&m, act, &down, now_us);
            assert_true(m.due_us - now_us >= m.interval_us &&
                        m.due_us - now_us <= 60 * USEC_PER_SEC);
        }
        now_us += USEC_PER_SEC;
        assert_true(now_us < 2 * METRIC_GIVE_UP_US);
    }
    assert_true(now_us >= METRIC_GIVE_UP_US);
}

static void test_metric_collect__final_values_may_be_refused(void **state)
{
    (void)state;
    struct metric_collect m = fresh();
    int64_t now_us = 0;
    int finals = 0;
    metric_collect_ended(&m, 0);
    for (enum metric_act act; (act = metric_collect_next(&m, now_us)) != METRIC_CLOSE;) {
        if (act == METRIC_ASK_STREAM) {
            metric_collect_stream(&m, "", now_us);
        } else if (act == METRIC_ASK_FINAL) {
            metric_collect_failed(&m, act, &refused, now_us);
            finals++;
        }
        now_us += USEC_PER_SEC;
    }
    assert_int_equal(finals, METRIC_REFUSALS_MAX);
    assert_string_equal(m.note, "");
}

/* Lines that are read without knowing what to look for are lost: the log waits, also when its job
 * has ended. But what ended while its spec could not be read has nobody who tells that it can be:
 * so it is looked for now and then. */
static void test_metric_collect__a_log_waits_until_it_is_known_what_to_look_for(void **state)
{
    (void)state;
    struct metric_collect m = fresh();
    metric_collect_blind(&m, USEC_PER_SEC);
    assert_int_equal(metric_collect_next(&m, USEC_PER_SEC), METRIC_WAIT);
    metric_collect_ended(&m, 2 * USEC_PER_SEC);
    for (int64_t now_us = 2 * USEC_PER_SEC; now_us < METRIC_BLIND_US; now_us += 7 * USEC_PER_SEC) {
        assert_int_equal(metric_collect_next(&m, now_us), METRIC_WAIT);
        assert_int_equal(m.due_us, USEC_PER_SEC + METRIC_BLIND_US);
    }
    assert_int_equal(metric_collect_next(&m, USEC_PER_SEC + METRIC_BLIND_US), METRIC_READ_SPEC);
}

static void test_metric_collect__a_log_without_end_is_cut(void **state)
{
    (void)state;
    struct metric_collect m = fresh();
    metric_collect_stream(&m, "s0", 0);
    metric_collect_page(&m, METRIC_LOG_LINES_MAX, METRIC_LOG_LINES_MAX, "t1", 0);
    assert_int_equal(metric_collect_next(&m, 1), METRIC_CLOSE);
    assert_non_null(strstr(m.note, "only the first 5000000 lines"));
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metric_collect__every_line_once_in_2000_worlds),
        cmocka_unit_test(test_metric_collect__a_live_job_is_never_closed),
        cmocka_unit_test(test_metric_collect__a_log_that_may_not_be_read_is_given_up_with_a_note),
        cmocka_unit_test(test_metric_collect__an_outage_is_waited_out_for_a_while),
        cmocka_unit_test(test_metric_collect__final_values_may_be_refused),
        cmocka_unit_test(test_metric_collect__a_log_waits_until_it_is_known_what_to_look_for),
        cmocka_unit_test(test_metric_collect__a_log_without_end_is_cut),
    };
    return cmocka_run_group_tests_name("metric_collect", tests, NULL, NULL);
}
