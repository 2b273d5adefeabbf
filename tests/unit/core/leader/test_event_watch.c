/* Aim: polls are rare while events tell of every end, and back at once when they do not; no event
 * is believed, and none is lost that needs a Describe. Method: attempts by hand, the clock is a
 * number; a day of 200 jobs by the watch's own words. */
#include "core/leader/attempt_answer.h"
#include "core/leader/event_watch.h"
#include "leader_world.h"

#define INTERVAL (10 * SEC)
#define MINUTE   (60 * SEC)

struct watch_world {
    struct leader_world w;
    struct event_watch e;
    int64_t us; /* boot */
};

static void setup(struct watch_world *t, int live)
{
    leader_world_init(&t->w);
    t->w.ls->row.counts[TASK_WAITING] = 1000;
    t->us = BOOT;
    event_watch_init(&t->e, INTERVAL, t->us);
    for (int i = 1; i <= live; i++) {
        struct live_attempt *a = leader_world_attempt(&t->w, i, 1);
        a->p.state = ATTEMPT_RUNNING;
        a->p.described_us = BOOT;
        a->p.modified = WALL;
        a->moved_us = BOOT;
    }
}

static struct live_attempt *nth(struct watch_world *t, int i)
{
    return t->w.s.attempts[i - 1];
}

static void answered(struct watch_world *t)
{
    (void)event_watch_answered(&t->e, 1, 10, SEC, t->us);
}

static bool told(struct watch_world *t, struct live_attempt *a, const char *status,
                 const char *secondary, usec_t modified)
{
    struct job_seen seen = leader_job_seen(status, secondary, modified);
    return event_watch_told(&t->e, a, a->row.name.s, &seen, t->us);
}

static bool relies(struct watch_world *t)
{
    bool tick = event_watch_tick(&t->e, t->us);
    assert_int_equal(event_watch_list_us(&t->e, &t->w.s), tick ? 60 * INTERVAL : INTERVAL);
    return tick;
}

/* A Describe shows its end. */
static void ends(struct watch_world *t, struct live_attempt *a)
{
    const struct protocol_effect e = {.changed = true, .from = a->p.state};
    a->p.state = ATTEMPT_VERIFYING;
    event_watch_moved(&t->e, a, &e, t->us);
}

static void rely(struct watch_world *t)
{
    answered(t);
    (void)told(t, nth(t, 1), "InProgress", "Training", WALL + SEC);
    assert_true(relies(t));
}

static void test_event_watch__relied_on_once_one_of_ours_has_come(void **state)
{
    (void)state;
    struct watch_world t;
    struct job_seen seen = leader_job_seen("Completed", "Completed", WALL);
    setup(&t, 1);
    assert_false(relies(&t));
    assert_int_equal(event_watch_age_s(&t.e, t.us), -1);
    answered(&t); /* a queue alone says nothing: there may be no rule that fills it */
    assert_false(relies(&t));
    assert_false(event_watch_told(&t.e, NULL, "somebody-elses", &seen, t.us));
    assert_false(relies(&t));
    rely(&t);
    t.us += 7 * SEC;
    assert_int_equal(event_watch_age_s(&t.e, t.us), 7);
    leader_world_done(&t.w);
}

static void test_event_watch__a_queue_that_refuses_brings_the_polls_back(void **state)
{
    (void)state;
    struct watch_world t;
    const struct aws_failure f = {.outcome = AWS_REFUSED};
    const struct aws_failure slow = {.outcome = AWS_THROTTLED, .retry_after_us = 90 * SEC};
    setup(&t, 1);
    rely(&t);
    assert_int_equal(event_watch_refused(&t.e, &f, t.us), SEC);
    assert_false(relies(&t));
    for (int i = 0; i < 10; i++) {
        (void)event_watch_refused(&t.e, &f, t.us);
    }
    assert_int_equal(event_watch_refused(&t.e, &f, t.us), MINUTE);
    assert_int_equal(event_watch_refused(&t.e, &slow, t.us), 90 * SEC);
    ends(&t, nth(&t, 1)); /* its event is in the queue that does not answer */
    t.us += 3600 * SEC;
    assert_false(relies(&t));
    answered(&t);
    assert_true(relies(&t));
    t.us += 60 * SEC - 1;
    assert_true(relies(&t));
    t.us++; /* it has not come */
    assert_false(relies(&t));
    leader_world_done(&t.w);
}

