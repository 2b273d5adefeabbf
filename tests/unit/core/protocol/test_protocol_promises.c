/* Aim: the promises of core/protocol/protocol.h at their boundaries. Method: one attempt at a time
 * is led by facts to where a promise could break, one instant before and after. */
#include "protocol_help.h"

static void test_protocol_promises__a_send_is_asked_once_and_waited_for(void **state)
{
    (void)state;
    struct protocol_attempt a = in_state(ATTEMPT_INTENDED);
    assert_int_equal(next(&a, 1 * S), ACT_CREATE);
    assert_int_equal(next(&a, 1000 * S), ACT_NONE); /* in flight: only a fact goes on */
    (void)give_at(&a, FACT_CREATE_SIGNED, 1 * S);
    (void)give_at(&a, FACT_CREATE_OK, 2 * S);
    assert_int_equal(a.state, ATTEMPT_SUBMITTED);
    int64_t wake;
    assert_int_equal(protocol_next(&a, 2 * S, &cfg, &wake), ACT_NONE);
    assert_true(wake == 602 * S); /* seen just now: looked at when stale */
    assert_int_equal(next(&a, 602 * S), ACT_DESCRIBE);
    assert_int_equal(next(&a, 603 * S), ACT_NONE);
}

static void test_protocol_promises__a_refusal_proves_nothing_after_one_unknown_send(void **state)
{
    (void)state;
    static const enum cause causes[] = {CAUSE_QUOTA,         CAUSE_CAPACITY,    CAUSE_THROTTLED,
                                        CAUSE_ACCESS_DENIED, CAUSE_BAD_REQUEST, CAUSE_NETWORK};
    for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
        struct protocol_attempt a = in_state(ATTEMPT_UNKNOWN);
        assert_false(refuse(&a, causes[i], 3 * S).changed);
        assert_int_equal(a.state, ATTEMPT_UNKNOWN);
        assert_int_equal(next(&a, 100 * S), ACT_DESCRIBE); /* the first may hold the very slot */
    }
    /* A throttled send before is no unknown one: a later refusal still proves it. */
    struct protocol_attempt a = in_state(ATTEMPT_INTENDED);
    (void)refuse(&a, CAUSE_THROTTLED, 3 * S);
    struct protocol_effect e = refuse(&a, CAUSE_QUOTA, 5 * S);
    assert_int_equal(a.state, ATTEMPT_VOID);
    assert_int_equal(e.cause, CAUSE_QUOTA);
    assert_true(e.release_slot && !e.settle);
}

static void
test_protocol_promises__an_unknown_one_is_looked_for_and_sent_again_in_turn(void **state)
{
    (void)state;
    struct protocol_attempt a = in_state(ATTEMPT_UNKNOWN);
    int64_t wake;
    assert_int_equal(protocol_next(&a, 2 * S, &cfg, &wake), ACT_NONE);
    assert_true(wake == 3 * S);
    int64_t now = 3 * S;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(next(&a, now), ACT_DESCRIBE);
        (void)give_at(&a, FACT_NOT_FOUND, now);
        now += 60 * S;
        assert_int_equal(next(&a, now), ACT_CREATE);
        (void)give_at(&a, FACT_CREATE_SIGNED, now);
        (void)give_at(&a, FACT_CREATE_UNKNOWN, now);
        now += 60 * S;
    }
    assert_int_equal(next(&a, now), ACT_DESCRIBE);
    (void)give_at(&a, FACT_DESCRIBE_FAILED, now); /* must not hang on Describe alone */
    assert_int_equal(next(&a, now + 60 * S), ACT_CREATE);
    (void)give_at(&a, FACT_CREATE_OK, now + 60 * S);
    assert_int_equal(a.state, ATTEMPT_SUBMITTED);
}

