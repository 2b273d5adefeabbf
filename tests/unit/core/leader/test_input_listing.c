/* Aim: a page is asked for again as long as that may help; a listing in the background begins, goes
 * on, writes, fails or stops by its campaign, its answer and the room there is, and says what to
 * do; its campaign starts when all inputs are listed, or fails. Method: tables; every answer with
 * every campaign; campaigns by hand. */
#include "core/leader/input_listing.h"
#include "life_world.h"

static void test_input_listing__a_page_is_asked_for_again(void **state)
{
    (void)state;
    static const struct {
        struct input_page_facts f;
        int64_t most_us; /* -1: not again */
    } rows[] = {
        {{AWS_THROTTLED, 503, 1, false}, 400 * USEC_PER_MSEC},
        {{AWS_THROTTLED, 503, 5, false}, 3 * USEC_PER_SEC},
        {{AWS_THROTTLED, 503, 6, false}, -1},
        {{AWS_THROTTLED, 503, 6, true}, 5 * USEC_PER_SEC},
        {{AWS_UNKNOWN, 500, 1000, true}, 5 * USEC_PER_SEC},
        {{AWS_CREDENTIALS, 403, 1000, true}, 5 * USEC_PER_SEC},
        {{AWS_UNSENT, 0, 1000, true}, 5 * USEC_PER_SEC},
        {{AWS_REFUSED, 403, 1, true}, -1},
        {{AWS_REFUSED, 404, 1, false}, -1},
        {{AWS_UNKNOWN, 301, 1, true}, -1}, /* of another region */
    };
    struct rng rng;
    rng_seed(&rng, 7);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (int n = 0; n < 50; n++) {
            int64_t us = -1;
            bool again = input_page_again(&rows[i].f, &rng, &us);
            assert_int_equal(again, rows[i].most_us >= 0);
            assert_true(!again || (us >= 100 * USEC_PER_MSEC && us <= rows[i].most_us));
        }
    }
}