static void test_event_watch__an_end_that_no_event_tells_brings_the_polls_back(void **state)
{
    (void)state;
    struct watch_world t;
    setup(&t, 4);
    rely(&t);
    assert_true(told(&t, nth(&t, 2), "Completed", "Completed", WALL + 5 * SEC)); /* before */
    ends(&t, nth(&t, 2));
    ends(&t, nth(&t, 3));
    t.us += 59 * SEC; /* late */
    assert_false(told(&t, nth(&t, 3), "Completed", "Completed", WALL + 5 * SEC));
    t.us += 600 * SEC;
    assert_true(relies(&t));
    ends(&t, nth(&t, 4));
    t.us += 60 * SEC;
    assert_false(relies(&t));
    assert_true(told(&t, nth(&t, 1), "Stopping", "Stopping", WALL + 9 * SEC));
    assert_false(relies(&t)); /* for five minutes no event counts */
    t.us += 300 * SEC;
    assert_true(told(&t, nth(&t, 1), "Stopping", "Stopping", WALL + 9 * SEC));
    assert_true(relies(&t));
    leader_world_done(&t.w);
}

static void test_event_watch__every_further_loss_costs_twice_the_time(void **state)
{
    (void)state;
    struct watch_world t;
    setup(&t, 10);
    rely(&t);
    for (int i = 2; i <= 9; i++) {
        int64_t doubt_us = (300 * SEC) << MIN(i - 2, 5);
        ends(&t, nth(&t, i));
        t.us += 60 * SEC;
        assert_false(relies(&t));
        t.us += doubt_us - 1;
        (void)told(&t, nth(&t, 1), "InProgress", "Uploading", WALL + i * SEC);
        assert_false(relies(&t));
        t.us++;
        (void)told(&t, nth(&t, 1), "InProgress", "Uploading", WALL + i * SEC);
        assert_true(relies(&t));
    }
    for (int i = 0; i < 200; i++) { /* that is forgiven in the end */
        (void)told(&t, nth(&t, 1), "Completed", "Completed", WALL + SEC);
    }
    ends(&t, nth(&t, 10));
    t.us += 60 * SEC;
    assert_false(relies(&t));
    t.us += 300 * SEC;
    (void)told(&t, nth(&t, 1), "Completed", "Completed", WALL + SEC);
    assert_true(relies(&t));
    leader_world_done(&t.w);
}

static void test_event_watch__what_is_known_is_not_described(void **state)
{
    (void)state;
    struct watch_world t;
    setup(&t, 1);
    answered(&t);
    struct live_attempt *a = nth(&t, 1);
    assert_false(told(&t, a, "InProgress", "Training", WALL + 5 * SEC)); /* it runs */
    assert_false(told(&t, a, "InProgress", "Starting", WALL - 5 * SEC)); /* old */
    assert_true(told(&t, a, "InProgress", "Starting", WALL + 5 * SEC));  /* spot took it */
    assert_true(told(&t, a, "InProgress", "Uploading", WALL + 5 * SEC));
    assert_true(told(&t, a, "Failed", "Failed", WALL - 5 * SEC)); /* its end is always looked at */
    assert_true(told(&t, a, "Nonsense", "", 0));
    a->p.state = ATTEMPT_UNKNOWN; /* so it exists */
    assert_true(told(&t, a, "InProgress", "Starting", 0));
    a->p.state = ATTEMPT_SUCCEEDED;
    assert_false(told(&t, a, "Completed", "Completed", WALL + 9 * SEC));
    leader_world_done(&t.w);
}

static void test_event_watch__what_a_describe_does_not_show_yet_is_described_again(void **state)
{
    (void)state;
    struct watch_world t;
    setup(&t, 1);
    answered(&t);
    struct live_attempt *a = nth(&t, 1);
    a->describe_sent_us = t.us;
    t.us += SEC / 10; /* while a Describe is under way */
    assert_true(told(&t, a, "Completed", "Completed", WALL + 5 * SEC));
    event_watch_described(&t.e, a, t.us);
    assert_int_equal(event_watch_due_us(&t.e, a), t.us);
    for (int i = 1; i <= 2; i++) { /* Describes that are behind */
        a->describe_sent_us = t.us;
        event_watch_described(&t.e, a, t.us);
        assert_int_equal(event_watch_due_us(&t.e, a), t.us + (SEC << i));
        t.us += SEC << i;
    }
    a->describe_sent_us = t.us;
    event_watch_described(&t.e, a, t.us); /* or the event lies */
    assert_true(event_watch_due_us(&t.e, a) >= BOOT + 720 * SEC);
    assert_true(told(&t, a, "Completed", "Completed", WALL + 6 * SEC));
    a->describe_sent_us = t.us;
    a->p.modified = WALL + 6 * SEC;
    event_watch_described(&t.e, a, t.us);
    assert_int_equal(a->event_due_us, 0);
    leader_world_done(&t.w);
}

