/* Aim: what people may do is told for every verb in every state of campaign and stage. Method: the
 * rules of the table are written down here a second time, as conditions; every cell is compared. */
#include "core/leader/verbs.h"
#include "leader_world.h"

static bool is_ended(enum campaign_state c)
{
    return c == CAMPAIGN_SUCCEEDED || c == CAMPAIGN_FAILED;
}

/* retry and skip: of parts. */
static enum verb_answer want_parts(enum verb v, enum campaign_state c, enum stage_state s)
{
    bool stage_ended = s == STAGE_FAILED || (v == VERB_RETRY && s == STAGE_SUCCEEDED);
    if (c == CAMPAIGN_CANCELLED) {
        return VERB_CANCELLED;
    }
    if (s == STAGE_CANCELLED) {
        return VERB_STAGE_CANCELLED;
    }
    if (v == VERB_SKIP && s == STAGE_SUCCEEDED) {
        return VERB_CARRIED_OUT; /* it has succeeded with them failed */
    }
    return stage_ended || is_ended(c) ? VERB_REOPENS : VERB_CARRIED_OUT;
}

/* hold and release: of parts that have not ended. */
static enum verb_answer want_held(enum campaign_state c, enum stage_state s)
{
    if (c == CAMPAIGN_CANCELLED) {
        return VERB_CANCELLED;
    }
    if (is_ended(c)) {
        return VERB_ENDED;
    }
    return s == STAGE_CANCELLED                        ? VERB_STAGE_CANCELLED
           : s == STAGE_SUCCEEDED || s == STAGE_FAILED ? VERB_ENDED
                                                       : VERB_CARRIED_OUT;
}

/* pause, resume, drain, cancel: of the campaign. */
static enum verb_answer want_whole(enum verb v, enum campaign_state c, enum stage_state s)
{
    if (c == CAMPAIGN_CANCELLED && v != VERB_CANCEL) {
        return VERB_CANCELLED; /* it has failed parts that nobody may retry */
    }
    if (is_ended(c)) {
        return VERB_ENDED;
    }
    return v == VERB_RESUME && s == STAGE_HELD ? VERB_GOES_ON : VERB_CARRIED_OUT;
}

static enum verb_answer want(enum verb v, enum campaign_state c, enum wanted w, enum stage_state s)
{
    if (w == WANTED_CANCEL && c != CAMPAIGN_CANCELLED && !is_ended(c)) {
        return v == VERB_CANCEL ? VERB_CARRIED_OUT : VERB_CANCELLING;
    }
    if (v == VERB_ARCHIVE) {
        return is_ended(c) || c == CAMPAIGN_CANCELLED ? VERB_CARRIED_OUT : VERB_NOT_ENDED;
    }
    if (v == VERB_HOLD || v == VERB_RELEASE) {
        return want_held(c, s);
    }
    return v == VERB_RETRY || v == VERB_SKIP ? want_parts(v, c, s) : want_whole(v, c, s);
}

static void test_verbs__every_cell_of_the_table(void **state)
{
    (void)state;
    int cells = 0;
    int refused = 0;
    for (int v = 0; v < VERB_COUNT; v++) {
        for (int c = 0; c < CAMPAIGN_STATE_COUNT; c++) {
            for (int w = 0; w < WANTED_COUNT; w++) {
                bool any = false;
                for (int s = 0; s < STAGE_STATE_COUNT; s++) {
                    enum verb_answer got = verb_answer((enum verb)v, (enum campaign_state)c,
                                                       (enum wanted)w, (enum stage_state)s);
                    if (got != want((enum verb)v, (enum campaign_state)c, (enum wanted)w,
                                    (enum stage_state)s)) {
                        fail_msg("%s of a %s stage of a %s campaign wanted %s: %d", verb_name(v),
                                 stage_state_name(s), campaign_state_name(c), wanted_name(w), got);
                    }
                    assert_true(verb_refused(got) == (verb_refusal(got)[0] != '\0'));
                    any |= !verb_refused(got);
                    refused += verb_refused(got);
                    cells++;
                }
                assert_true(verb_refused(verb_answer_any((enum verb)v, (enum campaign_state)c,
                                                         (enum wanted)w)) == !any);
            }
        }
    }
    for (int v = 0; v < VERB_COUNT; v++) { /* what gates hold: as any held one, but for a resume */
        enum verb_answer got = verb_answer_gated((enum verb)v);
        assert_int_equal(got, v == VERB_RESUME
                                  ? VERB_GATED
                                  : want((enum verb)v, CAMPAIGN_HELD, WANTED_RUN, STAGE_HELD));
        assert_true(verb_refused(got) == (verb_refusal(got)[0] != '\0'));
    }
    for (int v = 0; v < VERB_COUNT; v++) { /* an archived one has no parts to do anything with */
        enum verb_answer got = verb_answer_archived((enum verb)v);
        assert_int_equal(got, v == VERB_ARCHIVE ? VERB_CARRIED_OUT : VERB_ARCHIVED);
        assert_true(verb_refused(got) == (verb_refusal(got)[0] != '\0'));
    }
    assert_int_equal(cells, 9 * 8 * 4 * 7);
    assert_in_range(refused, cells / 4, cells * 3 / 5);
}

static void test_verbs__names_and_states_of_a_newer_version(void **state)
{
    (void)state;
    for (int v = 0; v < VERB_COUNT; v++) {
        assert_int_equal(verb_parse(verb_name((enum verb)v)), v);
    }
    assert_int_equal(verb_parse("explode"), VERB_COUNT);
    assert_int_equal(verb_answer(VERB_RETRY, CAMPAIGN_STATE_COUNT, WANTED_RUN, STAGE_RUNNING),
                     VERB_ENDED);
    assert_int_equal(verb_answer(VERB_RETRY, CAMPAIGN_RUNNING, WANTED_RUN, STAGE_STATE_COUNT),
                     VERB_ENDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verbs__every_cell_of_the_table),
        cmocka_unit_test(test_verbs__names_and_states_of_a_newer_version),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("verbs", tests, NULL, NULL);
}
