/* Aim: an endpoint that nobody asks is deleted after its `idle`, with a margin for figures that
 * come late; one that is asked, or of which nothing is known, is not, and its own smoke test never
 * counts. CloudWatch is asked at a bearable rate. Method: an endpoint in service in a state made by
 * hand, answers to its questions, and a small CloudWatch that counts late. */
#include "core/leader/endpoint_idle.h"
#include "leader_world.h"

#define MINUTE (60 * SEC)
#define IDLE   1200
#define DELAY  (300 * SEC)
#define SINCE  (WALL - WALL % MINUTE + 10 * SEC) /* in service: ten seconds into a minute */

static const struct endpoint_idle_terms terms = {.interval_us = MINUTE, .delay_us = DELAY};

struct idle {
    struct leader_world w;
    struct live_endpoint *e;
    usec_t now_us;
    int64_t boot_us;
    struct endpoint_writes last;
};

static void idle_init(struct idle *d, int64_t idle_s)
{
    leader_world_init(&d->w);
    const struct endpoint_row row = {.id = 5,
                                     .project_id = 3,
                                     .campaign_id = 7,
                                     .stage_id = 70,
                                     .n = 1,
                                     .state = ENDPOINT_IN_SERVICE,
                                     .made = 3,
                                     .passed = true,
                                     .instances = 2,
                                     .ttl_s = 30 * 86400,
                                     .idle_s = idle_s,
                                     .intended_us = SINCE - 5 * MINUTE,
                                     .in_service_us = SINCE,
                                     .tested_us = SINCE + 70 * SEC,
                                     .tested_n = 4};
    d->e = leader_apply_endpoint_intent(&d->w.s, &row);
    d->now_us = SINCE + 75 * SEC;
    d->boot_us = BOOT;
}

static void pass(struct idle *d, int64_t us)
{
    d->now_us += us;
    d->boot_us += us;
}

static bool asks(struct idle *d, struct invocation_question *ret)
{
    int64_t wake_us = INT64_MAX;
    if (!leader_endpoint_idle_due(&d->w.s, d->e, d->now_us, d->boot_us, &terms, ret, &wake_us)) {
        return false;
    }
    leader_endpoint_idle_asked(d->e, d->boot_us, &terms);
    assert_true(ret->from % MINUTE == 0 && ret->from < ret->to && ret->to == d->now_us);
    assert_true((ret->to - ret->from) / (ret->period_s * SEC) + 2 <= INVOCATION_COUNTS_MAX);
    return true;
}

/* The answer to q, with `n` invocations in the period of each of the instants at[]. */
static bool answered(struct idle *d, const struct invocation_question *q, const usec_t *at,
                     const int64_t *n, size_t count)
{
    static struct invocation_report r;
    r.n = 0;
    for (size_t i = 0; i < count; i++) {
        usec_t start = at[i] - at[i] % (q->period_s * SEC);
        if (start >= q->from && start < q->to) {
            r.counts[r.n++] = (struct invocation_count){start, n[i]};
        }
    }
    leader_plan_endpoint_idle(d->e, q, &r, &terms, d->now_us, &d->last);
    if (d->last.news != ENDPOINT_AS_BEFORE) {
        leader_apply_endpoint(&d->w.s, d->e, &d->last);
    }
    return d->e->row.state == ENDPOINT_DELETING;
}

/* Asks `at` once the row allows it, and is answered so. */
static bool judged(struct idle *d, usec_t at, const usec_t *when, const int64_t *n, size_t count)
{
    struct invocation_question q;
    pass(d, at - d->now_us);
    d->e->idle_due_us = 0;
    assert_true(asks(d, &q));
    return answered(d, &q, when, n, count);
}

