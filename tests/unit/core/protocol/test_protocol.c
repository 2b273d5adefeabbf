/* Aim: the submit protocol answers every fact in every state as promised in
 * core/protocol/protocol.h, and its gates hold. Method: a table of facts x states gives the state
 * after; every cell's effect is held against the rules for slots, money and ends. States are only
 * ever reached by facts. (The promises one by one: test_protocol_promises.c; orders of events:
 * tests/simulation/exhaustive/exhaustive.c.) */
#include "protocol_help.h"

static void test_protocol__every_state_is_reached_by_facts(void **state)
{
    (void)state;
    for (int s = 0; s < ATTEMPT_STATE_COUNT; s++) {
        assert_int_equal(in_state((enum attempt_state)s).state, s);
    }
}

/* One letter a state, in the order of the enum; '.': stays. */
static const char letters[] = "IUSTRLGVDFXCO";
static_assert(sizeof letters == ATTEMPT_STATE_COUNT + 1, "a letter for every state");

struct row {
    const char *what, *after;
    struct fact fact;
};
#define JOB(kind_, status, phase)                                                                  \
    {                                                                                              \
        .kind = kind_, .at_us = 70 * S, .job = { status, phase, true, 100 }                        \
    }
static const struct row rows[] = {
    {"signed", ".............", {.kind = FACT_CREATE_SIGNED, .at_us = 70 * S}},
    {"unsent", ".............", {.kind = FACT_CREATE_UNSENT, .at_us = 70 * S}},
    {"created", "SS...........", {.kind = FACT_CREATE_OK, .at_us = 70 * S}},
    {"name in use", "U............", {.kind = FACT_CREATE_IN_USE, .at_us = 70 * S}},
    {"quota", "O............", {.kind = FACT_CREATE_REFUSED, .cause = CAUSE_QUOTA}},
    {"capacity", "O............", {.kind = FACT_CREATE_REFUSED, .cause = CAUSE_CAPACITY}},
    {"denied", "O............", {.kind = FACT_CREATE_REFUSED, .cause = CAUSE_ACCESS_DENIED}},
    {"bad request", "O............", {.kind = FACT_CREATE_REFUSED, .cause = CAUSE_BAD_REQUEST}},
    {"bad image", "O............", {.kind = FACT_CREATE_REFUSED, .cause = CAUSE_BAD_IMAGE}},
    {"throttled", ".............", {.kind = FACT_CREATE_REFUSED, .cause = CAUSE_THROTTLED}},
    {"credentials", ".............", {.kind = FACT_CREATE_REFUSED, .cause = CAUSE_NETWORK}},
    {"odd refusal", ".............", {.kind = FACT_CREATE_REFUSED, .cause = CAUSE_UNKNOWN}},
    {"no answer", "U............", {.kind = FACT_CREATE_UNKNOWN, .at_us = 70 * S}},
    {"pending", ".S..TT.......", JOB(FACT_DESCRIBED, JOB_IN_PROGRESS, PHASE_PENDING)},
    {"starting", ".TT.TT.......", JOB(FACT_DESCRIBED, JOB_IN_PROGRESS, PHASE_STARTING)},
    {"interrupted", ".TT.TT.......", JOB(FACT_DESCRIBED, JOB_IN_PROGRESS, PHASE_INTERRUPTED)},
    {"running", ".RRR.........", JOB(FACT_DESCRIBED, JOB_IN_PROGRESS, PHASE_RUNNING)},
    {"uploading", ".LLLL........", JOB(FACT_DESCRIBED, JOB_IN_PROGRESS, PHASE_UPLOADING)},
    {"odd phase", ".S...........", JOB(FACT_DESCRIBED, JOB_IN_PROGRESS, PHASE_OTHER)},
    {"ending", ".S...........", JOB(FACT_DESCRIBED, JOB_IN_PROGRESS, PHASE_ENDED)},
    {"stopping", ".GGGGG.......", JOB(FACT_DESCRIBED, JOB_STOPPING, PHASE_STOPPING)},
    {"stopping, odd phase", ".GGGGG.......", JOB(FACT_DESCRIBED, JOB_STOPPING, PHASE_OTHER)},
    {"run time over", ".GGGGG.......", JOB(FACT_DESCRIBED, JOB_IN_PROGRESS, PHASE_MAX_RUNTIME)},
    {"completed", ".VVVVVV......", JOB(FACT_DESCRIBED, JOB_COMPLETED, PHASE_ENDED)},
    {"failed", ".FFFFFF......", JOB(FACT_DESCRIBED, JOB_FAILED, PHASE_ENDED)},
    {"stopped", ".XXXXXX......", JOB(FACT_DESCRIBED, JOB_STOPPED, PHASE_ENDED)},
    {"ran too long", ".FFFFFF......", JOB(FACT_DESCRIBED, JOB_STOPPED, PHASE_MAX_RUNTIME)},
    {"waited too long", ".FFFFFF......", JOB(FACT_DESCRIBED, JOB_STOPPED, PHASE_MAX_WAIT)},
    {"odd status", ".S...........", JOB(FACT_DESCRIBED, JOB_STATUS_UNKNOWN, PHASE_RUNNING)},
    {"not ours", ".CCCCCC......", {.kind = FACT_DESCRIBED, .job = {.status = JOB_COMPLETED}}},
    {"not found", ".............", {.kind = FACT_NOT_FOUND, .at_us = 5000 * S}},
    {"gone", "..FFFFF......", {.kind = FACT_GONE, .at_us = 5000 * S}},
    {"gone, or not made yet", ".............", {.kind = FACT_GONE, .at_us = 901 * S}},
    {"describe failed", ".............", {.kind = FACT_DESCRIBE_FAILED, .at_us = 70 * S}},
    {"listed", ".............", JOB(FACT_LISTED, JOB_COMPLETED, PHASE_OTHER)},
    {"stop taken", "..GGGG.......", {.kind = FACT_STOP_OK, .at_us = 70 * S}},
    {"stop failed", ".............", {.kind = FACT_STOP_FAILED, .at_us = 70 * S}},
    {"verified", ".......D.....", {.kind = FACT_VERIFIED, .at_us = 70 * S}},
    {"short", ".......F.....", {.kind = FACT_VERIFIED, .cause = CAUSE_SHORT_OUTPUT}},
    {"no check", ".............", {.kind = FACT_VERIFY_FAILED, .at_us = 70 * S}},
    {"unwanted", ".............", {.kind = FACT_UNWANTED, .at_us = 70 * S}},
    {"void", ".............", {.kind = FACT_VOID, .at_us = 70 * S}},
    {"hint", ".............", {.kind = FACT_HINT, .at_us = 70 * S}},
};

