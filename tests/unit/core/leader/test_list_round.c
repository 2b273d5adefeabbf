/* Aim: few Lists show every end soon, whatever else the account has and whatever is refused.
 * Method: a service of one page at a time; attempts and pools by hand. Where filters are late:
 * test_list_late.c. */
#include "list_world.h"

static void test_list_round__what_a_whole_list_does_not_show_is_described(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 3);
    ask(&t);
    assert_string_equal(t.q.status, "InProgress");
    assert_string_equal(t.q.contains, "d-");
    assert_int_equal(t.q.created_after, leader_list_since(&t.w.s, t.us));
    give(&t, 2, 3, 4, "");
    assert_int_equal(absent(&t), 1);
    assert_true(nth(&t, 1)->p.look_now);
    t.us += INTERVAL / 10;
    described(&t, nth(&t, 1)); /* it runs: the List was behind. It is left alone for a while */
    for (int rounds = 0; rounds < 2; rounds++) {
        ask(&t);
        give(&t, 2, 3, 0, "");
        assert_int_equal(absent(&t), rounds);
    }
    leader_world_done(&t.w);
}

static void test_list_round__a_list_that_is_behind_costs_ever_less(void **state)
{
    (void)state;
    struct list_world t;
    int asked = 0;
    setup(&t, 1);
    for (int rounds = 0; rounds < 64; rounds++) {
        ask(&t);
        give(&t, 1, 0, 0, "");
        asked += absent(&t);
        described(&t, nth(&t, 1));
    }
    assert_in_range(asked, 5, 9);
    ask(&t);
    give(&t, 1, 1, 0, ""); /* seen again: an absence means something again */
    ask(&t);
    give(&t, 1, 0, 0, "");
    assert_int_equal(absent(&t), 1);
    leader_world_done(&t.w);
}

static void test_list_round__a_job_confirmed_since_it_began_is_not_absent(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 2);
    ask(&t);
    described(&t, nth(&t, 1)); /* made while the List was under way */
    give(&t, 2, 2, 0, "");
    assert_int_equal(absent(&t), 0);
    leader_world_done(&t.w);
}

static void test_list_round__many_ends_at_once_are_described_in_rounds(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 100);
    ask(&t);
    give(&t, 1, 0, 0, "");
    assert_int_equal(absent(&t), 40);
    ask(&t);
    give(&t, 1, 0, 0, "");
    assert_int_equal(absent(&t), 40); /* look_now still tells of the others */
    leader_world_done(&t.w);
}

static void test_list_round__stops_when_all_live_names_were_seen(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 120);
    ask(&t);
    int64_t began_us = t.us;
    give(&t, 1, 100, 0, "p2");
    ask(&t);
    assert_int_equal(t.us, began_us + INTERVAL / 10); /* never two at once */
    assert_string_equal(t.q.token, "p2");
    give(&t, 101, 120, 80, "p3"); /* 20 foreign ones follow, or 20,000 */
    assert_int_equal(absent(&t), 0);
    ask(&t);
    assert_string_equal(t.q.token, "");
    assert_int_equal(t.us, began_us + INTERVAL);
    leader_world_done(&t.w);
}

static void test_list_round__a_refused_page_is_asked_for_again_alone(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 120);
    ask(&t);
    give(&t, 1, 100, 0, "p2");
    int64_t before_us = t.us;
    for (int i = 0; i < 4; i++) {
        ask(&t);
        assert_string_equal(t.q.token, "p2");
        refuse(&t, i % 2 == 0 ? AWS_THROTTLED : AWS_UNKNOWN);
    }
    assert_true(t.us - before_us >= (1 + 1 + 2 + 4) * SEC); /* ever later */
    ask(&t);
    assert_string_equal(t.q.token, "p2");
    give(&t, 101, 119, 0, "");
    assert_int_equal(absent(&t), 1);
    assert_true(nth(&t, 120)->p.look_now);
    leader_world_done(&t.w);
}

static void test_list_round__a_token_that_is_refused_begins_anew(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 120);
    ask(&t);
    give(&t, 1, 100, 0, "p2");
    ask(&t);
    refuse(&t, AWS_REFUSED);
    assert_int_equal(absent(&t), 0); /* nothing follows from a List that was not told */
    ask(&t);
    assert_string_equal(t.q.token, "");
    for (int i = 0; i < 5; i++) { /* nor is a List of which nothing comes asked for ever */
        ask(&t);
        refuse(&t, AWS_REFUSED);
    }
    assert_false(t.r.under_way);
    leader_world_done(&t.w);
}

static void test_list_round__a_list_that_never_comes_is_made_up_for_by_describes(void **state)
{
    (void)state;
    struct list_world t;
    int described_n = 0;
    setup(&t, 60);
    for (int64_t end_us = t.us + 600 * SEC; t.us < end_us;) {
        ask(&t);
        refuse(&t, AWS_THROTTLED);
        described_n += absent(&t);
        for (int i = 1; i <= 60; i++) {
            if (nth(&t, i)->p.look_now) {
                described(&t, nth(&t, i));
            }
        }
    }
    assert_in_range(described_n, 160, 260); /* 0.4 a second and the first ones */
    for (int i = 1; i <= 60; i++) {         /* in rotation: none is forgotten */
        assert_true(t.us - nth(&t, i)->p.described_us < 240 * SEC);
    }
    leader_world_done(&t.w);
}