static void test_endpoint_idle__nobody_asked_it_for_so_long_and_the_delay(void **state)
{
    (void)state;
    struct idle d;
    idle_init(&d, IDLE);
    usec_t end = SINCE + IDLE * SEC + DELAY;
    assert_false(judged(&d, end - 1, NULL, NULL, 0));
    assert_int_equal(d.last.news, ENDPOINT_AS_BEFORE);
    assert_true(judged(&d, end, NULL, NULL, 0));
    assert_string_equal(d.e->row.reason, "idle for 20 m");
    assert_int_equal(d.e->row.deleting_us, end);
    assert_false(d.e->row.failed);
    leader_world_done(&d.w);
    static const struct {
        int64_t idle_s;
        const char *reason;
    } words[] = {{7200, "idle for 2 h"}, {5400, "idle for 90 m"}, {61, "idle for 61 s"}};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        idle_init(&d, words[i].idle_s);
        assert_true(judged(&d, SINCE + words[i].idle_s * SEC + DELAY, NULL, NULL, 0));
        assert_string_equal(d.e->row.reason, words[i].reason);
        leader_world_done(&d.w);
    }
}

static void test_endpoint_idle__an_invocation_keeps_it_from_the_end_of_its_minute_on(void **state)
{
    (void)state;
    struct idle d;
    idle_init(&d, IDLE);
    const usec_t at[] = {SINCE + 9 * MINUTE, SINCE + 5 * MINUTE}; /* in no order */
    const int64_t n[] = {1, 7};
    usec_t minute_end = at[0] - at[0] % MINUTE + MINUTE;
    assert_false(judged(&d, SINCE + 20 * MINUTE, at, n, 2));
    assert_int_equal(d.last.news, ENDPOINT_MOVED);
    assert_int_equal(d.e->row.invoked_us, minute_end);
    assert_false(judged(&d, SINCE + IDLE * SEC + DELAY, at, n, 2));
    assert_false(judged(&d, minute_end + IDLE * SEC + DELAY - 1, at, n, 2));
    assert_int_equal(d.last.news, ENDPOINT_AS_BEFORE); /* known already */
    assert_true(judged(&d, minute_end + IDLE * SEC + DELAY, at, n, 2));
    leader_world_done(&d.w);

    idle_init(&d, IDLE); /* a minute that is not over ends now */
    const usec_t just = SINCE + 8 * MINUTE;
    assert_false(judged(&d, just + 5 * SEC, &just, n, 1));
    assert_int_equal(d.e->row.invoked_us, just + 5 * SEC);
    leader_world_done(&d.w);
}

static void test_endpoint_idle__what_is_not_known_deletes_nothing(void **state)
{
    (void)state;
    struct idle d;
    struct invocation_question q;
    idle_init(&d, IDLE);
    pass(&d, 10 * IDLE * SEC);
    assert_true(asks(&d, &q));
    leader_plan_endpoint_idle(d.e, &q, NULL, &terms, d.now_us, &d.last);
    assert_int_equal(d.last.news, ENDPOINT_AS_BEFORE);
    assert_false(asks(&d, &q)); /* and is not asked for again at once */
    leader_world_done(&d.w);
    /* An answer to a question of long ago says nothing of the time since. */
    idle_init(&d, IDLE);
    assert_true(asks(&d, &q));
    pass(&d, 10 * IDLE * SEC);
    assert_false(answered(&d, &q, NULL, NULL, 0));
    leader_world_done(&d.w);
}

/* This clock may be days ahead: before AWS has told its own nothing is asked, and it does not spin;
 * nor is an answer believed to what turns out to lie in the future. */
static void test_endpoint_idle__a_clock_ahead_of_aws_ends_none(void **state)
{
    (void)state;
    struct idle d;
    struct invocation_question q;
    int64_t wake_us = INT64_MAX;
    idle_init(&d, IDLE);
    d.now_us += 86400 * SEC;
    d.w.s.clock.unsure = true;
    assert_false(leader_endpoint_idle_due(&d.w.s, d.e, d.now_us, d.boot_us, &terms, &q, &wake_us));
    assert_int_equal(wake_us, d.boot_us + SEC);
    d.w.s.clock.unsure = false;
    assert_true(asks(&d, &q));
    d.now_us -= 86400 * SEC - MINUTE;
    assert_false(answered(&d, &q, NULL, NULL, 0));
    assert_int_equal(d.last.news, ENDPOINT_AS_BEFORE);
    leader_world_done(&d.w);
}