static void test_protocol_promises__a_name_in_use_is_adopted_only_with_our_hash(void **state)
{
    (void)state;
    struct protocol_attempt a = in_state(ATTEMPT_INTENDED);
    (void)give_at(&a, FACT_CREATE_IN_USE, 5 * S);
    assert_int_equal(a.state, ATTEMPT_UNKNOWN);
    assert_int_equal(next(&a, 5 * S), ACT_DESCRIBE); /* at once */
    struct protocol_attempt b = a;
    (void)describe(&a, JOB_IN_PROGRESS, PHASE_RUNNING, 7);
    assert_int_equal(a.state, ATTEMPT_RUNNING);
    struct protocol_effect e =
        give(&b, (struct fact){.kind = FACT_DESCRIBED,
                               .job = {JOB_IN_PROGRESS, PHASE_RUNNING, false, 7}});
    assert_int_equal(b.state, ATTEMPT_CONFLICT);
    assert_true(e.alert && e.release_slot && !e.settle && e.task_ends);
    /* Used, and yet not found: late, so no loop without a wait. */
    struct protocol_attempt c = in_state(ATTEMPT_INTENDED);
    (void)give_at(&c, FACT_CREATE_IN_USE, 5 * S);
    assert_int_equal(next(&c, 5 * S), ACT_DESCRIBE);
    (void)give_at(&c, FACT_NOT_FOUND, 5 * S);
    assert_int_equal(next(&c, 5 * S), ACT_NONE);
}

/* Unwanted, looked for at `sent`: is it void now? */
static bool void_after_look(struct protocol_attempt a, int64_t sent)
{
    (void)give_at(&a, FACT_UNWANTED, 3 * S);
    (void)give_at(&a, FACT_NOT_FOUND, sent);
    struct protocol_attempt b = a;
    (void)give_at(&b, FACT_VOID, sent + 5 * S);
    assert_int_equal(next(&a, sent + 100 * S) == ACT_VOID, b.state == ATTEMPT_VOID);
    return b.state == ATTEMPT_VOID;
}

static void test_protocol_promises__void_needs_a_look_sent_after_the_window(void **state)
{
    (void)state;
    struct protocol_attempt a = in_state(ATTEMPT_UNKNOWN); /* signed at 1 s */
    assert_false(void_after_look(a, 3 * S));
    assert_false(void_after_look(a, 901 * S - 1));
    assert_false(void_after_look(a, 901 * S)); /* honoured up to and with this instant */
    assert_true(void_after_look(a, 901 * S + 1));
    (void)give_at(&a, FACT_CREATE_SIGNED, 500 * S); /* a newer signature: a newer window */
    (void)give_at(&a, FACT_CREATE_UNKNOWN, 501 * S);
    assert_false(void_after_look(a, 1400 * S));
    assert_true(void_after_look(a, 1400 * S + 1));
    a.create_in_flight = true; /* one under way: no look counts */
    assert_false(void_after_look(a, 1400 * S + 1));
    a.create_in_flight = false;
    assert_false(void_after_look(in_state(ATTEMPT_SUBMITTED), 9000 * S));
}

static void test_protocol_promises__a_signature_after_the_look_undoes_it(void **state)
{
    (void)state;
    struct protocol_attempt a = in_state(ATTEMPT_UNKNOWN);
    (void)give_at(&a, FACT_NOT_FOUND, 950 * S); /* still wanted then */
    (void)give_at(&a, FACT_CREATE_SIGNED, 951 * S);
    (void)give_at(&a, FACT_CREATE_UNKNOWN, 952 * S);
    (void)give_at(&a, FACT_UNWANTED, 953 * S);
    assert_int_equal(next(&a, 2000 * S), ACT_DESCRIBE);
    (void)give_at(&a, FACT_VOID, 2000 * S);
    assert_int_equal(a.state, ATTEMPT_UNKNOWN);
}