static void test_list_round__pages_are_paced(void **state)
{
    (void)state;
    struct list_world t;
    char token[16];
    int pages = 0;
    int64_t last_us = 0;
    setup(&t, 1);
    t.w.s.attempts[0]->row.intended_us = WALL;
    for (int64_t end_us = t.us + 3000 * SEC; t.us < end_us; pages++) {
        ask(&t);
        assert_true(t.us - last_us >= INTERVAL / 10);
        last_us = t.us;
        (void)snprintf(token, sizeof token, "p%d", pages);
        give(&t, 1, 0, JOB_LIST_PAGE, token); /* a List without an end */
    }
    assert_in_range(pages, 790, 806);
    leader_world_done(&t.w);
}

static void test_list_round__stopping_and_pools_are_asked_for_when_there_are_some(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 2);
    nth(&t, 2)->p.state = ATTEMPT_STOPPING;
    struct live_pool *p = leader_world_pool(&t.w, 5, POOL_AVAILABLE, NULL);
    p->seen = true;
    p->look_now = false;
    p->described_us = BOOT - SEC;
    ask(&t);
    give(&t, 1, 1, 0, "");
    assert_int_equal(absent(&t), 0); /* not all is told yet */
    ask(&t);
    assert_string_equal(t.q.status, "Stopping");
    give(&t, 1, 0, 0, "");
    ask(&t);
    assert_string_equal(t.q.pool, "Available");
    assert_string_equal(t.q.status, "");
    assert_false(p->look_now);
    give(&t, 1, 0, 0, "");
    assert_true(p->look_now);
    assert_int_equal(absent(&t), 1);
    assert_true(nth(&t, 2)->p.look_now);
    leader_world_done(&t.w);
}

static void test_list_round__strays_that_a_whole_list_does_not_show_are_looked_at(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 1);
    (void)stray(&t, "b", BOOT - 2 * SEC);
    (void)stray(&t, "a", BOOT - SEC);
    (void)stray(&t, "other-0", BOOT - 9 * SEC);
    const struct live_stray *st = t.w.s.strays;
    ask(&t);
    give(&t, 1, 1, JOB_LIST_PAGE - 1, "more"); /* not all is told yet */
    assert_false(st[0].look_now || st[1].look_now || st[2].look_now);
    ask(&t);
    give(&t, 1, 1, 0, "");
    assert_true(st[0].look_now);
    assert_false(st[1].look_now || st[2].look_now); /* one a round; the third one was shown */
    t.w.s.strays[0].ended_us = t.us;
    t.w.s.strays[0].look_now = false;
    ask(&t);
    give(&t, 1, 1, 1, "");
    assert_true(st[1].look_now);
    assert_false(st[0].look_now || st[2].look_now);
    leader_world_done(&t.w);
}

static void test_list_round__what_may_land_unnoticed_is_looked_for(void **state)
{
    (void)state;
    struct list_world t;
    int news = 0;
    setup(&t, 1);
    leader_list_watch(&t.w.s, WALL - 7200 * SEC, t.us + 200 * SEC, t.us);
    for (int64_t end_us = t.us + 600 * SEC; t.us < end_us;) {
        ask(&t);
        if (t.q.status[0] == '\0') { /* once a minute, until once after the watch */
            /* What is older was the sweep's, and what was seen is not listed again. */
            int64_t back_us = (news++ == 0 ? 910 : 70) * SEC;
            assert_true(t.q.created_after >= WALL + (t.us - BOOT) - back_us - 121 * SEC);
            give(&t, 1, 1, 0, "");
        } else {
            assert_string_equal(t.q.status, "InProgress");
            give(&t, 1, 1, 0, "");
        }
    }
    assert_int_equal(news, 5);
    leader_world_done(&t.w);
}

static void test_list_round__what_is_new_does_not_hold_up_the_rounds(void **state)
{
    (void)state;
    struct list_world t;
    int rounds = 0, news = 0;
    char token[16];
    setup(&t, 1);
    leader_list_watch(&t.w.s, WALL, t.us + 1000 * SEC, t.us);
    for (int64_t end_us = t.us + 300 * SEC; t.us < end_us;) {
        ask(&t);
        if (t.q.status[0] != '\0') {
            rounds++;
            give(&t, 1, 1, 0, "");
        } else { /* tens of thousands are new */
            (void)snprintf(token, sizeof token, "n%d", news++);
            give(&t, 1, 0, JOB_LIST_PAGE, token);
        }
    }
    assert_in_range(rounds, 27, 31);
    assert_in_range(news, 30, 60);
    leader_world_done(&t.w);
}

static void test_list_round__a_list_of_the_stopping_that_fails_says_nothing(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 2);
    nth(&t, 2)->p.state = ATTEMPT_STOPPING;
    ask(&t);
    give(&t, 1, 1, 0, "");
    for (int i = 0; i < 5; i++) {
        ask(&t);
        assert_string_equal(t.q.status, "Stopping");
        refuse(&t, AWS_UNKNOWN);
    }
    assert_int_equal(absent(&t), 0);
    leader_world_done(&t.w);
}