static void test_event_watch__a_job_is_described_when_its_time_has_come(void **state)
{
    (void)state;
    struct watch_world t;
    setup(&t, 2);
    struct live_attempt *a = nth(&t, 2);
    assert_int_equal(event_watch_due_us(&t.e, a), INT64_MAX); /* Lists show it */
    rely(&t);
    assert_int_equal(event_watch_due_us(&t.e, a), BOOT + 720 * SEC);
    a->p.described_us = BOOT + 1000 * SEC;
    assert_int_equal(event_watch_due_us(&t.e, a), BOOT + 2000 * SEC);
    a->p.look_now = true;
    assert_int_equal(event_watch_due_us(&t.e, a), INT64_MAX);
    a->p.look_now = false;
    duration_init(&a->stage->duration, 3600 * SEC); /* what its stage takes */
    duration_fit(&a->stage->duration);
    int64_t p90_us = duration_quantile_us(&a->stage->duration, 300, 90);
    assert_in_range(p90_us, 3600 * SEC, 5400 * SEC);
    assert_int_equal(event_watch_due_us(&t.e, a), BOOT + p90_us);
    a->p.described_us = BOOT + p90_us + SEC;
    assert_int_equal(event_watch_due_us(&t.e, a), a->p.described_us + MINUTE);
    a->p.described_us = BOOT + p90_us + 300 * SEC;
    assert_int_equal(event_watch_due_us(&t.e, a), a->p.described_us + 300 * SEC);
    a->p.state = ATTEMPT_STOPPING;
    a->moved_us = a->p.described_us;
    assert_int_equal(event_watch_due_us(&t.e, a), a->p.described_us + MINUTE);
    a->p.state = ATTEMPT_STARTING;
    assert_int_equal(event_watch_due_us(&t.e, a), a->p.described_us + 720 * SEC);
    a->listed_us = a->p.described_us + 600 * SEC; /* a List is as good */
    assert_int_equal(event_watch_due_us(&t.e, a), a->listed_us + 720 * SEC);
    a->listed_us = 0;
    a->moved_us = 0; /* a takeover found it: since then */
    assert_int_equal(event_watch_due_us(&t.e, a), 2 * a->p.described_us - BOOT);
    leader_world_done(&t.w);
}

static void test_event_watch__pools_raise_no_events(void **state)
{
    (void)state;
    struct watch_world t;
    setup(&t, 1);
    rely(&t);
    leader_world_pool(&t.w, 1, POOL_AVAILABLE, NULL);
    assert_int_equal(event_watch_list_us(&t.e, &t.w.s), 3 * INTERVAL);
    leader_world_done(&t.w);
}

static void test_event_watch__after_a_loss_not_all_is_stale_at_once(void **state)
{
    (void)state;
    struct watch_world t;
    const struct aws_failure f = {.outcome = AWS_UNKNOWN};
    const int64_t stale_us = 600 * SEC;
    setup(&t, 1);
    assert_int_equal(event_watch_stale_us(&t.e, stale_us, t.us), stale_us);
    rely(&t);
    assert_int_equal(event_watch_stale_us(&t.e, stale_us, t.us), 6 * 3600 * SEC);
    (void)event_watch_refused(&t.e, &f, t.us);
    assert_int_equal(event_watch_stale_us(&t.e, stale_us, t.us), 6 * 3600 * SEC);
    t.us += 300 * SEC;
    assert_int_equal(event_watch_stale_us(&t.e, stale_us, t.us), 3 * 3600 * SEC);
    t.us += 300 * SEC;
    assert_int_equal(event_watch_stale_us(&t.e, stale_us, t.us), stale_us);
    leader_world_done(&t.w);
}

static void test_event_watch__the_queue_is_asked_in_time_and_not_too_often(void **state)
{
    (void)state;
    struct watch_world t;
    setup(&t, 0);
    assert_int_equal(event_watch_answered(&t.e, 10, 10, SEC, t.us), SEC / 5);
    assert_int_equal(event_watch_answered(&t.e, 1, 10, SEC, t.us), 2 * SEC);
    assert_int_equal(event_watch_answered(&t.e, 0, 10, 20 * SEC, t.us), 0);
    assert_int_equal(event_watch_answered(&t.e, 0, 10, 0, t.us), SEC); /* it does not wait */
    leader_world_done(&t.w);
}