static void test_endpoint_idle__its_smoke_test_does_not_count(void **state)
{
    (void)state;
    struct idle d;
    usec_t end = SINCE + IDLE * SEC + DELAY;
    const usec_t at[] = {SINCE + 20 * SEC, SINCE + 65 * SEC}; /* two minutes */
    const int64_t own[] = {3, 1};
    idle_init(&d, IDLE);
    assert_false(judged(&d, SINCE + 75 * SEC, at, own, 2));
    assert_int_equal(d.e->row.invoked_us, 0);
    assert_true(judged(&d, end, at, own, 2));
    leader_world_done(&d.w);
    const int64_t more[] = {3, 2}; /* somebody else asked meanwhile */
    idle_init(&d, IDLE);
    assert_false(judged(&d, end, at, more, 2));
    usec_t minute_end = at[1] - at[1] % MINUTE + MINUTE;
    assert_int_equal(d.e->row.invoked_us, minute_end);
    leader_world_done(&d.w);
    const usec_t after = SINCE + 3 * MINUTE; /* or afterwards, less often than the test */
    const int64_t one = 1;
    idle_init(&d, IDLE);
    assert_false(judged(&d, end, &after, &one, 1));
    leader_world_done(&d.w);
}

static void test_endpoint_idle__only_one_that_serves_is_judged(void **state)
{
    (void)state;
    struct idle d;
    struct invocation_question q;
    struct invocation_report none = {.n = 0};
    for (int s = 0; s <= ENDPOINT_STATE_COUNT; s++) { /* the last: in service, not tested */
        idle_init(&d, IDLE);
        pass(&d, 10 * IDLE * SEC);
        assert_true(asks(&d, &q));
        d.e->idle_due_us = 0;
        d.e->row.state = s < ENDPOINT_STATE_COUNT ? (enum endpoint_state)s : ENDPOINT_IN_SERVICE;
        d.e->row.passed = s < ENDPOINT_STATE_COUNT;
        assert_int_equal(asks(&d, &q), s == ENDPOINT_IN_SERVICE);
        leader_plan_endpoint_idle(d.e, &q, &none, &terms, d.now_us, &d.last);
        assert_int_equal(d.last.news,
                         s == ENDPOINT_IN_SERVICE ? ENDPOINT_MOVED : ENDPOINT_AS_BEFORE);
        leader_world_done(&d.w);
    }
}

/* Its last invocation is shown all the same. */
static void test_endpoint_idle__without_idle_it_is_never_deleted(void **state)
{
    (void)state;
    struct idle d;
    const int64_t one = 1;
    idle_init(&d, 0);
    assert_false(judged(&d, SINCE + 20 * 86400 * SEC, NULL, NULL, 0));
    usec_t at = d.now_us - 3600 * SEC;
    assert_false(judged(&d, d.now_us + MINUTE, &at, &one, 1));
    assert_in_range(d.e->row.invoked_us, at, at + MINUTE);
    leader_world_done(&d.w);
}

static void test_endpoint_idle__is_asked_for_at_a_bearable_rate(void **state)
{
    (void)state;
    static const struct {
        int64_t idle_s, every_s;
    } rates[] = {{60, 60}, {IDLE, 240}, {86400, 17280}, {0, 600}};
    for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
        struct idle d;
        struct invocation_question q;
        int64_t wake_us = INT64_MAX;
        idle_init(&d, rates[i].idle_s);
        assert_true(asks(&d, &q)); /* a new leader asks at once */
        pass(&d, rates[i].every_s * SEC - 1);
        assert_false(asks(&d, &q));
        assert_false(
            leader_endpoint_idle_due(&d.w.s, d.e, d.now_us, d.boot_us, &terms, &q, &wake_us));
        assert_int_equal(wake_us, d.boot_us + 1);
        pass(&d, 1);
        assert_true(asks(&d, &q));
        leader_world_done(&d.w);
    }
}