static void test_list_round__nothing_of_ours_is_not_asked_about(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 0);
    for (int i = 0; i < 10; i++) {
        int64_t wait_us = list_round_wait_us(&t.r, &t.w.s, WALL, 0, t.us);
        assert_int_equal(wait_us, INTERVAL);
        t.us += wait_us;
    }
    assert_int_equal(t.r.n, 0);
    leader_world_done(&t.w);
}

static void test_list_round__a_new_leader_learns_anew_and_keeps_the_pace(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 1);
    t.r.late = true;
    ask(&t);
    list_round_clear(&t.r);
    assert_false(t.r.late);
    assert_false(t.r.under_way);
    assert_int_equal(list_round_urgent_wait_us(&t.r, t.us), INTERVAL / 10);
    assert_int_equal(list_round_wait_us(&t.r, &t.w.s, WALL, 0, t.us), INTERVAL / 10);
    leader_world_done(&t.w);
}

static void test_list_round__rounds_are_rare_while_events_tell(void **state)
{
    (void)state;
    struct list_world t;
    const struct aws_failure f = {.outcome = AWS_REFUSED};
    setup(&t, 2);
    list_round_every(&t.r, 60 * INTERVAL, t.us);
    ask(&t);
    int64_t began_us = t.us;
    give(&t, 1, 1, 0, "");
    assert_int_equal(absent(&t), 1); /* what a rare round does not show is described, too */
    described(&t, nth(&t, 2));
    ask(&t);
    assert_int_equal(t.us, began_us + 60 * INTERVAL);
    list_round_refused(&t.r, &f, t.us); /* one that is cut comes again as always */
    for (int i = 1; i < 5; i++) {
        ask(&t);
        list_round_refused(&t.r, &f, t.us);
    }
    int64_t cut_us = t.us;
    ask(&t);
    assert_true(t.us <= cut_us + 3 * INTERVAL);
    give(&t, 1, 2, 0, "");
    int64_t over_us = t.us;
    t.us += INTERVAL / 2;
    list_round_every(&t.r, INTERVAL, t.us); /* no event is trusted any more: at once */
    ask(&t);
    assert_true(t.us <= over_us + 2 * INTERVAL);
    list_round_every(&t.r, 0, t.us);
    assert_int_equal(t.r.every_us, INTERVAL);
    leader_world_done(&t.w);
}

static void test_list_round__a_refused_page_is_no_first_try(void **state)
{
    (void)state;
    struct list_round r = {.interval_us = SEC};
    assert_true(list_round_is_first_try(&r));
    r.walk.failures = 1;
    assert_false(list_round_is_first_try(&r));
    r.asks_new = true; /* another List, whose page was not refused */
    assert_true(list_round_is_first_try(&r));
    r.news.failures = 1;
    r.walk.failures = 0;
    assert_false(list_round_is_first_try(&r));
}

static void test_list_round__the_sweep_lists_first(void **state)
{
    (void)state;
    assert_int_equal(list_round_yields_us(0, true), 0);
    assert_int_equal(list_round_yields_us(0, false), SEC / 20);
    assert_int_equal(list_round_yields_us(SEC, false), SEC);
    assert_int_equal(list_round_yields_us(SEC, true), SEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_round__what_a_whole_list_does_not_show_is_described),
        cmocka_unit_test(test_list_round__a_list_that_is_behind_costs_ever_less),
        cmocka_unit_test(test_list_round__a_job_confirmed_since_it_began_is_not_absent),
        cmocka_unit_test(test_list_round__many_ends_at_once_are_described_in_rounds),
        cmocka_unit_test(test_list_round__stops_when_all_live_names_were_seen),
        cmocka_unit_test(test_list_round__a_refused_page_is_asked_for_again_alone),
        cmocka_unit_test(test_list_round__a_token_that_is_refused_begins_anew),
        cmocka_unit_test(test_list_round__a_list_that_never_comes_is_made_up_for_by_describes),
        cmocka_unit_test(test_list_round__pages_are_paced),
        cmocka_unit_test(test_list_round__stopping_and_pools_are_asked_for_when_there_are_some),
        cmocka_unit_test(test_list_round__strays_that_a_whole_list_does_not_show_are_looked_at),
        cmocka_unit_test(test_list_round__what_may_land_unnoticed_is_looked_for),
        cmocka_unit_test(test_list_round__what_is_new_does_not_hold_up_the_rounds),
        cmocka_unit_test(test_list_round__a_list_of_the_stopping_that_fails_says_nothing),
        cmocka_unit_test(test_list_round__nothing_of_ours_is_not_asked_about),
        cmocka_unit_test(test_list_round__a_new_leader_learns_anew_and_keeps_the_pace),
        cmocka_unit_test(test_list_round__rounds_are_rare_while_events_tell),
        cmocka_unit_test(test_list_round__a_refused_page_is_no_first_try),
        cmocka_unit_test(test_list_round__the_sweep_lists_first),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