static void test_protocol_promises__unwanted_and_unknown_is_not_sent_but_looked_for(void **state)
{
    (void)state;
    struct protocol_attempt a = in_state(ATTEMPT_UNKNOWN);
    (void)give_at(&a, FACT_UNWANTED, 3 * S);
    int64_t now = 4 * S;
    int looks = 0;
    while (now < 2000 * S) {
        int64_t wake;
        enum protocol_action action = protocol_next(&a, now, &cfg, &wake);
        if (action == ACT_VOID) {
            break;
        }
        assert_true(action == ACT_DESCRIBE || action == ACT_NONE);
        if (action == ACT_DESCRIBE) {
            looks++;
            (void)give_at(&a, FACT_NOT_FOUND, now);
        } else {
            now = wake;
        }
    }
    assert_true(now == 901 * S + 1); /* not a minute later */
    assert_in_range(looks, 10, 30);
    (void)give_at(&a, FACT_VOID, now);
    assert_int_equal(a.state, ATTEMPT_VOID);
}

static void test_protocol_promises__unwanted_and_found_is_adopted_then_stopped(void **state)
{
    (void)state;
    struct protocol_attempt a = in_state(ATTEMPT_UNKNOWN);
    (void)give_at(&a, FACT_UNWANTED, 3 * S);
    assert_int_equal(next(&a, 60 * S), ACT_DESCRIBE);
    (void)describe(&a, JOB_IN_PROGRESS, PHASE_RUNNING, 7);
    assert_int_equal(a.state, ATTEMPT_RUNNING);
    assert_int_equal(next(&a, 60 * S), ACT_STOP);
    assert_int_equal(next(&a, 60 * S), ACT_NONE);
    struct protocol_effect e = give_at(&a, FACT_STOP_OK, 61 * S);
    assert_int_equal(a.state, ATTEMPT_STOPPING);
    assert_false(e.release_slot); /* held until a Describe shows the end */
    assert_int_equal(next(&a, 70 * S), ACT_DESCRIBE);
    e = describe(&a, JOB_STOPPED, PHASE_ENDED, 9);
    assert_true(e.release_slot && e.settle && e.task_ends);
}

static void
test_protocol_promises__an_unwanted_intent_is_voided_when_nothing_is_under_way(void **state)
{
    (void)state;
    struct protocol_attempt a = in_state(ATTEMPT_INTENDED);
    (void)give_at(&a, FACT_UNWANTED, 1 * S);
    assert_int_equal(next(&a, 1 * S), ACT_VOID);
    struct protocol_effect e = give_at(&a, FACT_VOID, 1 * S);
    assert_true(a.state == ATTEMPT_VOID && e.release_slot && !e.settle);
    assert_int_equal(e.cause, CAUSE_STOPPED);

    a = in_state(ATTEMPT_INTENDED); /* under way: resolved first */
    assert_int_equal(next(&a, 1 * S), ACT_CREATE);
    (void)give_at(&a, FACT_CREATE_SIGNED, 1 * S);
    (void)give_at(&a, FACT_UNWANTED, 2 * S);
    assert_int_equal(next(&a, 2 * S), ACT_NONE);
    (void)give_at(&a, FACT_VOID, 2 * S);
    assert_int_equal(a.state, ATTEMPT_INTENDED);
    struct protocol_attempt b = a;
    (void)refuse(&a, CAUSE_THROTTLED, 3 * S); /* refused: nothing exists, no wait for a back-off */
    assert_int_equal(next(&a, 3 * S), ACT_VOID);
    (void)give_at(&b, FACT_CREATE_UNSENT, 3 * S);
    assert_int_equal(next(&b, 3 * S), ACT_VOID);
}

static void test_protocol_promises__a_stop_races_with_the_end(void **state)
{
    (void)state;
    struct protocol_attempt a = in_state(ATTEMPT_RUNNING);
    (void)give_at(&a, FACT_UNWANTED, 51 * S);
    (void)give_at(&a, FACT_STOP_OK, 52 * S);
    (void)describe(&a, JOB_COMPLETED, PHASE_ENDED, 20);
    assert_int_equal(a.state, ATTEMPT_VERIFYING);
    assert_int_equal(next(&a, 53 * S), ACT_VERIFY);
    (void)give_at(&a, FACT_VERIFIED, 54 * S);
    assert_int_equal(a.state, ATTEMPT_SUCCEEDED);
}