static void test_protocol__every_fact_in_every_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(strlen(rows[i].after), ATTEMPT_STATE_COUNT);
        for (int s = 0; s < ATTEMPT_STATE_COUNT; s++) {
            struct protocol_attempt a = in_state((enum attempt_state)s);
            char want = rows[i].after[s] == '.' ? letters[s] : rows[i].after[s];
            (void)give(&a, rows[i].fact);
            if (letters[a.state] != want) {
                fail_msg("%s in %s gives %s", rows[i].what,
                         attempt_state_name((enum attempt_state)s), attempt_state_name(a.state));
            }
        }
    }
}

static void test_protocol__an_end_never_changes_and_asks_for_nothing(void **state)
{
    (void)state;
    for (int s = ATTEMPT_SUCCEEDED; s < ATTEMPT_STATE_COUNT; s++) {
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            struct protocol_attempt a = in_state((enum attempt_state)s);
            int64_t wake;
            (void)give(&a, rows[i].fact);
            assert_int_equal(protocol_next(&a, 100000 * S, &cfg, &wake), ACT_NONE);
            assert_true(wake == INT64_MAX);
        }
    }
}

static void test_protocol__causes_of_the_end_are_told(void **state)
{
    (void)state;
    static const struct {
        enum job_status status;
        enum job_phase phase;
        enum cause given, told;
    } cases[] = {
        {JOB_FAILED, PHASE_ENDED, CAUSE_OOM, CAUSE_OOM},
        {JOB_FAILED, PHASE_ENDED, CAUSE_NONE, CAUSE_UNKNOWN},
        {JOB_STOPPED, PHASE_ENDED, CAUSE_NONE, CAUSE_STOPPED},
        {JOB_STOPPED, PHASE_MAX_RUNTIME, CAUSE_NONE, CAUSE_TIMEOUT},
        {JOB_STOPPED, PHASE_MAX_WAIT, CAUSE_NONE, CAUSE_CAPACITY},
        {JOB_STOPPED, PHASE_MAX_WAIT, CAUSE_SPOT_INTERRUPTED, CAUSE_SPOT_INTERRUPTED},
        {JOB_COMPLETED, PHASE_ENDED, CAUSE_OOM, CAUSE_NONE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct protocol_attempt a = in_state(ATTEMPT_RUNNING);
        struct protocol_effect e =
            give(&a, (struct fact){.kind = FACT_DESCRIBED,
                                   .cause = cases[i].given,
                                   .job = {cases[i].status, cases[i].phase, true, 100}});
        assert_int_equal(e.cause, cases[i].told);
    }
    struct protocol_attempt a = in_state(ATTEMPT_VERIFYING);
    assert_int_equal(
        give(&a, (struct fact){.kind = FACT_VERIFIED, .cause = CAUSE_SHORT_OUTPUT}).cause,
        CAUSE_SHORT_OUTPUT);
    a = in_state(ATTEMPT_INTENDED);
    assert_int_equal(refuse(&a, CAUSE_ACCESS_DENIED, 1 * S).cause, CAUSE_ACCESS_DENIED);
}

static void test_protocol__an_odd_status_alerts_and_holds(void **state)
{
    (void)state;
    struct protocol_attempt a = in_state(ATTEMPT_RUNNING);
    struct protocol_effect e = describe(&a, JOB_STATUS_UNKNOWN, PHASE_OTHER, 50);
    assert_true(e.alert && !e.changed);
    a = in_state(ATTEMPT_VOID); /* impossible by the rules, so a person must hear of it */
    assert_true(give_at(&a, FACT_CREATE_OK, 1 * S).alert);
    a = in_state(ATTEMPT_RUNNING);
    assert_false(give_at(&a, FACT_CREATE_OK, 1 * S).alert);
}

static void test_protocol__the_lease_ends_before_the_last_signature(void **state)
{
    (void)state;
    assert_true(protocol_may_sign(10 * S, 9 * S));
    assert_true(protocol_may_sign(10 * S, 10 * S - PROTOCOL_SIGN_MARGIN_US - 1));
    assert_false(protocol_may_sign(10 * S, 10 * S - PROTOCOL_SIGN_MARGIN_US));
    assert_false(protocol_may_sign(10 * S, 10 * S));
    assert_false(protocol_may_sign(10 * S, 11 * S));
    assert_false(protocol_may_sign(0, 0));
    assert_false(protocol_may_sign(INT64_MIN, INT64_MAX));
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_protocol__every_state_is_reached_by_facts),
        cmocka_unit_test(test_protocol__every_fact_in_every_state),
        cmocka_unit_test(test_protocol__an_end_never_changes_and_asks_for_nothing),
        cmocka_unit_test(test_protocol__causes_of_the_end_are_told),
        cmocka_unit_test(test_protocol__an_odd_status_alerts_and_holds),
        cmocka_unit_test(test_protocol__the_lease_ends_before_the_last_signature),
    };
    return cmocka_run_group_tests_name("protocol", tests, NULL, NULL);
}