/* From the row's base on, never more than one answer has room for, in minutes while it can be. */
static void test_endpoint_idle__asks_for_what_it_has_to_know(void **state)
{
    (void)state;
    struct idle d;
    struct invocation_question q;
    idle_init(&d, IDLE);
    assert_true(asks(&d, &q));
    assert_int_equal(q.from, SINCE - SINCE % MINUTE);
    assert_int_equal(q.period_s, 60);
    d.e->idle_due_us = 0;
    pass(&d, 86400 * SEC); /* nobody could be asked for a day */
    assert_true(asks(&d, &q));
    assert_true(q.from <= d.now_us - DELAY - IDLE * SEC);
    assert_true(q.from > d.now_us - DELAY - IDLE * SEC - MINUTE);
    leader_world_done(&d.w);
    for (int64_t days = 1; days <= 30; days++) {
        idle_init(&d, days * 86400);
        pass(&d, SINCE + days * 86400 * SEC + DELAY - d.now_us);
        assert_true(asks(&d, &q)); /* looks at the size of the answer */
        assert_true(q.from <= SINCE);
        assert_true(days < 15 || q.period_s % 300 == 0);
        leader_world_done(&d.w);
    }
    idle_init(&d, IDLE); /* AWS' clock is far behind */
    d.now_us = SINCE - 3600 * SEC;
    assert_false(asks(&d, &q));
    leader_world_done(&d.w);
}

/* A CloudWatch that shows an invocation up to five minutes late, against users that pause for
 * random times: it is deleted only when they paused for longer than `idle`, and then soon. */
static void test_endpoint_idle__late_figures_never_end_one_that_is_in_use(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 7);
    for (int round = 0; round < 200; round++) {
        struct idle d;
        usec_t at[64];
        int64_t n[64];
        int64_t late[64];
        size_t asked = 0;
        usec_t next = SINCE + 80 * SEC;
        idle_init(&d, IDLE);
        for (size_t i = 0; i < 64; i++) {
            next += (int64_t)(rng_unit(&rng) * 1.1 * IDLE * (double)SEC);
            at[i] = next;
            n[i] = 1;
            late[i] = (int64_t)(rng_unit(&rng) * (double)DELAY);
        }
        for (bool over = false; !over && d.now_us < at[60];) {
            struct invocation_question q;
            usec_t shown[64];
            size_t shown_n = 0;
            pass(&d, 5 * SEC);
            for (asked = 0; asked < 64 && at[asked] <= d.now_us; asked++) {
                if (at[asked] + late[asked] <= d.now_us) {
                    shown[shown_n++] = at[asked];
                }
            }
            over = asks(&d, &q) && answered(&d, &q, shown, n, shown_n);
            usec_t last = asked > 0 ? at[asked - 1] : SINCE;
            assert_true(over || d.now_us - last < IDLE * SEC + DELAY + 6 * MINUTE);
        }
        if (d.e->row.state == ENDPOINT_DELETING) {
            usec_t last = SINCE;
            for (size_t i = 0; i < 64 && at[i] <= d.now_us - DELAY; i++) {
                last = MAX(last, at[i]);
            }
            assert_true(d.now_us - DELAY - last >= IDLE * SEC);
        }
        leader_world_done(&d.w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_endpoint_idle__nobody_asked_it_for_so_long_and_the_delay),
        cmocka_unit_test(test_endpoint_idle__an_invocation_keeps_it_from_the_end_of_its_minute_on),
        cmocka_unit_test(test_endpoint_idle__what_is_not_known_deletes_nothing),
        cmocka_unit_test(test_endpoint_idle__a_clock_ahead_of_aws_ends_none),
        cmocka_unit_test(test_endpoint_idle__its_smoke_test_does_not_count),
        cmocka_unit_test(test_endpoint_idle__only_one_that_serves_is_judged),
        cmocka_unit_test(test_endpoint_idle__without_idle_it_is_never_deleted),
        cmocka_unit_test(test_endpoint_idle__is_asked_for_at_a_bearable_rate),
        cmocka_unit_test(test_endpoint_idle__asks_for_what_it_has_to_know),
        cmocka_unit_test(test_endpoint_idle__late_figures_never_end_one_that_is_in_use),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