static void test_input_listing__what_it_ended_with_is_final_or_passes(void **state)
{
    (void)state;
    static const struct {
        struct err why;
        bool final;
        const char *step;
    } rows[] = {
        {{.code = ERR_FORBIDDEN, .http_status = 403}, true, "s3:ListBucket"},
        {{.code = ERR_NOT_FOUND, .http_status = 404}, true, "s3:ListBucket"},
        {{.code = ERR_INVALID}, true, "correct the name"},
        {{.code = ERR_AWS, .http_status = 301}, true, "correct the name"},
        {{.code = ERR_LIMIT}, true, "narrow the pattern"},
        {{.code = ERR_THROTTLED, .http_status = 429}, false, ""},
        {{.code = ERR_UNAVAILABLE}, false, ""},
        {{.code = ERR_TIMEOUT}, false, ""},
        {{.code = ERR_NETWORK}, false, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(input_listing_final(&rows[i].why), rows[i].final);
        assert_non_null(strstr(input_listing_next_step(&rows[i].why), rows[i].step));
    }
    assert_non_null(strstr(input_listing_next_step(NULL), "check bucket"));
    assert_int_equal(input_listing_parts(0, 7), 0);
    assert_int_equal(input_listing_parts(1, 7), 1);
    assert_int_equal(input_listing_parts(7, 7), 1);
    assert_int_equal(input_listing_parts(8, 7), 2);
}

static void test_input_listing__goes_its_way(void **state)
{
    (void)state;
    static const struct err denied = {.code = ERR_FORBIDDEN, .message = "AccessDenied: no"};
    static const struct err stops = {.code = ERR_UNAVAILABLE, .message = "the server is stopping"};
    static const struct {
        struct input_listing_facts f;
        enum input_listing_then then;
        const char *problem;
    } rows[] = {
        {{.wanted = true}, INPUT_LISTING_STAYS, ""},
        {{.wanted = true, .room = true}, INPUT_LISTING_ASKS, ""},
        {{.wanted = true, .answer = INPUT_LISTING_WAITS}, INPUT_LISTING_STAYS, ""},
        {{.wanted = true, .answer = INPUT_LISTING_CAME, .objects = 1}, INPUT_LISTING_WRITES, ""},
        {{.wanted = true, .answer = INPUT_LISTING_CAME, .uri = "s3://b/x/*"},
         INPUT_LISTING_FAILS,
         "no object matches s3://b/x/*; next: check bucket, prefix and pattern; inputs must be "
         "there "
         "when the campaign is submitted"},
        {{.wanted = true, .answer = INPUT_LISTING_REFUSED, .why = &denied},
         INPUT_LISTING_FAILS,
         "AccessDenied: no; next: give droverd's role s3:ListBucket on the bucket, or correct the "
         "name"},
        {{.wanted = true, .answer = INPUT_LISTING_REFUSED, .why = &stops},
         INPUT_LISTING_AGAIN,
         "the server is stopping"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char problem[700];
        struct input_listing_facts f = rows[i].f;
        assert_int_equal(input_listing_next(&f, problem, sizeof problem), rows[i].then);
        assert_string_equal(problem, rows[i].problem);
        f.wanted = false; /* whatever came: of a cancelled campaign nothing is written */
        assert_int_equal(input_listing_next(&f, problem, sizeof problem), INPUT_LISTING_STOPS);
        assert_string_equal(problem, "");
    }
}

static void test_input_listing__texts_are_cut_between_characters(void **state)
{
    (void)state;
    char to[6];
    input_listing_text(to, sizeof to, "abcde");
    assert_string_equal(to, "abcde");
    input_listing_text(to, sizeof to, "abcdef");
    assert_string_equal(to, "abcde");
    input_listing_text(to, sizeof to, "abcd\xc3\xa9");
    assert_string_equal(to, "abcd");
    input_listing_text(to, sizeof to, "abc\xc3\xa9z");
    assert_string_equal(to, "abc\xc3\xa9");
}

static void test_input_listing__nothing_starts_before_all_inputs_are_listed(void **state)
{
    (void)state;
    struct life_world l;
    life_world_init(&l, 2);
    l.lc->row.state = CAMPAIGN_PLANNED;
    l.st[0].row.state = STAGE_BLOCKED;
    l.st[1].row.input = INPUT_LISTED;
    assert_string_equal(plan(&l), "");
    l.lc->row.wanted = WANTED_PAUSE;
    assert_string_equal(plan(&l), "");
    l.lc->row.wanted = WANTED_CANCEL;
    assert_string_equal(plan(&l), "c planned>running");
    l.lc->row.wanted = WANTED_RUN;
    l.st[1].row.input = INPUT_KNOWN;
    assert_string_equal(plan(&l), "c planned>running");
    life_world_done(&l);
}

static void test_input_listing__an_input_that_cannot_be_listed_fails_the_campaign(void **state)
{
    (void)state;
    struct life_world l;
    struct campaign_life_writes w;
    life_world_init(&l, 3);
    l.lc->row.state = CAMPAIGN_PLANNED;
    l.st[0].row.state = STAGE_BLOCKED;
    l.st[1].row.input = INPUT_REFUSED;
    l.st[2].row.input = INPUT_LISTED;
    (void)snprintf(l.st[1].row.input_problem, sizeof l.st[1].row.input_problem, "AccessDenied");
    assert_string_equal(plan(&l), "c planned>running");
    l.lc->row.state = CAMPAIGN_RUNNING;
    assert_string_equal(plan(&l), "s0 blocked>skipped, s1 blocked>failed, s2 blocked>skipped");
    campaign_life_plan(l.lc, &w);
    assert_string_equal(w.moves[0].reason, "the input of stage s1 could not be listed");
    assert_string_equal(w.moves[1].reason, "AccessDenied");
    (void)life_settle(&l);
    assert_int_equal(l.lc->row.state, CAMPAIGN_FAILED);
    l.lc->row.state = CAMPAIGN_RUNNING;
    assert_string_equal(plan(&l), "c running>failed");
    campaign_life_plan(l.lc, &w);
    assert_string_equal(w.moves[0].reason, "stage s1: AccessDenied");
    life_world_done(&l);
    life_world_init(&l, 2); /* a cancel comes first */
    l.st[0].row.state = STAGE_BLOCKED;
    l.st[0].row.input = INPUT_REFUSED;
    l.lc->row.wanted = WANTED_CANCEL;
    for (int i = 0; i < 2; i++) {
        life_stage_ended(&l.st[i], 0);
    }
    assert_string_equal(plan(&l), "s0 blocked>cancelled, s1 blocked>cancelled");
    life_world_done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_input_listing__a_page_is_asked_for_again),
        cmocka_unit_test(test_input_listing__what_it_ended_with_is_final_or_passes),
        cmocka_unit_test(test_input_listing__goes_its_way),
        cmocka_unit_test(test_input_listing__nothing_starts_before_all_inputs_are_listed),
        cmocka_unit_test(test_input_listing__an_input_that_cannot_be_listed_fails_the_campaign),
        cmocka_unit_test(test_input_listing__texts_are_cut_between_characters),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