static void test_protocol_promises__a_stop_not_taken_is_asked_again(void **state)
{
    (void)state;
    struct protocol_attempt a = in_state(ATTEMPT_RUNNING);
    (void)give_at(&a, FACT_UNWANTED, 51 * S);
    assert_int_equal(next(&a, 51 * S), ACT_STOP);
    (void)give_at(&a, FACT_STOP_FAILED, 51 * S);
    assert_int_equal(a.state, ATTEMPT_RUNNING);
    assert_int_equal(next(&a, 51 * S), ACT_NONE);     /* backs off */
    assert_int_equal(next(&a, 52 * S), ACT_DESCRIBE); /* is it there at all? */
    (void)give_at(&a, FACT_DESCRIBE_FAILED, 52 * S);
    assert_int_equal(next(&a, 54 * S), ACT_STOP); /* that does not hinder it */
    (void)give_at(&a, FACT_STOP_FAILED, 54 * S);
    assert_int_equal(next(&a, 60 * S), ACT_DESCRIBE);
    (void)describe(&a, JOB_IN_PROGRESS, PHASE_RUNNING, 11);
    assert_int_equal(next(&a, 60 * S), ACT_STOP);
    (void)give_at(&a, FACT_STOP_OK, 60 * S);
    (void)describe(&a, JOB_IN_PROGRESS, PHASE_RUNNING, 11); /* SageMaker knows of no stop */
    assert_int_equal(a.state, ATTEMPT_STOPPING);
    assert_int_equal(next(&a, 70 * S), ACT_STOP);
    a = in_state(ATTEMPT_STOPPING); /* its own stop: none of ours is added */
    (void)describe(&a, JOB_IN_PROGRESS, PHASE_RUNNING, 11);
    assert_true(next(&a, 60 * S) != ACT_STOP);
}

static void test_protocol_promises__a_late_answer_never_moves_back(void **state)
{
    (void)state;
    struct protocol_attempt a = in_state(ATTEMPT_RUNNING); /* modified 11 */
    (void)describe(&a, JOB_IN_PROGRESS, PHASE_STARTING, 10);
    assert_int_equal(a.state, ATTEMPT_RUNNING);
    assert_true(a.look_now);                                 /* read again */
    (void)describe(&a, JOB_IN_PROGRESS, PHASE_STARTING, 11); /* not newer */
    assert_int_equal(a.state, ATTEMPT_RUNNING);
    (void)describe(&a, JOB_IN_PROGRESS, PHASE_STARTING, 0); /* no date */
    assert_int_equal(a.state, ATTEMPT_RUNNING);
    (void)describe(&a, JOB_IN_PROGRESS, PHASE_STARTING, 12); /* spot took it: newer */
    assert_int_equal(a.state, ATTEMPT_STARTING);
    (void)describe(&a, JOB_STOPPING, PHASE_ENDED, 11); /* older than what is known */
    assert_int_equal(a.state, ATTEMPT_STARTING);
    (void)describe(&a, JOB_COMPLETED, PHASE_ENDED, 0); /* forward needs no date */
    assert_int_equal(a.state, ATTEMPT_VERIFYING);
}

static void test_protocol_promises__an_end_is_believed_whatever_its_date(void **state)
{
    (void)state;
    static const struct {
        enum job_status status;
        enum attempt_state then;
    } ends[] = {{JOB_COMPLETED, ATTEMPT_VERIFYING},
                {JOB_STOPPED, ATTEMPT_STOPPED},
                {JOB_FAILED, ATTEMPT_FAILED}};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        struct protocol_attempt a = in_state(ATTEMPT_RUNNING); /* modified 11 */
        (void)describe(&a, ends[i].status, PHASE_ENDED, 9);    /* AWS's clock was set back */
        assert_int_equal(a.state, ends[i].then);
    }
}