static void test_event_watch__200_jobs_cost_a_describe_in_minutes(void **state)
{
    (void)state;
    struct watch_world t;
    int64_t looks = 0;
    const int64_t hours = 12;
    setup(&t, 200);
    rely(&t);
    for (; t.us < BOOT + hours * 3600 * SEC; t.us += 10 * SEC) {
        for (int i = 1; i <= 200; i++) {
            struct live_attempt *a = nth(&t, i);
            int64_t stale_us = a->p.described_us + event_watch_stale_us(&t.e, 600 * SEC, t.us);
            if ((t.us - BOOT) % (600 * SEC) == 0) {
                a->listed_us = t.us;
            }
            if (t.us >= MIN(stale_us, event_watch_due_us(&t.e, a))) {
                a->p.described_us = t.us;
                looks++;
            }
        }
    }
    double each_s = (double)looks / (double)(hours * 3600);
    print_message("# 200 jobs: %.3f Describes a second over %d hours\n", each_s, (int)hours);
    assert_true(looks >= 200 && each_s <= 0.01);
    leader_world_done(&t.w);
}

static void test_event_watch__messages_are_deleted_in_batches_and_in_time(void **state)
{
    (void)state;
    static const struct {
        size_t n, deletes;
        int64_t after_us, due_us; /* since the oldest was taken */
    } rows[] = {
        {0, 0, 100 * SEC, INT64_MAX}, {1, 0, 0, 15 * SEC}, {9, 0, 15 * SEC - 1, 15 * SEC},
        {9, 9, 15 * SEC, 15 * SEC},   {10, 10, 0, 0},      {14, 10, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t due_us, now_us = BOOT + rows[i].after_us;
        assert_int_equal(event_watch_deletes(rows[i].n, 10, BOOT, now_us, &due_us),
                         rows[i].deletes);
        if (rows[i].deletes == 0) {
            assert_int_equal(due_us, rows[i].n == 0 ? INT64_MAX : BOOT + rows[i].due_us);
        }
    }
}

static void test_event_watch__no_more_is_asked_for_than_can_be_deleted(void **state)
{
    (void)state;
    static const struct {
        size_t n;
        int64_t after_us, due_us;
    } rows[] = {{0, -1, 0}, {0, 0, 0}, {10, 5, 0}, {10, -5, 0}, {11, 5, INT64_MAX}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t due_us;
        bool fits = rows[i].due_us == 0;
        assert_int_equal(
            event_watch_asks(rows[i].n, 20, 10, BOOT, BOOT + rows[i].after_us, &due_us),
            fits && rows[i].after_us >= 0);
        assert_int_equal(due_us, fits ? BOOT : INT64_MAX);
    }
}

static void test_event_watch__after_an_answer_of_no_use_one_message_is_asked_for(void **state)
{
    (void)state;
    struct watch_world t;
    const struct aws_failure f = {.outcome = AWS_UNKNOWN};
    setup(&t, 1);
    assert_int_equal(event_watch_most(&t.e, 10), 10);
    (void)event_watch_refused(&t.e, &f, t.us);
    assert_int_equal(event_watch_most(&t.e, 10), 1);
    answered(&t);
    assert_int_equal(event_watch_most(&t.e, 10), 10);
    leader_world_done(&t.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_event_watch__relied_on_once_one_of_ours_has_come),
        cmocka_unit_test(test_event_watch__a_queue_that_refuses_brings_the_polls_back),
        cmocka_unit_test(test_event_watch__an_end_that_no_event_tells_brings_the_polls_back),
        cmocka_unit_test(test_event_watch__every_further_loss_costs_twice_the_time),
        cmocka_unit_test(test_event_watch__what_is_known_is_not_described),
        cmocka_unit_test(test_event_watch__what_a_describe_does_not_show_yet_is_described_again),
        cmocka_unit_test(test_event_watch__a_job_is_described_when_its_time_has_come),
        cmocka_unit_test(test_event_watch__pools_raise_no_events),
        cmocka_unit_test(test_event_watch__after_a_loss_not_all_is_stale_at_once),
        cmocka_unit_test(test_event_watch__the_queue_is_asked_in_time_and_not_too_often),
        cmocka_unit_test(test_event_watch__200_jobs_cost_a_describe_in_minutes),
        cmocka_unit_test(test_event_watch__messages_are_deleted_in_batches_and_in_time),
        cmocka_unit_test(test_event_watch__after_an_answer_of_no_use_one_message_is_asked_for),
        cmocka_unit_test(test_event_watch__no_more_is_asked_for_than_can_be_deleted),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