static void test_protocol_promises__after_a_takeover_the_first_answer_never_moves_back(void **state)
{
    (void)state;
    struct protocol_attempt a;
    struct protocol_effect e;
    protocol_taken_over(ATTEMPT_RUNNING, CAUSE_NONE, true, 100 * S, &cfg, &a, &e);
    assert_false(e.changed);
    assert_int_equal(next(&a, 100 * S), ACT_DESCRIBE);
    (void)describe(&a, JOB_IN_PROGRESS, PHASE_STARTING, 10);
    assert_int_equal(a.state, ATTEMPT_RUNNING);
    (void)describe(&a, JOB_IN_PROGRESS, PHASE_STARTING, 11);
    assert_int_equal(a.state, ATTEMPT_STARTING);
}

static void test_protocol_promises__a_list_only_makes_us_look(void **state)
{
    (void)state;
    static const struct {
        struct job_seen job;
        bool look;
    } cases[] = {
        {{JOB_IN_PROGRESS, PHASE_OTHER, false, 11}, false}, /* what we hold */
        {{JOB_IN_PROGRESS, PHASE_OTHER, false, 10}, false}, /* older */
        {{JOB_IN_PROGRESS, PHASE_OTHER, false, 12}, true},
        {{JOB_IN_PROGRESS, PHASE_OTHER, false, 0}, true}, /* no date: cannot be compared */
        {{JOB_COMPLETED, PHASE_OTHER, false, 11}, true},
        {{JOB_FAILED, PHASE_OTHER, false, 3}, true},
        {{JOB_STOPPED, PHASE_OTHER, false, 3}, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct protocol_attempt a = in_state(ATTEMPT_RUNNING);
        (void)give(&a, (struct fact){.kind = FACT_LISTED, .at_us = 55 * S, .job = cases[i].job});
        assert_int_equal(a.state, ATTEMPT_RUNNING);
        assert_int_equal(next(&a, 55 * S) == ACT_DESCRIBE, cases[i].look);
    }
    struct protocol_attempt a = in_state(ATTEMPT_UNKNOWN);
    (void)give(&a,
               (struct fact){.kind = FACT_LISTED, .job = {JOB_IN_PROGRESS, PHASE_OTHER, true, 1}});
    assert_int_equal(a.state, ATTEMPT_UNKNOWN);
    a = in_state(ATTEMPT_RUNNING);
    (void)give_at(&a, FACT_HINT, 55 * S);
    assert_int_equal(next(&a, 55 * S), ACT_DESCRIBE);
}

static void
test_protocol_promises__refused_for_good_while_unknown_ends_by_the_void_rule(void **state)
{
    (void)state;
    struct protocol_attempt a = in_state(ATTEMPT_UNKNOWN);
    (void)refuse(&a, CAUSE_ACCESS_DENIED, 3 * S);
    struct protocol_attempt found = a;
    int64_t now = 5 * S;
    for (int i = 0; i < 5; i++, now += 60 * S) {
        assert_int_equal(next(&a, now), ACT_DESCRIBE); /* never a Create again */
        (void)give_at(&a, FACT_NOT_FOUND, now);
    }
    assert_int_equal(next(&a, 950 * S), ACT_DESCRIBE);
    (void)give_at(&a, FACT_NOT_FOUND, 950 * S);
    assert_int_equal(next(&a, 951 * S), ACT_VOID);
    assert_int_equal(give_at(&a, FACT_VOID, 951 * S).cause, CAUSE_ACCESS_DENIED);
    (void)describe(&found, JOB_IN_PROGRESS, PHASE_RUNNING, 5); /* the first send had worked */
    assert_int_equal(found.state, ATTEMPT_RUNNING);
    assert_true(found.wanted);
    assert_true(next(&found, 60 * S) != ACT_STOP);
}

static void test_protocol_promises__takeover_maps_every_state(void **state)
{
    (void)state;
    for (int s = 0; s < ATTEMPT_STATE_COUNT; s++) {
        struct protocol_attempt a;
        struct protocol_effect e;
        protocol_taken_over((enum attempt_state)s, CAUSE_NONE, true, 100 * S, &cfg, &a, &e);
        bool intended = s == ATTEMPT_INTENDED;
        assert_int_equal(a.state, intended ? ATTEMPT_UNKNOWN : (enum attempt_state)s);
        assert_int_equal(e.changed, intended);
        assert_int_equal(e.from, s);
        assert_false(e.release_slot || e.task_ends || e.settle);
        enum protocol_action action = next(&a, 100 * S);
        if (attempt_state_terminal((enum attempt_state)s)) {
            assert_int_equal(action, ACT_NONE);
        } else {
            assert_int_equal(action, s == ATTEMPT_VERIFYING ? ACT_VERIFY : ACT_DESCRIBE);
        }
    }
}

static void test_protocol_promises__takeover_waits_for_the_older_epochs_window(void **state)
{
    (void)state;
    for (int s = ATTEMPT_INTENDED; s <= ATTEMPT_UNKNOWN; s++) {
        struct protocol_attempt a;
        struct protocol_effect e;
        protocol_taken_over((enum attempt_state)s, CAUSE_NONE, false, 100 * S, &cfg, &a, &e);
        assert_false(void_after_look(a, 1000 * S));
        assert_true(void_after_look(a, 1000 * S + 1));
        protocol_taken_over((enum attempt_state)s, CAUSE_NONE, true, 100 * S, &cfg, &a, &e);
        assert_false(void_after_look(a, 1000 * S));
        assert_int_equal(next(&a, 100 * S), ACT_DESCRIBE); /* wanted: found, or sent at once */
        (void)give_at(&a, FACT_NOT_FOUND, 100 * S);
        assert_int_equal(next(&a, 100 * S), ACT_CREATE);
        (void)refuse(&a, CAUSE_QUOTA, 101 * S); /* the older epoch's send may hold that slot */
        assert_int_equal(a.state, ATTEMPT_UNKNOWN);
    }
    struct protocol_attempt a; /* unwanted while live: stopped; while stopping: only looked at */
    struct protocol_effect e;
    protocol_taken_over(ATTEMPT_RUNNING, CAUSE_NONE, false, 100 * S, &cfg, &a, &e);
    assert_int_equal(next(&a, 100 * S), ACT_STOP);
    protocol_taken_over(ATTEMPT_STOPPING, CAUSE_NONE, false, 100 * S, &cfg, &a, &e);
    assert_int_equal(next(&a, 100 * S), ACT_DESCRIBE);
    assert_int_equal(next(&a, 100 * S), ACT_NONE);
}

static void test_protocol_promises__back_off_doubles_to_its_cap_and_ends_with_success(void **state)
{
    (void)state;
    static const int64_t waits_s[] = {1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60, 60};
    struct protocol_attempt a = in_state(ATTEMPT_INTENDED);
    int64_t now = 10 * S;
    for (size_t i = 0; i < ARRAY_LEN(waits_s); i++) {
        assert_int_equal(next(&a, now), ACT_CREATE);
        struct protocol_effect e = refuse(&a, CAUSE_THROTTLED, now);
        assert_int_equal(e.alert, i + 1 == PROTOCOL_ALERT_FAILURES);
        int64_t wake;
        assert_int_equal(protocol_next(&a, now, &cfg, &wake), ACT_NONE);
        assert_true(wake == now + waits_s[i] * S);
        assert_int_equal(protocol_next(&a, wake - 1, &cfg, &wake), ACT_NONE);
        now = wake;
    }
    (void)give_at(&a, FACT_CREATE_OK, now);
    assert_int_equal(a.failures, 0);
    a = in_state(ATTEMPT_VERIFYING); /* a check that cannot be made is tried again */
    assert_int_equal(next(&a, 60 * S), ACT_VERIFY);
    assert_int_equal(next(&a, 60 * S), ACT_NONE);
    now = 60 * S;
    for (int i = 0; i < 8; i++) { /* after 10 s at most: each look at an output may fail */
        static const int64_t again_s[] = {1, 2, 4, 8, 10, 10, 10, 10};
        (void)give_at(&a, FACT_VERIFY_FAILED, now);
        now += again_s[i] * S;
        assert_int_equal(next(&a, now - 1), ACT_NONE);
        assert_int_equal(next(&a, now), ACT_VERIFY);
    }
}

static void test_protocol_promises__times_at_the_end_of_the_range_do_not_overflow(void **state)
{
    (void)state;
    struct protocol_attempt a;
    struct protocol_effect e;
    protocol_taken_over(ATTEMPT_INTENDED, CAUSE_NONE, false, INT64_MAX - 1, &cfg, &a, &e);
    assert_true(a.void_after_us == INT64_MAX);
    (void)give_at(&a, FACT_NOT_FOUND, INT64_MAX);
    assert_false(a.not_found);
    a = in_state(ATTEMPT_UNKNOWN);
    (void)give_at(&a, FACT_DESCRIBE_FAILED, INT64_MAX);
    assert_true(a.next_us == INT64_MAX);
    a.failures = 1000;
    (void)give_at(&a, FACT_DESCRIBE_FAILED, 0);
    assert_int_equal(a.failures, 1000);
    assert_true(a.next_us == 60 * S);
}

static struct protocol_effect fail_bare(struct protocol_attempt *a, bool bare)
{
    struct protocol_effect e;
    protocol_step(
        a,
        &(struct fact){
            .kind = FACT_DESCRIBED,
            .at_us = 50 * S,
            .cause = CAUSE_USER_CODE,
            .bare = bare,
            .job = {.status = JOB_FAILED, .phase = PHASE_ENDED, .ours = true, .modified = 100}},
        &cfg, &e);
    return e;
}

static struct protocol_effect examined(struct protocol_attempt *a, enum cause cause)
{
    struct protocol_effect e;
    protocol_step(a, &(struct fact){.kind = FACT_VERIFIED, .at_us = 51 * S, .cause = cause}, &cfg,
                  &e);
    return e;
}

static void test_protocol_promises__a_bare_failure_frees_at_once_and_ends_by_its_log(void **state)
{
    (void)state;
    static const enum cause said[] = {CAUSE_OOM, CAUSE_UNKNOWN, CAUSE_NONE};
    static const enum cause want[] = {CAUSE_OOM, CAUSE_USER_CODE, CAUSE_USER_CODE};
    for (size_t i = 0; i < ARRAY_LEN(said); i++) {
        struct protocol_attempt a = in_state(ATTEMPT_RUNNING);
        struct protocol_effect e = fail_bare(&a, true);
        assert_int_equal(a.state, ATTEMPT_VERIFYING);
        assert_true(e.release_slot && e.settle && !e.task_ends); /* nothing waits but the verdict */
        assert_int_equal(next(&a, 50 * S), ACT_VERIFY);
        assert_int_equal(next(&a, 50 * S), ACT_NONE);
        e = examined(&a, said[i]);
        assert_int_equal(a.state, ATTEMPT_FAILED); /* a log that says nothing is no success */
        assert_int_equal(e.cause, want[i]);
        assert_true(e.task_ends && !e.release_slot && !e.settle);
    }
    struct protocol_attempt a = in_state(ATTEMPT_RUNNING); /* a reason that tells needs no log */
    assert_true(fail_bare(&a, false).task_ends);
    a = in_state(ATTEMPT_RUNNING); /* nor does one that nobody wants */
    (void)give_at(&a, FACT_UNWANTED, 49 * S);
    assert_true(fail_bare(&a, true).task_ends);
}

static void test_protocol_promises__a_log_that_does_not_come_is_waited_for_a_minute(void **state)
{
    (void)state;
    struct protocol_attempt a = in_state(ATTEMPT_RUNNING);
    (void)fail_bare(&a, true);
    int64_t wake;
    assert_int_equal(next(&a, 50 * S), ACT_VERIFY);
    assert_int_equal(protocol_next(&a, 51 * S, &cfg, &wake), ACT_NONE); /* under way */
    assert_true(wake == 110 * S);
    assert_int_equal(next(&a, 110 * S - 1), ACT_NONE);
    assert_int_equal(next(&a, 110 * S), ACT_VERIFY); /* to be given up */
    a = in_state(ATTEMPT_RUNNING);
    (void)fail_bare(&a, true);
    int64_t now = 50 * S;
    while (next(&a, now) == ACT_VERIFY && now < 110 * S) { /* each look fails */
        (void)give_at(&a, FACT_VERIFY_FAILED, now);
        assert_int_equal(protocol_next(&a, now, &cfg, &wake), ACT_NONE);
        assert_true(wake > now && wake <= 110 * S);
        now = wake;
    }
    assert_true(now == 110 * S);
    struct protocol_effect e; /* the next leader reads it too, and is no more patient */
    protocol_taken_over(ATTEMPT_VERIFYING, CAUSE_USER_CODE, true, 100 * S, &cfg, &a, &e);
    assert_int_equal(next(&a, 100 * S), ACT_VERIFY);
    assert_int_equal(next(&a, 160 * S), ACT_VERIFY);
    assert_int_equal(examined(&a, CAUSE_UNKNOWN).cause, CAUSE_USER_CODE);
    protocol_taken_over(ATTEMPT_VERIFYING, CAUSE_NONE, true, 100 * S, &cfg, &a, &e);
    assert_int_equal(examined(&a, CAUSE_NONE).cause, CAUSE_NONE); /* one that completed */
    assert_int_equal(a.state, ATTEMPT_SUCCEEDED);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_protocol_promises__a_send_is_asked_once_and_waited_for),
        cmocka_unit_test(test_protocol_promises__a_refusal_proves_nothing_after_one_unknown_send),
        cmocka_unit_test(
            test_protocol_promises__an_unknown_one_is_looked_for_and_sent_again_in_turn),
        cmocka_unit_test(test_protocol_promises__a_name_in_use_is_adopted_only_with_our_hash),
        cmocka_unit_test(test_protocol_promises__void_needs_a_look_sent_after_the_window),
        cmocka_unit_test(test_protocol_promises__a_signature_after_the_look_undoes_it),
        cmocka_unit_test(test_protocol_promises__unwanted_and_unknown_is_not_sent_but_looked_for),
        cmocka_unit_test(test_protocol_promises__unwanted_and_found_is_adopted_then_stopped),
        cmocka_unit_test(
            test_protocol_promises__an_unwanted_intent_is_voided_when_nothing_is_under_way),
        cmocka_unit_test(test_protocol_promises__a_stop_races_with_the_end),
        cmocka_unit_test(test_protocol_promises__a_stop_not_taken_is_asked_again),
        cmocka_unit_test(test_protocol_promises__a_late_answer_never_moves_back),
        cmocka_unit_test(test_protocol_promises__an_end_is_believed_whatever_its_date),
        cmocka_unit_test(
            test_protocol_promises__after_a_takeover_the_first_answer_never_moves_back),
        cmocka_unit_test(test_protocol_promises__a_list_only_makes_us_look),
        cmocka_unit_test(
            test_protocol_promises__refused_for_good_while_unknown_ends_by_the_void_rule),
        cmocka_unit_test(test_protocol_promises__takeover_maps_every_state),
        cmocka_unit_test(test_protocol_promises__takeover_waits_for_the_older_epochs_window),
        cmocka_unit_test(test_protocol_promises__back_off_doubles_to_its_cap_and_ends_with_success),
        cmocka_unit_test(test_protocol_promises__times_at_the_end_of_the_range_do_not_overflow),
        cmocka_unit_test(test_protocol_promises__a_bare_failure_frees_at_once_and_ends_by_its_log),
        cmocka_unit_test(test_protocol_promises__a_log_that_does_not_come_is_waited_for_a_minute),
    };
    return cmocka_run_group_tests_name("protocol_promises", tests, NULL, NULL);
}
